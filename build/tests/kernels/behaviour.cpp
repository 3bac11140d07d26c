// Kernels that do what they should; tests look at the memory and the counters that they leave.
#include "kernel_operator.h"
using namespace AscendC;

#define KERNEL extern "C" __global__ __aicore__ void

template <typename T> __aicore__ inline GlobalTensor<T> global(GM_ADDR gm) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer((__gm__ T *)gm);
  return tensor;
}
template <HardEvent event> __aicore__ inline void meet() {
  SetFlag<event>(EVENT_ID0);
  WaitFlag<event>(EVENT_ID0);
}

// --- Arguments ---
struct Pair {
  uint32_t a;
  uint16_t b;
};
KERNEL arguments(uint8_t small, GM_ADDR out, uint32_t word, float number, uint8_t last, Pair pair, uint64_t big) {
  GlobalTensor<uint64_t> o = global<uint64_t>(out);
  o.SetValue(0, small);
  o.SetValue(1, word);
  o.SetValue(2, (uint64_t)(number * 2));
  o.SetValue(3, last);
  o.SetValue(4, pair.a);
  o.SetValue(5, pair.b);
  o.SetValue(6, big);
  o.SetValue(7, (uint64_t)GetBlockIdx() * 100 + (uint64_t)GetBlockNum());
}
KERNEL nothing() {}
namespace inner {
__global__ __vector__ __aicore__ void named(GM_ADDR) {}
}

// --- Copies ---
KERNEL strided(GM_ADDR in, GM_ADDR out) {
  // Three blocks of 12 bytes, 20 bytes apart; in UB each starts a 32-byte block, with one block between.
  LocalTensor<uint32_t> t(TPosition::VECCALC, 256, 256);
  DataCopyPad(t, global<uint32_t>(in), DataCopyExtParams(3, 12, 8, 1, 0), DataCopyPadExtParams<uint32_t>(true, 1, 2, 9));
  meet<HardEvent::MTE2_MTE3>();
  DataCopyPad(global<uint32_t>(out), t, DataCopyExtParams(3, 32, 1, 0, 0));
  DataCopyPad(global<uint32_t>(out)[32], t, DataCopyExtParams(3, 12, 1, 4, 0));
}
KERNEL misaligned(GM_ADDR in, GM_ADDR out, uint32_t from, uint32_t to, uint32_t bytes) {
  LocalTensor<uint8_t> t(TPosition::VECCALC, 0, 1024);
  DataCopyPad(t, global<uint8_t>(in + from), DataCopyExtParams(1, bytes, 0, 0, 0), DataCopyPadExtParams<uint8_t>());
  meet<HardEvent::MTE2_MTE3>();
  DataCopyPad(global<uint8_t>(out + to), t, DataCopyExtParams(1, bytes, 0, 0, 0));
}
KERNEL nothing_copied(GM_ADDR gm) {
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 8);
  DataCopyPad(t, global<uint32_t>(gm), DataCopyExtParams(0, 12, 0, 0, 0), DataCopyPadExtParams<uint32_t>());
  DataCopyPad(global<uint32_t>(gm), t, DataCopyExtParams(1, 0, 0, 0, 0));
  DataCopy(t, global<uint32_t>(gm), 0);
}
KERNEL raw_copies(GM_ADDR in, GM_ADDR out) {
  __ubuf__ uint32_t *ub = (__ubuf__ uint32_t *)64;  // a plain UB offset, as on the device
  copy_gm_to_ubuf_align_b32(ub, in, 0, 1, 16, 0, 0, 0, 0);
  LocalTensor<uint32_t> same(64);
  __ubuf__ uint32_t *p = (__ubuf__ uint32_t *)same.GetPhyAddr();
  p[1] += 100;
  same(2) += 200;
  set_flag(PIPE_S, PIPE_MTE3, EVENT_ID1);
  wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID1);
  copy_ubuf_to_gm_align_b8(out, p, 0, 1, 13, 0, 0, 0, 0);
  copy_ubuf_to_gm(out + 64, ub, 0, 1, 1, 0, 0);
}
KERNEL bulk(GM_ADDR in, GM_ADDR out, uint32_t bytes, uint32_t rounds) {
  LocalTensor<uint8_t> t(TPosition::VECCALC, 0, bytes);
  for (uint32_t i = 0; i < rounds; ++i) {
    DataCopy(t, global<uint8_t>(in), bytes);
    meet<HardEvent::MTE2_MTE3>();
    DataCopy(global<uint8_t>(out), t, bytes);
    meet<HardEvent::MTE3_MTE2>();
  }
}
KERNEL add_to_memory(GM_ADDR out, uint32_t rounds) {
  LocalTensor<int32_t> t(TPosition::VECCALC, 0, 16);
  LocalTensor<float> f(TPosition::VECCALC, 64, 16);
  LocalTensor<half> h(TPosition::VECCALC, 128, 16);
  Duplicate(t, 3, 16);
  Duplicate(f, 0.5f, 16);
  Duplicate(h, (half)0.25f, 16);
  meet<HardEvent::V_MTE3>();
  for (uint32_t i = 0; i < rounds; ++i) {
    SetAtomicAdd<int32_t>();
    DataCopyPad(global<int32_t>(out), t, DataCopyExtParams(1, 20, 0, 0, 0));
    SetAtomicAdd<float>();
    DataCopyPad(global<float>(out + 64), f, DataCopyExtParams(1, 8, 0, 0, 0));
    SetAtomicAdd<half>();
    DataCopyPad(global<half>(out + 128), h, DataCopyExtParams(1, 4, 0, 0, 0));
    SetAtomicMax<float>();
    DataCopyPad(global<float>(out + 192), f, DataCopyExtParams(1, 4, 0, 0, 0));
    SetAtomicNone();
  }
}

// --- The scalar cache: word `slot` of a line, written while the test's other writer changes a neighbour ---
__aicore__ inline void neighbour(GM_ADDR line, uint32_t slot) {
  // Round the cache, as a store of another core would arrive in memory.
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 8);
  t.SetValue(0, 77);
  meet<HardEvent::S_MTE3>();
  DataCopyPad(global<uint32_t>(line)[slot + 1], t, DataCopyExtParams(1, 4, 0, 0, 0));
  PipeBarrier<PIPE_ALL>();
}
KERNEL cached_slot(GM_ADDR line, uint32_t slot) {
  global<uint32_t>(line).SetValue(slot, 1000 + slot);
  neighbour(line, slot);
  dcci(line, SINGLE_CACHE_LINE);
}
KERNEL uncached_slot(GM_ADDR line, uint32_t slot) {
  st_dev(1000 + slot, (__gm__ uint32_t *)line + slot, 0);
  neighbour(line, slot);
  dcci(line, SINGLE_CACHE_LINE);
}
KERNEL stale_load(GM_ADDR line, GM_ADDR out) {
  GlobalTensor<uint32_t> words = global<uint32_t>(line);
  const uint32_t first = words.GetValue(0);
  st_dev(first + 1, (__gm__ uint32_t *)line, 0);
  const uint32_t stale = words(0);
  const uint64_t fresh = ld_dev((__gm__ uint32_t *)line, 0);
  DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE>(words);
  const uint32_t after = words(0);
  st_dev(stale, (__gm__ uint32_t *)out, 0);
  st_dev((uint32_t)fresh, (__gm__ uint32_t *)out, 4);
  st_dev(after, (__gm__ uint32_t *)out, 8);
}
KERNEL many_lines(GM_ADDR gm, uint32_t lines) {
  for (uint32_t i = 0; i < lines; ++i) global<uint64_t>(gm).SetValue(i * 8, i + 1);
}

// --- Late copies ---
KERNEL late_source(GM_ADDR out) {
  // Writes 1, then reuses the source without waiting for MTE3: memory may get the second value.
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 8);
  t.SetValue(0, 1);
  meet<HardEvent::S_MTE3>();
  DataCopyPad(global<uint32_t>(out), t, DataCopyExtParams(1, 4, 0, 0, 0));
  t.SetValue(0, 2);
}
KERNEL late_flagged(GM_ADDR out) {
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 8);
  t.SetValue(0, 1);
  meet<HardEvent::S_MTE3>();
  DataCopyPad(global<uint32_t>(out), t, DataCopyExtParams(1, 4, 0, 0, 0));
  meet<HardEvent::MTE3_S>();
  t.SetValue(0, 2);
}
KERNEL late_order(GM_ADDR out, uint32_t wait) {
  // A copy of data, then a flag by a device store. Word 2 is what memory held when the flag was stored.
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 8);
  t.SetValue(0, 1);
  meet<HardEvent::S_MTE3>();
  DataCopyPad(global<uint32_t>(out), t, DataCopyExtParams(1, 4, 0, 0, 0));
  if (wait == 1) PipeBarrier<PIPE_ALL>();
  if (wait == 2) SyncAll();
  st_dev((uint32_t)ld_dev((__gm__ uint32_t *)out, 0), (__gm__ uint32_t *)out + 2, 0);
}
KERNEL late_in_order(GM_ADDR out) {
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 1024);
  for (uint32_t i = 0; i < 100; ++i) {
    t.SetValue(i * 8, i + 1);
    meet<HardEvent::S_MTE3>();
    DataCopyPad(global<uint32_t>(out), t[i * 8], DataCopyExtParams(1, 4, 0, 0, 0));
  }
}
KERNEL late_queue(GM_ADDR in, GM_ADDR out) {
  TPipe pipe;
  TQue<TPosition::VECOUT, 2> queue;
  pipe.InitBuffer(queue, 2, 32);
  for (uint32_t i = 0; i < 20; ++i) {
    LocalTensor<int32_t> t = queue.AllocTensor<int32_t>();
    Duplicate(t, (int32_t)i, 8);
    queue.EnQue(t);
    t = queue.DeQue<int32_t>();
    DataCopy(global<int32_t>(out)[i * 8], t, 8);
    queue.FreeTensor(t);
  }
  (void)in;
}

// --- Polling ---
KERNEL poll_uncached(GM_ADDR word) {
  while (ld_dev((__gm__ uint64_t *)word, 0) == 0) {}
}
KERNEL poll_several(GM_ADDR words) {
  uint64_t sum = 0;
  while (sum == 0) {
    for (uint32_t i = 0; i < 8; ++i) sum += ld_dev((__gm__ uint64_t *)words, int16_t(8 * i));
  }
}
KERNEL read_through(GM_ADDR words, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) ld_dev((__gm__ uint64_t *)words + i, 0);
}
KERNEL poll_cached(GM_ADDR word) {
  GlobalTensor<uint64_t> w = global<uint64_t>(word);
  do {
    dcci(word, SINGLE_CACHE_LINE);
  } while (w.GetValue(0) == 0);
}
KERNEL poll_copy(GM_ADDR word) {
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 8);
  do {
    DataCopyPad(t, global<uint32_t>(word), DataCopyExtParams(1, 4, 0, 0, 0), DataCopyPadExtParams<uint32_t>());
    meet<HardEvent::MTE2_S>();
  } while (t.GetValue(0) == 0);
}
KERNEL poll_clock() {
  const int64_t start = GetSystemCycle();
  while (GetSystemCycle() - start < 1000000000) {}
}
KERNEL work_on(GM_ADDR word) {
  for (uint32_t i = 0; i < 100; ++i) {
    ld_dev((__gm__ uint64_t *)word, 0);
    st_dev(1ull, (__gm__ uint64_t *)word, 0);
  }
}

// --- Leaving from deep below ---
__attribute__((noinline)) static uint32_t deep(GM_ADDR gm, uint32_t depth) {
  uint32_t local[16] = {depth};
  if (depth == 0) {
    ld_dev((__gm__ uint64_t *)(gm + 1), 0);
  } else {
    local[1] = deep(gm, depth - 1);
  }
  return local[0] + local[1];
}
KERNEL leave_deep(GM_ADDR gm) { st_dev(deep(gm, 20), (__gm__ uint32_t *)gm, 0); }

KERNEL print_all() {
  AscendC::printf("%s %d %.2f\n", "text", 42, 1.5f);
  PRINTF("end");
}

KERNEL torn(GM_ADDR gm, uint32_t writer, uint32_t rounds) {
  // Words whose halves are equal, written at an offset of 4; a torn one has unequal halves.
  LocalTensor<uint32_t> t(TPosition::VECCALC, 0, 16);
  GlobalTensor<uint32_t> words = global<uint32_t>(gm);
  for (uint32_t i = 1; i <= rounds; ++i) {
    if (writer != 0) {
      Duplicate(t, i, 16);
      meet<HardEvent::V_MTE3>();
      DataCopyPad(words[1], t, DataCopyExtParams(1, 52, 0, 0, 0));
      meet<HardEvent::MTE3_V>();
    } else {
      DataCopyPad(t, words[2], DataCopyExtParams(1, 48, 0, 0, 0), DataCopyPadExtParams<uint32_t>());
      meet<HardEvent::MTE2_S>();
      for (uint32_t j = 0; j < 12; j += 2) ASCENDC_ASSERT(t.GetValue(j) == t.GetValue(j + 1));
      const uint64_t word = ld_dev((__gm__ uint64_t *)gm + 3, 0);
      ASCENDC_ASSERT((uint32_t)word == (uint32_t)(word >> 32));
    }
  }
}

KERNEL whole_lines(GM_ADDR gm, uint32_t writer, uint32_t rounds) {
  // Lines of equal words, each newer than the last; whoever has seen a line's first word must find the others at least as new.
  LocalTensor<uint64_t> t(TPosition::VECCALC, 0, 8);
  for (uint64_t i = 1; i <= rounds; ++i) {
    if (writer != 0) {
      for (uint32_t j = 0; j < 8; ++j) t.SetValue(j, i);
      meet<HardEvent::S_MTE3>();
      DataCopyPad(global<uint64_t>(gm), t, DataCopyExtParams(1, 64, 0, 0, 0));
      meet<HardEvent::MTE3_S>();
    } else {
      const uint64_t first = ld_dev((__gm__ uint64_t *)gm, 0);
      DataCopyPad(t, global<uint64_t>(gm), DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<uint64_t>());
      meet<HardEvent::MTE2_S>();
      for (uint32_t j = 1; j < 8; ++j) ASCENDC_ASSERT(t.GetValue(j) >= first);
    }
  }
}
#if __NPU_ARCH__ == 3510
KERNEL scalar_atomics(GM_ADDR gm, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) AtomicAdd((__gm__ uint64_t *)gm, (uint64_t)1);
  AtomicMax((__gm__ int32_t *)(gm + 8), (int32_t)-5);
  AtomicExch((__gm__ uint32_t *)(gm + 16), 7u);
  const uint32_t seen = AtomicCas((__gm__ uint32_t *)(gm + 16), 7u, 8u);
  st_dev(seen, (__gm__ uint32_t *)(gm + 20), 0);
}
#endif
