//! Waiting for and testing variables of this PE (OpenSHMEM 1.6, section "Point-To-Point Synchronization Routines"), in all forms.
//!
//! Not how a wait passes its time (`wait.rs`). Called from C. Every read has acquire ordering: what the writer stored before the variable is
//! visible after the wait or test.

use crate::constants::{
    SHMEM_CMP_EQ, SHMEM_CMP_GE, SHMEM_CMP_GT, SHMEM_CMP_LE, SHMEM_CMP_LT, SHMEM_CMP_NE,
};
use crate::entry::{entry, hot, name};
use crate::state;
use npushmem::shm::table::{for_each_old_wait_type, for_each_wait_type};
use npushmem::shm::wait;
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// What the routines return for no element.
const NONE: usize = usize::MAX;

/// The value of `*at` now, read atomically.
///
/// # Safety
/// `at` is aligned and mapped.
#[inline(always)]
unsafe fn load<T: Copy>(at: *mut T) -> T {
    // SAFETY: the caller's contract; in each case the value has the size of `T`, an integer type.
    unsafe {
        match size_of::<T>() {
            2 => std::mem::transmute_copy(&AtomicU16::from_ptr(at.cast()).load(Ordering::Acquire)),
            4 => std::mem::transmute_copy(&AtomicU32::from_ptr(at.cast()).load(Ordering::Acquire)),
            8 => std::mem::transmute_copy(&AtomicU64::from_ptr(at.cast()).load(Ordering::Acquire)),
            _ => unreachable!("the table has integers of 2, 4 and 8 bytes only"),
        }
    }
}

/// Whether `a` compares with `b` as `cmp` says.
#[inline(always)]
fn holds<T: PartialOrd>(routine: &'static str, a: T, cmp: c_int, b: T) -> bool {
    match cmp {
        SHMEM_CMP_EQ => a == b,
        SHMEM_CMP_NE => a != b,
        SHMEM_CMP_GT => a > b,
        SHMEM_CMP_GE => a >= b,
        SHMEM_CMP_LT => a < b,
        SHMEM_CMP_LE => a <= b,
        _ => no_comparison(routine, cmp),
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
    // SAFETY: the C caller's variable.
    let mut seen = unsafe { load(ivar) };
    if !holds(routine, seen, cmp, value) {
        wait::until(|| {
            // SAFETY: as above.
            seen = unsafe { load(ivar) };
            holds(routine, seen, cmp, value)
        });
    }
    seen
}

/// A set of variables to wait for or to test.
struct Vars<T> {
    routine: &'static str,
    ivars: *mut T,
    count: usize,
    status: *const c_int,
    cmp: c_int,
    values: *const T,
    /// Elements between the values of consecutive variables: 0 when all compare with one value.
    step: usize,
}

/// Where searches for any variable begin next, so that each is found in the end.
static TURN: AtomicUsize = AtomicUsize::new(0);

impl<T: Copy + PartialOrd> Vars<T> {
    /// Whether variable `i` is in the set.
    #[inline]
    fn included(&self, i: usize) -> bool {
        // SAFETY: the C caller's array of `count` numbers, or null.
        self.status.is_null() || unsafe { *self.status.add(i) } == 0
    }

    /// Whether variable `i` satisfies now.
    #[inline]
    fn satisfied(&self, i: usize) -> bool {
        // SAFETY: the C caller's arrays of `count` elements.
        unsafe {
            holds(
                self.routine,
                load(self.ivars.add(i)),
                self.cmp,
                *self.values.add(i * self.step),
            )
        }
    }

    fn is_empty(&self) -> bool {
        !(0..self.count).any(|i| self.included(i))
    }

    fn test_all(&self) -> bool {
        (0..self.count).all(|i| !self.included(i) || self.satisfied(i))
    }

    fn test_any(&self) -> usize {
        if self.count == 0 {
            return NONE;
        }
        let begin = TURN.load(Ordering::Relaxed) % self.count;
        let found = (begin..self.count)
            .chain(0..begin)
            .find(|&i| self.included(i) && self.satisfied(i));
        match found {
            Some(i) => {
                TURN.store(i + 1, Ordering::Relaxed);
                i
            }
            None => NONE,
        }
    }

    fn test_some(&self, indices: *mut usize) -> usize {
        let mut found = 0;
        for i in 0..self.count {
            if self.included(i) && self.satisfied(i) {
                // SAFETY: the C caller's array of `count` numbers.
                unsafe { *indices.add(found) = i };
                found += 1;
            }
        }
        found
    }

    fn wait_all(&self) {
        for i in 0..self.count {
            if self.included(i) {
                wait::until(|| self.satisfied(i));
            }
        }
    }

    fn wait_any(&self) -> usize {
        if self.is_empty() {
            return NONE;
        }
        let mut found = NONE;
        wait::until(|| {
            found = self.test_any();
            found != NONE
        });
        found
    }

    fn wait_some(&self, indices: *mut usize) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut found = 0;
        wait::until(|| {
            found = self.test_some(indices);
            found > 0
        });
        found
    }
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
) -> Vars<T> {
    check(routine, ivars, count);
    if state::debugging() && count > 0 && (ivars.is_null() || values.is_null()) {
        state::fail(routine, "a null pointer where an array is wanted");
    }
    Vars {
        routine,
        ivars,
        count,
        status,
        cmp,
        values,
        step,
    }
}

macro_rules! waits {
    ($name:ident, $type:ty, $c:literal) => {
        waits!(@one [shmem_ $name _wait_until] [shmem_ $name _test] $type);
        waits!(@set [shmem_ $name _wait_until_all] [shmem_ $name _wait_until_all_vector] $type, (), wait_all());
        waits!(@set [shmem_ $name _wait_until_any] [shmem_ $name _wait_until_any_vector] $type, usize, wait_any());
        waits!(@some [shmem_ $name _wait_until_some] [shmem_ $name _wait_until_some_vector] $type, wait_some);
        waits!(@set [shmem_ $name _test_all] [shmem_ $name _test_all_vector] $type, c_int, test_all().into());
        waits!(@set [shmem_ $name _test_any] [shmem_ $name _test_any_vector] $type, usize, test_any());
        waits!(@some [shmem_ $name _test_some] [shmem_ $name _test_some_vector] $type, test_some);
    };
    (@one $wait:tt $test:tt $type:ty) => {
        hot! {
            fn $wait(ivar: *mut $type, cmp: c_int, value: $type) {
                wait_one(name!($wait), ivar, cmp, value);
            }
            fn $test(ivar: *mut $type, cmp: c_int, value: $type) -> c_int {
                check(name!($test), ivar, 1);
                holds(name!($test), load(ivar), cmp, value).into()
            }
        }
    };
    (@set $one:tt $vector:tt $type:ty, $ret:ty, $($call:tt)+) => {
        entry! {
            fn $one(ivars: *mut $type, nelems: usize, status: *const c_int, cmp: c_int, value: $type) -> $ret {
                vars(name!($one), ivars, nelems, status, cmp, &raw const value, 0).$($call)+
            }
            fn $vector(ivars: *mut $type, nelems: usize, status: *const c_int, cmp: c_int, values: *const $type) -> $ret {
                vars(name!($vector), ivars, nelems, status, cmp, values, 1).$($call)+
            }
        }
    };
    (@some $one:tt $vector:tt $type:ty, $call:ident) => {
        entry! {
            fn $one(ivars: *mut $type, nelems: usize, indices: *mut usize, status: *const c_int, cmp: c_int, value: $type) -> usize {
                vars(name!($one), ivars, nelems, status, cmp, &raw const value, 0).$call(indices)
            }
            fn $vector(ivars: *mut $type, nelems: usize, indices: *mut usize, status: *const c_int, cmp: c_int, values: *const $type) -> usize {
                vars(name!($vector), ivars, nelems, status, cmp, values, 1).$call(indices)
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
