/* The contract between a kernel object compiled for the emulated NPU and the emulator that loads it.
 *
 * A kernel object is a shared object without undefined symbols but libc's and libm's. It exports npusim_bind; the emulator calls it once
 * after loading. Everything the kernel side needs from the emulator comes as function pointers, because an executable exports no symbols to
 * an object that it opens. Plain C; the emulator reads it with bindgen.
 */
#ifndef NPUSIM_H
#define NPUSIM_H

#include <stdint.h>

#define NPUSIM_MAGIC 0x4d49534eu /* "NSIM" in memory order */
#define NPUSIM_VERSION 2u
#define NPUSIM_MESSAGE 480 /* bytes of a fault's sentence, NUL included */

/* What one block did. The kernel side counts; the emulator adds blocks up per launch. */
struct npusim_counters {
  uint64_t sq_doorbells, cq_doorbells;   /* counted by the emulator as it decodes them */
  uint64_t mte2_copies, mte2_bytes;      /* GM -> UB */
  uint64_t mte3_copies, mte3_bytes;      /* UB -> GM */
  uint64_t vector_ops;
  uint64_t flags_set, flags_waited, pipe_barriers;
  uint64_t dcci_lines, dcci_all;
  uint64_t device_loads, device_stores;  /* uncached scalar access to GM */
  uint64_t cached_loads, cached_stores;  /* scalar access to GM through the data cache */
  uint64_t core_atomics;
};

/* Why a block ended early. code 0: it did not. */
enum npusim_fault_code {
  NPUSIM_FAULT_NONE = 0,
  NPUSIM_FAULT_RULE = 1,    /* a rule of AscendC was broken; message says which, file and line where */
  NPUSIM_FAULT_MEMORY = 2,  /* a wild address (SIGSEGV, SIGBUS); address says which */
  NPUSIM_FAULT_TRAP = 3,    /* the kernel called trap() */
  NPUSIM_FAULT_STOPPED = 4  /* the emulator asked the block to leave */
};
struct npusim_fault {
  int32_t code;
  uint32_t line;
  const char *file;         /* static storage of the kernel object; may be NULL */
  uint64_t address;
  char message[NPUSIM_MESSAGE];
};

/* One running block (an AIV core). The emulator makes it; on the block's own thread both sides use it. */
struct npusim_block {
  uint32_t magic, version;
  uint64_t size;
  int64_t block_idx, block_num;
  uint8_t *ub;                       /* the unified buffer, guard pages around it */
  uint64_t ub_size;
  uint64_t doorbell_begin, doorbell_end; /* doorbell pages of this process: [begin, end) */
  uint64_t chaos_seed;               /* 0: MTE3 copies complete at once; else they may be late, by this seed */
  const volatile uint32_t *stop;     /* non-zero: leave as soon as you look (fault STOPPED) */
  uint64_t timed;                    /* 1: time is the model's; the kernel side tells every npusim_step to services->time */
  struct npusim_counters counters;
  struct npusim_fault fault;
  void *kernel_side;                 /* for the kernel side's own use; NULL at the start */
  void *emulator_side;               /* for the emulator's own use */
};

/* What the time model is told, in program order (sim/src/time). a, b and c are said at each. */
enum npusim_step {
  NPUSIM_STEP_LOAD = 1,     /* uncached load: address, bytes, what memory holds; answer: what the core sees at its time */
  NPUSIM_STEP_STORE = 2,    /* uncached store, about to happen: address, bytes */
  NPUSIM_STEP_COPY_IN = 3,  /* MTE2 copy: address, bytes of a block, blocks */
  NPUSIM_STEP_COPY_OUT = 4, /* MTE3 copy, about to happen: address, bytes of a block, blocks */
  NPUSIM_STEP_SET_FLAG = 5, /* from, to, id */
  NPUSIM_STEP_WAIT_FLAG = 6,
  NPUSIM_STEP_BARRIER = 7,  /* pipe */
  NPUSIM_STEP_STORES_DONE = 8 /* data barrier */
};

struct npusim_services {
  uint32_t magic, version;
  uint64_t size;
  /* An 8-byte store to a doorbell page. 0, or non-zero after the emulator has filled block->fault. */
  int (*doorbell)(struct npusim_block *block, uint64_t address, uint64_t value);
  /* The hard SyncAll over all blocks of the launch. 0, or non-zero after block->fault was filled (stopped, or blocks not co-resident). */
  int (*sync_all)(struct npusim_block *block);
  /* The system counter, 50 MHz on A2/A3 and 1 GHz on 950; the model's when the block is timed. */
  uint64_t (*system_cycle)(const struct npusim_block *block);
  /* Gives the processor away; the kernel side calls it when a block polls. */
  void (*yield)(struct npusim_block *block);
  /* printf of a kernel: text is complete. */
  void (*print)(struct npusim_block *block, const char *text, uint64_t length);
  /* A step of a timed block (enum npusim_step). */
  uint64_t (*time)(struct npusim_block *block, uint32_t step, uint64_t a, uint64_t b, uint64_t c);
};

struct npusim_kernel {
  const char *name;            /* as aclrtBinaryGetFunction is asked for it */
  uint32_t n_params;
  uint32_t args_size;          /* bytes of the packed argument block, natural alignment */
  const uint32_t *param_sizes; /* n_params entries */
  /* Runs one block; returns block->fault.code. */
  int (*run)(struct npusim_block *block, const void *args);
};

struct npusim_module {
  uint32_t magic, version;
  uint64_t size;
  uint32_t npu_arch;           /* __NPU_ARCH__ that the object was compiled for: 2201 or 3510 */
  uint32_t n_kernels;
  const struct npusim_kernel *kernels;
  /* Ends the block that runs on the calling thread; never returns. The emulator's fault handler sends the thread here after it has filled block->fault. */
  void (*leave)(struct npusim_block *block);
};

/* Exported by every kernel object. 0, or non-zero when the services' magic, version or size do not fit. */
#ifdef __cplusplus
extern "C"
#endif
int npusim_bind(const struct npusim_services *services, struct npusim_module *module);

#endif
