//! A PE of the HCCP tests: everything through the function tables and the doorbell, as a host and a kernel would do it.

#![allow(dead_code)] // each test program uses a part of it

pub mod process;

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{from_mut, null_mut};
use std::sync::atomic::{fence, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use npushmem_ffi::acl::{Acl, ACL_MEM_MALLOC_HUGE_FIRST};
use npushmem_ffi::hccp as c;
use npushmem_roce::cqe::{Cqe, Status};
use npushmem_roce::doorbell::Doorbell;
use npushmem_roce::ring;
use npushmem_roce::wqe::{Flags, SendWqe};
use npusim::doorbell;

/// Longest wait of a test for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Depth of test rings.
pub const DEPTH: u32 = 64;

/// The tables of this process.
pub fn hccp() -> &'static c::Hccp {
    static TABLE: LazyLock<c::Hccp> = LazyLock::new(npusim::hccp);
    &TABLE
}

fn acl() -> &'static Acl {
    static TABLE: LazyLock<Acl> = LazyLock::new(npusim::acl);
    &TABLE
}

/// The recent error text of this thread.
pub fn recent() -> String {
    // SAFETY: it returns null or text that lives until the next call.
    unsafe {
        let text = (acl().aclGetRecentErrMsg)();
        if text.is_null() {
            String::new()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// Ends the test when a call failed.
#[track_caller]
pub fn check(code: c_int) {
    assert_eq!(code, 0, "{}", recent());
}

/// Polls until `done` says something; ends the test when it takes too long.
#[track_caller]
pub fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "{what} did not come; recent error: {}",
            recent()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A connection tag.
pub fn tag(text: &str) -> [c_char; 192] {
    let mut tag = [0; 192];
    for (to, from) in tag.iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    tag
}

/// The NIC address of a device.
pub fn ip(device: u32) -> c::HccpIpAddr {
    let mut ip = c::HccpIpAddr { v6: [0; 16] };
    ip.v4 = [192, 168, 100, 1 + device as u8];
    ip
}

pub fn rdev(device: u32) -> c::HccpRdev {
    c::HccpRdev {
        phyId: device,
        family: 2,
        localIp: ip(device),
    }
}

pub fn init_info() -> c::HccpRdevInitInfo {
    c::HccpRdevInitInfo {
        mode: 1,
        notifyType: 1,
        enabled2mbLite: true,
        ..Default::default()
    }
}

/// A device with its NIC open.
pub struct Pe {
    pub device: u32,
    pub nic: *mut c_void,
}

/// Starts ACL on a device.
pub fn start_acl(device: u32) {
    // SAFETY: as the vendor documents; null is "no configuration".
    unsafe {
        check((acl().aclInit)(std::ptr::null()));
        check((acl().aclrtSetDevice)(device as i32));
    }
}

/// Ends ACL.
pub fn stop_acl() {
    // SAFETY: nothing of ACL is in use any more.
    check(unsafe { (acl().aclFinalize)() });
}

impl Pe {
    /// From nothing to an open NIC, in the vendor's order.
    pub fn start(device: u32) -> Self {
        start_acl(device);
        let mut nic = null_mut();
        // SAFETY: all structures live through their calls.
        unsafe {
            assert_ne!(
                (hccp().ra_rdev_get_handle)(device, &mut nic),
                0,
                "no NIC is open yet"
            );
            check((hccp().TsdOpen)(device, 2) as c_int);
            let config = c::HccpRaInitConfig {
                phyId: device,
                nicPosition: 1,
                hdcType: 6,
            };
            check((hccp().ra_init)(&config));
            let attr = c::HccpRaGetIfAttr {
                phyId: device,
                nicPosition: 1,
                isAll: false,
            };
            let mut count = 0;
            check((hccp().ra_get_ifnum)(&attr, &mut count));
            assert_eq!(count, 1);
            let mut interface = c::HccpInterfaceInfo::default();
            check((hccp().ra_get_ifaddrs)(&attr, &mut interface, &mut count));
            assert_eq!(
                (interface.family, interface.ifaddr.ip.v4),
                (2, ip(device).v4)
            );
            check((hccp().ra_rdev_init_v2)(
                init_info(),
                rdev(device),
                &mut nic,
            ));
            let mut again = null_mut();
            check((hccp().ra_rdev_get_handle)(device, &mut again));
            assert_eq!(again, nic);
        }
        Self { device, nic }
    }

    pub fn socket(&self) -> *mut c_void {
        let mut socket = null_mut();
        // SAFETY: the place for the handle lives through the call.
        check(unsafe {
            (hccp().ra_socket_init)(c::NETWORK_OFFLINE, rdev(self.device), &mut socket)
        });
        socket
    }

    /// Zeroed device memory.
    pub fn memory(&self, bytes: usize) -> u64 {
        let mut at = null_mut();
        // SAFETY: the place for the address lives through the call; the memory is ours then.
        unsafe {
            check((acl().aclrtMalloc)(
                &mut at,
                bytes,
                ACL_MEM_MALLOC_HUGE_FIRST,
            ));
            check((acl().aclrtMemset)(at, bytes, 0, bytes));
        }
        at as u64
    }

    /// Registers memory; lkey and rkey.
    pub fn register(
        &self,
        addr: u64,
        bytes: u64,
        access: i32,
    ) -> Result<c::HccpMrInfo, (c_int, String)> {
        let mut info = c::HccpMrInfo {
            addr: addr as *mut c_void,
            size: bytes,
            access,
            lkey: 0,
            rkey: 0,
        };
        let mut handle = null_mut();
        // SAFETY: the structures live through the call.
        match unsafe { (hccp().ra_register_mr)(self.nic, &mut info, &mut handle) } {
            0 => Ok(info),
            code => Err((code, recent())),
        }
    }

    pub fn queue(&self) -> Queue {
        self.queue_with(&attrs(DEPTH))
            .unwrap_or_else(|(code, why)| panic!("{code}: {why}"))
    }

    pub fn queue_with(&self, attrs: &c::HccpQpExtAttrs) -> Result<Queue, (c_int, String)> {
        let mut handle = null_mut();
        let mut info = c::HccpAiQpInfo::default();
        // SAFETY: the structures live through the call.
        match unsafe { (hccp().ra_ai_qp_create)(self.nic, attrs, &mut info, &mut handle) } {
            0 => Ok(Queue {
                handle,
                info,
                head: 0,
                tail: 0,
            }),
            code => Err((code, recent())),
        }
    }
}

/// What the tests ask of ra_ai_qp_create.
pub fn attrs(depth: u32) -> c::HccpQpExtAttrs {
    let mut attrs = c::HccpQpExtAttrs {
        qpMode: 1,
        version: 1,
        data_plane_flag: c::HCCP_CQ_CUSTOM,
        ..Default::default()
    };
    (attrs.cqAttr.sendCqDepth, attrs.cqAttr.recvCqDepth) = (depth as i32, 128);
    attrs.qp_attr.cap = c::ibv_qp_cap {
        max_send_wr: depth,
        max_recv_wr: 128,
        max_send_sge: 0,
        max_recv_sge: 1,
        max_inline_data: 32,
    };
    attrs.qp_attr.qp_type = c::IBV_QPT_RC;
    attrs
}

/// A queue pair and the kernel's view of it.
pub struct Queue {
    pub handle: *mut c_void,
    pub info: c::HccpAiQpInfo,
    head: u64,
    tail: u64,
}

impl Queue {
    /// Makes a registered region usable on it.
    pub fn bind(&self, region: &c::HccpMrInfo) {
        let mut info = *region;
        // SAFETY: the structure lives through the call.
        check(unsafe { (hccp().ra_mr_reg)(self.handle, from_mut(&mut info)) });
        assert_eq!(
            (info.lkey, info.rkey),
            (region.lkey, region.rkey),
            "the region keeps its keys"
        );
    }

    pub fn connect(&self, fd: *mut c_void) {
        // SAFETY: handles are checked by the callee.
        check(unsafe { (hccp().ra_qp_connect_async)(self.handle, fd) });
    }

    pub fn status(&self) -> c_int {
        let mut status = -1;
        // SAFETY: the place for the status lives through the call.
        check(unsafe { (hccp().ra_get_qp_status)(self.handle, &mut status) });
        status
    }

    /// Waits until the attempt to connect has ended.
    pub fn settled(&self) -> c_int {
        wait_for("the end of the exchange", || {
            Some(self.status()).filter(|status| *status != 3)
        })
    }

    pub fn connected(&self) {
        assert_eq!(self.settled(), 1, "{}", recent());
    }

    /// Writes one request into the ring and rings the doorbell.
    pub fn post(&mut self, request: SendWqe) -> Result<doorbell::DoorbellKind, String> {
        let sq = &self.info.data_plane_info.sq;
        let slot = sq.buf_addr + ring::slot(self.head, sq.depth) * u64::from(sq.wqebb_size);
        let words: [u64; ring::WQE_WORDS] = bytemuck::cast(request.owned(self.head, sq.depth));
        // SAFETY: the slot lies in the ring, which lives as long as the queue pair; the request before it there has completed.
        unsafe {
            for (index, word) in words.iter().enumerate().skip(1) {
                (slot as *mut u64).add(index).write_volatile(*word);
            }
            // The word with the owner bit last.
            fence(Ordering::Release);
            (slot as *mut u64).write_volatile(words[0]);
        }
        fence(Ordering::SeqCst);
        self.head += 1;
        doorbell::ring(
            sq.db_reg,
            Doorbell::Send {
                qpn: sq.wqn,
                producer: (self.head & 0xffff) as u32,
                service_level: 0,
            }
            .encode(),
        )
    }

    /// Takes the next completion, if there is one, and publishes the consumer index.
    pub fn poll(&mut self) -> Option<Cqe> {
        let cq = &self.info.data_plane_info.scq;
        let entry = cq.buf_addr + ring::slot(self.tail, cq.depth) * u64::from(cq.cqe_size);
        // SAFETY: the entry lies in the ring, which lives as long as the queue pair; the NIC writes the word with the owner bit last.
        let read = || unsafe { (entry as *const Cqe).read_volatile() };
        if read().owner() != ring::completion_owner(self.tail, cq.depth) {
            return None;
        }
        fence(Ordering::Acquire);
        let cqe = read();
        self.tail += 1;
        let value = Doorbell::Consumer {
            cqn: cq.cqn,
            consumer: (self.tail & 0xff_ffff) as u32,
        }
        .encode();
        doorbell::ring(cq.db_reg, value).expect("the consumer index is taken");
        Some(cqe)
    }

    /// Posts one request with a completion, and waits for that.
    #[track_caller]
    pub fn run(&mut self, request: SendWqe) -> Status {
        let flags = Flags {
            signaled: true,
            ..Default::default()
        };
        self.post(request.flagged(flags))
            .expect("the doorbell is taken");
        let cqe = wait_for("a completion", || self.poll());
        assert_eq!(cqe.qpn(), self.info.data_plane_info.sq.wqn);
        cqe.status()
    }

    pub fn destroy(self) {
        // SAFETY: nothing uses the queue pair any more.
        check(unsafe { (hccp().ra_qp_destroy)(self.handle) });
    }
}

/// Two queue pairs of one process, connected to each other over a connection with itself; `bind` happens before.
pub fn loopback(pe: &Pe, regions: &[&c::HccpMrInfo]) -> (Queue, Queue) {
    const PORT: u32 = 10002;
    let socket = pe.socket();
    check(listen(socket, PORT));
    admit(socket, pe.device, "self");
    dial(socket, pe.device, PORT as u16, "self");
    let (there, here) = (
        connection(1, socket, pe.device, "self"),
        connection(0, socket, pe.device, "self"),
    );
    let (one, other) = (pe.queue(), pe.queue());
    for region in regions {
        one.bind(region);
        other.bind(region);
    }
    one.connect(there);
    other.connect(here);
    one.connected();
    other.connected();
    (one, other)
}

/// Reads a word of device memory as a kernel does.
pub fn word(addr: u64) -> u64 {
    // SAFETY: tests read live allocations of this process.
    unsafe { (addr as *const u64).read_volatile() }
}

/// Writes a word of device memory as a kernel does.
pub fn set_word(addr: u64, value: u64) {
    // SAFETY: tests write live allocations of this process.
    unsafe { (addr as *mut u64).write_volatile(value) }
}

/// Listens on a port.
pub fn listen(socket: *mut c_void, port: u32) -> c_int {
    let mut info = c::HccpSocketListenInfo {
        handle: socket,
        port,
        ..Default::default()
    };
    // SAFETY: the entry lives through the call.
    unsafe { (hccp().ra_socket_listen_start)(&mut info, 1) }
}

/// Puts a device's address with a tag on the white list.
pub fn admit(socket: *mut c_void, device: u32, text: &str) {
    let info = c::HccpSocketWhiteListInfo {
        remoteIp: ip(device),
        connLimit: 4,
        tag: tag(text),
    };
    // SAFETY: the entry lives through the call.
    check(unsafe { (hccp().ra_socket_white_list_add)(socket, &info, 1) });
}

/// Starts to connect to a device's port.
pub fn dial(socket: *mut c_void, device: u32, port: u16, text: &str) {
    let mut info = c::HccpSocketConnectInfo {
        handle: socket,
        remoteIp: ip(device),
        port,
        tag: tag(text),
    };
    // SAFETY: the entry lives through the call.
    check(unsafe { (hccp().ra_socket_batch_connect)(&mut info, 1) });
}

/// Asks once for a connection: its status, and the connection if it is there.
pub fn find(role: u32, socket: *mut c_void, device: u32, text: &str) -> (i32, *mut c_void) {
    let mut info = c::HccpSocketInfo {
        handle: socket,
        fd: null_mut(),
        remoteIp: ip(device),
        status: 0,
        tag: tag(text),
    };
    let mut got = 99;
    // SAFETY: the entry and the number live through the call.
    check(unsafe { (hccp().ra_get_sockets)(role, &mut info, 1, &mut got) });
    assert_eq!(got, u32::from(info.status == 1));
    (info.status, info.fd)
}

/// Waits for a connection.
pub fn connection(role: u32, socket: *mut c_void, device: u32, text: &str) -> *mut c_void {
    wait_for("a connection", || {
        let (status, fd) = find(role, socket, device, text);
        assert_ne!(status, 2, "{}", recent());
        (status == 1).then_some(fd)
    })
}
