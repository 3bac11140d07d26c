//! Distributed locks (OpenSHMEM 1.6, 9.12): set_lock, clear_lock, test_lock; and the cache calls that no machine needs any more (9.13).
//!
//! A lock is PE 0's instance of the symmetric `long`: the lower half says which ticket is served, the upper half which is given out next. So
//! locks are granted in the order of the calls, 0 is a free lock, and an uncontended one costs two atomic additions.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::entry::{entry, hot};
use crate::order::{full_fence, store_fence};
use crate::state::{self, routine, target, CRoutine};

/// One in the upper half.
const TICKET: u64 = 1 << 32;

fn next(lock: u64) -> u32 {
    (lock >> 32) as u32
}

fn served(lock: u64) -> u32 {
    lock as u32
}

/// PE 0's instance of a lock.
#[inline(always)]
unsafe fn at<'a>(routine: &'static CRoutine, lock: *mut c_long) -> &'a AtomicU64 {
    let at = target(routine, lock as usize, size_of::<c_long>(), 0);
    // SAFETY: the caller's symmetric variable on PE 0, mapped and aligned.
    unsafe { AtomicU64::from_ptr(at.cast()) }
}

#[cold]
#[inline(never)]
fn wait(lock: &AtomicU64, ticket: u32) {
    crate::wait::until(|| served(lock.load(Ordering::Acquire)) == ticket);
}

entry! {
    /// Takes a lock, in the order of the calls.
    fn shmem_set_lock(lock: *mut c_long) {
        // SAFETY: the caller's symmetric variable.
        let lock = unsafe { at(routine!(shmem_set_lock), lock) };
        let before = lock.fetch_add(TICKET, Ordering::AcqRel);
        if next(before) != served(before) {
            wait(lock, next(before));
        }
    }
}

hot! {
    /// Gives a lock back. What this PE stored before is visible first.
    fn shmem_clear_lock(lock: *mut c_long) {
        let lock = at(routine!(shmem_clear_lock), lock);
        let now = lock.load(Ordering::Relaxed);
        if state::debugging() && next(now) == served(now) {
            state::fail("shmem_clear_lock", "the lock is not set");
        }
        // Only the holder changes the lower half; its overflow must not reach the upper one.
        let step = if served(now) == u32::MAX { 1u64.wrapping_sub(TICKET) } else { 1 };
        lock.fetch_add(step, Ordering::AcqRel);
    }

    /// Takes a lock if it is free: 0; else 1.
    fn shmem_test_lock(lock: *mut c_long) -> c_int {
        let lock = at(routine!(shmem_test_lock), lock);
        let now = lock.load(Ordering::Relaxed);
        let free = next(now) == served(now);
        let taken = free
            && lock
                .compare_exchange(now, now.wrapping_add(TICKET), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        c_int::from(!taken)
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
