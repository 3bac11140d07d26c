//! broadcast, collect, fcollect, alltoall and alltoalls: on teams for each type and for bytes; and what they share with the active-set forms.
//!
//! Not the active-set forms' names (`active.rs`).

use super::{on_team, Arrays, Blocks, Call};
use crate::entry::{entry, name};
use crate::teams::done;
use npushmem::shm::data::{self, Strides};
use npushmem::shm::group::Routine;
use npushmem::shm::table::for_each_rma_type;
use std::ffi::{c_int, c_void};

/// Which collective, with the arguments that only it has.
#[derive(Clone, Copy)]
pub(super) enum Move {
    /// From the root to all; to the root's own destination only if `also_root`.
    Broadcast { root: c_int, also_root: bool },
    /// Blocks of one size, one after the other.
    Fcollect,
    /// Blocks of any sizes, one after the other.
    Collect,
    /// A block for each member, from each member.
    Alltoall,
    /// As alltoall, with strides.
    Alltoalls { dest: isize, src: isize },
}

/// Arrays of a moving collective: `nelems` elements of `element` bytes.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    pub(super) dest: *mut u8,
    pub(super) src: *const u8,
    pub(super) nelems: usize,
    pub(super) element: usize,
}

/// Checks the arguments and moves.
///
/// # Safety
/// The standard's contract of the routine, which the C caller keeps.
#[inline]
pub(super) unsafe fn run(call: &Call, what: Move, moved: Moved) {
    use Blocks::{One, PerMember};
    let Moved {
        dest,
        src,
        nelems,
        element,
    } = moved;
    let (dest_blocks, src_blocks) = match what {
        Move::Broadcast { .. } | Move::Collect => (One, One),
        Move::Fcollect => (PerMember, One),
        Move::Alltoall | Move::Alltoalls { .. } => (PerMember, PerMember),
    };
    let mut arrays = Arrays {
        dest,
        src,
        nelems,
        element,
        dest_blocks,
        src_blocks,
        strides: [1, 1],
        in_place: false,
        alike: true,
        root: None,
    };
    match what {
        Move::Broadcast { root, .. } => (arrays.root, arrays.in_place) = (Some(root), true),
        Move::Collect => arrays.alike = false,
        Move::Alltoalls { dest, src } => arrays.strides = [dest, src],
        Move::Fcollect | Move::Alltoall => {}
    }
    let bytes = call.check(&arrays);
    let (group, memory) = (&call.team.group, call.state);
    // SAFETY: this function's contract. C does not say how large the destination of a collect is.
    done(unsafe {
        match what {
            Move::Broadcast { root, also_root } => {
                data::broadcast(group, memory, dest, src, bytes, root as usize, also_root)
            }
            Move::Fcollect => data::fcollect(group, memory, dest, src, bytes),
            Move::Collect => data::collect(group, memory, dest, usize::MAX, src, bytes).map(|_| ()),
            Move::Alltoall => data::alltoall(group, memory, dest, src, bytes),
            Move::Alltoalls {
                dest: to,
                src: from,
            } => {
                let strides = strides(call, [to, from], element, nelems);
                data::alltoalls(group, memory, dest, src, strides)
            }
        }
    });
}

/// Strides are positive, or the job ends: others would lead before the arrays.
fn strides(call: &Call, given: [isize; 2], element: usize, count: usize) -> Strides {
    for (name, stride) in ["dst", "sst"].into_iter().zip(given) {
        if stride < 1 {
            call.fail(&format!(
                "argument {name}: a stride of {stride}; 1 is the least"
            ));
        }
    }
    Strides {
        dest: given[0] as usize,
        src: given[1] as usize,
        element,
        count,
    }
}

/// The team form of a routine.
///
/// # Safety
/// As [`run`].
#[inline]
unsafe fn on(routine: Routine, team: usize, what: Move, moved: Moved) -> c_int {
    // SAFETY: this function's contract.
    on_team(routine, team, |call| unsafe { run(call, what, moved) })
}

macro_rules! moving {
    ($what:ident $suffix:ident, $name:ident, $type:ty, $c:literal) => {
        moving!(@ [shmem_ $name $suffix] $what, $type);
    };
    (@ $name:tt $what:ident, $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, nelems: usize) -> c_int {
                let moved = Moved { dest: dest.cast(), src: src.cast(), nelems, element: size_of::<$type>() };
                // SAFETY: the C caller's contract.
                unsafe { on(&name!($name), team, Move::$what, moved) }
            }
        }
    };
}

macro_rules! broadcasting {
    ($name:ident, $type:ty, $c:literal) => {
        broadcasting!(@ [shmem_ $name _broadcast] $type);
    };
    (@ $name:tt $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, nelems: usize, root: c_int) -> c_int {
                let moved = Moved { dest: dest.cast(), src: src.cast(), nelems, element: size_of::<$type>() };
                // SAFETY: the C caller's contract.
                unsafe { on(&name!($name), team, Move::Broadcast { root, also_root: true }, moved) }
            }
        }
    };
}

macro_rules! exchanging {
    ($name:ident, $type:ty, $c:literal) => {
        exchanging!(@ [shmem_ $name _alltoalls] $type);
    };
    (@ $name:tt $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, dst: isize, sst: isize, nelems: usize) -> c_int {
                let moved = Moved { dest: dest.cast(), src: src.cast(), nelems, element: size_of::<$type>() };
                // SAFETY: the C caller's contract.
                unsafe { on(&name!($name), team, Move::Alltoalls { dest: dst, src: sst }, moved) }
            }
        }
    };
}

for_each_rma_type!(broadcasting);
for_each_rma_type!(exchanging);
for_each_rma_type!(moving, Fcollect _fcollect);
for_each_rma_type!(moving, Collect _collect);
for_each_rma_type!(moving, Alltoall _alltoall);

/// Sizes of the untyped routines are in bytes.
type Byte = u8;
moving!(@ shmem_fcollectmem Fcollect, Byte);
moving!(@ shmem_collectmem Collect, Byte);
moving!(@ shmem_alltoallmem Alltoall, Byte);
broadcasting!(@ shmem_broadcastmem Byte);
exchanging!(@ shmem_alltoallsmem Byte);

const _: () = assert!(size_of::<*mut Byte>() == size_of::<*mut c_void>());
