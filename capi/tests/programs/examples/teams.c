/* teams.c: teams by stride and in two and three dimensions, translation of numbers, contexts of teams.
 *
 * After OpenSHMEM 1.6: 9.4 (teams: split_strided, split_2d, translate_pe), 9.5 (team_create_ctx, ctx_get_team). */
#include "check.h"

static void every_second_pe(void) {
  shmem_team_t evens;
  int members = (npes + 1) / 2;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, members, NULL, 0, &evens) == 0, "result");
  CHECK((evens != SHMEM_TEAM_INVALID) == (me % 2 == 0), "membership");
  if (evens != SHMEM_TEAM_INVALID) {
    CHECK(shmem_team_n_pes(evens) == members && shmem_team_my_pe(evens) == me / 2, "my number there");
    CHECK(shmem_team_translate_pe(evens, me / 2, SHMEM_TEAM_WORLD) == me, "back again");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1, evens) == -1, "PE 1 is not in it");
  }
  shmem_team_destroy(evens);
  /* Questions about no team have an answer. */
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1, "no team");
}

/* Three dimensions as near to a cube as the number of PEs allows: two splits, and the middle team is not needed any more. */
static int near_root(int n, int power) {
  int best = 1;
  for (int d = 1; d <= n; d++) {
    int all = d;
    for (int i = 1; i < power; i++) all *= d;
    if (n % d == 0 && all <= n) best = d;
  }
  return best;
}

static int cell;
static void a_cube(void) {
  int x = near_root(npes, 3), y = near_root(npes / x, 2), z = npes / x / y;
  shmem_team_t xs, yzs, ys, zs;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, x, NULL, 0, &xs, NULL, 0, &yzs) == 0, "first split");
  CHECK(shmem_team_split_2d(yzs, y, NULL, 0, &ys, NULL, 0, &zs) == 0, "second split");
  shmem_team_destroy(yzs);
  CHECK(shmem_team_n_pes(xs) == x && shmem_team_n_pes(ys) == y && shmem_team_n_pes(zs) == z, "%d x %d x %d", x, y, z);
  int at = (shmem_team_my_pe(zs) * y + shmem_team_my_pe(ys)) * x + shmem_team_my_pe(xs);
  CHECK(at == me, "coordinates of %d say %d", me, at);
  /* Along each axis a sum over the line: the teams are what they say. */
  shmem_team_t axes[3] = {xs, ys, zs};
  for (int axis = 0; axis < 3; axis++) {
    static int one, sum;
    one = 1;
    shmem_barrier_all();
    shmem_int_sum_reduce(axes[axis], &sum, &one, 1);
    CHECK(sum == shmem_team_n_pes(axes[axis]), "axis %d: %d", axis, sum);
    shmem_barrier_all();
  }
  shmem_int_p(&cell, me + 1, shmem_team_translate_pe(zs, 0, SHMEM_TEAM_WORLD));
  shmem_barrier_all();
  CHECK(cell >= 0, "%d", cell);
  shmem_team_destroy(zs);
  shmem_team_destroy(ys);
  shmem_team_destroy(xs);
}

/* A ring in each of two teams, by contexts that number PEs as their team does; PEs of both teams add up what they received. */
static int from_two, from_three, total;
static shmem_ctx_t ring(int stride, int *into, shmem_team_t *team) {
  shmem_team_config_t config;
  config.num_contexts = 1;
  shmem_ctx_t ctx;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, stride, (npes + stride - 1) / stride, &config, SHMEM_TEAM_NUM_CONTEXTS, team) == 0,
        "split by %d", stride);
  int made = shmem_team_create_ctx(*team, 0, &ctx);
  CHECK((made == 0) == (*team != SHMEM_TEAM_INVALID), "context of %d", stride);
  if (ctx != SHMEM_CTX_INVALID) {
    shmem_team_t of;
    CHECK(shmem_ctx_get_team(ctx, &of) == 0 && of == *team, "the context's team");
    int mine = shmem_team_my_pe(*team);
    shmem_ctx_int_put(ctx, into, &mine, 1, (mine + 1) % shmem_team_n_pes(*team));
    shmem_ctx_quiet(ctx);
  }
  return ctx;
}
static void contexts_of_teams(void) {
  shmem_team_t twos, threes;
  shmem_ctx_t two = ring(2, &from_two, &twos), three = ring(3, &from_three, &threes);
  shmem_team_sync(SHMEM_TEAM_WORLD);
  if (me % 6 == 0) shmem_ctx_int_atomic_add(two, &total, from_two + from_three, 0);
  if (two != SHMEM_CTX_INVALID) shmem_ctx_quiet(two);
  shmem_team_sync(SHMEM_TEAM_WORLD);
  if (me == 0) {
    int expected = 0, in_two = (npes + 1) / 2, in_three = (npes + 2) / 3;
    for (int pe = 0; pe < npes; pe += 6) expected += (pe / 2 + in_two - 1) % in_two + (pe / 3 + in_three - 1) % in_three;
    CHECK(total == expected, "%d, not %d", total, expected);
  }
  shmem_ctx_destroy(two);
  shmem_ctx_destroy(three);
  shmem_team_destroy(twos);
  shmem_team_destroy(threes);
}

int main(void) {
  begin();
  every_second_pe();
  a_cube();
  contexts_of_teams();
  return end();
}
