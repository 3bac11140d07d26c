//! Handles that HCCP gives out: numbers that look like pointers and point nowhere, so that a stale or made-up one is an error and never a
//! wild access. They ascend and are not used again.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Handles start in the part of the address space that no processor of this kind maps.
const FIRST: usize = 0x6863_0000_0000_0000;
/// Distance between two handles, as between small heap objects.
const STEP: usize = 16;

/// A new handle.
pub fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
    NEXT.fetch_add(STEP, Ordering::Relaxed)
}
