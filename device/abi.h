/* The one contract between host and kernels: every structure that crosses between them, in plain C.
 *
 * Kernels include it through device/shmem.h; the host reads it with bindgen (build.rs). Nothing else declares these layouts.
 * Who writes what is said at each structure: a 64-byte line has exactly one writer, because a scalar cache writes back whole
 * lines (AscendC scalar access rules). Addresses are global-memory addresses as the owning PE's cores see them.
 *
 * Every structure that the host writes begins with {magic, version, size}; shmem_attach refuses others.
 */
#ifndef SHMEM_ABI_H
#define SHMEM_ABI_H

#include <stdint.h>

#define SHMEM_ABI_MAGIC 0x4d48534eu /* "NSHM" in memory order */
#define SHMEM_ABI_VERSION 2u
#define SHMEM_LINE 64u /* bytes that a scalar cache writes back at once */

/* Bits of shmem_peer.engines, and (one of them) shmem_ctx.default_engine: how a PE can be reached. */
#define SHMEM_ENGINE_AUTO 0u   /* mapped where it exists, else roce */
#define SHMEM_ENGINE_MAPPED 1u /* MTE copies and uncached scalar access through a mapped peer address */
#define SHMEM_ENGINE_ROCE 2u   /* work requests to the NIC */

/* shmem_ctx.atomic_domain: who executes every atomic of the job (never both: they are not atomic to one another). */
#define SHMEM_DOMAIN_NIC 0u  /* the target PE's NIC; also for oneself, by a queue pair to oneself */
#define SHMEM_DOMAIN_CORE 1u /* the cores' own atomic instructions (950), every peer mapped */

/* shmem_ctx.flags */
#define SHMEM_CTX_INLINE 1u       /* queue pairs accept inline payloads */
#define SHMEM_CTX_NIC_ATOMICS 2u  /* the NIC executed the fetch-add that bring-up tried */
#define SHMEM_CTX_QUIET_READS 4u  /* quiet adds a flushing READ to each queue pair with open writes */

/* Contexts. Handles are indices into the table of shmem_ctx.contexts; the same on all members of the context's team. */
#define SHMEM_CTX_MAX 16u         /* entries of the table, the default context included */
#define SHMEM_CTX_DEFAULT 0       /* the context that the kernel attached */
#define SHMEM_CTX_INVALID (-1)

/* shmem_ctx.options (OpenSHMEM 1.6, Communication Management Routines) */
#define SHMEM_CTX_SERIALIZED 1u /* not used by two cores at once; each core has queue pairs of its own, so it changes nothing */
#define SHMEM_CTX_PRIVATE 2u    /* used by comm core 0 alone: queue pairs for one core */
#define SHMEM_CTX_NOSTORE 4u    /* fence and quiet need not cover the kernel's own stores through shmem_ptr */

/* Error codes of shmem_error.code and shmem_abort.code. */
enum shmem_code {
  SHMEM_OK = 0,
  SHMEM_E_ABI = 1,        /* the context's magic, version or size is not this header's */
  SHMEM_E_CORE = 2,       /* a core beyond the comm cores that the host made */
  SHMEM_E_PE = 3,         /* PE out of range */
  SHMEM_E_BOUNDS = 4,     /* offset + length leaves the symmetric heap (detail0 offset, detail1 length) */
  SHMEM_E_SOURCE = 5,     /* a global-memory source that is in no registered region */
  SHMEM_E_ALIGN = 6,      /* address not aligned as the operation needs */
  SHMEM_E_UNREACHABLE = 7,/* no engine that the context may use reaches the PE */
  SHMEM_E_COMPLETION = 8, /* the NIC completed a request with an error (syndrome: status, sub-status << 8) */
  SHMEM_E_TIMEOUT = 9,    /* a bounded wait ended (detail0: what was waited for) */
  SHMEM_E_ABORT = 10,     /* the host wrote the abort line */
  SHMEM_E_ATOMICS = 11,   /* the NIC refuses atomics */
  SHMEM_E_BROKEN = 12,    /* the queue pair is in error until the host recovers it */
  SHMEM_E_BUSY = 13,      /* the context is owned by another kernel */
  SHMEM_E_USAGE = 14,     /* a call's arguments contradict its contract (detail0, detail1: the arguments) */
  SHMEM_E_SPACE = 15,     /* the UB range given to shmem_attach, or to a collective, is too small or misaligned */
  SHMEM_E_TEAM = 16,      /* this PE is in no such team (detail0: the handle) */
  SHMEM_E_CONTEXT = 17,   /* this PE has no such context (detail0: the handle) */
  SHMEM_E_WINDOW = 18     /* this PE has no such window (detail0: the handle) */
};

/* What was waited for: detail0 of SHMEM_E_TIMEOUT and SHMEM_E_ABORT. detail1 says which: a request, an address, a core, an epoch. */
enum shmem_awaited {
  SHMEM_WAIT_COMPLETION = 1, SHMEM_WAIT_VALUE = 2, SHMEM_WAIT_CORE = 3, SHMEM_WAIT_PE = 4, SHMEM_WAIT_ATOMIC = 5
};

/* Call sites: the routine that recorded an error. */
enum shmem_op {
  SHMEM_OP_NONE = 0, SHMEM_OP_ATTACH = 1, SHMEM_OP_PUT = 2, SHMEM_OP_GET = 3, SHMEM_OP_P = 4, SHMEM_OP_G = 5,
  SHMEM_OP_PUT_SIGNAL = 6, SHMEM_OP_SIGNAL = 7, SHMEM_OP_WAIT = 8, SHMEM_OP_ATOMIC = 9, SHMEM_OP_FENCE = 10,
  SHMEM_OP_QUIET = 11, SHMEM_OP_BARRIER = 12, SHMEM_OP_SYNC = 13, SHMEM_OP_SYNC_PE = 14, SHMEM_OP_DETACH = 15,
  SHMEM_OP_BROADCAST = 16, SHMEM_OP_COLLECT = 17, SHMEM_OP_ALLTOALL = 18, SHMEM_OP_REDUCE = 19, SHMEM_OP_SCAN = 20,
  SHMEM_OP_CONTEXT = 21 /* naming a context */
};

/* How one peer is reached. Host-written; one line. */
struct shmem_peer {
  uint32_t magic;
  uint16_t version;
  uint16_t size;
  uint64_t mapped;  /* the peer's heap as mapped here; 0: not mapped */
  uint64_t base;    /* the peer's heap base as registered with its NIC: remote address = base + offset */
  uint32_t rkey;
  uint32_t engines; /* SHMEM_ENGINE_* bits */
  uint8_t reserved[32];
};

/* One queue pair: of one core, toward one PE. Two host-written lines, then one line that the core owns. */
struct shmem_qp {
  uint32_t magic;
  uint16_t version;
  uint16_t size;
  uint32_t qpn;
  uint32_t cqn;
  uint32_t sq_depth;      /* power of two; the ring's real depth, which the owner bit follows */
  uint32_t cq_depth;      /* power of two */
  uint32_t cqe_size;      /* stride of the completion ring: 32 or 64 bytes */
  uint32_t sl;            /* service level of the doorbell */
  uint64_t sq_buf;        /* sq_depth x 64 bytes */
  uint64_t cq_buf;        /* cq_depth x cqe_size bytes */
  uint64_t sq_db;         /* doorbell register, hardware mode */
  uint64_t cq_db;
  uint64_t results;       /* result slots of atomics, one line each */
  uint64_t bounce;        /* bounce ring for payloads that come from UB */
  uint32_t n_results;
  uint32_t bounce_size;   /* bytes, power of two */
  uint32_t scratch_lkey;  /* covers results and bounce */
  uint32_t usable;        /* 1: connected; 0: no queue pair toward this PE */
  uint8_t reserved[32];
  /* Offset 128: owned by the core. 64-bit counters, stored before each doorbell so that they outlive the kernel. */
  uint64_t head;          /* requests published */
  uint64_t tail;          /* requests known complete */
  uint64_t cq_ci;         /* completions consumed */
  uint64_t cq_published;  /* consumer index last told to the NIC */
  uint64_t bounce_head;   /* bounce bytes handed out */
  uint64_t sync_epoch;    /* rounds of shmem_sync_pe with this PE */
  uint32_t open;          /* SHMEM_QP_OPEN_* bits */
  uint32_t broken;        /* 1: in error until the host recovers it */
  uint64_t reserved2;
  uint8_t reserved3[64];
};
#define SHMEM_QP_OPEN_RESPONSE 1u /* a READ or atomic may still be outstanding: the next ordered request carries SO */
#define SHMEM_QP_OPEN_WRITE 2u    /* writes since the last completion */

/* What a core counts and shares with the other cores of its PE. Device-owned, zeroed by the host. Each line has one writer: the core. */
struct shmem_core {
  /* line 0: meeting point of the cores of one PE */
  uint64_t arrived;        /* epoch this core has reached */
  uint64_t released;       /* core 0 only: epoch whose rounds between PEs are done */
  uint64_t epoch;          /* barrier epochs this core has passed */
  uint64_t owner;          /* 1 while a kernel holds the context on this core */
  uint64_t left_open;      /* 1 when the last kernel ended with requests that it did not see complete */
  uint8_t reserved0[24];
  /* line 1: counters since the host zeroed them; the hardware-free cost model */
  uint64_t data_requests;  /* work requests that carry user data or a user atomic */
  uint64_t sync_requests;  /* work requests of barriers, syncs, signals, flushes */
  uint64_t sq_doorbells;
  uint64_t cq_doorbells;
  uint64_t ring_copies;    /* MTE3 copies into send rings */
  uint64_t polls;          /* completion polls that found an entry */
  uint64_t roce_bytes;     /* payload bytes requested by work requests */
  uint64_t mapped_bytes;   /* payload bytes moved through mapped addresses */
};

/* The first error of a core. The core writes it once, `code` last; the host clears it. One line. */
struct shmem_error {
  uint32_t code;      /* enum shmem_code; 0: none */
  int32_t pe;         /* the PE concerned, -1: none */
  uint32_t qpn;
  uint32_t syndrome;  /* NIC status | sub-status << 8 */
  uint32_t op;        /* enum shmem_op */
  uint32_t core;
  uint64_t tick;      /* system counter */
  uint64_t detail0;
  uint64_t detail1;
  uint8_t reserved[16];
};

/* Written by the host to end every bounded wait of the PE. One line. */
struct shmem_abort {
  uint32_t code;      /* 0: go on; else enum shmem_code */
  int32_t pe;         /* the dead PE that is the reason, -1: none */
  uint8_t reserved[56];
};

/* Memory outside the heap that the host registered: a source or destination of this PE's own transfers, and, where it has peers, a window:
 * memory of the same size on every PE, addressed like the heap. Host-written; one line. */
#define SHMEM_REGION_MAX 64u
struct shmem_region {
  uint32_t magic;         /* 0: entry free */
  uint16_t version;
  uint16_t size;
  uint64_t base;          /* own memory */
  uint64_t bytes;
  uint64_t peers;         /* struct shmem_peer[PEs of the job], 0: registered for this PE only */
  uint32_t lkey;
  uint8_t reserved[28];
};

/* Teams. Handles are indices into the table; the same on all members. */
#define SHMEM_TEAM_MAX 64u      /* entries of the table, world and shared included */
#define SHMEM_TEAM_INVALID (-1)
#define SHMEM_TEAM_WORLD 0      /* all PEs */
#define SHMEM_TEAM_SHARED 1     /* the PEs whose heaps are mapped to one another */

/* A team as one member sees it. A host-written line, then one that core 0 of this PE writes. */
struct shmem_team {
  uint32_t magic;         /* 0: this PE is in no such team */
  uint16_t version;
  uint16_t size;
  int32_t my_pe;          /* number of this PE in the team */
  int32_t n_pes;
  uint64_t members;       /* int32_t[n_pes]: PE of the job by number in the team */
  uint64_t numbers;       /* int32_t[PEs of the job]: number in the team by PE of the job, -1 */
  uint64_t rounds;        /* heap offset of SHMEM_SYNC_ROUNDS lines; line r is written by the member 2^r before this one */
  uint64_t counts;        /* heap offset of 2 * n_pes lines; line (parity, member) is written by that member */
  uint8_t reserved[16];
  uint64_t epoch;         /* meetings of the team that this PE has passed */
  uint64_t exchanges;     /* values that this PE has given to the team */
  uint8_t reserved2[48];
};

/* The context: first argument of every kernel. Host-written, constant while a kernel runs. */
struct shmem_ctx {
  uint32_t magic;
  uint16_t version;
  uint16_t size;
  int32_t my_pe;
  int32_t n_pes;
  uint64_t heap_base;        /* own heap as mapped here */
  uint64_t heap_size;        /* bytes, the same on every PE */
  uint64_t peers;            /* struct shmem_peer[n_pes] */
  uint64_t qps;              /* struct shmem_qp[n_cores * n_pes]; index core * n_pes + pe */
  uint64_t cores;            /* struct shmem_core[n_cores] */
  uint64_t errors;           /* struct shmem_error[n_cores] */
  uint64_t abort;            /* struct shmem_abort */
  uint64_t sync_offset;      /* offset in the heap of the sync area, see SHMEM_SYNC_* */
  uint64_t timeout_ticks;    /* bound of each device wait, in system-counter ticks */
  uint64_t ticks_per_second;
  uint64_t max_message;      /* longest transfer of one work request, bytes */
  uint32_t n_cores;          /* comm cores: queue pairs exist for these */
  uint32_t atomic_domain;    /* SHMEM_DOMAIN_* */
  uint32_t default_engine;   /* SHMEM_ENGINE_* */
  uint32_t flags;            /* SHMEM_CTX_* */
  uint32_t heap_lkey;        /* local key of the heap's registration */
  uint32_t reserved0;
  uint64_t teams;            /* struct shmem_team[SHMEM_TEAM_MAX] */
  uint64_t contexts;         /* uint64_t[SHMEM_CTX_MAX]: address of each struct shmem_ctx of this PE, 0: none */
  uint64_t regions;          /* struct shmem_region[SHMEM_REGION_MAX] */
  int32_t id;                /* this context's handle */
  int32_t team;              /* team whose numbers its calls take */
  int32_t world_team;        /* team that SHMEM_TEAM_WORLD means in a kernel that attached it */
  uint32_t options;          /* SHMEM_CTX_* options */
  uint32_t n_contexts;       /* contexts of this PE */
  uint32_t n_regions;        /* entries of `regions` to look at */
  uint8_t reserved[80];
};

/* The sync area: symmetric, inside the heap, zeroed at init: a line a core and PE for shmem_sync_pe, then the memory of each team. Line
 * (core, pe) is written only by that core of that PE; the lines of a team as said at shmem_team. All hold 64-bit words that only grow, so
 * nothing is reset while a team lives. */
#define SHMEM_SYNC_ROUNDS 32u
#define SHMEM_SYNC_PAIR_OFFSET(core, pe, n_pes) (((uint64_t)(core) * (uint64_t)(n_pes) + (uint64_t)(pe)) * SHMEM_LINE)
#define SHMEM_SYNC_TEAM_SIZE(n_pes) ((uint64_t)(SHMEM_SYNC_ROUNDS + 2u * (uint64_t)(n_pes)) * SHMEM_LINE)
#define SHMEM_SYNC_SIZE(n_cores, n_pes) (SHMEM_SYNC_PAIR_OFFSET(n_cores, 0, n_pes) + SHMEM_TEAM_MAX * SHMEM_SYNC_TEAM_SIZE(n_pes))

#endif
