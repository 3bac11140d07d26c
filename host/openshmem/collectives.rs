//! Collectives of the hosts on a team (OpenSHMEM 1.6, section "Collective Routines").
//!
//! What it is not: the algorithms (shm/), nor collectives in kernels (device/shmem_collectives.h). Members read one another's memory, so that these
//! need heaps which host code can touch: the emulated NPU's; on hardware they say so. All members of a team call the same ones in the same order, with
//! the same symmetric elements; other PEs take no part. Buffers may be used again when a call returns. The bounds of each PE's own slices are checked;
//! elements that another PE writes meanwhile have unspecified values, as in the standard.

use std::sync::Arc;

use bytemuck::Pod;

use super::error::ShmemError;
use super::shared::{apart, HostTeam, Trouble};
use super::types::ReduceOp;
use crate::error::Error;
use crate::shm::data;
use crate::shm::group::Group;
use crate::shm::layout::STAGED;
use crate::shm::ops::{operation, Op, Sum};
use crate::shm::reduce;
use crate::shm::wait::Stop;
use crate::sym::SymSlice;
use crate::teams::Team;
use crate::world::World;

/// The collectives of one team. Made by [`World::on_team`], [`World::on_all`].
pub struct OnTeam<'w> {
    world: &'w World,
    host: Arc<HostTeam>,
}

impl World {
    /// The hosts' collectives on a team.
    ///
    /// # Errors
    /// A team that was destroyed or is another World's; heaps that host code cannot touch.
    pub fn on_team(&self, team: &Team) -> Result<OnTeam<'_>, Error> {
        self.check_team(team)?;
        let host = team.host().ok_or_else(|| self.not_shared("a collective"))?;
        Ok(OnTeam {
            world: self,
            host: host.clone(),
        })
    }

    /// The hosts' collectives on all PEs.
    ///
    /// # Errors
    /// Heaps that host code cannot touch.
    pub fn on_all(&self) -> Result<OnTeam<'_>, Error> {
        let host = self
            .lasting_group(0)
            .ok_or_else(|| self.not_shared("a collective"))?;
        Ok(OnTeam {
            world: self,
            host: host.clone(),
        })
    }

    /// Meets one other PE, which calls this with this PE's number: both go on when both have come, and what either put before is visible to the other
    /// (ours; the device has it as `shmem_sync_pe`).
    ///
    /// # Errors
    /// A PE outside the job; heaps that host code cannot touch; a wait that was given up.
    pub fn sync_pe(&self, pe: impl super::pe::PeNumber) -> Result<(), Error> {
        let pe = pe.resolve(None, self.n_pes())?;
        let shared = self.shared().ok_or_else(|| self.not_shared("sync_pe"))?;
        crate::shm::order::full_fence();
        let met = shared.pairs.meet(pe as usize);
        met.map_err(|_| self.gave_up("sync_pe"))
    }
}

/// One side of a collective: this PE's own instance.
struct Side {
    at: usize,
    bytes: usize,
}

impl Side {
    fn ptr(&self) -> *mut u8 {
        self.at as *mut u8
    }
}

impl OnTeam<'_> {
    fn side<T: Pod>(&self, elements: SymSlice<'_, T>) -> Result<Side, Error> {
        let at = self.world.locate(&elements, self.world.my_pe())?;
        Ok(Side {
            at: at as usize,
            bytes: elements.bytes(),
        })
    }

    /// Both sides, that lie apart, or are the same where that is allowed.
    fn sides<T: Pod>(
        &self,
        what: &'static str,
        dest: SymSlice<'_, T>,
        src: SymSlice<'_, T>,
        in_place: bool,
    ) -> Result<(Side, Side), Error> {
        let (dest, src) = (self.side(dest)?, self.side(src)?);
        apart(what, (dest.at, dest.bytes), (src.at, src.bytes), in_place)?;
        Ok((dest, src))
    }

    fn run<R>(
        &self,
        what: &'static str,
        body: impl FnOnce(&Group) -> Result<R, Stop>,
    ) -> Result<R, Error> {
        self.host
            .run(body)
            .map_err(|trouble| self.world.trouble(what, trouble))
    }

    fn members(&self) -> usize {
        self.host.group.size()
    }

    /// This PE's number in the team (OpenSHMEM 1.6, `shmem_team_my_pe`).
    pub fn my_pe(&self) -> u32 {
        self.host.group.me() as u32
    }

    /// PEs of the team (OpenSHMEM 1.6, `shmem_team_n_pes`).
    pub fn n_pes(&self) -> u32 {
        self.members() as u32
    }

    /// Returns when all members have called it. What a member stored to its own memory before is visible after it; it completes no puts
    /// (OpenSHMEM 1.6, `shmem_team_sync`, `shmem_sync_all`).
    ///
    /// # Errors
    /// A wait that was given up (time, death), members in different collectives, a team that an earlier error broke; here and below.
    pub fn sync(&self) -> Result<(), Error> {
        self.run("sync", |group| group.sync())
    }

    /// Returns when all members have called it; all that they did before on any context of the host is complete (OpenSHMEM 1.6,
    /// `shmem_barrier_all`; on a team, its `shmem_ctx_quiet` and `shmem_team_sync`). Kernels are [`World::barrier_all`]'s matter.
    ///
    /// # Errors
    /// See [`sync`](Self::sync).
    pub fn barrier(&self) -> Result<(), Error> {
        crate::shm::order::full_fence();
        self.run("barrier", |group| group.sync())
    }

    fn root(&self, root: u32) -> Result<usize, Error> {
        if (root as usize) < self.members() {
            Ok(root as usize)
        } else {
            Err(crate::heap::HeapError::Number {
                number: root,
                n_pes: self.n_pes(),
            }
            .into())
        }
    }

    /// Copies the `src` of member `root` to the `dest` of every member, its own included; both may be the same elements (OpenSHMEM 1.6,
    /// `shmem_broadcast`).
    ///
    /// # Errors
    /// Lengths that differ, a root outside the team; see [`sync`](Self::sync).
    pub fn broadcast<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
        root: u32,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        let root = self.root(root)?;
        super::context::same("broadcast", dest.len(), src.len())?;
        let (to, from) = self.sides("broadcast", dest, src, true)?;
        let heaps = &self.host.shared().heaps;
        // SAFETY: both sides lie in this PE's heap, so do their instances on the members, whose heaps the World keeps mapped.
        self.run("broadcast", |group| unsafe {
            data::broadcast(group, heaps, to.ptr(), from.ptr(), from.bytes, root, true)
        })
    }

    /// Concatenates the members' `src`, of one length, in `dest` of every member (OpenSHMEM 1.6, `shmem_fcollect`).
    ///
    /// # Errors
    /// A `dest` that is not as long as all `src` together; see [`sync`](Self::sync).
    pub fn fcollect<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        let all = src.len().saturating_mul(self.members());
        super::context::same("fcollect", dest.len(), all)?;
        let (to, from) = self.sides("fcollect", dest, src, false)?;
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `broadcast`.
        self.run("fcollect", |group| unsafe {
            data::fcollect(group, heaps, to.ptr(), from.ptr(), from.bytes)
        })
    }

    /// Concatenates the members' `src`, each of its own length, in `dest` of every member; gives the elements of all (OpenSHMEM 1.6, `shmem_collect`).
    ///
    /// # Errors
    /// A `dest` without room for all (what fits is there then); see [`sync`](Self::sync).
    pub fn collect<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
    ) -> Result<usize, Error> {
        let (dest, src) = (dest.into(), src.into());
        let (to, from) = self.sides("collect", dest, src, false)?;
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `broadcast`; no more is written than `dest` holds, and no more read than the heap does.
        let bytes = self.run("collect", |group| unsafe {
            data::collect(group, heaps, to.ptr(), to.bytes, from.ptr(), from.bytes)
        })?;
        let total = bytes / size_of::<T>().max(1);
        if bytes > to.bytes {
            let room = dest.len();
            return Err(ShmemError::Room { total, room }.into());
        }
        Ok(total)
    }

    fn block(&self, what: &'static str, len: usize) -> Result<usize, Error> {
        if len.is_multiple_of(self.members()) {
            Ok(len / self.members())
        } else {
            let n_pes = self.n_pes();
            Err(ShmemError::Blocks { what, len, n_pes }.into())
        }
    }

    /// Block k of `src` on member i goes to block i of `dest` on member k; both sides have a block for each member (OpenSHMEM 1.6, `shmem_alltoall`).
    ///
    /// # Errors
    /// Lengths that differ, or are no multiple of the members; see [`sync`](Self::sync).
    pub fn alltoall<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        super::context::same("alltoall", dest.len(), src.len())?;
        let block = self.block("alltoall", src.len())? * size_of::<T>();
        let (to, from) = self.sides("alltoall", dest, src, false)?;
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `broadcast`.
        self.run("alltoall", |group| unsafe {
            data::alltoall(group, heaps, to.ptr(), from.ptr(), block)
        })
    }

    /// As [`alltoall`](Self::alltoall), `n` elements a member, which lie `strides` apart on each side (OpenSHMEM 1.6, `shmem_alltoalls`).
    ///
    /// # Errors
    /// A stride of 0, elements outside a side; see [`sync`](Self::sync).
    pub fn alltoalls<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
        strides: super::context::Strides,
        n: usize,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        let count = n.saturating_mul(self.members());
        for (stride, len) in [(strides.dest, dest.len()), (strides.src, src.len())] {
            if stride == 0 {
                let what = "alltoalls";
                return Err(ShmemError::Stride {
                    what,
                    stride,
                    block: 1,
                }
                .into());
            }
            let last = count
                .checked_sub(1)
                .map(|steps| steps.saturating_mul(stride));
            if last.is_some_and(|last| last >= len) {
                let start = last.unwrap_or(0);
                return Err(crate::heap::HeapError::Range {
                    start,
                    count: 1,
                    len,
                }
                .into());
            }
        }
        let (to, from) = self.sides("alltoalls", dest, src, false)?;
        let strides = data::Strides {
            dest: strides.dest,
            src: strides.src,
            element: size_of::<T>(),
            count: n,
        };
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `broadcast`; all that the strides reach lies in the sides.
        self.run("alltoalls", |group| unsafe {
            data::alltoalls(group, heaps, to.ptr(), from.ptr(), strides)
        })
    }

    /// `dest` = the members' `src` combined element by element, on every member; both may be the same elements. Elements are combined in the order
    /// of the members: all get the same bits, in every run (OpenSHMEM 1.6, `shmem_sum_reduce`, `_prod_`, `_min_`, `_max_`, `_and_`, `_or_`, `_xor_`).
    ///
    /// ```no_run
    /// # fn main() -> Result<(), npushmem::Error> {
    /// # let world = npushmem::World::init()?;
    /// # let (parts, sums) = (world.alloc::<f64>(8)?, world.alloc::<f64>(8)?);
    /// world.on_all()?.reduce(npushmem::op::Sum, &sums, &parts)?;
    /// # drop((parts, sums));
    /// # world.finalize()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Lengths that differ; see [`sync`](Self::sync).
    pub fn reduce<'s, T: Pod, O: ReduceOp<T>>(
        &self,
        _op: O,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        super::context::same("reduce", dest.len(), src.len())?;
        let (to, from) = self.sides("reduce", dest, src, true)?;
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `broadcast`; heap blocks are aligned for their type.
        self.run("reduce", |group| unsafe {
            let op = operation::<T, O>();
            reduce::reduce(group, heaps, op, to.ptr(), from.ptr(), src.len())
        })
    }

    fn scan<T: Pod>(
        &self,
        what: &'static str,
        dest: SymSlice<'_, T>,
        src: SymSlice<'_, T>,
        inclusive: bool,
    ) -> Result<(), Error>
    where
        Sum: ReduceOp<T>,
    {
        super::context::same(what, dest.len(), src.len())?;
        let (to, from) = self.sides(what, dest, src, true)?;
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `reduce`.
        self.run(what, |group| unsafe {
            let op = operation::<T, Sum>();
            reduce::scan(group, heaps, op, to.ptr(), from.ptr(), src.len(), inclusive)
        })
    }

    /// `dest` on member i = the `src` of members 0 to i, added element by element; both may be the same (OpenSHMEM 1.6, `shmem_sum_inscan`).
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn inscan<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
    ) -> Result<(), Error>
    where
        Sum: ReduceOp<T>,
    {
        self.scan("inscan", dest.into(), src.into(), true)
    }

    /// As [`inscan`](Self::inscan), without the own elements: zero on member 0 (OpenSHMEM 1.6, `shmem_sum_exscan`).
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn exscan<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
    ) -> Result<(), Error>
    where
        Sum: ReduceOp<T>,
    {
        self.scan("exscan", dest.into(), src.into(), false)
    }

    /// The members' values, in order: an fcollect without symmetric memory, for up to 2 KiB a value (ours).
    ///
    /// # Errors
    /// A value that is too long; see [`sync`](Self::sync).
    pub fn gather<T: Pod>(&self, value: T) -> Result<Vec<T>, Error> {
        let bytes = size_of::<T>();
        if bytes > STAGED {
            let (what, limit) = ("gather", STAGED);
            return Err(ShmemError::TooLong { what, bytes, limit }.into());
        }
        let mut all = vec![value; self.members()];
        let heaps = &self.host.shared().heaps;
        // SAFETY: a value of this size is staged: no member reads it where it is.
        self.run("gather", |group| unsafe {
            let (to, from) = (all.as_mut_ptr().cast(), std::ptr::from_ref(&value).cast());
            data::fcollect(group, heaps, to, from, bytes)
        })?;
        Ok(all)
    }

    /// The members' values, combined in their order: a reduction without symmetric memory (ours).
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn reduce_value<T: Pod, O: ReduceOp<T>>(&self, _op: O, value: T) -> Result<T, Error> {
        let mut all = self.gather(value)?.into_iter();
        let first = all.next().unwrap_or(value);
        Ok(all.fold(first, <O as Op<T>>::apply))
    }

    /// Member `root`'s value: a broadcast without symmetric memory (ours).
    ///
    /// # Errors
    /// As [`gather`](Self::gather); a root outside the team.
    pub fn broadcast_value<T: Pod>(&self, value: T, root: u32) -> Result<T, Error> {
        let root = self.root(root)?;
        let bytes = size_of::<T>();
        if bytes > STAGED {
            let (what, limit) = ("broadcast_value", STAGED);
            return Err(ShmemError::TooLong { what, bytes, limit }.into());
        }
        let mut result = value;
        let heaps = &self.host.shared().heaps;
        // SAFETY: as in `gather`.
        self.run("broadcast_value", |group| unsafe {
            let (to, from) = (
                std::ptr::from_mut(&mut result).cast(),
                std::ptr::from_ref(&value).cast(),
            );
            data::broadcast(group, heaps, to, from, bytes, root, true)
        })?;
        Ok(result)
    }
}

impl World {
    /// The error of a collective that did not end.
    pub(crate) fn trouble(&self, what: &'static str, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Broken => ShmemError::Broken { what }.into(),
            Trouble::Stopped(Stop::GivenUp) => self.gave_up(what),
            Trouble::Stopped(Stop::Mismatch {
                other,
                mine,
                theirs,
            }) => ShmemError::Mismatch {
                me: self.my_pe(),
                other: other as u32,
                mine,
                theirs,
            }
            .into(),
        }
    }
}
