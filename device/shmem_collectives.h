/* npushmem on the device: teams, and the collectives of a kernel. Part of the contract for people; included by shmem.h, which says what holds
 * for all calls. Mechanics: impl/team.h, impl/collect.h.
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

#endif
