//! How a routine becomes a C symbol: `shmem_NAME`, and `pshmem_NAME` for the profiling interface (OpenSHMEM 1.6, section 10).
//!
//! Not the routines. Two macros:
//! - [`entry!`] for everything that may allocate, lock, wait or panic: a panic is caught at the border, told, and ends the job;
//! - [`hot!`] for the data path, whose bodies cannot panic: no landing pad, nothing but the body.
//!
//! Both symbols have the same body (where optimisation is on, the same address), so a tool that replaces `shmem_NAME` and calls
//! `pshmem_NAME` never comes back to itself.

/// Defines routines `shmem_NAME` and `pshmem_NAME` with a border that no panic crosses.
///
/// ```ignore
/// entry! {
///     /// Doc comment.
///     fn shmem_malloc(size: usize) -> *mut c_void { ... }
/// }
/// ```
/// The body runs inside an unsafe function: C keeps its side of the contract. A typed family, whose names come from table.rs, gives the name in
/// parts: `fn [shmem_ int _put](...)`.
macro_rules! entry {
    ($($(#[$meta:meta])* fn $name:tt ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {
        $(const _: () = {
            $(#[$meta])*
            #[inline(always)]
            unsafe fn body($($arg: $ty),*) $(-> $ret)? {
                $crate::entry::guard($crate::entry::name!($name), move || $body)
            }
            $crate::entry::export! { $name ($($arg: $ty),*) ($($ret)?) }
        };)*
    };
}

/// As [`entry!`], for bodies that cannot panic: the data path.
macro_rules! hot {
    ($($(#[$meta:meta])* fn $name:tt ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {
        $(const _: () = {
            $(#[$meta])*
            #[inline(always)]
            #[allow(unsafe_op_in_unsafe_fn)] // C's caller keeps the contract; the body is the routine
            unsafe fn body($($arg: $ty),*) $(-> $ret)? $body
            $crate::entry::export! { $name ($($arg: $ty),*) ($($ret)?) }
        };)*
    };
}

/// The two symbols over `body`.
macro_rules! export {
    ([$($part:tt)+] $args:tt $ret:tt) => {
        $crate::entry::export! { @ (concat!($(stringify!($part)),+)) $args $ret }
    };
    ($name:ident $args:tt $ret:tt) => {
        $crate::entry::export! { @ (stringify!($name)) $args $ret }
    };
    (@ ($name:expr) ($($arg:ident: $ty:ty),*) ($($ret:ty)?)) => {
        #[unsafe(export_name = concat!("p", $name))]
        unsafe extern "C" fn profiled($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller's contract is the routine's, as the standard states it.
            unsafe { body($($arg),*) }
        }
        #[unsafe(export_name = $name)]
        unsafe extern "C" fn plain($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller's contract is the routine's, as the standard states it.
            unsafe { body($($arg),*) }
        }
    };
}

/// A routine's name as text.
macro_rules! name {
    ([$($part:tt)+]) => { concat!($(stringify!($part)),+) };
    ($name:ident) => { stringify!($name) };
}

pub(crate) use {entry, export, hot, name};

/// Runs a routine's body; a panic in it is told and ends the job.
pub(crate) fn guard<T>(routine: &'static str, body: impl FnOnce() -> T) -> T {
    // Whatever the body left half done is not used again: the job ends.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(_) => crate::state::fail(routine, "a fault inside the library; please report it"),
    }
}
