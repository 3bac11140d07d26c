/* Barriers: the cores of one PE meet, core 0 runs the rounds between the PEs of a team (team.h), the cores are released. Also the barrier of
 * two PEs, and what teams are asked.
 *
 * Nothing here needs an atomic: every word has one writer and holds a 64-bit epoch that only grows, so nothing is ever reset and a fast
 * PE that is one barrier ahead disturbs nobody.
 *   shmem_core.arrived    written by that core; read by core 0
 *   shmem_core.released   written by core 0; read by all cores. All cores of a launch start from it, however many cores met before.
 *   sync area, pair line  written by the same core of the other PE
 */
#ifndef SHMEM_IMPL_COLLECT_H
#define SHMEM_IMPL_COLLECT_H

#include "team.h"

namespace shmem_impl {

__aicore__ inline uint64_t core_word(const state& s, uint32_t core, uint64_t offset) {
  return s.core_lines + uint64_t(core) * sizeof(struct shmem_core) + offset;
}

/* The cores of this PE meet, and with a team, between their arrival and their release, the PEs of the team. */
__aicore__ inline bool meet(state& s, const team* t) {
  uint64_t epoch = s.epoch + 1;
  store<uint64_t>(core_word(s, s.core, SHMEM_OFFSET(shmem_core, arrived)), epoch);
  if (s.core == 0) {
    for (uint32_t core = 1; core < s.cores; ++core) {
      if (!await_epoch(s, core_word(s, core, SHMEM_OFFSET(shmem_core, arrived)), epoch, s.my_pe, int32_t(core))) return false;
    }
    if (t != nullptr && !run_rounds(s, *t)) return false;
    stores_done();
    store<uint64_t>(core_word(s, 0, SHMEM_OFFSET(shmem_core, released)), epoch);
  } else if (!await_epoch(s, core_word(s, 0, SHMEM_OFFSET(shmem_core, released)), epoch, s.my_pe, 0)) {
    return false;
  }
  s.epoch = epoch;
  store<uint64_t>(core_word(s, s.core, SHMEM_OFFSET(shmem_core, epoch)), epoch);
  return true;
}

/* For the host (kernels/teams.cpp), on one core: the bits that all members have, and how many have another digest. */
__aicore__ inline void agree(int32_t id, uint64_t bits, uint64_t digest, uint64_t& all, uint64_t& differ) {
  state& s = block_state;
  if (!enter(s, SHMEM_OP_SYNC)) return;
  const team* t = find_team(s, id);
  for (uint64_t value = 0; value < 2; ++value) {
    if (t == nullptr) return;
    uint64_t parity = load<uint64_t>(t->line + SHMEM_OFFSET(shmem_team, exchanges)) & 1;
    if (!exchange_value(s, *t, value == 0 ? bits : digest) || !meet(s, t)) return;
    for (int32_t i = 0; i < t->n; ++i) {
      uint64_t theirs = exchanged_value(s, *t, parity, i);
      if (value == 0) all &= theirs;
      if (value == 1 && theirs != digest) differ += 1;
    }
  }
}

}  // namespace shmem_impl

__aicore__ inline void shmem_barrier(shmem_team_t id) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_BARRIER)) return;
  const shmem_impl::team* t = shmem_impl::find_team(s, id);
  if (t == nullptr) return;
  shmem_impl::clean_data_cache(s.heap_base);
  if (!shmem_impl::quiet_all(s) || !shmem_impl::meet(s, t)) return;
  shmem_impl::clean_data_cache(s.heap_base);
}
__aicore__ inline void shmem_barrier_all() { shmem_barrier(SHMEM_TEAM_WORLD); }

__aicore__ inline void shmem_team_sync(shmem_team_t id) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_SYNC)) return;
  const shmem_impl::team* t = shmem_impl::find_team(s, id);
  if (t == nullptr) return;
  shmem_impl::commit_all(s);
  shmem_impl::meet(s, t);
}
__aicore__ inline void shmem_sync_all() { shmem_team_sync(SHMEM_TEAM_WORLD); }

__aicore__ inline void shmem_sync_pe(int pe) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_SYNC_PE) || !shmem_impl::check_pe(s, pe)) return;
  shmem_impl::commit_all(s);
  if (pe == s.my_pe) return;
  if (s.own->id != SHMEM_CTX_DEFAULT) {
    /* The two cores' line counts for one pair of kernels, those of the default context. */
    shmem_impl::fail(s, SHMEM_E_USAGE, pe, uint64_t(int64_t(s.own->id)));
    return;
  }
  uint64_t count = s.ctx->qps + uint64_t(pe) * sizeof(struct shmem_qp) + SHMEM_OFFSET(shmem_qp, sync_epoch);
  uint64_t epoch = shmem_impl::load<uint64_t>(count) + 1;
  if (!shmem_impl::send_word(s, pe, s.sync_offset + SHMEM_SYNC_PAIR_OFFSET(s.core, s.my_pe, s.n_pes), epoch)) return;
  uint64_t mine = s.heap_base + s.sync_offset + SHMEM_SYNC_PAIR_OFFSET(s.core, pe, s.n_pes);
  if (!shmem_impl::await_epoch(s, mine, epoch, pe, -1)) return;
  shmem_impl::store<uint64_t>(count, epoch);
}

__aicore__ inline int shmem_team_my_pe(shmem_team_t id) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_NONE) || !shmem_impl::has_team(s, id)) return -1;
  return shmem_impl::find_team(s, id)->me;
}
__aicore__ inline int shmem_team_n_pes(shmem_team_t id) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_NONE) || !shmem_impl::has_team(s, id)) return -1;
  return shmem_impl::find_team(s, id)->n;
}
__aicore__ inline int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_NONE) || !shmem_impl::has_team(s, from) || !shmem_impl::has_team(s, to)) return -1;
  const shmem_impl::team* t = shmem_impl::find_team(s, from);
  if (t == nullptr || pe < 0 || pe >= t->n) return -1;
  int world = shmem_impl::member(*t, pe);
  t = shmem_impl::find_team(s, to);
  return t == nullptr ? -1 : shmem_impl::load<int32_t>(t->numbers + 4 * uint64_t(world));
}

#endif
