//! Strided copies: elements or blocks of elements at distances (OpenSHMEM 1.6, `shmem_iput`, `shmem_iget`, `shmem_ibput`, `shmem_ibget`).
//!
//! Not a check. Strides count elements: those of the destination and of the source.

use super::copy::copy;

/// Blocks and where they lie.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Destination stride, elements.
    pub dst: isize,
    /// Source stride, elements.
    pub sst: isize,
    /// Elements of a block.
    pub block: usize,
    /// Blocks.
    pub count: usize,
    /// Bytes of an element.
    pub bytes: usize,
}

impl Pattern {
    /// Bytes from the first to behind the last element, for checking; `stride` is that of the symmetric side.
    #[inline(always)]
    pub fn extent(&self, stride: isize) -> usize {
        match self.count {
            0 => 0,
            n => stride
                .unsigned_abs()
                .saturating_mul(n - 1)
                .saturating_add(self.block)
                .saturating_mul(self.bytes),
        }
    }
}

/// Elements that are copied by one instruction each.
unsafe fn elements<T: Copy>(mut to: *mut u8, mut from: *const u8, pattern: Pattern) {
    let size = size_of::<T>() as isize;
    for _ in 0..pattern.count {
        // SAFETY: an element of the caller's arrays.
        unsafe {
            to.cast::<T>()
                .write_unaligned(from.cast::<T>().read_unaligned())
        };
        to = to.wrapping_offset(pattern.dst.wrapping_mul(size));
        from = from.wrapping_offset(pattern.sst.wrapping_mul(size));
    }
}

/// Copies all blocks of `pattern`.
///
/// # Safety
/// Both arrays are mapped for what the pattern reaches, and do not overlap.
#[inline(never)]
pub unsafe fn run(mut to: *mut u8, mut from: *const u8, pattern: Pattern) {
    // SAFETY: by this function's contract.
    unsafe {
        match (pattern.block, pattern.bytes) {
            (1, 1) => elements::<u8>(to, from, pattern),
            (1, 2) => elements::<u16>(to, from, pattern),
            (1, 4) => elements::<u32>(to, from, pattern),
            (1, 8) => elements::<u64>(to, from, pattern),
            (1, 16) => elements::<[u64; 2]>(to, from, pattern),
            _ => {
                let size = pattern.bytes as isize;
                for _ in 0..pattern.count {
                    copy(to, from, pattern.block * pattern.bytes);
                    to = to.wrapping_offset(pattern.dst.wrapping_mul(size));
                    from = from.wrapping_offset(pattern.sst.wrapping_mul(size));
                }
            }
        }
    }
}
