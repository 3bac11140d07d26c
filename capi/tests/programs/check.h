/* check.h: what the test programs share. Each program is run on several numbers of PEs and exits with 0 when every check held on every PE.
 *
 * types.h, generated from the type table, has the lists: RMA_TYPES(X) calls X(NAME, TYPE) for each type. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>
#include <shmemx.h>

#include "types.h"

static int me, npes, failures;

/* The first few failures of a PE are enough to read. */
#define MOST_FAILURES 8
#define CHECK(condition, what, ...)                                                                        \
  do {                                                                                                     \
    if (!(condition) && failures++ < MOST_FAILURES)                                                        \
      fprintf(stderr, "PE %d of %d: %s:%d: %s: " what "\n", me, npes, __FILE__, __LINE__, #condition, ##__VA_ARGS__); \
  } while (0)

/* What element i holds that PE pe made: small enough for every type, and for sums over all PEs. */
#define VALUE(TYPE, pe, i) ((TYPE)(((pe)*5 + (i)*3 + 1) % 23))

static inline void begin(void) {
  shmem_init();
  me = shmem_my_pe();
  npes = shmem_n_pes();
}

static inline int end(void) {
  shmem_finalize();
  return failures != 0;
}
