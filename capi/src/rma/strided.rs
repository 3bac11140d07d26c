//! Strided transfers: iput, iget (OpenSHMEM 1.6, 9.5.4, 9.5.8) and ibput, ibget, which move blocks (9.5.5, 9.5.9).
//!
//! Strides count elements: those of the destination and of the source.

use std::ffi::{c_int, c_void};

use crate::context::{ctx_target, Ctx};
use crate::entry::hot;
use crate::state::{routine, target, CRoutine};
use npushmem::shm::strided::{run, Pattern};
use npushmem::shm::table::{for_each_rma_type, for_each_size};

unsafe fn put(
    routine: &'static CRoutine,
    dest: *mut c_void,
    source: *const c_void,
    pattern: Pattern,
    pe: c_int,
) {
    let to = target(routine, dest as usize, pattern.extent(pattern.dst), pe);
    // SAFETY: the peer's instance of the caller's array.
    unsafe { run(to, source.cast(), pattern) }
}

unsafe fn get(
    routine: &'static CRoutine,
    dest: *mut c_void,
    source: *const c_void,
    pattern: Pattern,
    pe: c_int,
) {
    let from = target(routine, source as usize, pattern.extent(pattern.sst), pe);
    // SAFETY: as in `put`.
    unsafe { run(dest.cast(), from, pattern) }
}

unsafe fn ctx_put(
    routine: &'static CRoutine,
    ctx: Ctx,
    dest: *mut c_void,
    source: *const c_void,
    pattern: Pattern,
    pe: c_int,
) {
    // SAFETY: the caller's context; the rest as in `put`.
    unsafe {
        let to = ctx_target(routine, ctx, dest as usize, pattern.extent(pattern.dst), pe);
        run(to, source.cast(), pattern);
    }
}

unsafe fn ctx_get(
    routine: &'static CRoutine,
    ctx: Ctx,
    dest: *mut c_void,
    source: *const c_void,
    pattern: Pattern,
    pe: c_int,
) {
    // SAFETY: the caller's context; the rest as in `put`.
    unsafe {
        let from = ctx_target(
            routine,
            ctx,
            source as usize,
            pattern.extent(pattern.sst),
            pe,
        );
        run(dest.cast(), from, pattern);
    }
}

macro_rules! strided {
    ($way:ident, $ctx_way:ident, [$($name:tt)+], [$($ctx_name:tt)+], $ty:ty, $bytes:expr) => {
        hot! {
            fn [$($name)+](dest: *mut $ty, source: *const $ty, dst: isize, sst: isize, nelems: usize, pe: c_int) {
                let pattern = Pattern { dst, sst, block: 1, count: nelems, bytes: $bytes };
                $way(routine!([$($name)+]), dest.cast(), source.cast(), pattern, pe)
            }
            fn [$($ctx_name)+](ctx: Ctx, dest: *mut $ty, source: *const $ty, dst: isize, sst: isize, nelems: usize, pe: c_int) {
                let pattern = Pattern { dst, sst, block: 1, count: nelems, bytes: $bytes };
                $ctx_way(routine!([$($ctx_name)+]), ctx, dest.cast(), source.cast(), pattern, pe)
            }
        }
    };
}

macro_rules! blocks {
    ($way:ident, $ctx_way:ident, [$($name:tt)+], [$($ctx_name:tt)+], $ty:ty, $bytes:expr) => {
        hot! {
            fn [$($name)+](dest: *mut $ty, source: *const $ty, dst: isize, sst: isize, bsize: usize, nblocks: usize, pe: c_int) {
                let pattern = Pattern { dst, sst, block: bsize, count: nblocks, bytes: $bytes };
                $way(routine!([$($name)+]), dest.cast(), source.cast(), pattern, pe)
            }
            fn [$($ctx_name)+](ctx: Ctx, dest: *mut $ty, source: *const $ty, dst: isize, sst: isize, bsize: usize, nblocks: usize, pe: c_int) {
                let pattern = Pattern { dst, sst, block: bsize, count: nblocks, bytes: $bytes };
                $ctx_way(routine!([$($ctx_name)+]), ctx, dest.cast(), source.cast(), pattern, pe)
            }
        }
    };
}

macro_rules! typed {
    ($name:ident, $ty:ty, $c:literal) => {
        strided!(put, ctx_put, [shmem_ $name _iput], [shmem_ctx_ $name _iput], $ty, size_of::<$ty>());
        strided!(get, ctx_get, [shmem_ $name _iget], [shmem_ctx_ $name _iget], $ty, size_of::<$ty>());
        blocks!(put, ctx_put, [shmem_ $name _ibput], [shmem_ctx_ $name _ibput], $ty, size_of::<$ty>());
        blocks!(get, ctx_get, [shmem_ $name _ibget], [shmem_ctx_ $name _ibget], $ty, size_of::<$ty>());
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($bits:tt, $bytes:literal) => {
        strided!(put, ctx_put, [shmem_iput $bits], [shmem_ctx_iput $bits], c_void, $bytes);
        strided!(get, ctx_get, [shmem_iget $bits], [shmem_ctx_iget $bits], c_void, $bytes);
        blocks!(put, ctx_put, [shmem_ibput $bits], [shmem_ctx_ibput $bits], c_void, $bytes);
        blocks!(get, ctx_get, [shmem_ibget $bits], [shmem_ctx_ibget $bits], c_void, $bytes);
    };
}
for_each_size!(sized);
