/* Kernels for the emulator's own tests, written against npusim.h alone: no AscendC headers, so that a fault here is the emulator's. */
#include <setjmp.h>
#include <string.h>
#include <unistd.h>
#include "npusim.h"

#ifndef ARCH
#define ARCH 2201
#endif

static const struct npusim_services *services;
static _Thread_local jmp_buf entry;

static void leave(struct npusim_block *block) {
  (void)block;
  longjmp(entry, 1);
}

static void poll(struct npusim_block *block) {
  services->yield(block);
  if (*block->stop) {
    block->fault.code = NPUSIM_FAULT_STOPPED;
    leave(block);
  }
}

static void rule(struct npusim_block *block, uint32_t line, const char *text) {
  block->fault.code = NPUSIM_FAULT_RULE;
  block->fault.file = "kernels.c";
  block->fault.line = line;
  strncpy(block->fault.message, text, NPUSIM_MESSAGE - 1);
  leave(block);
}

#define KERNEL(name)                                                    \
  static void body_##name(struct npusim_block *block, const void *args); \
  static int run_##name(struct npusim_block *block, const void *args) { \
    if (setjmp(entry) == 0) body_##name(block, args);                   \
    return block->fault.code;                                           \
  }                                                                     \
  static void body_##name(struct npusim_block *block, const void *args)

KERNEL(empty) { (void)block, (void)args; }

struct fill_args { volatile uint64_t *out; uint32_t add; uint64_t value; };
KERNEL(fill) {
  const struct fill_args *a = args;
  a->out[block->block_idx] = a->value + a->add + (uint64_t)block->block_idx;
  block->counters.device_stores += 1;
}

struct pointer_args { volatile uint64_t *at; };
KERNEL(touch) { ((const struct pointer_args *)args)->at[0] = 1; }

KERNEL(trap) {
  (void)args;
  block->fault.code = NPUSIM_FAULT_TRAP;
  leave(block);
}

KERNEL(broken_rule) {
  (void)args;
  rule(block, __LINE__, "a UB address that is not aligned to 32 bytes");
}

KERNEL(forever) {
  (void)args;
  for (;;) poll(block);
}

KERNEL(deaf) {
  volatile uint64_t *at = ((const struct pointer_args *)args)->at;
  (void)block;
  for (;;) *at += 1;
}

/* Never ends, and is never in its own code when somebody looks. */
KERNEL(asleep) {
  (void)block, (void)args;
  for (;;) pause();
}

static __attribute__((noinline)) int deeper(volatile char *above, int depth) {
  volatile char here[4096];
  here[0] = above[0] + 1;
  here[4095] = (char)depth;
  return deeper(here, depth + 1) + here[0];
}
KERNEL(recursion) {
  volatile char first[16] = {0};
  (void)args;
  block->counters.vector_ops = (uint64_t)deeper(first, 0);
}

struct divide_args { volatile int32_t *out; int32_t by; };
KERNEL(divide) {
  const struct divide_args *a = args;
  (void)block;
  *a->out = 100 / a->by;
}

/* Every block waits until all have been here. */
KERNEL(everybody) {
  uint64_t *count = (uint64_t *)((const struct pointer_args *)args)->at;
  __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < (uint64_t)block->block_num) poll(block);
}

struct meet_args { volatile uint64_t *slots; uint32_t rounds; };
KERNEL(meet) {
  const struct meet_args *a = args;
  for (uint32_t round = 1; round <= a->rounds; round++) {
    a->slots[block->block_idx] = round;
    if (services->sync_all(block)) leave(block);
    for (int64_t i = 0; i < block->block_num; i++)
      if (a->slots[i] != round) rule(block, __LINE__, "a block passed SyncAll before another one came");
    if (services->sync_all(block)) leave(block);
  }
}

KERNEL(some_meet) {
  (void)args;
  if (block->block_idx != 0 && services->sync_all(block)) leave(block);
}

struct ub_args { volatile uint64_t *out; };
KERNEL(ub) {
  const struct ub_args *a = args;
  a->out[0] = block->ub_size;
  uint64_t foreign = 0;
  for (uint64_t i = 0; i < block->ub_size; i++) foreign += block->ub[i] != 0xcd;
  a->out[1] = foreign;
  memset(block->ub, 0x11, block->ub_size);
  block->counters.mte2_copies = 1;
}
KERNEL(ub_overrun) {
  (void)args;
  block->ub[block->ub_size] = 1;
}

KERNEL(bell) {
  const struct pointer_args *a = args;
  uint64_t at = a->at ? (uint64_t)a->at : block->doorbell_begin + 0x230;
  if (services->doorbell(block, at, 7)) leave(block);
}
KERNEL(raw_bell) {
  (void)args;
  *(volatile uint64_t *)block->doorbell_begin = 7;
}

struct clock_args { volatile uint64_t *out; };
KERNEL(clock) {
  const struct clock_args *a = args;
  (void)block;
  a->out[0] = services->system_cycle(block);
  a->out[1] = block->chaos_seed;
}

KERNEL(hello) {
  static const char text[] = "hello from a block\n";
  (void)args;
  services->print(block, text, sizeof text - 1);
}

#define POINTER 8
static const uint32_t fill_params[] = {POINTER, 4, 8};
static const uint32_t pointer_params[] = {POINTER};
static const uint32_t pointer_u32_params[] = {POINTER, 4};
static const struct npusim_kernel kernels[] = {
    {"empty", 0, 0, 0, run_empty},
    {"fill", 3, sizeof(struct fill_args), fill_params, run_fill},
    {"touch", 1, 8, pointer_params, run_touch},
    {"trap", 0, 0, 0, run_trap},
    {"broken_rule", 0, 0, 0, run_broken_rule},
    {"forever", 0, 0, 0, run_forever},
    {"deaf", 1, 8, pointer_params, run_deaf},
    {"asleep", 0, 0, 0, run_asleep},
    {"recursion", 0, 0, 0, run_recursion},
    {"divide", 2, 12, pointer_u32_params, run_divide},
    {"everybody", 1, 8, pointer_params, run_everybody},
    {"meet", 2, 12, pointer_u32_params, run_meet},
    {"some_meet", 0, 0, 0, run_some_meet},
    {"ub", 1, 8, pointer_params, run_ub},
    {"ub_overrun", 0, 0, 0, run_ub_overrun},
    {"bell", 1, 8, pointer_params, run_bell},
    {"raw_bell", 0, 0, 0, run_raw_bell},
    {"clock", 1, 8, pointer_params, run_clock},
    {"hello", 0, 0, 0, run_hello},
};

int npusim_bind(const struct npusim_services *given, struct npusim_module *module) {
  if (given->magic != NPUSIM_MAGIC || given->version != NPUSIM_VERSION || given->size != sizeof *given) return 1;
  if (module->size != sizeof *module) return 2;
  services = given;
  module->magic = NPUSIM_MAGIC;
  module->version = NPUSIM_VERSION;
  module->npu_arch = ARCH;
  module->n_kernels = sizeof kernels / sizeof kernels[0];
  module->kernels = kernels;
  module->leave = leave;
  return 0;
}
