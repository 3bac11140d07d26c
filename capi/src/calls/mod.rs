//! The C routines of collectives (OpenSHMEM 1.6, section "Collective Routines"): on teams, on active sets, on all PEs.
//!
//! Not the algorithms (host/shm). A routine finds its team and becomes a [`Call`]; the call checks what the routine's [`Arrays`] say, in one
//! place for all routines, and runs one function for all types.

mod active;
pub(crate) mod agree;
mod data;
mod reduce;
mod sync;

use crate::state::{self, State};
use crate::teams::{self, Team};
use agree::Argument;
use npushmem::shm::group::Routine;
use std::ffi::c_int;

/// What a collective on SHMEM_TEAM_INVALID returns.
const FAILED: c_int = -1;

/// A collective that this PE takes part in.
struct Call<'a> {
    routine: Routine,
    team: &'a Team,
    state: &'static State,
}

/// Runs a collective on the team behind a handle; gives C's result.
#[inline]
fn on_team(routine: Routine, team: usize, body: impl FnOnce(&Call)) -> c_int {
    let Some(team) = teams::find(routine, team) else {
        return FAILED;
    };
    let state = teams::require(routine).state();
    body(&Call::new(routine, team, state));
    0
}

/// How many blocks of `nelems` elements an array has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocks {
    /// One.
    One,
    /// One a member.
    PerMember,
}

/// The arrays of a collective and what else all members pass alike, for checks.
struct Arrays {
    dest: *mut u8,
    src: *const u8,
    /// Elements of a block.
    nelems: usize,
    /// Bytes of an element.
    element: usize,
    dest_blocks: Blocks,
    src_blocks: Blocks,
    /// Elements between consecutive ones; at least 1.
    strides: [isize; 2],
    /// Source and destination may be the same array.
    in_place: bool,
    /// All members pass the same number of elements.
    alike: bool,
    /// The member whose data all get.
    root: Option<c_int>,
}

impl<'a> Call<'a> {
    #[inline]
    fn new(routine: Routine, team: &'a Team, state: &'static State) -> Call<'a> {
        team.group.enter(routine);
        Call {
            routine,
            team,
            state,
        }
    }

    fn size(&self) -> usize {
        self.team.group.size()
    }

    fn fail(&self, message: &str) -> ! {
        state::fail(self.routine, message)
    }

    /// Checks the arguments: always what would lead outside of all memory, under `SHMEM_DEBUG` everything, also that all members pass alike what
    /// they must. Gives the bytes of a block. The job ends where an argument is wrong.
    #[inline]
    fn check(&self, arrays: &Arrays) -> usize {
        let bytes = arrays.nelems.checked_mul(arrays.element);
        let fits = bytes.and_then(|bytes| bytes.checked_mul(self.size()));
        let Some(bytes) = bytes.filter(|_| fits.is_some_and(|all| all <= isize::MAX as usize))
        else {
            self.too_many(arrays)
        };
        if let Some(root) = arrays.root {
            if !(0..self.size() as c_int).contains(&root) {
                self.no_root(root)
            }
        }
        if state::debugging() {
            self.check_slowly(arrays);
        }
        bytes
    }

    #[cold]
    fn too_many(&self, arrays: &Arrays) -> ! {
        self.fail(&format!(
            "argument nelems: {} elements of {} bytes for {} members are more than memory holds (at most {} bytes)",
            arrays.nelems,
            arrays.element,
            self.size(),
            isize::MAX
        ))
    }

    #[cold]
    fn no_root(&self, root: c_int) -> ! {
        self.fail(&format!(
            "argument PE_root: {root} is no member; members run from 0 to {}",
            self.size() - 1
        ))
    }

    /// The bytes from the first element of an array to the last one.
    fn extent(&self, arrays: &Arrays, blocks: Blocks, stride: isize) -> usize {
        let blocks = match blocks {
            Blocks::One => 1,
            Blocks::PerMember => self.size(),
        };
        match arrays.nelems * blocks {
            0 => 0,
            n => (n - 1)
                .saturating_mul(stride as usize)
                .saturating_add(1)
                .saturating_mul(arrays.element),
        }
    }

    #[cold]
    fn check_slowly(&self, arrays: &Arrays) {
        let state = self.state;
        let place = |name, address: usize| Argument::place(name, state, address);
        self.agree(&[
            Argument::number(
                "nelems",
                if arrays.alike {
                    arrays.nelems as i64
                } else {
                    0
                },
            ),
            Argument::number("PE_root", arrays.root.unwrap_or(0).into()),
            Argument::number("dst", arrays.strides[0] as i64),
            Argument::number("sst", arrays.strides[1] as i64),
            place("dest", arrays.dest as usize),
            place("source", arrays.src as usize),
        ]);
        for (name, stride) in ["dst", "sst"].into_iter().zip(arrays.strides) {
            if stride < 1 {
                self.fail(&format!(
                    "argument {name}: a stride of {stride}; 1 is the least"
                ));
            }
        }
        let (dest, src) = (arrays.dest as usize, arrays.src as usize);
        let dest_bytes = self.extent(arrays, arrays.dest_blocks, arrays.strides[0]);
        let src_bytes = self.extent(arrays, arrays.src_blocks, arrays.strides[1]);
        state::check_argument(state, self.routine, "dest", dest, dest_bytes);
        state::check_argument(state, self.routine, "source", src, src_bytes);
        let apart = dest + dest_bytes <= src || src + src_bytes <= dest;
        let same = arrays.in_place && dest == src;
        if !apart && !same && src_bytes > 0 {
            self.fail(&format!(
                "dest [{dest:#x}, {:#x}) and source [{src:#x}, {:#x}) overlap{}",
                dest + dest_bytes,
                src + src_bytes,
                match arrays.in_place {
                    true => "; they may be the same array, or must lie apart",
                    false => "; they must lie apart",
                }
            ));
        }
    }

    /// `SHMEM_DEBUG`: ends the job when members are in different routines or pass different arguments.
    fn agree(&self, arguments: &[Argument]) {
        agree::agree(self.routine, &self.team.group, arguments);
    }
}

/// Barrier and sync.
#[inline]
fn sync(call: &Call) {
    if state::debugging() {
        call.agree(&[]);
    }
    teams::done(call.team.group.sync());
}

/// Barrier of all PEs: everything before it is complete (OpenSHMEM 1.6, `shmem_barrier_all`). Also for other routines that begin or end with one.
#[inline]
pub(crate) fn barrier_all(routine: Routine) {
    let teams = teams::require(routine);
    // Stores become visible in the order in which they are made, and all before the one that says that this PE has come: nothing to flush.
    std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
    sync(&Call::new(routine, teams.world(), teams.state()));
}

/// `SHMEM_DEBUG`: all PEs are in `routine` and pass `number` as its argument `name`, or the job ends.
pub(crate) fn all_agree(routine: Routine, name: &'static str, number: usize) {
    if state::debugging() {
        let world = &teams::require(routine).world().group;
        agree::agree(routine, world, &[Argument::number(name, number as i64)]);
    }
}
