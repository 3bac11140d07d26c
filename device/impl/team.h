/* Teams on the device: reading the host's entry, numbers of members, the rounds between the PEs of a team. Used by collect.h (barriers),
 * team_data.h and reduce.h.
 *
 * Nothing here needs an atomic: each word has one writer and only grows, or alternates between two lines (exchange_value), so nothing is
 * ever reset and a member that is one round ahead disturbs nobody.
 *   team line `epoch`, `exchanges`   written by core 0 of this PE
 *   rounds, line r                   written by the member 2^r before this one; dissemination: after ceil(log2 n) rounds everybody has
 *                                    heard of everybody
 *   counts, line (parity, member)    written by that member
 */
#ifndef SHMEM_IMPL_TEAM_H
#define SHMEM_IMPL_TEAM_H

#include "point.h"

namespace shmem_impl {

/* Whether this PE is in the team. */
__aicore__ inline bool has_team(const state& s, int32_t id) {
  return s.teams != 0 && id >= 0 && id < int32_t(SHMEM_TEAM_MAX) &&
         load<uint32_t>(s.teams + uint64_t(id) * sizeof(struct shmem_team) + SHMEM_OFFSET(shmem_team, magic)) != 0;
}

/* The team's entry, read once and kept while calls use the same team. nullptr, and an error, when this PE has no such team. */
__aicore__ inline const team* find_team(state& s, int32_t id) {
  if (id == SHMEM_TEAM_WORLD) id = s.world_team; /* kernels on other streams meet by lines of their own */
  if (s.last_team.id == id) return &s.last_team;
  uint64_t line = s.teams + uint64_t(id) * sizeof(struct shmem_team);
  if (!has_team(s, id)) {
    fail(s, SHMEM_E_TEAM, s.my_pe, uint64_t(int64_t(id)));
    return nullptr;
  }
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_team, magic)) != SHMEM_ABI_MAGIC ||
      load<uint16_t>(line + SHMEM_OFFSET(shmem_team, version)) != SHMEM_ABI_VERSION ||
      load<uint16_t>(line + SHMEM_OFFSET(shmem_team, size)) != sizeof(struct shmem_team)) {
    fail(s, SHMEM_E_ABI, s.my_pe, line);
    return nullptr;
  }
  team& t = s.last_team;
  t.id = id;
  t.line = line;
  t.me = load<int32_t>(line + SHMEM_OFFSET(shmem_team, my_pe));
  t.n = load<int32_t>(line + SHMEM_OFFSET(shmem_team, n_pes));
  t.members = load<uint64_t>(line + SHMEM_OFFSET(shmem_team, members));
  t.numbers = load<uint64_t>(line + SHMEM_OFFSET(shmem_team, numbers));
  t.rounds = load<uint64_t>(line + SHMEM_OFFSET(shmem_team, rounds));
  t.counts = load<uint64_t>(line + SHMEM_OFFSET(shmem_team, counts));
  return &t;
}

/* The PE of the job that is number `member` of the team. */
__aicore__ inline int member(const team& t, int32_t number) { return load<int32_t>(t.members + 4 * uint64_t(number)); }

/* Sends a growing word to a place of the sync memory of `pe`, and rings. */
__aicore__ inline bool send_word(state& s, int pe, uint64_t offset, uint64_t value) {
  s.sync = 1;
  put_value(s, s.heap_base + offset, value, sizeof(uint64_t), pe);
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

/* The rounds between the members, on core 0: in round r, tell the member 2^r further on, hear from the member 2^r back. */
__aicore__ inline bool run_rounds(state& s, const team& t) {
  uint64_t epoch = load<uint64_t>(t.line + SHMEM_OFFSET(shmem_team, epoch)) + 1;
  uint64_t line = t.rounds;
  for (int64_t distance = 1; distance < t.n; distance *= 2) {
    int to = member(t, int32_t((t.me + distance) % t.n));
    int from = member(t, int32_t((t.me + t.n - distance) % t.n));
    if (!send_word(s, to, line, epoch) || !await_epoch(s, s.heap_base + line, epoch, from, -1)) return false;
    line += SHMEM_LINE;
  }
  store<uint64_t>(t.line + SHMEM_OFFSET(shmem_team, epoch), epoch);
  return true;
}

/* On core 0: gives `value` to all members, who read it with exchanged_value once everybody has met. The two parities alternate, and an
 * exchange is followed by a meeting, so a line is written again only when all its readers have read it. */
__aicore__ inline bool exchange_value(state& s, const team& t, uint64_t value) {
  uint64_t count = load<uint64_t>(t.line + SHMEM_OFFSET(shmem_team, exchanges));
  uint64_t line = t.counts + ((count & 1) * uint64_t(t.n) + uint64_t(t.me)) * SHMEM_LINE;
  for (int32_t i = 0; i < t.n; ++i) {
    if (!send_word(s, member(t, (t.me + i) % t.n), line, value)) return false;
  }
  store<uint64_t>(t.line + SHMEM_OFFSET(shmem_team, exchanges), count + 1);
  return quiet_all(s);
}

__aicore__ inline uint64_t exchanged_value(const state& s, const team& t, uint64_t parity, int32_t number) {
  return load<uint64_t>(s.heap_base + t.counts + (parity * uint64_t(t.n) + uint64_t(number)) * SHMEM_LINE);
}

}  // namespace shmem_impl

#endif
