/* shmem.h: OpenSHMEM 1.6 for C and C++ over npushmem.
 *
 * Everything the standard has, deprecated names included, for programs built with oshcc, oshcxx or pkg-config npushmem. What each routine
 * means is the standard's text; the prototypes are in npushmem/declarations.h, section by section. Type-generic names need C11 or C++.
 *
 * Wider than the standard: shmem_sync_pe; waits, tests and locks take pointers to volatile; shmemx.h has more.
 * The inline path (npushmem/fast.h) is on under oshcc; NPUSHMEM_NO_INLINE turns it off. */
#ifndef NPUSHMEM_SHMEM_H
#define NPUSHMEM_SHMEM_H

#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <stddef.h>
#include <stdint.h>

/* By these two macros existing packages (shmem4py) recognise a library whose header has all of OpenSHMEM 1.5. */
#define SHMEM_DEF_H 1
#define SHMEM_FUNCTION_ATTRIBUTES

#if defined(__GNUC__)
#define SHMEMI_NORETURN __attribute__((__noreturn__))
#else
#define SHMEMI_NORETURN
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Handles are opaque. */
typedef struct shmemi_ctx *shmem_ctx_t;
typedef struct shmemi_team *shmem_team_t;

/* Configuration of a team (Team Management Routines). */
typedef struct {
  int num_contexts; /* contexts that the team should be able to have at once */
} shmem_team_config_t;

/* Configuration of a session on a context (Communication Management Routines). */
typedef struct {
  size_t total_ops; /* operations that the session will have, as a hint */
} shmem_ctx_session_config_t;

#include "npushmem/constants.h"
#include "npushmem/declarations.h"
#include "npushmem/deprecated.h"

#if defined(NPUSHMEM_OSHCC) && !defined(NPUSHMEM_NO_INLINE)
#include "npushmem/fast.h"
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#if defined(__cplusplus)
#include "npushmem/overloads.h"
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "npushmem/generic.h"
#endif

#endif /* NPUSHMEM_SHMEM_H */
