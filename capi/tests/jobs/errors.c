/* errors.c: ends badly in the way its argument names. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long x;

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  long y = 0;
  if (!strcmp(how, "early"))
    shmem_long_p(&x, 1, 0);
  shmem_init();
  int me = shmem_my_pe(), n = shmem_n_pes();
  if (!strcmp(how, "outside"))
    shmem_long_p(&x, 1, n);
  if (!strcmp(how, "negative"))
    shmem_putmem(&x, &y, 8, -1);
  if (!strcmp(how, "stack"))
    shmem_long_p(&y, 1, 0);
  if (!strcmp(how, "null"))
    shmem_putmem(&x, NULL, 8, 0);
  if (!strcmp(how, "misaligned"))
    shmem_int_atomic_inc((int *)((char *)&x + 1), 0);
  if (!strcmp(how, "overlap"))
    shmem_putmem((char *)&x + 1, &x, 4, me);
  if (!strcmp(how, "free"))
    shmem_free(&x);
  if (!strcmp(how, "context"))
    shmem_ctx_long_p(SHMEM_CTX_INVALID, &x, 1, 0);
  if (!strcmp(how, "unlocked"))
    shmem_clear_lock(&x);
  shmem_barrier_all();
  if (me == n - 1) {
    if (!strcmp(how, "global"))
      shmem_global_exit(7);
    if (!strcmp(how, "exit"))
      exit(3);
    if (!strcmp(how, "killed"))
      abort();
  }
  if (!strcmp(how, "forgotten"))
    return 0; /* without finalize, on every PE: as programs with start_pes do */
  if (*how)
    for (;;)
      pause();
  shmem_finalize();
  return 0;
}
