/* collectives.c: barrier and sync on active sets and teams, broadcast, collect, exchanges, reductions, scan.
 *
 * After OpenSHMEM 1.6: 9.10 (collectives), the deprecated active-set barrier included. */
#include "check.h"

/* A ring of puts that a barrier completes. */
static int x = 1010;
static void a_barrier_completes_puts(void) {
  shmem_int_p(&x, 4, (me + 1) % npes);
  shmem_barrier_all();
  CHECK(x == 4, "%d", x);
}

/* The same among even PEs only, on an active set; odd ones are not in it. */
static int even = 10101;
static long psync[SHMEM_BARRIER_SYNC_SIZE];
static void a_barrier_of_even_pes(void) {
  for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; i++) psync[i] = SHMEM_SYNC_VALUE;
  shmem_barrier_all();
  int members = (npes + 1) / 2;
  if (me % 2 == 0) {
    shmem_int_p(&even, 4, 2 * ((me / 2 + 1) % members));
    shmem_barrier(0, 1, members, psync);
  }
  CHECK(even == (me % 2 == 0 ? 4 : 10101), "%d", even);
}

/* Teams of every second and every third PE, each with a ring of its own; the later one wins where both meet. */
static int mark;
static void ring(shmem_team_t team, int value) {
  if (team == SHMEM_TEAM_INVALID) return;
  int next = (shmem_team_my_pe(team) + 1) % shmem_team_n_pes(team);
  shmem_int_p(&mark, value, shmem_team_translate_pe(team, next, SHMEM_TEAM_WORLD));
  shmem_quiet();
  shmem_team_sync(team);
}
static void syncs_of_teams(void) {
  shmem_team_t twos = SHMEM_TEAM_INVALID, threes = SHMEM_TEAM_INVALID;
  if (npes > 2) shmem_team_split_strided(SHMEM_TEAM_WORLD, 2, 2, (npes - 1) / 2, NULL, 0, &twos);
  if (npes > 3) shmem_team_split_strided(SHMEM_TEAM_WORLD, 3, 3, (npes - 1) / 3, NULL, 0, &threes);
  ring(twos, 2);
  shmem_team_sync(SHMEM_TEAM_WORLD);
  ring(threes, 3);
  int wanted = me == 0 ? 0 : me % 3 == 0 ? 3 : me % 2 == 0 ? 2 : 0;
  CHECK(mark == wanted, "%d, not %d", mark, wanted);
  shmem_team_destroy(twos);
  shmem_team_destroy(threes);
}

static long from[4], to[4];
static void a_broadcast(void) {
  int root = npes - 1;
  for (long i = 0; i < 4; i++) from[i] = 100 * me + i;
  shmem_barrier_all();
  CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, 4, root) == 0, "result");
  for (long i = 0; i < 4; i++) CHECK(to[i] == 100 * root + i, "%ld: %ld", i, to[i]);
}

/* PE p gives p + 1 numbers: all of them in order are 0, 1, 2, ... */
static void a_collect(void) {
  int mine = me + 1, all = npes * (npes + 1) / 2;
  int *source = shmem_malloc((size_t)npes * sizeof(int)), *dest = shmem_malloc((size_t)all * sizeof(int));
  for (int i = 0; i < mine; i++) source[i] = me * (me + 1) / 2 + i;
  for (int i = 0; i < all; i++) dest[i] = -1;
  shmem_team_sync(SHMEM_TEAM_WORLD);
  shmem_int_collect(SHMEM_TEAM_WORLD, dest, source, (size_t)mine);
  for (int i = 0; i < all; i++) CHECK(dest[i] == i, "%d: %d", i, dest[i]);
  shmem_free(dest);
  shmem_free(source);
}

/* What I have for you is in my block of your number; afterwards, what you had for me in that of yours. With and without strides. */
enum { COUNT = 2, TO = 2, FROM = 3 };
static void exchanges(int to_stride, int from_stride) {
  size_t elements = (size_t)(COUNT * npes);
  int64_t *dest = shmem_malloc(elements * (size_t)to_stride * sizeof *dest);
  int64_t *source = shmem_malloc(elements * (size_t)from_stride * sizeof *source);
  for (size_t i = 0; i < elements * (size_t)to_stride; i++) dest[i] = -1;
  for (int pe = 0; pe < npes; pe++)
    for (int i = 0; i < COUNT; i++) source[(pe * COUNT + i) * from_stride] = 10000 * me + 100 * pe + i;
  shmem_team_sync(SHMEM_TEAM_WORLD);
  if (to_stride == 1 && from_stride == 1)
    shmem_int64_alltoall(SHMEM_TEAM_WORLD, dest, source, COUNT);
  else
    shmem_int64_alltoalls(SHMEM_TEAM_WORLD, dest, source, to_stride, from_stride, COUNT);
  for (int pe = 0; pe < npes; pe++)
    for (int i = 0; i < COUNT; i++) {
      int at = (pe * COUNT + i) * to_stride;
      CHECK(dest[at] == 10000 * pe + 100 * me + i, "from %d: %ld", pe, (long)dest[at]);
      for (int gap = 1; gap < to_stride; gap++) CHECK(dest[at + gap] == -1, "a gap after %d", at);
    }
  shmem_team_sync(SHMEM_TEAM_WORLD);
  shmem_free(source);
  shmem_free(dest);
}

/* Which indices hold the largest value anywhere, and how often it occurs in all: an or and a sum. */
static unsigned char largest[32], anywhere[32];
static int occurs, occurs_in_all;
static void reductions(void) {
  int expected = 0;
  for (int i = 0; i < 32; i++) {
    largest[i] = (i * 7 + me * 3) % 5 == 4;
    occurs += largest[i];
  }
  shmem_team_sync(SHMEM_TEAM_WORLD);
  shmem_uchar_or_reduce(SHMEM_TEAM_WORLD, anywhere, largest, 32);
  shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &occurs_in_all, &occurs, 1);
  for (int i = 0; i < 32; i++) {
    int one = 0;
    for (int pe = 0; pe < npes; pe++) {
      int is = (i * 7 + pe * 3) % 5 == 4;
      one |= is;
      expected += is;
    }
    CHECK(anywhere[i] == one, "%d: %d", i, anywhere[i]);
  }
  CHECK(occurs_in_all == expected, "%d, not %d", occurs_in_all, expected);
}

/* collect, at one PE only: an exclusive scan of the sizes tells each PE where its part begins. */
static size_t offset;
static int gathered[64 * 8];
static void a_collect_at_one_pe(int who) {
  size_t mine = (size_t)(me % 3 + 1);
  int source[3];
  for (size_t i = 0; i < mine; i++) source[i] = 10 * me + (int)i;
  offset = mine * sizeof(int);
  shmem_team_sync(SHMEM_TEAM_WORLD);
  CHECK(shmem_size_sum_exscan(SHMEM_TEAM_WORLD, &offset, &offset, 1) == 0, "result");
  shmem_putmem((char *)gathered + offset, source, mine * sizeof(int), who);
  shmem_quiet();
  shmem_team_sync(SHMEM_TEAM_WORLD);
  if (me != who) return;
  int at = 0;
  for (int pe = 0; pe < npes; pe++)
    for (int i = 0; i < pe % 3 + 1; i++, at++) CHECK(gathered[at] == 10 * pe + i, "%d: %d", at, gathered[at]);
}

int main(void) {
  begin();
  a_barrier_completes_puts();
  a_barrier_of_even_pes();
  syncs_of_teams();
  a_broadcast();
  a_collect();
  exchanges(1, 1);
  exchanges(TO, FROM);
  reductions();
  a_collect_at_one_pe(npes - 1);
  return end();
}
