/* Atomics: executed by the job's atomic domain, whatever engine the context uses, because NIC and core atomics are not atomic to one
 * another. Used by the shmem_atomic_* names and by signals with ADD (point.h).
 *
 * NIC domain: the target's NIC, for oneself too (a queue pair connected to oneself). It knows fetch-add and compare-and-swap of 8 bytes;
 * the rest is made of them: a 32-bit add in the upper half of a word is one fetch-add of x << 32, everything else a bounded
 * compare-and-swap loop with back-off on the containing word. Core domain (950 only): AtomicAdd, AtomicMin, AtomicMax, AtomicCas, AtomicExch
 * on the mapped word; and, or, xor by a bounded AtomicCas loop.
 */
#ifndef SHMEM_IMPL_ATOMIC_H
#define SHMEM_IMPL_ATOMIC_H

#include "rma.h"

namespace shmem_impl {

constexpr uint32_t BACKOFF_MAX = 1024; /* looks at the clock between two attempts of a contended loop, at most */

enum amo {
  AMO_ADD, AMO_SET, AMO_COMPARE_SWAP, AMO_AND, AMO_OR, AMO_XOR,
  AMO_MIN_UNSIGNED, AMO_MIN_SIGNED, AMO_MIN_FLOAT, AMO_MAX_UNSIGNED, AMO_MAX_SIGNED, AMO_MAX_FLOAT,
  AMO_ADD_FLOAT
};

/* What operand and word are: chooses among the forms of min, max and add. */
template <typename T>
struct number {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr bool is_float = false;
};
template <>
struct number<float> {
  static constexpr bool is_signed = true;
  static constexpr bool is_float = true;
};
template <typename T>
constexpr amo amo_add() { return number<T>::is_float ? AMO_ADD_FLOAT : AMO_ADD; }
template <typename T>
constexpr amo amo_min() { return number<T>::is_float ? AMO_MIN_FLOAT : number<T>::is_signed ? AMO_MIN_SIGNED : AMO_MIN_UNSIGNED; }
template <typename T>
constexpr amo amo_max() { return number<T>::is_float ? AMO_MAX_FLOAT : number<T>::is_signed ? AMO_MAX_SIGNED : AMO_MAX_UNSIGNED; }

/* The operand of `size` bytes that the word holds after the operation. */
__aicore__ inline uint64_t changed(amo what, uint64_t old, uint64_t value, uint32_t size) {
  float a = bit_cast<float>(uint32_t(old)), b = bit_cast<float>(uint32_t(value)); /* meant for the float forms, of 4 bytes */
  int64_t i = size == 8 ? int64_t(old) : int64_t(int32_t(uint32_t(old)));
  int64_t j = size == 8 ? int64_t(value) : int64_t(int32_t(uint32_t(value)));
  switch (what) {
    case AMO_ADD: return old + value;
    case AMO_AND: return old & value;
    case AMO_OR: return old | value;
    case AMO_XOR: return old ^ value;
    case AMO_MIN_UNSIGNED: return value < old ? value : old;
    case AMO_MAX_UNSIGNED: return value > old ? value : old;
    case AMO_MIN_SIGNED: return j < i ? value : old;
    case AMO_MAX_SIGNED: return j > i ? value : old;
    case AMO_MIN_FLOAT: return b < a ? value : old;
    case AMO_MAX_FLOAT: return b > a ? value : old;
    case AMO_ADD_FLOAT: return bit_cast<uint32_t>(a + b);
    default: return value; /* set; compare-and-swap whose comparison held */
  }
}

/* Where the atomic happens. `shift`: bit position of the operand in its 8-byte word (NIC domain). */
struct target {
  uint64_t offset;
  uint64_t address; /* mapped address, core domain */
  uint32_t size, shift;
  queue* pair;
};

/* Checks, and finds the queue pair or the mapped address. */
__aicore__ inline bool aim(state& s, uint64_t symmetric, uint32_t size, int pe, target& t) {
  if (!check_pe(s, pe) || !check_range(s, symmetric, size, pe, t.offset) || !check_align(s, symmetric, size, pe)) return false;
  t.size = size;
  t.shift = 0;
  t.pair = nullptr;
  if (s.domain == SHMEM_DOMAIN_NIC) {
    if ((s.flags & SHMEM_CTX_NIC_ATOMICS) == 0) {
      fail(s, SHMEM_E_ATOMICS, pe, t.offset, s.domain);
      return false;
    }
    if (size == 4) {
      t.shift = (t.offset & 4) != 0 ? 32 : 0;
      t.offset &= ~uint64_t(7);
    }
    t.pair = queue_toward(s, pe);
    return t.pair != nullptr;
  }
#if __NPU_ARCH__ == 3510
  const peer* entry = find_peer(s, pe, t.offset);
  if (entry == nullptr) return false;
  if (entry->mapped == 0) {
    fail(s, SHMEM_E_UNREACHABLE, pe, SHMEM_ENGINE_MAPPED, entry->engines);
    return false;
  }
  t.address = mapped_at(entry, t.offset);
  return before_mapped(s, pe);
#else
  fail(s, SHMEM_E_ATOMICS, pe, t.offset, s.domain);
  return false;
#endif
}

/* One fetch-add or compare-and-swap of the containing word, waited for. */
__aicore__ inline bool nic_word(state& s, queue& q, uint32_t opcode, uint64_t offset, uint64_t operand, uint64_t compare, uint64_t& old) {
  uint64_t line;
  if (!stage_atomic(s, q, opcode, offset, operand, compare, line) || !poll_to(s, q, q.head)) return false;
  old = load<uint64_t>(line);
  return true;
}

__aicore__ inline uint64_t field(uint64_t word, const target& t) { return t.size == 8 ? word : (word >> t.shift) & 0xffffffffu; }

__aicore__ inline uint64_t with_field(uint64_t word, const target& t, uint64_t value) {
  if (t.size == 8) return value;
  return (word & ~(uint64_t(0xffffffffu) << t.shift)) | ((value & 0xffffffffu) << t.shift);
}

/* Looks at the clock 1, 2, 4, ... times, so that contenders on one word get out of step. */
__aicore__ inline void back_off(uint32_t& looks) {
  for (uint32_t i = 0; i < looks; ++i) now();
  if (looks < BACKOFF_MAX) looks *= 2;
}

/* Changes the word until no other atomic came between reading and writing it. */
__aicore__ inline uint64_t nic_loop(state& s, const target& t, amo what, uint64_t value, uint64_t compare, int pe) {
  queue& q = *t.pair;
  uint64_t word;
  if (t.size == 8 && what == AMO_COMPARE_SWAP) {
    return nic_word(s, q, OPCODE_COMPARE_SWAP, t.offset, value, compare, word) ? word : 0;
  }
  if (!nic_word(s, q, OPCODE_FETCH_ADD, t.offset, 0, 0, word)) return 0;
  patience wait;
  uint32_t looks = 1;
  while (true) {
    uint64_t old = field(word, t);
    if (what == AMO_COMPARE_SWAP && old != compare) return old;
    uint64_t wanted = with_field(word, t, changed(what, old, value, t.size));
    if (wanted == word) return old; /* nothing to write: the read was the atomic's moment */
    uint64_t seen;
    if (!nic_word(s, q, OPCODE_COMPARE_SWAP, t.offset, wanted, word, seen)) return 0;
    if (seen == word) return old;
    word = seen;
    back_off(looks);
    if (!wait.more(s, pe, WAIT_ATOMIC, t.offset)) return 0;
  }
}

/* Adds. Without `fetch` the request is only rung, and a fence or quiet completes it. */
__aicore__ inline uint64_t nic_add(state& s, const target& t, uint64_t value, bool fetch, int pe) {
  /* A carry out of the lower half would reach the upper half; out of the upper half it leaves the word. 0 carries nothing. */
  if (t.size == 4 && t.shift == 0 && value != 0) return nic_loop(s, t, AMO_ADD, value, 0, pe);
  queue& q = *t.pair;
  uint64_t operand = t.size == 8 ? value : (value & 0xffffffffu) << t.shift;
  if (fetch) {
    uint64_t old;
    return nic_word(s, q, OPCODE_FETCH_ADD, t.offset, operand, 0, old) ? field(old, t) : 0;
  }
  uint64_t line;
  if (stage_atomic(s, q, OPCODE_FETCH_ADD, t.offset, operand, 0, line)) commit(s, q);
  return 0;
}

#if __NPU_ARCH__ == 3510
template <typename U, typename I>
__aicore__ inline uint64_t core_amo(state& s, const target& t, amo what, uint64_t value, uint64_t compare, int pe) {
  __gm__ U* word = reinterpret_cast<__gm__ U*>(t.address);
  __gm__ I* number = reinterpret_cast<__gm__ I*>(t.address);
  __gm__ float* real = reinterpret_cast<__gm__ float*>(t.address);
  float operand = bit_cast<float>(uint32_t(value));
  switch (what) {
    case AMO_ADD: return AscendC::AtomicAdd<U>(word, U(value));
    case AMO_SET: return AscendC::AtomicExch<U>(word, U(value));
    case AMO_COMPARE_SWAP: return AscendC::AtomicCas<U>(word, U(compare), U(value));
    case AMO_MIN_UNSIGNED: return AscendC::AtomicMin<U>(word, U(value));
    case AMO_MAX_UNSIGNED: return AscendC::AtomicMax<U>(word, U(value));
    case AMO_MIN_SIGNED: return U(AscendC::AtomicMin<I>(number, I(value)));
    case AMO_MAX_SIGNED: return U(AscendC::AtomicMax<I>(number, I(value)));
    case AMO_MIN_FLOAT: return bit_cast<uint32_t>(AscendC::AtomicMin<float>(real, operand));
    case AMO_MAX_FLOAT: return bit_cast<uint32_t>(AscendC::AtomicMax<float>(real, operand));
    case AMO_ADD_FLOAT: return bit_cast<uint32_t>(AscendC::AtomicAdd<float>(real, operand));
    default: break;
  }
  U old = load<U>(t.address);
  patience wait;
  uint32_t looks = 1;
  while (true) {
    U wanted = U(changed(what, old, value, t.size));
    U seen = wanted == old ? old : AscendC::AtomicCas<U>(word, old, wanted);
    if (seen == old) return old;
    old = seen;
    back_off(looks);
    if (!wait.more(s, pe, WAIT_ATOMIC, t.address)) return 0;
  }
}
#endif

/* The atomic on a target that was found: the old value, where `fetch` asks for it; 0 after an error. */
__aicore__ inline uint64_t execute(state& s, const target& t, amo what, uint64_t value, uint64_t compare, bool fetch, int pe) {
#if __NPU_ARCH__ == 3510
  if (s.domain == SHMEM_DOMAIN_CORE) {
    return t.size == 8 ? core_amo<uint64_t, int64_t>(s, t, what, value, compare, pe)
                       : core_amo<uint32_t, int32_t>(s, t, what, value, compare, pe);
  }
#endif
  if (what == AMO_ADD) return nic_add(s, t, value, fetch, pe);
  return nic_loop(s, t, what, value, compare, pe);
}

__aicore__ inline uint64_t atomic(state& s, uint64_t symmetric, uint32_t size, amo what, uint64_t value, uint64_t compare, bool fetch,
                                  int pe) {
  target t;
  return aim(s, symmetric, size, pe, t) ? execute(s, t, what, value, compare, fetch, pe) : 0;
}

template <typename T>
__aicore__ inline T atomic_on(const __gm__ T* dst, amo what, T value, T compare, bool fetch, int pe) {
  static_assert(number<T>::is_float || ((sizeof(T) == 4 || sizeof(T) == 8) && T(1) / T(2) == T(0)),
                "atomics take 32- and 64-bit integers and float");
  state& s = block_state;
  if (!enter(s, SHMEM_OP_ATOMIC)) return T(0);
  using bits = bits_of<T>;
  uint64_t old = atomic(s, address_of(dst), sizeof(T), what, bit_cast<bits>(value), bit_cast<bits>(compare), fetch, pe);
  return bit_cast<T>(bits(old));
}

/* The old value to *into, by the next quiet. Where the NIC has the operation and *into is registered, the response goes there by itself. */
template <typename T>
__aicore__ inline void atomic_nbi(__gm__ T* into, const __gm__ T* dst, amo what, T value, T compare, int pe) {
  static_assert(number<T>::is_float || ((sizeof(T) == 4 || sizeof(T) == 8) && T(1) / T(2) == T(0)),
                "atomics take 32- and 64-bit integers and float");
  state& s = block_state;
  target t;
  using bits = bits_of<T>;
  if (!enter(s, SHMEM_OP_ATOMIC) || !check_align(s, address_of(into), sizeof(T), s.my_pe)) return;
  if (!aim(s, address_of(dst), sizeof(T), pe, t)) return;
  bool one = t.pair != nullptr && t.size == 8 && (what == AMO_ADD || what == AMO_COMPARE_SWAP);
  uint32_t key;
  if (one && local_key(s, address_of(into), t.size, key)) {
    uint32_t opcode = what == AMO_ADD ? OPCODE_FETCH_ADD : OPCODE_COMPARE_SWAP;
    if (!reserve(s, *t.pair)) return;
    stage_atomic_to(s, *t.pair, opcode, t.offset, bit_cast<bits>(value), what == AMO_ADD ? 0 : bit_cast<bits>(compare), key,
                    address_of(into));
    return;
  }
  uint64_t old = execute(s, t, what, bit_cast<bits>(value), bit_cast<bits>(compare), true, pe);
  if (s.error == SHMEM_OK) store_bits(address_of(into), old, t.size);
}

}  // namespace shmem_impl

template <typename T>
__aicore__ inline T shmem_atomic_fetch(const __gm__ T* src, int pe) {
  return shmem_impl::atomic_on<T>(src, shmem_impl::AMO_ADD, T(0), T(0), true, pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_set(__gm__ T* dst, shmem_same<T> value, int pe) {
  shmem_impl::atomic_on<T>(dst, shmem_impl::AMO_SET, value, T(0), false, pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_add(__gm__ T* dst, shmem_same<T> value, int pe) {
  shmem_impl::atomic_on<T>(dst, shmem_impl::amo_add<T>(), value, T(0), false, pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_inc(__gm__ T* dst, int pe) {
  shmem_impl::atomic_on<T>(dst, shmem_impl::amo_add<T>(), T(1), T(0), false, pe);
}
template <typename T>
__aicore__ inline T shmem_atomic_fetch_add(__gm__ T* dst, shmem_same<T> value, int pe) {
  return shmem_impl::atomic_on<T>(dst, shmem_impl::amo_add<T>(), value, T(0), true, pe);
}
template <typename T>
__aicore__ inline T shmem_atomic_fetch_inc(__gm__ T* dst, int pe) {
  return shmem_impl::atomic_on<T>(dst, shmem_impl::amo_add<T>(), T(1), T(0), true, pe);
}
template <typename T>
__aicore__ inline T shmem_atomic_swap(__gm__ T* dst, shmem_same<T> value, int pe) {
  return shmem_impl::atomic_on<T>(dst, shmem_impl::AMO_SET, value, T(0), true, pe);
}
template <typename T>
__aicore__ inline T shmem_atomic_compare_swap(__gm__ T* dst, shmem_same<T> cond, shmem_same<T> value, int pe) {
  return shmem_impl::atomic_on<T>(dst, shmem_impl::AMO_COMPARE_SWAP, value, cond, true, pe);
}

template <typename T>
__aicore__ inline void shmem_atomic_fetch_nbi(__gm__ T* fetch, const __gm__ T* src, int pe) {
  shmem_impl::atomic_nbi<T>(fetch, src, shmem_impl::AMO_ADD, T(0), T(0), pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_fetch_add_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> value, int pe) {
  shmem_impl::atomic_nbi<T>(fetch, dst, shmem_impl::amo_add<T>(), value, T(0), pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_fetch_inc_nbi(__gm__ T* fetch, __gm__ T* dst, int pe) {
  shmem_impl::atomic_nbi<T>(fetch, dst, shmem_impl::amo_add<T>(), T(1), T(0), pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_swap_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> value, int pe) {
  shmem_impl::atomic_nbi<T>(fetch, dst, shmem_impl::AMO_SET, value, T(0), pe);
}
template <typename T>
__aicore__ inline void shmem_atomic_compare_swap_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> cond, shmem_same<T> value, int pe) {
  shmem_impl::atomic_nbi<T>(fetch, dst, shmem_impl::AMO_COMPARE_SWAP, value, cond, pe);
}

/* The three forms of an operation: shmem_atomic_and, shmem_atomic_fetch_and, shmem_atomic_fetch_and_nbi. */
#define SHMEM_DEFINE_AMO_OP(NAME, WHAT)                                                                                      \
  template <typename T>                                                                                                      \
  __aicore__ inline void shmem_atomic_##NAME(__gm__ T* dst, shmem_same<T> value, int pe) {                                   \
    shmem_impl::atomic_on<T>(dst, WHAT, value, T(0), false, pe);                                                             \
  }                                                                                                                          \
  template <typename T>                                                                                                      \
  __aicore__ inline T shmem_atomic_fetch_##NAME(__gm__ T* dst, shmem_same<T> value, int pe) {                                \
    return shmem_impl::atomic_on<T>(dst, WHAT, value, T(0), true, pe);                                                       \
  }                                                                                                                          \
  template <typename T>                                                                                                      \
  __aicore__ inline void shmem_atomic_fetch_##NAME##_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> value, int pe) {      \
    shmem_impl::atomic_nbi<T>(fetch, dst, WHAT, value, T(0), pe);                                                            \
  }
SHMEM_DEFINE_AMO_OP(and, shmem_impl::AMO_AND)
SHMEM_DEFINE_AMO_OP(or, shmem_impl::AMO_OR)
SHMEM_DEFINE_AMO_OP(xor, shmem_impl::AMO_XOR)
SHMEM_DEFINE_AMO_OP(min, shmem_impl::amo_min<T>())
SHMEM_DEFINE_AMO_OP(max, shmem_impl::amo_max<T>())
#undef SHMEM_DEFINE_AMO_OP

#endif
