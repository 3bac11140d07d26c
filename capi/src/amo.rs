//! Atomic memory operations (OpenSHMEM 1.6, 9.8): fetching and not, bitwise, non-blocking, on contexts, and the deprecated names.
//!
//! One instruction of this CPU each, on the peer's mapped memory: atomic towards every PE of the machine and towards the inline functions of
//! shmem.h. The standard asks for no ordering; locked instructions give it anyway on x86-64. A non-blocking routine has its result at once.

use std::ffi::c_int;

use crate::context::{ctx_distance, slow_ctx_target, Ctx};
use crate::entry::hot;
use crate::state::{self, distance, fast, routine, CRoutine};
use npushmem::shm::amo::{Atom, Number};
use npushmem::shm::table::{
    for_each_amo_ext_type, for_each_amo_std_type, for_each_bitwise_type, for_each_old_amo_ext_type,
    for_each_old_amo_type,
};

/// [`state::slow_target`] for an atomic variable.
fn slow_cell<T>(routine: &'static CRoutine, at: *const T, pe: c_int) -> *mut u8 {
    check_alignment(routine, at);
    state::slow_target(routine, at as usize, size_of::<T>(), pe)
}

/// [`slow_cell`] on a context.
fn slow_ctx_cell<T>(routine: &'static CRoutine, ctx: Ctx, at: *const T, pe: c_int) -> *mut u8 {
    check_alignment(routine, at);
    slow_ctx_target(routine, ctx, at as usize, size_of::<T>(), pe)
}

fn check_alignment<T>(routine: &'static CRoutine, at: *const T) {
    if !(at as usize).is_multiple_of(align_of::<T>()) {
        let bytes = size_of::<T>();
        let message =
            format!("the atomic variable at {at:p} is not aligned to its size of {bytes} bytes");
        state::fail(routine.0, &message);
    }
}

/// A routine without a context: `$name`.
macro_rules! plain {
    ([$($name:tt)+] ($($arg:ident: $ty:ty),*) on $at:ident $(-> $ret:ty)? = |$cell:ident| $body:expr) => {
        hot! {
            fn [$($name)+]($($arg: $ty,)* pe: c_int) $(-> $ret)? {
                fast!(
                    ($($arg: $ty,)* pe: c_int) $(-> $ret)?,
                    $at at distance(pe),
                    slow slow_cell(routine!([$($name)+]), $at, pe),
                    |$cell| $body
                )
            }
        }
    };
}

/// A routine with and without a context: `shmem_NAME` and `shmem_ctx_NAME`.
macro_rules! amo {
    ($name:ident $op:ident ($($arg:ident: $ty:ty),*) on $at:ident $(-> $ret:ty)? = |$cell:ident| $body:expr) => {
        plain!([shmem_ $name $op] ($($arg: $ty),*) on $at $(-> $ret)? = |$cell| $body);
        hot! {
            fn [shmem_ctx_ $name $op](ctx: Ctx, $($arg: $ty,)* pe: c_int) $(-> $ret)? {
                fast!(
                    (ctx: Ctx, $($arg: $ty,)* pe: c_int) $(-> $ret)?,
                    $at at ctx_distance(ctx, pe),
                    slow slow_ctx_cell(routine!([shmem_ctx_ $name $op]), ctx, $at, pe),
                    |$cell| $body
                )
            }
        }
    };
}

macro_rules! extended {
    ($name:ident, $ty:ty, $c:literal) => {
        amo!($name _atomic_fetch(source: *const $ty) on source -> $ty = |at| <$ty as Atom>::load(at));
        amo!($name _atomic_set(dest: *mut $ty, value: $ty) on dest = |at| <$ty as Atom>::store(at, value));
        amo!($name _atomic_swap(dest: *mut $ty, value: $ty) on dest -> $ty = |at| <$ty as Atom>::swap(at, value));
        amo!($name _atomic_fetch_nbi(fetch: *mut $ty, source: *const $ty) on source = |at| *fetch = <$ty as Atom>::load(at));
        amo!($name _atomic_swap_nbi(fetch: *mut $ty, dest: *mut $ty, value: $ty) on dest = |at| *fetch = <$ty as Atom>::swap(at, value));
    };
}
for_each_amo_ext_type!(extended);

macro_rules! standard {
    ($name:ident, $ty:ty, $c:literal) => {
        amo!($name _atomic_add(dest: *mut $ty, value: $ty) on dest = |at| { <$ty as Number>::add(at, value); });
        amo!($name _atomic_inc(dest: *mut $ty) on dest = |at| { <$ty as Number>::add(at, <$ty as Number>::ONE); });
        amo!($name _atomic_fetch_add(dest: *mut $ty, value: $ty) on dest -> $ty = |at| <$ty as Number>::add(at, value));
        amo!($name _atomic_fetch_inc(dest: *mut $ty) on dest -> $ty = |at| <$ty as Number>::add(at, <$ty as Number>::ONE));
        amo!($name _atomic_compare_swap(dest: *mut $ty, cond: $ty, value: $ty) on dest -> $ty = |at| <$ty as Number>::compare_swap(at, cond, value));
        amo!($name _atomic_fetch_add_nbi(fetch: *mut $ty, dest: *mut $ty, value: $ty) on dest = |at| *fetch = <$ty as Number>::add(at, value));
        amo!($name _atomic_fetch_inc_nbi(fetch: *mut $ty, dest: *mut $ty) on dest = |at| *fetch = <$ty as Number>::add(at, <$ty as Number>::ONE));
        amo!($name _atomic_compare_swap_nbi(fetch: *mut $ty, dest: *mut $ty, cond: $ty, value: $ty) on dest = |at| *fetch = <$ty as Number>::compare_swap(at, cond, value));
    };
}
for_each_amo_std_type!(standard);

macro_rules! bitwise {
    ($name:ident, $ty:ty, $c:literal) => {
        bitwise!(@ $name, $ty, and, _atomic_and, _atomic_fetch_and, _atomic_fetch_and_nbi);
        bitwise!(@ $name, $ty, or, _atomic_or, _atomic_fetch_or, _atomic_fetch_or_nbi);
        bitwise!(@ $name, $ty, xor, _atomic_xor, _atomic_fetch_xor, _atomic_fetch_xor_nbi);
    };
    (@ $name:ident, $ty:ty, $op:ident, $plain:ident, $fetch:ident, $nbi:ident) => {
        amo!($name $plain(dest: *mut $ty, value: $ty) on dest = |at| { <$ty as Number>::$op(at, value); });
        amo!($name $fetch(dest: *mut $ty, value: $ty) on dest -> $ty = |at| <$ty as Number>::$op(at, value));
        amo!($name $nbi(fetch: *mut $ty, dest: *mut $ty, value: $ty) on dest = |at| *fetch = <$ty as Number>::$op(at, value));
    };
}
for_each_bitwise_type!(bitwise);

/// The deprecated names, which have no context forms.
macro_rules! old {
    ($name:ident, $ty:ty, $c:literal) => {
        plain!([shmem_ $name _add](dest: *mut $ty, value: $ty) on dest = |at| { <$ty as Number>::add(at, value); });
        plain!([shmem_ $name _inc](dest: *mut $ty) on dest = |at| { <$ty as Number>::add(at, <$ty as Number>::ONE); });
        plain!([shmem_ $name _fadd](dest: *mut $ty, value: $ty) on dest -> $ty = |at| <$ty as Number>::add(at, value));
        plain!([shmem_ $name _finc](dest: *mut $ty) on dest -> $ty = |at| <$ty as Number>::add(at, <$ty as Number>::ONE));
        plain!([shmem_ $name _cswap](dest: *mut $ty, cond: $ty, value: $ty) on dest -> $ty = |at| <$ty as Number>::compare_swap(at, cond, value));
    };
}
for_each_old_amo_type!(old);

macro_rules! old_extended {
    ($name:ident, $ty:ty, $c:literal) => {
        plain!([shmem_ $name _fetch](source: *const $ty) on source -> $ty = |at| <$ty as Atom>::load(at));
        plain!([shmem_ $name _set](dest: *mut $ty, value: $ty) on dest = |at| <$ty as Atom>::store(at, value));
        plain!([shmem_ $name _swap](dest: *mut $ty, value: $ty) on dest -> $ty = |at| <$ty as Atom>::swap(at, value));
    };
}
for_each_old_amo_ext_type!(old_extended);
