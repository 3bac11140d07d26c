//! Signals of the host (OpenSHMEM 1.6, section "Signaling Operations"): data and a word that says it has come.
//!
//! What it is not: the waiting (wait.rs). The data is stored first, the word after it with release ordering: who sees the word (every wait and
//! `signal_fetch` reads with acquire ordering) sees the data.

use bytemuck::Pod;

use super::context::HostContext;
use super::pe::PeNumber;
use crate::error::Error;
use crate::sym::{SymRef, SymSlice};

/// How a signal changes its word (OpenSHMEM 1.6, `SHMEM_SIGNAL_SET`, `SHMEM_SIGNAL_ADD`). One word is changed in one way at a time: the two are not
/// atomic to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOp {
    /// To the value: a plain store.
    Set,
    /// By the value: an atomic of the job's domain.
    Add,
}

impl<U> HostContext<'_, U> {
    /// [`put`](Self::put), then the signal, on the same PE (OpenSHMEM 1.6, `shmem_put_signal`). It covers this put only; a fence before it covers
    /// earlier ones too.
    ///
    /// # Errors
    /// As [`put`](Self::put) and, for [`SignalOp::Add`], [`atomic_add`](Self::atomic_add).
    pub fn put_signal<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: &[T],
        signal: impl Into<SymRef<'s, u64>>,
        value: u64,
        op: SignalOp,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.put(dest, src, pe)?;
        match op {
            SignalOp::Set => self.signal_set(signal, value, pe),
            SignalOp::Add => self.signal_add(signal, value, pe),
        }
    }

    /// Sets a signal word (OpenSHMEM 1.6, `shmem_signal_set`).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn signal_set<'s>(
        &self,
        signal: impl Into<SymRef<'s, u64>>,
        value: u64,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.fence();
        self.p(signal, value, pe)
    }

    /// Adds to a signal word (OpenSHMEM 1.6, `shmem_signal_add`).
    ///
    /// # Errors
    /// As [`atomic_add`](Self::atomic_add).
    #[inline]
    pub fn signal_add<'s>(
        &self,
        signal: impl Into<SymRef<'s, u64>>,
        value: u64,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.fence();
        self.atomic_add(signal, value, pe)
    }
}
