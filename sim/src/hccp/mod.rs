//! HCCP of the emulated NPU: how a host gets queue pairs that a kernel drives by itself.
//!
//! `entry.rs` has the C functions and fills the table of `npushmem_ffi::hccp`; `state.rs` holds what they made (NICs, regions, queue pairs);
//! `queue.rs` is one queue pair; `agent.rs` connects sockets in the background and `link.rs` queue pairs, both over `wire.rs`. The data path is not here:
//! requests go from a kernel's ring through the doorbell page (`crate::doorbell`) to the NIC of `npushmem-roce`.
//!
//! It does what the vendor's libra.so is known to do, in the order that the vendor's own programs follow (TsdOpen, ra_init, ra_get_ifaddrs,
//! ra_rdev_init_v2, sockets, queue pairs), and refuses what they never do: skipped steps, depths that hardware does not have, unregistered or
//! foreign memory, dead handles. What the vendor does not publish is said to be a choice where it is made.
//!
//! # Settings
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `NPUSIM_CQE_SIZE` | bytes of a completion: 32 as hip08, 64 as hip09 | 32 |
//! | `NPUSIM_HCCP_TIMEOUT` | seconds that a connection or the exchange of a queue pair may take | 60 |
//! | `NPUSHMEM_JOB` | token that keeps the ports of jobs on one machine apart | empty |
//!
//! `NPUSIM_NIC` and its relatives configure the NIC, see `npushmem_roce::nic::NicConfig`.

mod agent;
mod entry;
mod error;
mod handles;
mod link;
mod queue;
mod state;
mod wire;

pub(crate) use entry::table;
pub(crate) use state::shutdown;

/// Checks the settings of the table above that are read when they are needed.
pub(crate) fn check_settings() -> Result<(), error::HccpError> {
    queue::completion_bytes()?;
    state::time_limit()?;
    Ok(())
}
