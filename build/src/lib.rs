//! Compiles AscendC kernels from a build script: for the emulated NPU with clang, for real NPUs with bisheng where a CANN toolkit is
//! installed, and writes the Rust file that embeds the objects.
//!
//! It is not a run-time compiler and loads nothing. Called by the build script of `npushmem` for the kernels it ships, and by the build
//! scripts of people who write their own kernels:
//!
//! ```no_run
//! // build.rs; `npushmem` is a normal dependency, `npushmem-build` a build dependency
//! npushmem_build::Kernels::new().source("kernels/halo.cpp").compile().unwrap();
//! ```
//! ```ignore
//! // lib.rs: one `static HALO: npushmem::KernelObject`
//! include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! ```
//!
//! What an object contains: [`sim`] for the emulated NPU, [`npu`] for hardware. Kernel entries are found by [`scan`].
//!
//! Environment:
//!
//! | variable | meaning |
//! |---|---|
//! | `NPUSHMEM_CLANG` | the clang to use for the emulated NPU; default: `clang`, then `clang-NN`, newest first |
//! | `NPUSHMEM_SIM_MARCH` | processor that the emulated NPU's objects are made for; default: this machine (`native`) |
//! | `NPUSHMEM_NPU_ARCHS` | architectures to build for hardware, comma separated; default `2201,3510` |
//! | `ASCEND_HOME_PATH`, `ASCEND_TOOLKIT_HOME` | where bisheng is looked for |
//! | `DOCS_RS` | set by docs.rs: nothing is compiled, kernels have no targets |

mod clang;
mod elf;
mod generate;
mod kernels;
pub mod npu;
pub mod scan;
pub mod sim;

pub use kernels::Kernels;

/// `__NPU_ARCH__` of Ascend 910B and 910C (A2, A3).
pub const NPU_ARCH_A2: u32 = 2201;
/// `__NPU_ARCH__` of Ascend 950.
pub const NPU_ARCH_950: u32 = 3510;
/// The architectures that every kernel is compiled for on the emulated NPU.
pub const SIM_ARCHS: [u32; 2] = [NPU_ARCH_A2, NPU_ARCH_950];
