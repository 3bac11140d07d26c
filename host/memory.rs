//! Host access to device memory that lies in this process: the emulated NPU's.
//!
//! What it is not: a check; world.rs checks ranges, and asks runtime/ whether host code may touch device memory at all. Other PEs and the
//! own cores access the same memory at the same time, so single aligned words are read and written as atomics; larger blocks are copied
//! without a promise about their order, as OpenSHMEM has it for put and get.
//!
//! World::put and World::get (`store`, `load`) promise completion: a put is visible before any later get reads, whichever PEs both are on (store buffering, which
//! release and acquire alone allow). So each ends, or begins, with a sequentially consistent fence.

use crate::shm::copy::copy;
use std::sync::atomic::{fence, AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

/// Writes `bytes` to `address`; visible to all when it returns.
///
/// # Safety
/// The range is mapped and writable for the length of the call.
pub(crate) unsafe fn store(address: u64, bytes: &[u8]) {
    fence(Ordering::Release);
    // SAFETY: by this function's contract.
    unsafe { put(address, bytes) };
    fence(Ordering::SeqCst);
}

/// Reads from `address`, after everything that the caller wrote before.
///
/// # Safety
/// The range is mapped and readable for the length of the call.
pub(crate) unsafe fn load(bytes: &mut [u8], address: u64) {
    fence(Ordering::SeqCst);
    // SAFETY: by this function's contract.
    unsafe { get(bytes, address) };
    fence(Ordering::Acquire);
}

/// [`store`] without an order: fences and signals give one.
///
/// # Safety
/// As for [`store`].
#[inline]
pub(crate) unsafe fn put(address: u64, bytes: &[u8]) {
    let to = address as *mut u8;
    macro_rules! word {
        ($atomic:ty, $word:ty, $bytes:expr) => {
            if address.is_multiple_of(size_of::<$word>() as u64) {
                // SAFETY: mapped by this function's contract, and aligned.
                unsafe { <$atomic>::from_ptr(to.cast()) }
                    .store(<$word>::from_ne_bytes($bytes), Ordering::Relaxed);
                return;
            }
        };
    }
    match *bytes {
        [a] => word!(AtomicU8, u8, [a]),
        [a, b] => word!(AtomicU16, u16, [a, b]),
        [a, b, c, d] => word!(AtomicU32, u32, [a, b, c, d]),
        [a, b, c, d, e, f, g, h] => word!(AtomicU64, u64, [a, b, c, d, e, f, g, h]),
        _ => {}
    }
    // SAFETY: mapped by this function's contract; `bytes` is host memory that no heap contains, or is apart by the contract of
    // `World::as_slice`.
    unsafe { copy(to, bytes.as_ptr(), bytes.len()) };
}

/// [`load`] without an order.
///
/// # Safety
/// As for [`load`].
#[inline]
pub(crate) unsafe fn get(bytes: &mut [u8], address: u64) {
    let from = address as *mut u8;
    macro_rules! word {
        ($atomic:ty) => {
            if address.is_multiple_of(size_of::<$atomic>() as u64) {
                // SAFETY: mapped by this function's contract, and aligned.
                let word = unsafe { <$atomic>::from_ptr(from.cast()) }.load(Ordering::Relaxed);
                bytes.copy_from_slice(&word.to_ne_bytes());
                return;
            }
        };
    }
    match bytes.len() {
        1 => word!(AtomicU8),
        2 => word!(AtomicU16),
        4 => word!(AtomicU32),
        8 => word!(AtomicU64),
        _ => {}
    }
    // SAFETY: as in `put`.
    unsafe { copy(bytes.as_mut_ptr(), from, bytes.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_size_and_alignment_comes_back(size in 0usize..70, shift in 0usize..9, seed in any::<u8>()) {
            let mut memory = vec![0xeeu8; 96];
            let data: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
            let address = memory.as_mut_ptr() as u64 + shift as u64;
            let mut back = vec![0u8; size];
            // SAFETY: shift + size < 96.
            unsafe {
                store(address, &data);
                load(&mut back, address);
            }
            prop_assert_eq!(&back, &data);
            prop_assert!(memory[..shift].iter().all(|b| *b == 0xee));
            prop_assert!(memory[shift + size..].iter().all(|b| *b == 0xee));
        }
    }
}
