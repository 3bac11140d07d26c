//! Which element types an operation takes, as sealed traits from the one type table (shm/table.rs).
//!
//! What it is not: a list of its own. Rust has one type for each size and sign where C has several names, so that the exact-width rows of the
//! table, `size_t` and `ptrdiff_t` stand for all.

use bytemuck::Pod;

use crate::shm::amo::{Atom, Number};
use crate::shm::ops::{And, Max, Min, Op, Or, Prod, Sum, Xor};
use crate::shm::table::{
    for_each_amo_exact_type, for_each_amo_real_type, for_each_bitwise_exact_type,
    for_each_complex_type, for_each_reduce_bitwise_exact_type, for_each_rma_exact_type,
};

mod sealed {
    pub trait Sealed {}
    pub trait SealedOp<T> {}
}
use sealed::{Sealed, SealedOp};

/// Types of atomic fetch, set and swap (OpenSHMEM 1.6, section "Atomic Memory Operations", table of extended AMO types): `i32`, `i64`, `u32`, `u64`,
/// `isize`, `usize`, `f32`, `f64`.
pub trait Atomic: Pod + Atom + Sealed {
    /// As 32 or 64 bits, for the NIC's atomics.
    #[doc(hidden)]
    fn to_word(self) -> u64;
    /// What [`Atomic::to_word`] was made of.
    #[doc(hidden)]
    fn from_word(word: u64) -> Self;
}

/// Types of atomic arithmetic and compare-and-swap (the same section, table of standard AMO types), and of waits (section "Point-To-Point
/// Synchronization Routines"; `short` and `unsigned short`, deprecated there, are left out).
pub trait AtomicInteger: Atomic + Number + PartialOrd {}

/// Types of bitwise atomics (the same section, table of bitwise AMO types): `i32`, `i64`, `u32`, `u64`.
pub trait AtomicBits: AtomicInteger {}

/// Operation `Self` of reductions on elements of `T` (OpenSHMEM 1.6, section "Collective Routines", table of reduction types and operations): the
/// types of [`crate::op`].
pub trait ReduceOp<T>: Op<T> + Copy + SealedOp<T> {}

macro_rules! words {
    ($name:ident, $ty:ty, $c:literal) => {
        impl Sealed for $ty {}
        impl Atomic for $ty {
            #[inline]
            fn to_word(self) -> u64 {
                let mut word = [0u8; 8];
                word[..size_of::<$ty>()].copy_from_slice(&self.to_le_bytes());
                u64::from_le_bytes(word)
            }
            #[inline]
            fn from_word(word: u64) -> Self {
                let mut bytes = [0u8; size_of::<$ty>()];
                bytes.copy_from_slice(&word.to_le_bytes()[..size_of::<$ty>()]);
                <$ty>::from_le_bytes(bytes)
            }
        }
    };
}
for_each_amo_exact_type!(words);
for_each_amo_real_type!(words);

macro_rules! integers {
    ($name:ident, $ty:ty, $c:literal) => {
        impl AtomicInteger for $ty {}
    };
}
for_each_amo_exact_type!(integers);

macro_rules! bits {
    ($name:ident, $ty:ty, $c:literal) => {
        impl AtomicBits for $ty {}
    };
}
for_each_bitwise_exact_type!(bits);

macro_rules! reductions {
    ($($op:ident)+, $name:ident, $ty:ty, $c:literal) => {
        $(
            impl SealedOp<$ty> for $op {}
            impl ReduceOp<$ty> for $op {}
        )+
    };
}
for_each_rma_exact_type!(reductions, Sum Prod Min Max);
for_each_amo_real_type!(reductions, Sum Prod Min Max);
for_each_complex_type!(reductions, Sum Prod);
for_each_reduce_bitwise_exact_type!(reductions, And Or Xor);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_pass_as_words_and_come_back() {
        assert_eq!((-1i32).to_word(), 0xffff_ffff);
        assert_eq!(i32::from_word(0xffff_ffff), -1);
        assert_eq!(f64::from_word((-2.5f64).to_word()), -2.5);
        assert_eq!(f32::from_word(1.5f32.to_word()), 1.5);
        assert_eq!(isize::from_word((-7isize).to_word()), -7);
    }
}
