/* compare.c: one benchmark for every OpenSHMEM library, 1.4 and newer. PE 0 prints a line a figure: name, value, unit, and for what depends on
 * where the cores are the bare control taken in the same moments.
 *
 * Built by each library's own oshcc; compare.py runs the programs in turn. With 2 PEs each is pinned to a core of its own; with more PEs than
 * cores none is pinned. The bare control is a ping-pong of two cache lines between PE 0 and PE 1 over a file that all map (COMPARE_CONTROL):
 * these lines cross between the cores by the same way as the library's, in the same milliseconds.
 *
 * Usage: compare [SECONDS a figure] */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <shmem.h>

#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
#define TEAMS 1
#endif

enum { WARM_CALLS = 200, BUFFER = 8 << 20, TABLE_WORDS = (32 << 20) / 8, CONTROL_ROUNDS = 2000, MOST_CALLS = 2000000 };

static double seconds = 0.05;
static int me, npes;
static long *flag, *cell, *table;
static char *remote, *local;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print(const char *name, double value, const char *unit, double control) {
  if (me != 0) return;
  printf("figure,%s,%.6g,%s,%.6g\n", name, value, unit, control);
  fflush(stdout);
}

/* Two words, one a PE, two pages apart, in memory that is nobody's but this program's. */
static volatile long *control_words;
static void open_control(void) {
  const char *path = getenv("COMPARE_CONTROL");
  int file = path ? open(path, O_RDWR) : -1;
  if (file < 0) return;
  void *at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at != MAP_FAILED) control_words = at;
}

/* Nanoseconds that a cache line takes from core to core and back, halved; 0 without a control. Collective over all PEs. */
static double control(void) {
  static long round;
  if (control_words == NULL || npes != 2) return 0;
  volatile long *mine = control_words + (me == 0 ? 0 : 1024), *theirs = control_words + (me == 0 ? 1024 : 0);
  shmem_barrier_all();
  double begin = now();
  for (int i = 0; i < CONTROL_ROUNDS; i++) {
    round++;
    if (me == 0) __atomic_store_n(theirs, round, __ATOMIC_RELEASE);
    while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != round) {
    }
    if (me == 1) __atomic_store_n(theirs, round, __ATOMIC_RELEASE);
  }
  double end = now();
  shmem_barrier_all();
  return (end - begin) / CONTROL_ROUNDS / 2 * 1e9;
}

/* All PEs use PE 0's number. */
static long agreed(long mine) {
  shmem_barrier_all();
  if (me == 0)
    for (int pe = 0; pe < npes; pe++) shmem_long_p(&flag[16], mine, pe);
  shmem_barrier_all();
  long number = flag[16];
  shmem_barrier_all();
  return number;
}

static long calls_for(double per_call) {
  double calls = seconds / (per_call > 1e-10 ? per_call : 1e-10);
  return calls < 50 ? 50 : calls > MOST_CALLS ? MOST_CALLS : (long)calls;
}

/* A figure of PE 0 alone: nanoseconds a call. */
#define ALONE(name, body)                                     \
  do {                                                        \
    shmem_barrier_all();                                      \
    if (me == 0) {                                            \
      long calls = WARM_CALLS;                                \
      double took = 0;                                        \
      for (int pass = 0; pass < 3; pass++) {                  \
        double begin = now();                                 \
        for (long i = 0; i < calls; i++) { body; }            \
        shmem_quiet();                                        \
        took = (now() - begin) / (double)calls;               \
        calls = calls_for(took);                              \
      }                                                       \
      print(name, took * 1e9, "ns", 0);                       \
    }                                                         \
    shmem_barrier_all();                                      \
  } while (0)

/* A figure of all PEs together: microseconds a call. */
#define TOGETHER(name, body)                                  \
  do {                                                        \
    long calls = 20;                                          \
    double took = 0, before = 0, after = 0;                   \
    for (int pass = 0; pass < 2; pass++) {                    \
      before = control();                                     \
      shmem_barrier_all();                                    \
      double begin = now();                                   \
      for (long i = 0; i < calls; i++) { body; }              \
      took = (now() - begin) / (double)calls;                 \
      after = control();                                      \
      calls = agreed(calls_for(took) / 20 + 20);              \
    }                                                         \
    print(name, took * 1e6, "us", (before + after) / 2);      \
  } while (0)

/* PE 0 and PE 1 in turn: nanoseconds one way. send() is what precedes the waiting. */
#define PING_PONG(name, send)                                                 \
  do {                                                                        \
    long rounds = 500;                                                        \
    double took = 0, before = 0, after = 0;                                   \
    for (int pass = 0; pass < 2; pass++) {                                    \
      flag[0] = 0;                                                            \
      before = control();                                                     \
      shmem_barrier_all();                                                    \
      const int other = 1 - me;                                               \
      double begin = now();                                                   \
      for (long i = 1; i <= rounds; i++) {                                    \
        if (me == 1) shmem_long_wait_until(flag, SHMEM_CMP_GE, i);            \
        send;                                                                 \
        if (me == 0) shmem_long_wait_until(flag, SHMEM_CMP_GE, i);            \
      }                                                                       \
      took = (now() - begin) / (double)rounds / 2;                            \
      after = control();                                                      \
      rounds = agreed(calls_for(2 * took));                                   \
      if (rounds > 200000) rounds = 200000;                                   \
    }                                                                         \
    print(name, took * 1e9, "ns", (before + after) / 2);                      \
  } while (0)

static void points(void) {
  volatile long sink = 0;
  static long lock;
  ALONE("p 8 B", shmem_long_p(cell, i, 1));
  ALONE("putmem 8 B", shmem_putmem(remote, local, 8, 1));
  ALONE("g 8 B", sink += shmem_long_g(cell, 1));
  ALONE("getmem 8 B", shmem_getmem(local, remote, 8, 1));
  ALONE("fetch_add", sink += shmem_long_atomic_fetch_add(cell, 1, 1));
  ALONE("compare_swap", sink += shmem_long_atomic_compare_swap(cell, i, i + 1, 1));
  ALONE("put_nbi 8 B", shmem_putmem_nbi(remote + (i * 8 & 0xffff), local + (i * 8 & 0xffff), 8, 1));
  ALONE("quiet, nothing pending", shmem_quiet());
  ALONE("fence, nothing pending", shmem_fence());
  ALONE("lock, uncontended", shmem_set_lock(&lock); shmem_clear_lock(&lock));
  PING_PONG("flag", shmem_long_p(flag, i, other));
  PING_PONG("put + quiet + flag", shmem_putmem(remote, local, 8, other); shmem_quiet(); shmem_long_p(flag, i, other));
}

static void bandwidth(void) {
  static const struct {
    const char *put, *get;
    size_t bytes;
  } sizes[] = {{"put 1 KiB", "get 1 KiB", 1 << 10},
               {"put 4 KiB", "get 4 KiB", 4 << 10},
               {"put 64 KiB", "get 64 KiB", 64 << 10},
               {"put 1 MiB", "get 1 MiB", 1 << 20},
               {"put 4 MiB", "get 4 MiB", 4 << 20}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int get = 0; get < 2; get++) {
      const size_t bytes = sizes[s].bytes;
      shmem_barrier_all();
      if (me == 0) {
        long calls = 4;
        double best = 0;
        for (int pass = 0; pass < 4; pass++) {
          double begin = now();
          for (long i = 0; i < calls; i++)
            if (get) shmem_getmem(local, remote, bytes, 1);
            else shmem_putmem(remote, local, bytes, 1);
          shmem_quiet();
          double took = (now() - begin) / (double)calls;
          if (pass > 0 && (double)bytes / took > best) best = (double)bytes / took;
          calls = calls_for(took) / 3 + 3;
        }
        print(get ? sizes[s].get : sizes[s].put, best / 1e9, "GB/s", 0);
      }
      shmem_barrier_all();
    }
}

#ifdef TEAMS
#define BROADCAST(n) shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, n, 0)
#define FCOLLECT(n) shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, n)
#define ALLTOALL(n) shmem_long_alltoall(SHMEM_TEAM_WORLD, to, from, n)
#define REDUCE(n) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, n)
#else
/* Active sets: pSync must not be in use any more when it is used again, so pairs of them alternate. */
static long sync_words[2][SHMEM_REDUCE_SYNC_SIZE > SHMEM_BCAST_SYNC_SIZE ? SHMEM_REDUCE_SYNC_SIZE : SHMEM_BCAST_SYNC_SIZE];
static long more_words[2][SHMEM_COLLECT_SYNC_SIZE > SHMEM_ALLTOALL_SYNC_SIZE ? SHMEM_COLLECT_SYNC_SIZE : SHMEM_ALLTOALL_SYNC_SIZE];
#define BROADCAST(n) (shmem_broadcast64(to, from, n, 0, 0, 0, npes, sync_words[i & 1]), shmem_barrier_all())
#define FCOLLECT(n) (shmem_fcollect64(to, from, n, 0, 0, npes, more_words[i & 1]), shmem_barrier_all())
#define ALLTOALL(n) (shmem_alltoall64(to, from, n, 0, 0, npes, more_words[i & 1]), shmem_barrier_all())
#define REDUCE(n) (shmem_long_sum_to_all(to, from, n, 0, 0, npes, work, sync_words[i & 1]), shmem_barrier_all())
#endif

static void collectives(void) {
  long *to = (long *)remote, *from = (long *)(remote + BUFFER / 2);
  enum { WORDS = 8192 };
#ifndef TEAMS
  static long *work;
  work = shmem_malloc((WORDS / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(long));
  for (int set = 0; set < 2; set++) {
    for (size_t i = 0; i < sizeof sync_words[0] / sizeof(long); i++) sync_words[set][i] = SHMEM_SYNC_VALUE;
    for (size_t i = 0; i < sizeof more_words[0] / sizeof(long); i++) more_words[set][i] = SHMEM_SYNC_VALUE;
  }
#endif
  memset(from, 1, BUFFER / 2);
  shmem_barrier_all();
  TOGETHER("barrier_all", shmem_barrier_all());
  TOGETHER("sum-reduce 8 B", REDUCE(1));
  if (npes > 2) return; /* the rest is a matter of 2 PEs */
  TOGETHER("broadcast 8 B", BROADCAST(1));
  TOGETHER("fcollect 8 B", FCOLLECT(1));
  TOGETHER("alltoall 8 B", ALLTOALL(1));
  TOGETHER("broadcast 64 KiB", BROADCAST(WORDS));
  TOGETHER("fcollect 64 KiB", FCOLLECT(WORDS));
  TOGETHER("alltoall 64 KiB", ALLTOALL(WORDS));
  TOGETHER("sum-reduce 64 KiB", REDUCE(WORDS));
}

static uint64_t random64(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ULL); /* splitmix64 */
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/* Updates of random words: of all PEs by xor, of the next PE by fetch-add. Millions a second over all PEs. */
static void updates(void) {
  for (int form = 0; form < 2; form++) {
    long count = 20000;
    double took = 0;
    for (int pass = 0; pass < 2; pass++) {
      uint64_t state = (uint64_t)me * 7919 + 1;
      shmem_barrier_all();
      double begin = now();
      for (long i = 0; i < count; i++) {
        uint64_t random = random64(&state);
        long *word = &table[random % TABLE_WORDS];
        if (form == 0) shmem_ulong_atomic_xor((unsigned long *)word, random, (int)((random >> 40) % (unsigned)npes));
        else (void)shmem_long_atomic_fetch_add(word, 1, (me + 1) % npes);
      }
      shmem_quiet();
      shmem_barrier_all();
      took = (now() - begin) / (double)count;
      count = agreed((long)(4 * seconds / took) + 1000);
    }
    print(form == 0 ? "updates, atomic xor" : "updates, remote fetch_add", npes / took / 1e6, "M/s", 0);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) seconds = atof(argv[1]);
  double begin = now();
  shmem_init();
  double ready = now();
  me = shmem_my_pe();
  npes = shmem_n_pes();
  if (npes <= sysconf(_SC_NPROCESSORS_ONLN)) {
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(me, &core);
    sched_setaffinity(0, sizeof core, &core);
  }
  open_control();
  flag = shmem_align(128, 4096);
  cell = shmem_align(128, 4096);
  remote = shmem_align(4096, BUFFER);
  table = shmem_align(4096, TABLE_WORDS * sizeof(long));
  local = aligned_alloc(4096, BUFFER);
  if (!flag || !cell || !remote || !table || !local) {
    fprintf(stderr, "compare: no memory: a symmetric heap of 64 MiB is needed\n");
    shmem_global_exit(1);
  }
  memset(flag, 0, 4096);
  memset(cell, 0, 4096);
  memset(remote, 1, BUFFER);
  memset(local, 2, BUFFER);
  memset(table, 0, TABLE_WORDS * sizeof(long));
  shmem_barrier_all();
  print("shmem_init", (ready - begin) * 1e3, "ms", 0);
  if (npes == 2) points();
  if (npes == 2) bandwidth();
  collectives();
  if (npes == 2) updates();
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
