/* C 1: the life of an OpenSHMEM program, and a put. Each PE tells the next one its number.
 *
 *   oshcc hello.c -o hello && oshrun -n 4 ./hello */
#include <shmem.h>
#include <stdio.h>

int from = -1; /* static data is symmetric: every PE has one */

int main(void) {
  shmem_init();
  int me = shmem_my_pe(), pes = shmem_n_pes();
  shmem_int_p(&from, me, (me + 1) % pes);
  shmem_barrier_all(); /* all puts have arrived everywhere */
  int wrong = from != (me + pes - 1) % pes;
  printf("%s: PE %d of %d heard of PE %d\n", wrong ? "wrong" : "verified", me, pes, from);
  shmem_finalize();
  return wrong;
}
