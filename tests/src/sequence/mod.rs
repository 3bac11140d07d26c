//! Sequences of device operations and the sequential model that says what they leave behind.
//!
//! A case is a list of [`Raw`] operations, each a handful of numbers that any generator may draw. [`Model::run`] takes them in order, leaves out
//! those that would be a race (OpenSHMEM 1.6, Memory Model), and gives each core its list for `kernels/sequence.cpp` together with the memory that
//! all PEs must hold afterwards. What remains may run in any interleaving and must end the same:
//!
//! - between two barriers a byte has one writer, whose writes to it have fences between them, and nobody else looks at it, but for a core that
//!   has waited for a signal that followed the write;
//! - a core reads back what it wrote after a quiet;
//! - a word has atomics of one core in order, or of any cores that commute;
//! - a source changes only when a flush or quiet has followed, or the put blocked.
//!
//! It runs nothing: the test (tests/sequences.rs) sends the lists to PEs that run them (bin/pe/sequence.rs).

mod model;
mod state;

pub use model::Model;

/// Bytes of the symmetric memory that puts and gets name.
pub const DATA: usize = 16 << 10;
/// Of which so many, from the start, may hold atomics.
const ATOMICS: usize = 512;
/// Signal words, behind the data.
const SIGNALS: usize = 32;
/// Bytes of symmetric memory that operations name.
pub const A_BYTES: usize = DATA + 8 * SIGNALS;
/// Bytes of sources of a core.
const SOURCES: usize = 8 << 10;
/// Bytes of landing places of a core, behind its sources.
const LANDING: usize = 24 << 10;
/// Bytes of sources and landing places of a core.
pub const B_BYTES: usize = SOURCES + LANDING;
/// Result slots of a core.
pub const SLOTS: usize = 128;
/// The slot of a core that operations without a result write to.
const SINK: usize = SLOTS - 1;
/// Longest transfer, which passes UB in one piece.
const LONGEST: usize = 4096;
/// Most operations of a core.
pub const MOST: usize = 255;
/// Words of a record of `kernels/sequence.cpp`.
pub const RECORD: usize = 8;

/// Numbers of the operations, as `kernels/sequence.cpp` has them.
#[allow(missing_docs)] // documented there
pub mod op {
    pub const PUT: u64 = 0;
    pub const PUT_NBI: u64 = 1;
    pub const PUT_UB: u64 = 2;
    pub const PUT_UB_NBI: u64 = 3;
    pub const GET: u64 = 4;
    pub const GET_NBI: u64 = 5;
    pub const GET_UB: u64 = 6;
    pub const P: u64 = 7;
    pub const G: u64 = 8;
    pub const IPUT: u64 = 9;
    pub const IGET: u64 = 10;
    pub const IBPUT: u64 = 11;
    pub const IBGET: u64 = 12;
    pub const PUT_SIGNAL: u64 = 13;
    pub const PUT_SIGNAL_NBI: u64 = 14;
    pub const SIGNAL: u64 = 15;
    pub const WAIT: u64 = 16;
    pub const ATOMIC: u64 = 17;
    pub const FENCE: u64 = 18;
    pub const QUIET: u64 = 19;
    pub const FLUSH: u64 = 20;
    pub const FENCE_PE: u64 = 21;
    pub const QUIET_PE: u64 = 22;
    pub const COMMIT: u64 = 23;
    pub const BARRIER: u64 = 24;
    pub const ENGINE: u64 = 25;
    pub const REFILL: u64 = 26;
    pub const COUNT: u64 = 27;
}

/// One operation before it is looked at: numbers are taken modulo what they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw {
    /// One of [`op`].
    pub what: u8,
    /// The core that does it.
    pub actor: u8,
    /// The PE that it is about.
    pub pe: u8,
    /// Place in the symmetric memory.
    pub at: u16,
    /// Place among the own sources.
    pub here: u16,
    /// Bytes or elements.
    pub n: u16,
    /// Value, and what else is to be chosen.
    pub value: u32,
}

impl Raw {
    /// As text without blanks.
    pub fn text(&self) -> String {
        let Raw {
            what,
            actor,
            pe,
            at,
            here,
            n,
            value,
        } = self;
        format!("{what}.{actor}.{pe}.{at}.{here}.{n}.{value}")
    }

    /// The inverse of [`Raw::text`].
    pub fn parse(text: &str) -> Option<Raw> {
        let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        Some(Raw {
            what: u8::try_from(next()?).ok()?,
            actor: u8::try_from(next()?).ok()?,
            pe: u8::try_from(next()?).ok()?,
            at: u16::try_from(next()?).ok()?,
            here: u16::try_from(next()?).ok()?,
            n: u16::try_from(next()?).ok()?,
            value: next()?,
        })
    }
}

/// Byte `at` of a memory that a case begins with; `which` tells the memories apart.
pub fn initial(seed: u64, which: u64, at: usize) -> u8 {
    let mixed = (seed ^ which << 32 ^ at as u64).wrapping_mul(0x2545_f491_4f6c_dd1d);
    (mixed >> 56) as u8
}

/// The memories of a PE as a case begins: `a`, and `b` of `cores` cores.
pub fn begin(seed: u64, pe: usize, cores: usize) -> (Vec<u8>, Vec<u8>) {
    let a = (0..A_BYTES)
        .map(|at| initial(seed, 2 * pe as u64, at))
        .collect();
    let b = (0..cores * B_BYTES)
        .map(|at| initial(seed, 2 * pe as u64 + 1, at))
        .collect();
    (a, b)
}

/// What a PE must hold after a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The symmetric memory.
    pub a: Vec<u8>,
    /// Sources and landing places of all cores.
    pub b: Vec<u8>,
    /// Result slot, the bits that count, their value.
    pub out: Vec<(usize, u64, u64)>,
}

/// A case as PEs run it.
#[derive(Debug)]
pub struct Case {
    /// A list of records for each core of each PE, in order of PE and core.
    pub lists: Vec<Vec<[u64; RECORD]>>,
    /// A PE each.
    pub expected: Vec<Expected>,
    /// A line for each operation that runs.
    pub listing: String,
}
