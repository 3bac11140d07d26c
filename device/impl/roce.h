/* The roce engine: transfers and atomics as work requests on the queue pair toward a PE. Knows requests, keys, the bounce ring and
 * result lines; ring mechanics are queue.h's. Used by rma.h, point.h, atomic.h, order.h, collect.h.
 *
 * Payload in UB, and values that do not go inline, travel through the bounce ring: registered memory of the queue pair, handed out in
 * order, reused by halves once the last request that read a half is complete.
 */
#ifndef SHMEM_IMPL_ROCE_H
#define SHMEM_IMPL_ROCE_H

#include "queue.h"

namespace shmem_impl {

constexpr uint32_t BOUNCE_ALIGN = 64; /* bytes: a piece never shares a line with another */

/* Room for `bytes` (at most half the ring) in the bounce ring; 0 after an error. */
__aicore__ inline uint64_t take_bounce(state& s, queue& q, uint32_t bytes) {
  uint32_t half = q.bounce_size / 2;
  uint64_t position = q.bounce_head;
  if (half == 0 || bytes > half) {
    fail(s, SHMEM_E_USAGE, q.pe, bytes, q.bounce_size, q.qpn);
    return 0;
  }
  uint32_t room = half - uint32_t(position & (half - 1));
  if (bytes > room) position += room;
  if ((position & (half - 1)) == 0) {
    uint32_t which = (position & half) != 0 ? 1 : 0;
    if (!poll_to(s, q, q.bounce_last[which])) return 0;
  }
  q.bounce_head = position + ((bytes + BOUNCE_ALIGN - 1) & ~(BOUNCE_ALIGN - 1));
  return q.bounce + (position & (q.bounce_size - 1));
}

/* Remembers that the newest request uses the piece that take_bounce gave. */
__aicore__ inline void bounce_taken(queue& q, uint64_t address) {
  uint32_t which = ((address - q.bounce) & (q.bounce_size / 2)) != 0 ? 1 : 0;
  q.bounce_last[which] = q.head;
}

/* Where a place of the peer is for its NIC. */
struct remote {
  uint64_t address;
  uint32_t key;
};
__aicore__ inline bool remote_at(state& s, const queue& q, uint64_t place, remote& at) {
  at = {q.remote_base + place, q.remote_key};
  if (place <= OFFSET_MASK) return true;
  const peer* entry = find_peer(s, q.pe, place);
  if (entry == nullptr) return false;
  at = {entry->base + (place & OFFSET_MASK), entry->key};
  return true;
}

/* Stages WRITE or READ requests for `bytes` between a place of the peer and a local registered address. */
__aicore__ inline bool stage_transfer(state& s, queue& q, uint32_t opcode, uint64_t place, uint32_t key, uint64_t local,
                                      uint64_t bytes) {
  uint32_t opens = opcode == OPCODE_READ ? SHMEM_QP_OPEN_RESPONSE : SHMEM_QP_OPEN_WRITE;
  remote at;
  if (!remote_at(s, q, place, at)) return false;
  wqe request;
  while (bytes > 0) {
    uint64_t part = bytes < s.max_message ? bytes : s.max_message;
    if (!reserve(s, q)) return false;
    encode_transfer(request, opcode, uint32_t(part), at.key, at.address, key, local);
    fill(s, q, request, opens);
    q.ctx->count.roce_bytes += part;
    at.address += part;
    local += part;
    bytes -= part;
  }
  return true;
}

/* Stages a WRITE of the low `size` (1..8) bytes of `value`: inline where the queue pairs accept it, else through the bounce ring. */
__aicore__ inline bool stage_value(state& s, queue& q, uint64_t offset, uint64_t value, uint32_t size) {
  if ((s.flags & SHMEM_CTX_INLINE) != 0) {
    remote at;
    if (!remote_at(s, q, offset, at) || !reserve(s, q)) return false;
    wqe request;
    encode_inline_write(request, size, at.key, at.address, value);
    fill(s, q, request, SHMEM_QP_OPEN_WRITE);
    q.ctx->count.roce_bytes += size;
    return true;
  }
  uint64_t piece = take_bounce(s, q, 8);
  if (piece == 0) return false;
  store<uint64_t>(piece, value);
  if (!stage_transfer(s, q, OPCODE_WRITE, offset, q.scratch_key, piece, size)) return false;
  bounce_taken(q, piece);
  return true;
}

/* Stages a WRITE of `bytes` from UB, through the bounce ring. The source may be reused after the next commit. */
__aicore__ inline bool stage_from_ub(state& s, queue& q, uint64_t offset, const AscendC::LocalTensor<uint8_t>& from, uint64_t bytes) {
  uint32_t half = q.bounce_size / 2;
  uint32_t at = 0;
  while (bytes > 0) {
    uint32_t part = bytes < half ? uint32_t(bytes) : half;
    uint64_t piece = take_bounce(s, q, part);
    if (piece == 0) return false;
    copy_out(piece, from[at], part);
    if (!stage_transfer(s, q, OPCODE_WRITE, offset, q.scratch_key, piece, part)) return false;
    bounce_taken(q, piece);
    offset += part;
    at += part;
    bytes -= part;
  }
  return true;
}

/* Reads `bytes` of the peer's heap into UB, through the bounce ring; returns when they are there. */
__aicore__ inline bool read_to_ub(state& s, queue& q, const AscendC::LocalTensor<uint8_t>& to, uint64_t offset, uint64_t bytes) {
  uint32_t half = q.bounce_size / 2;
  uint32_t at = 0;
  while (bytes > 0) {
    uint32_t part = bytes < half ? uint32_t(bytes) : half;
    uint64_t piece = take_bounce(s, q, part);
    if (piece == 0) return false;
    if (!stage_transfer(s, q, OPCODE_READ, offset, q.scratch_key, piece, part)) return false;
    bounce_taken(q, piece);
    if (!poll_to(s, q, q.head)) return false;
    copy_in(to[at], piece, part);
    copies_in_done(s.event0);
    offset += part;
    at += part;
    bytes -= part;
  }
  return true;
}

/* The line where the response of the next request arrives. Only its requester reads it, and only after that request completed. */
__aicore__ inline uint64_t result_line(const queue& q) { return q.results + (q.head % q.n_results) * SHMEM_LINE; }

/* Reads `size` (1, 2, 4, 8) bytes of the peer's heap into a result line and waits. The caller loads them from `line`. */
__aicore__ inline bool read_value(state& s, queue& q, uint64_t offset, uint32_t size, uint64_t& line) {
  if (!reserve(s, q)) return false;
  line = result_line(q);
  return stage_transfer(s, q, OPCODE_READ, offset, q.scratch_key, line, size) && poll_to(s, q, q.head);
}

/* Puts a 64-bit atomic into the reserved slot; the old value arrives at `local`, which `key` covers. */
__aicore__ inline void stage_atomic_to(state& s, queue& q, uint32_t opcode, uint64_t offset, uint64_t operand, uint64_t compare,
                                       uint32_t key, uint64_t local) {
  wqe request;
  remote at;
  if (!remote_at(s, q, offset, at)) return;
  encode_atomic(request, opcode, at.key, at.address, key, local, operand, compare);
  fill(s, q, request, SHMEM_QP_OPEN_RESPONSE | SHMEM_QP_OPEN_WRITE);
  q.ctx->count.roce_bytes += 8;
}

/* Stages a 64-bit atomic; `line` is where the old value will be. */
__aicore__ inline bool stage_atomic(state& s, queue& q, uint32_t opcode, uint64_t offset, uint64_t operand, uint64_t compare,
                                    uint64_t& line) {
  if (!reserve(s, q)) return false;
  line = result_line(q);
  stage_atomic_to(s, q, opcode, offset, operand, compare, q.scratch_key, line);
  return s.error == SHMEM_OK;
}

/* Everything requested on the queue pair so far is complete, and writes are visible at the peer. A completion is taken for visibility
 * (a hardware assumption); where the host does not trust it, a READ behind the writes flushes them. */
__aicore__ inline bool confirm(state& s, queue& q) {
  if ((s.flags & SHMEM_CTX_QUIET_READS) != 0 && (q.open & SHMEM_QP_OPEN_WRITE) != 0) {
    uint32_t outer = s.sync;
    s.sync = 1;
    bool staged = reserve(s, q) && stage_transfer(s, q, OPCODE_READ, s.sync_offset, q.scratch_key, result_line(q), 8);
    s.sync = outer;
    if (!staged) return false;
  }
  if (!poll_to(s, q, q.head)) return false;
  q.open = 0;
  q.fenced = 0;
  return true;
}

}  // namespace shmem_impl

#endif
