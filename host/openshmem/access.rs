//! How host code reaches symmetric memory: where elements are, and moving bytes; and the host's side of a World.
//!
//! What it is not: an interface for programs, but for `ptr`, `as_slice` and `as_mut_slice` ([`World`]). Every operation of this folder goes through
//! here, so that the checks are in one place: that the elements are this World's, and the PE's heap is mapped.
//!
//! Ordering: words of 1, 2, 4 and 8 bytes are single relaxed atomic accesses, longer copies promise nothing about their order; fences, signals, waits
//! and collectives order them.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytemuck::Pod;

use super::error::ShmemError;
use super::pe::PeNumber;
use super::shared::{HostTeam, Shared};
use crate::bootstrap::wire::Label;
use crate::bootstrap::Bootstrap;
use crate::config::Config;
use crate::error::Error;
use crate::heap::{Heap, HeapError};
use crate::memory;
use crate::runtime::{self, Kind};
use crate::shm::slots::PREDEFINED;
use crate::shm::wait::GiveUp;
use crate::sym::{SymBox, SymSlice};
use crate::world::World;

/// Who executes the host's atomics; the numbers are private to [`HostSide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// This CPU.
    Cpu,
    /// A kernel of this PE, in the device's domain.
    Device,
    /// Nobody before the device is enabled.
    None,
    /// The NIC, which executes none.
    Refused,
}

impl Domain {
    const ALL: [Domain; 4] = [Domain::Cpu, Domain::Device, Domain::None, Domain::Refused];

    fn of(number: u8) -> Domain {
        Domain::ALL[usize::from(number) % Domain::ALL.len()]
    }
}

/// What a PE tells the others when it ends the job by `global_exit`, in front of the status.
#[doc(hidden)]
pub const GLOBAL_EXIT: &str = "shmem_global_exit ";

/// The status of a [`GLOBAL_EXIT`] in a PE's last word.
#[doc(hidden)]
pub fn exit_status(reason: &str) -> Option<i32> {
    reason.strip_prefix(GLOBAL_EXIT)?.parse().ok()
}

/// The host's side of a World: what its operations between hosts need.
pub(crate) struct HostSide {
    /// Whether host code can touch device memory.
    memory: bool,
    shared: Option<Arc<Shared>>,
    /// The world team and the shared team.
    groups: Option<[Arc<HostTeam>; PREDEFINED]>,
    patience: Arc<GiveUp>,
    /// This process ends when another PE calls `global_exit`.
    obeys: Arc<AtomicBool>,
    domain: AtomicU8,
    /// Kernels of the library write their answers to one line: one at a time.
    pub(crate) answer: Mutex<()>,
}

impl HostSide {
    /// Collective, the last step of init: every PE says whether it has everybody mapped, for the hosts' collectives need all.
    pub(crate) fn new(
        bootstrap: &Bootstrap,
        heap: &Heap,
        config: &Config,
        kind: Kind,
    ) -> Result<HostSide, Error> {
        let memory = runtime::host_accessible(kind);
        let mapped: Vec<u64> = heap.peers().iter().map(|peer| peer.mapped).collect();
        let area = heap.shm_area();
        let mine = memory && !area.is_empty() && mapped.iter().all(|base| *base != 0);
        let all = bootstrap.gather(Label::Setup, &[u8::from(mine)])?;
        let everybody = all.iter().all(|answer| answer.first() == Some(&1));

        let (limit, dead) = (config.timeout, Arc::new(AtomicBool::new(false)));
        let (died, obeys) = (dead.clone(), Arc::new(AtomicBool::new(true)));
        let patience: Arc<GiveUp> =
            Arc::new(move |waited: Duration| waited >= limit || dead.load(Ordering::Acquire));
        let ends = obeys.clone();
        bootstrap.watch(Box::new(move |death| {
            // First, so that no wait tells of a death before the process ends.
            if let Some(status) = exit_status(&death.reason) {
                if ends.load(Ordering::Acquire) {
                    std::process::exit(status);
                }
            }
            died.store(true, Ordering::Release);
        }));
        let me = bootstrap.identity().pe;
        let shared = everybody.then(|| {
            let compare = config.check_symmetry;
            Shared::new(
                me,
                &mapped,
                heap.size(),
                area.start,
                compare,
                patience.clone(),
            )
        });
        let world: Vec<u32> = (0..bootstrap.identity().n_pes).collect();
        let groups = shared.as_ref().and_then(|shared| {
            let lasting = |slot| shared.lasting(&world, slot);
            Some([lasting(0)?, lasting(1)?])
        });
        let domain = if memory { Domain::Cpu } else { Domain::None };
        Ok(HostSide {
            memory,
            shared,
            groups,
            patience,
            obeys,
            domain: AtomicU8::new(domain as u8),
            answer: Mutex::new(()),
        })
    }

    /// The device is enabled: the atomics are its domain's. `core`: the cores execute them; `works`: the domain executes any.
    pub(crate) fn enable(&self, core: bool, works: bool) {
        let domain = match (core && self.memory, works) {
            (_, false) => Domain::Refused,
            // The emulated cores' atomics are those of this machine's CPUs.
            (true, true) => Domain::Cpu,
            (false, true) => Domain::Device,
        };
        self.domain.store(domain as u8, Ordering::Release);
    }

    /// Nothing touches the heaps any more.
    pub(crate) fn end(&self) {
        if let Some(shared) = &self.shared {
            shared.end();
        }
    }

    /// Somebody else ends this process when a PE calls `global_exit`.
    pub(crate) fn leave_exit_to_others(&self) {
        self.obeys.store(false, Ordering::Release);
    }
}

impl World {
    /// Whether host code can touch symmetric memory.
    #[inline]
    pub(crate) fn host_memory(&self) -> bool {
        self.host.memory
    }

    #[inline]
    pub(crate) fn domain(&self) -> Domain {
        Domain::of(self.host.domain.load(Ordering::Acquire))
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.host.shared.as_ref()
    }

    /// The hosts' side of the world team, and of the shared team where that is all PEs.
    pub(crate) fn lasting_group(&self, slot: usize) -> Option<&Arc<HostTeam>> {
        self.host.groups.as_ref()?.get(slot)
    }

    pub(crate) fn patience(&self) -> Arc<GiveUp> {
        self.host.patience.clone()
    }

    /// The error of a wait that was given up.
    pub(crate) fn gave_up(&self, what: &'static str) -> Error {
        let me = self.my_pe();
        match self.bootstrap.death() {
            Some(death) => ShmemError::Died {
                me,
                what,
                dead: death.pe,
                reason: death.reason,
            },
            None => ShmemError::Timeout {
                me,
                what,
                limit: self.config.timeout,
            },
        }
        .into()
    }

    /// Where PE `pe`'s instance of `elements` is: a mapped address, or one of this PE's device.
    #[inline]
    pub(crate) fn locate<T: Pod>(
        &self,
        elements: &SymSlice<'_, T>,
        pe: u32,
    ) -> Result<u64, HeapError> {
        let base = self.reach(pe)?;
        let mine = Arc::as_ptr(self.heap.allocator()) as usize;
        // An empty buffer belongs to no heap, and nothing of it is touched.
        if elements.heap() != mine && !elements.is_empty() {
            return Err(HeapError::Foreign);
        }
        Ok(base + elements.offset())
    }

    /// Copies `bytes` to `at`.
    ///
    /// # Safety
    /// [`World::locate`] gave `at` for at least so many bytes.
    #[inline]
    pub(crate) unsafe fn store_bytes(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.host.memory {
            // SAFETY: by this function's contract; the runtime says that host code may touch device memory.
            unsafe { memory::put(at, bytes) };
            return Ok(());
        }
        self.bind()?;
        let api = self.device.api();
        api.write(at, bytes)
            .map_err(Error::acl("copying to the symmetric heap"))
    }

    /// Copies from `at`.
    ///
    /// # Safety
    /// As [`World::store_bytes`].
    #[inline]
    pub(crate) unsafe fn load_bytes(&self, bytes: &mut [u8], at: u64) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.host.memory {
            // SAFETY: as in `store_bytes`.
            unsafe { memory::get(bytes, at) };
            return Ok(());
        }
        self.bind()?;
        let api = self.device.api();
        api.read(bytes, at)
            .map_err(Error::acl("copying from the symmetric heap"))
    }

    /// Copies between two located places of `bytes` bytes, which must not overlap.
    pub(crate) fn copy_within(
        &self,
        what: &'static str,
        to: u64,
        from: u64,
        bytes: usize,
    ) -> Result<(), Error> {
        if bytes == 0 || to == from {
            return Ok(());
        }
        let sides = ((to as usize, bytes), (from as usize, bytes));
        super::shared::apart(what, sides.0, sides.1, false)?;
        if self.host.memory {
            // SAFETY: both were located, so are mapped; they do not overlap.
            unsafe { crate::shm::copy::copy(to as *mut u8, from as *const u8, bytes) };
            return Ok(());
        }
        let mut copy = vec![0u8; bytes];
        // SAFETY: both were located.
        unsafe {
            self.load_bytes(&mut copy, from)?;
            self.store_bytes(to, &copy)
        }
    }

    /// Takes one element of the symmetric heap (OpenSHMEM 1.6, `shmem_malloc`), zeroed on this PE (`shmem_calloc`). Symmetric as [`World::alloc`].
    ///
    /// # Errors
    /// As [`World::alloc`].
    pub fn alloc_one<T: Pod>(&self) -> Result<SymBox<T>, Error> {
        Ok(SymBox::new(self.alloc_zeroed(1)?))
    }

    /// Where PE `pe`'s instance is mapped in this process, for loads and stores of the program's own; `None` where host code cannot touch it
    /// (OpenSHMEM 1.6, `shmem_ptr`). Valid as long as the buffer and the World are. Other PEs may use the memory at any time: access it by volatile or
    /// atomic operations, unless the program orders them.
    ///
    /// # Errors
    /// A PE outside the job, a buffer of another World.
    pub fn ptr<'s, T: Pod>(
        &self,
        elements: impl Into<SymSlice<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<Option<NonNull<T>>, Error> {
        let elements = elements.into();
        let pe = pe.resolve(None, self.n_pes())?;
        match self.locate(&elements, pe) {
            Ok(at) if self.host.memory && !elements.is_empty() => Ok(NonNull::new(at as *mut T)),
            Ok(_) | Err(HeapError::NotMapped { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// This PE's own elements, in place.
    ///
    /// # Safety
    /// While the reference lives nobody writes to them: no PE's put, atomic or signal, no collective, no kernel. A barrier before and after such a
    /// phase is the usual way to see to that.
    ///
    /// # Errors
    /// Memory that host code cannot touch; a buffer of another World.
    pub unsafe fn as_slice<'a, T: Pod>(
        &'a self,
        elements: impl Into<SymSlice<'a, T>>,
    ) -> Result<&'a [T], Error> {
        let elements = elements.into();
        match self.ptr(elements, self.my_pe())? {
            // SAFETY: mapped, aligned, any bytes are a `T`; nobody writes, by this function's contract.
            Some(at) => Ok(unsafe { std::slice::from_raw_parts(at.as_ptr(), elements.len()) }),
            None if elements.is_empty() => Ok(&[]),
            None => Err(self.not_shared("access in place")),
        }
    }

    /// This PE's own elements, in place and writable.
    ///
    /// # Safety
    /// While the reference lives nobody else reads or writes them: no PE, kernel or collective, and no other reference of this process.
    ///
    /// # Errors
    /// As [`World::as_slice`].
    #[allow(clippy::mut_from_ref)] // exclusive by the contract
    pub unsafe fn as_mut_slice<'a, T: Pod>(
        &'a self,
        elements: impl Into<SymSlice<'a, T>>,
    ) -> Result<&'a mut [T], Error> {
        let elements = elements.into();
        match self.ptr(elements, self.my_pe())? {
            // SAFETY: mapped, aligned, any bytes are a `T`; exclusive by this function's contract.
            Some(at) => Ok(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), elements.len()) }),
            None if elements.is_empty() => Ok(&mut []),
            None => Err(self.not_shared("access in place")),
        }
    }

    /// Ends the whole job: this process and those of all other PEs end with `status`, wherever they are (OpenSHMEM 1.6, `shmem_global_exit`). A program
    /// that uses [`World::watch_death`] is told instead, and ends by itself.
    pub fn global_exit(&self, status: i32) -> ! {
        self.bootstrap.abort(&format!("{GLOBAL_EXIT}{status}"));
        std::process::exit(status)
    }
}
