/* unreachable.c: static data that cannot be symmetric, because the PEs run different executables (-DOTHER) or because the addresses that peers'
 * would need are taken ("taken"). The heap works all the same. */
#include <sys/mman.h>

#include "check.h"

static long word;
#ifdef OTHER
long another[1000] = {1};
#endif

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "taken") == 0)
    for (int power = 38; power <= 42; power += 2) {
      char *at = (char *)(((uintptr_t)&word & ~(uintptr_t)0xfff) + ((uintptr_t)1 << power));
      if (mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at) return 8;
    }
  begin();
  int next = (me + 1) % npes;
  long *block = shmem_malloc(sizeof *block);
  shmem_long_p(block, me, next);
  shmem_barrier_all();
  CHECK(*block == (me + npes - 1) % npes, "%ld", *block);
  word = 1; /* my own is there */
  shmem_free(block);
  return end();
}
