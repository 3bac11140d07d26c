//! What the NIC's calls can refuse, with the inputs and the fix.

use std::io;

use thiserror::Error;

use super::types::QpState;
use crate::verbs::VerbsError;

/// Why a call of the NIC was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NicError {
    /// An argument contradicts the call's contract.
    #[error("{what} is {value}: {expected}")]
    Argument {
        /// The argument.
        what: &'static str,
        /// What was given.
        value: u64,
        /// What may be given.
        expected: &'static str,
    },
    /// The region's memory is not a file that stays as long as it is.
    #[error("memory of region {va:#x}+{len:#x} (descriptor {fd}, offset {offset:#x}) cannot be registered: {why}")]
    Backing {
        /// Address of the region.
        va: u64,
        /// Length of the region, bytes.
        len: u64,
        /// Descriptor of its memory.
        fd: i32,
        /// Where the region begins in it.
        offset: u64,
        /// The reason.
        why: String,
    },
    /// Access bit 8 (remote atomic) is refused by a switch.
    #[error("access {access:#x} asks for remote atomics (bit 8), which this NIC refuses; register with access {}", access & !8)]
    AtomicAccess {
        /// The access bits.
        access: u32,
    },
    /// Inline payloads are refused by a switch.
    #[error("a queue pair for inline payloads of {max_inline} bytes was asked for, which this NIC refuses; make it for 0 bytes")]
    Inline {
        /// The longest inline payload that was asked for, bytes.
        max_inline: u32,
    },
    /// A table of the NIC is full.
    #[error("the NIC has no free {what}: all {limit} are in use; release some")]
    Full {
        /// Kind of resource.
        what: &'static str,
        /// How many exist.
        limit: usize,
    },
    /// No such queue pair.
    #[error("queue pair {qpn:#x} does not exist in this NIC")]
    NoQp {
        /// The number.
        qpn: u32,
    },
    /// No such memory region.
    #[error("no memory region has key {key:#x} in this NIC")]
    NoMr {
        /// The key.
        key: u32,
    },
    /// The queue pair is in another state than the call needs.
    #[error("queue pair {qpn:#x} is in state {state:?}; {call} needs {needed}")]
    State {
        /// The number.
        qpn: u32,
        /// Its state.
        state: QpState,
        /// The call.
        call: &'static str,
        /// What the call needs.
        needed: &'static str,
    },
    /// A peer's address is not one of this version.
    #[error("the peer's queue pair address is damaged or of another version ({why})")]
    Address {
        /// What does not fit.
        why: String,
    },
    /// A peer's port or memory could not be reached.
    #[error("process {pid}'s {what} (descriptor {fd}) cannot be reached: {why}")]
    Peer {
        /// The peer's process.
        pid: u32,
        /// What was imported.
        what: &'static str,
        /// The descriptor in the peer.
        fd: i32,
        /// The reason and the fix.
        why: String,
    },
    /// Two ends with different wires.
    #[error("the peer's NIC uses the {theirs} wire and this one the {mine} wire; set NPUSIM_WIRE alike for all PEs")]
    Wires {
        /// The own.
        mine: &'static str,
        /// The peer's.
        theirs: &'static str,
    },
    /// The host's own NIC.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The operating system refused.
    #[error("{call} failed: {source}")]
    System {
        /// The system call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

impl NicError {
    pub(super) fn system(call: &'static str) -> impl FnOnce(rustix::io::Errno) -> NicError {
        move |errno| NicError::System {
            call,
            source: errno.into(),
        }
    }
}

/// Why a doorbell was refused. Hardware drops such a doorbell, or raises an event; here the writer learns it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DoorbellError {
    /// The command field is none that this NIC has.
    #[error("doorbell {value:#018x}: command {command} is unknown (0 send queue, 3 completion queue index, 4 arm)")]
    Command {
        /// The doorbell.
        value: u64,
        /// Its command field.
        command: u32,
    },
    /// The tag names no queue.
    #[error("doorbell {value:#018x}: {kind} {number:#x} does not exist")]
    NoQueue {
        /// The doorbell.
        value: u64,
        /// "queue pair" or "completion queue".
        kind: &'static str,
        /// The number.
        number: u32,
    },
    /// The queue pair is not ready to send.
    #[error(
        "doorbell {value:#018x}: queue pair {qpn:#x} is in state {state:?}, not ready to send"
    )]
    State {
        /// The doorbell.
        value: u64,
        /// The queue pair.
        qpn: u32,
        /// Its state.
        state: QpState,
    },
    /// The producer index lies more than the ring's depth ahead of what was executed (or behind what was already told).
    #[error(
        "doorbell {value:#018x}: doorbell overflow on queue pair {qpn:#x}: producer index {index} is {ahead} requests ahead of \
         {executed}, the ring has {depth}"
    )]
    Overflow {
        /// The doorbell.
        value: u64,
        /// The queue pair.
        qpn: u32,
        /// Its index field.
        index: u32,
        /// How far it is ahead.
        ahead: u64,
        /// Requests executed so far.
        executed: u64,
        /// The ring's depth.
        depth: u32,
    },
    /// The consumer index lies past what was completed.
    #[error(
        "doorbell {value:#018x}: consumer index {index} of completion queue {cqn:#x} is past the {produced} completions made"
    )]
    ConsumerIndex {
        /// The doorbell.
        value: u64,
        /// The completion queue.
        cqn: u32,
        /// Its index field.
        index: u32,
        /// Completions made so far.
        produced: u64,
    },
}
