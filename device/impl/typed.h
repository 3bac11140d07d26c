/* The typed names of shmem.h, generated from the tables of types.h; each forwards to what its template forwards to. */
#ifndef SHMEM_IMPL_TYPED_H
#define SHMEM_IMPL_TYPED_H

#include "attach.h"

#define SHMEM_DEFINE_RMA(NAME, TYPE)                                                                                                  \
  __aicore__ inline void shmem_##NAME##_put(__gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, int pe) {                           \
    shmem_impl::put_elements(dst, src, n, sizeof(TYPE), pe, true);                                                                    \
  }                                                                                                                                   \
  __aicore__ inline void shmem_##NAME##_put_nbi(__gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, int pe) {                       \
    shmem_impl::put_elements(dst, src, n, sizeof(TYPE), pe, false);                                                                   \
  }                                                                                                                                   \
  __aicore__ inline void shmem_##NAME##_get(__gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, int pe) {                           \
    shmem_impl::get_elements(dst, src, n, sizeof(TYPE), pe, true);                                                                    \
  }                                                                                                                                   \
  __aicore__ inline void shmem_##NAME##_get_nbi(__gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, int pe) {                       \
    shmem_impl::get_elements(dst, src, n, sizeof(TYPE), pe, false);                                                                   \
  }                                                                                                                                   \
  __aicore__ inline void shmem_##NAME##_put_signal(__gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, __gm__ uint64_t* sig,        \
                                                  uint64_t value, int op, int pe) {                                                   \
    shmem_impl::put_signal_elements(dst, src, n, sizeof(TYPE), sig, value, op, pe, true);                                             \
  }                                                                                                                                   \
  __aicore__ inline void shmem_##NAME##_put_signal_nbi(__gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, __gm__ uint64_t* sig,    \
                                                  uint64_t value, int op, int pe) {                                                   \
    shmem_impl::put_signal_elements(dst, src, n, sizeof(TYPE), sig, value, op, pe, false);                                            \
  }
SHMEM_RMA_TYPES(SHMEM_DEFINE_RMA)
#undef SHMEM_DEFINE_RMA

#define SHMEM_DEFINE_VALUE(NAME, TYPE)                                                                            \
  __aicore__ inline void shmem_##NAME##_p(__gm__ TYPE* dst, TYPE value, int pe) { shmem_p<TYPE>(dst, value, pe); } \
  __aicore__ inline TYPE shmem_##NAME##_g(const __gm__ TYPE* src, int pe) { return shmem_g<TYPE>(src, pe); }
SHMEM_VALUE_TYPES(SHMEM_DEFINE_VALUE)
#undef SHMEM_DEFINE_VALUE

#define SHMEM_DEFINE_AMO(NAME, TYPE)                                                                                                   \
  __aicore__ inline void shmem_##NAME##_wait_until(const __gm__ TYPE* ivar, int cmp, TYPE value) {                                     \
    shmem_wait_until<TYPE>(ivar, cmp, value);                                                                                          \
  }                                                                                                                                    \
  __aicore__ inline int shmem_##NAME##_test(const __gm__ TYPE* ivar, int cmp, TYPE value) { return shmem_test<TYPE>(ivar, cmp, value); } \
  __aicore__ inline TYPE shmem_##NAME##_atomic_fetch(const __gm__ TYPE* src, int pe) { return shmem_atomic_fetch<TYPE>(src, pe); }     \
  __aicore__ inline void shmem_##NAME##_atomic_set(__gm__ TYPE* dst, TYPE value, int pe) { shmem_atomic_set<TYPE>(dst, value, pe); }   \
  __aicore__ inline void shmem_##NAME##_atomic_add(__gm__ TYPE* dst, TYPE value, int pe) { shmem_atomic_add<TYPE>(dst, value, pe); }   \
  __aicore__ inline void shmem_##NAME##_atomic_inc(__gm__ TYPE* dst, int pe) { shmem_atomic_inc<TYPE>(dst, pe); }                      \
  __aicore__ inline TYPE shmem_##NAME##_atomic_fetch_add(__gm__ TYPE* dst, TYPE value, int pe) {                                       \
    return shmem_atomic_fetch_add<TYPE>(dst, value, pe);                                                                               \
  }                                                                                                                                    \
  __aicore__ inline TYPE shmem_##NAME##_atomic_fetch_inc(__gm__ TYPE* dst, int pe) { return shmem_atomic_fetch_inc<TYPE>(dst, pe); }   \
  __aicore__ inline TYPE shmem_##NAME##_atomic_swap(__gm__ TYPE* dst, TYPE value, int pe) {                                            \
    return shmem_atomic_swap<TYPE>(dst, value, pe);                                                                                    \
  }                                                                                                                                    \
  __aicore__ inline TYPE shmem_##NAME##_atomic_compare_swap(__gm__ TYPE* dst, TYPE cond, TYPE value, int pe) {                         \
    return shmem_atomic_compare_swap<TYPE>(dst, cond, value, pe);                                                                      \
  }
SHMEM_AMO_TYPES(SHMEM_DEFINE_AMO)
#undef SHMEM_DEFINE_AMO

#define SHMEM_DEFINE_SIZE(BITS, BYTES)                                                                                            \
  __aicore__ inline void shmem_put##BITS(__gm__ void* dst, const __gm__ void* src, uint64_t n, int pe) {                          \
    shmem_impl::put_elements(dst, src, n, BYTES, pe, true);                                                                       \
  }                                                                                                                               \
  __aicore__ inline void shmem_put##BITS##_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t n, int pe) {                    \
    shmem_impl::put_elements(dst, src, n, BYTES, pe, false);                                                                      \
  }                                                                                                                               \
  __aicore__ inline void shmem_get##BITS(__gm__ void* dst, const __gm__ void* src, uint64_t n, int pe) {                          \
    shmem_impl::get_elements(dst, src, n, BYTES, pe, true);                                                                       \
  }                                                                                                                               \
  __aicore__ inline void shmem_get##BITS##_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t n, int pe) {                    \
    shmem_impl::get_elements(dst, src, n, BYTES, pe, false);                                                                      \
  }
SHMEM_SIZES(SHMEM_DEFINE_SIZE)
#undef SHMEM_DEFINE_SIZE

#endif
