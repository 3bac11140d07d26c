/* npushmem on the device: what a kernel calls to read and write the memory of other PEs by itself.
 *
 *   #include "kernel_operator.h"
 *   #include "shmem.h"
 *
 *   extern "C" __global__ __aicore__ void shift(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t n) {
 *     shmem_guard shmem = shmem_attach(ctx);
 *     int next = (shmem_my_pe() + 1) % shmem_n_pes();
 *     shmem_put((__gm__ float*)dst, (__gm__ float*)src, n, next);
 *     shmem_barrier_all();
 *   }
 *
 * This file is the contract for people: meaning, units, order, completion, errors, limits. The mechanics are in impl/, the layouts shared
 * with the host in abi.h, the element types in types.h. Names and meaning follow OpenSHMEM 1.6; each group names its part of the standard.
 * Differences are said where they are.
 *
 * WHO CALLS. Every core (block) that communicates attaches the context by itself; core c of a launch is comm core c, so a launch may use
 * as many communicating cores as the host's enable_device made. Requests of one core know nothing of another's: fence and quiet are
 * about the calling core. barrier_all and sync_all are called by all cores of the launch.
 *
 * ADDRESSES. A symmetric address is the address of the object in the caller's own heap (heap base + offset), as the host passes it to the
 * kernel. A PE's copy lies at the same offset of its heap. n counts elements, *mem routines count bytes. Every call checks in every build
 * that all bytes lie in the heap, or in a window.
 *
 * ENGINES. mapped: MTE copies and uncached scalar accesses through the peer's mapped heap. roce: work requests to the NIC. The default is
 * mapped where the peer is mapped. With roce, the local side of a transfer lies in the heap, in a registered buffer, a window, or UB; mapped
 * takes any GM address.
 *
 * COMPLETION has three levels, each over every engine that the core used:
 *   flush   local memory of earlier transfers may be changed           shmem_flush; on return of a blocking put
 *   fence   earlier puts and atomics come before later ones, per PE    shmem_fence, shmem_fence_pe
 *   quiet   earlier calls are done, and visible at their targets       shmem_quiet, shmem_pe_quiet, shmem_barrier_all
 * Blocking get, g and fetching atomics return with the data there. Without a fence nothing is ordered, but: writes of one core to one PE
 * by roce arrive in order. That an MTE3_S flag, and a NIC's completion, mean visibility at the target are assumptions about hardware; for
 * the second the host can ask that quiet adds a flushing READ (SHMEM_CTX_QUIET_READS).
 *
 * CACHES. The library goes round the scalar data cache both ways. Data that a kernel stored through the cache (GlobalTensor::SetValue, *p)
 * must be written back (DataCacheCleanAndInvalid) before it is a source, and lines must be invalidated before data that arrived is read
 * through the cache; MTE copies need neither. barrier_all does both for the calling core. A UB source must be ready for MTE3 (V_MTE3 or
 * S_MTE3 flag by the caller), as for DataCopy; a GM source that the kernel wrote by an MTE3 copy of its own needs an MTE3_MTE2 flag. Data
 * that a blocking get brought to UB may be used by every pipe.
 *
 * BATCHES. nbi calls to a PE by roce are staged, up to 32 a queue pair, and rung together: by a full batch, a blocking call, fence,
 * quiet, a wait, or shmem_commit. min(8, n_pes x contexts) queue pairs are staged at once, so calls that take turns between that many
 * PEs still batch.
 *
 * UB AND EVENTS. By default the library uses the top SHMEM_UB_DEFAULT bytes of UB and event ids 4 and 5 of every pair of pipes;
 * shmem_options names others. Every flag is paired when the guard ends. Two copy tiles and the staging sets (2 KiB a queue pair) share the range.
 *
 * ERRORS. The first error of a core is latched in its record (struct shmem_error in abi.h), and the host's next synchronize returns it.
 * From then on every call of that core returns at once and does nothing; calls that return values return 0. shmem_error() lets a kernel
 * ask. Every wait ends: by its condition, by the time limit of the context (SHMEM_E_TIMEOUT), because the host says so (SHMEM_E_ABORT), or
 * because a request of the core has failed meanwhile, toward whatever PE (SHMEM_E_COMPLETION).
 * Errors that any call may record: SHMEM_E_PE, _BOUNDS, _UNREACHABLE, _BROKEN, _COMPLETION, _TIMEOUT, _ABORT; others stand at the call.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include "abi.h"
#include "types.h"

/* Bytes of UB of the part that the kernel is compiled for. */
#if __NPU_ARCH__ == 3510
#define SHMEM_UB_SIZE 253952u
#else
#define SHMEM_UB_SIZE 196608u
#endif
#define SHMEM_UB_DEFAULT 40960u /* bytes that the library uses by default, at the top of UB */

/* Comparisons of wait and test (OpenSHMEM 1.6, Point-To-Point Synchronization Routines). */
enum shmem_cmp { SHMEM_CMP_EQ = 0, SHMEM_CMP_NE = 1, SHMEM_CMP_GT = 2, SHMEM_CMP_GE = 3, SHMEM_CMP_LT = 4, SHMEM_CMP_LE = 5 };

/* Signal operators (OpenSHMEM 1.6, Signaling Operations). A signal is atomic to signals of the same operator only: SET and ADD on one
 * signal word at the same time are excluded, as they are by the standard. */
enum shmem_signal_operator { SHMEM_SIGNAL_SET = 0, SHMEM_SIGNAL_ADD = 1 };

/* A type that takes no part in template argument deduction: shmem_atomic_add(counter64, 1, pe) adds a 64-bit 1. */
template <typename T>
struct shmem_identity {
  using type = T;
};
template <typename T>
using shmem_same = typename shmem_identity<T>::type;

/* --- Context ------------------------------------------------------------------------------------------------------------------ */

struct shmem_options {
  uint32_t engine = SHMEM_ENGINE_AUTO; /* SHMEM_ENGINE_*; AUTO: what the context says */
  uint32_t ub_offset = SHMEM_UB_SIZE - SHMEM_UB_DEFAULT; /* bytes, multiple of 32 */
  uint32_t ub_bytes = SHMEM_UB_DEFAULT; /* at least 1 KiB + 2 KiB x min(8, n_pes); a larger range makes larger copy tiles */
  int32_t event0 = 4; /* two event ids, 0..7, different */
  int32_t event1 = 5;
};

/* Holds the context for this core. Its end rings what is staged, saves the counters and gives the context up. It waits for MTE3, not for
 * completions: requests still under way are covered by the host's quiet, or by the first quiet of the next kernel. */
class shmem_guard {
 public:
  __aicore__ inline shmem_guard(GM_ADDR ctx, const shmem_options& options);
  __aicore__ inline ~shmem_guard();
  shmem_guard(const shmem_guard&) = delete;
  shmem_guard& operator=(const shmem_guard&) = delete;
};

/* Takes the context for this core; the first call of every kernel on every communicating core. Keep the guard to the end.
 * What is no context of this header's version traps. Errors: SHMEM_E_CORE (more cores than the host made), _BUSY (another kernel holds it),
 * _SPACE (UB range), _USAGE (engine, event ids). An error that the host has not taken yet stays. */
__aicore__ inline shmem_guard shmem_attach(GM_ADDR ctx, const shmem_options& options = shmem_options());

/* OpenSHMEM 1.6, Library Setup, Exit, and Query Routines. Valid while attached; no communication. */
__aicore__ inline int shmem_my_pe();
__aicore__ inline int shmem_n_pes();
/* This core among the communicating cores of the launch, and how many they are. */
__aicore__ inline int shmem_my_core();
__aicore__ inline int shmem_n_cores();
/* First error of this core (enum shmem_code), SHMEM_OK if none. */
__aicore__ inline uint32_t shmem_error();
/* The peer's copy as mapped here, for the kernel's own copies; null when it is not mapped, out of range, or after an error (shmem_ptr). */
__aicore__ inline __gm__ void* shmem_ptr(const __gm__ void* sym, int pe);
/* Engine of later calls of this core (SHMEM_ENGINE_*); returns the one before. Order between engines is fence's and quiet's matter. */
__aicore__ inline uint32_t shmem_set_engine(uint32_t engine);

/* --- Remote memory access (OpenSHMEM 1.6, Remote Memory Access Routines) ------------------------------------------------------- */

/* n elements from src to dst on pe. Returns when src may be changed. n = 0 does nothing. Transfers above the NIC's limit are split.
 * Errors: SHMEM_E_SOURCE (roce, src in no registered memory). */
template <typename T>
__aicore__ inline void shmem_put(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe);
/* The same; src may be changed after flush or quiet. */
template <typename T>
__aicore__ inline void shmem_put_nbi(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe);
/* n elements from src on pe to dst. Returns when they are there. Errors: SHMEM_E_SOURCE (roce, dst in no registered memory). */
template <typename T>
__aicore__ inline void shmem_get(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe);
/* The same; dst is there after quiet, or after shmem_wait on its ticket. */
template <typename T>
__aicore__ inline void shmem_get_nbi(__gm__ T* dst, const __gm__ T* src, uint64_t n, int pe);

/* From UB, and to UB: one copy less by mapped; by roce the data passes a registered bounce ring (a get_nbi waits there). UB addresses are
 * 32-byte aligned; a get writes whole 32-byte blocks of UB. */
template <typename T>
__aicore__ inline void shmem_put(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_put_nbi(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_get(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_get_nbi(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, uint64_t n, int pe);

/* Bytes. */
__aicore__ inline void shmem_putmem(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe);
__aicore__ inline void shmem_putmem_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe);
__aicore__ inline void shmem_getmem(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe);
__aicore__ inline void shmem_getmem_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, int pe);

/* n blocks of `block` elements (1 for iput and iget), whose starts lie dst_stride and src_stride elements apart; strides are at least
 * `block`. Complete as put and get. Mapped, a call moves many blocks at once; by roce each block is a request of its own, all rung together.
 * Errors: SHMEM_E_USAGE (strides), _SOURCE. */
template <typename T>
__aicore__ inline void shmem_iput(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_iget(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_ibput(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t block, uint64_t n,
                                   int pe);
template <typename T>
__aicore__ inline void shmem_ibget(__gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride, uint64_t block, uint64_t n,
                                   int pe);

/* One value of 1, 2, 4 or 8 bytes, aligned; exactly its bytes are written, so neighbours in its line are safe. p rings at once.
 * Errors: SHMEM_E_ALIGN. */
template <typename T>
__aicore__ inline void shmem_p(__gm__ T* dst, T value, int pe);
template <typename T>
__aicore__ inline T shmem_g(const __gm__ T* src, int pe);

/* From UB and to UB. Strides count in UB as they do in GM. Blocks that begin at multiples of 32 bytes of UB are copies of their own; all others go
 * element by element, as p and g do, so elements are at most 8 bytes there (SHMEM_E_USAGE). */
template <typename T>
__aicore__ inline void shmem_ibput(__gm__ T* dst, const AscendC::LocalTensor<T>& src, int64_t dst_stride, int64_t src_stride, uint64_t block,
                                   uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_ibget(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride,
                                   uint64_t block, uint64_t n, int pe);
template <typename T>
__aicore__ inline void shmem_iput(__gm__ T* dst, const AscendC::LocalTensor<T>& src, int64_t dst_stride, int64_t src_stride, uint64_t n,
                                  int pe);
template <typename T>
__aicore__ inline void shmem_iget(const AscendC::LocalTensor<T>& dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride,
                                  uint64_t n, int pe);

/* --- Memory outside the heap (ours) ---------------------------------------------------------------------------------------------- */

/* Buffers that the host registered (World::register_buffer) are sources and destinations of this PE's own transfers by either engine.
 * A window (World::open_window) is memory that every PE registered, with one size: it is addressed like the heap, and every call takes the
 * address in the caller's own part as symmetric. Bounds are those of the window. shmem_window gives that address for a byte offset; the calls
 * below take (window, offset in bytes). T is given: shmem_window_put<float>(window, offset, src, n, pe). Errors: SHMEM_E_WINDOW.
 *   shmem_window_put, put_nbi, put_signal, put_signal_nbi   (window, offset, src, n, ...)     src, dst: GM, or LocalTensor
 *   shmem_window_get, get_nbi                               (dst, window, offset, n, pe) */
typedef int32_t shmem_window_t;
__aicore__ inline __gm__ void* shmem_window(shmem_window_t window, uint64_t offset);

/* --- Signals (OpenSHMEM 1.6, Signaling Operations) ------------------------------------------------------------------------------ */

/* A put whose data is visible before the signal changes. It says nothing of other puts: a fence does. n = 0 still signals. The data
 * travels by the engine that carries the signal: the context's for SET, the atomic domain's for ADD. sig is 8 bytes, aligned.
 * The nbi form may still wait for data to leave the core (mapped). Errors: SHMEM_E_SOURCE, _ALIGN, _USAGE (op), _ATOMICS (ADD). */
template <typename T>
__aicore__ inline void shmem_put_signal(__gm__ T* dst, const __gm__ T* src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op,
                                        int pe);
template <typename T>
__aicore__ inline void shmem_put_signal_nbi(__gm__ T* dst, const __gm__ T* src, uint64_t n, __gm__ uint64_t* sig, uint64_t value, int op,
                                            int pe);
template <typename T>
__aicore__ inline void shmem_put_signal(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig,
                                        uint64_t value, int op, int pe);
template <typename T>
__aicore__ inline void shmem_put_signal_nbi(__gm__ T* dst, const AscendC::LocalTensor<T>& src, uint64_t n, __gm__ uint64_t* sig,
                                            uint64_t value, int op, int pe);
__aicore__ inline void shmem_putmem_signal(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, __gm__ uint64_t* sig, uint64_t value,
                                           int op, int pe);
__aicore__ inline void shmem_putmem_signal_nbi(__gm__ void* dst, const __gm__ void* src, uint64_t bytes, __gm__ uint64_t* sig,
                                               uint64_t value, int op, int pe);

/* A signal alone, rung at once; unordered with earlier calls unless a fence stands between. */
__aicore__ inline void shmem_signal_op(__gm__ uint64_t* sig, uint64_t value, int op, int pe);
__aicore__ inline void shmem_signal_set(__gm__ uint64_t* sig, uint64_t value, int pe);
__aicore__ inline void shmem_signal_add(__gm__ uint64_t* sig, uint64_t value, int pe);
/* The caller's own signal word now. */
__aicore__ inline uint64_t shmem_signal_fetch(const __gm__ uint64_t* sig);
/* Waits for it, and returns the value that ended the wait; 0 after an error. Rings what is staged first. */
__aicore__ inline uint64_t shmem_signal_wait_until(const __gm__ uint64_t* sig, int cmp, uint64_t value);

/* --- Waiting (OpenSHMEM 1.6, Point-To-Point Synchronization Routines) ------------------------------------------------------------ */

/* Waits until the caller's own copy of ivar (32- or 64-bit integer) compares so with value; test looks once, and returns 1 after an error
 * (such as the host's abort) so that loops end. What was put and fenced before the change is then visible to MTE copies and uncached loads.
 * Errors: SHMEM_E_ALIGN, _USAGE (cmp). */
template <typename T>
__aicore__ inline void shmem_wait_until(const __gm__ T* ivar, int cmp, shmem_same<T> value);
template <typename T>
__aicore__ inline int shmem_test(const __gm__ T* ivar, int cmp, shmem_same<T> value);

/* The same on n variables. Those whose status is not 0 take no part; `status` may be nullptr. all: until each one holds in one look; any:
 * until one does, returns its index, SHMEM_NONE when none takes part; some: until at least one does, fills `indices` with those that do and
 * returns how many. test looks once: all 1 or 0, any an index or SHMEM_NONE, some a number. _vector takes a list of values, one each.
 * status (int32_t), indices (uint64_t) and values (T) are lists in GM, in UB (LocalTensor) or in the kernel's own storage. One time limit
 * covers the whole wait. After an error: 1 (all), SHMEM_NONE (any), 0 (some).
 *   wait_until_all, wait_until_any  (ivars, n, status, cmp, value)             wait_until_some  (ivars, n, indices, status, cmp, value)
 *   wait_until_all_vector, ...      (ivars, n, status, cmp, values)            wait_until_some_vector (ivars, n, indices, status, cmp, values)
 *   test_all, test_any, test_some, and _vector: as these */
#define SHMEM_NONE (~uint64_t(0)) /* no index: the standard's SIZE_MAX */
template <typename T, typename Status>
__aicore__ inline void shmem_wait_until_all(const __gm__ T* ivars, uint64_t n, Status status, int cmp, shmem_same<T> value);
template <typename T, typename Status>
__aicore__ inline uint64_t shmem_wait_until_any(const __gm__ T* ivars, uint64_t n, Status status, int cmp, shmem_same<T> value);
template <typename T, typename Indices, typename Status>
__aicore__ inline uint64_t shmem_wait_until_some(const __gm__ T* ivars, uint64_t n, Indices indices, Status status, int cmp,
                                                 shmem_same<T> value);

/* --- Atomics (OpenSHMEM 1.6, Atomic Memory Operations) ---------------------------------------------------------------------------- */

/* 32- and 64-bit integers, and float. Atomic to all atomics and ADD signals of the job on the same word, from any PE, by any engine: the job's
 * atomic domain executes them (types.h). Plain writes to any part of the 8-byte word meanwhile are excluded: in the NIC domain a 32-bit
 * atomic rewrites its neighbour with the value it read. Non-fetching ones are rung at once and complete at the next quiet; where they are
 * compare-and-swap loops, before they return. Errors: SHMEM_E_ALIGN, _ATOMICS. */
template <typename T>
__aicore__ inline T shmem_atomic_fetch(const __gm__ T* src, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_set(__gm__ T* dst, shmem_same<T> value, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_add(__gm__ T* dst, shmem_same<T> value, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_inc(__gm__ T* dst, int pe);
template <typename T>
__aicore__ inline T shmem_atomic_fetch_add(__gm__ T* dst, shmem_same<T> value, int pe);
template <typename T>
__aicore__ inline T shmem_atomic_fetch_inc(__gm__ T* dst, int pe);
template <typename T>
__aicore__ inline T shmem_atomic_swap(__gm__ T* dst, shmem_same<T> value, int pe);
template <typename T>
__aicore__ inline T shmem_atomic_compare_swap(__gm__ T* dst, shmem_same<T> cond, shmem_same<T> value, int pe);
/* and, or, xor for integers; min and max (ours) for all types, in these three forms each:
 *   shmem_atomic_and(dst, value, pe)   T shmem_atomic_fetch_and(dst, value, pe)   shmem_atomic_fetch_and_nbi(fetch, dst, value, pe)
 * On float, add, min and max are ours, and compare_swap compares bits. Float adds are exact only as float is: the order of adds counts. */
/* Fetching without waiting: *fetch (own GM) holds the old value after quiet. One request, staged, where the NIC has the operation (fetch,
 * fetch_add, fetch_inc, compare_swap of 64 bits, and fetch in the heap); all others are done when the call returns. */
template <typename T>
__aicore__ inline void shmem_atomic_fetch_nbi(__gm__ T* fetch, const __gm__ T* src, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_fetch_add_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> value, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_fetch_inc_nbi(__gm__ T* fetch, __gm__ T* dst, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_swap_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> value, int pe);
template <typename T>
__aicore__ inline void shmem_atomic_compare_swap_nbi(__gm__ T* fetch, __gm__ T* dst, shmem_same<T> cond, shmem_same<T> value, int pe);

/* --- Order and completion (OpenSHMEM 1.6, Memory Ordering Routines) ----------------------------------------------------------------- */

/* Puts, atomics and signals of this core before it reach each PE before those after it. By roce it also orders earlier get_nbi before later
 * puts. It polls nothing; changing from roce to mapped toward a PE waits at the first mapped access. */
__aicore__ inline void shmem_fence();
__aicore__ inline void shmem_fence_pe(int pe);
/* All earlier calls of this core are done and visible; toward one PE for shmem_pe_quiet. */
__aicore__ inline void shmem_quiet();
__aicore__ inline void shmem_pe_quiet(int pe);
/* Sources of all earlier puts of this core may be changed. */
__aicore__ inline void shmem_flush();
/* Rings what is staged, and waits for nothing. */
__aicore__ inline void shmem_commit();

/* A place in this core's requests toward one PE, for pipelining: take one after a group of nbi calls, start the next group, then wait for
 * the first alone. Valid until the guard ends. */
struct shmem_ticket {
  uint64_t index; /* request counter of the queue pair; 0: none used */
  int pe;         /* of the job */
  int32_t ctx;    /* the context's handle */
};
/* Everything requested toward pe so far. */
__aicore__ inline shmem_ticket shmem_last(int pe);
/* Whether that is complete (gets: the data is there). Rings what is staged, waits for this core's own copies. True after an error, one of
 * which is that it said no for longer than the time limit, so that loops end. */
__aicore__ inline bool shmem_done(shmem_ticket ticket);
__aicore__ inline void shmem_wait(shmem_ticket ticket);

/* --- Meeting (OpenSHMEM 1.6, Collective Routines: barrier, sync) -------------------------------------------------------------------- */

/* All PEs, all communicating cores of each launch. Before it every call of every core is done and visible (each core quiets its own), the
 * data cache of each core is written back and emptied. Works without atomics. */
__aicore__ inline void shmem_barrier_all();
/* Meets only: nothing is completed, what is staged is rung. */
__aicore__ inline void shmem_sync_all();
/* This core meets the same core of one other PE. Completes nothing: quiet before it where that matters. */
__aicore__ inline void shmem_sync_pe(int pe);

/* Contexts: every call here that takes a PE, with a context of the kernel's choice, in shmem_contexts.h.
 * Teams, their barrier and sync, and the collectives that move or reduce data are in shmem_collectives.h, which this file includes. */

/* --- Typed names ---------------------------------------------------------------------------------------------------------------------
 * shmem_TYPE_put, get, put_nbi, get_nbi, put_signal, put_signal_nbi,
 *            iput, iget, ibput, ibget                                   all rows of types.h
 * shmem_TYPE_p, g                                                       types passed by value
 * shmem_TYPE_wait_until, test, their _all _any _some and _vector        32- and 64-bit integers
 * shmem_TYPE_atomic_*                                                   the same, and float; and, or, xor: the standard's bitwise types
 * shmem_put8 ... shmem_put128, and get, nbi, signal, iput, ibput, ...   sizes in bits
 * They forward to the templates above; impl/typed.h makes them. */

#include "shmem_collectives.h"
#include "shmem_contexts.h"

#include "impl/attach.h"
#include "impl/typed.h"
#include "impl/contexts.h"
#include "impl/window.h"

#endif
