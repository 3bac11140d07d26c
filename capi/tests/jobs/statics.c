/* statics.c: global and static variables are symmetric, keep their initial values, and a forked child has its own. */
#include <assert.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

long initialised = 42;
long zeroed;
static int table[1 << 16];
/* More than the machine has: only what is touched costs memory. */
static char huge[1536u << 20];

int main(void) {
  assert(initialised == 42 && zeroed == 0);
  table[7] = 7; /* before init, by the program itself */
  shmem_init();
  int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
  assert(table[7] == 7 && shmem_int_g(&table[7], next) == 7);
  shmem_long_p(&initialised, 100 + me, next);
  shmem_long_atomic_add(&zeroed, 1, 0);
  shmem_char_p(&huge[sizeof huge - 1], 'x', next);
  shmem_barrier_all();
  assert(initialised == 100 + before && huge[sizeof huge - 1] == 'x' && huge[12345] == 0);
  if (me == 0)
    assert(zeroed == n);
  shmem_barrier_all();
  assert(shmem_addr_accessible(&zeroed, next) && shmem_ptr(&zeroed, next) != NULL);
  int local;
  assert(!shmem_addr_accessible(&local, next) && shmem_ptr(&local, next) == NULL);

  pid_t child = fork();
  if (child == 0) {
    int fine = initialised == 100 + before && table[7] == 7;
    initialised = -1; /* its own copy */
    table[7] = -1;
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  assert(waitpid(child, &status, 0) == child && status == 0);
  assert(initialised == 100 + before && table[7] == 7);
  assert(system("true") == 0);
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
