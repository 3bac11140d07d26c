// The vector unit, repeat form: a mask of one repeat's elements (256 bytes), a number of repeats, and strides in 32-byte blocks.
#ifndef NPUSIM_REPEAT_H
#define NPUSIM_REPEAT_H

#include "vector.h"

namespace AscendC {

struct BinaryRepeatParams {
  uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1; // blocks between the blocks of one repeat
  uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8; // blocks between repeats
  __aicore__ BinaryRepeatParams() {}
  __aicore__ BinaryRepeatParams(uint8_t dstBlk, uint8_t src0Blk, uint8_t src1Blk, uint8_t dstRep, uint8_t src0Rep, uint8_t src1Rep)
      : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep), src0RepStride(src0Rep), src1RepStride(src1Rep) {}
};

}  // namespace AscendC

namespace npusim {

constexpr uint32_t BLOCKS = 8; // blocks of one repeat

// Elements of one repeat that take part: bit i of the pair.
struct Mask {
  uint64_t low, high;
  bool has(uint32_t i) const { return ((i < 64 ? low >> i : high >> (i - 64)) & 1) != 0; }
};

template <typename T> inline Mask first_elements(uint64_t count, const char *operation, Site site) {
  constexpr uint64_t all = AscendC::ONE_REPEAT_BYTE_SIZE / sizeof(T);
  if (count == 0 || count > all)
    broken(site, "%s: a mask of %llu elements; one repeat takes 1 to %llu of this type", operation, (unsigned long long)count, (unsigned long long)all);
  const auto ones = [](uint64_t n) { return n >= 64 ? ~0ull : (1ull << n) - 1; };
  return Mask{ones(count), count > 64 ? ones(count - 64) : 0};
}

template <typename T> inline Mask bits(const uint64_t *mask, const char *operation, Site site) {
  const Mask m{mask[0], sizeof(T) == 2 ? mask[1] : 0};
  if (m.low == 0 && m.high == 0) broken(site, "%s: the mask selects no element", operation);
  if (sizeof(T) == 4 && mask[1] != 0) broken(site, "%s: mask[1] must be 0 for 4-byte types, whose repeat has 64 elements", operation);
  return m;
}

template <typename Op, typename T>
inline void binary_repeat(const AscendC::LocalTensor<T> &target, const AscendC::LocalTensor<T> &first, const AscendC::LocalTensor<T> &second,
                          Mask mask, uint32_t repeats, const AscendC::BinaryRepeatParams &p, const char *operation, Site site) {
  constexpr uint32_t a_block = AscendC::ONE_BLK_SIZE / sizeof(T);
  uint32_t last = 0; // the last block that has a selected element
  for (uint32_t i = 0; i < BLOCKS * a_block; ++i)
    if (mask.has(i)) last = i / a_block;
  const auto reach = [&](uint32_t block_stride, uint32_t repeat_stride) {
    return repeats == 0 ? 0ull : (((repeats - 1ull) * repeat_stride) + static_cast<uint64_t>(last) * block_stride + 1) * AscendC::ONE_BLK_SIZE;
  };
  T *d = reinterpret_cast<T *>(check_ub(target.address_.bufferAddr, reach(p.dstBlkStride, p.dstRepStride), AscendC::ONE_BLK_SIZE, operation, site));
  const T *a = reinterpret_cast<const T *>(
      check_ub(first.address_.bufferAddr, reach(p.src0BlkStride, p.src0RepStride), AscendC::ONE_BLK_SIZE, operation, site));
  const T *b = reinterpret_cast<const T *>(
      check_ub(second.address_.bufferAddr, reach(p.src1BlkStride, p.src1RepStride), AscendC::ONE_BLK_SIZE, operation, site));
  vector_work(site);
  using C = Compute<T>;
  for (uint32_t r = 0; r < repeats; ++r)
    for (uint32_t block = 0; block <= last; ++block) {
      T *dd = d + (r * p.dstRepStride + block * p.dstBlkStride) * a_block;
      const T *aa = a + (r * p.src0RepStride + block * p.src0BlkStride) * a_block;
      const T *bb = b + (r * p.src1RepStride + block * p.src1BlkStride) * a_block;
      for (uint32_t i = 0; i < a_block; ++i)
        if (mask.has(block * a_block + i)) dd[i] = static_cast<T>(Op::template f<C>(static_cast<C>(aa[i]), static_cast<C>(bb[i])));
    }
}

}  // namespace npusim

namespace AscendC {

#define NPUSIM_REPEAT(NAME, OP, TYPES, ...)                                                                                             \
  template <typename T>                                                                                                                 \
  __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask,         \
                              const uint8_t repeatTime, const BinaryRepeatParams &repeatParams, NPUSIM_SITE) {                          \
    static_assert(npusim::one_of<T, __VA_ARGS__>, #NAME " takes " TYPES);                                                               \
    npusim::binary_repeat<npusim::OP>(dst, src0, src1, npusim::first_elements<T>(mask, #NAME, site), repeatTime, repeatParams, #NAME, site); \
  }                                                                                                                                     \
  template <typename T>                                                                                                                 \
  __aicore__ inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1, uint64_t mask[2],      \
                              const uint8_t repeatTime, const BinaryRepeatParams &repeatParams, NPUSIM_SITE) {                          \
    static_assert(npusim::one_of<T, __VA_ARGS__>, #NAME " takes " TYPES);                                                               \
    npusim::binary_repeat<npusim::OP>(dst, src0, src1, npusim::bits<T>(mask, #NAME, site), repeatTime, repeatParams, #NAME, site);      \
  }
NPUSIM_REPEAT(Add, AddOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_REPEAT(Sub, SubOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_REPEAT(Mul, MulOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_REPEAT(Max, MaxOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_REPEAT(Min, MinOp, "half, float, int16_t or int32_t", half, float, int16_t, int32_t)
NPUSIM_REPEAT(Div, DivOp, "half or float", half, float)
NPUSIM_REPEAT(And, AndOp, "int16_t or uint16_t", int16_t, uint16_t)
NPUSIM_REPEAT(Or, OrOp, "int16_t or uint16_t", int16_t, uint16_t)
#undef NPUSIM_REPEAT

}  // namespace AscendC

#endif
