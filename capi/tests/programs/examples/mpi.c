/* mpi.c: a program that uses MPI and OpenSHMEM together, and needs to know who is who (OpenSHMEM 1.6, annex on hybrid programs).
 *
 * Two ways: tell everybody one's MPI rank; or order an MPI communicator by PE number, so that the numbers are the same. */
#include <mpi.h>

#include "check.h"

static int rank;

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  begin();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int *ranks = shmem_calloc((size_t)npes, sizeof(int));
  shmem_int_collect(SHMEM_TEAM_WORLD, ranks, &rank, 1);
  for (int pe = 0; pe < npes; pe++) CHECK(ranks[pe] >= 0 && ranks[pe] < npes, "PE %d: rank %d", pe, ranks[pe]);
  CHECK(ranks[me] == rank, "mine: %d", ranks[me]);
  shmem_free(ranks);

  MPI_Comm same;
  int there = -1, sum = 0;
  MPI_Comm_split(MPI_COMM_WORLD, 0, me, &same);
  MPI_Comm_rank(same, &there);
  CHECK(there == me, "rank %d in the ordered communicator", there);
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, same);
  CHECK(sum == npes * (npes - 1) / 2, "%d", sum);
  MPI_Comm_free(&same);
  printf("PE %d of %d\n", me, npes);
  int result = end();
  MPI_Finalize();
  return result;
}
