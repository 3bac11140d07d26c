/* Two PEs take turns: one sends a message and waits for the answer. A sample's time is `calls` round trips; halved, that is the time from a call
 * on one PE to what ends a wait on the other. A PE that is its own peer waits for its own message: one way, not two.
 *
 * extra: 1 on the PE that begins. Word 0 of b's second half (offset n rounded up to a line) counts messages; the host zeroes it before.
 */
#include "bench_common.h"

namespace {

enum kind : uint64_t { PUT_SIGNAL = 0, P = 1, SIGNAL_SET = 2, SIGNAL_ADD = 3, PUT_FENCE_P = 4 };

__aicore__ inline void send(uint64_t kind, GM_ADDR a, GM_ADDR b, __gm__ uint64_t* flag, uint64_t n, uint64_t value, int pe) {
  switch (kind) {
    case P: shmem_p<uint64_t>(flag, value, pe); break;
    case SIGNAL_SET: shmem_signal_set(flag, value, pe); break;
    case SIGNAL_ADD: shmem_signal_add(flag, 1, pe); break;
    case PUT_FENCE_P:
      shmem_putmem_nbi(b, a, n, pe);
      shmem_fence_pe(pe);
      shmem_p<uint64_t>(flag, value, pe);
      break;
    default:
      shmem_putmem_signal_nbi(b, a, n, flag, value, SHMEM_SIGNAL_SET, pe);
      shmem_commit();
      break;
  }
}

}  // namespace

extern "C" __global__ __aicore__ void bench_pingpong(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t kind,
                                                     uint64_t peer, uint64_t n, uint64_t calls, uint64_t samples, uint64_t extra) {
  shmem_guard guard = shmem_attach(ctx, bench::with_engine(engine));
  bench::results results(out, samples);
  int pe = static_cast<int>(peer);
  bool alone = pe == shmem_my_pe();
  __gm__ uint64_t* flag = bench::word_at(b, (n + SHMEM_LINE - 1) / SHMEM_LINE * SHMEM_LINE);
  uint64_t value = 0;
  for (uint64_t turn = 0; turn <= samples; ++turn) {
    uint64_t begin = bench::now();
    for (uint64_t i = 0; i < calls && shmem_error() == SHMEM_OK; ++i) {
      value += 1;
      if (extra != 0) send(kind, a, b, flag, n, value, pe);
      shmem_signal_wait_until(flag, SHMEM_CMP_GE, value);
      if (extra == 0 && !alone) send(kind, a, b, flag, n, value, pe);
    }
    results.sample(turn, bench::now() - begin);
  }
  shmem_quiet();
  results.end();
}
