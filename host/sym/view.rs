//! Views of symmetric memory: some elements of a buffer, or one.
//!
//! What it is not: an access. A view says where elements lie on every PE; what reads or writes them takes the view and a PE. Other PEs, and kernels,
//! may write the same memory at any time, so that there is no plain reference to it: reading copies ([`crate::World::read`],
//! [`crate::HostContext::get`], [`crate::HostContext::g`]), or is explicit about who may write meanwhile ([`crate::World::as_slice`]).

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;

use super::SymBuf;
use crate::heap::HeapError;

/// Elements that lie one after the other in a [`SymBuf`], on every PE. What transfers and collectives take; made by [`SymBuf::slice`], or from a
/// whole buffer by `&buffer` (OpenSHMEM 1.6, section "Memory Model": a symmetric data object, or a part of one).
#[derive(Debug)]
pub struct SymSlice<'a, T: Pod> {
    offset: u64,
    len: usize,
    /// Which heap: the address of its allocator, kept alive by the buffer; 0: no element at all.
    heap: usize,
    buffer: PhantomData<&'a [T]>,
}

impl<T: Pod> Clone for SymSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for SymSlice<'_, T> {}

impl<'a, T: Pod> SymSlice<'a, T> {
    pub(super) fn new(offset: u64, len: usize, heap: usize) -> SymSlice<'a, T> {
        SymSlice {
            offset,
            len,
            heap,
            buffer: PhantomData,
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Offset of the first element from the heap's base: the same on every PE.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn heap(&self) -> usize {
        self.heap
    }

    /// Some of these elements.
    ///
    /// # Errors
    /// Elements that are not there.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<SymSlice<'a, T>, HeapError> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return Err(HeapError::Range {
                start,
                count: end.saturating_sub(start),
                len: self.len,
            });
        }
        Ok(SymSlice {
            offset: self.offset + (start * size_of::<T>()) as u64,
            len: end - start,
            ..*self
        })
    }

    /// One of these elements.
    ///
    /// # Errors
    /// An element that is not there.
    pub fn at(&self, index: usize) -> Result<SymRef<'a, T>, HeapError> {
        let end = index.checked_add(1).ok_or(HeapError::Range {
            start: index,
            count: 1,
            len: self.len,
        })?;
        self.slice(index..end).map(SymRef)
    }
}

impl<'a, T: Pod> From<&'a SymBuf<T>> for SymSlice<'a, T> {
    fn from(buffer: &'a SymBuf<T>) -> Self {
        buffer.view()
    }
}

impl<'a, T: Pod> From<SymRef<'a, T>> for SymSlice<'a, T> {
    fn from(one: SymRef<'a, T>) -> Self {
        one.0
    }
}

impl<'a, T: Pod> From<&'a SymBox<T>> for SymSlice<'a, T> {
    fn from(one: &'a SymBox<T>) -> Self {
        one.0.view()
    }
}

/// One element, on every PE: what atomics, signals, waits and single-element transfers take. Made by [`SymBuf::at`], or by `&one` of a [`SymBox`].
#[derive(Debug)]
pub struct SymRef<'a, T: Pod>(SymSlice<'a, T>);

impl<T: Pod> Clone for SymRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for SymRef<'_, T> {}

impl<'a, T: Pod> SymRef<'a, T> {
    /// Offset from the heap's base: the same on every PE.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    pub(crate) fn view(&self) -> SymSlice<'a, T> {
        self.0
    }
}

impl<'a, T: Pod> From<&'a SymBox<T>> for SymRef<'a, T> {
    fn from(one: &'a SymBox<T>) -> Self {
        SymRef(one.0.view())
    }
}

/// One element of its own in the symmetric heap: a [`SymBuf`] of one. Made by [`crate::World::alloc_one`]; dropped as a buffer is.
#[derive(Debug)]
pub struct SymBox<T: Pod>(SymBuf<T>);

impl<T: Pod> SymBox<T> {
    pub(crate) fn new(buffer: SymBuf<T>) -> SymBox<T> {
        SymBox(buffer)
    }

    /// The element.
    pub fn view(&self) -> SymRef<'_, T> {
        SymRef(self.0.view())
    }

    /// As a buffer of one: what kernels take.
    pub fn buffer(&self) -> &SymBuf<T> {
        &self.0
    }
}
