/* Taking a context and giving it back: reads the host's structures once, lays out the UB range, claims the core's counters. The guard's
 * destructor rings what is staged and saves what must outlive the kernel. Called by the kernel only.
 *
 * UB range, in this order: two copy tiles (the rest of the range, halved, multiples of 512 bytes), then min(8, n_pes x contexts) staging
 * sets of 32 work requests (2 KiB each). 40 KiB give tiles of 18 KiB for 2 PEs, 16 KiB for 4, 12 KiB for 8 and more.
 */
#ifndef SHMEM_IMPL_ATTACH_H
#define SHMEM_IMPL_ATTACH_H

#include "collect.h"
#include "many.h"
#include "reduce.h"
#include "strided.h"

namespace shmem_impl {

/* Tiles and staging sets in the UB range. False when the range does not hold them. */
__aicore__ inline bool lay_out(state& s, uint32_t offset, uint32_t bytes, uint32_t n_contexts) {
  if (offset % UB_ALIGN != 0 || offset > UB_SIZE || bytes > UB_SIZE - offset) return false;
  uint32_t least = uint32_t(s.n_pes) < MAX_QUEUES ? uint32_t(s.n_pes) : MAX_QUEUES;
  uint64_t pairs = uint64_t(s.n_pes) * n_contexts;
  uint32_t sets = pairs < MAX_QUEUES ? uint32_t(pairs) : MAX_QUEUES;
  if (bytes < sets * STAGE_BYTES + 2 * TILE_MIN) sets = least; /* the contexts take turns */
  uint32_t staging = sets * STAGE_BYTES;
  if (bytes < staging + 2 * TILE_MIN) return false;
  s.tile_bytes = (bytes - staging) / 2 / TILE_ALIGN * TILE_ALIGN;
  s.tile[0] = offset;
  s.tile[1] = offset + s.tile_bytes;
  s.n_queues = sets;
  for (uint32_t i = 0; i < sets; ++i) {
    s.queues[i].line = 0;
    s.queues[i].staged = 0;
    s.queues[i].used = 0;
    s.queues[i].stage = offset + 2 * s.tile_bytes + i * STAGE_BYTES;
  }
  return true;
}

/* The fields of the context that calls need. False when it is not this header's context. */
__aicore__ inline bool load_context(state& s, uint64_t ctx) {
  if (ctx == 0 || !is_context(ctx)) return false;
  s.my_pe = load<int32_t>(ctx + SHMEM_OFFSET(shmem_ctx, my_pe));
  s.n_pes = load<int32_t>(ctx + SHMEM_OFFSET(shmem_ctx, n_pes));
  s.heap_base = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, heap_base));
  s.heap_size = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, heap_size));
  s.peers = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, peers));
  s.abort_line = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, abort));
  s.sync_offset = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, sync_offset));
  s.teams = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, teams));
  s.contexts_table = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, contexts));
  s.regions_table = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, regions));
  s.n_regions = load<uint32_t>(ctx + SHMEM_OFFSET(shmem_ctx, n_regions));
  s.world_team = load<int32_t>(ctx + SHMEM_OFFSET(shmem_ctx, world_team));
  s.timeout_ticks = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, timeout_ticks));
  s.max_message = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, max_message));
  if (s.max_message == 0 || s.max_message > MESSAGE_LIMIT) s.max_message = MESSAGE_LIMIT;
  s.domain = load<uint32_t>(ctx + SHMEM_OFFSET(shmem_ctx, atomic_domain));
  s.flags = load<uint32_t>(ctx + SHMEM_OFFSET(shmem_ctx, flags));
  s.heap_key = load<uint32_t>(ctx + SHMEM_OFFSET(shmem_ctx, heap_lkey));
  uint32_t n_cores = load<uint32_t>(ctx + SHMEM_OFFSET(shmem_ctx, n_cores));
  uint32_t blocks = uint32_t(AscendC::GetBlockNum());
  s.cores = blocks < n_cores ? blocks : n_cores;
  s.core_lines = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, cores));
  s.error_lines = load<uint64_t>(ctx + SHMEM_OFFSET(shmem_ctx, errors));
  if (n_cores == 0) return false;
  if (s.core >= n_cores) {
    /* This core has no line of its own. The last comm core's carries the news; its `core` field says whose it is. */
    s.error_line = s.error_lines + uint64_t(n_cores - 1) * sizeof(struct shmem_error);
    fail(s, SHMEM_E_CORE, s.my_pe, s.core, n_cores);
    return true;
  }
  s.error_line = s.error_lines + uint64_t(s.core) * sizeof(struct shmem_error);
  return true;
}

__aicore__ inline void attach(GM_ADDR ctx, const shmem_options& options) {
  state& s = block_state;
  s.attached = ATTACHED;
  s.error = SHMEM_OK;
  s.op = SHMEM_OP_ATTACH;
  s.sync = 0;
  s.error_line = 0;
  s.core = uint32_t(AscendC::GetBlockIdx());
  s.turn = 0;
  s.tile_busy[0] = 0;
  s.tile_busy[1] = 0;
  s.n_queues = 0;
  s.last_queue = 0;
  s.queues[0].line = 0;
  s.clock = 0;
  s.last_team.id = SHMEM_TEAM_INVALID;
  s.last_region.index = -1;
  for (uint32_t i = 0; i < SHMEM_CTX_MAX; ++i) s.contexts[i].line = 0;
  s.own = &s.contexts[0];
  s.ctx = s.own;
  s.calls = 0;
  s.asked = 0;
  s.asked_since = 0;
  s.event0 = options.event0;
  s.event1 = options.event1;
  for (uint32_t i = 0; i < PEER_CACHE; ++i) s.peer_cache[i].pe = -1;
  if (!load_context(s, reinterpret_cast<uint64_t>(ctx))) {
    /* There is no record to write it to that could be trusted. */
    s.error = SHMEM_E_ABI;
    AscendC::Trap();
    return;
  }
  if (s.error != SHMEM_OK) return;
  int32_t id = load<int32_t>(reinterpret_cast<uint64_t>(ctx) + SHMEM_OFFSET(shmem_ctx, id));
  if (id < 0 || id >= int32_t(SHMEM_CTX_MAX)) {
    fail(s, SHMEM_E_ABI, s.my_pe, uint64_t(int64_t(id)));
    return;
  }
  s.own = &s.contexts[id];
  s.ctx = s.own;
  if (!open_context(s, *s.own, reinterpret_cast<uint64_t>(ctx))) return;
  s.own->engine = options.engine;
  s.epoch = load<uint64_t>(core_word(s, 0, SHMEM_OFFSET(shmem_core, released)));
  /* An error that the host has not taken yet stays the core's error. */
  s.error = load<uint32_t>(s.error_line + SHMEM_OFFSET(shmem_error, code));
  uint32_t engine = options.engine;
  if (engine != SHMEM_ENGINE_AUTO && engine != SHMEM_ENGINE_MAPPED && engine != SHMEM_ENGINE_ROCE) fail(s, SHMEM_E_USAGE, s.my_pe, engine);
  if (s.event0 < 0 || s.event0 > 7 || s.event1 < 0 || s.event1 > 7 || s.event0 == s.event1) {
    fail(s, SHMEM_E_USAGE, s.my_pe, uint64_t(int64_t(s.event0)), uint64_t(int64_t(s.event1)));
    s.event0 = shmem_options().event0; /* for the guard's last drain */
    s.event1 = shmem_options().event1;
  }
  uint32_t n_contexts = load<uint32_t>(reinterpret_cast<uint64_t>(ctx) + SHMEM_OFFSET(shmem_ctx, n_contexts));
  if (!lay_out(s, options.ub_offset, options.ub_bytes, n_contexts > 0 ? n_contexts : 1)) fail(s, SHMEM_E_SPACE, s.my_pe, options.ub_offset, options.ub_bytes);
  if (s.error == SHMEM_OK) claim_ub(options.ub_offset, options.ub_bytes, s.event0, s.event1);
}

__aicore__ inline void detach() {
  state& s = block_state;
  if (s.attached != ATTACHED) return;
  s.op = SHMEM_OP_DETACH;
  if (s.own->line != 0) {
    retire_tiles(s);
    copies_out_done(s.event0);
    for (uint32_t i = 0; i < s.n_queues; ++i) evict_queue(s, s.queues[i]);
    for (uint32_t i = 0; i < SHMEM_CTX_MAX; ++i) {
      if (s.contexts[i].line != 0) close_context(s.contexts[i]);
    }
  }
  release_ub();
  s.attached = 0;
}

}  // namespace shmem_impl

__aicore__ inline shmem_guard::shmem_guard(GM_ADDR ctx, const shmem_options& options) { shmem_impl::attach(ctx, options); }
__aicore__ inline shmem_guard::~shmem_guard() { shmem_impl::detach(); }
__aicore__ inline shmem_guard shmem_attach(GM_ADDR ctx, const shmem_options& options) { return shmem_guard(ctx, options); }

__aicore__ inline int shmem_my_pe() { return shmem_impl::block_state.my_pe; }
__aicore__ inline int shmem_n_pes() { return shmem_impl::block_state.n_pes; }
__aicore__ inline int shmem_my_core() { return int(shmem_impl::block_state.core); }
__aicore__ inline int shmem_n_cores() { return int(shmem_impl::block_state.cores); }
__aicore__ inline uint32_t shmem_error() { return shmem_impl::block_state.error; }

__aicore__ inline uint32_t shmem_set_engine(uint32_t engine) {
  shmem_impl::state& s = shmem_impl::block_state;
  uint32_t before = s.ctx->engine;
  if (!shmem_impl::enter(s, SHMEM_OP_ATTACH)) return before;
  if (engine > SHMEM_ENGINE_ROCE) {
    shmem_impl::fail(s, SHMEM_E_USAGE, s.my_pe, engine);
    return before;
  }
  s.ctx->engine = engine;
  return before;
}

__aicore__ inline __gm__ void* shmem_ptr(const __gm__ void* sym, int pe) {
  shmem_impl::state& s = shmem_impl::block_state;
  __gm__ void* none = nullptr;
  if (!shmem_impl::enter(s, SHMEM_OP_NONE) || pe < 0 || pe >= s.n_pes) return none;
  uint64_t place = reinterpret_cast<uint64_t>(sym) - s.heap_base;
  if (place >= s.heap_size) {
    const shmem_impl::region* r = shmem_impl::find_region(s, reinterpret_cast<uint64_t>(sym));
    if (r == nullptr || r->peers == 0) return none;
    place = (uint64_t(r->index + 1) << shmem_impl::SPACE_SHIFT) | (reinterpret_cast<uint64_t>(sym) - r->base);
  }
  const shmem_impl::peer* entry = shmem_impl::find_peer(s, pe, place);
  if (entry == nullptr || entry->mapped == 0) return none;
  return reinterpret_cast<__gm__ void*>(shmem_impl::mapped_at(entry, place));
}

#endif
