//! Remote memory access (OpenSHMEM 1.6, 9.5 to 9.7): put, get, p, g, their strided, block-strided, non-blocking and context forms.
//!
//! Each is: check the PE, load its distance, add, copy. A non-blocking routine is the blocking one: memory is shared, so there is nothing
//! to overlap with. Not here: signals (signal.rs), atomics (amo.rs). copy.rs moves the bytes, single.rs has p and g.
//!
//! Other PEs read and write the same memory at the same time. Single elements are volatile accesses of their size; longer copies promise
//! nothing about their order, as the standard has it, and every routine is called through C's interface, which the compiler cannot see through.

mod single;
mod strided;

use std::ffi::{c_int, c_void};

use crate::context::{ctx_distance, slow_ctx_target, Ctx};
use crate::entry::hot;
use crate::state::{self, distance, fast, routine, CRoutine};
use npushmem::shm::copy::copy;
use npushmem::shm::table::{for_each_rma_type, for_each_size};

/// Which side of a transfer is symmetric.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The destination.
    Put,
    /// The source.
    Get,
}

/// [`state::slow_target`] for a transfer: also checks, if asked to, the local side and overlap.
pub(crate) fn slow_transfer(
    routine: &'static CRoutine,
    way: Way,
    symmetric: usize,
    local: usize,
    bytes: usize,
    pe: c_int,
) -> *mut u8 {
    check_first(routine, way, symmetric, bytes);
    let at = state::slow_target(routine, symmetric, bytes, pe);
    check_transfer(routine, way, at as usize, local, bytes);
    at
}

/// [`slow_transfer`] on a context.
pub(crate) fn slow_ctx_transfer(
    routine: &'static CRoutine,
    ctx: Ctx,
    way: Way,
    symmetric: usize,
    local: usize,
    bytes: usize,
    pe: c_int,
) -> *mut u8 {
    check_first(routine, way, symmetric, bytes);
    let at = slow_ctx_target(routine, ctx, symmetric, bytes, pe);
    check_transfer(routine, way, at as usize, local, bytes);
    at
}

/// `SHMEM_DEBUG`: checks the symmetric side by its name.
fn check_first(routine: &'static CRoutine, way: Way, symmetric: usize, bytes: usize) {
    if let (true, Some(state)) = (state::debugging(), state::get()) {
        let name = if way == Way::Put { "dest" } else { "source" };
        state::check_argument(state, routine.0, name, symmetric, bytes);
    }
}

/// `SHMEM_DEBUG`: ends the job when the local side is null, or overlaps with `at`, the other side as mapped here.
pub(crate) fn check_transfer(
    routine: &'static CRoutine,
    way: Way,
    at: usize,
    local: usize,
    bytes: usize,
) {
    if !state::debugging() || bytes == 0 {
        return;
    }
    let argument = if way == Way::Put { "source" } else { "dest" };
    if local == 0 {
        let message = format!("argument {argument}: a null pointer for {bytes} bytes");
        state::fail(routine.0, &message);
    }
    let apart = at.abs_diff(local);
    if apart != 0 && apart < bytes {
        let message = format!(
            "dest and source overlap: {bytes} bytes each, {apart} bytes apart; copy through a buffer of your own"
        );
        state::fail(routine.0, &message);
    }
}

/// put, get and their forms: the names without and with a context.
macro_rules! contiguous {
    (put, [$($name:tt)+], [$($ctx_name:tt)+], $ty:ty, $bytes:expr) => {
        hot! {
            fn [$($name)+](dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int) {
                fast!(
                    (dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int),
                    dest at distance(pe),
                    slow slow_transfer(routine!([$($name)+]), Way::Put, dest as usize, source as usize, nelems.saturating_mul($bytes), pe),
                    |at| copy(at, source.cast(), nelems.wrapping_mul($bytes))
                )
            }
            fn [$($ctx_name)+](ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int) {
                fast!(
                    (ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int),
                    dest at ctx_distance(ctx, pe),
                    slow slow_ctx_transfer(routine!([$($ctx_name)+]), ctx, Way::Put, dest as usize, source as usize, nelems.saturating_mul($bytes), pe),
                    |at| copy(at, source.cast(), nelems.wrapping_mul($bytes))
                )
            }
        }
    };
    (get, [$($name:tt)+], [$($ctx_name:tt)+], $ty:ty, $bytes:expr) => {
        hot! {
            fn [$($name)+](dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int) {
                fast!(
                    (dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int),
                    source at distance(pe),
                    slow slow_transfer(routine!([$($name)+]), Way::Get, source as usize, dest as usize, nelems.saturating_mul($bytes), pe),
                    |at| copy(dest.cast(), at, nelems.wrapping_mul($bytes))
                )
            }
            fn [$($ctx_name)+](ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int) {
                fast!(
                    (ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int),
                    source at ctx_distance(ctx, pe),
                    slow slow_ctx_transfer(routine!([$($ctx_name)+]), ctx, Way::Get, source as usize, dest as usize, nelems.saturating_mul($bytes), pe),
                    |at| copy(dest.cast(), at, nelems.wrapping_mul($bytes))
                )
            }
        }
    };
}

macro_rules! typed {
    ($name:ident, $ty:ty, $c:literal) => {
        contiguous!(put, [shmem_ $name _put], [shmem_ctx_ $name _put], $ty, size_of::<$ty>());
        contiguous!(get, [shmem_ $name _get], [shmem_ctx_ $name _get], $ty, size_of::<$ty>());
        contiguous!(put, [shmem_ $name _put_nbi], [shmem_ctx_ $name _put_nbi], $ty, size_of::<$ty>());
        contiguous!(get, [shmem_ $name _get_nbi], [shmem_ctx_ $name _get_nbi], $ty, size_of::<$ty>());
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($bits:tt, $bytes:literal) => {
        contiguous!(put, [shmem_put $bits], [shmem_ctx_put $bits], c_void, $bytes);
        contiguous!(get, [shmem_get $bits], [shmem_ctx_get $bits], c_void, $bytes);
        contiguous!(put, [shmem_put $bits _nbi], [shmem_ctx_put $bits _nbi], c_void, $bytes);
        contiguous!(get, [shmem_get $bits _nbi], [shmem_ctx_get $bits _nbi], c_void, $bytes);
    };
}
for_each_size!(sized);
sized!(mem, 1);
