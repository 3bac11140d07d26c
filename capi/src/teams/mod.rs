//! Teams: the world, the shared team, and what programs split from them (OpenSHMEM 1.6, section "Team Management").
//!
//! Not collectives on teams (`calls/`). A handle is a number: the constants of the predefined teams, or a team's address.
//!
//! A split is agreed on among the parent's members in one exchange: each offers its free slots and the number above which operations may start;
//! all pick the same. Nothing else is communicated: members, numbering and result follow from the arguments.

pub(crate) mod active;
mod calls;

use crate::constants::handle;
use crate::state::{self, State};
use npushmem::shm::group::{Group, Memory, Policy};
use npushmem::shm::layout::{Slot, CONTROL};
use npushmem::shm::pairs::Pairs;
use npushmem::shm::shape::Shape;
use npushmem::shm::slots::{self, Slots, PREDEFINED};
use npushmem::shm::wait::{self, Stop};
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A team that this PE is a member of.
pub(crate) struct Team {
    /// Its members.
    pub(crate) shape: Shape,
    /// What its collectives run on.
    pub(crate) group: Group,
    /// Contexts that the program asked for (`num_contexts`).
    contexts: c_int,
    slot: usize,
}

impl Team {
    /// This PE's number in it.
    #[inline]
    pub(crate) fn me(&self) -> i32 {
        self.group.me() as i32
    }

    /// Its handle.
    fn handle(&self, teams: &Teams) -> usize {
        if std::ptr::eq(self, &raw const teams.world) {
            handle::TEAM_WORLD
        } else if std::ptr::eq(self, &raw const teams.shared) {
            handle::TEAM_SHARED
        } else {
            std::ptr::from_ref(self) as usize
        }
    }
}

/// The teams of this process between init and finalize. Made by init; kept afterwards, because other threads may still be looking.
pub(crate) struct Teams {
    world: Team,
    shared: Team,
    state: &'static State,
    cores: usize,
    slots: Mutex<Slots>,
    active: active::ActiveSets,
    /// Addresses of the teams that exist beside the predefined ones.
    live: Mutex<Vec<usize>>,
}

static TEAMS: AtomicPtr<Teams> = AtomicPtr::new(std::ptr::null_mut());

/// Starts teams and collectives of this process. The collectives' areas of all PEs are mapped and zero; called once an init, before any other
/// function of this module.
pub(crate) fn start(state: &'static State) {
    wait::configure(state.n_pes as usize, Some(crate::limit::watch));
    require_zero(state);
    let cores = wait::cores();
    let all = Shape::world(state.n_pes);
    let predefined = |slot| Team {
        shape: all,
        group: group(state, all, slot, 0, cores).expect("every PE is in the world"),
        contexts: 0,
        slot,
    };
    let teams = Teams {
        world: predefined(0),
        shared: predefined(1),
        state,
        cores,
        slots: Mutex::new(Slots::new(PREDEFINED)),
        active: active::ActiveSets::new(pairs(state)),
        live: Mutex::new(Vec::new()),
    };
    TEAMS.store(Box::into_raw(Box::new(teams)), Ordering::Release);
}

/// This PE's pairs with all others.
fn pairs(state: &State) -> Pairs {
    let areas = (0..state.n_pes).map(|pe| state.sync_area(pe)).collect();
    Pairs::new(areas, state.my_pe as usize, None)
}

/// Ends the job when this PE's lines are not zero: what is in them would pass for the numbers of operations that others have done, and barriers
/// would let everybody through. Looks at the predefined teams only, so as not to touch pages that may never be used.
fn require_zero(state: &State) {
    for slot in 0..PREDEFINED {
        let control = state
            .sync_area(state.my_pe)
            .wrapping_add(slot * CONTROL)
            .cast::<u64>();
        for word in 0..CONTROL / size_of::<u64>() {
            // SAFETY: this PE's own area, which no PE uses yet.
            let found = unsafe { control.add(word).read_volatile() };
            if found != 0 {
                state::fail(
                    "shmem_init",
                    &format!("the area of collectives is not zero: word {word} of slot {slot} holds {found:#x}; please report it"),
                );
            }
        }
    }
}

/// Ends what [`start`] began. Called by finalize, after its last barrier.
pub(crate) fn stop() {
    TEAMS.store(std::ptr::null_mut(), Ordering::Release);
}

/// The teams; outside init and finalize the job ends with a message that names `routine`.
#[inline]
pub(crate) fn require(routine: &'static str) -> &'static Teams {
    // SAFETY: null, or teams that are never freed.
    match unsafe { TEAMS.load(Ordering::Acquire).as_ref() } {
        Some(teams) => teams,
        None => {
            state::require(routine);
            state::fail(routine, "teams are not available")
        }
    }
}

/// The team behind a handle; `None` for SHMEM_TEAM_INVALID.
#[inline]
pub(crate) fn find(routine: &'static str, team: usize) -> Option<&'static Team> {
    let teams = require(routine);
    match team {
        handle::TEAM_WORLD => Some(&teams.world),
        handle::TEAM_SHARED => Some(&teams.shared),
        handle::TEAM_INVALID => None,
        address => {
            if state::debugging() && !teams.live().contains(&address) {
                state::fail(
                    routine,
                    &format!("argument team: {address:#x} is no team, or one that was destroyed"),
                );
            }
            // SAFETY: the standard wants a valid handle: the address of a team that exists.
            Some(unsafe { &*(address as *const Team) })
        }
    }
}

/// World PEs of the members of a team, in order; `None` for SHMEM_TEAM_INVALID. For contexts.
pub(crate) fn members(routine: &'static str, team: usize) -> Option<Vec<i32>> {
    let shape = find(routine, team)?.shape;
    Some((0..shape.size).map(|member| shape.pe(member)).collect())
}

impl Memory for State {
    #[inline(always)]
    unsafe fn peer(&self, addr: *const u8, pe: usize) -> *mut u8 {
        // SAFETY: there is one distance for each PE.
        addr.wrapping_offset(unsafe { *self.delta.get_unchecked(pe) })
            .cast_mut()
    }
}

/// The group of `shape` in `slot`; `None` when this PE is not in it.
fn group(state: &State, shape: Shape, slot: usize, start: u64, cores: usize) -> Option<Group> {
    let me = shape.member(state.my_pe)?;
    let members = (0..shape.size)
        .map(|member| {
            let pe = shape.pe(member);
            let slot = Slot::new(state.sync_area(pe), slot, pe as usize);
            (slot, pe as u32)
        })
        .collect();
    Some(Group::new(
        members,
        me as usize,
        start,
        cores,
        Policy::default(),
    ))
}

/// The result of an operation of the engine. Its waits end the job by themselves (limit.rs), and what members must pass alike is compared before
/// it (calls/agree.rs).
#[inline(always)]
pub(crate) fn done<T>(result: Result<T, Stop>) -> T {
    match result {
        Ok(value) => value,
        Err(stop) => stopped(stop),
    }
}

#[cold]
#[inline(never)]
fn stopped(stop: Stop) -> ! {
    state::fail(
        "a collective",
        &format!("it stopped ({stop:?}) although its waits have no limit of their own and nothing is compared in it; please report it"),
    )
}

impl Teams {
    /// The world team.
    #[inline]
    pub(crate) fn world(&self) -> &Team {
        &self.world
    }

    /// The state that these teams were made for.
    #[inline]
    pub(crate) fn state(&self) -> &'static State {
        self.state
    }

    /// The active sets of this PE.
    pub(crate) fn active(&self) -> &active::ActiveSets {
        &self.active
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, Vec<usize>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes teams from `parent`, in slots that all its members agree on: for each shape one, `None` where this PE is not a member. The outer
    /// `None`: no slot is free. Collective over `parent`.
    fn split<const N: usize>(
        &self,
        parent: &Team,
        new: [(Shape, c_int); N],
    ) -> Option<[Option<&'static Team>; N]> {
        let mine: [bool; N] = std::array::from_fn(|i| new[i].0.member(self.state.my_pe).is_some());
        let (slots, start) = done(slots::agree(&self.slots, &parent.group, mine))?;
        Some(std::array::from_fn(|i| {
            let (shape, contexts) = new[i];
            let group = group(self.state, shape, slots[i], start, self.cores)?;
            let team: &'static Team = Box::leak(Box::new(Team {
                shape,
                group,
                contexts,
                slot: slots[i],
            }));
            self.live().push(std::ptr::from_ref(team) as usize);
            Some(team)
        }))
    }

    /// Ends a team at this PE. Waits for nobody.
    fn destroy(&self, team: &'static Team) {
        let address = std::ptr::from_ref(team) as usize;
        let mut live = self.live();
        let Some(index) = live.iter().position(|&a| a == address) else {
            return;
        };
        live.swap_remove(index);
        drop(live);
        crate::context::destroy_team(Some(address));
        slots::leave(&self.slots, &team.group, team.slot);
        // SAFETY: made by `split`, and no longer among the live ones.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(team).cast_mut()) });
    }
}
