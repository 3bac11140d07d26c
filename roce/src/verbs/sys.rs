//! Verbs over rdma-sys: the only file that names that crate.
//!
//! Owners for a device with its protection domain, regions, and queue pairs with their completion queues; each keeps the device alive.
//! rdma-sys is generated from rdma-core's own headers, so layouts and constants are those of the installed libibverbs.

use std::ffi::CStr;
use std::io;
use std::net::Ipv4Addr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use rdma_sys as ibv;

use super::{
    ipv4_of, Completion, Operation, Request, Segment, VerbsAddress, VerbsConfig, VerbsError,
};
use crate::cqe::Status;

/// The port that is used. RoCE devices have one port each on current drivers.
const PORT: u8 = 1;
/// Requests given to the driver in one call.
const BATCH: usize = 16;
/// Completions taken in one call.
const POLL_BATCH: usize = 32;
/// READs and atomics under way at once, at most.
const READS_MAX: i32 = 16;
/// Local ACK timeout: 4.096 us * 2^14, about 67 ms.
const ACK_TIMEOUT: u8 = 14;
/// Retransmissions before a peer counts as gone: with the timeout above, a second or a few. Not 7, which rxe takes for "for ever".
const RETRIES: u8 = 6;
/// There are no receive queues, so a SEND is refused at once.
const RNR_RETRIES: u8 = 0;
/// 0.64 ms (InfiniBand 1.4, table 45).
const RNR_TIMER: u8 = 12;
/// Hops that a packet may take.
const HOPS: u8 = 64;
/// Packet sequence numbers and queue pair numbers have 24 bits.
const MASK_24: u32 = 0xff_ffff;

/// An open device with its protection domain.
pub(crate) struct Device {
    name: String,
    context: NonNull<ibv::ibv_context>,
    domain: NonNull<ibv::ibv_pd>,
    gid: ibv::ibv_gid,
    gid_index: u32,
    ip: Ipv4Addr,
    mtu: u32,
    max_message: u64,
    max_requests: u32,
    reads: u32,
    next_psn: AtomicU32,
}

// SAFETY: libibverbs allows its calls from any thread; the fields are only read after `open`.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

fn last_error() -> io::Error {
    io::Error::last_os_error()
}

/// The devices of this host; freed when dropped.
struct List {
    first: *mut *mut ibv::ibv_device,
    count: usize,
}

impl List {
    fn get() -> List {
        let mut count = 0;
        // SAFETY: the out-pointer is a local.
        let first = unsafe { ibv::ibv_get_device_list(&mut count) };
        let count = if first.is_null() {
            0
        } else {
            usize::try_from(count).unwrap_or(0)
        };
        List { first, count }
    }

    fn devices(&self) -> impl Iterator<Item = (*mut ibv::ibv_device, String)> + '_ {
        (0..self.count).map(|index| {
            // SAFETY: the list has `count` devices, whose names are C strings that live as long as the list.
            unsafe {
                let device = *self.first.add(index);
                let name = CStr::from_ptr(ibv::ibv_get_device_name(device));
                (device, name.to_string_lossy().into_owned())
            }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: the list came from ibv_get_device_list; opened devices stay valid without it.
            unsafe { ibv::ibv_free_device_list(self.first) };
        }
    }
}

impl Device {
    /// Opens the device and picks its address.
    pub(crate) fn open(config: &VerbsConfig) -> Result<Arc<Device>, VerbsError> {
        let list = List::get();
        let all: Vec<_> = list.devices().collect();
        let have = || {
            let names: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
            names.join(", ")
        };
        let (raw, name) = match (&config.device, all.as_slice()) {
            (_, []) => return Err(VerbsError::NoDevices),
            (None, [one]) => one.clone(),
            (None, _) => return Err(VerbsError::Ambiguous { have: have() }),
            (Some(wanted), _) => match all.iter().find(|(_, name)| name == wanted) {
                Some(found) => found.clone(),
                None => {
                    return Err(VerbsError::NoDevice {
                        name: wanted.clone(),
                        have: have(),
                    })
                }
            },
        };
        // SAFETY: the device is in a list that is still held.
        let context = NonNull::new(unsafe { ibv::ibv_open_device(raw) });
        let context = context.ok_or_else(|| call_failed("ibv_open_device", &name))?;
        // SAFETY: the context was just opened.
        let domain = NonNull::new(unsafe { ibv::ibv_alloc_pd(context.as_ptr()) });
        let Some(domain) = domain else {
            let error = call_failed("ibv_alloc_pd", &name);
            // SAFETY: nothing uses the context any more.
            unsafe { ibv::ibv_close_device(context.as_ptr()) };
            return Err(error);
        };
        // From here on dropping the owner closes both.
        let mut device = Device {
            name,
            context,
            domain,
            gid: ibv::ibv_gid { raw: [0; 16] },
            gid_index: 0,
            ip: Ipv4Addr::UNSPECIFIED,
            mtu: 0,
            max_message: 0,
            max_requests: 0,
            reads: 1,
            next_psn: AtomicU32::new(std::process::id().wrapping_mul(0x9e37)),
        };
        let table = device.ask_port()?;
        device.ask_limits()?;
        device.choose_gid(config.gid, table)?;
        Ok(Arc::new(device))
    }

    /// Reads the port's properties; the number of its addresses.
    fn ask_port(&mut self) -> Result<u32, VerbsError> {
        // SAFETY: a C structure of numbers; all zeros is a value of it.
        let mut port: ibv::ibv_port_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the structure is a local.
        let code = unsafe { ibv::___ibv_query_port(self.context.as_ptr(), PORT, &mut port) };
        if code != 0 {
            return Err(self.failed_with("ibv_query_port", code));
        }
        if port.state != ibv::ibv_port_state::IBV_PORT_ACTIVE {
            let state = match port.state {
                ibv::ibv_port_state::IBV_PORT_DOWN => "down".to_owned(),
                other => format!("state {other}"),
            };
            return Err(VerbsError::Port {
                device: self.name.clone(),
                state,
            });
        }
        (self.mtu, self.max_message) = (port.active_mtu, port.max_msg_sz.into());
        Ok(u32::try_from(port.gid_tbl_len).unwrap_or(0))
    }

    fn ask_limits(&mut self) -> Result<(), VerbsError> {
        // SAFETY: a C structure of numbers and byte arrays; all zeros is a value of it.
        let mut limits: ibv::ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the structure is a local.
        let code = unsafe { ibv::ibv_query_device(self.context.as_ptr(), &mut limits) };
        if code != 0 {
            return Err(self.failed_with("ibv_query_device", code));
        }
        self.max_requests = u32::try_from(limits.max_qp_wr).unwrap_or(1);
        let both = limits.max_qp_rd_atom.min(limits.max_qp_init_rd_atom);
        self.reads = both.clamp(1, READS_MAX) as u32;
        Ok(())
    }

    fn gid_at(&self, index: u32) -> Option<ibv::ibv_gid> {
        let mut gid = ibv::ibv_gid { raw: [0; 16] };
        // SAFETY: the context is open and the structure is a local.
        let code =
            unsafe { ibv::ibv_query_gid(self.context.as_ptr(), PORT, index as i32, &mut gid) };
        (code == 0).then_some(gid)
    }

    /// Whether an address speaks RoCE v2: the kernel tells that in a file, and nowhere in this version of the library.
    fn is_v2(&self, index: u32) -> bool {
        let path = format!(
            "/sys/class/infiniband/{}/ports/{PORT}/gid_attrs/types/{index}",
            self.name
        );
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "RoCE v2")
    }

    fn choose_gid(&mut self, wanted: Option<u32>, table: u32) -> Result<(), VerbsError> {
        let usable = |index: u32| {
            let gid = self.gid_at(index)?;
            // SAFETY: both forms of the union are plain bytes.
            let ip = ipv4_of(unsafe { &gid.raw })?;
            self.is_v2(index).then_some((gid, ip))
        };
        let list = || {
            let found: Vec<String> = (0..table)
                .filter_map(|index| Some(format!("{index} = {}", usable(index)?.1)))
                .collect();
            if found.is_empty() {
                "none; give the network interface an address".to_owned()
            } else {
                found.join(", ")
            }
        };
        let refuse = |index: String, why| VerbsError::Gid {
            device: self.name.clone(),
            index,
            why,
            have: list(),
        };
        let index = match wanted {
            Some(index) if index >= table => {
                return Err(refuse(index.to_string(), "is past the end of its table"))
            }
            Some(index) => index,
            None => match (0..table).find(|index| usable(*index).is_some()) {
                Some(index) => index,
                None => return Err(refuse("(any)".into(), "is no IPv4 address of RoCE v2")),
            },
        };
        let Some((gid, ip)) = usable(index) else {
            return Err(refuse(index.to_string(), "is no IPv4 address of RoCE v2"));
        };
        (self.gid, self.gid_index, self.ip) = (gid, index, ip);
        Ok(())
    }

    fn failed_with(&self, call: &'static str, code: i32) -> VerbsError {
        VerbsError::Call {
            call,
            device: self.name.clone(),
            source: io::Error::from_raw_os_error(code),
        }
    }

    /// The address that its queue pairs use.
    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Longest transfer of one request, bytes.
    pub(crate) fn max_message(&self) -> u64 {
        self.max_message.max(1)
    }

    /// Registers `len` bytes at `at`, which requests call `va`.
    ///
    /// # Safety
    /// The memory stays mapped until the region is dropped. Peers may write it at any time from now on, as `access` says.
    pub(crate) unsafe fn register(
        self: &Arc<Self>,
        at: *mut u8,
        len: u64,
        va: u64,
        access: u32,
    ) -> Result<Region, VerbsError> {
        let page = rustix::param::page_size() as u64;
        if va % page != at as u64 % page {
            return Err(VerbsError::Region {
                va,
                len,
                why: "its address and its memory begin at different places of a page",
            });
        }
        /// Local write, remote write, remote read, remote atomic: HCCP's bits are those of verbs.
        const VERBS_BITS: u32 = 0xf;
        // SAFETY: the range is valid by the contract; the domain is open.
        let region = NonNull::new(unsafe {
            ibv::ibv_reg_mr_iova2(
                self.domain.as_ptr(),
                at.cast(),
                len as usize,
                va,
                access & VERBS_BITS,
            )
        });
        match region {
            Some(region) => Ok(Region {
                region,
                _device: Arc::clone(self),
            }),
            None => {
                let source = last_error();
                Err(match source.raw_os_error() {
                    Some(libc::ENOMEM | libc::EPERM) => VerbsError::Memlock {
                        device: self.name.clone(),
                        va,
                        len,
                        limit: memlock_limit(),
                        source,
                    },
                    _ => VerbsError::Call {
                        call: "ibv_reg_mr_iova2",
                        device: self.name.clone(),
                        source,
                    },
                })
            }
        }
    }

    /// Makes an RC queue pair for `depth` requests, in state Init: it answers peers as soon as it is connected.
    pub(crate) fn create_qp(
        self: &Arc<Self>,
        depth: u32,
        inline: u32,
        atomics: bool,
    ) -> Result<QueuePair, VerbsError> {
        let depth = depth.min(self.max_requests);
        // SAFETY: the context is open; a completion queue without a channel.
        let completions = NonNull::new(unsafe {
            ibv::ibv_create_cq(
                self.context.as_ptr(),
                depth as i32,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
            )
        });
        let completions = completions.ok_or_else(|| call_failed("ibv_create_cq", &self.name))?;
        // SAFETY: a C structure of numbers and pointers; all zeros is a value of it.
        let mut init: ibv::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.send_cq = completions.as_ptr();
        init.recv_cq = completions.as_ptr();
        init.qp_type = ibv::ibv_qp_type::IBV_QPT_RC;
        init.cap.max_send_wr = depth;
        init.cap.max_recv_wr = 1;
        init.cap.max_send_sge = 2;
        init.cap.max_recv_sge = 1;
        init.cap.max_inline_data = inline;
        // SAFETY: domain and completion queue are open, and the structure is a local.
        let pair = NonNull::new(unsafe { ibv::ibv_create_qp(self.domain.as_ptr(), &mut init) });
        let Some(pair) = pair else {
            let error = call_failed("ibv_create_qp", &self.name);
            // SAFETY: nothing uses the completion queue.
            unsafe { ibv::ibv_destroy_cq(completions.as_ptr()) };
            return Err(error);
        };
        let pair = QueuePair {
            pair,
            completions,
            psn: self.next_psn.fetch_add(0x1_0003, Ordering::Relaxed) & MASK_24,
            device: Arc::clone(self),
        };
        let flags = ibv::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE
            | ibv::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
            | ibv::ibv_access_flags::IBV_ACCESS_REMOTE_READ;
        let atomic = match atomics {
            true => ibv::ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0,
            false => 0,
        };
        let mut attributes = attributes(ibv::ibv_qp_state::IBV_QPS_INIT);
        attributes.pkey_index = 0;
        attributes.port_num = PORT;
        attributes.qp_access_flags = flags.0 | atomic;
        use ibv::ibv_qp_attr_mask as mask;
        pair.modify(
            &mut attributes,
            mask::IBV_QP_STATE
                | mask::IBV_QP_PKEY_INDEX
                | mask::IBV_QP_PORT
                | mask::IBV_QP_ACCESS_FLAGS,
            "ibv_modify_qp(INIT)",
        )?;
        Ok(pair)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: regions and queue pairs hold an Arc, so none is left.
        unsafe {
            ibv::ibv_dealloc_pd(self.domain.as_ptr());
            ibv::ibv_close_device(self.context.as_ptr());
        }
    }
}

fn call_failed(call: &'static str, device: &str) -> VerbsError {
    VerbsError::Call {
        call,
        device: device.to_owned(),
        source: last_error(),
    }
}

fn memlock_limit() -> String {
    match rustix::process::getrlimit(rustix::process::Resource::Memlock).current {
        Some(bytes) => format!("{} KiB", bytes / 1024),
        None => "any amount".to_owned(),
    }
}

fn attributes(state: ibv::ibv_qp_state::Type) -> ibv::ibv_qp_attr {
    // SAFETY: a C structure of numbers; all zeros is a value of it.
    let mut attributes: ibv::ibv_qp_attr = unsafe { std::mem::zeroed() };
    attributes.qp_state = state;
    attributes
}

/// Registered memory.
pub(crate) struct Region {
    region: NonNull<ibv::ibv_mr>,
    _device: Arc<Device>,
}

// SAFETY: the keys are only read, and the region is deregistered once, from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Region({:#x})", self.rkey())
    }
}

impl Region {
    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: the region is registered as long as `self` lives.
        unsafe { self.region.as_ref() }.lkey
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.region.as_ref() }.rkey
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the region is registered and nothing here uses its keys any more.
        let code = unsafe { ibv::ibv_dereg_mr(self.region.as_ptr()) };
        if code != 0 {
            let error = io::Error::from_raw_os_error(code);
            tracing::warn!(target: "npushmem_roce::verbs", "ibv_dereg_mr failed: {error}");
        }
    }
}

/// An RC queue pair with its completion queue.
pub(crate) struct QueuePair {
    pair: NonNull<ibv::ibv_qp>,
    completions: NonNull<ibv::ibv_cq>,
    psn: u32,
    device: Arc<Device>,
}

// SAFETY: libibverbs allows its calls from any thread; `&mut self` keeps posting and polling to one at a time.
unsafe impl Send for QueuePair {}

impl QueuePair {
    /// Where the peer finds it.
    pub(crate) fn address(&self) -> VerbsAddress {
        VerbsAddress {
            // SAFETY: both forms of the union are plain bytes.
            gid: unsafe { self.device.gid.raw },
            // SAFETY: the queue pair exists as long as `self`.
            qpn: unsafe { self.pair.as_ref() }.qp_num,
            psn: self.psn,
            mtu: self.device.mtu,
            reads: self.device.reads,
        }
    }

    fn modify(
        &self,
        attributes: &mut ibv::ibv_qp_attr,
        mask: ibv::ibv_qp_attr_mask,
        call: &'static str,
    ) -> Result<(), VerbsError> {
        // SAFETY: the queue pair exists and the structure is a local of the caller.
        let code = unsafe { ibv::ibv_modify_qp(self.pair.as_ptr(), attributes, mask.0 as i32) };
        match code {
            0 => Ok(()),
            code => Err(self.device.failed_with(call, code)),
        }
    }

    /// Joins it to a peer's and makes it ready to send.
    pub(crate) fn connect(&self, peer: &VerbsAddress) -> Result<(), VerbsError> {
        use ibv::ibv_qp_attr_mask as mask;
        let mut receive = attributes(ibv::ibv_qp_state::IBV_QPS_RTR);
        receive.path_mtu = self.device.mtu.min(peer.mtu);
        receive.dest_qp_num = peer.qpn & MASK_24;
        receive.rq_psn = peer.psn & MASK_24;
        receive.max_dest_rd_atomic = self.device.reads as u8;
        receive.min_rnr_timer = RNR_TIMER;
        receive.ah_attr.is_global = 1;
        receive.ah_attr.port_num = PORT;
        receive.ah_attr.grh.dgid = ibv::ibv_gid { raw: peer.gid };
        receive.ah_attr.grh.sgid_index = self.device.gid_index as u8;
        receive.ah_attr.grh.hop_limit = HOPS;
        self.modify(
            &mut receive,
            mask::IBV_QP_STATE
                | mask::IBV_QP_AV
                | mask::IBV_QP_PATH_MTU
                | mask::IBV_QP_DEST_QPN
                | mask::IBV_QP_RQ_PSN
                | mask::IBV_QP_MAX_DEST_RD_ATOMIC
                | mask::IBV_QP_MIN_RNR_TIMER,
            "ibv_modify_qp(RTR)",
        )?;
        let mut send = attributes(ibv::ibv_qp_state::IBV_QPS_RTS);
        send.timeout = ACK_TIMEOUT;
        send.retry_cnt = RETRIES;
        send.rnr_retry = RNR_RETRIES;
        send.sq_psn = self.psn;
        send.max_rd_atomic = self.device.reads.min(peer.reads.max(1)) as u8;
        self.modify(
            &mut send,
            mask::IBV_QP_STATE
                | mask::IBV_QP_TIMEOUT
                | mask::IBV_QP_RETRY_CNT
                | mask::IBV_QP_RNR_RETRY
                | mask::IBV_QP_SQ_PSN
                | mask::IBV_QP_MAX_QP_RD_ATOMIC,
            "ibv_modify_qp(RTS)",
        )
    }

    /// Moves it to the error state: what is under way is flushed, and peers get no answer.
    pub(crate) fn fail(&self) {
        let mut error = attributes(ibv::ibv_qp_state::IBV_QPS_ERR);
        let mask = ibv::ibv_qp_attr_mask::IBV_QP_STATE;
        if let Err(error) = self.modify(&mut error, mask, "ibv_modify_qp(ERR)") {
            tracing::debug!(target: "npushmem_roce::verbs", "{error}");
        }
    }

    /// Posts requests in order. How many were taken; and, if not all, the error of the first that was not (ENOMEM: the queue is full).
    pub(crate) fn post(&mut self, requests: &[Request]) -> (usize, Option<i32>) {
        let mut taken = 0;
        for batch in requests.chunks(BATCH) {
            let (some, error) = self.post_batch(batch);
            taken += some;
            if error.is_some() {
                return (taken, error);
            }
        }
        (taken, None)
    }

    fn post_batch(&mut self, batch: &[Request]) -> (usize, Option<i32>) {
        let none = ibv::ibv_sge {
            addr: 0,
            length: 0,
            lkey: 0,
        };
        let mut pieces = [[none; 2]; BATCH];
        // SAFETY: a C structure of numbers and null pointers; all zeros is a value of it.
        let mut chain: [ibv::ibv_send_wr; BATCH] = unsafe { std::mem::zeroed() };
        for ((request, wr), pieces) in batch.iter().zip(&mut chain).zip(&mut pieces) {
            fill(request, wr, pieces);
        }
        let count = batch.len().min(BATCH);
        for index in (1..count).rev() {
            chain[index - 1].next = &raw mut chain[index];
        }
        let first = chain.as_mut_ptr();
        let mut bad = std::ptr::null_mut();
        // SAFETY: the chain and what it points to are locals that outlive the call; the driver copies them. The memory behind the
        // segments is registered, or the driver refuses the request later.
        let code = unsafe { ibv::ibv_post_send(self.pair.as_ptr(), first, &mut bad) };
        match code {
            0 => (count, None),
            code => {
                let base = first as usize;
                let index = (bad as usize).wrapping_sub(base) / size_of::<ibv::ibv_send_wr>();
                (if bad.is_null() { 0 } else { index.min(count) }, Some(code))
            }
        }
    }

    /// Appends the completions that are there.
    pub(crate) fn poll(&mut self, into: &mut Vec<Completion>) {
        loop {
            // SAFETY: a C structure of numbers; all zeros is a value of it.
            let mut entries: [ibv::ibv_wc; POLL_BATCH] = unsafe { std::mem::zeroed() };
            // SAFETY: the completion queue exists and the array is a local.
            let count = unsafe {
                ibv::ibv_poll_cq(
                    self.completions.as_ptr(),
                    POLL_BATCH as i32,
                    entries.as_mut_ptr(),
                )
            };
            let count = usize::try_from(count).unwrap_or(0);
            into.extend(entries[..count].iter().map(|entry| Completion {
                id: entry.wr_id,
                status: status(entry.status),
                syndrome: entry.vendor_err,
            }));
            if count < POLL_BATCH {
                return;
            }
        }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handles; the queue pair goes before its completion queue.
        unsafe {
            ibv::ibv_destroy_qp(self.pair.as_ptr());
            ibv::ibv_destroy_cq(self.completions.as_ptr());
        }
    }
}

/// Writes a request as verbs have it. `pieces` must stay where it is until the request is posted.
fn fill(request: &Request, wr: &mut ibv::ibv_send_wr, pieces: &mut [ibv::ibv_sge; 2]) {
    use ibv::ibv_send_flags as flags;
    let mut bits = 0;
    if request.signaled {
        bits |= flags::IBV_SEND_SIGNALED.0;
    }
    if request.fence {
        bits |= flags::IBV_SEND_FENCE.0;
    }
    wr.wr_id = request.id;
    let mut number = 0;
    if let Some((len, bytes)) = &request.inline {
        bits |= flags::IBV_SEND_INLINE.0;
        if *len > 0 {
            (pieces[0].addr, pieces[0].length) = (bytes.as_ptr() as u64, (*len).into());
            number = 1;
        }
    } else {
        for Segment { addr, len, lkey } in request.segments.iter().filter(|piece| piece.len != 0) {
            (
                pieces[number].addr,
                pieces[number].length,
                pieces[number].lkey,
            ) = (*addr, *len, *lkey);
            number += 1;
        }
    }
    wr.sg_list = pieces.as_mut_ptr();
    wr.num_sge = number as i32;
    wr.send_flags = bits;
    let rdma = ibv::rdma_t {
        remote_addr: request.remote,
        rkey: request.rkey,
    };
    let atomic = |compare_add, swap| ibv::wr_t {
        atomic: ibv::atomic_t {
            remote_addr: request.remote,
            compare_add,
            swap,
            rkey: request.rkey,
        },
    };
    use ibv::ibv_wr_opcode as code;
    (wr.opcode, wr.wr) = match request.operation {
        Operation::Write => (code::IBV_WR_RDMA_WRITE, ibv::wr_t { rdma }),
        Operation::Read => (code::IBV_WR_RDMA_READ, ibv::wr_t { rdma }),
        Operation::FetchAdd(add) => (code::IBV_WR_ATOMIC_FETCH_AND_ADD, atomic(add, 0)),
        Operation::CompareSwap { compare, swap } => {
            (code::IBV_WR_ATOMIC_CMP_AND_SWP, atomic(compare, swap))
        }
        Operation::Send => (code::IBV_WR_SEND, ibv::wr_t { rdma }),
    };
}

/// The status that HNS hardware gives in the same case (the code's meanings are those of InfiniBand 1.4, 11.6.2).
fn status(code: ibv::ibv_wc_status::Type) -> Status {
    use ibv::ibv_wc_status as wc;
    match code {
        wc::IBV_WC_SUCCESS => Status::Ok,
        wc::IBV_WC_LOC_LEN_ERR => Status::LocalLength,
        wc::IBV_WC_LOC_QP_OP_ERR => Status::LocalQpOperation,
        wc::IBV_WC_LOC_PROT_ERR => Status::LocalProtection,
        wc::IBV_WC_WR_FLUSH_ERR => Status::Flushed,
        wc::IBV_WC_MW_BIND_ERR => Status::MemoryManagement,
        wc::IBV_WC_BAD_RESP_ERR => Status::BadResponse,
        wc::IBV_WC_LOC_ACCESS_ERR => Status::LocalAccess,
        wc::IBV_WC_REM_INV_REQ_ERR => Status::RemoteInvalidRequest,
        wc::IBV_WC_REM_ACCESS_ERR => Status::RemoteAccess,
        wc::IBV_WC_REM_OP_ERR => Status::RemoteOperation,
        wc::IBV_WC_RETRY_EXC_ERR | wc::IBV_WC_RESP_TIMEOUT_ERR => Status::RetryExceeded,
        wc::IBV_WC_RNR_RETRY_EXC_ERR => Status::ReceiverNotReady,
        wc::IBV_WC_REM_ABORT_ERR => Status::RemoteAborted,
        _ => Status::General,
    }
}
