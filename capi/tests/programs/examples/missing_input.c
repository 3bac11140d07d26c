/* missing_input.c: one PE finds that the program cannot go on, and ends all of them (OpenSHMEM 1.6, 9.1, shmem_global_exit). */
#include "check.h"

int main(int argc, char **argv) {
  begin();
  if (me == 0) {
    FILE *input = fopen(argc > 1 ? argv[1] : "no such file", "r");
    if (!input) shmem_global_exit(EXIT_FAILURE);
    fclose(input);
  }
  shmem_barrier_all();
  return end();
}
