//! The software NIC: queue pairs, regions and doorbells of one emulated device, moving data between the processes of one machine.
//!
//! It walks send rings as HNS hardware does: owner bits, keys, bounds, access rights, completion entries, error states, a flush only
//! when the host asks. It is not a model of speed, and it has no receive side: SENDs end with "receiver not ready".
//! The emulated NPU's HCCP calls make queue pairs here, and its doorbell pages lead to [`Nic::doorbell`].
//!
//! **Where the work is done.** Each NIC has a port, a memfd that peers map through `/proc`: identity, tables of regions and queue pairs,
//! the lock of its atomics, a dead mark. A requester does the responder's part itself: it checks the peer's tables and reaches the
//! peer's registered memfds through mappings of its own. No byte passes through a kernel or another process.
//!
//! **Modes.** [`Mode::Inline`]: in the ringing thread, before the doorbell returns. [`Mode::Thread`]: in the NIC's thread.
//! [`Mode::Chaos`]: in the NIC's thread, with delays, queue pairs overtaking one another, late READ and atomic responses, running past
//! the doorbell over slots with valid owner bits, and (if asked for) early acknowledgement. Writes of one queue pair stay in order
//! in all modes.
//!
//! **Atomics** are a read, then a write, under the responder port's lock: atomic to that NIC's atomics, and to nothing else.
//!
//! **Wires.** [`Wire::Memory`] is what is described above. With [`Wire::Verbs`] requests leave by RC queue pairs of the host's own NIC, one a
//! queue pair, and the peer may be on another host: `wire.rs`. Local keys, rings, doorbells and completions are the same; what the responder
//! checks, its own NIC checks; remote keys are that NIC's, and usable on every queue pair; a dead peer is one that does not answer.
//!
//! **Death.** A watcher marks the port of a process that has ended; requests to it complete with status 0x15. Its memory stays mapped
//! here and is sealed against shrinking, so that a late write harms nobody.

mod chaos;
mod config;
mod copy;
mod error;
mod execute;
mod log;
mod port;
mod process;
mod qp;
mod region;
mod responder;
mod timing;
mod types;
mod watcher;
mod wire;
mod worker;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::AddAssign;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use self::chaos::Chaos;
use self::log::Log;
use self::port::{key_slot, right, Port, QpSlot, QpWord, RegionSlot, MAX_QPS, MAX_REGIONS};
use self::qp::{Engine, Qp, Target};
use self::region::{check_backing, Mapping, Region};
use self::responder::Responder;
use self::watcher::Watcher;
use crate::doorbell::Doorbell;
use crate::verbs::{self, VerbsAddress};
use crate::wqe::{MAX_INLINE, WQE_SIZE};

pub use config::{ConfigError, Flush, Mode, NicConfig, Wire, MAX_MESSAGE};
pub use error::{DoorbellError, NicError};
pub use timing::{Executed, Place, Timing};
pub use types::{
    access, Backing, Event, EventKind, MrInit, MrKeys, NicCounters, QpAddress, QpInit, QpNumbers,
    QpState,
};

/// Queue pair numbers that HNS reserves.
const RESERVED_QPS: usize = 8;
/// Completion queues are numbered apart from queue pairs, so that a mixed-up tag is noticed.
const FIRST_CQN: u32 = 0x10000;
/// Depths of send rings (`max_qp_wr`; libhns's minimum).
const SQ_DEPTHS: std::ops::RangeInclusive<u32> = 64..=32768;
/// Depths of completion rings.
const CQ_DEPTHS: std::ops::RangeInclusive<u32> = 64..=0x40_0000;

fn cqn_of(index: usize) -> u32 {
    FIRST_CQN + index as u32
}

/// What the NIC's threads and calls share.
struct Core {
    config: NicConfig,
    timing: Option<Arc<dyn Timing>>,
    own: Arc<Responder>,
    qps: Box<[OnceLock<Box<Qp>>]>,
    queue: worker::Queue,
    /// The host's own NIC, with the verbs wire.
    device: Option<Arc<verbs::Device>>,
    wire: wire::Watch,
    log: Log,
    refused_doorbells: AtomicU64,
}

impl Core {
    #[inline]
    fn qp(&self, index: usize) -> Option<&Qp> {
        self.qps.get(index)?.get().map(Box::as_ref)
    }

    fn existing(&self, qpn: u32) -> Result<(&Qp, &QpSlot), NicError> {
        let qp = self.qp(qpn as usize).ok_or(NicError::NoQp { qpn })?;
        let slot = self.own.port.qp(qp.index).ok_or(NicError::NoQp { qpn })?;
        match slot.word().state {
            QpState::Reset => Err(NicError::NoQp { qpn }),
            _ => Ok((qp, slot)),
        }
    }
}

/// What calls that change the tables keep, under one lock.
struct Control {
    watcher: Option<Watcher>,
    peers: HashMap<u64, Arc<Responder>>,
    next_qp: usize,
    next_region: usize,
    /// Counters of destroyed queue pairs.
    past: NicCounters,
}

/// One NIC: the port of one emulated device.
pub struct Nic {
    core: Arc<Core>,
    /// What peers open; it lives as long as the NIC.
    port_file: OwnedFd,
    control: Mutex<Control>,
    thread: Option<JoinHandle<()>>,
    wire_thread: Option<JoinHandle<()>>,
}

impl Nic {
    /// Opens a NIC.
    ///
    /// # Errors
    /// The operating system refuses the port's memory or the NIC's thread; with the verbs wire, what is wrong with the host's NIC.
    pub fn open(config: NicConfig) -> Result<Arc<Nic>, NicError> {
        Nic::open_timed(config, None)
    }

    /// Opens a NIC that tells a model of time of its requests.
    ///
    /// # Errors
    /// As [`Nic::open`]; a mode other than [`Mode::Inline`], where requests do not run on the ringing thread.
    pub fn open_timed(
        config: NicConfig,
        timing: Option<Arc<dyn Timing>>,
    ) -> Result<Arc<Nic>, NicError> {
        if timing.is_some() && config.mode != Mode::Inline {
            return Err(NicError::Argument {
                what: "mode of a NIC whose time is modelled",
                value: 0,
                expected: "inline (NPUSIM_NIC=inline)",
            });
        }
        let device = match &config.wire {
            Wire::Memory => None,
            Wire::Verbs(verbs) => Some(verbs::Device::open(verbs)?),
        };
        let (port, port_file) = Port::create()?;
        let core = Arc::new(Core {
            config,
            timing,
            own: Arc::new(Responder::own(port)),
            qps: (0..MAX_QPS).map(|_| OnceLock::new()).collect(),
            queue: worker::Queue::default(),
            device,
            wire: wire::Watch::default(),
            log: Log::default(),
            refused_doorbells: AtomicU64::new(0),
        });
        let control = Mutex::new(Control {
            watcher: None,
            peers: HashMap::new(),
            next_qp: RESERVED_QPS,
            next_region: 0,
            past: NicCounters::default(),
        });
        let mut nic = Nic {
            core,
            port_file,
            control,
            thread: None,
            wire_thread: None,
        };
        nic.thread = worker::start(&nic.core)?;
        if nic.core.device.is_some() {
            nic.wire_thread = Some(wire::start(&nic.core)?);
        }
        Ok(Arc::new(nic))
    }

    /// The address of the host's own NIC, with the verbs wire.
    pub fn ip(&self) -> Option<Ipv4Addr> {
        self.core.device.as_ref().map(|device| device.ip())
    }

    /// Takes what the host's own NIC has completed: for a thread that waits for a completion, so that it need not wait for the NIC's thread.
    /// False when nothing is under way, or somebody else looks. With the memory wire there is never anything to do.
    #[inline]
    pub fn progress(&self) -> bool {
        self.core.device.is_some() && self.core.progress()
    }

    /// The settings it was opened with.
    pub fn config(&self) -> &NicConfig {
        &self.core.config
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers memory. The keys are usable on a queue pair only after [`Nic::bind_mr`].
    ///
    /// # Errors
    /// Contradictory arguments, memory that is not a sealed memfd, access that a switch refuses, a full table.
    pub fn register_mr(&self, mr: MrInit) -> Result<MrKeys, NicError> {
        let argument = |what, value, expected| {
            Err(NicError::Argument {
                what,
                value,
                expected,
            })
        };
        if mr.len == 0 || mr.va.checked_add(mr.len).is_none() || usize::try_from(mr.len).is_err() {
            return argument(
                "length of the region",
                mr.len,
                "1 or more bytes that do not wrap the address space",
            );
        }
        if mr.access & !access::ALL != 0 {
            return argument("access", mr.access.into(), "bits 1, 2, 4, 8 and 0x100");
        }
        let remote_changes = access::REMOTE_WRITE | access::REMOTE_ATOMIC;
        if mr.access & remote_changes != 0 && mr.access & access::LOCAL_WRITE == 0 {
            return argument(
                "access",
                mr.access.into(),
                "local write (1) wherever remote write or atomics are allowed",
            );
        }
        if mr.access & access::REMOTE_ATOMIC != 0 && !self.core.config.atomic_access {
            return Err(NicError::AtomicAccess { access: mr.access });
        }
        let inode = check_backing(&mr)?;
        // SAFETY: `check_backing` has just used the descriptor, which stays open for this call by the contract of `Backing`.
        let file = unsafe { BorrowedFd::borrow_raw(mr.backing.fd) };
        let mapping = Mapping::new(file, mr.backing.offset, mr.len as usize)?;
        let place = Place {
            inode,
            offset: mr.backing.offset,
        };

        let mut control = self.control();
        let port = &self.core.own.port;
        let is_free = |slot: &&RegionSlot| slot.key.load(Ordering::Relaxed) == 0;
        let free = rotate(control.next_region, 0, MAX_REGIONS)
            .find(|slot| port.region(*slot).as_ref().is_some_and(is_free));
        let Some((index, slot)) = free.and_then(|index| Some((index, port.region(index)?))) else {
            return Err(NicError::Full {
                what: "memory regions",
                limit: MAX_REGIONS,
            });
        };
        control.next_region = index + 1;
        let key = loop {
            match slot.next_key(index) {
                0 => continue, // says "none" in the table
                key => break key,
            }
        };
        slot.access.store(mr.access, Ordering::Relaxed);
        slot.va.store(mr.va, Ordering::Relaxed);
        slot.len.store(mr.len, Ordering::Relaxed);
        slot.inode.store(inode, Ordering::Relaxed);
        slot.offset.store(mr.backing.offset, Ordering::Relaxed);
        slot.fd.store(mr.backing.fd, Ordering::Relaxed);
        let region = Region::new(key, mr.access, mr.va, mr.len, mapping, place);
        let rkey = match &self.core.device {
            Some(device) => region.register(device)?,
            None => key,
        };
        self.core.own.add(region);
        slot.key.store(key, Ordering::Release);
        Ok(MrKeys { lkey: key, rkey })
    }

    fn region_slot(&self, key: u32) -> Result<&RegionSlot, NicError> {
        let slot = self
            .core
            .own
            .port
            .region(key_slot(key))
            .ok_or(NicError::NoMr { key })?;
        match key != 0 && slot.key.load(Ordering::Acquire) == key {
            true => Ok(slot),
            false => Err(NicError::NoMr { key }),
        }
    }

    /// Ends a registration: requests that use its keys fail from now on.
    ///
    /// # Errors
    /// No such key.
    pub fn deregister_mr(&self, lkey: u32) -> Result<(), NicError> {
        let _control = self.control();
        let slot = self.region_slot(lkey)?;
        slot.key.store(0, Ordering::Release);
        self.core.own.remove(lkey);
        (0..MAX_QPS)
            .filter(|index| self.core.qp(*index).is_some())
            .for_each(|index| {
                if let Some(qp) = self.core.own.port.qp(index) {
                    qp.unbind(key_slot(lkey));
                }
            });
        Ok(())
    }

    /// Makes a queue pair with its completion queue, in state Init.
    ///
    /// # Errors
    /// Depths, sizes or alignments that the format does not have; inline payloads that a switch refuses; a full table.
    ///
    /// # Safety
    /// The rings and record words are valid for reads and writes of the sizes that `init` says, on every thread, until
    /// [`Nic::destroy_qp`] has returned or the NIC is dropped.
    pub unsafe fn create_qp(&self, init: QpInit) -> Result<QpNumbers, NicError> {
        check_init(&init)?;
        if init.max_inline > 0 && !self.core.config.inline {
            return Err(NicError::Inline {
                max_inline: init.max_inline,
            });
        }
        let mut control = self.control();
        let port = &self.core.own.port;
        let is_free = |index: &usize| {
            port.qp(*index)
                .is_some_and(|slot| slot.word().state == QpState::Reset)
        };
        let free = rotate(control.next_qp, RESERVED_QPS, MAX_QPS).find(is_free);
        let (Some(index), Some(slot)) = (free, free.and_then(|index| port.qp(index))) else {
            return Err(NicError::Full {
                what: "queue pairs",
                limit: MAX_QPS - RESERVED_QPS,
            });
        };
        control.next_qp = index + 1;

        let config = &self.core.config;
        let chaos = match config.mode {
            Mode::Chaos { seed } => Some(Box::new(Chaos::new(seed, index, config.early_ack))),
            Mode::Inline | Mode::Thread => None,
        };
        let wire = match &self.core.device {
            Some(device) => {
                let depth = wire::Wire::depth(init.sq_depth);
                let inline = MAX_INLINE as u32;
                let pair = device.create_qp(depth, inline, config.atomics)?;
                Some(wire::Wire::new(pair))
            }
            None => None,
        };
        let qp = self.core.qps[index].get_or_init(|| Box::new(Qp::new(index)));
        qp.install(Engine::new(index, &init, chaos, wire));

        let atomics = if config.atomics { right::ATOMIC } else { 0 };
        slot.rights
            .store(right::READ | right::WRITE | atomics, Ordering::Relaxed);
        slot.unbind_all();
        slot.set_word(QpWord {
            incarnation: slot.word().next(),
            state: QpState::Init,
        });
        Ok(QpNumbers {
            qpn: index as u32,
            cqn: cqn_of(index),
        })
    }

    /// Makes a region's keys usable on a queue pair: as local key of its requests and as remote key of requests that arrive at it.
    ///
    /// # Errors
    /// No such queue pair or region.
    pub fn bind_mr(&self, qpn: u32, lkey: u32) -> Result<(), NicError> {
        let _control = self.control();
        let (_, slot) = self.core.existing(qpn)?;
        self.region_slot(lkey)?;
        slot.bind(key_slot(lkey));
        Ok(())
    }

    /// Where peers find the queue pair.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn qp_address(&self, qpn: u32) -> Result<QpAddress, NicError> {
        let (qp, slot) = self.core.existing(qpn)?;
        let address = port::address_of(
            &self.core.own.port,
            &self.port_file,
            qpn,
            slot.word().incarnation,
        )?;
        let engine = qp.engine();
        let wire = engine.as_ref().and_then(|engine| engine.wire.as_ref());
        Ok(QpAddress {
            verbs: wire.map_or_else(VerbsAddress::default, |wire| wire.pair().address()),
            ..address
        })
    }

    /// Connects a queue pair to a peer's, of the same or another process (with the verbs wire: host), and makes it ready to send.
    ///
    /// # Errors
    /// No such queue pair, a state other than Init, a peer that cannot be reached.
    pub fn connect(&self, qpn: u32, peer: &QpAddress) -> Result<(), NicError> {
        if peer.magic != QpAddress::MAGIC || peer.version != QpAddress::VERSION {
            let why = format!(
                "magic {:#x} version {}, expected {:#x} {}",
                peer.magic,
                peer.version,
                QpAddress::MAGIC,
                QpAddress::VERSION
            );
            return Err(NicError::Address { why });
        }
        let mut control = self.control();
        let (qp, slot) = self.core.existing(qpn)?;
        let word = slot.word();
        if word.state != QpState::Init {
            return Err(NicError::State {
                qpn,
                state: word.state,
                call: "connect",
                needed: "Init",
            });
        }
        if self.core.device.is_some() || peer.verbs != VerbsAddress::default() {
            self.connect_wire(qp, peer)?;
            slot.set_word(QpWord {
                state: QpState::Rts,
                ..word
            });
            return Ok(());
        }
        let responder = self.responder(&mut control, peer)?;
        let index = peer.qpn as usize;
        if responder
            .port
            .qp(index)
            .is_none_or(|slot| slot.word().incarnation != peer.incarnation)
        {
            return Err(NicError::Address {
                why: format!("the peer has destroyed its queue pair {:#x}", peer.qpn),
            });
        }
        let own = (self.core.own.port.nonce(), qpn);
        if let Some(engine) = qp.engine().as_mut() {
            engine.target = Some(Target::new(responder, index, peer.incarnation, own));
        }
        slot.peer_nonce.store(peer.nonce, Ordering::Relaxed);
        slot.peer_qpn.store(peer.qpn, Ordering::Relaxed);
        slot.set_word(QpWord {
            state: QpState::Rts,
            ..word
        });
        Ok(())
    }

    /// Joins the queue pair of the host's NIC to the peer's.
    fn connect_wire(&self, qp: &Qp, peer: &QpAddress) -> Result<(), NicError> {
        let (mine, theirs) = match (&self.core.device, peer.verbs == VerbsAddress::default()) {
            (Some(_), false) => ("verbs", "verbs"),
            (Some(_), true) => ("verbs", "memory"),
            (None, _) => ("memory", "verbs"),
        };
        let mut engine = qp.engine();
        match engine.as_mut().and_then(|engine| engine.wire.as_mut()) {
            Some(wire) if mine == theirs => {
                wire.pair().connect(&peer.verbs)?;
                wire.peer = peer.qpn;
                Ok(())
            }
            _ => Err(NicError::Wires { mine, theirs }),
        }
    }

    fn responder(
        &self,
        control: &mut Control,
        peer: &QpAddress,
    ) -> Result<Arc<Responder>, NicError> {
        if peer.nonce == self.core.own.port.nonce() {
            return Ok(Arc::clone(&self.core.own));
        }
        if let Some(known) = control.peers.get(&peer.nonce) {
            return Ok(Arc::clone(known));
        }
        let responder = Arc::new(Responder::import(peer)?);
        if control.watcher.is_none() {
            control.watcher = Some(Watcher::start()?);
        }
        if let Some(watcher) = &control.watcher {
            watcher.add(&responder)?;
        }
        control.peers.insert(peer.nonce, Arc::clone(&responder));
        Ok(responder)
    }

    /// State of a queue pair.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn qp_state(&self, qpn: u32) -> Result<QpState, NicError> {
        self.core.existing(qpn).map(|(_, slot)| slot.word().state)
    }

    /// Moves a queue pair to Error and completes what is left in its send ring with status 0x05, as the driver does after a failed
    /// completion. Requests told by later doorbells wait for the next flush (with [`Flush::Auto`]: for nothing).
    ///
    /// # Errors
    /// No such queue pair.
    pub fn flush(&self, qpn: u32) -> Result<(), NicError> {
        let (qp, _) = self.core.existing(qpn)?;
        if let Some(engine) = qp.engine().as_mut() {
            engine.set_state(&self.core, QpState::Error);
            engine.flush(&self.core, qp);
        }
        Ok(())
    }

    /// Destroys a queue pair. Its rings are not touched after this has returned.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn destroy_qp(&self, qpn: u32) -> Result<(), NicError> {
        let mut control = self.control();
        let (qp, slot) = self.core.existing(qpn)?;
        let mut engine = qp.engine();
        if let Some(engine) = engine.as_mut() {
            engine.land_everything(&self.core, qp);
            control.past += engine.counters;
            control.past += qp.doorbells();
        }
        *engine = None;
        slot.set_word(QpWord {
            state: QpState::Reset,
            ..slot.word()
        });
        Ok(())
    }

    /// A 64-bit store to the doorbell register: send queue, consumer index, arm. Any thread may call it.
    ///
    /// In inline mode the requests have been executed when this returns. What this thread wrote before is visible to the NIC.
    ///
    /// # Errors
    /// A doorbell that the hardware would drop or answer with an event.
    #[inline]
    pub fn doorbell(&self, value: u64) -> Result<(), DoorbellError> {
        let result = match Doorbell::decode(value) {
            Doorbell::Send { qpn, producer, .. } => self.send_doorbell(value, qpn, producer),
            Doorbell::Consumer { cqn, consumer } => self.consumer_doorbell(value, cqn, consumer),
            Doorbell::Arm { cqn, .. } => self.completion_queue(value, cqn).map(|qp| {
                qp.arm_doorbells.fetch_add(1, Ordering::Relaxed);
            }),
            Doorbell::Other { command } => Err(DoorbellError::Command { value, command }),
        };
        if let Err(error) = &result {
            self.refuse(error);
        }
        result
    }

    #[cold]
    fn refuse(&self, error: &DoorbellError) {
        self.core.refused_doorbells.fetch_add(1, Ordering::Relaxed);
        if let DoorbellError::Overflow { qpn, .. } = error {
            self.core.log.raise(EventKind::DoorbellOverflow, *qpn);
        }
        self.core.log.say(error.to_string());
    }

    #[inline]
    fn send_doorbell(&self, value: u64, qpn: u32, producer: u32) -> Result<(), DoorbellError> {
        let no_queue = DoorbellError::NoQueue {
            value,
            kind: "queue pair",
            number: qpn,
        };
        let (Some(qp), Some(slot)) = (
            self.core.qp(qpn as usize),
            self.core.own.port.qp(qpn as usize),
        ) else {
            return Err(no_queue);
        };
        match slot.word().state {
            QpState::Rts | QpState::Error => (),
            QpState::Reset => return Err(no_queue),
            state @ QpState::Init => return Err(DoorbellError::State { value, qpn, state }),
        }
        qp.announce(value, producer)?;
        qp.sq_doorbells.fetch_add(1, Ordering::Relaxed);
        if self.core.config.mode == Mode::Inline {
            if let Some(engine) = qp.engine().as_mut() {
                engine.run(&self.core, qp);
            }
        } else if !qp.queued.swap(true, Ordering::SeqCst) {
            self.core.queue.push(qp.index);
        }
        Ok(())
    }

    #[inline]
    fn consumer_doorbell(&self, value: u64, cqn: u32, consumer: u32) -> Result<(), DoorbellError> {
        let qp = self.completion_queue(value, cqn)?;
        qp.consume(value, consumer)?;
        qp.cq_doorbells.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    #[inline]
    fn completion_queue(&self, value: u64, cqn: u32) -> Result<&Qp, DoorbellError> {
        let index = cqn.wrapping_sub(FIRST_CQN) as usize;
        let exists = |index| {
            self.core
                .own
                .port
                .qp(index)
                .is_some_and(|slot| slot.word().state != QpState::Reset)
        };
        match self.core.qp(index) {
            Some(qp) if exists(index) => Ok(qp),
            _ => Err(DoorbellError::NoQueue {
                value,
                kind: "completion queue",
                number: cqn,
            }),
        }
    }

    /// Declares the process behind a peer's address dead, as the watcher does when the process ends: requests to it complete
    /// with status 0x15. A peer that was never connected to is ignored.
    pub fn mark_peer_dead(&self, peer: &QpAddress) {
        if let Some(responder) = self.control().peers.get(&peer.nonce) {
            responder.bury();
        }
    }

    /// Whether the process behind a peer's address is known to have ended; false for a peer that was never connected to.
    pub fn is_peer_dead(&self, peer: &QpAddress) -> bool {
        self.control()
            .peers
            .get(&peer.nonce)
            .is_some_and(|responder| responder.port.is_dead())
    }

    /// What the NIC did so far. In modes thread and chaos, requests under way may or may not be in.
    pub fn counters(&self) -> NicCounters {
        let control = self.control();
        let mut sum = control.past;
        for qp in (0..MAX_QPS).filter_map(|index| self.core.qp(index)) {
            if let Some(engine) = qp.engine().as_ref() {
                sum += engine.counters;
                sum += qp.doorbells();
            }
        }
        sum.refused_doorbells = self.core.refused_doorbells.load(Ordering::Relaxed);
        sum
    }

    /// What hardware would do silently: failed requests, stalls, overflows, refused doorbells; the oldest first, at most 256.
    pub fn diagnostics(&self) -> Vec<String> {
        self.core.log.sentences()
    }

    /// The same, and forgets them: each is told once.
    pub fn take_diagnostics(&self) -> Vec<String> {
        self.core.log.take()
    }

    /// Asynchronous events so far, the oldest first, at most 256.
    pub fn events(&self) -> Vec<Event> {
        self.core.log.events()
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        self.core.own.port.mark_dead();
        self.core.queue.stop();
        self.core.wire.stop();
        for thread in [self.thread.take(), self.wire_thread.take()]
            .into_iter()
            .flatten()
        {
            // The thread has ended either way; a panic in it was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Qp {
    fn doorbells(&self) -> NicCounters {
        NicCounters {
            sq_doorbells: self.sq_doorbells.load(Ordering::Relaxed),
            cq_doorbells: self.cq_doorbells.load(Ordering::Relaxed),
            arm_doorbells: self.arm_doorbells.load(Ordering::Relaxed),
            ..NicCounters::default()
        }
    }
}

impl AddAssign for NicCounters {
    fn add_assign(&mut self, other: NicCounters) {
        self.writes += other.writes;
        self.inline_writes += other.inline_writes;
        self.reads += other.reads;
        self.fetch_adds += other.fetch_adds;
        self.compare_swaps += other.compare_swaps;
        self.others += other.others;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
        self.completions += other.completions;
        self.errors += other.errors;
        self.sq_doorbells += other.sq_doorbells;
        self.cq_doorbells += other.cq_doorbells;
        self.arm_doorbells += other.arm_doorbells;
        self.refused_doorbells += other.refused_doorbells;
    }
}

/// Every number from `first` to `end`, beginning with `start`, so that a freed one is not given out again at once.
fn rotate(start: usize, first: usize, end: usize) -> impl Iterator<Item = usize> {
    let start = start.clamp(first, end);
    (start..end).chain(first..start)
}

fn check_init(init: &QpInit) -> Result<(), NicError> {
    let require = |holds: bool, what, value: u64, expected| match holds {
        true => Ok(()),
        false => Err(NicError::Argument {
            what,
            value,
            expected,
        }),
    };
    let is_depth = |depth: u32, range: std::ops::RangeInclusive<u32>| {
        depth.is_power_of_two() && range.contains(&depth)
    };
    let is_aligned = |address: usize, to: usize| address != 0 && address.is_multiple_of(to);
    let (sq, cq) = (init.sq as usize, init.cq as usize);
    let (sq_record, cq_record) = (init.sq_swdb as usize, init.cq_swdb as usize);
    let cqe_size = init.cqe_size as usize;
    require(
        is_depth(init.sq_depth, SQ_DEPTHS),
        "send depth",
        init.sq_depth.into(),
        "a power of two from 64 to 32768",
    )?;
    require(
        is_depth(init.cq_depth, CQ_DEPTHS),
        "completion depth",
        init.cq_depth.into(),
        "a power of two from 64 to 4194304",
    )?;
    require(
        matches!(cqe_size, 32 | 64),
        "completion entry size",
        init.cqe_size.into(),
        "32 or 64 bytes",
    )?;
    require(
        init.max_inline as usize <= MAX_INLINE,
        "inline limit",
        init.max_inline.into(),
        "at most 32 bytes",
    )?;
    require(
        is_aligned(sq, WQE_SIZE),
        "address of the send ring",
        sq as u64,
        "64-byte aligned, not null",
    )?;
    require(
        is_aligned(cq, cqe_size),
        "address of the completion ring",
        cq as u64,
        "aligned to the entry size, not null",
    )?;
    require(
        sq_record % 4 == 0,
        "address of the send record word",
        sq_record as u64,
        "4-byte aligned, or null",
    )?;
    require(
        cq_record % 4 == 0,
        "address of the completion record word",
        cq_record as u64,
        "4-byte aligned, or null",
    )
}
