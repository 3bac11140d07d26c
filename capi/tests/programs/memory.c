/* memory.c: the symmetric heap, static data, what is accessible, pointers to peers, the setup's questions, locks. */
#include "check.h"

static long initialised = 41, zero[4], lock, counter;
long global_word = 7;
long global_zero;

static void heap(void) {
  CHECK(shmem_malloc(0) == NULL, "no bytes");
  char *block = shmem_malloc(1000);
  CHECK(block != NULL && (uintptr_t)block % 16 == 0, "malloc");
  memset(block, me + 1, 1000);
  block = shmem_realloc(block, 5000);
  for (int i = 0; i < 1000; i++) CHECK(block[i] == (char)(me + 1), "realloc keeps byte %d", i);
  long *cleared = shmem_calloc(100, sizeof(long));
  for (int i = 0; i < 100; i++) CHECK(cleared[i] == 0, "calloc");
  for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
    char *aligned = shmem_align(alignment, 100);
    CHECK(aligned != NULL && (uintptr_t)aligned % alignment == 0, "align %zu", alignment);
    shmem_free(aligned);
  }
  long *hinted = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  CHECK(hinted != NULL, "hints");
  shmem_free(hinted);
  CHECK(shmem_malloc((size_t)1 << 50) == NULL, "more than there is");
  for (int pe = 0; pe < npes; pe++) {
    CHECK(shmem_addr_accessible(block, pe) && shmem_addr_accessible(cleared + 99, pe), "heap");
    CHECK(shmem_pe_accessible(pe), "PE %d", pe);
    CHECK(shmem_ptr(block, pe) != NULL && (pe != me || shmem_ptr(block, pe) == block), "ptr");
  }
  CHECK(!shmem_pe_accessible(npes) && !shmem_pe_accessible(-1), "no such PE");
  int local = 0;
  CHECK(!shmem_addr_accessible(&local, me) && shmem_ptr(&local, me) == NULL, "the stack is not symmetric");
  shmem_barrier_all();
  long *peer = shmem_ptr(cleared, (me + 1) % npes);
  *peer = me;
  shmem_barrier_all();
  CHECK(cleared[0] == (me - 1 + npes) % npes, "a store through shmem_ptr");
  shmem_free(NULL);
  shmem_free(cleared);
  shmem_free(block);
  /* What is freed is there again. */
  for (int i = 0; i < 100; i++) {
    void *big = shmem_malloc((size_t)64 << 20);
    CHECK(big != NULL, "round %d", i);
    shmem_free(big);
  }
}

static void statics(void) {
  static short inner[3] = {1, 2, 3};
  const int right = (me + 1) % npes, left = (me - 1 + npes) % npes;
  CHECK(initialised == 41 && global_word == 7 && global_zero == 0 && zero[3] == 0 && inner[2] == 3, "initial values");
  CHECK(shmem_addr_accessible(&initialised, right) && shmem_addr_accessible(zero, right) && shmem_addr_accessible(inner, right), "static");
  CHECK(shmem_addr_accessible(&global_word, right) && shmem_addr_accessible(&global_zero, right), "global");
  shmem_barrier_all();
  shmem_long_p(&initialised, me, right);
  shmem_long_p(&zero[3], me, right);
  shmem_short_p(&inner[2], (short)me, right);
  shmem_long_p(&global_word, me, right);
  shmem_long_p(&global_zero, me, right);
  shmem_barrier_all();
  CHECK(initialised == left && zero[3] == left && inner[2] == left && global_word == left && global_zero == left, "what PE %d wrote", left);
}

static void questions(void) {
  int major = 0, minor = 0, provided = -1, initialized = 0;
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_version(&major, &minor);
  shmem_info_get_name(name);
  shmem_query_thread(&provided);
  shmem_query_initialized(&initialized);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION, "%d.%d", major, minor);
  CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0, "%s", name);
  CHECK(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE && initialized, "thread level %d", provided);
  CHECK(_my_pe() == me && _num_pes() == npes, "old names");
  CHECK(_SHMEM_CMP_EQ == SHMEM_CMP_EQ && _SHMEM_REDUCE_SYNC_SIZE == SHMEM_REDUCE_SYNC_SIZE, "old macros");
  shmem_pcontrol(0);
  shmem_pcontrol(3, "more", 1);
  shmem_set_cache_inv(), shmem_clear_cache_inv(), shmem_udcflush();
  shmem_set_cache_line_inv(zero), shmem_clear_cache_line_inv(zero), shmem_udcflush_line(zero);
}

/* Under the lock a plain read and write on PE 0 lose nothing. */
static void locks(void) {
  enum { ROUNDS = 30 };
  for (int i = 0; i < ROUNDS; i++) {
    if (i % 2) {
      shmem_set_lock(&lock);
    } else {
      while (shmem_test_lock(&lock)) {
      }
    }
    long before = shmem_long_g(&counter, 0);
    shmem_long_p(&counter, before + 1, 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  CHECK(shmem_long_g(&counter, 0) == (long)ROUNDS * npes, "%ld", shmem_long_g(&counter, 0));
}

int main(void) {
  begin();
  heap();
  statics();
  questions();
  locks();
  return end();
}
