/* teams.c: who is in which team, translation, configurations, contexts of teams, many teams one after another. */
#include "check.h"

static long word;

static void worlds(void) {
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == npes, "world");
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) == npes, "all PEs of a machine share memory");
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1, "invalid");
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1, "invalid");
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, npes, SHMEM_TEAM_SHARED) == -1, "no such PE");
  shmem_team_t none = SHMEM_TEAM_WORLD;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &none) != 0 && none == SHMEM_TEAM_INVALID, "no parent");
  shmem_team_destroy(SHMEM_TEAM_INVALID);
}

/* PEs 0, 2, 4, ... and a context of theirs: PE numbers are the team's. */
static void even(void) {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  const shmem_team_config_t config = {3};
  const int size = (npes + 1) / 2;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, size, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0 || me % 2, "split");
  if (me % 2) {
    CHECK(team == SHMEM_TEAM_INVALID, "not a member");
  } else {
    CHECK(shmem_team_my_pe(team) == me / 2 && shmem_team_n_pes(team) == size, "even");
    for (int pe = 0; pe < npes; pe++)
      CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, team) == (pe % 2 ? -1 : pe / 2), "PE %d", pe);
    shmem_team_config_t got = {0};
    CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 3, "%d contexts", got.num_contexts);
    shmem_ctx_t ctx;
    CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0, "context");
    shmem_team_t of = SHMEM_TEAM_INVALID;
    CHECK(shmem_ctx_get_team(ctx, &of) == 0 && shmem_team_n_pes(of) == size, "the context's team");
    word = -1;
    shmem_team_sync(team);
    shmem_ctx_long_p(ctx, &word, me, (me / 2 + 1) % size);
    shmem_ctx_quiet(ctx);
    shmem_team_sync(team);
    const int left = (me / 2 - 1 + size) % size * 2;
    CHECK(word == left, "%ld arrived, not %d", word, left);
    CHECK(shmem_ctx_long_g(ctx, &word, (me / 2 + 1) % size) == me, "g");
    CHECK(shmem_team_ptr(team, &word, me / 2) == &word, "team_ptr");
    shmem_team_sync(team);
    shmem_ctx_destroy(ctx);
    /* A team of the team: its last PE alone. */
    shmem_team_t last;
    shmem_team_split_strided(team, size - 1, 1, 1, NULL, 0, &last);
    CHECK((last != SHMEM_TEAM_INVALID) == (me / 2 == size - 1), "last");
    if (last != SHMEM_TEAM_INVALID) shmem_team_sync(last), shmem_team_destroy(last);
    shmem_team_destroy(team);
  }
  shmem_barrier_all();
}

static void grid(int xrange) {
  shmem_team_t x, y;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &x, NULL, 0, &y) == 0, "2d");
  const int width = xrange < npes ? xrange : npes, row = me / width, column = me % width;
  const int in_row = row == npes / width ? npes % width : width;
  const int in_column = npes / width + (column < npes % width);
  CHECK(shmem_team_my_pe(x) == column && shmem_team_n_pes(x) == in_row, "x: %d of %d", shmem_team_my_pe(x), shmem_team_n_pes(x));
  CHECK(shmem_team_my_pe(y) == row && shmem_team_n_pes(y) == in_column, "y: %d of %d", shmem_team_my_pe(y), shmem_team_n_pes(y));
  shmem_team_sync(x);
  shmem_team_sync(y);
  shmem_team_destroy(x);
  shmem_team_destroy(y);
  shmem_barrier_all();
}

static void many(void) {
  enum { ROUNDS = 100 };
  static long source, dest;
  for (int round = 0; round < ROUNDS; round++) {
    shmem_team_t team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team) == 0, "round %d", round);
    source = round + me;
    CHECK(shmem_long_max_reduce(team, &dest, &source, 1) == 0 && dest == round + npes - 1, "round %d", round);
    shmem_team_destroy(team);
  }
}

static void contexts(void) {
  const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK(shmem_ctx_create(options[i], &ctx) == 0 && ctx != SHMEM_CTX_INVALID, "options %ld", options[i]);
    const shmem_ctx_session_config_t session = {10};
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &session, SHMEM_CTX_SESSION_TOTAL_OPS);
    word = 0;
    shmem_barrier_all();
    shmem_ctx_long_atomic_add(ctx, &word, 2, (me + 1) % npes);
    shmem_ctx_fence(ctx);
    const int target = (me + 1) % npes;
    shmem_ctx_pe_quiet(ctx, &target, 1);
    shmem_ctx_quiet(ctx);
    shmem_pe_quiet(&target, 1);
    shmem_ctx_session_stop(ctx);
    shmem_barrier_all();
    CHECK(word == 2, "%ld", word);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK(shmem_ctx_get_team(ctx, &team) == 0 && shmem_team_n_pes(team) == npes, "team of a context");
    shmem_ctx_destroy(ctx);
  }
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_team_t team = SHMEM_TEAM_WORLD;
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID, "invalid context");
}

int main(void) {
  begin();
  worlds();
  even();
  for (int xrange = 1; xrange <= npes + 1; xrange++) grid(xrange);
  many();
  contexts();
  for (int i = 0; i < 20; i++)
    for (int pe = me ^ 1; pe < npes && i >= 0; pe = npes) shmem_sync_pe(pe);
  return end();
}
