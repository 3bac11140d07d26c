//! One launch of a kernel: its blocks, where they meet, how it ends.
//!
//! The stream's worker executes a launch ([`Launch::execute`]): it runs block 0 itself, helps with further blocks, and waits for the rest. The first
//! fault stops all blocks, as an exception does on hardware. A launch over its time limit is asked to leave (`watchdog.rs`); one that does not is
//! lost: its stream goes on with an error, and its threads, cores and module stay as they are. Called by the stream workers and by `block.rs`.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use npushmem_ffi::acl;

use crate::abi::npusim_counters;
use crate::block;
use crate::device::Device;
use crate::error::{fail, Fail, Outcome};
use crate::hooks::{self, BlockCounters};
use crate::module::Function;
use crate::time::{self, Meetings};
use crate::watchdog;

/// How long the worker and meeting blocks look before they sleep.
const SPIN: Duration = Duration::from_micros(10);
/// How often sleepers look whether they were asked to stop.
const LOOK: Duration = Duration::from_millis(5);
/// Blocks get this long to leave by themselves before signals are sent.
const LEAVE_BY_ITSELF: Duration = Duration::from_millis(50);
/// Blocks that are left after so long are lost.
const LEAVE_AT_ALL: Duration = Duration::from_secs(2);

/// What a block does, for diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// It has no core yet.
    Waiting = 0,
    Running = 1,
    /// It asks again and again for something that has not happened.
    Polling = 2,
    /// It waits in SyncAll.
    Meeting = 3,
    Ended = 4,
}

/// How a meeting of all blocks ended for one of them.
pub(crate) enum Meeting {
    Done,
    Stopped,
    Impossible(String),
}

/// One launch.
pub(crate) struct Launch {
    /// Counts launches of this process.
    pub(crate) number: u64,
    pub(crate) function: Arc<Function>,
    pub(crate) device: Arc<Device>,
    pub(crate) blocks: u32,
    pub(crate) batch: bool,
    /// Where the blocks' clocks meet, when time is modelled; and the time at which the launch began.
    pub(crate) meetings: Meetings,
    pub(crate) begin: u64,
    /// Next block to start; written under the scheduler's lock.
    pub(crate) next: AtomicU32,
    /// Non-zero: blocks leave as soon as they look.
    pub(crate) stop: AtomicU32,
    pub(crate) status: Box<[AtomicU8]>,
    limit: Duration,
    /// The packed arguments, aligned to 8 bytes.
    args: Box<[u64]>,
    threads: Box<[AtomicI32]>,
    ended: AtomicU32,
    lost: AtomicBool,
    inner: Mutex<Inner>,
    changed: Condvar,
    met: AtomicU64,
    begun: OnceLock<Instant>,
}

#[derive(Default)]
struct Inner {
    counters: BlockCounters,
    /// The first thing that went wrong.
    fail: Option<Fail>,
    granted: bool,
    stopped: Option<Instant>,
    arrived: u32,
    gone: u32,
}

/// What a launch is made from.
pub(crate) struct Order {
    pub(crate) function: Arc<Function>,
    pub(crate) device: Arc<Device>,
    pub(crate) blocks: u32,
    pub(crate) batch: bool,
    pub(crate) limit: Duration,
    pub(crate) args: Vec<u8>,
    /// Offsets of an address and of the data after the arguments that it is to point to.
    pub(crate) places: Vec<(u32, u32)>,
}

impl Launch {
    pub(crate) fn new(order: Order) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let mut args = vec![0u64; order.args.len().div_ceil(8).max(1)].into_boxed_slice();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut args);
        bytes[..order.args.len()].copy_from_slice(&order.args);
        let base = bytes.as_ptr() as u64;
        for (at, data) in order.places {
            // The caller has checked both offsets.
            bytes[at as usize..at as usize + 8]
                .copy_from_slice(&(base + u64::from(data)).to_ne_bytes());
        }
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            function: order.function,
            device: order.device,
            blocks: order.blocks,
            batch: order.batch,
            meetings: Meetings::default(),
            begin: time::now(),
            next: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            status: (0..order.blocks)
                .map(|_| AtomicU8::new(Status::Waiting as u8))
                .collect(),
            limit: order.limit,
            args,
            threads: (0..order.blocks).map(|_| AtomicI32::new(0)).collect(),
            ended: AtomicU32::new(0),
            lost: AtomicBool::new(false),
            inner: Mutex::default(),
            changed: Condvar::new(),
            met: AtomicU64::new(0),
            begun: OnceLock::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn args(&self) -> *const u64 {
        self.args.as_ptr()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    fn all_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) >= self.blocks
    }

    pub(crate) fn set_status(&self, index: u32, status: Status) {
        block::mark(self, index, status);
    }

    /// Runs the launch to its end. Called by the worker of its stream.
    pub(crate) fn execute(self: &Arc<Self>) -> Outcome {
        if self.device.scheduler.usable() < if self.batch { self.blocks } else { 1 } {
            return Err(fail(
                acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
                format!(
                    "kernel {}: too many cores of device {} are held by kernels that never ended; start the process again",
                    self.function.name, self.device.id
                ),
            ));
        }
        watchdog::watch(self);
        let granted = self.device.scheduler.submit(self) || self.wait_for_core();
        if granted {
            let mut index = Some(0);
            while let Some(block) = index {
                block::run(self, block);
                index = self
                    .device
                    .scheduler
                    .release(Some(self))
                    .map(|(_, block)| block);
            }
        }
        self.wait_for_blocks();
        watchdog::forget(self);
        let (result, counters) = {
            let inner = self.inner();
            (inner.fail.clone(), inner.counters)
        };
        hooks::finished(&self.function.name, u64::from(self.blocks), &counters);
        result.map_or(Ok(()), Err)
    }

    /// Waits until block 0 got a core; false when the launch was stopped first.
    fn wait_for_core(&self) -> bool {
        let mut inner = self.inner();
        while !inner.granted {
            if self.is_stopped() {
                drop(inner);
                self.device.scheduler.withdraw(self);
                // The core may have come in between; then block 0 runs, sees the stop, and gives it back.
                return self.inner().granted;
            }
            (inner, _) = self
                .changed
                .wait_timeout(inner, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    fn wait_for_blocks(&self) {
        if self.all_ended() || spin(|| self.all_ended()) {
            return;
        }
        let mut inner = self.inner();
        while !self.all_ended() && !self.is_lost() {
            (inner, _) = self
                .changed
                .wait_timeout(inner, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Block 0 has got a core: tells the worker.
    pub(crate) fn grant(&self) {
        self.inner().granted = true;
        self.changed.notify_all();
    }

    pub(crate) fn block_begins(&self, index: u32) {
        self.threads[index as usize].store(block::thread_id(), Ordering::Release);
        self.set_status(index, Status::Running);
        self.begun.get_or_init(Instant::now);
    }

    /// A block has ended; the first that failed stops the others.
    pub(crate) fn block_ended(
        &self,
        index: u32,
        counters: Option<&npusim_counters>,
        failed: Option<Fail>,
    ) {
        self.set_status(index, Status::Ended);
        let mut inner = self.inner();
        let was_running = self.threads[index as usize].swap(0, Ordering::AcqRel) != 0;
        if let Some(counters) = counters {
            inner.counters.add(counters);
        }
        if let Some(failed) = failed {
            self.stop_with(&mut inner, failed);
        }
        inner.gone += 1;
        let others_meet = inner.arrived > 0;
        if was_running && self.is_lost() {
            self.device.scheduler.regain();
        }
        drop(inner);
        let ended = self.ended.fetch_add(1, Ordering::AcqRel) + 1;
        if ended >= self.blocks || others_meet {
            self.changed.notify_all();
        }
    }

    /// Blocks that have not started never will. Called under the scheduler's lock.
    pub(crate) fn drop_unstarted(&self) {
        let from = self.next.swap(self.blocks, Ordering::Relaxed);
        if from < self.blocks {
            let ended =
                self.ended.fetch_add(self.blocks - from, Ordering::AcqRel) + (self.blocks - from);
            if ended >= self.blocks {
                // The lock orders the notification after the look of whoever waits.
                drop(self.inner());
                self.changed.notify_all();
            }
        }
    }

    fn stop_with(&self, inner: &mut Inner, why: Fail) {
        inner.fail.get_or_insert(why);
        inner.stopped.get_or_insert_with(Instant::now);
        self.stop.store(1, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Asks all blocks to leave; the launch ends with `why` unless it has failed already.
    pub(crate) fn request_stop(&self, why: Fail) {
        self.stop_with(&mut self.inner(), why);
    }

    /// Ends a launch that is over its time, and looks after one that was asked to leave.
    pub(crate) fn look_after(&self, now: Instant) {
        let stopped = self.inner().stopped;
        match (self.begun.get(), stopped) {
            (Some(begun), None) if now.saturating_duration_since(*begun) > self.limit => {
                let text = format!(
                    "{} ran longer than its limit of {:?} and was stopped",
                    self.describe(),
                    self.limit
                );
                self.request_stop(fail(acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT, text));
            }
            (_, Some(stopped)) if !self.is_lost() => {
                let waited = now.saturating_duration_since(stopped);
                if waited > LEAVE_AT_ALL {
                    self.lose();
                } else if waited > LEAVE_BY_ITSELF {
                    for thread in &self.threads {
                        match thread.load(Ordering::Acquire) {
                            0 => {}
                            id => block::signal(id),
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn lose(&self) {
        let inner = self.inner();
        let left = self
            .threads
            .iter()
            .filter(|thread| thread.load(Ordering::Acquire) != 0)
            .count() as u32;
        if left == 0 {
            return;
        }
        self.device.scheduler.lose(left);
        self.lost.store(true, Ordering::Release);
        let text = format!(
            "kernel {}: {left} block(s) did not leave when asked; their threads and cores are lost until the process ends",
            self.function.name
        );
        drop(inner);
        self.changed.notify_all();
        hooks::diagnose(text);
    }

    /// Why the launch failed, if it did.
    pub(crate) fn failure(&self) -> Option<Fail> {
        self.inner().fail.clone()
    }

    /// Meets all blocks of the launch.
    pub(crate) fn meet(&self) -> Meeting {
        let cores = self.device.scheduler.cores;
        if self.blocks > cores {
            return Meeting::Impossible(format!(
                "SyncAll of {} blocks on {cores} cores can never end: blocks beyond the cores start only when others have ended; launch at most {cores}",
                self.blocks
            ));
        }
        if self.blocks == 1 {
            return Meeting::Done;
        }
        let round = self.met.load(Ordering::Acquire);
        let mut inner = self.inner();
        inner.arrived += 1;
        if inner.arrived == self.blocks {
            inner.arrived = 0;
            self.met.store(round + 1, Ordering::Release);
            drop(inner);
            self.changed.notify_all();
            return Meeting::Done;
        }
        drop(inner);
        if spin(|| self.met.load(Ordering::Acquire) != round) {
            return Meeting::Done;
        }
        let mut inner = self.inner();
        while self.met.load(Ordering::Acquire) == round {
            if self.is_stopped() {
                return Meeting::Stopped;
            }
            if inner.gone > 0 && inner.arrived + inner.gone >= self.blocks {
                return Meeting::Impossible(format!(
                    "SyncAll can never end: {} block(s) of {} ended without it; all blocks must call it equally often",
                    inner.gone, self.blocks
                ));
            }
            (inner, _) = self
                .changed
                .wait_timeout(inner, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Meeting::Done
    }

    /// What the launch does now, in words.
    pub(crate) fn describe(&self) -> String {
        let mut counts = [0u32; 5];
        for status in &self.status {
            counts[usize::from(status.load(Ordering::Relaxed)).min(4)] += 1;
        }
        let [waiting, running, polling, meeting, ended] = counts;
        let cores = self.device.scheduler.cores;
        let mut parts = Vec::new();
        for (count, what) in [
            (ended, "ended"),
            (running, "running"),
            (polling, "polling"),
            (meeting, "waiting in SyncAll"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        if waiting > 0 {
            parts.push(if polling + meeting + running >= cores {
                format!(
                    "{waiting} never started, because each of the {cores} cores is held by a block that has not ended: blocks that wait for one another must not be more than the cores"
                )
            } else {
                format!("{waiting} not started yet")
            });
        }
        format!(
            "kernel {} with {} block(s) ({})",
            self.function.name,
            self.blocks,
            parts.join(", ")
        )
    }
}

/// Looks for a short time whether something has happened.
pub(crate) fn spin(done: impl Fn() -> bool) -> bool {
    /// Looks between two glances at the clock.
    const LOOKS: u32 = 32;
    let begin = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if begin.elapsed() > SPIN {
            return false;
        }
    }
}
