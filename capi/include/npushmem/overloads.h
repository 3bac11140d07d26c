/* overloads.h: type-generic names as C++ overloads, as generic.h has them for C11.
 *
 * Generated from host/shm/table.rs and capi/src/constants.rs by `make header`; do not edit. Included by shmem.h; not for programs. */

extern "C++" {
#define SHMEMI_OVERLOAD_RMA(NAME, TYPE) \
  static inline void shmem_put(TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_##NAME##_put(dest, source, nelems, pe); } \
  static inline void shmem_put(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_ctx_##NAME##_put(ctx, dest, source, nelems, pe); } \
  static inline void shmem_get(TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_##NAME##_get(dest, source, nelems, pe); } \
  static inline void shmem_get(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_ctx_##NAME##_get(ctx, dest, source, nelems, pe); } \
  static inline void shmem_put_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_##NAME##_put_nbi(dest, source, nelems, pe); } \
  static inline void shmem_put_nbi(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_ctx_##NAME##_put_nbi(ctx, dest, source, nelems, pe); } \
  static inline void shmem_get_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_##NAME##_get_nbi(dest, source, nelems, pe); } \
  static inline void shmem_get_nbi(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, int pe) { shmem_ctx_##NAME##_get_nbi(ctx, dest, source, nelems, pe); } \
  static inline void shmem_put_signal(TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) { shmem_##NAME##_put_signal(dest, source, nelems, sig_addr, signal, sig_op, pe); } \
  static inline void shmem_put_signal(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) { shmem_ctx_##NAME##_put_signal(ctx, dest, source, nelems, sig_addr, signal, sig_op, pe); } \
  static inline void shmem_put_signal_nbi(TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) { shmem_##NAME##_put_signal_nbi(dest, source, nelems, sig_addr, signal, sig_op, pe); } \
  static inline void shmem_put_signal_nbi(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) { shmem_ctx_##NAME##_put_signal_nbi(ctx, dest, source, nelems, sig_addr, signal, sig_op, pe); } \
  static inline void shmem_p(TYPE *dest, TYPE value, int pe) { shmem_##NAME##_p(dest, value, pe); } \
  static inline void shmem_p(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_p(ctx, dest, value, pe); } \
  static inline TYPE shmem_g(const TYPE *source, int pe) { return shmem_##NAME##_g(source, pe); } \
  static inline TYPE shmem_g(shmem_ctx_t ctx, const TYPE *source, int pe) { return shmem_ctx_##NAME##_g(ctx, source, pe); } \
  static inline void shmem_iput(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { shmem_##NAME##_iput(dest, source, dst, sst, nelems, pe); } \
  static inline void shmem_iput(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { shmem_ctx_##NAME##_iput(ctx, dest, source, dst, sst, nelems, pe); } \
  static inline void shmem_iget(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { shmem_##NAME##_iget(dest, source, dst, sst, nelems, pe); } \
  static inline void shmem_iget(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { shmem_ctx_##NAME##_iget(ctx, dest, source, dst, sst, nelems, pe); } \
  static inline void shmem_ibput(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { shmem_##NAME##_ibput(dest, source, dst, sst, bsize, nblocks, pe); } \
  static inline void shmem_ibput(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { shmem_ctx_##NAME##_ibput(ctx, dest, source, dst, sst, bsize, nblocks, pe); } \
  static inline void shmem_ibget(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { shmem_##NAME##_ibget(dest, source, dst, sst, bsize, nblocks, pe); } \
  static inline void shmem_ibget(shmem_ctx_t ctx, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { shmem_ctx_##NAME##_ibget(ctx, dest, source, dst, sst, bsize, nblocks, pe); } \
  static inline int shmem_broadcast(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, int PE_root) { return shmem_##NAME##_broadcast(team, dest, source, nelems, PE_root); } \
  static inline int shmem_collect(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems) { return shmem_##NAME##_collect(team, dest, source, nelems); } \
  static inline int shmem_fcollect(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems) { return shmem_##NAME##_fcollect(team, dest, source, nelems); } \
  static inline int shmem_alltoall(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems) { return shmem_##NAME##_alltoall(team, dest, source, nelems); } \
  static inline int shmem_alltoalls(shmem_team_t team, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) { return shmem_##NAME##_alltoalls(team, dest, source, dst, sst, nelems); } \
  static inline int shmem_max_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_max_reduce(team, dest, source, nreduce); } \
  static inline int shmem_min_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_min_reduce(team, dest, source, nreduce); }
SHMEMI_OVERLOAD_RMA(float, float)
SHMEMI_OVERLOAD_RMA(double, double)
SHMEMI_OVERLOAD_RMA(longdouble, long double)
SHMEMI_OVERLOAD_RMA(char, char)
SHMEMI_OVERLOAD_RMA(schar, signed char)
SHMEMI_OVERLOAD_RMA(short, short)
SHMEMI_OVERLOAD_RMA(int, int)
SHMEMI_OVERLOAD_RMA(long, long)
SHMEMI_OVERLOAD_RMA(longlong, long long)
SHMEMI_OVERLOAD_RMA(uchar, unsigned char)
SHMEMI_OVERLOAD_RMA(ushort, unsigned short)
SHMEMI_OVERLOAD_RMA(uint, unsigned int)
SHMEMI_OVERLOAD_RMA(ulong, unsigned long)
SHMEMI_OVERLOAD_RMA(ulonglong, unsigned long long)
#undef SHMEMI_OVERLOAD_RMA

#define SHMEMI_OVERLOAD_AMO(NAME, TYPE) \
  static inline TYPE shmem_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe) { return shmem_##NAME##_atomic_compare_swap(dest, cond, value, pe); } \
  static inline TYPE shmem_atomic_compare_swap(shmem_ctx_t ctx, TYPE *dest, TYPE cond, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_compare_swap(ctx, dest, cond, value, pe); } \
  static inline TYPE shmem_atomic_fetch_inc(TYPE *dest, int pe) { return shmem_##NAME##_atomic_fetch_inc(dest, pe); } \
  static inline TYPE shmem_atomic_fetch_inc(shmem_ctx_t ctx, TYPE *dest, int pe) { return shmem_ctx_##NAME##_atomic_fetch_inc(ctx, dest, pe); } \
  static inline void shmem_atomic_inc(TYPE *dest, int pe) { shmem_##NAME##_atomic_inc(dest, pe); } \
  static inline void shmem_atomic_inc(shmem_ctx_t ctx, TYPE *dest, int pe) { shmem_ctx_##NAME##_atomic_inc(ctx, dest, pe); } \
  static inline TYPE shmem_atomic_fetch_add(TYPE *dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_add(dest, value, pe); } \
  static inline TYPE shmem_atomic_fetch_add(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_add(ctx, dest, value, pe); } \
  static inline void shmem_atomic_add(TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_add(dest, value, pe); } \
  static inline void shmem_atomic_add(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_add(ctx, dest, value, pe); } \
  static inline void shmem_atomic_compare_swap_nbi(TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe) { shmem_##NAME##_atomic_compare_swap_nbi(fetch, dest, cond, value, pe); } \
  static inline void shmem_atomic_compare_swap_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_compare_swap_nbi(ctx, fetch, dest, cond, value, pe); } \
  static inline void shmem_atomic_fetch_inc_nbi(TYPE *fetch, TYPE *dest, int pe) { shmem_##NAME##_atomic_fetch_inc_nbi(fetch, dest, pe); } \
  static inline void shmem_atomic_fetch_inc_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, int pe) { shmem_ctx_##NAME##_atomic_fetch_inc_nbi(ctx, fetch, dest, pe); } \
  static inline void shmem_atomic_fetch_add_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_add_nbi(fetch, dest, value, pe); } \
  static inline void shmem_atomic_fetch_add_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, fetch, dest, value, pe); }
SHMEMI_OVERLOAD_AMO(int, int)
SHMEMI_OVERLOAD_AMO(long, long)
SHMEMI_OVERLOAD_AMO(longlong, long long)
SHMEMI_OVERLOAD_AMO(uint, unsigned int)
SHMEMI_OVERLOAD_AMO(ulong, unsigned long)
SHMEMI_OVERLOAD_AMO(ulonglong, unsigned long long)
#undef SHMEMI_OVERLOAD_AMO

#define SHMEMI_OVERLOAD_AMO_EXTENDED(NAME, TYPE) \
  static inline TYPE shmem_atomic_fetch(const TYPE *source, int pe) { return shmem_##NAME##_atomic_fetch(source, pe); } \
  static inline TYPE shmem_atomic_fetch(shmem_ctx_t ctx, const TYPE *source, int pe) { return shmem_ctx_##NAME##_atomic_fetch(ctx, source, pe); } \
  static inline void shmem_atomic_set(TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_set(dest, value, pe); } \
  static inline void shmem_atomic_set(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_set(ctx, dest, value, pe); } \
  static inline TYPE shmem_atomic_swap(TYPE *dest, TYPE value, int pe) { return shmem_##NAME##_atomic_swap(dest, value, pe); } \
  static inline TYPE shmem_atomic_swap(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_swap(ctx, dest, value, pe); } \
  static inline void shmem_atomic_fetch_nbi(TYPE *fetch, const TYPE *source, int pe) { shmem_##NAME##_atomic_fetch_nbi(fetch, source, pe); } \
  static inline void shmem_atomic_fetch_nbi(shmem_ctx_t ctx, TYPE *fetch, const TYPE *source, int pe) { shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, fetch, source, pe); } \
  static inline void shmem_atomic_swap_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_swap_nbi(fetch, dest, value, pe); } \
  static inline void shmem_atomic_swap_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_swap_nbi(ctx, fetch, dest, value, pe); }
SHMEMI_OVERLOAD_AMO_EXTENDED(float, float)
SHMEMI_OVERLOAD_AMO_EXTENDED(double, double)
SHMEMI_OVERLOAD_AMO_EXTENDED(int, int)
SHMEMI_OVERLOAD_AMO_EXTENDED(long, long)
SHMEMI_OVERLOAD_AMO_EXTENDED(longlong, long long)
SHMEMI_OVERLOAD_AMO_EXTENDED(uint, unsigned int)
SHMEMI_OVERLOAD_AMO_EXTENDED(ulong, unsigned long)
SHMEMI_OVERLOAD_AMO_EXTENDED(ulonglong, unsigned long long)
#undef SHMEMI_OVERLOAD_AMO_EXTENDED

#define SHMEMI_OVERLOAD_AMO_BITWISE(NAME, TYPE) \
  static inline TYPE shmem_atomic_fetch_and(TYPE *dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_and(dest, value, pe); } \
  static inline TYPE shmem_atomic_fetch_and(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_and(ctx, dest, value, pe); } \
  static inline void shmem_atomic_and(TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_and(dest, value, pe); } \
  static inline void shmem_atomic_and(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_and(ctx, dest, value, pe); } \
  static inline TYPE shmem_atomic_fetch_or(TYPE *dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_or(dest, value, pe); } \
  static inline TYPE shmem_atomic_fetch_or(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_or(ctx, dest, value, pe); } \
  static inline void shmem_atomic_or(TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_or(dest, value, pe); } \
  static inline void shmem_atomic_or(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_or(ctx, dest, value, pe); } \
  static inline TYPE shmem_atomic_fetch_xor(TYPE *dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_xor(dest, value, pe); } \
  static inline TYPE shmem_atomic_fetch_xor(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_xor(ctx, dest, value, pe); } \
  static inline void shmem_atomic_xor(TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_xor(dest, value, pe); } \
  static inline void shmem_atomic_xor(shmem_ctx_t ctx, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_xor(ctx, dest, value, pe); } \
  static inline void shmem_atomic_fetch_and_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_and_nbi(fetch, dest, value, pe); } \
  static inline void shmem_atomic_fetch_and_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_and_nbi(ctx, fetch, dest, value, pe); } \
  static inline void shmem_atomic_fetch_or_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_or_nbi(fetch, dest, value, pe); } \
  static inline void shmem_atomic_fetch_or_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_or_nbi(ctx, fetch, dest, value, pe); } \
  static inline void shmem_atomic_fetch_xor_nbi(TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_xor_nbi(fetch, dest, value, pe); } \
  static inline void shmem_atomic_fetch_xor_nbi(shmem_ctx_t ctx, TYPE *fetch, TYPE *dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_xor_nbi(ctx, fetch, dest, value, pe); }
SHMEMI_OVERLOAD_AMO_BITWISE(uint, unsigned int)
SHMEMI_OVERLOAD_AMO_BITWISE(ulong, unsigned long)
SHMEMI_OVERLOAD_AMO_BITWISE(ulonglong, unsigned long long)
SHMEMI_OVERLOAD_AMO_BITWISE(int32, int32_t)
SHMEMI_OVERLOAD_AMO_BITWISE(int64, int64_t)
#undef SHMEMI_OVERLOAD_AMO_BITWISE

#define SHMEMI_OVERLOAD_WAIT(NAME, TYPE) \
  static inline void shmem_wait_until_all(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value) { shmem_##NAME##_wait_until_all(ivars, nelems, status, cmp, cmp_value); } \
  static inline size_t shmem_wait_until_any(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value) { return shmem_##NAME##_wait_until_any(ivars, nelems, status, cmp, cmp_value); } \
  static inline size_t shmem_wait_until_some(volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, TYPE cmp_value) { return shmem_##NAME##_wait_until_some(ivars, nelems, indices, status, cmp, cmp_value); } \
  static inline void shmem_wait_until_all_vector(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values) { shmem_##NAME##_wait_until_all_vector(ivars, nelems, status, cmp, cmp_values); } \
  static inline size_t shmem_wait_until_any_vector(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values) { return shmem_##NAME##_wait_until_any_vector(ivars, nelems, status, cmp, cmp_values); } \
  static inline size_t shmem_wait_until_some_vector(volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const TYPE *cmp_values) { return shmem_##NAME##_wait_until_some_vector(ivars, nelems, indices, status, cmp, cmp_values); } \
  static inline int shmem_test(volatile TYPE *ivar, int cmp, TYPE cmp_value) { return shmem_##NAME##_test(ivar, cmp, cmp_value); } \
  static inline int shmem_test_all(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value) { return shmem_##NAME##_test_all(ivars, nelems, status, cmp, cmp_value); } \
  static inline size_t shmem_test_any(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value) { return shmem_##NAME##_test_any(ivars, nelems, status, cmp, cmp_value); } \
  static inline size_t shmem_test_some(volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, TYPE cmp_value) { return shmem_##NAME##_test_some(ivars, nelems, indices, status, cmp, cmp_value); } \
  static inline int shmem_test_all_vector(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values) { return shmem_##NAME##_test_all_vector(ivars, nelems, status, cmp, cmp_values); } \
  static inline size_t shmem_test_any_vector(volatile TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values) { return shmem_##NAME##_test_any_vector(ivars, nelems, status, cmp, cmp_values); } \
  static inline size_t shmem_test_some_vector(volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const TYPE *cmp_values) { return shmem_##NAME##_test_some_vector(ivars, nelems, indices, status, cmp, cmp_values); }
SHMEMI_OVERLOAD_WAIT(int, int)
SHMEMI_OVERLOAD_WAIT(long, long)
SHMEMI_OVERLOAD_WAIT(longlong, long long)
SHMEMI_OVERLOAD_WAIT(uint, unsigned int)
SHMEMI_OVERLOAD_WAIT(ulong, unsigned long)
SHMEMI_OVERLOAD_WAIT(ulonglong, unsigned long long)
SHMEMI_OVERLOAD_WAIT(short, short)
SHMEMI_OVERLOAD_WAIT(ushort, unsigned short)
#undef SHMEMI_OVERLOAD_WAIT
#define SHMEMI_OVERLOAD_WAIT(NAME, TYPE) \
  static inline void shmem_wait_until(volatile TYPE *ivar, int cmp, TYPE cmp_value) { shmem_##NAME##_wait_until(ivar, cmp, cmp_value); }
SHMEMI_OVERLOAD_WAIT(int, int)
SHMEMI_OVERLOAD_WAIT(longlong, long long)
SHMEMI_OVERLOAD_WAIT(uint, unsigned int)
SHMEMI_OVERLOAD_WAIT(ulong, unsigned long)
SHMEMI_OVERLOAD_WAIT(ulonglong, unsigned long long)
SHMEMI_OVERLOAD_WAIT(short, short)
SHMEMI_OVERLOAD_WAIT(ushort, unsigned short)
#undef SHMEMI_OVERLOAD_WAIT

#define SHMEMI_OVERLOAD_REDUCE_BITWISE(NAME, TYPE) \
  static inline int shmem_and_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_and_reduce(team, dest, source, nreduce); } \
  static inline int shmem_or_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_or_reduce(team, dest, source, nreduce); } \
  static inline int shmem_xor_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_xor_reduce(team, dest, source, nreduce); }
SHMEMI_OVERLOAD_REDUCE_BITWISE(uchar, unsigned char)
SHMEMI_OVERLOAD_REDUCE_BITWISE(ushort, unsigned short)
SHMEMI_OVERLOAD_REDUCE_BITWISE(uint, unsigned int)
SHMEMI_OVERLOAD_REDUCE_BITWISE(ulong, unsigned long)
SHMEMI_OVERLOAD_REDUCE_BITWISE(ulonglong, unsigned long long)
SHMEMI_OVERLOAD_REDUCE_BITWISE(int8, int8_t)
SHMEMI_OVERLOAD_REDUCE_BITWISE(int16, int16_t)
SHMEMI_OVERLOAD_REDUCE_BITWISE(int32, int32_t)
SHMEMI_OVERLOAD_REDUCE_BITWISE(int64, int64_t)
#undef SHMEMI_OVERLOAD_REDUCE_BITWISE

#define SHMEMI_OVERLOAD_REDUCE_ARITH(NAME, TYPE) \
  static inline int shmem_sum_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_sum_reduce(team, dest, source, nreduce); } \
  static inline int shmem_prod_reduce(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce) { return shmem_##NAME##_prod_reduce(team, dest, source, nreduce); } \
  static inline int shmem_sum_inscan(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems) { return shmem_##NAME##_sum_inscan(team, dest, source, nelems); } \
  static inline int shmem_sum_exscan(shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems) { return shmem_##NAME##_sum_exscan(team, dest, source, nelems); }
SHMEMI_OVERLOAD_REDUCE_ARITH(float, float)
SHMEMI_OVERLOAD_REDUCE_ARITH(double, double)
SHMEMI_OVERLOAD_REDUCE_ARITH(longdouble, long double)
SHMEMI_OVERLOAD_REDUCE_ARITH(char, char)
SHMEMI_OVERLOAD_REDUCE_ARITH(schar, signed char)
SHMEMI_OVERLOAD_REDUCE_ARITH(short, short)
SHMEMI_OVERLOAD_REDUCE_ARITH(int, int)
SHMEMI_OVERLOAD_REDUCE_ARITH(long, long)
SHMEMI_OVERLOAD_REDUCE_ARITH(longlong, long long)
SHMEMI_OVERLOAD_REDUCE_ARITH(uchar, unsigned char)
SHMEMI_OVERLOAD_REDUCE_ARITH(ushort, unsigned short)
SHMEMI_OVERLOAD_REDUCE_ARITH(uint, unsigned int)
SHMEMI_OVERLOAD_REDUCE_ARITH(ulong, unsigned long)
SHMEMI_OVERLOAD_REDUCE_ARITH(ulonglong, unsigned long long)
SHMEMI_OVERLOAD_REDUCE_ARITH(complexd, double _Complex)
SHMEMI_OVERLOAD_REDUCE_ARITH(complexf, float _Complex)
#undef SHMEMI_OVERLOAD_REDUCE_ARITH

static inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
static inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_set(ctx, sig_addr, signal, pe); }
static inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_add(ctx, sig_addr, signal, pe); }
} /* extern "C++" */
