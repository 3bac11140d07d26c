/* Order and completion of the call's context: flush, fence, quiet, tickets. Knows both engines; moves no data. Used by rma.h, point.h, collect.h.
 *
 * A fence polls nothing. It leaves marks that later requests obey:
 *   - on one queue pair writes stay in order by themselves; a READ or atomic that is still open makes the next request carry SO;
 *   - mapped then roce: the fence drains MTE3, so that what the NIC does later is later;
 *   - roce then mapped: the next mapped access toward that PE waits for the requests before the fence (before_mapped).
 */
#ifndef SHMEM_IMPL_ORDER_H
#define SHMEM_IMPL_ORDER_H

#include "mapped.h"
#include "roce.h"

namespace shmem_impl {

/* Called before each mapped access toward `pe`: waits for requests on the queue pair that a fence put before it. */
__aicore__ inline bool before_mapped(state& s, int pe) {
  s.ctx->copies = 1;
  if (s.ctx->fences == 0) return true;
  queue* q = held_queue(s, pe);
  if (q != nullptr) {
    if (q->fenced == 0) return true;
    if ((s.flags & SHMEM_CTX_QUIET_READS) != 0) return confirm(s, *q);
    if (!poll_to(s, *q, q->fenced)) return false;
    q->fenced = 0;
    return true;
  }
  if (s.ctx->left_fenced == 0) return true;
  q = queue_toward(s, pe);
  return q != nullptr && confirm(s, *q);
}

__aicore__ inline void fence_queue(state& s, queue& q) {
  commit(s, q);
  if (q.head == q.tail && q.open == 0) return;
  q.fenced = q.head;
  q.ctx->fences = 1;
  if ((q.open & SHMEM_QP_OPEN_RESPONSE) != 0) q.strong = 1;
}

/* A NOSTORE context that has made no mapped access has nothing in the MTE queues, and the kernel's own stores are not its matter. */
__aicore__ inline bool has_copies(const state& s) { return s.ctx->copies != 0 || (s.ctx->options & SHMEM_CTX_NOSTORE) == 0; }

__aicore__ inline void fence_all(state& s) {
  if (has_copies(s)) drain_mapped(s);
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    if (s.queues[i].line != 0 && s.queues[i].ctx == s.ctx) fence_queue(s, s.queues[i]);
  }
  if (s.ctx->left_open != 0) {
    s.ctx->left_fenced = 1;
    s.ctx->fences = 1;
  }
}

/* Waits for the requests of queue pairs that are not in the staging set. Looks at every PE's counters, so it costs n_pes loads; it
 * happens only where a core talks to more than MAX_QUEUES PEs between two quiets, or an earlier kernel left requests. */
__aicore__ inline bool quiet_left(state& s) {
  for (int pe = 0; pe < s.n_pes && s.error == SHMEM_OK; ++pe) {
    uint64_t line = s.ctx->qps + uint64_t(pe) * sizeof(struct shmem_qp);
    if (load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, usable)) == 0) continue;
    bool open = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, head)) != load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, tail)) ||
                load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, open)) != 0;
    if (!open) continue;
    queue* q = queue_toward(s, pe);
    if (q == nullptr || !confirm(s, *q)) return false;
    tell_consumed(s, *q);
  }
  return s.error == SHMEM_OK;
}

/* All that this core requested on the call's context is done and visible. Rings every pair before it polls the first. */
__aicore__ inline bool quiet_all(state& s) {
  if (has_copies(s)) copies_done(s);
  s.ctx->copies = 0;
  commit_context(s);
  for (uint32_t i = 0; i < s.n_queues && s.error == SHMEM_OK; ++i) {
    queue& q = s.queues[i];
    if (q.line == 0 || q.ctx != s.ctx) continue;
    if (!confirm(s, q)) return false;
    tell_consumed(s, q);
  }
  if (s.error != SHMEM_OK) return false;
  if (s.ctx->left_open != 0) {
    /* Pairs in the set are quiet and save themselves when they leave it; their lines in GM may be older than that. */
    for (uint32_t i = 0; i < s.n_queues; ++i) {
      if (s.queues[i].line != 0 && s.queues[i].ctx == s.ctx) save_queue(s.queues[i]);
    }
    if (!quiet_left(s)) return false;
    s.ctx->left_open = 0;
  }
  s.ctx->left_fenced = 0;
  s.ctx->fences = 0;
  return true;
}

__aicore__ inline bool quiet_pe(state& s, int pe) {
  copies_done(s);
  queue* held = held_queue(s, pe);
  if (held != nullptr) {
    if (!confirm(s, *held)) return false;
    tell_consumed(s, *held);
    return true;
  }
  if (s.ctx->left_open == 0) return true;
  uint64_t line = s.ctx->qps + uint64_t(pe) * sizeof(struct shmem_qp);
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, usable)) == 0) return true;
  queue* q = queue_toward(s, pe);
  return q != nullptr && confirm(s, *q);
}

/* Sources of all earlier transfers may be changed: copies have read them, requests that refer to them are complete. */
__aicore__ inline bool flush_all(state& s) {
  copies_done(s);
  commit_context(s);
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    queue& q = s.queues[i];
    if (q.line != 0 && q.ctx == s.ctx && !poll_to(s, q, q.head)) return false;
  }
  return s.ctx->left_open == 0 || quiet_all(s);
}

}  // namespace shmem_impl

__aicore__ inline void shmem_commit() {
  shmem_impl::state& s = shmem_impl::block_state;
  if (shmem_impl::enter(s, SHMEM_OP_FENCE)) shmem_impl::commit_context(s);
}

__aicore__ inline void shmem_flush() {
  shmem_impl::state& s = shmem_impl::block_state;
  if (shmem_impl::enter(s, SHMEM_OP_QUIET)) shmem_impl::flush_all(s);
}

__aicore__ inline void shmem_fence() {
  shmem_impl::state& s = shmem_impl::block_state;
  if (shmem_impl::enter(s, SHMEM_OP_FENCE)) shmem_impl::fence_all(s);
}

__aicore__ inline void shmem_fence_pe(int pe) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_FENCE) || !shmem_impl::check_pe(s, pe)) return;
  shmem_impl::drain_mapped(s);
  shmem_impl::queue* held = shmem_impl::held_queue(s, pe);
  if (held != nullptr) {
    shmem_impl::fence_queue(s, *held);
    return;
  }
  if (s.ctx->left_open != 0) {
    s.ctx->left_fenced = 1;
    s.ctx->fences = 1;
  }
}

__aicore__ inline void shmem_quiet() {
  shmem_impl::state& s = shmem_impl::block_state;
  if (shmem_impl::enter(s, SHMEM_OP_QUIET)) shmem_impl::quiet_all(s);
}

__aicore__ inline void shmem_pe_quiet(int pe) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (shmem_impl::enter(s, SHMEM_OP_QUIET) && shmem_impl::check_pe(s, pe)) shmem_impl::quiet_pe(s, pe);
}

__aicore__ inline shmem_ticket shmem_last(int pe) {
  shmem_impl::state& s = shmem_impl::block_state;
  shmem_ticket ticket = {0, pe, s.ctx->id};
  if (!shmem_impl::enter(s, SHMEM_OP_QUIET) || !shmem_impl::check_pe(s, pe)) return ticket;
  const shmem_impl::queue* held = shmem_impl::held_queue(s, pe);
  if (held != nullptr) ticket.index = held->head;
  if (ticket.index == 0 && s.ctx->left_open != 0) {
    ticket.index = shmem_impl::load<uint64_t>(s.ctx->qps + uint64_t(pe) * sizeof(struct shmem_qp) + SHMEM_OFFSET(shmem_qp, head));
  }
  return ticket;
}

__aicore__ inline bool shmem_done(shmem_ticket ticket) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_QUIET) || !shmem_impl::check_pe(s, ticket.pe)) return true;
  shmem_impl::in_context with(s, ticket.ctx);
  shmem_impl::copies_done(s);
  if (ticket.index == 0) return true;
  shmem_impl::queue* q = shmem_impl::queue_toward(s, ticket.pe);
  if (q == nullptr) return true;
  if (q->head - q->staged < ticket.index) shmem_impl::commit(s, *q);
  while (q->tail < ticket.index && s.error == SHMEM_OK && shmem_impl::poll(s, *q)) {
  }
  if (q->tail >= ticket.index || s.error != SHMEM_OK) {
    shmem_impl::looked(s);
    return true;
  }
  return shmem_impl::asked_enough(s, ticket.pe, shmem_impl::WAIT_COMPLETION, ticket.index, true);
}

__aicore__ inline void shmem_wait(shmem_ticket ticket) {
  shmem_impl::state& s = shmem_impl::block_state;
  if (!shmem_impl::enter(s, SHMEM_OP_QUIET) || !shmem_impl::check_pe(s, ticket.pe)) return;
  shmem_impl::in_context with(s, ticket.ctx);
  shmem_impl::copies_done(s);
  if (ticket.index == 0) return;
  shmem_impl::queue* q = shmem_impl::queue_toward(s, ticket.pe);
  if (q != nullptr) shmem_impl::poll_to(s, *q, ticket.index);
}

#endif
