//! One launch of a benchmark kernel on some PEs, as the parent plans it and every PE carries it out; and what its ticks mean.
//!
//! Not a measurement by itself: the groups (rma.rs, atomics.rs, ...) make steps and say to which point of which figure they belong.

use npushmem::{kernels, KernelObject};
use serde::{Deserialize, Serialize};

/// Comm cores that the library lets a kernel use, at most as many as are worth measuring.
pub const MAX_CORES: u32 = 64;
/// Bytes of a core's part of a buffer, at least: BENCH_WINDOW of kernels/bench_rma.cpp.
pub const WINDOW: u64 = 8192;

/// A kernel of kernels/bench_*.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kernel {
    Rma,
    PingPong,
    Atomic,
    Gups,
    Collective,
    Empty,
    /// Not timed: the counters of one call, [`COUNTS`] of them, stand where samples do.
    Cost,
}

impl Kernel {
    /// The object and the kernel's name in it.
    pub fn object(self) -> (&'static KernelObject, &'static str) {
        match self {
            Self::Rma => (&kernels::BENCH_RMA, "bench_rma"),
            Self::Empty => (&kernels::BENCH_RMA, "bench_empty"),
            Self::PingPong => (&kernels::BENCH_PINGPONG, "bench_pingpong"),
            Self::Atomic => (&kernels::BENCH_ATOMIC, "bench_atomic"),
            Self::Gups => (&kernels::BENCH_ATOMIC, "bench_gups"),
            Self::Cost => (&kernels::BENCH_COST, "bench_cost"),
            Self::Collective => (&kernels::BENCH_COLLECTIVE, "bench_collective"),
        }
    }
}

/// What is counted of a call, in the order in which a step of [`Kernel::Cost`] gives it: the device library's counters (device/abi.h,
/// shmem_core), then the emulated NPU's.
pub const COUNTS: [&str; 14] = [
    "doorbells",
    "cq_doorbells",
    "requests",
    "sync_requests",
    "ring_copies",
    "polls",
    "roce_bytes",
    "mapped_bytes",
    "flags",
    "pipe_barriers",
    "cache_ops",
    "ub_in_bytes",
    "ub_out_bytes",
    "stores",
];
/// A count that this runtime does not have.
pub const NOT_COUNTED: u64 = u64::MAX;

/// Whom a kernel talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// The next PE, round the end.
    Next,
    /// Always this PE.
    Pe(u32),
    /// The team of the step's PEs.
    Team,
}

/// How the samples of several PEs become one: PE 0's, or the slowest PE's of each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whose {
    First,
    Slowest,
}

/// One launch on PEs 0 to `pes` - 1; the others wait for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub kernel: Kernel,
    /// Code of device/abi.h.
    pub engine: u32,
    /// Which call: the kernel's file says.
    pub kind: u64,
    pub pes: u32,
    pub cores: u32,
    pub peer: Peer,
    /// Bytes, or what the kernel's file says.
    pub n: u64,
    /// Calls of a sample, of each core.
    pub calls: u64,
    pub samples: u64,
    pub extra: u64,
    /// Bytes that the kernel needs of each of the two buffers.
    pub room: u64,
    pub whose: Whose,
}

impl Step {
    /// Bytes of a core's results: an error word and a word a sample, in whole lines.
    pub fn result_words(&self) -> u64 {
        (self.samples + 1).next_multiple_of(8)
    }
}

/// What a sample of `ticks` says: the value of a point is made of seconds a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Seconds divided by this: time of one of so many calls.
    Time(f64),
    /// This divided by seconds: bytes, calls or updates a second.
    PerSecond(f64),
}

impl Scale {
    /// The value of a sample that took so many seconds.
    pub fn value(self, seconds: f64) -> f64 {
        match self {
            Self::Time(calls) => seconds / calls,
            Self::PerSecond(amount) => amount / seconds,
        }
    }
}
