//! Queue pairs as HCCP hands them to a kernel: their rings in device memory, their numbers, their way to "connected".
//!
//! The NIC runs them (`npushmem_roce::nic`); this file lays the memory out and keeps HCCP's status. `entry.rs` makes and destroys them,
//! `agent.rs` connects them.
//!
//! **Memory of one queue pair**, each part on its own 4 KiB page (or in 2 MiB pages when `mem_align` asks for them), zeroed:
//! send ring (64 bytes a slot), extended scatter entries (one page; requests of one piece never use it), receive ring, send completions,
//! receive completions, and one page of counters: head, tail and record word of each ring, a 64-byte line each.
//!
//! **After an error** the NIC leaves the requests behind the failed one without completions, as hip08 does, until the driver moves on. HCCP
//! has one call that can mean that: [`Queue::destroy`] first flushes the queue pair (0x05 completions), then ends it. Recovery is destroy and
//! create.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use npushmem_ffi::hccp as c;
use npushmem_roce::nic::{Nic, NicError, QpAddress, QpInit, QpNumbers, QpState};

use super::error::HccpError;
use crate::doorbell;
use crate::memory::{self, Fill};

/// Bytes of a send ring's slot (`wqebb_size`).
const SEND_SLOT: u64 = 64;
/// Bytes of a scatter entry.
const SCATTER: u64 = 16;
/// Entries of the extended scatter area: the least the format has, one page.
const EXTENDED_SCATTER: u64 = 256;
/// Bytes of a page of the rings.
const PAGE: u64 = 4096;
/// Bytes of a huge page (`HCCP_MEM_ALIGN_2M`).
const HUGE_PAGE: u64 = 2 << 20;
/// Bytes between two counters, so that each has a cache line.
const LINE: u64 = 64;
/// Counters: head, tail and record word of four rings.
const COUNTERS: u64 = 12;
/// Smallest depth of a ring (`HNS_ROCE_MIN_WQE_NUM` of libhns).
pub const DEPTH_MIN: u32 = 64;
/// Largest depth of a work request ring (`max_qp_wr`).
pub const DEPTH_MAX: u32 = 32768;
/// Largest depth of a completion ring (`max_cqe`).
pub const COMPLETIONS_MAX: u32 = 0x40_0000;
/// Scatter entries a receive request may have (`max_sge`).
const PIECES_MAX: u32 = 64;
/// Bytes that fit into a request (hip08).
const INLINE_MAX: u32 = 32;

/// How far a queue pair is connected, with the numbers of `ra_get_qp_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Nobody tried.
    Disconnected = 0,
    /// Requests can flow.
    Connected = 1,
    /// The peer did not answer in time, or gave up, or cannot be reached.
    Timeout = 2,
    /// On its way.
    Connecting = 3,
    /// The connection that carried the exchange closed.
    Closed = 4,
}

/// What `ra_ai_qp_create` is asked for, checked.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    send_depth: u32,
    receive_depth: u32,
    receive_slot: u64,
    send_completions: u32,
    receive_completions: u32,
    completion_bytes: u32,
    max_inline: u32,
    signal_all: bool,
    align: u64,
}

/// Where the parts lie, bytes from the start of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    receive: u64,
    send_completions: u64,
    receive_completions: u64,
    counters: u64,
    bytes: u64,
}

struct Progress {
    status: Status,
    why: String,
    /// The host has seen "connecting" of this attempt.
    seen: bool,
}

/// Device memory of one queue pair; freed when it is dropped.
struct RingMemory {
    base: u64,
}

impl RingMemory {
    fn new(device: u32, bytes: u64, align: u64) -> Result<Self, HccpError> {
        // Device numbers are checked against the number of devices long before, so the cast loses nothing.
        match memory::alloc_device(device as i32, bytes, align, Fill::Zero) {
            Ok(region) => Ok(Self { base: region.va }),
            Err(fail) => Err(HccpError::Memory {
                device,
                bytes,
                why: fail.text,
            }),
        }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        if let Err(fail) = memory::free(self.base) {
            tracing::warn!(
                "the rings at {:#x} could not be freed: {}",
                self.base,
                fail.text
            );
        }
    }
}

/// A queue pair.
pub struct Queue {
    device: u32,
    nic: Arc<Nic>,
    numbers: QpNumbers,
    progress: Mutex<Progress>,
    /// Regions that `ra_mr_reg` registered for this queue pair alone, by key.
    own_regions: Mutex<Vec<u32>>,
    /// `None` once the NIC has let go of it.
    memory: Mutex<Option<RingMemory>>,
}

fn depth(what: &'static str, got: i64, max: u32, may_be_zero: bool) -> Result<u32, HccpError> {
    let value = u32::try_from(got).unwrap_or(u32::MAX);
    let fits = value.is_power_of_two() && (DEPTH_MIN..=max).contains(&value);
    if fits || (may_be_zero && value == 0) {
        Ok(value)
    } else {
        Err(HccpError::Depth {
            what,
            got,
            min: DEPTH_MIN,
            max,
        })
    }
}

fn demand(
    ok: bool,
    what: &'static str,
    got: impl Into<i64>,
    want: &'static str,
) -> Result<(), HccpError> {
    if ok {
        Ok(())
    } else {
        Err(HccpError::Mode {
            what,
            got: got.into(),
            want,
        })
    }
}

impl Shape {
    /// Checks what a caller of `ra_ai_qp_create` asks for.
    pub fn new(attrs: &c::HccpQpExtAttrs) -> Result<Self, HccpError> {
        let (cap, cq) = (&attrs.qp_attr.cap, &attrs.cqAttr);
        demand(
            attrs.qpMode == c::NETWORK_OFFLINE as i32,
            "qpMode",
            attrs.qpMode,
            "1 (NETWORK_OFFLINE, the NIC of the die)",
        )?;
        demand(
            attrs.version == c::HCCP_QP_EXT_VERSION,
            "version",
            attrs.version,
            "1",
        )?;
        demand(
            attrs.qp_attr.qp_type == c::IBV_QPT_RC,
            "qp_type",
            attrs.qp_attr.qp_type,
            "2 (IBV_QPT_RC)",
        )?;
        demand(
            attrs.data_plane_flag & c::HCCP_CQ_CUSTOM != 0,
            "data_plane_flag",
            attrs.data_plane_flag,
            "bit 0 (the caller polls the completion ring)",
        )?;
        demand(
            cap.max_send_sge <= 1,
            "max_send_sge",
            cap.max_send_sge,
            "0 or 1 piece a request",
        )?;
        demand(
            cap.max_recv_sge <= PIECES_MAX,
            "max_recv_sge",
            cap.max_recv_sge,
            "0 to 64",
        )?;
        demand(
            cap.max_inline_data <= INLINE_MAX,
            "max_inline_data",
            cap.max_inline_data,
            "0 to 32 bytes",
        )?;
        let align = match attrs.mem_align {
            0 | 1 => PAGE,
            2 => HUGE_PAGE,
            other => {
                return Err(HccpError::Mode {
                    what: "mem_align",
                    got: other.into(),
                    want: "0 or 1 (4 KiB pages) or 2 (2 MiB pages)",
                })
            }
        };
        Ok(Self {
            send_depth: depth("max_send_wr", cap.max_send_wr.into(), DEPTH_MAX, false)?,
            receive_depth: depth("max_recv_wr", cap.max_recv_wr.into(), DEPTH_MAX, true)?,
            // One piece more than asked is reserved by hip08 in every receive request.
            receive_slot: (u64::from(cap.max_recv_sge) + 1).next_power_of_two() * SCATTER,
            send_completions: depth("sendCqDepth", cq.sendCqDepth.into(), COMPLETIONS_MAX, false)?,
            receive_completions: depth(
                "recvCqDepth",
                cq.recvCqDepth.into(),
                COMPLETIONS_MAX,
                true,
            )?,
            completion_bytes: completion_bytes()?,
            max_inline: cap.max_inline_data,
            signal_all: attrs.qp_attr.sq_sig_all != 0,
            align,
        })
    }

    /// What `ra_qp_create` makes: a queue pair that a host would drive; here it can be connected and destroyed, nothing more.
    pub fn plain() -> Result<Self, HccpError> {
        const PLAIN_DEPTH: u32 = 128;
        Ok(Self {
            send_depth: PLAIN_DEPTH,
            receive_depth: PLAIN_DEPTH,
            receive_slot: 2 * SCATTER,
            send_completions: PLAIN_DEPTH,
            receive_completions: PLAIN_DEPTH,
            completion_bytes: completion_bytes()?,
            max_inline: 0,
            signal_all: false,
            align: PAGE,
        })
    }

    fn layout(&self) -> Layout {
        let page = |bytes: u64| bytes.next_multiple_of(PAGE);
        let receive =
            page(u64::from(self.send_depth) * SEND_SLOT) + page(EXTENDED_SCATTER * SCATTER);
        let send_completions = receive + page(u64::from(self.receive_depth) * self.receive_slot);
        let receive_completions = send_completions
            + page(u64::from(self.send_completions) * u64::from(self.completion_bytes));
        let counters = receive_completions
            + page(u64::from(self.receive_completions) * u64::from(self.completion_bytes));
        Layout {
            receive,
            send_completions,
            receive_completions,
            counters,
            bytes: (counters + COUNTERS * LINE).next_multiple_of(self.align),
        }
    }
}

/// Bytes of a completion: `NPUSIM_CQE_SIZE`, 32 (hip08, what HCCP gives) or 64 (hip09).
pub fn completion_bytes() -> Result<u32, HccpError> {
    match std::env::var("NPUSIM_CQE_SIZE").as_deref() {
        Err(_) | Ok("" | "32") => Ok(32),
        Ok("64") => Ok(64),
        Ok(other) => Err(HccpError::Setting {
            name: "NPUSIM_CQE_SIZE",
            value: other.into(),
            want: "32 or 64 bytes a completion",
        }),
    }
}

impl Queue {
    /// Makes a queue pair on a NIC whose doorbell page is `page`, and tells what a kernel needs of it.
    pub fn create(
        device: u32,
        nic: &Arc<Nic>,
        page: u64,
        shape: &Shape,
    ) -> Result<(Arc<Self>, c::ai_data_plane_info), HccpError> {
        let layout = shape.layout();
        let memory = RingMemory::new(device, layout.bytes, shape.align)?;
        let base = memory.base;
        let counter = |ring: u64, which: u64| base + layout.counters + (ring * 3 + which) * LINE;
        let init = QpInit {
            sq: base as *mut u8,
            sq_depth: shape.send_depth,
            cq: (base + layout.send_completions) as *mut u8,
            cq_depth: shape.send_completions,
            cqe_size: shape.completion_bytes,
            max_inline: shape.max_inline,
            sq_sig_all: shape.signal_all,
            sq_swdb: counter(0, 2) as *mut u32,
            cq_swdb: counter(2, 2) as *mut u32,
        };
        // SAFETY: rings and words lie in `memory`, which the queue keeps until `destroy` has returned from destroy_qp.
        let numbers = unsafe { nic.create_qp(init) }.map_err(|error| match error {
            NicError::Inline { max_inline } => HccpError::Inline { bytes: max_inline },
            other => other.into(),
        })?;
        let register = page + doorbell::REGISTER;
        let work = |ring, buf_addr, slot: u64, depth| c::ai_data_plane_wq {
            wqn: numbers.qpn,
            buf_addr,
            wqebb_size: slot as u32,
            depth,
            head_addr: counter(ring, 0),
            tail_addr: counter(ring, 1),
            swdb_addr: counter(ring, 2),
            db_reg: register,
            reserved: [0; 8],
        };
        let completions = |ring, buf_addr, depth| c::ai_data_plane_cq {
            cqn: numbers.cqn,
            buf_addr,
            cqe_size: shape.completion_bytes,
            depth,
            head_addr: counter(ring, 0),
            tail_addr: counter(ring, 1),
            swdb_addr: counter(ring, 2),
            db_reg: register,
            reserved: [0; 2],
        };
        let info = c::ai_data_plane_info {
            sq: work(0, base, SEND_SLOT, shape.send_depth),
            rq: work(
                1,
                base + layout.receive,
                shape.receive_slot,
                shape.receive_depth,
            ),
            scq: completions(2, base + layout.send_completions, shape.send_completions),
            rcq: completions(
                3,
                base + layout.receive_completions,
                shape.receive_completions,
            ),
            reserved: [0; 8],
        };
        let queue = Self {
            device,
            nic: nic.clone(),
            numbers,
            progress: Mutex::new(Progress {
                status: Status::Disconnected,
                why: String::new(),
                seen: true,
            }),
            own_regions: Mutex::default(),
            memory: Mutex::new(Some(memory)),
        };
        Ok((Arc::new(queue), info))
    }

    /// Its device.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.numbers.qpn
    }

    /// Its NIC.
    pub fn nic(&self) -> &Arc<Nic> {
        &self.nic
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a peer finds it.
    pub fn address(&self) -> Result<QpAddress, HccpError> {
        Ok(self.nic.qp_address(self.numbers.qpn)?)
    }

    /// Begins an attempt to connect.
    pub fn start(&self) -> Result<(), HccpError> {
        let refuse = |state, fix| {
            Err(HccpError::QueueState {
                qpn: self.numbers.qpn,
                state,
                fix,
            })
        };
        let mut progress = self.progress();
        if progress.status == Status::Connecting {
            return refuse("connecting already", "poll ra_get_qp_status");
        }
        match self.nic.qp_state(self.numbers.qpn)? {
            QpState::Init => {}
            QpState::Rts => return refuse("connected already", "connect each queue pair once"),
            QpState::Error => {
                return refuse(
                    "broken by an earlier error",
                    "destroy it and make a new one",
                )
            }
            QpState::Reset => return refuse("destroyed", "make a new one"),
        }
        *progress = Progress {
            status: Status::Connecting,
            why: String::new(),
            seen: false,
        };
        Ok(())
    }

    /// Joins it to its peer.
    pub fn join(&self, peer: &QpAddress) -> Result<(), HccpError> {
        Ok(self.nic.connect(self.numbers.qpn, peer)?)
    }

    /// Ends an attempt to connect.
    pub fn settle(&self, status: Status, why: String) {
        let mut progress = self.progress();
        (progress.status, progress.why) = (status, why);
    }

    /// Its status, and why it failed. The first answer after an attempt began is always "connecting": hosts must poll.
    pub fn status(&self) -> (Status, String) {
        let mut progress = self.progress();
        if !progress.seen {
            progress.seen = true;
            return (Status::Connecting, String::new());
        }
        (progress.status, progress.why.clone())
    }

    /// Makes a region's keys usable on it; with `own`, the region ends with the queue pair.
    pub fn bind(&self, key: u32, own: bool) -> Result<(), HccpError> {
        if own {
            self.own_regions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(key);
        }
        Ok(self.nic.bind_mr(self.numbers.qpn, key)?)
    }

    /// Flushes it if it broke, ends it in the NIC, and frees its memory. Idempotent.
    pub fn destroy(&self) -> Result<(), HccpError> {
        let Some(memory) = self
            .memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        else {
            return Ok(());
        };
        if matches!(self.nic.qp_state(self.numbers.qpn), Ok(QpState::Error)) {
            self.nic.flush(self.numbers.qpn)?;
        }
        let destroyed = self.nic.destroy_qp(self.numbers.qpn);
        for key in std::mem::take(
            &mut *self
                .own_regions
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        ) {
            self.nic.deregister_mr(key)?;
        }
        match destroyed {
            Ok(()) => {
                drop(memory);
                Ok(())
            }
            Err(error) => {
                // The NIC may still write to the rings: leak them rather than hand them to somebody else.
                std::mem::forget(memory);
                Err(error.into())
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Err(error) = self.destroy() {
            tracing::warn!(
                "queue pair {} of device {} was dropped: {error}",
                self.numbers.qpn,
                self.device
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(change: impl FnOnce(&mut c::HccpQpExtAttrs)) -> Result<Shape, HccpError> {
        // SAFETY: a C structure of numbers and pointers; all zeros is a value of it.
        let mut attrs: c::HccpQpExtAttrs = unsafe { std::mem::zeroed() };
        (
            attrs.qpMode,
            attrs.version,
            attrs.data_plane_flag,
            attrs.qp_attr.qp_type,
        ) = (1, 1, 1, c::IBV_QPT_RC);
        (attrs.cqAttr.sendCqDepth, attrs.cqAttr.recvCqDepth) = (8192, 128);
        (
            attrs.qp_attr.cap.max_send_wr,
            attrs.qp_attr.cap.max_recv_wr,
            attrs.qp_attr.cap.max_recv_sge,
        ) = (8192, 128, 1);
        change(&mut attrs);
        Shape::new(&attrs)
    }

    #[test]
    fn parts_lie_apart_on_pages_of_their_own() {
        let layout = asked(|_| {}).expect("the vendor's own values").layout();
        let send = 8192 * 64 + 4096;
        let send_completions = send + 4096;
        let receive_completions = send_completions + 8192 * 32;
        let counters = receive_completions + 4096;
        assert_eq!(
            layout,
            Layout {
                receive: send,
                send_completions,
                receive_completions,
                counters,
                bytes: counters + 4096
            }
        );
    }

    #[test]
    fn two_mebibyte_pages_round_the_block_up() {
        let shape = asked(|attrs| attrs.mem_align = 2).expect("2 MiB pages");
        assert_eq!((shape.align, shape.layout().bytes), (HUGE_PAGE, HUGE_PAGE));
    }

    #[test]
    fn a_depth_that_is_no_power_of_two_or_out_of_range_is_refused_by_name() {
        for (depth, fine) in [
            (63, false),
            (64, true),
            (100, false),
            (512, true),
            (32768, true),
            (65536, false),
        ] {
            let shape = asked(|attrs| attrs.qp_attr.cap.max_send_wr = depth);
            assert_eq!(shape.is_ok(), fine, "{depth}");
            assert!(shape
                .err()
                .is_none_or(|why| why.to_string().contains("max_send_wr")
                    && why.to_string().contains("64 to 32768")));
        }
        assert!(asked(|attrs| attrs.cqAttr.sendCqDepth = -1)
            .is_err_and(|why| why.to_string().contains("sendCqDepth is -1")));
    }

    #[test]
    fn what_the_data_path_cannot_do_is_refused() {
        assert!(asked(|attrs| attrs.data_plane_flag = 0)
            .is_err_and(|why| why.to_string().contains("polls")));
        assert!(asked(|attrs| attrs.qp_attr.cap.max_inline_data = 33).is_err());
        assert!(asked(|attrs| attrs.qp_attr.qp_type = 4).is_err());
    }
}
