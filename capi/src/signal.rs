//! Signals (OpenSHMEM 1.6, 9.9): put_signal in all forms, signal_set, signal_add, signal_fetch.
//!
//! The data is stored first, the signal after it with release ordering, so a PE that sees the signal sees the data. Not here: waiting for a
//! signal (wait_until.rs).

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::constants::{SHMEM_SIGNAL_ADD, SHMEM_SIGNAL_SET};
use crate::context::{ctx_distance, ctx_target, slow_ctx_target, Ctx};
use crate::entry::hot;
use crate::rma::{slow_ctx_transfer, slow_transfer, Way};
use crate::state::{self, distance, fast, routine, slow_target, target, CRoutine};
use npushmem::shm::copy::copy;
use npushmem::shm::table::{for_each_rma_type, for_each_size};

/// Updates the signal variable at `at`.
#[inline(always)]
unsafe fn update(routine: &'static CRoutine, at: *mut u8, value: u64, operator: c_int) {
    // SAFETY: the peer's signal variable, mapped and aligned.
    let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
    match operator {
        SHMEM_SIGNAL_SET => cell.store(value, Ordering::Release),
        SHMEM_SIGNAL_ADD => {
            cell.fetch_add(value, Ordering::Release);
        }
        other => no_such_operator(routine, other),
    }
}

#[cold]
#[inline(never)]
fn no_such_operator(routine: &'static CRoutine, operator: c_int) {
    state::fail(
        routine.0,
        &format!("argument sig_op: {operator} is neither SHMEM_SIGNAL_SET ({SHMEM_SIGNAL_SET}) nor SHMEM_SIGNAL_ADD ({SHMEM_SIGNAL_ADD})"),
    )
}

/// Bytes of a signal variable.
const SIGNAL_BYTES: usize = size_of::<u64>();

/// Copies, then updates the signal, which is as far from the destination there as here.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // the routine's own
unsafe fn deliver(
    routine: &'static CRoutine,
    at: *mut u8,
    dest: *mut c_void,
    source: *const c_void,
    bytes: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
) {
    let distance = (at as isize).wrapping_sub(dest as isize);
    let signal_at = (sig_addr as usize).wrapping_add_signed(distance) as *mut u8;
    // SAFETY: the peer's instances of the caller's symmetric objects, mapped.
    unsafe {
        copy(at, source.cast(), bytes);
        update(routine, signal_at, signal, sig_op);
    }
}

macro_rules! with_signal {
    ([$($name:tt)+], [$($ctx_name:tt)+], $ty:ty, $bytes:expr) => {
        hot! {
            fn [$($name)+](dest: *mut $ty, source: *const $ty, nelems: usize, sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int) {
                fast!(
                    (dest: *mut $ty, source: *const $ty, nelems: usize, sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int),
                    dest at distance(pe),
                    slow {
                        slow_target(routine!([$($name)+]), sig_addr as usize, SIGNAL_BYTES, pe);
                        slow_transfer(routine!([$($name)+]), Way::Put, dest as usize, source as usize, nelems.saturating_mul($bytes), pe)
                    },
                    |at| deliver(routine!([$($name)+]), at, dest.cast(), source.cast(), nelems.wrapping_mul($bytes), sig_addr, signal, sig_op)
                )
            }
            fn [$($ctx_name)+](ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int) {
                fast!(
                    (ctx: Ctx, dest: *mut $ty, source: *const $ty, nelems: usize, sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int),
                    dest at ctx_distance(ctx, pe),
                    slow {
                        slow_ctx_target(routine!([$($ctx_name)+]), ctx, sig_addr as usize, SIGNAL_BYTES, pe);
                        slow_ctx_transfer(routine!([$($ctx_name)+]), ctx, Way::Put, dest as usize, source as usize, nelems.saturating_mul($bytes), pe)
                    },
                    |at| deliver(routine!([$($ctx_name)+]), at, dest.cast(), source.cast(), nelems.wrapping_mul($bytes), sig_addr, signal, sig_op)
                )
            }
        }
    };
}

macro_rules! typed {
    ($name:ident, $ty:ty, $c:literal) => {
        with_signal!([shmem_ $name _put_signal], [shmem_ctx_ $name _put_signal], $ty, size_of::<$ty>());
        with_signal!([shmem_ $name _put_signal_nbi], [shmem_ctx_ $name _put_signal_nbi], $ty, size_of::<$ty>());
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($bits:tt, $bytes:literal) => {
        with_signal!([shmem_put $bits _signal], [shmem_ctx_put $bits _signal], c_void, $bytes);
        with_signal!([shmem_put $bits _signal_nbi], [shmem_ctx_put $bits _signal_nbi], c_void, $bytes);
    };
}
for_each_size!(sized);
sized!(mem, 1);

hot! {
    fn shmem_signal_set(sig_addr: *mut u64, signal: u64, pe: c_int) {
        let routine = routine!(shmem_signal_set);
        update(routine, target(routine, sig_addr as usize, SIGNAL_BYTES, pe), signal, SHMEM_SIGNAL_SET)
    }

    fn shmem_signal_add(sig_addr: *mut u64, signal: u64, pe: c_int) {
        let routine = routine!(shmem_signal_add);
        update(routine, target(routine, sig_addr as usize, SIGNAL_BYTES, pe), signal, SHMEM_SIGNAL_ADD)
    }

    fn shmem_ctx_signal_set(ctx: Ctx, sig_addr: *mut u64, signal: u64, pe: c_int) {
        let routine = routine!(shmem_ctx_signal_set);
        update(routine, ctx_target(routine, ctx, sig_addr as usize, SIGNAL_BYTES, pe), signal, SHMEM_SIGNAL_SET)
    }

    fn shmem_ctx_signal_add(ctx: Ctx, sig_addr: *mut u64, signal: u64, pe: c_int) {
        let routine = routine!(shmem_ctx_signal_add);
        update(routine, ctx_target(routine, ctx, sig_addr as usize, SIGNAL_BYTES, pe), signal, SHMEM_SIGNAL_ADD)
    }

    fn shmem_signal_fetch(sig_addr: *const u64) -> u64 {
        // A local variable; what the put with this signal stored before is visible after it.
        AtomicU64::from_ptr(sig_addr.cast_mut()).load(Ordering::Acquire)
    }
}
