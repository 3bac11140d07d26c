/* litmus.c: what fence, quiet and put with signal order, tried many times between two PEs at a time. */
#include <assert.h>
#include <shmem.h>
#include <stdlib.h>

enum { ROUNDS = 3000, WORDS = 96 };
static long data[WORDS], flag, mine, answer[2];
static uint64_t signal_word;

int main(void) {
  shmem_init();
  int me = shmem_my_pe(), n = shmem_n_pes();
  int peer = me ^ 1, active = peer < n;
  long source[WORDS];
  /* Message passing: data, fence, flag; and data with a signal. */
  for (long round = 1; active && round <= ROUNDS; round++) {
    if (me % 2 == 0) {
      for (int i = 0; i < WORDS; i++)
        source[i] = round * 1000 + i;
      shmem_long_put(data, source, WORDS, peer);
      if (round % 2) {
        shmem_fence();
        shmem_long_p(&flag, round, peer);
      } else {
        shmem_long_put_signal(data, source, WORDS, &signal_word, round, SHMEM_SIGNAL_SET, peer);
      }
      shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
    } else {
      if (round % 2)
        shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
      else
        assert(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, round) >= (uint64_t)round);
      for (int i = 0; i < WORDS; i++)
        assert(data[i] == round * 1000 + i);
      shmem_long_p(&flag, round, peer);
    }
  }
  shmem_barrier_all();
  /* Store buffering: both put, complete with quiet, and get; one of them sees the other's. */
  int both_missed = 0;
  for (long round = 1; round <= ROUNDS; round++) {
    mine = 0;
    shmem_barrier_all();
    if (active) {
      shmem_long_p(&mine, round, peer); /* "I was here", at the peer */
      shmem_quiet();
      long seen = mine; /* did the peer come? */
      long other = shmem_long_g(&mine, peer);
      assert(other == round);
      shmem_long_p(&answer[me % 2], seen, me & ~1);
    }
    shmem_barrier_all();
    if (active && me % 2 == 0)
      both_missed += answer[0] == 0 && answer[1] == 0;
    shmem_barrier_all();
  }
  assert(both_missed == 0);
  shmem_finalize();
  return 0;
}
