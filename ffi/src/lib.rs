//! The vendor boundary: C declarations that we wrote ourselves (include/acl.h, include/hccp.h) as Rust types, and a
//! table of function pointers a library, filled from the vendor's libraries at run time or from Rust functions.
//!
//! It is not a wrapper: calls are the vendor's, unsafe and unchecked. npushmem's host library puts owners and errors
//! on top; npusim, the emulated NPU, fills the tables. Nothing here is linked against a vendor library, and nothing
//! exports a vendor symbol.
//!
//! ```no_run
//! use npushmem_ffi::{acl, errors};
//!
//! let table = acl::Acl::load(acl::LIBRARIES)?;
//! // SAFETY: aclInit takes a null path for "no configuration".
//! let code = unsafe { (table.aclInit)(std::ptr::null()) };
//! if code != acl::ACL_SUCCESS {
//!     eprintln!("{}", errors::explain(code));
//! }
//! # Ok::<(), npushmem_ffi::LoadError>(())
//! ```

pub mod acl;
pub mod errors;
pub mod hccp;
mod load;

pub use load::{LoadError, Symbol};
