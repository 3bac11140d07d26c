/* constants.h: constants of OpenSHMEM 1.6 (Library Constants).
 *
 * Generated from host/shm/table.rs and capi/src/constants.rs by `make header`; do not edit. Included by shmem.h; not for programs. */

#define SHMEM_MAJOR_VERSION 1 /* Version of the standard: 1.6. */
#define SHMEM_MINOR_VERSION 6 /* Version of the standard: 1.6. */
#define SHMEM_MAX_NAME_LEN 256 /* Bytes that shmem_info_get_name may write. */
#define SHMEM_THREAD_SINGLE 0 /* One thread. */
#define SHMEM_THREAD_FUNNELED 1 /* Several threads, the main one calls. */
#define SHMEM_THREAD_SERIALIZED 2 /* Several threads call, one at a time. */
#define SHMEM_THREAD_MULTIPLE 3 /* Any thread calls at any time. */
#define SHMEM_TEAM_NUM_CONTEXTS 1L /* num_contexts of a team's configuration counts. */
#define SHMEM_CTX_SERIALIZED 1L /* The context is used by one thread at a time. */
#define SHMEM_CTX_PRIVATE 2L /* The context is used by the thread that created it only. */
#define SHMEM_CTX_NOSTORE 4L /* Quiet and fence on the context need not cover stores. */
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L /* total_ops of a session's configuration counts. */
#define SHMEM_CTX_SESSION_BATCH 1L /* Operations of the session may be batched. */
#define SHMEM_SIGNAL_SET 0 /* The signal is set. */
#define SHMEM_SIGNAL_ADD 1 /* The signal is added to. */
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L /* The memory holds variables of atomics. */
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L /* The memory holds signal variables. */
#define SHMEM_CMP_EQ 0 /* Equal. */
#define SHMEM_CMP_NE 1 /* Not equal. */
#define SHMEM_CMP_GT 2 /* Greater than. */
#define SHMEM_CMP_GE 3 /* Greater than or equal to. */
#define SHMEM_CMP_LT 4 /* Less than. */
#define SHMEM_CMP_LE 5 /* Less than or equal to. */
#define SHMEM_SYNC_VALUE 0L /* What pSync arrays hold before their first use. */
#define SHMEM_SYNC_SIZE 64 /* Longs of a pSync array for any collective. */
#define SHMEM_BARRIER_SYNC_SIZE 64 /* Longs of a pSync array for barrier and sync. */
#define SHMEM_BCAST_SYNC_SIZE 64 /* Longs of a pSync array for broadcast. */
#define SHMEM_REDUCE_SYNC_SIZE 64 /* Longs of a pSync array for reductions. */
#define SHMEM_COLLECT_SYNC_SIZE 64 /* Longs of a pSync array for collect and fcollect. */
#define SHMEM_ALLTOALL_SYNC_SIZE 64 /* Longs of a pSync array for alltoall. */
#define SHMEM_ALLTOALLS_SYNC_SIZE 64 /* Longs of a pSync array for alltoalls. */
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 16 /* Elements of a pWrk array at least. */
#define SHMEMX_MALLOC_NO_BARRIER 1073741824L /* An extension (hint of shmem_malloc_with_hints): no barrier at the end. */
#define SHMEM_VENDOR_STRING "npushmem 0.1.0"

/* Names with an underscore in front (deprecated). */
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_SYNC_SIZE SHMEM_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE

/* Handles: numbers behind opaque pointers. */
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2)
