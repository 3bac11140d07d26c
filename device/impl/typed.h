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

/* shmem_float_iput (BEFORE float_) and shmem_iput32 (AFTER 32). */
#define SHMEM_DEFINE_STRIDED(BEFORE, AFTER, TYPE, BYTES)                                                                                   \
  __aicore__ inline void shmem_##BEFORE##iput##AFTER(__gm__ TYPE* dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride,     \
                                                     uint64_t n, int pe) {                                                                \
    shmem_impl::strided(SHMEM_OP_PUT, dst, src, dst_stride, src_stride, 1, n, BYTES, pe, true);                                           \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##BEFORE##iget##AFTER(__gm__ TYPE* dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride,     \
                                                     uint64_t n, int pe) {                                                                \
    shmem_impl::strided(SHMEM_OP_GET, dst, src, dst_stride, src_stride, 1, n, BYTES, pe, true);                                           \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##BEFORE##ibput##AFTER(__gm__ TYPE* dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride,    \
                                                      uint64_t block, uint64_t n, int pe) {                                               \
    shmem_impl::strided(SHMEM_OP_PUT, dst, src, dst_stride, src_stride, block, n, BYTES, pe, true);                                       \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##BEFORE##ibget##AFTER(__gm__ TYPE* dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride,    \
                                                      uint64_t block, uint64_t n, int pe) {                                               \
    shmem_impl::strided(SHMEM_OP_GET, dst, src, dst_stride, src_stride, block, n, BYTES, pe, true);                                       \
  }
#define SHMEM_DEFINE_STRIDED_TYPE(NAME, TYPE) SHMEM_DEFINE_STRIDED(NAME##_, , TYPE, sizeof(TYPE))
#define SHMEM_DEFINE_STRIDED_SIZE(BITS, BYTES) SHMEM_DEFINE_STRIDED(, BITS, void, BYTES)
SHMEM_RMA_TYPES(SHMEM_DEFINE_STRIDED_TYPE)
SHMEM_SIZES(SHMEM_DEFINE_STRIDED_SIZE)
#undef SHMEM_DEFINE_STRIDED_SIZE
#undef SHMEM_DEFINE_STRIDED_TYPE
#undef SHMEM_DEFINE_STRIDED

#define SHMEM_DEFINE_VALUE(NAME, TYPE)                                                                            \
  __aicore__ inline void shmem_##NAME##_p(__gm__ TYPE* dst, TYPE value, int pe) { shmem_p<TYPE>(dst, value, pe); } \
  __aicore__ inline TYPE shmem_##NAME##_g(const __gm__ TYPE* src, int pe) { return shmem_g<TYPE>(src, pe); }
SHMEM_VALUE_TYPES(SHMEM_DEFINE_VALUE)
#undef SHMEM_DEFINE_VALUE

#define SHMEM_DEFINE_WAIT(NAME, TYPE)                                                                                                  \
  __aicore__ inline void shmem_##NAME##_wait_until(const __gm__ TYPE* ivar, int cmp, TYPE value) {                                     \
    shmem_wait_until<TYPE>(ivar, cmp, value);                                                                                          \
  }                                                                                                                                    \
  __aicore__ inline int shmem_##NAME##_test(const __gm__ TYPE* ivar, int cmp, TYPE value) { return shmem_test<TYPE>(ivar, cmp, value); }
SHMEM_AMO_TYPES(SHMEM_DEFINE_WAIT)
#undef SHMEM_DEFINE_WAIT

/* An operation with one operand in its three forms. */
#define SHMEM_DEFINE_AMO_OP(NAME, TYPE, OP)                                                                                            \
  __aicore__ inline void shmem_##NAME##_atomic_##OP(__gm__ TYPE* dst, TYPE value, int pe) { shmem_atomic_##OP<TYPE>(dst, value, pe); } \
  __aicore__ inline TYPE shmem_##NAME##_atomic_fetch_##OP(__gm__ TYPE* dst, TYPE value, int pe) {                                      \
    return shmem_atomic_fetch_##OP<TYPE>(dst, value, pe);                                                                              \
  }                                                                                                                                    \
  __aicore__ inline void shmem_##NAME##_atomic_fetch_##OP##_nbi(__gm__ TYPE* fetch, __gm__ TYPE* dst, TYPE value, int pe) {            \
    shmem_atomic_fetch_##OP##_nbi<TYPE>(fetch, dst, value, pe);                                                                        \
  }
#define SHMEM_DEFINE_AMO(NAME, TYPE)                                                                                                   \
  __aicore__ inline TYPE shmem_##NAME##_atomic_fetch(const __gm__ TYPE* src, int pe) { return shmem_atomic_fetch<TYPE>(src, pe); }     \
  __aicore__ inline void shmem_##NAME##_atomic_fetch_nbi(__gm__ TYPE* fetch, const __gm__ TYPE* src, int pe) {                         \
    shmem_atomic_fetch_nbi<TYPE>(fetch, src, pe);                                                                                      \
  }                                                                                                                                    \
  __aicore__ inline void shmem_##NAME##_atomic_set(__gm__ TYPE* dst, TYPE value, int pe) { shmem_atomic_set<TYPE>(dst, value, pe); }   \
  __aicore__ inline void shmem_##NAME##_atomic_inc(__gm__ TYPE* dst, int pe) { shmem_atomic_inc<TYPE>(dst, pe); }                      \
  __aicore__ inline TYPE shmem_##NAME##_atomic_fetch_inc(__gm__ TYPE* dst, int pe) { return shmem_atomic_fetch_inc<TYPE>(dst, pe); }   \
  __aicore__ inline void shmem_##NAME##_atomic_fetch_inc_nbi(__gm__ TYPE* fetch, __gm__ TYPE* dst, int pe) {                           \
    shmem_atomic_fetch_inc_nbi<TYPE>(fetch, dst, pe);                                                                                  \
  }                                                                                                                                    \
  __aicore__ inline TYPE shmem_##NAME##_atomic_swap(__gm__ TYPE* dst, TYPE value, int pe) {                                            \
    return shmem_atomic_swap<TYPE>(dst, value, pe);                                                                                    \
  }                                                                                                                                    \
  __aicore__ inline void shmem_##NAME##_atomic_swap_nbi(__gm__ TYPE* fetch, __gm__ TYPE* dst, TYPE value, int pe) {                    \
    shmem_atomic_swap_nbi<TYPE>(fetch, dst, value, pe);                                                                                \
  }                                                                                                                                    \
  __aicore__ inline TYPE shmem_##NAME##_atomic_compare_swap(__gm__ TYPE* dst, TYPE cond, TYPE value, int pe) {                         \
    return shmem_atomic_compare_swap<TYPE>(dst, cond, value, pe);                                                                      \
  }                                                                                                                                    \
  __aicore__ inline void shmem_##NAME##_atomic_compare_swap_nbi(__gm__ TYPE* fetch, __gm__ TYPE* dst, TYPE cond, TYPE value, int pe) { \
    shmem_atomic_compare_swap_nbi<TYPE>(fetch, dst, cond, value, pe);                                                                  \
  }                                                                                                                                    \
  SHMEM_DEFINE_AMO_OP(NAME, TYPE, add)                                                                                                 \
  SHMEM_DEFINE_AMO_OP(NAME, TYPE, min)                                                                                                 \
  SHMEM_DEFINE_AMO_OP(NAME, TYPE, max)
#define SHMEM_DEFINE_BITWISE(NAME, TYPE) \
  SHMEM_DEFINE_AMO_OP(NAME, TYPE, and)   \
  SHMEM_DEFINE_AMO_OP(NAME, TYPE, or)    \
  SHMEM_DEFINE_AMO_OP(NAME, TYPE, xor)
SHMEM_AMO_TYPES(SHMEM_DEFINE_AMO)
SHMEM_FLOAT_AMO_TYPES(SHMEM_DEFINE_AMO)
SHMEM_BITWISE_TYPES(SHMEM_DEFINE_BITWISE)
#undef SHMEM_DEFINE_BITWISE
#undef SHMEM_DEFINE_AMO_OP
#undef SHMEM_DEFINE_AMO

/* VALUE: one value, or (suffix _vector) a list with a value each. */
#define SHMEM_DEFINE_MANY(NAME, TYPE, SUFFIX, TEMPLATE, VALUE)                                                                             \
  template <typename Status TEMPLATE>                                                                                                     \
  __aicore__ inline void shmem_##NAME##_wait_until_all##SUFFIX(const __gm__ TYPE* ivars, uint64_t n, Status status, int cmp, VALUE v) {    \
    shmem_wait_until_all##SUFFIX<TYPE>(ivars, n, status, cmp, v);                                                                         \
  }                                                                                                                                       \
  template <typename Status TEMPLATE>                                                                                                     \
  __aicore__ inline uint64_t shmem_##NAME##_wait_until_any##SUFFIX(const __gm__ TYPE* ivars, uint64_t n, Status status, int cmp,           \
                                                                   VALUE v) {                                                             \
    return shmem_wait_until_any##SUFFIX<TYPE>(ivars, n, status, cmp, v);                                                                  \
  }                                                                                                                                       \
  template <typename Indices, typename Status TEMPLATE>                                                                                   \
  __aicore__ inline uint64_t shmem_##NAME##_wait_until_some##SUFFIX(const __gm__ TYPE* ivars, uint64_t n, Indices indices, Status status,  \
                                                                    int cmp, VALUE v) {                                                   \
    return shmem_wait_until_some##SUFFIX<TYPE>(ivars, n, indices, status, cmp, v);                                                        \
  }                                                                                                                                       \
  template <typename Status TEMPLATE>                                                                                                     \
  __aicore__ inline int shmem_##NAME##_test_all##SUFFIX(const __gm__ TYPE* ivars, uint64_t n, Status status, int cmp, VALUE v) {           \
    return shmem_test_all##SUFFIX<TYPE>(ivars, n, status, cmp, v);                                                                        \
  }                                                                                                                                       \
  template <typename Status TEMPLATE>                                                                                                     \
  __aicore__ inline uint64_t shmem_##NAME##_test_any##SUFFIX(const __gm__ TYPE* ivars, uint64_t n, Status status, int cmp, VALUE v) {      \
    return shmem_test_any##SUFFIX<TYPE>(ivars, n, status, cmp, v);                                                                        \
  }                                                                                                                                       \
  template <typename Indices, typename Status TEMPLATE>                                                                                   \
  __aicore__ inline uint64_t shmem_##NAME##_test_some##SUFFIX(const __gm__ TYPE* ivars, uint64_t n, Indices indices, Status status,        \
                                                              int cmp, VALUE v) {                                                         \
    return shmem_test_some##SUFFIX<TYPE>(ivars, n, indices, status, cmp, v);                                                              \
  }
#define SHMEM_NOTHING
#define SHMEM_LIST_TEMPLATE , typename Values
#define SHMEM_DEFINE_MANY_OF(NAME, TYPE)                        \
  SHMEM_DEFINE_MANY(NAME, TYPE, , SHMEM_NOTHING, TYPE)          \
  SHMEM_DEFINE_MANY(NAME, TYPE, _vector, SHMEM_LIST_TEMPLATE, Values)
SHMEM_AMO_TYPES(SHMEM_DEFINE_MANY_OF)
#undef SHMEM_DEFINE_MANY_OF
#undef SHMEM_LIST_TEMPLATE
#undef SHMEM_NOTHING
#undef SHMEM_DEFINE_MANY

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
  }                                                                                                                               \
  __aicore__ inline void shmem_put##BITS##_signal(__gm__ void* dst, const __gm__ void* src, uint64_t n, __gm__ uint64_t* sig,     \
                                                  uint64_t value, int op, int pe) {                                               \
    shmem_impl::put_signal_elements(dst, src, n, BYTES, sig, value, op, pe, true);                                                \
  }                                                                                                                               \
  __aicore__ inline void shmem_put##BITS##_signal_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t n, __gm__ uint64_t* sig, \
                                                      uint64_t value, int op, int pe) {                                           \
    shmem_impl::put_signal_elements(dst, src, n, BYTES, sig, value, op, pe, false);                                               \
  }
SHMEM_SIZES(SHMEM_DEFINE_SIZE)
#undef SHMEM_DEFINE_SIZE

#define SHMEM_DEFINE_COLLECTIVE(NAME, TYPE)                                                                                                \
  __aicore__ inline void shmem_##NAME##_broadcast(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n, int root) {     \
    shmem_broadcast<TYPE>(team, dst, src, n, root);                                                                                       \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##NAME##_collect(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n) {                 \
    shmem_collect<TYPE>(team, dst, src, n);                                                                                               \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##NAME##_fcollect(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n) {                \
    shmem_fcollect<TYPE>(team, dst, src, n);                                                                                              \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##NAME##_alltoall(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n) {                \
    shmem_alltoall<TYPE>(team, dst, src, n);                                                                                              \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##NAME##_alltoalls(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, int64_t dst_stride,         \
                                                  int64_t src_stride, uint64_t n) {                                                       \
    shmem_alltoalls<TYPE>(team, dst, src, dst_stride, src_stride, n);                                                                     \
  }
SHMEM_RMA_TYPES(SHMEM_DEFINE_COLLECTIVE)
#undef SHMEM_DEFINE_COLLECTIVE

/* CALL: what follows shmem_TYPE_. */
#define SHMEM_DEFINE_REDUCTION(NAME, TYPE, CALL)                                                                                          \
  __aicore__ inline void shmem_##NAME##_##CALL(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n) {                  \
    shmem_##CALL<TYPE>(team, dst, src, n);                                                                                                \
  }                                                                                                                                       \
  __aicore__ inline void shmem_##NAME##_##CALL(shmem_team_t team, __gm__ TYPE* dst, const __gm__ TYPE* src, uint64_t n,                    \
                                               const AscendC::LocalTensor<TYPE>& scratch) {                                               \
    shmem_##CALL<TYPE>(team, dst, src, n, scratch);                                                                                       \
  }
#define SHMEM_DEFINE_ARITHMETIC(NAME, TYPE)                \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, sum_reduce)           \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, prod_reduce)          \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, min_reduce)           \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, max_reduce)           \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, sum_reduce_scatter)   \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, prod_reduce_scatter)  \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, min_reduce_scatter)   \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, max_reduce_scatter)   \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, sum_inscan)           \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, sum_exscan)
#define SHMEM_DEFINE_BITS(NAME, TYPE)                      \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, and_reduce)           \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, or_reduce)            \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, xor_reduce)           \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, and_reduce_scatter)   \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, or_reduce_scatter)    \
  SHMEM_DEFINE_REDUCTION(NAME, TYPE, xor_reduce_scatter)
SHMEM_VALUE_TYPES(SHMEM_DEFINE_ARITHMETIC)
SHMEM_INTEGER_TYPES(SHMEM_DEFINE_BITS)
#undef SHMEM_DEFINE_BITS
#undef SHMEM_DEFINE_ARITHMETIC
#undef SHMEM_DEFINE_REDUCTION

#endif
