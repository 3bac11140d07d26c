/* contexts.c: threads that take work of all PEs, each with a context of its own; a thread without one; a pipeline over two contexts; a session.
 *
 * After OpenSHMEM 1.6: 9.5 (communication contexts). POSIX threads stand where the standard's programs use OpenMP. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 3, TASKS = 300 };

/* Task numbers of every PE are given out by its counter; who has finished at home helps the next PE. */
static long next_task, done_here, done_anywhere;
static void *worker(void *arg) {
  shmem_ctx_t ctx;
  if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0) shmem_global_exit(3);
  long done = 0;
  for (int i = 0; i < npes; i++) {
    int pe = (me + i) % npes;
    while (shmem_ctx_long_atomic_fetch_inc(ctx, &next_task, pe) < TASKS) done++;
  }
  shmem_ctx_destroy(ctx);
  *(long *)arg = done;
  return NULL;
}
static void tasks_of_all_pes(void) {
  pthread_t threads[THREADS];
  long done[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, &done[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    done_here += done[i];
  }
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &done_anywhere, &done_here, 1);
  CHECK(done_anywhere == (long)TASKS * npes, "%ld", done_anywhere);
}

/* A library that gives each thread a context when it registers, the default one where no other can be had. */
static __thread shmem_ctx_t mine = SHMEM_CTX_INVALID;
static void enter(void) {
  if (mine == SHMEM_CTX_INVALID && shmem_ctx_create(SHMEM_CTX_PRIVATE, &mine) != 0) mine = SHMEM_CTX_DEFAULT;
}
static void leave(void) {
  if (mine != SHMEM_CTX_DEFAULT) shmem_ctx_destroy(mine);
  mine = SHMEM_CTX_INVALID;
}
enum { COUNT = 1 << 12 };
static int *inbox;
static void *sender(void *arg) {
  int thread = (int)(intptr_t)arg;
  int *source = malloc(COUNT * sizeof(int));
  enter();
  for (int pe = thread; pe < npes; pe += THREADS) {
    for (int i = 0; i < COUNT; i++) source[i] = (me << 16) + i;
    shmem_ctx_putmem(mine, inbox + me * COUNT, source, COUNT * sizeof(int), pe);
  }
  leave();
  free(source);
  return NULL;
}
static void threads_that_register(void) {
  inbox = shmem_calloc((size_t)(COUNT * npes), sizeof(int));
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, sender, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  shmem_barrier_all();
  for (int pe = 0; pe < npes; pe++)
    for (int i = 0; i < COUNT; i += 511) CHECK(inbox[pe * COUNT + i] == (pe << 16) + i, "from %d", pe);
  shmem_barrier_all();
  shmem_free(inbox);
}

/* A sum over all PEs in stages: while one stage travels on one context, the one before is added up. */
enum { LENGTH = 4096, STAGE = 256, STAGES = LENGTH / STAGE };
static int in[LENGTH], out[LENGTH];
static void send_stage(shmem_ctx_t ctx, int *box, int stage) {
  for (int step = 1; step <= npes; step++) shmem_ctx_int_put_nbi(ctx, box + STAGE * me, in + STAGE * stage, STAGE, (me + step) % npes);
}
static void a_pipeline(void) {
  shmem_ctx_t ctx[2];
  int *box[2];
  for (int i = 0; i < 2; i++) {
    box[i] = shmem_malloc((size_t)(STAGE * npes) * sizeof(int));
    CHECK(shmem_ctx_create(0, &ctx[i]) == 0, "context %d", i);
  }
  for (int i = 0; i < LENGTH; i++) in[i] = me + i;
  send_stage(ctx[0], box[0], 0);
  for (int stage = 0; stage < STAGES; stage++) {
    int now = stage % 2;
    if (stage + 1 < STAGES) send_stage(ctx[1 - now], box[1 - now], stage + 1);
    shmem_ctx_quiet(ctx[now]);
    shmem_sync_all();
    for (int pe = 0; pe < npes; pe++)
      for (int i = 0; i < STAGE; i++) out[STAGE * stage + i] += box[now][STAGE * pe + i];
    shmem_sync_all(); /* the box is used again two stages later */
  }
  for (int i = 0; i < LENGTH; i++) CHECK(out[i] == npes * i + npes * (npes - 1) / 2, "%d: %d", i, out[i]);
  for (int i = 0; i < 2; i++) {
    shmem_ctx_destroy(ctx[i]);
    shmem_free(box[i]);
  }
}

/* Many small updates in a session: the same numbers twice cancel out, so the table is zero again. */
static void a_session(void) {
  enum { UPDATES = 1 << 14, INDICES = 1 << 8 };
  uint64_t *table = shmem_calloc(INDICES, sizeof *table);
  shmem_ctx_t ctx;
  CHECK(shmem_ctx_create(0, &ctx) == 0, "context");
  shmem_ctx_session_config_t config;
  config.total_ops = UPDATES;
  for (int twice = 0; twice < 2; twice++) {
    uint64_t random = 12345 + (uint64_t)me;
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    for (int i = 0; i < UPDATES; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      shmem_ctx_uint64_atomic_xor(ctx, &table[(random >> 32) % INDICES], random >> 8, (int)((random >> 48) % (unsigned)npes));
    }
    shmem_ctx_session_stop(ctx);
    shmem_ctx_quiet(ctx); /* the end of a session completes nothing */
  }
  shmem_sync_all(); /* and meets nobody */
  for (int i = 0; i < INDICES; i++) CHECK(table[i] == 0, "%d: %lx", i, (unsigned long)table[i]);
  shmem_ctx_destroy(ctx);
  shmem_free(table);
}

int main(void) {
  int given = -1;
  if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &given) != 0 || given != SHMEM_THREAD_MULTIPLE) return 9;
  me = shmem_my_pe();
  npes = shmem_n_pes();
  tasks_of_all_pes();
  shmem_barrier_all();
  threads_that_register();
  a_pipeline();
  a_session();
  return end();
}
