//! Distributed locks (OpenSHMEM 1.6, section "Distributed Locking Routines"): one word in PE 0's memory.
//!
//! The lower half says which ticket is served, the upper half which is given out next. So locks are granted in the order of the calls, 0 is a
//! free lock, and an uncontended one costs two atomic additions. Not the waiting: the callers do that, each in its own way.

use std::sync::atomic::{AtomicU64, Ordering};

/// One in the upper half.
const TICKET: u64 = 1 << 32;

fn next(lock: u64) -> u32 {
    (lock >> 32) as u32
}

fn served(lock: u64) -> u32 {
    lock as u32
}

/// The lock at `at`.
///
/// # Safety
/// `at` is PE 0's instance of a lock: mapped, aligned to 8 bytes, used by nothing else.
#[inline(always)]
unsafe fn cell<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: by this function's contract.
    unsafe { AtomicU64::from_ptr(at.cast()) }
}

/// Asks for the lock: `None`, it is held now; else the ticket with which to wait until [`is_served`].
///
/// # Safety
/// `at` is a lock.
#[inline(always)]
pub unsafe fn enter(at: *mut u8) -> Option<u32> {
    // SAFETY: by this function's contract.
    let before = unsafe { cell(at) }.fetch_add(TICKET, Ordering::AcqRel);
    (next(before) != served(before)).then_some(next(before))
}

/// Whether it is this ticket's turn.
///
/// # Safety
/// `at` is a lock.
#[inline(always)]
pub unsafe fn is_served(at: *mut u8, ticket: u32) -> bool {
    // SAFETY: by this function's contract.
    served(unsafe { cell(at) }.load(Ordering::Acquire)) == ticket
}

/// How many hold or want the lock before this ticket's turn.
///
/// # Safety
/// `at` is a lock.
pub unsafe fn before(at: *mut u8, ticket: u32) -> u32 {
    // SAFETY: by this function's contract.
    ticket.wrapping_sub(served(unsafe { cell(at) }.load(Ordering::Relaxed)))
}

/// Gives the lock back; the caller holds it. What it stored before is visible to the next holder.
///
/// # Safety
/// `at` is a lock.
#[inline(always)]
pub unsafe fn leave(at: *mut u8) {
    // SAFETY: by this function's contract.
    let lock = unsafe { cell(at) };
    // Only the holder changes the lower half; its overflow must not reach the upper one.
    let step = if served(lock.load(Ordering::Relaxed)) == u32::MAX {
        1u64.wrapping_sub(TICKET)
    } else {
        1
    };
    lock.fetch_add(step, Ordering::AcqRel);
}

/// Takes the lock if it is free.
///
/// # Safety
/// `at` is a lock.
#[inline(always)]
pub unsafe fn try_enter(at: *mut u8) -> bool {
    // SAFETY: by this function's contract.
    let lock = unsafe { cell(at) };
    let now = lock.load(Ordering::Relaxed);
    next(now) == served(now)
        && lock
            .compare_exchange(
                now,
                now.wrapping_add(TICKET),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
}

/// Whether nobody holds or wants it.
///
/// # Safety
/// `at` is a lock.
pub unsafe fn is_free(at: *mut u8) -> bool {
    // SAFETY: by this function's contract.
    let now = unsafe { cell(at) }.load(Ordering::Relaxed);
    next(now) == served(now)
}
