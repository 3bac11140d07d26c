//! An emulated Ascend NPU behind the vendor's own C ABI: the ACL runtime and HCCP.
//!
//! One process is one PE, as on hardware: it has devices, streams (a worker thread each), events, memory and kernels of its own. Kernels are
//! AscendC sources compiled for the CPU (`ascendc/`); queue pairs belong to the software NIC of `npushmem-roce`.
//!
//! The crate exports no C symbols. [`acl`] and [`hccp`] hand out function tables filled with ordinary `extern "C"` functions; the thin crate
//! `npusim-abi` puts them under the vendor's names for other programs. [`hooks`] tells what the vendor's ABI has no call for.
//!
//! It is no security boundary between processes of one user: whoever may open `/proc/PID/fd` of a PE may map its memory.
//!
//! # Settings
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `NPUSIM_SOC` | which SoC this is, see [`soc::TABLE`] | `Ascend910B1` |
//! | `NPUSIM_DEVICES` | number of devices | 16 |
//! | `NPUSIM_CORES` | AIV cores of a device | by SoC |
//! | `NPUSIM_HBM` | bytes of memory of a device, with K, M, G or T | by SoC |
//! | `NPUSIM_KERNEL_TIMEOUT` | seconds that a kernel may run when its launch sets no limit | 300 |
//! | `NPUSIM_POISON` | `ends`: large fresh allocations are poisoned at both ends only; `all`: everywhere | `ends` |
//! | `NPUSIM_TIME` | `model`: the system counter and everything that kernels wait for follow the time model, see [`time`] | `wall` |
//! | `NPUSIM_CHAOS` | seed for late MTE3 copies; 0 is none | the seed of `NPUSIM_NIC=chaos:SEED` |
//! | `NPUSIM_CQE_SIZE` | bytes of a completion: 32 as hip08, 64 as hip09 | 32 |
//! | `NPUSIM_HCCP_TIMEOUT` | seconds that a connection between NICs, or the exchange of a queue pair, may take | 60 |
//!
//! # What it cannot do
//!
//! Cube cores, notifies, graphs, profiling and models are absent. Device numbers are the same for users, logic and physical devices.

mod acl;
mod block;
mod config;
mod device;
pub mod doorbell;
mod error;
mod event;
mod fault;
mod handles;
mod hccp;
pub mod hooks;
mod launch;
mod memory;
mod module;
mod scheduler;
mod services;
mod share;
pub mod soc;
mod stream;
mod task;
pub mod time;
mod vmm;
mod watchdog;

/// The types of `ascendc/npusim.h`, as bindgen reads them.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::all,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
pub(crate) mod abi {
    include!(concat!(env!("OUT_DIR"), "/npusim.rs"));
}

/// The ACL runtime of the emulated NPU.
pub fn acl() -> npushmem_ffi::acl::Acl {
    acl::table()
}

/// HCCP of the emulated NPU.
pub fn hccp() -> npushmem_ffi::hccp::Hccp {
    hccp::table()
}
