//! The emulated NPU as a C library, for programs that open or link the vendor's: `libnpusim.so`, put in their way under the names
//! `libascendcl.so`, `libacl_rt.so`, `libra.so` and `libtsdclient.so` (symbolic links, so that all of them share one state).
//!
//! It holds nothing but wrappers under the vendor's names around the function tables of `npusim`, and nothing of ours links it: a
//! `#[no_mangle]` function of a Rust library is exported from everything that links it, and would get in the way of the vendor's.

// The vendor's names.
#![allow(non_snake_case)]

include!(concat!(env!("OUT_DIR"), "/second_names.rs"));

/// A wrapper under the vendor's name for each function of a table.
macro_rules! export {
    ($table:ident, $(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)?;)*) => { $(
        #[doc = concat!("`", stringify!($name), "` of the emulated NPU.")]
        ///
        /// # Safety
        /// As in C: pointers are valid for what the vendor's documentation says of them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $result)? {
            // SAFETY: the caller keeps to the vendor's contract of this function.
            unsafe { ($table().$name)($($arg),*) }
        }
    )* };
}

/// The ACL runtime.
pub mod acl {
    use std::sync::LazyLock;

    use npushmem_ffi::acl::*;

    fn table() -> &'static Acl {
        static TABLE: LazyLock<Acl> = LazyLock::new(npusim::acl);
        &TABLE
    }

    macro_rules! export_acl {
        ($($all:tt)*) => { export! { table, $($all)* } };
    }
    npushmem_ffi::for_each_acl_function!(export_acl);
}

/// HCCP.
pub mod hccp {
    use std::sync::LazyLock;

    use npushmem_ffi::hccp::*;

    fn table() -> &'static Hccp {
        static TABLE: LazyLock<Hccp> = LazyLock::new(npusim::hccp);
        &TABLE
    }

    macro_rules! export_hccp {
        ($(fn $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
            export! { table, $(fn $name($($arg: $ty),*) $(-> $result)?;)* }
            $( second_name! { $name ($($arg: $ty),*) ($($result)?) } )*
        };
    }
    npushmem_ffi::for_each_hccp_function!(export_hccp);
}
