//! Compiles the examples' kernels for every target that this machine can build.

fn main() -> anyhow::Result<()> {
    npushmem_build::Kernels::new()
        .source("01-hello/hello.cpp")
        .source("02-put/put.cpp")
        .source("03-ring/ring.cpp")
        .source("04-ping-pong/ping_pong.cpp")
        .source("05-lock/lock.cpp")
        .source("06-histogram/histogram.cpp")
        .source("07-halo/halo.cpp")
        .source("08-moe/moe.cpp")
        .source("09-gnn/gnn_layer.cpp")
        // The kernel of the template and of the documentation; tests/docs.rs keeps them equal.
        .source("template/kernels/shift.cpp")
        .compile()
}
