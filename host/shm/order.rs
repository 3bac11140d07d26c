//! Fences between processes that share memory (OpenSHMEM 1.6, section "Memory Ordering Routines").
//!
//! Every transfer is complete when its routine returns, as far as this CPU is concerned: what is left is to order stores among themselves
//! (fence) and against later loads (quiet). Not barriers.

use std::sync::atomic::{fence, Ordering};

/// Completes: everything before is visible to every PE, and later loads see what is visible then. On x86-64 the one order that the
/// hardware does not keep by itself is a store before a later load, so this is a real instruction.
#[inline(always)]
pub fn full_fence() {
    // A locked instruction on the own stack orders as mfence does, for ordinary memory, and is not slower on any x86-64.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: adds 0 to a word of the red zone of this function's own stack.
    unsafe {
        core::arch::asm!("lock or dword ptr [rsp - 8], 0", options(nostack))
    };
    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
}

/// Orders what this PE has put before what it puts later. On x86-64 stores stay in order by themselves, and so do the locked instructions of
/// atomics, so this only keeps the compiler in order.
#[inline(always)]
pub fn store_fence() {
    fence(Ordering::Release);
}
