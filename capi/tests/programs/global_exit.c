/* global_exit.c: PE 1 ends the job with the code given; the others wait for what never comes. */
#include "check.h"

static long never;

int main(int argc, char **argv) {
  begin();
  shmem_barrier_all();
  if (me == 1) shmem_global_exit(argc > 1 ? atoi(argv[1]) : 0);
  shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
  printf("still here\n");
  return 99;
}
