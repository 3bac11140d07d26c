//! How payload bytes move: which words stay whole, and in which order they become visible.
//!
//! What is promised, and why it holds:
//! - **Words stay whole.** Every naturally aligned 2-, 4- or 8-byte word of the *remote* side is stored (or, for a READ, loaded) at
//!   once. Peers poll flags and signals with plain aligned loads, and hardware writes memory in larger units. Up to [`SMALL`] bytes
//!   this is done with relaxed atomic accesses of the word's size. Longer payloads go through `memmove` between their aligned ends:
//!   its vector stores keep 8-byte aligned words whole on x86-64 and aarch64, though no standard says so.
//! - **Writes of one queue pair stay in order.** [`to_remote`] begins with a release fence: what earlier requests stored is visible to
//!   whoever acquires a word that this request stores.
//! - **A completion means visibility.** The completion entry's owner word is stored with release order after the payload
//!   ([`crate::ring::publish_cqe`]), so the poller that acquires it, and whoever that poller tells, sees the payload.
//! - **Response data is at least as new as everything seen before it.** [`from_remote`] ends with an acquire fence.
//!
//! Within one payload no order is promised. Memory is shared with kernels and other processes that access it at the same time by the
//! rules of SHMEM; a racing access of theirs may see old or new words, as on hardware.

use std::sync::atomic::{fence, AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

/// Longest payload that is copied word by word, bytes: a cache line. Rows of features are longer and want vector copies.
const SMALL: usize = 64;
/// Size of the words that the bulk copy keeps whole, bytes.
const WORD: usize = 8;

/// Which side's words stay whole if the two sides are not aligned alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Destination,
    Source,
}

/// Copies a WRITE's payload to the responder's memory.
///
/// # Safety
/// `src` is valid for reads and `dst` for writes of `len` bytes.
pub(super) unsafe fn to_remote(dst: *mut u8, src: *const u8, len: usize) {
    fence(Ordering::Release);
    // SAFETY: the caller's contract is the same.
    unsafe { copy(dst, src, len, Whole::Destination) }
}

/// Copies a READ's data from the responder's memory.
///
/// # Safety
/// `src` is valid for reads and `dst` for writes of `len` bytes.
pub(super) unsafe fn from_remote(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's contract is the same.
    unsafe { copy(dst, src, len, Whole::Source) }
    fence(Ordering::Acquire);
}

/// # Safety
/// `src` is valid for reads and `dst` for writes of `len` bytes.
#[inline]
unsafe fn copy(dst: *mut u8, src: *const u8, len: usize, whole: Whole) {
    if len <= SMALL {
        // SAFETY: the caller's contract is the same.
        unsafe { copy_words(dst, src, len, whole) };
        return;
    }
    let anchor = if whole == Whole::Destination {
        dst as usize
    } else {
        src as usize
    };
    let head = anchor.wrapping_neg() % WORD;
    let body = (len - head) / WORD * WORD;
    let tail = len - head - body;
    // SAFETY: head, body and tail are consecutive parts of the `len` bytes; memmove allows the sides to overlap.
    unsafe {
        copy_words(dst, src, head, whole);
        std::ptr::copy(src.add(head), dst.add(head), body);
        copy_words(dst.add(head + body), src.add(head + body), tail, whole);
    }
}

/// # Safety
/// `src` is valid for reads and `dst` for writes of `len` bytes.
#[inline]
unsafe fn copy_words(dst: *mut u8, src: *const u8, len: usize, whole: Whole) {
    let mut done = 0;
    while done < len {
        let anchor = if whole == Whole::Destination {
            dst as usize
        } else {
            src as usize
        };
        let step = step(anchor + done, len - done);
        // SAFETY: `step` bytes lie within the `len` bytes of both sides.
        unsafe { copy_word(dst.add(done), src.add(done), step) };
        done += step;
    }
}

/// The largest word size, up to 8 bytes, to which `address` is aligned and that fits in `left` bytes.
#[inline]
fn step(address: usize, left: usize) -> usize {
    let aligned = 1 << (address | WORD).trailing_zeros();
    let fitting = 1 << left.min(WORD).ilog2();
    std::cmp::min(aligned, fitting)
}

/// # Safety
/// `size` is 1, 2, 4 or 8, and both sides are valid for that many bytes.
#[inline]
unsafe fn copy_word(dst: *mut u8, src: *const u8, size: usize) {
    // SAFETY: see the macro; the sizes match the types.
    unsafe {
        match size {
            8 => word::<AtomicU64>(dst, src),
            4 => word::<AtomicU32>(dst, src),
            2 => word::<AtomicU16>(dst, src),
            _ => word::<AtomicU8>(dst, src),
        }
    }
}

/// One word: an atomic access on each side that is aligned for it, an unaligned one on the other.
trait Word {
    type Value: Copy;
    /// # Safety
    /// `at` is aligned for the word and valid for reads.
    unsafe fn load(at: *const u8) -> Self::Value;
    /// # Safety
    /// `at` is aligned for the word and valid for writes.
    unsafe fn store(at: *mut u8, value: Self::Value);
}

macro_rules! words {
    ($($atomic:ident $value:ty),*) => {$(
        impl Word for $atomic {
            type Value = $value;
            #[inline]
            unsafe fn load(at: *const u8) -> $value {
                // SAFETY: aligned and valid by the trait's contract; an atomic load only reads.
                unsafe { $atomic::from_ptr(at.cast_mut().cast()) }.load(Ordering::Relaxed)
            }
            #[inline]
            unsafe fn store(at: *mut u8, value: $value) {
                // SAFETY: aligned and valid by the trait's contract.
                unsafe { $atomic::from_ptr(at.cast()) }.store(value, Ordering::Relaxed)
            }
        }
    )*};
}
words!(AtomicU8 u8, AtomicU16 u16, AtomicU32 u32, AtomicU64 u64);

/// # Safety
/// Both sides are valid for the size of the word.
#[inline]
unsafe fn word<W: Word>(dst: *mut u8, src: *const u8) {
    let size = size_of::<W::Value>();
    // SAFETY: each side is accessed atomically only where it is aligned for that.
    unsafe {
        let value = if (src as usize).is_multiple_of(size) {
            W::load(src)
        } else {
            src.cast::<W::Value>().read_unaligned()
        };
        if (dst as usize).is_multiple_of(size) {
            W::store(dst, value);
        } else {
            dst.cast::<W::Value>().write_unaligned(value);
        }
    }
}

/// The 64-bit word at `at`, at once.
///
/// # Safety
/// `at` is 8-byte aligned and valid for reads.
pub(super) unsafe fn load_u64(at: *const u8) -> u64 {
    // SAFETY: the caller's contract is the same.
    unsafe { <AtomicU64 as Word>::load(at) }
}

/// Stores a 64-bit word at once, after everything stored before.
///
/// # Safety
/// `at` is 8-byte aligned and valid for writes.
pub(super) unsafe fn store_u64(at: *mut u8, value: u64) {
    fence(Ordering::Release);
    // SAFETY: the caller's contract is the same.
    unsafe { <AtomicU64 as Word>::store(at, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_alignment_copies_exactly_its_bytes() {
        let source: Vec<u8> = (0..1024).map(|index| (index * 7 + 1) as u8).collect();
        for len in (0..80).chain(SMALL - 2..SMALL + 40) {
            for (to, from) in (0..9).flat_map(|to| (0..9).map(move |from| (to, from))) {
                for whole in [Whole::Destination, Whole::Source] {
                    let mut target = vec![0_u8; 1024];
                    // SAFETY: both vectors hold 1024 bytes, more than offset and length together.
                    unsafe {
                        copy(
                            target.as_mut_ptr().add(to),
                            source.as_ptr().add(from),
                            len,
                            whole,
                        )
                    };
                    assert_eq!(target[to..to + len], source[from..from + len]);
                    assert!(target[..to]
                        .iter()
                        .chain(&target[to + len..])
                        .all(|byte| *byte == 0));
                }
            }
        }
    }

    #[test]
    fn steps_follow_the_alignment_and_never_pass_the_end() {
        let steps = |mut at: usize, end: usize| {
            let mut list = Vec::new();
            while at < end {
                list.push(step(at, end - at));
                at += step(at, end - at);
            }
            list
        };
        assert_eq!(steps(16, 32), [8, 8]);
        assert_eq!(steps(17, 31), [1, 2, 4, 4, 2, 1]);
        assert_eq!(steps(20, 28), [4, 4]);
    }
}
