/* wait.c: every wait and test, with variables that neighbours write and with ones that hold already; masks, vectors, empty sets. */
#include "check.h"

enum { N = 8 };
#define LEFT ((me - 1 + npes) % npes)
#define RIGHT ((me + 1) % npes)

#define WAITS(NAME, TYPE)                                                                                          \
  static TYPE NAME##_vars[N];                                                                                      \
  static void NAME##_waits(void) {                                                                                 \
    TYPE *vars = NAME##_vars, targets[N];                                                                          \
    int masked[N];                                                                                                 \
    size_t indices[N];                                                                                             \
    for (int i = 0; i < N; i++) vars[i] = 0, targets[i] = (TYPE)(i + 10), masked[i] = i % 2;                       \
    shmem_barrier_all();                                                                                           \
    /* Nothing has been written. */                                                                                \
    CHECK(!shmem_##NAME##_test(vars, SHMEM_CMP_NE, 0), #NAME);                                                     \
    CHECK(shmem_##NAME##_test(vars, SHMEM_CMP_EQ, 0) && shmem_##NAME##_test(vars, SHMEM_CMP_LE, 0), #NAME);        \
    CHECK(shmem_##NAME##_test(vars, SHMEM_CMP_GE, 0) && shmem_##NAME##_test(vars, SHMEM_CMP_LT, 1), #NAME);        \
    CHECK(!shmem_##NAME##_test(vars, SHMEM_CMP_GT, 0), #NAME);                                                     \
    CHECK(!shmem_##NAME##_test_all(vars, N, NULL, SHMEM_CMP_GT, 0), #NAME);                                        \
    CHECK(shmem_##NAME##_test_any(vars, N, NULL, SHMEM_CMP_GT, 0) == SIZE_MAX, #NAME);                             \
    CHECK(shmem_##NAME##_test_some(vars, N, indices, NULL, SHMEM_CMP_GT, 0) == 0, #NAME);                          \
    CHECK(!shmem_##NAME##_test_all_vector(vars, N, NULL, SHMEM_CMP_EQ, targets), #NAME);                           \
    CHECK(shmem_##NAME##_test_any_vector(vars, N, NULL, SHMEM_CMP_EQ, targets) == SIZE_MAX, #NAME);                \
    CHECK(shmem_##NAME##_test_some_vector(vars, N, indices, NULL, SHMEM_CMP_EQ, targets) == 0, #NAME);             \
    /* Empty sets. */                                                                                              \
    const int none[N] = {1, 1, 1, 1, 1, 1, 1, 1};                                                                  \
    CHECK(shmem_##NAME##_test_all(vars, 0, NULL, SHMEM_CMP_GT, 0) && shmem_##NAME##_test_all(vars, N, none, SHMEM_CMP_GT, 0), #NAME); \
    CHECK(shmem_##NAME##_wait_until_any(vars, N, none, SHMEM_CMP_GT, 0) == SIZE_MAX, #NAME);                       \
    CHECK(shmem_##NAME##_wait_until_some(vars, 0, indices, NULL, SHMEM_CMP_GT, 0) == 0, #NAME);                    \
    CHECK(shmem_##NAME##_test_any_vector(vars, 0, NULL, SHMEM_CMP_GT, targets) == SIZE_MAX, #NAME);                \
    shmem_##NAME##_wait_until_all(vars, N, none, SHMEM_CMP_GT, 0);                                                 \
    shmem_##NAME##_wait_until_all_vector(vars, 0, NULL, SHMEM_CMP_GT, targets);                                    \
    shmem_barrier_all();                                                                                           \
    /* The neighbour writes one. */                                                                                \
    shmem_##NAME##_p(vars + 3, 13, RIGHT);                                                                         \
    shmem_quiet();                                                                                                 \
    shmem_##NAME##_wait_until(vars + 3, SHMEM_CMP_EQ, 13);                                                         \
    CHECK(shmem_##NAME##_wait_until_any(vars, N, NULL, SHMEM_CMP_NE, 0) == 3, #NAME);                              \
    CHECK(shmem_##NAME##_wait_until_some(vars, N, indices, NULL, SHMEM_CMP_GE, 13) == 1 && indices[0] == 3, #NAME); \
    CHECK(shmem_##NAME##_wait_until_any_vector(vars, N, NULL, SHMEM_CMP_EQ, targets) == 3, #NAME);                 \
    CHECK(shmem_##NAME##_test_any(vars, N, NULL, SHMEM_CMP_GT, 12) == 3, #NAME);                                   \
    CHECK(shmem_##NAME##_test_any(vars, N, masked, SHMEM_CMP_GT, 12) == SIZE_MAX, #NAME ": 3 is masked");          \
    CHECK(shmem_##NAME##_test_some_vector(vars, N, indices, NULL, SHMEM_CMP_EQ, targets) == 1 && indices[0] == 3, #NAME); \
    shmem_barrier_all();                                                                                           \
    /* ... then those that are not masked, then all. */                                                            \
    for (int i = 0; i < N; i += 2) shmem_##NAME##_p(vars + i, (TYPE)(i + 10), RIGHT);                              \
    shmem_quiet();                                                                                                 \
    shmem_##NAME##_wait_until_all(vars, N, masked, SHMEM_CMP_GE, 10);                                              \
    shmem_##NAME##_wait_until_all_vector(vars, N, masked, SHMEM_CMP_EQ, targets);                                  \
    CHECK(shmem_##NAME##_test_all(vars, N, masked, SHMEM_CMP_NE, 0), #NAME);                                       \
    CHECK(!shmem_##NAME##_test_all(vars, N, NULL, SHMEM_CMP_NE, 0), #NAME);                                        \
    CHECK(shmem_##NAME##_test_some(vars, N, indices, masked, SHMEM_CMP_NE, 0) == N / 2, #NAME);                    \
    shmem_barrier_all();                                                                                           \
    for (int i = 1; i < N; i += 2) shmem_##NAME##_p(vars + i, (TYPE)(i + 10), RIGHT);                              \
    shmem_quiet();                                                                                                 \
    shmem_##NAME##_wait_until_all_vector(vars, N, NULL, SHMEM_CMP_EQ, targets);                                    \
    shmem_##NAME##_wait_until_all(vars, N, NULL, SHMEM_CMP_LT, 10 + N);                                            \
    CHECK(shmem_##NAME##_test_all_vector(vars, N, NULL, SHMEM_CMP_EQ, targets), #NAME);                            \
    CHECK(shmem_##NAME##_wait_until_some_vector(vars, N, indices, NULL, SHMEM_CMP_EQ, targets) == N, #NAME);       \
    for (int i = 0; i < N; i++) CHECK(indices[i] < N, #NAME);                                                      \
    shmem_barrier_all();                                                                                           \
  }
WAIT_TYPES(WAITS)

#define OLD_WAITS(NAME, TYPE)                                                                                      \
  static void NAME##_old_wait(void) {                                                                              \
    NAME##_vars[0] = 0;                                                                                            \
    shmem_barrier_all();                                                                                           \
    shmem_##NAME##_p(NAME##_vars, 4, RIGHT);                                                                       \
    shmem_quiet();                                                                                                 \
    shmem_##NAME##_wait(NAME##_vars, 0);                                                                           \
    CHECK(NAME##_vars[0] == 4, #NAME);                                                                             \
    shmem_barrier_all();                                                                                           \
  }
OLD_WAIT_TYPES(OLD_WAITS)

/* A word goes round the ring, each PE waiting for the one before. */
static volatile long token;
static uint64_t word;
static void ring(void) {
  for (long round = 1; round <= 20; round++) {
    if (me == 0) shmem_long_p((long *)&token, round, RIGHT);
    (shmem_wait_until)(&token, SHMEM_CMP_GE, round);
    if (me != 0) shmem_long_p((long *)&token, round, RIGHT);
    shmem_quiet();
  }
  shmem_barrier_all();
  token = 0;
  shmem_barrier_all();
  shmem_long_p((long *)&token, 1, RIGHT);
  shmem_wait(&token, 0);
  CHECK(token == 1, "shmem_wait");
  shmem_barrier_all();
  for (int pe = 0; pe < npes; pe++) (shmem_signal_add)(&word, 2, pe);
  CHECK(shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 2 * (uint64_t)npes) == 2 * (uint64_t)npes, "signal_add");
  shmem_barrier_all();
  (shmem_signal_set)(&word, 5, RIGHT);
  shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 5);
  CHECK(shmem_signal_fetch(&word) == 5, "signal_fetch");
  shmem_barrier_all();
  shmem_ctx_signal_set(SHMEM_CTX_DEFAULT, &word, 6, RIGHT);
  shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 6);
  shmem_barrier_all();
  shmem_ctx_signal_add(SHMEM_CTX_DEFAULT, &word, 1, RIGHT);
  shmem_signal_wait_until(&word, SHMEM_CMP_GT, 6);
}

int main(void) {
  begin();
#define RUN(NAME, TYPE) NAME##_waits();
  WAIT_TYPES(RUN)
#define RUN_OLD(NAME, TYPE) NAME##_old_wait();
  OLD_WAIT_TYPES(RUN_OLD)
  ring();
  return end();
}
