// Who and when: block indices, the system counter; printing, asserting, giving up.
#ifndef NPUSIM_SYSTEM_H
#define NPUSIM_SYSTEM_H

#include "runtime.h"

namespace npusim {

__attribute__((noinline)) inline void print(const char *format, va_list arguments) {
  State &s = state();
  int length = __builtin_vsnprintf(s.text, sizeof(s.text), format, arguments);
  if (length < 0) return;
  if (static_cast<uint64_t>(length) >= sizeof(s.text)) length = static_cast<int>(sizeof(s.text)) - 1;
  services->print(s.block, s.text, static_cast<uint64_t>(length));
}

// An assertion's message, with or without a format of its own.
__attribute__((noinline, cold, format(printf, 2, 3))) inline void note(Site, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
}
__attribute__((noinline, cold)) inline void note(Site) {}

[[noreturn]] __attribute__((noinline, cold)) inline void assertion(const char *text, Site site) {
  fail(NPUSIM_FAULT_TRAP, site, "assertion failed: %s", text);
}

}  // namespace npusim

__aicore__ inline int64_t get_block_idx() { return npusim::state().block->block_idx; }
__aicore__ inline int64_t get_block_num() { return npusim::state().block->block_num; }
__aicore__ inline int64_t get_subblockid() { return 0; }
__aicore__ inline int64_t get_subblockdim() { return 1; }
[[noreturn]] __aicore__ inline void trap(NPUSIM_SITE) { npusim::fail(NPUSIM_FAULT_TRAP, site, "the kernel called trap()"); }

// Stops the kernel when the condition does not hold; what follows the condition is printed first, as printf would.
#define ASCENDC_ASSERT(condition, ...)                                            \
  do {                                                                            \
    if (!(condition)) {                                                           \
      ::npusim::note(::npusim::Site::here() __VA_OPT__(, ) __VA_ARGS__);          \
      ::npusim::assertion(#condition, ::npusim::Site::here());                    \
    }                                                                             \
  } while (0)
#define ascendc_assert ASCENDC_ASSERT

namespace AscendC {

__aicore__ inline int64_t GetBlockIdx() { return get_block_idx(); }
__aicore__ inline int64_t GetBlockNum() { return get_block_num(); }
__aicore__ inline int64_t GetSubBlockIdx() { return get_subblockid(); }
__aicore__ inline int64_t GetSubBlockNum() { return get_subblockdim(); }
__aicore__ inline int64_t GetTaskRatio() { return 1; }
__aicore__ inline int64_t GetTaskRation() { return GetTaskRatio(); }

// 50 MHz on A2 and A3, 1 GHz on 950.
__aicore__ inline int64_t GetSystemCycle(NPUSIM_SITE) {
  npusim::poll(site);
  return static_cast<int64_t>(npusim::services->system_cycle(npusim::current->block));
}

[[noreturn]] __aicore__ inline void Trap(NPUSIM_SITE) { ::trap(site); }

__attribute__((format(printf, 1, 2))) __aicore__ inline void printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  npusim::print(format, arguments);
  va_end(arguments);
}
__attribute__((format(printf, 1, 2))) __aicore__ inline void PRINTF(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  npusim::print(format, arguments);
  va_end(arguments);
}
__aicore__ inline void InitDump(bool, GM_ADDR, uint32_t) {}

}  // namespace AscendC

#endif
