//! Reductions and scans on teams, for each operation and type.
//!
//! Not the active-set forms (`active.rs`).

use super::{check, Buffers, FAILED};
use crate::entry::{entry, name};
use crate::teams;
use npushmem::shm::ops::{operation, And, Max, Min, Operation, Or, Prod, Sum, Xor};
use npushmem::shm::reduce;
use npushmem::shm::table::{
    for_each_reduce_arith_type, for_each_reduce_bitwise_type, for_each_reduce_minmax_type,
};
use std::ffi::c_int;

/// A reduction for all types.
unsafe fn reducing(
    routine: &'static str,
    operation: Operation,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
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
    // SAFETY: the standard's contract, which the C caller keeps.
    teams::done(unsafe {
        reduce::reduce(
            &team.group,
            teams::require(routine).state(),
            operation,
            dest,
            src,
            count,
        )
    });
    0
}

/// A scan for all types.
unsafe fn scanning(
    routine: &'static str,
    operation: Operation,
    inclusive: bool,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
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
    // SAFETY: as in `reducing`.
    teams::done(unsafe {
        reduce::scan(
            &team.group,
            teams::require(routine).state(),
            operation,
            dest,
            src,
            count,
            inclusive,
        )
    });
    0
}

macro_rules! reduction {
    ($op:ident $suffix:ident, $name:ident, $type:ty, $c:literal) => {
        reduction!(@ [shmem_ $name $suffix] $op, $type);
    };
    (@ $name:tt $op:ident, $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, nreduce: usize) -> c_int {
                const OPERATION: Operation = operation::<$type, $op>();
                // SAFETY: the C caller's contract.
                unsafe { reducing(name!($name), OPERATION, team, dest.cast(), src.cast(), nreduce) }
            }
        }
    };
}

macro_rules! scan {
    ($inclusive:literal $suffix:ident, $name:ident, $type:ty, $c:literal) => {
        scan!(@ [shmem_ $name $suffix] $inclusive, $type);
    };
    (@ $name:tt $inclusive:literal, $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, nelems: usize) -> c_int {
                const OPERATION: Operation = operation::<$type, Sum>();
                // SAFETY: the C caller's contract.
                unsafe { scanning(name!($name), OPERATION, $inclusive, team, dest.cast(), src.cast(), nelems) }
            }
        }
    };
}

for_each_reduce_bitwise_type!(reduction, And _and_reduce);
for_each_reduce_bitwise_type!(reduction, Or _or_reduce);
for_each_reduce_bitwise_type!(reduction, Xor _xor_reduce);
for_each_reduce_minmax_type!(reduction, Max _max_reduce);
for_each_reduce_minmax_type!(reduction, Min _min_reduce);
for_each_reduce_arith_type!(reduction, Sum _sum_reduce);
for_each_reduce_arith_type!(reduction, Prod _prod_reduce);
for_each_reduce_arith_type!(scan, true _sum_inscan);
for_each_reduce_arith_type!(scan, false _sum_exscan);
