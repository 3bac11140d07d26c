//! The software NIC.

mod config;
mod error;
mod types;

use std::sync::Arc;

pub use config::{ConfigError, Flush, Mode, NicConfig, MAX_MESSAGE};
pub use error::{DoorbellError, NicError};
pub use types::{
    access, Backing, Event, EventKind, MrInit, MrKeys, NicCounters, QpAddress, QpInit, QpNumbers,
    QpState,
};

/// One NIC: the port of one emulated device.
pub struct Nic {
    config: NicConfig,
}

impl Nic {
    /// Opens a NIC.
    ///
    /// # Errors
    /// The operating system refuses the port's memory.
    pub fn open(config: NicConfig) -> Result<Arc<Nic>, NicError> {
        Ok(Arc::new(Nic { config }))
    }

    /// The settings it was opened with.
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// Registers memory. The keys are usable on a queue pair only after [`Nic::bind_mr`].
    ///
    /// # Errors
    /// Contradictory arguments, memory that is not a sealed memfd, access that a switch refuses, a full table.
    pub fn register_mr(&self, mr: MrInit) -> Result<MrKeys, NicError> {
        Err(NicError::NoMr { key: mr.access })
    }

    /// Ends a registration: requests that use its keys fail from now on.
    ///
    /// # Errors
    /// No such key.
    pub fn deregister_mr(&self, lkey: u32) -> Result<(), NicError> {
        Err(NicError::NoMr { key: lkey })
    }

    /// Makes a queue pair with its completion queue.
    ///
    /// # Errors
    /// Depths, sizes or alignments that the format does not have; a full table.
    ///
    /// # Safety
    /// The rings and record words are valid for reads and writes of the sizes that `init` says until [`Nic::destroy_qp`] has returned.
    pub unsafe fn create_qp(&self, init: QpInit) -> Result<QpNumbers, NicError> {
        Err(NicError::NoQp { qpn: init.sq_depth })
    }

    /// Makes a region's keys usable on a queue pair: as local key of its requests and as remote key of requests that arrive at it.
    ///
    /// # Errors
    /// No such queue pair or region.
    pub fn bind_mr(&self, qpn: u32, lkey: u32) -> Result<(), NicError> {
        let _ = lkey;
        Err(NicError::NoQp { qpn })
    }

    /// Where peers find the queue pair.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn qp_address(&self, qpn: u32) -> Result<QpAddress, NicError> {
        Err(NicError::NoQp { qpn })
    }

    /// Connects a queue pair to a peer's, of the same or another process, and makes it ready to send.
    ///
    /// # Errors
    /// No such queue pair, a state other than Init, a peer that cannot be reached.
    pub fn connect(&self, qpn: u32, peer: &QpAddress) -> Result<(), NicError> {
        let _ = peer;
        Err(NicError::NoQp { qpn })
    }

    /// State of a queue pair.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn qp_state(&self, qpn: u32) -> Result<QpState, NicError> {
        Err(NicError::NoQp { qpn })
    }

    /// Moves a queue pair to Error and completes what is left in its send ring with status 0x05.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn flush(&self, qpn: u32) -> Result<(), NicError> {
        Err(NicError::NoQp { qpn })
    }

    /// Destroys a queue pair. Its rings are not touched after this has returned.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn destroy_qp(&self, qpn: u32) -> Result<(), NicError> {
        Err(NicError::NoQp { qpn })
    }

    /// A 64-bit store to the doorbell register: send queue, consumer index, arm. Any thread may call it.
    ///
    /// # Errors
    /// A doorbell that the hardware would drop or answer with an event.
    pub fn doorbell(&self, value: u64) -> Result<(), DoorbellError> {
        Err(DoorbellError::Command { value, command: 0 })
    }

    /// Declares the process behind a peer's address dead, as the watcher does when the process ends: requests to it complete
    /// with status 0x15.
    pub fn mark_peer_dead(&self, peer: &QpAddress) {
        let _ = peer;
    }

    /// What the NIC did so far.
    pub fn counters(&self) -> NicCounters {
        NicCounters::default()
    }

    /// What hardware would do silently: stalls, overflows, refused doorbells; the oldest first.
    pub fn diagnostics(&self) -> Vec<String> {
        Vec::new()
    }

    /// Asynchronous events so far, the oldest first.
    pub fn events(&self) -> Vec<Event> {
        Vec::new()
    }
}
