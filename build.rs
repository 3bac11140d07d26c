//! Reads device/abi.h for the host side, compiles the kernels of kernels/ for every target there is, and tells the build scripts of
//! dependants where the headers are (`DEP_NPUSHMEM_DEVICE`, `DEP_NPUSHMEM_INCLUDE`, `DEP_NPUSHMEM_ASCENDC`).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let root = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").context("cargo sets CARGO_MANIFEST_DIR")?,
    );
    let out = PathBuf::from(std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?);
    let device = root.join("device");
    println!("cargo:rerun-if-changed=build.rs");
    // Kernels that come or go; npushmem-build watches the files themselves.
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:device={}", device.display());
    println!("cargo:include={}", device.display());
    if let Some(ascendc) = std::env::var_os("DEP_NPUSIM_ASCENDC") {
        println!("cargo:ascendc={}", Path::new(&ascendc).display());
    }
    contract(&device.join("abi.h"), &out.join("abi.rs"))?;
    kernels(&root.join("kernels"))
}

/// The structures of device/abi.h as Rust types.
fn contract(header: &Path, out: &Path) -> Result<()> {
    println!("cargo:rerun-if-changed={}", header.display());
    bindgen::Builder::default()
        .header(header.to_str().context("the path of device/abi.h is not UTF-8")?)
        .clang_args(["-std=c11", "-fparse-all-comments"])
        .allowlist_type("shmem_.*")
        .allowlist_var("SHMEM_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_debug(true)
        .generate()
        .context("bindgen could not read device/abi.h (is libclang installed? Debian, Ubuntu: apt install libclang-dev)")?
        .write_to_file(out)
        .with_context(|| format!("cannot write {}", out.display()))
}

fn kernels(folder: &Path) -> Result<()> {
    let mut sources = Vec::new();
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cpp") {
            sources.push(path);
        }
    }
    sources.sort();
    let mut kernels = npushmem_build::Kernels::new()
        .include("device")
        .include("kernels")
        .crate_path("crate");
    for source in sources {
        kernels = kernels.source(source);
    }
    kernels
        .compile()
        .context("compiling the kernels of kernels/")
}
