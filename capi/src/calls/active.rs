//! Collectives on active sets (deprecated since OpenSHMEM 1.5): barrier, sync, broadcast, collect, fcollect, alltoall, alltoalls, reductions.
//!
//! Not how a set becomes a team (`teams/active.rs`). pSync and pWrk arrays are neither read nor written.

use super::data::{self, Move, Moved};
use super::reduce::{self, Combine};
use super::{sync, Call};
use crate::entry::{entry, name};
use crate::{state, teams};
use npushmem::shm::group::Routine;
use npushmem::shm::ops::{operation, And, Max, Min, Operation, Or, Prod, Sum, Xor};
use npushmem::shm::shape::Shape;
use npushmem::shm::table::{
    for_each_collective_size, for_each_to_all_arith_type, for_each_to_all_bitwise_type,
    for_each_to_all_minmax_type,
};
use std::ffi::{c_int, c_long, c_void};

/// Runs `body` on the team of an active set; a set that is none, or that this PE is not in, ends the job.
fn on_set(
    routine: Routine,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    body: impl FnOnce(&Call),
) {
    let teams = teams::require(routine);
    let state = teams.state();
    let stride = u32::try_from(log_stride)
        .ok()
        .and_then(|log| 1i32.checked_shl(log))
        .unwrap_or(0);
    let set = if stride > 0 {
        Shape::world(state.n_pes).strided(start, stride, size)
    } else {
        None
    };
    match set {
        Some(set) if set.member(state.my_pe).is_some() => teams.with_active_set(set, |team| body(&Call::new(routine, team, state))),
        Some(_) => state::fail(
            routine,
            &format!("PE {} is not in the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size}", state.my_pe),
        ),
        None => state::fail(
            routine,
            &format!(
                "PE_start {start}, logPE_stride {log_stride}, PE_size {size} are no active set; PE numbers run from 0 to {}",
                state.n_pes - 1
            ),
        ),
    }
}

entry! {
    /// Waits for all PEs of the set; what they have put before is complete.
    fn shmem_barrier(start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
        crate::order::store_fence();
        on_set(&"shmem_barrier", start, log_stride, size, sync);
    }

    /// Waits for all PEs of the set.
    fn shmem_sync(start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
        on_set(&"shmem_sync", start, log_stride, size, sync);
    }
}

macro_rules! sized {
    ($bits:literal, $bytes:literal) => {
        sized!(@broadcast [shmem_broadcast $bits] $bytes);
        sized!(@move [shmem_fcollect $bits] Fcollect, $bytes);
        sized!(@move [shmem_collect $bits] Collect, $bytes);
        sized!(@move [shmem_alltoall $bits] Alltoall, $bytes);
        sized!(@alltoalls [shmem_alltoalls $bits] $bytes);
    };
    (@broadcast $name:tt $bytes:literal) => {
        entry! {
            fn $name(dest: *mut c_void, src: *const c_void, nelems: usize, root: c_int, start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
                let moved = Moved { dest: dest.cast(), src: src.cast(), nelems, element: $bytes };
                // The root's own destination stays as it is.
                let what = Move::Broadcast { root, also_root: false };
                // SAFETY: the C caller's contract.
                on_set(&name!($name), start, log_stride, size, |call| unsafe { data::run(call, what, moved) });
            }
        }
    };
    (@move $name:tt $what:ident, $bytes:literal) => {
        entry! {
            fn $name(dest: *mut c_void, src: *const c_void, nelems: usize, start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
                let moved = Moved { dest: dest.cast(), src: src.cast(), nelems, element: $bytes };
                // SAFETY: the C caller's contract.
                on_set(&name!($name), start, log_stride, size, |call| unsafe { data::run(call, Move::$what, moved) });
            }
        }
    };
    (@alltoalls $name:tt $bytes:literal) => {
        entry! {
            fn $name(dest: *mut c_void, src: *const c_void, dst: isize, sst: isize, nelems: usize, start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
                let moved = Moved { dest: dest.cast(), src: src.cast(), nelems, element: $bytes };
                let what = Move::Alltoalls { dest: dst, src: sst };
                // SAFETY: the C caller's contract.
                on_set(&name!($name), start, log_stride, size, |call| unsafe { data::run(call, what, moved) });
            }
        }
    };
}

for_each_collective_size!(sized);

/// What the routines of one type and operation share.
struct Reduction {
    routine: Routine,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: c_int,
    set: [c_int; 3],
}

/// A reduction for all types.
///
/// # Safety
/// As [`reduce::run`].
unsafe fn to_all(
    Reduction {
        routine,
        operation,
        dest,
        src,
        count,
        set: [start, log_stride, size],
    }: Reduction,
) {
    let Ok(count) = usize::try_from(count) else {
        state::fail(routine, &format!("argument nreduce: {count} is negative"));
    };
    // SAFETY: the caller's contract.
    on_set(routine, start, log_stride, size, |call| unsafe {
        reduce::run(call, Combine::All, operation, dest, src, count)
    });
}

macro_rules! reduction {
    ($op:ident $suffix:ident, $name:ident, $type:ty, $c:literal) => {
        reduction!(@ [shmem_ $name $suffix] $op, $type);
    };
    (@ $name:tt $op:ident, $type:ty) => {
        entry! {
            fn $name(dest: *mut $type, src: *const $type, nreduce: c_int, start: c_int, log_stride: c_int, size: c_int, _pwrk: *mut $type, _psync: *mut c_long) {
                const OPERATION: Operation = operation::<$type, $op>();
                let set = [start, log_stride, size];
                let reduction = Reduction { routine: &name!($name), operation: OPERATION, dest: dest.cast(), src: src.cast(), count: nreduce, set };
                // SAFETY: the C caller's contract.
                unsafe { to_all(reduction) }
            }
        }
    };
}

for_each_to_all_bitwise_type!(reduction, And _and_to_all);
for_each_to_all_bitwise_type!(reduction, Or _or_to_all);
for_each_to_all_bitwise_type!(reduction, Xor _xor_to_all);
for_each_to_all_minmax_type!(reduction, Max _max_to_all);
for_each_to_all_minmax_type!(reduction, Min _min_to_all);
for_each_to_all_arith_type!(reduction, Sum _sum_to_all);
for_each_to_all_arith_type!(reduction, Prod _prod_to_all);
