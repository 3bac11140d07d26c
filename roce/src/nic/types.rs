//! What goes into and comes out of the NIC's calls.

use std::os::fd::RawFd;

use bytemuck::{Pod, Zeroable};

use crate::verbs::VerbsAddress;

/// Access bits of a memory region, with HCCP's values (8 as in `IBV_ACCESS_REMOTE_ATOMIC`).
pub mod access {
    /// READ responses and atomic results may be written into it.
    pub const LOCAL_WRITE: u32 = 1;
    /// Peers may WRITE.
    pub const REMOTE_WRITE: u32 = 2;
    /// Peers may READ.
    pub const REMOTE_READ: u32 = 4;
    /// Peers may run atomics on it.
    pub const REMOTE_ATOMIC: u32 = 8;
    /// Peers may reduce into it (accepted and without effect: the reducing opcodes are not published).
    pub const REDUCE: u32 = 0x100;
    /// All of them.
    pub const ALL: u32 = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC | REDUCE;
}

/// Where a region's memory lives: a memfd of this process, sealed against shrinking, so that peers can map it.
#[derive(Debug, Clone, Copy)]
pub struct Backing {
    /// Descriptor in this process; it stays open as long as the region is registered.
    pub fd: RawFd,
    /// Byte offset of the region's first byte in the file.
    pub offset: u64,
}

/// A memory region to register.
#[derive(Debug, Clone, Copy)]
pub struct MrInit {
    /// The address that requests use for its first byte.
    pub va: u64,
    /// Bytes.
    pub len: u64,
    /// Bits of [`access`].
    pub access: u32,
    /// Its memory.
    pub backing: Backing,
}

/// Keys of a registered region: numerically equal on HNS and with the memory wire; with the verbs wire the key for peers is the host's NIC's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MrKeys {
    /// For own requests.
    pub lkey: u32,
    /// For peers' requests.
    pub rkey: u32,
}

/// A queue pair to make. All memory is device memory of this process, zeroed, and stays until the queue pair is destroyed.
#[derive(Debug, Clone, Copy)]
pub struct QpInit {
    /// Send ring: `sq_depth` slots of 64 bytes, 64-byte aligned.
    pub sq: *mut u8,
    /// Power of two, 64 to 32768.
    pub sq_depth: u32,
    /// Completion ring: `cq_depth` entries of `cqe_size` bytes, `cqe_size`-aligned.
    pub cq: *mut u8,
    /// Power of two, 64 to 0x400000.
    pub cq_depth: u32,
    /// Stride of the completion ring: 32 or 64 bytes.
    pub cqe_size: u32,
    /// Longest inline payload, bytes (at most 32); 0: inline requests fail.
    pub max_inline: u32,
    /// Every request makes a completion.
    pub sq_sig_all: bool,
    /// Record word of the send queue (a copy of the producer index; not a replacement for the doorbell). May be null.
    pub sq_swdb: *mut u32,
    /// Record word of the completion queue: a consumer index (24 bits) stored here counts like a doorbell. May be null.
    pub cq_swdb: *mut u32,
}

/// Numbers of a new queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpNumbers {
    /// Tag of send doorbells.
    pub qpn: u32,
    /// Tag of completion doorbells.
    pub cqn: u32,
}

/// States of a queue pair, as far as one-sided requests tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QpState {
    /// Destroyed.
    Reset,
    /// Made; no peer yet.
    Init,
    /// Ready to send.
    Rts,
    /// A request failed, the completion queue overflowed, or the host flushed it.
    Error,
}

/// Where a queue pair can be found by a peer, of the same machine with the memory wire; the connection manager carries it as bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct QpAddress {
    /// [`QpAddress::MAGIC`].
    pub magic: u32,
    /// [`QpAddress::VERSION`].
    pub version: u32,
    /// The owner's process.
    pub pid: u32,
    /// Descriptor of its port in that process.
    pub fd: i32,
    /// When that process started, clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_time: u64,
    /// Inode of the port.
    pub inode: u64,
    /// A number that only this port holds.
    pub nonce: u64,
    /// The queue pair.
    pub qpn: u32,
    /// How often that number was given out, so that a stale address is noticed.
    pub incarnation: u32,
    /// Where the host's NIC has it; all zeros with the memory wire.
    pub verbs: VerbsAddress,
}

impl QpAddress {
    /// "NQPA" in memory order.
    pub const MAGIC: u32 = u32::from_le_bytes(*b"NQPA");
    /// Version of the port's layout.
    pub const VERSION: u32 = 2;
}

/// What the NIC did since it was opened, over all queue pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// WRITE requests executed, inline ones included.
    pub writes: u64,
    /// WRITE requests whose payload was inline.
    pub inline_writes: u64,
    /// READ requests executed.
    pub reads: u64,
    /// Fetch-adds executed.
    pub fetch_adds: u64,
    /// Compare-and-swaps executed.
    pub compare_swaps: u64,
    /// Other requests (SEND, NOP, unknown opcodes).
    pub others: u64,
    /// Payload bytes written to peers (8 for an atomic).
    pub bytes_written: u64,
    /// Payload bytes read from peers (8 for an atomic).
    pub bytes_read: u64,
    /// Completion entries written, failed ones included.
    pub completions: u64,
    /// Completion entries with an error status, flushed ones included.
    pub errors: u64,
    /// Send doorbells.
    pub sq_doorbells: u64,
    /// Consumer index doorbells.
    pub cq_doorbells: u64,
    /// Arm doorbells.
    pub arm_doorbells: u64,
    /// Doorbells that were refused.
    pub refused_doorbells: u64,
}

/// An asynchronous event, with HNS's event codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The queue pair concerned.
    pub qpn: u32,
}

/// Kinds of [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// The completion ring had no room for an entry.
    CqOverflow = 0x0c,
    /// A producer index outran the ring.
    DoorbellOverflow = 0x12,
}
