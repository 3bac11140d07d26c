//! Which OpenSHMEM this is: version, name and limits, for the C API's header and queries and for `npushmem info`.
//!
//! What it is not: the C API's other constants (capi/src/constants.rs).

/// Version of the standard that the C API implements: major and minor number.
pub const VERSION: (i32, i32) = (1, 6);

/// `SHMEM_VENDOR_STRING`, and what `shmem_info_get_name` gives.
pub const VENDOR_STRING: &str = concat!("npushmem ", env!("CARGO_PKG_VERSION"));

/// `SHMEM_MAX_NAME_LEN`: bytes of the longest name, its end included.
pub const MAX_NAME_LEN: usize = 256;

/// The thread level that every program gets which asks for it.
pub const THREAD_LEVEL: &str = "SHMEM_THREAD_MULTIPLE";
