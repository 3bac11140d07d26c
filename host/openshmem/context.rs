//! Contexts of the host's own operations, and remote memory access on them.
//!
//! What it is not: a context of kernels. Transfers go by loads and stores where host code can touch the peer's heap, else by the runtime's copies;
//! both are complete when a call returns, so that a context orders nothing by itself: it carries its team's numbering, and what the standard lets a
//! program promise (which threads use it).

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;

use super::error::ShmemError;
use super::pe::PeNumber;
use crate::error::Error;
use crate::shm::strided::{run, Pattern};
use crate::sym::{SymRef, SymSlice};
use crate::teams::Team;
use crate::world::World;

/// Any thread may use the context at any time.
#[derive(Debug)]
pub struct AnyThread;

/// One thread at a time uses the context: it moves between threads, and is not shared.
#[derive(Debug)]
pub struct Serialized(PhantomData<Cell<()>>);

/// The thread that made the context is the only one that uses it.
#[derive(Debug)]
pub struct Private(PhantomData<*const ()>);

/// What a host context is to be (OpenSHMEM 1.6, `shmem_ctx_create`: options; `shmem_team_create_ctx`: the team). The compiler holds the program to
/// what it promises about threads.
#[derive(Clone, Debug)]
pub struct HostContextOptions<U = AnyThread> {
    team: Option<Team>,
    no_store: bool,
    threads: PhantomData<U>,
}

impl Default for HostContextOptions {
    fn default() -> Self {
        HostContextOptions {
            team: None,
            no_store: false,
            threads: PhantomData,
        }
    }
}

impl HostContextOptions {
    /// All PEs, any thread.
    pub fn new() -> HostContextOptions {
        HostContextOptions::default()
    }
}

impl<U> HostContextOptions<U> {
    fn with<V>(self) -> HostContextOptions<V> {
        HostContextOptions {
            team: self.team,
            no_store: self.no_store,
            threads: PhantomData,
        }
    }

    /// `SHMEM_CTX_SERIALIZED`: one thread at a time.
    pub fn serialized(self) -> HostContextOptions<Serialized> {
        self.with()
    }

    /// `SHMEM_CTX_PRIVATE`: the calling thread only.
    pub fn private(self) -> HostContextOptions<Private> {
        self.with()
    }

    /// `SHMEM_CTX_NOSTORE`: fence and quiet on the context need not cover plain stores through [`World::ptr`].
    pub fn no_store(mut self) -> Self {
        self.no_store = true;
        self
    }

    /// Plain numbers of PEs count in this team, and only its members can be reached.
    pub fn team(mut self, team: &Team) -> Self {
        self.team = Some(team.clone());
        self
    }
}

/// A context of the host's operations (OpenSHMEM 1.6, section "Communication Management Routines"). `U` says which threads use it. Ending it needs
/// no call (`shmem_ctx_destroy`): nothing of it is left open.
#[derive(Debug)]
pub struct HostContext<'w, U = AnyThread> {
    pub(super) world: &'w World,
    team: Option<Arc<Team>>,
    no_store: bool,
    threads: PhantomData<U>,
}

impl World {
    /// The default context of the host: all PEs, any thread (OpenSHMEM 1.6, `SHMEM_CTX_DEFAULT`). Costs nothing to make.
    #[inline]
    pub fn ctx(&self) -> HostContext<'_> {
        HostContext {
            world: self,
            team: None,
            no_store: false,
            threads: PhantomData,
        }
    }

    /// A context of the host's operations. Local (OpenSHMEM 1.6, `shmem_ctx_create`, `shmem_team_create_ctx`).
    ///
    /// # Errors
    /// A team that was destroyed.
    pub fn host_context<U>(
        &self,
        options: HostContextOptions<U>,
    ) -> Result<HostContext<'_, U>, Error> {
        if let Some(team) = &options.team {
            self.check_team(team)?;
        }
        Ok(HostContext {
            world: self,
            team: options.team.map(Arc::new),
            no_store: options.no_store,
            threads: PhantomData,
        })
    }
}

/// How the blocks of a strided transfer lie: starts `dest` and `src` elements apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Elements from the start of a block to the start of the next, in the destination; at least 1.
    pub dest: usize,
    /// The same in the source.
    pub src: usize,
}

impl<'w, U> HostContext<'w, U> {
    /// The team whose numbers its calls take; `None`: all PEs (OpenSHMEM 1.6, `shmem_ctx_get_team`).
    pub fn team(&self) -> Option<&Team> {
        self.team.as_deref()
    }

    /// Whether its quiet and fence need not cover plain stores through [`World::ptr`] (`SHMEM_CTX_NOSTORE`). They do so all the same here.
    pub fn no_store(&self) -> bool {
        self.no_store
    }

    /// The number in the job.
    #[inline]
    pub(super) fn number(&self, pe: impl PeNumber) -> Result<u32, Error> {
        let members = self.team.as_ref().map(|team| team.members());
        Ok(pe.resolve(members, self.world.n_pes())?)
    }

    /// Where PE `pe`'s instance is in this process's (or its device's) addresses.
    #[inline]
    pub(super) fn place<T: Pod>(
        &self,
        elements: &SymSlice<'_, T>,
        pe: impl PeNumber,
    ) -> Result<u64, Error> {
        let pe = self.number(pe)?;
        Ok(self.world.locate(elements, pe)?)
    }

    /// Copies `src` to PE `pe`'s instance of `dest`. When it returns, `src` may be changed; the data is there for others after [`quiet`](Self::quiet),
    /// in order after [`fence`](Self::fence) (OpenSHMEM 1.6, `shmem_put`).
    ///
    /// # Errors
    /// Lengths that differ, a PE outside the context's team or that is not mapped here, the runtime's.
    pub fn put<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: &[T],
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let dest = dest.into();
        same("put", dest.len(), src.len())?;
        let at = self.place(&dest, pe)?;
        // SAFETY: `place` has checked that all of it lies in a heap that the World keeps mapped.
        unsafe { self.world.store_bytes(at, bytemuck::cast_slice(src)) }
    }

    /// Copies PE `pe`'s instance of `src` to `dest`; it is there when the call returns (OpenSHMEM 1.6, `shmem_get`).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn get<'s, T: Pod>(
        &self,
        dest: &mut [T],
        src: impl Into<SymSlice<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let src = src.into();
        same("get", dest.len(), src.len())?;
        let at = self.place(&src, pe)?;
        // SAFETY: as in `put`.
        unsafe { self.world.load_bytes(bytemuck::cast_slice_mut(dest), at) }
    }

    /// As [`put`](Self::put), from this PE's own instance of `src`.
    ///
    /// # Errors
    /// As [`put`](Self::put); elements that overlap on this PE.
    pub fn put_sym<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        same("put_sym", dest.len(), src.len())?;
        let to = self.place(&dest, pe)?;
        let from = self.world.locate(&src, self.world.my_pe())?;
        self.world.copy_within("put_sym", to, from, dest.bytes())
    }

    /// As [`get`](Self::get), to this PE's own instance of `dest`.
    ///
    /// # Errors
    /// As [`put_sym`](Self::put_sym).
    pub fn get_sym<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: impl Into<SymSlice<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let (dest, src) = (dest.into(), src.into());
        same("get_sym", dest.len(), src.len())?;
        let from = self.place(&src, pe)?;
        let to = self.world.locate(&dest, self.world.my_pe())?;
        self.world.copy_within("get_sym", to, from, dest.bytes())
    }

    /// Writes one element on PE `pe`, in one access if it has 1, 2, 4 or 8 bytes (OpenSHMEM 1.6, `shmem_p`).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn p<'s, T: Pod>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let at = self.place(&dest.into().view(), pe)?;
        // SAFETY: as in `put`.
        unsafe { self.world.store_bytes(at, bytemuck::bytes_of(&value)) }
    }

    /// Reads one element of PE `pe`, in one access if it has 1, 2, 4 or 8 bytes (OpenSHMEM 1.6, `shmem_g`).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn g<'s, T: Pod>(
        &self,
        src: impl Into<SymRef<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        let at = self.place(&src.into().view(), pe)?;
        let mut value = T::zeroed();
        // SAFETY: as in `put`.
        unsafe {
            self.world
                .load_bytes(bytemuck::bytes_of_mut(&mut value), at)
        }?;
        Ok(value)
    }

    /// Copies `n` elements that lie apart to places that lie apart (OpenSHMEM 1.6, `shmem_iput`). Complete as [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put); a stride of 0; elements outside either side.
    pub fn iput<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: &[T],
        strides: Strides,
        n: usize,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.strided_put("iput", dest.into(), src, strides, 1, n, pe)
    }

    /// The way back (OpenSHMEM 1.6, `shmem_iget`).
    ///
    /// # Errors
    /// As [`iput`](Self::iput).
    pub fn iget<'s, T: Pod>(
        &self,
        dest: &mut [T],
        src: impl Into<SymSlice<'s, T>>,
        strides: Strides,
        n: usize,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.strided_get("iget", dest, src.into(), strides, 1, n, pe)
    }

    /// Copies `n` blocks of `block` elements, whose starts lie apart (OpenSHMEM 1.6, `shmem_ibput`).
    ///
    /// # Errors
    /// As [`iput`](Self::iput); a stride below `block`.
    pub fn ibput<'s, T: Pod>(
        &self,
        dest: impl Into<SymSlice<'s, T>>,
        src: &[T],
        strides: Strides,
        block: usize,
        n: usize,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.strided_put("ibput", dest.into(), src, strides, block, n, pe)
    }

    /// The way back (OpenSHMEM 1.6, `shmem_ibget`).
    ///
    /// # Errors
    /// As [`ibput`](Self::ibput).
    pub fn ibget<'s, T: Pod>(
        &self,
        dest: &mut [T],
        src: impl Into<SymSlice<'s, T>>,
        strides: Strides,
        block: usize,
        n: usize,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.strided_get("ibget", dest, src.into(), strides, block, n, pe)
    }

    #[allow(clippy::too_many_arguments)] // the routine's own
    fn strided_put<T: Pod>(
        &self,
        what: &'static str,
        dest: SymSlice<'_, T>,
        src: &[T],
        strides: Strides,
        block: usize,
        n: usize,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let sides = (dest.len(), src.len());
        let pattern = pattern::<T>(what, strides, block, n, sides)?;
        let at = self.place(&dest, pe)?;
        if pattern.count == 0 || pattern.block == 0 {
            return Ok(());
        }
        if self.world.host_memory() {
            // SAFETY: both sides hold what `pattern` reaches; the source is host memory that no heap contains, or does not overlap by the
            // contract of `World::as_slice`.
            unsafe { run(at as *mut u8, src.as_ptr().cast(), pattern) };
            return Ok(());
        }
        let bytes: &[u8] = bytemuck::cast_slice(src);
        for i in 0..n {
            let (to, from) = (
                i * strides.dest * size_of::<T>(),
                i * strides.src * size_of::<T>(),
            );
            let piece = &bytes[from..from + block * size_of::<T>()];
            // SAFETY: as above.
            unsafe { self.world.store_bytes(at + to as u64, piece) }?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // the routine's own
    fn strided_get<T: Pod>(
        &self,
        what: &'static str,
        dest: &mut [T],
        src: SymSlice<'_, T>,
        strides: Strides,
        block: usize,
        n: usize,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        let sides = (dest.len(), src.len());
        let pattern = pattern::<T>(what, strides, block, n, sides)?;
        let at = self.place(&src, pe)?;
        if pattern.count == 0 || pattern.block == 0 {
            return Ok(());
        }
        if self.world.host_memory() {
            // SAFETY: as in `strided_put`.
            unsafe { run(dest.as_mut_ptr().cast(), at as *const u8, pattern) };
            return Ok(());
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(dest);
        for i in 0..n {
            let (to, from) = (
                i * strides.dest * size_of::<T>(),
                i * strides.src * size_of::<T>(),
            );
            let piece = &mut bytes[to..to + block * size_of::<T>()];
            // SAFETY: as above.
            unsafe { self.world.load_bytes(piece, at + from as u64) }?;
        }
        Ok(())
    }

    /// Orders: what this PE put, and its atomics and signals, before it are seen on each PE before those after it (OpenSHMEM 1.6, `shmem_fence`).
    ///
    /// The stores before it are ordered before the stores after it (a release fence); that suffices, as every transfer is a store that was made when
    /// its call returned.
    #[inline]
    pub fn fence(&self) {
        crate::shm::order::store_fence();
    }

    /// Completes: what this PE did before it is done, and visible to every PE; what it reads later is at least as new (OpenSHMEM 1.6, `shmem_quiet`).
    /// It is about the host's operations; what kernels left open is [`World::quiet`]'s.
    #[inline]
    pub fn quiet(&self) {
        crate::shm::order::full_fence();
    }

    /// [`quiet`](Self::quiet) toward some PEs (OpenSHMEM 1.6, `shmem_pe_quiet`).
    ///
    /// # Errors
    /// PEs outside the context's team.
    pub fn pe_quiet(&self, pes: &[impl PeNumber]) -> Result<(), Error> {
        for pe in pes {
            self.number(*pe)?;
        }
        if !pes.is_empty() {
            self.quiet();
        }
        Ok(())
    }
}

pub(super) fn same(what: &'static str, dest: usize, src: usize) -> Result<(), ShmemError> {
    if dest == src {
        Ok(())
    } else {
        Err(ShmemError::Length { what, dest, src })
    }
}

/// The pattern, if it stays inside both sides.
fn pattern<T>(
    what: &'static str,
    strides: Strides,
    block: usize,
    n: usize,
    (dest, src): (usize, usize),
) -> Result<Pattern, Error> {
    for stride in [strides.dest, strides.src] {
        if stride < block.max(1) {
            return Err(ShmemError::Stride {
                what,
                stride,
                block,
            }
            .into());
        }
    }
    for (stride, len) in [(strides.dest, dest), (strides.src, src)] {
        let last = n.checked_sub(1).map(|steps| steps.saturating_mul(stride));
        if last.is_some_and(|last| last.saturating_add(block) > len) {
            return Err(crate::heap::HeapError::Range {
                start: last.unwrap_or(0),
                count: block,
                len,
            }
            .into());
        }
    }
    Ok(Pattern {
        dst: strides.dest as isize,
        sst: strides.src as isize,
        block,
        count: n,
        bytes: size_of::<T>(),
    })
}
