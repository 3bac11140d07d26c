// Order: flags between pipes, pipe barriers, data barriers, and barriers over all cores. Also what a kernel must leave behind when it ends.
//
// Pipes run in program order here, so a flag moves no data; it is checked for the rules that would hang or corrupt the device, and it
// completes late MTE3 copies when it says that they are complete.
#ifndef NPUSIM_SYNC_H
#define NPUSIM_SYNC_H

#include "mte.h"

namespace npusim {

struct PipePair {
  uint8_t from, to;
};
// In the order of AscendC::HardEvent.
constexpr PipePair EVENT_PIPES[] = {
    {PIPE_MTE2, PIPE_MTE1}, {PIPE_MTE1, PIPE_MTE2}, {PIPE_MTE1, PIPE_M},   {PIPE_M, PIPE_MTE1},    {PIPE_MTE2, PIPE_V},
    {PIPE_V, PIPE_MTE2},    {PIPE_MTE3, PIPE_V},    {PIPE_V, PIPE_MTE3},   {PIPE_M, PIPE_V},       {PIPE_V, PIPE_M},
    {PIPE_V, PIPE_V},       {PIPE_MTE3, PIPE_MTE1}, {PIPE_MTE1, PIPE_MTE3}, {PIPE_MTE1, PIPE_V},   {PIPE_MTE2, PIPE_M},
    {PIPE_M, PIPE_MTE2},    {PIPE_V, PIPE_MTE1},    {PIPE_M, PIPE_FIX},    {PIPE_FIX, PIPE_M},     {PIPE_MTE3, PIPE_MTE2},
    {PIPE_MTE2, PIPE_MTE3}, {PIPE_S, PIPE_V},       {PIPE_V, PIPE_S},      {PIPE_S, PIPE_MTE2},    {PIPE_MTE2, PIPE_S},
    {PIPE_S, PIPE_MTE3},    {PIPE_MTE3, PIPE_S},    {PIPE_MTE2, PIPE_FIX}, {PIPE_FIX, PIPE_MTE2},  {PIPE_FIX, PIPE_S},
    {PIPE_M, PIPE_S},       {PIPE_FIX, PIPE_MTE3},  {PIPE_MTE1, PIPE_FIX}, {PIPE_FIX, PIPE_MTE1},  {PIPE_FIX, PIPE_FIX},
};
static_assert(sizeof(EVENT_PIPES) / sizeof(EVENT_PIPES[0]) == static_cast<uint32_t>(AscendC::HardEvent::MAX), "one pair of pipes an event");

inline const char *pipe_name(uint32_t pipe) {
  constexpr const char *names[N_PIPES] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "MTE4", "MTE5", "V2", "FIX"};
  return pipe < N_PIPES ? names[pipe] : "?";
}

NPUSIM_HOT void check_event(PipePair pair, int64_t id, const char *operation, Site site) {
  const State &s = state();
  if (__builtin_expect(pair.from >= N_PIPES || pair.to >= N_PIPES, 0)) broken(site, "%s: no such pipe", operation);
  if (__builtin_expect(id < 0 || id >= N_EVENTS, 0))
    broken(site, "%s<%s_%s>: event id %lld is not in 0..7", operation, pipe_name(pair.from), pipe_name(pair.to), (long long)id);
  if (__builtin_expect((s.claimed_events >> id & 1) != 0, 0) && !claim_is_for(site.file))
    broken(site, "%s<%s_%s>: %s:%u claimed event id %lld for its library; use another id or give the library another one", operation,
           pipe_name(pair.from), pipe_name(pair.to), s.claimed_site.file, s.claimed_site.line, (long long)id);
}

NPUSIM_HOT void set_flag(PipePair pair, int64_t id, Site site) {
  check_event(pair, id, "SetFlag", site);
  State &s = state();
  const uint8_t bit = static_cast<uint8_t>(1u << id);
  if (__builtin_expect((s.flags[pair.from][pair.to] & bit) != 0, 0)) {
    const Site first = s.flag_site[pair.from][pair.to][id];
    broken(site, "SetFlag<%s_%s>(%lld): the flag is already set (%s:%u) and nothing waited for it; each SetFlag needs one WaitFlag before the next",
           pipe_name(pair.from), pipe_name(pair.to), (long long)id, first.file, first.line);
  }
  s.flags[pair.from][pair.to] = static_cast<uint8_t>(s.flags[pair.from][pair.to] | bit);
  s.flag_site[pair.from][pair.to][id] = site;
  if (pair.from == PIPE_MTE3) s.flag_copies[pair.to][id] = s.queued;
  counters().flags_set++;
  timed(NPUSIM_STEP_SET_FLAG, pair.from, pair.to, static_cast<uint64_t>(id));
  step(site);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

NPUSIM_HOT void wait_flag(PipePair pair, int64_t id, Site site) {
  check_event(pair, id, "WaitFlag", site);
  State &s = state();
  const uint8_t bit = static_cast<uint8_t>(1u << id);
  if (__builtin_expect((s.flags[pair.from][pair.to] & bit) == 0, 0))
    broken(site, "WaitFlag<%s_%s>(%lld): no SetFlag came before it, so the core would wait for ever", pipe_name(pair.from), pipe_name(pair.to),
           (long long)id);
  s.flags[pair.from][pair.to] = static_cast<uint8_t>(s.flags[pair.from][pair.to] & ~bit);
  if (pair.from == PIPE_MTE3) drain_mte3(s, s.flag_copies[pair.to][id]);
  counters().flags_waited++;
  timed(NPUSIM_STEP_WAIT_FLAG, pair.from, pair.to, static_cast<uint64_t>(id));
  step(site);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

// PIPE_ALL makes the scalar unit wait for every queue. A barrier of one queue orders that queue with itself only, which a queue here
// always is: late copies stay late.
NPUSIM_HOT void pipe_barrier(uint32_t pipe, Site site) {
  if (__builtin_expect(pipe == PIPE_S, 0))
    broken(site, "PipeBarrier<PIPE_S> is illegal: the scalar unit runs in order by itself; remove it, or use PIPE_ALL to wait for the queues");
  if (pipe == PIPE_ALL) drain_mte3(state());
  counters().pipe_barriers++;
  timed(NPUSIM_STEP_BARRIER, pipe);
  step(site);
  full_fence();
}

NPUSIM_HOT void data_barrier(Site site) {
  timed(NPUSIM_STEP_STORES_DONE, 0);
  step(site);
  full_fence();
}

// All blocks of the launch meet. Enqueued behind MTE3, so its copies are out first.
inline void sync_all(Site site) {
  State &s = state();
  work(site);
  drain_mte3(s);
  full_fence();
  npusim_block *block = s.block;
  if (services->sync_all(block) != 0) {
    if (block->fault.file == nullptr) {
      block->fault.file = site.file;
      block->fault.line = site.line;
    }
    leave(block);
  }
  full_fence();
}

// --- Start and end of a block ----------------------------------------------------------------------------------------------------------

inline void reset(State &s, npusim_block *block) {
  // Everything before the cache's data; the large arrays that a flag or a copy guards need no clearing, but one memset is cheap.
  memset(static_cast<void *>(&s), 0, __builtin_offsetof(State, flag_site));
  s.queued = s.done = 0;
  s.claimed_begin = s.claimed_end = 0;
  s.claimed_events = 0;
  s.mov_pad = 0;
  memset(s.cache.valid, 0, sizeof(s.cache.valid));
  memset(s.cache.dirty, 0, sizeof(s.cache.dirty));
  memset(s.cache.next, 0, sizeof(s.cache.next));
  s.cache.lines = 0;
  s.block = block;
  s.ub = block->ub;
  s.ub_size = block->ub_size;
  s.late = block->chaos_seed != 0;
  s.timed = block->timed != 0;
  s.random = (block->chaos_seed ^ (static_cast<uint64_t>(block->block_idx) + 1) * 0x9E3779B97F4A7C15ull) | 1;
}

// The kernel returned: finish its copies, write its cache back, and look for what it left undone.
inline void finish(State &s) {
  drain_mte3(s);
  cache_flush(s.cache);
  for (uint32_t from = 0; from < N_PIPES; ++from)
    for (uint32_t to = 0; to < N_PIPES; ++to)
      for (uint32_t id = 0; id < N_EVENTS && s.flags[from][to] != 0; ++id)
        if ((s.flags[from][to] >> id & 1) != 0)
          broken(s.flag_site[from][to][id], "SetFlag<%s_%s>(%u) was never waited for before the kernel ended; the next kernel on this core would start with the flag set",
                 pipe_name(from), pipe_name(to), id);
  if (s.atomic_op != AtomicOp::NONE)
    broken(s.atomic_site, "the kernel ended while SetAtomicAdd, SetAtomicMax or SetAtomicMin was on; call SetAtomicNone after the copies that need it");
  full_fence();
}

}  // namespace npusim

namespace AscendC {

template <HardEvent event> __aicore__ inline void SetFlag(int32_t eventID, NPUSIM_SITE) {
  static_assert(event < HardEvent::MAX, "no such event");
  npusim::set_flag(npusim::EVENT_PIPES[static_cast<uint8_t>(event)], eventID, site);
}
template <HardEvent event> __aicore__ inline void WaitFlag(int32_t eventID, NPUSIM_SITE) {
  static_assert(event < HardEvent::MAX, "no such event");
  npusim::wait_flag(npusim::EVENT_PIPES[static_cast<uint8_t>(event)], eventID, site);
}
template <pipe_t pipe> __aicore__ inline void PipeBarrier(NPUSIM_SITE) { npusim::pipe_barrier(pipe, site); }
template <MemDsbT kind> __aicore__ inline void DataSyncBarrier(NPUSIM_SITE) { npusim::data_barrier(site); }

template <bool isAIVOnly = true> __aicore__ inline void SyncAll(NPUSIM_SITE) { npusim::sync_all(site); }

// The soft form meets through zeroed global memory and UB, 32 bytes a core each; here only its rules are checked.
template <bool isAIVOnly = true>
__aicore__ inline void SyncAll(const GlobalTensor<int32_t> &gmWorkspace, const LocalTensor<int32_t> &ubWorkspace, const int32_t usedCores = 0,
                               NPUSIM_SITE) {
  const int64_t blocks = npusim::state().block->block_num;
  const uint64_t bytes = static_cast<uint64_t>(blocks) * ONE_BLK_SIZE;
  npusim::check_gm(npusim::gm_address(gmWorkspace), bytes, "SyncAll (workspace in global memory)", site);
  gmWorkspace.check(0, bytes / sizeof(int32_t), "SyncAll (workspace in global memory)", site);
  npusim::operand(ubWorkspace, bytes, "SyncAll (workspace in UB)", site);
  if (usedCores != 0 && usedCores != blocks)
    npusim::broken(site, "SyncAll over %d of %lld blocks is not emulated; pass 0 or the number of blocks", usedCores, (long long)blocks);
  npusim::sync_all(site);
}

__aicore__ inline void SetSyncBaseAddr(uint64_t) {}

// Flags between cores. Emulated as far as a barrier over all vector cores needs it: mode 0.
template <uint8_t modeId, pipe_t pipe> __aicore__ inline void CrossCoreSetFlag(uint16_t flagId, NPUSIM_SITE) {
  if (modeId != 0 || flagId > 10)
    npusim::broken(site, "CrossCoreSetFlag<%u>(%u): only mode 0 (all vector cores) with flag ids 0..10 is emulated", modeId, flagId);
  npusim::step(site);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S> __aicore__ inline void CrossCoreWaitFlag(uint16_t flagId, NPUSIM_SITE) {
  if (modeId != 0 || flagId > 10)
    npusim::broken(site, "CrossCoreWaitFlag<%u>(%u): only mode 0 (all vector cores) with flag ids 0..10 is emulated", modeId, flagId);
  npusim::sync_all(site);
}

}  // namespace AscendC

#endif
