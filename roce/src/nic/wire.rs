//! The verbs wire: a queue pair whose requests leave by an RC queue pair of the host's own NIC.
//!
//! Requests are checked here as far as they concern local memory and form, then posted; what the peer has to check, its NIC checks. Keys:
//! a local key is a slot of the port's table, as with the memory wire, and is exchanged for the verbs key here; a remote key is the verbs
//! key itself, because the peer's NIC reads it. Addresses are HCCP's: regions are registered under them.
//!
//! **Order and completions.** RC queue pairs complete in order, so an error names the one request that failed and all before it are done.
//! A request that fails here waits until those before it are done. Requests that ask for no completion get one all the same every half
//! ring, unseen by the kernel, so that the driver's ring drains.
//!
//! **Who polls.** [`super::Nic::progress`] is called by the cores that wait and takes what has come; a thread of the NIC looks every
//! [`LOOK`] for what nobody waits for. Two cores that wait are two pollers, not four.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::error::NicError;
use super::execute::Failure;
use super::qp::{Engine, Qp};
use super::types::{access, QpState};
use super::Core;
use crate::cqe::Status;
use crate::ring;
use crate::verbs::{Completion, Operation, QueuePair, Request, Segment};
use crate::wqe::{opcode, SendWqe, ATOMIC_SIZE, MAX_INLINE, SEGMENTS};

/// Time between two looks of the NIC's thread while something is under way.
const LOOK: Duration = Duration::from_micros(500);
/// Looks at an idle NIC before the thread sleeps until it is told.
const IDLE_LOOKS: u32 = 20;
/// How long a flush waits for the driver to give everything back.
const FLUSH_TIME: Duration = Duration::from_secs(2);
/// Requests posted at once; also what may be translated and not posted yet.
const BATCH: usize = 16;
/// Room in the driver's ring beyond the kernel's: pieces of requests longer than the device's limit.
const SPARE: u32 = 64;

/// A request that was posted, or is about to be.
struct Pending {
    n: u64,
    wqe: SendWqe,
    signaled: bool,
}

/// The verbs side of one queue pair.
pub(super) struct Wire {
    pair: QueuePair,
    /// The peer's queue pair, as its kernel knows it; for completions.
    pub peer: u32,
    /// Posted or translated requests that are not known to be done, oldest first.
    pending: VecDeque<Pending>,
    /// Translated, not posted: the driver's ring is full.
    waiting: VecDeque<Request>,
    /// A request that failed here, behind `pending`.
    refused: Option<(u64, SendWqe, Failure)>,
    /// Requests since the last one that makes a completion.
    unsignaled: u32,
    /// The host flushes the queue pair: what comes back flushed is no failure.
    draining: bool,
    /// After the first error nothing that comes back means anything.
    broken: bool,
    /// Kept to save allocations.
    completions: Vec<Completion>,
}

impl Wire {
    pub(super) fn new(pair: QueuePair) -> Wire {
        Wire {
            pair,
            peer: 0,
            draining: false,
            pending: VecDeque::new(),
            waiting: VecDeque::new(),
            refused: None,
            unsignaled: 0,
            broken: false,
            completions: Vec::new(),
        }
    }

    /// Requests that the driver's ring needs room for, for a kernel's ring of `depth`.
    pub(super) fn depth(depth: u32) -> u32 {
        depth + SPARE
    }

    pub(super) fn pair(&self) -> &QueuePair {
        &self.pair
    }

    /// Whether anything is under way.
    fn is_idle(&self) -> bool {
        self.broken || (self.pending.is_empty() && self.refused.is_none())
    }

    /// The kernel's queue pair is in error: so is this one, and peers get no answer.
    pub(super) fn fail(&mut self) {
        self.broken = true;
        self.pending.clear();
        self.waiting.clear();
        self.refused = None;
        self.pair.fail();
    }
}

impl Engine {
    /// Takes completions, then posts what doorbells have announced.
    pub(super) fn run_wire(&mut self, core: &Core, qp: &Qp) {
        self.reap(core, qp);
        self.post_announced(core, qp);
        // A refusal with nothing before it, or a driver that had nothing to do, is known at once.
        self.settle_refused(core, qp);
        if self.wire.as_ref().is_some_and(|wire| !wire.is_idle()) {
            core.wire.watch(qp);
        }
    }

    /// One look on behalf of somebody who waits. False when nothing is under way.
    fn look(&mut self, core: &Core, qp: &Qp) -> bool {
        if self.wire.as_ref().is_none_or(Wire::is_idle) {
            return false;
        }
        self.reap(core, qp);
        self.post_announced(core, qp);
        self.settle_refused(core, qp);
        self.wire.as_ref().is_some_and(|wire| !wire.is_idle())
    }

    fn post_announced(&mut self, core: &Core, qp: &Qp) {
        if self.state(core) != QpState::Rts {
            return;
        }
        let announced = qp.announced.load(Ordering::Acquire);
        let mut next = qp.executed.load(Ordering::Relaxed);
        loop {
            if !self.post_waiting(core, qp) {
                return;
            }
            let refused = self
                .wire
                .as_ref()
                .is_none_or(|wire| wire.refused.is_some() || wire.broken);
            if next >= announced || refused {
                return;
            }
            while next < announced
                && self
                    .wire
                    .as_ref()
                    .is_some_and(|wire| wire.waiting.len() < BATCH)
            {
                let Some(wqe) = self.take(next) else {
                    self.report_stall(core, next);
                    self.post_waiting(core, qp);
                    return;
                };
                qp.executed.store(next + 1, Ordering::Relaxed);
                self.count(&wqe);
                match self.translate(core, next, &wqe) {
                    Ok(()) => next += 1,
                    Err(failure) => {
                        self.refuse(next, &wqe, failure);
                        break;
                    }
                }
            }
        }
    }

    /// Posts what is translated. False when the driver's ring is full.
    fn post_waiting(&mut self, core: &Core, qp: &Qp) -> bool {
        let Some(wire) = &mut self.wire else {
            return false;
        };
        if wire.waiting.is_empty() {
            return true;
        }
        let requests = wire.waiting.make_contiguous();
        let (taken, error) = wire.pair.post(requests);
        let failed = wire.waiting.get(taken).map(|request| request.id);
        wire.waiting.drain(..taken);
        match (error, failed) {
            (Some(libc::ENOMEM), _) | (Some(libc::EAGAIN), _) => false,
            (Some(code), Some(n)) => {
                // The driver refuses the request itself: it fails here, behind those before it.
                let at = wire.pending.iter().position(|pending| pending.n == n);
                let wqe = at.and_then(|at| wire.pending.drain(at..).next());
                wire.waiting.clear();
                let error = std::io::Error::from_raw_os_error(code);
                let why = format!("ibv_post_send refuses it: {error}");
                if let Some(pending) = wqe {
                    qp.executed.store(n + 1, Ordering::Relaxed);
                    let failure = Failure::new(Status::LocalQpOperation, why);
                    self.refuse(n, &pending.wqe, failure);
                    self.settle_refused(core, qp);
                }
                true
            }
            _ => true,
        }
    }

    /// Keeps a failure until what is before it is done. The last of those must make a completion: if none does, an empty WRITE is added.
    fn refuse(&mut self, n: u64, wqe: &SendWqe, failure: Failure) {
        let Some(wire) = &mut self.wire else { return };
        if let Some(last) = wire.pending.back() {
            wire.waiting.push_back(Request {
                signaled: true,
                ..empty(last.n)
            });
        }
        wire.refused = Some((n, *wqe, failure));
    }

    /// Completes a request that failed here, once nothing is before it.
    fn settle_refused(&mut self, core: &Core, qp: &Qp) {
        let Some(wire) = &mut self.wire else { return };
        if !wire.pending.is_empty() {
            return;
        }
        if let Some((n, wqe, failure)) = wire.refused.take() {
            self.fail_at(core, qp, n, &wqe, &failure, 0);
        }
    }

    fn fail_at(
        &mut self,
        core: &Core,
        qp: &Qp,
        n: u64,
        wqe: &SendWqe,
        failure: &Failure,
        syndrome: u8,
    ) {
        // What is behind it was not executed: a flush completes it with 0x05.
        qp.executed.store(n + 1, Ordering::Relaxed);
        let cqe = self
            .failed(core, n, wqe, failure)
            .with_status(failure.status, syndrome);
        if let Some(wire) = &mut self.wire {
            wire.fail();
        }
        self.complete(core, qp, cqe);
    }

    /// Takes the driver's completions and makes the kernel's of them.
    fn reap(&mut self, core: &Core, qp: &Qp) {
        let Some(wire) = &mut self.wire else { return };
        if wire.pending.is_empty() {
            return;
        }
        let mut completions = std::mem::take(&mut wire.completions);
        wire.pair.poll(&mut completions);
        for completion in completions.drain(..) {
            self.take_completion(core, qp, &completion);
        }
        if let Some(wire) = &mut self.wire {
            wire.completions = completions;
        }
        self.settle_refused(core, qp);
    }

    fn take_completion(&mut self, core: &Core, qp: &Qp, completion: &Completion) {
        let Some(wire) = &mut self.wire else { return };
        if wire.broken {
            return;
        }
        let n = completion.id;
        match completion.status {
            Status::Ok => {
                while wire.pending.front().is_some_and(|pending| pending.n <= n) {
                    let Some(pending) = wire.pending.pop_front() else {
                        break;
                    };
                    if pending.n == n && pending.signaled {
                        let bytes = match pending.wqe.opcode() {
                            opcode::READ | opcode::FETCH_ADD | opcode::COMPARE_SWAP => {
                                pending.wqe.msg_len.get()
                            }
                            _ => 0,
                        };
                        let cqe = self.entry(n, &pending.wqe).with_byte_count(bytes);
                        self.complete(core, qp, cqe);
                        break;
                    }
                }
            }
            Status::Flushed if wire.draining => {
                // From here on nothing was executed.
                qp.executed.store(n, Ordering::Relaxed);
                wire.fail();
            }
            status => {
                while wire.pending.front().is_some_and(|pending| pending.n < n) {
                    wire.pending.pop_front();
                }
                let Some(pending) = wire.pending.pop_front() else {
                    return;
                };
                let failure = Failure::new(status, why(status));
                self.fail_at(
                    core,
                    qp,
                    n,
                    &pending.wqe,
                    &failure,
                    completion.syndrome as u8,
                );
            }
        }
    }

    /// Before a flush of a queue pair that has not failed: ends what is under way, and learns how far it came.
    pub(super) fn drain_wire(&mut self, core: &Core, qp: &Qp) {
        let idle = |engine: &Engine| engine.wire.as_ref().is_none_or(Wire::is_idle);
        if !idle(self) {
            if let Some(wire) = &mut self.wire {
                // Something must come back, even if none of what is under way was to make a completion.
                let next = wire.pending.back().map_or(0, |last| last.n + 1);
                wire.waiting.push_back(Request {
                    signaled: true,
                    ..empty(next)
                });
                wire.draining = true;
            }
            self.post_waiting(core, qp);
            if let Some(wire) = &self.wire {
                wire.pair.fail();
            }
            let deadline = Instant::now() + FLUSH_TIME;
            while !idle(self) && Instant::now() < deadline {
                self.reap(core, qp);
                thread::yield_now();
            }
        }
        if let Some(wire) = &mut self.wire {
            if let Some(first) = wire.pending.front() {
                qp.executed.store(first.n, Ordering::Relaxed);
            }
            if !wire.broken {
                wire.fail();
            }
        }
    }

    /// Checks what is this NIC's to check, and puts the request, in as many pieces as the device needs, on the list.
    fn translate(&mut self, core: &Core, n: u64, wqe: &SendWqe) -> Result<(), Failure> {
        let len = wqe.msg_len.get();
        let operation = match wqe.opcode() {
            opcode::WRITE | opcode::NOP => Operation::Write,
            opcode::READ => Operation::Read,
            opcode::FETCH_ADD => Operation::FetchAdd(wqe.atomic_segment().add_or_swap.get()),
            opcode::COMPARE_SWAP => Operation::CompareSwap {
                compare: wqe.atomic_segment().compare.get(),
                swap: wqe.atomic_segment().add_or_swap.get(),
            },
            // The peer has no receive queue: its NIC says so.
            opcode::SEND | opcode::SEND_IMM | opcode::SEND_INV | opcode::WRITE_IMM => {
                Operation::Send
            }
            code => {
                let why = format!("opcode {code:#x} is unknown");
                return Err(Failure::new(Status::LocalQpOperation, why));
            }
        };
        let flags = wqe.flags();
        let signaled = self.signal_all || flags.signaled;
        let mut request = Request {
            operation,
            remote: wqe.va.get(),
            rkey: wqe.rkey.get(),
            fence: flags.fence || flags.strong_order,
            ..empty(n)
        };
        match operation {
            Operation::Write if wqe.opcode() == opcode::NOP => {
                (request.remote, request.rkey) = (0, 0)
            }
            Operation::Write | Operation::Send if wqe.is_inline() => {
                self.check_inline(wqe, len)?;
                let mut bytes = [0; MAX_INLINE];
                bytes.copy_from_slice(wqe.inline_bytes());
                request.inline = Some((len as u8, bytes));
            }
            Operation::Write | Operation::Send => {
                request.segments = self.segments(core, wqe, len, 0)?
            }
            Operation::Read => {
                if wqe.is_inline() {
                    return Err(Failure::new(
                        Status::LocalQpOperation,
                        "a READ cannot be inline",
                    ));
                }
                request.segments = self.segments(core, wqe, len, access::LOCAL_WRITE)?;
            }
            Operation::FetchAdd(_) | Operation::CompareSwap { .. } => {
                if wqe.is_inline() || wqe.sge_num() != 1 {
                    let why = format!("an atomic needs exactly one data segment and no inline flag; it has {} segments", wqe.sge_num());
                    return Err(Failure::new(Status::LocalQpOperation, why));
                }
                if !wqe.va.get().is_multiple_of(u64::from(ATOMIC_SIZE)) {
                    // The peer's to refuse, but NICs differ in how they call it.
                    let why = format!("atomic on {:#x}, which is not 8-byte aligned", wqe.va.get());
                    return Err(Failure::new(Status::RemoteInvalidRequest, why));
                }
                if len != ATOMIC_SIZE {
                    let why = format!("an atomic moves 8 bytes; the message has {len}");
                    return Err(Failure::new(Status::LocalLength, why));
                }
                let [result, _] = self.segments(core, wqe, len, access::LOCAL_WRITE)?;
                request.segments = [result, Segment::default()];
            }
        }
        let limit = core
            .device
            .as_ref()
            .map_or(u64::MAX, |device| device.max_message());
        let half = self.sq_depth() / 2;
        let Some(wire) = &mut self.wire else {
            return Ok(());
        };
        wire.unsignaled += 1;
        let signal = signaled || wire.unsignaled >= half;
        if signal {
            wire.unsignaled = 0;
        }
        for (piece, last) in Pieces::new(request, len.into(), limit) {
            wire.waiting.push_back(Request {
                signaled: signal && last,
                ..piece
            });
        }
        wire.pending.push_back(Pending {
            n,
            wqe: *wqe,
            signaled,
        });
        Ok(())
    }

    /// The local memory of a request, checked, with verbs keys.
    fn segments(
        &mut self,
        core: &Core,
        wqe: &SendWqe,
        len: u32,
        access: u32,
    ) -> Result<[Segment; SEGMENTS], Failure> {
        self.pieces(core, wqe, len, access)?;
        let mut segments = [Segment::default(); SEGMENTS];
        for (segment, found) in segments.iter_mut().zip(&wqe.segments[..wqe.sge_num()]) {
            let lkey = found.lkey.get();
            *segment = Segment {
                addr: found.addr.get(),
                len: found.len.get(),
                lkey: self.wire_key(core, lkey)?,
            };
        }
        Ok(segments)
    }

    fn wire_key(&mut self, core: &Core, lkey: u32) -> Result<u32, Failure> {
        let missing = || {
            Failure::new(
                Status::LocalProtection,
                format!("local region {lkey:#x} is not registered with the host's NIC"),
            )
        };
        let slot = core.own.port.qp(self.index).ok_or_else(missing)?;
        match self.local.get(&core.own, slot, lkey) {
            Ok(region) => region.wire_key().ok_or_else(missing),
            Err(_) => Err(missing()),
        }
    }
}

fn empty(n: u64) -> Request {
    Request {
        id: n,
        operation: Operation::Write,
        remote: 0,
        rkey: 0,
        signaled: false,
        fence: false,
        segments: [Segment::default(); SEGMENTS],
        inline: None,
    }
}

fn why(status: Status) -> &'static str {
    match status {
        Status::RetryExceeded => "the host's NIC got no answer: the peer has ended, closed its NIC, or cannot be reached",
        Status::ReceiverNotReady => "the peer has no receive queue",
        Status::RemoteAccess => "the peer's NIC refuses the key, the range or the kind of access",
        Status::RemoteInvalidRequest => "the peer's queue pair refuses this kind of request, or the address of an atomic is not 8-byte aligned",
        Status::LocalProtection => "the host's NIC refuses the local key or range",
        Status::Flushed => "the host's NIC has put the queue pair into its error state: it refused a request of the peer, or the port failed",
        _ => "as the host's NIC reports",
    }
}

/// A request cut into pieces of at most `limit` bytes: WRITEs and READs only, others are short.
struct Pieces {
    whole: Request,
    done: u64,
    total: u64,
    limit: u64,
    ended: bool,
}

impl Pieces {
    fn new(whole: Request, total: u64, limit: u64) -> Pieces {
        Pieces {
            whole,
            done: 0,
            total,
            limit,
            ended: false,
        }
    }
}

impl Iterator for Pieces {
    /// The piece, and whether it is the last.
    type Item = (Request, bool);

    fn next(&mut self) -> Option<(Request, bool)> {
        if self.ended {
            return None;
        }
        if self.done == 0 && self.total <= self.limit {
            self.ended = true;
            return Some((self.whole, true));
        }
        let len = self.limit.min(self.total - self.done);
        let mut piece = self.whole;
        piece.remote = piece.remote.wrapping_add(self.done);
        // Only the first piece waits; those behind it follow in order.
        piece.fence &= self.done == 0;
        let (mut skip, mut want) = (self.done, len);
        for segment in &mut piece.segments {
            let have = u64::from(segment.len);
            let from = skip.min(have);
            let take = want.min(have - from);
            segment.addr += from;
            segment.len = take as u32;
            skip -= from;
            want -= take;
        }
        self.done += len;
        self.ended = self.done >= self.total;
        Some((piece, self.ended))
    }
}

/// The queue pairs that have something under way, and the thread that looks after them when no core does.
#[derive(Default)]
pub(super) struct Watch {
    active: Mutex<Active>,
    wake: Condvar,
    /// Somebody looks right now; a second one would only get in the way.
    looking: AtomicBool,
}

#[derive(Default)]
struct Active {
    pairs: Vec<usize>,
    asleep: bool,
    stop: bool,
}

impl Watch {
    fn active(&self) -> std::sync::MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A queue pair has something under way.
    fn watch(&self, qp: &Qp) {
        if qp.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut active = self.active();
        active.pairs.push(qp.index);
        if active.asleep {
            self.wake.notify_one();
        }
    }

    /// Ends the thread as soon as it looks.
    pub(super) fn stop(&self) {
        self.active().stop = true;
        self.wake.notify_one();
    }
}

impl Core {
    /// Looks after every queue pair with something under way. False when there is none, or somebody else looks.
    pub(super) fn progress(&self) -> bool {
        if self.wire.looking.swap(true, Ordering::Acquire) {
            return false;
        }
        let mut at = 0;
        loop {
            let Some(index) = self.wire.active().pairs.get(at).copied() else {
                break;
            };
            let busy = self.qp(index).is_some_and(|qp| {
                // One that is being posted to is busy.
                let Some(mut engine) = qp.try_engine() else {
                    return true;
                };
                let busy = engine.as_mut().is_some_and(|engine| engine.look(self, qp));
                if !busy {
                    // Under the engine's lock: whoever posts next puts it on the list again.
                    qp.watched.store(false, Ordering::SeqCst);
                    self.wire.active().pairs.retain(|other| *other != index);
                }
                busy
            });
            at += usize::from(busy);
        }
        self.wire.looking.store(false, Ordering::Release);
        at > 0
    }
}

/// Starts the thread that looks after what no core waits for.
pub(super) fn start(core: &Arc<Core>) -> Result<JoinHandle<()>, NicError> {
    let core = Arc::clone(core);
    thread::Builder::new()
        .name("npusim-verbs".to_owned())
        .spawn(move || look_after(&core))
        .map_err(|source| NicError::System {
            call: "starting the NIC's thread for verbs",
            source,
        })
}

fn look_after(core: &Core) {
    let mut idle = 0;
    loop {
        {
            let mut active = core.wire.active();
            while active.pairs.is_empty() && idle >= IDLE_LOOKS && !active.stop {
                active.asleep = true;
                active = core
                    .wire
                    .wake
                    .wait(active)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            active.asleep = false;
            if active.stop {
                return;
            }
            idle = if active.pairs.is_empty() { idle + 1 } else { 0 };
        }
        thread::sleep(LOOK);
        core.progress();
    }
}

impl Engine {
    /// Takes request `n` from the ring, if its owner bit is valid.
    fn take(&self, n: u64) -> Option<SendWqe> {
        let words = ring::take_wqe(&self.slot(n), ring::send_owner(n, self.sq_depth())).ok()?;
        Some(bytemuck::cast(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remote address, local addresses and lengths, whether it is the last piece.
    type Cut = (u64, [(u64, u32); 2], bool);

    fn pieces(lens: [u32; 2], limit: u64) -> Vec<Cut> {
        let mut whole = empty(7);
        whole.remote = 0x1000;
        whole.segments = [
            Segment {
                addr: 0x10_000,
                len: lens[0],
                lkey: 1,
            },
            Segment {
                addr: 0x20_000,
                len: lens[1],
                lkey: 2,
            },
        ];
        let total = u64::from(lens[0]) + u64::from(lens[1]);
        Pieces::new(whole, total, limit)
            .map(|(piece, last)| (piece.remote, piece.segments.map(|s| (s.addr, s.len)), last))
            .collect()
    }

    #[test]
    fn a_request_within_the_limit_stays_whole_even_when_it_is_empty() {
        assert_eq!(
            pieces([0, 0], 8),
            [(0x1000, [(0x10_000, 0), (0x20_000, 0)], true)]
        );
        assert_eq!(
            pieces([5, 3], 8),
            [(0x1000, [(0x10_000, 5), (0x20_000, 3)], true)]
        );
    }

    #[test]
    fn a_longer_one_is_cut_across_its_segments_and_only_the_last_piece_says_so() {
        assert_eq!(
            pieces([5, 8], 4),
            [
                (0x1000, [(0x10_000, 4), (0x20_000, 0)], false),
                (0x1004, [(0x10_004, 1), (0x20_000, 3)], false),
                (0x1008, [(0x10_005, 0), (0x20_003, 4)], false),
                (0x100c, [(0x10_005, 0), (0x20_007, 1)], true),
            ]
        );
    }
}
