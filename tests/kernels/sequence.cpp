/* Runs lists of operations that the host hands over as data: the test sequences.rs generates them, and knows what each may leave behind
 * (tests/src/sequence.rs, which numbers the operations as `enum operation` does).
 *
 *   sq_run (ctx, a, b, out, ops, u64 stride)
 *   a     symmetric: what operations on other PEs name     b   symmetric: own sources and landing places, for all cores of the PE
 *   out   own GM, u64 words: what an operation fetched, at the slot that its record names
 *   ops   own GM: core c's list begins at c * stride bytes: one line with the number of records, then a line a record
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace sequence {

constexpr uint64_t LINE = 64;     /* bytes of a record: eight u64 words */
constexpr uint32_t ROOM = 4096;   /* bytes of UB from offset 0: the longest transfer */
constexpr int32_t EVENT = 0;

enum operation : uint64_t {
  PUT = 0, PUT_NBI = 1, PUT_UB = 2, PUT_UB_NBI = 3,
  GET = 4, GET_NBI = 5, GET_UB = 6,
  P = 7, G = 8,               /* y: value; n: bytes, 1, 2, 4 or 8 */
  IPUT = 9, IGET = 10,        /* n elements of z bytes, x and y: strides at the target and at the source, in elements */
  IBPUT = 11, IBGET = 12,     /* blocks of 3 elements */
  PUT_SIGNAL = 13, PUT_SIGNAL_NBI = 14, SIGNAL = 15, /* x: offset of the signal in a; y: value; z: operator */
  WAIT = 16,                  /* until the own signal at x is y; z: comparison */
  ATOMIC = 17,                /* at; n: what | type << 8 | nbi << 16; x: comparand, y: operand */
  FENCE = 18, QUIET = 19, FLUSH = 20, FENCE_PE = 21, QUIET_PE = 22, COMMIT = 23,
  BARRIER = 24,               /* z = 0: barrier_all; 1: quiet and sync_all */
  ENGINE = 25,                /* z: SHMEM_ENGINE_* */
  REFILL = 26                 /* n bytes (multiple of 8) of the own sources from here on: words y, y + 1, ... */
};

struct record {
  uint64_t what, pe, at, here, n, x, y, z; /* at: offset in a; here: offset in b, or for what fetches a value its slot of out */
};

__aicore__ inline uint64_t word(GM_ADDR at) { return AscendC::ReadGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(at)); }
__aicore__ inline void set_word(GM_ADDR at, uint64_t value) {
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(at), value);
}

__aicore__ inline AscendC::LocalTensor<uint8_t> room() {
  return AscendC::LocalTensor<uint8_t>(AscendC::TPosition::VECCALC, 0, ROOM);
}

__aicore__ inline void load_room(GM_ADDR from, uint64_t bytes) {
  AscendC::GlobalTensor<uint8_t> source;
  source.SetGlobalBuffer(from, bytes);
  AscendC::DataCopyExtParams block{1, static_cast<uint32_t>(bytes), 0, 0, 0};
  AscendC::DataCopyPadExtParams<uint8_t> pad{false, 0, 0, 0};
  AscendC::DataCopyPad(room(), source, block, pad);
  AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE3>(EVENT);
  AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE3>(EVENT);
}

__aicore__ inline void save_room(GM_ADDR to, uint64_t bytes) {
  AscendC::GlobalTensor<uint8_t> target;
  target.SetGlobalBuffer(to, bytes);
  AscendC::DataCopyExtParams block{1, static_cast<uint32_t>(bytes), 0, 0, 0};
  AscendC::DataCopyPad(target, room(), block);
  AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(EVENT); /* before UB is loaded anew */
  AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(EVENT);
}

template <typename T>
__aicore__ inline uint64_t scalar(const record& r, GM_ADDR far, int pe) {
  __gm__ T* target = reinterpret_cast<__gm__ T*>(far);
  if (r.what == G) return static_cast<uint64_t>(shmem_g(target, pe));
  shmem_p(target, static_cast<T>(r.y), pe);
  return 0;
}

template <typename T>
__aicore__ inline void strided(const record& r, GM_ADDR far, GM_ADDR near, int pe) {
  __gm__ T* a = reinterpret_cast<__gm__ T*>(far);
  __gm__ T* b = reinterpret_cast<__gm__ T*>(near);
  int64_t dst = static_cast<int64_t>(r.x), src = static_cast<int64_t>(r.y);
  switch (r.what) {
    case IPUT: shmem_iput(a, b, dst, src, r.n, pe); break;
    case IGET: shmem_iget(b, a, dst, src, r.n, pe); break;
    case IBPUT: shmem_ibput(a, b, dst, src, 3, r.n, pe); break;
    default: shmem_ibget(b, a, dst, src, 3, r.n, pe); break;
  }
}

template <typename T>
__aicore__ inline uint64_t atomic(const record& r, GM_ADDR far, GM_ADDR slot, int pe) {
  __gm__ T* target = reinterpret_cast<__gm__ T*>(far);
  __gm__ T* fetch = reinterpret_cast<__gm__ T*>(slot);
  T value = static_cast<T>(r.y), cond = static_cast<T>(r.x), old = 0;
  bool nbi = (r.n >> 16 & 1) != 0;
  switch (r.n & 0xff) {
    case 0: nbi ? shmem_atomic_fetch_nbi(fetch, target, pe) : void(old = shmem_atomic_fetch(target, pe)); break;
    case 1: shmem_atomic_set(target, value, pe); break;
    case 2: shmem_atomic_add(target, value, pe); break;
    case 3: shmem_atomic_inc(target, pe); break;
    case 4: nbi ? shmem_atomic_fetch_add_nbi(fetch, target, value, pe) : void(old = shmem_atomic_fetch_add(target, value, pe)); break;
    case 5: nbi ? shmem_atomic_fetch_inc_nbi(fetch, target, pe) : void(old = shmem_atomic_fetch_inc(target, pe)); break;
    case 6: nbi ? shmem_atomic_swap_nbi(fetch, target, value, pe) : void(old = shmem_atomic_swap(target, value, pe)); break;
    case 7:
      nbi ? shmem_atomic_compare_swap_nbi(fetch, target, cond, value, pe) : void(old = shmem_atomic_compare_swap(target, cond, value, pe));
      break;
    case 8: shmem_atomic_and(target, value, pe); break;
    case 9: shmem_atomic_or(target, value, pe); break;
    case 10: shmem_atomic_xor(target, value, pe); break;
    case 11: shmem_atomic_min(target, value, pe); break;
    case 12: shmem_atomic_max(target, value, pe); break;
    case 13: nbi ? shmem_atomic_fetch_and_nbi(fetch, target, value, pe) : void(old = shmem_atomic_fetch_and(target, value, pe)); break;
    case 14: nbi ? shmem_atomic_fetch_or_nbi(fetch, target, value, pe) : void(old = shmem_atomic_fetch_or(target, value, pe)); break;
    case 15: nbi ? shmem_atomic_fetch_xor_nbi(fetch, target, value, pe) : void(old = shmem_atomic_fetch_xor(target, value, pe)); break;
    case 16: nbi ? shmem_atomic_fetch_min_nbi(fetch, target, value, pe) : void(old = shmem_atomic_fetch_min(target, value, pe)); break;
    default: nbi ? shmem_atomic_fetch_max_nbi(fetch, target, value, pe) : void(old = shmem_atomic_fetch_max(target, value, pe)); break;
  }
  return static_cast<uint64_t>(old);
}

__aicore__ inline void run(const record& r, GM_ADDR a, GM_ADDR b, GM_ADDR out) {
  int pe = static_cast<int>(r.pe);
  GM_ADDR far = a + r.at, near = b + r.here, slot = out + r.here * 8;
  __gm__ uint64_t* signal = reinterpret_cast<__gm__ uint64_t*>(a + r.x);
  switch (r.what) {
    case PUT: shmem_putmem(far, near, r.n, pe); break;
    case PUT_NBI: shmem_putmem_nbi(far, near, r.n, pe); break;
    case PUT_UB:
      load_room(near, r.n);
      shmem_put(far, room(), r.n, pe);
      break;
    case PUT_UB_NBI:
      load_room(near, r.n);
      shmem_put_nbi(far, room(), r.n, pe);
      shmem_flush(); /* the room is used again */
      break;
    case GET: shmem_getmem(near, far, r.n, pe); break;
    case GET_NBI: shmem_getmem_nbi(near, far, r.n, pe); break;
    case GET_UB:
      shmem_get(room(), far, r.n, pe);
      save_room(near, r.n);
      break;
    case P:
    case G: {
      uint64_t value = r.n == 1 ? scalar<uint8_t>(r, far, pe) : r.n == 2 ? scalar<uint16_t>(r, far, pe)
                     : r.n == 4 ? scalar<uint32_t>(r, far, pe) : scalar<uint64_t>(r, far, pe);
      if (r.what == G) set_word(slot, value);
      break;
    }
    case IPUT: case IGET: case IBPUT: case IBGET:
      if (r.z == 1) strided<uint8_t>(r, far, near, pe);
      if (r.z == 2) strided<uint16_t>(r, far, near, pe);
      if (r.z == 4) strided<uint32_t>(r, far, near, pe);
      if (r.z == 8) strided<uint64_t>(r, far, near, pe);
      break;
    case PUT_SIGNAL: shmem_putmem_signal(far, near, r.n, signal, r.y, static_cast<int>(r.z), pe); break;
    case PUT_SIGNAL_NBI: shmem_putmem_signal_nbi(far, near, r.n, signal, r.y, static_cast<int>(r.z), pe); break;
    case SIGNAL: shmem_signal_op(signal, r.y, static_cast<int>(r.z), pe); break;
    case WAIT: shmem_signal_wait_until(signal, static_cast<int>(r.z), r.y); break;
    case ATOMIC: {
      uint64_t type = r.n >> 8 & 0xff;
      uint64_t old = type == 0 ? atomic<uint64_t>(r, far, slot, pe) : type == 1 ? atomic<int64_t>(r, far, slot, pe)
                   : type == 2 ? atomic<uint32_t>(r, far, slot, pe) : atomic<int32_t>(r, far, slot, pe);
      if ((r.n >> 16 & 1) == 0) set_word(slot, old);
      break;
    }
    case FENCE: shmem_fence(); break;
    case QUIET: shmem_quiet(); break;
    case FLUSH: shmem_flush(); break;
    case FENCE_PE: shmem_fence_pe(pe); break;
    case QUIET_PE: shmem_pe_quiet(pe); break;
    case COMMIT: shmem_commit(); break;
    case BARRIER:
      if (r.z == 0) {
        shmem_barrier_all();
      } else {
        shmem_quiet();
        shmem_sync_all();
      }
      break;
    case ENGINE: shmem_set_engine(static_cast<uint32_t>(r.z)); break;
    case REFILL:
      for (uint64_t i = 0; i * 8 < r.n; ++i) set_word(near + i * 8, r.y + i);
      AscendC::DataSyncBarrier<AscendC::MemDsbT::ALL>();
      AscendC::PipeBarrier<PIPE_ALL>(); /* before MTE2 reads them */
      break;
    default: break;
  }
}

}  // namespace sequence

extern "C" __global__ __aicore__ void sq_run(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, GM_ADDR ops, uint64_t stride) {
  shmem_guard guard = shmem_attach(ctx);
  GM_ADDR list = ops + static_cast<uint64_t>(AscendC::GetBlockIdx()) * stride;
  uint64_t count = sequence::word(list);
  for (uint64_t i = 0; i < count && shmem_error() == SHMEM_OK; ++i) {
    GM_ADDR at = list + (i + 1) * sequence::LINE;
    sequence::record r{sequence::word(at),      sequence::word(at + 8),  sequence::word(at + 16), sequence::word(at + 24),
                       sequence::word(at + 32), sequence::word(at + 40), sequence::word(at + 48), sequence::word(at + 56)};
    sequence::run(r, a, b, out);
  }
}
