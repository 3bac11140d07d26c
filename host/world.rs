//! The job as one PE sees it: init, the symmetric heap, host-side transfers, the device, kernels, finalize.
//!
//! What it is not: no part of a kernel's transfer. Parts: bootstrap/ (who and where), runtime/ (devices), heap/, transport/ (queue pairs),
//! run.rs (launch and wait).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use npushmem_ffi::acl;

use crate::bootstrap::identity;
use crate::bootstrap::wire::Label;
use crate::bootstrap::Bootstrap;
use crate::config::Config;
use crate::error::Error;
use crate::faults::DeviceError;
use crate::heap::{Heap, HeapError};
use crate::launch::{Args, Function, Module};
use crate::memory;
use crate::object::{KernelObject, Target};
use crate::openshmem::HostSide;
use crate::run::{Claims, Runner};
use crate::runtime::owners::{Device, Event};
use crate::runtime::{self, Kind, LaunchCounters, LaunchMode, RuntimeError, Series};
use crate::sym::SymBuf;
use crate::transport::{Site, Transport};

/// One PE's place in the job. Made by [`World::init`] on every PE, ended by [`World::finalize`].
///
/// Collective calls must be made by all PEs in the same order: `init`, `barrier_all`, `exchange`, `enable_device`, `recover`, `finalize`;
/// and `alloc` and the dropping of buffers, which do not communicate but keep the heap symmetric. Every wait has a deadline.
///
/// A `World` may be shared between threads; calls that concern the device run one at a time.
pub struct World {
    pub(crate) config: Config,
    pub(crate) bootstrap: Bootstrap,
    inner: Mutex<Inner>,
    /// What operations between hosts need (openshmem/).
    pub(crate) host: HostSide,
    pub(crate) heap: Heap,
    series: Series,
    vector_cores: u32,
    pub(crate) device: Arc<Device>,
    ended: bool,
}

/// What launches and set-up change. The order of the fields is the order of dropping.
struct Inner {
    runner: Runner,
    transport: Option<Transport>,
    /// The kernel of [`World::quiet`], once it was needed.
    quiet: Option<Function>,
    /// Other kernels of the library itself, by name, once they were needed.
    own: HashMap<&'static str, Function>,
}

/// What the comm cores of this PE counted since `enable_device` or the last [`World::reset_stats`] (device/abi.h, `shmem_core`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Work requests that carry user data or a user atomic.
    pub data_requests: u64,
    /// Work requests of barriers, syncs, signals, flushes.
    pub sync_requests: u64,
    /// Send doorbells.
    pub sq_doorbells: u64,
    /// Completion doorbells.
    pub cq_doorbells: u64,
    /// Copies into send rings.
    pub ring_copies: u64,
    /// Polls that found a completion.
    pub polls: u64,
    /// Payload bytes of work requests.
    pub roce_bytes: u64,
    /// Payload bytes through mapped addresses.
    pub mapped_bytes: u64,
}

impl World {
    /// Joins the job: reads the environment, meets the other PEs, takes a device, makes the symmetric heap and maps the peers'.
    ///
    /// Ends at the deadline `NPUSHMEM_JOIN_TIMEOUT` when PEs are missing (OpenSHMEM 1.6, 9.1 `shmem_init`; the deadline is ours).
    ///
    /// # Errors
    /// Settings that are not accepted, missing PEs (listed), no runtime or device, no memory.
    pub fn init() -> Result<World, Error> {
        World::init_with(Config::from_env()?)
    }

    /// [`World::init`] with settings of one's own.
    ///
    /// # Errors
    /// As [`World::init`].
    pub fn init_with(config: Config) -> Result<World, Error> {
        let who = identity::find(&config, |name| std::env::var(name).ok())?;
        tracing::debug!("PE {} of {} ({})", who.pe, who.n_pes, who.launcher);
        let bootstrap = Bootstrap::join(who, &config)?;
        // From here on the others learn why this PE fails: dropping the client tells them, and here the reason is known.
        let mut pending = Pending(Some(bootstrap));
        let result = pending.with(|bootstrap| World::start(&config, bootstrap));
        let (heap, series, vector_cores, device, runner, host) = result?;
        let Some(bootstrap) = pending.0.take() else {
            return Err(Error::Ended("init was interrupted".into()));
        };
        let inner = Mutex::new(Inner {
            runner,
            transport: None,
            quiet: None,
            own: HashMap::new(),
        });
        Ok(World {
            config,
            bootstrap,
            inner,
            host,
            heap,
            series,
            vector_cores,
            device,
            ended: false,
        })
    }

    #[allow(clippy::type_complexity)] // the parts of a World, once
    fn start(
        config: &Config,
        bootstrap: &Bootstrap,
    ) -> Result<(Heap, Series, u32, Arc<Device>, Runner, HostSide), Error> {
        let api = runtime::open(config.runtime)?;
        let count = api.device_count().map_err(Error::acl("counting devices"))?;
        if count == 0 {
            return Err(RuntimeError::NoDevice.into());
        }
        let number = config
            .device
            .unwrap_or(bootstrap.identity().local_rank % count);
        if number >= count {
            return Err(RuntimeError::Device {
                device: number,
                count,
            }
            .into());
        }
        let device = Arc::new(Device::open(&api, number).map_err(Error::acl("taking the device"))?);
        let series = Series::of(&api.soc_name())?;
        let cores = api
            .device_info(number, acl::ACL_DEV_ATTR_VECTOR_CORE_NUM)
            .map_err(Error::acl("asking for the number of vector cores"))?;
        let vector_cores = u32::try_from(cores)
            .unwrap_or(0)
            .clamp(1, crate::config::MAX_CORES as u32);
        let heap = Heap::create(&device, bootstrap, config, series, vector_cores)?;
        let runner = Runner::new(&device)?;
        let host = HostSide::new(bootstrap, &heap, config, api.kind())?;
        Ok((heap, series, vector_cores, device, runner, host))
    }

    /// The heap of PE `pe` as mapped into this process: first address and bytes, the library's own area included; `None` when it is not
    /// mapped, or `pe` is outside the job. What offset 0 of a [`SymBuf`] counts from.
    pub fn heap_of(&self, pe: u32) -> Option<(u64, u64)> {
        let peer = self.heap.peers().get(pe as usize)?;
        (peer.mapped != 0).then_some((peer.mapped, self.heap.size()))
    }

    /// Offsets in every PE's heap of the area of collectives between hosts; `None` where host code cannot touch the heap. For the C API.
    #[doc(hidden)]
    pub fn shm_area(&self) -> Option<std::ops::Range<u64>> {
        Some(self.heap.shm_area()).filter(|area| !area.is_empty())
    }

    /// Has `watcher` called once, from a thread of the library, when a PE dies or ends with an error: with its number (`None`: the job's
    /// store went away) and the reason. At once, if that has happened already. Never called in a job of one PE.
    pub fn watch_death(&self, watcher: impl FnOnce(Option<u32>, &str) + Send + 'static) {
        self.host.leave_exit_to_others();
        self.bootstrap
            .watch(Box::new(move |death| watcher(death.pe, &death.reason)));
    }

    /// Tells the other PEs that this one ends, and why, without waiting for anybody. The process should end next.
    pub fn abort(&self, reason: &str) {
        self.bootstrap.abort(reason);
    }

    /// Leaves the job in peace, without meeting the others and without giving anything back: for a process that is about to end, and whose
    /// thread-local data may be gone already. The caller has met the others by other means.
    pub fn depart(mut self) {
        self.ended = true;
        self.bootstrap.leave(None);
        std::mem::forget(self);
    }

    /// Number of this PE (OpenSHMEM 1.6, 9.1 `shmem_my_pe`).
    pub fn my_pe(&self) -> u32 {
        self.bootstrap.identity().pe
    }

    /// PEs of the job (OpenSHMEM 1.6, 9.1 `shmem_n_pes`).
    pub fn n_pes(&self) -> u32 {
        self.bootstrap.identity().n_pes
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the emulated NPU runs the kernels.
    pub fn is_sim(&self) -> bool {
        self.device.api().kind() == Kind::Sim
    }

    /// The SoC's name, such as `Ascend910B1`.
    pub fn soc_name(&self) -> String {
        self.device.api().soc_name()
    }

    /// Vector cores of the device: the most blocks that run at once.
    pub fn vector_cores(&self) -> u32 {
        self.vector_cores
    }

    /// The device's number.
    pub fn device(&self) -> u32 {
        self.device.number() as u32
    }

    /// Peers, this PE included, whose heaps are mapped here.
    pub fn mapped_pes(&self) -> Vec<u32> {
        (0..)
            .zip(self.heap.peers())
            .filter(|(_, peer)| peer.mapped != 0)
            .map(|(pe, _)| pe)
            .collect()
    }

    /// Takes `n` elements of the symmetric heap, at a multiple of 64 bytes. No communication: all PEs must call it alike, in the same
    /// order. The content is whatever was there (OpenSHMEM 1.6, 9.3 `shmem_malloc`; the barrier that the standard implies is the
    /// caller's: [`World::barrier_all`]).
    ///
    /// # Errors
    /// No room: asked, free, largest block and the setting to raise.
    pub fn alloc<T: Pod>(&self, n: usize) -> Result<SymBuf<T>, Error> {
        self.alloc_aligned(n, 1)
    }

    /// [`World::alloc`] at a multiple of `alignment` bytes (rounded up to a power of two, at least 64).
    ///
    /// # Errors
    /// As [`World::alloc`].
    pub fn alloc_aligned<T: Pod>(&self, n: usize, alignment: u64) -> Result<SymBuf<T>, Error> {
        let size = size_of::<T>();
        let bytes = n
            .checked_mul(size)
            .ok_or(HeapError::Overflow { elements: n, size })?;
        if bytes == 0 {
            return Ok(SymBuf::empty());
        }
        let alignment = alignment
            .max(align_of::<T>() as u64)
            .checked_next_power_of_two()
            .unwrap_or(u64::MAX / 2 + 1);
        let (offset, block) = self.heap.allocate(bytes as u64, alignment)?;
        Ok(SymBuf::new(
            self.heap.base(),
            offset,
            n,
            block,
            self.heap.allocator(),
        ))
    }

    /// [`World::alloc`], zeroed on this PE.
    ///
    /// # Errors
    /// As [`World::alloc`].
    pub fn alloc_zeroed<T: Pod>(&self, n: usize) -> Result<SymBuf<T>, Error> {
        let buffer = self.alloc(n)?;
        if !buffer.is_empty() {
            self.bind()?;
            self.device
                .api()
                .memset(buffer.addr(), 0, buffer.bytes())
                .map_err(Error::acl("zeroing a buffer"))?;
        }
        Ok(buffer)
    }

    /// Bytes of this PE's symmetric heap, as `SHMEM_SYMMETRIC_SIZE` says; a percentage comes out here.
    pub fn heap_size(&self) -> u64 {
        self.heap.asked()
    }

    /// Bytes of the symmetric heap that are free.
    pub fn heap_free(&self) -> u64 {
        self.heap.free_bytes()
    }

    /// Copies `data` to this PE's own elements from `start`.
    ///
    /// # Errors
    /// Elements outside the buffer, or the runtime's.
    pub fn write<T: Pod>(&self, buffer: &SymBuf<T>, start: usize, data: &[T]) -> Result<(), Error> {
        self.put(buffer, start, data, self.my_pe())
    }

    /// Copies this PE's own elements from `start`.
    ///
    /// # Errors
    /// As [`World::write`].
    pub fn read<T: Pod>(
        &self,
        buffer: &SymBuf<T>,
        start: usize,
        data: &mut [T],
    ) -> Result<(), Error> {
        self.get(buffer, start, data, self.my_pe())
    }

    /// All of this PE's own elements.
    ///
    /// # Errors
    /// As [`World::write`].
    pub fn to_vec<T: Pod>(&self, buffer: &SymBuf<T>) -> Result<Vec<T>, Error> {
        let mut data = vec![T::zeroed(); buffer.len()];
        self.read(buffer, 0, &mut data)?;
        Ok(data)
    }

    /// Copies `data` to PE `pe`'s elements from `start`, by the host. Complete and visible when it returns (OpenSHMEM 1.6, 9.5
    /// `shmem_put`, stronger: remote completion).
    ///
    /// # Errors
    /// As [`World::write`]; a PE outside the job; a PE whose heap is not mapped here.
    pub fn put<T: Pod>(
        &self,
        buffer: &SymBuf<T>,
        start: usize,
        data: &[T],
        pe: u32,
    ) -> Result<(), Error> {
        let at = self.locate(&buffer.part(start, data.len())?, pe)?;
        let bytes: &[u8] = bytemuck::cast_slice(data);
        if bytes.is_empty() {
            return Ok(());
        }
        if self.host_memory() {
            // SAFETY: the runtime says that host code may touch device memory; the range is inside a heap that this World keeps mapped.
            unsafe { memory::store(at, bytes) };
            return Ok(());
        }
        self.bind()?;
        self.device
            .api()
            .write(at, bytes)
            .map_err(Error::acl("copying to the symmetric heap"))
    }

    /// Copies PE `pe`'s elements from `start`, by the host (OpenSHMEM 1.6, 9.5 `shmem_get`).
    ///
    /// # Errors
    /// As [`World::put`].
    pub fn get<T: Pod>(
        &self,
        buffer: &SymBuf<T>,
        start: usize,
        data: &mut [T],
        pe: u32,
    ) -> Result<(), Error> {
        let at = self.locate(&buffer.part(start, data.len())?, pe)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        if bytes.is_empty() {
            return Ok(());
        }
        if self.host_memory() {
            // SAFETY: as in `put`.
            unsafe { memory::load(bytes, at) };
            return Ok(());
        }
        self.bind()?;
        self.device
            .api()
            .read(bytes, at)
            .map_err(Error::acl("copying from the symmetric heap"))
    }

    /// A PE's heap as mapped here.
    pub(crate) fn reach(&self, pe: u32) -> Result<u64, HeapError> {
        match self.heap.peers().get(pe as usize) {
            None => Err(HeapError::Pe {
                pe,
                n_pes: self.n_pes(),
            }),
            Some(peer) if peer.mapped == 0 => Err(HeapError::NotMapped {
                pe,
                reason: peer.reason.clone(),
            }),
            Some(peer) => Ok(peer.mapped),
        }
    }

    /// Returns when all PEs have called it; what their hosts, and their kernels that have ended, put before is visible (OpenSHMEM 1.6,
    /// 9.11 `shmem_barrier_all`). It does not wait for running kernels: [`World::synchronize`] does.
    ///
    /// # Errors
    /// The deadline `NPUSHMEM_TIMEOUT` passed (the missing PEs are listed), a PE died or left, or the heap's history differs between PEs.
    pub fn barrier_all(&self) -> Result<(), Error> {
        self.quiet()?;
        let (calls, history) = self.heap.history();
        let mut mine = [0u8; 16];
        mine[..8].copy_from_slice(&calls.to_le_bytes());
        mine[8..].copy_from_slice(&history.to_le_bytes());
        let all = self.bootstrap.gather(Label::Barrier, &mine)?;
        if !self.config.check_symmetry {
            return Ok(());
        }
        for (pe, theirs) in all.iter().enumerate() {
            if theirs[..] != mine {
                let word: [u8; 8] = theirs
                    .get(..8)
                    .and_then(|b| b.try_into().ok())
                    .unwrap_or_default();
                let theirs = u64::from_le_bytes(word);
                return Err(HeapError::Asymmetric {
                    me: self.my_pe(),
                    pe: pe as u32,
                    mine: calls,
                    theirs,
                }
                .into());
            }
        }
        Ok(())
    }

    /// All PEs' bytes, in the order of the PEs. Collective; for set-up, not for bulk data (at most 64 MiB a PE).
    ///
    /// # Errors
    /// As [`World::barrier_all`].
    pub fn exchange(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.bootstrap.gather(Label::Exchange, bytes)?)
    }

    /// Brings the NIC and the queue pairs up, so that kernels can communicate: `cores` comm cores a PE, each with its own queue pair to
    /// every PE. Collective, once.
    ///
    /// # Errors
    /// PEs that call it differently, too many cores, too little memory (`NPUSHMEM_QP_BUDGET`), a network that does not connect.
    pub fn enable_device(&self, cores: u32) -> Result<(), Error> {
        self.bind()?;
        let mut inner = self.lock();
        if let Some(transport) = &inner.transport {
            return Err(Error::AlreadyEnabled {
                cores: transport.cores(),
            });
        }
        let transport = Transport::create(&self.site(), cores)?;
        self.host
            .enable(transport.core_domain(), transport.atomics());
        inner.transport = Some(transport);
        Ok(())
    }

    /// Comm cores a PE; `None` before [`World::enable_device`].
    pub fn comm_cores(&self) -> Option<u32> {
        self.lock().transport.as_ref().map(Transport::cores)
    }

    /// Whether kernels may use atomics: false where a NIC refuses them; `None` before [`World::enable_device`].
    pub fn atomics(&self) -> Option<bool> {
        self.lock().transport.as_ref().map(Transport::atomics)
    }

    /// Whether the cores, not the NICs, execute the job's atomics; `None` before [`World::enable_device`].
    pub fn core_atomics(&self) -> Option<bool> {
        self.lock().transport.as_ref().map(Transport::core_domain)
    }

    /// Loads a kernel object: the one for this device.
    ///
    /// # Errors
    /// The object has no code for this device, or the runtime refuses it.
    pub fn load(&self, object: &KernelObject) -> Result<Module, Error> {
        self.bind()?;
        let wanted = Target {
            sim: self.is_sim(),
            npu_arch: self.series.npu_arch(),
        };
        match object.for_target(wanted) {
            Some(bytes) => Module::load(&self.device, object.name, bytes),
            None => {
                let has = object.targets.iter().map(|(target, _)| *target).collect();
                Err(Error::NoTarget {
                    name: object.name,
                    wanted,
                    has,
                })
            }
        }
    }

    /// Launches a kernel on `blocks` vector cores and returns at once. Kernels of one PE run one after the other.
    ///
    /// # Errors
    /// The arguments have a context and the device is not enabled; an earlier error needs [`World::recover`]; the runtime refuses.
    pub fn launch(&self, function: &Function, blocks: u32, args: &Args) -> Result<(), Error> {
        self.bind()?;
        let mut inner = self.lock();
        let context = match (&inner.transport, args.wants_context()) {
            (None, true) => {
                return Err(Error::NotEnabled("a launch whose kernel takes the context"))
            }
            (Some(transport), true) => transport.context(),
            (_, false) => 0,
        };
        let mode = self.launch_mode(blocks);
        inner.runner.launch(function, blocks, args, context, mode)
    }

    /// Waits until the launched kernels have ended, and returns what went wrong on the device: the earliest error record of the cores, or
    /// why the runtime stopped a kernel, or who died meanwhile. Bounded: after `NPUSHMEM_KERNEL_TIMEOUT` the kernel is told to stop.
    ///
    /// # Errors
    /// As above; each names this PE, the operation, the other PE and the cause.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.bind()?;
        let mut inner = self.lock();
        let Inner {
            runner, transport, ..
        } = &mut *inner;
        let result = runner.wait(
            &self.bootstrap,
            transport.as_ref().map(|t| t as _),
            &self.config,
        );
        drop(inner);
        tell_diagnostics(self.device.api().kind());
        result
    }

    /// Completes what kernels that have ended left open: requests without a quiet of their own. After it, and a barrier, everything
    /// that kernels put is visible at its target. [`World::barrier_all`] and [`World::finalize`] begin with it.
    ///
    /// # Errors
    /// As [`World::synchronize`]; it waits for running kernels, if requests were left.
    pub fn quiet(&self) -> Result<(), Error> {
        self.bind()?;
        let mut inner = self.lock();
        let Some(transport) = &inner.transport else {
            return Ok(());
        };
        if inner.runner.failure().is_some() {
            return Ok(());
        }
        let open = transport.left_open()?;
        if open.is_empty() {
            return Ok(());
        }
        if inner.quiet.is_none() {
            inner.quiet = Some(
                self.load(&crate::kernels::PROBE)?
                    .function("shmem_complete")?,
            );
        }
        let Inner {
            runner,
            transport,
            quiet,
            ..
        } = &mut *inner;
        let Some(quiet) = quiet else { return Ok(()) };
        for (context, cores) in open {
            let mode = self.launch_mode(cores);
            runner.launch(quiet, cores, &Args::new().ctx(), context, mode)?;
        }
        runner.wait(
            &self.bootstrap,
            transport.as_ref().map(|t| t as _),
            &self.config,
        )
    }

    /// A point in the stream of kernels whose time is taken: after what was launched so far. See [`Event::since`].
    ///
    /// # Errors
    /// The runtime's.
    pub fn event(&self) -> Result<Event, Error> {
        self.bind()?;
        let event = Event::new(&self.device).map_err(Error::acl("making an event"))?;
        event
            .record(self.lock().runner.stream())
            .map_err(Error::acl("recording an event"))?;
        Ok(event)
    }

    /// Makes all queue pairs anew and forgets errors, after a kernel failed. Collective; needs all PEs alive.
    ///
    /// # Errors
    /// A PE died, a kernel is lost, or the network does not connect.
    pub fn recover(&self) -> Result<(), Error> {
        self.bind()?;
        let mut inner = self.lock();
        let Inner {
            runner, transport, ..
        } = &mut *inner;
        let Some(transport) = transport else {
            return Err(Error::NotEnabled("recover()"));
        };
        if let Err(error) = runner.wait(&self.bootstrap, Some(&*transport), &self.config) {
            tracing::debug!("recover() drops an error: {error}");
        }
        runner.renew(&self.device)?;
        transport.recover(&self.site())
    }

    /// What the comm cores of this PE counted, added up. All zero before [`World::enable_device`].
    ///
    /// # Errors
    /// The runtime's.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.bind()?;
        let inner = self.lock();
        let Some(transport) = &inner.transport else {
            return Ok(Stats::default());
        };
        Ok(transport
            .counters()?
            .iter()
            .fold(Stats::default(), |sum, core| Stats {
                data_requests: sum.data_requests + core.data_requests,
                sync_requests: sum.sync_requests + core.sync_requests,
                sq_doorbells: sum.sq_doorbells + core.sq_doorbells,
                cq_doorbells: sum.cq_doorbells + core.cq_doorbells,
                ring_copies: sum.ring_copies + core.ring_copies,
                polls: sum.polls + core.polls,
                roce_bytes: sum.roce_bytes + core.roce_bytes,
                mapped_bytes: sum.mapped_bytes + core.mapped_bytes,
            }))
    }

    /// Sets what [`World::stats`] tells to zero. Only while no kernel runs.
    ///
    /// # Errors
    /// The runtime's.
    pub fn reset_stats(&self) -> Result<(), Error> {
        self.bind()?;
        match &self.lock().transport {
            Some(transport) => transport.clear_counters(),
            None => Ok(()),
        }
    }

    /// What the emulated NPU counted in the latest kernel that ended; `None` on hardware.
    pub fn sim_counters(&self) -> Option<LaunchCounters> {
        runtime::sim_counters(self.device.api().kind())
    }

    /// What the emulated NPU counted since its start or the last [`World::reset_sim_counters`]; `None` on hardware.
    pub fn sim_totals(&self) -> Option<LaunchCounters> {
        runtime::sim_totals(self.device.api().kind())
    }

    /// Sets the emulated NPU's counters to zero.
    pub fn reset_sim_counters(&self) {
        runtime::reset_sim_counters(self.device.api().kind());
    }

    /// ACL calls that this process has made through the library.
    pub fn acl_calls(&self) -> u64 {
        self.device.api().calls()
    }

    /// ACL calls that this process made while the kernels of the latest [`World::synchronize`] ran: from the launch's return to their end, the
    /// waits themselves apart. 0: the host took no part in what they did.
    pub fn acl_calls_during_kernel(&self) -> u64 {
        self.lock().runner.calls_meanwhile()
    }

    /// Ends the job for this PE: waits for kernels, meets the other PEs (bounded), gives everything back. Buffers, modules and functions
    /// should be dropped before (OpenSHMEM 1.6, 9.1 `shmem_finalize`).
    ///
    /// # Errors
    /// What a kernel still had to tell, PEs that did not come, or what the runtime said while resources were given back.
    pub fn finalize(mut self) -> Result<(), Error> {
        let waited = self.synchronize().and_then(|()| self.quiet());
        let met = match &waited {
            Ok(()) => self
                .bootstrap
                .meet_within(Label::Finalize, self.config.patience())
                .map_err(Error::from),
            Err(_) => Ok(()),
        };
        let reason = waited
            .as_ref()
            .err()
            .or(met.as_ref().err())
            .map(ToString::to_string);
        self.end(reason.as_deref());
        let dropped = self.device.api().clone();
        drop(self);
        tell_diagnostics(dropped.kind());
        waited?;
        met?;
        match dropped.take_dropped() {
            None => Ok(()),
            Some(source) => Err(Error::Acl {
                doing: "giving resources back",
                source,
            }),
        }
    }

    /// Gives queue pairs back, then says goodbye. Idempotent.
    fn end(&mut self, error: Option<&str>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        if let Err(error) = self.device.bind() {
            tracing::warn!("the device cannot be made current: {error}");
        }
        self.host.end();
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if inner.runner.is_lost() {
            // The lost kernel may still touch all of it.
            std::mem::forget(inner.transport.take());
            std::mem::forget(inner.quiet.take());
            std::mem::forget(std::mem::take(&mut inner.own));
            self.heap.leak();
            std::mem::forget(self.device.clone());
        } else {
            inner.transport = None;
            inner.quiet = None;
            inner.own.clear();
        }
        self.bootstrap.leave(error);
    }

    /// Blocks that fit on the device start together, because they may wait for one another.
    pub(crate) fn launch_mode(&self, blocks: u32) -> LaunchMode {
        LaunchMode {
            together: blocks <= self.vector_cores,
            limit_seconds: self.config.kernel_limit(),
        }
    }

    /// Does something with the device's tables.
    pub(crate) fn with_transport<R>(
        &self,
        what: &'static str,
        body: impl FnOnce(&mut Transport, &Site<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.bind()?;
        match &mut self.lock().transport {
            Some(transport) => body(transport, &self.site()),
            None => Err(Error::NotEnabled(what)),
        }
    }

    /// Runs a kernel of the library itself whose last argument is the address of its answer, and gives that. Waits for the kernels that were
    /// launched before.
    pub(crate) fn run_own(
        &self,
        object: &KernelObject,
        kernel: &'static str,
        blocks: u32,
        args: Args,
    ) -> Result<[u64; 2], Error> {
        let _one = self.host.answer.lock();
        let answer = self.heap.base() + self.heap.probe_offset();
        let known = self.lock().own.get(kernel).cloned();
        let function = match known {
            Some(function) => function,
            None => {
                let function = self.load(object)?.function(kernel)?;
                self.lock().own.insert(kernel, function.clone());
                function
            }
        };
        self.launch(&function, blocks, &args.u64(answer))?;
        self.synchronize()?;
        let mut words = [0u64; 2];
        self.device
            .api()
            .read(bytemuck::bytes_of_mut(&mut words), answer)
            .map_err(Error::acl("reading the answer of a kernel"))?;
        Ok(words)
    }

    /// Who has which context.
    pub(crate) fn claims(&self) -> Arc<Claims> {
        self.lock().runner.claims().clone()
    }

    /// What waiting for kernels of another stream needs.
    pub(crate) fn surroundings(&self) -> (&Arc<Device>, &Bootstrap, &Config) {
        (&self.device, &self.bootstrap, &self.config)
    }

    fn site(&self) -> Site<'_> {
        Site {
            device: &self.device,
            bootstrap: &self.bootstrap,
            config: &self.config,
            heap: &self.heap,
            series: self.series,
            vector_cores: self.vector_cores,
        }
    }

    pub(crate) fn bind(&self) -> Result<(), Error> {
        self.device
            .bind()
            .map_err(Error::acl("making the device current in this thread"))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest error that a kernel of this PE recorded, if [`World::synchronize`] returned one.
    pub fn last_device_error(&self) -> Option<DeviceError> {
        self.lock().runner.last_error()
    }
}

/// Prints what the emulated NPU noticed and no call returned, each line once.
fn tell_diagnostics(kind: Kind) {
    for line in runtime::sim_diagnostics(kind) {
        tracing::warn!("emulated NPU: {line}");
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World(PE {} of {})", self.my_pe(), self.n_pes())
    }
}

impl Drop for World {
    /// Without [`World::finalize`] the other PEs are told that this one left in the middle. Never waits for them.
    fn drop(&mut self) {
        if !self.ended {
            let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
            let reason = match inner.runner.failure() {
                Some(error) => format!("it ended without finalize, after this error: {error}"),
                None => "it ended without finalize".to_string(),
            };
            inner.runner.stop_before_drop(&self.config);
            self.end(Some(&reason));
        }
    }
}

/// A bootstrap whose peers learn why init failed.
struct Pending(Option<Bootstrap>);

impl Pending {
    fn with<T>(&mut self, body: impl FnOnce(&Bootstrap) -> Result<T, Error>) -> Result<T, Error> {
        let Some(bootstrap) = &mut self.0 else {
            return Err(Error::Ended("it never began".into()));
        };
        let result = body(bootstrap);
        if let Err(error) = &result {
            bootstrap.leave(Some(&format!("init failed there: {error}")));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_world_and_what_it_gives_may_go_to_other_threads() {
        fn check<T: Send + Sync>() {}
        check::<super::World>();
        check::<crate::Module>();
        check::<crate::Function>();
        check::<crate::SymBuf<f32>>();
        check::<crate::Error>();
    }
}
