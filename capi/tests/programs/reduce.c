/* reduce.c: reductions and scans of every operation and type against a plain model, in place too, long and short; and the _to_all forms. */
#include "check.h"

enum { SHORT = 7, LONG = 3000, MOST_PES = 16 };

/* Elements are small whole numbers, so that every order of operations gives the same result in every type; products stay small. */
#define ELEMENT(TYPE, pe, i) ((TYPE)((((pe) + (i)) % 4) == 0 ? 2 : 1))

#define OP_sum(a, b) ((a) + (b))
#define OP_prod(a, b) ((a) * (b))
#define OP_max(a, b) ((a) > (b) ? (a) : (b))
#define OP_min(a, b) ((a) < (b) ? (a) : (b))
#define OP_and(a, b) ((a) & (b))
#define OP_or(a, b) ((a) | (b))
#define OP_xor(a, b) ((a) ^ (b))

#define MODEL(TYPE, op, i)                                                    \
  TYPE expected = ELEMENT(TYPE, 0, i);                                        \
  for (int pe = 1; pe < npes; pe++) expected = (TYPE)OP_##op(expected, ELEMENT(TYPE, pe, i));

#define REDUCE(NAME, TYPE, op)                                                                                     \
  for (int count = 0; count <= LONG; count = count == 0 ? SHORT : count == SHORT ? LONG : LONG + 1)                \
    for (int in_place = 0; in_place < 2; in_place++) {                                                             \
      TYPE *source = heap_a, *dest = in_place ? (TYPE *)heap_a : (TYPE *)heap_b;                                   \
      for (int i = 0; i < count; i++) source[i] = ELEMENT(TYPE, me, i);                                            \
      shmem_team_sync(SHMEM_TEAM_WORLD);                                                                           \
      CHECK(shmem_##NAME##_##op##_reduce(SHMEM_TEAM_WORLD, dest, source, (size_t)count) == 0, #NAME);              \
      for (int i = 0; i < count; i++) {                                                                            \
        MODEL(TYPE, op, i)                                                                                         \
        CHECK(dest[i] == expected, #NAME " " #op " of %d%s, element %d", count, in_place ? " in place" : "", i);   \
      }                                                                                                            \
      shmem_team_sync(SHMEM_TEAM_WORLD);                                                                           \
    }

#define SCAN(NAME, TYPE)                                                                                           \
  for (int exclusive = 0; exclusive < 2; exclusive++)                                                              \
    for (int in_place = 0; in_place < 2; in_place++) {                                                             \
      TYPE *source = heap_a, *dest = in_place ? (TYPE *)heap_a : (TYPE *)heap_b;                                   \
      for (int i = 0; i < SHORT; i++) source[i] = ELEMENT(TYPE, me, i);                                            \
      shmem_team_sync(SHMEM_TEAM_WORLD);                                                                           \
      if (exclusive) CHECK(shmem_##NAME##_sum_exscan(SHMEM_TEAM_WORLD, dest, source, SHORT) == 0, #NAME);          \
      else CHECK(shmem_##NAME##_sum_inscan(SHMEM_TEAM_WORLD, dest, source, SHORT) == 0, #NAME);                    \
      for (int i = 0; i < SHORT; i++) {                                                                            \
        TYPE expected = 0;                                                                                         \
        for (int pe = 0; pe < me + !exclusive; pe++) expected = (TYPE)(expected + ELEMENT(TYPE, pe, i));           \
        CHECK(dest[i] == expected, #NAME " %s scan%s, element %d", exclusive ? "exclusive" : "inclusive", in_place ? " in place" : "", i); \
      }                                                                                                            \
      shmem_team_sync(SHMEM_TEAM_WORLD);                                                                           \
    }

static long sync_words[SHMEM_REDUCE_SYNC_SIZE];
static void *heap_a, *heap_b, *work;

#define TO_ALL(NAME, TYPE, op)                                                                                     \
  {                                                                                                                \
    TYPE *source = heap_a, *dest = heap_b;                                                                         \
    for (int i = 0; i < SHORT; i++) source[i] = ELEMENT(TYPE, me, i);                                              \
    shmem_barrier_all();                                                                                           \
    shmem_##NAME##_##op##_to_all(dest, source, SHORT, 0, 0, npes, work, sync_words);                               \
    for (int i = 0; i < SHORT; i++) {                                                                              \
      MODEL(TYPE, op, i)                                                                                           \
      CHECK(dest[i] == expected, #NAME " " #op "_to_all, element %d", i);                                          \
    }                                                                                                              \
    shmem_barrier_all();                                                                                           \
  }

int main(void) {
  begin();
  heap_a = shmem_malloc(LONG * 16);
  heap_b = shmem_malloc(LONG * 16);
  work = shmem_malloc(LONG * 16);
  for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++) sync_words[i] = SHMEM_SYNC_VALUE;
#define RUN_BITWISE(NAME, TYPE) REDUCE(NAME, TYPE, and) REDUCE(NAME, TYPE, or) REDUCE(NAME, TYPE, xor)
#define RUN_MINMAX(NAME, TYPE) REDUCE(NAME, TYPE, max) REDUCE(NAME, TYPE, min)
#define RUN_ARITH(NAME, TYPE) REDUCE(NAME, TYPE, sum) REDUCE(NAME, TYPE, prod) SCAN(NAME, TYPE)
  REDUCE_BITWISE_TYPES(RUN_BITWISE)
  REDUCE_MINMAX_TYPES(RUN_MINMAX)
  REDUCE_ARITH_TYPES(RUN_ARITH)
#define ALL_BITWISE(NAME, TYPE) TO_ALL(NAME, TYPE, and) TO_ALL(NAME, TYPE, or) TO_ALL(NAME, TYPE, xor)
#define ALL_MINMAX(NAME, TYPE) TO_ALL(NAME, TYPE, max) TO_ALL(NAME, TYPE, min)
#define ALL_ARITH(NAME, TYPE) TO_ALL(NAME, TYPE, sum) TO_ALL(NAME, TYPE, prod)
  TO_ALL_BITWISE_TYPES(ALL_BITWISE)
  TO_ALL_MINMAX_TYPES(ALL_MINMAX)
  TO_ALL_ARITH_TYPES(ALL_ARITH)
  return end();
}
