//! HCCP (queue pairs of the NIC in the die, driven by a kernel): types, constants and the table [`Hccp`], generated
//! by build.rs from include/hccp.h. No code of its own; called by npushmem's transport, filled by npusim.

#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)] // the vendor's names
#![allow(clippy::undocumented_unsafe_blocks)] // bindgen's Default for structs with pointers and enums: zeroed, which is valid for them

include!(concat!(env!("OUT_DIR"), "/hccp.rs"));

/// Where the vendor has HCCP. `TsdOpen` is in the second one.
pub const LIBRARIES: &[&str] = &["libra.so", "libtsdclient.so"];
