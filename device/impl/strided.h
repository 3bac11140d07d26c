/* iput, iget, ibput, ibget: blocks of elements at regular distances. Mapped: MTE copies many blocks at once through a tile, each block at a
 * 32-byte boundary of UB. roce: a request a block, all rung together; blocks that touch one another on both sides are one transfer.
 * Used by kernels, and by alltoalls (team_data.h).
 */
#ifndef SHMEM_IMPL_STRIDED_H
#define SHMEM_IMPL_STRIDED_H

#include "rma.h"

namespace shmem_impl {

constexpr uint32_t BLOCKS_MAX = 4095;            /* blocks of one DataCopyPad */
constexpr uint64_t GAP_MAX = 0xffffffffu;        /* bytes; DataCopyExtParams has 32 bits for it on A2 and A3 */

/* `count` blocks of `bytes` bytes on both sides. Distances are from the start of a block to the start of the next, in bytes. */
struct blocks {
  uint64_t to_step, from_step, bytes, count;
};

/* GM to GM. On return all copies are issued, as after copy_gm. */
__aicore__ inline void copy_blocks(state& s, uint64_t to, uint64_t from, const blocks& b) {
  uint64_t padded = (b.bytes + UB_ALIGN - 1) & ~uint64_t(UB_ALIGN - 1);
  uint64_t fit = s.tile_bytes / padded;
  if (fit < 2 || b.to_step - b.bytes > GAP_MAX || b.from_step - b.bytes > GAP_MAX) {
    for (uint64_t i = 0; i < b.count; ++i) copy_gm(s, to + i * b.to_step, from + i * b.from_step, b.bytes);
    return;
  }
  if (fit > BLOCKS_MAX) fit = BLOCKS_MAX;
  s.ctx->count.mapped_bytes += b.bytes * b.count;
  for (uint64_t done = 0; done < b.count;) {
    uint32_t part = b.count - done < fit ? uint32_t(b.count - done) : uint32_t(fit);
    uint32_t turn = s.turn;
    int32_t event = turn == 0 ? s.event0 : s.event1;
    AscendC::LocalTensor<uint8_t> tile = ub_tensor<uint8_t>(s.tile[turn], s.tile_bytes);
    if (s.tile_busy[turn] != 0) tile_free(event);
    copy_in_blocks(tile, from, uint32_t(b.bytes), part, uint32_t(b.from_step - b.bytes));
    tile_filled(event);
    copy_out_blocks(to, tile, uint32_t(b.bytes), part, uint32_t(b.to_step - b.bytes));
    tile_leaving(event);
    s.tile_busy[turn] = 1;
    s.turn = turn ^ 1;
    from += part * b.from_step;
    to += part * b.to_step;
    done += part;
  }
}

/* Bytes from the first to the last of n blocks; false, and an error, when they are more than can be counted. */
__aicore__ inline bool check_span(state& s, uint64_t step, uint64_t block, uint64_t n, uint32_t size, uint64_t symmetric, int pe,
                                  uint64_t& bytes) {
  uint64_t most = OFFSET_MASK / size;
  bytes = 0;
  if (step <= most && block <= most && (n - 1 == 0 || step <= (most - block) / (n - 1))) {
    bytes = ((n - 1) * step + block) * size;
    return true;
  }
  fail(s, SHMEM_E_BOUNDS, pe, symmetric - s.heap_base, ~uint64_t(0));
  return false;
}

/* Blocks toward a PE (`opcode` WRITE) or from it (READ). `remote` is symmetric. All arguments are checked. */
__aicore__ inline void move_blocks(state& s, uint32_t opcode, uint64_t remote, uint64_t local, const blocks& b, uint64_t remote_span,
                                   uint64_t local_span, int pe, bool blocking) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, remote, remote_span, pe, offset, entry);
  if (engine == 0) return;
  bool put = opcode == OPCODE_WRITE;
  uint64_t remote_step = put ? b.to_step : b.from_step;
  uint64_t local_step = put ? b.from_step : b.to_step;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return;
    uint64_t far = mapped_at(entry, offset);
    copy_blocks(s, put ? far : local, put ? local : far, b);
    if (!blocking) return;
    if (put) {
      copies_in_done(s.event0);
    } else {
      drain_mapped(s);
    }
    return;
  }
  uint32_t key;
  if (!check_source(s, local, local_span, pe, key)) return;
  queue* q = queue_toward(s, pe);
  if (q == nullptr) return;
  for (uint64_t i = 0; i < b.count; ++i) {
    if (!stage_transfer(s, *q, opcode, offset + i * remote_step, key, local + i * local_step, b.bytes)) return;
  }
  if (blocking) poll_to(s, *q, q->head);
}

/* `count` elements between UB and a PE, by the scalar unit. */
template <typename T>
__aicore__ inline void strided_elements(state& s, uint64_t there, const AscendC::LocalTensor<T>& near, uint32_t here, uint64_t count, int pe,
                                        bool put) {
  if constexpr (sizeof(T) <= 8) {
    for (uint32_t j = 0; j < count && s.error == SHMEM_OK; ++j, there += sizeof(T)) {
      if (put) {
        put_value(s, there, bit_cast<bits_of<T>>(near.GetValue(here + j)), sizeof(T), pe);
      } else {
        near.SetValue(here + j, bit_cast<T>(bits_of<T>(get_value(s, there, sizeof(T), pe))));
      }
    }
  }
}

/* Between UB and a PE: block by block, and where a block does not begin at a multiple of 32 bytes of UB, element by element. */
template <typename T>
__aicore__ inline void strided_ub(uint32_t op, const __gm__ T* far, const AscendC::LocalTensor<T>& near, int64_t far_stride, int64_t near_stride,
                                  uint64_t block, uint64_t n, int pe) {
  state& s = block_state;
  if (!enter(s, op) || !check_pe(s, pe) || block == 0 || n == 0) return;
  bool put = op == SHMEM_OP_PUT;
  bool overlap = n > 1 && (uint64_t(far_stride) < block || uint64_t(near_stride) < block);
  bool whole = uint64_t(near_stride) * sizeof(T) % UB_ALIGN == 0 || n == 1;
  if (far_stride < 1 || near_stride < 1 || overlap || (!whole && sizeof(T) > 8)) {
    fail(s, SHMEM_E_USAGE, pe, uint64_t(put ? far_stride : near_stride), uint64_t(put ? near_stride : far_stride));
    return;
  }
  uint64_t span, place;
  if (!check_span(s, uint64_t(far_stride), block, n, sizeof(T), address_of(far), pe, span) ||
      !check_range(s, address_of(far), span, pe, place)) {
    return;
  }
  for (uint64_t i = 0; i < n && s.error == SHMEM_OK; ++i) {
    uint64_t there = address_of(far) + i * uint64_t(far_stride) * sizeof(T);
    uint32_t here = uint32_t(i * uint64_t(near_stride));
    if (whole) {
      AscendC::LocalTensor<uint8_t> bytes = near[here].template ReinterpretCast<uint8_t>();
      if (put) {
        put_ub(s, there, bytes, block * sizeof(T), pe, false);
      } else {
        get_ub(s, bytes, there, block * sizeof(T), pe, false);
      }
      continue;
    }
    strided_elements(s, there, near, here, block, pe, put);
  }
  if (s.error != SHMEM_OK) return;
  commit_context(s); /* requests from UB have left through the bounce ring */
  copies_done(s);
  if (!put && !whole) scalar_done(s.event0);
}

/* What the public names have in common. Strides and the block count elements of `size` bytes. */
__aicore__ inline void strided(uint32_t op, __gm__ void* dst, const __gm__ void* src, int64_t dst_stride, int64_t src_stride,
                               uint64_t block, uint64_t n, uint32_t size, int pe, bool blocking) {
  state& s = block_state;
  if (!enter(s, op) || !check_pe(s, pe) || block == 0 || n == 0) return;
  bool put = op == SHMEM_OP_PUT;
  if (dst_stride < 1 || src_stride < 1 || (n > 1 && (uint64_t(dst_stride) < block || uint64_t(src_stride) < block))) {
    fail(s, SHMEM_E_USAGE, pe, uint64_t(dst_stride), uint64_t(src_stride));
    return;
  }
  uint64_t remote = put ? address_of(dst) : address_of(src);
  uint64_t to_span, from_span;
  if (!check_span(s, uint64_t(dst_stride), block, n, size, remote, pe, to_span) ||
      !check_span(s, uint64_t(src_stride), block, n, size, remote, pe, from_span)) {
    return;
  }
  blocks b = {uint64_t(dst_stride) * size, uint64_t(src_stride) * size, block * size, n};
  if (b.to_step == b.bytes && b.from_step == b.bytes) {
    b.bytes = to_span;
    b.count = 1;
  }
  move_blocks(s, put ? OPCODE_WRITE : OPCODE_READ, remote, put ? address_of(src) : address_of(dst), b, put ? to_span : from_span,
              put ? from_span : to_span, pe, blocking);
}

}  // namespace shmem_impl

template <typename T>
__aicore__ inline void shmem_iput(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t n, int pe) {
  shmem_impl::strided(SHMEM_OP_PUT, dst, src, dst_stride, src_stride, 1, n, sizeof(T), pe, true);
}
template <typename T>
__aicore__ inline void shmem_iget(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t n, int pe) {
  shmem_impl::strided(SHMEM_OP_GET, dst, src, dst_stride, src_stride, 1, n, sizeof(T), pe, true);
}
template <typename T>
__aicore__ inline void shmem_ibput(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t block, uint64_t n,
                                   int pe) {
  shmem_impl::strided(SHMEM_OP_PUT, dst, src, dst_stride, src_stride, block, n, sizeof(T), pe, true);
}
template <typename T>
__aicore__ inline void shmem_ibget(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t block, uint64_t n,
                                   int pe) {
  shmem_impl::strided(SHMEM_OP_GET, dst, src, dst_stride, src_stride, block, n, sizeof(T), pe, true);
}

template <typename T>
__aicore__ inline void shmem_iput(__gm__ T* dst, const AscendC::LocalTensor<T>& src, int64_t dst_stride, int64_t src_stride, uint64_t n,
                                  int pe) {
  shmem_impl::strided_ub<T>(SHMEM_OP_PUT, dst, src, dst_stride, src_stride, 1, n, pe);
}
template <typename T>
__aicore__ inline void shmem_iget(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride,
                                  uint64_t n, int pe) {
  shmem_impl::strided_ub<T>(SHMEM_OP_GET, src, dst, src_stride, dst_stride, 1, n, pe);
}
template <typename T>
__aicore__ inline void shmem_ibput(__gm__ T* dst, const AscendC::LocalTensor<T>& src, int64_t dst_stride, int64_t src_stride, uint64_t block,
                                   uint64_t n, int pe) {
  shmem_impl::strided_ub<T>(SHMEM_OP_PUT, dst, src, dst_stride, src_stride, block, n, pe);
}
template <typename T>
__aicore__ inline void shmem_ibget(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride,
                                   uint64_t block, uint64_t n, int pe) {
  shmem_impl::strided_ub<T>(SHMEM_OP_GET, src, dst, src_stride, dst_stride, block, n, pe);
}

#endif
