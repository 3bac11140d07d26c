//! What the hosts of a job share when each can touch every PE's heap: distances between the heaps, the area of collectives, the lasting groups.
//!
//! What it is not: an interface. world.rs makes one at init; the operations of this folder use it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

use super::error::ShmemError;
use crate::shm::group::{Group, Memory, Policy};
use crate::shm::layout::Slot;
use crate::shm::pairs::Pairs;
use crate::shm::slots::{self, Slots, PREDEFINED};
use crate::shm::wait::{self, GiveUp, Stop};

/// Where the PEs' heaps are in this process.
pub(crate) struct Heaps {
    /// By PE: distance of its heap from this PE's.
    deltas: Box<[isize]>,
    /// This PE's heap: behind its last byte.
    end: usize,
}

impl Memory for Heaps {
    #[inline]
    unsafe fn peer(&self, addr: *const u8, pe: usize) -> *mut u8 {
        addr.wrapping_offset(self.deltas[pe]).cast_mut()
    }

    fn reach(&self, addr: *const u8) -> usize {
        self.end.saturating_sub(addr as usize)
    }
}

/// One job's shared memory as this PE sees it.
pub(crate) struct Shared {
    pub(crate) heaps: Heaps,
    /// By PE: its area of collectives.
    areas: Box<[usize]>,
    me: u32,
    cores: usize,
    policy: Policy,
    slots: Mutex<Slots>,
    pub(crate) pairs: Pairs,
    /// Held for reading by what touches memory after the World may have ended; false: it has.
    alive: RwLock<bool>,
}

/// A team as the hosts' collectives see it. Dropping it gives its place in the area back at this PE, and waits for nobody.
pub(crate) struct HostTeam {
    pub(crate) group: Group,
    shared: Arc<Shared>,
    slot: usize,
    /// One collective at a time; true: the team is broken.
    turn: Mutex<bool>,
    ended: AtomicBool,
}

impl Shared {
    /// `heaps`: by PE, the first address and the bytes of its heap as mapped here; `area`: offset of the area of collectives in each; `give_up` is
    /// asked by waits that last.
    pub(crate) fn new(
        me: u32,
        heaps: &[u64],
        bytes: u64,
        area: u64,
        compare: bool,
        give_up: Arc<GiveUp>,
    ) -> Arc<Shared> {
        let own = heaps[me as usize];
        let areas: Box<[usize]> = heaps.iter().map(|base| (base + area) as usize).collect();
        wait::configure(heaps.len(), None);
        Arc::new(Shared {
            heaps: Heaps {
                deltas: heaps
                    .iter()
                    .map(|base| base.wrapping_sub(own) as isize)
                    .collect(),
                end: (own + bytes) as usize,
            },
            pairs: Pairs::new(
                areas.iter().map(|area| *area as *mut u8).collect(),
                me as usize,
                Some(give_up.clone()),
            ),
            areas,
            me,
            cores: wait::cores(),
            policy: Policy {
                give_up: Some(give_up),
                compare,
            },
            slots: Mutex::new(Slots::new(PREDEFINED)),
            alive: RwLock::new(true),
        })
    }

    /// Nothing touches the heaps any more.
    pub(crate) fn end(&self) {
        *self.alive.write().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// A team of PEs `members`, this one among them, in `slot`, whose operations start above `start`.
    fn team(self: &Arc<Shared>, members: &[u32], slot: usize, start: u64) -> Option<Arc<HostTeam>> {
        let me = members.iter().position(|pe| *pe == self.me)?;
        let all = members
            .iter()
            .map(|pe| {
                let area = self.areas[*pe as usize] as *mut u8;
                (Slot::new(area, slot, *pe as usize), *pe)
            })
            .collect();
        Some(Arc::new(HostTeam {
            group: Group::new(all, me, start, self.cores, self.policy.clone()),
            shared: self.clone(),
            slot,
            turn: Mutex::new(false),
            ended: AtomicBool::new(false),
        }))
    }

    /// The world team (slot 0) or the shared team (slot 1).
    pub(crate) fn lasting(
        self: &Arc<Shared>,
        members: &[u32],
        slot: usize,
    ) -> Option<Arc<HostTeam>> {
        self.team(members, slot, 0)
    }

    /// A team of `members`, made by all members of `parent`; `None` for those of them that are not in it. Collective over the parent.
    pub(crate) fn split(
        self: &Arc<Shared>,
        parent: &HostTeam,
        members: &[u32],
    ) -> Result<Result<Option<Arc<HostTeam>>, Full>, Trouble> {
        let mine = members.contains(&self.me);
        let agreed = parent.run(|group| slots::agree(&self.slots, group, [mine]))?;
        Ok(match agreed {
            None => Err(Full),
            Some(([slot], start)) => Ok(self.team(members, slot, start)),
        })
    }
}

/// No place in the area of collectives is free at all members.
pub(crate) struct Full;

/// Why a collective did not come to its end.
pub(crate) enum Trouble {
    /// The engine says so.
    Stopped(Stop),
    /// The team was broken before.
    Broken,
}

impl HostTeam {
    /// Runs one collective. Members that fail break the team: nobody knows what the others have done.
    pub(crate) fn run<R>(
        &self,
        body: impl FnOnce(&Group) -> Result<R, Stop>,
    ) -> Result<R, Trouble> {
        // One thread at a time; a panic in a collective leaves it broken.
        let mut broken = match self.turn.lock() {
            Ok(turn) => turn,
            Err(_) => return Err(Trouble::Broken),
        };
        if *broken {
            return Err(Trouble::Broken);
        }
        body(&self.group).map_err(|stop| {
            *broken = true;
            Trouble::Stopped(stop)
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether this PE has destroyed it.
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Gives its place back: no collective of this PE uses it any more.
    pub(crate) fn end(&self) {
        if self.slot < PREDEFINED || self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let alive = self
            .shared
            .alive
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let idle = match self.turn.try_lock() {
            Ok(broken) => !*broken,
            // Somebody is in a collective of it, or was and panicked: the place is lost.
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => false,
        };
        if *alive && idle {
            slots::leave(&self.shared.slots, &self.group, self.slot);
        }
    }
}

impl Drop for HostTeam {
    fn drop(&mut self) {
        self.end();
    }
}

/// A slice's bytes for checks of overlap: whether two ranges have a byte in common, and whether they are the same.
pub(crate) fn apart(
    what: &'static str,
    a: (usize, usize),
    b: (usize, usize),
    same_allowed: bool,
) -> Result<(), ShmemError> {
    let disjoint = a.0 + a.1 <= b.0 || b.0 + b.1 <= a.0 || a.1 == 0 || b.1 == 0;
    if disjoint || (same_allowed && a == b) {
        Ok(())
    } else {
        Err(ShmemError::Overlap { what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_apart_and_ranges_in_one_another_are_not() {
        assert!(apart("x", (0, 8), (8, 8), false).is_ok());
        assert!(apart("x", (0, 8), (0, 8), true).is_ok());
        for other in [(0, 8), (4, 8), (2, 2)] {
            assert!(apart("x", (0, 8), other, false).is_err());
        }
        assert!(apart("x", (0, 8), (4, 8), true).is_err());
        assert!(apart("x", (0, 8), (4, 0), false).is_ok());
    }

    #[test]
    fn a_team_is_broken_after_an_error_and_its_place_comes_back_when_it_is_dropped() {
        let bytes = crate::shm::layout::area_bytes(1).next_multiple_of(4096);
        let mut heap = vec![0u64; bytes / 8 + 512];
        let base = (heap.as_mut_ptr() as u64).next_multiple_of(4096);
        let shared = Shared::new(0, &[base], bytes as u64, 0, true, Arc::new(|_| true));
        let world = shared.lasting(&[0], 0).expect("this PE is in the world");
        for _ in 0..400 {
            // More than there are slots: each comes back.
            let team = shared
                .split(&world, &[0])
                .ok()
                .and_then(Result::ok)
                .flatten();
            let team = team.expect("a team");
            assert!(team.run(|group| group.sync()).is_ok());
        }
        let team = shared
            .split(&world, &[0])
            .ok()
            .and_then(Result::ok)
            .flatten();
        let team = team.expect("a team");
        assert!(team.run(|_| Err::<(), _>(Stop::GivenUp)).is_err());
        assert!(matches!(
            team.run(|group| group.sync()),
            Err(Trouble::Broken)
        ));
        shared.end();
    }
}
