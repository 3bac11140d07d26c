/* Collectives that move data: broadcast, collect, fcollect, alltoall, alltoalls. Called by all communicating cores of each launch, which
 * share the work by destinations where there are enough of them, else by parts of each block. Used by kernels.
 *
 * All of them push: a member writes into the others' dest, and the meeting at the end says that everything has arrived. The standard asks
 * that dest is ready everywhere before anybody calls, so no meeting of PEs is needed before; only the cores of this PE meet, because one
 * core may send what another one has made.
 */
#ifndef SHMEM_IMPL_TEAM_DATA_H
#define SHMEM_IMPL_TEAM_DATA_H

#include "collect.h"
#include "strided.h"

namespace shmem_impl {

constexpr uint64_t SCATTER_BYTES = 64 * 1024; /* broadcasts from this size on go in two steps: each member passes a part on */

struct slice {
  uint64_t begin, count;
};

/* Part `which` of `parts` of n elements, as equal as they can be. */
__aicore__ inline slice part_of(uint64_t n, uint64_t parts, uint64_t which) {
  uint64_t each = n / parts, more = n % parts;
  return {each * which + (which < more ? which : more), each + (which < more ? 1 : 0)};
}

/* What this core does of a transfer of n elements to the i-th of so many destinations. */
__aicore__ inline slice share(const state& s, uint64_t n, uint64_t destinations, uint64_t i) {
  if (destinations >= s.cores) return i % s.cores == s.core ? slice{0, n} : slice{0, 0};
  return part_of(n, s.cores, s.core);
}

/* The common beginning: the team, and a meeting of this PE's cores with what they wrote in place. With `everywhere` the PEs meet too, so
 * that sources of others may be read. nullptr after an error. */
__aicore__ inline const team* begin_collective(state& s, uint32_t op, int32_t id, bool everywhere) {
  if (!enter(s, op)) return nullptr;
  const team* t = find_team(s, id);
  if (t == nullptr) return nullptr;
  clean_data_cache(s.heap_base);
  copies_done(s);
  commit_all(s);
  if (everywhere || s.cores > 1) {
    if (!meet(s, everywhere ? t : nullptr)) return nullptr;
  }
  return t;
}

/* The common end: all that this PE sent has arrived, all that is for it too. */
__aicore__ inline void end_collective(state& s, const team& t) {
  if (s.error != SHMEM_OK || !quiet_all(s) || !meet(s, &t)) return;
  clean_data_cache(s.heap_base);
}

/* Sends this core's share of a block of n elements to member i. */
__aicore__ inline void send_share(state& s, const team& t, uint64_t dst, uint64_t src, uint64_t n, uint32_t size, uint64_t destinations,
                                  int32_t i) {
  slice part = share(s, n, destinations, uint64_t(i));
  put_bytes(s, dst + part.begin * size, src + part.begin * size, part.count * size, member(t, i), false);
}

__aicore__ inline bool check_array(state& s, uint64_t address, uint64_t n, uint64_t blocks, uint32_t size) {
  uint64_t bytes, offset;
  if (n > s.heap_size || !check_count(s, n * blocks, size, address, s.my_pe, bytes)) return false;
  return check_range(s, address, bytes, s.my_pe, offset);
}

__aicore__ inline void broadcast(int32_t id, uint64_t dst, uint64_t src, uint64_t n, uint32_t size, int root) {
  state& s = block_state;
  const team* t = begin_collective(s, SHMEM_OP_BROADCAST, id, false);
  if (t == nullptr || n == 0) return;
  if (root < 0 || root >= t->n) {
    fail(s, SHMEM_E_PE, root, uint64_t(int64_t(root)), uint64_t(t->n));
    return;
  }
  if (!check_array(s, dst, n, 1, size)) return;
  uint64_t others = uint64_t(t->n);
  bool two_steps = n * size >= SCATTER_BYTES && t->n > 2;
  if (t->me == root) {
    /* The root's own dest, unless it is the source. */
    if (dst != src) send_share(s, *t, dst, src, n, size, 1, root);
    for (int32_t k = 1; k < t->n && s.error == SHMEM_OK; ++k) {
      int32_t i = (root + k) % t->n;
      slice block = two_steps ? part_of(n, uint64_t(t->n), uint64_t(i)) : slice{0, n};
      send_share(s, *t, dst + block.begin * size, src + block.begin * size, block.count, size, others, i);
    }
  }
  if (two_steps) {
    if (s.error != SHMEM_OK || !quiet_all(s) || !meet(s, t)) return;
    slice block = part_of(n, uint64_t(t->n), uint64_t(t->me));
    uint64_t from = (t->me == root ? src : dst) + block.begin * size;
    for (int32_t k = 1; k < t->n && s.error == SHMEM_OK; ++k) {
      int32_t i = (t->me + k) % t->n;
      if (i != root) send_share(s, *t, dst + block.begin * size, from, block.count, size, others, i);
    }
  }
  end_collective(s, *t);
}

/* My n elements to place `at` of everybody's dest. */
__aicore__ inline void gather_at(state& s, const team& t, uint64_t dst, uint64_t src, uint64_t n, uint32_t size, uint64_t at) {
  for (int32_t k = 0; k < t.n && s.error == SHMEM_OK; ++k) {
    send_share(s, t, dst + at * size, src, n, size, uint64_t(t.n), (t.me + k) % t.n);
  }
}

__aicore__ inline void fcollect(int32_t id, uint64_t dst, uint64_t src, uint64_t n, uint32_t size) {
  state& s = block_state;
  const team* t = begin_collective(s, SHMEM_OP_COLLECT, id, false);
  if (t == nullptr || n == 0 || !check_array(s, dst, n, uint64_t(t->n), size)) return;
  gather_at(s, *t, dst, src, n, size, n * uint64_t(t->me));
  end_collective(s, *t);
}

__aicore__ inline void collect(int32_t id, uint64_t dst, uint64_t src, uint64_t n, uint32_t size) {
  state& s = block_state;
  const team* t = begin_collective(s, SHMEM_OP_COLLECT, id, false);
  if (t == nullptr) return;
  /* Which of the two lines, before core 0 counts on: the cores have met, and core 0 changes it only below. */
  uint64_t parity = 0;
  if (s.core == 0) {
    parity = load<uint64_t>(t->line + SHMEM_OFFSET(shmem_team, exchanges)) & 1;
    if (!exchange_value(s, *t, n)) return;
  }
  if (!meet(s, t)) return;
  if (s.core != 0) parity = (load<uint64_t>(t->line + SHMEM_OFFSET(shmem_team, exchanges)) - 1) & 1;
  uint64_t at = 0, all = 0;
  for (int32_t i = 0; i < t->n; ++i) {
    if (i == t->me) at = all;
    all += exchanged_value(s, *t, parity, i);
  }
  if (!check_array(s, dst, all, 1, size)) return;
  gather_at(s, *t, dst, src, n, size, at);
  end_collective(s, *t);
}

__aicore__ inline void alltoall(int32_t id, uint64_t dst, uint64_t src, uint64_t n, uint32_t size) {
  state& s = block_state;
  const team* t = begin_collective(s, SHMEM_OP_ALLTOALL, id, false);
  if (t == nullptr || n == 0 || !check_array(s, dst, n, uint64_t(t->n), size)) return;
  for (int32_t k = 0; k < t->n && s.error == SHMEM_OK; ++k) {
    int32_t i = (t->me + k) % t->n;
    send_share(s, *t, dst + n * uint64_t(t->me) * size, src + n * uint64_t(i) * size, n, size, uint64_t(t->n), i);
  }
  end_collective(s, *t);
}

__aicore__ inline void alltoalls(int32_t id, uint64_t dst, uint64_t src, int64_t dst_stride, int64_t src_stride, uint64_t n, uint32_t size) {
  state& s = block_state;
  const team* t = begin_collective(s, SHMEM_OP_ALLTOALL, id, false);
  if (t == nullptr || n == 0) return;
  if (dst_stride < 1 || src_stride < 1) {
    fail(s, SHMEM_E_USAGE, s.my_pe, uint64_t(dst_stride), uint64_t(src_stride));
    return;
  }
  uint64_t span;
  if (!check_array(s, dst, n, uint64_t(t->n), size) || !check_span(s, uint64_t(dst_stride), 1, n * uint64_t(t->n), size, dst, s.my_pe, span) ||
      !check_span(s, uint64_t(src_stride), 1, n * uint64_t(t->n), size, dst, s.my_pe, span)) {
    return;
  }
  uint64_t to_step = uint64_t(dst_stride) * size, from_step = uint64_t(src_stride) * size;
  for (int32_t k = 0; k < t->n && s.error == SHMEM_OK; ++k) {
    int32_t i = (t->me + k) % t->n;
    slice part = share(s, n, uint64_t(t->n), uint64_t(i));
    if (part.count == 0) continue;
    blocks b = {to_step, from_step, size, part.count};
    if (to_step == size && from_step == size) b = {size * part.count, size * part.count, size * part.count, 1};
    uint64_t to = dst + (n * uint64_t(t->me) + part.begin) * to_step, from = src + (n * uint64_t(i) + part.begin) * from_step;
    move_blocks(s, OPCODE_WRITE, to, from, b, (b.count - 1) * b.to_step + b.bytes, (b.count - 1) * b.from_step + b.bytes, member(*t, i),
                false);
  }
  end_collective(s, *t);
}

}  // namespace shmem_impl

template <typename T>
__aicore__ inline void shmem_broadcast(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n, int root) {
  shmem_impl::broadcast(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), n, sizeof(T), root);
}
template <typename T>
__aicore__ inline void shmem_collect(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n) {
  shmem_impl::collect(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), n, sizeof(T));
}
template <typename T>
__aicore__ inline void shmem_fcollect(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n) {
  shmem_impl::fcollect(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), n, sizeof(T));
}
template <typename T>
__aicore__ inline void shmem_alltoall(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n) {
  shmem_impl::alltoall(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), n, sizeof(T));
}
template <typename T>
__aicore__ inline void shmem_alltoalls(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride,
                                       uint64_t n) {
  shmem_impl::alltoalls(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), dst_stride, src_stride, n, sizeof(T));
}
__aicore__ inline void shmem_broadcastmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes, int root) {
  shmem_impl::broadcast(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), bytes, 1, root);
}
__aicore__ inline void shmem_collectmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes) {
  shmem_impl::collect(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), bytes, 1);
}
__aicore__ inline void shmem_fcollectmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes) {
  shmem_impl::fcollect(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), bytes, 1);
}
__aicore__ inline void shmem_alltoallmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes) {
  shmem_impl::alltoall(team, shmem_impl::address_of(dst), shmem_impl::address_of(src), bytes, 1);
}

#endif
