/* basics.c: the programs with which the standard introduces itself: who am I, a first transfer, shared output under a lock, the end.
 *
 * After OpenSHMEM 1.6: 3 (writing a program), 9.1 (init, my_pe, n_pes, finalize, ptr), 9.6 (p, g), 9.12 (locks). Runs on any number of PEs. */
#include "check.h"

/* Every PE counts itself in on PE 0; all numbers from 0 to n - 1 occur once. */
static long seen[64];
static void everybody_is_there(void) {
  CHECK(npes >= 1 && me >= 0 && me < npes, "my number");
  shmem_long_p(&seen[me], me + 1, 0);
  shmem_barrier_all();
  for (int pe = 0; me == 0 && pe < npes; pe++) CHECK(seen[pe] == pe + 1, "PE %d: %ld", pe, seen[pe]);
}

/* The first transfer: PE 0 puts a number of its stack into a static variable of another PE. */
static int target;
static void a_number_arrives(void) {
  int receiver = npes > 1 ? 1 : 0;
  if (me == 0) {
    int number = 33;
    shmem_int_put(&target, &number, 1, receiver);
  }
  shmem_barrier_all();
  CHECK(target == (me == receiver ? 33 : 0), "%d", target);
}

/* A row goes from PE 0 to everybody else; each reports its sum in turn, under a lock that keeps reports apart. */
#define ROW 16
static short row[ROW];
static long report_lock;
static long reports[64], reported;
static void a_row_for_everybody(void) {
  short source[ROW];
  for (short i = 0; i < ROW; i++) source[i] = (short)(3 * i);
  if (me == 0)
    for (int pe = 1; pe < npes; pe++) shmem_short_put(row, source, ROW, pe);
  shmem_barrier_all();
  if (me != 0) {
    long sum = 0;
    for (int i = 0; i < ROW; i++) sum += row[i];
    shmem_set_lock(&report_lock);
    long at = shmem_long_g(&reported, 0);
    shmem_long_p(&reports[at], sum, 0);
    shmem_long_p(&reported, at + 1, 0);
    shmem_clear_lock(&report_lock);
  }
  shmem_barrier_all();
  if (me == 0) {
    CHECK(reported == npes - 1, "%ld reports", reported);
    for (int i = 0; i < npes - 1; i++) CHECK(reports[i] == 3 * ROW * (ROW - 1) / 2, "report %d: %ld", i, reports[i]);
  }
}

/* A lock around a number that everybody reads, changes and writes back. */
static long count_lock;
static int count;
static void counting_under_a_lock(void) {
  enum { ROUNDS = 50 };
  for (int i = 0; i < ROUNDS; i++) {
    shmem_set_lock(&count_lock);
    int value = shmem_int_g(&count, 0);
    shmem_int_p(&count, value + 1, 0);
    shmem_clear_lock(&count_lock); /* what was put before is visible to the next holder */
  }
  shmem_barrier_all();
  if (me == 0) CHECK(count == ROUNDS * npes, "%d", count);
  /* test_lock says 0 when it has taken the lock. */
  shmem_barrier_all();
  if (me == npes - 1) {
    CHECK(shmem_test_lock(&count_lock) == 0, "a free lock");
    CHECK(shmem_test_lock(&count_lock) != 0, "a taken lock");
    shmem_clear_lock(&count_lock);
  }
  shmem_barrier_all();
}

/* A double travels unharmed by p, and comes back by g. */
static double e = 3.14;
static long last_word = 10101;
static void single_elements(void) {
  int other = npes - 1;
  if (me == 0) shmem_double_p(&e, 2.718281828, other);
  shmem_barrier_all();
  CHECK(e == (me == other ? 2.718281828 : 3.14), "%g", e);
  long here = -1;
  if (me == 0) here = shmem_long_g(&last_word, other);
  CHECK(here == (me == 0 ? 10101 : -1), "%ld", here);
}

/* Another PE's array by its address: null only where there is no such thing. */
static int through[4];
static void a_pointer_to_another_pe(void) {
  int next = (me + 1) % npes;
  int *there = shmem_ptr(through, next);
  CHECK(there != NULL, "all PEs of one machine share memory");
  CHECK(next != me || there == through, "my own instance is where it is");
  for (int i = 0; there && i < 4; i++) there[i] = 10 * me + i;
  shmem_barrier_all();
  int before = (me + npes - 1) % npes;
  for (int i = 0; i < 4; i++) CHECK(through[i] == 10 * before + i, "%d: %d", i, through[i]);
}

int main(void) {
  begin();
  everybody_is_there();
  a_number_arrives();
  a_row_for_everybody();
  counting_under_a_lock();
  single_elements();
  a_pointer_to_another_pe();
  return end();
}
