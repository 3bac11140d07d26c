/* Barriers: the cores of one PE meet, core 0 runs the rounds between PEs, the cores are released. Also the barrier of two PEs.
 *
 * Nothing here needs an atomic: every word has one writer and holds a 64-bit epoch that only grows, so nothing is ever reset and a fast
 * PE that is one barrier ahead disturbs nobody.
 *   shmem_core.arrived    written by that core; read by core 0
 *   shmem_core.released   written by core 0; read by all cores. All cores of a launch start from it, however many cores met before.
 *   sync area, line r     written by PE (me - 2^r); dissemination: after ceil(log2 n) rounds everybody has heard of everybody
 *   sync area, pair line  written by the same core of the other PE
 */
#ifndef SHMEM_IMPL_COLLECT_H
#define SHMEM_IMPL_COLLECT_H

#include "point.h"

namespace shmem_impl {

/* Sends an epoch to a word of the sync area of `pe`, and rings. */
__aicore__ inline bool send_epoch(state& s, int pe, uint64_t offset, uint64_t epoch) {
  s.sync = 1;
  put_value(s, s.heap_base + s.sync_offset + offset, epoch, sizeof(uint64_t), pe);
  s.sync = 0;
  return s.error == SHMEM_OK;
}

/* Waits until a word that somebody else raises has reached `epoch`. `core`: another core of this PE that we wait for, or -1; when that
 * core has failed it will not come, and waiting for the time limit would only hide its error. */
__aicore__ inline bool await_epoch(state& s, uint64_t address, uint64_t epoch, int pe, int32_t core) {
  patience wait;
  while (load<uint64_t>(address) < epoch) {
    if (core >= 0 && (wait.looks & (LOOKS_PER_CHECK - 1)) == 0) {
      uint64_t line = s.error_lines + uint64_t(core) * sizeof(struct shmem_error);
      uint32_t code = load<uint32_t>(line + SHMEM_OFFSET(shmem_error, code));
      if (code != SHMEM_OK) {
        fail(s, SHMEM_E_ABORT, pe, WAIT_CORE, uint64_t(core));
        return false;
      }
    }
    if (!wait.more(s, pe, core >= 0 ? WAIT_CORE : WAIT_PE, core >= 0 ? uint64_t(core) : epoch)) return false;
  }
  acquire_flag();
  return true;
}

__aicore__ inline uint64_t core_word(const state& s, uint32_t core, uint64_t offset) {
  return s.core_lines + uint64_t(core) * sizeof(struct shmem_core) + offset;
}

/* The rounds between PEs, on core 0: in round r, tell the PE 2^r further on, hear from the PE 2^r back. */
__aicore__ inline bool run_rounds(state& s, uint64_t epoch) {
  uint32_t round = 0;
  for (int64_t distance = 1; distance < s.n_pes; distance *= 2) {
    int to = int((s.my_pe + distance) % s.n_pes);
    int from = int((s.my_pe + s.n_pes - distance) % s.n_pes);
    if (!send_epoch(s, to, SHMEM_SYNC_ROUND_OFFSET(round), epoch)) return false;
    if (!await_epoch(s, s.heap_base + s.sync_offset + SHMEM_SYNC_ROUND_OFFSET(round), epoch, from, -1)) return false;
    round += 1;
  }
  return true;
}

/* Everybody meets: the cores of each PE, and the PEs. */
__aicore__ inline bool meet(state& s) {
  uint64_t epoch = s.epoch + 1;
  store<uint64_t>(core_word(s, s.core, SHMEM_OFFSET(shmem_core, arrived)), epoch);
  if (s.core == 0) {
    for (uint32_t core = 1; core < s.cores; ++core) {
      if (!await_epoch(s, core_word(s, core, SHMEM_OFFSET(shmem_core, arrived)), epoch, s.my_pe, int32_t(core))) return false;
    }
    if (!run_rounds(s, epoch)) return false;
    stores_done();
    store<uint64_t>(core_word(s, 0, SHMEM_OFFSET(shmem_core, released)), epoch);
  } else if (!await_epoch(s, core_word(s, 0, SHMEM_OFFSET(shmem_core, released)), epoch, s.my_pe, 0)) {
    return false;
  }
  s.epoch = epoch;
  store<uint64_t>(core_word(s, s.core, SHMEM_OFFSET(shmem_core, epoch)), epoch);
  return true;
}

}  // namespace shmem_impl

__aicore__ inline void shmem_barrier_all() {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_BARRIER)) return;
  shmem_impl::clean_data_cache(s.heap_base);
  if (!shmem_impl::quiet_all(s) || !shmem_impl::meet(s)) return;
  shmem_impl::clean_data_cache(s.heap_base);
}

__aicore__ inline void shmem_sync_all() {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_SYNC)) return;
  shmem_impl::commit_all(s);
  shmem_impl::meet(s);
}

__aicore__ inline void shmem_sync_pe(int pe) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_SYNC_PE) || !shmem_impl::check_pe(s, pe)) return;
  shmem_impl::commit_all(s);
  if (pe == s.my_pe) return;
  uint64_t count = s.qps + uint64_t(pe) * sizeof(struct shmem_qp) + SHMEM_OFFSET(shmem_qp, sync_epoch);
  uint64_t epoch = shmem_impl::load<uint64_t>(count) + 1;
  if (!shmem_impl::send_epoch(s, pe, SHMEM_SYNC_PAIR_OFFSET(s.core, s.my_pe, s.n_pes), epoch)) return;
  uint64_t mine = s.heap_base + s.sync_offset + SHMEM_SYNC_PAIR_OFFSET(s.core, pe, s.n_pes);
  if (!shmem_impl::await_epoch(s, mine, epoch, pe, -1)) return;
  shmem_impl::store<uint64_t>(count, epoch);
}

#endif
