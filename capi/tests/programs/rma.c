/* rma.c: every typed and sized routine that moves data, to every PE, on the heap and in static data. */
#include "check.h"

enum { N = 12, STRIDE = 3, BLOCK = 2, BLOCKS = 4, ROOM = N * STRIDE };

static uint64_t signal_word;

/* Each PE writes to its right neighbours at distance d; what arrives came from the left. */
#define RIGHT(d) ((me + (d)) % npes)
#define LEFT(d) ((me - (d) + npes) % npes)

#define CLEAR(TYPE, array)                                \
  do {                                                    \
    for (int i = 0; i < ROOM; i++) (array)[i] = (TYPE)99; \
    shmem_barrier_all();                                  \
  } while (0)
#define ARRIVED(TYPE, array, from, what)                                                       \
  do {                                                                                         \
    shmem_barrier_all();                                                                       \
    for (int i = 0; i < N; i++) CHECK((array)[i] == VALUE(TYPE, from, i), what " element %d", i); \
    for (int i = N; i < ROOM; i++) CHECK((array)[i] == (TYPE)99, what " went too far: element %d", i); \
    shmem_barrier_all();                                                                       \
  } while (0)

#define TYPED(NAME, TYPE)                                                                                         \
  static void NAME##_rma(TYPE *there, const char *where, int d) {                                                 \
    TYPE mine[ROOM], here[ROOM];                                                                                  \
    for (int i = 0; i < ROOM; i++) mine[i] = VALUE(TYPE, me, i);                                                  \
    const int right = RIGHT(d), left = LEFT(d);                                                                   \
    (void)where;                                                                                                  \
    for (int form = 0; form < 12; form++) {                                                                       \
      CLEAR(TYPE, there);                                                                                         \
      switch (form) {                                                                                             \
        case 0: shmem_##NAME##_put(there, mine, N, right); break;                                                 \
        case 1: shmem_ctx_##NAME##_put(SHMEM_CTX_DEFAULT, there, mine, N, right); break;                          \
        case 2: shmem_##NAME##_put_nbi(there, mine, N, right); break;                                             \
        case 3: shmem_ctx_##NAME##_put_nbi(SHMEM_CTX_DEFAULT, there, mine, N, right); break;                      \
        case 4: for (int i = 0; i < N; i++) shmem_##NAME##_p(there + i, mine[i], right); break;                   \
        case 5: for (int i = 0; i < N; i++) shmem_ctx_##NAME##_p(SHMEM_CTX_DEFAULT, there + i, mine[i], right); break; \
        case 6: shmem_##NAME##_put_signal(there, mine, N, &signal_word, 7, SHMEM_SIGNAL_SET, right); break;       \
        case 7: shmem_##NAME##_put_signal_nbi(there, mine, N, &signal_word, 7, SHMEM_SIGNAL_SET, right); break;   \
        case 8: shmem_ctx_##NAME##_put_signal(SHMEM_CTX_DEFAULT, there, mine, N, &signal_word, 7, SHMEM_SIGNAL_ADD, right); break; \
        case 9: shmem_ctx_##NAME##_put_signal_nbi(SHMEM_CTX_DEFAULT, there, mine, N, &signal_word, 7, SHMEM_SIGNAL_ADD, right); break; \
        case 10: for (int i = 0; i < N; i++) shmem_##NAME##_put(there + i, mine + i, 1, right); break;            \
        case 11: shmem_##NAME##_put(there, mine, 0, right); shmem_##NAME##_put(there, mine, N, right); break;     \
      }                                                                                                           \
      if (form >= 6 && form <= 9) {                                                                               \
        CHECK(shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 7) == 7, #NAME " put_signal %s", where);        \
        for (int i = 0; i < N; i++) CHECK(there[i] == VALUE(TYPE, left, i), #NAME " signal before data, form %d", form); \
        signal_word = 0;                                                                                          \
      }                                                                                                           \
      ARRIVED(TYPE, there, left, #NAME " put");                                                                   \
    }                                                                                                             \
    for (int i = 0; i < ROOM; i++) there[i] = VALUE(TYPE, me, i);                                                 \
    shmem_barrier_all();                                                                                          \
    for (int form = 0; form < 6; form++) {                                                                        \
      for (int i = 0; i < ROOM; i++) here[i] = (TYPE)99;                                                          \
      switch (form) {                                                                                             \
        case 0: shmem_##NAME##_get(here, there, N, right); break;                                                 \
        case 1: shmem_ctx_##NAME##_get(SHMEM_CTX_DEFAULT, here, there, N, right); break;                          \
        case 2: shmem_##NAME##_get_nbi(here, there, N, right); shmem_quiet(); break;                              \
        case 3: shmem_ctx_##NAME##_get_nbi(SHMEM_CTX_DEFAULT, here, there, N, right); shmem_quiet(); break;       \
        case 4: for (int i = 0; i < N; i++) here[i] = shmem_##NAME##_g(there + i, right); break;                  \
        case 5: for (int i = 0; i < N; i++) here[i] = shmem_ctx_##NAME##_g(SHMEM_CTX_DEFAULT, there + i, right); break; \
      }                                                                                                           \
      for (int i = 0; i < N; i++) CHECK(here[i] == VALUE(TYPE, right, i), #NAME " get form %d, element %d", form, i); \
      for (int i = N; i < ROOM; i++) CHECK(here[i] == (TYPE)99, #NAME " get form %d went too far", form);         \
    }                                                                                                             \
    for (int form = 0; form < 2; form++) {                                                                        \
      for (int i = 0; i < ROOM; i++) here[i] = (TYPE)99;                                                          \
      if (form) shmem_ctx_##NAME##_iget(SHMEM_CTX_DEFAULT, here, there, 2, STRIDE, N, right);                     \
      else shmem_##NAME##_iget(here, there, 2, STRIDE, N, right);                                                 \
      for (int i = 0; i < N; i++) CHECK(here[2 * i] == VALUE(TYPE, right, STRIDE * i) && here[2 * i + 1] == (TYPE)99, #NAME " iget element %d", i); \
      for (int i = 0; i < ROOM; i++) here[i] = (TYPE)99;                                                          \
      if (form) shmem_ctx_##NAME##_ibget(SHMEM_CTX_DEFAULT, here, there, BLOCK, STRIDE, BLOCK, BLOCKS, right);    \
      else shmem_##NAME##_ibget(here, there, BLOCK, STRIDE, BLOCK, BLOCKS, right);                                \
      for (int b = 0; b < BLOCKS; b++)                                                                            \
        for (int i = 0; i < BLOCK; i++) CHECK(here[b * BLOCK + i] == VALUE(TYPE, right, b * STRIDE + i), #NAME " ibget block %d", b); \
    }                                                                                                             \
    for (int form = 0; form < 2; form++) {                                                                        \
      shmem_barrier_all();                                                                                        \
      CLEAR(TYPE, there);                                                                                         \
      if (form) shmem_ctx_##NAME##_iput(SHMEM_CTX_DEFAULT, there, mine, STRIDE, 2, N, right);                     \
      else shmem_##NAME##_iput(there, mine, STRIDE, 2, N, right);                                                 \
      shmem_barrier_all();                                                                                        \
      for (int i = 0; i < N; i++) CHECK(there[STRIDE * i] == VALUE(TYPE, left, 2 * i) && there[STRIDE * i + 1] == (TYPE)99, #NAME " iput element %d", i); \
      shmem_barrier_all();                                                                                        \
      CLEAR(TYPE, there);                                                                                         \
      if (form) shmem_ctx_##NAME##_ibput(SHMEM_CTX_DEFAULT, there, mine, STRIDE, BLOCK, BLOCK, BLOCKS, right);    \
      else shmem_##NAME##_ibput(there, mine, STRIDE, BLOCK, BLOCK, BLOCKS, right);                                \
      shmem_barrier_all();                                                                                        \
      for (int b = 0; b < BLOCKS; b++)                                                                            \
        for (int i = 0; i < BLOCK; i++) CHECK(there[b * STRIDE + i] == VALUE(TYPE, left, b * BLOCK + i), #NAME " ibput block %d", b); \
    }                                                                                                             \
    shmem_barrier_all();                                                                                          \
  }                                                                                                               \
  static TYPE NAME##_static[ROOM];
RMA_TYPES(TYPED)

/* Elements of SIZE bits as blocks of bytes. */
#define SIZED_BODY(SIZE, BYTES, COUNT)                                                                            \
  static void sized_##SIZE(char *there) {                                                                         \
    char mine[ROOM * 16], here[ROOM * 16];                                                                        \
    const int right = RIGHT(1), left = LEFT(1);                                                                   \
    const size_t bytes = (size_t)(COUNT) * (BYTES);                                                               \
    for (size_t i = 0; i < sizeof mine; i++) mine[i] = VALUE(char, me, (int)i);                                   \
    for (int form = 0; form < 8; form++) {                                                                        \
      memset(there, 99, ROOM * 16);                                                                               \
      shmem_barrier_all();                                                                                        \
      switch (form) {                                                                                             \
        case 0: shmem_put##SIZE(there, mine, COUNT, right); break;                                                \
        case 1: shmem_ctx_put##SIZE(SHMEM_CTX_DEFAULT, there, mine, COUNT, right); break;                         \
        case 2: shmem_put##SIZE##_nbi(there, mine, COUNT, right); break;                                          \
        case 3: shmem_ctx_put##SIZE##_nbi(SHMEM_CTX_DEFAULT, there, mine, COUNT, right); break;                   \
        case 4: shmem_put##SIZE##_signal(there, mine, COUNT, &signal_word, 1, SHMEM_SIGNAL_ADD, right); break;    \
        case 5: shmem_ctx_put##SIZE##_signal(SHMEM_CTX_DEFAULT, there, mine, COUNT, &signal_word, 1, SHMEM_SIGNAL_ADD, right); break; \
        case 6: shmem_put##SIZE##_signal_nbi(there, mine, COUNT, &signal_word, 1, SHMEM_SIGNAL_SET, right); break; \
        case 7: shmem_ctx_put##SIZE##_signal_nbi(SHMEM_CTX_DEFAULT, there, mine, COUNT, &signal_word, 1, SHMEM_SIGNAL_SET, right); break; \
      }                                                                                                           \
      if (form >= 4) shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1), signal_word = 0;                     \
      shmem_barrier_all();                                                                                        \
      for (size_t i = 0; i < bytes; i++) CHECK(there[i] == VALUE(char, left, (int)i), "put" #SIZE " form %d, byte %zu", form, i); \
      CHECK(there[bytes] == 99, "put" #SIZE " form %d went too far", form);                                       \
      shmem_barrier_all();                                                                                        \
    }                                                                                                             \
    memcpy(there, mine, sizeof mine);                                                                             \
    shmem_barrier_all();                                                                                          \
    for (int form = 0; form < 4; form++) {                                                                        \
      memset(here, 99, sizeof here);                                                                              \
      switch (form) {                                                                                             \
        case 0: shmem_get##SIZE(here, there, COUNT, right); break;                                                \
        case 1: shmem_ctx_get##SIZE(SHMEM_CTX_DEFAULT, here, there, COUNT, right); break;                         \
        case 2: shmem_get##SIZE##_nbi(here, there, COUNT, right); shmem_quiet(); break;                           \
        case 3: shmem_ctx_get##SIZE##_nbi(SHMEM_CTX_DEFAULT, here, there, COUNT, right); shmem_quiet(); break;    \
      }                                                                                                           \
      for (size_t i = 0; i < bytes; i++) CHECK(here[i] == VALUE(char, right, (int)i), "get" #SIZE " form %d, byte %zu", form, i); \
      CHECK(here[bytes] == 99, "get" #SIZE " form %d went too far", form);                                        \
    }                                                                                                             \
    shmem_barrier_all();                                                                                          \
  }
#define SIZED(SIZE, BYTES)                                                                                        \
  SIZED_BODY(SIZE, BYTES, N)                                                                                      \
  static void strided_##SIZE(char *there) {                                                                       \
    char mine[ROOM * 16], here[ROOM * 16];                                                                        \
    const int right = RIGHT(1), left = LEFT(1);                                                                   \
    for (size_t i = 0; i < sizeof mine; i++) mine[i] = VALUE(char, me, (int)i);                                   \
    for (int form = 0; form < 4; form++) {                                                                        \
      memset(there, 99, ROOM * 16);                                                                               \
      shmem_barrier_all();                                                                                        \
      switch (form) {                                                                                             \
        case 0: shmem_iput##SIZE(there, mine, STRIDE, 1, N, right); break;                                        \
        case 1: shmem_ctx_iput##SIZE(SHMEM_CTX_DEFAULT, there, mine, STRIDE, 1, N, right); break;                 \
        case 2: shmem_ibput##SIZE(there, mine, STRIDE, 1, 1, N, right); break;                                    \
        case 3: shmem_ctx_ibput##SIZE(SHMEM_CTX_DEFAULT, there, mine, STRIDE, 1, 1, N, right); break;             \
      }                                                                                                           \
      shmem_barrier_all();                                                                                        \
      for (int i = 0; i < N; i++)                                                                                 \
        for (int b = 0; b < BYTES; b++)                                                                           \
          CHECK(there[i * STRIDE * BYTES + b] == VALUE(char, left, i * BYTES + b) && there[(i * STRIDE + 1) * BYTES + b] == 99, "iput" #SIZE " form %d, element %d", form, i); \
      shmem_barrier_all();                                                                                        \
    }                                                                                                             \
    memcpy(there, mine, sizeof mine);                                                                             \
    shmem_barrier_all();                                                                                          \
    for (int form = 0; form < 4; form++) {                                                                        \
      memset(here, 99, sizeof here);                                                                              \
      switch (form) {                                                                                             \
        case 0: shmem_iget##SIZE(here, there, 1, STRIDE, N, right); break;                                        \
        case 1: shmem_ctx_iget##SIZE(SHMEM_CTX_DEFAULT, here, there, 1, STRIDE, N, right); break;                 \
        case 2: shmem_ibget##SIZE(here, there, 1, STRIDE, 1, N, right); break;                                    \
        case 3: shmem_ctx_ibget##SIZE(SHMEM_CTX_DEFAULT, here, there, 1, STRIDE, 1, N, right); break;             \
      }                                                                                                           \
      for (int i = 0; i < N; i++)                                                                                 \
        for (int b = 0; b < BYTES; b++)                                                                           \
          CHECK(here[i * BYTES + b] == VALUE(char, right, i * STRIDE * BYTES + b), "iget" #SIZE " form %d, element %d", form, i); \
      CHECK(here[N * BYTES] == 99, "iget" #SIZE " form %d went too far", form);                                   \
    }                                                                                                             \
    shmem_barrier_all();                                                                                          \
  }
SIZES(SIZED)
SIZED_BODY(mem, 1, 4 * N + 1)

int main(void) {
  begin();
  char *heap = shmem_malloc(ROOM * 16);
#define RUN(NAME, TYPE)                                     \
  for (int d = 0; d < (npes < 3 ? npes : 3); d++) {         \
    NAME##_rma((TYPE *)heap, "on the heap", d);             \
    NAME##_rma(NAME##_static, "in static data", d);         \
  }
  RMA_TYPES(RUN)
#define RUN_SIZED(SIZE, BYTES) \
  sized_##SIZE(heap);          \
  strided_##SIZE(heap);
  SIZES(RUN_SIZED)
  sized_mem(heap);
  shmem_free(heap);
  return end();
}
