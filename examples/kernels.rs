//! The kernels of the examples, compiled by `build.rs`: one [`npushmem::KernelObject`] a kernel file, named as the file in capitals.
//!
//! A program with kernels of its own has this line in its `main.rs` (see `template/`); here nine programs share it.

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
