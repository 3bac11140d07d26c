//! Element-wise operations of reductions: sum, product, minimum, maximum, and, or, exclusive or, for every type of the standard.
//!
//! Not the distribution of the work (`reduce`). Loops here are over plain slices, so that the compiler makes vector code of them.
//!
//! Integers wrap around (C leaves signed overflow undefined). Minimum and maximum of floats compare like C's `a < b ? a : b`.
//! Sources: OpenSHMEM 1.6, table "Reduction Types, Names, and Supporting Operations for Team-Based Reductions".

use super::table::{ComplexDouble, ComplexFloat, LongDouble};

/// A reduction's operation on elements of one type, with the type erased.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Bytes of an element.
    pub element: usize,
    /// `dest[i] = a[i] op b[i]` for i below the count; `dest` is `a`, is `b`, or overlaps neither. Pointers are aligned for the type.
    pub combine: unsafe fn(dest: *mut u8, a: *const u8, b: *const u8, count: usize),
}

/// `a op b` for elements of type `T`.
pub trait Op<T> {
    /// One element.
    fn apply(a: T, b: T) -> T;
}

/// The operation `O` on elements of `T`.
pub const fn operation<T: Copy, O: Op<T>>() -> Operation {
    Operation {
        element: size_of::<T>(),
        combine: combine::<T, O>,
    }
}

/// See [`Operation::combine`].
unsafe fn combine<T: Copy, O: Op<T>>(dest: *mut u8, a: *const u8, b: *const u8, count: usize) {
    let (dest, a, b) = (dest.cast::<T>(), a.cast::<T>(), b.cast::<T>());
    if count == 0 {
        return;
    }
    if count == 1 {
        // SAFETY: the caller's contract.
        return unsafe { dest.write(O::apply(a.read(), b.read())) };
    }
    // SAFETY: the caller's contract: in each case the slices do not overlap, and no other PE writes to them now.
    unsafe {
        if dest.cast_const() == a {
            let dest = std::slice::from_raw_parts_mut(dest, count);
            let b = std::slice::from_raw_parts(b, count);
            for (d, &b) in dest.iter_mut().zip(b) {
                *d = O::apply(*d, b);
            }
        } else if dest.cast_const() == b {
            let dest = std::slice::from_raw_parts_mut(dest, count);
            let a = std::slice::from_raw_parts(a, count);
            for (d, &a) in dest.iter_mut().zip(a) {
                *d = O::apply(a, *d);
            }
        } else {
            let dest = std::slice::from_raw_parts_mut(dest, count);
            let a = std::slice::from_raw_parts(a, count);
            let b = std::slice::from_raw_parts(b, count);
            for ((d, &a), &b) in dest.iter_mut().zip(a).zip(b) {
                *d = O::apply(a, b);
            }
        }
    }
}

/// Sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum;
/// Product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prod;
/// Minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Min;
/// Maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Max;
/// Bitwise and.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct And;
/// Bitwise or.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Or;
/// Bitwise exclusive or.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xor;

macro_rules! op {
    ($op:ident, $type:ty, |$a:ident, $b:ident| $value:expr) => {
        impl Op<$type> for $op {
            #[inline(always)]
            fn apply($a: $type, $b: $type) -> $type {
                $value
            }
        }
    };
}

macro_rules! integer_ops {
    ($($type:ty)*) => {$(
        op!(Sum, $type, |a, b| a.wrapping_add(b));
        op!(Prod, $type, |a, b| a.wrapping_mul(b));
        op!(Min, $type, |a, b| if a < b { a } else { b });
        op!(Max, $type, |a, b| if a > b { a } else { b });
        op!(And, $type, |a, b| a & b);
        op!(Or, $type, |a, b| a | b);
        op!(Xor, $type, |a, b| a ^ b);
    )*};
}
integer_ops!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! float_ops {
    ($($type:ty)*) => {$(
        op!(Sum, $type, |a, b| a + b);
        op!(Prod, $type, |a, b| a * b);
        op!(Min, $type, |a, b| if a < b { a } else { b });
        op!(Max, $type, |a, b| if a > b { a } else { b });
    )*};
}
float_ops!(f32 f64);

macro_rules! complex_ops {
    ($($type:ident)*) => {$(
        op!(Sum, $type, |a, b| $type { re: a.re + b.re, im: a.im + b.im });
        op!(Prod, $type, |a, b| $type { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re });
    )*};
}
complex_ops!(ComplexFloat ComplexDouble);

/// `long double` on x86-64: the 80-bit format of the x87 unit, which has no Rust type; one instruction each.
#[cfg(target_arch = "x86_64")]
mod long_double {
    use super::{LongDouble, Max, Min, Op, Prod, Sum};
    use std::arch::asm;

    macro_rules! x87 {
        ($op:ident, $($line:literal),+) => {
            impl Op<LongDouble> for $op {
                #[inline]
                fn apply(mut a: LongDouble, b: LongDouble) -> LongDouble {
                    // SAFETY: loads both, pops both; the register stack is empty before and after, as the calling convention wants.
                    unsafe {
                        asm!(
                            "fld tbyte ptr [{b}]",
                            "fld tbyte ptr [{a}]",
                            $($line,)+
                            "fstp tbyte ptr [{a}]",
                            a = in(reg) &mut a.0,
                            b = in(reg) &b.0,
                            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                            options(nostack),
                        );
                    }
                    a
                }
            }
        };
    }
    // The stack holds a on top of b.
    x87!(Sum, "faddp st(1), st");
    x87!(Prod, "fmulp st(1), st");
    // fcomi sets carry when a < b; the flags choose what is left on top, then the other is dropped.
    x87!(Min, "fcomi st, st(1)", "fcmovnb st, st(1)", "fstp st(1)");
    x87!(
        Max,
        "fxch st(1)",
        "fcomi st, st(1)",
        "fcmovb st, st(1)",
        "fstp st(1)"
    );
}
