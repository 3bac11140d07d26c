//! Sets the library's SONAME, and makes the wrappers of HCCP's second names: each `ra_*` function is in the vendor's libraries under a snake
//! case or a CamelCase name, by version. The list is the one that npushmem-ffi loads by.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// Programs link or open the library by the vendor's names, which are symbolic links to this one file: one name, one state.
const SONAME: &str = "libnpusim.so";

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");

    let mut arms = String::new();
    for symbol in npushmem_ffi::hccp::SYMBOLS
        .iter()
        .filter(|symbol| symbol.required)
    {
        let name = symbol.name;
        let body = symbol.alternative.map(|other| {
            format!(
                "/// [`{name}`] under its other name.\n        ///\n        /// # Safety\n        /// As in C.\n        #[unsafe(no_mangle)]\n        \
                 pub unsafe extern \"C\" fn {other}($($arg: $ty),*) $(-> $result)? {{\n            \
                 // SAFETY: the caller keeps to the vendor's contract of this function.\n            \
                 unsafe {{ {name}($($arg),*) }}\n        }}"
            )
        });
        writeln!(
            arms,
            "    ({name} ($($arg:ident: $ty:ty),*) ($($result:ty)?)) => {{\n        {}\n    }};",
            body.unwrap_or_default()
        )?;
    }
    let code = format!("/// Makes the wrapper of a function's second name, if it has one.\nmacro_rules! second_name {{\n{arms}}}\n");
    let out = std::env::var_os("OUT_DIR").context("OUT_DIR is not set: run this through cargo")?;
    let path = Path::new(&out).join("second_names.rs");
    std::fs::write(&path, code).with_context(|| format!("writing {}", path.display()))
}
