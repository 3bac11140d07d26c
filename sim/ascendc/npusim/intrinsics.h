// Raw intrinsics: the compiler's own names for what AscendC wraps, as some kernels call them directly.
//
// They take pointers; a __ubuf__ pointer may be a plain UB offset (as on the device) or come from LocalTensor::GetPhyAddr. ld_dev, st_dev
// and dcci are in cache.h, block indices and trap in system.h.
#ifndef NPUSIM_INTRINSICS_H
#define NPUSIM_INTRINSICS_H

#include "sync.h"

namespace npusim {

// Views of raw pointers, so that one place checks and moves.
inline AscendC::LocalTensor<uint8_t> raw_ub(const __ubuf__ void *pointer) {
  AscendC::LocalTensor<uint8_t> tensor;
  const uint64_t offset = ub_offset(reinterpret_cast<uint64_t>(pointer));
  // An address outside the buffer must not come back in when it is cut to 32 bits.
  tensor.address_.bufferAddr = offset < state().ub_size ? static_cast<uint32_t>(offset) : 0xFFFFFFE0u;
  return tensor;
}
inline AscendC::GlobalTensor<uint8_t> raw_gm(const __gm__ void *pointer) {
  AscendC::GlobalTensor<uint8_t> tensor;
  tensor.SetGlobalBuffer((__gm__ uint8_t *)pointer);
  return tensor;
}

template <typename T>
inline void raw_in(__ubuf__ void *target, __gm__ void *source, uint64_t count, uint64_t bytes, uint64_t left, uint64_t right, uint64_t source_gap,
                   uint64_t target_gap, const char *operation, Site site) {
  if (count == 0 || bytes == 0) return;
  check_blocks(count, bytes, 0, 0, sizeof(T), operation, site);
  if (left == 0 && right == 0) return copy_in<uint8_t>(raw_ub(target), raw_gm(source), count, bytes, source_gap, target_gap * 32, nullptr, operation, site);
  AscendC::LocalTensor<T> to = raw_ub(target).ReinterpretCast<T>();
  AscendC::GlobalTensor<T> from;
  from.SetGlobalBuffer((__gm__ T *)source);
  const AscendC::DataCopyPadExtParams<T> padding(true, static_cast<uint8_t>(left), static_cast<uint8_t>(right),
                                                 from_word<T>(static_cast<Word<T>>(state().mov_pad)));
  copy_in<T>(to, from, count, bytes, source_gap, target_gap * 32, &padding, operation, site);
}
template <typename T>
inline void raw_out(__gm__ void *target, __ubuf__ void *source, uint64_t count, uint64_t bytes, uint64_t source_gap, uint64_t target_gap,
                    const char *operation, Site site) {
  if (count == 0 || bytes == 0) return;
  check_blocks(count, bytes, 0, 0, sizeof(T), operation, site);
  copy_out<uint8_t>(raw_gm(target), raw_ub(source), count, bytes, source_gap * 32, target_gap, operation, site);
}

}  // namespace npusim

// --- Copies ----------------------------------------------------------------------------------------------------------------------------

// Lengths and strides in 32-byte units; a stride is the gap from tail to head.
__aicore__ inline void copy_gm_to_ubuf(__ubuf__ void *dst, __gm__ void *src, uint8_t, uint16_t nBurst, uint16_t lenBurst, uint16_t srcStride,
                                       uint16_t dstStride, NPUSIM_SITE) {
  npusim::raw_in<uint8_t>(dst, src, nBurst, lenBurst * 32ull, 0, 0, srcStride * 32ull, dstStride, "copy_gm_to_ubuf", site);
}
__aicore__ inline void copy_ubuf_to_gm(__gm__ void *dst, __ubuf__ void *src, uint8_t, uint16_t nBurst, uint16_t lenBurst, uint16_t srcStride,
                                       uint16_t dstStride, NPUSIM_SITE) {
  npusim::raw_out<uint8_t>(dst, src, nBurst, lenBurst * 32ull, srcStride, dstStride * 32ull, "copy_ubuf_to_gm", site);
}

// Lengths in bytes, padding in elements of the name's width, gaps in bytes (global memory) and 32-byte units (UB).
#define NPUSIM_ALIGN(WIDTH, TYPE)                                                                                                                 \
  __aicore__ inline void copy_gm_to_ubuf_align_b##WIDTH(__ubuf__ void *dst, __gm__ void *src, uint8_t, uint16_t nBurst, uint32_t lenBurst,        \
                                                        uint8_t leftPad, uint8_t rightPad, uint32_t srcGap, uint32_t dstGap, NPUSIM_SITE) {       \
    npusim::raw_in<TYPE>(dst, src, nBurst, lenBurst, leftPad, rightPad, srcGap, dstGap, "copy_gm_to_ubuf_align_b" #WIDTH, site);                  \
  }                                                                                                                                               \
  __aicore__ inline void copy_ubuf_to_gm_align_b##WIDTH(__gm__ void *dst, __ubuf__ void *src, uint8_t, uint16_t nBurst, uint32_t lenBurst, uint8_t, \
                                                        uint8_t, uint32_t srcGap, uint32_t dstGap, NPUSIM_SITE) {                                 \
    npusim::raw_out<TYPE>(dst, src, nBurst, lenBurst, srcGap, dstGap, "copy_ubuf_to_gm_align_b" #WIDTH, site);                                    \
  }
NPUSIM_ALIGN(8, uint8_t)
NPUSIM_ALIGN(16, uint16_t)
NPUSIM_ALIGN(32, uint32_t)
#undef NPUSIM_ALIGN

__aicore__ inline void set_mov_pad_val(uint64_t value) { npusim::state().mov_pad = value; }

// --- Order -----------------------------------------------------------------------------------------------------------------------------

__aicore__ inline void set_flag(pipe_t from, pipe_t to, uint64_t id, NPUSIM_SITE) {
  npusim::set_flag({static_cast<uint8_t>(from), static_cast<uint8_t>(to)}, static_cast<int64_t>(id), site);
}
__aicore__ inline void wait_flag(pipe_t from, pipe_t to, uint64_t id, NPUSIM_SITE) {
  npusim::wait_flag({static_cast<uint8_t>(from), static_cast<uint8_t>(to)}, static_cast<int64_t>(id), site);
}
__aicore__ inline void pipe_barrier(pipe_t pipe, NPUSIM_SITE) { npusim::pipe_barrier(pipe, site); }
__aicore__ inline void dsb(mem_dsb_t, NPUSIM_SITE) { npusim::data_barrier(site); }

// The barrier over all cores in its two halves: the set is a message on flag ids 11 to 14, the wait is where the cores meet.
__aicore__ inline void set_ffts_base_addr(uint64_t) {}
__aicore__ inline void ffts_cross_core_sync(pipe_t, uint64_t config, NPUSIM_SITE) {
  const uint32_t mode = config >> 4 & 3u;
  if ((config & 1) == 0 || mode != 0)
    npusim::broken(site, "ffts_cross_core_sync: configuration 0x%llx; only mode 0 (all vector cores), 1 + (mode << 4) + (flag << 8), is emulated",
                   (unsigned long long)config);
  npusim::step(site);
}
__aicore__ inline void wait_flag_dev(int64_t, NPUSIM_SITE) { npusim::sync_all(site); }

// --- Atomic mode of MTE3 ---------------------------------------------------------------------------------------------------------------

// The operation and the element type are set apart; both are needed.
__aicore__ inline void set_atomic_add(NPUSIM_SITE) { npusim::set_atomic(npusim::AtomicOp::ADD, npusim::state().atomic_type, site); }
__aicore__ inline void set_atomic_none(NPUSIM_SITE) { npusim::set_atomic(npusim::AtomicOp::NONE, npusim::AtomicType::NONE, site); }
#define NPUSIM_ATOMIC(NAME, TYPE) \
  __aicore__ inline void set_atomic_##NAME(NPUSIM_SITE) { npusim::set_atomic(npusim::state().atomic_op, npusim::AtomicType::TYPE, site); }
NPUSIM_ATOMIC(s8, I8)
NPUSIM_ATOMIC(s16, I16)
NPUSIM_ATOMIC(s32, I32)
NPUSIM_ATOMIC(f16, F16)
NPUSIM_ATOMIC(bf16, BF16)
NPUSIM_ATOMIC(f32, F32)
#undef NPUSIM_ATOMIC

#endif
