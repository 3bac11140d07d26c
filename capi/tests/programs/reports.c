/* reports.c: what users of similar libraries reported, as cases for this one; the argument names the case. reports.rs says which report. */
#include <dirent.h>
#include <time.h>

#include "check.h"

static int entries(const char *path) {
  int count = 0;
  DIR *folder = opendir(path);
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

static int lines(const char *path) {
  int count = 0, c;
  FILE *file = fopen(path, "r");
  while (file && (c = fgetc(file)) != EOF) count += c == '\n';
  if (file) fclose(file);
  return count;
}

/* A signal whose data has no bytes arrives all the same, by every form. */
static uint64_t signals[3];
static long nothing[1];
static void signals_without_data(int next) {
  shmem_long_put_signal(nothing, NULL, 0, &signals[0], 5, SHMEM_SIGNAL_SET, next);
  shmem_putmem_signal(nothing, nothing, 0, &signals[1], 6, SHMEM_SIGNAL_ADD, next);
  shmem_ctx_put64_signal_nbi(SHMEM_CTX_DEFAULT, nothing, nothing, 0, &signals[2], 7, SHMEM_SIGNAL_SET, next);
  for (int i = 0; i < 3; i++) CHECK(shmem_signal_wait_until(&signals[i], SHMEM_CMP_NE, 0) == (uint64_t)(5 + i), "signal %d", i);
}

/* Every size up to a page at every alignment of both sides, by put and by get, and not a byte beside it. */
static unsigned char to[4096 + 192], from[4096 + 128];
static void sizes_and_alignments(int next, int before) {
  for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 31 + (size_t)me * 7 + 1);
  for (size_t size = 1; size <= 4096; size += size < 130 ? 1 : size < 1024 ? 37 : 251)
    for (size_t align = 0; align < 64; align += size < 130 ? 3 : 13) {
      memset(to, 0xee, sizeof to);
      shmem_barrier_all();
      shmem_putmem(to + 64 + align, from + (align * 7) % 64, size, next);
      shmem_barrier_all();
      int wrong = 0;
      for (size_t i = 0; i < size; i++) wrong += to[64 + align + i] != (unsigned char)(((align * 7) % 64 + i) * 31 + (size_t)before * 7 + 1);
      CHECK(wrong == 0 && to[63 + align] == 0xee && to[64 + align + size] == 0xee, "%zu bytes at %zu: %d wrong", size, align, wrong);
      unsigned char back[4096 + 64];
      memset(back, 0xdd, sizeof back);
      shmem_getmem(back + align % 32 + 1, from + align, size, next);
      wrong = 0;
      for (size_t i = 0; i < size; i++) wrong += back[align % 32 + 1 + i] != (unsigned char)((align + i) * 31 + (size_t)next * 7 + 1);
      CHECK(wrong == 0 && back[align % 32] == 0xdd && back[align % 32 + 1 + size] == 0xdd, "get %zu at %zu: %d wrong", size, align, wrong);
    }
}

/* A wait for a signal returns when the signal is there, with its data, and not before; PEs are out of step. */
static uint64_t ping;
static long payload[8], answered;
static void signals_on_time(int next, int before, long rounds) {
  unsigned random = 1 + (unsigned)me;
  for (long round = 1; round <= rounds; round++) {
    long source[8];
    for (int i = 0; i < 8; i++) source[i] = round * 8 + i;
    random = random * 1103515245u + 12345u;
    for (volatile unsigned spin = random >> 24; spin > 0; spin--) {
    }
    shmem_long_put_signal(payload, source, 8, &ping, (uint64_t)round, SHMEM_SIGNAL_SET, next);
    uint64_t seen = shmem_signal_wait_until(&ping, SHMEM_CMP_GE, (uint64_t)round);
    CHECK(seen == (uint64_t)round, "round %ld: %lu", round, (unsigned long)seen);
    for (int i = 0; i < 8; i++) CHECK(payload[i] == round * 8 + i, "round %ld: %ld", round, payload[i]);
    /* Only now may the sender go on. */
    shmem_long_p(&answered, round, before);
    shmem_long_wait_until(&answered, SHMEM_CMP_GE, round);
  }
}

/* Generations of a barrier never mix, however skewed the PEs are: who comes out has seen everybody's store of this round, and none of the next. */
static long rounds_of[128];
static void barriers_never_mix(long rounds) {
  unsigned random = 77 + (unsigned)me;
  for (long round = 1; round <= rounds; round++) {
    random = random * 1103515245u + 12345u;
    for (volatile unsigned spin = (random >> 22) % 64; spin > 0; spin--) {
    }
    shmem_long_p(&rounds_of[me], round, (me + 1) % npes);
    if (round % 2) shmem_barrier_all(); else shmem_sync_all();
    long seen = rounds_of[(me + npes - 1) % npes];
    CHECK(seen == round, "round %ld: %ld", round, seen);
    shmem_sync_all();
  }
}

/* Splitting, meeting and destroying, again and again. */
static void teams_come_and_go(int rounds) {
  for (int round = 0; round < rounds; round++) {
    shmem_team_t half, row, column;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, round % 2, 2, (npes + 1 - round % 2) / 2, NULL, 0, &half);
    if (half != SHMEM_TEAM_INVALID) shmem_team_sync(half);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1 + round % npes, NULL, 0, &row, NULL, 0, &column) == 0, "round %d", round);
    shmem_team_sync(row);
    shmem_team_sync(column);
    shmem_team_destroy(half);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
  }
}

/* What init opens finalize closes: descriptors, mappings, threads. */
static int open_and_close(int rounds) {
  int before[3] = {0}, after[3];
  for (int round = 0; round <= rounds; round++) {
    begin();
    shmem_free(shmem_malloc(1000));
    shmem_barrier_all();
    shmem_finalize();
    after[0] = entries("/proc/self/fd");
    after[1] = lines("/proc/self/maps");
    after[2] = entries("/proc/self/task");
    /* The first rounds load what stays: locale, thread-local storage, the heaps of malloc. */
    if (round == 5) memcpy(before, after, sizeof before);
  }
  CHECK(after[0] == before[0], "%d descriptors, after 5 rounds %d", after[0], before[0]);
  CHECK(after[1] <= before[1] + 4, "%d mappings, after 5 rounds %d", after[1], before[1]);
  CHECK(after[2] == before[2], "%d threads, after 5 rounds %d", after[2], before[2]);
  return failures != 0;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
#define IS(name) (strcmp(what, name) == 0)
  if (IS("init")) return open_and_close(100);
  begin();
  int next = (me + 1) % npes, before = (me + npes - 1) % npes;
  if (IS("signals without data")) signals_without_data(next);
  if (IS("sizes")) sizes_and_alignments(next, before);
  if (IS("signals on time")) signals_on_time(next, before, 5000);
  if (IS("barriers")) barriers_never_mix(20000);
  if (IS("teams")) teams_come_and_go(1000);
  if (IS("many")) {
    teams_come_and_go(5);
    barriers_never_mix(5);
  }
  if (IS("exhausted")) {
    void *most = shmem_malloc((size_t)200 << 20);
    CHECK(most != NULL, "200 of 256 MiB");
    CHECK(shmem_malloc((size_t)100 << 20) == NULL, "no room");
    shmem_free(most);
    most = shmem_malloc((size_t)100 << 20);
    CHECK(most != NULL, "room again");
    shmem_free(most);
  }
  return end();
}
