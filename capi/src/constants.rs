//! The constants of `shmem.h`, in one list: the library uses them as Rust constants, the generator of the header writes them as macros.
//!
//! Not the types of typed routines: `table.rs` has those. Values that the device API also has (`device/shmem.h`: comparisons, signal
//! operators) are the same there. Source of names and meaning: OpenSHMEM 1.6, library constants and library handles.

// The generator and the library each use a part of it.
#![allow(dead_code)]

use core::ffi::{c_int, c_long};

/// `SHMEM_VENDOR_STRING`, and what `shmem_info_get_name` gives. At most [`SHMEM_MAX_NAME_LEN`] bytes with its end.
pub const VENDOR_STRING: &str = npushmem::openshmem::VENDOR_STRING;

/// Longs in every pSync array, whatever the collective: the standard's sizes are all this one.
pub const SYNC_LONGS: c_int = 64;

/// Defines the constants and [`CONSTANTS`], the list that the header is written from.
macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $value:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: $type = $value;)+

        /// Each constant: its name, value and meaning, in the order of the header.
        pub const CONSTANTS: &[(&str, i64, &str)] = &[$((stringify!($name), $value as i64, concat!($($doc),+))),+];
    };
}

constants! {
    /// Version of the standard: 1.6.
    SHMEM_MAJOR_VERSION: c_int = npushmem::openshmem::VERSION.0;
    /// Version of the standard: 1.6.
    SHMEM_MINOR_VERSION: c_int = npushmem::openshmem::VERSION.1;
    /// Bytes that shmem_info_get_name may write.
    SHMEM_MAX_NAME_LEN: c_int = npushmem::openshmem::MAX_NAME_LEN as c_int;
    /// One thread.
    SHMEM_THREAD_SINGLE: c_int = 0;
    /// Several threads, the main one calls.
    SHMEM_THREAD_FUNNELED: c_int = 1;
    /// Several threads call, one at a time.
    SHMEM_THREAD_SERIALIZED: c_int = 2;
    /// Any thread calls at any time.
    SHMEM_THREAD_MULTIPLE: c_int = 3;
    /// num_contexts of a team's configuration counts.
    SHMEM_TEAM_NUM_CONTEXTS: c_long = 1;
    /// The context is used by one thread at a time.
    SHMEM_CTX_SERIALIZED: c_long = 1;
    /// The context is used by the thread that created it only.
    SHMEM_CTX_PRIVATE: c_long = 2;
    /// Quiet and fence on the context need not cover stores.
    SHMEM_CTX_NOSTORE: c_long = 4;
    /// total_ops of a session's configuration counts.
    SHMEM_CTX_SESSION_TOTAL_OPS: c_long = 1;
    /// Operations of the session may be batched.
    SHMEM_CTX_SESSION_BATCH: c_long = 1;
    /// The signal is set.
    SHMEM_SIGNAL_SET: c_int = 0;
    /// The signal is added to.
    SHMEM_SIGNAL_ADD: c_int = 1;
    /// The memory holds variables of atomics.
    SHMEM_MALLOC_ATOMICS_REMOTE: c_long = 1;
    /// The memory holds signal variables.
    SHMEM_MALLOC_SIGNAL_REMOTE: c_long = 2;
    /// Equal.
    SHMEM_CMP_EQ: c_int = 0;
    /// Not equal.
    SHMEM_CMP_NE: c_int = 1;
    /// Greater than.
    SHMEM_CMP_GT: c_int = 2;
    /// Greater than or equal to.
    SHMEM_CMP_GE: c_int = 3;
    /// Less than.
    SHMEM_CMP_LT: c_int = 4;
    /// Less than or equal to.
    SHMEM_CMP_LE: c_int = 5;
    /// What pSync arrays hold before their first use.
    SHMEM_SYNC_VALUE: c_long = 0;
    /// Longs of a pSync array for any collective.
    SHMEM_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Longs of a pSync array for barrier and sync.
    SHMEM_BARRIER_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Longs of a pSync array for broadcast.
    SHMEM_BCAST_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Longs of a pSync array for reductions.
    SHMEM_REDUCE_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Longs of a pSync array for collect and fcollect.
    SHMEM_COLLECT_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Longs of a pSync array for alltoall.
    SHMEM_ALLTOALL_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Longs of a pSync array for alltoalls.
    SHMEM_ALLTOALLS_SYNC_SIZE: c_int = SYNC_LONGS;
    /// Elements of a pWrk array at least.
    SHMEM_REDUCE_MIN_WRKDATA_SIZE: c_int = 16;
    /// An extension (hint of shmem_malloc_with_hints): no barrier at the end.
    SHMEM_MALLOC_NO_BARRIER: c_long = 1 << 30;
}

/// Handles are pointer-sized numbers behind opaque pointer types in C.
pub mod handle {
    /// `SHMEM_CTX_INVALID`: the null pointer.
    pub const CTX_INVALID: usize = 0;
    /// `SHMEM_CTX_DEFAULT`.
    pub const CTX_DEFAULT: usize = 1;
    /// `SHMEM_TEAM_INVALID`: the null pointer.
    pub const TEAM_INVALID: usize = 0;
    /// `SHMEM_TEAM_WORLD`.
    pub const TEAM_WORLD: usize = 1;
    /// `SHMEM_TEAM_SHARED`.
    pub const TEAM_SHARED: usize = 2;
}

const _: () = assert!(
    VENDOR_STRING.len() < SHMEM_MAX_NAME_LEN as usize,
    "the name must fit"
);
