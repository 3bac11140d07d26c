/* generic.h: type-generic names by C11 _Generic. The type of the first pointer to data decides; a context before it may be given.
 *
 * Generated from host/shm/table.rs and capi/src/constants.rs by `make header`; do not edit. Included by shmem.h; not for programs. */

#define SHMEMI_FIRST(a, ...) a
#define SHMEMI_SECOND(a, b, ...) b
void shmemi_no_routine_for_this_type(void);

#define SHMEMI_GENERIC_RMA(pre, post) \
  float *: pre##float##post, \
  double *: pre##double##post, \
  long double *: pre##longdouble##post, \
  char *: pre##char##post, \
  signed char *: pre##schar##post, \
  short *: pre##short##post, \
  int *: pre##int##post, \
  long *: pre##long##post, \
  long long *: pre##longlong##post, \
  unsigned char *: pre##uchar##post, \
  unsigned short *: pre##ushort##post, \
  unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post
#define SHMEMI_GENERIC_RMA_CONST(pre, post) \
  float *: pre##float##post, \
  const float *: pre##float##post, \
  double *: pre##double##post, \
  const double *: pre##double##post, \
  long double *: pre##longdouble##post, \
  const long double *: pre##longdouble##post, \
  char *: pre##char##post, \
  const char *: pre##char##post, \
  signed char *: pre##schar##post, \
  const signed char *: pre##schar##post, \
  short *: pre##short##post, \
  const short *: pre##short##post, \
  int *: pre##int##post, \
  const int *: pre##int##post, \
  long *: pre##long##post, \
  const long *: pre##long##post, \
  long long *: pre##longlong##post, \
  const long long *: pre##longlong##post, \
  unsigned char *: pre##uchar##post, \
  const unsigned char *: pre##uchar##post, \
  unsigned short *: pre##ushort##post, \
  const unsigned short *: pre##ushort##post, \
  unsigned int *: pre##uint##post, \
  const unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  const unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post, \
  const unsigned long long *: pre##ulonglong##post
#define SHMEMI_GENERIC_AMO(pre, post) \
  int *: pre##int##post, \
  long *: pre##long##post, \
  long long *: pre##longlong##post, \
  unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post
#define SHMEMI_GENERIC_AMO_EXTENDED(pre, post) \
  float *: pre##float##post, \
  double *: pre##double##post, \
  int *: pre##int##post, \
  long *: pre##long##post, \
  long long *: pre##longlong##post, \
  unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post
#define SHMEMI_GENERIC_AMO_EXTENDED_CONST(pre, post) \
  float *: pre##float##post, \
  const float *: pre##float##post, \
  double *: pre##double##post, \
  const double *: pre##double##post, \
  int *: pre##int##post, \
  const int *: pre##int##post, \
  long *: pre##long##post, \
  const long *: pre##long##post, \
  long long *: pre##longlong##post, \
  const long long *: pre##longlong##post, \
  unsigned int *: pre##uint##post, \
  const unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  const unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post, \
  const unsigned long long *: pre##ulonglong##post
#define SHMEMI_GENERIC_AMO_BITWISE(pre, post) \
  unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post, \
  int32_t *: pre##int32##post, \
  int64_t *: pre##int64##post
#define SHMEMI_GENERIC_WAIT_VOLATILE(pre, post) \
  int *: pre##int##post, \
  volatile int *: pre##int##post, \
  long *: pre##long##post, \
  volatile long *: pre##long##post, \
  long long *: pre##longlong##post, \
  volatile long long *: pre##longlong##post, \
  unsigned int *: pre##uint##post, \
  volatile unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  volatile unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post, \
  volatile unsigned long long *: pre##ulonglong##post, \
  short *: pre##short##post, \
  volatile short *: pre##short##post, \
  unsigned short *: pre##ushort##post, \
  volatile unsigned short *: pre##ushort##post
#define SHMEMI_GENERIC_OLD_AMO(pre, post) \
  int *: pre##int##post, \
  long *: pre##long##post, \
  long long *: pre##longlong##post
#define SHMEMI_GENERIC_OLD_AMO_EXTENDED(pre, post) \
  float *: pre##float##post, \
  double *: pre##double##post, \
  int *: pre##int##post, \
  long *: pre##long##post, \
  long long *: pre##longlong##post
#define SHMEMI_GENERIC_OLD_AMO_EXTENDED_CONST(pre, post) \
  float *: pre##float##post, \
  const float *: pre##float##post, \
  double *: pre##double##post, \
  const double *: pre##double##post, \
  int *: pre##int##post, \
  const int *: pre##int##post, \
  long *: pre##long##post, \
  const long *: pre##long##post, \
  long long *: pre##longlong##post, \
  const long long *: pre##longlong##post
#define SHMEMI_GENERIC_REDUCE_BITWISE(pre, post) \
  unsigned char *: pre##uchar##post, \
  unsigned short *: pre##ushort##post, \
  unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post, \
  int8_t *: pre##int8##post, \
  int16_t *: pre##int16##post, \
  int32_t *: pre##int32##post, \
  int64_t *: pre##int64##post
#define SHMEMI_GENERIC_REDUCE_ARITH(pre, post) \
  float *: pre##float##post, \
  double *: pre##double##post, \
  long double *: pre##longdouble##post, \
  char *: pre##char##post, \
  signed char *: pre##schar##post, \
  short *: pre##short##post, \
  int *: pre##int##post, \
  long *: pre##long##post, \
  long long *: pre##longlong##post, \
  unsigned char *: pre##uchar##post, \
  unsigned short *: pre##ushort##post, \
  unsigned int *: pre##uint##post, \
  unsigned long *: pre##ulong##post, \
  unsigned long long *: pre##ulonglong##post, \
  double _Complex *: pre##complexd##post, \
  float _Complex *: pre##complexf##post

#define shmem_put(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _put), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _put))(__VA_ARGS__)
#define shmem_get(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _get), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _get))(__VA_ARGS__)
#define shmem_put_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _put_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _put_nbi))(__VA_ARGS__)
#define shmem_get_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _get_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _get_nbi))(__VA_ARGS__)
#define shmem_put_signal(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _put_signal), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _put_signal))(__VA_ARGS__)
#define shmem_put_signal_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _put_signal_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _put_signal_nbi))(__VA_ARGS__)
#define shmem_p(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _p), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _p))(__VA_ARGS__)
#define shmem_g(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA_CONST(shmem_ctx_, _g), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA_CONST(shmem_, _g))(__VA_ARGS__)
#define shmem_iput(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _iput), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _iput))(__VA_ARGS__)
#define shmem_iget(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _iget), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _iget))(__VA_ARGS__)
#define shmem_ibput(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _ibput), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _ibput))(__VA_ARGS__)
#define shmem_ibget(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_ctx_, _ibget), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_RMA(shmem_, _ibget))(__VA_ARGS__)
#define shmem_atomic_fetch(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_EXTENDED_CONST(shmem_ctx_, _atomic_fetch), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_EXTENDED_CONST(shmem_, _atomic_fetch))(__VA_ARGS__)
#define shmem_atomic_set(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_EXTENDED(shmem_ctx_, _atomic_set), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_EXTENDED(shmem_, _atomic_set))(__VA_ARGS__)
#define shmem_atomic_swap(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_EXTENDED(shmem_ctx_, _atomic_swap), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_EXTENDED(shmem_, _atomic_swap))(__VA_ARGS__)
#define shmem_atomic_compare_swap(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_compare_swap), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_compare_swap))(__VA_ARGS__)
#define shmem_atomic_fetch_inc(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_fetch_inc), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_fetch_inc))(__VA_ARGS__)
#define shmem_atomic_inc(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_inc), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_inc))(__VA_ARGS__)
#define shmem_atomic_fetch_add(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_fetch_add), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_fetch_add))(__VA_ARGS__)
#define shmem_atomic_add(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_add), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_add))(__VA_ARGS__)
#define shmem_atomic_fetch_and(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_fetch_and), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_fetch_and))(__VA_ARGS__)
#define shmem_atomic_and(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_and), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_and))(__VA_ARGS__)
#define shmem_atomic_fetch_or(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_fetch_or), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_fetch_or))(__VA_ARGS__)
#define shmem_atomic_or(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_or), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_or))(__VA_ARGS__)
#define shmem_atomic_fetch_xor(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_fetch_xor), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_fetch_xor))(__VA_ARGS__)
#define shmem_atomic_xor(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_xor), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_xor))(__VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_EXTENDED(shmem_ctx_, _atomic_fetch_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_EXTENDED(shmem_, _atomic_fetch_nbi))(__VA_ARGS__)
#define shmem_atomic_swap_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_EXTENDED(shmem_ctx_, _atomic_swap_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_EXTENDED(shmem_, _atomic_swap_nbi))(__VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_compare_swap_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_compare_swap_nbi))(__VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_fetch_inc_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_fetch_inc_nbi))(__VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO(shmem_ctx_, _atomic_fetch_add_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO(shmem_, _atomic_fetch_add_nbi))(__VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_fetch_and_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_fetch_and_nbi))(__VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_fetch_or_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_fetch_or_nbi))(__VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \
    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_AMO_BITWISE(shmem_ctx_, _atomic_fetch_xor_nbi), default: shmemi_no_routine_for_this_type), \
    SHMEMI_GENERIC_AMO_BITWISE(shmem_, _atomic_fetch_xor_nbi))(__VA_ARGS__)
#define shmem_fetch(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO_EXTENDED_CONST(shmem_, _fetch))(__VA_ARGS__)
#define shmem_set(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO_EXTENDED(shmem_, _set))(__VA_ARGS__)
#define shmem_swap(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO_EXTENDED(shmem_, _swap))(__VA_ARGS__)
#define shmem_cswap(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO(shmem_, _cswap))(__VA_ARGS__)
#define shmem_finc(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO(shmem_, _finc))(__VA_ARGS__)
#define shmem_inc(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO(shmem_, _inc))(__VA_ARGS__)
#define shmem_fadd(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO(shmem_, _fadd))(__VA_ARGS__)
#define shmem_add(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_OLD_AMO(shmem_, _add))(__VA_ARGS__)
#define shmem_wait_until(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until))(__VA_ARGS__)
#define shmem_wait_until_all(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until_all))(__VA_ARGS__)
#define shmem_wait_until_any(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until_any))(__VA_ARGS__)
#define shmem_wait_until_some(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until_some))(__VA_ARGS__)
#define shmem_wait_until_all_vector(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until_all_vector))(__VA_ARGS__)
#define shmem_wait_until_any_vector(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until_any_vector))(__VA_ARGS__)
#define shmem_wait_until_some_vector(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _wait_until_some_vector))(__VA_ARGS__)
#define shmem_test(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test))(__VA_ARGS__)
#define shmem_test_all(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test_all))(__VA_ARGS__)
#define shmem_test_any(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test_any))(__VA_ARGS__)
#define shmem_test_some(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test_some))(__VA_ARGS__)
#define shmem_test_all_vector(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test_all_vector))(__VA_ARGS__)
#define shmem_test_any_vector(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test_any_vector))(__VA_ARGS__)
#define shmem_test_some_vector(...) \
  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), SHMEMI_GENERIC_WAIT_VOLATILE(shmem_, _test_some_vector))(__VA_ARGS__)
#define shmem_broadcast(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _broadcast))(__VA_ARGS__)
#define shmem_collect(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _collect))(__VA_ARGS__)
#define shmem_fcollect(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _fcollect))(__VA_ARGS__)
#define shmem_alltoall(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _alltoall))(__VA_ARGS__)
#define shmem_alltoalls(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _alltoalls))(__VA_ARGS__)
#define shmem_and_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_BITWISE(shmem_, _and_reduce))(__VA_ARGS__)
#define shmem_or_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_BITWISE(shmem_, _or_reduce))(__VA_ARGS__)
#define shmem_xor_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_BITWISE(shmem_, _xor_reduce))(__VA_ARGS__)
#define shmem_max_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _max_reduce))(__VA_ARGS__)
#define shmem_min_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_RMA(shmem_, _min_reduce))(__VA_ARGS__)
#define shmem_sum_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_ARITH(shmem_, _sum_reduce))(__VA_ARGS__)
#define shmem_prod_reduce(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_ARITH(shmem_, _prod_reduce))(__VA_ARGS__)
#define shmem_sum_inscan(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_ARITH(shmem_, _sum_inscan))(__VA_ARGS__)
#define shmem_sum_exscan(...) \
  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_GENERIC_REDUCE_ARITH(shmem_, _sum_exscan))(__VA_ARGS__)

/* Names that are also functions. */
#define shmem_signal_set(...) _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), shmem_ctx_t: shmem_ctx_signal_set, default: shmem_signal_set)(__VA_ARGS__)
#define shmem_signal_add(...) _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), shmem_ctx_t: shmem_ctx_signal_add, default: shmem_signal_add)(__VA_ARGS__)
#define shmem_sync(...) _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)
