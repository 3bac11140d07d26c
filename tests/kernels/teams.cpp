/* Kernels that test teams and collectives, launched by the `api` program of this package. Parameters: (ctx, a, b, out, u64 engine, i64 team,
 * ...); all communicating cores of all members launch them.
 *
 * kernel        what it does                                                                        out
 * tm_query      asks about the team, and translates its numbers to team `other`                       [0]: my_pe, [1]: n_pes, [2..]: numbers
 *               (i64), core 0                                                                         in other, [2 + n_pes]: error
 * tm_rounds     n rounds: own slot (u64, my number * cores + core) at a on every member by p;         [c]: slots seen behind,
 *               k: 0 barrier, 1 quiet and team_sync, 2 as 0, skewed                                   [cores + c]: error
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace teams {

__aicore__ inline void out_word(GM_ADDR out, uint64_t index, uint64_t value) {
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(out) + index, value);
}

__aicore__ inline shmem_options with_engine(uint64_t engine) {
  shmem_options options;
  options.engine = static_cast<uint32_t>(engine);
  return options;
}

}  // namespace teams

extern "C" __global__ __aicore__ void tm_query(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, int64_t team,
                                               int64_t other) {
  (void)a, (void)b;
  shmem_guard guard = shmem_attach(ctx, teams::with_engine(engine));
  if (shmem_my_core() != 0) return;
  int n = shmem_team_n_pes(shmem_team_t(team));
  teams::out_word(out, 0, uint64_t(int64_t(shmem_team_my_pe(shmem_team_t(team)))));
  teams::out_word(out, 1, uint64_t(int64_t(n)));
  for (int i = 0; i < n; ++i) {
    teams::out_word(out, 2 + uint64_t(i), uint64_t(int64_t(shmem_team_translate_pe(shmem_team_t(team), i, shmem_team_t(other)))));
  }
  if (n >= 0) teams::out_word(out, 2 + uint64_t(n), shmem_error());
}

extern "C" __global__ __aicore__ void tm_rounds(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, int64_t id, uint64_t n,
                                                uint64_t k) {
  (void)b;
  shmem_guard guard = shmem_attach(ctx, teams::with_engine(engine));
  shmem_team_t team = shmem_team_t(id);
  uint64_t cores = uint64_t(shmem_n_cores()), core = uint64_t(shmem_my_core());
  uint64_t me = uint64_t(shmem_team_my_pe(team)), members = uint64_t(shmem_team_n_pes(team));
  if (shmem_team_n_pes(team) < 0) {
    shmem_barrier(team); /* of no team: an error */
    n = 0;
  }
  __gm__ uint64_t* slots = reinterpret_cast<__gm__ uint64_t*>(a);
  uint64_t behind = 0;
  for (uint64_t round = 1; round <= n && shmem_error() == SHMEM_OK; ++round) {
    for (uint64_t i = 0; i < members; ++i) {
      shmem_p(slots + me * cores + core, round, shmem_team_translate_pe(team, int(i), SHMEM_TEAM_WORLD));
    }
    if (k == 2 && (round + me) % 7 == 0) {
      for (uint64_t i = 0; i < 2000; ++i) AscendC::GetSystemCycle();
    }
    if (k == 1) {
      shmem_quiet();
      shmem_team_sync(team);
    } else {
      shmem_barrier(team);
    }
    for (uint64_t i = 0; i < members * cores; ++i) {
      behind += AscendC::ReadGmByPassDCache<uint64_t>(slots + i) < round ? 1 : 0;
    }
  }
  teams::out_word(out, core, behind);
  teams::out_word(out, cores + core, shmem_error());
}
