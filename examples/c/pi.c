/* C 3: pi as the integral of 4 / (1 + x^2) from 0 to 1: each PE takes every n_pes-th strip, a reduction adds up. */
#include <math.h>
#include <shmem.h>
#include <stdio.h>

enum { STRIPS = 1000000 };

int main(void) {
  shmem_init();
  int me = shmem_my_pe(), pes = shmem_n_pes();
  static double part, pi; /* symmetric */
  for (int i = me; i < STRIPS; i += pes) {
    double x = (i + 0.5) / STRIPS;
    part += 4.0 / (1.0 + x * x) / STRIPS;
  }
  shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &pi, &part, 1);
  int wrong = fabs(pi - 3.14159265358979) > 1e-10;
  printf("%s: PE %d: pi is %.12f\n", wrong ? "wrong" : "verified", me, pi);
  shmem_finalize();
  return wrong;
}
