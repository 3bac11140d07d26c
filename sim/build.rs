//! Reads npusim.h, the contract between kernel objects and the emulator, and tells dependants where the AscendC headers are.

use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let root = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").context("cargo sets CARGO_MANIFEST_DIR")?,
    );
    let ascendc = root.join("ascendc");
    let header = ascendc.join("npusim.h");
    println!("cargo:rerun-if-changed={}", header.display());
    println!("cargo:rerun-if-changed=build.rs");
    // A build script of a dependant sees this as DEP_NPUSIM_ASCENDC.
    println!("cargo:ascendc={}", ascendc.display());

    let bindings = bindgen::Builder::default()
        .header(header.to_str().context("the path of npusim.h is not UTF-8")?)
        .allowlist_type("npusim_.*")
        .allowlist_var("NPUSIM_.*")
        .allowlist_function("npusim_bind")
        .prepend_enum_name(false)
        .derive_default(true)
        .generate()
        .context("bindgen could not read npusim.h (is libclang installed? Debian, Ubuntu: apt install libclang-dev)")?;
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?).join("npusim.rs");
    bindings
        .write_to_file(&out)
        .with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}
