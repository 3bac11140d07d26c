/* put, get, p, g: checks, choice of engine, and the level of completion that each call promises. Works on bytes; the typed names forward
 * to it. Copies are mapped.h's, requests roce.h's, order between engines order.h's.
 */
#ifndef SHMEM_IMPL_RMA_H
#define SHMEM_IMPL_RMA_H

#include "order.h"

namespace shmem_impl {

/* Whether the queue pair can read or write `bytes` at this local address itself, and by which key. */
__aicore__ inline bool check_source(state& s, uint64_t local, uint64_t bytes, int pe, uint32_t& key) {
  if (local_key(s, local, bytes, key)) return true;
  fail(s, SHMEM_E_SOURCE, pe, local, bytes);
  return false;
}

/* The common beginning of a transfer of `bytes` at `symmetric` on `pe`: its place, and the engine. 0 after an error. */
__aicore__ inline uint32_t begin_transfer(state& s, uint64_t symmetric, uint64_t bytes, int pe, uint64_t& offset, const peer*& entry) {
  if (!check_pe(s, pe) || !check_range(s, symmetric, bytes, pe, offset)) return 0;
  return choose_engine(s, pe, offset, entry);
}

/* Loads 1, 2, 4 or 8 bytes, uncached. */
__aicore__ inline uint64_t load_bits(uint64_t address, uint32_t size) {
  if (size == 8) return load<uint64_t>(address);
  if (size == 4) return load<uint32_t>(address);
  if (size == 2) return load<uint16_t>(address);
  return load<uint8_t>(address);
}

__aicore__ inline void store_bits(uint64_t address, uint64_t bits, uint32_t size) {
  if (size == 8) {
    store<uint64_t>(address, bits);
  } else if (size == 4) {
    store<uint32_t>(address, uint32_t(bits));
  } else if (size == 2) {
    store<uint16_t>(address, uint16_t(bits));
  } else {
    store<uint8_t>(address, uint8_t(bits));
  }
}

/* Whether a blocking put of GM data can carry it in the request: then its source is reusable without waiting for a completion. */
__aicore__ inline bool fits_inline(const state& s, uint64_t source, uint64_t bytes) {
  return (s.flags & SHMEM_CTX_INLINE) != 0 && bytes <= INLINE_BYTES && (bytes & (bytes - 1)) == 0 && (source & (bytes - 1)) == 0;
}

/* GM to the peer. `blocking`: return when the source may be changed. Stages only, for roce; the caller rings. */
__aicore__ inline bool put_roce(state& s, queue& q, uint64_t offset, uint64_t source, uint64_t bytes, bool blocking) {
  uint32_t key;
  if (!check_source(s, source, bytes, q.pe, key)) return false;
  if (blocking && fits_inline(s, source, bytes)) return stage_value(s, q, offset, load_bits(source, uint32_t(bytes)), uint32_t(bytes));
  return stage_transfer(s, q, OPCODE_WRITE, offset, key, source, bytes);
}

/* Rings the pair, and waits for the requests that still read the caller's memory. */
__aicore__ inline void end_blocking_put(state& s, queue& q, bool carried) {
  if (carried) {
    commit(s, q);
  } else {
    poll_to(s, q, q.head);
  }
}

__aicore__ inline void put_bytes(state& s, uint64_t symmetric, uint64_t source, uint64_t bytes, int pe, bool blocking) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, symmetric, bytes, pe, offset, entry);
  if (engine == 0 || bytes == 0) return;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return;
    copy_gm(s, mapped_at(entry, offset), source, bytes);
    if (blocking) copies_in_done(s.event0);
    return;
  }
  queue* q = queue_toward(s, pe);
  if (q == nullptr || !put_roce(s, *q, offset, source, bytes, blocking)) return;
  if (blocking) end_blocking_put(s, *q, fits_inline(s, source, bytes));
}

__aicore__ inline void get_bytes(state& s, uint64_t target, uint64_t symmetric, uint64_t bytes, int pe, bool blocking) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, symmetric, bytes, pe, offset, entry);
  if (engine == 0 || bytes == 0) return;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return;
    copy_gm(s, target, mapped_at(entry, offset), bytes);
    if (blocking) drain_mapped(s);
    return;
  }
  uint32_t key;
  if (!check_source(s, target, bytes, pe, key)) return;
  queue* q = queue_toward(s, pe);
  if (q == nullptr || !stage_transfer(s, *q, OPCODE_READ, offset, key, target, bytes)) return;
  if (blocking) poll_to(s, *q, q->head);
}

__aicore__ inline void put_ub(state& s, uint64_t symmetric, const AscendC::LocalTensor<uint8_t>& source, uint64_t bytes, int pe,
                              bool blocking) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, symmetric, bytes, pe, offset, entry);
  if (engine == 0 || bytes == 0) return;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return;
    copy_ub_to_gm(s, mapped_at(entry, offset), source, bytes);
    if (blocking) copies_out_done(s.event0);
    return;
  }
  queue* q = queue_toward(s, pe);
  if (q == nullptr || !stage_from_ub(s, *q, offset, source, bytes)) return;
  if (blocking) commit(s, *q);
}

__aicore__ inline void get_ub(state& s, const AscendC::LocalTensor<uint8_t>& target, uint64_t symmetric, uint64_t bytes, int pe,
                              bool blocking) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, symmetric, bytes, pe, offset, entry);
  if (engine == 0 || bytes == 0) return;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return;
    copy_gm_to_ub(s, target, mapped_at(entry, offset), bytes);
    if (blocking) copies_in_done(s.event0);
    return;
  }
  queue* q = queue_toward(s, pe);
  if (q != nullptr) read_to_ub(s, *q, target, offset, bytes);
}

__aicore__ inline void put_value(state& s, uint64_t symmetric, uint64_t bits, uint32_t size, int pe) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, symmetric, size, pe, offset, entry);
  if (engine == 0 || !check_align(s, symmetric, size, pe)) return;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return;
    store_bits(mapped_at(entry, offset), bits, size);
    s.ctx->count.mapped_bytes += size;
    return;
  }
  queue* q = queue_toward(s, pe);
  if (q != nullptr && stage_value(s, *q, offset, bits, size)) commit(s, *q);
}

__aicore__ inline uint64_t get_value(state& s, uint64_t symmetric, uint32_t size, int pe) {
  uint64_t offset;
  const peer* entry;
  uint32_t engine = begin_transfer(s, symmetric, size, pe, offset, entry);
  if (engine == 0 || !check_align(s, symmetric, size, pe)) return 0;
  if (engine == SHMEM_ENGINE_MAPPED) {
    if (!before_mapped(s, pe)) return 0;
    s.ctx->count.mapped_bytes += size;
    uint64_t bits = load_bits(mapped_at(entry, offset), size);
    acquire_flag();
    return bits;
  }
  queue* q = queue_toward(s, pe);
  uint64_t line;
  if (q == nullptr || !read_value(s, *q, offset, size, line)) return 0;
  return load_bits(line, size);
}

/* What the public names have in common: enter, count, forward. */
__aicore__ inline void put_elements(__gm__ void* dst, const __gm__ void* src, uint64_t n, uint32_t size, int pe, bool blocking) {
  state& s = block_state;
  uint64_t bytes;
  if (!enter(s, SHMEM_OP_PUT) || !check_count(s, n, size, address_of(dst), pe, bytes)) return;
  put_bytes(s, address_of(dst), address_of(src), bytes, pe, blocking);
}

__aicore__ inline void get_elements(__gm__ void* dst, const __gm__ void* src, uint64_t n, uint32_t size, int pe, bool blocking) {
  state& s = block_state;
  uint64_t bytes;
  if (!enter(s, SHMEM_OP_GET) || !check_count(s, n, size, address_of(src), pe, bytes)) return;
  get_bytes(s, address_of(dst), address_of(src), bytes, pe, blocking);
}

template <typename T>
__aicore__ inline void put(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, int pe, bool blocking) {
  state& s = block_state;
  uint64_t bytes;
  if (enter(s, SHMEM_OP_PUT) && check_count(s, n, sizeof(T), address_of(dst), pe, bytes)) {
    put_ub(s, address_of(dst), src.template ReinterpretCast<uint8_t>(), bytes, pe, blocking);
  }
}

template <typename T>
__aicore__ inline void get(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n, int pe, bool blocking) {
  state& s = block_state;
  uint64_t bytes;
  if (enter(s, SHMEM_OP_GET) && check_count(s, n, sizeof(T), address_of(src), pe, bytes)) {
    get_ub(s, dst.template ReinterpretCast<uint8_t>(), address_of(src), bytes, pe, blocking);
  }
}

}  // namespace shmem_impl

template <typename T>
__aicore__ inline void shmem_put(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe) {
  shmem_impl::put_elements(dst, src, n, sizeof(T), pe, true);
}
template <typename T>
__aicore__ inline void shmem_put_nbi(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe) {
  shmem_impl::put_elements(dst, src, n, sizeof(T), pe, false);
}
template <typename T>
__aicore__ inline void shmem_get(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe) {
  shmem_impl::get_elements(dst, src, n, sizeof(T), pe, true);
}
template <typename T>
__aicore__ inline void shmem_get_nbi(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe) {
  shmem_impl::get_elements(dst, src, n, sizeof(T), pe, false);
}
template <typename T>
__aicore__ inline void shmem_put(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, int pe) {
  shmem_impl::put(dst, src, n, pe, true);
}
template <typename T>
__aicore__ inline void shmem_put_nbi(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, int pe) {
  shmem_impl::put(dst, src, n, pe, false);
}
template <typename T>
__aicore__ inline void shmem_get(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n, int pe) {
  shmem_impl::get(dst, src, n, pe, true);
}
template <typename T>
__aicore__ inline void shmem_get_nbi(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n, int pe) {
  shmem_impl::get(dst, src, n, pe, false);
}

__aicore__ inline void shmem_putmem(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe) {
  shmem_impl::put_elements(dst, src, bytes, 1, pe, true);
}
__aicore__ inline void shmem_putmem_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe) {
  shmem_impl::put_elements(dst, src, bytes, 1, pe, false);
}
__aicore__ inline void shmem_getmem(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe) {
  shmem_impl::get_elements(dst, src, bytes, 1, pe, true);
}
__aicore__ inline void shmem_getmem_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe) {
  shmem_impl::get_elements(dst, src, bytes, 1, pe, false);
}

template <typename T>
__aicore__ inline void shmem_p(__gm__ T* dst, T value, int pe) {
  static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0, "shmem_p takes values of 1, 2, 4 or 8 bytes");
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_P)) return;
  shmem_impl::put_value(s, shmem_impl::address_of(dst), shmem_impl::bit_cast<shmem_impl::bits_of<T>>(value), sizeof(T), pe);
}

template <typename T>
__aicore__ inline T shmem_g(const __gm__ T* src, int pe) {
  static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0, "shmem_g returns values of 1, 2, 4 or 8 bytes");
  shmem_impl::state& s = shmem_impl::block_state;
  uint64_t bits = 0;
  if (shmem_impl::enter(s, SHMEM_OP_G)) bits = shmem_impl::get_value(s, shmem_impl::address_of(src), sizeof(T), pe);
  return shmem_impl::bit_cast<T>(shmem_impl::bits_of<T>(bits));
}

#endif
