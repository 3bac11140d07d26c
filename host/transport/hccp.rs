//! HCCP, the vendor's interface to the NIC in the die: one thin function a call, and owners for what the calls make.
//!
//! What it is not: the order of bring-up is bringup.rs's. Facts: the vendor publishes no header for this use; see ffi/include/hccp.h.

use std::ffi::{c_char, c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use npushmem_ffi::hccp::{self as c, Hccp};

use crate::runtime::Api;

/// An HCCP call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HccpError {
    /// The vendor's function.
    pub call: &'static str,
    /// What it returned.
    pub code: i32,
    /// The runtime's recent error message; empty when it has none.
    pub message: String,
}

impl std::fmt::Display for HccpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed with {}", self.call, self.code)?;
        // Some libraries begin the message with the name of the call.
        let rest = self.message.strip_prefix(self.call);
        let rest = rest.and_then(|rest| rest.strip_prefix(": "));
        match rest.unwrap_or(&self.message) {
            "" => Ok(()),
            message => write!(f, ": {message}"),
        }
    }
}

impl std::error::Error for HccpError {}

type Result<T> = std::result::Result<T, HccpError>;

/// Entries that one batch call takes.
pub(super) const BATCH: usize = 16;

/// Makes a call and turns its code into a `Result`.
macro_rules! call {
    ($nic:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let library: &Library = $nic;
        // SAFETY: the table's functions have the signatures of the declarations; handles are those that HCCP gave and that are still owned;
        // arrays and out-pointers are locals that outlive the call.
        let code: c_int = unsafe { (library.table.$name)($($argument),*) } as c_int;
        library.check(stringify!($name), code)
    }};
}

/// The function table, with the runtime that has the error texts.
pub(super) struct Library {
    table: Hccp,
    api: Arc<Api>,
}

impl Library {
    pub(super) fn new(table: Hccp, api: Arc<Api>) -> Library {
        Library { table, api }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            Ok(())
        } else {
            Err(HccpError {
                call,
                code,
                message: self.api.recent_message(),
            })
        }
    }

    fn record_dropped(&self, result: Result<()>) {
        if let Err(error) = result {
            tracing::warn!("while giving a NIC resource back: {error}");
        }
    }

    /// The latest error text, for states that are no error codes.
    pub(super) fn recent_message(&self) -> String {
        self.api.recent_message()
    }

    /// `TsdOpen`: starts the device's side of HCCP.
    pub(super) fn open(&self, logic_device: u32, ranks: u32) -> Result<()> {
        call!(self, TsdOpen(logic_device, ranks))
    }

    /// `ra_init`. The object has room for the fourth field of later libraries.
    pub(super) fn init(&self, physical: u32) -> Result<()> {
        /// HccpRaInitConfig with the room that later libraries read.
        #[repr(C)]
        struct Roomy {
            config: c::HccpRaInitConfig,
            room: [u8; 20],
        }
        let roomy = Roomy {
            config: c::HccpRaInitConfig {
                phyId: physical,
                nicPosition: c::NETWORK_OFFLINE,
                hdcType: c::HCCP_HDC_TYPE_RDMA_V2,
            },
            room: [0; 20],
        };
        let _room = roomy.room;
        call!(self, ra_init(&roomy.config))
    }

    /// `ra_rdev_get_handle`: the NIC, if this process has opened it already (HCCL may have).
    pub(super) fn opened_nic(&self, physical: u32) -> Option<Handle> {
        let mut handle = std::ptr::null_mut();
        call!(self, ra_rdev_get_handle(physical, &mut handle)).ok()?;
        (!handle.is_null()).then_some(Handle(handle as usize))
    }

    /// `ra_get_ifnum` and `ra_get_ifaddrs`: the addresses of the device's NIC.
    pub(super) fn addresses(&self, physical: u32) -> Result<Vec<IpAddr>> {
        let attributes = c::HccpRaGetIfAttr {
            phyId: physical,
            nicPosition: c::NETWORK_OFFLINE,
            isAll: true,
        };
        let mut count = 0u32;
        call!(self, ra_get_ifnum(&attributes, &mut count))?;
        let mut infos = vec![c::HccpInterfaceInfo::default(); count as usize];
        if count > 0 {
            call!(
                self,
                ra_get_ifaddrs(&attributes, infos.as_mut_ptr(), &mut count)
            )?;
        }
        infos.truncate(count as usize);
        Ok(infos
            .iter()
            .filter_map(|info| from_ip(info.family, &info.ifaddr.ip))
            .collect())
    }

    /// `ra_rdev_init_v2`: opens the NIC.
    pub(super) fn open_nic(&self, physical: u32, address: IpAddr) -> Result<Handle> {
        let info = c::HccpRdevInitInfo {
            mode: c::NETWORK_OFFLINE as i32,
            notifyType: c::HCCP_NOTIFY,
            enabled2mbLite: true,
            ..Default::default()
        };
        let mut handle = std::ptr::null_mut();
        call!(
            self,
            ra_rdev_init_v2(info, rdev(physical, address), &mut handle)
        )?;
        Ok(Handle(handle as usize))
    }
}

/// A handle of HCCP's. Not a pointer that anybody here follows; HCCP may be called from any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(usize);

impl Handle {
    fn raw(self) -> *mut c_void {
        self.0 as *mut c_void
    }
}

/// `AF_INET`, `AF_INET6`.
const AF_INET: i32 = 2;
const AF_INET6: i32 = 10;

fn from_ip(family: i32, ip: &c::HccpIpAddr) -> Option<IpAddr> {
    // SAFETY: every field of the union is plain bytes, all 16 of them initialised.
    let bytes = unsafe { ip.v6 };
    match family {
        AF_INET => Some(IpAddr::V4(Ipv4Addr::new(
            bytes[0], bytes[1], bytes[2], bytes[3],
        ))),
        AF_INET6 => Some(IpAddr::V6(Ipv6Addr::from(bytes))),
        _ => None,
    }
}

fn to_ip(address: IpAddr) -> c::HccpIpAddr {
    let mut bytes = [0u8; 16];
    match address {
        IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes = v6.octets(),
    }
    c::HccpIpAddr { v6: bytes }
}

fn rdev(physical: u32, address: IpAddr) -> c::HccpRdev {
    let family = if address.is_ipv4() { AF_INET } else { AF_INET6 };
    c::HccpRdev {
        phyId: physical,
        family,
        localIp: to_ip(address),
    }
}

/// A connection's tag as HCCP takes it: text with its end.
fn tag(text: &str) -> [c_char; c::HCCP_SOCKET_TAG_SIZE] {
    let mut tag = [0 as c_char; c::HCCP_SOCKET_TAG_SIZE];
    let room = tag.len() - 1;
    for (to, from) in tag[..room].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    tag
}

/// Memory registered with the NIC; deregistered when dropped.
pub(super) struct Region {
    library: Arc<Library>,
    nic: Handle,
    handle: Handle,
    info: c::HccpMrInfo,
}

// SAFETY: the address inside is only passed to HCCP, which may be called from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Access of our regions: local write, remote write, remote read, and remote atomics where the NIC takes them.
pub(super) const ACCESS_ATOMIC: i32 = (c::RA_ACCESS_LOCAL_WRITE
    | c::RA_ACCESS_REMOTE_WRITE
    | c::RA_ACCESS_REMOTE_READ
    | c::RA_ACCESS_REMOTE_ATOMIC) as i32;
/// The same without atomics.
pub(super) const ACCESS_PLAIN: i32 =
    (c::RA_ACCESS_LOCAL_WRITE | c::RA_ACCESS_REMOTE_WRITE | c::RA_ACCESS_REMOTE_READ) as i32;

impl Region {
    /// `ra_register_mr`.
    pub(super) fn register(
        library: &Arc<Library>,
        nic: Handle,
        address: u64,
        size: u64,
        access: i32,
    ) -> Result<Region> {
        let mut info = c::HccpMrInfo {
            addr: address as *mut c_void,
            size,
            access,
            ..Default::default()
        };
        let mut handle = std::ptr::null_mut();
        call!(library, ra_register_mr(nic.raw(), &mut info, &mut handle))?;
        Ok(Region {
            library: library.clone(),
            nic,
            handle: Handle(handle as usize),
            info,
        })
    }

    /// Key for the own NIC.
    pub(super) fn lkey(&self) -> u32 {
        self.info.lkey
    }

    /// Key for others.
    pub(super) fn rkey(&self) -> u32 {
        self.info.rkey
    }

    /// Whether remote atomics are allowed on it.
    pub(super) fn atomics(&self) -> bool {
        self.info.access == ACCESS_ATOMIC
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let result = call!(
            &*self.library,
            ra_deregister_mr(self.nic.raw(), self.handle.raw())
        );
        self.library.record_dropped(result);
    }
}

/// What queue pairs to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueShape {
    /// Entries of both rings.
    pub(super) depth: u32,
    /// Largest inline payload, bytes; 0: none.
    pub(super) inline: u32,
    pub(super) traffic_class: u8,
    pub(super) service_level: u8,
}

/// A queue pair that a kernel drives; destroyed when dropped.
pub(super) struct QueuePair {
    library: Arc<Library>,
    handle: Handle,
    info: c::HccpAiQpInfo,
}

impl QueuePair {
    /// `ra_ai_qp_create` and `ra_set_qp_attr_qos`.
    pub(super) fn new(
        library: &Arc<Library>,
        nic: Handle,
        shape: &QueueShape,
    ) -> Result<QueuePair> {
        /// Receives are never posted; the smallest depth that hardware takes.
        const RECEIVES: u32 = 128;
        let mut attributes = c::HccpQpExtAttrs {
            qpMode: c::NETWORK_OFFLINE as i32,
            version: c::HCCP_QP_EXT_VERSION,
            mem_align: c::HCCP_MEM_ALIGN_4K,
            data_plane_flag: c::HCCP_CQ_CUSTOM,
            ..Default::default()
        };
        attributes.cqAttr.sendCqDepth = shape.depth as i32;
        attributes.cqAttr.recvCqDepth = RECEIVES as i32;
        attributes.qp_attr.cap.max_send_wr = shape.depth;
        attributes.qp_attr.cap.max_recv_wr = RECEIVES;
        attributes.qp_attr.cap.max_send_sge = 1;
        attributes.qp_attr.cap.max_recv_sge = 1;
        attributes.qp_attr.cap.max_inline_data = shape.inline;
        attributes.qp_attr.qp_type = c::IBV_QPT_RC;
        let mut info = c::HccpAiQpInfo::default();
        let mut handle = std::ptr::null_mut();
        call!(
            library,
            ra_ai_qp_create(nic.raw(), &attributes, &mut info, &mut handle)
        )?;
        let pair = QueuePair {
            library: library.clone(),
            handle: Handle(handle as usize),
            info,
        };
        let mut qos = c::QosAttr {
            tc: shape.traffic_class,
            sl: shape.service_level,
            ..Default::default()
        };
        if let Err(error) = call!(library, ra_set_qp_attr_qos(pair.handle.raw(), &mut qos)) {
            tracing::warn!("queue pairs keep the NIC's default service: {error}");
        }
        Ok(pair)
    }

    /// `ra_mr_reg`: makes the region's keys usable on this queue pair.
    pub(super) fn bind(&self, region: &Region) -> Result<()> {
        let mut info = region.info;
        call!(&*self.library, ra_mr_reg(self.handle.raw(), &mut info))?;
        if (info.lkey, info.rkey) != (region.info.lkey, region.info.rkey) {
            tracing::warn!(
                "the NIC gave a queue pair keys of its own ({:#x}, {:#x}) for a registered region",
                info.lkey,
                info.rkey
            );
        }
        Ok(())
    }

    /// `ra_qp_connect_async` over an established connection.
    pub(super) fn connect(&self, connection: &Connection) -> Result<()> {
        call!(
            &*self.library,
            ra_qp_connect_async(self.handle.raw(), connection.fd.raw())
        )
    }

    /// `ra_get_qp_status`.
    pub(super) fn status(&self) -> Result<QueueStatus> {
        let mut status = -1;
        call!(
            &*self.library,
            ra_get_qp_status(self.handle.raw(), &mut status)
        )?;
        Ok(match u32::try_from(status) {
            Ok(c::HCCP_QP_CONNECTED) => QueueStatus::Connected,
            Ok(c::HCCP_QP_CONNECTING) | Ok(c::HCCP_QP_DISCONNECTED) => QueueStatus::OnItsWay,
            Ok(c::HCCP_QP_TIMEOUT) => QueueStatus::Failed("it timed out"),
            Ok(c::HCCP_QP_FD_CLOSED) => QueueStatus::Failed("its connection closed"),
            Ok(c::HCCP_QP_PAUSED) => QueueStatus::Failed("it is paused"),
            _ => QueueStatus::Failed("its status is unknown"),
        })
    }

    /// Its rings, as a kernel sees them.
    pub(super) fn rings(&self) -> &c::ai_data_plane_info {
        &self.info.data_plane_info
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        let result = call!(&*self.library, ra_qp_destroy(self.handle.raw()));
        self.library.record_dropped(result);
    }
}

/// How far a queue pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueStatus {
    /// Ready.
    Connected,
    /// Not yet.
    OnItsWay,
    /// It will not become ready, because ...
    Failed(&'static str),
}

/// The socket layer on the NIC: listens at a port, and connects.
pub(super) struct Sockets {
    library: Arc<Library>,
    handle: Handle,
    port: Option<u16>,
}

/// One side's wish for a connection: the other's address, and the tag that both name.
#[derive(Clone, Debug)]
pub(super) struct Rendezvous {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) tag: String,
}

impl Sockets {
    /// `ra_socket_init`.
    pub(super) fn open(library: &Arc<Library>, physical: u32, address: IpAddr) -> Result<Sockets> {
        let mut handle = std::ptr::null_mut();
        call!(
            library,
            ra_socket_init(c::NETWORK_OFFLINE, rdev(physical, address), &mut handle)
        )?;
        Ok(Sockets {
            library: library.clone(),
            handle: Handle(handle as usize),
            port: None,
        })
    }

    /// `ra_socket_listen_start`: at `first` or the next free port of `tries`.
    pub(super) fn listen(&mut self, first: u16, tries: u16) -> Result<u16> {
        let mut last = HccpError {
            call: "ra_socket_listen_start",
            code: 0,
            message: "no port was tried".into(),
        };
        for port in (first..=u16::MAX).take(tries.into()) {
            let mut info = c::HccpSocketListenInfo {
                handle: self.handle.raw(),
                port: port.into(),
                ..Default::default()
            };
            match call!(&*self.library, ra_socket_listen_start(&mut info, 1)) {
                Ok(()) => {
                    self.port = Some(port);
                    return Ok(port);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// `ra_socket_white_list_add`, in batches.
    pub(super) fn admit(&self, clients: &[Rendezvous]) -> Result<()> {
        for batch in clients.chunks(BATCH) {
            let list: Vec<_> = batch.iter().map(admission).collect();
            call!(
                &*self.library,
                ra_socket_white_list_add(self.handle.raw(), list.as_ptr(), list.len() as u32)
            )?;
        }
        Ok(())
    }

    /// `ra_socket_white_list_del`, in batches.
    pub(super) fn dismiss(&self, clients: &[Rendezvous]) -> Result<()> {
        for batch in clients.chunks(BATCH) {
            let list: Vec<_> = batch.iter().map(admission).collect();
            call!(
                &*self.library,
                ra_socket_white_list_del(self.handle.raw(), list.as_ptr(), list.len() as u32)
            )?;
        }
        Ok(())
    }

    /// `ra_socket_batch_connect`, in batches.
    pub(super) fn connect(&self, servers: &[Rendezvous]) -> Result<()> {
        for batch in servers.chunks(BATCH) {
            let mut list: Vec<_> = batch
                .iter()
                .map(|to| c::HccpSocketConnectInfo {
                    handle: self.handle.raw(),
                    remoteIp: to_ip(to.address),
                    port: to.port,
                    tag: tag(&to.tag),
                })
                .collect();
            call!(
                &*self.library,
                ra_socket_batch_connect(list.as_mut_ptr(), list.len() as u32)
            )?;
        }
        Ok(())
    }

    /// `ra_get_sockets` for those of `wanted` that are not yet there.
    pub(super) fn collect(
        &self,
        role: Role,
        wanted: &[Rendezvous],
        found: &mut [Option<Connection>],
    ) -> Result<Option<String>> {
        let missing: Vec<usize> = (0..wanted.len()).filter(|i| found[*i].is_none()).collect();
        for batch in missing.chunks(BATCH) {
            let mut list: Vec<_> = batch
                .iter()
                .map(|i| c::HccpSocketInfo {
                    handle: self.handle.raw(),
                    remoteIp: to_ip(wanted[*i].address),
                    tag: tag(&wanted[*i].tag),
                    ..Default::default()
                })
                .collect();
            let mut got = 0u32;
            call!(
                &*self.library,
                ra_get_sockets(role as u32, list.as_mut_ptr(), list.len() as u32, &mut got)
            )?;
            for (i, info) in batch.iter().zip(&list) {
                if !info.fd.is_null() && info.status == c::HCCP_SOCKET_CONNECTED as i32 {
                    let (library, sockets) = (self.library.clone(), self.handle);
                    found[*i] = Some(Connection {
                        library,
                        sockets,
                        fd: Handle(info.fd as usize),
                    });
                } else if info.status == c::HCCP_SOCKET_TIMEOUT as i32 {
                    return Ok(Some(format!(
                        "the connection {} failed: {}",
                        wanted[*i].tag,
                        self.library.recent_message()
                    )));
                }
            }
        }
        Ok(None)
    }
}

fn admission(client: &Rendezvous) -> c::HccpSocketWhiteListInfo {
    c::HccpSocketWhiteListInfo {
        remoteIp: to_ip(client.address),
        connLimit: 1,
        tag: tag(&client.tag),
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Some(port) = self.port {
            let mut info = c::HccpSocketListenInfo {
                handle: self.handle.raw(),
                port: port.into(),
                ..Default::default()
            };
            self.library
                .record_dropped(call!(&*self.library, ra_socket_listen_stop(&mut info, 1)));
        }
        let result = call!(&*self.library, ra_socket_deinit(self.handle.raw()));
        self.library.record_dropped(result);
    }
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Role {
    Server = c::HCCP_SOCKET_ROLE_SERVER,
    Client = c::HCCP_SOCKET_ROLE_CLIENT,
}

/// An established connection; closed when dropped.
pub(super) struct Connection {
    library: Arc<Library>,
    sockets: Handle,
    fd: Handle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut info = c::HccpSocketCloseInfo {
            handle: self.sockets.raw(),
            fd: self.fd.raw(),
            linger: 0,
        };
        let result = call!(&*self.library, ra_socket_batch_close(&mut info, 1));
        self.library.record_dropped(result);
    }
}
