//! Non-blocking operations: their buffers are borrowed until the quiet at the end of a scope.
//!
//! What it is not: a promise of overlap. Between hosts that share memory an operation is done when it is issued, as in the C API; the scope keeps
//! programs right where that is not so. A scope, and no guard object: leaking a guard (`mem::forget`) would end the borrow without the quiet.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::context::HostContext;
use super::pe::PeNumber;
use super::signal::SignalOp;
use super::types::{Atomic, AtomicBits, AtomicInteger};
use crate::error::Error;
use crate::sym::{SymRef, SymSlice};

/// The operations of one scope ([`HostContext::nbi`]). All that they are given, sources, destinations and symmetric memory, is borrowed to its end.
#[derive(Debug)]
pub struct Nbi<'scope, 'env: 'scope, U> {
    ctx: &'scope HostContext<'scope, U>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Makes the quiet on every way out of a scope.
struct Quiet<'a, 'w, U>(&'a HostContext<'w, U>);

impl<U> Drop for Quiet<'_, '_, U> {
    fn drop(&mut self) {
        self.0.quiet();
    }
}

impl<'w, U> HostContext<'w, U> {
    /// Issues non-blocking operations, and completes them: when it returns, all are done and visible, and what they borrowed is free again. The
    /// quiet is made also when `body` returns an error or panics (OpenSHMEM 1.6, sections "Nonblocking Remote Memory Access Routines" and
    /// "Memory Ordering Routines").
    ///
    /// ```no_run
    /// # fn main() -> Result<(), npushmem::Error> {
    /// # let world = npushmem::World::init()?;
    /// let rows = world.alloc::<f32>(8)?;
    /// let (mine, mut theirs) = ([1.0; 8], [0.0; 8]);
    /// world.ctx().nbi(|nbi| {
    ///     nbi.put(&rows, &mine, world.ring(1))?;
    ///     nbi.get(&mut theirs, &rows, world.ring(2)) // `mine` and `theirs` are borrowed to the end of the scope
    /// })?;
    /// # drop(rows);
    /// # world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body`.
    pub fn nbi<'env, R, F>(&'env self, body: F) -> Result<R, Error>
    where
        F: for<'scope> FnOnce(&'scope Nbi<'scope, 'env, U>) -> Result<R, Error>,
    {
        let _quiet = Quiet(self);
        body(&Nbi {
            ctx: self,
            scope: PhantomData,
            env: PhantomData,
        })
    }
}

impl<'scope, 'env, U> Nbi<'scope, 'env, U> {
    /// [`HostContext::put`] (OpenSHMEM 1.6, `shmem_put_nbi`).
    ///
    /// # Errors
    /// As there, here and below.
    pub fn put<T: Pod>(
        &'scope self,
        dest: impl Into<SymSlice<'scope, T>>,
        src: &'scope [T],
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.ctx.put(dest, src, pe)
    }

    /// [`HostContext::get`] (OpenSHMEM 1.6, `shmem_get_nbi`). `dest` holds the data when the scope has ended.
    ///
    /// # Errors
    /// See above.
    pub fn get<T: Pod>(
        &'scope self,
        dest: &'scope mut [T],
        src: impl Into<SymSlice<'scope, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.ctx.get(dest, src, pe)
    }

    /// [`HostContext::put_sym`] (OpenSHMEM 1.6, `shmem_put_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn put_sym<T: Pod>(
        &'scope self,
        dest: impl Into<SymSlice<'scope, T>>,
        src: impl Into<SymSlice<'scope, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.ctx.put_sym(dest, src, pe)
    }

    /// [`HostContext::get_sym`] (OpenSHMEM 1.6, `shmem_get_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn get_sym<T: Pod>(
        &'scope self,
        dest: impl Into<SymSlice<'scope, T>>,
        src: impl Into<SymSlice<'scope, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.ctx.get_sym(dest, src, pe)
    }

    /// [`HostContext::put_signal`] (OpenSHMEM 1.6, `shmem_put_signal_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn put_signal<T: Pod>(
        &'scope self,
        dest: impl Into<SymSlice<'scope, T>>,
        src: &'scope [T],
        signal: impl Into<SymRef<'scope, u64>>,
        value: u64,
        op: SignalOp,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.ctx.put_signal(dest, src, signal, value, op, pe)
    }

    /// [`HostContext::atomic_fetch`] (OpenSHMEM 1.6, `shmem_atomic_fetch_nbi`). Results are in `fetch` when the scope has ended, here and below.
    ///
    /// # Errors
    /// See above.
    pub fn atomic_fetch<T: Atomic>(
        &'scope self,
        fetch: &'scope mut T,
        source: impl Into<SymRef<'scope, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_fetch(source, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_swap`] (OpenSHMEM 1.6, `shmem_atomic_swap_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_swap<T: Atomic>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_swap(dest, value, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_compare_swap`] (OpenSHMEM 1.6, `shmem_atomic_compare_swap_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_compare_swap<T: AtomicInteger>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        cond: T,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_compare_swap(dest, cond, value, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_fetch_add`] (OpenSHMEM 1.6, `shmem_atomic_fetch_add_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_fetch_add<T: AtomicInteger>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_fetch_add(dest, value, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_fetch_inc`] (OpenSHMEM 1.6, `shmem_atomic_fetch_inc_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_fetch_inc<T: AtomicInteger>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_fetch_inc(dest, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_fetch_and`] (OpenSHMEM 1.6, `shmem_atomic_fetch_and_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_fetch_and<T: AtomicBits>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_fetch_and(dest, value, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_fetch_or`] (OpenSHMEM 1.6, `shmem_atomic_fetch_or_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_fetch_or<T: AtomicBits>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_fetch_or(dest, value, pe)?;
        Ok(())
    }

    /// [`HostContext::atomic_fetch_xor`] (OpenSHMEM 1.6, `shmem_atomic_fetch_xor_nbi`).
    ///
    /// # Errors
    /// See above.
    pub fn atomic_fetch_xor<T: AtomicBits>(
        &'scope self,
        fetch: &'scope mut T,
        dest: impl Into<SymRef<'scope, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        *fetch = self.ctx.atomic_fetch_xor(dest, value, pe)?;
        Ok(())
    }
}
