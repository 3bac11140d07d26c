/* The calls with a context, made from the tables of types.h: each names its context for the time of the call without one. */
#ifndef SHMEM_IMPL_CONTEXTS_H
#define SHMEM_IMPL_CONTEXTS_H

#include "typed.h"

#define SHMEM_UNPACK(...) __VA_ARGS__

/* shmem_ctx_NAME(ctx, PARAMETERS, pe) forwards to shmem_NAME(ARGUMENTS, pe). */
#define SHMEM_CTX_CALL(RESULT, NAME, PARAMETERS, ARGUMENTS)                                           \
  __aicore__ inline RESULT shmem_ctx_##NAME(shmem_ctx_t ctx, SHMEM_UNPACK PARAMETERS, int pe) {       \
    shmem_impl::in_context with(shmem_impl::block_state, ctx);                                        \
    return shmem_##NAME(SHMEM_UNPACK ARGUMENTS, with.pe(pe));                                         \
  }
#define SHMEM_CTX_TEMPLATE(RESULT, NAME, PARAMETERS, ARGUMENTS) \
  template <typename T>                                         \
  SHMEM_CTX_CALL(RESULT, NAME, PARAMETERS, ARGUMENTS)

/* The families. CALL: one of the two above. A name is BEFORE + call + AFTER: float_put, put32. */
#define SHMEM_CTX_RMA(CALL, BEFORE, AFTER, TYPE)                                                                                        \
  CALL(void, BEFORE##put##AFTER, (__gm__ TYPE * dst, const __gm__ TYPE* src, uint64_t n), (dst, src, n))                                \
  CALL(void, BEFORE##put##AFTER##_nbi, (__gm__ TYPE * dst, const __gm__ TYPE* src, uint64_t n), (dst, src, n))                          \
  CALL(void, BEFORE##get##AFTER, (__gm__ TYPE * dst, const __gm__ TYPE* src, uint64_t n), (dst, src, n))                                \
  CALL(void, BEFORE##get##AFTER##_nbi, (__gm__ TYPE * dst, const __gm__ TYPE* src, uint64_t n), (dst, src, n))                          \
  CALL(void, BEFORE##put##AFTER##_signal,                                                                                               \
       (__gm__ TYPE * dst, const __gm__ TYPE* src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op),                           \
       (dst, src, n, sig, value, op))                                                                                                   \
  CALL(void, BEFORE##put##AFTER##_signal_nbi,                                                                                           \
       (__gm__ TYPE * dst, const __gm__ TYPE* src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op),                           \
       (dst, src, n, sig, value, op))
#define SHMEM_CTX_STRIDED(CALL, BEFORE, AFTER, TYPE)                                                                                    \
  CALL(void, BEFORE##iput##AFTER, (__gm__ TYPE * dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride, uint64_t n),      \
       (dst, src, dst_stride, src_stride, n))                                                                                           \
  CALL(void, BEFORE##iget##AFTER, (__gm__ TYPE * dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride, uint64_t n),      \
       (dst, src, dst_stride, src_stride, n))                                                                                           \
  CALL(void, BEFORE##ibput##AFTER,                                                                                                      \
       (__gm__ TYPE * dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride, uint64_t block, uint64_t n),                 \
       (dst, src, dst_stride, src_stride, block, n))                                                                                    \
  CALL(void, BEFORE##ibget##AFTER,                                                                                                      \
       (__gm__ TYPE * dst, const __gm__ TYPE* src, int64_t dst_stride, int64_t src_stride, uint64_t block, uint64_t n),                 \
       (dst, src, dst_stride, src_stride, block, n))
#define SHMEM_CTX_VALUE(CALL, BEFORE, TYPE)                        \
  CALL(void, BEFORE##p, (__gm__ TYPE * dst, TYPE value), (dst, value)) \
  CALL(TYPE, BEFORE##g, (const __gm__ TYPE* src), (src))
/* VALUE: what operands are: TYPE, or in templates the type that takes no part in deduction. */
#define SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, OP)                                                                                 \
  CALL(void, BEFORE##atomic_##OP, (__gm__ TYPE * dst, VALUE value), (dst, value))                                                       \
  CALL(TYPE, BEFORE##atomic_fetch_##OP, (__gm__ TYPE * dst, VALUE value), (dst, value))                                                 \
  CALL(void, BEFORE##atomic_fetch_##OP##_nbi, (__gm__ TYPE * fetch, __gm__ TYPE* dst, VALUE value), (fetch, dst, value))
#define SHMEM_CTX_AMO(CALL, BEFORE, TYPE, VALUE)                                                                                        \
  CALL(TYPE, BEFORE##atomic_fetch, (const __gm__ TYPE* src), (src))                                                                     \
  CALL(void, BEFORE##atomic_fetch_nbi, (__gm__ TYPE * fetch, const __gm__ TYPE* src), (fetch, src))                                     \
  CALL(void, BEFORE##atomic_set, (__gm__ TYPE * dst, VALUE value), (dst, value))                                                        \
  CALL(void, BEFORE##atomic_inc, (__gm__ TYPE * dst), (dst))                                                                            \
  CALL(TYPE, BEFORE##atomic_fetch_inc, (__gm__ TYPE * dst), (dst))                                                                      \
  CALL(void, BEFORE##atomic_fetch_inc_nbi, (__gm__ TYPE * fetch, __gm__ TYPE* dst), (fetch, dst))                                       \
  CALL(TYPE, BEFORE##atomic_swap, (__gm__ TYPE * dst, VALUE value), (dst, value))                                                       \
  CALL(void, BEFORE##atomic_swap_nbi, (__gm__ TYPE * fetch, __gm__ TYPE* dst, VALUE value), (fetch, dst, value))                        \
  CALL(TYPE, BEFORE##atomic_compare_swap, (__gm__ TYPE * dst, VALUE cond, VALUE value), (dst, cond, value))                             \
  CALL(void, BEFORE##atomic_compare_swap_nbi, (__gm__ TYPE * fetch, __gm__ TYPE* dst, VALUE cond, VALUE value),                         \
       (fetch, dst, cond, value))                                                                                                       \
  SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, add)                                                                                      \
  SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, min)                                                                                      \
  SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, max)
#define SHMEM_CTX_BITWISE(CALL, BEFORE, TYPE, VALUE)    \
  SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, and)      \
  SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, or)       \
  SHMEM_CTX_AMO_OP(CALL, BEFORE, TYPE, VALUE, xor)
#define SHMEM_CTX_UB(CALL)                                                                                                              \
  CALL(void, put, (__gm__ T * dst, const AscendC::LocalTensor<T>& src, uint64_t n), (dst, src, n))                                      \
  CALL(void, put_nbi, (__gm__ T * dst, const AscendC::LocalTensor<T>& src, uint64_t n), (dst, src, n))                                  \
  CALL(void, get, (const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n), (dst, src, n))                                 \
  CALL(void, get_nbi, (const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n), (dst, src, n))                             \
  CALL(void, put_signal,                                                                                                                \
       (__gm__ T * dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op),                  \
       (dst, src, n, sig, value, op))                                                                                                   \
  CALL(void, put_signal_nbi,                                                                                                            \
       (__gm__ T * dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op),                  \
       (dst, src, n, sig, value, op))

SHMEM_CTX_RMA(SHMEM_CTX_TEMPLATE, , , T)
SHMEM_CTX_STRIDED(SHMEM_CTX_TEMPLATE, , , T)
SHMEM_CTX_VALUE(SHMEM_CTX_TEMPLATE, , T)
SHMEM_CTX_AMO(SHMEM_CTX_TEMPLATE, , T, shmem_same<T>)
SHMEM_CTX_BITWISE(SHMEM_CTX_TEMPLATE, , T, shmem_same<T>)
SHMEM_CTX_UB(SHMEM_CTX_TEMPLATE)
SHMEM_CTX_RMA(SHMEM_CTX_CALL, , mem, void)

#define SHMEM_CTX_RMA_TYPE(NAME, TYPE)                    \
  SHMEM_CTX_RMA(SHMEM_CTX_CALL, NAME##_, , TYPE)          \
  SHMEM_CTX_STRIDED(SHMEM_CTX_CALL, NAME##_, , TYPE)
#define SHMEM_CTX_SIZE(BITS, BYTES)                       \
  SHMEM_CTX_RMA(SHMEM_CTX_CALL, , BITS, void)             \
  SHMEM_CTX_STRIDED(SHMEM_CTX_CALL, , BITS, void)
#define SHMEM_CTX_VALUE_TYPE(NAME, TYPE) SHMEM_CTX_VALUE(SHMEM_CTX_CALL, NAME##_, TYPE)
#define SHMEM_CTX_AMO_TYPE(NAME, TYPE) SHMEM_CTX_AMO(SHMEM_CTX_CALL, NAME##_, TYPE, TYPE)
#define SHMEM_CTX_BITWISE_TYPE(NAME, TYPE) SHMEM_CTX_BITWISE(SHMEM_CTX_CALL, NAME##_, TYPE, TYPE)
SHMEM_RMA_TYPES(SHMEM_CTX_RMA_TYPE)
SHMEM_SIZES(SHMEM_CTX_SIZE)
SHMEM_VALUE_TYPES(SHMEM_CTX_VALUE_TYPE)
SHMEM_AMO_TYPES(SHMEM_CTX_AMO_TYPE)
SHMEM_FLOAT_AMO_TYPES(SHMEM_CTX_AMO_TYPE)
SHMEM_BITWISE_TYPES(SHMEM_CTX_BITWISE_TYPE)

SHMEM_CTX_CALL(void, signal_op, (__gm__ uint64_t * sig, uint64_t value, int op), (sig, value, op))
SHMEM_CTX_CALL(void, signal_set, (__gm__ uint64_t * sig, uint64_t value), (sig, value))
SHMEM_CTX_CALL(void, signal_add, (__gm__ uint64_t * sig, uint64_t value), (sig, value))

/* What takes nothing but the context, and perhaps a PE. */
#define SHMEM_CTX_ALL(NAME)                                    \
  __aicore__ inline void shmem_ctx_##NAME(shmem_ctx_t ctx) {   \
    shmem_impl::in_context with(shmem_impl::block_state, ctx); \
    shmem_##NAME();                                            \
  }
#define SHMEM_CTX_PE(RESULT, NAME)                                       \
  __aicore__ inline RESULT shmem_ctx_##NAME(shmem_ctx_t ctx, int pe) {   \
    shmem_impl::in_context with(shmem_impl::block_state, ctx);           \
    return shmem_##NAME(with.pe(pe));                                    \
  }
SHMEM_CTX_ALL(fence)
SHMEM_CTX_ALL(quiet)
SHMEM_CTX_ALL(flush)
SHMEM_CTX_ALL(commit)
SHMEM_CTX_PE(void, fence_pe)
SHMEM_CTX_PE(void, pe_quiet)
SHMEM_CTX_PE(shmem_ticket, last)

__aicore__ inline shmem_team_t shmem_ctx_get_team(shmem_ctx_t ctx) {
  shmem_impl::state& s = shmem_impl::block_state;
  shmem_impl::in_context with(s, ctx);
  return shmem_impl::enter(s, SHMEM_OP_NONE) ? s.ctx->team : SHMEM_TEAM_INVALID;
}

#undef SHMEM_CTX_PE
#undef SHMEM_CTX_ALL
#undef SHMEM_CTX_BITWISE_TYPE
#undef SHMEM_CTX_AMO_TYPE
#undef SHMEM_CTX_VALUE_TYPE
#undef SHMEM_CTX_SIZE
#undef SHMEM_CTX_RMA_TYPE
#undef SHMEM_CTX_UB
#undef SHMEM_CTX_BITWISE
#undef SHMEM_CTX_AMO
#undef SHMEM_CTX_AMO_OP
#undef SHMEM_CTX_VALUE
#undef SHMEM_CTX_STRIDED
#undef SHMEM_CTX_RMA
#undef SHMEM_CTX_TEMPLATE
#undef SHMEM_CTX_CALL
#undef SHMEM_UNPACK

#endif
