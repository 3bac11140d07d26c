//! The symmetric heap's allocator: offsets in the heap, found without communication.
//!
//! What it is not: it knows no addresses and touches no memory. The work is the `range-alloc` crate's (best fit, exact); here are units,
//! and the history that shows whether all PEs made the same calls. Used by heap/mod.rs.

use range_alloc::RangeAllocator;

/// Unit of allocation, bytes: a line, so that two allocations never share one, and whole 8-byte words.
pub const UNIT: u64 = 64;

/// No room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// Free bytes altogether.
    pub free: u64,
    /// The largest request that would succeed, bytes.
    pub largest: u64,
    /// Live allocations.
    pub live: u64,
}

/// One allocation, to be given back with [`SymmetricAllocator::free`].
#[derive(Debug)]
pub struct Block(std::ops::Range<u64>);

/// Offsets of one heap.
pub struct SymmetricAllocator {
    inner: RangeAllocator<u64>,
    bytes: u64,
    live: u64,
    /// FNV-1a of all calls so far, and their number: equal on all PEs as long as the heap is symmetric.
    history: u64,
    calls: u64,
}

impl SymmetricAllocator {
    /// An allocator of `bytes` (rounded down to whole units).
    pub fn new(bytes: u64) -> SymmetricAllocator {
        let bytes = bytes / UNIT * UNIT;
        SymmetricAllocator {
            inner: RangeAllocator::new(0..bytes),
            bytes,
            live: 0,
            history: FNV_BASIS,
            calls: 0,
        }
    }

    /// Takes `bytes` (0 counts as 1) at a multiple of `alignment` (a power of two; at least [`UNIT`] is given); gives their offset.
    ///
    /// # Errors
    /// No free block is large enough.
    pub fn allocate(&mut self, bytes: u64, alignment: u64) -> Result<(u64, Block), Exhausted> {
        self.note(1, bytes);
        let whole = bytes
            .max(1)
            .div_ceil(UNIT)
            .checked_mul(UNIT)
            .filter(|whole| *whole <= self.bytes);
        let found = whole.and_then(|whole| {
            self.inner
                .allocate_range_aligned(whole, alignment.max(UNIT))
                .ok()
        });
        match found {
            Some(range) => {
                self.live += 1;
                self.note(2, range.start);
                Ok((range.start, Block(range)))
            }
            None => Err(self.exhausted()),
        }
    }

    /// Gives a block back.
    pub fn free(&mut self, block: Block) {
        self.note(3, block.0.start);
        self.inner.free_range(block.0);
        self.live -= 1;
    }

    /// Free bytes.
    pub fn free_bytes(&self) -> u64 {
        self.inner.total_available()
    }

    /// Calls made so far, and their fingerprint.
    pub fn history(&self) -> (u64, u64) {
        (self.calls, self.history)
    }

    /// What there is: the free blocks are the gaps between those taken.
    fn exhausted(&self) -> Exhausted {
        let mut taken: Vec<_> = self.inner.allocated_ranges().collect();
        taken.sort_by_key(|range| range.start);
        let (mut largest, mut end) = (0, 0);
        for range in taken {
            largest = largest.max(range.start - end);
            end = range.end;
        }
        Exhausted {
            free: self.free_bytes(),
            largest: largest.max(self.bytes - end),
            live: self.live,
        }
    }

    fn note(&mut self, kind: u64, value: u64) {
        self.calls += 1;
        for byte in kind.to_le_bytes().into_iter().chain(value.to_le_bytes()) {
            self.history = (self.history ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
    }
}

/// FNV-1a, 64 bits.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_whole_heap_can_be_taken_in_one_piece_and_again_after_freeing() {
        for bytes in [64u64, 100 * 64, 1 << 20, (255 << 20) + 64 * 7, 1 << 28] {
            let mut heap = SymmetricAllocator::new(bytes);
            for _ in 0..3 {
                let (offset, block) = heap.allocate(bytes, UNIT).expect("the whole heap");
                assert_eq!(offset, 0);
                assert!(heap.allocate(1, UNIT).is_err());
                heap.free(block);
            }
        }
    }

    #[test]
    fn the_last_bytes_of_a_heap_are_usable() {
        let mut heap = SymmetricAllocator::new(256 << 20);
        let _first = heap.allocate(1 << 20, UNIT).expect("first");
        let (offset, _rest) = heap.allocate(255 << 20, UNIT).expect("all the rest");
        assert_eq!(offset, 1 << 20);
        assert_eq!(heap.free_bytes(), 0);
    }

    #[test]
    fn exhaustion_says_what_is_free_and_what_would_fit() {
        let mut heap = SymmetricAllocator::new(1 << 20);
        let mut blocks: Vec<_> = (0..16)
            .map(|_| heap.allocate(1 << 16, UNIT).expect("block"))
            .collect();
        // Free every other block: 512 KiB free, 64 KiB the largest.
        let mut keep = Vec::new();
        for (i, (offset, block)) in blocks.drain(..).enumerate() {
            if i % 2 == 0 {
                heap.free(block);
            } else {
                keep.push((offset, block));
            }
        }
        let error = heap.allocate(1 << 17, UNIT).expect_err("no such block");
        assert_eq!(
            error,
            Exhausted {
                free: 1 << 19,
                largest: 1 << 16,
                live: 8
            }
        );
        assert!(heap.allocate(error.largest, UNIT).is_ok());
    }

    #[test]
    fn requests_beyond_any_heap_are_refused() {
        let mut heap = SymmetricAllocator::new(1 << 20);
        assert_eq!(
            heap.allocate(u64::MAX, UNIT)
                .expect_err("too large")
                .largest,
            1 << 20
        );
        assert_eq!(
            heap.allocate((1 << 20) + 1, UNIT)
                .expect_err("too large")
                .free,
            1 << 20
        );
    }

    #[test]
    fn heaps_of_many_terabytes_work() {
        let mut heap = SymmetricAllocator::new(64 << 40);
        let (first, _a) = heap.allocate(32 << 40, UNIT).expect("half");
        let (second, _b) = heap.allocate(32 << 40, UNIT).expect("the other half");
        assert_eq!((first, second), (0, 32 << 40));
    }

    #[test]
    fn the_history_differs_when_the_calls_do() {
        let (mut a, mut b) = (
            SymmetricAllocator::new(1 << 20),
            SymmetricAllocator::new(1 << 20),
        );
        assert_eq!(a.history(), b.history());
        let _x = a.allocate(100, UNIT);
        let _y = b.allocate(100, UNIT);
        assert_eq!(a.history(), b.history());
        let _x = a.allocate(100, UNIT);
        let _y = b.allocate(101, UNIT);
        assert_ne!(a.history(), b.history());
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_every_pe_gets_the_same_offsets(
            bytes in 64u64..1 << 22,
            steps in proptest::collection::vec((any::<bool>(), 1u64..1 << 18, any::<usize>()), 1..120),
        ) {
            let (mut heap, mut other) = (SymmetricAllocator::new(bytes), SymmetricAllocator::new(bytes));
            let mut live: Vec<(u64, u64, Block, Block)> = Vec::new();
            for (free, size, which) in steps {
                if free && !live.is_empty() {
                    let (_, _, block, twin) = live.swap_remove(which % live.len());
                    heap.free(block);
                    other.free(twin);
                    continue;
                }
                match (heap.allocate(size, UNIT), other.allocate(size, UNIT)) {
                    (Ok((offset, block)), Ok((twin_offset, twin))) => {
                        prop_assert_eq!(offset, twin_offset);
                        prop_assert_eq!(offset % UNIT, 0);
                        prop_assert!(offset + size <= bytes);
                        for (start, length, _, _) in &live {
                            prop_assert!(offset + size <= *start || start + length <= offset);
                        }
                        live.push((offset, size, block, twin));
                    }
                    (Err(a), Err(b)) => {
                        prop_assert_eq!(&a, &b);
                        prop_assert!(a.largest < size && a.largest <= a.free);
                    }
                    _ => prop_assert!(false, "the PEs differ"),
                }
            }
            for (_, _, block, twin) in live {
                heap.free(block);
                other.free(twin);
            }
            prop_assert_eq!(heap.free_bytes(), bytes / UNIT * UNIT);
            prop_assert_eq!(heap.history(), other.history());
        }
    }
}
