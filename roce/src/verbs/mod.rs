//! The host's own RDMA NIC, as the verbs wire of [`crate::nic`] needs it: a device, registered memory, RC queue pairs.
//!
//! `sys.rs` does it over rdma-sys (feature `verbs`) and is the only file that names that crate, so that another one can take its place;
//! `absent.rs` takes its place in builds without the feature, where opening a device is an error that says so. It knows nothing of HNS rings:
//! requests and completions are plain structures. Facts: ibv_reg_mr(3), ibv_post_send(3), ibv_modify_qp(3), and the InfiniBand specification
//! 1.4, 9.7.

#[cfg(not(feature = "verbs"))]
mod absent;
#[cfg(feature = "verbs")]
mod sys;

use std::io;
use std::net::Ipv4Addr;

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use crate::cqe::Status;
use crate::wqe::MAX_INLINE;

#[cfg(not(feature = "verbs"))]
pub(crate) use absent::{Device, QueuePair, Region};
#[cfg(feature = "verbs")]
pub(crate) use sys::{Device, QueuePair, Region};

/// Which device and which of its addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerbsConfig {
    /// The device's name as `ibv_devices` lists it, or several with commas between them (see [`VerbsConfig::of`]); `None`: the only one there
    /// is.
    pub device: Option<String>,
    /// Index in the device's table of addresses (GIDs); `None`: the first IPv4 address of RoCE v2.
    pub gid: Option<u32>,
}

impl VerbsConfig {
    /// The setting of NIC `number` of a host, when the devices of a list are shared out among its NICs in turn.
    pub fn of(mut self, number: u32) -> VerbsConfig {
        if let Some(list) = self.device.take() {
            let names: Vec<&str> = list.split(',').map(str::trim).collect();
            self.device = Some(names[number as usize % names.len()].to_owned());
        }
        self
    }
}

/// Why the host's NIC cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// Built without the feature.
    #[error("NPUSIM_WIRE=verbs, but this program was built without verbs; build it with the cargo feature `verbs` (docs/rdma.md), or set NPUSIM_WIRE=memory")]
    NotCompiled,
    /// No device at all.
    #[error("NPUSIM_WIRE=verbs, but this host has no RDMA device; load its driver, or make a Soft-RoCE one: rdma link add rxe0 type rxe netdev eth0")]
    NoDevices,
    /// No device of that name.
    #[error("NPUSIM_VERBS_DEVICE={name}: no such RDMA device; this host has {have}")]
    NoDevice {
        /// What was asked for.
        name: String,
        /// What there is.
        have: String,
    },
    /// Several devices and no choice.
    #[error("this host has several RDMA devices ({have}); choose one with NPUSIM_VERBS_DEVICE")]
    Ambiguous {
        /// What there is.
        have: String,
    },
    /// The port does not work.
    #[error(
        "port 1 of RDMA device {device} is not active ({state}); bring its network interface up"
    )]
    Port {
        /// The device.
        device: String,
        /// The state.
        state: String,
    },
    /// The address cannot be used.
    #[error("GID {index} of RDMA device {device} {why}; NPUSIM_VERBS_GID chooses another one (IPv4 addresses of RoCE v2: {have})")]
    Gid {
        /// The device.
        device: String,
        /// The index.
        index: String,
        /// What is wrong.
        why: &'static str,
        /// What could be used.
        have: String,
    },
    /// Memory could not be pinned.
    #[error("{len} bytes at {va:#x} cannot be pinned for RDMA device {device} ({source}); this process may lock {limit}: raise it (ulimit -l unlimited, LimitMEMLOCK=infinity), or lower SHMEM_SYMMETRIC_SIZE")]
    Memlock {
        /// The device.
        device: String,
        /// Address of the region.
        va: u64,
        /// Its bytes.
        len: u64,
        /// RLIMIT_MEMLOCK in words.
        limit: String,
        /// The error.
        source: io::Error,
    },
    /// The region does not fit the device.
    #[error("region {va:#x}+{len:#x} cannot be registered: {why}")]
    Region {
        /// Address of the region.
        va: u64,
        /// Its bytes.
        len: u64,
        /// What does not fit.
        why: &'static str,
    },
    /// A call failed.
    #[error("{call} on RDMA device {device} failed: {source}")]
    Call {
        /// The call.
        call: &'static str,
        /// The device.
        device: String,
        /// Its error.
        source: io::Error,
    },
}

/// Where a queue pair is: what two ends tell each other before they connect. All zeros: nowhere.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct VerbsAddress {
    /// The port's address.
    pub gid: [u8; 16],
    /// Number of the queue pair, 24 bits.
    pub qpn: u32,
    /// First packet sequence number, 24 bits.
    pub psn: u32,
    /// Path MTU, in the coding of verbs (1: 256 bytes .. 5: 4096 bytes).
    pub mtu: u32,
    /// READs and atomics that it answers at once.
    pub reads: u32,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Write,
    Read,
    FetchAdd(u64),
    CompareSwap { compare: u64, swap: u64 },
    Send,
}

/// Registered local memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub addr: u64,
    pub len: u32,
    pub lkey: u32,
}

/// A request to post.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "verbs"), allow(dead_code))] // read by sys.rs
pub(crate) struct Request {
    /// Comes back with the completion.
    pub id: u64,
    pub operation: Operation,
    pub remote: u64,
    pub rkey: u32,
    /// Makes a completion also when all goes well.
    pub signaled: bool,
    /// Starts only when earlier READs and atomics have brought their data.
    pub fence: bool,
    /// Local memory; the empty ones do not count.
    pub segments: [Segment; 2],
    /// An inline payload in place of segments.
    pub inline: Option<(u8, [u8; MAX_INLINE])>,
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completion {
    pub id: u64,
    pub status: Status,
    /// The driver's syndrome of a failure.
    pub syndrome: u32,
}

/// The IPv4 address that a NIC with this setting would have, before one is opened.
///
/// # Errors
/// As opening a NIC with it.
pub fn address(config: &VerbsConfig) -> Result<Ipv4Addr, VerbsError> {
    Ok(Device::open(config)?.ip())
}

/// The IPv4 address in a GID, if it is one (`::ffff:a.b.c.d`).
#[cfg_attr(not(feature = "verbs"), allow(dead_code))] // called by sys.rs
pub(crate) fn ipv4_of(gid: &[u8; 16]) -> Option<Ipv4Addr> {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    (gid[..12] == MAPPED).then(|| Ipv4Addr::new(gid[12], gid[13], gid[14], gid[15]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_devices_is_shared_out_in_turn() {
        let device = |list: Option<&str>, number| {
            let config = VerbsConfig {
                device: list.map(str::to_owned),
                gid: None,
            };
            config.of(number).device
        };
        assert_eq!(device(Some("a, b"), 0).as_deref(), Some("a"));
        assert_eq!(device(Some("a, b"), 3).as_deref(), Some("b"));
        assert_eq!(device(Some("a"), 3).as_deref(), Some("a"));
        assert_eq!(device(None, 3), None);
    }

    #[test]
    fn only_mapped_addresses_are_ipv4() {
        let mut gid = [0; 16];
        gid[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 7]);
        assert_eq!(ipv4_of(&gid), Some(Ipv4Addr::new(10, 0, 0, 7)));
        gid[0] = 0xfe;
        assert_eq!(ipv4_of(&gid), None);
    }

    #[cfg(not(feature = "verbs"))]
    #[test]
    fn a_build_without_the_feature_says_how_to_get_it() {
        let error = Device::open(&VerbsConfig::default())
            .err()
            .map(|e| e.to_string());
        assert!(error
            .is_some_and(|text| text.contains("cargo feature `verbs`")
                && text.contains("NPUSIM_WIRE=memory")));
    }

    #[cfg(feature = "verbs")]
    #[test]
    fn a_device_that_does_not_exist_is_named_with_the_way_out() {
        let config = VerbsConfig {
            device: Some("no-such-device".into()),
            gid: None,
        };
        let text = Device::open(&config)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(
            text.contains("no RDMA device") || text.contains("no-such-device"),
            "{text}"
        );
    }
}
