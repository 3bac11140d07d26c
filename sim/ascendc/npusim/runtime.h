// The running block as the kernel side sees it: its state, how it faults and leaves, how it polls.
//
// Nothing here is part of AscendC; kernels do not call it (device/impl/port.h may call npusim::reserve). A fault never unwinds: it fills
// block->fault and jumps to the trampoline (kernel.h), because exceptions must not cross into the emulator's Rust frames.
#ifndef NPUSIM_RUNTIME_H
#define NPUSIM_RUNTIME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../npusim.h"
#include "types.h"

namespace npusim {

// Where a kernel called an operation. It is the trailing default argument of every public function here, so that messages name the
// kernel's line instead of this header's.
struct Site {
  const char *file;
  uint32_t line;
  static constexpr Site here(const char *file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return Site{file[0] == '.' && file[1] == '/' ? file + 2 : file, line};  // clang names the -include'd source ./path
  }
};
#define NPUSIM_SITE ::npusim::Site site = ::npusim::Site::here()

constexpr uint32_t N_PIPES = 11;       // values of pipe_t
constexpr uint32_t N_EVENTS = 8;       // event ids a pair of pipes
constexpr uint32_t LINE = 64;          // bytes of a data cache line
constexpr uint32_t CACHE_SETS = 128;   // 128 sets x 4 ways x 64 bytes = 32 KiB
constexpr uint32_t CACHE_WAYS = 4;
constexpr uint32_t MTE3_QUEUE = 32;    // UB -> GM copies that may be outstanding when copies are late
constexpr uint32_t POLLS_A_YIELD = 32; // looks at memory without other work before the processor is given away
constexpr uint32_t LOOKED_LOG2 = 6;    // addresses remembered, to tell waiting from reading through memory
constexpr uint32_t STEPS_A_YIELD = 1024; // other operations without work (copies in, flags) before the same
constexpr uint32_t WORKS_A_LOOK = 1024; // operations that are work before the stop word is looked at
constexpr uint64_t PAGE = 4096;        // bytes at address 0 that no pointer may point into

// What MTE3 does with the words that it writes: copy, or read-modify-write (SetAtomicAdd and its kin).
enum class AtomicOp : uint8_t { NONE, ADD, MAX, MIN };
enum class AtomicType : uint8_t { NONE, I8, I16, I32, F16, BF16, F32 };

// One UB -> GM copy: `count` blocks of `bytes`, at distances of `*_step` bytes.
struct Mte3Copy {
  const uint8_t *source;
  uint64_t target;
  uint64_t source_step, target_step;
  uint32_t count, bytes;
  AtomicOp op;
  AtomicType type;
  Site site;
};

// One line of the scalar unit's data cache. valid and dirty of all lines are apart (State), so that a sweep is short.
struct Cache {
  uint64_t tag[CACHE_SETS][CACHE_WAYS]; // line address; meaningful where valid
  uint8_t valid[CACHE_SETS];            // bit a way
  uint8_t dirty[CACHE_SETS];
  uint8_t next[CACHE_SETS];             // way that is replaced next
  uint32_t lines;                       // valid lines in all
  alignas(LINE) uint8_t data[CACHE_SETS][CACHE_WAYS][LINE];
};

struct State {
  npusim_block *block;
  uint8_t *ub;
  uint64_t ub_size;
  uint32_t polls; // looks since the last work
  uint32_t steps; // other operations since the last work
  uint32_t works; // work since the last look at the stop word
  uint64_t looked[1 << LOOKED_LOG2]; // addresses looked at a short while ago, each in the place of its hash
  uint64_t random; // generator of late copies; unused when copies are not late
  bool late;
  bool timed; // the time model is told of every step
  AtomicOp atomic_op;
  AtomicType atomic_type;
  Site atomic_site;
  // Flags: bit an event id, for each pair of pipes; where each was set; for MTE3, how many copies were queued before it.
  uint8_t flags[N_PIPES][N_PIPES];
  uint8_t event_taken[N_PIPES][N_PIPES]; // AllocEventID
  uint64_t pipe_end;                     // UB bytes that TPipe has given out
  Site flag_site[N_PIPES][N_PIPES][N_EVENTS];
  uint64_t flag_copies[N_PIPES][N_EVENTS];
  // Late copies: [done, queued) are outstanding.
  uint64_t queued, done;
  Mte3Copy queue[MTE3_QUEUE];
  // UB bytes and event ids that a library claims for itself (reserve).
  uint64_t claimed_begin, claimed_end;
  uint32_t claimed_events; // bit an event id
  Site claimed_site;
  const char *claimed_file; // another file that was found to be the library's
  uint64_t mov_pad; // set_mov_pad_val
  sigjmp_buf env;
  char text[1024]; // printf's, too large for a core's stack
  Cache cache;
};

// On every operation's path: inlined, so that the state is looked up once a caller; the slow ends are functions of their own.
#define NPUSIM_HOT inline __attribute__((always_inline))
#define NPUSIM_COLD __attribute__((noinline, cold)) inline

inline const npusim_services *services = nullptr;
inline thread_local State *current = nullptr;

NPUSIM_HOT State &state() { return *current; }
NPUSIM_HOT npusim_counters &counters() { return current->block->counters; }

// Orders everything before it against everything after it, for all observers.
inline void full_fence() {
#if defined(__x86_64__)
  __asm__ volatile("lock; orl $0, (%%rsp)" ::: "memory", "cc");  // what mfence does for ordinary memory, in a third of the time
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// --- Leaving ---------------------------------------------------------------------------------------------------------------------------

[[noreturn]] inline void leave(npusim_block *block) {
  State *s = static_cast<State *>(block->kernel_side);
  if (s == nullptr) __builtin_trap();  // not running: the emulator broke the contract
  siglongjmp(s->env, 1);
}

[[noreturn]] __attribute__((noinline, cold)) inline void fault_at(int32_t code, Site site, uint64_t address, const char *format,
                                                                  va_list arguments) {
  npusim_fault &fault = current->block->fault;
  fault.code = code;
  fault.file = site.file;
  fault.line = site.line;
  fault.address = address;
  __builtin_vsnprintf(fault.message, sizeof(fault.message), format, arguments);
  leave(current->block);
}

// A rule of AscendC was broken: the sentence says which one, and the fix.
[[noreturn]] __attribute__((noinline, cold, format(printf, 2, 3))) inline void broken(Site site, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fault_at(NPUSIM_FAULT_RULE, site, 0, format, arguments);
}

[[noreturn]] __attribute__((noinline, cold, format(printf, 3, 4))) inline void fail(int32_t code, Site site, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fault_at(code, site, 0, format, arguments);
}

[[noreturn]] __attribute__((noinline, cold)) inline void stopped(Site site) {
  fail(NPUSIM_FAULT_STOPPED, site, "the block was asked to stop while it was here");
}

// Tells the time model, if there is one.
NPUSIM_HOT void timed(uint32_t step, uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  State &s = state();
  if (__builtin_expect(s.timed, 0)) services->time(s.block, step, a, b, c);
}

// --- Work and polling ------------------------------------------------------------------------------------------------------------------

void late_copies(State &s);  // copy.h: lets the generator finish some outstanding copies

NPUSIM_COLD void look(State &s, Site site) {
  if (s.block->stop != nullptr && *s.block->stop != 0) stopped(site);
}

// Gives the processor away, and leaves when the emulator wants that.
NPUSIM_COLD void rest(State &s, Site site) {
  s.polls = 0;
  s.steps = 0;
  look(s, site);
  services->yield(s.block);
  look(s, site);
}

// Every operation is one of step, work and poll, so that a loop of any operations sees the stop word in the end.

// An operation that may be part of waiting: a copy in, a flag, a cached load.
NPUSIM_HOT void step(Site site) {
  State &s = state();
  if (__builtin_expect(s.late, 0)) late_copies(s);
  if (__builtin_expect(++s.steps >= STEPS_A_YIELD, 0)) rest(s, site);
}

// An operation that moves the kernel on: it is not waiting, and keeps the processor.
NPUSIM_HOT void work(Site site) {
  State &s = state();
  s.polls = 0;
  s.steps = 0;
  if (__builtin_expect(s.late, 0)) late_copies(s);
  if (__builtin_expect(++s.works >= WORKS_A_LOOK, 0)) {
    s.works = 0;
    look(s, site);
  }
}

// An operation that only looks. A block that only looks gives the processor away, since whom it waits for may need it.
NPUSIM_HOT void poll(Site site) {
  State &s = state();
  if (__builtin_expect(s.late, 0)) late_copies(s);
  if (__builtin_expect(++s.polls >= POLLS_A_YIELD, 0)) rest(s, site);
}

// A look at an address: polling when it is not the first, else part of reading through memory, which keeps the processor.
NPUSIM_HOT void poll_at(uint64_t address, Site site) {
  uint64_t &looked = state().looked[(address * 0x9E3779B97F4A7C15ull) >> (64 - LOOKED_LOG2)];
  if (__builtin_expect(looked == address, 1)) {
    poll(site);
  } else {
    looked = address;
    step(site);
  }
}

// --- Addresses -------------------------------------------------------------------------------------------------------------------------

NPUSIM_HOT bool in_doorbell(uint64_t address, uint64_t bytes) {
  const npusim_block *b = current->block;
  return address < b->doorbell_end && address + bytes > b->doorbell_begin;
}

// A global-memory address that an operation is about to use.
NPUSIM_HOT void check_gm(uint64_t address, uint64_t bytes, const char *operation, Site site) {
  const State &s = state();
  if (__builtin_expect(address < PAGE, 0))
    broken(site, "%s: global-memory address 0x%llx is null; the buffer was not set, or its host address was never passed", operation,
           (unsigned long long)address);
  const uint64_t ub = reinterpret_cast<uint64_t>(s.ub);
  if (__builtin_expect(address < ub + s.ub_size && address + bytes > ub, 0))
    broken(site, "%s: address 0x%llx is in the unified buffer; a global-memory address is needed", operation, (unsigned long long)address);
}

inline const char *folder_end(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != nullptr ? slash : path;
}

// Two files of one folder belong to one library.
__attribute__((noinline)) inline bool same_folder(const char *a, const char *b) {
  if (a == b) return true;
  const uint64_t n = static_cast<uint64_t>(folder_end(a) - a);
  return n == static_cast<uint64_t>(folder_end(b) - b) && memcmp(a, b, n) == 0;
}

// Whether a claim does not concern the caller: it is the library's own code.
NPUSIM_HOT bool claim_is_for(const char *file) {
  State &s = state();
  if (__builtin_expect(file == s.claimed_site.file || file == s.claimed_file, 1)) return true;
  if (!same_folder(file, s.claimed_site.file)) return false;
  s.claimed_file = file;
  return true;
}

// Claims UB bytes and event ids for the library whose code (files of the caller's folder) calls this; others' use of them is a fault.
// bytes 0 and events 0: gives the claim up.
inline void reserve(uint32_t ub_offset, uint32_t bytes, uint32_t event_bits, NPUSIM_SITE) {
  State &s = state();
  if (bytes != 0 && (uint64_t)ub_offset + bytes > s.ub_size)
    broken(site, "UB bytes [%u, %llu) claimed for a library end behind the unified buffer (%llu bytes)", ub_offset,
           (unsigned long long)ub_offset + bytes, (unsigned long long)s.ub_size);
  if (bytes != 0 && s.pipe_end > ub_offset)
    broken(site, "UB bytes [%u, %llu) claimed for a library are in use: TPipe has given out [0, %llu); give the library another range", ub_offset,
           (unsigned long long)ub_offset + bytes, (unsigned long long)s.pipe_end);
  s.claimed_begin = ub_offset;
  s.claimed_end = (uint64_t)ub_offset + bytes;
  s.claimed_events = event_bits;
  s.claimed_site = site;
  s.claimed_file = site.file;
}

[[noreturn]] __attribute__((noinline, cold)) inline void claimed(uint64_t offset, uint64_t bytes, const char *operation, Site site) {
  const State &s = state();
  broken(site, "%s: UB bytes [%llu, %llu) overlap [%llu, %llu), which %s:%u claimed for its library; move the kernel's buffers or give the library another range",
         operation, (unsigned long long)offset, (unsigned long long)(offset + bytes), (unsigned long long)s.claimed_begin,
         (unsigned long long)s.claimed_end, s.claimed_site.file, s.claimed_site.line);
}

// UB bytes that an operation is about to use: inside the buffer, aligned, not claimed by somebody else. Returns their host address.
NPUSIM_HOT uint8_t *check_ub(uint64_t offset, uint64_t bytes, uint32_t align, const char *operation, Site site) {
  const State &s = state();
  if (__builtin_expect(offset % align != 0, 0))
    broken(site, "%s: UB address %llu is not aligned to %u bytes; start the tensor at a multiple of %u", operation,
           (unsigned long long)offset, align, align);
  if (__builtin_expect(offset + bytes > s.ub_size, 0))
    broken(site, "%s: UB bytes [%llu, %llu) end behind the unified buffer (%llu bytes); use smaller tiles", operation,
           (unsigned long long)offset, (unsigned long long)(offset + bytes), (unsigned long long)s.ub_size);
  if (__builtin_expect(offset < s.claimed_end && offset + bytes > s.claimed_begin, 0))
    if (!claim_is_for(site.file)) claimed(offset, bytes, operation, site);
  return s.ub + offset;
}

// The UB offset of a __ubuf__ pointer. Kernels make such pointers from GetPhyAddr (a host address here) or, with raw intrinsics, from
// plain UB offsets; the unified buffer is never mapped that low, so both can be told apart.
NPUSIM_HOT uint64_t ub_offset(uint64_t address) {
  const State &s = state();
  return address < s.ub_size ? address : address - reinterpret_cast<uint64_t>(s.ub);
}

}  // namespace npusim

#endif
