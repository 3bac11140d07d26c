//! Collectives on active sets (deprecated since OpenSHMEM 1.5): barrier, sync, broadcast, collect, fcollect, alltoall, alltoalls, reductions.
//!
//! Not how a set becomes a team (`teams/active.rs`). pSync and pWrk arrays are neither read nor written.

use super::data::strides;
use super::{check, check_root, Buffers};
use crate::entry::{entry, name};
use crate::state::{self, State};
use crate::teams::{self, Team};
use npushmem::shm::data;
use npushmem::shm::ops::{operation, And, Max, Min, Operation, Or, Prod, Sum, Xor};
use npushmem::shm::reduce;
use npushmem::shm::shape::Shape;
use npushmem::shm::table::{
    for_each_collective_size, for_each_to_all_arith_type, for_each_to_all_bitwise_type,
    for_each_to_all_minmax_type,
};
use std::ffi::{c_int, c_long, c_void};

/// Runs `body` on the team of an active set; a set that is none, or that this PE is not in, ends the job.
fn on_set<R>(
    routine: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    body: impl FnOnce(&Team, &State) -> R,
) -> R {
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
        Some(set) if set.member(state.my_pe).is_some() => teams.with_active_set(set, |team| body(team, state)),
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
        on_set("shmem_barrier", start, log_stride, size, |team, _| teams::done(team.group.sync()));
    }

    /// Waits for all PEs of the set.
    fn shmem_sync(start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
        on_set("shmem_sync", start, log_stride, size, |team, _| teams::done(team.group.sync()));
    }
}

/// One of the calls that move data; collect has no limit, as C does not say how large the destination is.
macro_rules! move_data {
    (collect, $group:expr, $state:expr, $dest:expr, $src:expr, $bytes:expr) => {
        data::collect($group, $state, $dest, usize::MAX, $src, $bytes)
    };
    ($call:ident, $($args:expr),+) => {
        data::$call($($args),+)
    };
}

macro_rules! sized {
    ($bits:literal, $bytes:literal) => {
        sized!(@broadcast [shmem_broadcast $bits] $bytes);
        sized!(@move [shmem_fcollect $bits] fcollect, $bytes, |size| size, |_size| 1);
        sized!(@move [shmem_collect $bits] collect, $bytes, |_size| 1, |_size| 1);
        sized!(@move [shmem_alltoall $bits] alltoall, $bytes, |size| size, |size| size);
        sized!(@alltoalls [shmem_alltoalls $bits] $bytes);
    };
    (@broadcast $name:tt $bytes:literal) => {
        entry! {
            fn $name(dest: *mut c_void, src: *const c_void, nelems: usize, root: c_int, start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
                let bytes = nelems * $bytes;
                on_set(name!($name), start, log_stride, size, |team, state| {
                    let (dest, src) = (dest.cast::<u8>(), src.cast::<u8>());
                    check_root(name!($name), root, team.group.size());
                    check(name!($name), &Buffers { dest, dest_bytes: bytes, src, src_bytes: bytes, in_place: true });
                    // SAFETY: the C caller's contract. The root's own destination stays as it is.
                    teams::done(unsafe { data::broadcast(&team.group, state, dest, src, bytes, root as usize, false) });
                });
            }
        }
    };
    (@move $name:tt $call:ident, $bytes:literal, $dest_blocks:expr, $src_blocks:expr) => {
        entry! {
            fn $name(dest: *mut c_void, src: *const c_void, nelems: usize, start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
                let bytes = nelems * $bytes;
                on_set(name!($name), start, log_stride, size, |team, state| {
                    let (dest, src) = (dest.cast::<u8>(), src.cast::<u8>());
                    let blocks: [fn(usize) -> usize; 2] = [$dest_blocks, $src_blocks];
                    let [dest_bytes, src_bytes] = blocks.map(|blocks| bytes * blocks(team.group.size()));
                    check(name!($name), &Buffers { dest, dest_bytes, src, src_bytes, in_place: false });
                    // SAFETY: the C caller's contract.
                    teams::done(unsafe { move_data!($call, &team.group, state, dest, src, bytes) });
                });
            }
        }
    };
    (@alltoalls $name:tt $bytes:literal) => {
        entry! {
            fn $name(dest: *mut c_void, src: *const c_void, dst: isize, sst: isize, nelems: usize, start: c_int, log_stride: c_int, size: c_int, _psync: *mut c_long) {
                on_set(name!($name), start, log_stride, size, |team, state| {
                    let (dest, src) = (dest.cast::<u8>(), src.cast::<u8>());
                    let strides = strides(name!($name), (dest, dst), (src, sst), $bytes, nelems, team.group.size());
                    // SAFETY: the C caller's contract.
                    teams::done(unsafe { data::alltoalls(&team.group, state, dest, src, strides) });
                });
            }
        }
    };
}

for_each_collective_size!(sized);

/// What the routines of one type and operation share.
struct Reduction {
    routine: &'static str,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: c_int,
    set: [c_int; 3],
}

/// A reduction for all types.
///
/// # Safety
/// As [`reduce::reduce`].
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
    on_set(routine, start, log_stride, size, |team, state| {
        let bytes = count * operation.element;
        check(
            routine,
            &Buffers {
                dest,
                dest_bytes: bytes,
                src,
                src_bytes: bytes,
                in_place: true,
            },
        );
        // SAFETY: the caller's contract.
        teams::done(unsafe { reduce::reduce(&team.group, state, operation, dest, src, count) });
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
                let reduction = Reduction { routine: name!($name), operation: OPERATION, dest: dest.cast(), src: src.cast(), count: nreduce, set };
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
