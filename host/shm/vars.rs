//! Conditions on variables of this PE: one, all, any or some of a set (OpenSHMEM 1.6, section "Point-To-Point Synchronization Routines").
//!
//! Not how a wait passes its time (`wait`), nor a check of arguments. Every read has acquire ordering: what the writer stored before the
//! variable is visible after a condition that holds.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::wait::{until_or_for, GiveUp, Stop, What};

/// How a variable compares with a value; the numbers are those of `SHMEM_CMP_EQ` and so on (OpenSHMEM 1.6, section "Point-To-Point
/// Synchronization Routines", table of comparison constants).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cmp {
    /// Equal.
    Eq = 0,
    /// Not equal.
    Ne = 1,
    /// Greater than.
    Gt = 2,
    /// Greater than or equal to.
    Ge = 3,
    /// Less than.
    Lt = 4,
    /// Less than or equal to.
    Le = 5,
}

impl Cmp {
    /// Whether `a` compares so with `b`.
    #[inline(always)]
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
        }
    }

    /// The comparison of a number of C.
    #[inline(always)]
    pub fn of(number: i32) -> Option<Cmp> {
        Some(match number {
            0 => Cmp::Eq,
            1 => Cmp::Ne,
            2 => Cmp::Gt,
            3 => Cmp::Ge,
            4 => Cmp::Lt,
            5 => Cmp::Le,
            _ => return None,
        })
    }
}

/// The value of `*at` now, read atomically.
///
/// # Safety
/// `at` is aligned and mapped; `T` is an integer of 2, 4 or 8 bytes.
#[inline(always)]
pub unsafe fn load<T: Copy>(at: *mut T) -> T {
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

/// A set of variables to wait for or to test. `excluded` says which variables take no part.
///
/// Made by callers that keep this contract: `ivars` and `values` are valid for what `count` and `step` say, `ivars` as [`load`] wants.
pub struct Vars<T, E: Fn(usize) -> bool> {
    /// The variables.
    pub ivars: *mut T,
    /// How many.
    pub count: usize,
    /// Which take no part.
    pub excluded: E,
    /// How each compares with its value.
    pub cmp: Cmp,
    /// The values.
    pub values: *const T,
    /// Elements between the values of consecutive variables: 0 when all compare with one value.
    pub step: usize,
}

/// Where searches for any variable begin next, so that each is found in the end.
static TURN: AtomicUsize = AtomicUsize::new(0);

impl<T: Copy + PartialOrd, E: Fn(usize) -> bool> Vars<T, E> {
    /// Whether variable `i` takes part and does not satisfy now.
    pub fn is_missing(&self, i: usize) -> bool {
        self.included(i) && !self.satisfied(i)
    }

    /// Whether variable `i` satisfies now.
    #[inline]
    fn satisfied(&self, i: usize) -> bool {
        // SAFETY: the type's contract.
        unsafe {
            self.cmp
                .holds(load(self.ivars.add(i)), *self.values.add(i * self.step))
        }
    }

    #[inline]
    fn included(&self, i: usize) -> bool {
        !(self.excluded)(i)
    }

    /// Whether no variable takes part.
    pub fn is_empty(&self) -> bool {
        !(0..self.count).any(|i| self.included(i))
    }

    /// Whether all satisfy.
    pub fn test_all(&self) -> bool {
        (0..self.count).all(|i| !self.included(i) || self.satisfied(i))
    }

    /// The first from `start` on that takes part and does not satisfy; [`Vars::count`]: none.
    pub fn first_unsatisfied(&self, start: usize) -> usize {
        (start..self.count)
            .find(|&i| self.included(i) && !self.satisfied(i))
            .unwrap_or(self.count)
    }

    /// One that satisfies.
    pub fn test_any(&self) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let begin = TURN.load(Ordering::Relaxed) % self.count;
        let found = (begin..self.count)
            .chain(0..begin)
            .find(|&i| self.included(i) && self.satisfied(i))?;
        TURN.store(found + 1, Ordering::Relaxed);
        Some(found)
    }

    /// Gives all that satisfy to `found`, in order; returns how many.
    pub fn test_some(&self, found: &mut impl FnMut(usize, usize)) -> usize {
        let mut count = 0;
        for i in 0..self.count {
            if self.included(i) && self.satisfied(i) {
                found(count, i);
                count += 1;
            }
        }
        count
    }

    /// Waits until each has satisfied once.
    ///
    /// # Errors
    /// As [`super::wait::until_or`], here and below.
    pub fn wait_all(&self, give_up: Option<&GiveUp>) -> Result<(), Stop> {
        self.wait_all_for(give_up, None)
    }

    /// As [`Vars::wait_all`], saying what for.
    ///
    /// # Errors
    /// See above.
    pub fn wait_all_for(
        &self,
        give_up: Option<&GiveUp>,
        what: Option<What<'_>>,
    ) -> Result<(), Stop> {
        for i in 0..self.count {
            if self.included(i) {
                until_or_for(give_up, what, || self.satisfied(i))?;
            }
        }
        Ok(())
    }

    /// Waits for one; `None`: none takes part.
    ///
    /// # Errors
    /// See above.
    pub fn wait_any(&self, give_up: Option<&GiveUp>) -> Result<Option<usize>, Stop> {
        self.wait_any_for(give_up, None)
    }

    /// As [`Vars::wait_any`], saying what for.
    ///
    /// # Errors
    /// See above.
    pub fn wait_any_for(
        &self,
        give_up: Option<&GiveUp>,
        what: Option<What<'_>>,
    ) -> Result<Option<usize>, Stop> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut found = None;
        until_or_for(give_up, what, || {
            found = self.test_any();
            found.is_some()
        })?;
        Ok(found)
    }

    /// Waits for at least one; as [`Vars::test_some`].
    ///
    /// # Errors
    /// See above.
    pub fn wait_some(
        &self,
        found: &mut impl FnMut(usize, usize),
        give_up: Option<&GiveUp>,
    ) -> Result<usize, Stop> {
        self.wait_some_for(found, give_up, None)
    }

    /// As [`Vars::wait_some`], saying what for.
    ///
    /// # Errors
    /// See above.
    pub fn wait_some_for(
        &self,
        found: &mut impl FnMut(usize, usize),
        give_up: Option<&GiveUp>,
        what: Option<What<'_>>,
    ) -> Result<usize, Stop> {
        if self.is_empty() {
            return Ok(0);
        }
        let mut count = 0;
        until_or_for(give_up, what, || {
            count = self.test_some(found);
            count > 0
        })?;
        Ok(count)
    }
}
