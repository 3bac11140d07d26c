/* mistakes.c: one mistake, by name. With SHMEM_DEBUG=1 each ends the job with a message; those that end it always say so too. */
#include <unistd.h>

#include "check.h"

static long word, words[8], results[64];
static int whole;
static long psync[SHMEM_BARRIER_SYNC_SIZE];

int main(int argc, char **argv) {
  const char *mistake = argc > 1 ? argv[1] : "none";
#define IS(name) (strcmp(mistake, name) == 0)
  long local = 0;
  if (IS("early")) shmem_long_p(&word, 1, 0);
  begin();
  shmem_barrier_all();

  if (IS("outside")) shmem_long_p(&word, 1, npes);
  if (IS("negative")) shmem_int_get(&whole, &whole, 1, -1);
  if (IS("negative put")) shmem_putmem(&word, &local, 8, -1);
  if (IS("stack")) shmem_putmem(&local, &word, sizeof word, 0);
  if (IS("stack p")) shmem_long_p(&local, 1, 0);
  if (IS("null")) shmem_putmem(&word, NULL, 8, 0);
  if (IS("null symmetric")) shmem_long_g(NULL, 0);
  if (IS("misaligned")) shmem_int_atomic_inc((int *)((char *)&word + 1), 0);
  if (IS("overlap")) shmem_putmem((char *)words + 1, words, 4, me);
  if (IS("free")) shmem_free(&word);
  if (IS("context")) shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 0);
  if (IS("unlocked")) shmem_clear_lock(&word);
  if (IS("late")) {
    shmem_finalize();
    shmem_long_p(&word, 1, 0);
  }

  /* Memory that is not there any more, or never was. */
  long *block = shmem_malloc(10 * sizeof *block);
  if (IS("over the end")) shmem_long_put(block, words, 8, me), shmem_long_put(block + 5, words, 8, me);
  if (IS("freed") || IS("freed twice")) {
    long *kept = block;
    shmem_free(block);
    if (IS("freed")) shmem_long_p(kept, 1, me);
    shmem_free(kept);
  }
  if (IS("inside")) shmem_free(block + 1);
  if (IS("wraps")) shmem_long_put(block, words, SIZE_MAX / 4, me);
  if (IS("wraps get")) shmem_getmem(&local, block, SIZE_MAX - 3, me);
  if (IS("wraps signal")) shmem_long_put_signal(block, words, SIZE_MAX / 2, (uint64_t *)&word, 1, SHMEM_SIGNAL_SET, me);
  if (IS("wraps reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, words, SIZE_MAX / 8 + 2);
  if (IS("wraps alltoall")) shmem_alltoallmem(SHMEM_TEAM_WORLD, block, words, SIZE_MAX / 2);
  if (IS("calloc wraps")) exit(shmem_calloc(SIZE_MAX / 2, 4) == NULL ? 5 : 0);

  /* Waits, signals, options, handles. */
  if (IS("wait misaligned")) shmem_long_wait_until((long *)((char *)words + 4), SHMEM_CMP_EQ, 0);
  if (IS("wait stack")) shmem_long_wait_until(&local, SHMEM_CMP_EQ, 0);
  if (IS("cmp")) shmem_long_wait_until(&word, 17, 0);
  if (IS("cmp test")) shmem_long_test(&word, -1, 0);
  if (IS("no variables")) shmem_long_wait_until_all(NULL, 3, NULL, SHMEM_CMP_EQ, 0);
  if (IS("signal operator")) shmem_long_put_signal(block, words, 1, (uint64_t *)&word, 1, 9, me);
  if (IS("context options")) {
    shmem_ctx_t ctx;
    shmem_ctx_create(1 << 20, &ctx);
  }
  if (IS("hints")) shmem_malloc_with_hints(8, 1 << 20);
  if (IS("alignment")) exit(shmem_align(24, 8) == NULL ? 5 : 0);
  if (IS("thread level")) {
    int given;
    exit(shmem_init_thread(99, &given) != 0 ? 5 : 0);
  }
  if (IS("context gone")) {
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    shmem_ctx_destroy(ctx);
    shmem_ctx_long_p(ctx, &word, 1, 0);
  }
  if (IS("team context")) {
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_create_ctx(team, 0, &ctx);
    shmem_ctx_long_p(ctx, &word, 1, npes);
  }
  if (IS("team gone")) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_destroy(team);
    shmem_team_sync(team);
  }
  if (IS("world destroyed")) shmem_team_destroy(SHMEM_TEAM_WORLD);
  if (IS("default context destroyed")) shmem_ctx_destroy(SHMEM_CTX_DEFAULT);

  /* Collectives that are not the same everywhere, or could not be right. */
  int first = me == 0;
  if (IS("routines")) first ? shmem_barrier_all() : (void)shmem_long_broadcast(SHMEM_TEAM_WORLD, results, words, 1, 0);
  if (IS("malloc and barrier")) first ? shmem_barrier_all() : (void)shmem_malloc(8);
  if (IS("sizes of malloc")) shmem_malloc(first ? 8 : 1000);
  if (IS("other blocks freed")) {
    long *other = shmem_malloc(80);
    shmem_free(first ? block : other);
  }
  if (IS("types")) first ? shmem_long_sum_reduce(SHMEM_TEAM_WORLD, results, words, 1) : shmem_int_sum_reduce(SHMEM_TEAM_WORLD, (int *)results, (int *)words, 1);
  if (IS("operations")) first ? shmem_long_sum_reduce(SHMEM_TEAM_WORLD, results, words, 1) : shmem_long_max_reduce(SHMEM_TEAM_WORLD, results, words, 1);
  if (IS("nelems")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, results, words, first ? 4 : 5);
  if (IS("root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, results, words, 4, me);
  if (IS("no root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, results, words, 4, npes);
  if (IS("places")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, results + (first ? 0 : 8), words, 4);
  if (IS("strides")) shmem_long_alltoalls(SHMEM_TEAM_WORLD, results, words, first ? 1 : 2, 1, 1);
  if (IS("stride of 0")) shmem_long_alltoalls(SHMEM_TEAM_WORLD, results, words, 0, 1, 1);
  if (IS("teams")) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, first ? 1 : 2, NULL, 0, &team);
  }
  if (IS("overlapping collective")) shmem_long_fcollect(SHMEM_TEAM_WORLD, words, words + 1, 1);
  if (IS("collective on the stack")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &local, words, 1);
  if (IS("outside the set")) shmem_barrier(0, 0, npes + 1, psync);
  if (IS("not in the set") && me == 1) shmem_barrier(0, 0, 1, psync);
  if (IS("negative count")) shmem_long_sum_to_all(results, words, -1, 0, 0, npes, results, psync);
  shmem_free(block);

  shmem_barrier_all();
  if (me == npes - 1) {
    if (IS("global exit")) shmem_global_exit(7);
    if (IS("exit")) exit(3);
    if (IS("killed")) abort();
  }
  if (IS("forgotten")) return 0; /* without finalize, on every PE: as programs with start_pes do */
  if (!IS("none"))
    for (;;) pause();
  shmem_long_p(&word, 1, me);
  CHECK(shmem_long_g(&word, me) == 1, "none");
  return end();
}
