//! Layout of the symmetric area that collectives use: one slot a team, then the lines by which pairs of PEs meet.
//!
//! Not allocated here: the library reserves [`area_bytes`] at one offset of every PE's symmetric heap at initialisation, and zeroes
//! [`zeroed`]. All control pages come first, then all staging buffers, which need no zeroes and take no memory before they are used.
//!
//! A slot is a control page and a ring of staging buffers. In the control page, units of two cache lines hold one number each, written by one
//! PE only (two lines, because processors fetch the neighbour of a line too). Where a unit lies in its page is turned by the PE's number:
//! without that, the same unit of all PEs would compete for one set of the first-level cache.

use std::ops::Range;

/// Bytes of a unit: two cache lines.
pub const UNIT: usize = 128;
/// Units of a control page.
const UNITS: usize = 32;
/// Bytes of a control page.
pub const CONTROL: usize = UNIT * UNITS;
/// Operations that a member can have published before the others have finished the first of them.
pub const RING: usize = 8;
/// Largest contribution of a member that goes through its staging buffer, in bytes; larger ones are read where they are.
pub const STAGED: usize = 2048;
/// Largest contribution that travels in the header's own unit, in bytes.
pub const INLINE: usize = UNIT - HEADER_DATA;
/// Offset of the data in a header's unit; a multiple of 16 for `long double`.
pub const HEADER_DATA: usize = 16;
/// Offset of the second word of a header.
pub const HEADER_AUX: usize = 8;

/// Unit: number of the last operation that this member has finished (it reads nobody's data of it any more).
const FINISHED: usize = 0;
/// Unit: number of the last operation whose first part this member has finished.
const PHASE: usize = 1;
/// First unit of the ring of headers.
const HEADERS: usize = 2;
/// First unit of the rounds of a dissemination barrier, each written by one partner.
const ROUNDS: usize = HEADERS + RING;
/// Rounds of a dissemination barrier at most: 2^20 members.
pub const MOST_ROUNDS: usize = 20;
const _: () = assert!(ROUNDS + MOST_ROUNDS <= UNITS);

/// Bytes of a slot's ring of staging buffers.
const STAGING: usize = RING * STAGED;
/// Slots of a PE: the world team, the shared team, other teams and active sets.
pub const SLOTS: usize = 128;

/// Lines of a pair of PEs: request and reply of an agreement, and the meeting of two.
pub const PAIR_LINES: usize = 3;
/// Bytes of a line of a pair.
pub const PAIR_LINE: usize = 64;
/// Alignment of the area.
pub const AREA_ALIGN: usize = 4096;

/// Bytes of the area in each PE's symmetric memory.
pub const fn area_bytes(n_pes: usize) -> usize {
    pair_line(n_pes, 0).next_multiple_of(AREA_ALIGN)
}

/// The parts of the area that hold zeroes before the first operation: control pages, and the lines of pairs.
pub const fn zeroed(n_pes: usize) -> [Range<usize>; 2] {
    [0..SLOTS * CONTROL, pair_line(0, 0)..pair_line(n_pes, 0)]
}

/// Offset of a pair's line in the area of the PE that reads it; `writer` is the PE that writes it.
pub const fn pair_line(writer: usize, line: usize) -> usize {
    SLOTS * (CONTROL + STAGING) + (writer * PAIR_LINES + line) * PAIR_LINE
}

/// One member's slot, as mapped in this process.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    control: *mut u8,
    staging: *mut u8,
    /// The PE's number in the world, by which the page is turned.
    turn: usize,
}

impl Slot {
    /// Slot `slot` of the area at `area`, PE `pe`'s.
    pub fn new(area: *mut u8, slot: usize, pe: usize) -> Slot {
        Slot {
            control: area.wrapping_add(slot * CONTROL),
            staging: area.wrapping_add(SLOTS * CONTROL + slot * STAGING),
            turn: pe.wrapping_mul(5),
        }
    }

    #[inline]
    fn unit(self, unit: usize) -> *mut u8 {
        let unit = unit.wrapping_add(self.turn) % UNITS;
        self.control.wrapping_add(unit * UNIT)
    }

    /// The line of the last finished operation.
    #[inline]
    pub fn finished(self) -> *mut u8 {
        self.unit(FINISHED)
    }

    /// The line of the last operation whose first part is done.
    #[inline]
    pub fn phase(self) -> *mut u8 {
        self.unit(PHASE)
    }

    /// The header of operation `number`.
    #[inline]
    pub fn header(self, number: u64) -> *mut u8 {
        self.unit(HEADERS + number as usize % RING)
    }

    /// The line of a round of the dissemination barrier.
    #[inline]
    pub fn round(self, round: usize) -> *mut u8 {
        self.unit(ROUNDS + round)
    }

    /// Where the data of operation `number` is, `bytes` of it.
    #[inline]
    pub fn staging(self, number: u64, bytes: usize) -> *mut u8 {
        if bytes <= INLINE {
            self.header(number).wrapping_add(HEADER_DATA)
        } else {
            self.staging.wrapping_add(number as usize % RING * STAGED)
        }
    }
}
