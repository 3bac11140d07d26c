//! Active sets (deprecated collectives), as teams that their members agree on at the first call; and `shmem_sync_pe`.
//!
//! Not the collectives on them (`calls/`). pSync arrays are never read or written, so they always hold what the standard wants.
//!
//! Members of an active set have no common team in which to agree. They use lines of pairs instead: in each PE's area, for every other PE, a
//! line for requests, one for replies and one for meetings, each written by that PE only. Member 0 hears what every member offers and tells
//! each the result. The set then keeps its slot until finalize. Where no slot is left, every call agrees again, on the last slot, which is
//! never kept.

use super::{Team, Teams};
use crate::state::State;
use npushmem::shm::group::number;
use npushmem::shm::layout::{pair_line, PAIR_LINES, SLOTS};
use npushmem::shm::shape::Shape;
use npushmem::shm::slots::Set;
use npushmem::shm::wait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Words of a message between a pair, after its number.
const WORDS: usize = 4;
/// The slot of sets that could not keep one.
const SHARED_SLOT: usize = SLOTS - 1;
/// Slots that active sets leave to teams.
const LEFT_TO_TEAMS: u32 = 32;

/// Lines of a pair, by purpose.
#[derive(Clone, Copy)]
enum Line {
    Request,
    Reply,
    Meet,
}

/// Counts of messages between this PE and another.
#[derive(Default)]
struct Pair {
    sent: [AtomicU64; PAIR_LINES],
    received: [AtomicU64; PAIR_LINES],
}

/// The active sets that this PE has used.
pub(crate) struct ActiveSets {
    pairs: Box<[Pair]>,
    /// `None`: no slot was left.
    known: Mutex<HashMap<Shape, Option<&'static Team>>>,
    /// The set used last, so that programs that use one set take no lock.
    last: std::sync::atomic::AtomicPtr<Team>,
}

impl ActiveSets {
    /// None so far.
    pub(crate) fn new(state: &State) -> ActiveSets {
        ActiveSets {
            pairs: (0..state.n_pes).map(|_| Pair::default()).collect(),
            known: Mutex::new(HashMap::new()),
            last: std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The next number of a message, sent or received.
    fn count(counts: &[AtomicU64; PAIR_LINES], line: Line) -> u64 {
        counts[line as usize].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells PE `pe`. The line's last message must have been answered.
    fn send(&self, state: &State, pe: i32, line: Line, words: [u64; WORDS]) {
        let at = state
            .sync_area(pe)
            .wrapping_add(pair_line(state.my_pe as usize, line as usize));
        let count = Self::count(&self.pairs[pe as usize].sent, line);
        // SAFETY: this PE's line in the area of PE `pe`, which has read what was in it.
        unsafe {
            at.add(size_of::<u64>()).cast::<[u64; WORDS]>().write(words);
            number(at).store(count, Ordering::Release);
        }
    }

    /// Hears from PE `pe`.
    fn receive(&self, state: &State, pe: i32, line: Line) -> [u64; WORDS] {
        let at = state
            .sync_area(state.my_pe)
            .wrapping_add(pair_line(pe as usize, line as usize));
        let count = Self::count(&self.pairs[pe as usize].received, line);
        // SAFETY: a line of this PE's own area.
        let arrived = unsafe { number(at) };
        wait::until(|| arrived.load(Ordering::Acquire) >= count);
        // SAFETY: written before the number.
        unsafe { at.add(size_of::<u64>()).cast::<[u64; WORDS]>().read() }
    }

    /// Meets PE `pe`: both go on when both have come, and what either stored before is visible to the other.
    pub(crate) fn meet(&self, state: &State, pe: i32) {
        if pe == state.my_pe {
            return;
        }
        let line = |of: i32, writer: i32| {
            state
                .sync_area(of)
                .wrapping_add(pair_line(writer as usize, Line::Meet as usize))
        };
        let count = Self::count(&self.pairs[pe as usize].sent, Line::Meet);
        // SAFETY: lines of mapped areas; in each, one PE writes.
        let (theirs, mine) =
            unsafe { (number(line(pe, state.my_pe)), number(line(state.my_pe, pe))) };
        theirs.store(count, Ordering::Release);
        wait::until(|| mine.load(Ordering::Acquire) >= count);
    }
}

impl Teams {
    /// Runs `body` with the team of an active set, of which this PE is a member.
    pub(crate) fn with_active_set<R>(
        &'static self,
        shape: Shape,
        body: impl FnOnce(&Team) -> R,
    ) -> R {
        if shape == Shape::world(self.state.n_pes) {
            return body(&self.world);
        }
        // SAFETY: null, or a team that is kept until the process ends.
        if let Some(team) = unsafe { self.active.last.load(Ordering::Acquire).as_ref() } {
            if team.shape == shape {
                return body(team);
            }
        }
        let known = self.known().get(&shape).copied();
        let kept = match known {
            Some(kept) => kept,
            None => {
                let made = self.agree_on_set(shape, true);
                let kept = (made.slot != SHARED_SLOT).then(|| &*Box::leak(Box::new(made)));
                self.known().insert(shape, kept);
                kept
            }
        };
        match kept {
            Some(team) => {
                self.active
                    .last
                    .store(std::ptr::from_ref(team).cast_mut(), Ordering::Release);
                body(team)
            }
            None => {
                let team = self.agree_on_set(shape, false);
                let result = body(&team);
                // Another set may use the slot next: nobody may still be reading.
                team.group.sync();
                self.slots().raise(team.group.done());
                result
            }
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Shape, Option<&'static Team>>> {
        self.active
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Agrees on a slot with the members of `shape`: a free one if there is one and the set may `keep` it, else the shared one.
    fn agree_on_set(&self, shape: Shape, keep: bool) -> Team {
        let (state, sets) = (self.state, &self.active);
        let (offer, ceiling, _) = self.slots().offer();
        let enough =
            keep && offer.0.iter().map(|word| word.count_ones()).sum::<u32>() > LEFT_TO_TEAMS;
        let mine = if enough {
            [offer.0[0], offer.0[1], ceiling, 0]
        } else {
            [0, 0, ceiling, 0]
        };
        let root = shape.pe(0);
        let [slot, start, ..] = if state.my_pe == root {
            let members = || (1..shape.size).map(|member| shape.pe(member));
            let (mut free, mut start) = (Set([mine[0], mine[1]]), ceiling);
            for pe in members() {
                let offer = sets.receive(state, pe, Line::Request);
                free = free.and(Set([offer[0], offer[1]]));
                start = start.max(offer[2]);
            }
            let slot = free.lowest::<1>().map_or(SHARED_SLOT, |slot| slot[0]);
            let result = [slot as u64, start, 0, 0];
            for pe in members() {
                sets.send(state, pe, Line::Reply, result);
            }
            result
        } else {
            sets.send(state, root, Line::Request, mine);
            sets.receive(state, root, Line::Reply)
        };
        let slot = slot as usize;
        self.slots().settle(offer, &[slot]);
        let group =
            super::group(state, shape, slot, start, self.cores).expect("this PE is a member");
        Team {
            shape,
            group,
            contexts: 0,
            slot,
        }
    }
}
