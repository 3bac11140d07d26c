/* What the flow needs from the machine, by name: uncached scalar access, MTE copies, ordering points, block-local storage.
 *
 * Everything here is one or two AscendC calls. The other files of device/impl/ use these names and no raw flag, barrier or cache
 * instruction, so that each ordering point says why it is there. This is the only file that asks whether it is compiled for the
 * emulated NPU (__NPUSIM__): clang does not know the vendor's block_local attribute, and the emulator takes claims of UB.
 *
 * Facts used (AscendC documentation): scalar access to GM goes through a private, write-back, incoherent data cache; MTE copies and
 * st_dev/ld_dev do not; queues are ordered only by flags and barriers; MTE3_S means that the data has left the core.
 */
#ifndef SHMEM_IMPL_PORT_H
#define SHMEM_IMPL_PORT_H

#include "layout.h"

/* Storage of one running block (core), alive from kernel start to kernel end; its content at the start is unspecified. */
#if defined(__NPUSIM__)
#define SHMEM_BLOCK_LOCAL static thread_local
#else
#define SHMEM_BLOCK_LOCAL [[block_local]] static
#endif

namespace shmem_impl {

constexpr uint32_t UB_SIZE = SHMEM_UB_SIZE; /* bytes */
constexpr uint32_t UB_ALIGN = 32;           /* bytes; MTE addresses in UB */
constexpr uint32_t COPY_PAD_MAX = 2097120; /* bytes; DataCopyPad's block limit 2097151, rounded down to UB_ALIGN */

/* --- uncached scalar access: never through the data cache, so a store carries exactly its own bytes --------------------------- */

template <typename T>
__aicore__ inline T load(uint64_t address) {
  return AscendC::ReadGmByPassDCache<T>(reinterpret_cast<__gm__ T*>(address));
}

template <typename T>
__aicore__ inline void store(uint64_t address, T value) {
  AscendC::WriteGmByPassDCache<T>(reinterpret_cast<__gm__ T*>(address), value);
}

/* The one way to a doorbell register: a single 8-byte uncached store. */
__aicore__ inline void ring_doorbell(uint64_t address, uint64_t value) {
  st_dev(value, reinterpret_cast<__gm__ uint64_t*>(address), 0);
}

/* Bits of a value of 1, 2, 4 or 8 bytes, as the unsigned integer of that size, and back. */
template <uint32_t size>
struct bits_type;
template <>
struct bits_type<1> { using type = uint8_t; };
template <>
struct bits_type<2> { using type = uint16_t; };
template <>
struct bits_type<4> { using type = uint32_t; };
template <>
struct bits_type<8> { using type = uint64_t; };

template <typename T>
using bits_of = typename bits_type<sizeof(T)>::type;

template <typename To, typename From>
__aicore__ inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  union { From from; To to; } both = {from};
  return both.to;
}

/* --- MTE copies --------------------------------------------------------------------------------------------------------------- */

template <typename T>
__aicore__ inline AscendC::LocalTensor<T> ub_tensor(uint32_t offset, uint32_t elements) {
  return AscendC::LocalTensor<T>(AscendC::TPosition::VECCALC, offset, elements);
}

/* GM -> UB on the MTE2 queue. Any GM address and length up to COPY_PAD_MAX; the UB side is 32-byte aligned. */
__aicore__ inline void copy_in(const AscendC::LocalTensor<uint8_t>& ub, uint64_t gm, uint32_t bytes) {
  AscendC::GlobalTensor<uint8_t> source;
  source.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(gm), bytes);
  AscendC::DataCopyExtParams block{1, bytes, 0, 0, 0};
  AscendC::DataCopyPadExtParams<uint8_t> pad{false, 0, 0, 0};
  AscendC::DataCopyPad(ub, source, block, pad);
}

/* UB -> GM on the MTE3 queue: writes exactly `bytes` bytes. */
__aicore__ inline void copy_out(uint64_t gm, const AscendC::LocalTensor<uint8_t>& ub, uint32_t bytes) {
  AscendC::GlobalTensor<uint8_t> target;
  target.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(gm), bytes);
  AscendC::DataCopyExtParams block{1, bytes, 0, 0, 0};
  AscendC::DataCopyPad(target, ub, block);
}

/* Many blocks of the same length at once (at most 4095 of at most 2097151 bytes). In GM `gap` bytes lie between the end of a block and the
 * next one; in UB each block starts at the next 32-byte boundary. */
__aicore__ inline void copy_in_blocks(const AscendC::LocalTensor<uint8_t>& ub, uint64_t gm, uint32_t bytes, uint32_t count, uint32_t gap) {
  AscendC::GlobalTensor<uint8_t> source;
  source.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(gm), uint64_t(bytes) + uint64_t(count - 1) * (uint64_t(bytes) + gap));
  AscendC::DataCopyExtParams block{static_cast<uint16_t>(count), bytes, gap, 0, 0};
  AscendC::DataCopyPadExtParams<uint8_t> pad{false, 0, 0, 0};
  AscendC::DataCopyPad(ub, source, block, pad);
}
__aicore__ inline void copy_out_blocks(uint64_t gm, const AscendC::LocalTensor<uint8_t>& ub, uint32_t bytes, uint32_t count, uint32_t gap) {
  AscendC::GlobalTensor<uint8_t> target;
  target.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(gm), uint64_t(bytes) + uint64_t(count - 1) * (uint64_t(bytes) + gap));
  AscendC::DataCopyExtParams block{static_cast<uint16_t>(count), bytes, 0, gap, 0};
  AscendC::DataCopyPad(target, ub, block);
}

/* --- ordering points ---------------------------------------------------------------------------------------------------------- */

/* Copies issued to MTE3 from here on start after the MTE2 copies issued before (GM -> UB -> GM through one tile). */
__aicore__ inline void tile_filled(int32_t event) {
  AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE3>(event);
  AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE3>(event);
}

/* Marks that a tile's copy out has been issued; tile_free makes the MTE2 queue wait for it. One to one. */
__aicore__ inline void tile_leaving(int32_t event) { AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(event); }
__aicore__ inline void tile_free(int32_t event) { AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(event); }

/* The core goes on when all MTE2 copies issued so far have arrived in UB: their sources may be changed, UB may be read. */
__aicore__ inline void copies_in_done(int32_t event) {
  AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(event);
  AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(event);
}

/* The core goes on when all MTE3 copies issued so far have left: UB may be overwritten; the data is on its way in order. */
__aicore__ inline void copies_out_done(int32_t event) {
  AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(event);
  AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(event);
}

/* The core goes on when the vector unit has done all that it was given: UB may be copied out or overwritten. */
__aicore__ inline void vector_done(int32_t event) {
  AscendC::SetFlag<AscendC::HardEvent::V_S>(event);
  AscendC::WaitFlag<AscendC::HardEvent::V_S>(event);
}

/* Copies and vector instructions issued from here on come after the core's own accesses to UB. */
__aicore__ inline void scalar_done(int32_t event) {
  AscendC::SetFlag<AscendC::HardEvent::S_V>(event);
  AscendC::WaitFlag<AscendC::HardEvent::S_V>(event);
  AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(event);
  AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(event);
  AscendC::SetFlag<AscendC::HardEvent::S_MTE2>(event);
  AscendC::WaitFlag<AscendC::HardEvent::S_MTE2>(event);
}

/* Uncached stores issued so far have reached memory. */
__aicore__ inline void stores_done() { AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>(); }

/* publish_wqe: what the work requests consist of (scalar stores to the staging lines in UB, scalar stores of payload to the
 * bounce ring) is in place before MTE3 copies it to the send ring. Without it the ring may receive yesterday's bytes. */
__aicore__ inline void publish_wqe(int32_t event) {
  stores_done();
  AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(event);
  AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(event);
}

/* Between slots 2..n (and payload in the bounce ring) and slot 1: MTE3 copies after it start when those before it are done. The NIC
 * may run over slots whose owner bit is valid before it sees the doorbell, and slot 1 is what stops it. */
__aicore__ inline void gate_slot() { AscendC::PipeBarrier<PIPE_MTE3>(); }

/* before_doorbell: ring, payload and counters have reached memory before the store that makes the NIC look at them. */
__aicore__ inline void before_doorbell(int32_t event) {
  copies_out_done(event);
  stores_done();
}

/* acquire_cqe: what follows is read after the completion entry's owner bit was seen valid: the rest of the entry, and the data that
 * the request brought. */
__aicore__ inline void acquire_cqe() { stores_done(); }

/* acquire_flag: what follows is read after the value that ended a wait was seen. */
__aicore__ inline void acquire_flag() { stores_done(); }

/* Writes the core's dirty lines back and drops the rest; the address is any GM address. The library itself keeps nothing in the data
 * cache; barrier_all does this for scalar accesses of the kernel. */
__aicore__ inline void clean_data_cache(uint64_t address) {
  AscendC::GlobalTensor<uint64_t> any;
  any.SetGlobalBuffer(reinterpret_cast<__gm__ uint64_t*>(address));
  AscendC::DataCacheCleanAndInvalid<uint64_t, AscendC::CacheLine::ENTIRE_DATA_CACHE, AscendC::DcciDst::CACHELINE_OUT>(any);
}

/* Tells the emulator which UB bytes and event ids are the library's, so that a kernel that uses them too is stopped with a message. */
__aicore__ inline void claim_ub(uint32_t offset, uint32_t bytes, int32_t event0, int32_t event1) {
#if defined(__NPUSIM__)
  npusim::reserve(offset, bytes, (1u << event0) | (1u << event1));
#else
  (void)offset, (void)bytes, (void)event0, (void)event1;
#endif
}
__aicore__ inline void release_ub() {
#if defined(__NPUSIM__)
  npusim::reserve(0, 0, 0);
#endif
}

__aicore__ inline uint64_t now() { return static_cast<uint64_t>(AscendC::GetSystemCycle()); }

}  // namespace shmem_impl

#endif
