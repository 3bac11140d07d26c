//! Gives the library its SONAME, which cargo does not.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnpushmem.so");
}
