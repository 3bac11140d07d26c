/* What one core knows while it holds a context: one struct in block-local storage. Also the first error of the core, and the checks
 * that every call begins with. Filled by shmem_attach (impl/attach.h); used by all files of device/impl/.
 *
 * Who writes what in GM: this core alone writes its shmem_core lines, its shmem_error line and the third line of its shmem_qp
 * structures. All of that goes by uncached stores, so no line is ever dirty in a data cache and two cores never meet in one line.
 */
#ifndef SHMEM_IMPL_STATE_H
#define SHMEM_IMPL_STATE_H

#include "port.h"
#include "wqe.h"

namespace shmem_impl {

constexpr uint64_t ATTACHED = 0x6e7073686d656d31; /* any value that chance does not leave in storage */
constexpr uint32_t BATCH = 32;                    /* work requests staged per queue pair before they are rung */
constexpr uint32_t STAGE_BYTES = BATCH * WQE_BYTES;
constexpr uint32_t MAX_QUEUES = 8;                /* queue pairs whose counters and staging lines are held at once */
constexpr uint32_t PEER_CACHE = 16;               /* peers whose entry is held; power of two */
constexpr uint32_t TILE_ALIGN = 512;              /* bytes; GM bursts of that size are the fastest */
constexpr uint32_t TILE_MIN = 512;                /* bytes; smallest copy tile that shmem_attach accepts */
constexpr uint64_t MESSAGE_LIMIT = 1ull << 31;    /* bytes a request; the format's own limit */

/* What a core counted on a context: line 1 of shmem_core. */
struct counters {
  uint64_t data_requests, sync_requests, sq_doorbells, cq_doorbells, ring_copies, polls, roce_bytes, mapped_bytes;
};

/* A context as this core uses it. Those that a kernel names by handle are read at their first call and kept to the end. */
struct context {
  uint64_t line; /* GM address of its shmem_ctx; 0: not read yet */
  uint64_t qps, core_line; /* its queue pairs and its lines of this core */
  int32_t id;
  uint32_t engine, default_engine, options; /* engine: what the kernel asks for, SHMEM_ENGINE_AUTO: the default */
  uint64_t members; /* int32_t[n]: PE of the job by the number that calls give; 0: the job's own numbers */
  int32_t n, team;
  uint32_t left_open, left_fenced; /* requests of queue pairs that are not in `queues`: open; before a fence */
  int32_t next_left;               /* PE whose queue pair, if it is none of `queues`, is looked at next (heed_left) */
  uint32_t fences;                 /* 1: a fence passed over open requests of some queue pair */
  uint32_t copies;                 /* 1: mapped accesses since the last quiet */
  counters count;                  /* added up here, stored at the end */
};

/* A queue pair in use: its constants, its counters, its batch in UB. head counts staged requests too; published = head - staged. */
struct queue {
  uint64_t line; /* GM address of its shmem_qp; 0: slot free */
  context* ctx;  /* whose it is */
  int32_t pe;
  uint32_t stage; /* UB offset of its BATCH staging lines */
  uint32_t staged;
  uint32_t open; /* SHMEM_QP_OPEN_* */
  uint64_t head, tail, consumed, told; /* requests filled, complete; completions consumed, consumer index told to the NIC */
  uint64_t bounce_head;
  uint64_t bounce_last[2]; /* request that used each half of the bounce ring last: reusable when tail reaches it */
  uint64_t fenced;         /* requests before this index come before mapped accesses issued from now on; 0: none */
  uint64_t last_word0;     /* word 0 of the newest staged request, to be marked signaled */
  uint64_t used;           /* clock of the least-recently-used choice */
  uint64_t ring, completions, ring_doorbell, completion_doorbell, results, bounce;
  uint64_t remote_base; /* the peer's heap as its NIC knows it */
  uint32_t remote_key, scratch_key;
  uint32_t qpn, cqn, service_level;
  uint32_t depth, log2_depth, completion_depth, completion_stride, limit; /* limit: requests that may be outstanding */
  uint32_t n_results, bounce_size;
  uint32_t strong; /* 1: a fence passed over open responses, the next request carries SO */
};

/* How a space of a PE is reached. A space is the heap (0) or a window (index of its region + 1). */
struct peer {
  int32_t pe; /* -1: entry empty */
  uint32_t space, engines, key;
  uint64_t mapped, base;
};

/* A place in a PE's memory, as one word: the space in the high byte, the offset in it below. Offsets may be added to it. */
constexpr uint32_t SPACE_SHIFT = 56;
constexpr uint64_t OFFSET_MASK = (1ull << SPACE_SHIFT) - 1;

/* Registered memory outside the heap. */
struct region {
  int32_t index; /* -1: none read yet */
  uint64_t base, bytes, peers;
  uint32_t key;
};

/* A team that this PE is in. */
struct team {
  int32_t id; /* -1: none read yet */
  int32_t me, n;
  uint64_t line, members, numbers;
  uint64_t rounds, counts; /* heap offsets */
};

struct state {
  uint64_t attached;
  int32_t my_pe, n_pes;
  uint32_t core, cores; /* this core; cores of the launch that may communicate */
  uint64_t heap_base, heap_size, peers, core_lines, error_line, error_lines, abort_line, sync_offset;
  uint64_t timeout_ticks, max_message;
  uint32_t domain, flags, heap_key;
  context* ctx; /* of the call in progress */
  context* own; /* the one that the kernel attached: SHMEM_CTX_DEFAULT */
  int32_t world_team;
  uint64_t contexts_table, regions_table;
  uint32_t n_regions;
  uint32_t error; /* enum shmem_code; nothing is done once it is set */
  uint32_t op;    /* enum shmem_op: the call in progress */
  uint32_t sync;  /* 1: requests staged now are counted as synchronisation */
  int32_t event0, event1;
  uint32_t tile[2], tile_bytes;
  uint32_t turn, tile_busy[2]; /* tile of the next copy; 1: its copy out is marked and not yet waited for */
  uint32_t n_queues, last_queue;
  uint64_t clock;
  uint64_t epoch;
  uint64_t teams; /* the host's table */
  team last_team; /* the team of the last call that named one */
  uint64_t asked_since; /* tick at which shmem_done began to say no; with `asked`, see asked_enough */
  uint32_t calls;       /* entered since the last look at the abort line */
  uint32_t asked;       /* times that shmem_done and shmem_test said no in a row */
  region last_region; /* the region of the last address outside the heap */
  queue queues[MAX_QUEUES];
  peer peer_cache[PEER_CACHE];
  context contexts[SHMEM_CTX_MAX];
};

SHMEM_BLOCK_LOCAL state block_state;

/* Latches the first error of this core, in block-local storage and in GM; `code` is stored last, so the host never reads half of it. */
__aicore__ inline void fail(state& s, uint32_t code, int32_t pe, uint64_t detail0 = 0, uint64_t detail1 = 0, uint32_t qpn = 0,
                            uint32_t syndrome = 0) {
  if (s.error != SHMEM_OK) return;
  s.error = code;
  uint64_t line = s.error_line;
  if (line == 0 || load<uint32_t>(line + SHMEM_OFFSET(shmem_error, code)) != SHMEM_OK) return;
  store<int32_t>(line + SHMEM_OFFSET(shmem_error, pe), pe);
  store<uint32_t>(line + SHMEM_OFFSET(shmem_error, qpn), qpn);
  store<uint32_t>(line + SHMEM_OFFSET(shmem_error, syndrome), syndrome);
  store<uint32_t>(line + SHMEM_OFFSET(shmem_error, op), s.op);
  store<uint32_t>(line + SHMEM_OFFSET(shmem_error, core), s.core);
  store<uint64_t>(line + SHMEM_OFFSET(shmem_error, tick), now());
  store<uint64_t>(line + SHMEM_OFFSET(shmem_error, detail0), detail0);
  store<uint64_t>(line + SHMEM_OFFSET(shmem_error, detail1), detail1);
  stores_done();
  store<uint32_t>(line + SHMEM_OFFSET(shmem_error, code), code);
  stores_done();
}

/* Ends the core's calls with SHMEM_E_ABORT when the host wrote the abort line. False then. */
__aicore__ inline bool heed_abort(state& s, uint64_t what, uint64_t which) {
  if (load<uint32_t>(s.abort_line + SHMEM_OFFSET(shmem_abort, code)) == SHMEM_OK) return true;
  fail(s, SHMEM_E_ABORT, load<int32_t>(s.abort_line + SHMEM_OFFSET(shmem_abort, pe)), what, which);
  return false;
}

constexpr uint32_t CALLS_PER_LOOK = 64; /* calls between two looks at the abort line, outside of waits */

/* The first line of every call: false when there is nothing to do any more. A call without shmem_attach is a mistake in the kernel
 * that nothing else could report, so it traps. A kernel that only moves data, and never waits, still hears the host here. */
__aicore__ inline bool enter(state& s, uint32_t op) {
  if (s.attached != ATTACHED) {
    AscendC::Trap();
    return false;
  }
  s.op = op;
  s.calls += 1;
  if (s.calls == CALLS_PER_LOOK) {
    s.calls = 0;
    if (s.error == SHMEM_OK) return heed_abort(s, 0, 0);
  }
  return s.error == SHMEM_OK;
}

__aicore__ inline bool check_pe(state& s, int pe) {
  if (pe >= 0 && pe < s.n_pes) return true;
  fail(s, SHMEM_E_PE, pe, uint64_t(int64_t(pe)), uint64_t(s.n_pes));
  return false;
}

/* The registered region that holds an address outside the heap; nullptr when there is none. Looks at the host's table, the region of the last
 * such address first. */
__aicore__ inline const region* find_region(state& s, uint64_t address) {
  region& r = s.last_region;
  if (r.index >= 0 && address - r.base < r.bytes) return &r;
  for (uint32_t i = 0; i < s.n_regions; ++i) {
    uint64_t line = s.regions_table + uint64_t(i) * sizeof(struct shmem_region);
    if (load<uint32_t>(line + SHMEM_OFFSET(shmem_region, magic)) != SHMEM_ABI_MAGIC) continue;
    uint64_t base = load<uint64_t>(line + SHMEM_OFFSET(shmem_region, base));
    uint64_t bytes = load<uint64_t>(line + SHMEM_OFFSET(shmem_region, bytes));
    if (address - base >= bytes) continue;
    r = {int32_t(i), base, bytes, load<uint64_t>(line + SHMEM_OFFSET(shmem_region, peers)),
         load<uint32_t>(line + SHMEM_OFFSET(shmem_region, lkey))};
    return &r;
  }
  return nullptr;
}

/* The place of `bytes` bytes at a symmetric address, in the heap or in a window; false, and an error, when they are not all in it. */
__aicore__ inline bool check_range(state& s, uint64_t address, uint64_t bytes, int pe, uint64_t& place) {
  place = address - s.heap_base; /* wraps for addresses below the heap, which makes it larger than any heap */
  if (place <= s.heap_size && bytes <= s.heap_size - place) return true;
  const region* r = place <= s.heap_size || s.n_regions == 0 ? nullptr : find_region(s, address);
  if (r == nullptr && s.n_regions != 0 && bytes == 0) r = find_region(s, address - 1); /* nothing, at a window's end */
  if (r == nullptr || r->peers == 0) {
    fail(s, SHMEM_E_BOUNDS, pe, place, bytes);
    return false;
  }
  place = (uint64_t(r->index + 1) << SPACE_SHIFT) | (address - r->base);
  if (bytes <= r->bytes - (address - r->base)) return true;
  fail(s, SHMEM_E_BOUNDS, pe, place, bytes);
  return false;
}

/* Bytes of n elements at a symmetric address; false, and an error, when that is more than can be counted. */
__aicore__ inline bool check_count(state& s, uint64_t n, uint32_t size, uint64_t symmetric, int pe, uint64_t& bytes) {
  bytes = n * size;
  if (n <= OFFSET_MASK / size) return true;
  uint64_t most = ~uint64_t(0);
  fail(s, SHMEM_E_BOUNDS, pe, symmetric - s.heap_base, n <= most / size ? bytes : most);
  return false;
}

__aicore__ inline bool check_align(state& s, uint64_t address, uint32_t size, int pe) {
  if ((address & (size - 1)) == 0) return true;
  fail(s, SHMEM_E_ALIGN, pe, address, size);
  return false;
}

/* Whether the NIC may use `bytes` bytes at a local GM address, and by which key: the heap's, or that of a region that the host registered. */
__aicore__ inline bool local_key(state& s, uint64_t address, uint64_t bytes, uint32_t& key) {
  uint64_t offset = address - s.heap_base;
  key = s.heap_key;
  if (offset <= s.heap_size && bytes <= s.heap_size - offset) return true;
  const region* r = s.n_regions == 0 ? nullptr : find_region(s, address);
  if (r == nullptr || bytes > r->bytes - (address - r->base)) return false;
  key = r->key;
  return true;
}

template <typename T>
__aicore__ inline uint64_t address_of(const __gm__ T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/* How a place of a PE is reached, read once and kept. nullptr, and an error, when the host's table does not look like this header's. */
__aicore__ inline const peer* find_peer(state& s, int pe, uint64_t place = 0) {
  uint32_t space = uint32_t(place >> SPACE_SHIFT);
  peer& entry = s.peer_cache[(uint32_t(pe) + space) & (PEER_CACHE - 1)];
  if (entry.pe == pe && entry.space == space) return &entry;
  uint64_t table = s.peers, own = s.heap_base;
  if (space != 0) {
    uint64_t line = s.regions_table + uint64_t(space - 1) * sizeof(struct shmem_region);
    table = load<uint64_t>(line + SHMEM_OFFSET(shmem_region, peers));
    own = load<uint64_t>(line + SHMEM_OFFSET(shmem_region, base));
  }
  uint64_t line = table + uint64_t(pe) * sizeof(struct shmem_peer);
  if (load<uint32_t>(line + SHMEM_OFFSET(shmem_peer, magic)) != SHMEM_ABI_MAGIC ||
      load<uint16_t>(line + SHMEM_OFFSET(shmem_peer, version)) != SHMEM_ABI_VERSION ||
      load<uint16_t>(line + SHMEM_OFFSET(shmem_peer, size)) != sizeof(struct shmem_peer)) {
    fail(s, SHMEM_E_ABI, pe, line);
    return nullptr;
  }
  entry.pe = pe;
  entry.space = space;
  entry.engines = load<uint32_t>(line + SHMEM_OFFSET(shmem_peer, engines));
  entry.key = load<uint32_t>(line + SHMEM_OFFSET(shmem_peer, rkey));
  entry.mapped = load<uint64_t>(line + SHMEM_OFFSET(shmem_peer, mapped));
  entry.base = load<uint64_t>(line + SHMEM_OFFSET(shmem_peer, base));
  if (pe == s.my_pe) {
    entry.mapped = own;
    entry.engines |= SHMEM_ENGINE_MAPPED;
  }
  if (entry.mapped == 0) entry.engines &= ~SHMEM_ENGINE_MAPPED;
  return &entry;
}

/* The mapped address of a place of the peer that find_peer gave for it. */
__aicore__ inline uint64_t mapped_at(const peer* entry, uint64_t place) { return entry->mapped + (place & OFFSET_MASK); }

/* The engine toward a place of a PE: the one that the context asks for, or mapped where it exists. 0, and an error, when none reaches it. */
__aicore__ inline uint32_t choose_engine(state& s, int pe, uint64_t place, const peer*& entry) {
  entry = find_peer(s, pe, place);
  if (entry == nullptr) return 0;
  uint32_t asked = s.ctx->engine != SHMEM_ENGINE_AUTO ? s.ctx->engine : s.ctx->default_engine;
  uint32_t reach = asked == SHMEM_ENGINE_AUTO ? entry->engines : (entry->engines & asked);
  if (reach & SHMEM_ENGINE_MAPPED) return SHMEM_ENGINE_MAPPED;
  if (reach & SHMEM_ENGINE_ROCE) return SHMEM_ENGINE_ROCE;
  fail(s, SHMEM_E_UNREACHABLE, pe, asked, entry->engines);
  return 0;
}

}  // namespace shmem_impl

#endif
