/* mistakes.c: one mistake, by name. With SHMEM_DEBUG=1 each ends the job with a message. */
#include "check.h"

int main(int argc, char **argv) {
  const char *mistake = argc > 1 ? argv[1] : "none";
  static long word;
  static int whole;
  char local[16] = {0};
  if (strcmp(mistake, "before") == 0) shmem_long_p(&word, 1, 0);
  begin();
  shmem_barrier_all();
  if (strcmp(mistake, "range") == 0) shmem_long_p(&word, 1, npes);
  if (strcmp(mistake, "negative") == 0) shmem_int_get(&whole, &whole, 1, -1);
  if (strcmp(mistake, "local") == 0) shmem_putmem(local, &word, sizeof word, 0);
  shmem_long_p(&word, 1, me);
  CHECK(shmem_long_g(&word, me) == 1, "none");
  return end();
}
