/* waits.c: a ring of signals, and one all-to-all whose receivers wait in every way there is.
 *
 * After OpenSHMEM 1.6: 9.9 (put_signal), 9.10 (wait_until and test: one, all, any, some, vectors). */
#include "check.h"

/* A message travels around all PEs; each passes on what it received, when its signal says that it is there. */
static uint64_t arrived;
static void a_message_goes_around(void) {
  enum { WORDS = 2048 };
  int next = (me + 1) % npes;
  uint64_t *inbox = shmem_calloc(WORDS, sizeof *inbox);
  if (me == 0) {
    uint64_t *message = malloc(WORDS * sizeof *message);
    for (uint64_t i = 0; i < WORDS; i++) message[i] = 7 * i;
    shmem_uint64_put_signal(inbox, message, WORDS, &arrived, 1, SHMEM_SIGNAL_SET, next);
    free(message);
    CHECK(shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1) == 1, "the signal");
  } else {
    shmem_uint64_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    shmem_uint64_put_signal(inbox, inbox, WORDS, &arrived, 1, SHMEM_SIGNAL_SET, next);
  }
  for (uint64_t i = 0; i < WORDS; i++) CHECK(inbox[i] == 7 * i, "%lu: %lu", (unsigned long)i, (unsigned long)inbox[i]);
  CHECK(shmem_signal_fetch(&arrived) == 1, "fetch");
  shmem_free(inbox);
}

/* Everybody sends N numbers to everybody, then raises its flag there. What arrives adds up to 0 + 1 + ... + N n - 1. */
enum { N = 100 };
struct exchange {
  int *numbers; /* N a PE */
  int *flags;   /* one a PE */
  int *status;  /* 1: taken already */
  size_t *indices;
  long sum;
};

static struct exchange sent(void) {
  struct exchange x = {shmem_malloc((size_t)(N * npes) * sizeof(int)), shmem_calloc((size_t)npes, sizeof(int)),
                       calloc((size_t)npes, sizeof(int)), calloc((size_t)npes, sizeof(size_t)), 0};
  int mine[N];
  for (int i = 0; i < N; i++) mine[i] = me * N + i;
  for (int pe = 0; pe < npes; pe++) shmem_int_put_nbi(&x.numbers[me * N], mine, N, pe);
  shmem_fence();
  for (int pe = 0; pe < npes; pe++) shmem_int_atomic_set(&x.flags[me], 1 + me % 2, pe);
  shmem_quiet();
  return x;
}

static void take(struct exchange *x, size_t from) {
  CHECK(from < (size_t)npes && !x->status[from], "from %zu", from);
  for (int i = 0; i < N; i++) x->sum += x->numbers[from * N + (size_t)i];
  x->status[from] = 1;
}

static void done(struct exchange *x, const char *how) {
  long last = (long)N * npes - 1;
  CHECK(x->sum == last * (last + 1) / 2, "%s: %ld", how, x->sum);
  shmem_barrier_all();
  shmem_free(x->flags);
  shmem_free(x->numbers);
  free(x->status);
  free(x->indices);
}

static void waiting_for_all(void) {
  struct exchange x = sent();
  shmem_int_wait_until_all(x.flags, (size_t)npes, NULL, SHMEM_CMP_NE, 0);
  for (int pe = 0; pe < npes; pe++) take(&x, (size_t)pe);
  done(&x, "all");
}

static void waiting_for_any(void) {
  struct exchange x = sent();
  for (int i = 0; i < npes; i++) take(&x, shmem_int_wait_until_any(x.flags, (size_t)npes, x.status, SHMEM_CMP_NE, 0));
  CHECK(shmem_int_wait_until_any(x.flags, (size_t)npes, x.status, SHMEM_CMP_NE, 0) == SIZE_MAX, "nobody is left");
  done(&x, "any");
}

static void waiting_for_any_of_different_values(void) {
  struct exchange x = sent();
  int *values = malloc((size_t)npes * sizeof(int));
  for (int pe = 0; pe < npes; pe++) values[pe] = 1 + pe % 2;
  for (int i = 0; i < npes; i++) take(&x, shmem_int_wait_until_any_vector(x.flags, (size_t)npes, x.status, SHMEM_CMP_EQ, values));
  free(values);
  done(&x, "any, by vector");
}

static void waiting_for_some(void) {
  struct exchange x = sent();
  size_t found;
  while ((found = shmem_int_wait_until_some(x.flags, (size_t)npes, x.indices, x.status, SHMEM_CMP_NE, 0)) > 0)
    for (size_t i = 0; i < found; i++) take(&x, x.indices[i]);
  done(&x, "some");
}

/* Tests return at once; the time between them is the program's own. */
static void testing_for_any_and_some(void) {
  struct exchange x = sent();
  for (int left = npes; left > 0;) {
    size_t one = shmem_int_test_any(x.flags, (size_t)npes, x.status, SHMEM_CMP_NE, 0);
    if (one != SIZE_MAX) take(&x, one), left--;
  }
  done(&x, "test any");
  x = sent();
  for (int left = npes; left > 0;) {
    size_t found = shmem_int_test_some(x.flags, (size_t)npes, x.indices, x.status, SHMEM_CMP_NE, 0);
    for (size_t i = 0; i < found; i++) take(&x, x.indices[i]);
    left -= (int)found;
  }
  done(&x, "test some");
}

/* A waiting routine of the program's own, from shmem_test: PE 0 finds who came first. */
static long updates[64];
static void a_wait_of_ones_own(void) {
  if (me == 0 && npes > 1) {
    int i = 0;
    while (!shmem_long_test(&updates[i], SHMEM_CMP_NE, 0)) i = (i + 1) % npes;
    CHECK(i > 0 && updates[i] == i, "%d: %ld", i, updates[i]);
  } else if (me > 0) {
    shmem_long_atomic_set(&updates[me], me, 0);
  }
  shmem_barrier_all();
}

int main(void) {
  begin();
  a_message_goes_around();
  waiting_for_all();
  waiting_for_any();
  waiting_for_any_of_different_values();
  waiting_for_some();
  testing_for_any_and_some();
  a_wait_of_ones_own();
  return end();
}
