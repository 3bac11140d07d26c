//! Active sets (deprecated collectives), as teams that their members agree on at the first call; and `shmem_sync_pe`.
//!
//! Not the collectives on them (`calls/`). pSync arrays are never read or written, so they always hold what the standard wants.
//!
//! Members of an active set have no common team in which to agree. They use messages between pairs instead. Member 0 hears what every member offers and tells
//! each the result. The set then keeps its slot until finalize. Where no slot is left, every call agrees again, on the last slot, which is
//! never kept.

use super::{done, Team, Teams};
use npushmem::shm::layout::SLOTS;
use npushmem::shm::pairs::{Line, Pairs};
use npushmem::shm::shape::Shape;
use npushmem::shm::slots::Set;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// The slot of sets that could not keep one.
const SHARED_SLOT: usize = SLOTS - 1;
/// Slots that active sets leave to teams.
const LEFT_TO_TEAMS: u32 = 32;

/// The active sets that this PE has used.
pub(crate) struct ActiveSets {
    /// How members tell one another; [`Pairs::meet`] is `shmem_sync_pe`.
    pub(crate) pairs: Pairs,
    /// `None`: no slot was left.
    known: Mutex<HashMap<Shape, Option<&'static Team>>>,
    /// The set used last, so that programs that use one set take no lock.
    last: std::sync::atomic::AtomicPtr<Team>,
}

impl ActiveSets {
    /// None so far.
    pub(crate) fn new(pairs: Pairs) -> ActiveSets {
        ActiveSets {
            pairs,
            known: Mutex::new(HashMap::new()),
            last: std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()),
        }
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
                done(team.group.sync());
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
        let (state, pairs) = (self.state, &self.active.pairs);
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
                let offer = done(pairs.receive(pe as usize, Line::Request));
                free = free.and(Set([offer[0], offer[1]]));
                start = start.max(offer[2]);
            }
            let slot = free.lowest::<1>().map_or(SHARED_SLOT, |slot| slot[0]);
            let result = [slot as u64, start, 0, 0];
            for pe in members() {
                pairs.send(pe as usize, Line::Reply, result);
            }
            result
        } else {
            pairs.send(root as usize, Line::Request, mine);
            done(pairs.receive(root as usize, Line::Reply))
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
