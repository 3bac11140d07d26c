//! Memory ordering (OpenSHMEM 1.6, 9.11): fence, quiet, pe_quiet and their context forms.
//!
//! Not the fences themselves (`npushmem::shm::order`), nor barriers.

use std::ffi::c_int;

use crate::context::{self, Ctx};
use crate::entry::hot;
use crate::state::{self, routine, CRoutine};
pub(crate) use npushmem::shm::order::{full_fence, store_fence};

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
