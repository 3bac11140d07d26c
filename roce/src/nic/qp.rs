//! A queue pair: the indices that doorbells move, and the engine that walks its rings.
//!
//! [`Qp`] is what several threads see; [`Engine`] is behind its lock, so that each queue pair is processed in order by one thread at a
//! time. The engine does not decide when it runs: [`super::Nic::doorbell`] does in inline mode, [`super::worker`] otherwise.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::chaos::Chaos;
use super::config::Flush;
use super::error::DoorbellError;
use super::execute::Failure;
use super::port::QpWord;
use super::responder::{RegionCache, Responder};
use super::timing::Place;
use super::types::{EventKind, NicCounters, QpInit, QpState};
use super::wire::Wire;
use super::Core;
use crate::cqe::{Cqe, Status, CQE_SIZE};
use crate::ring::{self, Words};
use crate::wqe::{opcode, SendWqe, WQE_SIZE};

/// What doorbells and several threads share. A slot of the NIC's table; reused after destruction. Aligned to a cache line, so that
/// cores that ring different queue pairs do not disturb one another.
#[repr(align(64))]
pub(super) struct Qp {
    /// Its number.
    pub index: usize,
    /// Requests told by doorbells.
    pub announced: AtomicU64,
    /// Requests executed. Written by the engine only, before the completion that lets others know.
    pub executed: AtomicU64,
    /// Completions written. Written by the engine only, as above.
    pub produced: AtomicU64,
    /// Completions told to be consumed.
    pub consumer: AtomicU64,
    /// 0 when there is no queue pair.
    pub sq_depth: AtomicU32,
    pub cq_depth: AtomicU32,
    /// Whether the worker has it on its list.
    pub queued: AtomicBool,
    /// Whether the verbs wire has something of it under way.
    pub watched: AtomicBool,
    pub sq_doorbells: AtomicU64,
    pub cq_doorbells: AtomicU64,
    pub arm_doorbells: AtomicU64,
    engine: Mutex<Option<Engine>>,
}

impl Qp {
    pub(super) fn new(index: usize) -> Qp {
        Qp {
            index,
            announced: AtomicU64::new(0),
            executed: AtomicU64::new(0),
            produced: AtomicU64::new(0),
            consumer: AtomicU64::new(0),
            sq_depth: AtomicU32::new(0),
            cq_depth: AtomicU32::new(0),
            queued: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            sq_doorbells: AtomicU64::new(0),
            cq_doorbells: AtomicU64::new(0),
            arm_doorbells: AtomicU64::new(0),
            engine: Mutex::new(None),
        }
    }

    pub(super) fn engine(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, unless somebody works with it.
    pub(super) fn try_engine(&self) -> Option<MutexGuard<'_, Option<Engine>>> {
        match self.engine.try_lock() {
            Ok(engine) => Some(engine),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Puts a fresh queue pair into the slot.
    pub(super) fn install(&self, engine: Engine) {
        let mut slot = self.engine();
        for counter in [
            &self.announced,
            &self.executed,
            &self.produced,
            &self.consumer,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        for counter in [&self.sq_doorbells, &self.cq_doorbells, &self.arm_doorbells] {
            counter.store(0, Ordering::Relaxed);
        }
        self.sq_depth.store(engine.sq.depth, Ordering::Relaxed);
        self.cq_depth.store(engine.cq.depth, Ordering::Release);
        *slot = Some(engine);
    }

    /// Takes a producer index. Several threads may ring at once: each either moves the index forward or is refused.
    #[inline]
    pub(super) fn announce(&self, value: u64, index: u32) -> Result<(), DoorbellError> {
        let depth = self.sq_depth.load(Ordering::Relaxed);
        let mut known = self.announced.load(Ordering::Relaxed);
        loop {
            let new = known + ring::ahead(index, known, depth);
            let executed = self.executed.load(Ordering::Relaxed);
            let ahead = new.saturating_sub(executed);
            if ahead > u64::from(depth) {
                let qpn = self.index as u32;
                return Err(DoorbellError::Overflow {
                    value,
                    qpn,
                    index,
                    ahead,
                    executed,
                    depth,
                });
            }
            // Release: what this thread wrote to the ring is visible to whoever executes up to `new`.
            match self.announced.compare_exchange_weak(
                known,
                new,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(current) => known = current,
            }
        }
    }

    /// Takes a consumer index.
    #[inline]
    pub(super) fn consume(&self, value: u64, index: u32) -> Result<(), DoorbellError> {
        let depth = self.cq_depth.load(Ordering::Relaxed);
        let produced = self.produced.load(Ordering::Relaxed);
        let mut known = self.consumer.load(Ordering::Relaxed);
        loop {
            let new = known + ring::ahead(index, known, depth);
            if new > produced {
                return Err(DoorbellError::ConsumerIndex {
                    value,
                    cqn: super::cqn_of(self.index),
                    index,
                    produced,
                });
            }
            // Release: the poller's reads of the entries come before the NIC writes them again.
            match self.consumer.compare_exchange_weak(
                known,
                new,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(current) => known = current,
            }
        }
    }
}

/// A ring in memory that a kernel writes or polls.
pub(super) struct Ring {
    base: *mut u8,
    pub depth: u32,
    stride: usize,
}

impl Ring {
    /// The slot of counter `n`.
    #[inline]
    fn slot(&self, n: u64) -> Slot {
        let offset = ring::slot(n, self.depth) as usize * self.stride;
        // SAFETY: the ring has `depth` slots of `stride` bytes by the contract of `create_qp`.
        let at = unsafe { self.base.add(offset) };
        Slot { at: at.cast() }
    }
}

/// One slot of a ring that is valid as long as the queue pair exists.
pub(super) struct Slot {
    at: *mut u64,
}

impl Slot {
    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < ring::WQE_WORDS);
        // SAFETY: slots are 8-byte aligned and valid by the contract of `create_qp`; callers stay inside the slot's words.
        unsafe { AtomicU64::from_ptr(self.at.add(index)) }
    }
}

impl Words for Slot {
    #[inline]
    fn load(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Relaxed)
    }
    #[inline]
    fn load_acquire(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Acquire)
    }
    #[inline]
    fn store(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Relaxed);
    }
    #[inline]
    fn store_release(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Release);
    }
}

/// The peer that a queue pair is connected to.
pub(super) struct Target {
    pub responder: Arc<Responder>,
    /// The peer's queue pair.
    pub index: usize,
    pub incarnation: u32,
    /// Its packed word when it takes requests.
    pub ready: u32,
    /// Who we are: our port's nonce and our queue pair.
    pub own: (u64, u32),
    /// The peer's queue pair was seen connected to ours.
    pub verified: bool,
}

impl Target {
    pub(super) fn new(
        responder: Arc<Responder>,
        index: usize,
        incarnation: u32,
        own: (u64, u32),
    ) -> Target {
        let ready = QpWord {
            incarnation,
            state: QpState::Rts,
        }
        .pack();
        Target {
            responder,
            index,
            incarnation,
            ready,
            own,
            verified: false,
        }
    }
}

/// What walks the rings of one queue pair.
pub(super) struct Engine {
    pub index: usize,
    sq: Ring,
    cq: Ring,
    /// A consumer index in memory, or null.
    cq_record: *mut u32,
    pub max_inline: u32,
    pub signal_all: bool,
    /// The verbs side; `None` with the memory wire.
    pub wire: Option<Wire>,
    pub target: Option<Target>,
    pub local: RegionCache,
    pub remote: RegionCache,
    /// Where the remote bytes of the latest request are.
    pub place: Place,
    pub counters: NicCounters,
    cq_dead: bool,
    /// The request whose wrong owner bit was reported.
    stalled_at: Option<u64>,
    pub chaos: Option<Box<Chaos>>,
}

// SAFETY: the raw pointers are ring memory that `create_qp`'s contract makes valid on any thread until the queue pair is destroyed; the
// engine is used by one thread at a time, under its lock.
unsafe impl Send for Engine {}

/// How [`Engine::step`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A request was executed.
    Executed,
    /// The slot's owner bit says that it is not written yet.
    NotOwned,
    /// The queue pair does not go on.
    Stopped,
}

impl Engine {
    pub(super) fn new(
        index: usize,
        init: &QpInit,
        chaos: Option<Box<Chaos>>,
        wire: Option<Wire>,
    ) -> Engine {
        Engine {
            index,
            sq: Ring {
                base: init.sq,
                depth: init.sq_depth,
                stride: WQE_SIZE,
            },
            cq: Ring {
                base: init.cq,
                depth: init.cq_depth,
                stride: init.cqe_size as usize,
            },
            cq_record: init.cq_swdb,
            max_inline: init.max_inline,
            signal_all: init.sq_sig_all,
            wire,
            target: None,
            local: RegionCache::default(),
            remote: RegionCache::default(),
            place: Place {
                inode: 0,
                offset: 0,
            },
            counters: NicCounters::default(),
            cq_dead: false,
            stalled_at: None,
            chaos,
        }
    }

    /// Entries of the send ring.
    pub(super) fn sq_depth(&self) -> u32 {
        self.sq.depth
    }

    /// The slot of request `n`.
    pub(super) fn slot(&self, n: u64) -> Slot {
        self.sq.slot(n)
    }

    pub(super) fn state(&self, core: &Core) -> QpState {
        core.own
            .port
            .qp(self.index)
            .map_or(QpState::Reset, |slot| slot.word().state)
    }

    pub(super) fn set_state(&self, core: &Core, state: QpState) {
        if let Some(slot) = core.own.port.qp(self.index) {
            slot.set_word(QpWord {
                state,
                ..slot.word()
            });
        }
    }

    /// Executes what doorbells have announced, in order, and flushes if that is the NIC's business.
    #[inline]
    pub(super) fn run(&mut self, core: &Core, qp: &Qp) {
        let announced = qp.announced.load(Ordering::Acquire);
        let state = self.state(core);
        if self.wire.is_some() {
            self.run_wire(core, qp);
        } else if state == QpState::Rts {
            let mut next = qp.executed.load(Ordering::Relaxed);
            while next < announced {
                match self.step(core, qp, next) {
                    Step::Executed => next += 1,
                    Step::NotOwned => {
                        self.report_stall(core, next);
                        break;
                    }
                    Step::Stopped => break,
                }
            }
        }
        if core.config.flush == Flush::Auto && self.state(core) == QpState::Error {
            self.flush(core, qp);
        }
        if self.chaos.as_ref().is_none_or(|chaos| chaos.is_idle()) {
            self.local.release();
            self.remote.release();
        }
    }

    /// Takes and executes request `n`, if its owner bit is valid.
    #[inline]
    pub(super) fn step(&mut self, core: &Core, qp: &Qp, n: u64) -> Step {
        let Ok(words) = ring::take_wqe(&self.sq.slot(n), ring::send_owner(n, self.sq.depth)) else {
            return Step::NotOwned;
        };
        let wqe: SendWqe = bytemuck::cast(words);
        self.execute(core, qp, n, &wqe)
    }

    /// Whether slot `n` holds the same valid request on two looks: kernels here write slots by several stores, hardware by one.
    pub(super) fn is_settled(&self, n: u64) -> bool {
        let owner = ring::send_owner(n, self.sq.depth);
        let slot = self.sq.slot(n);
        let first = ring::take_wqe(&slot, owner);
        if first.is_err() {
            return false;
        }
        std::thread::yield_now();
        first == ring::take_wqe(&slot, owner)
    }

    #[inline]
    fn execute(&mut self, core: &Core, qp: &Qp, n: u64, wqe: &SendWqe) -> Step {
        // Before the completion, which lets the writer use the slot again.
        qp.executed.store(n + 1, Ordering::Relaxed);
        self.count(wqe);
        if self.chaos.is_some() {
            return self.execute_unkindly(core, qp, n, wqe);
        }
        let widen = core.config.widen_atomics;
        let done = self.check(core, wqe).and_then(|task| match &self.target {
            Some(target) => {
                if let Some(timing) = &core.timing {
                    timing.request(&self.executed(wqe, &task));
                }
                // SAFETY: `check` has just made the task, and the work request is borrowed.
                unsafe { task.perform(&target.responder.port, widen) }
            }
            None => Ok(0),
        });
        match done {
            Ok(bytes) => {
                if let Some(cqe) = self.completion(n, wqe, bytes) {
                    self.complete(core, qp, cqe);
                }
                Step::Executed
            }
            Err(failure) => {
                let cqe = self.failed(core, n, wqe, &failure);
                self.complete(core, qp, cqe);
                Step::Stopped
            }
        }
    }

    #[inline]
    pub(super) fn count(&mut self, wqe: &SendWqe) {
        let counters = &mut self.counters;
        let bytes = u64::from(wqe.msg_len.get());
        match wqe.opcode() {
            opcode::WRITE => {
                counters.writes += 1;
                counters.inline_writes += u64::from(wqe.is_inline());
                counters.bytes_written += bytes;
            }
            opcode::READ => {
                counters.reads += 1;
                counters.bytes_read += bytes;
            }
            opcode::FETCH_ADD | opcode::COMPARE_SWAP => {
                let kind = if wqe.opcode() == opcode::FETCH_ADD {
                    &mut counters.fetch_adds
                } else {
                    &mut counters.compare_swaps
                };
                *kind += 1;
                counters.bytes_read += bytes;
                counters.bytes_written += bytes;
            }
            _ => counters.others += 1,
        }
    }

    /// The completion of a request that went well, if it asked for one.
    #[inline]
    pub(super) fn completion(&self, n: u64, wqe: &SendWqe, bytes: u32) -> Option<Cqe> {
        (self.signal_all || wqe.flags().signaled).then(|| self.entry(n, wqe).with_byte_count(bytes))
    }

    #[inline]
    pub(super) fn entry(&self, n: u64, wqe: &SendWqe) -> Cqe {
        let peer = match (&self.target, &self.wire) {
            (Some(target), _) => target.index as u32,
            (None, Some(wire)) => wire.peer,
            (None, None) => 0,
        };
        Cqe::sent(wqe.opcode(), n, self.index as u32, peer)
    }

    /// Moves the queue pair to Error; the completion of the request that failed, which is made whether it was asked for or not.
    #[cold]
    pub(super) fn failed(&mut self, core: &Core, n: u64, wqe: &SendWqe, failure: &Failure) -> Cqe {
        self.set_state(core, QpState::Error);
        let fault = format!("{:?} {}", failure.status, failure.why);
        let text = format!(
            "queue pair {:#x}: request {n} (opcode {:#x}, {} bytes, va {:#x}, rkey {:#x}) failed with status {:#04x}, {}: {}",
            self.index,
            wqe.opcode(),
            wqe.msg_len.get(),
            wqe.va.get(),
            wqe.rkey.get(),
            failure.status as u8,
            failure.status.text(),
            failure.why
        );
        core.log.say_of(fault, text);
        self.entry(n, wqe).with_status(failure.status, 0)
    }

    #[cold]
    pub(super) fn report_stall(&mut self, core: &Core, n: u64) {
        if self.stalled_at == Some(n) {
            return;
        }
        self.stalled_at = Some(n);
        let depth = self.sq.depth;
        let expected = u8::from(ring::send_owner(n, depth));
        let found = self.sq.slot(n).load(0) as u32;
        core.log.say(format!(
            "queue pair {:#x} stalls: request {n} (slot {}, lap {}) must have owner bit {expected}, its dword 0 is {found:#010x}; the \
             writer rang before the slot was written, or computes the bit by another depth than the ring's {depth}",
            self.index,
            ring::slot(n, depth),
            n / u64::from(depth),
        ));
    }

    /// Writes a completion entry.
    #[inline]
    pub(super) fn complete(&mut self, core: &Core, qp: &Qp, cqe: Cqe) {
        if self.cq_dead {
            return;
        }
        let n = qp.produced.load(Ordering::Relaxed);
        if n - qp.consumer.load(Ordering::Acquire) >= u64::from(self.cq.depth)
            && !self.has_room_by_record(qp, n)
        {
            self.overflow(core);
            return;
        }
        self.counters.completions += 1;
        self.counters.errors += u64::from(cqe.status() != Status::Ok);
        // Before the entry, which lets the poller ring a consumer index.
        qp.produced.store(n + 1, Ordering::Relaxed);
        const { assert!(CQE_SIZE == ring::CQE_WORDS * size_of::<u64>()) };
        let words = bytemuck::cast(cqe.owned(n, self.cq.depth));
        let slot = self.cq.slot(n);
        if let Some(timing) = &core.timing {
            timing.completion(slot.at as u64, slot.load(0));
        }
        ring::publish_cqe(&slot, &words);
    }

    /// Whether the consumer index in memory frees an entry.
    #[cold]
    fn has_room_by_record(&self, qp: &Qp, produced: u64) -> bool {
        if self.cq_record.is_null() {
            return false;
        }
        // SAFETY: a non-null record word is valid and aligned by the contract of `create_qp`.
        let record =
            u32::from_le(unsafe { AtomicU32::from_ptr(self.cq_record) }.load(Ordering::Acquire));
        let known = qp.consumer.load(Ordering::Relaxed);
        let new =
            known + (u64::from(record).wrapping_sub(known) & ((1 << ring::CONSUMER_BITS) - 1));
        if new > produced {
            return false; // an index from before the latest doorbell
        }
        qp.consumer.fetch_max(new, Ordering::Relaxed);
        produced - new < u64::from(self.cq.depth)
    }

    #[cold]
    fn overflow(&mut self, core: &Core) {
        self.cq_dead = true;
        self.set_state(core, QpState::Error);
        core.log.raise(EventKind::CqOverflow, self.index as u32);
        core.log.say(format!(
            "queue pair {:#x}: completion queue {:#x} overflowed: all {} entries hold completions that no consumer index has \
             released; the queue pair is in error",
            self.index,
            super::cqn_of(self.index),
            self.cq.depth
        ));
    }

    /// Completes everything announced and not executed with status 0x05.
    pub(super) fn flush(&mut self, core: &Core, qp: &Qp) {
        self.land_everything(core, qp);
        self.drain_wire(core, qp);
        let announced = qp.announced.load(Ordering::Acquire);
        for n in qp.executed.load(Ordering::Relaxed)..announced {
            let slot = self.sq.slot(n);
            let mut words = [0; ring::WQE_WORDS];
            words
                .iter_mut()
                .enumerate()
                .for_each(|(index, word)| *word = slot.load(index));
            let wqe: SendWqe = bytemuck::cast(words);
            qp.executed.store(n + 1, Ordering::Relaxed);
            let cqe = self.entry(n, &wqe).with_status(Status::Flushed, 0);
            self.complete(core, qp, cqe);
        }
    }
}
