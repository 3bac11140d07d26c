/* Atomics on one word of PE `peer`, by any number of PEs and cores. Kinds: `kind` below. n: 4 or 8, bytes of the word.
 *
 * extra: 1 when all PEs take part and meet before each sample. Non-fetching calls end with a quiet each, unless `extra` has bit 1 (value 2): then
 * once a sample, which measures the rate.
 *
 * bench_gups: every core adds 1 to `calls` random words of tables of n words (a power of two) in `a`, spread over all PEs; one quiet a sample.
 */
#include "bench_common.h"

namespace {

constexpr uint64_t ALL_MEET = 1, ONE_QUIET = 2;

enum kind : uint64_t {
  FETCH = 0, SET = 1, ADD = 2, INC = 3, FETCH_ADD = 4, FETCH_INC = 5, SWAP = 6, COMPARE_SWAP = 7, AND = 8, OR = 9, XOR = 10,
  FETCH_AND = 11, FETCH_OR = 12, FETCH_XOR = 13
};

template <typename T>
__aicore__ inline void one_call(uint64_t kind, __gm__ T* word, T i, int pe) {
  switch (kind) {
    case FETCH: shmem_atomic_fetch(word, pe); break;
    case SET: shmem_atomic_set(word, i, pe); break;
    case ADD: shmem_atomic_add(word, T(1), pe); break;
    case INC: shmem_atomic_inc(word, pe); break;
    case FETCH_ADD: shmem_atomic_fetch_add(word, T(1), pe); break;
    case FETCH_INC: shmem_atomic_fetch_inc(word, pe); break;
    case SWAP: shmem_atomic_swap(word, i, pe); break;
    case COMPARE_SWAP: shmem_atomic_compare_swap(word, i, T(i + 1), pe); break;
    case AND: shmem_atomic_and(word, i, pe); break;
    case OR: shmem_atomic_or(word, i, pe); break;
    case XOR: shmem_atomic_xor(word, i, pe); break;
    case FETCH_AND: shmem_atomic_fetch_and(word, i, pe); break;
    case FETCH_OR: shmem_atomic_fetch_or(word, i, pe); break;
    default: shmem_atomic_fetch_xor(word, i, pe); break;
  }
}

/* Whether the call returns before it is complete. */
__aicore__ inline bool leaves_open(uint64_t kind) {
  return kind == SET || kind == ADD || kind == INC || kind == AND || kind == OR || kind == XOR;
}

/* xorshift64: enough to spread addresses. */
__aicore__ inline uint64_t next(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

}  // namespace

extern "C" __global__ __aicore__ void bench_atomic(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t kind,
                                                   uint64_t peer, uint64_t n, uint64_t calls, uint64_t samples, uint64_t extra) {
  (void)b;
  shmem_guard guard = shmem_attach(ctx, bench::with_engine(engine));
  bench::results results(out, samples);
  int pe = static_cast<int>(peer);
  bool each = leaves_open(kind) && (extra & ONE_QUIET) == 0;
  for (uint64_t turn = 0; turn <= samples; ++turn) {
    if ((extra & ALL_MEET) != 0) {
      shmem_sync_all();
    } else {
      bench::meet();
    }
    uint64_t begin = bench::now();
    for (uint64_t i = 0; i < calls && shmem_error() == SHMEM_OK; ++i) {
      if (n == 4) {
        one_call<uint32_t>(kind, reinterpret_cast<__gm__ uint32_t*>(a), static_cast<uint32_t>(i), pe);
      } else {
        one_call<uint64_t>(kind, bench::word_at(a, 0), i, pe);
      }
      if (each) shmem_quiet();
    }
    shmem_quiet();
    results.sample(turn, bench::now() - begin);
  }
  results.end();
}

extern "C" __global__ __aicore__ void bench_gups(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t kind, uint64_t peer,
                                                 uint64_t n, uint64_t calls, uint64_t samples, uint64_t extra) {
  (void)b, (void)kind, (void)peer, (void)extra;
  shmem_guard guard = shmem_attach(ctx, bench::with_engine(engine));
  bench::results results(out, samples);
  uint64_t pes = static_cast<uint64_t>(shmem_n_pes());
  uint64_t state = 0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(shmem_my_pe()) * 64 + static_cast<uint64_t>(AscendC::GetBlockIdx()) + 1);
  for (uint64_t turn = 0; turn <= samples; ++turn) {
    shmem_sync_all();
    uint64_t begin = bench::now();
    for (uint64_t i = 0; i < calls; ++i) {
      uint64_t random = next(state);
      shmem_atomic_add(bench::word_at(a, 8 * (random & (n - 1))), uint64_t(1), static_cast<int>((random >> 32) % pes));
    }
    shmem_quiet();
    results.sample(turn, bench::now() - begin);
  }
  results.end();
}
