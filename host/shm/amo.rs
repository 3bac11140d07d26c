//! Atomic memory operations by this CPU on mapped memory (OpenSHMEM 1.6, section "Atomic Memory Operations").
//!
//! One instruction each. Atomic toward every PE of the machine that does the same; not toward a NIC's atomics. The standard asks for no
//! ordering; locked instructions give it anyway on x86-64.

use std::sync::atomic::{
    AtomicI32, AtomicI64, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// Ordering of every operation here: it costs nothing on x86-64, and keeps programs right that expect it elsewhere.
const ORDER: Ordering = Ordering::AcqRel;

/// Memory that holds a value of this type and is changed by several PEs: the standard's extended AMO types.
#[allow(clippy::missing_safety_doc)] // one contract, above the first
pub trait Atom: Copy {
    /// The value now.
    ///
    /// # Safety
    /// `at` is mapped and aligned for the type, here and below.
    unsafe fn load(at: *mut u8) -> Self;
    /// Sets it.
    unsafe fn store(at: *mut u8, value: Self);
    /// Sets it; gives what it was.
    unsafe fn swap(at: *mut u8, value: Self) -> Self;
}

/// An [`Atom`] with arithmetic: the standard's AMO types. Each operation gives what the value was.
#[allow(clippy::missing_safety_doc)] // as above
pub trait Number: Atom {
    /// 1.
    const ONE: Self;
    /// Adds, around the end of the type.
    unsafe fn add(at: *mut u8, value: Self) -> Self;
    /// Sets it to `value` where it is `cond`.
    unsafe fn compare_swap(at: *mut u8, cond: Self, value: Self) -> Self;
    /// Bitwise and.
    unsafe fn and(at: *mut u8, value: Self) -> Self;
    /// Bitwise or.
    unsafe fn or(at: *mut u8, value: Self) -> Self;
    /// Bitwise exclusive or.
    unsafe fn xor(at: *mut u8, value: Self) -> Self;
}

macro_rules! number {
    ($($ty:ty, $atomic:ty;)*) => {
        $(
            impl Atom for $ty {
                #[inline(always)]
                unsafe fn load(at: *mut u8) -> Self {
                    // SAFETY: by the trait's contract, here and below.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.load(Ordering::Acquire)
                }
                #[inline(always)]
                unsafe fn store(at: *mut u8, value: Self) {
                    // SAFETY: see above.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.store(value, Ordering::Release)
                }
                #[inline(always)]
                unsafe fn swap(at: *mut u8, value: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.swap(value, ORDER)
                }
            }
            impl Number for $ty {
                const ONE: Self = 1;
                #[inline(always)]
                unsafe fn add(at: *mut u8, value: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.fetch_add(value, ORDER)
                }
                #[inline(always)]
                unsafe fn compare_swap(at: *mut u8, cond: Self, value: Self) -> Self {
                    // SAFETY: see above.
                    let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
                    match cell.compare_exchange(cond, value, ORDER, Ordering::Acquire) {
                        Ok(old) | Err(old) => old,
                    }
                }
                #[inline(always)]
                unsafe fn and(at: *mut u8, value: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.fetch_and(value, ORDER)
                }
                #[inline(always)]
                unsafe fn or(at: *mut u8, value: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.fetch_or(value, ORDER)
                }
                #[inline(always)]
                unsafe fn xor(at: *mut u8, value: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { <$atomic>::from_ptr(at.cast()) }.fetch_xor(value, ORDER)
                }
            }
        )*
    };
}
number! {
    i32, AtomicI32;
    i64, AtomicI64;
    u32, AtomicU32;
    u64, AtomicU64;
    isize, AtomicIsize;
    usize, AtomicUsize;
}

macro_rules! real {
    ($($ty:ty, $bits:ty;)*) => {
        $(impl Atom for $ty {
            #[inline(always)]
            unsafe fn load(at: *mut u8) -> Self {
                // SAFETY: by the trait's contract, here and below.
                Self::from_bits(unsafe { <$bits>::load(at) })
            }
            #[inline(always)]
            unsafe fn store(at: *mut u8, value: Self) {
                // SAFETY: see above.
                unsafe { <$bits>::store(at, value.to_bits()) }
            }
            #[inline(always)]
            unsafe fn swap(at: *mut u8, value: Self) -> Self {
                // SAFETY: see above.
                Self::from_bits(unsafe { <$bits>::swap(at, value.to_bits()) })
            }
        })*
    };
}
real! {
    f32, u32;
    f64, u64;
}
