// Scalar access to global memory: the core's data cache, and the ways round it.
//
// Modelled: 32 KiB of 64-byte lines, 4 ways, written back whole when dcci asks or the line is replaced; not coherent with other cores nor
// with MTE. So a store through the cache overwrites its 63 neighbours with what this core read earlier, and a load may be stale, as on the
// device. st_dev, ld_dev and their AscendC forms go round the cache. Raw `*p` on a __gm__ pointer goes straight to memory: headers cannot see
// it.
#ifndef NPUSIM_CACHE_H
#define NPUSIM_CACHE_H

#include "runtime.h"

namespace npusim {

// --- Words of global memory: never torn ------------------------------------------------------------------------------------------------

template <typename U> inline U load_word(uint64_t address, int order) { return __atomic_load_n(reinterpret_cast<U *>(address), order); }
template <typename U> inline void store_word(uint64_t address, U value, int order) {
  __atomic_store_n(reinterpret_cast<U *>(address), value, order);
}

template <uint32_t BYTES> struct WordOf;
template <> struct WordOf<1> { using type = uint8_t; };
template <> struct WordOf<2> { using type = uint16_t; };
template <> struct WordOf<4> { using type = uint32_t; };
template <> struct WordOf<8> { using type = uint64_t; };
template <typename T> using Word = typename WordOf<sizeof(T)>::type;

template <typename T> inline Word<T> to_word(T value) {
  Word<T> word;
  memcpy(&word, &value, sizeof(T));
  return word;
}
template <typename T> inline T from_word(Word<T> word) {
  T value;
  memcpy(&value, &word, sizeof(T));
  return value;
}

template <typename T> struct Plain { using type = T; };
template <typename T> struct Plain<const T> { using type = T; };
template <typename T> struct Plain<volatile T> { using type = T; };
template <typename T> struct Plain<const volatile T> { using type = T; };
template <typename T> struct Same { using type = T; }; // keeps an argument out of type deduction

// --- The cache -------------------------------------------------------------------------------------------------------------------------

NPUSIM_HOT uint32_t cache_set(uint64_t line) { return static_cast<uint32_t>(line / LINE) % CACHE_SETS; }

// Way that holds the line, or CACHE_WAYS.
NPUSIM_HOT uint32_t cache_find(const Cache &c, uint64_t line) {
  const uint32_t set = cache_set(line);
  for (uint32_t way = 0; way < CACHE_WAYS; ++way)
    if ((c.valid[set] >> way & 1) != 0 && c.tag[set][way] == line) return way;
  return CACHE_WAYS;
}

// All 64 bytes go back, whoever wrote some of them in memory meanwhile: that is the hazard.
inline void cache_clean(Cache &c, uint32_t set, uint32_t way) {
  if ((c.dirty[set] >> way & 1) == 0) return;
  c.dirty[set] = static_cast<uint8_t>(c.dirty[set] & ~(1u << way));
  for (uint32_t i = 0; i < LINE; i += 8) {
    uint64_t word;
    memcpy(&word, &c.data[set][way][i], 8);
    store_word<uint64_t>(c.tag[set][way] + i, word, __ATOMIC_RELAXED);
  }
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

inline void cache_drop(Cache &c, uint32_t set, uint32_t way) {
  cache_clean(c, set, way);
  c.valid[set] = static_cast<uint8_t>(c.valid[set] & ~(1u << way));
  --c.lines;
}

// Writes back and empties the whole cache.
inline void cache_flush(Cache &c) {
  for (uint32_t set = 0; set < CACHE_SETS && c.lines != 0; ++set)
    for (uint32_t way = 0; way < CACHE_WAYS; ++way)
      if ((c.valid[set] >> way & 1) != 0) cache_drop(c, set, way);
}

// The cached copy of the bytes at `address`; reads the line from memory when it is not there.
inline uint8_t *cache_bytes(Cache &c, uint64_t address, bool write) {
  const uint64_t line = address & ~static_cast<uint64_t>(LINE - 1);
  const uint32_t set = cache_set(line);
  uint32_t way = cache_find(c, line);
  if (way == CACHE_WAYS) {
    way = c.next[set];
    c.next[set] = static_cast<uint8_t>((way + 1) % CACHE_WAYS);
    if ((c.valid[set] >> way & 1) != 0) cache_drop(c, set, way);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < LINE; i += 8) {
      const uint64_t word = load_word<uint64_t>(line + i, __ATOMIC_RELAXED);
      memcpy(&c.data[set][way][i], &word, 8);
    }
    c.tag[set][way] = line;
    c.valid[set] = static_cast<uint8_t>(c.valid[set] | 1u << way);
    ++c.lines;
  }
  if (write) c.dirty[set] = static_cast<uint8_t>(c.dirty[set] | 1u << way);
  return &c.data[set][way][address % LINE];
}

NPUSIM_HOT void check_scalar(uint64_t address, uint32_t bytes, const char *operation, Site site) {
  check_gm(address, bytes, operation, site);
  if (__builtin_expect(address % bytes != 0, 0))
    broken(site, "%s: address 0x%llx is not aligned to the %u bytes of its type", operation, (unsigned long long)address, bytes);
}

NPUSIM_HOT void check_not_doorbell(uint64_t address, uint64_t bytes, const char *operation, Site site) {
  if (__builtin_expect(in_doorbell(address, bytes), 0))
    broken(site, "%s: address 0x%llx is a doorbell; it takes one uncached 8-byte store (st_dev, WriteGmByPassDCache) or an MTE3 copy of 8 bytes",
           operation, (unsigned long long)address);
}

template <typename T> inline T cached_load(uint64_t address, const char *operation, Site site) {
  check_scalar(address, sizeof(T), operation, site);
  check_not_doorbell(address, sizeof(T), operation, site);
  counters().cached_loads++;
  step(site);
  T value;
  memcpy(&value, cache_bytes(state().cache, address, false), sizeof(T));
  return value;
}

template <typename T> inline void cached_store(uint64_t address, T value, const char *operation, Site site) {
  check_scalar(address, sizeof(T), operation, site);
  check_not_doorbell(address, sizeof(T), operation, site);
  counters().cached_stores++;
  work(site);
  memcpy(cache_bytes(state().cache, address, true), &value, sizeof(T));
}

// dcci: one line, or all of them.
inline void clean_and_invalidate(uint64_t address, bool entire, uint64_t target, Site site) {
  poll(site);
  if (target == static_cast<uint64_t>(AscendC::DcciDst::CACHELINE_UB)) return;
  Cache &c = state().cache;
  if (entire) {
    counters().dcci_all++;
    cache_flush(c);
    return;
  }
  counters().dcci_lines++;
  if (c.lines == 0) return;
  const uint64_t line = address & ~static_cast<uint64_t>(LINE - 1);
  const uint32_t way = cache_find(c, line);
  if (way != CACHE_WAYS) cache_drop(c, cache_set(line), way);
}

// --- Round the cache -------------------------------------------------------------------------------------------------------------------

template <typename T> NPUSIM_HOT T device_load(uint64_t address, const char *operation, Site site) {
  check_scalar(address, sizeof(T), operation, site);
  check_not_doorbell(address, sizeof(T), operation, site);
  counters().device_loads++;
  poll_at(address, site);
  const Word<T> word = load_word<Word<T>>(address, __ATOMIC_ACQUIRE);
  if (__builtin_expect(state().timed, 0))
    return from_word<T>(static_cast<Word<T>>(services->time(current->block, NPUSIM_STEP_LOAD, address, sizeof(T), word)));
  return from_word<T>(word);
}

// A store that rings a doorbell when it goes to one.
inline void ring(uint64_t address, uint64_t value) {
  full_fence();
  npusim_block *block = current->block;
  if (services->doorbell(block, address, value) != 0) leave(block);
}

template <typename T> NPUSIM_HOT void device_store(uint64_t address, T value, const char *operation, Site site) {
  check_scalar(address, sizeof(T), operation, site);
  counters().device_stores++;
  work(site);
  if (__builtin_expect(in_doorbell(address, sizeof(T)), 0)) {
    if (sizeof(T) != 8) check_not_doorbell(address, sizeof(T), operation, site);
    ring(address, static_cast<uint64_t>(to_word<T>(value)));
    return;
  }
  const Cache &c = state().cache;
  if (__builtin_expect(c.lines != 0, 0)) {
    const uint64_t line = address & ~static_cast<uint64_t>(LINE - 1);
    const uint32_t way = cache_find(c, line);
    if (way != CACHE_WAYS && (c.dirty[cache_set(line)] >> way & 1) != 0)
      broken(site, "%s: the line of 0x%llx is dirty in this core's data cache, whose write-back would undo the store; write it back first (dcci of the line, then DataSyncBarrier<MemDsbT::DDR>)",
             operation, (unsigned long long)address);
  }
  timed(NPUSIM_STEP_STORE, address, sizeof(T));
  store_word<Word<T>>(address, to_word<T>(value), __ATOMIC_RELEASE);
}

}  // namespace npusim

// --- Intrinsics ------------------------------------------------------------------------------------------------------------------------

template <typename T> __aicore__ inline uint64_t ld_dev(__gm__ T *address, int16_t offset, NPUSIM_SITE) {
  using V = typename npusim::Plain<T>::type;
  return npusim::to_word<V>(npusim::device_load<V>(reinterpret_cast<uint64_t>(address) + static_cast<int64_t>(offset), "ld_dev", site));
}
template <typename T>
__aicore__ inline void st_dev(typename npusim::Same<typename npusim::Plain<T>::type>::type value, __gm__ T *address, int16_t offset,
                              NPUSIM_SITE) {
  using V = typename npusim::Plain<T>::type;
  npusim::device_store<V>(reinterpret_cast<uint64_t>(address) + static_cast<int64_t>(offset), value, "st_dev", site);
}
__aicore__ inline void dcci(const __gm__ void *address, uint64_t entire, uint64_t target = CACHELINE_ALL, NPUSIM_SITE) {
  npusim::clean_and_invalidate(reinterpret_cast<uint64_t>(address), entire == ENTIRE_DATA_CACHE, target, site);
}

namespace AscendC {

template <typename T> class GlobalTensor;
template <typename T> class LocalTensor;

template <typename T> __aicore__ inline void WriteGmByPassDCache(__gm__ T *address, typename npusim::Same<T>::type value, NPUSIM_SITE) {
  npusim::device_store<T>(reinterpret_cast<uint64_t>(address), value, "WriteGmByPassDCache", site);
}
template <typename T> __aicore__ inline T ReadGmByPassDCache(__gm__ T *address, NPUSIM_SITE) {
  return npusim::device_load<T>(reinterpret_cast<uint64_t>(address), "ReadGmByPassDCache", site);
}
template <typename T, CacheLine line, DcciDst target>
__aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor, NPUSIM_SITE) {
  npusim::clean_and_invalidate(reinterpret_cast<uint64_t>(tensor.GetPhyAddr()), line == CacheLine::ENTIRE_DATA_CACHE,
                               static_cast<uint64_t>(target), site);
}
template <typename T, CacheLine line> __aicore__ inline void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor, NPUSIM_SITE) {
  DataCacheCleanAndInvalid<T, line, DcciDst::CACHELINE_ALL>(tensor, site);
}
// The scalar unit's view of UB is not cached here.
template <typename T, CacheLine line, DcciDst target> __aicore__ inline void DataCacheCleanAndInvalid(const LocalTensor<T> &, NPUSIM_SITE) {
  npusim::poll(site);
}

}  // namespace AscendC

#endif
