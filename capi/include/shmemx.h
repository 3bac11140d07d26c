/* shmemx.h: what goes beyond OpenSHMEM 1.6, by names that programs for other libraries know.
 *
 * Each is a thin layer over shmem.h, here in the header; the library has no symbols for them. */
#ifndef NPUSHMEM_SHMEMX_H
#define NPUSHMEM_SHMEMX_H

#include "shmem.h"

#if defined(__GNUC__)
#pragma GCC system_header
#endif

/* PEs of this machine: on one machine all of them. */
#define SHMEMX_TEAM_NODE SHMEM_TEAM_SHARED
/* SHMEMX_MALLOC_NO_BARRIER, a hint of shmem_malloc_with_hints, is in npushmem/constants.h: no barrier at the end; the program synchronises
 * before others use the memory. */

#ifdef __cplusplus
extern "C" {
#endif

/* Two PEs meet: returns when PE pe has called it with this PE's number as often as this PE with pe's. */
static inline void shmemx_sync_pe(int pe) { shmem_sync_pe(pe); }

/* Signals, by their names before OpenSHMEM 1.6. */
#define shmemx_signal_set shmem_signal_set
#define shmemx_signal_add shmem_signal_add

/* A function that numbers threads. The library needs none: contexts and threads are told apart without. */
static inline void shmemx_register_gettid(uint64_t (*gettid)(void)) { (void)gettid; }

/* Counters of requests. Where memory is mapped a transfer is loads and stores: nothing is issued, nothing pending, all counters are zero. */
typedef struct {
  uint64_t completed_put;
  uint64_t completed_get;
  uint64_t pending_put;
  uint64_t pending_get;
  uint64_t target;
} shmemx_pcntr_t;
static inline void shmemx_pcntr_get_issued_write(shmem_ctx_t ctx, uint64_t *value) { (void)ctx, *value = 0; }
static inline void shmemx_pcntr_get_issued_read(shmem_ctx_t ctx, uint64_t *value) { (void)ctx, *value = 0; }
static inline void shmemx_pcntr_get_completed_write(shmem_ctx_t ctx, uint64_t *value) { (void)ctx, *value = 0; }
static inline void shmemx_pcntr_get_completed_read(shmem_ctx_t ctx, uint64_t *value) { (void)ctx, *value = 0; }
static inline void shmemx_pcntr_get_completed_target(uint64_t *value) { *value = 0; }
static inline void shmemx_pcntr_get_all(shmem_ctx_t ctx, shmemx_pcntr_t *pcntr) {
  const shmemx_pcntr_t none = {0, 0, 0, 0, 0};
  (void)ctx, *pcntr = none;
}

/* Counting transfers: a counter is a symmetric word that the target PE waits on. Creating and freeing one is collective. */
typedef long *shmemx_ct_t;
static inline void shmemx_ct_create(shmemx_ct_t *ct) { *ct = (long *)shmem_calloc(1, sizeof(long)); }
static inline void shmemx_ct_free(shmemx_ct_t *ct) {
  shmem_free(*ct);
  *ct = 0;
}
static inline long shmemx_ct_get(shmemx_ct_t ct) { return shmem_long_atomic_fetch(ct, shmem_my_pe()); }
static inline void shmemx_ct_set(shmemx_ct_t ct, long value) { shmem_long_atomic_set(ct, value, shmem_my_pe()); }
static inline void shmemx_ct_wait(shmemx_ct_t ct, long value) { shmem_long_wait_until(ct, SHMEM_CMP_GE, value); }
static inline void shmemx_putmem_ct(shmemx_ct_t ct, void *dest, const void *source, size_t bytes, int pe) {
  shmem_putmem(dest, source, bytes, pe);
  shmem_fence();
  shmem_long_atomic_inc(ct, pe);
}
static inline void shmemx_getmem_ct(shmemx_ct_t ct, void *dest, const void *source, size_t bytes, int pe) {
  shmem_getmem(dest, source, bytes, pe);
  shmem_long_atomic_inc(ct, pe);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

/* Strided blocks and scans, by their names before OpenSHMEM 1.6. */
#include "npushmem/extensions.h"

#endif /* NPUSHMEM_SHMEMX_H */
