// Atomics: the mode in which MTE3 writes are read-modify-write (SetAtomicAdd and its kin), and, on 950, the scalar unit's own atomics.
//
// Element by element atomic, nothing fetched, no 64-bit types in MTE3's mode. A2 and A3 have no scalar atomic; there the functions do not
// exist, so that a kernel that needs them does not compile, as with the vendor's compiler.
#ifndef NPUSIM_ATOMIC_H
#define NPUSIM_ATOMIC_H

#include "cache.h"
#include "number.h"

namespace npusim {

template <typename T> struct AtomicTypeOf { static constexpr AtomicType value = AtomicType::NONE; };
template <> struct AtomicTypeOf<int8_t> { static constexpr AtomicType value = AtomicType::I8; };
template <> struct AtomicTypeOf<int16_t> { static constexpr AtomicType value = AtomicType::I16; };
template <> struct AtomicTypeOf<int32_t> { static constexpr AtomicType value = AtomicType::I32; };
template <> struct AtomicTypeOf<half> { static constexpr AtomicType value = AtomicType::F16; };
template <> struct AtomicTypeOf<bfloat16_t> { static constexpr AtomicType value = AtomicType::BF16; };
template <> struct AtomicTypeOf<float> { static constexpr AtomicType value = AtomicType::F32; };

inline uint32_t atomic_bytes(AtomicType type) {
  switch (type) {
    case AtomicType::I8: return 1;
    case AtomicType::I16:
    case AtomicType::F16:
    case AtomicType::BF16: return 2;
    default: return 4;
  }
}

// old <- f(old), atomically.
template <typename U, typename F> inline U rmw(uint64_t address, F f) {
  U *word = reinterpret_cast<U *>(address);
  U old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, f(old), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
  return old;
}

template <typename T> inline T combine(T a, T b, AtomicOp op) {
  if (op == AtomicOp::ADD) return static_cast<T>(a + b);
  return (op == AtomicOp::MAX ? a < b : b < a) ? b : a;
}
inline bfloat16_t combine(bfloat16_t a, bfloat16_t b, AtomicOp op) {
  return float_to_bfloat16(combine<float>(bfloat16_to_float(a), bfloat16_to_float(b), op));
}

template <typename T> inline void atomic_elements(uint64_t target, const uint8_t *source, uint32_t bytes, AtomicOp op) {
  for (uint32_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T mine;
    memcpy(&mine, source + at, sizeof(T));
    rmw<Word<T>>(target + at, [=](Word<T> old) { return to_word<T>(combine(from_word<T>(old), mine, op)); });
  }
}

inline void atomic_to_gm(uint64_t target, const uint8_t *source, uint32_t bytes, AtomicOp op, AtomicType type) {
  counters().core_atomics += bytes / atomic_bytes(type);
  switch (type) {
    case AtomicType::I8: return atomic_elements<int8_t>(target, source, bytes, op);
    case AtomicType::I16: return atomic_elements<int16_t>(target, source, bytes, op);
    case AtomicType::I32: return atomic_elements<int32_t>(target, source, bytes, op);
    case AtomicType::F16: return atomic_elements<half>(target, source, bytes, op);
    case AtomicType::BF16: return atomic_elements<bfloat16_t>(target, source, bytes, op);
    case AtomicType::F32: return atomic_elements<float>(target, source, bytes, op);
    case AtomicType::NONE: return;
  }
}

inline void check_atomic(uint64_t target, uint64_t bytes, AtomicType type, const char *operation, Site site) {
  const uint32_t element = atomic_bytes(type);
  if (type == AtomicType::NONE) broken(site, "%s: set_atomic_add is on without an element type; call one of set_atomic_s8 to set_atomic_f32", operation);
  if (target % element != 0 || bytes % element != 0)
    broken(site, "%s while SetAtomic%s is on: address 0x%llx and %llu bytes must be multiples of its %u-byte type", operation,
           state().atomic_op == AtomicOp::ADD ? "Add" : state().atomic_op == AtomicOp::MAX ? "Max" : "Min", (unsigned long long)target,
           (unsigned long long)bytes, element);
}

inline void set_atomic(AtomicOp op, AtomicType type, Site site) {
  State &s = state();
  s.atomic_op = op;
  s.atomic_type = type;
  s.atomic_site = site;
  step(site);
}

}  // namespace npusim

namespace AscendC {

template <typename T> __aicore__ inline void SetAtomicAdd(NPUSIM_SITE) {
  static_assert(npusim::AtomicTypeOf<T>::value != npusim::AtomicType::NONE, "SetAtomicAdd takes int8_t, int16_t, int32_t, half, bfloat16_t or float");
  npusim::set_atomic(npusim::AtomicOp::ADD, npusim::AtomicTypeOf<T>::value, site);
}
template <typename T> __aicore__ inline void SetAtomicMax(NPUSIM_SITE) {
  static_assert(npusim::AtomicTypeOf<T>::value != npusim::AtomicType::NONE, "SetAtomicMax takes int8_t, int16_t, int32_t, half, bfloat16_t or float");
  npusim::set_atomic(npusim::AtomicOp::MAX, npusim::AtomicTypeOf<T>::value, site);
}
template <typename T> __aicore__ inline void SetAtomicMin(NPUSIM_SITE) {
  static_assert(npusim::AtomicTypeOf<T>::value != npusim::AtomicType::NONE, "SetAtomicMin takes int8_t, int16_t, int32_t, half, bfloat16_t or float");
  npusim::set_atomic(npusim::AtomicOp::MIN, npusim::AtomicTypeOf<T>::value, site);
}
__aicore__ inline void SetAtomicNone(NPUSIM_SITE) { npusim::set_atomic(npusim::AtomicOp::NONE, npusim::AtomicType::NONE, site); }
__aicore__ inline void DisableDmaAtomic(NPUSIM_SITE) { SetAtomicNone(site); }

#if __NPU_ARCH__ == 3510
// Scalar atomics: round the data cache, no order with anything else implied.
template <typename T, bool floats> constexpr bool npusim_atomic_type =
    IsSameType<T, uint32_t>::value || IsSameType<T, uint64_t>::value ||
    (floats && (IsSameType<T, int32_t>::value || IsSameType<T, int64_t>::value || IsSameType<T, float>::value));

template <typename T> __aicore__ inline T npusim_atomic(__gm__ T *address, T value, npusim::AtomicOp op, const char *name, npusim::Site site) {
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  npusim::check_scalar(at, sizeof(T), name, site);
  npusim::check_not_doorbell(at, sizeof(T), name, site);
  npusim::counters().core_atomics++;
  npusim::work(site);
  using W = npusim::Word<T>;
  return npusim::from_word<T>(npusim::rmw<W>(at, [=](W old) {
    return npusim::to_word<T>(op == npusim::AtomicOp::NONE ? value : npusim::combine<T>(npusim::from_word<T>(old), value, op));
  }));
}
template <typename T> __aicore__ inline T AtomicAdd(__gm__ T *address, T value, NPUSIM_SITE) {
  static_assert(npusim_atomic_type<T, true>, "AtomicAdd takes int32_t, uint32_t, float, int64_t or uint64_t");
  return npusim_atomic(address, value, npusim::AtomicOp::ADD, "AtomicAdd", site);
}
template <typename T> __aicore__ inline T AtomicMax(__gm__ T *address, T value, NPUSIM_SITE) {
  static_assert(npusim_atomic_type<T, true>, "AtomicMax takes int32_t, uint32_t, float, int64_t or uint64_t");
  return npusim_atomic(address, value, npusim::AtomicOp::MAX, "AtomicMax", site);
}
template <typename T> __aicore__ inline T AtomicMin(__gm__ T *address, T value, NPUSIM_SITE) {
  static_assert(npusim_atomic_type<T, true>, "AtomicMin takes int32_t, uint32_t, float, int64_t or uint64_t");
  return npusim_atomic(address, value, npusim::AtomicOp::MIN, "AtomicMin", site);
}
template <typename T> __aicore__ inline T AtomicExch(__gm__ T *address, T value, NPUSIM_SITE) {
  static_assert(npusim_atomic_type<T, false>, "AtomicExch takes uint32_t or uint64_t");
  return npusim_atomic(address, value, npusim::AtomicOp::NONE, "AtomicExch", site);
}
template <typename T> __aicore__ inline T AtomicCas(__gm__ T *address, T compare, T value, NPUSIM_SITE) {
  static_assert(npusim_atomic_type<T, false>, "AtomicCas takes uint32_t or uint64_t");
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  npusim::check_scalar(at, sizeof(T), "AtomicCas", site);
  npusim::check_not_doorbell(at, sizeof(T), "AtomicCas", site);
  npusim::counters().core_atomics++;
  npusim::work(site);
  __atomic_compare_exchange_n(reinterpret_cast<T *>(at), &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return compare;
}
#endif

}  // namespace AscendC

#endif
