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
use npushmem::shm::wait::{self, Waiting};
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
    state::check_argument(state, routine, "ivar", at, count.saturating_mul(size));
    if count > 0 && !at.is_multiple_of(size) {
        state::fail(
            routine,
            &format!(
                "argument ivar: the variable at {at:#x} is not aligned to its size, {size} bytes"
            ),
        );
    }
}

/// What the routines wait for: integers of the table.
trait Integer: Copy + PartialOrd + Sync + std::fmt::Display {}
impl<T: Copy + PartialOrd + Sync + std::fmt::Display> Integer for T {}

/// A comparison as people write it.
fn sign(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
    }
}

/// What a wait for one variable waits for.
#[cold]
fn waiting_one<T: Integer>(routine: &'static str, ivar: *mut T, cmp: Cmp, value: T) -> Waiting {
    // SAFETY: the variable of a routine that has not returned.
    let now = unsafe { load(ivar) };
    Waiting {
        routine,
        what: format!(
            "the variable at {ivar:p} to be {} {value}; it is {now}",
            sign(cmp)
        ),
    }
}

/// Waits for one variable; returns the value that satisfied.
#[inline(always)]
unsafe fn wait_one<T: Integer>(routine: &'static str, ivar: *mut T, cmp: c_int, value: T) -> T {
    check(routine, ivar, 1);
    let cmp = comparison(routine, cmp);
    // SAFETY: the C caller's variable.
    let mut seen = unsafe { load(ivar) };
    if !cmp.holds(seen, value) {
        let at = ivar as usize;
        let what = || waiting_one(routine, at as *mut T, cmp, value);
        wait::until_for(&what, || {
            // SAFETY: as above.
            seen = unsafe { load(ivar) };
            cmp.holds(seen, value)
        });
    }
    seen
}

/// What a wait for all, any or some of a set waits for.
struct Described<T, E: Fn(usize) -> bool> {
    routine: &'static str,
    how: &'static str,
    vars: Vars<T, E>,
}

// SAFETY: the pointers are to arrays of the waiting routine's caller, which live while it waits; variables are read atomically, and what else is
// read the caller must not change meanwhile.
unsafe impl<T, E: Fn(usize) -> bool> Sync for Described<T, E> {}

impl<T: Copy + PartialOrd, E: Fn(usize) -> bool> Described<T, E> {
    #[cold]
    fn waiting(&self) -> Waiting {
        /// Indices that are named.
        const MOST: usize = 8;
        let vars = &self.vars;
        let missing: Vec<usize> = (0..vars.count).filter(|&i| vars.is_missing(i)).collect();
        let named: Vec<String> = missing.iter().take(MOST).map(usize::to_string).collect();
        let more = match missing.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Waiting {
            routine: self.routine,
            what: format!(
                "{} of the {} variables at {:p} to be {} what is given; not yet are those of index {}{more}",
                self.how,
                vars.count,
                vars.ivars,
                sign(vars.cmp),
                named.join(", ")
            ),
        }
    }

    fn wait_all(&self) {
        done(self.vars.wait_all_for(None, Some(&|| self.waiting())));
    }

    fn wait_any(&self) -> usize {
        index(done(self.vars.wait_any_for(None, Some(&|| self.waiting()))))
    }

    fn wait_some(&self, found: &mut impl FnMut(usize, usize)) -> usize {
        done(
            self.vars
                .wait_some_for(found, None, Some(&|| self.waiting())),
        )
    }
}

/// Waiting for `how` many of a set.
fn described<T, E: Fn(usize) -> bool>(
    routine: &'static str,
    how: &'static str,
    vars: Vars<T, E>,
) -> Described<T, E> {
    Described { routine, how, vars }
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
        state::fail(
            routine,
            "argument ivars or cmp_values: a null pointer where an array is wanted",
        );
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
        waits!(@wait [shmem_ $name _wait_until_all] [shmem_ $name _wait_until_all_vector] $type, (), "all", wait_all());
        waits!(@wait [shmem_ $name _wait_until_any] [shmem_ $name _wait_until_any_vector] $type, usize, "any", wait_any());
        waits!(@wait_some [shmem_ $name _wait_until_some] [shmem_ $name _wait_until_some_vector] $type);
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
    (@wait $one:tt $vector:tt $type:ty, $ret:ty, $how:literal, $($call:tt)+) => {
        entry! {
            fn $one(ivars: *mut $type, nelems: usize, status: *const c_int, cmp: c_int, value: $type) -> $ret {
                described(name!($one), $how, vars(name!($one), ivars, nelems, status, cmp, &raw const value, 0)).$($call)+
            }
            fn $vector(ivars: *mut $type, nelems: usize, status: *const c_int, cmp: c_int, values: *const $type) -> $ret {
                described(name!($vector), $how, vars(name!($vector), ivars, nelems, status, cmp, values, 1)).$($call)+
            }
        }
    };
    (@wait_some $one:tt $vector:tt $type:ty) => {
        entry! {
            fn $one(ivars: *mut $type, nelems: usize, indices: *mut usize, status: *const c_int, cmp: c_int, value: $type) -> usize {
                described(name!($one), "some", vars(name!($one), ivars, nelems, status, cmp, &raw const value, 0)).wait_some(&mut list(indices))
            }
            fn $vector(ivars: *mut $type, nelems: usize, indices: *mut usize, status: *const c_int, cmp: c_int, values: *const $type) -> usize {
                described(name!($vector), "some", vars(name!($vector), ivars, nelems, status, cmp, values, 1)).wait_some(&mut list(indices))
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
