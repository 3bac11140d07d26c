/* lazy.c: a heap far larger than the machine's memory costs only what is touched. Run with SHMEM_SYMMETRIC_SIZE=64G. */
#include "check.h"

/* Bytes of memory that this process has in use, shared memory included. */
static long resident(void) {
  char line[256];
  long kib = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld kB", &kib);
  if (status) fclose(status);
  return kib < 0 ? -1 : kib * 1024;
}

int main(void) {
  const size_t gib = (size_t)1 << 30, bytes = 63 * gib;
  const long most = 64 << 20;
  begin();
  long at_init = resident();
  CHECK(at_init > 0 && at_init < most, "%ld bytes in use after init", at_init);
  char *block = shmem_malloc(bytes);
  CHECK(block != NULL, "63 GiB of 64");
  CHECK(shmem_malloc(2 * gib) == NULL, "more than is left");
  int next = (me + 1) % npes;
  for (size_t at = 0; block && at < bytes; at += 7 * gib) shmem_char_p(block + at + (size_t)me, (char)(me + 1), next);
  if (block) shmem_char_p(block + bytes - 1, 'e', next);
  shmem_barrier_all();
  int before = (me + npes - 1) % npes;
  for (size_t at = 0; block && at < bytes; at += 7 * gib) CHECK(block[at + (size_t)before] == before + 1, "at %zu", at);
  CHECK(block && block[bytes - 1] == 'e' && block[bytes / 2 + 12345] == 0, "the end, and the middle");
  CHECK(resident() < most, "%ld bytes in use", resident());
  shmem_free(block);
  return end();
}
