//! Memory ordering (OpenSHMEM 1.6, 9.11): fence, quiet, pe_quiet and their context forms.
//!
//! Every transfer is complete when its routine returns, as far as this CPU is concerned: what is left is to order stores among themselves
//! (fence) and against later loads (quiet). Not here: barriers.

use std::ffi::c_int;
use std::sync::atomic::{fence, Ordering};

use crate::context::{self, Ctx};
use crate::entry::hot;
use crate::state::{self, routine, CRoutine};

/// Completes: everything before is visible to every PE, and later loads see what is visible then. On x86-64 the one order that the
/// hardware does not keep by itself is a store before a later load, so this is a real instruction.
#[inline(always)]
pub(crate) fn full_fence() {
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
pub(crate) fn store_fence() {
    fence(Ordering::Release);
}

unsafe fn pe_quiet(routine: &'static CRoutine, pes: *const c_int, n: usize, members: i32) {
    if n == 0 {
        return;
    }
    if state::debugging() {
        for i in 0..n {
            // SAFETY: the caller's array of `n` numbers.
            let pe = unsafe { *pes.add(i) };
            if !(0..members).contains(&pe) {
                state::outside(routine.0, pe, "the context's team", members);
            }
        }
    }
    full_fence();
}

hot! {
    fn shmem_fence() {
        store_fence();
    }

    fn shmem_quiet() {
        full_fence();
    }

    fn shmem_ctx_fence(_ctx: Ctx) {
        store_fence();
    }

    fn shmem_ctx_quiet(_ctx: Ctx) {
        full_fence();
    }

    fn shmem_pe_quiet(target_pes: *const c_int, npes: usize) {
        pe_quiet(routine!(shmem_pe_quiet), target_pes, npes, state::n_pes())
    }

    fn shmem_ctx_pe_quiet(ctx: Ctx, target_pes: *const c_int, npes: usize) {
        pe_quiet(routine!(shmem_ctx_pe_quiet), target_pes, npes, context::size(ctx))
    }
}
