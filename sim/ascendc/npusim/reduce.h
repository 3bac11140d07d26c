// ReduceSum, ReduceMax, ReduceMin over contiguous elements: one value (and an index) out of many.
#ifndef NPUSIM_REDUCE_H
#define NPUSIM_REDUCE_H

#include "mte.h"
#include "vector.h"

namespace npusim {

constexpr uint32_t LANES = 64; // partial results, as many as floats in one repeat of the unit

// Partial results in lanes, then pairwise: about the order in which the unit adds.
template <typename Op, typename T> inline float reduce_lanes(const T *a, uint64_t n) {
  float lanes[LANES];
  const uint64_t lanes_used = n < LANES ? n : LANES;
  for (uint64_t j = 0; j < lanes_used; ++j) lanes[j] = static_cast<float>(a[j]);
  uint64_t i = LANES;
  for (; i + LANES <= n; i += LANES) {
    NPUSIM_LOOP for (uint64_t j = 0; j < LANES; ++j) lanes[j] = Op::template f<float>(lanes[j], static_cast<float>(a[i + j]));
  }
  for (uint64_t j = 0; i + j < n; ++j) lanes[j] = Op::template f<float>(lanes[j], static_cast<float>(a[i + j]));
  for (uint64_t left = lanes_used; left > 1; left = (left + 1) / 2)
    for (uint64_t j = 0; j < left / 2; ++j) lanes[j] = Op::template f<float>(lanes[j], lanes[left - 1 - j]);
  return lanes[0];
}

// Work space that the device needs: a value (or a value and an index) a repeat, in whole blocks.
template <typename T> inline uint64_t reduce_work(uint64_t n, uint64_t values) {
  const uint64_t a_repeat = AscendC::ONE_REPEAT_BYTE_SIZE / sizeof(T);
  return round_up_32((n + a_repeat - 1) / a_repeat * values * sizeof(T));
}

template <typename T>
inline const T *reduce_operands(const AscendC::LocalTensor<T> &source, const AscendC::LocalTensor<T> &space, int64_t count, uint64_t values,
                                const char *operation, Site site) {
  if (count <= 0) broken(site, "%s: count %lld must be positive", operation, (long long)count);
  const uint64_t n = static_cast<uint64_t>(count);
  operand(space, reduce_work<T>(n, values), operation, site);
  vector_work(site);
  return operand(source, n * sizeof(T), operation, site);
}

template <typename Op, typename T>
inline void reduce_extreme(const AscendC::LocalTensor<T> &target, const AscendC::LocalTensor<T> &source, const AscendC::LocalTensor<T> &space,
                           int64_t count, bool index, const char *operation, Site site) {
  const T *a = reduce_operands(source, space, count, index ? 2 : 1, operation, site);
  T *d = operand(target, (index ? 2 : 1) * sizeof(T), operation, site);
  const uint64_t n = static_cast<uint64_t>(count);
  const float best = reduce_lanes<Op>(a, n);
  d[0] = static_cast<T>(best);
  if (!index) return;
  uint64_t at = 0;
  while (at + 1 < n && static_cast<float>(a[at]) != best) ++at;
  d[1] = from_word<T>(static_cast<Word<T>>(at));  // the index's bits, in an element of type T
}

}  // namespace npusim

namespace AscendC {

template <typename T>
__aicore__ inline void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer, const int32_t count,
                                 NPUSIM_SITE) {
  static_assert(npusim::one_of<T, half, float>, "ReduceSum takes half or float");
  const T *a = npusim::reduce_operands(src, sharedTmpBuffer, count, 1, "ReduceSum", site);
  *npusim::operand(dst, sizeof(T), "ReduceSum", site) = static_cast<T>(npusim::reduce_lanes<npusim::AddOp>(a, static_cast<uint64_t>(count)));
}
template <typename T>
__aicore__ inline void ReduceMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer, const int32_t count,
                                 bool calIndex = false, NPUSIM_SITE) {
  static_assert(npusim::one_of<T, half, float>, "ReduceMax takes half or float");
  npusim::reduce_extreme<npusim::MaxOp>(dst, src, sharedTmpBuffer, count, calIndex, "ReduceMax", site);
}
template <typename T>
__aicore__ inline void ReduceMin(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<T> &sharedTmpBuffer, const int32_t count,
                                 bool calIndex = false, NPUSIM_SITE) {
  static_assert(npusim::one_of<T, half, float>, "ReduceMin takes half or float");
  npusim::reduce_extreme<npusim::MinOp>(dst, src, sharedTmpBuffer, count, calIndex, "ReduceMin", site);
}

}  // namespace AscendC

#endif
