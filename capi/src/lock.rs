//! Distributed locks (OpenSHMEM 1.6, 9.12): set_lock, clear_lock, test_lock; and the cache calls that no machine needs any more (9.13).
//!
//! A lock is PE 0's instance of the symmetric `long`; what is in it: `npushmem::shm::lock`.

use std::ffi::{c_int, c_long, c_void};

use crate::entry::{self, hot};
use crate::order::{full_fence, store_fence};
use crate::state::{self, distance, fast, routine, CRoutine};
use npushmem::shm::lock::{before, enter, is_free, is_served, leave, try_enter};
use npushmem::shm::wait::{self, Waiting};

fn slow_lock(routine: &'static CRoutine, lock: *mut c_long) -> *mut u8 {
    state::slow_target(routine, lock as usize, size_of::<c_long>(), 0)
}

#[cold]
#[inline(never)]
fn wait_for(at: *mut u8, ticket: u32) {
    entry::guard("shmem_set_lock", || {
        let address = at as usize;
        let what = || {
            Waiting {
            routine: "shmem_set_lock",
            what: format!(
                "the lock whose instance on PE 0 is at {address:#x} here, which {} who asked before have not cleared",
                // SAFETY: a lock.
                unsafe { before(address as *mut u8, ticket) }
            ),
        }
        };
        // SAFETY: a lock.
        wait::until_for(&what, || unsafe { is_served(at, ticket) });
    });
}

#[inline(always)]
unsafe fn set(at: *mut u8) {
    // SAFETY: a lock.
    if let Some(ticket) = unsafe { enter(at) } {
        wait_for(at, ticket);
    }
}

#[inline(always)]
unsafe fn test(at: *mut u8) -> c_int {
    // SAFETY: a lock.
    c_int::from(unsafe { !try_enter(at) })
}

/// `SHMEM_DEBUG`: a lock that is cleared must be set.
unsafe fn slow_clear(routine: &'static CRoutine, lock: *mut c_long) -> *mut u8 {
    let at = slow_lock(routine, lock);
    // SAFETY: a lock.
    if unsafe { is_free(at) } {
        state::fail(routine.0, "argument lock: the lock is not set");
    }
    at
}

hot! {
    /// Takes a lock, in the order of the calls.
    fn shmem_set_lock(lock: *mut c_long) {
        fast!((lock: *mut c_long), lock at distance(0), slow slow_lock(routine!(shmem_set_lock), lock), |at| set(at))
    }

    /// Gives a lock back. What this PE stored before is visible first.
    fn shmem_clear_lock(lock: *mut c_long) {
        fast!((lock: *mut c_long), lock at distance(0), slow slow_clear(routine!(shmem_clear_lock), lock), |at| leave(at))
    }

    /// Takes a lock if it is free: 0; else 1.
    fn shmem_test_lock(lock: *mut c_long) -> c_int {
        fast!((lock: *mut c_long) -> c_int, lock at distance(0), slow slow_lock(routine!(shmem_test_lock), lock), |at| test(at))
    }

    /// Deprecated; caches are coherent.
    fn shmem_clear_cache_inv() {}

    /// Deprecated; caches are coherent.
    fn shmem_set_cache_inv() {}

    /// Deprecated; caches are coherent.
    fn shmem_clear_cache_line_inv(_dest: *mut c_void) {}

    /// Deprecated; caches are coherent.
    fn shmem_set_cache_line_inv(_dest: *mut c_void) {}

    /// Deprecated; caches are coherent.
    fn shmem_udcflush() {
        full_fence();
    }

    /// Deprecated; caches are coherent.
    fn shmem_udcflush_line(_dest: *mut c_void) {
        store_fence();
    }
}
