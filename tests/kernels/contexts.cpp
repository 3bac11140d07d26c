/* Kernels that test contexts, windows, registered buffers and streams. Launched by the `api` program of this package; parameters
 * (ctx, a, b, out, u64 engine, u64 pe, u64 n, m, k) and what is said here.
 *
 * kernel        what it does                                                                        out
 * ct_apart      n puts of 8 bytes to pe on context m, as many on context k, then for the first (engine   [0]: error; then as they are there:
 *               >> 8) 0 quiet, 1 fence, 2 pe_quiet, 3 flush, 4 fence_pe. The source is b.                                              doorbells and polls of m, of k
 * ct_turns      n rounds: a put of 64 bytes to each PE of the world on each of contexts 1..m, quiet     [0]: error
 *               of one of them
 * ct_families   every family once on context m, toward number pe of its team, checked by reading back  [0]: error, [1]: bits of what failed
 * ct_misuse     k: 0 put by handle n, 1 put by handle m from core n alone, 2 put to number n by m,      -
 *               3 quiet by handle n
 * ct_window     k: 0 put from m to byte `offset` of window n, 1 get, 2 put_signal, 3 p, g and atomics   [0]: error, [1]: wrong
 *               there, 4 from UB and back, 5 put from m to a, 6 get from a to m. Others: u64 window,
 *               offset, local, count.
 * ct_hold       attaches, uses context m if it is not 0, and waits for signal word 0 of a to be n       -
 * ct_fill       writes n words of b: k + i                                                            -
 * ct_sum        adds n words of a up                                                                   [m]: the sum
 * ct_meet       n barriers of all PEs                                                                  [0]: error
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace contexts {

__aicore__ inline void out_word(GM_ADDR out, uint64_t index, uint64_t value) {
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(out) + index, value);
}
template <typename T>
__aicore__ inline T word(GM_ADDR at, uint64_t index) {
  return AscendC::ReadGmByPassDCache<T>(reinterpret_cast<__gm__ T*>(at) + index);
}
template <typename T>
__aicore__ inline __gm__ T* at(GM_ADDR base, uint64_t bytes) {
  return reinterpret_cast<__gm__ T*>(base + bytes);
}

__aicore__ inline shmem_options with_engine(uint64_t engine) {
  shmem_options options;
  options.engine = static_cast<uint32_t>(engine & 0xff);
  return options;
}

__aicore__ inline const shmem_impl::counters& counted(uint64_t handle) { return shmem_impl::block_state.contexts[handle].count; }

/* Each check has a block of 256 bytes of a on the target, and a bit. What is put comes from b, whose word i is its own pattern. */
constexpr uint64_t BLOCK = 256;
constexpr uint64_t NEAR = 16384; /* bytes of b from which gets go */

struct bench {
  GM_ADDR a, b;
  shmem_ctx_t ctx;
  int pe;
  uint64_t failed;
};

/* Reads n words of block i of the target back by the same context, and compares with words of b from `from` on. */
__aicore__ inline void check(bench& t, uint64_t i, uint64_t from, uint64_t n) {
  shmem_ctx_quiet(t.ctx);
  shmem_ctx_get(t.ctx, at<uint64_t>(t.b, NEAR), at<uint64_t>(t.a, i * BLOCK), n, t.pe);
  for (uint64_t j = 0; j < n; ++j) {
    if (word<uint64_t>(t.b, NEAR / 8 + j) != word<uint64_t>(t.b, from + j)) t.failed |= 1ull << i;
  }
}
__aicore__ inline void expect(bench& t, uint64_t i, uint64_t seen, uint64_t wanted) {
  if (seen != wanted) t.failed |= 1ull << i;
}

__aicore__ inline void transfers(bench& t) {
  __gm__ uint64_t* from = at<uint64_t>(t.b, 0);
  shmem_ctx_t c = t.ctx;
  shmem_ctx_put(c, at<uint64_t>(t.a, 0), from, 32, t.pe);
  check(t, 0, 0, 32);
  shmem_ctx_put_nbi(c, at<uint64_t>(t.a, BLOCK), from + 1, 31, t.pe);
  check(t, 1, 1, 31);
  shmem_ctx_putmem(c, at<void>(t.a, 2 * BLOCK), from + 2, 8 * 30, t.pe);
  check(t, 2, 2, 30);
  shmem_ctx_put64(c, at<void>(t.a, 3 * BLOCK), from + 3, 29, t.pe);
  check(t, 3, 3, 29);
  shmem_ctx_int64_put_nbi(c, at<int64_t>(t.a, 4 * BLOCK), reinterpret_cast<__gm__ int64_t*>(from + 4), 28, t.pe);
  check(t, 4, 4, 28);
  shmem_ctx_p(c, at<uint64_t>(t.a, 5 * BLOCK), word<uint64_t>(t.b, 7), t.pe);
  check(t, 5, 7, 1);
  expect(t, 6, shmem_ctx_g(c, at<uint64_t>(t.a, 5 * BLOCK), t.pe), word<uint64_t>(t.b, 7));
  shmem_ctx_uint64_iput(c, at<uint64_t>(t.a, 7 * BLOCK), from, 1, 2, 16, t.pe);
  shmem_ctx_quiet(c);
  for (uint64_t j = 0; j < 16; ++j) expect(t, 7, shmem_ctx_uint64_g(c, at<uint64_t>(t.a, 7 * BLOCK + 8 * j), t.pe), word<uint64_t>(t.b, 2 * j));
  shmem_ctx_ibput(c, at<uint64_t>(t.a, 8 * BLOCK), from, 2, 3, 2, 8, t.pe);
  shmem_ctx_quiet(c);
  for (uint64_t j = 0; j < 16; ++j) {
    expect(t, 8, shmem_ctx_g(c, at<uint64_t>(t.a, 8 * BLOCK + 8 * j), t.pe), word<uint64_t>(t.b, j / 2 * 3 + j % 2));
  }
  shmem_ctx_iget(c, at<uint64_t>(t.b, NEAR), at<uint64_t>(t.a, 0), 1, 2, 16, t.pe);
  for (uint64_t j = 0; j < 16; ++j) expect(t, 9, word<uint64_t>(t.b, NEAR / 8 + j), word<uint64_t>(t.b, 2 * j));
  shmem_ctx_get_nbi(c, at<uint64_t>(t.b, NEAR), at<uint64_t>(t.a, 0), 32, t.pe);
  shmem_wait(shmem_ctx_last(c, t.pe));
  shmem_ctx_pe_quiet(c, t.pe);
  for (uint64_t j = 0; j < 32; ++j) expect(t, 10, word<uint64_t>(t.b, NEAR / 8 + j), word<uint64_t>(t.b, j));
  shmem_ctx_put_signal(c, at<uint64_t>(t.a, 11 * BLOCK), from, 16, at<uint64_t>(t.a, 11 * BLOCK + 248), uint64_t(77), SHMEM_SIGNAL_SET, t.pe);
  shmem_ctx_fence_pe(c, t.pe);
  expect(t, 11, shmem_ctx_g(c, at<uint64_t>(t.a, 11 * BLOCK + 248), t.pe), 77);
  check(t, 11, 0, 16);
}

__aicore__ inline void by_ub(bench& t) {
  AscendC::LocalTensor<uint64_t> tile(AscendC::TPosition::VECCALC, 0, 64);
  for (uint32_t j = 0; j < 32; ++j) tile.SetValue(j, word<uint64_t>(t.b, j));
  AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(0);
  AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(0);
  shmem_ctx_put(t.ctx, at<uint64_t>(t.a, 12 * BLOCK), tile, 32, t.pe);
  check(t, 12, 0, 32);
  shmem_ctx_get(t.ctx, tile[32], at<uint64_t>(t.a, 12 * BLOCK), 32, t.pe);
  for (uint32_t j = 0; j < 32; ++j) expect(t, 13, tile.GetValue(32 + j), word<uint64_t>(t.b, j));
  /* Strides in UB: whole blocks of 32 bytes, and elements. */
  shmem_ibput(at<uint64_t>(t.a, 14 * BLOCK), tile, 4, 8, 4, 4, shmem_my_pe());
  shmem_iput(at<uint64_t>(t.a, 15 * BLOCK), tile, 2, 3, 10, shmem_my_pe());
  shmem_quiet();
  for (uint64_t j = 0; j < 16; ++j) expect(t, 14, word<uint64_t>(t.a, 14 * BLOCK / 8 + j), word<uint64_t>(t.b, j / 4 * 8 + j % 4));
  for (uint64_t j = 0; j < 10; ++j) expect(t, 15, word<uint64_t>(t.a, 15 * BLOCK / 8 + 2 * j), word<uint64_t>(t.b, 3 * j));
  shmem_ibget(tile[32], at<uint64_t>(t.b, 0), 8, 4, 4, 4, shmem_my_pe());
  for (uint32_t j = 0; j < 16; ++j) expect(t, 14, tile.GetValue(32 + j / 4 * 8 + j % 4), word<uint64_t>(t.b, j));
  shmem_iget(tile[32], at<uint64_t>(t.b, 0), 1, 3, 9, shmem_my_pe());
  for (uint32_t j = 0; j < 9; ++j) expect(t, 15, tile.GetValue(32 + j), word<uint64_t>(t.b, 3 * j));
}

__aicore__ inline void atomics(bench& t) {
  shmem_ctx_t c = t.ctx;
  __gm__ uint64_t* wide = at<uint64_t>(t.a, 16 * BLOCK);
  __gm__ int32_t* half_word = at<int32_t>(t.a, 17 * BLOCK + 4);
  __gm__ float* real = at<float>(t.a, 18 * BLOCK);
  shmem_ctx_atomic_set(c, wide, 5, t.pe);
  expect(t, 16, shmem_ctx_atomic_fetch_add(c, wide, 3, t.pe), 5);
  shmem_ctx_atomic_inc(c, wide, t.pe);
  shmem_ctx_quiet(c);
  expect(t, 16, shmem_ctx_atomic_compare_swap(c, wide, 9, 20, t.pe), 9);
  expect(t, 16, shmem_ctx_uint64_atomic_swap(c, wide, 0xf0, t.pe), 20);
  expect(t, 16, shmem_ctx_uint64_atomic_fetch_or(c, wide, 0x0f, t.pe), 0xf0);
  shmem_ctx_atomic_xor(c, wide, 0xff, t.pe);
  shmem_ctx_quiet(c);
  expect(t, 16, shmem_ctx_atomic_fetch(c, wide, t.pe), 0);
  shmem_ctx_int32_atomic_set(c, half_word, -7, t.pe);
  expect(t, 17, uint32_t(shmem_ctx_int32_atomic_fetch_max(c, half_word, -3, t.pe)), uint32_t(-7));
  shmem_ctx_int_atomic_add(c, half_word, 10, t.pe);
  shmem_ctx_quiet(c);
  expect(t, 17, uint32_t(shmem_ctx_atomic_fetch(c, half_word, t.pe)), 7);
  shmem_ctx_float_atomic_set(c, real, 1.5f, t.pe);
  shmem_ctx_float_atomic_add(c, real, 2.0f, t.pe);
  shmem_ctx_quiet(c);
  if (shmem_ctx_float_atomic_fetch(c, real, t.pe) != 3.5f) t.failed |= 1ull << 18;
  __gm__ uint64_t* fetch = at<uint64_t>(t.b, NEAR);
  shmem_ctx_atomic_fetch_add_nbi(c, fetch, wide, 4, t.pe);
  shmem_ctx_quiet(c);
  expect(t, 19, word<uint64_t>(t.b, NEAR / 8), 0);
  shmem_ctx_signal_add(c, wide, 6, t.pe);
  shmem_ctx_quiet(c);
  expect(t, 19, shmem_ctx_atomic_fetch(c, wide, t.pe), 10);
}

}  // namespace contexts

extern "C" __global__ __aicore__ void ct_apart(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, contexts::with_engine(engine));
  __gm__ uint64_t* to = reinterpret_cast<__gm__ uint64_t*>(a);
  __gm__ uint64_t* from = reinterpret_cast<__gm__ uint64_t*>(b);
  for (uint64_t i = 0; i < n; ++i) shmem_ctx_put_nbi(shmem_ctx_t(m), to + i, from + i, 1, int(pe));
  for (uint64_t i = 0; i < n; ++i) shmem_ctx_put_nbi(shmem_ctx_t(k), to + n + i, from + n + i, 1, int(pe));
  uint64_t how = engine >> 8;
  if (how == 0) shmem_ctx_quiet(shmem_ctx_t(m));
  if (how == 1) shmem_ctx_fence(shmem_ctx_t(m));
  if (how == 2) shmem_ctx_pe_quiet(shmem_ctx_t(m), int(pe));
  if (how == 3) shmem_ctx_flush(shmem_ctx_t(m));
  if (how == 4) shmem_ctx_fence_pe(shmem_ctx_t(m), int(pe));
  contexts::out_word(out, 1, contexts::counted(m).sq_doorbells);
  contexts::out_word(out, 2, contexts::counted(m).polls);
  contexts::out_word(out, 3, contexts::counted(k).sq_doorbells);
  contexts::out_word(out, 4, contexts::counted(k).polls);
  contexts::out_word(out, 0, shmem_error());
}

extern "C" __global__ __aicore__ void ct_turns(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  (void)pe, (void)k;
  shmem_guard guard = shmem_attach(ctx, contexts::with_engine(engine));
  for (uint64_t i = 0; i < n && shmem_error() == SHMEM_OK; ++i) {
    for (uint64_t c = 1; c <= m; ++c) {
      for (int to = 0; to < shmem_n_pes(); ++to) {
        uint64_t slot = ((c - 1) * uint64_t(shmem_n_pes()) + uint64_t(shmem_my_pe())) * 64;
        shmem_ctx_putmem_nbi(shmem_ctx_t(c), a + slot, b + ((c - 1) * n + i) * 64, 64, to);
      }
    }
    shmem_ctx_quiet(shmem_ctx_t(1 + i % m));
    /* The next round writes the same places: what other contexts have under way must not overtake it. */
    for (uint64_t c = 1; c <= m; ++c) shmem_ctx_fence(shmem_ctx_t(c));
  }
  for (uint64_t c = 1; c <= m; ++c) shmem_ctx_quiet(shmem_ctx_t(c));
  contexts::out_word(out, 0, shmem_error());
}

extern "C" __global__ __aicore__ void ct_families(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                  uint64_t m, uint64_t k) {
  (void)n, (void)k;
  shmem_guard guard = shmem_attach(ctx, contexts::with_engine(engine));
  contexts::bench t = {a, b, shmem_ctx_t(m), int(pe), 0};
  contexts::transfers(t);
  contexts::by_ub(t);
  contexts::atomics(t);
  contexts::out_word(out, 1, t.failed);
  contexts::out_word(out, 0, shmem_error());
}

extern "C" __global__ __aicore__ void ct_misuse(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                uint64_t m, uint64_t k) {
  (void)out;
  shmem_guard guard = shmem_attach(ctx, contexts::with_engine(engine));
  if (k == 0) shmem_ctx_putmem(shmem_ctx_t(n), a, b, 8, int(pe));
  if (k == 1 && uint64_t(shmem_my_core()) == n) shmem_ctx_putmem(shmem_ctx_t(m), a, b, 8, int(pe));
  if (k == 2) shmem_ctx_putmem(shmem_ctx_t(m), a, b, 8, int(n));
  if (k == 3) shmem_ctx_quiet(shmem_ctx_t(n));
}

extern "C" __global__ __aicore__ void ct_window(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t k,
                                                uint64_t window, uint64_t offset, uint64_t local, uint64_t n) {
  shmem_guard guard = shmem_attach(ctx, contexts::with_engine(engine));
  __gm__ uint8_t* near = reinterpret_cast<__gm__ uint8_t*>(local);
  shmem_window_t w = shmem_window_t(window);
  int to = int(pe);
  uint64_t wrong = 0;
  if (k == 0) shmem_window_put<uint8_t>(w, offset, near, n, to);
  if (k == 1) shmem_window_get<uint8_t>(near, w, offset, n, to);
  if (k == 2) {
    shmem_window_put_signal<uint8_t>(w, offset, near, n, reinterpret_cast<__gm__ uint64_t*>(b), uint64_t(n + 1), SHMEM_SIGNAL_SET, to);
    shmem_signal_wait_until(reinterpret_cast<__gm__ uint64_t*>(b), SHMEM_CMP_EQ, n + 1);
  }
  if (k == 3) {
    __gm__ uint64_t* word = reinterpret_cast<__gm__ uint64_t*>(shmem_window(w, offset));
    shmem_p(word, uint64_t(40), to);
    shmem_quiet();
    if (shmem_g(word, to) != 40) wrong |= 1;
    shmem_atomic_add(word, 2, to);
    shmem_quiet();
    if (shmem_atomic_fetch(word, to) != 42) wrong |= 2;
    if (shmem_atomic_compare_swap(word, 42, 7, to) != 42 || shmem_g(word, to) != 7) wrong |= 4;
    __gm__ uint32_t* half_word = reinterpret_cast<__gm__ uint32_t*>(word + 1);
    shmem_iput(half_word, reinterpret_cast<__gm__ uint32_t*>(near), 2, 1, n, to);
  }
  if (k == 4) {
    AscendC::LocalTensor<uint8_t> tile(AscendC::TPosition::VECCALC, 0, 8192);
    for (uint32_t i = 0; i < n; ++i) tile.SetValue(i, uint8_t(i * 3 + 1));
    AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(0);
    AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(0);
    shmem_window_put<uint8_t>(w, offset, tile, n, to);
    shmem_quiet();
    shmem_window_get<uint8_t>(tile[4096], w, offset, n, to);
    for (uint32_t i = 0; i < n; ++i) {
      if (tile.GetValue(4096 + i) != uint8_t(i * 3 + 1)) wrong |= 1;
    }
  }
  if (k == 5) shmem_putmem(a, near, n, to);
  if (k == 6) shmem_getmem(near, a, n, to);
  shmem_quiet();
  contexts::out_word(out, 1, wrong);
  contexts::out_word(out, 0, shmem_error());
}

extern "C" __global__ __aicore__ void ct_hold(GM_ADDR ctx, GM_ADDR a, uint64_t n, int32_t m) {
  shmem_guard guard = shmem_attach(ctx);
  if (m != 0) shmem_ctx_quiet(m);
  shmem_signal_wait_until(reinterpret_cast<__gm__ uint64_t*>(a), SHMEM_CMP_GE, n);
}

extern "C" __global__ __aicore__ void ct_fill(GM_ADDR b, uint64_t n, uint64_t k) {
  for (uint64_t i = 0; i < n; ++i) contexts::out_word(b, i, k + i);
}

extern "C" __global__ __aicore__ void ct_sum(GM_ADDR a, GM_ADDR out, uint64_t n, uint64_t m) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) sum += contexts::word<uint64_t>(a, i);
  contexts::out_word(out, m, sum);
}

extern "C" __global__ __aicore__ void ct_meet(GM_ADDR ctx, GM_ADDR out, uint64_t n) {
  shmem_guard guard = shmem_attach(ctx);
  for (uint64_t i = 0; i < n; ++i) shmem_barrier_all();
  contexts::out_word(out, 0, shmem_error());
}
