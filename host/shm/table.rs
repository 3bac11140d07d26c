//! The one table of types and sizes behind every typed family of the C API: names in routines, Rust types, C types.
//!
//! Not the routines themselves. The modules that define routines expand these lists into functions; the generator of `include/shmem.h` and of
//! the C test programs (`tests/header.rs`) expands the same lists into declarations, so that the two cannot differ.
//!
//! Each list is a macro that takes a callback macro and calls it once a row: `for_each_rma_type!(callback)` gives
//! `callback!(float, f32, "float");` and so on. Tokens after the callback's name are passed on in front of the row:
//! `for_each_rma_type!(callback, put)` gives `callback!(put, float, f32, "float");`. Lists of sizes give `callback!(64, 8)`: bits, bytes.
//!
//! Sources: OpenSHMEM 1.6, tables of standard RMA types, standard, extended and bitwise AMO types, point-to-point synchronization types, and
//! reduction types (team-based and active-set-based); for deprecated names, the synopses that the standard still prints.

/// C's `long double`, as bytes: Rust has no such type. Never passed by value from Rust; 16 bytes on x86-64 and AArch64 alike.
#[repr(C, align(16))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongDouble(pub [u8; 16]);

/// C's `float _Complex`: two floats, real part first (C11 6.2.5).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ComplexFloat {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

/// C's `double _Complex`: two doubles, real part first (C11 6.2.5).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ComplexDouble {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

/// Calls `$callback!` once for each row; `$args` is a group whose tokens come first.
#[macro_export]
#[doc(hidden)]
macro_rules! rows {
    ($callback:ident $args:tt $(($($row:tt)*))*) => {
        $($crate::row! { $callback $args $($row)* })*
    };
}

/// One call of the callback.
#[macro_export]
#[doc(hidden)]
macro_rules! row {
    ($callback:ident ($($args:tt)*) $($row:tt)*) => {
        $callback! { $($args)* $($row)* }
    };
}

/// The rows of the standard RMA types with a Rust type of their own (but `float` and `double`): C's other integers are among these.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_rma_exact_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (int8, i8, "int8_t")
            (int16, i16, "int16_t")
            (int32, i32, "int32_t")
            (int64, i64, "int64_t")
            (uint8, u8, "uint8_t")
            (uint16, u16, "uint16_t")
            (uint32, u32, "uint32_t")
            (uint64, u64, "uint64_t")
            (size, usize, "size_t")
            (ptrdiff, isize, "ptrdiff_t")
        }
    };
}

/// Standard RMA types (24): put, get, p, g, iput, iget, ibput, ibget, their nbi, ctx and signal forms, and the data-moving collectives.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_rma_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (float, f32, "float")
            (double, f64, "double")
            (longdouble, $crate::shm::table::LongDouble, "long double")
            (char, ::core::ffi::c_char, "char")
            (schar, ::core::ffi::c_schar, "signed char")
            (short, ::core::ffi::c_short, "short")
            (int, ::core::ffi::c_int, "int")
            (long, ::core::ffi::c_long, "long")
            (longlong, ::core::ffi::c_longlong, "long long")
            (uchar, ::core::ffi::c_uchar, "unsigned char")
            (ushort, ::core::ffi::c_ushort, "unsigned short")
            (uint, ::core::ffi::c_uint, "unsigned int")
            (ulong, ::core::ffi::c_ulong, "unsigned long")
            (ulonglong, ::core::ffi::c_ulonglong, "unsigned long long")
        }
        $crate::for_each_rma_exact_type! { $callback $(, $($args)+)? }
    };
}

/// The rows of the standard AMO types with a Rust type of their own.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_amo_exact_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (int32, i32, "int32_t")
            (int64, i64, "int64_t")
            (uint32, u32, "uint32_t")
            (uint64, u64, "uint64_t")
            (size, usize, "size_t")
            (ptrdiff, isize, "ptrdiff_t")
        }
    };
}

/// Standard AMO types (12): add, inc, fetch_add, fetch_inc, compare_swap. (The wait list is wider by short and ushort.)
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_amo_std_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (int, ::core::ffi::c_int, "int")
            (long, ::core::ffi::c_long, "long")
            (longlong, ::core::ffi::c_longlong, "long long")
            (uint, ::core::ffi::c_uint, "unsigned int")
            (ulong, ::core::ffi::c_ulong, "unsigned long")
            (ulonglong, ::core::ffi::c_ulonglong, "unsigned long long")
        }
        $crate::for_each_amo_exact_type! { $callback $(, $($args)+)? }
    };
}

/// The two types that the extended AMO list has above the standard one.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_amo_real_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (float, f32, "float")
            (double, f64, "double")
        }
    };
}

/// Extended AMO types (14): fetch, set, swap.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_amo_ext_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_amo_real_type! { $callback $(, $($args)+)? }
        $crate::for_each_amo_std_type! { $callback $(, $($args)+)? }
    };
}

/// The rows of the bitwise AMO types with a Rust type of their own.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_bitwise_exact_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (int32, i32, "int32_t")
            (int64, i64, "int64_t")
            (uint32, u32, "uint32_t")
            (uint64, u64, "uint64_t")
        }
    };
}

/// Bitwise AMO types (7): and, or, xor and their fetching forms.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_bitwise_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (uint, ::core::ffi::c_uint, "unsigned int")
            (ulong, ::core::ffi::c_ulong, "unsigned long")
            (ulonglong, ::core::ffi::c_ulonglong, "unsigned long long")
        }
        $crate::for_each_bitwise_exact_type! { $callback $(, $($args)+)? }
    };
}

/// Point-to-point synchronization types (14): all forms of wait_until and test. short and ushort are deprecated.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_wait_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_amo_std_type! { $callback $(, $($args)+)? }
        $crate::rows! { $callback ($($($args)+,)?)
            (short, ::core::ffi::c_short, "short")
            (ushort, ::core::ffi::c_ushort, "unsigned short")
        }
    };
}

/// Types of the deprecated `shmem_TYPENAME_wait` (4).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_old_wait_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (short, ::core::ffi::c_short, "short")
            (int, ::core::ffi::c_int, "int")
            (long, ::core::ffi::c_long, "long")
            (longlong, ::core::ffi::c_longlong, "long long")
        }
    };
}

/// Types of the deprecated atomics without `_atomic_`: add, inc, fadd, finc, cswap (3).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_old_amo_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (int, ::core::ffi::c_int, "int")
            (long, ::core::ffi::c_long, "long")
            (longlong, ::core::ffi::c_longlong, "long long")
        }
    };
}

/// Types of the deprecated `shmem_TYPENAME_fetch`, `_set` and `_swap` (5).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_old_amo_ext_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_amo_real_type! { $callback $(, $($args)+)? }
        $crate::for_each_old_amo_type! { $callback $(, $($args)+)? }
    };
}

/// The rows of the reductions with and, or, xor with a Rust type of their own.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_reduce_bitwise_exact_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (int8, i8, "int8_t")
            (int16, i16, "int16_t")
            (int32, i32, "int32_t")
            (int64, i64, "int64_t")
            (uint8, u8, "uint8_t")
            (uint16, u16, "uint16_t")
            (uint32, u32, "uint32_t")
            (uint64, u64, "uint64_t")
            (size, usize, "size_t")
        }
    };
}

/// Team-based reductions with and, or, xor (14).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_reduce_bitwise_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (uchar, ::core::ffi::c_uchar, "unsigned char")
            (ushort, ::core::ffi::c_ushort, "unsigned short")
            (uint, ::core::ffi::c_uint, "unsigned int")
            (ulong, ::core::ffi::c_ulong, "unsigned long")
            (ulonglong, ::core::ffi::c_ulonglong, "unsigned long long")
        }
        $crate::for_each_reduce_bitwise_exact_type! { $callback $(, $($args)+)? }
    };
}

/// Team-based reductions with max and min (24): the standard RMA types.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_reduce_minmax_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_rma_type! { $callback $(, $($args)+)? }
    };
}

/// The complex types of sum and prod (2).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_complex_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (complexd, $crate::shm::table::ComplexDouble, "double _Complex")
            (complexf, $crate::shm::table::ComplexFloat, "float _Complex")
        }
    };
}

/// Team-based reductions with sum and prod, and the scans (26).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_reduce_arith_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_rma_type! { $callback $(, $($args)+)? }
        $crate::for_each_complex_type! { $callback $(, $($args)+)? }
    };
}

/// Active-set-based and, or, xor (4, deprecated `_to_all` routines).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_to_all_bitwise_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (short, ::core::ffi::c_short, "short")
            (int, ::core::ffi::c_int, "int")
            (long, ::core::ffi::c_long, "long")
            (longlong, ::core::ffi::c_longlong, "long long")
        }
    };
}

/// Active-set-based max and min (7).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_to_all_minmax_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_to_all_bitwise_type! { $callback $(, $($args)+)? }
        $crate::rows! { $callback ($($($args)+,)?)
            (float, f32, "float")
            (double, f64, "double")
            (longdouble, $crate::shm::table::LongDouble, "long double")
        }
    };
}

/// Active-set-based sum and prod (9).
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_to_all_arith_type {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::for_each_to_all_minmax_type! { $callback $(, $($args)+)? }
        $crate::for_each_complex_type! { $callback $(, $($args)+)? }
    };
}

/// Sizes of the untyped RMA routines: bits in the name, bytes of an element. "mem" routines count bytes and are not listed.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_size {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (8, 1)
            (16, 2)
            (32, 4)
            (64, 8)
            (128, 16)
        }
    };
}

/// Sizes of the active-set collectives (broadcast, collect, fcollect, alltoall, alltoalls): bits, bytes.
#[macro_export]
#[doc(hidden)]
macro_rules! for_each_collective_size {
    ($callback:ident $(, $($args:tt)+)?) => {
        $crate::rows! { $callback ($($($args)+,)?)
            (32, 4)
            (64, 8)
        }
    };
}

pub use {
    for_each_amo_exact_type, for_each_amo_ext_type, for_each_amo_real_type, for_each_amo_std_type,
    for_each_bitwise_exact_type, for_each_bitwise_type, for_each_collective_size,
    for_each_complex_type, for_each_old_amo_ext_type, for_each_old_amo_type,
    for_each_old_wait_type, for_each_reduce_arith_type, for_each_reduce_bitwise_exact_type,
    for_each_reduce_bitwise_type, for_each_reduce_minmax_type, for_each_rma_exact_type,
    for_each_rma_type, for_each_size, for_each_to_all_arith_type, for_each_to_all_bitwise_type,
    for_each_to_all_minmax_type, for_each_wait_type, row, rows,
};
