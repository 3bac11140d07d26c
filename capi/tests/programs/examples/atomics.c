/* atomics.c: each fetching and non-fetching atomic at its usual work, and the four ways to get atomicity wrong, done right.
 *
 * After OpenSHMEM 1.6: 3.2 (atomicity guarantees: the scenarios there are undefined; here are their defined counterparts), 9.8 (atomics). */
#include "check.h"

/* add and fetch_add: the old value is that from before, and nothing is lost. */
static int sum = 22;
static long tickets, taken[64 * 16];
static void additions(void) {
  shmem_int_atomic_add(&sum, 44, 0);
  enum { EACH = 16 };
  for (int i = 0; i < EACH; i++) {
    long ticket = shmem_long_atomic_fetch_add(&tickets, 1, npes - 1);
    CHECK(ticket >= 0 && ticket < EACH * npes, "%ld", ticket);
    shmem_long_atomic_inc(&taken[ticket], npes - 1);
  }
  shmem_barrier_all();
  CHECK(sum == (me == 0 ? 22 + 44 * npes : 22), "%d", sum);
  if (me == npes - 1)
    for (int i = 0; i < EACH * npes; i++) CHECK(taken[i] == 1, "ticket %d: %ld times", i, taken[i]);
}

/* inc and fetch_inc, by one PE only. */
static int counter = 74;
static void increments(void) {
  int there = 1 % npes, old = -1;
  if (me == 0) {
    shmem_int_atomic_inc(&counter, there);
    old = shmem_int_atomic_fetch_inc(&counter, there);
  }
  shmem_barrier_all();
  CHECK(counter == (me == there ? 76 : 74), "%d", counter);
  CHECK(old == (me == 0 ? 75 : -1), "%d", old);
}

/* compare_swap: of all who try, one finds the old value. */
static int winner = -1;
static long wins;
static void a_race(void) {
  int before = shmem_int_atomic_compare_swap(&winner, -1, me, 0);
  if (before == -1) shmem_long_atomic_inc(&wins, 0);
  shmem_barrier_all();
  if (me == 0) CHECK(wins == 1 && winner >= 0 && winner < npes, "%ld winners, %d", wins, winner);
  CHECK(before == -1 || before == shmem_int_g(&winner, 0), "%d", before);
}

/* swap: values change hands, none is lost. */
static long token;
static void swaps(void) {
  token = me;
  shmem_barrier_all();
  long held = -1;
  if (me % 2 == 1) held = shmem_long_atomic_swap(&token, 100 + me, (me + 1) % npes);
  shmem_barrier_all();
  if (me % 2 == 1) CHECK(held == (me + 1) % npes, "%ld", held);
  int writer = (me + npes - 1) % npes;
  CHECK(token == (writer % 2 == 1 && npes > 1 ? 100 + writer : me), "%ld", token);
}

/* Atomicity holds among operations of one domain (contexts of one team), of one type, with nothing else on the variable at that time. */
static uint64_t x, bits;
static int in, out;
static long mixed;
static void atomicity_done_right(void) {
  /* Contexts of one team for everybody. */
  shmem_ctx_t ctx;
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &ctx) == 0, "context");
  for (int i = 0; i < 100; i++) shmem_ctx_uint64_atomic_inc(ctx, &x, 0);
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  if (me == 0) CHECK(x == 100u * (unsigned)npes, "%lu", (unsigned long)x);
  shmem_ctx_destroy(ctx);
  /* One type for everybody. */
  shmem_uint64_atomic_or(&bits, 1ull << (me % 64), 0);
  shmem_barrier_all();
  if (me == 0) CHECK(bits == (npes >= 64 ? ~0ull : (1ull << npes) - 1), "%lx", (unsigned long)bits);
  /* A collective reads the variable only after the atomics are done. */
  shmem_int_atomic_inc(&in, (me + 1) % npes);
  shmem_barrier_all();
  shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &out, &in, 1);
  CHECK(out == npes, "%d", out);
  /* The owner uses an atomic too while others do. */
  for (int i = 0; i < 100; i++) shmem_long_atomic_inc(&mixed, 0);
  shmem_barrier_all();
  if (me == 0) CHECK(mixed == 100 * npes, "%ld", mixed);
}

int main(void) {
  begin();
  additions();
  increments();
  a_race();
  swaps();
  atomicity_done_right();
  return end();
}
