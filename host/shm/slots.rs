//! Which slots of the collectives' area this PE uses, and which are free for a new team.
//!
//! Not their layout (`collectives/layout.rs`). Every member of a team uses the same slot, so members agree on one that is free at all of them.
//!
//! Destroying a team waits for nobody: its slot is free again at a PE when all members have said that they read nothing of it any more.

use super::group::{number, Group, Kind};
use super::layout::SLOTS;
use super::wait::Stop;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots of the predefined teams: the world, the shared team.
pub const PREDEFINED: usize = 2;
/// How often a split asks again when no slot is free but members are still leaving destroyed teams.
const TRIES: usize = 10_000;

/// Words of a set of slots.
pub const WORDS: usize = SLOTS / 64;

/// A set of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set(pub [u64; WORDS]);

impl Set {
    /// Slots in both.
    pub fn and(self, other: Set) -> Set {
        Set(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The lowest slots, `N` of them; `None` when there are fewer.
    pub fn lowest<const N: usize>(mut self) -> Option<[usize; N]> {
        let mut found = [0; N];
        for slot in &mut found {
            let word = self.0.iter().position(|&w| w != 0)?;
            let bit = self.0[word].trailing_zeros() as usize;
            self.0[word] &= self.0[word] - 1;
            *slot = word * 64 + bit;
        }
        Some(found)
    }
}

/// A destroyed team whose members may still read what this PE published.
struct Leaving {
    slot: usize,
    /// Number of its last operation.
    last: u64,
    /// The members' "finished" lines.
    lines: Vec<*mut u8>,
}

// SAFETY: the lines are mapped as long as the library is initialised, and read atomically.
unsafe impl Send for Leaving {}

/// This PE's slots.
pub struct Slots {
    free: Set,
    /// Above the number of every operation that any freed slot has seen here.
    ceiling: u64,
    leaving: Vec<Leaving>,
    /// An agreement on free slots is under way in some thread; another one must not offer them too.
    offered: bool,
}

impl Slots {
    /// All slots free but the first `reserved` and the last one.
    pub fn new(reserved: usize) -> Slots {
        let mut free = Set([u64::MAX; WORDS]);
        for slot in (0..reserved).chain([SLOTS - 1]) {
            free.0[slot / 64] &= !(1 << (slot % 64));
        }
        Slots {
            free,
            ceiling: 0,
            leaving: Vec::new(),
            offered: false,
        }
    }

    /// The free slots, the number above which operations in them may start, and whether more may become free. [`Slots::settle`] must follow if
    /// the set is not empty.
    pub fn offer(&mut self) -> (Set, u64, bool) {
        if self.offered {
            return (Set([0; WORDS]), self.ceiling, true);
        }
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.retain(|team| {
            // SAFETY: lines of mapped slots.
            let gone =
                |line: &*mut u8| unsafe { number(*line) }.load(Ordering::Acquire) >= team.last;
            let all = team.lines.iter().all(gone);
            if all {
                self.free.0[team.slot / 64] |= 1 << (team.slot % 64);
            }
            !all
        });
        self.leaving = leaving;
        self.offered = self.free != Set([0; WORDS]);
        (self.free, self.ceiling, !self.leaving.is_empty())
    }

    /// Ends an agreement in which this PE made the offer `offered`: `slots` are used from now on.
    pub fn settle(&mut self, offered: Set, slots: &[usize]) {
        for slot in slots {
            self.free.0[slot / 64] &= !(1 << (slot % 64));
        }
        if offered != Set([0; WORDS]) {
            self.offered = false;
        }
    }

    /// Notes that this PE has destroyed the team in `slot`, whose last operation was `last`.
    pub fn leave(&mut self, slot: usize, last: u64, lines: Vec<*mut u8>) {
        self.raise(last);
        self.leaving.push(Leaving { slot, last, lines });
    }

    /// Notes that operations up to `last` have used a slot.
    pub fn raise(&mut self, last: u64) {
        self.ceiling = self.ceiling.max(last);
    }
}

fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What [`agree`] gives: `N` slots, and the number that operations in them start above.
pub type Agreed<const N: usize> = ([usize; N], u64);

/// Slots that are free at all members of `parent`; `None`: there are too few. Those for which `mine` says so are in use at this PE from now on.
/// Collective over `parent`.
///
/// # Errors
/// Those of the parent's group.
pub fn agree<const N: usize>(
    slots: &Mutex<Slots>,
    parent: &Group,
    mine: [bool; N],
) -> Result<Option<Agreed<N>>, Stop> {
    for _ in 0..TRIES {
        let (offer, ceiling, more) = lock(slots).offer();
        let [low, high] = offer.0;
        let exchanged = parent.exchange(Kind::Split, [low, high, ceiling, u64::from(more)]);
        let all = match exchanged {
            Ok(all) => all,
            Err(stop) => {
                lock(slots).settle(offer, &[]);
                return Err(stop);
            }
        };
        let free = all.iter().fold(Set([u64::MAX; WORDS]), |set, offer| {
            set.and(Set([offer[0], offer[1]]))
        });
        let found = free.lowest::<N>();
        let taken: Vec<usize> = found
            .iter()
            .flatten()
            .zip(mine)
            .filter(|(_, mine)| *mine)
            .map(|(slot, _)| *slot)
            .collect();
        lock(slots).settle(offer, &taken);
        if let Some(found) = found {
            let start = all.iter().map(|offer| offer[2]).max().unwrap_or(0);
            return Ok(Some((found, start)));
        }
        if all.iter().all(|offer| offer[3] == 0) {
            return Ok(None);
        }
        std::thread::yield_now();
    }
    Ok(None)
}

/// Ends this PE's part in the team of `group` in `slot`. Waits for nobody: the team's last operation is this one, which says only that this PE
/// reads nothing any more.
pub fn leave(slots: &Mutex<Slots>, group: &Group, slot: usize) {
    let last = group.begin();
    group.finish(last);
    lock(slots).leave(slot, last, group.finished_lines());
}
