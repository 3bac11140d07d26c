/* order.c: puts, strides, and what fence and quiet promise.
 *
 * After OpenSHMEM 1.6: 9.6 (put, get, iput), 9.11 (fence, quiet). Where the standard's programs name PEs 1 and 2, these take the next two. */
#include "check.h"

/* Ten longs in one put; only the receiver changes. */
static long block[10];
static void one_put(void) {
  long source[10];
  for (long i = 0; i < 10; i++) source[i] = i + 1;
  int receiver = npes > 1 ? 1 : 0;
  if (me == 0) shmem_long_put(block, source, 10, receiver);
  shmem_barrier_all();
  for (long i = 0; i < 10; i++) CHECK(block[i] == (me == receiver ? i + 1 : 0), "%ld: %ld", i, block[i]);
}

/* Every second element of a source into neighbouring elements of a destination; and the other way round. */
static short packed[5], spread[10];
static void strides(void) {
  short source[10];
  for (short i = 0; i < 10; i++) source[i] = (short)(i + 1);
  int receiver = npes - 1;
  if (me == 0) {
    shmem_short_iput(packed, source, 1, 2, 5, receiver);
    shmem_short_iput(spread, source, 2, 1, 5, receiver);
  }
  shmem_barrier_all();
  if (me == receiver)
    for (int i = 0; i < 5; i++) {
      CHECK(packed[i] == 2 * i + 1, "packed %d: %d", i, packed[i]);
      CHECK(spread[2 * i] == i + 1 && spread[2 * i + 1] == 0, "spread %d: %d", i, spread[2 * i]);
    }
  short back[5] = {0};
  shmem_short_iget(back, spread, 1, 2, 5, receiver);
  for (int i = 0; i < 5; i++) CHECK(back[i] == i + 1, "back %d: %d", i, back[i]);
}

/* Data, fence, flag: whoever sees the flag sees the data. In every round every PE sends to the next two. */
enum { ROUNDS = 200, WORDS = 10 };
static long data[2][ROUNDS][WORDS];
static int flag[2];
static void data_before_the_flag(void) {
  for (int round = 0; round < ROUNDS; round++) {
    long source[WORDS];
    for (long i = 0; i < WORDS; i++) source[i] = 1000 * (long)round + i;
    for (int step = 1; step <= 2; step++) shmem_long_put(data[step - 1][round], source, WORDS, (me + step) % npes);
    shmem_fence();
    int now = round + 1;
    for (int step = 1; step <= 2; step++) shmem_int_put(&flag[step - 1], &now, 1, (me + step) % npes);
    for (int step = 1; step <= 2; step++) {
      shmem_int_wait_until(&flag[step - 1], SHMEM_CMP_GE, now);
      for (long i = 0; i < WORDS; i++)
        CHECK(data[step - 1][round][i] == 1000 * (long)round + i, "round %d from %d before: %ld", round, step, data[step - 1][round][i]);
    }
  }
  shmem_barrier_all();
}

/* Puts to two PEs, quiet, gets from both: the gets see what was put. A source may be used again after each put. */
static long row[3];
static int word;
static void quiet_completes_puts(void) {
  int a = 1 % npes, b = 2 % npes;
  if (me == 0) {
    long source[3] = {1, 2, 3}, x[3] = {0};
    int value = 90, y = 0;
    shmem_long_put(row, source, 3, a);
    memset(source, 0, sizeof source);
    shmem_int_put(&word, &value, 1, b);
    shmem_quiet();
    shmem_long_get(x, row, 3, a);
    shmem_int_get(&y, &word, 1, b);
    CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3, "%ld %ld %ld", x[0], x[1], x[2]);
    CHECK(y == 90, "%d", y);
    /* A later put to the same word overtakes nothing. */
    value = 91;
    shmem_int_put_nbi(&word, &value, 1, b);
    shmem_quiet();
    value = 92;
    CHECK(shmem_int_g(&word, b) == 91, "after quiet");
  }
  shmem_barrier_all();
}

int main(void) {
  begin();
  one_put();
  strides();
  data_before_the_flag();
  quiet_completes_puts();
  return end();
}
