/* locks.c: SHMEM_THREAD_MULTIPLE: atomics, puts, locks and contexts from several threads of every PE at once. */
#include <assert.h>
#include <pthread.h>
#include <shmem.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 2000 };
static long sum, guarded, lock, slots[THREADS * 64];
static int me, n;

static void *work(void *argument) {
  long thread = (long)argument;
  shmem_ctx_t ctx;
  assert(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
  for (int i = 0; i < ROUNDS; i++) {
    shmem_long_atomic_add(&sum, 1, i % n);
    shmem_ctx_long_p(ctx, &slots[thread * 64 + me % 64], i, (me + 1) % n);
    if (i % 8 == 0) {
      shmem_set_lock(&lock);
      long value = shmem_long_g(&guarded, n - 1);
      shmem_long_p(&guarded, value + 1, n - 1);
      shmem_clear_lock(&lock);
    }
  }
  shmem_ctx_quiet(ctx);
  shmem_ctx_destroy(ctx);
  return NULL;
}

int main(void) {
  int provided = -1;
  assert(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
  shmem_query_thread(&provided);
  assert(provided == SHMEM_THREAD_MULTIPLE);
  me = shmem_my_pe(), n = shmem_n_pes();
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    assert(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  shmem_barrier_all();
  long all = 0;
  for (int pe = 0; pe < n; pe++)
    all += shmem_long_atomic_fetch(&sum, pe);
  assert(all == (long)n * THREADS * ROUNDS);
  if (me == n - 1)
    assert(guarded == (long)n * THREADS * ROUNDS / 8);
  for (int thread = 0; thread < THREADS; thread++)
    assert(slots[thread * 64 + (me + n - 1) % n % 64] == ROUNDS - 1);
  assert(shmem_test_lock(&lock) == 0 || n > 1);
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
