/* waits_end.c: every PE but the last waits, in the way the argument names, for what never comes; the last one is killed, or waits elsewhere.
 *
 * "dies": the last PE kills itself while the others wait; else it sleeps, and the others' limit ends the job. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static long coming, never, flags[4], lock, source[8], dest[64 * 8];
static uint64_t signal_word;
static long psync[SHMEM_BARRIER_SYNC_SIZE];

static void nap(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  int dies = argc > 2 && strcmp(argv[2], "dies") == 0;
#define IS(name) (strcmp(how, name) == 0)
  begin();
  int last = npes - 1;
  shmem_team_t odd = SHMEM_TEAM_INVALID;
  if (IS("team")) shmem_team_split_strided(SHMEM_TEAM_WORLD, last % 2, 2, (npes + 1) / 2, NULL, 0, &odd);
  if (IS("lock") && me == last) shmem_set_lock(&lock);
  shmem_barrier_all();
  shmem_long_atomic_inc(&coming, last);
  if (me == last) {
    /* Every other PE is on its way into its wait; what it waits for is told once it has waited for a millisecond. */
    while (shmem_long_atomic_fetch(&coming, me) < npes) nap(1);
    nap(200);
    if (dies) raise(SIGKILL);
    for (;;) pause();
  }
  if (IS("barrier")) shmem_barrier_all();
  if (IS("sync")) shmem_sync_all();
  if (IS("active set")) shmem_barrier(0, 0, npes, psync);
  if (IS("smaller active set")) {
    if (me == last - 1) shmem_barrier(last - 1, 0, 2, psync);
    for (;;) pause();
  }
  if (IS("team") && odd != SHMEM_TEAM_INVALID) shmem_team_sync(odd);
  if (IS("team")) for (;;) pause();
  if (IS("pair")) shmem_sync_pe(last);
  if (IS("broadcast")) shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 8, last);
  if (IS("reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 8);
  if (IS("alltoall")) shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, 1);
  if (IS("collect")) shmem_long_collect(SHMEM_TEAM_WORLD, dest, source, 3);
  if (IS("malloc")) shmem_malloc(64);
  if (IS("finalize")) shmem_finalize();
  if (IS("wait")) shmem_long_wait_until(&never, SHMEM_CMP_EQ, 42);
  if (IS("all")) shmem_long_wait_until_all(flags, 4, NULL, SHMEM_CMP_NE, 0);
  if (IS("any")) shmem_long_wait_until_any(flags, 4, NULL, SHMEM_CMP_NE, 0);
  if (IS("some")) {
    size_t indices[4];
    shmem_long_wait_until_some(flags, 4, indices, NULL, SHMEM_CMP_NE, 0);
  }
  if (IS("signal")) shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 7);
  if (IS("lock")) shmem_set_lock(&lock);
  printf("PE %d goes on\n", me);
  return 9;
}
