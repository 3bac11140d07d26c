/* amo.c: every atomic, against a plain model on values of its own, and all PEs at once on one word. */
#include "check.h"

static long turns[1];

/* op on the word of PE `pe`; `expected` is what the word holds afterwards, `before` what a fetching atomic gives. */
#define STEP(NAME, TYPE, call, gives, before, expected)                                        \
  do {                                                                                         \
    shmem_##NAME##_atomic_set(&NAME##_word[me], start, pe);                                    \
    shmem_quiet();                                                                             \
    TYPE result = start;                                                                       \
    call;                                                                                      \
    shmem_quiet();                                                                             \
    TYPE now = shmem_##NAME##_atomic_fetch(&NAME##_word[me], pe);                              \
    CHECK(!(gives) || result == (TYPE)(before), #call " gave %g", (double)result);             \
    CHECK(now == (TYPE)(expected), #call " left %g", (double)now);                             \
  } while (0)

enum { MOST_PES = 64 };

#define EXTENDED(NAME, TYPE)                                                                                      \
  static TYPE NAME##_word[MOST_PES];                                                                              \
  static void NAME##_extended(int pe) {                                                                           \
    const TYPE start = 17, value = 42;                                                                            \
    const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                                                                    \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_set(&NAME##_word[me], value, pe), 0, 0, value);                        \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_set(ctx, &NAME##_word[me], value, pe), 0, 0, value);               \
    STEP(NAME, TYPE, result = shmem_##NAME##_atomic_fetch(&NAME##_word[me], pe), 1, start, start);                \
    STEP(NAME, TYPE, result = shmem_ctx_##NAME##_atomic_fetch(ctx, &NAME##_word[me], pe), 1, start, start);       \
    STEP(NAME, TYPE, result = shmem_##NAME##_atomic_swap(&NAME##_word[me], value, pe), 1, start, value);          \
    STEP(NAME, TYPE, result = shmem_ctx_##NAME##_atomic_swap(ctx, &NAME##_word[me], value, pe), 1, start, value); \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_fetch_nbi(&result, &NAME##_word[me], pe), 1, start, start);            \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, &result, &NAME##_word[me], pe), 1, start, start);   \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_swap_nbi(&result, &NAME##_word[me], value, pe), 1, start, value);      \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_swap_nbi(ctx, &result, &NAME##_word[me], value, pe), 1, start, value); \
  }
AMO_EXTENDED_TYPES(EXTENDED)

#define STANDARD(NAME, TYPE)                                                                                      \
  static TYPE NAME##_shared;                                                                                      \
  static void NAME##_standard(int pe) {                                                                           \
    const TYPE start = 17, value = (TYPE)-4, sum = (TYPE)(start + value), next = 18;                              \
    const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                                                                    \
    TYPE *at = &NAME##_word[me];                                                                                  \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_add(at, value, pe), 0, 0, sum);                                        \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_add(ctx, at, value, pe), 0, 0, sum);                               \
    STEP(NAME, TYPE, result = shmem_##NAME##_atomic_fetch_add(at, value, pe), 1, start, sum);                     \
    STEP(NAME, TYPE, result = shmem_ctx_##NAME##_atomic_fetch_add(ctx, at, value, pe), 1, start, sum);            \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_fetch_add_nbi(&result, at, value, pe), 1, start, sum);                 \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, &result, at, value, pe), 1, start, sum);        \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_inc(at, pe), 0, 0, next);                                              \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_inc(ctx, at, pe), 0, 0, next);                                     \
    STEP(NAME, TYPE, result = shmem_##NAME##_atomic_fetch_inc(at, pe), 1, start, next);                           \
    STEP(NAME, TYPE, result = shmem_ctx_##NAME##_atomic_fetch_inc(ctx, at, pe), 1, start, next);                  \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_fetch_inc_nbi(&result, at, pe), 1, start, next);                       \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_fetch_inc_nbi(ctx, &result, at, pe), 1, start, next);              \
    STEP(NAME, TYPE, result = shmem_##NAME##_atomic_compare_swap(at, start, value, pe), 1, start, value);         \
    STEP(NAME, TYPE, result = shmem_##NAME##_atomic_compare_swap(at, value, value, pe), 1, start, start);         \
    STEP(NAME, TYPE, result = shmem_ctx_##NAME##_atomic_compare_swap(ctx, at, start, value, pe), 1, start, value); \
    STEP(NAME, TYPE, shmem_##NAME##_atomic_compare_swap_nbi(&result, at, start, value, pe), 1, start, value);     \
    STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_compare_swap_nbi(ctx, &result, at, value, value, pe), 1, start, start); \
  }                                                                                                               \
  /* No update of any PE is lost: all add to, and swap their way into, PE 0's word. */                            \
  static void NAME##_contended(void) {                                                                            \
    enum { ROUNDS = 50 };                                                                                         \
    NAME##_shared = 0;                                                                                            \
    shmem_barrier_all();                                                                                          \
    for (int i = 0; i < ROUNDS; i++) {                                                                            \
      shmem_##NAME##_atomic_add(&NAME##_shared, 2, 0);                                                            \
      shmem_##NAME##_atomic_inc(&NAME##_shared, 0);                                                               \
      for (TYPE old = shmem_##NAME##_atomic_fetch(&NAME##_shared, 0), seen;; old = seen) {                        \
        seen = shmem_##NAME##_atomic_compare_swap(&NAME##_shared, old, (TYPE)(old + 1), 0);                       \
        if (seen == old) break;                                                                                   \
      }                                                                                                           \
    }                                                                                                             \
    shmem_barrier_all();                                                                                          \
    TYPE total = shmem_##NAME##_g(&NAME##_shared, 0);                                                             \
    CHECK(total == (TYPE)(4 * ROUNDS * npes), #NAME ": %g", (double)total);                                       \
    shmem_barrier_all();                                                                                          \
  }
AMO_TYPES(STANDARD)

#define BITWISE(NAME, TYPE)                                                                                       \
  static void NAME##_bitwise(int pe) {                                                                            \
    const TYPE start = 0x5a, value = 0x33;                                                                        \
    const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                                                                    \
    TYPE *at = &NAME##_word[me];                                                                                  \
    BITWISE_OP(NAME, TYPE, and, start & value)                                                                    \
    BITWISE_OP(NAME, TYPE, or, start | value)                                                                     \
    BITWISE_OP(NAME, TYPE, xor, start ^ value)                                                                    \
  }
#define BITWISE_OP(NAME, TYPE, op, expected)                                                                      \
  STEP(NAME, TYPE, shmem_##NAME##_atomic_##op(at, value, pe), 0, 0, expected);                                    \
  STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_##op(ctx, at, value, pe), 0, 0, expected);                           \
  STEP(NAME, TYPE, result = shmem_##NAME##_atomic_fetch_##op(at, value, pe), 1, start, expected);                 \
  STEP(NAME, TYPE, result = shmem_ctx_##NAME##_atomic_fetch_##op(ctx, at, value, pe), 1, start, expected);        \
  STEP(NAME, TYPE, shmem_##NAME##_atomic_fetch_##op##_nbi(&result, at, value, pe), 1, start, expected);           \
  STEP(NAME, TYPE, shmem_ctx_##NAME##_atomic_fetch_##op##_nbi(ctx, &result, at, value, pe), 1, start, expected);
AMO_BITWISE_TYPES(BITWISE)

#define OLD(NAME, TYPE)                                                                                           \
  static void NAME##_old(int pe) {                                                                                \
    const TYPE start = 17, value = 5;                                                                             \
    TYPE *at = &NAME##_word[me];                                                                                  \
    STEP(NAME, TYPE, shmem_##NAME##_add(at, value, pe), 0, 0, start + value);                                     \
    STEP(NAME, TYPE, result = shmem_##NAME##_fadd(at, value, pe), 1, start, start + value);                       \
    STEP(NAME, TYPE, shmem_##NAME##_inc(at, pe), 0, 0, start + 1);                                                \
    STEP(NAME, TYPE, result = shmem_##NAME##_finc(at, pe), 1, start, start + 1);                                  \
    STEP(NAME, TYPE, result = shmem_##NAME##_cswap(at, start, value, pe), 1, start, value);                       \
  }
OLD_AMO_TYPES(OLD)
#define OLD_EXTENDED(NAME, TYPE)                                                                                  \
  static void NAME##_old_extended(int pe) {                                                                       \
    const TYPE start = 17, value = 5;                                                                             \
    TYPE *at = &NAME##_word[me];                                                                                  \
    STEP(NAME, TYPE, shmem_##NAME##_set(at, value, pe), 0, 0, value);                                             \
    STEP(NAME, TYPE, result = shmem_##NAME##_fetch(at, pe), 1, start, start);                                     \
    STEP(NAME, TYPE, result = shmem_##NAME##_swap(at, value, pe), 1, start, value);                               \
  }
OLD_AMO_EXTENDED_TYPES(OLD_EXTENDED)

int main(void) {
  begin();
  for (int pe = 0; pe < npes; pe++) {
#define RUN_EXTENDED(NAME, TYPE) NAME##_extended(pe);
#define RUN_STANDARD(NAME, TYPE) NAME##_standard(pe);
#define RUN_BITWISE(NAME, TYPE) NAME##_bitwise(pe);
#define RUN_OLD(NAME, TYPE) NAME##_old(pe);
#define RUN_OLD_EXTENDED(NAME, TYPE) NAME##_old_extended(pe);
    AMO_EXTENDED_TYPES(RUN_EXTENDED)
    AMO_TYPES(RUN_STANDARD)
    AMO_BITWISE_TYPES(RUN_BITWISE)
    OLD_AMO_TYPES(RUN_OLD)
    OLD_AMO_EXTENDED_TYPES(RUN_OLD_EXTENDED)
  }
#define RUN_CONTENDED(NAME, TYPE) NAME##_contended();
  AMO_TYPES(RUN_CONTENDED)
  /* Every PE gets another ticket. */
  long ticket = shmem_long_atomic_fetch_inc(turns, 0);
  CHECK(ticket >= 0 && ticket < npes, "ticket %ld", ticket);
  shmem_barrier_all();
  CHECK(shmem_long_g(turns, 0) == npes, "tickets");
  return end();
}
