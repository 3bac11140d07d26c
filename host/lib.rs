//! npushmem: SHMEM for Ascend NPUs, driven by the device. This crate is the host side: it sets the stage for kernels that move data between
//! NPUs by themselves (the device API is in device/, AscendC headers).
//!
//! ```no_run
//! use npushmem::{kernels, Args, World};
//!
//! # fn main() -> Result<(), npushmem::Error> {
//! let world = World::init()?; // every PE; `npushmem run -n 4 -- program` starts them
//! let data = world.alloc_zeroed::<f32>(1024)?; // the same heap offset on every PE
//! world.write(&data, 0, &[1.0; 1024])?;
//! world.enable_device(4)?; // queue pairs for 4 comm cores a PE
//! world.barrier_all()?;
//! let kernel = world.load(&kernels::PROBE)?.function("shmem_probe")?;
//! world.launch(&kernel, 1, &Args::new().ctx().ptr(&data))?;
//! world.synchronize()?; // bounded; names PE, operation and cause of what went wrong on the device
//! world.barrier_all()?;
//! drop(data);
//! world.finalize()
//! # }
//! ```
//!
//! Without an NPU everything runs on an emulated one (`NPUSHMEM_RUNTIME=sim`, or by itself when no vendor runtime is there).

pub mod abi;
pub mod bootstrap;
pub mod config;
mod context;
mod error;
pub mod faults;
mod heap;
mod launch;
pub mod machine;
mod memory;
mod object;
pub mod openshmem;
mod register;
mod run;
mod runtime;
#[doc(hidden)]
pub mod shm;
mod stream;
mod sym;
mod teams;
mod transport;
mod world;

pub use config::Config;
pub use context::{Context, ContextError, ContextOptions};
pub use error::Error;
pub use faults::DeviceError;
pub use heap::HeapError;
pub use launch::{Args, Function, Module};
pub use object::{kernels, KernelObject, Target};
pub use openshmem::{
    op, AnyThread, HostContext, HostContextOptions, Nbi, OnTeam, Pe, Private, Serialized,
    ShmemError, SignalOp, Strides, SymLock,
};
pub use register::{RegisterError, RegisteredBuffer, Window};
pub use runtime::owners::{DeviceBuffer, Event};
pub use runtime::{
    check_runtime, describe_runtime, time_model, AclError, BlockCounters, Kind, LaunchCounters,
    RuntimeDescription, RuntimeError, Series,
};
pub use shm::vars::Cmp;
pub use stream::{OnStream, Stream};
pub use sym::{SymBox, SymBuf, SymRef, SymSlice};
pub use teams::{Team, TeamError};
pub use transport::{HccpError, TransportError};
pub use world::{Stats, World};
