/* The mapped engine: MTE copies and uncached scalar access through a peer's mapped heap. Knows addresses of this core only, no PEs and
 * no completion rings. Used by rma.h, point.h, collect.h.
 *
 * A GM to GM copy goes through UB: MTE2 fills one tile while MTE3 empties the other, across calls too. Each tile has its event id for both
 * directions. The flag that says that a tile has left is waited for when the tile is used again, or when the guard ends, so that a call
 * does not wait for its own copies. Small values never go through the data cache, whose write-back carries 64 bytes and would overwrite
 * the neighbours of the value.
 */
#ifndef SHMEM_IMPL_MAPPED_H
#define SHMEM_IMPL_MAPPED_H

#include "wait.h"

namespace shmem_impl {

/* Copies `bytes` from one GM address to another, any alignment. On return all copies are issued; copies_in_done says when the source
 * may change, copies_out_done when the target has it. */
__aicore__ inline void copy_gm(state& s, uint64_t to, uint64_t from, uint64_t bytes) {
  s.ctx->count.mapped_bytes += bytes;
  while (bytes > 0) {
    uint32_t part = bytes < s.tile_bytes ? uint32_t(bytes) : s.tile_bytes;
    uint32_t turn = s.turn;
    int32_t event = turn == 0 ? s.event0 : s.event1;
    AscendC::LocalTensor<uint8_t> tile = ub_tensor<uint8_t>(s.tile[turn], s.tile_bytes);
    if (s.tile_busy[turn] != 0) tile_free(event);
    copy_in(tile, from, part);
    tile_filled(event);
    copy_out(to, tile, part);
    tile_leaving(event);
    s.tile_busy[turn] = 1;
    s.turn = turn ^ 1;
    from += part;
    to += part;
    bytes -= part;
  }
}

/* Waits for the flags that copy_gm has left. */
__aicore__ inline void retire_tiles(state& s) {
  if (s.tile_busy[0] != 0) tile_free(s.event0);
  if (s.tile_busy[1] != 0) tile_free(s.event1);
  s.tile_busy[0] = 0;
  s.tile_busy[1] = 0;
}

/* UB to GM. The caller has made the UB data ready for MTE3, as for DataCopy. */
__aicore__ inline void copy_ub_to_gm(state& s, uint64_t to, const AscendC::LocalTensor<uint8_t>& from, uint64_t bytes) {
  s.ctx->count.mapped_bytes += bytes;
  uint32_t at = 0;
  while (bytes > 0) {
    uint32_t part = bytes < COPY_PAD_MAX ? uint32_t(bytes) : COPY_PAD_MAX;
    copy_out(to, from[at], part);
    at += part;
    to += part;
    bytes -= part;
  }
}

/* GM to UB. */
__aicore__ inline void copy_gm_to_ub(state& s, const AscendC::LocalTensor<uint8_t>& to, uint64_t from, uint64_t bytes) {
  s.ctx->count.mapped_bytes += bytes;
  uint32_t at = 0;
  while (bytes > 0) {
    uint32_t part = bytes < COPY_PAD_MAX ? uint32_t(bytes) : COPY_PAD_MAX;
    copy_in(to[at], from, part);
    at += part;
    from += part;
    bytes -= part;
  }
}

/* All that this core wrote through mapped addresses, copies and stores, is at its target for whoever looks afterwards. */
__aicore__ inline void drain_mapped(state& s) {
  copies_out_done(s.event0);
  stores_done();
}

/* The same, and what this core read into UB has arrived. */
__aicore__ inline void copies_done(state& s) {
  copies_in_done(s.event0);
  drain_mapped(s);
}

}  // namespace shmem_impl

#endif
