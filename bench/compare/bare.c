/* bare.c: what this machine itself takes for the figures of compare.c: two processes, one on each of two cores, over one shared mapping.
 *
 * Prints lines as compare.c does. Usage: bare [SECONDS a figure] */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 8 << 20, TABLE_WORDS = (32 << 20) / 8, CALLS = 3000000, ROUNDS = 100000 };

static int me;
static double seconds = 0.05;
static char *shared;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
static void print(const char *name, double value, const char *unit) {
  if (me == 0) printf("figure,%s,%.6g,%s,0\n", name, value, unit), fflush(stdout);
}

/* Words that one process writes and the other reads, two lines apart. */
static volatile long *word(int number) { return (volatile long *)(shared + number * 256); }

static void meet(void) {
  static long round;
  round++;
  __atomic_store_n(word(me), round, __ATOMIC_RELEASE);
  while (__atomic_load_n(word(1 - me), __ATOMIC_ACQUIRE) < round) {
  }
}

#define ALONE(name, body)                                           \
  do {                                                              \
    meet();                                                         \
    if (me == 0) {                                                  \
      double best = 1e9;                                            \
      for (int pass = 0; pass < 3; pass++) {                        \
        double begin = now();                                       \
        for (long i = 0; i < CALLS; i++) { body; }                  \
        double took = (now() - begin) / CALLS;                      \
        if (took < best) best = took;                               \
      }                                                             \
      print(name, best * 1e9, "ns");                                \
    }                                                               \
    meet();                                                         \
  } while (0)

static uint64_t random64(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ULL); /* splitmix64 */
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

int main(int argc, char **argv) {
  if (argc > 1) seconds = atof(argv[1]);
  const size_t bytes = 1 << 20, all = bytes + 2 * ((size_t)BUFFER + TABLE_WORDS * 8);
  shared = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char *local = aligned_alloc(4096, BUFFER);
  if (shared == MAP_FAILED || local == NULL) return 1;
  memset(shared, 0, all);
  memset(local, 1, BUFFER);
  pid_t parent = getpid(), child = fork();
  if (child < 0) return 1;
  me = child == 0;
  if (me == 1) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
  }
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(me, &core);
  sched_setaffinity(0, sizeof core, &core);
  char *remote = shared + bytes + BUFFER;
  volatile long *cell = (volatile long *)remote;
  volatile long sink = 0;
  ALONE("p 8 B", *cell = i);
  ALONE("putmem 8 B", *cell = i);
  ALONE("g 8 B", (void)*cell);
  ALONE("getmem 8 B", (void)*cell);
  ALONE("fetch_add", (void)__atomic_fetch_add(cell, 1, __ATOMIC_SEQ_CST); __asm__ volatile("" ::: "memory"));
  ALONE("compare_swap", long old = i; (void)__atomic_compare_exchange_n(cell, &old, i + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  ALONE("put_nbi 8 B", ((volatile long *)remote)[i & 8191] = i);
  ALONE("quiet, nothing pending", __atomic_thread_fence(__ATOMIC_SEQ_CST));
  ALONE("fence, nothing pending", __asm__ volatile("" ::: "memory"));
  for (int data = 0; data < 2; data++) {
    volatile long *mine = word(8 + me), *theirs = word(9 - me), *payload = word(12 - me);
    double best = 1e9;
    for (int pass = 0; pass < 3; pass++) {
      *mine = 0;
      meet();
      double begin = now();
      for (long i = 1; i <= ROUNDS; i++) {
        if (me == 1)
          while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != i) {
          }
        if (data) *payload = i;
        __atomic_store_n(theirs, i, __ATOMIC_RELEASE);
        if (me == 0)
          while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != i) {
          }
      }
      double took = (now() - begin) / ROUNDS / 2;
      if (took < best) best = took;
      meet();
    }
    print(data ? "put + quiet + flag" : "flag", best * 1e9, "ns");
  }
  static const struct {
    const char *put, *get;
    size_t bytes;
  } sizes[] = {{"put 1 KiB", "get 1 KiB", 1 << 10},
               {"put 4 KiB", "get 4 KiB", 4 << 10},
               {"put 64 KiB", "get 64 KiB", 64 << 10},
               {"put 1 MiB", "get 1 MiB", 1 << 20},
               {"put 4 MiB", "get 4 MiB", 4 << 20}};
  void *(*volatile copy)(void *, const void *, size_t) = memcpy;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int get = 0; get < 2; get++) {
      meet();
      if (me == 0) {
        const size_t n = sizes[s].bytes;
        long calls = (long)(seconds * 4e10 / (double)n) + 3;
        double best = 0;
        for (int pass = 0; pass < 4; pass++) {
          double begin = now();
          for (long i = 0; i < calls; i++) get ? copy(local, remote, n) : copy(remote, local, n);
          double rate = (double)n * (double)calls / (now() - begin);
          if (pass > 0 && rate > best) best = rate;
        }
        print(get ? sizes[s].get : sizes[s].put, best / 1e9, "GB/s");
      }
      meet();
    }
  {
    meet();
    double begin = now();
    for (int i = 0; i < ROUNDS; i++) meet();
    print("barrier_all", (now() - begin) / ROUNDS * 1e6, "us");
  }
  for (int form = 0; form < 2; form++) {
    long *tables[2] = {(long *)(shared + bytes + 2 * (size_t)BUFFER), (long *)(shared + bytes + 2 * (size_t)BUFFER) + TABLE_WORDS};
    uint64_t state = (uint64_t)me * 7919 + 1;
    const long count = CALLS;
    meet();
    double begin = now();
    for (long i = 0; i < count; i++) {
      uint64_t random = random64(&state);
      long *at = &tables[form == 0 ? (random >> 40) % 2 : (uint64_t)!me][random % TABLE_WORDS];
      if (form == 0) (void)__atomic_fetch_xor(at, (long)random, __ATOMIC_SEQ_CST);
      else (void)__atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
    }
    meet();
    print(form == 0 ? "updates, atomic xor" : "updates, remote fetch_add", 2.0 * (double)count / (now() - begin) / 1e6, "M/s");
  }
  (void)sink;
  if (me == 1) _exit(0);
  waitpid(child, NULL, 0);
  return 0;
}
