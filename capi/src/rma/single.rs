//! p and g: one element (OpenSHMEM 1.6, 9.5.3, 9.5.7).
//!
//! C's `long double` has no Rust type, so its four routines take the value from, and leave it in, where the C ABI wants it, by hand.

use std::ffi::c_int;

use crate::context::{ctx_distance, ctx_target, slow_ctx_target, Ctx};
use crate::entry::hot;
use crate::state::{distance, fast, routine, slow_target, target};
use npushmem::shm::table::{for_each_rma_type, LongDouble};

macro_rules! single {
    (longdouble, $($rest:tt)*) => {};
    ($name:ident, $ty:ty, $c:literal) => {
        hot! {
            fn [shmem_ $name _p](dest: *mut $ty, value: $ty, pe: c_int) {
                fast!(
                    (dest: *mut $ty, value: $ty, pe: c_int),
                    dest at distance(pe),
                    slow slow_target(routine!([shmem_ $name _p]), dest as usize, size_of::<$ty>(), pe),
                    |at| at.cast::<$ty>().write_volatile(value)
                )
            }
            fn [shmem_ctx_ $name _p](ctx: Ctx, dest: *mut $ty, value: $ty, pe: c_int) {
                fast!(
                    (ctx: Ctx, dest: *mut $ty, value: $ty, pe: c_int),
                    dest at ctx_distance(ctx, pe),
                    slow slow_ctx_target(routine!([shmem_ctx_ $name _p]), ctx, dest as usize, size_of::<$ty>(), pe),
                    |at| at.cast::<$ty>().write_volatile(value)
                )
            }
            fn [shmem_ $name _g](source: *const $ty, pe: c_int) -> $ty {
                fast!(
                    (source: *const $ty, pe: c_int) -> $ty,
                    source at distance(pe),
                    slow slow_target(routine!([shmem_ $name _g]), source as usize, size_of::<$ty>(), pe),
                    |at| at.cast::<$ty>().read_volatile()
                )
            }
            fn [shmem_ctx_ $name _g](ctx: Ctx, source: *const $ty, pe: c_int) -> $ty {
                fast!(
                    (ctx: Ctx, source: *const $ty, pe: c_int) -> $ty,
                    source at ctx_distance(ctx, pe),
                    slow slow_ctx_target(routine!([shmem_ctx_ $name _g]), ctx, source as usize, size_of::<$ty>(), pe),
                    |at| at.cast::<$ty>().read_volatile()
                )
            }
        }
    };
}
for_each_rma_type!(single);

/// Bytes of a `long double`.
const WIDE: usize = size_of::<LongDouble>();

unsafe extern "C" fn wide_p(dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    let at = target(routine!(shmem_longdouble_p), dest as usize, WIDE, pe);
    // SAFETY: the peer's instance, mapped; the value is on this thread's stack.
    unsafe {
        at.cast::<LongDouble>()
            .write_volatile(value.read_unaligned())
    }
}

unsafe extern "C" fn wide_ctx_p(
    ctx: Ctx,
    dest: *mut LongDouble,
    pe: c_int,
    value: *const LongDouble,
) {
    let routine = routine!(shmem_ctx_longdouble_p);
    // SAFETY: the caller's context; the rest as above.
    unsafe {
        let at = ctx_target(routine, ctx, dest as usize, WIDE, pe);
        at.cast::<LongDouble>()
            .write_volatile(value.read_unaligned());
    }
}

unsafe extern "C" fn wide_g(source: *const LongDouble, pe: c_int, value: *mut LongDouble) {
    let at = target(routine!(shmem_longdouble_g), source as usize, WIDE, pe);
    // SAFETY: as above.
    unsafe { value.write_unaligned(at.cast::<LongDouble>().read_volatile()) }
}

unsafe extern "C" fn wide_ctx_g(
    ctx: Ctx,
    source: *const LongDouble,
    pe: c_int,
    value: *mut LongDouble,
) {
    let routine = routine!(shmem_ctx_longdouble_g);
    // SAFETY: as above.
    unsafe {
        let at = ctx_target(routine, ctx, source as usize, WIDE, pe);
        value.write_unaligned(at.cast::<LongDouble>().read_volatile());
    }
}

/// A routine whose `long double` the ABI passes outside what Rust can say. x86-64 System V: an argument lies on the stack above the return
/// address, a result is the top of the x87 stack. AArch64 (AAPCS64): both are q0.
macro_rules! wide {
    ($($symbol:literal: $kind:ident($register:literal, $arm:literal) => $helper:ident;)*) => {
        $(const _: () = {
            #[unsafe(naked)]
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn plain() { wide!(@ $kind $register $arm $helper) }
            #[unsafe(naked)]
            #[unsafe(export_name = concat!("p", $symbol))]
            unsafe extern "C" fn profiled() { wide!(@ $kind $register $arm $helper) }
        };)*
    };
    (@ taken $register:literal $arm:literal $helper:ident) => {{
        #[cfg(target_arch = "x86_64")]
        core::arch::naked_asm!(
            concat!("lea ", $register, ", [rsp + 8]"),
            "jmp {helper}",
            helper = sym $helper,
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::naked_asm!(
            "stp x29, x30, [sp, #-32]!",
            "str q0, [sp, #16]",
            concat!("add ", $arm, ", sp, #16"),
            "bl {helper}",
            "ldp x29, x30, [sp], #32",
            "ret",
            helper = sym $helper,
        );
    }};
    (@ given $register:literal $arm:literal $helper:ident) => {{
        #[cfg(target_arch = "x86_64")]
        core::arch::naked_asm!(
            "sub rsp, 24",
            concat!("mov ", $register, ", rsp"),
            "call {helper}",
            "fld tbyte ptr [rsp]",
            "add rsp, 24",
            "ret",
            helper = sym $helper,
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::naked_asm!(
            "stp x29, x30, [sp, #-32]!",
            concat!("add ", $arm, ", sp, #16"),
            "bl {helper}",
            "ldr q0, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            "ret",
            helper = sym $helper,
        );
    }};
}

wide! {
    "shmem_longdouble_p": taken("rdx", "x2") => wide_p;
    "shmem_ctx_longdouble_p": taken("rcx", "x3") => wide_ctx_p;
    "shmem_longdouble_g": given("rdx", "x2") => wide_g;
    "shmem_ctx_longdouble_g": given("rcx", "x3") => wide_ctx_g;
}
