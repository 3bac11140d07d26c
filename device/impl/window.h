/* Windows: memory outside the heap that every PE registered. A place in a window is a symmetric address, that of the same offset in the caller's own
 * part, and all calls take it (state.h, check_range). The names here make that address from (window, offset).
 */
#ifndef SHMEM_IMPL_WINDOW_H
#define SHMEM_IMPL_WINDOW_H

#include "typed.h"

namespace shmem_impl {

/* Address of byte `offset` of this PE's part; 0, and an error, when there is no such window, or the offset is behind its end. */
__aicore__ inline uint64_t window_address(state& s, int32_t window, uint64_t offset) {
  uint64_t line = s.regions_table + uint64_t(window) * sizeof(struct shmem_region);
  bool there = window >= 0 && uint32_t(window) < s.n_regions && load<uint32_t>(line + SHMEM_OFFSET(shmem_region, magic)) == SHMEM_ABI_MAGIC &&
               load<uint64_t>(line + SHMEM_OFFSET(shmem_region, peers)) != 0;
  if (!there) {
    fail(s, SHMEM_E_WINDOW, s.my_pe, uint64_t(int64_t(window)));
    return 0;
  }
  if (offset > load<uint64_t>(line + SHMEM_OFFSET(shmem_region, bytes))) {
    fail(s, SHMEM_E_BOUNDS, s.my_pe, (uint64_t(window + 1) << SPACE_SHIFT) | (offset & OFFSET_MASK), 0);
    return 0;
  }
  return load<uint64_t>(line + SHMEM_OFFSET(shmem_region, base)) + offset;
}

template <typename T>
__aicore__ inline __gm__ T* in_window(uint32_t op, int32_t window, uint64_t offset) {
  state& s = block_state;
  uint64_t address = 0;
  if (enter(s, op)) address = window_address(s, window, offset);
  return reinterpret_cast<__gm__ T*>(address);
}

}  // namespace shmem_impl

__aicore__ inline __gm__ void* shmem_window(shmem_window_t window, uint64_t offset) {
  return shmem_impl::in_window<void>(SHMEM_OP_NONE, window, offset);
}

/* After an error of in_window the call that follows does nothing. */
#define SHMEM_DEFINE_WINDOW(NAME, LOCAL)                                                                                              \
  template <typename T>                                                                                                               \
  __aicore__ inline void shmem_window_put##NAME(shmem_window_t window, uint64_t offset, LOCAL src, uint64_t n, int pe) {               \
    shmem_put##NAME(shmem_impl::in_window<T>(SHMEM_OP_PUT, window, offset), src, n, pe);                                              \
  }                                                                                                                                   \
  template <typename T>                                                                                                               \
  __aicore__ inline void shmem_window_get##NAME(LOCAL dst, shmem_window_t window, uint64_t offset, uint64_t n, int pe) {               \
    shmem_get##NAME(dst, shmem_impl::in_window<T>(SHMEM_OP_GET, window, offset), n, pe);                                              \
  }
SHMEM_DEFINE_WINDOW(, __gm__ T*)
SHMEM_DEFINE_WINDOW(_nbi, __gm__ T*)
SHMEM_DEFINE_WINDOW(, const AscendC::LocalTensor<T>&)
SHMEM_DEFINE_WINDOW(_nbi, const AscendC::LocalTensor<T>&)
#undef SHMEM_DEFINE_WINDOW

#define SHMEM_DEFINE_WINDOW_SIGNAL(NAME, LOCAL)                                                                                        \
  template <typename T>                                                                                                               \
  __aicore__ inline void shmem_window_put_signal##NAME(shmem_window_t window, uint64_t offset, LOCAL src, uint64_t n,                 \
                                                       __gm__ uint64_t* sig, uint64_t value, int op, int pe) {                        \
    shmem_put_signal##NAME(shmem_impl::in_window<T>(SHMEM_OP_PUT_SIGNAL, window, offset), src, n, sig, value, op, pe);                \
  }
SHMEM_DEFINE_WINDOW_SIGNAL(, __gm__ T*)
SHMEM_DEFINE_WINDOW_SIGNAL(_nbi, __gm__ T*)
SHMEM_DEFINE_WINDOW_SIGNAL(, const AscendC::LocalTensor<T>&)
SHMEM_DEFINE_WINDOW_SIGNAL(_nbi, const AscendC::LocalTensor<T>&)
#undef SHMEM_DEFINE_WINDOW_SIGNAL

#endif
