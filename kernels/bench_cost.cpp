/* What one call costs, in requests, doorbells, copies, flags: not in time. The host runs a kind with calls 0 and with calls 1 and takes the
 * difference of the counters; the kernel ends without a quiet of its own, so that nothing else is counted.
 *
 * extra: how many PEs QUIET touches; ALIGN: the depth of the send ring, whose next request toward `peer` is to be in slot n. Each other launch
 * makes one request before the call.
 */
#include "bench_common.h"

namespace {

constexpr uint64_t SPACING = 64;      /* bytes between the puts of a batch */
constexpr uint64_t BATCH = 32;        /* requests of a full batch */
constexpr uint32_t UB_BYTES = 4096;   /* UB bytes that this kernel uses itself, from offset 0 */

enum kind : uint64_t {
  PUT_NBI = 0, PUT_NBI_32 = 1, PUT_NBI_32_AT_END = 2, PUT_INLINE = 3, PUT = 4, PUT_UB = 5, GET = 6, P = 7, G = 8, PUT_SIGNAL = 9,
  SIGNAL_SET = 10, ADD = 11, FETCH_ADD = 12, FENCE = 13, QUIET = 14, BARRIER = 15, SYNC = 16, ALIGN = 17
};

__aicore__ inline void prepare(uint64_t kind, GM_ADDR a, GM_ADDR b, int pe, uint64_t n, uint64_t extra) {
  shmem_p<uint64_t>(bench::word_at(b, 0), 0, pe);
  if (kind == BARRIER || kind == SYNC) shmem_barrier_all();
  while (kind == ALIGN && shmem_error() == SHMEM_OK && shmem_last(pe).index % extra != n) shmem_p<uint64_t>(bench::word_at(b, 0), 0, pe);
  shmem_quiet();
  if (kind == FENCE) {
    shmem_putmem_nbi(b, a, n, pe);
    shmem_commit();
  }
  if (kind == QUIET) {
    for (uint64_t k = 1; k <= extra; ++k) {
      shmem_putmem_nbi(b, a, n, static_cast<int>((static_cast<uint64_t>(shmem_my_pe()) + k) % static_cast<uint64_t>(shmem_n_pes())));
    }
    shmem_commit();
  }
}

__aicore__ inline void one_call(uint64_t kind, GM_ADDR a, GM_ADDR b, int pe, uint64_t n) {
  switch (kind) {
    case PUT_NBI_32:
    case PUT_NBI_32_AT_END:
      for (uint64_t i = 0; i < BATCH; ++i) shmem_putmem_nbi(bench::at(b, i * SPACING), bench::at(a, i * SPACING), n, pe);
      break;
    case PUT_INLINE:
    case PUT: shmem_putmem(b, a, n, pe); break;
    case PUT_UB: {
      AscendC::LocalTensor<uint8_t> data(AscendC::TPosition::VECCALC, 0, UB_BYTES);
      shmem_put_nbi(reinterpret_cast<__gm__ uint8_t*>(b), data, n, pe);
      break;
    }
    case GET: shmem_getmem(b, a, n, pe); break;
    case P: shmem_p<uint64_t>(bench::word_at(b, 0), 1, pe); break;
    case G: shmem_g<uint64_t>(bench::word_at(a, 0), pe); break;
    case PUT_SIGNAL: shmem_putmem_signal_nbi(b, a, n, bench::word_at(b, UB_BYTES), 1, SHMEM_SIGNAL_SET, pe); break;
    case SIGNAL_SET: shmem_signal_set(bench::word_at(b, UB_BYTES), 1, pe); break;
    case ADD: shmem_atomic_add(bench::word_at(b, 0), uint64_t(1), pe); break;
    case FETCH_ADD: shmem_atomic_fetch_add(bench::word_at(b, 0), uint64_t(1), pe); break;
    case FENCE: shmem_fence_pe(pe); break;
    case QUIET: shmem_quiet(); break;
    case BARRIER: shmem_barrier_all(); break;
    case SYNC: shmem_sync_all(); break;
    default: shmem_putmem_nbi(b, a, n, pe); break;
  }
}

}  // namespace

extern "C" __global__ __aicore__ void bench_cost(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t kind, uint64_t peer,
                                                 uint64_t n, uint64_t calls, uint64_t samples, uint64_t extra) {
  shmem_guard guard = shmem_attach(ctx, bench::with_engine(engine));
  bench::results results(out, samples);
  int pe = static_cast<int>(peer);
  prepare(kind, a, b, pe, n, extra);
  for (uint64_t i = 0; i < calls; ++i) one_call(kind, a, b, pe, n);
  shmem_commit();
  results.end();
}
