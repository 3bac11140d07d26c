/* Contexts on the device: reading the host's entry, taking and giving it back, and naming the context of a call. Used by attach.h for the
 * context that a kernel attaches, and by the shmem_ctx_* calls (contexts.h).
 *
 * A context has queue pairs, counters and an owner word of its own on each core. All contexts of a core share its staging sets in UB
 * (least recently used), its MTE queues and its error record. One kernel has a context at a time: the owner word says so.
 */
#ifndef SHMEM_IMPL_CONTEXT_H
#define SHMEM_IMPL_CONTEXT_H

#include "state.h"

namespace shmem_impl {

__aicore__ inline void load_counters(context& c) {
  c.count.data_requests = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, data_requests));
  c.count.sync_requests = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, sync_requests));
  c.count.sq_doorbells = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, sq_doorbells));
  c.count.cq_doorbells = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, cq_doorbells));
  c.count.ring_copies = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, ring_copies));
  c.count.polls = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, polls));
  c.count.roce_bytes = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, roce_bytes));
  c.count.mapped_bytes = load<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, mapped_bytes));
}

__aicore__ inline void save_counters(const context& c) {
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, data_requests), c.count.data_requests);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, sync_requests), c.count.sync_requests);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, sq_doorbells), c.count.sq_doorbells);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, cq_doorbells), c.count.cq_doorbells);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, ring_copies), c.count.ring_copies);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, polls), c.count.polls);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, roce_bytes), c.count.roce_bytes);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, mapped_bytes), c.count.mapped_bytes);
}

/* Whether this header's context lies there. */
__aicore__ inline bool is_context(uint64_t line) {
  return load<uint32_t>(line + SHMEM_OFFSET(shmem_ctx, magic)) == SHMEM_ABI_MAGIC &&
         load<uint16_t>(line + SHMEM_OFFSET(shmem_ctx, version)) == SHMEM_ABI_VERSION &&
         load<uint16_t>(line + SHMEM_OFFSET(shmem_ctx, size)) == sizeof(struct shmem_ctx);
}

/* Takes the context at `line` for this core, which is one of its comm cores. False, and an error, when another kernel has it. */
__aicore__ inline bool open_context(state& s, context& c, uint64_t line) {
  uint64_t core_line = load<uint64_t>(line + SHMEM_OFFSET(shmem_ctx, cores)) + uint64_t(s.core) * sizeof(struct shmem_core);
  c.id = load<int32_t>(line + SHMEM_OFFSET(shmem_ctx, id));
  if (load<uint64_t>(core_line + SHMEM_OFFSET(shmem_core, owner)) != 0) {
    fail(s, SHMEM_E_BUSY, s.my_pe, s.core, uint64_t(int64_t(c.id)));
    return false;
  }
  store<uint64_t>(core_line + SHMEM_OFFSET(shmem_core, owner), 1);
  c.line = line;
  c.core_line = core_line;
  c.qps = load<uint64_t>(line + SHMEM_OFFSET(shmem_ctx, qps)) + uint64_t(s.core) * uint64_t(s.n_pes) * sizeof(struct shmem_qp);
  c.engine = SHMEM_ENGINE_AUTO;
  c.default_engine = load<uint32_t>(line + SHMEM_OFFSET(shmem_ctx, default_engine));
  c.options = load<uint32_t>(line + SHMEM_OFFSET(shmem_ctx, options));
  c.team = load<int32_t>(line + SHMEM_OFFSET(shmem_ctx, team));
  c.members = 0;
  c.n = s.n_pes;
  if (c.team != SHMEM_TEAM_WORLD) {
    uint64_t entry = s.teams + uint64_t(c.team) * sizeof(struct shmem_team);
    c.members = load<uint64_t>(entry + SHMEM_OFFSET(shmem_team, members));
    c.n = load<int32_t>(entry + SHMEM_OFFSET(shmem_team, n_pes));
    if (load<uint32_t>(entry + SHMEM_OFFSET(shmem_team, magic)) != SHMEM_ABI_MAGIC) {
      fail(s, SHMEM_E_TEAM, s.my_pe, uint64_t(int64_t(c.team)));
    }
  }
  c.left_open = load<uint64_t>(core_line + SHMEM_OFFSET(shmem_core, left_open)) != 0 ? 1 : 0;
  /* Whether the earlier kernel ended with a fence is not known; taking it for granted costs one wait at most. */
  c.left_fenced = c.left_open;
  c.fences = c.left_open;
  c.next_left = 0;
  c.copies = 0;
  load_counters(c);
  return s.error == SHMEM_OK;
}

/* Saves what must outlive the kernel, and gives the context up. Its queue pairs have left the staging sets. */
__aicore__ inline void close_context(context& c) {
  save_counters(c);
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, left_open), c.left_open);
  stores_done();
  store<uint64_t>(c.core_line + SHMEM_OFFSET(shmem_core, owner), 0);
  stores_done();
  c.line = 0;
}

/* The context of a handle, taken at its first use. nullptr, and an error, when there is none, or it is not for this core. */
__aicore__ inline context* find_context(state& s, int32_t id) {
  if (id == SHMEM_CTX_DEFAULT || id == s.own->id) return s.own;
  uint64_t line = 0;
  if (id > 0 && id < int32_t(SHMEM_CTX_MAX)) {
    if (s.contexts[id].line != 0) return &s.contexts[id];
    line = load<uint64_t>(s.contexts_table + uint64_t(id) * sizeof(uint64_t));
  }
  if (line == 0 || !is_context(line)) {
    fail(s, line == 0 ? SHMEM_E_CONTEXT : SHMEM_E_ABI, s.my_pe, uint64_t(int64_t(id)), line);
    return nullptr;
  }
  uint32_t n_cores = load<uint32_t>(line + SHMEM_OFFSET(shmem_ctx, n_cores));
  if (s.core >= n_cores) {
    fail(s, SHMEM_E_CORE, s.my_pe, s.core, n_cores);
    return nullptr;
  }
  return open_context(s, s.contexts[id], line) ? &s.contexts[id] : nullptr;
}

/* While it lives, calls go by the context of that handle, which the first of them may have to take. After an error it changes nothing: the calls do nothing then. */
class in_context {
 public:
  __aicore__ inline in_context(state& of, int32_t id) : s(of), outer(of.ctx) {
    if (s.attached != ATTACHED) {
      AscendC::Trap();
      return;
    }
    if (s.error != SHMEM_OK) return;
    s.op = SHMEM_OP_CONTEXT;
    context* found = find_context(s, id);
    if (found != nullptr) s.ctx = found;
  }
  __aicore__ inline ~in_context() { s.ctx = outer; }
  in_context(const in_context&) = delete;
  in_context& operator=(const in_context&) = delete;

  /* PE of the job by its number in the context's team. */
  __aicore__ inline int pe(int number) const {
    if (s.error != SHMEM_OK || s.ctx->members == 0) return number;
    if (number >= 0 && number < s.ctx->n) return load<int32_t>(s.ctx->members + 4 * uint64_t(number));
    fail(s, SHMEM_E_PE, number, uint64_t(int64_t(number)), uint64_t(s.ctx->n));
    return number;
  }

 private:
  state& s;
  context* outer;
};

}  // namespace shmem_impl

#endif
