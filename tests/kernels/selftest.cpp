/* Small kernels that test the device API and measure it; the multi-process tests and bench/ launch them. Not examples.
 *
 * Every kernel but st_encode, st_doorbell and st_cqe has the same parameters:
 *   (ctx, a, b, out, u64 engine, u64 pe, u64 n, u64 m, u64 k)
 *   ctx     the device context            a, b    symmetric addresses (own heap)    out   own GM memory, u64 words, zeroed by the host
 *   engine  SHMEM_ENGINE_*, or 3: core 0 mapped, core 1 roce, and so on, or 4: core 0 roce, core 1 mapped, and so on
 *   pe      the other PE                  n m k   as below
 * Words of out that are said to be an error hold shmem_error() (0: none). "Core" is the block index. Where nothing else is said, all cores
 * of the launch may take part and every PE launches the kernel.
 *
 * kernel        what it does                                                                         out
 * st_empty      nothing, not even attach                                                             -
 * st_attach     attaches only                                                                        [8c..]: my_pe n_pes core cores error ptr(a, pe)
 * st_move       m times: n bytes between b here and a on pe. k bits: 1 get (a to b), 2 nbi and        [c]: error
 *               quiet, 4 through UB (n <= 128 KiB), 8 each core its own n bytes at core * n
 *               (else core 0 only)
 * st_scatter    m times: put_nbi of n bytes from b to a + my_pe * n on every PE, then quiet           [c]: error
 *               (core 0 only); more PEs than staging sets
 * st_scalar     core 0: p of n values of k = 1, 2, 4, 8 bytes, value i + m, to a on pe; quiet; g       [i]: value read, [n]: error
 * st_signal     1 core, n bytes of data at a, source at a + n, signal at b; m rounds: to pe, while     [0]: wrong words, [1]: error
 *               the PE before sends here. k: 0 put_signal SET, 1 put_signal ADD, 2 put_signal_nbi SET
 *               from UB, 3 put, fence, signal_set, 4 as 3 with signal_add. n <= 128 KiB, multiple of 4
 * st_atomics    1 core of one PE, on a at pe; k: 0 u64, 1 u32, 2 u32 at a + 4, 3 i64, 4 i32, 5 i32      [0..12]: what each step fetched
 *               at a + 4. Steps: set 5, fetch, fetch_add 7, add 1, fetch, inc, fetch_inc, swap 100,    (0 where it fetches nothing),
 *               compare_swap 100->200, compare_swap 100->300, fetch, fetch_add -201, fetch             [13]: error
 * st_hammer     n times per core, on a at pe; k: 0 fetch_add u64, 1 fetch_inc u32, 2 fetch_add u32     [c * n + i]: ticket (0 1 2 3),
 *               at a + 4, 3 compare_swap u64, 4 signal_add, 5 add u64 and quiet, 6 alternately         [cores * n + c]: error
 *               fetch_inc u32 at a and at a + 4 (tickets of both)
 * st_lock       n times per core: lock by compare_swap on a (u64, 0 free) at pe, read and write the     [c]: error
 *               counter at a + 64 by g and p, quiet, unlock by atomic_set
 * st_neighbours n times per core: value i into own slot (my_pe * cores + core) at a on pe;             [c]: error
 *               k: 0 p of 4 bytes, 1 signal_set (8 bytes), 2 p of 1 byte; ends with barrier_all
 * st_message    message passing, PE 0 sends to pe, m rounds of n u32 words. a: flag at 0, ack at 64,   on pe [0]: rounds that saw the flag
 *               hand at 128, data at 192; source at b. k: see `variant`; 8, 9, 12, 13 take 2 cores      before the data; [1]: rounds, [2]: error
 * st_open_read  PE 0: m times get_nbi of n u32 words from a on pe to b; fence unless k = 1; put of      [0]: rounds whose get saw the put,
 *               newer words from b + 4n to the same place; quiet. a zeroed                             [1]: rounds, [2]: error
 * st_buffering  store buffering, 1 core of PE 0 and of pe, n rounds: write the word at a (PE 0) or       [i]: value seen in round i + 1,
 *               a + 64 (pe) of the other; quiet unless k = 1; read the own one                          [n]: error
 * st_barrier    n rounds: own slot (u64, my_pe * cores + core) at a on every PE by p; k: 0 barrier_all,   [c]: slots seen behind,
 *               1 quiet and sync_all, 2 quiet and sync_pe with pe (slots of pe only), 3 as 0, skewed    [cores + c]: error
 * st_fault      one mistake, see `mistake` below for k; n, m as said there                              [c]: error
 * st_rows       n rows of m bytes from a on pe to b by get_nbi, tickets every k rows, 4 tickets open     [c]: error, [cores + c]: rows done early
 * st_bench      times m calls on n bytes; k: 0 put_nbi and quiet, 1 put, 2 get_nbi and quiet, 3 get,      [2c]: ticks, [2c + 1]: error
 *               4 p of 8 bytes, 5 g of 8 bytes, 6 fetch_add, 7 barrier_all, 8 sync_all, 9 put_nbi from
 *               UB and quiet, 10 put_signal_nbi and quiet, 11 put_nbi of 8 bytes over a 8 KiB window
 *
 * The format kernels take (a, out, u64 n), no context; a and out as `struct st_*` below say.
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace selftest {

constexpr uint32_t UB_ROOM = 128 * 1024; /* bytes from UB offset 0 that these kernels use themselves */
constexpr int32_t EVENT = 0;             /* and their event id */
constexpr uint64_t FLAG = 0, ACK = 64, HAND = 128, DATA = 192; /* st_message: offsets in a */

enum variant : uint64_t {
  PUT_FENCE_FLAG = 0,      /* put_nbi, fence, p */
  PUT_FLAG = 1,            /* the same without fence: on one queue pair still in order; mapped: witness */
  PUT_SIGNAL = 2,
  PUT_QUIET_ATOMIC = 3,    /* put_nbi, quiet, atomic_inc of the flag */
  MAPPED_FENCE_ROCE = 4,   /* data mapped, fence, flag by roce */
  MAPPED_ROCE = 5,         /* without fence: still in order, because the flag's request follows the data through MTE3 */
  ROCE_FENCE_MAPPED = 6,   /* data by roce, fence, flag mapped */
  ROCE_MAPPED = 7,         /* witness */
  TWO_CORES_QUIET = 8,     /* core 0: put_nbi, quiet, hand over; core 1: p: different queue pairs */
  TWO_CORES = 9,           /* witness: commit instead of quiet */
  PUT_SIGNAL_NBI_UB = 10,  /* put_signal_nbi from UB */
  PUT_FENCE_PE_SIGNAL = 11,    /* put_nbi, fence_pe, signal_set */
  MAPPED_QUIET_ROCE_CORE = 12, /* core 0: put_nbi mapped, quiet, hand over; core 1: p by roce */
  MAPPED_ROCE_CORE = 13        /* witness: without quiet */
};

/* Whether two cores of the sender take part. */
__aicore__ inline bool two_cores(uint64_t k) {
  return k == TWO_CORES_QUIET || k == TWO_CORES || k == MAPPED_QUIET_ROCE_CORE || k == MAPPED_ROCE_CORE;
}

/* For the witnesses: issues nothing until the receiver has answered, or for some milliseconds, so that copies under way stay under way
 * where nothing waits for them. The plain load may be stale on a device; then the bound ends it. */
__aicore__ inline void hold(GM_ADDR a, uint64_t round, uint64_t k) {
  if (k != PUT_FLAG && k != MAPPED_ROCE && k != ROCE_MAPPED && k != TWO_CORES && k != MAPPED_ROCE_CORE) return;
  volatile __gm__ uint64_t* ack = reinterpret_cast<volatile __gm__ uint64_t*>(a + ACK);
  for (uint32_t i = 0; i < 1000000 && *ack < round; ++i) {
  }
}

enum mistake : uint64_t {
  PAST_THE_END = 0,      /* put of n bytes to a on pe, n chosen to leave the heap */
  MISALIGNED_ATOMIC = 1, /* fetch_add u64 at a + 4 on pe */
  WILD_POINTER = 2,      /* load through address m */
  ENDLESS = 3,           /* a loop without end or wait */
  SPIN_ON_BLOCKS = 4,    /* each core waits (no library) for all n blocks of the launch to count themselves in at b */
  UNREGISTERED = 5,      /* put of n bytes from address m (not in the heap) to a on pe */
  NO_SUCH_PE = 6,        /* put of 8 bytes to PE n_pes */
  NEVER_COMES = 7,       /* wait_until(a == n) that nobody fulfils */
  PUT_FOREVER = 8,       /* put, quiet to pe until an error comes, at most n times (0: no bound) */
  NO_ATTACH = 9,         /* my_pe is known, a put without attach */
  NULL_SYMMETRIC = 10,   /* put of 8 bytes to address 0 on pe */
  COUNT_OVERFLOW = 11,   /* put of 2^61 + 1 8-byte elements */
  WRONG_KEY = 12         /* put_nbi of 64 bytes to pe with a key that its NIC does not know, then a wait as m says, see `wait_kind` */
};

/* How WRONG_KEY waits: but for QUIET, for what never comes. */
enum wait_kind : uint64_t {
  QUIET = 0,
  WAIT_UNTIL = 1,
  SIGNAL_WAIT = 2,
  SYNC_ALL = 3,
  SYNC_PE = 4,
  TEST = 5,
  OTHERS_THEN_WAIT = 6 /* p to every other PE first, which takes the failed pair out of the staging set where there are enough of them */
};

/* Own GM, uncached, complete before what follows. */
__aicore__ inline void out_word(GM_ADDR out, uint64_t index, uint64_t value) {
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(out) + index, value);
}
__aicore__ inline uint64_t word64(GM_ADDR at) { return AscendC::ReadGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(at)); }
__aicore__ inline uint32_t word32(GM_ADDR at) { return AscendC::ReadGmByPassDCache<uint32_t>(reinterpret_cast<__gm__ uint32_t*>(at)); }

__aicore__ inline void fill_words(GM_ADDR at, uint64_t n, uint32_t value) {
  for (uint64_t i = 0; i < n; ++i) AscendC::WriteGmByPassDCache<uint32_t>(reinterpret_cast<__gm__ uint32_t*>(at) + i, value);
  AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
}

__aicore__ inline uint64_t wrong_words(GM_ADDR at, uint64_t n, uint32_t value) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < n; ++i) wrong += word32(at + 4 * i) != value ? 1 : 0;
  return wrong;
}

__aicore__ inline AscendC::LocalTensor<uint8_t> room() {
  return AscendC::LocalTensor<uint8_t>(AscendC::TPosition::VECCALC, 0, UB_ROOM);
}

/* Own GM to own UB, ready for MTE3; and back. */
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
  AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(EVENT);
  AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(EVENT);
}

__aicore__ inline uint64_t core() { return static_cast<uint64_t>(AscendC::GetBlockIdx()); }

/* From this number on the cores of a launch take turns between the engines. */
constexpr uint64_t ENGINES_IN_TURN = 3;

__aicore__ inline shmem_options with_engine(uint64_t engine) {
  shmem_options options;
  if (engine >= ENGINES_IN_TURN) engine = (engine - ENGINES_IN_TURN + core()) % 2 == 0 ? SHMEM_ENGINE_MAPPED : SHMEM_ENGINE_ROCE;
  options.engine = static_cast<uint32_t>(engine);
  return options;
}

/* One call of each size, so that each width is compiled. */
template <typename T>
__aicore__ inline void scalars(GM_ADDR a, GM_ADDR out, int pe, uint64_t n, uint64_t m) {
  __gm__ T* words = reinterpret_cast<__gm__ T*>(a);
  for (uint64_t i = 0; i < n; ++i) shmem_p(words + i, static_cast<T>(i + m), pe);
  shmem_quiet();
  for (uint64_t i = 0; i < n; ++i) out_word(out, i, static_cast<uint64_t>(shmem_g(words + i, pe)));
}

template <typename T>
__aicore__ inline void atomics(GM_ADDR a, GM_ADDR out, int pe) {
  __gm__ T* word = reinterpret_cast<__gm__ T*>(a);
  shmem_atomic_set(word, 5, pe);
  out_word(out, 1, uint64_t(shmem_atomic_fetch(word, pe)));
  out_word(out, 2, uint64_t(shmem_atomic_fetch_add(word, 7, pe)));
  shmem_atomic_add(word, 1, pe);
  out_word(out, 4, uint64_t(shmem_atomic_fetch(word, pe)));
  shmem_atomic_inc(word, pe);
  out_word(out, 6, uint64_t(shmem_atomic_fetch_inc(word, pe)));
  out_word(out, 7, uint64_t(shmem_atomic_swap(word, 100, pe)));
  out_word(out, 8, uint64_t(shmem_atomic_compare_swap(word, 100, 200, pe)));
  out_word(out, 9, uint64_t(shmem_atomic_compare_swap(word, 100, 300, pe)));
  out_word(out, 10, uint64_t(shmem_atomic_fetch(word, pe)));
  out_word(out, 11, uint64_t(shmem_atomic_fetch_add(word, static_cast<T>(-201), pe)));
  out_word(out, 12, uint64_t(shmem_atomic_fetch(word, pe)));
}

/* One round of the sender of st_message. */
__aicore__ inline void send(GM_ADDR a, GM_ADDR b, int pe, uint64_t n, uint64_t round, uint64_t k) {
  __gm__ uint32_t* data = reinterpret_cast<__gm__ uint32_t*>(a + DATA);
  __gm__ uint32_t* source = reinterpret_cast<__gm__ uint32_t*>(b);
  __gm__ uint64_t* flag = reinterpret_cast<__gm__ uint64_t*>(a + FLAG);
  if (k == PUT_SIGNAL) {
    shmem_put_signal(data, source, n, flag, round, SHMEM_SIGNAL_SET, pe);
    return;
  }
  if (k == PUT_SIGNAL_NBI_UB) {
    load_room(b, 4 * n);
    shmem_put_signal_nbi(data, room().ReinterpretCast<uint32_t>(), n, flag, round, SHMEM_SIGNAL_SET, pe);
    shmem_commit();
    return;
  }
  if (k == MAPPED_FENCE_ROCE || k == MAPPED_ROCE || k == MAPPED_QUIET_ROCE_CORE || k == MAPPED_ROCE_CORE) {
    shmem_set_engine(SHMEM_ENGINE_MAPPED);
  }
  if (k == ROCE_FENCE_MAPPED || k == ROCE_MAPPED) shmem_set_engine(SHMEM_ENGINE_ROCE);
  shmem_put_nbi(data, source, n, pe);
  if (k == PUT_FENCE_FLAG || k == MAPPED_FENCE_ROCE || k == ROCE_FENCE_MAPPED) shmem_fence();
  if (k == PUT_FENCE_PE_SIGNAL) shmem_fence_pe(pe);
  if (k == ROCE_MAPPED || k == TWO_CORES) shmem_commit();
  if (k == PUT_QUIET_ATOMIC || k == TWO_CORES_QUIET || k == MAPPED_QUIET_ROCE_CORE) shmem_quiet();
  if (k == MAPPED_FENCE_ROCE || k == MAPPED_ROCE) shmem_set_engine(SHMEM_ENGINE_ROCE);
  if (k == ROCE_FENCE_MAPPED || k == ROCE_MAPPED) shmem_set_engine(SHMEM_ENGINE_MAPPED);
  if (two_cores(k)) {
    out_word(a + HAND, 0, round);
  } else if (k == PUT_QUIET_ATOMIC) {
    shmem_atomic_inc(flag, pe);
  } else if (k == PUT_FENCE_PE_SIGNAL) {
    shmem_signal_set(flag, round, pe);
  } else {
    shmem_p(flag, round, pe);
  }
  hold(a, round, k);
}

__aicore__ inline void one_call(GM_ADDR a, GM_ADDR b, int pe, uint64_t n, uint64_t i, uint64_t k) {
  __gm__ uint64_t* words = reinterpret_cast<__gm__ uint64_t*>(a);
  switch (k) {
    case 0: shmem_putmem_nbi(a, b, n, pe); break;
    case 1: shmem_putmem(a, b, n, pe); break;
    case 2: shmem_getmem_nbi(b, a, n, pe); break;
    case 3: shmem_getmem(b, a, n, pe); break;
    case 4: shmem_p(words, i, pe); break;
    case 5: shmem_g(words, pe); break;
    case 6: shmem_atomic_fetch_add(words, 1, pe); break;
    case 7: shmem_barrier_all(); break;
    case 8: shmem_sync_all(); break;
    case 9: shmem_put_nbi(a, room(), n, pe); break;
    case 10: shmem_putmem_signal_nbi(a + 64, b, n, words, i, SHMEM_SIGNAL_SET, pe); break;
    default: shmem_putmem_nbi(a + (i & 1023) * 8, b + (i & 1023) * 8, 8, pe); break;
  }
}

/* Makes the key toward pe one that the peer's NIC does not know, until the host writes the table anew. */
__aicore__ inline void spoil_key(GM_ADDR ctx, int pe) {
  uint64_t peers = word64(ctx + SHMEM_OFFSET(shmem_ctx, peers));
  GM_ADDR key = reinterpret_cast<GM_ADDR>(peers + uint64_t(pe) * sizeof(struct shmem_peer) + SHMEM_OFFSET(shmem_peer, rkey));
  AscendC::WriteGmByPassDCache<uint32_t>(reinterpret_cast<__gm__ uint32_t*>(key), word32(key) ^ (1u << 20));
  AscendC::DataSyncBarrier<AscendC::MemDsbT::DDR>();
}

__aicore__ inline void wait_in_vain(GM_ADDR a, int pe, uint64_t kind) {
  constexpr uint64_t NEVER = ~uint64_t(0);
  __gm__ uint64_t* words = reinterpret_cast<__gm__ uint64_t*>(a);
  switch (kind) {
    case QUIET: shmem_quiet(); break;
    case SIGNAL_WAIT: shmem_signal_wait_until(words, SHMEM_CMP_EQ, NEVER); break;
    case SYNC_ALL: shmem_sync_all(); break;
    case SYNC_PE: shmem_sync_pe(pe); break;
    case TEST:
      while (shmem_test(words, SHMEM_CMP_EQ, NEVER) == 0) {
      }
      break;
    case OTHERS_THEN_WAIT:
      for (int to = 0; to < shmem_n_pes(); ++to) {
        if (to != pe) shmem_p(words + 8, uint64_t(1), to);
      }
      shmem_wait_until(words, SHMEM_CMP_EQ, NEVER);
      break;
    default: shmem_wait_until(words, SHMEM_CMP_EQ, NEVER); break;
  }
}

__aicore__ inline void be_wrong(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, int pe, uint64_t n, uint64_t m, uint64_t k) {
  __gm__ uint64_t* words = reinterpret_cast<__gm__ uint64_t*>(a);
  switch (k) {
    case PAST_THE_END: shmem_putmem(a, b, n, pe); break;
    case MISALIGNED_ATOMIC: shmem_atomic_fetch_add(reinterpret_cast<__gm__ uint64_t*>(a + 4), 1, pe); break;
    case WILD_POINTER: {
      volatile uint64_t sink = *reinterpret_cast<__gm__ uint64_t*>(m);
      (void)sink;
      break;
    }
    case ENDLESS: {
      volatile uint64_t turns = 0;
      while (true) turns = turns + 1;
    }
    case SPIN_ON_BLOCKS: {
      out_word(b, 8 * core(), 1);
      for (uint64_t i = 0; i < n; ++i) {
        while (word64(b + 64 * i) == 0) {
        }
      }
      break;
    }
    case UNREGISTERED: shmem_putmem(a, reinterpret_cast<GM_ADDR>(m), n, pe); break;
    case NO_SUCH_PE: shmem_putmem(a, b, 8, shmem_n_pes()); break;
    case NEVER_COMES: shmem_wait_until(words, SHMEM_CMP_EQ, n); break;
    case PUT_FOREVER:
      for (uint64_t i = 0; (n == 0 || i < n) && shmem_error() == SHMEM_OK; ++i) {
        shmem_putmem(a, b, 64, pe);
        shmem_quiet();
      }
      break;
    case NULL_SYMMETRIC: shmem_putmem(reinterpret_cast<GM_ADDR>(uint64_t(0)), b, 8, pe); break;
    case COUNT_OVERFLOW: shmem_put(words, reinterpret_cast<__gm__ uint64_t*>(b), (1ull << 61) + 1, pe); break;
    case WRONG_KEY:
      spoil_key(ctx, pe);
      shmem_putmem_nbi(a, b, 64, pe);
      shmem_commit();
      wait_in_vain(a, pe, m);
      break;
    default: break;
  }
}

}  // namespace selftest

extern "C" __global__ __aicore__ void st_empty(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  (void)ctx, (void)a, (void)b, (void)out, (void)engine, (void)pe, (void)n, (void)m, (void)k;
}

extern "C" __global__ __aicore__ void st_attach(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                uint64_t m, uint64_t k) {
  (void)b, (void)n, (void)m, (void)k;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t at = 8 * selftest::core();
  selftest::out_word(out, at, uint64_t(shmem_my_pe()));
  selftest::out_word(out, at + 1, uint64_t(shmem_n_pes()));
  selftest::out_word(out, at + 2, uint64_t(shmem_my_core()));
  selftest::out_word(out, at + 3, uint64_t(shmem_n_cores()));
  selftest::out_word(out, at + 5, reinterpret_cast<uint64_t>(shmem_ptr(a, int(pe))));
  selftest::out_word(out, at + 4, shmem_error());
}

extern "C" __global__ __aicore__ void st_move(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                              uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  bool get = (k & 1) != 0, nbi = (k & 2) != 0, ub = (k & 4) != 0, all = (k & 8) != 0;
  uint64_t core = selftest::core();
  if (!all && core != 0) return;
  if (all) {
    a += core * n;
    b += core * n;
  }
  AscendC::LocalTensor<uint8_t> room = selftest::room();
  for (uint64_t i = 0; i < m; ++i) {
    if (ub && get) {
      if (nbi) {
        shmem_get_nbi(room, a, n, int(pe));
        shmem_quiet();
      } else {
        shmem_get(room, a, n, int(pe));
      }
      if (shmem_error() == SHMEM_OK) selftest::save_room(b, n);
    } else if (ub) {
      selftest::load_room(b, n);
      if (nbi) {
        shmem_put_nbi(a, room, n, int(pe));
        shmem_flush(); /* the next load_room writes the source */
      } else {
        shmem_put(a, room, n, int(pe));
      }
    } else if (get) {
      if (nbi) {
        shmem_getmem_nbi(b, a, n, int(pe));
      } else {
        shmem_getmem(b, a, n, int(pe));
      }
    } else {
      if (nbi) {
        shmem_putmem_nbi(a, b, n, int(pe));
      } else {
        shmem_putmem(a, b, n, int(pe));
      }
    }
  }
  shmem_quiet();
  selftest::out_word(out, core, shmem_error());
}

extern "C" __global__ __aicore__ void st_scatter(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  (void)pe, (void)k;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  if (selftest::core() != 0) return;
  for (uint64_t i = 0; i < m; ++i) {
    for (int to = 0; to < shmem_n_pes(); ++to) shmem_putmem_nbi(a + uint64_t(shmem_my_pe()) * n, b, n, to);
  }
  shmem_quiet();
  selftest::out_word(out, 0, shmem_error());
}

extern "C" __global__ __aicore__ void st_scalar(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                uint64_t m, uint64_t k) {
  (void)b;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  if (selftest::core() != 0) return;
  if (k == 1) selftest::scalars<uint8_t>(a, out, int(pe), n, m);
  if (k == 2) selftest::scalars<uint16_t>(a, out, int(pe), n, m);
  if (k == 4) selftest::scalars<uint32_t>(a, out, int(pe), n, m);
  if (k == 8) selftest::scalars<uint64_t>(a, out, int(pe), n, m);
  selftest::out_word(out, n, shmem_error());
}

extern "C" __global__ __aicore__ void st_signal(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint32_t before = uint32_t((shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes());
  GM_ADDR source = a + n;
  __gm__ uint64_t* signal = reinterpret_cast<__gm__ uint64_t*>(b);
  uint64_t wrong = 0;
  for (uint32_t round = 1; round <= m && shmem_error() == SHMEM_OK; ++round) {
    selftest::fill_words(source, n / 4, round * 1000 + uint32_t(shmem_my_pe()));
    if (k == 0) shmem_putmem_signal(a, source, n, signal, round, SHMEM_SIGNAL_SET, int(pe));
    if (k == 1) shmem_putmem_signal(a, source, n, signal, 1, SHMEM_SIGNAL_ADD, int(pe));
    if (k == 2) {
      selftest::load_room(source, n);
      shmem_put_signal_nbi(a, selftest::room(), n, signal, round, SHMEM_SIGNAL_SET, int(pe));
    }
    if (k == 3 || k == 4) {
      shmem_putmem(a, source, n, int(pe));
      shmem_fence();
      if (k == 3) shmem_signal_set(signal, round, int(pe));
      if (k == 4) shmem_signal_add(signal, 1, int(pe));
    }
    shmem_signal_wait_until(signal, SHMEM_CMP_GE, round);
    wrong += selftest::wrong_words(a, n / 4, round * 1000 + before);
    shmem_quiet();
    shmem_sync_all(); /* a is overwritten in the next round */
  }
  selftest::out_word(out, 0, wrong);
  selftest::out_word(out, 1, shmem_error());
}

extern "C" __global__ __aicore__ void st_atomics(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  (void)b, (void)n, (void)m;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  if (selftest::core() != 0) return;
  if (k == 0) selftest::atomics<uint64_t>(a, out, int(pe));
  if (k == 1) selftest::atomics<uint32_t>(a, out, int(pe));
  if (k == 2) selftest::atomics<uint32_t>(a + 4, out, int(pe));
  if (k == 3) selftest::atomics<int64_t>(a, out, int(pe));
  if (k == 4) selftest::atomics<int32_t>(a, out, int(pe));
  if (k == 5) selftest::atomics<int32_t>(a + 4, out, int(pe));
  shmem_quiet();
  selftest::out_word(out, 13, shmem_error());
}

extern "C" __global__ __aicore__ void st_hammer(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                uint64_t m, uint64_t k) {
  (void)b, (void)m;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  __gm__ uint64_t* word = reinterpret_cast<__gm__ uint64_t*>(a);
  __gm__ uint32_t* low = reinterpret_cast<__gm__ uint32_t*>(a);
  __gm__ uint32_t* high = reinterpret_cast<__gm__ uint32_t*>(a + 4);
  for (uint64_t i = 0; i < n && shmem_error() == SHMEM_OK; ++i) {
    uint64_t ticket = 0;
    if (k == 0) ticket = shmem_atomic_fetch_add(word, 1, int(pe));
    if (k == 1) ticket = shmem_atomic_fetch_inc(low, int(pe));
    if (k == 2) ticket = shmem_atomic_fetch_add(high, 1, int(pe));
    if (k == 3) {
      uint64_t seen = shmem_atomic_fetch(word, int(pe));
      do {
        ticket = seen;
        seen = shmem_atomic_compare_swap(word, ticket, ticket + 1, int(pe));
      } while (seen != ticket && shmem_error() == SHMEM_OK);
    }
    if (k == 4) shmem_signal_add(word, 1, int(pe));
    if (k == 5) shmem_atomic_add(word, 1, int(pe));
    if (k == 6) ticket = shmem_atomic_fetch_inc((i & 1) != 0 ? high : low, int(pe));
    if (k <= 3 || k == 6) selftest::out_word(out, core * n + i, ticket);
  }
  shmem_quiet();
  selftest::out_word(out, uint64_t(shmem_n_cores()) * n + core, shmem_error());
}

extern "C" __global__ __aicore__ void st_lock(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                              uint64_t m, uint64_t k) {
  (void)b, (void)m, (void)k;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  uint64_t mine = uint64_t(shmem_my_pe()) * uint64_t(shmem_n_cores()) + core + 1;
  __gm__ uint64_t* lock = reinterpret_cast<__gm__ uint64_t*>(a);
  __gm__ uint64_t* counter = reinterpret_cast<__gm__ uint64_t*>(a + 64);
  for (uint64_t i = 0; i < n && shmem_error() == SHMEM_OK; ++i) {
    while (shmem_atomic_compare_swap(lock, 0, mine, int(pe)) != 0 && shmem_error() == SHMEM_OK) {
    }
    shmem_p(counter, shmem_g(counter, int(pe)) + 1, int(pe));
    shmem_quiet();
    shmem_atomic_set(lock, 0, int(pe));
  }
  shmem_quiet();
  selftest::out_word(out, core, shmem_error());
}

extern "C" __global__ __aicore__ void st_neighbours(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe,
                                                    uint64_t n, uint64_t m, uint64_t k) {
  (void)b, (void)m;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  uint64_t slot = uint64_t(shmem_my_pe()) * uint64_t(shmem_n_cores()) + core;
  for (uint64_t i = 1; i <= n; ++i) {
    if (k == 0) shmem_p(reinterpret_cast<__gm__ uint32_t*>(a) + slot, uint32_t(i), int(pe));
    if (k == 1) shmem_signal_set(reinterpret_cast<__gm__ uint64_t*>(a) + slot, i, int(pe));
    if (k == 2) shmem_p(a + slot, uint8_t(i), int(pe));
  }
  shmem_barrier_all();
  selftest::out_word(out, core, shmem_error());
}

extern "C" __global__ __aicore__ void st_message(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  __gm__ uint64_t* flag = reinterpret_cast<__gm__ uint64_t*>(a + selftest::FLAG);
  __gm__ uint64_t* ack = reinterpret_cast<__gm__ uint64_t*>(a + selftest::ACK);
  __gm__ uint64_t* hand = reinterpret_cast<__gm__ uint64_t*>(a + selftest::HAND);
  if (core > (selftest::two_cores(k) ? 1u : 0u)) return;
  if (shmem_my_pe() == 0) {
    for (uint64_t round = 1; round <= m && shmem_error() == SHMEM_OK; ++round) {
      if (core == 1) {
        if (k == selftest::MAPPED_QUIET_ROCE_CORE || k == selftest::MAPPED_ROCE_CORE) shmem_set_engine(SHMEM_ENGINE_ROCE);
        shmem_wait_until(hand, SHMEM_CMP_GE, round);
        shmem_p(flag, round, int(pe));
        continue;
      }
      shmem_quiet();
      shmem_wait_until(ack, SHMEM_CMP_GE, round - 1);
      selftest::fill_words(b, n, uint32_t(round));
      selftest::send(a, b, int(pe), n, round, k);
    }
    shmem_quiet();
  } else if (shmem_my_pe() == int(pe) && core == 0) {
    uint64_t early = 0;
    for (uint64_t round = 1; round <= m && shmem_error() == SHMEM_OK; ++round) {
      shmem_wait_until(flag, SHMEM_CMP_GE, round);
      early += selftest::wrong_words(a + selftest::DATA, n, uint32_t(round)) != 0 ? 1 : 0;
      shmem_p(ack, round, 0);
    }
    selftest::out_word(out, 0, early);
    selftest::out_word(out, 1, m);
    shmem_quiet();
  }
  if (core == 0) selftest::out_word(out, 2, shmem_error());
}

extern "C" __global__ __aicore__ void st_open_read(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                   uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  if (shmem_my_pe() != 0 || selftest::core() != 0) return;
  __gm__ uint32_t* remote = reinterpret_cast<__gm__ uint32_t*>(a);
  __gm__ uint32_t* seen = reinterpret_cast<__gm__ uint32_t*>(b);
  __gm__ uint32_t* source = seen + n;
  uint64_t late = 0;
  for (uint32_t round = 1; round <= m && shmem_error() == SHMEM_OK; ++round) {
    selftest::fill_words(reinterpret_cast<GM_ADDR>(source), n, round);
    shmem_get_nbi(seen, remote, n, int(pe));
    if (k != 1) shmem_fence();
    shmem_put_nbi(remote, source, n, int(pe));
    shmem_quiet();
    late += selftest::wrong_words(b, n, round - 1) != 0 ? 1 : 0;
  }
  selftest::out_word(out, 0, late);
  selftest::out_word(out, 1, m);
  selftest::out_word(out, 2, shmem_error());
}

extern "C" __global__ __aicore__ void st_buffering(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe,
                                                   uint64_t n, uint64_t m, uint64_t k) {
  (void)b, (void)m;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  bool first = shmem_my_pe() == 0;
  if (selftest::core() != 0 || (!first && shmem_my_pe() != int(pe))) return;
  int other = first ? int(pe) : 0;
  __gm__ uint64_t* theirs = reinterpret_cast<__gm__ uint64_t*>(a + (first ? 0 : 64));
  __gm__ uint64_t* mine = reinterpret_cast<__gm__ uint64_t*>(a + (first ? 64 : 0));
  for (uint64_t round = 1; round <= n && shmem_error() == SHMEM_OK; ++round) {
    shmem_sync_pe(other);
    shmem_p(theirs, round, other);
    if (k != 1) shmem_quiet();
    selftest::out_word(out, round - 1, shmem_signal_fetch(mine));
  }
  shmem_quiet();
  selftest::out_word(out, n, shmem_error());
}

extern "C" __global__ __aicore__ void st_barrier(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  (void)b, (void)m;
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  uint64_t cores = uint64_t(shmem_n_cores());
  uint64_t mine = uint64_t(shmem_my_pe()) * cores + core;
  uint64_t behind = 0;
  uint64_t random = mine * 2654435761u + 1;
  for (uint64_t round = 1; round <= n && shmem_error() == SHMEM_OK; ++round) {
    __gm__ uint64_t* slot = reinterpret_cast<__gm__ uint64_t*>(a) + mine;
    if (k == 2) {
      shmem_p(slot, round, int(pe));
      shmem_quiet();
      shmem_sync_pe(int(pe));
      behind += selftest::word64(a + 8 * (pe * cores + core)) < round ? 1 : 0;
      continue;
    }
    for (int to = 0; to < shmem_n_pes(); ++to) shmem_p(slot, round, to);
    if (k == 3) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      for (uint64_t i = 0; i < (random >> 56); ++i) AscendC::GetSystemCycle();
    }
    if (k == 1) {
      shmem_quiet();
      shmem_sync_all();
    } else {
      shmem_barrier_all();
    }
    for (uint64_t i = 0; i < uint64_t(shmem_n_pes()) * cores; ++i) behind += selftest::word64(a + 8 * i) < round ? 1 : 0;
  }
  selftest::out_word(out, core, behind);
  selftest::out_word(out, cores + core, shmem_error());
}

extern "C" __global__ __aicore__ void st_fault(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  if (k == selftest::NO_ATTACH) {
    shmem_putmem(a, b, 8, int(pe));
    return;
  }
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  selftest::be_wrong(ctx, a, b, int(pe), n, m, k);
  selftest::out_word(out, selftest::core(), shmem_error());
}

extern "C" __global__ __aicore__ void st_rows(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                              uint64_t m, uint64_t k) {
  constexpr uint64_t OPEN = 4; /* tickets */
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  uint64_t early = 0;
  shmem_ticket tickets[OPEN];
  uint64_t taken = 0, retired = 0;
  for (uint64_t row = core; row < n; row += uint64_t(shmem_n_cores())) {
    shmem_getmem_nbi(b + row * m, a + row * m, m, int(pe));
    if ((row / uint64_t(shmem_n_cores()) + 1) % k != 0) continue;
    while (retired < taken && shmem_done(tickets[retired % OPEN])) {
      retired += 1;
      early += k;
    }
    if (taken - retired == OPEN) shmem_wait(tickets[retired++ % OPEN]);
    tickets[taken++ % OPEN] = shmem_last(int(pe));
  }
  while (retired < taken) shmem_wait(tickets[retired++ % OPEN]);
  shmem_quiet();
  selftest::out_word(out, core, shmem_error());
  selftest::out_word(out, uint64_t(shmem_n_cores()) + core, early);
}

extern "C" __global__ __aicore__ void st_bench(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, selftest::with_engine(engine));
  uint64_t core = selftest::core();
  if (k == 9) selftest::load_room(b, n);
  uint64_t begin = uint64_t(AscendC::GetSystemCycle());
  for (uint64_t i = 0; i < m; ++i) selftest::one_call(a, b, int(pe), n, i, k);
  if (k == 0 || k == 2 || k >= 9) shmem_quiet();
  uint64_t end = uint64_t(AscendC::GetSystemCycle());
  shmem_quiet();
  selftest::out_word(out, 2 * core, end - begin);
  selftest::out_word(out, 2 * core + 1, shmem_error());
}

/* --- Format kernels: the encoder as pure functions, for the golden vectors ------------------------------------------------------------ */

/* st_encode: a holds n of these; out gets n work requests of 64 bytes. */
struct st_request {
  uint64_t op; /* 0 write, 1 read, 2 compare_swap, 3 fetch_add, 4 write_inline */
  uint64_t n, log2_depth, signaled, strong_order, rkey, va, lkey, addr, length;
  uint64_t operand; /* swap, add, or the inline payload */
  uint64_t compare;
};

/* st_doorbell: a holds n of these; out gets n doorbells of 8 bytes. */
struct st_ring {
  uint64_t kind; /* 0 send, 1 completion */
  uint64_t number, service_level, counter;
};

/* st_cqe: a holds n of these; out gets 4 words each: valid, status, sub-status, work request index. */
struct st_entry {
  uint64_t n, depth, dword0, dword3;
};

extern "C" __global__ __aicore__ void st_encode(GM_ADDR a, GM_ADDR out, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t word[sizeof(st_request) / 8];
    for (uint64_t j = 0; j < sizeof(st_request) / 8; ++j) word[j] = selftest::word64(a + i * sizeof(st_request) + 8 * j);
    uint64_t op = word[0], counter = word[1], depth = word[2], signaled = word[3], strong = word[4], va = word[6], addr = word[8];
    uint32_t rkey = uint32_t(word[5]), lkey = uint32_t(word[7]), length = uint32_t(word[9]);
    uint64_t operand = word[10], compare = word[11];
    shmem_impl::wqe request;
    if (op == 0) shmem_impl::encode_transfer(request, shmem_impl::OPCODE_WRITE, length, rkey, va, lkey, addr);
    if (op == 1) shmem_impl::encode_transfer(request, shmem_impl::OPCODE_READ, length, rkey, va, lkey, addr);
    if (op == 2) shmem_impl::encode_atomic(request, shmem_impl::OPCODE_COMPARE_SWAP, rkey, va, lkey, addr, operand, compare);
    if (op == 3) shmem_impl::encode_atomic(request, shmem_impl::OPCODE_FETCH_ADD, rkey, va, lkey, addr, operand, 0);
    if (op == 4) shmem_impl::encode_inline_write(request, length, rkey, va, operand);
    request.word[0] |= shmem_impl::owner_bit(counter, uint32_t(depth));
    if (signaled != 0) request.word[0] |= shmem_impl::WQE_SIGNALED;
    if (strong != 0) request.word[0] |= shmem_impl::WQE_STRONG_ORDER;
    for (uint32_t j = 0; j < shmem_impl::WQE_WORDS; ++j) selftest::out_word(out, i * shmem_impl::WQE_WORDS + j, request.word[j]);
  }
}

extern "C" __global__ __aicore__ void st_doorbell(GM_ADDR a, GM_ADDR out, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    GM_ADDR at = a + i * sizeof(st_ring);
    uint32_t number = uint32_t(selftest::word64(at + 8));
    uint64_t counter = selftest::word64(at + 24);
    bool send = selftest::word64(at) == 0;
    selftest::out_word(out, i, send ? shmem_impl::send_doorbell(number, counter, uint32_t(selftest::word64(at + 16)))
                                    : shmem_impl::completion_doorbell(number, counter));
  }
}

extern "C" __global__ __aicore__ void st_cqe(GM_ADDR a, GM_ADDR out, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    GM_ADDR at = a + i * sizeof(st_entry);
    uint32_t dword0 = uint32_t(selftest::word64(at + 16));
    bool valid = shmem_impl::cqe_valid(dword0, selftest::word64(at), uint32_t(selftest::word64(at + 8)));
    selftest::out_word(out, 4 * i, valid ? 1 : 0);
    selftest::out_word(out, 4 * i + 1, shmem_impl::cqe_status(dword0));
    selftest::out_word(out, 4 * i + 2, shmem_impl::cqe_sub_status(uint32_t(selftest::word64(at + 24))));
    selftest::out_word(out, 4 * i + 3, shmem_impl::cqe_wqe_index(dword0));
  }
}
