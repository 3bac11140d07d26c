//! broadcast, collect, fcollect, alltoall and alltoalls on teams, for each type and for bytes.
//!
//! Not the active-set forms (`active.rs`).

use super::{check, check_root, Buffers, FAILED};
use crate::entry::{entry, name};
use crate::{state, teams};
use npushmem::shm::data::{self, Strides};
use npushmem::shm::table::for_each_rma_type;
use std::ffi::{c_int, c_void};

/// One routine's call for all types, sizes in bytes.
type Move = unsafe fn(
    routine: &'static str,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
) -> c_int;

unsafe fn broadcast(
    routine: &'static str,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
    root: c_int,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
    check_root(routine, root, team.group.size());
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
    let memory = teams::require(routine).state();
    // SAFETY: the standard's contract, which the C caller keeps.
    teams::done(unsafe {
        data::broadcast(&team.group, memory, dest, src, bytes, root as usize, true)
    });
    0
}

unsafe fn fcollect(
    routine: &'static str,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
    check(
        routine,
        &Buffers {
            dest,
            dest_bytes: bytes * team.group.size(),
            src,
            src_bytes: bytes,
            in_place: false,
        },
    );
    // SAFETY: as in `broadcast`.
    teams::done(unsafe {
        data::fcollect(
            &team.group,
            teams::require(routine).state(),
            dest,
            src,
            bytes,
        )
    });
    0
}

unsafe fn collect(
    routine: &'static str,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
    check(
        routine,
        &Buffers {
            dest,
            dest_bytes: bytes,
            src,
            src_bytes: bytes,
            in_place: false,
        },
    );
    // SAFETY: as in `broadcast`.
    teams::done(unsafe {
        data::collect(
            &team.group,
            teams::require(routine).state(),
            dest,
            usize::MAX,
            src,
            bytes,
        )
    });
    0
}

unsafe fn alltoall(
    routine: &'static str,
    team: usize,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
    let total = bytes * team.group.size();
    check(
        routine,
        &Buffers {
            dest,
            dest_bytes: total,
            src,
            src_bytes: total,
            in_place: false,
        },
    );
    // SAFETY: as in `broadcast`.
    teams::done(unsafe {
        data::alltoall(
            &team.group,
            teams::require(routine).state(),
            dest,
            src,
            bytes,
        )
    });
    0
}

/// The strides of an exchange, checked; for `size` members.
pub(super) fn strides(
    routine: &'static str,
    dest: (*mut u8, isize),
    src: (*const u8, isize),
    element: usize,
    count: usize,
    size: usize,
) -> Strides {
    if dest.1 < 1 || src.1 < 1 {
        state::fail(
            routine,
            &format!(
                "strides dst {} and sst {} must be 1 at least",
                dest.1, src.1
            ),
        );
    }
    let extent = |stride: isize| match count * size {
        0 => 0,
        n => ((n - 1) * stride as usize + 1) * element,
    };
    check(
        routine,
        &Buffers {
            dest: dest.0,
            dest_bytes: extent(dest.1),
            src: src.0,
            src_bytes: extent(src.1),
            in_place: false,
        },
    );
    Strides {
        dest: dest.1 as usize,
        src: src.1 as usize,
        element,
        count,
    }
}

unsafe fn alltoalls(
    routine: &'static str,
    team: usize,
    dest: (*mut u8, isize),
    src: (*const u8, isize),
    element: usize,
    count: usize,
) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
    let strides = strides(routine, dest, src, element, count, team.group.size());
    // SAFETY: as in `broadcast`.
    teams::done(unsafe {
        data::alltoalls(
            &team.group,
            teams::require(routine).state(),
            dest.0,
            src.0,
            strides,
        )
    });
    0
}

macro_rules! moving {
    ($call:ident $suffix:ident, $name:ident, $type:ty, $c:literal) => {
        moving!(@ [shmem_ $name $suffix] $call, $type);
    };
    (@ $name:tt $call:ident, $type:ty) => {
        entry! {
            fn $name(team: usize, dest: *mut $type, src: *const $type, nelems: usize) -> c_int {
                const CALL: Move = $call;
                // SAFETY: the C caller's contract.
                unsafe { CALL(name!($name), team, dest.cast(), src.cast(), nelems * size_of::<$type>()) }
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
                // SAFETY: the C caller's contract.
                unsafe { broadcast(name!($name), team, dest.cast(), src.cast(), nelems * size_of::<$type>(), root) }
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
                // SAFETY: the C caller's contract.
                unsafe { alltoalls(name!($name), team, (dest.cast(), dst), (src.cast(), sst), size_of::<$type>(), nelems) }
            }
        }
    };
}

for_each_rma_type!(broadcasting);
for_each_rma_type!(exchanging);
for_each_rma_type!(moving, fcollect _fcollect);
for_each_rma_type!(moving, collect _collect);
for_each_rma_type!(moving, alltoall _alltoall);

/// Sizes of the untyped routines are in bytes.
type Byte = u8;
moving!(@ shmem_fcollectmem fcollect, Byte);
moving!(@ shmem_collectmem collect, Byte);
moving!(@ shmem_alltoallmem alltoall, Byte);
broadcasting!(@ shmem_broadcastmem Byte);
exchanging!(@ shmem_alltoallsmem Byte);

const _: () = assert!(size_of::<*mut Byte>() == size_of::<*mut c_void>());
