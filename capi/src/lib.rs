//! The OpenSHMEM C API: `libnpushmem.so`, for programs written against `shmem.h` (OpenSHMEM 1.6, and the deprecated routines it still lists).
//!
//! A C program dereferences symmetric addresses, so the symmetric heap here is always host memory (the library joins with
//! `NPUSHMEM_RUNTIME=sim` whatever the environment says, and never enables a device). All PEs of a machine map one another's heap and
//! static data: every transfer is loads and stores.
//!
//! Map: state.rs (the process's state, address translation), window.rs (where peers are mapped), statics.rs (symmetric static data), setup.rs,
//! memory.rs, rma/, amo.rs, order.rs, signal.rs, context.rs, lock.rs, wait_until.rs, limit.rs (of waits), teams/, calls/ (collectives). What is not particular to C (algorithms of
//! collectives, waiting, the type table) is `npushmem::shm`, which the Rust API uses too. Nothing here is for Rust programs: they use the `npushmem` crate.

// Bodies of C routines: their callers keep the standard's contract (entry.rs), and the standard decides how many parameters they have.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("reductions of long double (npushmem::shm::ops) are written for x86-64 only so far");

mod amo;
mod calls;
mod constants;
mod context;
mod entry;
mod limit;
mod lock;
mod memory;
mod order;
mod profile;
mod rma;
mod setup;
mod signal;
mod state;
mod statics;
mod teams;
mod wait_until;
mod window;
