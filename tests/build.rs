//! Compiles the test kernels for every target that this machine can build.

fn main() -> anyhow::Result<()> {
    npushmem_build::Kernels::new().source("kernels/selftest.cpp").compile()
}
