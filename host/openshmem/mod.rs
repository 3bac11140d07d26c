//! OpenSHMEM for Rust programs: what the host does itself, with types. Kernels have their own calls (device/shmem.h); both are about the same
//! symmetric memory, PEs and teams.
//!
//! What it is not: an engine. Collectives, waits, locks and teams run on the one that the C API uses too (shm/). Every item cites the routine of
//! OpenSHMEM 1.6 that it stands for.
//!
//! ```no_run
//! use npushmem::{op, SignalOp, Cmp, World};
//!
//! # fn main() -> Result<(), npushmem::Error> {
//! let world = World::init()?;
//! let ctx = world.ctx();
//! let (row, flag) = (world.alloc::<f32>(1024)?, world.alloc_one::<u64>()?);
//! world.barrier_all()?;
//! let next = world.ring(1);
//! ctx.put_signal(&row, &[1.0; 1024], &flag, 1, SignalOp::Set, next)?;
//! world.signal_wait_until(&flag, Cmp::Eq, 1)?; // the row of the PE before is there
//! let sum = world.on_all()?.reduce_value(op::Sum, world.to_vec(&row)?[0])?;
//! assert_eq!(sum, world.n_pes() as f32);
//! drop((row, flag));
//! world.finalize()
//! # }
//! ```
//!
//! # Rules
//!
//! - **Memory.** Other PEs and kernels write symmetric memory at any time, so there is no safe reference to it: [`SymBuf`](crate::SymBuf),
//!   [`SymSlice`](crate::SymSlice), [`SymRef`](crate::SymRef) say where it is, and operations copy. [`World::as_slice`] is `unsafe`, its contract is who
//!   may write. Races that the standard leaves undefined give unspecified values of plain types here.
//! - **Completion.** A put is a store that was made when the call returned; [`HostContext::fence`] orders, [`HostContext::quiet`] completes, a barrier
//!   does both. Waits and `signal_fetch` read with acquire ordering, signals are stored with release ordering.
//! - **Non-blocking** operations borrow their buffers to the end of a scope, [`HostContext::nbi`].
//! - **Bounds in time.** Every wait ends at `NPUSHMEM_TIMEOUT` or when a PE dies, with an error. A collective that ends so breaks its team.
//! - **Symmetry.** A slice names the same elements on every PE. Members of a team compare kind and size of their collectives (`NPUSHMEM_CHECK`).
//! - **Dropping** is never collective and never waits: a buffer's block and a team's place are free again at this PE. Drop buffers on all PEs at the
//!   same place of the program.
//! - **Atomics** are executed by the job's atomic domain: by this CPU before the device is enabled, then as kernels' are (atomics.rs).
//! - **Device memory.** On hardware the heap is not host memory: put, get, p, g, signals and waits are then copies of the runtime, atomics are
//!   kernels, and collectives between hosts and locks are refused with [`ShmemError::NotShared`].
//!
//! # Routines
//!
//! | OpenSHMEM 1.6 | here |
//! | --- | --- |
//! | `shmem_init`, `finalize` | [`World::init`], [`World::finalize`] |
//! | `my_pe`, `n_pes`, `pe_accessible`, `addr_accessible` | [`World::me`], [`World::pes`], [`World::pe`], [`World::ptr`] |
//! | `global_exit` | [`World::global_exit`] |
//! | `ptr`, `team_ptr` | [`World::ptr`], with [`Pe`] of [`Team::pe`](crate::Team::pe) |
//! | `malloc`, `calloc`, `align`, `free` | [`World::alloc`], [`World::alloc_zeroed`], [`World::alloc_one`], [`World::alloc_aligned`], dropping |
//! | `team_world`, `team_shared`, `team_split_strided`, `team_split_2d`, `team_destroy` | [`World::team_world`], [`World::team_shared`], [`World::team_split_strided`], [`World::team_split_2d`], [`World::team_from_pes`] (ours), [`World::team_destroy`] or dropping |
//! | `team_my_pe`, `team_n_pes`, `team_translate_pe` | [`Team::my_pe`](crate::Team::my_pe), [`Team::n_pes`](crate::Team::n_pes), [`Team::translate`](crate::Team::translate) |
//! | `ctx_create`, `team_create_ctx`, `ctx_get_team`, `ctx_destroy` | [`World::host_context`], [`HostContext::team`], dropping |
//! | `put`, `get`, `p`, `g` | [`HostContext::put`], [`HostContext::get`], [`HostContext::put_sym`], [`HostContext::get_sym`], [`HostContext::p`], [`HostContext::g`] |
//! | `iput`, `iget`, `ibput`, `ibget` | [`HostContext::iput`], [`HostContext::iget`], [`HostContext::ibput`], [`HostContext::ibget`] |
//! | `put_nbi`, `get_nbi`, `atomic_*_nbi`, `put_signal_nbi` | [`HostContext::nbi`] and [`Nbi`] |
//! | `atomic_fetch`, `set`, `swap` (also floats), `compare_swap`, `fetch_add`, `add`, `fetch_inc`, `inc`, `fetch_and`, `and`, `or`, `xor` | [`HostContext::atomic_fetch`] and so on |
//! | `put_signal`, `signal_set`, `signal_add`, `signal_fetch`, `signal_wait_until` | [`HostContext::put_signal`], [`HostContext::signal_set`], [`HostContext::signal_add`], [`World::signal_fetch`], [`World::signal_wait_until`] |
//! | `wait_until`, `test`, and `_all`, `_any`, `_some`, `_vector` | [`World::wait_until`], [`World::test`], [`World::wait_until_all`], [`World::wait_until_any_vector`] and so on |
//! | `fence`, `quiet`, `pe_quiet` | [`HostContext::fence`], [`HostContext::quiet`], [`HostContext::pe_quiet`]; what kernels left open: [`World::quiet`] |
//! | `barrier_all`, `sync_all`, `team_sync` | [`World::barrier_all`] (kernels' operations too), [`OnTeam::barrier`], [`OnTeam::sync`]; [`World::sync_pe`] (ours) |
//! | `broadcast`, `collect`, `fcollect`, `alltoall`, `alltoalls` | [`OnTeam::broadcast`], [`OnTeam::collect`], [`OnTeam::fcollect`], [`OnTeam::alltoall`], [`OnTeam::alltoalls`] |
//! | `sum_reduce`, `prod`, `min`, `max`, `and`, `or`, `xor` | [`OnTeam::reduce`] with [`crate::op`]; [`OnTeam::reduce_value`], [`OnTeam::gather`], [`OnTeam::broadcast_value`] (ours) |
//! | `sum_inscan`, `sum_exscan` | [`OnTeam::inscan`], [`OnTeam::exscan`] |
//! | `set_lock`, `clear_lock`, `test_lock` | [`World::set_lock`], [`World::test_lock`], dropping the [`LockGuard`] |
//!
//! # Not there
//!
//! `realloc`, `malloc_with_hints` (hints change nothing here), `team_get_config` and sessions (nothing depends on them), `long double`, the deprecated
//! active sets, and `short` waits. The nbi calls do their work at once. Collectives between hosts on device memory. Several hosts.

mod access;
mod atomics;
mod collectives;
mod context;
mod error;
mod lock;
mod nbi;
mod pe;
pub(crate) mod shared;
mod signal;
mod types;
mod version;
mod wait;

pub(crate) use access::HostSide;
pub use access::{exit_status, GLOBAL_EXIT};
pub use collectives::OnTeam;
pub use context::{AnyThread, HostContext, HostContextOptions, Private, Serialized, Strides};
pub use error::ShmemError;
pub use lock::{LockGuard, SymLock};
pub use nbi::Nbi;
pub use pe::{Pe, PeNumber};
pub use signal::SignalOp;
pub use types::{Atomic, AtomicBits, AtomicInteger, ReduceOp};
pub use version::{MAX_NAME_LEN, THREAD_LEVEL, VENDOR_STRING, VERSION};
pub use wait::Excluded;

/// Operations of reductions (OpenSHMEM 1.6, section "Collective Routines", reductions).
pub mod op {
    pub use crate::shm::ops::{And, Max, Min, Or, Prod, Sum, Xor};
}

#[cfg(doc)]
use crate::World;
