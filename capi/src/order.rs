//! Memory ordering (OpenSHMEM 1.6, 9.11): fence, quiet, pe_quiet and their context forms.
//!
//! Every transfer is complete when its routine returns, as far as this CPU is concerned: what is left is to order stores among themselves
//! (fence) and against later loads (quiet).

use std::sync::atomic::{fence, Ordering};

/// Completes: everything before is visible to every PE, and later loads see what is visible then. On x86-64 the one order that the
/// hardware does not keep by itself is a store before a later load, so this is a real instruction (mfence or a locked one).
#[inline(always)]
pub(crate) fn full_fence() {
    fence(Ordering::SeqCst);
}
