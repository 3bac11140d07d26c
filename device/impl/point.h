/* Point to point: waiting for one's own memory to change, signals, puts with a signal. Used by kernels through the public names; the
 * barrier has its own waiting (collect.h).
 *
 * A signal word is set by one 8-byte store (mapped) or one 8-byte WRITE (roce), added to by the atomic domain. The data of a put with
 * signal travels by the engine that carries the signal, on one queue pair; where that cannot be, it is confirmed first.
 */
#ifndef SHMEM_IMPL_POINT_H
#define SHMEM_IMPL_POINT_H

#include "atomic.h"

namespace shmem_impl {

template <typename T>
__aicore__ inline bool compare(T value, int cmp, T with) {
  switch (cmp) {
    case SHMEM_CMP_EQ: return value == with;
    case SHMEM_CMP_NE: return value != with;
    case SHMEM_CMP_GT: return value > with;
    case SHMEM_CMP_GE: return value >= with;
    case SHMEM_CMP_LT: return value < with;
    default: return value <= with;
  }
}

/* Own memory that somebody will change: in the heap, aligned, 4 or 8 bytes. */
template <typename T>
__aicore__ inline bool check_watched(state& s, const __gm__ T* variable, int cmp) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "wait and test look at 32- and 64-bit integers");
  uint64_t offset;
  if (!check_range(s, address_of(variable), sizeof(T), s.my_pe, offset)) return false;
  if (!check_align(s, address_of(variable), sizeof(T), s.my_pe)) return false;
  if (cmp >= SHMEM_CMP_EQ && cmp <= SHMEM_CMP_LE) return true;
  fail(s, SHMEM_E_USAGE, s.my_pe, uint64_t(int64_t(cmp)));
  return false;
}

template <typename T>
__aicore__ inline T look(const __gm__ T* variable) {
  return bit_cast<T>(load<bits_of<T>>(address_of(variable)));
}

/* Waits until the comparison holds, and returns the value that made it so; T(0) after an error. Rings what is staged first: whom we
 * wait for may be waiting for it. */
template <typename T>
__aicore__ inline T wait_for(state& s, const __gm__ T* variable, int cmp, T with) {
  if (!check_watched(s, variable, cmp)) return T(0);
  commit_all(s);
  patience wait;
  while (s.error == SHMEM_OK) {
    T value = look(variable);
    if (compare(value, cmp, with)) {
      acquire_flag();
      return value;
    }
    if (!wait.more(s, s.my_pe, WAIT_VALUE, address_of(variable) - s.heap_base)) break;
  }
  return T(0);
}

__aicore__ inline bool check_signal(state& s, uint64_t symmetric, int op, int pe) {
  uint64_t offset;
  if (!check_pe(s, pe) || !check_range(s, symmetric, sizeof(uint64_t), pe, offset) ||
      !check_align(s, symmetric, sizeof(uint64_t), pe)) {
    return false;
  }
  if (op != SHMEM_SIGNAL_SET && op != SHMEM_SIGNAL_ADD) {
    fail(s, SHMEM_E_USAGE, pe, uint64_t(int64_t(op)));
    return false;
  }
  if (op == SHMEM_SIGNAL_ADD && s.domain == SHMEM_DOMAIN_NIC && (s.flags & SHMEM_CTX_NIC_ATOMICS) == 0) {
    fail(s, SHMEM_E_ATOMICS, pe, offset, s.domain);
    return false;
  }
  return true;
}

/* Sends a checked signal by itself. */
__aicore__ inline void send_signal(state& s, uint64_t symmetric, uint64_t value, int op, int pe) {
  s.sync = 1;
  if (op == SHMEM_SIGNAL_ADD) {
    atomic(s, symmetric, sizeof(uint64_t), AMO_ADD, value, 0, false, pe);
  } else {
    put_value(s, symmetric, value, sizeof(uint64_t), pe);
  }
  s.sync = 0;
}

/* How a put with signal goes: the engine of the data, the context's own engine to return to, and whether the data must be confirmed
 * before the signal is sent. */
struct route {
  uint32_t engine, outer;
  bool confirm;
};

/* Checks, chooses the route, and makes its engine the one of the put that follows. The signal's carrier is the context's engine for SET
 * and the atomic domain for ADD. `can_roce`: a queue pair can carry the data (it lies in the heap or in UB). */
__aicore__ inline bool begin_signal(state& s, uint64_t signal, int op, int pe, uint64_t data, uint64_t bytes, bool can_roce, route& r) {
  const peer* entry;
  uint64_t place;
  if (!check_signal(s, signal, op, pe) || !check_range(s, signal, sizeof(uint64_t), pe, place)) return false;
  r.outer = s.ctx->engine;
  r.engine = choose_engine(s, pe, place, entry);
  if (r.engine == 0) return false;
  uint32_t carrier = r.engine;
  if (op == SHMEM_SIGNAL_ADD) carrier = s.domain == SHMEM_DOMAIN_NIC ? SHMEM_ENGINE_ROCE : SHMEM_ENGINE_MAPPED;
  if (carrier == SHMEM_ENGINE_ROCE && can_roce) r.engine = SHMEM_ENGINE_ROCE;
  if (carrier == SHMEM_ENGINE_MAPPED && entry->mapped != 0) r.engine = SHMEM_ENGINE_MAPPED;
  if (bytes > 0 && r.engine == SHMEM_ENGINE_MAPPED) {
    /* Data in a window that is not mapped, with a signal that is. */
    if (!check_range(s, data, bytes, pe, place)) return false;
    entry = find_peer(s, pe, place);
    if (entry == nullptr) return false;
    if (entry->mapped == 0 && r.outer != SHMEM_ENGINE_MAPPED) r.engine = SHMEM_ENGINE_ROCE;
  }
  r.confirm = r.engine == SHMEM_ENGINE_MAPPED || r.engine != carrier;
  s.ctx->engine = r.engine;
  return true;
}

/* After the data was staged or issued: the signal. On one queue pair it follows the data by itself. */
__aicore__ inline void end_signal(state& s, uint64_t signal, uint64_t value, int op, int pe, const route& r, bool blocking, bool from_ub) {
  if (s.error == SHMEM_OK) {
    if (r.engine == SHMEM_ENGINE_MAPPED) {
      drain_mapped(s); /* the source is reusable then, too */
      s.ctx->engine = r.outer;
      send_signal(s, signal, value, op, pe);
    } else {
      queue* q = queue_toward(s, pe);
      if (q != nullptr && r.confirm) {
        if (confirm(s, *q)) send_signal(s, signal, value, op, pe);
      } else if (q != nullptr) {
        uint64_t offset, line;
        check_range(s, signal, sizeof(uint64_t), pe, offset);
        s.sync = 1;
        bool staged = op == SHMEM_SIGNAL_ADD ? stage_atomic(s, *q, OPCODE_FETCH_ADD, offset, value, 0, line)
                                             : stage_value(s, *q, offset, value, sizeof(uint64_t));
        s.sync = 0;
        if (staged && blocking) end_blocking_put(s, *q, from_ub);
      }
    }
  }
  s.ctx->engine = r.outer;
}

__aicore__ inline void put_signal_elements(__gm__ void* dst, const __gm__ void* src, uint64_t n, uint32_t size, __gm__ uint64_t* sig,
                                           uint64_t value, int op, int pe, bool blocking) {
  state& s = block_state;
  uint64_t bytes;
  route r;
  if (!enter(s, SHMEM_OP_PUT_SIGNAL) || !check_count(s, n, size, address_of(dst), pe, bytes)) return;
  uint32_t key;
  bool can_roce = bytes == 0 || local_key(s, address_of(src), bytes, key);
  if (!begin_signal(s, address_of(sig), op, pe, address_of(dst), bytes, can_roce, r)) return;
  put_bytes(s, address_of(dst), address_of(src), bytes, pe, false);
  end_signal(s, address_of(sig), value, op, pe, r, blocking, false);
}

template <typename T>
__aicore__ inline void put_signal(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig, uint64_t value,
                                  int op, int pe, bool blocking) {
  state& s = block_state;
  uint64_t bytes;
  route r;
  if (!enter(s, SHMEM_OP_PUT_SIGNAL) || !check_count(s, n, sizeof(T), address_of(dst), pe, bytes)) return;
  if (!begin_signal(s, address_of(sig), op, pe, address_of(dst), bytes, true, r)) return;
  put_ub(s, address_of(dst), src.template ReinterpretCast<uint8_t>(), bytes, pe, false);
  end_signal(s, address_of(sig), value, op, pe, r, blocking, true);
}

__aicore__ inline void signal_op(uint64_t sig, uint64_t value, int op, int pe) {
  state& s = block_state;
  if (enter(s, SHMEM_OP_SIGNAL) && check_signal(s, sig, op, pe)) send_signal(s, sig, value, op, pe);
}

}  // namespace shmem_impl

template <typename T>
__aicore__ inline void shmem_put_signal(__gm__ T* dst, const __gm__ T* src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op,
                                        int pe) {
  shmem_impl::put_signal_elements(dst, src, n, sizeof(T), sig, value, op, pe, true);
}
template <typename T>
__aicore__ inline void shmem_put_signal_nbi(__gm__ T* dst, const __gm__ T* src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op,
                                            int pe) {
  shmem_impl::put_signal_elements(dst, src, n, sizeof(T), sig, value, op, pe, false);
}
template <typename T>
__aicore__ inline void shmem_put_signal(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig,
                                        uint64_t value, int op, int pe) {
  shmem_impl::put_signal(dst, src, n, sig, value, op, pe, true);
}
template <typename T>
__aicore__ inline void shmem_put_signal_nbi(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig,
                                            uint64_t value, int op, int pe) {
  shmem_impl::put_signal(dst, src, n, sig, value, op, pe, false);
}
__aicore__ inline void shmem_putmem_signal(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, __gm__ uint64_t* sig, uint64_t value,
                                           int op, int pe) {
  shmem_impl::put_signal_elements(dst, src, bytes, 1, sig, value, op, pe, true);
}
__aicore__ inline void shmem_putmem_signal_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, __gm__ uint64_t* sig,
                                               uint64_t value, int op, int pe) {
  shmem_impl::put_signal_elements(dst, src, bytes, 1, sig, value, op, pe, false);
}

__aicore__ inline void shmem_signal_op(__gm__ uint64_t* sig, uint64_t value, int op, int pe) {
  shmem_impl::signal_op(shmem_impl::address_of(sig), value, op, pe);
}
__aicore__ inline void shmem_signal_set(__gm__ uint64_t* sig, uint64_t value, int pe) {
  shmem_impl::signal_op(shmem_impl::address_of(sig), value, SHMEM_SIGNAL_SET, pe);
}
__aicore__ inline void shmem_signal_add(__gm__ uint64_t* sig, uint64_t value, int pe) {
  shmem_impl::signal_op(shmem_impl::address_of(sig), value, SHMEM_SIGNAL_ADD, pe);
}

__aicore__ inline uint64_t shmem_signal_fetch(const __gm__ uint64_t* sig) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_WAIT) || !shmem_impl::check_watched(s, sig, SHMEM_CMP_EQ)) return 0;
  uint64_t value = shmem_impl::look(sig);
  shmem_impl::acquire_flag();
  return value;
}

__aicore__ inline uint64_t shmem_signal_wait_until(const __gm__ uint64_t* sig, int cmp, uint64_t value) {
  shmem_impl::state& s = shmem_impl::block_state;
  return shmem_impl::enter(s, SHMEM_OP_WAIT) ? shmem_impl::wait_for(s, sig, cmp, value) : 0;
}

template <typename T>
__aicore__ inline void shmem_wait_until(const __gm__ T* ivar, int cmp, shmem_same<T> value) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (shmem_impl::enter(s, SHMEM_OP_WAIT)) shmem_impl::wait_for<T>(s, ivar, cmp, value);
}

template <typename T>
__aicore__ inline int shmem_test(const __gm__ T* ivar, int cmp, shmem_same<T> value) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_WAIT) || !shmem_impl::check_watched(s, ivar, cmp)) return 1;
  shmem_impl::commit_all(s);
  T seen = shmem_impl::look(ivar);
  shmem_impl::acquire_flag();
  if (shmem_impl::compare<T>(seen, cmp, value)) return 1;
  uint64_t offset = shmem_impl::address_of(ivar) - s.heap_base;
  return shmem_impl::asked_enough(s, s.my_pe, shmem_impl::WAIT_VALUE, offset, false) ? 1 : 0;
}

#endif
