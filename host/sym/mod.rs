//! Buffers of the symmetric heap.
//!
//! What it is not: it moves no data ([`crate::World`] and [`crate::HostContext`] do) and decides no offsets (heap/alloc.rs does). One type owns memory,
//! [`SymBuf`] (and [`SymBox`], one element of it); view.rs has what borrows from it.

mod view;

use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use bytemuck::Pod;

pub use view::{SymBox, SymRef, SymSlice};

use crate::heap::alloc::Block;
use crate::heap::{lock, HeapError, SharedAllocator};

/// `len` elements at the same heap offset on every PE. Dropping it gives the block back on this PE, without communication: drop it on all
/// PEs at the same place of the program, as allocations are made.
///
/// An empty buffer (`alloc(0)`) takes no memory; its address is 0 (OpenSHMEM 1.6, 9.3 `shmem_malloc`: a size of 0 gives a null pointer).
pub struct SymBuf<T: Pod> {
    addr: u64,
    offset: u64,
    len: usize,
    block: Option<(Block, SharedAllocator)>,
    elements: PhantomData<T>,
}

impl<T: Pod> SymBuf<T> {
    pub(crate) fn new(
        base: u64,
        offset: u64,
        len: usize,
        block: Block,
        allocator: &SharedAllocator,
    ) -> SymBuf<T> {
        SymBuf {
            addr: base + offset,
            offset,
            len,
            block: Some((block, allocator.clone())),
            elements: PhantomData,
        }
    }

    pub(crate) fn empty() -> SymBuf<T> {
        SymBuf {
            addr: 0,
            offset: 0,
            len: 0,
            block: None,
            elements: PhantomData,
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All elements, as operations take them; `&buffer` does as well.
    pub fn view(&self) -> SymSlice<'_, T> {
        let heap = self.block.as_ref();
        let heap = heap.map_or(0, |(_, allocator)| Arc::as_ptr(allocator) as usize);
        SymSlice::new(self.offset, self.len, heap)
    }

    /// Some of the elements.
    ///
    /// # Errors
    /// Elements outside the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<SymSlice<'_, T>, HeapError> {
        self.view().slice(range)
    }

    /// One element.
    ///
    /// # Errors
    /// An element outside the buffer.
    pub fn at(&self, index: usize) -> Result<SymRef<'_, T>, HeapError> {
        self.view().at(index)
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Offset from the heap's base: the same on every PE.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Address on this PE, as its cores see it: what kernels take. 0 for an empty buffer.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// `count` elements from `start`, checked.
    pub(crate) fn part(&self, start: usize, count: usize) -> Result<SymSlice<'_, T>, HeapError> {
        match start.checked_add(count) {
            Some(end) => self.slice(start..end),
            None => Err(HeapError::Range {
                start,
                count,
                len: self.len,
            }),
        }
    }
}

impl<T: Pod> Drop for SymBuf<T> {
    fn drop(&mut self) {
        if let Some((block, allocator)) = self.block.take() {
            lock(&allocator).free(block);
        }
    }
}

impl<T: Pod> std::fmt::Debug for SymBuf<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let element = std::any::type_name::<T>();
        write!(
            f,
            "SymBuf<{element}>({} elements at heap offset {:#x})",
            self.len, self.offset
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::alloc::SymmetricAllocator;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_dropped_buffer_gives_its_block_back() {
        let allocator: SharedAllocator = Arc::new(Mutex::new(SymmetricAllocator::new(4096)));
        let (offset, block) = lock(&allocator).allocate(4096, 64).expect("all of it");
        let buffer: SymBuf<u32> = SymBuf::new(1 << 20, offset, 1024, block, &allocator);
        assert_eq!(
            (buffer.addr(), buffer.bytes(), buffer.len()),
            (1 << 20, 4096, 1024)
        );
        assert!(lock(&allocator).allocate(1, 64).is_err());
        drop(buffer);
        assert_eq!(lock(&allocator).free_bytes(), 4096);
    }

    #[test]
    fn places_outside_a_buffer_are_refused_with_the_numbers() {
        let allocator: SharedAllocator = Arc::new(Mutex::new(SymmetricAllocator::new(4096)));
        let (_, block) = lock(&allocator).allocate(40, 64).expect("block");
        let buffer: SymBuf<u64> = SymBuf::new(0, 128, 5, block, &allocator);
        assert_eq!(buffer.part(2, 3).map(|part| part.offset()), Ok(144));
        assert_eq!(buffer.part(5, 0).map(|part| part.offset()), Ok(168));
        assert_eq!(buffer.slice(1..=3).map(|part| part.len()), Ok(3));
        assert!(buffer
            .part(5, 1)
            .expect_err("outside")
            .to_string()
            .contains("5..6"));
        assert!(buffer.part(usize::MAX, 2).is_err());
        assert!(buffer.at(5).is_err() && buffer.at(usize::MAX).is_err());
    }
}
