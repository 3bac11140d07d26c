/* threads.c: SHMEM_THREAD_MULTIPLE: threads of every PE put, get, update and wait at the same time, with contexts of their own and without. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 500 };

static long counter, slots[THREADS * 64], flags[THREADS];

static void *work(void *argument) {
  const int thread = (int)(intptr_t)argument;
  const int right = (me + 1) % npes;
  shmem_ctx_t own = SHMEM_CTX_INVALID;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) == 0, "thread %d", thread);
  for (long round = 1; round <= ROUNDS; round++) {
    shmem_long_atomic_inc(&counter, (int)(round % npes));
    shmem_ctx_long_p(own, &slots[thread * 64], round, right);
    shmem_ctx_quiet(own);
    CHECK(shmem_long_g(&slots[thread * 64], right) == round, "thread %d, round %ld", thread, round);
    /* A neighbour's thread of the same number waits for this one. */
    shmem_fence();
    shmem_long_atomic_set(&flags[thread], round, right);
    shmem_long_wait_until(&flags[thread], SHMEM_CMP_GE, round);
    void *block = malloc(64);
    free(block);
  }
  shmem_ctx_destroy(own);
  return NULL;
}

int main(void) {
  int provided = -1;
  if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE) return 2;
  me = shmem_my_pe();
  npes = shmem_n_pes();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  shmem_barrier_all();
  static long source, dest;
  source = counter;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &dest, &source, 1);
  CHECK(dest == (long)THREADS * ROUNDS * npes, "%ld updates", dest);
  return end();
}
