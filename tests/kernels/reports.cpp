/* Kernels for faults that users of similar libraries reported; tests/reports.rs says where, and launches them through the `pe` program.
 * Parameters as in selftest.cpp: (ctx, a, b, out, u64 engine, u64 pe, u64 n, m, k).
 *
 * kernel       what it does                                                                          out
 * rp_sizes     put of n bytes from b to each of 64 alignments in a on pe, then a get of the same and     [c]: error
 *              GUARD bytes on either side to b, each pair at places that the host knows too, see
 *              `transfer`; the cores share the alignments
 * rp_torn      PE 0: n times p of 8 bytes, all ones or all zeros in turn, to a on pe; pe looks          on pe [0]: values of neither kind,
 *              until it has seen LAST                                                                  [1]: error
 * rp_turns     PE 0 and pe: m rounds of put_signal there and back, n u64 words, each side at times      [0]: wrong words, [1]: signals of
 *              late                                                                                    another round, [2]: error
 * rp_chunks    the cores of PE 0 put m chunks of n bytes from b to a on pe, in any order, each with     on pe [0]: wrong words,
 *              ADD 1 on one signal (behind the last chunk); pe waits for m and looks at samples        [1]: error
 * rp_mixed     m rounds: stores through the cache read by get from pe; put and p to pe read through     [0]: wrong words, [1]: error
 *              the cache there
 * rp_fence     PE 0: put_nbi to every PE, fence_pe(pe)                                                 [0]: doorbells so far, [1]: error
 * rp_twice     attaches a second time while attached                                                  [0]: error
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace reports {

constexpr uint64_t ALIGNMENTS = 64;
constexpr uint64_t GUARD = 16;                /* bytes brought back from either side of a transfer */
constexpr uint64_t SLOT = 4096 + 4 * 64;      /* bytes: the largest transfer, an alignment and guards */
constexpr uint64_t SAMPLE = 72;               /* rp_chunks: bytes from one word looked at to the next */
constexpr uint64_t LAST = 0x5555555555555555; /* rp_torn: neither value, ends the look-out */

__aicore__ inline void out_word(GM_ADDR out, uint64_t index, uint64_t value) {
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(out) + index, value);
}
__aicore__ inline uint64_t word(GM_ADDR at) { return AscendC::ReadGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(at)); }
__aicore__ inline uint64_t core() { return static_cast<uint64_t>(AscendC::GetBlockIdx()); }

__aicore__ inline shmem_options with_engine(uint64_t engine) {
  shmem_options options;
  options.engine = static_cast<uint32_t>(engine);
  return options;
}

/* One size at one alignment of the target: a put, and a get of what lies there now. */
__aicore__ inline void transfer(GM_ADDR a, GM_ADDR b, int pe, uint64_t size, uint64_t to) {
  uint64_t from = (size * 5 + to * 11) % ALIGNMENTS;
  uint64_t back = (size * 3 + to * 7) % ALIGNMENTS;
  GM_ADDR source = b + from;
  GM_ADDR target = a + to * SLOT + ALIGNMENTS + to;
  GM_ADDR seen = b + (to + 1) * SLOT + back;
  if (((size ^ to) & 1) != 0) {
    shmem_putmem(target, source, size, pe);
    shmem_quiet();
    shmem_getmem(seen, target - GUARD, size + 2 * GUARD, pe);
  } else {
    shmem_putmem_nbi(target, source, size, pe);
    shmem_quiet();
    shmem_getmem_nbi(seen, target - GUARD, size + 2 * GUARD, pe);
    shmem_quiet();
  }
}

/* Lets the other side get ahead, every now and then. */
__aicore__ inline void dawdle(uint64_t& random) {
  random = random * 6364136223846793005u + 1442695040888963407u;
  if ((random >> 60) != 0) return;
  for (uint64_t i = 0; i < ((random >> 50) & 1023); ++i) AscendC::GetSystemCycle();
}

__aicore__ inline AscendC::GlobalTensor<uint64_t> cached(GM_ADDR at, uint64_t words) {
  AscendC::GlobalTensor<uint64_t> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ uint64_t*>(at), words);
  return tensor;
}

}  // namespace reports

extern "C" __global__ __aicore__ void rp_sizes(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  (void)m, (void)k;
  for (uint64_t to = reports::core(); to < reports::ALIGNMENTS; to += uint64_t(shmem_n_cores())) {
    reports::transfer(a, b, int(pe), n, to);
  }
  reports::out_word(out, reports::core(), shmem_error());
}

extern "C" __global__ __aicore__ void rp_torn(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                              uint64_t m, uint64_t k) {
  (void)b, (void)m, (void)k;
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  if (reports::core() != 0) return;
  __gm__ uint64_t* target = reinterpret_cast<__gm__ uint64_t*>(a);
  uint64_t torn = 0;
  if (shmem_my_pe() == 0) {
    for (uint64_t i = 0; i < n && shmem_error() == SHMEM_OK; ++i) shmem_p(target, (i & 1) != 0 ? uint64_t(0) : ~uint64_t(0), int(pe));
    shmem_p(target, reports::LAST, int(pe));
    shmem_quiet();
  } else if (shmem_my_pe() == int(pe)) {
    while (shmem_test(target, SHMEM_CMP_EQ, reports::LAST) == 0) {
      uint64_t value = reports::word(a);
      torn += value != 0 && value != ~uint64_t(0) && value != reports::LAST ? 1 : 0;
    }
  }
  reports::out_word(out, 0, torn);
  reports::out_word(out, 1, shmem_error());
}

extern "C" __global__ __aicore__ void rp_turns(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  (void)k;
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  bool first = shmem_my_pe() == 0;
  if (reports::core() != 0 || (!first && shmem_my_pe() != int(pe))) return;
  int other = first ? int(pe) : 0;
  GM_ADDR data = a + 64;
  __gm__ uint64_t* signal = reinterpret_cast<__gm__ uint64_t*>(a);
  uint64_t wrong = 0, early = 0;
  uint64_t random = uint64_t(shmem_my_pe()) * 2654435761u + 1;
  for (uint64_t round = 1; round <= m && shmem_error() == SHMEM_OK; ++round) {
    if (!first) {
      early += shmem_signal_wait_until(signal, SHMEM_CMP_NE, round - 1) != round ? 1 : 0;
      for (uint64_t i = 0; i < n; ++i) wrong += reports::word(data + 8 * i) != round * n + i ? 1 : 0;
    }
    reports::dawdle(random);
    for (uint64_t i = 0; i < n; ++i) reports::out_word(b, i, round * n + i);
    AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
    shmem_putmem_signal(data, b, 8 * n, signal, round, SHMEM_SIGNAL_SET, other);
    if (first) {
      early += shmem_signal_wait_until(signal, SHMEM_CMP_NE, round - 1) != round ? 1 : 0;
      for (uint64_t i = 0; i < n; ++i) wrong += reports::word(data + 8 * i) != round * n + i ? 1 : 0;
    }
  }
  shmem_quiet();
  reports::out_word(out, 0, wrong);
  reports::out_word(out, 1, early);
  reports::out_word(out, 2, shmem_error());
}

extern "C" __global__ __aicore__ void rp_chunks(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                uint64_t m, uint64_t k) {
  (void)k;
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  __gm__ uint64_t* signal = reinterpret_cast<__gm__ uint64_t*>(a + n * m);
  if (shmem_my_pe() == 0) {
    for (uint64_t chunk = reports::core(); chunk < m; chunk += uint64_t(shmem_n_cores())) {
      uint64_t at = (m - 1 - chunk) * n;
      shmem_putmem_signal_nbi(a + at, b + at, n, signal, 1, SHMEM_SIGNAL_ADD, int(pe));
    }
    shmem_quiet();
  } else if (shmem_my_pe() == int(pe) && reports::core() == 0) {
    shmem_signal_wait_until(signal, SHMEM_CMP_GE, m);
    uint64_t wrong = 0;
    /* Both PEs hold the same pattern at b. */
    for (uint64_t at = 0; at < n * m; at += reports::SAMPLE) wrong += reports::word(a + at) != reports::word(b + at) ? 1 : 0;
    reports::out_word(out, 0, wrong);
  }
  if (reports::core() == 0) reports::out_word(out, 1, shmem_error());
}

extern "C" __global__ __aicore__ void rp_mixed(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  (void)n, (void)k;
  constexpr uint64_t WORDS = 16; /* two lines */
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  if (reports::core() != 0) return;
  uint64_t me = uint64_t(shmem_my_pe()), n_pes = uint64_t(shmem_n_pes());
  uint64_t before = (me + n_pes - 1) % n_pes;
  GM_ADDR landing = a + 8 * WORDS;
  AscendC::GlobalTensor<uint64_t> mine = reports::cached(a, WORDS);
  AscendC::GlobalTensor<uint64_t> arrived = reports::cached(landing, WORDS + 1);
  uint64_t wrong = 0;
  for (uint64_t round = 1; round <= m && shmem_error() == SHMEM_OK; ++round) {
    for (uint64_t i = 0; i < WORDS; ++i) mine.SetValue(i, round * 1000 + me * WORDS + i);
    shmem_barrier_all();
    shmem_getmem(b, a, 8 * WORDS, int(pe));
    for (uint64_t i = 0; i < WORDS; ++i) wrong += reports::word(b + 8 * i) != round * 1000 + pe * WORDS + i ? 1 : 0;
    shmem_putmem_nbi(landing, b, 8 * WORDS, int(pe));
    shmem_p(reinterpret_cast<__gm__ uint64_t*>(landing) + WORDS, round + me, int(pe));
    shmem_barrier_all();
    /* What came back are the own values: pe's neighbour got them from here. */
    for (uint64_t i = 0; i < WORDS; ++i) wrong += arrived.GetValue(i) != round * 1000 + me * WORDS + i ? 1 : 0;
    wrong += arrived.GetValue(WORDS) != round + before ? 1 : 0;
  }
  reports::out_word(out, 0, wrong);
  reports::out_word(out, 1, shmem_error());
}

extern "C" __global__ __aicore__ void rp_fence(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  (void)n, (void)m, (void)k;
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  if (shmem_my_pe() != 0 || reports::core() != 0) return;
  for (int to = 0; to < shmem_n_pes(); ++to) shmem_putmem_nbi(a, b, 64, to);
  shmem_fence_pe(int(pe));
  reports::out_word(out, 0, shmem_impl::block_state.ctx->count.sq_doorbells);
  shmem_quiet();
  reports::out_word(out, 1, shmem_error());
}

extern "C" __global__ __aicore__ void rp_twice(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  (void)a, (void)b, (void)pe, (void)n, (void)m, (void)k;
  shmem_guard guard = shmem_attach(ctx, reports::with_engine(engine));
  shmem_guard second = shmem_attach(ctx, reports::with_engine(engine));
  reports::out_word(out, 0, shmem_error());
}
