//! Locks of the hosts (OpenSHMEM 1.6, section "Distributed Locking Routines").
//!
//! What it is not: a lock of kernels, nor among threads of one PE beyond what it is among PEs. A lock is a word on PE 0, of a type of its own so
//! that nothing else writes it. It is changed by the CPUs' atomics in every atomic domain, which is right because only hosts use it.

use super::error::ShmemError;
use crate::error::Error;
use crate::shm::lock::{enter, is_served, leave, try_enter};
use crate::shm::wait::until_or;
use crate::sym::SymBox;
use crate::world::World;

/// A lock of the job. Made by [`World::alloc_lock`]; dropped as a buffer is.
#[derive(Debug)]
pub struct SymLock(SymBox<u64>);

/// The lock is held, until this is dropped: that gives it back, and what this PE stored before is visible to the next holder
/// (OpenSHMEM 1.6, `shmem_clear_lock`). It waits for nobody. Leaking it keeps the lock.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub struct LockGuard<'a> {
    at: *mut u8,
    _lock: &'a SymLock,
    _world: &'a World,
}

// SAFETY: the word is shared memory, changed by atomics; any thread may give the lock back.
unsafe impl Send for LockGuard<'_> {}

impl World {
    /// A new lock, free. Symmetric as [`World::alloc`] is: all PEs call it alike, and meet before the first one takes it (OpenSHMEM 1.6: a lock is a
    /// symmetric variable that was set to 0).
    ///
    /// # Errors
    /// As [`World::alloc`].
    pub fn alloc_lock(&self) -> Result<SymLock, Error> {
        Ok(SymLock(SymBox::new(self.alloc_zeroed(1)?)))
    }

    fn lock_word(&self, lock: &SymLock) -> Result<*mut u8, Error> {
        if !self.host_memory() {
            return Err(self.not_shared("a lock"));
        }
        Ok(self.locate(&lock.0.view().view(), 0)? as *mut u8)
    }

    /// Takes a lock, in the order of the calls (OpenSHMEM 1.6, `shmem_set_lock`).
    ///
    /// # Errors
    /// Heaps that host code cannot touch. After a wait that was given up (`NPUSHMEM_TIMEOUT`, a death) the lock is of no use any more: this PE's turn
    /// still comes, and nobody takes it.
    pub fn set_lock<'a>(&'a self, lock: &'a SymLock) -> Result<LockGuard<'a>, Error> {
        let at = self.lock_word(lock)?;
        // SAFETY: a lock's word on PE 0, mapped, and of this use only; here and below.
        if let Some(ticket) = unsafe { enter(at) } {
            let give_up = self.patience();
            // SAFETY: see above.
            until_or(Some(&*give_up), || unsafe { is_served(at, ticket) })
                .map_err(|_| self.gave_up("set_lock"))?;
        }
        Ok(self.held(at, lock))
    }

    /// Takes a lock if it is free (OpenSHMEM 1.6, `shmem_test_lock`).
    ///
    /// # Errors
    /// Heaps that host code cannot touch.
    pub fn test_lock<'a>(&'a self, lock: &'a SymLock) -> Result<Option<LockGuard<'a>>, Error> {
        let at = self.lock_word(lock)?;
        // SAFETY: see `set_lock`.
        Ok(unsafe { try_enter(at) }.then(|| self.held(at, lock)))
    }

    fn held<'a>(&'a self, at: *mut u8, lock: &'a SymLock) -> LockGuard<'a> {
        LockGuard {
            at,
            _lock: lock,
            _world: self,
        }
    }

    /// Why the hosts' loads and stores do not do.
    pub(crate) fn not_shared(&self, what: &'static str) -> Error {
        let reason = if self.host_memory() {
            "not every PE has every other one's heap mapped"
        } else {
            "the heap is device memory, which host code cannot touch"
        };
        ShmemError::NotShared { what, reason }.into()
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock; the World, borrowed, keeps PE 0's heap mapped.
        unsafe { leave(self.at) };
    }
}
