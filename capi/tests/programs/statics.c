/* statics.c: global and static variables are symmetric and keep their initial values; what must stay private stays so: thread-local variables,
 * constants, and the memory of forked children.
 *
 * With -DLARGE it has static data of 4 GiB, which x86-64 puts into segments of its own (-mcmodel=medium). */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

long initialised = 42;
long zeroed;
static int table[1 << 16];
/* More than a machine may have free: only what is touched costs memory. */
#ifdef LARGE
static char huge[2ull << 30], more[2ull << 30];
#else
static char huge[1ull << 30], more[(1ull << 30) - (128 << 20)];
#endif
/* From the executable's file, page by page, also where no page of it has been read yet. */
static int filled[1 << 21] = {[0 ...(1 << 21) - 1] = 7};
/* Of the loader's: relocated pointers that are read-only afterwards, and every thread's own variables. */
static long *const relocated[2] = {&initialised, &zeroed};
static __thread long of_thread = 5;
static __thread long blank;

static void *other_thread(void *unused) {
  (void)unused;
  CHECK(of_thread == 5 && blank == 0, "a new thread's variables: %ld %ld", of_thread, blank);
  of_thread = 6;
  zeroed = zeroed; /* both threads see one static variable */
  return NULL;
}

static void private_things(void) {
  CHECK(relocated[0] == &initialised && relocated[1] == &zeroed, "pointers");
  CHECK(of_thread == 5 && blank == 0, "%ld %ld", of_thread, blank);
  of_thread = 100 + me;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0, "a thread");
  pthread_join(thread, NULL);
  CHECK(of_thread == 100 + me, "%ld", of_thread);
  CHECK(!shmem_addr_accessible(&of_thread, me), "a thread's variable is not symmetric");
}

static void symmetric_things(int next, int before) {
  CHECK(table[7] == 7 && shmem_int_g(&table[7], next) == 7, "what main wrote before init");
  for (size_t i = 0; i < sizeof filled / sizeof *filled; i++)
    if (filled[i] != 7) {
      CHECK(0, "element %zu is %d", i, filled[i]);
      break;
    }
  shmem_long_p(&initialised, 100 + me, next);
  shmem_long_atomic_add(&zeroed, 1, 0);
  shmem_char_p(&huge[sizeof huge - 1], 'x', next);
  shmem_char_p(&more[sizeof more / 2], 'y', next);
  shmem_barrier_all();
  CHECK(initialised == 100 + before && huge[sizeof huge - 1] == 'x' && huge[12345] == 0, "%ld", initialised);
  CHECK(more[sizeof more / 2] == 'y' && more[sizeof more - 1] == 0, "the other array");
  if (me == 0) CHECK(zeroed == npes, "%ld", zeroed);
  shmem_barrier_all();
  CHECK(shmem_addr_accessible(&zeroed, next) && shmem_ptr(&zeroed, next) != NULL, "accessible");
  int local;
  CHECK(!shmem_addr_accessible(&local, next) && shmem_ptr(&local, next) == NULL, "the stack is not");
}

/* A child sees what was there, also what other PEs have put, and writes into its own copy; so does its child. */
static int in_child(int next, int before, int depth) {
  if (initialised != 100 + before || table[7] != 7 || huge[sizeof huge - 1] != 'x' || more[sizeof more / 2] != 'y' || filled[9] != 7) return 1;
  (void)next;
  if (depth > 0) {
    pid_t child = fork();
    if (child == 0) _exit(in_child(next, before, depth - 1));
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) return 2;
  }
  initialised = -1;
  table[7] = -1;
  huge[sizeof huge - 1] = '?';
  more[sizeof more / 2] = '?';
  return 0;
}
static void children(int next, int before) {
  pid_t child = fork();
  if (child == 0) _exit(in_child(next, before, 1));
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child says %x", (unsigned)status);
  CHECK(initialised == 100 + before && table[7] == 7 && huge[sizeof huge - 1] == 'x' && more[sizeof more / 2] == 'y', "the parent's own");
  CHECK(system("true") == 0, "system");
  /* The parent's memory is still the others' too. */
  shmem_barrier_all();
  shmem_int_p(&table[9], 9 + me, next);
  shmem_barrier_all();
  CHECK(table[9] == 9 + before, "%d", table[9]);
}

int main(void) {
  if (initialised != 42 || zeroed != 0) return 9;
  table[7] = 7; /* before init, by the program itself */
  begin();
  int next = (me + 1) % npes, before = (me + npes - 1) % npes;
  private_things();
  shmem_barrier_all();
  symmetric_things(next, before);
  children(next, before);
  printf("address %p\n", (void *)&initialised);
  return end();
}
