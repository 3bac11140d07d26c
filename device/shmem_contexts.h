/* npushmem on the device: contexts. Part of the contract for people; included by shmem.h, which says what holds for all calls. Mechanics:
 * impl/context.h (what a context is), impl/contexts.h (the calls).
 *
 * A CONTEXT (OpenSHMEM 1.6, Communication Management Routines) is made by the host (World::create_context) and given to kernels as a number, the
 * handle. It has queue pairs of its own on each core, so that its order and completion are its own: fence and quiet of one context poll, ring
 * and wait for nothing of another. SHMEM_CTX_DEFAULT is the context that the kernel attached; calls without a context use it.
 *
 * PEs are numbered as in the context's team. Its engine (mapped, roce, default) is the host's choice. Options: SHMEM_CTX_PRIVATE: comm core 0
 * alone may use it, and only it has queue pairs; SHMEM_CTX_SERIALIZED: changes nothing, since every core has its own; SHMEM_CTX_NOSTORE: its
 * fence and quiet do not cover the kernel's own stores through shmem_ptr, and leave the MTE queues alone while it made no mapped access.
 *
 * LIMITS. SHMEM_CTX_MAX contexts a PE, the default included. Queue pairs of all contexts count against NPUSHMEM_QP_BUDGET. Contexts share a core's
 * staging sets (8 at most), so calls that take turns between more (context, PE) than those ring more often; and its MTE queues, so the mapped
 * copies of all contexts complete together. Barriers and collectives belong to the attached context and complete that one alone: quiet the
 * others first. One kernel has a context at a time. An error ends the calls of all contexts of the core.
 *
 * Errors beside those of the same call without a context: SHMEM_E_CONTEXT (no such context), _CORE (a core that it has no queue pairs for), _BUSY
 * (another kernel has it), _PE (number outside its team). */
#ifndef SHMEM_CONTEXTS_H
#define SHMEM_CONTEXTS_H

#include "abi.h"

typedef int32_t shmem_ctx_t;

/* The context's team (OpenSHMEM 1.6, shmem_ctx_get_team). No communication. */
__aicore__ inline shmem_team_t shmem_ctx_get_team(shmem_ctx_t ctx);

/* Order and completion of the context's calls, as shmem_fence, fence_pe, quiet, pe_quiet, flush and commit say. */
__aicore__ inline void shmem_ctx_fence(shmem_ctx_t ctx);
__aicore__ inline void shmem_ctx_fence_pe(shmem_ctx_t ctx, int pe);
__aicore__ inline void shmem_ctx_quiet(shmem_ctx_t ctx);
__aicore__ inline void shmem_ctx_pe_quiet(shmem_ctx_t ctx, int pe);
__aicore__ inline void shmem_ctx_flush(shmem_ctx_t ctx);
__aicore__ inline void shmem_ctx_commit(shmem_ctx_t ctx);
/* A place in the context's requests toward pe; shmem_done and shmem_wait take it as it is. */
__aicore__ inline shmem_ticket shmem_ctx_last(shmem_ctx_t ctx, int pe);

/* Every call that takes a PE last exists with the context first and shmem_ctx_ for shmem_:
 *   shmem_ctx_put(ctx, dst, src, n, pe)            get, put_nbi, get_nbi, put_signal, put_signal_nbi, iput, iget, ibput, ibget, p, g,
 *                                                  from GM and, where the call without a context takes it, from UB
 *   shmem_ctx_atomic_add(ctx, dst, value, pe)      all atomics of shmem.h in all their forms
 *   shmem_ctx_putmem(ctx, ...), getmem, _nbi, putmem_signal, _nbi; shmem_ctx_put32(ctx, ...) and all sizes; signal_op, signal_set, signal_add
 *   shmem_ctx_TYPE_put(ctx, ...), ...              the typed names of the same tables as without a context */

#endif
