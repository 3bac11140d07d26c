/* Checks that the compiler of the kernels lays abi.h out as the host does: host/abi.rs asserts the same numbers. */
#ifndef SHMEM_IMPL_LAYOUT_H
#define SHMEM_IMPL_LAYOUT_H

#include "../abi.h"

/* Offset in bytes of a field of a structure of abi.h; device code has no <stddef.h>. */
#define SHMEM_OFFSET(structure, field) __builtin_offsetof(struct structure, field)

#define SHMEM_SIZE_IS(structure, bytes) static_assert(sizeof(struct structure) == (bytes), #structure " has another size on the host")
#define SHMEM_AT(structure, field, bytes) \
  static_assert(SHMEM_OFFSET(structure, field) == (bytes), #structure "." #field " is elsewhere on the host")

SHMEM_SIZE_IS(shmem_peer, 64);
SHMEM_AT(shmem_peer, mapped, 8);
SHMEM_AT(shmem_peer, base, 16);
SHMEM_AT(shmem_peer, rkey, 24);
SHMEM_AT(shmem_peer, engines, 28);
SHMEM_SIZE_IS(shmem_qp, 256);
SHMEM_AT(shmem_qp, qpn, 8);
SHMEM_AT(shmem_qp, cqn, 12);
SHMEM_AT(shmem_qp, sq_depth, 16);
SHMEM_AT(shmem_qp, cq_depth, 20);
SHMEM_AT(shmem_qp, cqe_size, 24);
SHMEM_AT(shmem_qp, sl, 28);
SHMEM_AT(shmem_qp, sq_buf, 32);
SHMEM_AT(shmem_qp, cq_buf, 40);
SHMEM_AT(shmem_qp, sq_db, 48);
SHMEM_AT(shmem_qp, cq_db, 56);
SHMEM_AT(shmem_qp, results, 64);
SHMEM_AT(shmem_qp, bounce, 72);
SHMEM_AT(shmem_qp, n_results, 80);
SHMEM_AT(shmem_qp, bounce_size, 84);
SHMEM_AT(shmem_qp, scratch_lkey, 88);
SHMEM_AT(shmem_qp, usable, 92);
SHMEM_AT(shmem_qp, head, 128); /* the core's own line begins here */
SHMEM_AT(shmem_qp, tail, 136);
SHMEM_AT(shmem_qp, cq_ci, 144);
SHMEM_AT(shmem_qp, cq_published, 152);
SHMEM_AT(shmem_qp, bounce_head, 160);
SHMEM_AT(shmem_qp, sync_epoch, 168);
SHMEM_AT(shmem_qp, open, 176);
SHMEM_AT(shmem_qp, broken, 180);
SHMEM_SIZE_IS(shmem_core, 128);
SHMEM_AT(shmem_core, arrived, 0);
SHMEM_AT(shmem_core, released, 8);
SHMEM_AT(shmem_core, epoch, 16);
SHMEM_AT(shmem_core, owner, 24);
SHMEM_AT(shmem_core, left_open, 32);
SHMEM_AT(shmem_core, data_requests, 64); /* a line of its own */
SHMEM_AT(shmem_core, sync_requests, 72);
SHMEM_AT(shmem_core, sq_doorbells, 80);
SHMEM_AT(shmem_core, cq_doorbells, 88);
SHMEM_AT(shmem_core, ring_copies, 96);
SHMEM_AT(shmem_core, polls, 104);
SHMEM_AT(shmem_core, roce_bytes, 112);
SHMEM_AT(shmem_core, mapped_bytes, 120);
SHMEM_SIZE_IS(shmem_error, 64);
SHMEM_AT(shmem_error, code, 0);
SHMEM_AT(shmem_error, pe, 4);
SHMEM_AT(shmem_error, qpn, 8);
SHMEM_AT(shmem_error, syndrome, 12);
SHMEM_AT(shmem_error, op, 16);
SHMEM_AT(shmem_error, core, 20);
SHMEM_AT(shmem_error, tick, 24);
SHMEM_AT(shmem_error, detail0, 32);
SHMEM_AT(shmem_error, detail1, 40);
SHMEM_SIZE_IS(shmem_abort, 64);
SHMEM_AT(shmem_abort, pe, 4);
SHMEM_SIZE_IS(shmem_ctx, 256);
SHMEM_AT(shmem_ctx, my_pe, 8);
SHMEM_AT(shmem_ctx, n_pes, 12);
SHMEM_AT(shmem_ctx, heap_base, 16);
SHMEM_AT(shmem_ctx, heap_size, 24);
SHMEM_AT(shmem_ctx, peers, 32);
SHMEM_AT(shmem_ctx, qps, 40);
SHMEM_AT(shmem_ctx, cores, 48);
SHMEM_AT(shmem_ctx, errors, 56);
SHMEM_AT(shmem_ctx, abort, 64);
SHMEM_AT(shmem_ctx, sync_offset, 72);
SHMEM_AT(shmem_ctx, timeout_ticks, 80);
SHMEM_AT(shmem_ctx, ticks_per_second, 88);
SHMEM_AT(shmem_ctx, max_message, 96);
SHMEM_AT(shmem_ctx, n_cores, 104);
SHMEM_AT(shmem_ctx, atomic_domain, 108);
SHMEM_AT(shmem_ctx, default_engine, 112);
SHMEM_AT(shmem_ctx, flags, 116);
SHMEM_AT(shmem_ctx, heap_lkey, 120);
SHMEM_AT(shmem_ctx, teams, 128);
SHMEM_AT(shmem_ctx, contexts, 136);
SHMEM_AT(shmem_ctx, regions, 144);
SHMEM_AT(shmem_ctx, id, 152);
SHMEM_AT(shmem_ctx, team, 156);
SHMEM_AT(shmem_ctx, world_team, 160);
SHMEM_AT(shmem_ctx, options, 164);
SHMEM_AT(shmem_ctx, n_contexts, 168);
SHMEM_AT(shmem_ctx, n_regions, 172);
SHMEM_SIZE_IS(shmem_region, 64);
SHMEM_AT(shmem_region, base, 8);
SHMEM_AT(shmem_region, bytes, 16);
SHMEM_AT(shmem_region, peers, 24);
SHMEM_AT(shmem_region, lkey, 32);
SHMEM_SIZE_IS(shmem_team, 128);
SHMEM_AT(shmem_team, magic, 0);
SHMEM_AT(shmem_team, version, 4);
SHMEM_AT(shmem_team, size, 6);
SHMEM_AT(shmem_team, my_pe, 8);
SHMEM_AT(shmem_team, n_pes, 12);
SHMEM_AT(shmem_team, members, 16);
SHMEM_AT(shmem_team, numbers, 24);
SHMEM_AT(shmem_team, rounds, 32);
SHMEM_AT(shmem_team, counts, 40);
SHMEM_AT(shmem_team, epoch, 64); /* a line of its own */
SHMEM_AT(shmem_team, exchanges, 72);

#undef SHMEM_SIZE_IS
#undef SHMEM_AT

#endif
