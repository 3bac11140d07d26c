//! Messages between two PEs, and their meeting, through lines of their own: in each PE's area, for every other PE, a line for requests, one for
//! replies and one for meetings, each written by that PE only.
//!
//! Not a group: PEs that have no team in common use it. Called for `shmem_sync_pe` (an extension) and for active sets (capi/).

use super::group::number;
use super::layout::{pair_line, PAIR_LINES};
use super::wait::{until_or_for, GiveUp, Stop, Waiting};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Words of a message, after its number.
pub const WORDS: usize = 4;

/// Lines of a pair, by purpose.
#[derive(Clone, Copy, Debug)]
pub enum Line {
    /// Somebody asks.
    Request,
    /// Somebody answers.
    Reply,
    /// Two meet.
    Meet,
}

/// Counts of messages between this PE and another.
#[derive(Default)]
struct Pair {
    sent: [AtomicU64; PAIR_LINES],
    received: [AtomicU64; PAIR_LINES],
}

/// This PE's pairs.
pub struct Pairs {
    pairs: Box<[Pair]>,
    /// By PE: its area as mapped here.
    areas: Box<[*mut u8]>,
    me: usize,
    give_up: Option<Arc<GiveUp>>,
}

// SAFETY: the pointers are to shared memory that the maker keeps mapped; access to it is by atomics and by the protocol.
unsafe impl Send for Pairs {}
// SAFETY: as above.
unsafe impl Sync for Pairs {}

impl Pairs {
    /// Pairs of PE `me` over the areas of all PEs, which are mapped as long as it is used.
    pub fn new(areas: Box<[*mut u8]>, me: usize, give_up: Option<Arc<GiveUp>>) -> Pairs {
        Pairs {
            pairs: areas.iter().map(|_| Pair::default()).collect(),
            areas,
            me,
            give_up,
        }
    }

    /// The next number of a message, sent or received.
    fn count(counts: &[AtomicU64; PAIR_LINES], line: Line) -> u64 {
        counts[line as usize].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The line in PE `of`'s area that PE `writer` writes.
    fn line(&self, of: usize, writer: usize, line: Line) -> *mut u8 {
        self.areas[of].wrapping_add(pair_line(writer, line as usize))
    }

    /// Tells PE `pe`. The line's last message must have been answered.
    pub fn send(&self, pe: usize, line: Line, words: [u64; WORDS]) {
        let at = self.line(pe, self.me, line);
        let count = Self::count(&self.pairs[pe].sent, line);
        // SAFETY: this PE's line in the area of PE `pe`, which has read what was in it.
        unsafe {
            at.add(size_of::<u64>()).cast::<[u64; WORDS]>().write(words);
            number(at).store(count, Ordering::Release);
        }
    }

    /// Hears from PE `pe`.
    ///
    /// # Errors
    /// As [`super::wait::until_or`].
    pub fn receive(&self, pe: usize, line: Line) -> Result<[u64; WORDS], Stop> {
        let at = self.line(self.me, pe, line);
        let count = Self::count(&self.pairs[pe].received, line);
        // SAFETY: a line of this PE's own area.
        let arrived = unsafe { number(at) };
        let what = || Waiting {
            routine: "a collective on an active set",
            what: format!("PE {pe}, to agree on the active set"),
        };
        until_or_for(self.give_up.as_deref(), Some(&what), || {
            arrived.load(Ordering::Acquire) >= count
        })?;
        // SAFETY: written before the number.
        Ok(unsafe { at.add(size_of::<u64>()).cast::<[u64; WORDS]>().read() })
    }

    /// Meets PE `pe`: both go on when both have come, and what either stored before is visible to the other.
    ///
    /// # Errors
    /// As [`super::wait::until_or`].
    pub fn meet(&self, pe: usize) -> Result<(), Stop> {
        if pe == self.me {
            return Ok(());
        }
        let count = Self::count(&self.pairs[pe].sent, Line::Meet);
        // SAFETY: lines of mapped areas; in each, one PE writes.
        let (theirs, mine) = unsafe {
            (
                number(self.line(pe, self.me, Line::Meet)),
                number(self.line(self.me, pe, Line::Meet)),
            )
        };
        theirs.store(count, Ordering::Release);
        let what = || Waiting {
            routine: "shmem_sync_pe",
            what: format!("PE {pe}, which has not come"),
        };
        until_or_for(self.give_up.as_deref(), Some(&what), || {
            mine.load(Ordering::Acquire) >= count
        })
    }
}
