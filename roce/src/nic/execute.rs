//! One request: the checks of requester and responder, and the transfer itself.
//!
//! [`Engine::check`] turns a work request into a [`Task`] whose addresses are valid, or into the status that hardware would complete it
//! with; [`Task::perform`] moves the bytes. In chaos mode [`super::chaos`] takes tasks apart and performs them late.
//!
//! Which check gives which status follows rdma-core's status list and, where that leaves a choice, Linux's rxe: unknown keys, bounds
//! and missing rights of a region are access errors (0x04 local, 0x13 remote), what the responder's queue pair refuses is an invalid
//! request (0x12).

use std::time::{Duration, Instant};

use super::copy;
use super::port::{right, Port, QpWord};
use super::qp::{Engine, Target};
use super::responder::{NoRegion, RegionCache, Responder};
use super::timing::{Executed, Place};
use super::types::{access, QpState};
use super::Core;
use crate::cqe::Status;
use crate::wqe::{extended, opcode, DataSegment, SendWqe, ATOMIC_SIZE, SEGMENTS};

/// How long a request to a queue pair that is not connected yet is retried: its owner is about to connect it.
const RETRY_TIME: Duration = Duration::from_secs(1);
/// How long a process may take from closing its descriptors to its end.
const DEATH_TIME: Duration = Duration::from_millis(200);
/// Pause between two tries.
const RETRY_PAUSE: Duration = Duration::from_micros(50);

/// Why a request fails.
#[derive(Debug)]
pub(super) struct Failure {
    pub status: Status,
    pub why: String,
}

impl Failure {
    #[cold]
    pub(super) fn new(status: Status, why: impl Into<String>) -> Failure {
        Failure {
            status,
            why: why.into(),
        }
    }
}

/// Bytes that the NIC may touch for as long as the region cache keeps them mapped.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub at: *mut u8,
    pub len: usize,
}

/// Local memory of a request: one piece a data segment. Unused pieces are empty.
pub(super) type Pieces = [Piece; SEGMENTS];

const NO_PIECE: Piece = Piece {
    at: std::ptr::null_mut(),
    len: 0,
};

/// What an atomic does to the word.
#[derive(Clone, Copy)]
pub(super) enum Update {
    Add(u64),
    CompareSwap { compare: u64, swap: u64 },
}

impl Update {
    /// The word's new value, if it changes.
    fn apply(self, old: u64) -> Option<u64> {
        match self {
            Update::Add(addend) => Some(old.wrapping_add(addend)),
            Update::CompareSwap { compare, swap } => (old == compare).then_some(swap),
        }
    }
}

/// A checked request.
#[derive(Clone, Copy)]
pub(super) enum Task {
    /// Moves nothing.
    Nothing,
    /// WRITE: local pieces (for an inline payload: the work request itself) to consecutive remote bytes.
    Write { to: *mut u8, from: Pieces },
    /// READ: consecutive remote bytes to local pieces.
    Read { from: *const u8, to: Pieces },
    /// An atomic on the word `at`; the old value goes to `result`.
    Atomic {
        at: *mut u8,
        result: Piece,
        update: Update,
    },
}

/// Copies pieces to consecutive bytes.
///
/// # Safety
/// All pieces are valid for reads, and `to` for writes of their total length.
#[inline]
pub(super) unsafe fn gather(mut to: *mut u8, from: &Pieces) {
    for piece in from.iter().filter(|piece| piece.len != 0) {
        // SAFETY: by the contract, this piece's part of both sides is valid.
        unsafe {
            copy::to_remote(to, piece.at, piece.len);
            to = to.add(piece.len);
        }
    }
}

/// Copies consecutive bytes to pieces.
///
/// # Safety
/// All pieces are valid for writes, and `from` for reads of their total length.
#[inline]
pub(super) unsafe fn scatter(mut from: *const u8, to: &Pieces) {
    for piece in to.iter().filter(|piece| piece.len != 0) {
        // SAFETY: by the contract, this piece's part of both sides is valid.
        unsafe {
            copy::from_remote(piece.at, from, piece.len);
            from = from.add(piece.len);
        }
    }
}

/// Runs an atomic: a read, then a write, under the responder port's lock; the old value.
///
/// It is deliberately no CPU read-modify-write: a NIC's atomics are atomic to one another, and to nothing else.
///
/// # Safety
/// `at` is 8-byte aligned and valid for reads and writes.
pub(super) unsafe fn run_atomic(
    port: &Port,
    at: *mut u8,
    update: Update,
    widen: bool,
) -> Result<u64, Failure> {
    let Some(_guard) = port.lock_atomics() else {
        return Err(Failure::new(
            Status::RetryExceeded,
            "the lock of the responder's atomics is held by a process that does not go on",
        ));
    };
    // SAFETY: by the contract.
    let old = unsafe { copy::load_u64(at) };
    if widen {
        std::thread::yield_now();
    }
    if let Some(new) = update.apply(old) {
        // SAFETY: by the contract.
        unsafe { copy::store_u64(at, new) };
    }
    Ok(old)
}

impl Task {
    /// Moves the bytes. Returns how many bytes a READ or an atomic brought.
    ///
    /// # Safety
    /// The task comes from [`Engine::check`] and neither region cache has been released since; the work request is still where it was.
    #[inline]
    pub(super) unsafe fn perform(&self, port: &Port, widen: bool) -> Result<u32, Failure> {
        match self {
            Task::Nothing => Ok(0),
            Task::Write { to, from } => {
                // SAFETY: `check` found both sides inside mapped regions.
                unsafe { gather(*to, from) };
                Ok(0)
            }
            Task::Read { from, to } => {
                // SAFETY: as above.
                unsafe { scatter(*from, to) };
                Ok(to.iter().map(|piece| piece.len as u32).sum())
            }
            Task::Atomic { at, result, update } => {
                // SAFETY: as above, and the word is aligned.
                let old = unsafe { run_atomic(port, *at, *update, widen) }?;
                // SAFETY: `check` found the 8 result bytes inside a mapped region.
                unsafe { copy::from_remote(result.at, (&raw const old).cast(), result.len) };
                Ok(ATOMIC_SIZE)
            }
        }
    }
}

/// What a remote access needs.
struct Need {
    right: u32,
    access: u32,
}

const WRITE_NEED: Need = Need {
    right: right::WRITE,
    access: access::REMOTE_WRITE,
};
const READ_NEED: Need = Need {
    right: right::READ,
    access: access::REMOTE_READ,
};
const ATOMIC_NEED: Need = Need {
    right: right::ATOMIC,
    access: access::REMOTE_ATOMIC,
};

impl Engine {
    /// All checks of a request, in the order requester, transport, responder.
    #[inline]
    pub(super) fn check(&mut self, core: &Core, wqe: &SendWqe) -> Result<Task, Failure> {
        let len = wqe.msg_len.get();
        match wqe.opcode() {
            opcode::WRITE => {
                let from = self.payload(core, wqe, len)?;
                let to = self.remote(core, wqe, len, &WRITE_NEED)?;
                Ok(Task::Write { to, from })
            }
            opcode::READ => {
                if wqe.is_inline() {
                    return Err(Failure::new(
                        Status::LocalQpOperation,
                        "a READ cannot be inline",
                    ));
                }
                let to = self.pieces(core, wqe, len, access::LOCAL_WRITE)?;
                let from = self.remote(core, wqe, len, &READ_NEED)?;
                Ok(Task::Read { from, to })
            }
            opcode::FETCH_ADD | opcode::COMPARE_SWAP => self.check_atomic(core, wqe, len),
            opcode::NOP => Ok(Task::Nothing),
            opcode::SEND | opcode::SEND_IMM | opcode::SEND_INV | opcode::WRITE_IMM => {
                self.payload(core, wqe, len)?;
                self.reach()?;
                Err(Failure::new(
                    Status::ReceiverNotReady,
                    "the peer has no receive queue",
                ))
            }
            code => Err(Failure::new(
                Status::LocalQpOperation,
                format!("opcode {code:#x} is unknown"),
            )),
        }
    }

    fn check_atomic(&mut self, core: &Core, wqe: &SendWqe, len: u32) -> Result<Task, Failure> {
        if wqe.is_inline() || wqe.sge_num() != 1 {
            let why = format!(
                "an atomic needs exactly one data segment and no inline flag; it has {} segments",
                wqe.sge_num()
            );
            return Err(Failure::new(Status::LocalQpOperation, why));
        }
        if len != ATOMIC_SIZE {
            return Err(Failure::new(
                Status::LocalLength,
                format!("an atomic moves 8 bytes; the message has {len}"),
            ));
        }
        let [result, _] = self.pieces(core, wqe, len, access::LOCAL_WRITE)?;
        let at = self.remote(core, wqe, len, &ATOMIC_NEED)?;
        let operands = wqe.atomic_segment();
        let update = match wqe.opcode() {
            opcode::FETCH_ADD => Update::Add(operands.add_or_swap.get()),
            _ => Update::CompareSwap {
                compare: operands.compare.get(),
                swap: operands.add_or_swap.get(),
            },
        };
        Ok(Task::Atomic { at, result, update })
    }

    /// The bytes a WRITE or SEND takes.
    #[inline]
    fn payload(&mut self, core: &Core, wqe: &SendWqe, len: u32) -> Result<Pieces, Failure> {
        if wqe.is_inline() {
            self.inline_payload(wqe, len)
        } else {
            self.pieces(core, wqe, len, 0)
        }
    }

    #[inline]
    fn inline_payload(&self, wqe: &SendWqe, len: u32) -> Result<Pieces, Failure> {
        self.check_inline(wqe, len)?;
        Ok([
            Piece {
                at: wqe.inline_bytes().as_ptr().cast_mut(),
                len: len as usize,
            },
            NO_PIECE,
        ])
    }

    /// Whether the queue pair takes an inline payload of that length.
    #[inline]
    pub(super) fn check_inline(&self, wqe: &SendWqe, len: u32) -> Result<(), Failure> {
        if self.max_inline == 0 {
            return Err(Failure::new(
                Status::LocalQpOperation,
                "the queue pair was made without inline payloads",
            ));
        }
        if wqe.extended.is_set(extended::INLINE_TYPE) {
            return Err(Failure::new(
                Status::LocalQpOperation,
                "there is no extended area for an inline payload of type 1",
            ));
        }
        if len > self.max_inline {
            let why = format!(
                "{len} inline bytes; the queue pair accepts {}",
                self.max_inline
            );
            return Err(Failure::new(Status::LocalLength, why));
        }
        Ok(())
    }

    /// The local memory of a request, checked.
    #[inline]
    pub(super) fn pieces(
        &mut self,
        core: &Core,
        wqe: &SendWqe,
        len: u32,
        access: u32,
    ) -> Result<Pieces, Failure> {
        let number = wqe.sge_num();
        if u64::from(len) > core.config.max_message {
            let why = format!(
                "{len} bytes; the NIC transfers at most {} by one request",
                core.config.max_message
            );
            return Err(Failure::new(Status::LocalLength, why));
        }
        if number > SEGMENTS {
            let why =
                format!("{number} data segments; without an extended area there are {SEGMENTS}");
            return Err(Failure::new(Status::LocalQpOperation, why));
        }
        let total: u64 = wqe.segments[..number]
            .iter()
            .map(|segment| u64::from(segment.len.get()))
            .sum();
        if total != u64::from(len) {
            let why = format!("the data segments have {total} bytes, the message {len}");
            return Err(Failure::new(Status::LocalLength, why));
        }
        let mut pieces = [NO_PIECE; SEGMENTS];
        for (piece, segment) in pieces.iter_mut().zip(&wqe.segments[..number]) {
            *piece = self.piece(core, segment, access)?;
        }
        Ok(pieces)
    }

    #[inline]
    fn piece(&mut self, core: &Core, segment: &DataSegment, access: u32) -> Result<Piece, Failure> {
        let (addr, len, lkey) = (segment.addr.get(), segment.len.get(), segment.lkey.get());
        let Some(slot) = core.own.port.qp(self.index) else {
            return Err(Failure::new(
                Status::LocalQpOperation,
                "the queue pair has no slot",
            ));
        };
        let region = match self.local.get(&core.own, slot, lkey) {
            Ok(region) => region,
            Err(reason) => {
                return Err(Failure::new(
                    Status::LocalProtection,
                    key_trouble("local", lkey, &reason),
                ))
            }
        };
        if u64::from(len) > region.len() {
            let why = format!("{len} bytes; the local region has {}", region.len());
            return Err(Failure::new(Status::LocalLength, why));
        }
        if region.access & access != access {
            let why = format!("local region {lkey:#x} lacks local write");
            return Err(Failure::new(Status::LocalProtection, why));
        }
        match region.translate(addr, len.into()) {
            Some(at) => Ok(Piece {
                at,
                len: len as usize,
            }),
            None => {
                let why = format!("{addr:#x}+{len:#x} leaves local region {lkey:#x}");
                Err(Failure::new(Status::LocalProtection, why))
            }
        }
    }

    /// The responder, if it answers.
    #[inline]
    fn reach(&mut self) -> Result<&Target, Failure> {
        let Some(target) = &mut self.target else {
            return Err(Failure::new(
                Status::RetryExceeded,
                "the queue pair has no peer",
            ));
        };
        if target.responder.port.is_dead() {
            return Err(unanswered(target));
        }
        if !target.answers() {
            target.await_ready()?;
        }
        Ok(target)
    }

    /// The responder's checks; where the request's remote bytes are.
    #[inline]
    fn remote(
        &mut self,
        _core: &Core,
        wqe: &SendWqe,
        len: u32,
        need: &Need,
    ) -> Result<*mut u8, Failure> {
        self.reach()?;
        let Some(target) = &self.target else {
            return Err(Failure::new(
                Status::RetryExceeded,
                "the queue pair has no peer",
            ));
        };
        let Some(slot) = target.responder.port.qp(target.index) else {
            return Err(unanswered(target));
        };
        if slot.rights.load(std::sync::atomic::Ordering::Relaxed) & need.right == 0 {
            return Err(Failure::new(
                Status::RemoteInvalidRequest,
                "the peer's queue pair refuses this kind of request",
            ));
        }
        let va = wqe.va.get();
        if need.right == right::ATOMIC && !va.is_multiple_of(u64::from(ATOMIC_SIZE)) {
            return Err(Failure::new(
                Status::RemoteInvalidRequest,
                format!("atomic on {va:#x}, which is not 8-byte aligned"),
            ));
        }
        if len == 0 {
            return Ok(std::ptr::null_mut()); // a transfer of nothing checks no key (InfiniBand 1.4, 9.3.3.4)
        }
        let (at, place) = remote_bytes(
            &mut self.remote,
            &target.responder,
            slot,
            wqe.rkey.get(),
            va,
            len,
            need.access,
        )?;
        self.place = place;
        Ok(at)
    }

    /// The request as a model of time sees it.
    #[cold]
    pub(super) fn executed(&self, wqe: &SendWqe, task: &Task) -> Executed {
        let bytes = u64::from(wqe.msg_len.get());
        let at = match task {
            Task::Write { to, .. } if (1..=8).contains(&bytes) => *to,
            Task::Atomic { at, .. } => *at,
            _ => std::ptr::null_mut(),
        };
        let word = (!at.is_null()).then(|| {
            let aligned = at.map_addr(|address| address & !7);
            // SAFETY: `check` found the byte inside a mapped region; mappings are whole pages, so its aligned word is mapped too.
            (self.place, unsafe { copy::load_u64(aligned) })
        });
        Executed {
            qp: self.index,
            opcode: wqe.opcode(),
            bytes,
            strong: wqe.flags().strong_order,
            word,
        }
    }
}

#[inline]
fn remote_bytes(
    cache: &mut RegionCache,
    responder: &Responder,
    slot: &super::port::QpSlot,
    rkey: u32,
    va: u64,
    len: u32,
    access: u32,
) -> Result<(*mut u8, Place), Failure> {
    let region = match cache.get(responder, slot, rkey) {
        Ok(region) => region,
        Err(NoRegion::Unreachable(_)) if is_dying(responder) => {
            return Err(Failure::new(
                Status::RetryExceeded,
                "the peer's process has ended, or closed its NIC",
            ));
        }
        Err(reason @ NoRegion::Unreachable(_)) => {
            return Err(Failure::new(
                Status::RemoteOperation,
                key_trouble("remote", rkey, &reason),
            ));
        }
        Err(reason) => {
            return Err(Failure::new(
                Status::RemoteAccess,
                key_trouble("remote", rkey, &reason),
            ))
        }
    };
    if region.access & access != access {
        let why = format!(
            "remote region {rkey:#x} has access {:#x}, the request needs {access:#x}",
            region.access
        );
        return Err(Failure::new(Status::RemoteAccess, why));
    }
    match region.translate(va, len.into()) {
        Some(at) => Ok((at, region.place(va))),
        None => Err(Failure::new(
            Status::RemoteAccess,
            format!("{va:#x}+{len:#x} leaves remote region {rkey:#x}"),
        )),
    }
}

/// Whether a peer whose memory cannot be reached is dead, or so soon: a process that ends closes its descriptors before it is seen to end.
#[cold]
fn is_dying(responder: &Responder) -> bool {
    let deadline = Instant::now() + DEATH_TIME;
    while !responder.port.is_dead() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(RETRY_PAUSE);
    }
    true
}

#[cold]
fn key_trouble(side: &str, key: u32, reason: &NoRegion) -> String {
    match reason {
        NoRegion::Unknown => format!("no {side} region has key {key:#x}"),
        NoRegion::NotBound => format!("{side} key {key:#x} was not registered on the queue pair"),
        NoRegion::Unreachable(error) => {
            format!("{side} region {key:#x} cannot be reached: {error}")
        }
    }
}

#[cold]
fn unanswered(target: &Target) -> Failure {
    let (pid, _) = target.responder.port.owner();
    let state = target
        .responder
        .port
        .qp(target.index)
        .map(|slot| slot.word());
    let why = if target.responder.port.is_dead() {
        format!("the peer's process {pid} has ended, or closed its NIC")
    } else {
        match state {
            Some(QpWord { incarnation, state })
                if incarnation == target.incarnation && state != QpState::Reset =>
            {
                format!(
                    "process {pid} does not answer: its queue pair {:#x} is in state {state:?}",
                    target.index
                )
            }
            _ => format!(
                "process {pid} does not answer: its queue pair {:#x} was destroyed",
                target.index
            ),
        }
    };
    Failure::new(Status::RetryExceeded, why)
}

impl Target {
    /// Whether the peer's queue pair takes requests right now.
    #[inline]
    fn answers(&self) -> bool {
        let ready = self
            .responder
            .port
            .qp(self.index)
            .is_some_and(|slot| slot.packed_word() == self.ready);
        self.verified && ready
    }

    /// Retries, as a NIC does, until the peer's queue pair takes requests of ours.
    #[cold]
    fn await_ready(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + RETRY_TIME;
        loop {
            let Some(slot) = self.responder.port.qp(self.index) else {
                return Err(unanswered(self));
            };
            let word = slot.word();
            if word.incarnation != self.incarnation {
                return Err(unanswered(self));
            }
            match word.state {
                QpState::Rts => break,
                QpState::Init if Instant::now() < deadline && !self.responder.port.is_dead() => {
                    std::thread::sleep(RETRY_PAUSE)
                }
                _ => return Err(unanswered(self)),
            }
        }
        let slot = self.responder.port.qp(self.index);
        let expects = slot.map(|slot| {
            let relaxed = std::sync::atomic::Ordering::Relaxed;
            (slot.peer_nonce.load(relaxed), slot.peer_qpn.load(relaxed))
        });
        if expects != Some(self.own) {
            let why = format!(
                "the peer's queue pair {:#x} is connected to another one than ours",
                self.index
            );
            return Err(Failure::new(Status::RetryExceeded, why));
        }
        self.verified = true;
        Ok(())
    }
}
