//! The symmetric heap's routines (OpenSHMEM 1.6, 9.3): malloc, calloc, align, realloc, malloc_with_hints, free.
//!
//! Collective: every PE calls alike, so every PE's allocator gives the same offset without communication; the barriers are the standard's.
//! Not here: the allocator (host/heap), barriers (collectives/).

use std::ffi::{c_long, c_void};

use npushmem::shm::group::Routine;

use crate::calls::all_agree;
use crate::constants::{
    SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_NO_BARRIER, SHMEM_MALLOC_SIGNAL_REMOTE,
};
use crate::entry::entry;
use crate::setup::barrier;
use crate::state::{self, State};

/// Alignment of what has none asked for, bytes: a line, so that two objects never share one.
const LINE: usize = 64;

/// Takes `bytes` at a multiple of `align`.
fn allocate(state: &State, bytes: usize, align: usize) -> *mut c_void {
    if bytes == 0 {
        return std::ptr::null_mut();
    }
    match state.heap_alloc(bytes, align) {
        Some(at) => at.cast(),
        None => std::ptr::null_mut(),
    }
}

/// The barrier of a heap routine; under `SHMEM_DEBUG` the job ends when the PEs are in different ones, or ask for different sizes.
fn meet(routine: Routine, name: &'static str, number: usize) {
    all_agree(routine, name, number);
    barrier(routine);
}

/// Where a block is in the heap; the same on every PE.
fn offset(state: &State, at: *const c_void) -> usize {
    at as usize - state.heap.base
}

/// Ends the job unless a block begins at `at`; gives its size.
fn block(routine: &'static str, state: &State, at: *const c_void) -> usize {
    match state.heap_block(at.cast()) {
        Some(bytes) => bytes,
        None => state::fail(
            routine,
            &format!(
                "argument ptr: {at:p} was not given by the symmetric heap, or is free already"
            ),
        ),
    }
}

entry! {
    fn shmem_malloc(size: usize) -> *mut c_void {
        let state = state::require("shmem_malloc");
        if size == 0 {
            return std::ptr::null_mut();
        }
        let at = allocate(state, size, LINE);
        meet(&"shmem_malloc", "size", size);
        at
    }

    fn shmem_calloc(count: usize, size: usize) -> *mut c_void {
        let state = state::require("shmem_calloc");
        let Some(bytes) = count.checked_mul(size) else {
            state::tell("shmem_calloc", &format!("{count} elements of {size} bytes are more than any heap holds"));
            return std::ptr::null_mut();
        };
        if bytes == 0 {
            return std::ptr::null_mut();
        }
        let at = allocate(state, bytes, LINE);
        if !at.is_null() {
            // SAFETY: the block has just been given out.
            unsafe { at.cast::<u8>().write_bytes(0, bytes) };
        }
        meet(&"shmem_calloc", "size", bytes);
        at
    }

    fn shmem_align(alignment: usize, size: usize) -> *mut c_void {
        let state = state::require("shmem_align");
        if size == 0 {
            return std::ptr::null_mut();
        }
        if !alignment.is_power_of_two() {
            state::tell("shmem_align", &format!("argument alignment: {alignment} is no power of two"));
            return std::ptr::null_mut();
        }
        let at = allocate(state, size, alignment.max(LINE));
        meet(&"shmem_align", "size", size);
        at
    }

    fn shmem_malloc_with_hints(size: usize, hints: c_long) -> *mut c_void {
        let state = state::require("shmem_malloc_with_hints");
        let known = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE | SHMEM_MALLOC_NO_BARRIER;
        if state::debugging() && hints & !known != 0 {
            state::fail("shmem_malloc_with_hints", &format!("argument hints: {hints:#x} has bits that are none of SHMEM_MALLOC_ATOMICS_REMOTE ({SHMEM_MALLOC_ATOMICS_REMOTE}) and SHMEM_MALLOC_SIGNAL_REMOTE ({SHMEM_MALLOC_SIGNAL_REMOTE})"));
        }
        if size == 0 {
            return std::ptr::null_mut();
        }
        let at = allocate(state, size, LINE);
        if hints & SHMEM_MALLOC_NO_BARRIER == 0 {
            meet(&"shmem_malloc_with_hints", "size", size);
        }
        at
    }

    fn shmem_realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
        let state = state::require("shmem_realloc");
        if ptr.is_null() {
            let at = allocate(state, size, LINE);
            if size != 0 {
                meet(&"shmem_realloc", "size", size);
            }
            return at;
        }
        let old = block("shmem_realloc", state, ptr);
        // Nobody may still be using the old block.
        meet(&"shmem_realloc", "ptr", offset(state, ptr));
        if size == 0 {
            state.heap_free(ptr.cast());
            return std::ptr::null_mut();
        }
        let at = allocate(state, size, LINE);
        if !at.is_null() {
            // SAFETY: two live blocks of at least so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(ptr.cast::<u8>(), at.cast::<u8>(), old.min(size)) };
            state.heap_free(ptr.cast());
        }
        meet(&"shmem_realloc", "size", size);
        at
    }

    fn shmem_free(ptr: *mut c_void) {
        let state = state::require("shmem_free");
        if ptr.is_null() {
            return;
        }
        block("shmem_free", state, ptr);
        meet(&"shmem_free", "ptr", offset(state, ptr));
        state.heap_free(ptr.cast());
    }
}
