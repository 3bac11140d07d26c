/* generic.c: every type-generic name, in C11 by _Generic and in C++ by overloads, with and without a context. */
#include "check.h"

enum { N = 4 };
static uint64_t signal_word;
#define RIGHT ((me + 1) % npes)
#define LEFT ((me - 1 + npes) % npes)
#define ctx SHMEM_CTX_DEFAULT

#define RMA(NAME, TYPE)                                                                           \
  static TYPE NAME##_dest[64], NAME##_source[64];                                                 \
  static void NAME##_rma(void) {                                                                  \
    TYPE *dest = NAME##_dest, *source = NAME##_source, here[64];                                  \
    const TYPE *from = source;                                                                    \
    for (int i = 0; i < 64; i++) source[i] = VALUE(TYPE, me, i);                                  \
    shmem_barrier_all();                                                                          \
    shmem_put(dest, from, N, RIGHT), shmem_put(ctx, dest, source, N, RIGHT);                      \
    shmem_put_nbi(dest, source, N, RIGHT), shmem_put_nbi(ctx, dest, source, N, RIGHT);            \
    shmem_put_signal(dest, source, N, &signal_word, 1, SHMEM_SIGNAL_SET, RIGHT);                  \
    shmem_put_signal(ctx, dest, source, N, &signal_word, 1, SHMEM_SIGNAL_SET, RIGHT);             \
    shmem_put_signal_nbi(dest, source, N, &signal_word, 1, SHMEM_SIGNAL_SET, RIGHT);              \
    shmem_put_signal_nbi(ctx, dest, source, N, &signal_word, 1, SHMEM_SIGNAL_SET, RIGHT);         \
    shmem_p(dest + N, (TYPE)3, RIGHT), shmem_p(ctx, dest + N + 1, (TYPE)4, RIGHT);                \
    shmem_barrier_all();                                                                          \
    CHECK(dest[N - 1] == VALUE(TYPE, LEFT, N - 1) && dest[N] == (TYPE)3 && dest[N + 1] == (TYPE)4, #NAME " put, p"); \
    shmem_barrier_all();                                                                          \
    shmem_get(here, from, N, RIGHT), shmem_get(ctx, here, source, N, RIGHT);                      \
    shmem_get_nbi(here, source, N, RIGHT), shmem_get_nbi(ctx, here, source, N, RIGHT);            \
    shmem_quiet();                                                                                \
    CHECK(here[1] == VALUE(TYPE, RIGHT, 1), #NAME " get");                                        \
    CHECK(shmem_g(from + 1, RIGHT) == VALUE(TYPE, RIGHT, 1) && shmem_g(ctx, source + 1, RIGHT) == VALUE(TYPE, RIGHT, 1), #NAME " g"); \
    shmem_iput(dest, source, 2, 1, N, RIGHT), shmem_iput(ctx, dest, source, 2, 1, N, RIGHT);      \
    shmem_iget(here, source, 1, 2, N, RIGHT), shmem_iget(ctx, here, source, 1, 2, N, RIGHT);      \
    shmem_ibput(dest, source, 3, 2, 2, N, RIGHT), shmem_ibput(ctx, dest, source, 3, 2, 2, N, RIGHT); \
    shmem_ibget(here, source, 2, 3, 2, N, RIGHT), shmem_ibget(ctx, here, source, 2, 3, 2, N, RIGHT); \
    CHECK(here[2] == VALUE(TYPE, RIGHT, 3), #NAME " ibget");                                      \
    shmem_barrier_all();                                                                          \
    CHECK(dest[3] == VALUE(TYPE, LEFT, 2), #NAME " ibput");                                       \
    const shmem_team_t world = SHMEM_TEAM_WORLD;                                                  \
    CHECK(shmem_broadcast(world, dest, source, 1, 0) == 0 && dest[0] == VALUE(TYPE, 0, 0), #NAME); \
    shmem_barrier_all();                                                                          \
    CHECK(shmem_collect(world, dest, source, 1) == 0 && dest[npes - 1] == VALUE(TYPE, npes - 1, 0), #NAME); \
    shmem_barrier_all();                                                                          \
    CHECK(shmem_fcollect(world, dest, source, 1) == 0 && dest[npes - 1] == VALUE(TYPE, npes - 1, 0), #NAME); \
    shmem_barrier_all();                                                                          \
    CHECK(shmem_alltoall(world, dest, source, 1) == 0 && dest[npes - 1] == VALUE(TYPE, npes - 1, me), #NAME); \
    shmem_barrier_all();                                                                          \
    CHECK(shmem_alltoalls(world, dest, source, 1, 1, 1) == 0 && dest[npes - 1] == VALUE(TYPE, npes - 1, me), #NAME); \
    shmem_barrier_all();                                                                          \
    CHECK(shmem_max_reduce(world, dest, source, 1) == 0 && shmem_min_reduce(world, dest, source, 1) == 0, #NAME); \
    CHECK(shmem_sum_reduce(world, dest, source, 1) == 0 && shmem_prod_reduce(world, dest, source, 1) == 0, #NAME); \
    CHECK(shmem_sum_inscan(world, dest, source, 1) == 0 && shmem_sum_exscan(world, dest, source, 1) == 0, #NAME); \
    shmem_barrier_all();                                                                          \
  }
DISTINCT_RMA_TYPES(RMA)

#define AMO(NAME, TYPE)                                                                           \
  static void NAME##_amo(void) {                                                                  \
    TYPE *at = NAME##_dest, result = 0;                                                           \
    shmem_atomic_set(at, (TYPE)9, me);                                                            \
    shmem_atomic_set(ctx, at, (TYPE)10, me);                                                      \
    shmem_atomic_add(at, (TYPE)1, me), shmem_atomic_add(ctx, at, (TYPE)1, me);                    \
    shmem_atomic_inc(at, me), shmem_atomic_inc(ctx, at, me);                                      \
    CHECK(shmem_atomic_fetch_add(at, (TYPE)1, me) == 14 && shmem_atomic_fetch_add(ctx, at, (TYPE)1, me) == 15, #NAME); \
    CHECK(shmem_atomic_fetch_inc(at, me) == 16 && shmem_atomic_fetch_inc(ctx, at, me) == 17, #NAME); \
    CHECK(shmem_atomic_compare_swap(at, (TYPE)18, (TYPE)19, me) == 18, #NAME);                    \
    CHECK(shmem_atomic_compare_swap(ctx, at, (TYPE)18, (TYPE)20, me) == 19, #NAME);               \
    shmem_atomic_fetch_add_nbi(&result, at, (TYPE)1, me), shmem_atomic_fetch_add_nbi(ctx, &result, at, (TYPE)1, me); \
    shmem_atomic_fetch_inc_nbi(&result, at, me), shmem_atomic_fetch_inc_nbi(ctx, &result, at, me); \
    shmem_atomic_compare_swap_nbi(&result, at, (TYPE)23, (TYPE)24, me);                           \
    shmem_atomic_compare_swap_nbi(ctx, &result, at, (TYPE)1, (TYPE)2, me);                        \
    shmem_quiet();                                                                                \
    CHECK(result == 24, #NAME);                                                                   \
    volatile TYPE *var = at;                                                                      \
    shmem_wait_until(at, SHMEM_CMP_EQ, (TYPE)24), shmem_wait_until(var, SHMEM_CMP_EQ, (TYPE)24);  \
    CHECK(shmem_test(at, SHMEM_CMP_EQ, (TYPE)24) && shmem_test(var, SHMEM_CMP_NE, (TYPE)23), #NAME); \
    size_t indices[1];                                                                            \
    const TYPE is[1] = {24};                                                                      \
    shmem_wait_until_all(at, 1, NULL, SHMEM_CMP_EQ, (TYPE)24);                                    \
    shmem_wait_until_all_vector(at, 1, NULL, SHMEM_CMP_EQ, is);                                   \
    CHECK(shmem_wait_until_any(at, 1, NULL, SHMEM_CMP_EQ, (TYPE)24) == 0 && shmem_wait_until_any_vector(at, 1, NULL, SHMEM_CMP_EQ, is) == 0, #NAME); \
    CHECK(shmem_wait_until_some(at, 1, indices, NULL, SHMEM_CMP_EQ, (TYPE)24) == 1 && shmem_wait_until_some_vector(at, 1, indices, NULL, SHMEM_CMP_EQ, is) == 1, #NAME); \
    CHECK(shmem_test_all(at, 1, NULL, SHMEM_CMP_EQ, (TYPE)24) == 1 && shmem_test_all_vector(at, 1, NULL, SHMEM_CMP_EQ, is) == 1, #NAME); \
    CHECK(shmem_test_any(at, 1, NULL, SHMEM_CMP_EQ, (TYPE)24) == 0 && shmem_test_any_vector(at, 1, NULL, SHMEM_CMP_EQ, is) == 0, #NAME); \
    CHECK(shmem_test_some(at, 1, indices, NULL, SHMEM_CMP_EQ, (TYPE)24) == 1 && shmem_test_some_vector(at, 1, indices, NULL, SHMEM_CMP_EQ, is) == 1, #NAME); \
  }
DISTINCT_AMO_TYPES(AMO)

#define EXTENDED(NAME, TYPE)                                                                      \
  static void NAME##_extended(void) {                                                             \
    TYPE *at = NAME##_dest, result = 0;                                                           \
    const TYPE *constant = at;                                                                    \
    shmem_atomic_set(at, (TYPE)3, me), shmem_atomic_set(ctx, at, (TYPE)4, me);                    \
    CHECK(shmem_atomic_fetch(constant, me) == 4 && shmem_atomic_fetch(ctx, at, me) == 4, #NAME);  \
    CHECK(shmem_atomic_swap(at, (TYPE)5, me) == 4 && shmem_atomic_swap(ctx, at, (TYPE)6, me) == 5, #NAME); \
    shmem_atomic_fetch_nbi(&result, at, me), shmem_atomic_fetch_nbi(ctx, &result, at, me);        \
    shmem_quiet();                                                                                \
    CHECK(result == 6, #NAME);                                                                    \
    shmem_atomic_swap_nbi(&result, at, (TYPE)7, me), shmem_atomic_swap_nbi(ctx, &result, at, (TYPE)8, me); \
    shmem_quiet();                                                                                \
    CHECK(result == 7, #NAME);                                                                    \
  }
DISTINCT_AMO_EXTENDED_TYPES(EXTENDED)

#define BITWISE(NAME, TYPE)                                                                       \
  static TYPE NAME##_bits;                                                                        \
  static void NAME##_bitwise(void) {                                                              \
    TYPE *at = &NAME##_bits, result = 0;                                                           \
    shmem_atomic_set(at, (TYPE)12, me);                                                           \
    shmem_atomic_and(at, (TYPE)4, me), shmem_atomic_or(at, (TYPE)2, me), shmem_atomic_xor(at, (TYPE)1, me); \
    shmem_atomic_and(ctx, at, (TYPE)7, me), shmem_atomic_or(ctx, at, (TYPE)8, me), shmem_atomic_xor(ctx, at, (TYPE)1, me); \
    CHECK(shmem_atomic_fetch_and(at, (TYPE)15, me) == 14 && shmem_atomic_fetch_and(ctx, at, (TYPE)14, me) == 14, #NAME); \
    CHECK(shmem_atomic_fetch_or(at, (TYPE)1, me) == 14 && shmem_atomic_fetch_or(ctx, at, (TYPE)1, me) == 15, #NAME); \
    CHECK(shmem_atomic_fetch_xor(at, (TYPE)1, me) == 15 && shmem_atomic_fetch_xor(ctx, at, (TYPE)1, me) == 14, #NAME); \
    shmem_atomic_fetch_and_nbi(&result, at, (TYPE)15, me), shmem_atomic_fetch_and_nbi(ctx, &result, at, (TYPE)15, me); \
    shmem_atomic_fetch_or_nbi(&result, at, (TYPE)0, me), shmem_atomic_fetch_or_nbi(ctx, &result, at, (TYPE)0, me); \
    shmem_atomic_fetch_xor_nbi(&result, at, (TYPE)0, me), shmem_atomic_fetch_xor_nbi(ctx, &result, at, (TYPE)0, me); \
    shmem_quiet();                                                                                \
    CHECK(result == 15, #NAME);                                                                   \
  }
DISTINCT_AMO_BITWISE_TYPES(BITWISE)

#define REDUCE(NAME, TYPE)                                                                        \
  static TYPE NAME##_reduced[1], NAME##_given[1];                                                 \
  static void NAME##_reduce(void) {                                                               \
    TYPE *dest = NAME##_reduced, *source = NAME##_given;                                          \
    const shmem_team_t world = SHMEM_TEAM_WORLD;                                                  \
    source[0] = 6;                                                                                \
    CHECK(shmem_and_reduce(world, dest, source, 1) == 0 && dest[0] == 6, #NAME);                  \
    CHECK(shmem_or_reduce(world, dest, source, 1) == 0 && dest[0] == 6, #NAME);                   \
    CHECK(shmem_xor_reduce(world, dest, source, 1) == 0 && dest[0] == (npes % 2 ? 6 : 0), #NAME); \
  }
DISTINCT_REDUCE_BITWISE_TYPES(REDUCE)

#ifndef __cplusplus
/* Names before OpenSHMEM 1.4. */
static void old(void) {
  static long at;
  shmem_set(&at, 3L, me);
  shmem_add(&at, 1L, me);
  shmem_inc(&at, me);
  CHECK(shmem_fadd(&at, 1L, me) == 5 && shmem_finc(&at, me) == 6 && shmem_cswap(&at, 7L, 8L, me) == 7, "old");
  CHECK(shmem_swap(&at, 9L, me) == 8 && shmem_fetch(&at, me) == 9, "old");
}
#endif

int main(void) {
  begin();
#define RUN_RMA(NAME, TYPE) NAME##_rma();
#define RUN_AMO(NAME, TYPE) NAME##_amo();
#define RUN_EXTENDED(NAME, TYPE) NAME##_extended();
#define RUN_BITWISE(NAME, TYPE) NAME##_bitwise();
#define RUN_REDUCE(NAME, TYPE) NAME##_reduce();
  DISTINCT_RMA_TYPES(RUN_RMA)
  DISTINCT_AMO_TYPES(RUN_AMO)
  DISTINCT_AMO_EXTENDED_TYPES(RUN_EXTENDED)
  DISTINCT_AMO_BITWISE_TYPES(RUN_BITWISE)
  DISTINCT_REDUCE_BITWISE_TYPES(RUN_REDUCE)
  shmem_signal_set(&signal_word, 1, RIGHT), shmem_signal_set(ctx, &signal_word, 1, RIGHT);
  shmem_signal_add(&signal_word, 0, RIGHT), shmem_signal_add(ctx, &signal_word, 0, RIGHT);
  shmem_barrier_all();
  CHECK(signal_word == 1, "signal");
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0, "sync");
  static long words[SHMEM_SYNC_SIZE];
  shmem_sync(0, 0, npes, words);
#ifndef __cplusplus
  old();
#endif
  return end();
}
