// The vector unit, count form: element-wise operations over contiguous elements of the unified buffer.
//
// A call checks its operands once and then runs one loop over plain arrays, which the compiler turns into the widest vectors of the machine.
// half is computed in float and rounded once, as the unit does. Operands may be the same tensor or disjoint, never partly overlapping; that
// is the device's rule, and it is what lets the loops be vectorised without looking.
#ifndef NPUSIM_VECTOR_H
#define NPUSIM_VECTOR_H

#include "tensor.h"
#include "number.h"

// The loop that follows has no dependence between iterations (checked by vector_operand).
#define NPUSIM_LOOP _Pragma("clang loop vectorize(assume_safety)")
// The same for half: 16 elements at a time, as many as one conversion instruction takes.
#define NPUSIM_LOOP_HALF _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")

namespace npusim {

// --- Types -----------------------------------------------------------------------------------------------------------------------------

template <typename T, typename... A> constexpr bool one_of = (AscendC::IsSameType<T, A>::value || ...);

// What an operation on T is computed in: float for half; unsigned for integers, so that overflow wraps.
template <typename T> struct ComputeOf { using type = T; };
template <> struct ComputeOf<half> { using type = float; };
template <typename T> using Compute = typename ComputeOf<T>::type;
template <typename T> struct WrapOf { using type = T; };
template <> struct WrapOf<int16_t> { using type = uint32_t; };
template <> struct WrapOf<int32_t> { using type = uint32_t; };
template <> struct WrapOf<half> { using type = float; };
template <typename T> using Wrap = typename WrapOf<T>::type;

// --- Operations ------------------------------------------------------------------------------------------------------------------------

struct AddOp { template <typename T> static T f(T a, T b) { return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b)); } };
struct SubOp { template <typename T> static T f(T a, T b) { return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b)); } };
struct MulOp { template <typename T> static T f(T a, T b) { return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b)); } };
struct DivOp { template <typename T> static T f(T a, T b) { return a / b; } };
struct MaxOp { template <typename T> static T f(T a, T b) { return a < b ? b : a; } };
struct MinOp { template <typename T> static T f(T a, T b) { return b < a ? b : a; } };
struct AndOp { template <typename T> static T f(T a, T b) { return static_cast<T>(a & b); } };
struct OrOp { template <typename T> static T f(T a, T b) { return static_cast<T>(a | b); } };
struct AbsOp { template <typename T> static T f(T a) { return __builtin_fabsf(a); } };
struct ReluOp { template <typename T> static T f(T a) { return a < T(0) ? T(0) : a; } };
struct SqrtOp { template <typename T> static T f(T a) { return __builtin_sqrtf(a); } };
struct RsqrtOp { template <typename T> static T f(T a) { return 1.0f / __builtin_sqrtf(a); } };
struct ReciprocalOp { template <typename T> static T f(T a) { return 1.0f / a; } };
struct ExpOp { template <typename T> static T f(T a) { return __builtin_expf(a); } };
struct LnOp { template <typename T> static T f(T a) { return __builtin_logf(a); } };
struct NotOp { template <typename T> static T f(T a) { return static_cast<T>(~a); } };

// --- Operands --------------------------------------------------------------------------------------------------------------------------

inline uint64_t element_count(int64_t count, const char *operation, Site site) {
  if (__builtin_expect(count < 0, 0)) broken(site, "%s: count %lld is negative", operation, (long long)count);
  return static_cast<uint64_t>(count);
}

// Same start, or nothing in common.
inline void check_overlap(const void *target, uint64_t target_bytes, const void *source, uint64_t source_bytes, const char *operation, Site site) {
  const uint64_t d = reinterpret_cast<uint64_t>(target), s = reinterpret_cast<uint64_t>(source);
  const bool apart = d + target_bytes <= s || s + source_bytes <= d;
  if (__builtin_expect(!apart && (d != s || target_bytes != source_bytes), 0))
    broken(site, "%s: destination and source overlap in part; use the same tensor (with elements of one size) or disjoint ones", operation);
}

inline void vector_work(Site site) {
  counters().vector_ops++;
  work(site);
}

// --- Loops -----------------------------------------------------------------------------------------------------------------------------

// d[i] = f(i) for half results that f gives as floats.
template <typename F> inline void half_loop(half *d, uint64_t n, F f) {
  uint64_t i = 0;
#if defined(NPUSIM_HALF_EIGHTS)
  // clang 14 would shorten "to float, operate, to half" to an operation on half, and then do that one element at a time.
  for (; i + 8 <= n; i += 8) {
    alignas(32) float r[8];
    for (uint64_t j = 0; j < 8; ++j) r[j] = f(i + j);
    float8_to_half(r, d + i);
  }
#else
  NPUSIM_LOOP_HALF for (i = 0; i < n; ++i) d[i] = static_cast<half>(f(i));
#endif
  for (; i < n; ++i) d[i] = static_cast<half>(f(i));
}

template <typename Op, typename T> inline void loop2(T *d, const T *a, const T *b, uint64_t n) {
  if constexpr (AscendC::IsSameType<T, half>::value) {
    half_loop(d, n, [=](uint64_t i) { return Op::template f<float>(static_cast<float>(a[i]), static_cast<float>(b[i])); });
  } else {
    NPUSIM_LOOP for (uint64_t i = 0; i < n; ++i) d[i] = Op::template f<T>(a[i], b[i]);
  }
}
template <typename Op, typename T> inline void loop_scalar(T *d, const T *a, Compute<T> b, uint64_t n) {
  if constexpr (AscendC::IsSameType<T, half>::value) {
    half_loop(d, n, [=](uint64_t i) { return Op::template f<float>(static_cast<float>(a[i]), b); });
  } else {
    NPUSIM_LOOP for (uint64_t i = 0; i < n; ++i) d[i] = Op::template f<T>(a[i], b);
  }
}
template <typename Op, typename T> inline void loop1(T *d, const T *a, uint64_t n) {
  if constexpr (AscendC::IsSameType<T, half>::value) {
    half_loop(d, n, [=](uint64_t i) { return Op::template f<float>(static_cast<float>(a[i])); });
  } else {
    NPUSIM_LOOP for (uint64_t i = 0; i < n; ++i) d[i] = Op::template f<T>(a[i]);
  }
}

template <typename Op, typename T>
inline void binary(const AscendC::LocalTensor<T> &target, const AscendC::LocalTensor<T> &first, const AscendC::LocalTensor<T> &second,
                   int64_t count, const char *operation, Site site) {
  const uint64_t n = element_count(count, operation, site), bytes = n * sizeof(T);
  T *d = operand(target, bytes, operation, site);
  const T *a = operand(first, bytes, operation, site), *b = operand(second, bytes, operation, site);
  check_overlap(d, bytes, a, bytes, operation, site);
  check_overlap(d, bytes, b, bytes, operation, site);
  vector_work(site);
  loop2<Op>(d, a, b, n);
}

template <typename Op, typename T>
inline void with_scalar(const AscendC::LocalTensor<T> &target, const AscendC::LocalTensor<T> &source, const T &scalar, int64_t count,
                        const char *operation, Site site) {
  const uint64_t n = element_count(count, operation, site), bytes = n * sizeof(T);
  T *d = operand(target, bytes, operation, site);
  const T *a = operand(source, bytes, operation, site);
  check_overlap(d, bytes, a, bytes, operation, site);
  vector_work(site);
  loop_scalar<Op, T>(d, a, static_cast<Compute<T>>(scalar), n);
}

template <typename Op, typename T>
inline void unary(const AscendC::LocalTensor<T> &target, const AscendC::LocalTensor<T> &source, int64_t count, const char *operation, Site site) {
  const uint64_t n = element_count(count, operation, site), bytes = n * sizeof(T);
  T *d = operand(target, bytes, operation, site);
  const T *a = operand(source, bytes, operation, site);
  check_overlap(d, bytes, a, bytes, operation, site);
  vector_work(site);
  loop1<Op>(d, a, n);
}

}  // namespace npusim

namespace AscendC {

#define NPUSIM_BINARY(NAME, OP, TYPES, ...)                                                                                            \
  template <typename T>                                                                                                                \
  __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, const int32_t &count, \
                              NPUSIM_SITE) {                                                                                           \
    static_assert(npusim::one_of<T, __VA_ARGS__>, #NAME " takes " TYPES);                                                              \
    npusim::binary<npusim::OP>(dst, src0, src1, count, #NAME, site);                                                                   \
  }
NPUSIM_BINARY(Add, AddOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_BINARY(Sub, SubOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_BINARY(Mul, MulOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_BINARY(Max, MaxOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_BINARY(Min, MinOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_BINARY(Div, DivOp, "half or float", half, float)
NPUSIM_BINARY(And, AndOp, "int16_t or uint16_t", int16_t, uint16_t)
NPUSIM_BINARY(Or, OrOp, "int16_t or uint16_t", int16_t, uint16_t)
#undef NPUSIM_BINARY

#define NPUSIM_SCALAR(NAME, OP)                                                                                                    \
  template <typename T>                                                                                                            \
  __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const T &scalar, const int32_t &count, NPUSIM_SITE) { \
    static_assert(npusim::one_of<T, half, float, int16_t, int32_t>, #NAME " takes half, float, int16_t or int32_t");               \
    npusim::with_scalar<npusim::OP>(dst, src, scalar, count, #NAME, site);                                                         \
  }
NPUSIM_SCALAR(Adds, AddOp)
NPUSIM_SCALAR(Muls, MulOp)
NPUSIM_SCALAR(Maxs, MaxOp)
NPUSIM_SCALAR(Mins, MinOp)
#undef NPUSIM_SCALAR

#define NPUSIM_UNARY(NAME, OP, TYPES, ...)                                                                                 \
  template <typename T>                                                                                                    \
  __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count, NPUSIM_SITE) {   \
    static_assert(npusim::one_of<T, __VA_ARGS__>, #NAME " takes " TYPES);                                                  \
    npusim::unary<npusim::OP>(dst, src, count, #NAME, site);                                                               \
  }
NPUSIM_UNARY(Abs, AbsOp, "half or float", half, float)
NPUSIM_UNARY(Relu, ReluOp, "half, float or int32_t", half, float, int32_t)
NPUSIM_UNARY(Sqrt, SqrtOp, "half or float", half, float)
NPUSIM_UNARY(Rsqrt, RsqrtOp, "half or float", half, float)
NPUSIM_UNARY(Reciprocal, ReciprocalOp, "half or float", half, float)
NPUSIM_UNARY(Exp, ExpOp, "half or float", half, float)
NPUSIM_UNARY(Ln, LnOp, "half or float", half, float)
NPUSIM_UNARY(Not, NotOp, "int16_t or uint16_t", int16_t, uint16_t)
#undef NPUSIM_UNARY

template <typename T> __aicore__ inline void Duplicate(const LocalTensor<T> &dst, const T &scalar, const int32_t &count, NPUSIM_SITE) {
  static_assert(npusim::one_of<T, half, bfloat16_t, float, int16_t, uint16_t, int32_t, uint32_t>, "Duplicate takes 2- and 4-byte types");
  const uint64_t n = npusim::element_count(count, "Duplicate", site);
  npusim::Word<T> *d = reinterpret_cast<npusim::Word<T> *>(npusim::operand(dst, n * sizeof(T), "Duplicate", site));
  const npusim::Word<T> value = npusim::to_word<T>(scalar);
  npusim::vector_work(site);
  NPUSIM_LOOP for (uint64_t i = 0; i < n; ++i) d[i] = value;
}

}  // namespace AscendC

#endif
