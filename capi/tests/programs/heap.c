/* heap.c: allocation is symmetric, aligned, exact, and comes back; init and finalize can be repeated. */
#include <assert.h>
#include <shmem.h>
#include <stdint.h>
#include <string.h>

static void once(void) {
  shmem_init();
  int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
  assert(shmem_malloc(0) == NULL && shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
  shmem_free(NULL);
  for (size_t align = sizeof(void *); align <= 1 << 22; align *= 2) {
    char *at = shmem_align(align, 3 * align / 2);
    assert(at && (uintptr_t)at % align == 0);
    shmem_char_p(at + 3 * align / 2 - 1, (char)(me + 1), next);
    shmem_barrier_all();
    assert(at[3 * align / 2 - 1] == (char)(before + 1));
    shmem_free(at);
  }
  assert(shmem_align(24, 8) == NULL && shmem_align(0, 8) == NULL);
  long *block = shmem_calloc(1000, sizeof *block);
  for (int i = 0; i < 1000; i++)
    assert(block[i] == 0);
  shmem_barrier_all();
  for (int i = 0; i < 1000; i++)
    shmem_long_p(block + i, me * 1000 + i, next);
  shmem_barrier_all();
  block = shmem_realloc(block, 2000 * sizeof *block);
  for (int i = 0; i < 1000; i++)
    assert(block[i] == before * 1000 + i);
  block = shmem_realloc(block, 10 * sizeof *block);
  assert(block[9] == before * 1000 + 9);
  assert(shmem_realloc(block, 0) == NULL);
  assert(shmem_malloc(SIZE_MAX / 2) == NULL && shmem_calloc(SIZE_MAX / 2, 4) == NULL);
  /* Nothing is lost: the same large block again and again. */
  for (int i = 0; i < 20; i++) {
    char *most = shmem_malloc(24 << 20);
    assert(most);
    most[(24 << 20) - 1] = 1;
    shmem_free(most);
  }
  long *hinted = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  assert(hinted);
  shmem_free(hinted);
  shmem_finalize();
}

int main(void) {
  int is = 1;
  shmem_query_initialized(&is);
  assert(is == 0);
  for (int i = 0; i < 3; i++)
    once();
  /* Nested calls: the last finalize ends it. */
  int provided = -1;
  shmem_init();
  assert(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
  shmem_finalize();
  shmem_query_initialized(&is);
  assert(is == 1);
  shmem_finalize();
  shmem_query_initialized(&is);
  assert(is == 0);
  return 0;
}
