//! What the sequential model keeps of bytes, atomics, signals and cores between two barriers; and the arithmetic of atomics.

use super::RECORD;

pub(super) const NOBODY: u8 = u8::MAX;

/// What has happened to a byte since the last barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Byte {
    pub(super) epoch: u32,
    pub(super) writer: u8,
    /// The operation that wrote it last.
    pub(super) written_by: u32,
    /// Fences and quiets of the writer then.
    pub(super) fences: u32,
    pub(super) quiets: u32,
    /// Cores that may read it because a signal told them.
    pub(super) told: u16,
    pub(super) readers: u16,
    /// Quiets of a reader when it asked without waiting.
    pub(super) read_quiets: Option<u32>,
}

/// Atomics on half a word since the last barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Half {
    pub(super) epoch: u32,
    pub(super) mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Free,
    /// By one core; the next waits for so many fences and quiets.
    Own {
        actor: u8,
        fences: u32,
        quiets: u32,
    },
    /// By any core: the class of operation, and the type.
    Common {
        class: u8,
        kind: u8,
    },
}

/// A signal word since the last barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signal {
    pub(super) epoch: u32,
    /// SETs and ADDs.
    pub(super) updates: u32,
    pub(super) adds: bool,
    pub(super) waited: bool,
    pub(super) before: u64,
    /// The last one: the operation, its core, and that core's fences toward the PE then.
    pub(super) by: (u32, u8, u32),
}

pub(super) struct Actor {
    pub(super) fences: Vec<u32>,
    pub(super) quiets: Vec<u32>,
    pub(super) flushes: u32,
    /// Flushes when a put that does not wait last took a byte of the sources.
    pub(super) taken: Vec<Option<u32>>,
    pub(super) landing: usize,
    pub(super) slots: usize,
    pub(super) list: Vec<[u64; RECORD]>,
}

/// What an atomic leaves in a word of u64, i64, u32 or i32 (`kind`), whose bits are `old`.
pub(super) fn apply(what: usize, kind: usize, old: u64, x: u64, y: u64) -> u64 {
    let less = match kind {
        0 | 2 => y < old,
        1 => (y as i64) < old as i64,
        _ => (y as u32 as i32) < old as u32 as i32,
    };
    match what {
        1 | 6 => y,
        2 | 4 => old.wrapping_add(y),
        3 | 5 => old.wrapping_add(1),
        7 if old == x => y,
        8 | 13 => old & y,
        9 | 14 => old | y,
        10 | 15 => old ^ y,
        11 | 16 if less => y,
        12 | 17 if !less => y,
        _ => old,
    }
}
