/* Barriers and collectives over a team (`peer`: its handle), by all its members and all cores of each launch, back to back. Kinds: `kind`
 * below. n: bytes that one member contributes (to each other member: alltoall); reductions are of floats.
 *
 * Calls follow one another without a barrier in between: each ends with a meeting of the members, and nobody reads dst.
 */
#include "bench_common.h"

namespace {

enum kind : uint64_t {
  BARRIER = 0, SYNC = 1, BROADCAST = 2, COLLECT = 3, FCOLLECT = 4, ALLTOALL = 5, REDUCE = 6, REDUCE_SCATTER = 7, SCAN = 8
};

__aicore__ inline void one_call(uint64_t kind, shmem_team_t team, GM_ADDR dst, GM_ADDR src, uint64_t n) {
  __gm__ float* to = reinterpret_cast<__gm__ float*>(dst);
  const __gm__ float* from = reinterpret_cast<const __gm__ float*>(src);
  switch (kind) {
    case BARRIER: shmem_barrier(team); break;
    case SYNC: shmem_team_sync(team); break;
    case BROADCAST: shmem_broadcastmem(team, dst, src, n, 0); break;
    case COLLECT: shmem_collectmem(team, dst, src, n); break;
    case FCOLLECT: shmem_fcollectmem(team, dst, src, n); break;
    case ALLTOALL: shmem_alltoallmem(team, dst, src, n); break;
    case REDUCE: shmem_sum_reduce(team, to, from, n / 4); break;
    case REDUCE_SCATTER: shmem_sum_reduce_scatter(team, to, from, n / 4); break;
    default: shmem_sum_inscan(team, to, from, n / 4); break;
  }
}

}  // namespace

extern "C" __global__ __aicore__ void bench_collective(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t kind,
                                                       uint64_t peer, uint64_t n, uint64_t calls, uint64_t samples, uint64_t extra) {
  (void)extra;
  shmem_guard guard = shmem_attach(ctx, bench::with_engine(engine));
  bench::results results(out, samples);
  shmem_team_t team = static_cast<shmem_team_t>(peer);
  for (uint64_t turn = 0; turn <= samples; ++turn) {
    shmem_barrier(team);
    uint64_t begin = bench::now();
    for (uint64_t i = 0; i < calls; ++i) one_call(kind, team, b, a, n);
    results.sample(turn, bench::now() - begin);
  }
  results.end();
}
