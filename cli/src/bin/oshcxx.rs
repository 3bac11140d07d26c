//! `oshcxx`: compiles and links OpenSHMEM programs in C++. See wrapper.rs.

#[path = "../wrapper.rs"]
mod wrapper;

fn main() -> std::process::ExitCode {
    wrapper::main(&wrapper::Wrapper {
        name: "oshcxx",
        variable: "NPUSHMEM_CXX",
        default: "c++",
    })
}
