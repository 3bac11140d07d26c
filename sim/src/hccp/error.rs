//! What HCCP calls can fail with: the vendor's codes, and sentences that name the input, the cause and the fix.
//!
//! The codes that have a name in public HCCP headers (hccp_common.h of the HCCL sources) are those; the others follow the same pattern of
//! digits (class, 28, module, number) and are this emulator's choice. The sentence is kept as the thread's recent error text, which
//! `aclGetRecentErrMsg` returns. Called by the other files of this folder.

use std::ffi::c_int;
use std::net::Ipv4Addr;

use npushmem_roce::nic::NicError;

/// Initialisation module: invalid argument (by the pattern).
pub const HCCP_EINVAL: c_int = 128_003;
/// Initialisation module: no such device, or its HCCP is not running (by the pattern).
pub const HCCP_ENODEV: c_int = 228_002;
/// Initialisation module: the address is not that of the device's NIC (public name).
pub const HCCP_EINVALIDIPS: c_int = 328_008;
/// RDMA module: invalid argument (public name).
pub const ROCE_EINVAL: c_int = 128_103;
/// RDMA module: not there (public name).
pub const ROCE_ENOENT: c_int = 228_100;
/// RDMA module: out of memory (public name).
pub const ROCE_ENOMEM: c_int = 328_100;
/// RDMA module: the verbs layer below failed (public name).
pub const ROCE_EOPENSRC: c_int = 528_101;
/// RDMA module: not supported (public name).
pub const ROCE_ENOTSUPP: c_int = 528_102;
/// Socket module: invalid argument (by the pattern).
pub const SOCK_EINVAL: c_int = 128_203;
/// Socket module: the port is taken (public name).
pub const SOCK_EADDRINUSE: c_int = 128_205;
/// Socket module: the socket is closed (public name).
pub const SOCK_ESOCKCLOSED: c_int = 128_207;
/// Socket module: no such socket device (public name).
pub const SOCK_ENODEV: c_int = 228_202;
/// Socket module: the system refused (by the pattern).
pub const SOCK_ESYS: c_int = 528_201;

/// Why an HCCP call failed.
#[derive(Debug, thiserror::Error)]
pub enum HccpError {
    /// A pointer that must not be null is.
    #[error("the argument {0} is null")]
    Null(&'static str),
    /// A count outside of what one call takes.
    #[error("{got} entries in one call; HCCP takes 1 to {max}, so split the batch")]
    Batch {
        /// Entries passed.
        got: u32,
        /// Entries that one call takes.
        max: u32,
    },
    /// No such device.
    #[error("device {device} does not exist: this emulated machine has {count}; NPUSIM_DEVICES sets how many")]
    NoDevice {
        /// Physical device id passed.
        device: u32,
        /// Devices there are.
        count: u32,
    },
    /// `TsdOpen` is missing.
    #[error("HCCP of device {0} is not running: call TsdOpen(device, ranks) before ra_init")]
    NotOpen(u32),
    /// `ra_init` is missing.
    #[error("device {0} is not initialised: call ra_init first")]
    NotInitialised(u32),
    /// `ra_init` twice.
    #[error("device {0} is initialised already, by this process; go on with ra_rdev_get_handle or ra_rdev_init_v2")]
    AlreadyInitialised(u32),
    /// A second NIC context on one device.
    #[error("the NIC of device {0} is open in this process already: use ra_rdev_get_handle")]
    AlreadyOpen(u32),
    /// The NIC context is missing.
    #[error("the NIC of device {0} is not open in this process: call ra_rdev_init_v2 first")]
    NoNic(u32),
    /// A mode or a type that the emulator does not have.
    #[error("{what} is {got}; the emulated HCCP takes {want}")]
    Mode {
        /// The field.
        what: &'static str,
        /// Its value.
        got: i64,
        /// What is accepted.
        want: &'static str,
    },
    /// Not the address of the device's NIC.
    #[error("{given} is not the address of device {device}'s NIC, {expected}: ask ra_get_ifaddrs")]
    WrongAddress {
        /// Address passed.
        given: Ipv4Addr,
        /// The device.
        device: u32,
        /// Its address.
        expected: Ipv4Addr,
    },
    /// The array for addresses is too short.
    #[error("room for {got} addresses, and the device has {need}: ask ra_get_ifnum")]
    Room {
        /// Entries that fit.
        got: u32,
        /// Entries there are.
        need: u32,
    },
    /// A handle that was never given out, or is closed.
    #[error(
        "{value:#x} is no live {kind} handle of this process: it was never made, or it was closed"
    )]
    Handle {
        /// What the handle should name.
        kind: &'static str,
        /// Its value.
        value: usize,
    },
    /// The port is taken.
    #[error(
        "{ip}:{port} is in use by another listener of this machine and job; take another port"
    )]
    AddressInUse {
        /// Address of the NIC.
        ip: Ipv4Addr,
        /// The port.
        port: u16,
    },
    /// Nobody listens there.
    #[error("this socket handle does not listen on port {0}")]
    NotListening(u16),
    /// A number that is no port.
    #[error("port {0} is outside 1 to 65535")]
    Port(u32),
    /// A white list entry that admits nobody.
    #[error("a white list entry for {0} has connLimit 0 and would admit nobody; pass how many connections it may make")]
    EmptyLimit(Ipv4Addr),
    /// A white list entry that is not there.
    #[error("no white list entry for {0} with this tag")]
    NoWhiteEntry(Ipv4Addr),
    /// The system refused a socket operation.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: rustix::io::Errno,
    },
    /// The socket of a connection is closed.
    #[error(
        "the connection to {peer} is closed ({why}); make a new one with ra_socket_batch_connect"
    )]
    Closed {
        /// Address of the other NIC.
        peer: Ipv4Addr,
        /// Why it closed.
        why: String,
    },
    /// A ring depth that hardware does not have.
    #[error("{what} is {got}; it must be a power of two from {min} to {max}")]
    Depth {
        /// The field.
        what: &'static str,
        /// Its value.
        got: i64,
        /// Smallest depth.
        min: u32,
        /// Largest depth.
        max: u32,
    },
    /// Not enough device memory for the rings.
    #[error("no device memory for a queue pair of {bytes} bytes on device {device}: {why}; use fewer or shallower queue pairs, or raise NPUSIM_HBM")]
    Memory {
        /// The device.
        device: u32,
        /// Bytes asked for.
        bytes: u64,
        /// What the allocator said.
        why: String,
    },
    /// A range that is not the device's memory.
    #[error("[{addr:#x}, +{size:#x}) does not lie in one piece of device {device}'s memory in this process: register what aclrtMalloc or aclrtMapMem gave, no more, and no peer's")]
    NotDeviceMemory {
        /// The NIC's device.
        device: u32,
        /// First byte.
        addr: u64,
        /// Length in bytes.
        size: u64,
    },
    /// Remote atomics are refused.
    #[error("access {access:#x} asks for remote atomics (8), which this NIC refuses (NPUSIM_NIC_ATOMIC_ACCESS=off); register with access 7")]
    AtomicAccess {
        /// Access flags passed.
        access: i64,
    },
    /// Inline payloads are refused.
    #[error("max_inline_data is {bytes}, and this NIC refuses queue pairs for inline payloads (NPUSIM_NIC_INLINE=off); pass 0")]
    Inline {
        /// Bytes asked for.
        bytes: u32,
    },
    /// Unknown access flags.
    #[error("access {access:#x} has flags that are unknown here; known: 1 local write, 2 remote write, 4 remote read, 8 atomic, 0x100 reduce")]
    Access {
        /// Access flags passed.
        access: i64,
    },
    /// A call that the queue pair's state does not allow.
    #[error("queue pair {qpn} is {state}; {fix}")]
    QueueState {
        /// Its number.
        qpn: u32,
        /// What it is.
        state: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// A setting in the environment.
    #[error("{name}={value} is not valid: {want}")]
    Setting {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is accepted.
        want: &'static str,
    },
    /// The NIC's own configuration is wrong.
    #[error("the emulated NIC cannot be configured: {0}")]
    Config(String),
    /// The NIC refused.
    #[error("the NIC refused: {0}")]
    Nic(#[from] NicError),
    /// The doorbell pages are used up.
    #[error("{0}")]
    Doorbell(String),
}

impl HccpError {
    /// The code that the C ABI returns.
    pub fn code(&self) -> c_int {
        match self {
            Self::Null(_)
            | Self::Mode { .. }
            | Self::Room { .. }
            | Self::Setting { .. }
            | Self::AlreadyInitialised(_) => HCCP_EINVAL,
            Self::NoDevice { .. }
            | Self::NotOpen(_)
            | Self::NotInitialised(_)
            | Self::Config(_) => HCCP_ENODEV,
            Self::WrongAddress { .. } => HCCP_EINVALIDIPS,
            Self::NoNic(_) => ROCE_ENOENT,
            Self::Depth { .. }
            | Self::NotDeviceMemory { .. }
            | Self::Access { .. }
            | Self::QueueState { .. }
            | Self::AlreadyOpen(_)
            | Self::Handle {
                kind: "queue pair" | "memory region" | "NIC",
                ..
            } => ROCE_EINVAL,
            Self::Memory { .. } | Self::Doorbell(_) => ROCE_ENOMEM,
            Self::AtomicAccess { .. } | Self::Inline { .. } => ROCE_ENOTSUPP,
            Self::Nic(_) => ROCE_EOPENSRC,
            Self::AddressInUse { .. } => SOCK_EADDRINUSE,
            Self::Closed { .. } => SOCK_ESOCKCLOSED,
            Self::Handle { kind: "socket", .. } => SOCK_ENODEV,
            Self::Handle { .. }
            | Self::Batch { .. }
            | Self::NotListening(_)
            | Self::Port(_)
            | Self::EmptyLimit(_)
            | Self::NoWhiteEntry(_) => SOCK_EINVAL,
            Self::System { .. } => SOCK_ESYS,
        }
    }
}
