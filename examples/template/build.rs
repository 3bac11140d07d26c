fn main() -> anyhow::Result<()> {
    npushmem_build::Kernels::new()
        .source("kernels/shift.cpp")
        .compile()
}
