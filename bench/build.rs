//! Compiles the kernels that measure: the device API's self-test kernels, of which `st_bench` and `st_empty` are used here.

fn main() -> anyhow::Result<()> {
    npushmem_build::Kernels::new()
        .source("../tests/kernels/selftest.cpp")
        .compile()
}
