//! The profiling interface (OpenSHMEM 1.6, 10): finds out whether a tool has put its own routines in front of the library's.
//!
//! A tool defines `shmem_NAME` and calls `pshmem_NAME`. It sees calls, not what shmem.h inlines: with a tool there the inline path stays off.
//! Not here: the `pshmem_` names (entry.rs makes them).

use std::ffi::{c_void, CStr};

/// Routines that a tool would replace: one of each inline family.
const WATCHED: [&CStr; 10] = [
    c"shmem_long_p",
    c"shmem_int_p",
    c"shmem_long_g",
    c"shmem_putmem",
    c"shmem_getmem",
    c"shmem_double_put",
    c"shmem_int_put",
    c"shmem_long_atomic_fetch_add",
    c"shmem_int_atomic_fetch_add",
    c"shmem_long_atomic_compare_swap",
];

/// Whether a program's call to one of the library's routines goes elsewhere.
pub(crate) fn replaced() -> bool {
    let own = object_of(replaced as fn() -> bool as *const c_void);
    WATCHED.iter().any(|name| {
        // SAFETY: a look-up by name in what is loaded.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // Not found: the library was loaded privately, and nobody stands in front of it.
        !found.is_null() && object_of(found) != own
    })
}

/// The load address of the object that `at` belongs to; 0: none.
fn object_of(at: *const c_void) -> usize {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: fills the structure or fails.
    if unsafe { libc::dladdr(at, &raw mut info) } == 0 {
        return 0;
    }
    info.dli_fbase as usize
}
