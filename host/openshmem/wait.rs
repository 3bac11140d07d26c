//! Waiting for and testing variables of this PE (OpenSHMEM 1.6, section "Point-To-Point Synchronization Routines").
//!
//! What it is not: a notification; a wait looks again and again (shm/wait.rs says how). Every look has acquire ordering: what the writer put, and
//! ordered before the variable by a fence or a signal, is visible after it. Every wait ends: by its condition, at `NPUSHMEM_TIMEOUT`, or because a PE
//! died.

use std::time::{Duration, Instant};

use super::error::ShmemError;
use super::types::AtomicInteger;
use crate::error::Error;
use crate::shm::vars::{Cmp, Vars};
use crate::shm::wait::until_or;
use crate::sym::{SymRef, SymSlice};
use crate::world::World;

/// Which variables take no part: none if it is empty, else those whose entry is true (the standard's `status`).
pub type Excluded<'a> = &'a [bool];

/// Between two looks at device memory, which each cost a copy.
const LOOK: Duration = Duration::from_micros(50);

/// The values of a set: one for all, or one for each.
#[derive(Clone, Copy)]
enum Values<'a, T> {
    One(T),
    Each(&'a [T]),
}

impl World {
    /// Looks at this PE's own `ivars` until `look` finds what it wants.
    fn look<T: AtomicInteger, R>(
        &self,
        what: &'static str,
        ivars: SymSlice<'_, T>,
        mut look: impl FnMut(*mut T) -> Option<R>,
    ) -> Result<R, Error> {
        let at = self.locate(&ivars, self.my_pe())?;
        let shared = self.patience();
        if self.host_memory() {
            let mut found = None;
            let ended = until_or(Some(&*shared), || {
                found = look(at as *mut T);
                found.is_some()
            });
            return match (ended, found) {
                (Ok(()), Some(found)) => Ok(found),
                _ => Err(self.gave_up(what)),
            };
        }
        let begin = Instant::now();
        let mut copy = vec![T::zeroed(); ivars.len()];
        loop {
            // SAFETY: located.
            unsafe { self.load_bytes(bytemuck::cast_slice_mut(&mut copy), at) }?;
            if let Some(found) = look(copy.as_mut_ptr()) {
                return Ok(found);
            }
            if shared(begin.elapsed()) {
                return Err(self.gave_up(what));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// One look, of which the result is given whatever it is.
    fn glance<T: AtomicInteger, R>(
        &self,
        what: &'static str,
        ivars: SymSlice<'_, T>,
        mut look: impl FnMut(*mut T) -> R,
    ) -> Result<R, Error> {
        self.look(what, ivars, |at| Some(look(at)))
    }

    /// Waits until this PE's instance compares so with `value`; gives the value that ended the wait (OpenSHMEM 1.6, `shmem_wait_until`).
    ///
    /// # Errors
    /// [`ShmemError::Timeout`], [`ShmemError::Died`]; the runtime's, where the heap is device memory. Here and below.
    pub fn wait_until<'s, T: AtomicInteger>(
        &self,
        ivar: impl Into<SymRef<'s, T>>,
        cmp: Cmp,
        value: T,
    ) -> Result<T, Error> {
        self.look("wait_until", ivar.into().view(), |at| {
            // SAFETY: one element, aligned, mapped or copied.
            let seen = unsafe { crate::shm::vars::load(at) };
            cmp.holds(seen, value).then_some(seen)
        })
    }

    /// Whether it does now (OpenSHMEM 1.6, `shmem_test`).
    ///
    /// # Errors
    /// See [`wait_until`](Self::wait_until).
    pub fn test<'s, T: AtomicInteger>(
        &self,
        ivar: impl Into<SymRef<'s, T>>,
        cmp: Cmp,
        value: T,
    ) -> Result<bool, Error> {
        self.glance("test", ivar.into().view(), |at| {
            // SAFETY: as in `wait_until`.
            cmp.holds(unsafe { crate::shm::vars::load(at) }, value)
        })
    }

    /// The signal word of this PE now (OpenSHMEM 1.6, `shmem_signal_fetch`).
    ///
    /// # Errors
    /// See [`wait_until`](Self::wait_until).
    pub fn signal_fetch<'s>(&self, signal: impl Into<SymRef<'s, u64>>) -> Result<u64, Error> {
        self.glance("signal_fetch", signal.into().view(), |at: *mut u64| {
            // SAFETY: as in `wait_until`.
            unsafe { crate::shm::vars::load(at) }
        })
    }

    /// Waits for a signal; gives the value that ended the wait (OpenSHMEM 1.6, `shmem_signal_wait_until`).
    ///
    /// # Errors
    /// See [`wait_until`](Self::wait_until).
    pub fn signal_wait_until<'s>(
        &self,
        signal: impl Into<SymRef<'s, u64>>,
        cmp: Cmp,
        value: u64,
    ) -> Result<u64, Error> {
        self.wait_until(signal, cmp, value)
    }
}

/// The set of `ivars` at `at`, as the engine takes it.
fn vars<'a, T: AtomicInteger>(
    at: *mut T,
    count: usize,
    excluded: Excluded<'a>,
    cmp: Cmp,
    values: &'a Values<'a, T>,
) -> Vars<T, impl Fn(usize) -> bool + 'a> {
    let (values, step) = match values {
        Values::One(value) => (std::ptr::from_ref(value), 0),
        Values::Each(values) => (values.as_ptr(), 1),
    };
    Vars {
        ivars: at,
        count,
        excluded: move |i| excluded.get(i).copied().unwrap_or(false),
        cmp,
        values,
        step,
    }
}

/// One list entry for each variable.
fn check(
    what: &'static str,
    wanted: usize,
    excluded: Excluded<'_>,
    values: Option<usize>,
) -> Result<(), ShmemError> {
    let statuses = Some(excluded.len()).filter(|given| *given > 0);
    for given in [statuses, values].into_iter().flatten() {
        if given != wanted {
            return Err(ShmemError::Entries {
                what,
                given,
                wanted,
            });
        }
    }
    Ok(())
}

impl World {
    fn sets<T: AtomicInteger, R>(
        &self,
        what: &'static str,
        ivars: SymSlice<'_, T>,
        excluded: Excluded<'_>,
        (cmp, values): (Cmp, Values<'_, T>),
        mut body: impl FnMut(&Vars<T, &dyn Fn(usize) -> bool>) -> Option<R>,
    ) -> Result<R, Error> {
        let given = match values {
            Values::One(_) => None,
            Values::Each(values) => Some(values.len()),
        };
        check(what, ivars.len(), excluded, given)?;
        self.look(what, ivars, |at| {
            let set = vars(at, ivars.len(), excluded, cmp, &values);
            body(&Vars {
                ivars: set.ivars,
                count: set.count,
                excluded: &set.excluded,
                cmp: set.cmp,
                values: set.values,
                step: set.step,
            })
        })
    }

    fn all<T: AtomicInteger>(
        &self,
        what: &'static str,
        ivars: SymSlice<'_, T>,
        excluded: Excluded<'_>,
        condition: (Cmp, Values<'_, T>),
    ) -> Result<(), Error> {
        // Each has to satisfy once, not all at the same time.
        let mut next = 0;
        self.sets(what, ivars, excluded, condition, |set| {
            next = set.first_unsatisfied(next);
            (next == set.count).then_some(())
        })
    }

    fn any<T: AtomicInteger>(
        &self,
        what: &'static str,
        ivars: SymSlice<'_, T>,
        excluded: Excluded<'_>,
        condition: (Cmp, Values<'_, T>),
        once: bool,
    ) -> Result<Option<usize>, Error> {
        self.sets(what, ivars, excluded, condition, |set| {
            let found = set.test_any();
            (once || found.is_some() || set.is_empty()).then_some(found)
        })
    }

    fn some<T: AtomicInteger>(
        &self,
        what: &'static str,
        ivars: SymSlice<'_, T>,
        excluded: Excluded<'_>,
        condition: (Cmp, Values<'_, T>),
        once: bool,
    ) -> Result<Vec<usize>, Error> {
        self.sets(what, ivars, excluded, condition, |set| {
            let mut found = Vec::new();
            set.test_some(&mut |_, i| found.push(i));
            (once || !found.is_empty() || set.is_empty()).then_some(found)
        })
    }
}

/// The twelve routines on sets: their names, what they give, and how they are done.
macro_rules! sets {
    ($($(#[$meta:meta])* $name:ident $vector:ident $routine:literal -> $ret:ty = |$world:ident, $what:ident, $ivars:ident, $excluded:ident, $condition:ident| $body:expr;)*) => {
        impl World {$(
            $(#[$meta])*
            #[doc = concat!("(OpenSHMEM 1.6, `shmem_", $routine, "`).")]
            ///
            /// # Errors
            /// See [`wait_until`](Self::wait_until); lists with other than one entry for each variable.
            pub fn $name<'s, T: AtomicInteger>(
                &self,
                ivars: impl Into<SymSlice<'s, T>>,
                excluded: Excluded<'_>,
                cmp: Cmp,
                value: T,
            ) -> Result<$ret, Error> {
                let ($world, $what, $ivars, $excluded) = (self, stringify!($name), ivars.into(), excluded);
                let $condition = (cmp, Values::One(value));
                $body
            }

            $(#[$meta])*
            #[doc = concat!("Each variable has a value of its own (OpenSHMEM 1.6, `shmem_", $routine, "_vector`).")]
            ///
            /// # Errors
            /// As above.
            pub fn $vector<'s, T: AtomicInteger>(
                &self,
                ivars: impl Into<SymSlice<'s, T>>,
                excluded: Excluded<'_>,
                cmp: Cmp,
                values: &[T],
            ) -> Result<$ret, Error> {
                let ($world, $what, $ivars, $excluded) = (self, stringify!($vector), ivars.into(), excluded);
                let $condition = (cmp, Values::Each(values));
                $body
            }
        )*}
    };
}

sets! {
    /// Waits until each variable that takes part has compared so once
    wait_until_all wait_until_all_vector "wait_until_all" -> () =
        |world, what, ivars, excluded, condition| world.all(what, ivars, excluded, condition);
    /// Waits until one does, and gives its index; `None`: none takes part
    wait_until_any wait_until_any_vector "wait_until_any" -> Option<usize> =
        |world, what, ivars, excluded, condition| world.any(what, ivars, excluded, condition, false);
    /// Waits until at least one does, and gives the indices of all that do; none, if none takes part
    wait_until_some wait_until_some_vector "wait_until_some" -> Vec<usize> =
        |world, what, ivars, excluded, condition| world.some(what, ivars, excluded, condition, false);
    /// Whether all that take part compare so now
    test_all test_all_vector "test_all" -> bool =
        |world, what, ivars, excluded, condition| world.sets(what, ivars, excluded, condition, |set| Some(set.test_all()));
    /// The index of one that does now, if there is one
    test_any test_any_vector "test_any" -> Option<usize> =
        |world, what, ivars, excluded, condition| world.any(what, ivars, excluded, condition, true);
    /// The indices of all that do now
    test_some test_some_vector "test_some" -> Vec<usize> =
        |world, what, ivars, excluded, condition| world.some(what, ivars, excluded, condition, true);
}
