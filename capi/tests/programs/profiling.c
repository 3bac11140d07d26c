/* profiling.c: a tool's routine replaces the library's in the whole program, inlined calls included, and calls it by its other name. */
#include <pshmem.h>

#include "check.h"

static long calls, word;

void shmem_long_p(long *dest, long value, int pe) {
  calls++;
  pshmem_long_p(dest, value + 100, pe);
}

int main(void) {
  begin();
  shmem_barrier_all();
  shmem_long_p(&word, 1, (me + 1) % npes);
  shmem_barrier_all();
  CHECK(word == 101 && calls == 1, "%ld after %ld calls", word, calls);
  CHECK(pshmem_my_pe() == me && pshmem_n_pes() == npes, "names");
  return end();
}
