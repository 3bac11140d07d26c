// How the copy engines move bytes between global memory and the unified buffer: MTE2 inwards, MTE3 outwards. The calls that kernels make
// are in copy.h and intrinsics.h; all of them end in `mte2` and `mte3` here.
//
// MTE2 copies complete at once. MTE3 copies complete at once too, unless the block has a chaos seed: then they wait in a queue and run when a
// flag, a barrier or the generator says so, reading the buffer only then, and the lines of a longer one land in the generator's order. Copies of
// up to a line move in aligned words, so that nobody sees a torn one; longer ones run at memcpy's speed.
#ifndef NPUSIM_MTE_H
#define NPUSIM_MTE_H

#include <sched.h>

#include "atomic.h"
#include "tensor.h"

namespace AscendC {

struct DataCopyParams {
  uint16_t blockCount = 1;
  uint16_t blockLen = 0;  // 32-byte units
  uint16_t srcStride = 0; // gap from a block's tail to the next one's head, 32-byte units
  uint16_t dstStride = 0;
  __aicore__ DataCopyParams() {}
  __aicore__ DataCopyParams(uint16_t count, uint16_t length, uint16_t sourceGap, uint16_t targetGap)
      : blockCount(count), blockLen(length), srcStride(sourceGap), dstStride(targetGap) {}
};

#if __NPU_ARCH__ == 3510
using npusim_stride_t = int64_t;
#else
using npusim_stride_t = uint32_t;
#endif

struct DataCopyExtParams {
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;         // bytes
  npusim_stride_t srcStride = 0; // gap: bytes in global memory, 32-byte units in UB
  npusim_stride_t dstStride = 0;
  uint32_t rsv = 0;
  __aicore__ DataCopyExtParams() {}
  __aicore__ DataCopyExtParams(uint16_t count, uint32_t length, npusim_stride_t sourceGap, npusim_stride_t targetGap, uint32_t reserved)
      : blockCount(count), blockLen(length), srcStride(sourceGap), dstStride(targetGap), rsv(reserved) {}
};

template <typename T> struct DataCopyPadExtParams {
  bool isPad = false;
  uint8_t leftPadding = 0; // elements
  uint8_t rightPadding = 0;
  T paddingValue = T{};
  __aicore__ DataCopyPadExtParams() {}
  __aicore__ DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

}  // namespace AscendC

namespace npusim {

constexpr uint32_t MAX_BLOCKS = 4095;         // blocks of one copy
constexpr uint32_t MAX_BLOCK_BYTES = 2097151; // bytes of one block of a DataCopyPad
constexpr uint8_t PAD_POISON = 0xCD;          // what fills a tail whose contents the device leaves undefined

NPUSIM_HOT uint64_t round_up_32(uint64_t bytes) { return (bytes + 31) / 32 * 32; }

// --- Moving bytes ----------------------------------------------------------------------------------------------------------------------

// Calls f(offset, word) for the largest aligned words of [address, address + bytes), at most a line.
template <typename F> NPUSIM_HOT void each_word(uint64_t address, uint32_t bytes, F f) {
  uint32_t at = 0;
  if (__builtin_expect(address % 8 != 0, 0)) {
    if (address % 2 != 0 && bytes >= 1) { f(0, uint8_t()); at = 1; }
    if ((address + at) % 4 != 0 && bytes - at >= 2) { f(at, uint16_t()); at += 2; }
    if ((address + at) % 8 != 0 && bytes - at >= 4) { f(at, uint32_t()); at += 4; }
  }
  // Either aligned to 8 now, or too few bytes are left for the word that would align: then the smaller ones below fit.
  for (; bytes - at >= 8; at += 8) f(at, uint64_t());
  if (bytes - at >= 4 && (address + at) % 4 == 0) { f(at, uint32_t()); at += 4; }
  if (bytes - at >= 2 && (address + at) % 2 == 0) { f(at, uint16_t()); at += 2; }
  if (bytes - at >= 1) { f(at, uint8_t()); at += 1; }
}

NPUSIM_HOT void gm_to_ub(uint8_t *target, uint64_t source, uint32_t bytes) {
  if (bytes > LINE) {
    memcpy(target, reinterpret_cast<const void *>(source), bytes);
    return;
  }
  each_word(source, bytes, [=](uint32_t at, auto zero) {
    const auto word = load_word<decltype(zero)>(source + at, __ATOMIC_RELAXED);
    memcpy(target + at, &word, sizeof(word));
  });
}

// A whole line lands with its first word last. Hardware writes a line at once, so whoever sees its first word (a NIC that looks past the doorbell
// for a slot's owner bit) finds the rest there.
NPUSIM_HOT void line_to_gm(uint64_t target, const uint8_t *source) {
  uint64_t words[LINE / sizeof(uint64_t)];
  memcpy(words, source, LINE);
  for (uint32_t i = 1; i < LINE / sizeof(uint64_t); ++i) store_word<uint64_t>(target + i * sizeof(uint64_t), words[i], __ATOMIC_RELAXED);
  store_word<uint64_t>(target, words[0], __ATOMIC_RELEASE);
}

NPUSIM_HOT void ub_to_gm(uint64_t target, const uint8_t *source, uint32_t bytes) {
  if (bytes == LINE && target % LINE == 0) return line_to_gm(target, source);
  if (bytes > LINE) {
    memcpy(reinterpret_cast<void *>(target), source, bytes);
    return;
  }
  each_word(target, bytes, [=](uint32_t at, auto word) {
    memcpy(&word, source + at, sizeof(word));
    store_word<decltype(word)>(target + at, word, __ATOMIC_RELAXED);
  });
}

// --- MTE3 ------------------------------------------------------------------------------------------------------------------------------

inline uint64_t next_random(State &s) { // xorshift64*
  s.random ^= s.random >> 12;
  s.random ^= s.random << 25;
  s.random ^= s.random >> 27;
  return s.random * 0x2545F4914F6CDD1Dull;
}

// A copy promises no order within itself: its lines land from a random one on, up or down, and now and then with a pause between two of them.
inline void torn_to_gm(State &s, uint64_t target, const uint8_t *source, uint32_t bytes) {
  const uint64_t begin = target / LINE;
  const uint64_t lines = (target + bytes - 1) / LINE - begin + 1;
  const uint64_t random = next_random(s);
  const bool down = (random >> 63) != 0;
  const uint64_t first = (random & 0xFFFFFFFFu) % lines;
  const uint64_t pause = (random >> 61 & 3) == 0 ? (random >> 32 & 0xFFFFFF) % lines : lines;
  for (uint64_t turn = 0; turn < lines; ++turn) {
    const uint64_t line = begin + (first + (down ? lines - turn : turn)) % lines;
    const uint64_t from = line * LINE > target ? line * LINE : target;
    const uint64_t end = (line + 1) * LINE < target + bytes ? (line + 1) * LINE : target + bytes;
    ub_to_gm(from, source + (from - target), static_cast<uint32_t>(end - from));
    if (turn == pause) sched_yield();
  }
}

__attribute__((noinline)) inline void run_copy(const Mte3Copy &copy) {
  for (uint32_t i = 0; i < copy.count; ++i) {
    const uint64_t target = copy.target + i * copy.target_step;
    const uint8_t *source = copy.source + i * copy.source_step;
    if (__builtin_expect(in_doorbell(target, copy.bytes), 0)) {
      if (copy.count != 1 || copy.bytes != 8 || target % 8 != 0 || copy.op != AtomicOp::NONE)
        broken(copy.site, "MTE3 copy of %u x %u bytes to 0x%llx: a doorbell takes exactly one block of 8 aligned bytes", copy.count, copy.bytes,
               (unsigned long long)target);
      uint64_t value;
      memcpy(&value, source, 8);
      ring(target, value);
    } else if (__builtin_expect(copy.op != AtomicOp::NONE, 0)) {
      atomic_to_gm(target, source, copy.bytes, copy.op, copy.type);
    } else if (copy.bytes > LINE && state().late) {
      torn_to_gm(state(), target, source, copy.bytes);
    } else {
      ub_to_gm(target, source, copy.bytes);
    }
  }
}

// Completes outstanding copies, oldest first, until `upto` in all are done.
inline void drain_mte3(State &s, uint64_t upto) {
  while (s.done < upto && s.done < s.queued) {
    const Mte3Copy copy = s.queue[s.done % MTE3_QUEUE];
    s.done++; // first: a fault in it must not run it again
    run_copy(copy);
  }
}
inline void drain_mte3(State &s) { drain_mte3(s, s.queued); }

// One operation in four finishes a copy; one in sixteen finishes all.
__attribute__((noinline)) inline void late_copies(State &s) {
  if (s.done == s.queued) return;
  const uint64_t roll = next_random(s) >> 60;
  if (roll == 0) drain_mte3(s);
  else if (roll < 5) drain_mte3(s, s.done + 1);
}

NPUSIM_COLD void queue_copy(State &s, const Mte3Copy &copy) {
  if (s.queued - s.done == MTE3_QUEUE) drain_mte3(s, s.done + 1);
  s.queue[s.queued % MTE3_QUEUE] = copy;
  s.queued++;
}

NPUSIM_HOT void mte3(const Mte3Copy &copy) {
  State &s = state();
  counters().mte3_copies++;
  counters().mte3_bytes += static_cast<uint64_t>(copy.count) * copy.bytes;
  timed(NPUSIM_STEP_COPY_OUT, copy.target, copy.bytes, copy.count);
  work(copy.site);
  if (__builtin_expect(s.late, 0)) queue_copy(s, copy);
  else if (copy.count == 1 && copy.op == AtomicOp::NONE && !in_doorbell(copy.target, copy.bytes)) ub_to_gm(copy.target, copy.source, copy.bytes);
  else run_copy(copy);
}

// --- MTE2 ------------------------------------------------------------------------------------------------------------------------------

struct Mte2Copy {
  uint8_t *target;
  uint64_t source;
  uint64_t source_step, target_step;
  uint32_t count, bytes;
  uint32_t left;        // padding in bytes before each block
  uint32_t row;         // bytes that a block takes in UB, padding and fill included
  uint32_t unit;        // bytes of the padding value
  uint64_t value;       // padding value, `unit` bytes of it
  bool fill;            // the rest up to 32 bytes is filled with the value, else undefined
};

inline void pad(uint8_t *at, uint64_t bytes, uint64_t value, uint32_t unit) {
  for (uint64_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(value >> (i % unit * 8));
}

NPUSIM_HOT void mte2(const Mte2Copy &copy, Site site) {
  counters().mte2_copies++;
  counters().mte2_bytes += static_cast<uint64_t>(copy.count) * copy.bytes;
  timed(NPUSIM_STEP_COPY_IN, copy.source, copy.bytes, copy.count);
  step(site);
  for (uint32_t i = 0; i < copy.count; ++i) {
    uint8_t *target = copy.target + i * copy.target_step;
    gm_to_ub(target + copy.left, copy.source + i * copy.source_step, copy.bytes);
    const uint32_t end = copy.left + copy.bytes;
    const uint32_t tail = copy.row - end;
    if (__builtin_expect(copy.left != 0, 0)) pad(target, copy.left, copy.value, copy.unit);
    if (tail != 0) {
      if (copy.fill) pad(target + end, tail, copy.value, copy.unit);
      else memset(target + end, PAD_POISON, tail);
    }
  }
}

// --- Checks --------------------------------------------------------------------------------------------------------------------------------

NPUSIM_HOT void check_blocks(uint64_t count, uint64_t bytes, int64_t source_gap, int64_t target_gap, uint32_t element, const char *operation, Site site) {
  if (count > MAX_BLOCKS) broken(site, "%s: blockCount %llu is above %u; split the copy", operation, (unsigned long long)count, MAX_BLOCKS);
  if (bytes > MAX_BLOCK_BYTES) broken(site, "%s: blockLen %llu is above %u bytes; split the copy", operation, (unsigned long long)bytes, MAX_BLOCK_BYTES);
  if (source_gap < 0 || target_gap < 0) broken(site, "%s: a negative stride is not emulated; give the blocks in ascending order", operation);
  if (bytes % element != 0) broken(site, "%s: blockLen %llu is no multiple of the element's %u bytes", operation, (unsigned long long)bytes, element);
}

// Bytes from the first block's head to the last one's tail.
NPUSIM_HOT uint64_t extent(uint64_t count, uint64_t bytes, uint64_t gap) { return count == 0 ? 0 : (count - 1) * (bytes + gap) + bytes; }

// Global memory that MTE reads: a doorbell is not readable.
NPUSIM_HOT void check_source(uint64_t address, uint64_t bytes, const char *operation, Site site) {
  check_gm(address, bytes, operation, site);
  if (__builtin_expect(in_doorbell(address, bytes), 0))
    broken(site, "%s: address 0x%llx is a doorbell, which cannot be read", operation, (unsigned long long)address);
}

template <typename T> inline uint64_t gm_address(const AscendC::GlobalTensor<T> &tensor) { return reinterpret_cast<uint64_t>(tensor.GetPhyAddr()); }

template <typename T>
NPUSIM_HOT void copy_in(const AscendC::LocalTensor<T> &target, const AscendC::GlobalTensor<T> &source, uint64_t count, uint64_t bytes,
                    uint64_t source_gap, uint64_t target_gap, const AscendC::DataCopyPadExtParams<T> *padding, const char *operation, Site site) {
  Mte2Copy copy{};
  uint32_t right = 0;
  if (padding != nullptr && padding->isPad) {
    copy.left = padding->leftPadding * static_cast<uint32_t>(sizeof(T));
    right = padding->rightPadding * static_cast<uint32_t>(sizeof(T));
    if (copy.left > 32 || right > 32) broken(site, "%s: padding of %u and %u bytes; each side takes at most 32", operation, copy.left, right);
    copy.value = to_word<T>(padding->paddingValue);
    if (sizeof(T) == 8 && copy.value != 0) broken(site, "%s: a padding value of a 64-bit type must be 0", operation);
    copy.unit = sizeof(T);
    copy.fill = true;
  }
  const uint64_t row = round_up_32(copy.left + bytes + right);
  const uint64_t used = extent(count, row, target_gap);
  copy.target = reinterpret_cast<uint8_t *>(operand(target, copy.left + bytes, operation, site));
  check_ub(target.address_.bufferAddr, used, AscendC::ONE_BLK_SIZE, operation, site);
  copy.source = gm_address(source);
  const uint64_t reach = extent(count, bytes, source_gap);
  check_source(copy.source, reach, operation, site);
  source.check(0, (reach + sizeof(T) - 1) / sizeof(T), operation, site);
  copy.source_step = bytes + source_gap;
  copy.target_step = row + target_gap;
  copy.row = static_cast<uint32_t>(row);
  copy.count = static_cast<uint32_t>(count);
  copy.bytes = static_cast<uint32_t>(bytes);
  mte2(copy, site);
}

template <typename T>
NPUSIM_HOT void copy_out(const AscendC::GlobalTensor<T> &target, const AscendC::LocalTensor<T> &source, uint64_t count, uint64_t bytes,
                     uint64_t source_gap, uint64_t target_gap, const char *operation, Site site) {
  const State &s = state();
  Mte3Copy copy{};
  const uint64_t row = round_up_32(bytes);
  copy.source = reinterpret_cast<const uint8_t *>(operand(source, bytes, operation, site));
  check_ub(source.address_.bufferAddr, extent(count, row, source_gap), AscendC::ONE_BLK_SIZE, operation, site);
  copy.target = gm_address(target);
  const uint64_t reach = extent(count, bytes, target_gap);
  check_gm(copy.target, reach, operation, site);
  target.check(0, (reach + sizeof(T) - 1) / sizeof(T), operation, site);
  copy.source_step = row + source_gap;
  copy.target_step = bytes + target_gap;
  copy.count = static_cast<uint32_t>(count);
  copy.bytes = static_cast<uint32_t>(bytes);
  copy.op = s.atomic_op;
  copy.type = s.atomic_type;
  copy.site = site;
  if (__builtin_expect(copy.op != AtomicOp::NONE, 0)) check_atomic(copy.target, bytes, copy.type, operation, site);
  mte3(copy);
}

// UB -> UB, by the vector unit.
template <typename T>
inline void copy_inside(const AscendC::LocalTensor<T> &target, const AscendC::LocalTensor<T> &source, uint64_t count, uint64_t bytes,
                        uint64_t source_gap, uint64_t target_gap, const char *operation, Site site) {
  uint8_t *to = reinterpret_cast<uint8_t *>(operand(target, extent(count, bytes, target_gap), operation, site));
  const uint8_t *from = reinterpret_cast<const uint8_t *>(operand(source, extent(count, bytes, source_gap), operation, site));
  counters().vector_ops++;
  work(site);
  for (uint64_t i = 0; i < count; ++i) memmove(to + i * (bytes + target_gap), from + i * (bytes + source_gap), bytes);
}

NPUSIM_HOT uint64_t whole_blocks(uint64_t count, uint32_t element, const char *operation, Site site) {
  const uint64_t bytes = count * element;
  if (bytes % 32 != 0)
    broken(site, "%s: %llu elements are %llu bytes, no multiple of 32; use DataCopyPad for other lengths", operation, (unsigned long long)count,
           (unsigned long long)bytes);
  return bytes;
}

}  // namespace npusim
#endif
