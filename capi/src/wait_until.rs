//! Waiting for and testing variables of this PE (OpenSHMEM 1.6, section "Point-To-Point Synchronization Routines"), in all forms.
//!
//! Not how a wait passes its time, nor the search in a set (`npushmem::shm`). Called from C. Every read has acquire ordering: what the writer stored before the variable is
//! visible after the wait or test.

use crate::constants::{SHMEM_CMP_EQ, SHMEM_CMP_LE, SHMEM_CMP_NE};
use crate::entry::{entry, hot, name};
use crate::state;
use crate::teams::done;
use npushmem::shm::table::{for_each_old_wait_type, for_each_wait_type};
use npushmem::shm::vars::{load, Cmp, Vars};
use npushmem::shm::wait;
use std::ffi::{c_int, c_long};

/// What the routines return for no element.
const NONE: usize = usize::MAX;

/// The comparison that `cmp` stands for; another number ends the job.
#[inline(always)]
fn comparison(routine: &'static str, cmp: c_int) -> Cmp {
    match Cmp::of(cmp) {
        Some(cmp) => cmp,
        None => no_comparison(routine, cmp),
    }
}

#[cold]
#[inline(never)]
fn no_comparison(routine: &'static str, cmp: c_int) -> ! {
    state::fail(
        routine,
        &format!("argument cmp: {cmp} is none of SHMEM_CMP_EQ, _NE, _GT, _GE, _LT, _LE ({SHMEM_CMP_EQ} to {SHMEM_CMP_LE})"),
    )
}

/// Outside init and finalize, ends the job; under `SHMEM_DEBUG` also when the variables are not symmetric or misaligned.
#[inline(always)]
fn check<T>(routine: &'static str, ivars: *mut T, count: usize) {
    if state::my_pe() < 0 || state::debugging() {
        check_slowly(routine, ivars as usize, count, size_of::<T>());
    }
}

#[cold]
#[inline(never)]
fn check_slowly(routine: &'static str, at: usize, count: usize, size: usize) {
    let state = state::require(routine);
    if !state::debugging() {
        return;
    }
    state::check_symmetric(state, routine, at, count * size);
    if count > 0 && !at.is_multiple_of(size) {
        state::fail(
            routine,
            &format!("the variable at {at:#x} is not aligned to its size, {size} bytes"),
        );
    }
}

/// Waits for one variable; returns the value that satisfied.
#[inline(always)]
unsafe fn wait_one<T: Copy + PartialOrd>(
    routine: &'static str,
    ivar: *mut T,
    cmp: c_int,
    value: T,
) -> T {
    check(routine, ivar, 1);
    let cmp = comparison(routine, cmp);
    // SAFETY: the C caller's variable.
    let mut seen = unsafe { load(ivar) };
    if !cmp.holds(seen, value) {
        wait::until(|| {
            // SAFETY: as above.
            seen = unsafe { load(ivar) };
            cmp.holds(seen, value)
        });
    }
    seen
}

/// The set that a routine's arguments describe, checked.
fn vars<T>(
    routine: &'static str,
    ivars: *mut T,
    count: usize,
    status: *const c_int,
    cmp: c_int,
    values: *const T,
    step: usize,
) -> Vars<T, impl Fn(usize) -> bool> {
    check(routine, ivars, count);
    if state::debugging() && count > 0 && (ivars.is_null() || values.is_null()) {
        state::fail(routine, "a null pointer where an array is wanted");
    }
    Vars {
        ivars,
        count,
        // SAFETY: the C caller's array of `count` numbers, or null.
        excluded: move |i: usize| !status.is_null() && unsafe { *status.add(i) } != 0,
        cmp: comparison(routine, cmp),
        values,
        step,
    }
}

/// An index as C has it.
fn index(found: Option<usize>) -> usize {
    found.unwrap_or(NONE)
}

/// Where the indices of variables that satisfy go: the C caller's array of as many numbers as there are variables.
fn list(indices: *mut usize) -> impl FnMut(usize, usize) {
    // SAFETY: the C caller's array.
    move |at, i| unsafe { *indices.add(at) = i }
}

macro_rules! waits {
    ($name:ident, $type:ty, $c:literal) => {
        waits!(@one [shmem_ $name _wait_until] [shmem_ $name _test] $type);
        waits!(@set [shmem_ $name _wait_until_all] [shmem_ $name _wait_until_all_vector] $type, (), wait_all(None) => done);
        waits!(@set [shmem_ $name _wait_until_any] [shmem_ $name _wait_until_any_vector] $type, usize, wait_any(None) => |found| index(done(found)));
        waits!(@some [shmem_ $name _wait_until_some] [shmem_ $name _wait_until_some_vector] $type, wait_some(None) => done);
        waits!(@set [shmem_ $name _test_all] [shmem_ $name _test_all_vector] $type, c_int, test_all() => c_int::from);
        waits!(@set [shmem_ $name _test_any] [shmem_ $name _test_any_vector] $type, usize, test_any() => index);
        waits!(@some [shmem_ $name _test_some] [shmem_ $name _test_some_vector] $type, test_some() => |count| count);
    };
    (@one $wait:tt $test:tt $type:ty) => {
        hot! {
            fn $wait(ivar: *mut $type, cmp: c_int, value: $type) {
                wait_one(name!($wait), ivar, cmp, value);
            }
            fn $test(ivar: *mut $type, cmp: c_int, value: $type) -> c_int {
                check(name!($test), ivar, 1);
                comparison(name!($test), cmp).holds(load(ivar), value).into()
            }
        }
    };
    (@set $one:tt $vector:tt $type:ty, $ret:ty, $call:ident($($arg:tt)*) => $finish:expr) => {
        entry! {
            fn $one(ivars: *mut $type, nelems: usize, status: *const c_int, cmp: c_int, value: $type) -> $ret {
                ($finish)(vars(name!($one), ivars, nelems, status, cmp, &raw const value, 0).$call($($arg)*))
            }
            fn $vector(ivars: *mut $type, nelems: usize, status: *const c_int, cmp: c_int, values: *const $type) -> $ret {
                ($finish)(vars(name!($vector), ivars, nelems, status, cmp, values, 1).$call($($arg)*))
            }
        }
    };
    (@some $one:tt $vector:tt $type:ty, $call:ident($($arg:tt)*) => $finish:expr) => {
        entry! {
            fn $one(ivars: *mut $type, nelems: usize, indices: *mut usize, status: *const c_int, cmp: c_int, value: $type) -> usize {
                ($finish)(vars(name!($one), ivars, nelems, status, cmp, &raw const value, 0).$call(&mut list(indices) $(, $arg)*))
            }
            fn $vector(ivars: *mut $type, nelems: usize, indices: *mut usize, status: *const c_int, cmp: c_int, values: *const $type) -> usize {
                ($finish)(vars(name!($vector), ivars, nelems, status, cmp, values, 1).$call(&mut list(indices) $(, $arg)*))
            }
        }
    };
}

for_each_wait_type!(waits);

macro_rules! old_wait {
    ($name:ident, $type:ty, $c:literal) => {
        old_wait!(@ [shmem_ $name _wait] $type);
    };
    (@ $name:tt $type:ty) => {
        hot! {
            fn $name(ivar: *mut $type, value: $type) {
                wait_one(name!($name), ivar, SHMEM_CMP_NE, value);
            }
        }
    };
}

for_each_old_wait_type!(old_wait);
old_wait!(@ shmem_wait c_long);

hot! {
    /// Deprecated form for long.
    fn shmem_wait_until(ivar: *mut c_long, cmp: c_int, value: c_long) {
        wait_one("shmem_wait_until", ivar, cmp, value);
    }

    /// Waits for a signal; returns the value that satisfied.
    fn shmem_signal_wait_until(signal: *mut u64, cmp: c_int, value: u64) -> u64 {
        wait_one("shmem_signal_wait_until", signal, cmp, value)
    }
}
