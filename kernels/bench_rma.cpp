/* One-sided calls by one or more cores of a PE, toward one other PE. Kinds: `kind` below; n bytes a call, 8 for p and g.
 *
 * extra: calls after which the nbi kinds and the kinds that end with quiet call it (once at the end of a sample too). The data of core c walks
 * through its own part of the buffers, of BENCH_WINDOW bytes or n, so that small messages do not all hit one line.
 *
 * PUT_SIGNAL_NBI is for one core; its signal word lies behind the window.
 *
 * bench_empty attaches nothing and does nothing: what a launch costs.
 */
#include "bench_common.h"

namespace {

constexpr uint64_t BENCH_WINDOW = 8192; /* bytes; cli/src/bench/plan.rs sizes the buffers by it */

enum kind : uint64_t { PUT = 0, GET = 1, PUT_NBI = 2, GET_NBI = 3, P = 4, G = 5, PUT_QUIET = 6, P_QUIET = 7,
                      PUT_SIGNAL_NBI = 8 };

__aicore__ inline void one_call(uint64_t kind, GM_ADDR a, GM_ADDR b, uint64_t offset, uint64_t n, int pe, uint64_t i) {
  switch (kind) {
    case GET: shmem_getmem(bench::at(b, offset), bench::at(a, offset), n, pe); break;
    case PUT_NBI: shmem_putmem_nbi(bench::at(b, offset), bench::at(a, offset), n, pe); break;
    case GET_NBI: shmem_getmem_nbi(bench::at(b, offset), bench::at(a, offset), n, pe); break;
    case P:
    case P_QUIET: shmem_p<uint64_t>(bench::word_at(b, offset), i, pe); break;
    case PUT_SIGNAL_NBI:
      shmem_putmem_signal_nbi(bench::at(b, offset), bench::at(a, offset), n, bench::word_at(b, BENCH_WINDOW), i, SHMEM_SIGNAL_SET, pe);
      break;
    case G: shmem_g<uint64_t>(bench::word_at(a, offset), pe); break;
    default: shmem_putmem(bench::at(b, offset), bench::at(a, offset), n, pe); break;
  }
}

}  // namespace

extern "C" __global__ __aicore__ void bench_rma(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t kind, uint64_t peer,
                                                uint64_t n, uint64_t calls, uint64_t samples, uint64_t extra) {
  shmem_guard guard = shmem_attach(ctx, bench::with_engine(engine));
  bench::results results(out, samples);
  uint64_t window = n < BENCH_WINDOW ? BENCH_WINDOW : n;
  uint64_t first = static_cast<uint64_t>(AscendC::GetBlockIdx()) * window;
  uint64_t step = n < 8 ? 8 : n;
  bool quiets = kind == PUT_NBI || kind == GET_NBI || kind == PUT_QUIET || kind == P_QUIET || kind == PUT_SIGNAL_NBI;
  for (uint64_t turn = 0; turn <= samples; ++turn) {
    bench::meet();
    uint64_t begin = bench::now();
    uint64_t offset = 0, batch = 0;
    for (uint64_t i = 0; i < calls; ++i) {
      one_call(kind, a, b, first + offset, n, static_cast<int>(peer), i);
      offset = offset + 2 * step <= window ? offset + step : 0;
      batch += 1;
      if (batch == extra && quiets) {
        shmem_quiet();
        batch = 0;
      }
    }
    if (quiets && batch != 0) shmem_quiet();
    uint64_t end = bench::now();
    shmem_quiet();
    results.sample(turn, end - begin);
  }
  results.end();
}

extern "C" __global__ __aicore__ void bench_empty() {}
