/* Kernels that test teams and collectives, launched by the `api` program of this package. Parameters: (ctx, a, b, out, u64 engine, i64 team,
 * ...); all communicating cores of all members launch them.
 *
 * kernel        what it does                                                                        out
 * tm_query      asks about the team, and translates its numbers to team `other`                       [0]: my_pe, [1]: n_pes, [2..]: numbers
 *               (i64), core 0                                                                         in other, [2 + n_pes]: error
 * tm_rounds     n rounds: own slot (u64, my number * cores + core) at a on every member by p;         [c]: slots seen behind,
 *               k: 0 barrier, 1 quiet and team_sync, 2 as 0, skewed                                   [cores + c]: error
 * tm_collective (kind, type, n, x, y, flags) one collective from b to a; see `kinds`. type: 0 int8,     [c]: error
 *               1 uint8, 2 int16, ... 7 uint64, 8 float, 9 half. x: root or dst_stride, y: src_stride.
 *               flags: 1 dst is src, 2 scratch of 4 KiB at UB offset 0, 4 typed names of long
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

enum kinds : uint64_t {
  BROADCAST = 0, COLLECT = 1, FCOLLECT = 2, ALLTOALL = 3, ALLTOALLS = 4, BROADCASTMEM = 5, FCOLLECTMEM = 6,
  INSCAN = 8, EXSCAN = 9,
  REDUCE = 10,         /* and sum, prod, min, max, and, or, xor from 0 on */
  REDUCE_SCATTER = 20  /* as REDUCE */
};

struct call {
  shmem_team_t team;
  uint64_t kind, n, x, y, flags;
};

template <typename T>
__aicore__ inline void move(const call& c, __gm__ T* dst, __gm__ T* src) {
  switch (c.kind) {
    case BROADCAST: shmem_broadcast(c.team, dst, src, c.n, int(c.x)); break;
    case COLLECT: shmem_collect(c.team, dst, src, c.n); break;
    case FCOLLECT: shmem_fcollect(c.team, dst, src, c.n); break;
    case ALLTOALL: shmem_alltoall(c.team, dst, src, c.n); break;
    case ALLTOALLS: shmem_alltoalls(c.team, dst, src, int64_t(c.x), int64_t(c.y), c.n); break;
    case BROADCASTMEM: shmem_broadcastmem(c.team, dst, src, c.n * sizeof(T), int(c.x)); break;
    case FCOLLECTMEM: shmem_fcollectmem(c.team, dst, src, c.n * sizeof(T)); break;
    default: break;
  }
}

#define WITH_SCRATCH(CALL)                          \
  if (own) {                                        \
    CALL(c.team, dst, src, c.n, scratch);           \
  } else {                                          \
    CALL(c.team, dst, src, c.n);                    \
  }                                                 \
  break

template <typename T>
__aicore__ inline void compute(const call& c, __gm__ T* dst, __gm__ T* src) {
  bool own = (c.flags & 2) != 0;
  AscendC::LocalTensor<T> scratch(AscendC::TPosition::VECCALC, 0, 4096 / sizeof(T));
  switch (c.kind) {
    case INSCAN: WITH_SCRATCH(shmem_sum_inscan);
    case EXSCAN: WITH_SCRATCH(shmem_sum_exscan);
    case REDUCE + 0: WITH_SCRATCH(shmem_sum_reduce);
    case REDUCE + 1: WITH_SCRATCH(shmem_prod_reduce);
    case REDUCE + 2: WITH_SCRATCH(shmem_min_reduce);
    case REDUCE + 3: WITH_SCRATCH(shmem_max_reduce);
    case REDUCE_SCATTER + 0: WITH_SCRATCH(shmem_sum_reduce_scatter);
    case REDUCE_SCATTER + 1: WITH_SCRATCH(shmem_prod_reduce_scatter);
    case REDUCE_SCATTER + 2: WITH_SCRATCH(shmem_min_reduce_scatter);
    case REDUCE_SCATTER + 3: WITH_SCRATCH(shmem_max_reduce_scatter);
    default: break;
  }
}

template <typename T>
__aicore__ inline void compute_bits(const call& c, __gm__ T* dst, __gm__ T* src) {
  bool own = (c.flags & 2) != 0;
  AscendC::LocalTensor<T> scratch(AscendC::TPosition::VECCALC, 0, 4096 / sizeof(T));
  switch (c.kind) {
    case REDUCE + 4: WITH_SCRATCH(shmem_and_reduce);
    case REDUCE + 5: WITH_SCRATCH(shmem_or_reduce);
    case REDUCE + 6: WITH_SCRATCH(shmem_xor_reduce);
    case REDUCE_SCATTER + 4: WITH_SCRATCH(shmem_and_reduce_scatter);
    case REDUCE_SCATTER + 5: WITH_SCRATCH(shmem_or_reduce_scatter);
    case REDUCE_SCATTER + 6: WITH_SCRATCH(shmem_xor_reduce_scatter);
    default: break;
  }
}

/* The same through typed names, for one type. */
__aicore__ inline void typed(const call& c, __gm__ long* dst, __gm__ long* src) {
  if (c.kind == BROADCAST) shmem_long_broadcast(c.team, dst, src, c.n, int(c.x));
  if (c.kind == FCOLLECT) shmem_long_fcollect(c.team, dst, src, c.n);
  if (c.kind == REDUCE) shmem_long_sum_reduce(c.team, dst, src, c.n);
  if (c.kind == REDUCE + 6) shmem_long_xor_reduce(c.team, dst, src, c.n);
  if (c.kind == INSCAN) shmem_long_sum_inscan(c.team, dst, src, c.n);
}

template <typename T>
__aicore__ inline void integers(const call& c, GM_ADDR a, GM_ADDR b) {
  move(c, reinterpret_cast<__gm__ T*>(a), reinterpret_cast<__gm__ T*>(b));
  compute(c, reinterpret_cast<__gm__ T*>(a), reinterpret_cast<__gm__ T*>(b));
  compute_bits(c, reinterpret_cast<__gm__ T*>(a), reinterpret_cast<__gm__ T*>(b));
}
template <typename T>
__aicore__ inline void floats(const call& c, GM_ADDR a, GM_ADDR b) {
  move(c, reinterpret_cast<__gm__ T*>(a), reinterpret_cast<__gm__ T*>(b));
  compute(c, reinterpret_cast<__gm__ T*>(a), reinterpret_cast<__gm__ T*>(b));
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

extern "C" __global__ __aicore__ void tm_collective(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, int64_t team,
                                                    uint64_t kind, uint64_t type, uint64_t n, uint64_t x, uint64_t y, uint64_t flags) {
  shmem_guard guard = shmem_attach(ctx, teams::with_engine(engine));
  teams::call c = {shmem_team_t(team), kind, n, x, y, flags};
  if ((flags & 1) != 0) b = a;
  if ((flags & 4) != 0) {
    teams::typed(c, reinterpret_cast<__gm__ long*>(a), reinterpret_cast<__gm__ long*>(b));
  } else {
    switch (type) {
      case 0: teams::integers<int8_t>(c, a, b); break;
      case 1: teams::integers<uint8_t>(c, a, b); break;
      case 2: teams::integers<int16_t>(c, a, b); break;
      case 3: teams::integers<uint16_t>(c, a, b); break;
      case 4: teams::integers<int32_t>(c, a, b); break;
      case 5: teams::integers<uint32_t>(c, a, b); break;
      case 6: teams::integers<int64_t>(c, a, b); break;
      case 7: teams::integers<uint64_t>(c, a, b); break;
      case 8: teams::floats<float>(c, a, b); break;
      default: teams::floats<half>(c, a, b); break;
    }
  }
  teams::out_word(out, uint64_t(shmem_my_core()), shmem_error());
}
