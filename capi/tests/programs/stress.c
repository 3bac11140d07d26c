/* stress.c: many collectives one after another, with PEs out of step: barriers, teams made and destroyed, nested teams, active sets, large arrays.
 *
 * usage: stress [megabytes]: with an argument only the large arrays. */
#include "check.h"

enum { BARRIERS = 5000, TEAMS = 1000, MOST_PES = 64 };

static long arrived, counts[MOST_PES], longs[MOST_PES], all[MOST_PES * MOST_PES];
static int ints[MOST_PES], int_all[MOST_PES * MOST_PES];
static long psync[SHMEM_SYNC_SIZE], pwrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE + MOST_PES];

/* Loses some time now and then, not the same on every PE. */
static void skew(int round) {
  volatile int work = 0;
  for (int i = 0; i < (round * 7 + me * 13) % 5 * 200; i++) work += i;
}

static void barriers(void) {
  for (int round = 1; round <= BARRIERS; round++) {
    skew(round);
    for (int pe = 0; pe < npes && round % 50 == 0; pe++) shmem_long_p(&counts[me], round, pe);
    shmem_long_atomic_inc(&arrived, 0);
    if (round % 3) shmem_barrier_all(); else shmem_sync_all();
    const long seen = shmem_long_atomic_fetch(&arrived, 0);
    CHECK(seen >= (long)round * npes, "%ld had arrived in round %d", seen, round);
    for (int pe = 0; pe < npes && round % 50 == 0; pe++) CHECK(counts[pe] >= round, "PE %d: %ld in round %d", pe, counts[pe], round);
  }
  shmem_barrier_all();
}

/* Every team of every round sums its members' numbers. */
static void teams(void) {
  for (int round = 0; round < TEAMS; round++) {
    shmem_team_t team, row, column;
    const int stride = 1 + round % 3, start = round % npes, size = (npes - start + stride - 1) / stride;
    skew(round);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team) == 0, "round %d", round);
    longs[0] = me + round;
    if (team != SHMEM_TEAM_INVALID) {
      long expected = 0;
      for (int i = 0; i < size; i++) expected += start + i * stride + round;
      CHECK(shmem_long_sum_reduce(team, all, longs, 1) == 0 && all[0] == expected, "round %d: %ld", round, all[0]);
      /* Teams of the team: the members' numbers in the world must come out. */
      const int xrange = 1 + round % 4, width = xrange < size ? xrange : size;
      CHECK(shmem_team_split_2d(team, xrange, NULL, 0, &row, NULL, 0, &column) == 0, "round %d", round);
      const int my = shmem_team_my_pe(team);
      longs[0] = me;
      shmem_long_fcollect(row, all, longs, 1);
      for (int i = 0; i < shmem_team_n_pes(row); i++)
        CHECK(all[i] == start + (my / width * width + i) * stride, "row of round %d: %ld", round, all[i]);
      shmem_long_fcollect(column, all, longs, 1);
      for (int i = 0; i < shmem_team_n_pes(column); i++)
        CHECK(all[i] == start + (my % width + i * width) * stride, "column of round %d: %ld", round, all[i]);
      shmem_team_destroy(column);
      shmem_team_destroy(row);
      shmem_team_destroy(team);
    }
  }
}

/* Every active set of the job, each used several times. */
static void active_sets(void) {
  for (int round = 0; round < 3; round++)
    for (int log = 0; (1 << log) < npes || log == 0; log++)
      for (int start = 0; start < npes; start++)
        for (int size = 1; start + ((size - 1) << log) < npes; size++) {
          const int distance = me - start, index = distance >> log;
          if (distance < 0 || distance & ((1 << log) - 1) || index >= size) continue;
          skew(size + start);
          long expected = 0;
          for (int i = 0; i < size; i++) expected += start + (i << log);
          longs[0] = ints[0] = ints[1] = me;
          shmem_long_sum_to_all(all, longs, 1, start, log, size, pwrk, psync);
          CHECK(all[0] == expected, "sum of %d %d %d: %ld", start, log, size, all[0]);
          shmem_barrier(start, log, size, psync);
          all[0] = -1;
          shmem_broadcast64(all, longs, 1, size - 1, start, log, size, psync);
          CHECK(all[0] == (index == size - 1 ? -1 : start + ((size - 1) << log)), "broadcast of %d %d %d: %ld", start, log, size, all[0]);
          shmem_fcollect64(all, longs, 1, start, log, size, psync);
          for (int i = 0; i < size; i++) CHECK(all[i] == start + (i << log), "fcollect of %d %d %d", start, log, size);
          shmem_collect32(int_all, ints, 1 + index % 2, start, log, size, psync);
          for (int i = 0, at = 0; i < size; i++)
            for (int k = 0; k < 1 + i % 2; k++) CHECK(int_all[at++] == start + (i << log), "collect of %d %d %d", start, log, size);
          shmem_sync(start, log, size, psync);
        }
  for (int i = 0; i < SHMEM_SYNC_SIZE; i++) CHECK(psync[i] == SHMEM_SYNC_VALUE, "pSync[%d]", i);
  shmem_barrier_all();
}

static void large(size_t bytes) {
  const size_t n = bytes / sizeof(long);
  long *source = shmem_malloc(bytes), *dest = shmem_malloc(bytes);
  if (!source || !dest) shmem_global_exit(3);
  for (int in_place = 0; in_place < 2; in_place++) {
    for (size_t i = 0; i < n; i++) source[i] = (long)i * (me + 1);
    long *to = in_place ? source : dest;
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, source, n) == 0, "reduce");
    const long factor = (long)npes * (npes + 1) / 2;
    for (size_t i = 0; i < n; i++) CHECK(to[i] == (long)i * factor, "element %zu of %zu: %ld", i, n, to[i]);
    shmem_barrier_all();
  }
  for (size_t i = 0; i < n; i++) source[i] = (long)(i ^ (size_t)me);
  CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, n, npes - 1) == 0, "broadcast");
  for (size_t i = 0; i < n; i++) CHECK(dest[i] == (long)(i ^ (size_t)(npes - 1)), "broadcast element %zu", i);
  shmem_barrier_all();
  shmem_free(dest);
  shmem_free(source);
}

int main(int argc, char **argv) {
  begin();
  if (argc > 1) {
    large((size_t)atoi(argv[1]) << 20);
    return end();
  }
  for (int i = 0; i < SHMEM_SYNC_SIZE; i++) psync[i] = SHMEM_SYNC_VALUE;
  shmem_barrier_all();
  barriers();
  teams();
  active_sets();
  large(1 << 20);
  for (int round = 0; round < 500; round++)
    for (int step = 1; step < npes; step <<= 1)
      if ((me ^ step) < npes) {
        shmem_long_p(&counts[me], round, me ^ step);
        shmem_sync_pe(me ^ step);
        CHECK(counts[me ^ step] >= round, "round %d: %ld", round, counts[me ^ step]);
      }
  return end();
}
