//! The C functions of HCCP: they check pointers, take C structures apart, call `state.rs` and `agent.rs`, and turn errors into codes.
//!
//! Each runs under the guard of the emulator's ABI: an error sets the thread's recent error text (`aclGetRecentErrMsg`), a panic becomes an
//! internal error. Pointers are the caller's promise, as in C; handles are checked (`handles.rs`).

use std::ffi::{c_char, c_int, c_void};
use std::net::Ipv4Addr;

use npushmem_ffi::hccp as c;

use super::agent::{agent, Found};
use super::error::HccpError;
use super::link::Role;
use super::queue::{Queue, Shape, Status};
use super::state;
use super::wire::{Tag, TAG_BYTES};
use crate::error::{guard, set_recent, Fail};

/// Entries that a batch call takes (`MAX_SOCKET_NUM` of HCCP; the vendor's programs split at 16).
const BATCH_MAX: u32 = 16;
/// `AF_INET`.
const AF_INET: i32 = 2;
/// Service levels of RoCE.
const SERVICE_LEVEL_MAX: u8 = 7;
/// Traffic classes are multiples of this: the lower two bits of the byte are congestion bits.
const TRAFFIC_CLASS_STEP: u8 = 4;

type Outcome<T = ()> = Result<T, HccpError>;

fn call(name: &str, body: impl FnOnce() -> Outcome) -> c_int {
    guard(name, || {
        body().map_err(|error| Fail {
            code: error.code(),
            text: error.to_string(),
        })
    })
}

/// The object behind a caller's pointer.
///
/// # Safety
/// `pointer` is null or points to a `T` that nobody writes to during the call.
unsafe fn object<'a, T>(pointer: *const T, name: &'static str) -> Outcome<&'a T> {
    // SAFETY: by this function's contract.
    unsafe { pointer.as_ref() }.ok_or(HccpError::Null(name))
}

/// Stores a result behind a caller's pointer.
///
/// # Safety
/// `pointer` is null or may be written.
unsafe fn store<T>(pointer: *mut T, name: &'static str, value: T) -> Outcome {
    if pointer.is_null() {
        return Err(HccpError::Null(name));
    }
    // SAFETY: by this function's contract.
    unsafe { pointer.write(value) };
    Ok(())
}

/// The entries of a batch.
///
/// # Safety
/// `pointer` is null or points to `count` entries that only this call uses.
unsafe fn batch<'a, T>(pointer: *mut T, count: u32) -> Outcome<&'a mut [T]> {
    if pointer.is_null() {
        return Err(HccpError::Null("array"));
    }
    if !(1..=BATCH_MAX).contains(&count) {
        return Err(HccpError::Batch {
            got: count,
            max: BATCH_MAX,
        });
    }
    // SAFETY: by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count as usize) })
}

fn ipv4(address: &c::HccpIpAddr) -> Ipv4Addr {
    // SAFETY: every field of the union is plain bytes.
    Ipv4Addr::from(unsafe { address.v4 })
}

/// A tag is text: what follows its end does not count.
fn tag(text: &[c_char; TAG_BYTES]) -> Tag {
    let mut tag = [0; TAG_BYTES];
    for (to, from) in tag
        .iter_mut()
        .zip(text.iter().take_while(|byte| **byte != 0))
    {
        *to = *from as u8;
    }
    tag
}

fn port(number: u32) -> Outcome<u16> {
    u16::try_from(number)
        .ok()
        .filter(|port| *port != 0)
        .ok_or(HccpError::Port(number))
}

fn offline(what: &'static str, mode: i64) -> Outcome {
    if mode == i64::from(c::NETWORK_OFFLINE) {
        return Ok(());
    }
    Err(HccpError::Mode {
        what,
        got: mode,
        want: "1 (NETWORK_OFFLINE, the NIC of the die)",
    })
}

/// Checks that a `HccpRdev` names a device and the address of its NIC.
fn check_rdev(rdev: &c::HccpRdev) -> Outcome<Ipv4Addr> {
    state::check_initialised(rdev.phyId)?;
    if rdev.family != AF_INET {
        return Err(HccpError::Mode {
            what: "family",
            got: rdev.family.into(),
            want: "2 (AF_INET: the emulated NIC has no IPv6 address)",
        });
    }
    let (given, expected) = (ipv4(&rdev.localIp), state::address_of(rdev.phyId));
    if given == expected {
        return Ok(given);
    }
    Err(HccpError::WrongAddress {
        given,
        device: rdev.phyId,
        expected,
    })
}

fn pointer(handle: usize) -> *mut c_void {
    handle as *mut c_void
}

unsafe extern "C" fn tsd_open(device: u32, _ranks: u32) -> u32 {
    call("TsdOpen", || state::open(device)) as u32
}

unsafe extern "C" fn ra_init(config: *const c::HccpRaInitConfig) -> c_int {
    call("ra_init", || {
        // SAFETY: the caller's structure.
        let config = unsafe { object(config, "config") }?;
        offline("nicPosition", config.nicPosition.into())?;
        if config.hdcType != c::HCCP_HDC_TYPE_RDMA_V2 {
            return Err(HccpError::Mode {
                what: "hdcType",
                got: config.hdcType.into(),
                want: "6",
            });
        }
        state::initialise(config.phyId)
    })
}

unsafe extern "C" fn ra_rdev_init_v2(
    init: c::HccpRdevInitInfo,
    rdev: c::HccpRdev,
    handle: *mut *mut c_void,
) -> c_int {
    call("ra_rdev_init_v2", || {
        offline("mode", init.mode.into())?;
        if init.notifyType > c::HCCP_EVENTID {
            return Err(HccpError::Mode {
                what: "notifyType",
                got: init.notifyType.into(),
                want: "0, 1 (HCCP_NOTIFY) or 2",
            });
        }
        if handle.is_null() {
            return Err(HccpError::Null("rdma_handle"));
        }
        check_rdev(&rdev)?;
        // SAFETY: the caller's place for the handle.
        unsafe { store(handle, "rdma_handle", pointer(state::open_nic(rdev.phyId)?)) }
    })
}

unsafe extern "C" fn ra_rdev_get_handle(device: u32, handle: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's place for the handle.
    call("ra_rdev_get_handle", || unsafe {
        store(handle, "rdma_handle", pointer(state::nic_handle(device)?))
    })
}

unsafe extern "C" fn ra_get_ifnum(attr: *const c::HccpRaGetIfAttr, count: *mut u32) -> c_int {
    call("ra_get_ifnum", || {
        // SAFETY: the caller's structure.
        let attr = unsafe { object(attr, "attr") }?;
        offline("nicPosition", attr.nicPosition.into())?;
        state::check_initialised(attr.phyId)?;
        // SAFETY: the caller's place for the number.
        unsafe { store(count, "num", 1) }
    })
}

unsafe extern "C" fn ra_get_ifaddrs(
    attr: *const c::HccpRaGetIfAttr,
    infos: *mut c::HccpInterfaceInfo,
    count: *mut u32,
) -> c_int {
    call("ra_get_ifaddrs", || {
        const NAME: &[u8] = b"eth0";
        const MASK: [u8; 4] = [255, 255, 255, 0];
        // SAFETY: the caller's structure and number.
        let (attr, room) = unsafe { (object(attr, "attr")?, *object(count, "num")?) };
        offline("nicPosition", attr.nicPosition.into())?;
        state::check_initialised(attr.phyId)?;
        if room == 0 {
            return Err(HccpError::Room { got: room, need: 1 });
        }
        let mut info = c::HccpInterfaceInfo {
            family: AF_INET,
            ..Default::default()
        };
        info.ifaddr.ip = c::HccpIpAddr {
            v4: state::address_of(attr.phyId).octets(),
        };
        info.ifaddr.mask = MASK;
        for (to, from) in info.ifname.iter_mut().zip(NAME) {
            *to = *from as c_char;
        }
        // SAFETY: the caller's array has room for one entry at least.
        unsafe {
            store(infos, "infos", info)?;
            store(count, "num", 1)
        }
    })
}

unsafe extern "C" fn ra_socket_init(
    mode: c::HccpNetworkMode,
    rdev: c::HccpRdev,
    handle: *mut *mut c_void,
) -> c_int {
    call("ra_socket_init", || {
        offline("mode", mode.into())?;
        if handle.is_null() {
            return Err(HccpError::Null("socket_handle"));
        }
        let ip = check_rdev(&rdev)?;
        let socket = agent().open(rdev.phyId, ip, state::time_limit()?)?;
        // SAFETY: the caller's place for the handle.
        unsafe { store(handle, "socket_handle", pointer(socket)) }
    })
}

unsafe extern "C" fn ra_socket_deinit(handle: *mut c_void) -> c_int {
    call("ra_socket_deinit", || agent().close(handle as usize))
}

unsafe extern "C" fn ra_socket_listen_start(
    entries: *mut c::HccpSocketListenInfo,
    count: u32,
) -> c_int {
    call("ra_socket_listen_start", || {
        // SAFETY: the caller's array.
        for entry in unsafe { batch(entries, count) }? {
            let result =
                port(entry.port).and_then(|port| agent().listen(entry.handle as usize, port));
            entry.err = match &result {
                Ok(()) => 0,
                Err(HccpError::AddressInUse { .. }) => libc::EADDRINUSE as u32,
                Err(_) => libc::EINVAL as u32,
            };
            result?;
        }
        Ok(())
    })
}

unsafe extern "C" fn ra_socket_listen_stop(
    entries: *mut c::HccpSocketListenInfo,
    count: u32,
) -> c_int {
    call("ra_socket_listen_stop", || {
        // SAFETY: the caller's array.
        for entry in unsafe { batch(entries, count) }? {
            agent().stop(entry.handle as usize, port(entry.port)?)?;
        }
        Ok(())
    })
}

unsafe extern "C" fn ra_socket_white_list_add(
    handle: *mut c_void,
    entries: *const c::HccpSocketWhiteListInfo,
    count: u32,
) -> c_int {
    call("ra_socket_white_list_add", || {
        // SAFETY: the caller's array; it is only read.
        for entry in unsafe { batch(entries.cast_mut(), count) }? {
            agent().admit(
                handle as usize,
                ipv4(&entry.remoteIp),
                tag(&entry.tag),
                entry.connLimit,
            )?;
        }
        Ok(())
    })
}

unsafe extern "C" fn ra_socket_white_list_del(
    handle: *mut c_void,
    entries: *const c::HccpSocketWhiteListInfo,
    count: u32,
) -> c_int {
    call("ra_socket_white_list_del", || {
        // SAFETY: the caller's array; it is only read.
        for entry in unsafe { batch(entries.cast_mut(), count) }? {
            agent().dismiss(handle as usize, ipv4(&entry.remoteIp), &tag(&entry.tag))?;
        }
        Ok(())
    })
}

unsafe extern "C" fn ra_socket_batch_connect(
    entries: *mut c::HccpSocketConnectInfo,
    count: u32,
) -> c_int {
    call("ra_socket_batch_connect", || {
        // SAFETY: the caller's array.
        for entry in unsafe { batch(entries, count) }? {
            agent().connect(
                entry.handle as usize,
                ipv4(&entry.remoteIp),
                port(entry.port.into())?,
                tag(&entry.tag),
            )?;
        }
        Ok(())
    })
}

unsafe extern "C" fn ra_socket_batch_close(
    entries: *mut c::HccpSocketCloseInfo,
    count: u32,
) -> c_int {
    call("ra_socket_batch_close", || {
        // SAFETY: the caller's array.
        for entry in unsafe { batch(entries, count) }? {
            agent().hang_up(entry.handle as usize, entry.fd as usize)?;
        }
        Ok(())
    })
}

/// Finds connections that are complete. Each is handed out once: `got` counts those of this call, and an entry that holds its connection
/// from an earlier call (fd and status 1) is left as it is, so that a caller can poll with one array and add the counts up. An entry that
/// failed gets status 2 ("timeout"), and the reason becomes the recent error text; the call itself succeeds.
unsafe extern "C" fn ra_get_sockets(
    role: u32,
    entries: *mut c::HccpSocketInfo,
    count: u32,
    got: *mut u32,
) -> c_int {
    call("ra_get_sockets", || {
        let role = match role {
            c::HCCP_SOCKET_ROLE_SERVER => Role::Server,
            c::HCCP_SOCKET_ROLE_CLIENT => Role::Client,
            other => {
                return Err(HccpError::Mode {
                    what: "role",
                    got: other.into(),
                    want: "0 (server) or 1 (client)",
                })
            }
        };
        let mut found = 0;
        // SAFETY: the caller's array.
        for entry in unsafe { batch(entries, count) }? {
            if entry.status == c::HCCP_SOCKET_CONNECTED as i32 && agent().has(entry.fd as usize) {
                continue;
            }
            entry.status = match agent().find(
                role,
                entry.handle as usize,
                ipv4(&entry.remoteIp),
                &tag(&entry.tag),
            )? {
                Found::Connected(fd) => {
                    entry.fd = pointer(fd);
                    found += 1;
                    c::HCCP_SOCKET_CONNECTED
                }
                Found::Connecting => c::HCCP_SOCKET_CONNECTING,
                Found::Failed(why) => {
                    set_recent(&format!("ra_get_sockets: {why}"));
                    c::HCCP_SOCKET_TIMEOUT
                }
                Found::Nothing => c::HCCP_SOCKET_DISCONNECTED,
            } as i32;
        }
        // SAFETY: the caller's place for the number.
        unsafe { store(got, "got", found) }
    })
}

unsafe extern "C" fn ra_qp_create(
    rdma: *mut c_void,
    _flag: c_int,
    _mode: c_int,
    handle: *mut *mut c_void,
) -> c_int {
    call("ra_qp_create", || {
        if handle.is_null() {
            return Err(HccpError::Null("qp_handle"));
        }
        let (queue, ..) = state::create_queue(rdma as usize, &Shape::plain()?)?;
        // SAFETY: the caller's place for the handle.
        unsafe { store(handle, "qp_handle", pointer(queue)) }
    })
}

unsafe extern "C" fn ra_ai_qp_create(
    rdma: *mut c_void,
    attrs: *const c::HccpQpExtAttrs,
    info: *mut c::HccpAiQpInfo,
    handle: *mut *mut c_void,
) -> c_int {
    call("ra_ai_qp_create", || {
        // SAFETY: the caller's structure.
        let shape = Shape::new(unsafe { object(attrs, "attrs") }?)?;
        if info.is_null() || handle.is_null() {
            return Err(HccpError::Null(if info.is_null() {
                "info"
            } else {
                "qp_handle"
            }));
        }
        let (number, queue, rings) = state::create_queue(rdma as usize, &shape)?;
        // The three object addresses are the device's own business: handles that point nowhere.
        let description = c::HccpAiQpInfo {
            aiQpAddr: number as u64,
            sqIndex: queue.number(),
            dbIndex: queue.device(),
            ai_scq_addr: super::handles::next() as u64,
            ai_rcq_addr: super::handles::next() as u64,
            data_plane_info: rings,
        };
        // SAFETY: the caller's places for the description and the handle.
        unsafe {
            store(info, "info", description)?;
            store(handle, "qp_handle", pointer(number))
        }
    })
}

/// Ends a queue pair. One that broke is flushed first: what was left in its send ring completes with 0x05. This is the only driver's flush
/// that HCCP has a call for; recovery is destroy and create.
unsafe extern "C" fn ra_qp_destroy(handle: *mut c_void) -> c_int {
    call("ra_qp_destroy", || state::destroy_queue(handle as usize))
}

unsafe extern "C" fn ra_get_qp_status(handle: *mut c_void, status: *mut c_int) -> c_int {
    call("ra_get_qp_status", || {
        let queue = state::queue(handle as usize)?;
        let (now, why) = queue.status();
        if matches!(now, Status::Timeout | Status::Closed) {
            set_recent(&format!(
                "ra_get_qp_status: queue pair {:#x} is not connected: {why}",
                queue.number()
            ));
        }
        // SAFETY: the caller's place for the status.
        unsafe { store(status, "status", now as c_int) }
    })
}

unsafe extern "C" fn ra_qp_connect_async(handle: *mut c_void, fd: *const c_void) -> c_int {
    call("ra_qp_connect_async", || {
        let queue = state::queue(handle as usize)?;
        let address = queue.address()?;
        agent().exchange(fd as usize, &queue, address)
    })
}

unsafe extern "C" fn ra_register_mr(
    rdma: *const c_void,
    info: *mut c::HccpMrInfo,
    handle: *mut *mut c_void,
) -> c_int {
    call("ra_register_mr", || {
        if handle.is_null() {
            return Err(HccpError::Null("mr_handle"));
        }
        // SAFETY: the caller's structure.
        let mut region = *unsafe { object(info, "info") }?;
        let (number, keys) = state::register_region(
            rdma as usize,
            region.addr as u64,
            region.size,
            region.access,
        )?;
        (region.lkey, region.rkey) = (keys.lkey, keys.rkey);
        // SAFETY: the caller's structure and place for the handle.
        unsafe {
            store(info, "info", region)?;
            store(handle, "mr_handle", pointer(number))
        }
    })
}

unsafe extern "C" fn ra_deregister_mr(rdma: *const c_void, handle: *mut c_void) -> c_int {
    call("ra_deregister_mr", || {
        state::deregister_region(rdma as usize, handle as usize)
    })
}

unsafe extern "C" fn ra_mr_reg(handle: *mut c_void, info: *mut c::HccpMrInfo) -> c_int {
    call("ra_mr_reg", || {
        let queue = state::queue(handle as usize)?;
        // SAFETY: the caller's structure.
        let mut region = *unsafe { object(info, "info") }?;
        let keys = state::bind_region(&queue, region.addr as u64, region.size, region.access)?;
        (region.lkey, region.rkey) = (keys.lkey, keys.rkey);
        // SAFETY: the caller's structure.
        unsafe { store(info, "info", region) }
    })
}

/// Checks the service; the emulated network has one lane, so nothing else comes of it.
unsafe extern "C" fn ra_set_qp_attr_qos(handle: *mut c_void, attr: *mut c::QosAttr) -> c_int {
    call("ra_set_qp_attr_qos", || {
        let _: std::sync::Arc<Queue> = state::queue(handle as usize)?;
        // SAFETY: the caller's structure.
        let attr = unsafe { object(attr, "attr") }?;
        if !attr.tc.is_multiple_of(TRAFFIC_CLASS_STEP) {
            return Err(HccpError::Mode {
                what: "tc",
                got: attr.tc.into(),
                want: "multiples of 4 (0 to 252)",
            });
        }
        if attr.sl > SERVICE_LEVEL_MAX {
            return Err(HccpError::Mode {
                what: "sl",
                got: attr.sl.into(),
                want: "0 to 7",
            });
        }
        Ok(())
    })
}

/// The function table.
pub(crate) fn table() -> c::Hccp {
    c::Hccp::from_fns(c::HccpFns {
        ra_socket_init,
        ra_init,
        ra_socket_deinit,
        ra_rdev_init_v2,
        ra_rdev_get_handle,
        ra_socket_batch_connect,
        ra_socket_batch_close,
        ra_socket_listen_start,
        ra_socket_listen_stop,
        ra_get_sockets,
        ra_get_ifnum,
        ra_get_ifaddrs,
        ra_socket_white_list_add,
        ra_socket_white_list_del,
        ra_qp_create,
        ra_ai_qp_create,
        ra_qp_destroy,
        ra_get_qp_status,
        ra_qp_connect_async,
        ra_register_mr,
        ra_deregister_mr,
        ra_mr_reg,
        ra_set_qp_attr_qos,
        TsdOpen: tsd_open,
        optional: c::HccpOptional::default(),
    })
}
