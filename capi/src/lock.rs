//! Distributed locks (OpenSHMEM 1.6, 9.12): set_lock, clear_lock, test_lock; and the cache calls that no machine needs any more (9.13).
//!
//! A lock is PE 0's instance of the symmetric `long`: the lower half says which ticket is served, the upper half which is given out next. So
//! locks are granted in the order of the calls, 0 is a free lock, and an uncontended one costs two atomic additions.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::entry::{self, hot};
use crate::order::{full_fence, store_fence};
use crate::state::{self, distance, fast, routine, CRoutine};

/// One in the upper half.
const TICKET: u64 = 1 << 32;

fn next(lock: u64) -> u32 {
    (lock >> 32) as u32
}

fn served(lock: u64) -> u32 {
    lock as u32
}

/// The lock at `at`.
#[inline(always)]
unsafe fn cell<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: the caller's symmetric variable on PE 0, mapped and aligned.
    unsafe { AtomicU64::from_ptr(at.cast()) }
}

fn slow_lock(routine: &'static CRoutine, lock: *mut c_long) -> *mut u8 {
    state::slow_target(routine, lock as usize, size_of::<c_long>(), 0)
}

#[cold]
#[inline(never)]
fn wait(lock: &AtomicU64, ticket: u32) {
    entry::guard("shmem_set_lock", || {
        npushmem::shm::wait::until(|| served(lock.load(Ordering::Acquire)) == ticket);
    });
}

#[inline(always)]
unsafe fn set(at: *mut u8) {
    // SAFETY: a lock.
    let lock = unsafe { cell(at) };
    let before = lock.fetch_add(TICKET, Ordering::AcqRel);
    if next(before) != served(before) {
        wait(lock, next(before));
    }
}

#[inline(always)]
unsafe fn clear(at: *mut u8) {
    // SAFETY: a lock.
    let lock = unsafe { cell(at) };
    // Only the holder changes the lower half; its overflow must not reach the upper one.
    let step = if served(lock.load(Ordering::Relaxed)) == u32::MAX {
        1u64.wrapping_sub(TICKET)
    } else {
        1
    };
    lock.fetch_add(step, Ordering::AcqRel);
}

#[inline(always)]
unsafe fn test(at: *mut u8) -> c_int {
    // SAFETY: a lock.
    let lock = unsafe { cell(at) };
    let now = lock.load(Ordering::Relaxed);
    let taken = next(now) == served(now)
        && lock
            .compare_exchange(
                now,
                now.wrapping_add(TICKET),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok();
    c_int::from(!taken)
}

/// `SHMEM_DEBUG`: a lock that is cleared must be set.
unsafe fn slow_clear(routine: &'static CRoutine, lock: *mut c_long) -> *mut u8 {
    let at = slow_lock(routine, lock);
    // SAFETY: a lock.
    let now = unsafe { cell(at) }.load(Ordering::Relaxed);
    if next(now) == served(now) {
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
        fast!((lock: *mut c_long), lock at distance(0), slow slow_clear(routine!(shmem_clear_lock), lock), |at| clear(at))
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
