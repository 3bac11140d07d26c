/* HNS RoCE v2 on the wire between a core and its NIC: work requests, completions, doorbells. Pure functions of integers, no memory
 * access, so that golden vectors can hold them together with the Rust decoder (the kernel st_encode of the self-test).
 *
 * Facts: rdma-core providers/hns hns_roce_u_hw_v2.h (struct hns_roce_rc_sq_wqe, hns_roce_v2_cqe, hns_roce_db) and the Linux driver's
 * documentation of the same structures. Little-endian throughout.
 */
#ifndef SHMEM_IMPL_WQE_H
#define SHMEM_IMPL_WQE_H

#include "../abi.h"

namespace shmem_impl {

constexpr uint32_t WQE_BYTES = 64;
constexpr uint32_t WQE_WORDS = WQE_BYTES / 8; /* 64-bit words */
constexpr uint32_t INLINE_BYTES = 8;          /* longest payload that we put inline; hardware takes 32 */

/* OPCODE, bits 4:0 of word 0; the same number comes back in the completion. */
constexpr uint32_t OPCODE_WRITE = 0x3;
constexpr uint32_t OPCODE_READ = 0x5;
constexpr uint32_t OPCODE_COMPARE_SWAP = 0x6;
constexpr uint32_t OPCODE_FETCH_ADD = 0x7;

/* Bits of word 0. */
constexpr uint64_t WQE_OWNER = 1u << 7;
constexpr uint64_t WQE_SIGNALED = 1u << 8;      /* asks for a completion entry */
constexpr uint64_t WQE_STRONG_ORDER = 1u << 10; /* SO: waits until the data of earlier READ and atomic responses is written */
constexpr uint64_t WQE_INLINE = 1u << 12;
constexpr uint32_t WQE_LENGTH_SHIFT = 32; /* MSG_LEN, bits 63:32 of word 0 */
constexpr uint64_t WQE_ONE_SGE = 1ull << 56; /* SGE_NUM 1, bits 127:120 */

struct wqe {
  uint64_t word[WQE_WORDS];
};

/* Who owns slot n mod depth on the lap that counter n is on: the ring starts zeroed, lap 0 is written with 1, lap 1 with 0. */
__aicore__ inline uint64_t owner_bit(uint64_t n, uint32_t log2_depth) { return ((n >> log2_depth) & 1) ? 0 : WQE_OWNER; }

/* WRITE or READ between `local` (with lkey) and `remote` (with rkey). A length of 0 carries no data segment. */
__aicore__ inline void encode_transfer(wqe& out, uint32_t opcode, uint32_t length, uint32_t rkey, uint64_t remote, uint32_t lkey,
                                       uint64_t local) {
  bool data = length != 0;
  out.word[0] = opcode | (uint64_t(length) << WQE_LENGTH_SHIFT);
  out.word[1] = data ? WQE_ONE_SGE : 0;
  out.word[2] = uint64_t(rkey) << 32;
  out.word[3] = remote;
  out.word[4] = data ? (uint64_t(length) | (uint64_t(lkey) << 32)) : 0;
  out.word[5] = data ? local : 0;
  out.word[6] = 0;
  out.word[7] = 0;
}

/* WRITE of `length` (1..8) payload bytes, the low bytes of `payload`, carried in the request itself. */
__aicore__ inline void encode_inline_write(wqe& out, uint32_t length, uint32_t rkey, uint64_t remote, uint64_t payload) {
  out.word[0] = OPCODE_WRITE | WQE_INLINE | (uint64_t(length) << WQE_LENGTH_SHIFT);
  out.word[1] = 0;
  out.word[2] = uint64_t(rkey) << 32;
  out.word[3] = remote;
  out.word[4] = length < 8 ? (payload & ((1ull << (8 * length)) - 1)) : payload;
  out.word[5] = 0;
  out.word[6] = 0;
  out.word[7] = 0;
}

/* 64-bit atomic on `remote`; the old value arrives at `local`. FETCH_ADD: operand is the addend, compare 0.
 * COMPARE_SWAP: operand is the new value. */
__aicore__ inline void encode_atomic(wqe& out, uint32_t opcode, uint32_t rkey, uint64_t remote, uint32_t lkey, uint64_t local,
                                     uint64_t operand, uint64_t compare) {
  encode_transfer(out, opcode, 8, rkey, remote, lkey, local);
  out.word[6] = operand;
  out.word[7] = compare;
}

/* The send doorbell: {qpn 23:0, command 27:24 = 0, producer index 47:32, service level 50:48}. `head` is the counter after the batch. */
__aicore__ inline uint64_t send_doorbell(uint32_t qpn, uint64_t head, uint32_t service_level) {
  return (qpn & 0xffffffu) | ((head & 0xffff) << 32) | (uint64_t(service_level & 7) << 48);
}

/* The completion doorbell: {cqn 23:0, command 27:24 = 3, consumer index 55:32, command sequence number 58:57 = 1}. */
__aicore__ inline uint64_t completion_doorbell(uint32_t cqn, uint64_t consumer_index) {
  return (cqn & 0xffffffu) | (3ull << 24) | ((consumer_index & 0xffffff) << 32) | (1ull << 57);
}

/* Completion entries: fields of dword 0, and the vendor's sub-status in dword 3. */
constexpr uint32_t CQE_SUB_STATUS_OFFSET = 12; /* bytes */

/* Valid for consumer counter n when OWNER != !!(n & depth): a zeroed ring is invalid on lap 0. */
__aicore__ inline bool cqe_valid(uint32_t dword0, uint64_t n, uint32_t depth) {
  uint32_t lap = (n & depth) != 0 ? 1 : 0;
  return ((dword0 >> 7) & 1) != lap;
}
__aicore__ inline uint32_t cqe_status(uint32_t dword0) { return (dword0 >> 8) & 0xff; }
__aicore__ inline uint32_t cqe_wqe_index(uint32_t dword0) { return dword0 >> 16; }
__aicore__ inline uint32_t cqe_sub_status(uint32_t dword3) { return dword3 >> 24; }

}  // namespace shmem_impl

#endif
