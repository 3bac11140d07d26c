//! Reductions and scans: on teams for each operation and type, and what they share with the active-set forms.
//!
//! Not the active-set forms' names (`active.rs`).

use super::{on_team, Arrays, Blocks, Call};
use crate::entry::{entry, name};
use crate::teams::done;
use npushmem::shm::group::Routine;
use npushmem::shm::ops::{operation, And, Max, Min, Operation, Or, Prod, Sum, Xor};
use npushmem::shm::reduce;
use npushmem::shm::table::{
    for_each_reduce_arith_type, for_each_reduce_bitwise_type, for_each_reduce_minmax_type,
};
use std::ffi::c_int;

/// What each member gets.
#[derive(Clone, Copy)]
pub(super) enum Combine {
    /// Everybody's elements, combined.
    All,
    /// Those of the members up to this one.
    UpToMe,
    /// Those of the members before this one.
    BeforeMe,
}

/// Checks the arguments and combines.
///
/// # Safety
/// The standard's contract of the routine, which the C caller keeps.
#[inline]
pub(super) unsafe fn run(
    call: &Call,
    what: Combine,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) {
    call.check(&Arrays {
        dest,
        src,
        nelems: count,
        element: operation.element,
        dest_blocks: Blocks::One,
        src_blocks: Blocks::One,
        strides: [1, 1],
        in_place: true,
        alike: true,
        root: None,
    });
    let (group, memory) = (&call.team.group, call.state);
    // SAFETY: this function's contract.
    done(unsafe {
        match what {
            Combine::All => reduce::reduce(group, memory, operation, dest, src, count),
            Combine::UpToMe => reduce::scan(group, memory, operation, dest, src, count, true),
            Combine::BeforeMe => reduce::scan(group, memory, operation, dest, src, count, false),
        }
    });
}

/// The team form of a routine.
///
/// # Safety
/// As [`run`].
#[inline]
unsafe fn on(
    routine: Routine,
    what: Combine,
    operation: Operation,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> c_int {
    // SAFETY: this function's contract.
    on_team(routine, team, |call| unsafe {
        run(call, what, operation, dest, src, count)
    })
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
                unsafe { on(&name!($name), Combine::All, OPERATION, team, dest.cast(), src.cast(), nreduce) }
            }
        }
    };
}

macro_rules! scan {
    ($what:ident $suffix:ident, $name:ident, $type:ty, $c:literal) => {
        scan!(@ [shmem_ $name $suffix] $what, $type);
    };
    (@ $name:tt $what:ident, $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, nelems: usize) -> c_int {
                const OPERATION: Operation = operation::<$type, Sum>();
                // SAFETY: the C caller's contract.
                unsafe { on(&name!($name), Combine::$what, OPERATION, team, dest.cast(), src.cast(), nelems) }
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
for_each_reduce_arith_type!(scan, UpToMe _sum_inscan);
for_each_reduce_arith_type!(scan, BeforeMe _sum_exscan);
