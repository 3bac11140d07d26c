//! Compiles the test kernels for every target that this machine can build.

fn main() -> anyhow::Result<()> {
    npushmem_build::Kernels::new()
        .source("kernels/host.cpp")
        .source("kernels/selftest.cpp")
        .source("kernels/breadth.cpp")
        .source("kernels/contexts.cpp")
        .source("kernels/reports.cpp")
        .source("kernels/sequence.cpp")
        .source("kernels/teams.cpp")
        .compile()
}
