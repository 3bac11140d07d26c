/* C 2: a block of data goes round the ring; each PE adds its number + 1 to every element and passes it on.
 *
 * shmem_put_signal brings the data before the signal: whoever sees the signal sees the data. */
#include <inttypes.h>
#include <shmem.h>
#include <stdio.h>

enum { N = 1000, LAPS = 10 };

int main(void) {
  shmem_init();
  int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes;
  int64_t *block = shmem_calloc(N, sizeof *block); /* symmetric: the same call on every PE */
  uint64_t *hops = shmem_calloc(1, sizeof *hops);
  if (block == NULL || hops == NULL) shmem_global_exit(1);

  /* PE 0 starts, and takes the block once more at the end. */
  for (uint64_t lap = 0; lap < LAPS + (me == 0); lap++) {
    if (me != 0 || lap != 0) shmem_signal_wait_until(hops, SHMEM_CMP_EQ, lap * pes + me);
    if (lap == LAPS) break;
    for (int i = 0; i < N; i++) block[i] += me + 1;
    shmem_int64_put_signal(block, block, N, hops, lap * pes + me + 1, SHMEM_SIGNAL_SET, next);
  }
  shmem_barrier_all();

  int64_t lap = (int64_t)pes * (pes + 1) / 2;
  int64_t expected = me == 0 ? LAPS * lap : (LAPS - 1) * lap + (int64_t)me * (me + 1) / 2;
  /* The others have added their own number to what they sent on, in their own copy. */
  if (me != 0) expected += me + 1;
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += block[i] != expected;
  printf("%s: PE %d has the sum %" PRId64 " of %" PRId64 "\n", wrong ? "wrong" : "verified", me, block[0], expected);
  shmem_free(hops);
  shmem_free(block);
  shmem_finalize();
  return wrong != 0;
}
