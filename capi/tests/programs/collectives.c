/* collectives.c: data-moving collectives of every type over teams of several shapes, and their active-set forms. */
#include "check.h"

enum { N = 5, MOST_PES = 16, ROOM = MOST_PES * N * 2 };

/* The team under test: its PEs' numbers in the world. */
static shmem_team_t team;
static int my, size, world[MOST_PES];

#define FILL(TYPE, array, with) \
  for (int i = 0; i < ROOM; i++) (array)[i] = (TYPE)(with)

#define MOVES(NAME, TYPE)                                                                                          \
  static TYPE NAME##_source[ROOM], NAME##_dest[ROOM];                                                              \
  static void NAME##_moves(void) {                                                                                 \
    TYPE *source = NAME##_source, *dest = NAME##_dest;                                                             \
    for (int i = 0; i < ROOM; i++) source[i] = VALUE(TYPE, me, i);                                                 \
    const int root = size - 1;                                                                                     \
    FILL(TYPE, dest, 99);                                                                                          \
    shmem_team_sync(team);                                                                                         \
    CHECK(shmem_##NAME##_broadcast(team, dest, source, N, root) == 0, #NAME);                                      \
    for (int i = 0; i < N; i++) CHECK(dest[i] == VALUE(TYPE, world[root], i), #NAME " broadcast element %d", i);   \
    CHECK(dest[N] == (TYPE)99, #NAME " broadcast went too far");                                                   \
    shmem_team_sync(team);                                                                                         \
    FILL(TYPE, dest, 99);                                                                                          \
    shmem_team_sync(team);                                                                                         \
    CHECK(shmem_##NAME##_fcollect(team, dest, source, N) == 0, #NAME);                                             \
    for (int pe = 0; pe < size; pe++)                                                                              \
      for (int i = 0; i < N; i++) CHECK(dest[pe * N + i] == VALUE(TYPE, world[pe], i), #NAME " fcollect PE %d element %d", pe, i); \
    CHECK(dest[size * N] == (TYPE)99, #NAME " fcollect went too far");                                             \
    shmem_team_sync(team);                                                                                         \
    FILL(TYPE, dest, 99);                                                                                          \
    shmem_team_sync(team);                                                                                         \
    /* Team PE k gives k % 3 elements; some give none. */                                                          \
    CHECK(shmem_##NAME##_collect(team, dest, source, (size_t)(my % 3)) == 0, #NAME);                               \
    int at = 0;                                                                                                    \
    for (int pe = 0; pe < size; pe++)                                                                              \
      for (int i = 0; i < pe % 3; i++, at++) CHECK(dest[at] == VALUE(TYPE, world[pe], i), #NAME " collect PE %d element %d", pe, i); \
    CHECK(dest[at] == (TYPE)99, #NAME " collect went too far");                                                    \
    shmem_team_sync(team);                                                                                         \
    FILL(TYPE, dest, 99);                                                                                          \
    shmem_team_sync(team);                                                                                         \
    CHECK(shmem_##NAME##_alltoall(team, dest, source, N) == 0, #NAME);                                             \
    for (int pe = 0; pe < size; pe++)                                                                              \
      for (int i = 0; i < N; i++) CHECK(dest[pe * N + i] == VALUE(TYPE, world[pe], my * N + i), #NAME " alltoall PE %d element %d", pe, i); \
    CHECK(dest[size * N] == (TYPE)99, #NAME " alltoall went too far");                                             \
    shmem_team_sync(team);                                                                                         \
    FILL(TYPE, dest, 99);                                                                                          \
    shmem_team_sync(team);                                                                                         \
    CHECK(shmem_##NAME##_alltoalls(team, dest, source, 2, 1, N) == 0, #NAME);                                      \
    for (int pe = 0; pe < size; pe++)                                                                              \
      for (int i = 0; i < N; i++)                                                                                  \
        CHECK(dest[2 * (pe * N + i)] == VALUE(TYPE, world[pe], my * N + i) && dest[2 * (pe * N + i) + 1] == (TYPE)99, #NAME " alltoalls PE %d element %d", pe, i); \
    shmem_team_sync(team);                                                                                         \
  }
RMA_TYPES(MOVES)

static void bytes(void) {
  char *source = char_source, *dest = char_dest;
  for (int i = 0; i < ROOM; i++) source[i] = VALUE(char, me, i);
  shmem_team_sync(team);
  CHECK(shmem_broadcastmem(team, dest, source, N, 0) == 0, "");
  for (int i = 0; i < N; i++) CHECK(dest[i] == VALUE(char, world[0], i), "broadcastmem byte %d", i);
  shmem_team_sync(team);
  CHECK(shmem_fcollectmem(team, dest, source, N) == 0, "");
  for (int i = 0; i < size * N; i++) CHECK(dest[i] == VALUE(char, world[i / N], i % N), "fcollectmem byte %d", i);
  shmem_team_sync(team);
  CHECK(shmem_collectmem(team, dest, source, my == 0 ? 3 : 1) == 0, "");
  for (int i = 0; i < size + 2; i++) CHECK(dest[i] == (i < 3 ? VALUE(char, world[0], i) : VALUE(char, world[i - 2], 0)), "collectmem byte %d", i);
  shmem_team_sync(team);
  CHECK(shmem_alltoallmem(team, dest, source, N) == 0, "");
  for (int i = 0; i < size * N; i++) CHECK(dest[i] == VALUE(char, world[i / N], my * N + i % N), "alltoallmem byte %d", i);
  shmem_team_sync(team);
  CHECK(shmem_alltoallsmem(team, dest, source, 1, 1, N) == 0, "");
  for (int i = 0; i < size * N; i++) CHECK(dest[i] == VALUE(char, world[i / N], my * N + i % N), "alltoallsmem byte %d", i);
  shmem_team_sync(team);
}

static void over(shmem_team_t which) {
  if (which == SHMEM_TEAM_INVALID) return;
  team = which;
  my = shmem_team_my_pe(team);
  size = shmem_team_n_pes(team);
  for (int pe = 0; pe < size; pe++) world[pe] = shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
  CHECK(my >= 0 && my < size && world[my] == me, "team");
#define RUN(NAME, TYPE) NAME##_moves();
  RMA_TYPES(RUN)
  bytes();
}

/* Active sets: all PEs, and every second one. */
static long sync_a[SHMEM_SYNC_SIZE], sync_b[SHMEM_SYNC_SIZE];
#define ACTIVE_SET(SIZE, BYTES)                                                                                    \
  static void active_##SIZE(int log_stride) {                                                                      \
    typedef uint##SIZE##_t word;                                                                                   \
    word *source = (word *)uint##SIZE##_source, *dest = (word *)uint##SIZE##_dest;                                 \
    const int stride = 1 << log_stride, count = (npes + stride - 1) / stride, mine = me / stride;                  \
    for (int i = 0; i < ROOM; i++) source[i] = VALUE(word, me, i), dest[i] = 99;                                   \
    shmem_barrier_all();                                                                                           \
    if (me % stride == 0) {                                                                                        \
      shmem_broadcast##SIZE(dest, source, N, count - 1, 0, log_stride, count, sync_a);                             \
      for (int i = 0; i < N; i++) /* the root's own dest is left alone */                                          \
        CHECK(dest[i] == (mine == count - 1 ? 99 : VALUE(word, (count - 1) * stride, i)), "broadcast" #SIZE " element %d", i); \
      shmem_barrier(0, log_stride, count, sync_b);                                                                 \
      shmem_fcollect##SIZE(dest, source, N, 0, log_stride, count, sync_a);                                         \
      for (int i = 0; i < count * N; i++) CHECK(dest[i] == VALUE(word, i / N * stride, i % N), "fcollect" #SIZE " element %d", i); \
      shmem_sync(0, log_stride, count, sync_b);                                                                    \
      shmem_collect##SIZE(dest, source, (size_t)(mine % 2 + 1), 0, log_stride, count, sync_a);                     \
      for (int pe = 0, at = 0; pe < count; pe++)                                                                   \
        for (int i = 0; i < pe % 2 + 1; i++, at++) CHECK(dest[at] == VALUE(word, pe * stride, i), "collect" #SIZE " element %d", at); \
      shmem_barrier(0, log_stride, count, sync_b);                                                                 \
      shmem_alltoall##SIZE(dest, source, N, 0, log_stride, count, sync_a);                                         \
      for (int i = 0; i < count * N; i++) CHECK(dest[i] == VALUE(word, i / N * stride, mine * N + i % N), "alltoall" #SIZE " element %d", i); \
      shmem_barrier(0, log_stride, count, sync_b);                                                                 \
      shmem_alltoalls##SIZE(dest, source, 2, 1, N, 0, log_stride, count, sync_a);                                  \
      for (int i = 0; i < count * N; i++) CHECK(dest[2 * i] == VALUE(word, i / N * stride, mine * N + i % N), "alltoalls" #SIZE " element %d", i); \
      for (int i = 0; i < SHMEM_SYNC_SIZE; i++) CHECK(sync_a[i] == SHMEM_SYNC_VALUE || i == 0, "pSync is left changed at %d", i); \
    }                                                                                                              \
    shmem_barrier_all();                                                                                           \
  }
COLLECTIVE_SIZES(ACTIVE_SET)

int main(void) {
  begin();
  for (int i = 0; i < SHMEM_SYNC_SIZE; i++) sync_a[i] = sync_b[i] = SHMEM_SYNC_VALUE;
  over(SHMEM_TEAM_WORLD);
  over(SHMEM_TEAM_SHARED);
  shmem_barrier_all();
  shmem_team_t odd = SHMEM_TEAM_INVALID, backwards = SHMEM_TEAM_INVALID;
  if (npes > 1) {
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, npes / 2, NULL, 0, &odd);
    CHECK((odd != SHMEM_TEAM_INVALID) == (me % 2 == 1), "odd team");
    over(odd);
    shmem_barrier_all();
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &backwards);
    CHECK(backwards != SHMEM_TEAM_INVALID && shmem_team_my_pe(backwards) == npes - 1 - me, "backwards team");
    over(backwards);
    shmem_barrier_all();
  }
  for (int log_stride = 0; log_stride < 2; log_stride++) {
#define RUN_SET(SIZE, BYTES) active_##SIZE(log_stride);
    COLLECTIVE_SIZES(RUN_SET)
  }
  return end();
}
