/* The ring discipline of one queue pair: reserve -> fill -> commit, and polling for completions. Knows requests as eight words
 * (wqe.h) and nothing of put or get. Used by roce.h, atomic.h and order.h.
 *
 * A queue pair belongs to one core for one peer, so there are no locks. Its counters are 64 bits wide, live in block-local storage
 * while the pair is among the `queues` of the core, and are stored to its own line in GM before each doorbell.
 *
 *   reserve   room for one request: head - tail + 1 <= limit, by distance; polls when the ring is full
 *   fill      eight scalar stores into the pair's staging lines in UB; the owner bit follows the ring's real depth
 *   commit    MTE3 copies slots 2..n to the ring (split at the ring's end), gate, slot 1, counters, one doorbell
 *
 * The NIC may run past the doorbell over slots with valid owner bits; slot 1 stays invalid until all that follows it is in place.
 * Only the last request of a batch asks for a completion, so a completion retires all requests before it.
 */
#ifndef SHMEM_IMPL_QUEUE_H
#define SHMEM_IMPL_QUEUE_H

#include "wait.h"

namespace shmem_impl {

/* Tells the NIC how far completions have been consumed. */
__aicore__ inline void tell_consumed(state& s, queue& q) {
  if (q.told == q.consumed) return;
  q.told = q.consumed;
  ring_doorbell(q.completion_doorbell, completion_doorbell(q.cqn, q.consumed));
  q.ctx->count.cq_doorbells += 1;
}

/* Counters to the queue pair's own line, for the next kernel and the host. */
__aicore__ inline void save_queue(queue& q) {
  store<uint64_t>(q.line + SHMEM_OFFSET(shmem_qp, head), q.head - q.staged);
  store<uint64_t>(q.line + SHMEM_OFFSET(shmem_qp, tail), q.tail);
  store<uint64_t>(q.line + SHMEM_OFFSET(shmem_qp, cq_ci), q.consumed);
  store<uint64_t>(q.line + SHMEM_OFFSET(shmem_qp, cq_published), q.told);
  store<uint64_t>(q.line + SHMEM_OFFSET(shmem_qp, bounce_head), q.bounce_head);
  store<uint32_t>(q.line + SHMEM_OFFSET(shmem_qp, open), q.open);
}

/* Records that a request failed: the queue pair is broken from then on. `index`: the request; `first`: dword 0 of the completion. */
__aicore__ inline void record_failed(state& s, uint64_t line, int pe, uint32_t qpn, uint64_t index, uint64_t entry, uint32_t first) {
  uint32_t sub_status = cqe_sub_status(load<uint32_t>(entry + CQE_SUB_STATUS_OFFSET));
  store<uint32_t>(line + SHMEM_OFFSET(shmem_qp, broken), 1);
  fail(s, SHMEM_E_COMPLETION, pe, index, first & 0x1f, qpn, cqe_status(first) | (sub_status << 8));
}

/* One look at the completion ring. True when there was an entry; a failed one is recorded, and it advances the tail too. */
__aicore__ inline bool poll(state& s, queue& q) {
  uint64_t entry = q.completions + (q.consumed & (q.completion_depth - 1)) * q.completion_stride;
  uint32_t first = load<uint32_t>(entry);
  if (!cqe_valid(first, q.consumed, q.completion_depth)) return false;
  acquire_cqe();
  q.ctx->count.polls += 1;
  uint64_t done = ((cqe_wqe_index(first) - uint32_t(q.tail)) & (q.depth - 1)) + 1;
  uint64_t published = q.head - q.staged;
  q.consumed += 1;
  q.tail = q.tail + done < published ? q.tail + done : published;
  if (q.tail == q.head) {
    /* Where completions are not trusted to mean visibility, writes stay open until a READ has flushed them (roce.h, confirm). */
    q.open &= (s.flags & SHMEM_CTX_QUIET_READS) != 0 ? SHMEM_QP_OPEN_WRITE : 0;
    q.strong = 0;
  }
  if (q.consumed - q.told >= q.completion_depth / 2) tell_consumed(s, q);
  if (cqe_status(first) != 0) record_failed(s, q.line, q.pe, q.qpn, q.tail - 1, entry, first);
  return true;
}

/* Gives the staged batch to the NIC. After an error of the core it is dropped instead: the pair may be broken. */
__aicore__ inline void commit(state& s, queue& q) {
  if (q.staged == 0) return;
  if (s.error != SHMEM_OK) {
    q.head -= q.staged;
    q.staged = 0;
    return;
  }
  /* Every unconsumed completion belongs to a request that is not known complete, so this bounds what the ring must hold. */
  if (q.head - q.tail + (q.consumed - q.told) > q.completion_depth) tell_consumed(s, q);

  AscendC::LocalTensor<uint64_t> stage = ub_tensor<uint64_t>(q.stage, BATCH * WQE_WORDS);
  stage.SetValue((q.staged - 1) * WQE_WORDS, q.last_word0 | WQE_SIGNALED);
  uint64_t first = q.head - q.staged;
  uint32_t slot = uint32_t(first) & (q.depth - 1);
  publish_wqe(s.event0);
  if (q.staged > 1) {
    AscendC::LocalTensor<uint8_t> bytes = ub_tensor<uint8_t>(q.stage, STAGE_BYTES);
    uint32_t rest = q.staged - 1;
    uint32_t next = (slot + 1) & (q.depth - 1);
    uint32_t until_end = q.depth - next;
    uint32_t part = rest < until_end ? rest : until_end;
    copy_out(q.ring + uint64_t(next) * WQE_BYTES, bytes[WQE_BYTES], part * WQE_BYTES);
    q.ctx->count.ring_copies += 1;
    if (part < rest) {
      copy_out(q.ring, bytes[(1 + part) * WQE_BYTES], (rest - part) * WQE_BYTES);
      q.ctx->count.ring_copies += 1;
    }
  }
  gate_slot();
  copy_out(q.ring + uint64_t(slot) * WQE_BYTES, ub_tensor<uint8_t>(q.stage, STAGE_BYTES), WQE_BYTES);
  q.ctx->count.ring_copies += 1;
  q.staged = 0;
  save_queue(q);
  before_doorbell(s.event0);
  ring_doorbell(q.ring_doorbell, send_doorbell(q.qpn, q.head, q.service_level));
  q.ctx->count.sq_doorbells += 1;
}

/* Waits until all requests before `index` are complete; rings them first if need be. False after an error. */
__aicore__ inline bool poll_to(state& s, queue& q, uint64_t index) {
  if (q.tail >= index) return true;
  if (q.head - q.staged < index) commit(s, q);
  patience wait;
  while (q.tail < index) {
    if (poll(s, q)) {
      if (s.error != SHMEM_OK) return false;
    } else if (!wait.more(s, q.pe, WAIT_COMPLETION, index)) {
      return false;
    }
  }
  return true;
}

/* Room for one more request; a full batch has been rung by fill. False after an error. */
__aicore__ inline bool reserve(state& s, queue& q) {
  if (q.head - q.tail + 1 > q.limit && !poll_to(s, q, q.head + 1 - q.limit)) return false;
  return s.error == SHMEM_OK;
}

/* Puts a request into the reserved slot, and rings a full batch. `opens`: SHMEM_QP_OPEN_RESPONSE or SHMEM_QP_OPEN_WRITE. */
__aicore__ inline void fill(state& s, queue& q, const wqe& request, uint32_t opens) {
  uint64_t word0 = request.word[0] | owner_bit(q.head, q.log2_depth);
  if (q.strong != 0) {
    /* The fence's promise: this request, and with it all that follow in the ring, starts after the open responses' data is written. */
    word0 |= WQE_STRONG_ORDER;
    q.strong = 0;
    q.open &= ~SHMEM_QP_OPEN_RESPONSE;
  }
  AscendC::LocalTensor<uint64_t> stage = ub_tensor<uint64_t>(q.stage, BATCH * WQE_WORDS);
  uint32_t at = q.staged * WQE_WORDS;
  stage.SetValue(at, word0);
  for (uint32_t i = 1; i < WQE_WORDS; ++i) stage.SetValue(at + i, request.word[i]);
  q.last_word0 = word0;
  q.open |= opens;
  q.staged += 1;
  q.head += 1;
  if (s.sync != 0) {
    q.ctx->count.sync_requests += 1;
  } else {
    q.ctx->count.data_requests += 1;
  }
  if (q.staged == BATCH) commit(s, q);
}

/* Makes `slot` hold the queue pair toward `pe`. False, and an error, when there is none that works. */
__aicore__ inline bool load_queue(state& s, queue& q, int pe) {
  uint64_t line = s.ctx->qps + uint64_t(pe) * sizeof(struct shmem_qp);
  q.line = 0;
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, magic)) != SHMEM_ABI_MAGIC ||
      load<uint16_t>(line + SHMEM_OFFSET(shmem_qp, version)) != SHMEM_ABI_VERSION ||
      load<uint16_t>(line + SHMEM_OFFSET(shmem_qp, size)) != sizeof(struct shmem_qp)) {
    fail(s, SHMEM_E_ABI, pe, line);
    return false;
  }
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, usable)) == 0) {
    fail(s, SHMEM_E_UNREACHABLE, pe, SHMEM_ENGINE_ROCE, 0);
    return false;
  }
  q.qpn = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, qpn));
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, broken)) != 0) {
    fail(s, SHMEM_E_BROKEN, pe, 0, 0, q.qpn);
    return false;
  }
  q.cqn = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, cqn));
  q.depth = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, sq_depth));
  q.completion_depth = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, cq_depth));
  q.completion_stride = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, cqe_size));
  q.service_level = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, sl));
  q.ring = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, sq_buf));
  q.completions = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, cq_buf));
  q.ring_doorbell = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, sq_db));
  q.completion_doorbell = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, cq_db));
  q.results = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, results));
  q.bounce = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, bounce));
  q.n_results = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, n_results));
  q.bounce_size = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, bounce_size));
  q.scratch_key = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, scratch_lkey));
  bool powers = q.depth >= 2 && (q.depth & (q.depth - 1)) == 0 && q.completion_depth >= 2 &&
                (q.completion_depth & (q.completion_depth - 1)) == 0 && (q.bounce_size & (q.bounce_size - 1)) == 0;
  if (!powers || q.n_results == 0) {
    fail(s, SHMEM_E_ABI, pe, (uint64_t(q.completion_depth) << 32) | q.depth, (uint64_t(q.n_results) << 32) | q.bounce_size, q.qpn);
    return false;
  }
  q.log2_depth = 0;
  while ((1u << q.log2_depth) < q.depth) q.log2_depth += 1;
  q.limit = q.depth < q.completion_depth ? q.depth : q.completion_depth;

  uint64_t peer_line = s.peers + uint64_t(pe) * sizeof(struct shmem_peer);
  q.remote_base = load<uint64_t>(peer_line + SHMEM_OFFSET(shmem_peer, base));
  q.remote_key = load<uint32_t>(peer_line + SHMEM_OFFSET(shmem_peer, rkey));

  q.head = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, head));
  q.tail = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, tail));
  q.consumed = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, cq_ci));
  q.told = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, cq_published));
  q.bounce_head = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, bounce_head));
  q.open = load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, open));
  q.staged = 0;
  q.strong = (q.open & SHMEM_QP_OPEN_RESPONSE) != 0 && s.ctx->left_fenced != 0 ? 1 : 0;
  q.fenced = s.ctx->left_fenced != 0 ? q.head : 0;
  q.bounce_last[0] = q.head;
  q.bounce_last[1] = q.head;
  q.pe = pe;
  q.ctx = s.ctx;
  q.line = line;
  return true;
}

/* Takes a queue pair out of the staging set: its batch goes to the NIC, its counters to memory. */
__aicore__ inline void evict_queue(state& s, queue& q) {
  if (q.line == 0) return;
  commit(s, q);
  save_queue(q);
  if (q.head != q.tail || q.open != 0) {
    q.ctx->left_open = 1;
    if (q.fenced > q.tail || q.strong != 0) q.ctx->left_fenced = 1;
  }
  q.line = 0;
}

/* The queue pair of the call's context toward `pe`, if it is in the staging set. */
__aicore__ inline queue* held_queue(state& s, int pe) {
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    queue& q = s.queues[i];
    if (q.line != 0 && q.pe == pe && q.ctx == s.ctx) return &q;
  }
  return nullptr;
}

/* The queue pair of the call's context toward `pe`. nullptr after an error. */
__aicore__ inline queue* queue_toward(state& s, int pe) {
  queue* q = &s.queues[s.last_queue];
  if (q->line != 0 && q->pe == pe && q->ctx == s.ctx) return q;
  s.clock += 1;
  uint32_t oldest = 0;
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    q = &s.queues[i];
    if (q->line != 0 && q->pe == pe && q->ctx == s.ctx) {
      q->used = s.clock;
      s.last_queue = i;
      return q;
    }
    if (s.queues[oldest].line != 0 && (q->line == 0 || q->used < s.queues[oldest].used)) oldest = i;
  }
  q = &s.queues[oldest];
  evict_queue(s, *q);
  if (!load_queue(s, *q, pe)) return nullptr;
  q->used = s.clock;
  s.last_queue = oldest;
  return q;
}

/* Looks for a failed completion from number n on, and consumes nothing. */
__aicore__ inline bool peek_failed(state& s, uint64_t line, int pe, uint64_t ring, uint32_t depth, uint32_t stride, uint64_t n) {
  for (uint32_t looks = 0; looks < depth; ++looks, ++n) {
    uint64_t entry = ring + (n & (depth - 1)) * stride;
    uint32_t first = load<uint32_t>(entry);
    if (!cqe_valid(first, n, depth)) return false;
    acquire_cqe();
    if (cqe_status(first) == 0) continue;
    record_failed(s, line, pe, load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, qpn)), cqe_wqe_index(first), entry, first);
    return true;
  }
  return false;
}

/* Looks for a failed completion on one of the pairs that left the set with requests open, another one at each call. Consumes nothing: the
 * pair's counters stay in its line until it is loaded again. */
__aicore__ inline bool heed_left(state& s, context& ctx) {
  int pe = ctx.next_left;
  ctx.next_left = pe + 1 < s.n_pes ? pe + 1 : 0;
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    if (s.queues[i].line != 0 && s.queues[i].pe == pe && s.queues[i].ctx == &ctx) return true;
  }
  uint64_t line = ctx.qps + uint64_t(pe) * sizeof(struct shmem_qp);
  uint64_t tail = load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, tail));
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, usable)) == 0 || load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, head)) == tail) return true;
  return !peek_failed(s, line, pe, load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, cq_buf)),
                      load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, cq_depth)), load<uint32_t>(line + SHMEM_OFFSET(shmem_qp, cqe_size)),
                      load<uint64_t>(line + SHMEM_OFFSET(shmem_qp, cq_ci)));
}

/* Consumes the completions of the call's context that are there, and looks at those of the others without consuming them: contexts do not
 * do one another's work. */
__aicore__ inline bool heed_completions(state& s) {
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    queue& q = s.queues[i];
    if (q.line == 0 || q.tail == q.head - q.staged) continue;
    if (q.ctx != s.ctx) {
      if (peek_failed(s, q.line, q.pe, q.completions, q.completion_depth, q.completion_stride, q.consumed)) return false;
      continue;
    }
    while (q.tail < q.head - q.staged && poll(s, q)) {
      if (s.error != SHMEM_OK) return false;
    }
  }
  for (uint32_t i = 0; i < SHMEM_CTX_MAX; ++i) {
    context& ctx = s.contexts[i];
    if (ctx.line != 0 && ctx.left_open != 0 && !heed_left(s, ctx)) return false;
  }
  return true;
}

/* Rings what is staged, on every queue pair of every context. */
__aicore__ inline void commit_all(state& s) {
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    if (s.queues[i].line != 0) commit(s, s.queues[i]);
  }
}

/* The same, for the call's context. */
__aicore__ inline void commit_context(state& s) {
  for (uint32_t i = 0; i < s.n_queues; ++i) {
    if (s.queues[i].line != 0 && s.queues[i].ctx == s.ctx) commit(s, s.queues[i]);
  }
}

}  // namespace shmem_impl

#endif
