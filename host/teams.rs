//! Teams: made by the host, used by kernels and by the hosts' collectives, and asked by both.
//!
//! What it is not: no collective (device/impl/ has the kernels', openshmem/ the hosts'). Called by programs through [`World`]; transport/ keeps the
//! table that kernels read. A team is made over its parent, and PEs outside the parent take no part. Once the device is enabled, the members agree on a
//! free handle by a small kernel (kernels/teams.cpp) that uses the parent team on the device; where host code can touch the members' heaps, they
//! agree on a place in the area of the hosts' collectives, through the parent's.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::abi;
use crate::error::Error;
use crate::launch::Args;
use crate::openshmem::shared::{Full, HostTeam};
use crate::openshmem::{Pe, PeNumber};
use crate::shm::group::Kind;
use crate::shm::layout::SLOTS;
use crate::shm::slots::PREDEFINED;
use crate::world::World;

/// A team cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// start, stride and size that leave the parent.
    #[error("team_split_strided: start {start}, stride {stride}, size {size} leave a parent team of {n_pes} PEs (numbers 0 to {})", n_pes.saturating_sub(1))]
    Strided {
        /// First member.
        start: i64,
        /// Distance.
        stride: i64,
        /// Members.
        size: u32,
        /// PEs of the parent.
        n_pes: u32,
    },
    /// No columns.
    #[error("team_split_2d: the x range is 0; it is the number of PEs in a row, at least 1")]
    Range,
    /// An empty list.
    #[error("team_from_pes: the list is empty")]
    Empty,
    /// A number outside the parent, or twice in the list.
    #[error("team_from_pes: number {pe} is {}; the parent team has {n_pes} PEs", if *twice { "twice in the list" } else { "outside the parent team" })]
    List {
        /// The number.
        pe: u32,
        /// Twice, or outside.
        twice: bool,
        /// PEs of the parent.
        n_pes: u32,
    },
    /// A team that was destroyed, or of another World.
    #[error("team {id} does not exist (any more) on this PE")]
    Gone {
        /// The handle.
        id: i32,
    },
    /// The teams that always exist.
    #[error("the world and shared teams cannot be destroyed")]
    Lasting,
    /// No handle that is free on all members of the parent.
    #[error("no team can be made: a PE can be in {} teams at once, and the parent's members have no free handle in common; destroy teams that are not needed", abi::SHMEM_TEAM_MAX)]
    Exhausted,
    /// No place in the area of collectives that is free on all members of the parent.
    #[error("no team can be made: a PE can be in {} teams of hosts at once, and the parent's members have no free place in common; destroy or drop teams that are not needed", SLOTS - PREDEFINED - 1)]
    Full,
    /// PEs that call it differently.
    #[error("PE {me}: {differ} of {n_pes} members of the parent team made another call, or with other arguments; all must make the same")]
    Differ {
        /// This PE.
        me: u32,
        /// How many.
        differ: u64,
        /// PEs of the parent.
        n_pes: u32,
    },
}

/// A team of PEs that this PE is in, for the hosts' collectives ([`World::on_team`]) and for kernels ([`Team::id`]). A clone is the same team.
///
/// Dropping the last clone gives the team's place among the hosts back at this PE, without waiting for anybody; its handle for kernels, which may be
/// running, stays taken until [`World::team_destroy`].
#[derive(Clone)]
pub struct Team {
    /// [`NO_HANDLE`]: kernels do not know it.
    id: u32,
    my_pe: u32,
    members: Vec<u32>,
    /// Its collectives between hosts; `None` where host code cannot touch the members' heaps.
    host: Option<Arc<HostTeam>>,
}

/// [`Team::id`] of a team that was made before the device was enabled, or whose parent was.
const NO_HANDLE: u32 = abi::SHMEM_TEAM_INVALID as u32;

impl PartialEq for Team {
    /// Whether it is the same team.
    fn eq(&self, other: &Team) -> bool {
        let alike =
            self.id == other.id && self.my_pe == other.my_pe && self.members == other.members;
        let same = match (&self.host, &other.host) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => true,
        };
        alike && (self.id != NO_HANDLE || same)
    }
}

impl Eq for Team {}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team")
            .field("id", &self.id())
            .field("my_pe", &self.my_pe)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl Team {
    /// The handle, for kernels (`shmem_team_t`): the same on all members. -1, which is no team, for a team that was made before
    /// [`World::enable_device`]; the world and shared teams always have theirs.
    pub fn id(&self) -> i32 {
        self.id as i32
    }

    pub(crate) fn host(&self) -> Option<&Arc<HostTeam>> {
        self.host.as_ref()
    }

    /// The PE of the job that has this number here; its copy of symmetric memory is then [`World::ptr`]'s matter (OpenSHMEM 1.6, `shmem_team_ptr`).
    ///
    /// # Errors
    /// A number outside the team.
    pub fn pe(&self, number: u32) -> Result<Pe, Error> {
        let all = self.members.len() as u32;
        Ok(Pe::new(number.resolve(Some(&self.members), all)?))
    }

    /// The number that a PE of the job has here; `None`: it is not a member.
    pub fn number_of(&self, pe: Pe) -> Option<u32> {
        let place = self
            .members
            .iter()
            .position(|member| *member == pe.number());
        place.map(|number| number as u32)
    }

    /// This PE's number in the team (OpenSHMEM 1.6, `shmem_team_my_pe`).
    pub fn my_pe(&self) -> u32 {
        self.my_pe
    }

    /// PEs of the team (OpenSHMEM 1.6, `shmem_team_n_pes`).
    pub fn n_pes(&self) -> u32 {
        self.members.len() as u32
    }

    /// PEs of the job, by number in the team.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    /// The number in `to` of the PE that is number `pe` here (OpenSHMEM 1.6, `shmem_team_translate_pe`).
    pub fn translate(&self, pe: u32, to: &Team) -> Option<u32> {
        let world = self.members.get(pe as usize)?;
        to.members
            .iter()
            .position(|member| member == world)
            .map(|number| number as u32)
    }
}

impl World {
    /// All PEs (OpenSHMEM 1.6, `SHMEM_TEAM_WORLD`).
    ///
    /// # Errors
    /// The runtime's.
    pub fn team_world(&self) -> Result<Team, Error> {
        self.lasting(abi::SHMEM_TEAM_WORLD)
    }

    /// The PEs whose heaps are mapped to one another, this one among them (OpenSHMEM 1.6, `SHMEM_TEAM_SHARED`). Before the device is enabled: all
    /// PEs where all are, else this one alone.
    ///
    /// # Errors
    /// The runtime's.
    pub fn team_shared(&self) -> Result<Team, Error> {
        self.lasting(abi::SHMEM_TEAM_SHARED)
    }

    /// The PEs `start`, `start + stride`, ... of the parent, `size` of them; `None` for those that are not among them. A negative stride
    /// counts down; a stride of 0 needs a size of 1. Collective over the parent (OpenSHMEM 1.6, `shmem_team_split_strided`).
    ///
    /// # Errors
    /// Arguments outside the parent, or that differ between its members; no handle left; what a kernel may say.
    pub fn team_split_strided(
        &self,
        parent: &Team,
        start: u32,
        stride: i32,
        size: u32,
    ) -> Result<Option<Team>, Error> {
        let chosen = strided(parent.n_pes(), start, stride, size)?;
        self.split(parent, ("strided", start, stride, size), &chosen)
    }

    /// Rows of `x_range` PEs of the parent, and columns across them: the row and the column of this PE. The last row may be shorter, and
    /// columns then too. Collective over the parent (OpenSHMEM 1.6, `shmem_team_split_2d`).
    ///
    /// # Errors
    /// As [`World::team_split_strided`].
    pub fn team_split_2d(&self, parent: &Team, x_range: u32) -> Result<(Team, Team), Error> {
        let (row, column) = rows_and_columns(parent.n_pes(), parent.my_pe(), x_range)?;
        let x = self.split(parent, ("2d x", x_range), &row)?;
        let y = self.split(parent, ("2d y", x_range), &column)?;
        match (x, y) {
            (Some(x), Some(y)) => Ok((x, y)),
            _ => Err(TeamError::Gone { id: parent.id() }.into()), // a PE is always in its own row and column
        }
    }

    /// The PEs with these numbers in the parent, in this order; `None` for those that are not among them. Collective over the parent
    /// (ours; the standard has strides only).
    ///
    /// # Errors
    /// As [`World::team_split_strided`].
    pub fn team_from_pes(&self, parent: &Team, pes: &[u32]) -> Result<Option<Team>, Error> {
        checked_list(parent.n_pes(), pes)?;
        self.split(parent, ("list", pes), pes)
    }

    /// Ends a team: its handle may be used for another. Kernels that use it must have ended on all its members. Local; all members are
    /// to do it, as the standard asks (OpenSHMEM 1.6, `shmem_team_destroy`).
    ///
    /// # Errors
    /// A team that always exists, or was destroyed.
    pub fn team_destroy(&self, team: Team) -> Result<(), Error> {
        if team.id <= abi::SHMEM_TEAM_SHARED {
            return Err(TeamError::Lasting.into());
        }
        self.check_team(&team)?;
        if team.id != NO_HANDLE {
            self.synchronize()?;
            self.with_transport("team_destroy", |transport, site| {
                transport.set_team(team.id, None, site)
            })?;
        }
        if let Some(host) = &team.host {
            host.end();
        }
        Ok(())
    }

    /// What kernels know of a team; `None`: nothing, or the device is not enabled.
    fn entry(&self, id: u32) -> Result<Option<(u32, Vec<u32>)>, Error> {
        if self.comm_cores().is_none() {
            return Ok(None);
        }
        self.with_transport("teams", |transport, _| Ok(transport.team(id).cloned()))
    }

    /// The world or shared team.
    fn lasting(&self, id: u32) -> Result<Team, Error> {
        let everybody: Vec<u32> = (0..self.n_pes()).collect();
        let (my_pe, members) = match self.entry(id)? {
            Some(entry) => entry,
            None if id == abi::SHMEM_TEAM_WORLD || self.shared().is_some() => {
                (self.my_pe(), everybody.clone())
            }
            None => (0, vec![self.my_pe()]),
        };
        let host = self.lasting_group(id as usize).cloned();
        Ok(Team {
            id,
            my_pe,
            host: host.filter(|_| members == everybody),
            members,
        })
    }

    /// Whether a team is one of this World that was not destroyed.
    pub(crate) fn check_team(&self, team: &Team) -> Result<(), Error> {
        let ours = team.host.as_ref().is_none_or(|host| {
            let same = self
                .shared()
                .is_some_and(|mine| Arc::ptr_eq(mine, host.shared()));
            same && !host.ended()
        });
        let known = match team.id {
            NO_HANDLE => team.host.is_some(),
            id if id <= abi::SHMEM_TEAM_SHARED => self.lasting(id)? == *team,
            id => self.entry(id)? == Some((team.my_pe, team.members.clone())),
        };
        if ours && known {
            Ok(())
        } else {
            Err(TeamError::Gone { id: team.id() }.into())
        }
    }

    /// Makes the team of the parent's members with these numbers. Members whose `chosen` do not overlap may make different ones at once.
    /// `call`: what must be alike on all members.
    fn split(&self, parent: &Team, call: impl Hash, chosen: &[u32]) -> Result<Option<Team>, Error> {
        self.check_team(parent)?;
        let mut digest = DefaultHasher::new();
        call.hash(&mut digest);
        let digest = digest.finish();
        let members: Vec<u32> = chosen
            .iter()
            .map(|number| parent.members[*number as usize])
            .collect();
        let mine = chosen.iter().position(|number| *number == parent.my_pe);
        let known = parent.id != NO_HANDLE && self.comm_cores().is_some();
        if !known && parent.host.is_none() {
            return Err(Error::NotEnabled("teams"));
        }
        let id = if known {
            let entry = mine.map(|my_pe| (my_pe as u32, members.clone()));
            self.split_for_kernels(parent, digest, entry)?
        } else {
            NO_HANDLE
        };
        let host = match &parent.host {
            None => None,
            Some(of) => match self.split_for_hosts(of, digest, &members) {
                Ok(host) => host,
                Err(error) => {
                    if id != NO_HANDLE && mine.is_some() {
                        self.with_transport("teams", |transport, site| {
                            transport.set_team(id, None, site)
                        })?;
                    }
                    return Err(error);
                }
            },
        };
        Ok(mine.map(|my_pe| Team {
            id,
            my_pe: my_pe as u32,
            members,
            host,
        }))
    }

    /// The hosts' part of a split: a place in the area of collectives that is free at all members of the parent.
    fn split_for_hosts(
        &self,
        parent: &HostTeam,
        digest: u64,
        members: &[u32],
    ) -> Result<Option<Arc<HostTeam>>, Error> {
        let what = "a team split";
        let digests = parent
            .run(|group| group.exchange(Kind::Split, [digest]))
            .map_err(|trouble| self.trouble(what, trouble))?;
        let differ = digests.iter().filter(|[theirs]| *theirs != digest).count() as u64;
        if differ != 0 {
            return Err(TeamError::Differ {
                me: self.my_pe(),
                differ,
                n_pes: digests.len() as u32,
            }
            .into());
        }
        let split = parent.shared().split(parent, members);
        match split.map_err(|trouble| self.trouble(what, trouble))? {
            Ok(team) => Ok(team),
            Err(Full) => Err(TeamError::Full.into()),
        }
    }

    /// The kernels' part: a handle that is free at all members of the parent. `entry`: this PE's, if it is in the team.
    fn split_for_kernels(
        &self,
        parent: &Team,
        digest: u64,
        entry: Option<(u32, Vec<u32>)>,
    ) -> Result<u32, Error> {
        let free = self.with_transport("teams", |transport, _| Ok(transport.free_teams()))?;
        let (free, differ) = self.agree(parent, free, digest)?;
        if differ != 0 {
            return Err(TeamError::Differ {
                me: self.my_pe(),
                differ,
                n_pes: parent.n_pes(),
            }
            .into());
        }
        if free == 0 {
            return Err(TeamError::Exhausted.into());
        }
        let id = free.trailing_zeros();
        if entry.is_some() {
            self.with_transport("teams", |transport, site| {
                transport.set_team(id, entry, site)
            })?;
        }
        // Nobody uses the team before all members have zeroed its sync memory.
        self.agree(parent, 0, 0)?;
        Ok(id)
    }

    /// The parent's members meet: the bits that all of them have in `bits`, and how many have another `digest` than this PE.
    pub(crate) fn agree(&self, parent: &Team, bits: u64, digest: u64) -> Result<(u64, u64), Error> {
        let args = Args::new().ctx().i32(parent.id()).u64(bits).u64(digest);
        let words = self.run_own(&crate::kernels::TEAMS, "shmem_agree", 1, args)?;
        Ok((words[0], words[1]))
    }
}

/// Numbers of a strided team, checked.
fn strided(n_pes: u32, start: u32, stride: i32, size: u32) -> Result<Vec<u32>, TeamError> {
    let wrong = TeamError::Strided {
        start: start.into(),
        stride: stride.into(),
        size,
        n_pes,
    };
    if size == 0 || start >= n_pes || (stride == 0 && size > 1) {
        return Err(wrong);
    }
    (0..i64::from(size))
        .map(|i| i64::from(start) + i * i64::from(stride))
        .map(|pe| {
            u32::try_from(pe)
                .ok()
                .filter(|pe| *pe < n_pes)
                .ok_or_else(|| wrong.clone())
        })
        .collect()
}

/// The row and the column of number `me`.
fn rows_and_columns(n_pes: u32, me: u32, x_range: u32) -> Result<(Vec<u32>, Vec<u32>), TeamError> {
    if x_range == 0 {
        return Err(TeamError::Range);
    }
    let width = x_range.min(n_pes);
    let first = me / width * width;
    let row = (first..n_pes.min(first + width)).collect();
    let column = (me % width..n_pes).step_by(width as usize).collect();
    Ok((row, column))
}

fn checked_list(n_pes: u32, pes: &[u32]) -> Result<(), TeamError> {
    if pes.is_empty() {
        return Err(TeamError::Empty);
    }
    let mut seen = vec![false; n_pes as usize];
    for pe in pes {
        let twice = match seen.get_mut(*pe as usize) {
            None => {
                return Err(TeamError::List {
                    pe: *pe,
                    twice: false,
                    n_pes,
                })
            }
            Some(seen) => std::mem::replace(seen, true),
        };
        if twice {
            return Err(TeamError::List {
                pe: *pe,
                twice,
                n_pes,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_teams_count_up_down_and_not_outside_the_parent() {
        assert_eq!(strided(7, 1, 2, 3), Ok(vec![1, 3, 5]));
        assert_eq!(strided(7, 6, -3, 3), Ok(vec![6, 3, 0]));
        assert_eq!(strided(7, 3, 0, 1), Ok(vec![3]));
        for (start, stride, size) in [
            (1, 2, 4),
            (6, -3, 4),
            (3, 0, 2),
            (7, 1, 1),
            (0, 1, 0),
            (0, i32::MAX, 2),
            (0, i32::MIN, 2),
        ] {
            let error = strided(7, start, stride, size)
                .expect_err("outside")
                .to_string();
            assert!(error.contains("7 PEs"), "{error}");
        }
    }

    #[test]
    fn rows_and_columns_cover_the_parent_for_every_shape() {
        for n_pes in 1..30 {
            for x_range in 1..=n_pes + 2 {
                let mut met = vec![0; n_pes as usize];
                for me in 0..n_pes {
                    let (row, column) = rows_and_columns(n_pes, me, x_range).expect("a shape");
                    assert!(
                        row.contains(&me) && column.contains(&me) && row.len() <= x_range as usize
                    );
                    assert!(row.iter().all(|pe| column.contains(pe) == (*pe == me)));
                    // Everybody in the row has the same row.
                    assert!(row
                        .iter()
                        .all(
                            |pe| rows_and_columns(n_pes, *pe, x_range).expect("a shape").0 == row
                        ));
                    assert!(column.iter().all(|pe| rows_and_columns(n_pes, *pe, x_range)
                        .expect("a shape")
                        .1
                        == column));
                    met[me as usize] += 1;
                }
                assert!(met.iter().all(|count| *count == 1));
            }
        }
        assert_eq!(rows_and_columns(4, 0, 0), Err(TeamError::Range));
    }

    #[test]
    fn lists_with_strangers_or_twins_are_refused_with_the_number() {
        assert_eq!(checked_list(4, &[3, 0, 2]), Ok(()));
        assert_eq!(checked_list(4, &[]), Err(TeamError::Empty));
        assert!(checked_list(4, &[0, 4])
            .expect_err("outside")
            .to_string()
            .contains("number 4 is outside"));
        assert!(checked_list(4, &[1, 0, 1])
            .expect_err("twice")
            .to_string()
            .contains("number 1 is twice"));
    }
}
