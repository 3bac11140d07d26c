/* npushmem on the device: teams, and the collectives of a kernel. Part of the contract for people; included by shmem.h, which says what holds
 * for all calls. Mechanics: impl/team.h, collect.h, team_data.h, reduce.h.
 *
 * TEAMS are made by the host (World::team_split_strided, team_split_2d, team_from_pes) and given to kernels as a number, the handle, which is
 * the same on all members. SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED always exist. Collectives of a team are called by all its members, by
 * all communicating cores of each launch, in the same order. Errors of all that take a team: SHMEM_E_TEAM when this PE is not in it.
 */
#ifndef SHMEM_COLLECTIVES_H
#define SHMEM_COLLECTIVES_H

#include "abi.h"

typedef int32_t shmem_team_t;

/* --- Teams (OpenSHMEM 1.6, Team Management Routines) ---------------------------------------------------------------------------- */

/* This PE's number in the team, and how many PEs it has; -1 when this PE is not in it (no error). No communication. */
__aicore__ inline int shmem_team_my_pe(shmem_team_t team);
__aicore__ inline int shmem_team_n_pes(shmem_team_t team);
/* The number in `to` of the PE that is number `pe` of `from`; -1 when it is not in both, or this PE is not in both teams. */
__aicore__ inline int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to);

/* All members meet. Before it every call of every core is done and visible, as for barrier_all. */
__aicore__ inline void shmem_barrier(shmem_team_t team);
/* Meets only (OpenSHMEM 1.6, shmem_team_sync): nothing is completed, what is staged is rung. */
__aicore__ inline void shmem_team_sync(shmem_team_t team);

/* --- Collectives (OpenSHMEM 1.6, Collective Routines) -----------------------------------------------------------------------------
 *
 * dst and src are symmetric; n is the same on all members (but for collect) and counts elements; n = 0 does nothing. As the standard
 * asks, dst must be ready on all members before any of them calls: a barrier stands between two collectives with the same dst. On
 * return this PE's dst is complete, and its src may be changed; all earlier calls of the calling cores are done and visible as after quiet.
 * The cores of a PE share the work; what one core has made another one may send, so sources need no barrier of one's own. None needs
 * atomics. dst and src do not overlap unless it is said. Each ends with one meeting of the members (dissemination, ceil(log2 n) steps).
 * Errors: SHMEM_E_TEAM, _PE (root), _USAGE (strides), _SPACE (scratch).
 *
 * COST for n bytes and P members, per member: broadcast: the root sends to each; from 64 KiB on each member passes a part on (2 n bytes, one more
 * meeting). collect, fcollect: P sends of n (collect: P words and a meeting more). alltoall: P sends. reduce: one meeting before, then n bytes
 * read and n written in all, P reads and P writes per block of a tile. reduce_scatter: the reads. scans: as reduce. */

/* src of member `root` to dst of all members, the root included (where dst may be src). */
template <typename T>
__aicore__ inline void shmem_broadcast(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n, int root);
/* The members' elements one after the other, in the order of the team: n may differ (collect), or is the same (fcollect). */
template <typename T>
__aicore__ inline void shmem_collect(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);
template <typename T>
__aicore__ inline void shmem_fcollect(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);
/* Block i (n elements) of src goes to member i, as block my_pe of its dst. alltoalls: elements lie dst_stride and src_stride apart. */
template <typename T>
__aicore__ inline void shmem_alltoall(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);
template <typename T>
__aicore__ inline void shmem_alltoalls(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, int64_t dst_stride, int64_t src_stride,
                                       uint64_t n);
__aicore__ inline void shmem_broadcastmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes, int root);
__aicore__ inline void shmem_collectmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes);
__aicore__ inline void shmem_fcollectmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes);
__aicore__ inline void shmem_alltoallmem(shmem_team_t team, __gm__ void* dst, const __gm__ void* src, uint64_t bytes);

/* REDUCTIONS. dst[i] = ((x0[i] op x1[i]) op x2[i]) ..., where xk is src of member k: this order on every member, so floats give the same
 * bits everywhere and in every run with the same team. Integers wrap. dst may be src. UB is the library's range, or `scratch` of the caller
 * (at least 64 bytes; its halves are tiles); each element is computed by one PE. types.h says which unit computes what.
 *   shmem_OP_reduce(team, dst, src, n [, scratch])            OP: sum prod min max and or xor; dst of n elements everywhere
 *   shmem_OP_reduce_scatter(team, dst, src, n [, scratch])    (ours) src of n x members elements, dst: block my_pe of the result
 *   shmem_sum_inscan(team, dst, src, n [, scratch])           dst of member k: x0 + ... + xk
 *   shmem_sum_exscan(team, dst, src, n [, scratch])           dst of member k: x0 + ... + x(k-1), 0 on member 0 */
template <typename T>
__aicore__ inline void shmem_sum_reduce(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);
template <typename T>
__aicore__ inline void shmem_sum_reduce(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n,
                                        const AscendC::LocalTensor<T>& scratch);
template <typename T>
__aicore__ inline void shmem_sum_reduce_scatter(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);
template <typename T>
__aicore__ inline void shmem_sum_inscan(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);
template <typename T>
__aicore__ inline void shmem_sum_exscan(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n);

/* Typed names: shmem_TYPE_broadcast, collect, fcollect, alltoall, alltoalls for all rows of types.h; shmem_TYPE_OP_reduce, reduce_scatter and
 * the scans for the types passed by value (and, or, xor: its integers). */

#endif
