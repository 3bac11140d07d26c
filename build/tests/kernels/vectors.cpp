// The vector unit's operations over arrays from global memory: in and out are copied with a layout that the test knows.
#include "kernel_operator.h"
using namespace AscendC;

#define KERNEL extern "C" __global__ __aicore__ void

template <typename T> __aicore__ inline LocalTensor<T> at(uint32_t offset, uint32_t elements) {
  return LocalTensor<T>(TPosition::VECCALC, offset, elements);
}
template <typename T> __aicore__ inline void load(const LocalTensor<T> &to, GM_ADDR from, uint32_t elements) {
  GlobalTensor<T> g;
  g.SetGlobalBuffer((__gm__ T *)from);
  DataCopyPad(to, g, DataCopyExtParams(1, elements * sizeof(T), 0, 0, 0), DataCopyPadExtParams<T>());
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
}
template <typename T> __aicore__ inline void store(GM_ADDR to, const LocalTensor<T> &from, uint32_t elements) {
  GlobalTensor<T> g;
  g.SetGlobalBuffer((__gm__ T *)to);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopyPad(g, from, DataCopyExtParams(1, elements * sizeof(T), 0, 0, 0));
  SetFlag<HardEvent::MTE3_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
}

// a op b and a op scalar of one type; results one after the other.
template <typename T> __aicore__ inline void arithmetic(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) {
  const uint32_t bytes = (n * sizeof(T) + 31) / 32 * 32;
  LocalTensor<T> x = at<T>(0, n), y = at<T>(bytes, n), z = at<T>(2 * bytes, n);
  load(x, a, n);
  load(y, b, n);
  Add(z, x, y, n);
  store(out, z, n);
  Sub(z, x, y, n);
  store(out + bytes, z, n);
  Mul(z, x, y, n);
  store(out + 2 * bytes, z, n);
  Max(z, x, y, n);
  store(out + 3 * bytes, z, n);
  Min(z, x, y, n);
  store(out + 4 * bytes, z, n);
  const T three = (T)3;
  Adds(z, x, three, n);
  store(out + 5 * bytes, z, n);
  Muls(z, x, three, n);
  store(out + 6 * bytes, z, n);
  Maxs(z, x, three, n);
  Mins(z, z, (T)100, n);
  store(out + 7 * bytes, z, n);
}
KERNEL arithmetic_float(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) { arithmetic<float>(a, b, out, n); }
KERNEL arithmetic_half(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) { arithmetic<half>(a, b, out, n); }
KERNEL arithmetic_int32(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) { arithmetic<int32_t>(a, b, out, n); }
KERNEL arithmetic_int16(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) { arithmetic<int16_t>(a, b, out, n); }

KERNEL functions(GM_ADDR a, GM_ADDR out, uint32_t n) {
  const uint32_t bytes = (n * 4 + 31) / 32 * 32;
  LocalTensor<float> x = at<float>(0, n), z = at<float>(bytes, n);
  load(x, a, n);
  Exp(z, x, n);
  store(out, z, n);
  Ln(z, z, n);
  store(out + bytes, z, n);
  Abs(z, x, n);
  Sqrt(z, z, n);
  store(out + 2 * bytes, z, n);
  Reciprocal(z, z, n);
  store(out + 3 * bytes, z, n);
  Abs(z, x, n);
  Rsqrt(z, z, n);
  store(out + 4 * bytes, z, n);
  Relu(z, x, n);
  store(out + 5 * bytes, z, n);
  Div(z, x, x, n);
  store(out + 6 * bytes, z, n);
}
KERNEL bits(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) {
  const uint32_t bytes = (n * 2 + 31) / 32 * 32;
  LocalTensor<uint16_t> x = at<uint16_t>(0, n), y = at<uint16_t>(bytes, n), z = at<uint16_t>(2 * bytes, n);
  load(x, a, n);
  load(y, b, n);
  And(z, x, y, n);
  store(out, z, n);
  Or(z, x, y, n);
  store(out + bytes, z, n);
  Not(z, x, n);
  store(out + 2 * bytes, z, n);
}

// Casts from float in every round mode; results in blocks of n elements of the target type.
template <typename T> __aicore__ inline void casts(GM_ADDR a, GM_ADDR out, uint32_t n) {
  const uint32_t bytes = (n * sizeof(T) + 31) / 32 * 32;
  LocalTensor<float> x = at<float>(0, n);
  LocalTensor<T> z = at<T>(65536, n);
  load(x, a, n);
  const RoundMode modes[] = {RoundMode::CAST_RINT, RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL, RoundMode::CAST_ROUND, RoundMode::CAST_TRUNC};
  for (uint32_t i = 0; i < 5; ++i) {
    Cast(z, x, modes[i], n);
    store(out + i * bytes, z, n);
  }
}
KERNEL cast_int32(GM_ADDR a, GM_ADDR out, uint32_t n) { casts<int32_t>(a, out, n); }
KERNEL cast_int16(GM_ADDR a, GM_ADDR out, uint32_t n) { casts<int16_t>(a, out, n); }
KERNEL cast_int64(GM_ADDR a, GM_ADDR out, uint32_t n) { casts<int64_t>(a, out, n); }
KERNEL cast_half(GM_ADDR a, GM_ADDR out, uint32_t n) { casts<half>(a, out, n); }
KERNEL cast_bfloat16(GM_ADDR a, GM_ADDR out, uint32_t n) { casts<bfloat16_t>(a, out, n); }
KERNEL cast_float(GM_ADDR a, GM_ADDR out, uint32_t n) { casts<float>(a, out, n); }
KERNEL cast_odd(GM_ADDR a, GM_ADDR out, uint32_t n) {
  LocalTensor<float> x = at<float>(0, n);
  LocalTensor<half> z = at<half>(65536, n);
  load(x, a, n);
  Cast(z, x, RoundMode::CAST_ODD, n);
  store(out, z, n);
}
KERNEL half_to_float(GM_ADDR a, GM_ADDR out, uint32_t n) {
  LocalTensor<half> x = at<half>(0, n);
  LocalTensor<float> z = at<float>(65536, n);
  load(x, a, n);
  Cast(z, x, RoundMode::CAST_NONE, n);
  store(out, z, n);
}

KERNEL reduce(GM_ADDR a, GM_ADDR out, uint32_t n) {
  LocalTensor<float> x = at<float>(0, n), space = at<float>(131072, 2048), z = at<float>(160000, 8);
  load(x, a, n);
  ReduceSum(z, x, space, n);
  store(out, z, 1);
  ReduceMax(z, x, space, n, true);
  store(out + 4, z, 2);
  ReduceMin(z, x, space, n, true);
  store(out + 12, z, 2);
}

KERNEL repeats(GM_ADDR a, GM_ADDR b, GM_ADDR out) {
  // 3 repeats of 64 floats: the first 20 elements of each; then every other element by a bit mask.
  LocalTensor<float> x = at<float>(0, 192), y = at<float>(1024, 192), z = at<float>(2048, 192);
  load(x, a, 192);
  load(y, b, 192);
  Duplicate(z, -1.0f, 192);
  Add(z, x, y, (uint64_t)20, 3, BinaryRepeatParams(1, 1, 1, 8, 8, 8));
  store(out, z, 192);
  Duplicate(z, -1.0f, 192);
  uint64_t mask[2] = {0x5555555555555555ull, 0};
  Mul(z, x, y, mask, 3, BinaryRepeatParams(1, 1, 1, 8, 8, 0));
  store(out + 768, z, 192);
}

// Speed: many passes over one tile.
KERNEL spin_add(uint32_t n, uint32_t rounds) {
  LocalTensor<float> x = at<float>(0, n), y = at<float>(65536, n);
  for (uint32_t i = 0; i < rounds; ++i) Add(x, x, y, n);
}
KERNEL spin_cast(uint32_t n, uint32_t rounds) {
  LocalTensor<float> x = at<float>(0, n);
  LocalTensor<half> y = at<half>(131072, n);
  for (uint32_t i = 0; i < rounds; ++i) {
    Cast(y, x, RoundMode::CAST_RINT, n);
    Cast(x, y, RoundMode::CAST_NONE, n);
  }
}
KERNEL spin_half(uint32_t n, uint32_t rounds) {
  LocalTensor<half> x = at<half>(0, n), y = at<half>(65536, n);
  for (uint32_t i = 0; i < rounds; ++i) Add(x, x, y, n);
}
KERNEL spin_sum(uint32_t n, uint32_t rounds) {
  LocalTensor<float> x = at<float>(0, n), y = at<float>(65536, 8), space = at<float>(66048, 2048);
  for (uint32_t i = 0; i < rounds; ++i) ReduceSum(y, x, space, n);
}
KERNEL spin_max(uint32_t n, uint32_t rounds) {
  LocalTensor<float> x = at<float>(0, n), y = at<float>(65536, n);
  for (uint32_t i = 0; i < rounds; ++i) Max(x, x, y, n);
}
