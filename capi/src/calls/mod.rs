//! The C routines of collectives (OpenSHMEM 1.6, section "Collective Routines"): on teams, on active sets, on all PEs.
//!
//! Not the algorithms (`collectives/`). Each routine checks its arguments where `SHMEM_DEBUG` asks for it, and calls one function for all types.

mod active;
mod data;
mod reduce;
mod sync;

use crate::state;
use std::ffi::c_int;

/// What a collective on SHMEM_TEAM_INVALID returns.
const FAILED: c_int = -1;

/// Source and destination of a collective, for checks.
struct Buffers {
    dest: *mut u8,
    dest_bytes: usize,
    src: *const u8,
    src_bytes: usize,
    /// Source and destination may be the same array.
    in_place: bool,
}

/// `SHMEM_DEBUG`: ends the job when an array is not symmetric, or when the two overlap and must not.
#[inline]
fn check(routine: &'static str, buffers: &Buffers) {
    if state::debugging() {
        check_slowly(routine, buffers);
    }
}

#[cold]
fn check_slowly(routine: &'static str, buffers: &Buffers) {
    let state = state::require(routine);
    let (dest, src) = (buffers.dest as usize, buffers.src as usize);
    state::check_symmetric(state, routine, dest, buffers.dest_bytes);
    state::check_symmetric(state, routine, src, buffers.src_bytes);
    let apart = dest + buffers.dest_bytes <= src || src + buffers.src_bytes <= dest;
    let same = buffers.in_place && dest == src;
    if !apart && !same && buffers.src_bytes > 0 {
        state::fail(
            routine,
            &format!(
                "dest [{dest:#x}, {:#x}) and source [{src:#x}, {:#x}) overlap{}",
                dest + buffers.dest_bytes,
                src + buffers.src_bytes,
                if buffers.in_place {
                    "; they may be the same array, or must lie apart"
                } else {
                    ""
                }
            ),
        );
    }
}

/// Ends the job when a root is not a member: its line would be outside the area.
#[inline]
fn check_root(routine: &'static str, root: c_int, size: usize) {
    if !(0..size as c_int).contains(&root) {
        state::fail(
            routine,
            &format!(
                "argument PE_root: {root} is no member; members run from 0 to {}",
                size - 1
            ),
        );
    }
}
