//! What HCCP calls of this process have made: which devices run, their NICs, regions and queue pairs, by handle.
//!
//! One NIC a device, opened by `ra_rdev_init_v2`. Called by `entry.rs`; aclFinalize calls [`shutdown`]. What the NICs counted and noticed
//! goes to `crate::hooks`.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use npushmem_ffi::hccp as c;
use npushmem_roce::nic::{access, Backing, MrInit, MrKeys, Nic, NicConfig, NicCounters, NicError};

use super::agent::agent;
use super::error::HccpError;
use super::handles;
use super::queue::{Queue, Shape};
use crate::hooks::{self, NicSource};
use crate::{config, doorbell, memory};

/// Seconds that a connection or an exchange may take, when nothing is said.
const TIMEOUT: f64 = 60.0;
/// Longest time limit that is accepted, seconds.
const TIMEOUT_MAX: f64 = 86_400.0;

/// How far a device's HCCP is.
#[derive(Default)]
struct Device {
    open: bool,
    initialised: bool,
    port: Option<Port>,
}

/// An open NIC.
#[derive(Clone)]
struct Port {
    handle: usize,
    nic: Arc<Nic>,
    page: u64,
}

/// A registered region.
struct Region {
    device: u32,
    va: u64,
    len: u64,
    access: u32,
    keys: MrKeys,
}

#[derive(Default)]
struct State {
    devices: HashMap<u32, Device>,
    regions: BTreeMap<usize, Region>,
    queues: BTreeMap<usize, Arc<Queue>>,
    /// What NICs that are closed have counted.
    retired: NicCounters,
    /// Diagnostics of closed NICs, not told yet.
    untold: Vec<String>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state: MutexGuard<'_, Option<State>> =
        STATE.lock().unwrap_or_else(PoisonError::into_inner);
    body(state.get_or_insert_default())
}

/// The address of a device's emulated NIC: 192.168.100.(1 + device), and on from there.
pub fn address_of(device: u32) -> Ipv4Addr {
    const SUBNET: u32 = u32::from_be_bytes([192, 168, 100, 0]);
    Ipv4Addr::from_bits(SUBNET + 1 + device)
}

/// The time limit of background work, `NPUSIM_HCCP_TIMEOUT`.
pub fn time_limit() -> Result<Duration, HccpError> {
    let Ok(text) = std::env::var("NPUSIM_HCCP_TIMEOUT") else {
        return Ok(Duration::from_secs_f64(TIMEOUT));
    };
    match text.trim().parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= TIMEOUT_MAX => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(HccpError::Setting {
            name: "NPUSIM_HCCP_TIMEOUT",
            value: text,
            want: "seconds above 0, up to 86400",
        }),
    }
}

fn check_device(device: u32) -> Result<(), HccpError> {
    let count = config::get()
        .map_err(|fail| HccpError::Config(fail.text))?
        .devices;
    if device < count {
        Ok(())
    } else {
        Err(HccpError::NoDevice { device, count })
    }
}

/// Refuses a device that `ra_init` has not prepared.
pub fn check_initialised(device: u32) -> Result<(), HccpError> {
    check_device(device)?;
    with(|state| match state.devices.get(&device) {
        Some(entry) if entry.initialised => Ok(()),
        _ => Err(HccpError::NotInitialised(device)),
    })
}

/// `TsdOpen`: HCCP of the device runs from now on. Calling it again changes nothing.
pub fn open(device: u32) -> Result<(), HccpError> {
    check_device(device)?;
    with(|state| state.devices.entry(device).or_default().open = true);
    Ok(())
}

/// `ra_init`.
pub fn initialise(device: u32) -> Result<(), HccpError> {
    check_device(device)?;
    time_limit()?;
    with(|state| {
        let entry = state.devices.entry(device).or_default();
        if !entry.open {
            return Err(HccpError::NotOpen(device));
        }
        if entry.initialised {
            return Err(HccpError::AlreadyInitialised(device));
        }
        entry.initialised = true;
        Ok(())
    })
}

/// `ra_rdev_init_v2`: opens the NIC of a device.
pub fn open_nic(device: u32) -> Result<usize, HccpError> {
    check_initialised(device)?;
    let config = NicConfig::from_env().map_err(|error| HccpError::Config(error.to_string()))?;
    with(|state| {
        let entry = state.devices.entry(device).or_default();
        if entry.port.is_some() {
            return Err(HccpError::AlreadyOpen(device));
        }
        let nic = Nic::open_timed(config, crate::time::timing())?;
        hooks::set_nic_source(NicSource {
            counters: nic_counters,
            diagnostics: nic_diagnostics,
        });
        let page = doorbell::attach(&nic).map_err(HccpError::Doorbell)?;
        let handle = handles::next();
        entry.port = Some(Port { handle, nic, page });
        Ok(handle)
    })
}

/// `ra_rdev_get_handle`: the NIC of a device, if it is open.
pub fn nic_handle(device: u32) -> Result<usize, HccpError> {
    check_device(device)?;
    with(|state| {
        state
            .devices
            .get(&device)
            .and_then(|entry| entry.port.as_ref())
            .map(|port| port.handle)
            .ok_or(HccpError::NoNic(device))
    })
}

impl State {
    fn port(&self, handle: usize) -> Result<(u32, Port), HccpError> {
        let port = self.devices.iter().find_map(|(device, entry)| {
            entry
                .port
                .as_ref()
                .filter(|port| port.handle == handle)
                .map(|port| (*device, port.clone()))
        });
        port.ok_or(HccpError::Handle {
            kind: "NIC",
            value: handle,
        })
    }
}

/// `ra_ai_qp_create` and `ra_qp_create`.
pub fn create_queue(
    rdma: usize,
    shape: &Shape,
) -> Result<(usize, Arc<Queue>, c::ai_data_plane_info), HccpError> {
    let (device, port) = with(|state| state.port(rdma))?;
    let (queue, info) = Queue::create(device, &port.nic, port.page, shape)?;
    let handle = handles::next();
    with(|state| state.queues.insert(handle, queue.clone()));
    Ok((handle, queue, info))
}

/// The queue pair behind a handle.
pub fn queue(handle: usize) -> Result<Arc<Queue>, HccpError> {
    with(|state| state.queues.get(&handle).cloned()).ok_or(HccpError::Handle {
        kind: "queue pair",
        value: handle,
    })
}

/// `ra_qp_destroy`: flushes a queue pair that broke, and ends it.
pub fn destroy_queue(handle: usize) -> Result<(), HccpError> {
    let queue = with(|state| state.queues.remove(&handle)).ok_or(HccpError::Handle {
        kind: "queue pair",
        value: handle,
    })?;
    agent().forget(&queue);
    queue.destroy()
}

/// A range and access of `ra_register_mr` or `ra_mr_reg`, checked.
fn register(device: u32, nic: &Nic, va: u64, len: u64, bits: i32) -> Result<MrKeys, HccpError> {
    let flags = bits as u32;
    if flags & !access::ALL != 0 {
        return Err(HccpError::Access {
            access: bits.into(),
        });
    }
    let own = |region: &memory::Region| {
        region.kind == memory::Kind::Device && u32::try_from(region.device) == Ok(device)
    };
    let place = memory::lookup(va, len).filter(|region| len > 0 && own(region));
    let place = place.ok_or(HccpError::NotDeviceMemory {
        device,
        addr: va,
        size: len,
    })?;
    let backing = Backing {
        fd: place.fd,
        offset: place.offset + (va - place.va),
    };
    nic.register_mr(MrInit {
        va,
        len,
        access: flags,
        backing,
    })
    .map_err(|error| match error {
        NicError::AtomicAccess { .. } => HccpError::AtomicAccess {
            access: bits.into(),
        },
        other => other.into(),
    })
}

/// `ra_register_mr`: keys for a range of device memory on a NIC.
pub fn register_region(
    rdma: usize,
    va: u64,
    len: u64,
    bits: i32,
) -> Result<(usize, MrKeys), HccpError> {
    let (device, port) = with(|state| state.port(rdma))?;
    let keys = register(device, &port.nic, va, len, bits)?;
    let handle = handles::next();
    with(|state| {
        state.regions.insert(
            handle,
            Region {
                device,
                va,
                len,
                access: bits as u32,
                keys,
            },
        )
    });
    Ok((handle, keys))
}

/// `ra_deregister_mr`.
pub fn deregister_region(rdma: usize, handle: usize) -> Result<(), HccpError> {
    let (device, port) = with(|state| state.port(rdma))?;
    let region = with(|state| match state.regions.get(&handle) {
        Some(region) if region.device == device => state.regions.remove(&handle),
        _ => None,
    });
    let region = region.ok_or(HccpError::Handle {
        kind: "memory region",
        value: handle,
    })?;
    Ok(port.nic.deregister_mr(region.keys.lkey)?)
}

/// `ra_mr_reg`: makes a range's keys usable on one queue pair. A range that `ra_register_mr` registered with at least this access keeps its
/// keys; any other is registered for this queue pair alone, and ends with it.
pub fn bind_region(queue: &Queue, va: u64, len: u64, bits: i32) -> Result<MrKeys, HccpError> {
    let known = with(|state| {
        let fits = |region: &&Region| {
            (region.device, region.va, region.len) == (queue.device(), va, len)
                && region.access & bits as u32 == bits as u32
        };
        state.regions.values().find(fits).map(|region| region.keys)
    });
    let keys = match known {
        Some(keys) => keys,
        None => register(queue.device(), queue.nic(), va, len, bits)?,
    };
    queue.bind(keys.lkey, known.is_none())?;
    Ok(keys)
}

/// Ends everything that HCCP made on a device, its NIC included: before the device's memory goes.
fn release_device(device: u32) {
    agent().close_device(device);
    let (queues, entry) = with(|state| {
        let (gone, kept) = std::mem::take(&mut state.queues)
            .into_iter()
            .partition(|(_, queue)| queue.device() == device);
        state.queues = kept;
        state.regions.retain(|_, region| region.device != device);
        let queues: BTreeMap<usize, Arc<Queue>> = gone;
        (queues, state.devices.remove(&device))
    });
    for queue in queues.into_values() {
        agent().forget(&queue);
        if let Err(error) = queue.destroy() {
            tracing::warn!(
                "queue pair {} of device {device} was left open and cannot be ended: {error}",
                queue.number()
            );
        }
    }
    if let Some(port) = entry.and_then(|entry| entry.port) {
        doorbell::detach(port.page);
        with(|state| {
            state.retired += port.nic.counters();
            state.untold.extend(
                port.nic
                    .take_diagnostics()
                    .into_iter()
                    .map(|line| format!("NIC of device {device}: {line}")),
            );
        });
    }
}

/// Ends everything, and waits until the agent's thread has left: when the process finalizes ACL.
pub(crate) fn shutdown() {
    let devices: Vec<u32> = with(|state| state.devices.keys().copied().collect());
    for device in devices {
        release_device(device);
    }
    agent().shutdown();
}

/// The NIC counters of this process, closed NICs included.
fn nic_counters() -> NicCounters {
    let (mut total, nics) = with(|state| (state.retired, open_nics(state)));
    for (_, nic) in nics {
        total += nic.counters();
    }
    total
}

/// What the NICs noticed since the last call.
fn nic_diagnostics() -> Vec<String> {
    with(|state| {
        let mut lines = std::mem::take(&mut state.untold);
        for (device, nic) in open_nics(state) {
            lines.extend(
                nic.take_diagnostics()
                    .into_iter()
                    .map(|line| format!("NIC of device {device}: {line}")),
            );
        }
        lines
    })
}

fn open_nics(state: &State) -> Vec<(u32, Arc<Nic>)> {
    let mut nics: Vec<_> = state
        .devices
        .iter()
        .filter_map(|(device, entry)| entry.port.as_ref().map(|port| (*device, port.nic.clone())))
        .collect();
    nics.sort_by_key(|(device, _)| *device);
    nics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_consecutive_addresses() {
        assert_eq!(address_of(0), Ipv4Addr::new(192, 168, 100, 1));
        assert_eq!(address_of(15), Ipv4Addr::new(192, 168, 100, 16));
        assert_eq!(address_of(255), Ipv4Addr::new(192, 168, 101, 0));
    }
}
