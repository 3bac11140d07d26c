//! Remote memory access (OpenSHMEM 1.6, 9.5 to 9.7): put, get, p, g, their strided, block-strided, non-blocking and context forms.
//!
//! Each is: check the PE, load its distance, add, copy. A non-blocking routine is the blocking one: memory is shared, so there is nothing
//! to overlap with. Not here: signals (signal.rs), atomics (amo.rs). copy.rs moves the bytes, single.rs has p and g.
//!
//! Other PEs read and write the same memory at the same time. Single elements are volatile accesses of their size; longer copies promise
//! nothing about their order, as the standard has it, and every routine is called through C's interface, which the compiler cannot see through.

pub(crate) mod copy;
mod single;
mod strided;

use std::ffi::{c_int, c_void};

use crate::context::{ctx_transfer, Ctx};
use crate::entry::hot;
use crate::state::{self, routine, target_or, CRoutine};
use crate::table::{for_each_rma_type, for_each_size};
use copy::copy;

/// Which side of a transfer is symmetric.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The destination.
    Put,
    /// The source.
    Get,
}

/// [`state::slow_target`] for a transfer: also checks, if asked to, the local side and overlap.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn slow_transfer(
    routine: &'static CRoutine,
    way: Way,
    symmetric: usize,
    local: usize,
    bytes: usize,
    pe: c_int,
) -> *mut u8 {
    let at = state::slow_target(routine, symmetric, bytes, pe);
    check_transfer(routine, way, at as usize, local, bytes);
    at
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

/// A put of `bytes`.
#[inline(always)]
unsafe fn put(
    routine: &'static CRoutine,
    dest: *mut c_void,
    source: *const c_void,
    bytes: usize,
    pe: c_int,
) {
    let to = target_or(dest as usize, pe, || {
        slow_transfer(
            routine,
            Way::Put,
            dest as usize,
            source as usize,
            bytes,
            pe,
        )
    });
    // SAFETY: the peer's instance of the caller's symmetric object, mapped; the source is the caller's.
    unsafe { copy(to, source.cast(), bytes) }
}

/// A get of `bytes`.
#[inline(always)]
unsafe fn get(
    routine: &'static CRoutine,
    dest: *mut c_void,
    source: *const c_void,
    bytes: usize,
    pe: c_int,
) {
    let from = target_or(source as usize, pe, || {
        slow_transfer(
            routine,
            Way::Get,
            source as usize,
            dest as usize,
            bytes,
            pe,
        )
    });
    // SAFETY: as in `put`.
    unsafe { copy(dest.cast(), from, bytes) }
}

/// A put on a context.
#[inline(always)]
unsafe fn ctx_put(
    routine: &'static CRoutine,
    ctx: Ctx,
    dest: *mut c_void,
    source: *const c_void,
    bytes: usize,
    pe: c_int,
) {
    // SAFETY: the caller's context.
    let to = unsafe {
        ctx_transfer(
            routine,
            ctx,
            Way::Put,
            dest as usize,
            source as usize,
            bytes,
            pe,
        )
    };
    // SAFETY: as in `put`.
    unsafe { copy(to, source.cast(), bytes) }
}

/// A get on a context.
#[inline(always)]
unsafe fn ctx_get(
    routine: &'static CRoutine,
    ctx: Ctx,
    dest: *mut c_void,
    source: *const c_void,
    bytes: usize,
    pe: c_int,
) {
    // SAFETY: the caller's context.
    let from = unsafe {
        ctx_transfer(
            routine,
            ctx,
            Way::Get,
            source as usize,
            dest as usize,
            bytes,
            pe,
        )
    };
    // SAFETY: as in `put`.
    unsafe { copy(dest.cast(), from, bytes) }
}

/// put, get and their forms: `[head] [tail]` are the parts of the name around the type.
macro_rules! contiguous {
    ($way:ident, $ctx_way:ident, [$($name:tt)+], [$($ctx_name:tt)+], $ty:ty, $bytes:expr) => {
        hot! {
            fn [$($name)+](dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int) {
                $way(routine!([$($name)+]), dest.cast(), source.cast(), nelems.wrapping_mul($bytes), pe)
            }
            fn [$($ctx_name)+](ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, pe: c_int) {
                $ctx_way(routine!([$($ctx_name)+]), ctx, dest.cast(), source.cast(), nelems.wrapping_mul($bytes), pe)
            }
        }
    };
}

macro_rules! typed {
    ($name:ident, $ty:ty, $c:literal) => {
        contiguous!(put, ctx_put, [shmem_ $name _put], [shmem_ctx_ $name _put], $ty, size_of::<$ty>());
        contiguous!(get, ctx_get, [shmem_ $name _get], [shmem_ctx_ $name _get], $ty, size_of::<$ty>());
        contiguous!(put, ctx_put, [shmem_ $name _put_nbi], [shmem_ctx_ $name _put_nbi], $ty, size_of::<$ty>());
        contiguous!(get, ctx_get, [shmem_ $name _get_nbi], [shmem_ctx_ $name _get_nbi], $ty, size_of::<$ty>());
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($bits:tt, $bytes:literal) => {
        contiguous!(put, ctx_put, [shmem_put $bits], [shmem_ctx_put $bits], c_void, $bytes);
        contiguous!(get, ctx_get, [shmem_get $bits], [shmem_ctx_get $bits], c_void, $bytes);
        contiguous!(put, ctx_put, [shmem_put $bits _nbi], [shmem_ctx_put $bits _nbi], c_void, $bytes);
        contiguous!(get, ctx_get, [shmem_get $bits _nbi], [shmem_ctx_get $bits _nbi], c_void, $bytes);
    };
}
for_each_size!(sized);
sized!(mem, 1);
