//! Reductions and scans over a group: who computes what, and in which order.
//!
//! Not the element-wise operations (`ops`). Called by the C routines; addresses are this PE's copies, counts are elements.
//!
//! Elements are always combined in the order of members, so that every member gets the same bits, and the same program gets the same bits in
//! every run. Small: each member publishes its elements and combines all. Large: each member combines a piece of all members' elements where
//! they are and all copy the pieces together; source and destination may be the same array, because a piece is read and written by one member.

use super::group::{Group, Kind, Memory};
use super::layout::STAGED;
use super::ops::Operation;
use super::wait::Stop;
use std::ops::Range;
use std::ptr::copy_nonoverlapping;

/// Bytes combined at a time, so that intermediate values stay in the first-level cache.
const BLOCK: usize = 4096;
/// Bytes of all members' elements up to which each member combines them all: pieces would save less than one more wait for everybody costs.
const WHOLE: usize = 32 << 10;
/// Pieces begin at multiples of this many bytes: a cache line has one writer, and vector loops start aligned.
const PIECE_ALIGN: usize = 64;

/// Intermediate values, aligned for every type.
#[repr(C, align(64))]
struct Scratch([u8; BLOCK]);

/// The elements that member `index` of `size` combines.
fn piece(count: usize, element: usize, index: usize, size: usize) -> Range<usize> {
    let granule = (PIECE_ALIGN / element).max(1);
    let each = count.div_ceil(size).next_multiple_of(granule);
    let begin = (index * each).min(count);
    begin..(begin + each).min(count)
}

/// `dest = src of member 0 op src of member 1 ...`, on every member (OpenSHMEM 1.6, section "Reductions").
///
/// # Safety
/// Symmetric addresses, aligned and valid for `count` elements; the same array or not overlapping; the same call by all members.
pub unsafe fn reduce(
    group: &Group,
    memory: &impl Memory,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> Result<(), Stop> {
    let bytes = count * operation.element;
    if group.size() == 1 {
        if dest.cast_const() != src && bytes > 0 {
            // SAFETY: the caller's contract.
            unsafe { copy_nonoverlapping(src, dest, bytes) };
        }
        return Ok(());
    }
    if bytes <= STAGED {
        // SAFETY: the caller's contract.
        unsafe { reduce_staged(group, operation, dest, src, count) }
    } else if dest.cast_const() != src && (group.size() == 2 || bytes * group.size() <= WHOLE) {
        // SAFETY: the caller's contract; not the same array.
        unsafe { reduce_whole(group, memory, operation, dest, src, count) }
    } else {
        // SAFETY: the caller's contract.
        unsafe { reduce_in_pieces(group, memory, operation, dest, src, count) }
    }
}

/// Everybody publishes and combines everything.
unsafe fn reduce_staged(
    group: &Group,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> Result<(), Stop> {
    let number = group.begin();
    let bytes = count * operation.element;
    let word = Group::describe(Kind::Reduce, bytes as u64);
    // SAFETY: the caller's contract.
    unsafe { group.publish(number, word, src, bytes)? };
    let get = |member: usize| -> Result<*const u8, Stop> {
        group.see(member, number)?;
        group.compare(member, number, word)?;
        Ok(group.staged(member, number, bytes))
    };
    // SAFETY: staged data is aligned to 16 bytes, published, and held until this PE finishes.
    unsafe {
        (operation.combine)(dest, get(0)?, get(1)?, count);
        for member in 2..group.size() {
            (operation.combine)(dest, dest, get(member)?, count);
        }
    }
    group.heard_all(number);
    group.finish(number);
    Ok(())
}

/// Each member combines everything, from where it is; for source and destination apart. Two members read as much of each other's memory this
/// way as by pieces.
unsafe fn reduce_whole(
    group: &Group,
    memory: &impl Memory,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> Result<(), Stop> {
    let number = group.begin();
    let element = operation.element;
    // SAFETY: nothing to read.
    unsafe { arrive(group, number, src, count * element)? };
    let mut begin = 0;
    while begin < count {
        let n = (count - begin).min(BLOCK / element);
        let offset = begin * element;
        // SAFETY: all members have their elements ready and change nothing until this PE has finished.
        unsafe {
            let source =
                |member: usize| memory.peer(src, group.pe(member)).add(offset).cast_const();
            let to = dest.add(offset);
            (operation.combine)(to, source(0), source(1), n);
            for member in 2..group.size() {
                (operation.combine)(to, to, source(member), n);
            }
        }
        begin += n;
    }
    group.finish(number);
    group.wait_finished(number)?;
    Ok(())
}

/// Says that this PE's elements are ready, and waits until everybody's are.
///
/// # Safety
/// `src` is an address; nothing is read.
unsafe fn arrive(group: &Group, number: u64, src: *const u8, bytes: usize) -> Result<(), Stop> {
    let word = Group::describe(Kind::Reduce, bytes as u64);
    // SAFETY: nothing to read.
    unsafe { group.publish(number, word, src, 0)? };
    for step in 1..group.size() {
        let member = group.after(step);
        group.see(member, number)?;
        group.compare(member, number, word)?;
    }
    group.heard_all(number);
    Ok(())
}

/// Each member combines a piece; all copy the pieces.
unsafe fn reduce_in_pieces(
    group: &Group,
    memory: &impl Memory,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
) -> Result<(), Stop> {
    let number = group.begin();
    let size = group.size();
    let element = operation.element;
    // SAFETY: nothing is read.
    unsafe { arrive(group, number, src, count * element)? };

    let mine = piece(count, element, group.me(), size);
    let mut scratch = Scratch([0; BLOCK]);
    let scratch = scratch.0.as_mut_ptr();
    let mut begin = mine.start;
    while begin < mine.end {
        let n = (mine.end - begin).min(BLOCK / element);
        // SAFETY: all members have their elements ready and leave this piece alone until the first part is done.
        unsafe {
            let source = |member: usize| {
                memory
                    .peer(src, group.pe(member))
                    .add(begin * element)
                    .cast_const()
            };
            let result = dest.add(begin * element);
            let mut so_far = source(0);
            for member in 1..size {
                // The last step writes to `dest`, where this PE's own elements may be: they are used up, or are an operand of this step.
                let to = if member == size - 1 { result } else { scratch };
                (operation.combine)(to, so_far, source(member), n);
                so_far = to;
            }
        }
        begin += n;
    }
    group.first_part_done(number);

    for step in 1..size {
        let member = group.after(step);
        let theirs = piece(count, element, member, size);
        group.wait_first_part(member, number)?;
        if !theirs.is_empty() {
            let offset = theirs.start * element;
            // SAFETY: the member has finished its piece and waits until this PE has finished.
            unsafe {
                let from = memory.peer(dest, group.pe(member)).add(offset);
                copy_nonoverlapping(from, dest.add(offset), theirs.len() * element);
            }
        }
    }
    group.finish(number);
    group.wait_finished(number)?;
    Ok(())
}

/// `dest` on member i = src of members before i, combined; with `inclusive` also its own (OpenSHMEM 1.6, `shmem_sum_inscan` and `_exscan`).
/// Zero bytes must be the operation's neutral element.
///
/// # Safety
/// As for [`reduce`].
pub unsafe fn scan(
    group: &Group,
    memory: &impl Memory,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
    inclusive: bool,
) -> Result<(), Stop> {
    if count * operation.element <= STAGED {
        // SAFETY: the caller's contract.
        unsafe { scan_staged(group, operation, dest, src, count, inclusive) }
    } else {
        // SAFETY: the caller's contract.
        unsafe { scan_in_pieces(group, memory, operation, dest, src, count, inclusive) }
    }
}

/// Everybody publishes and combines what comes before it.
unsafe fn scan_staged(
    group: &Group,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
    inclusive: bool,
) -> Result<(), Stop> {
    let number = group.begin();
    let bytes = count * operation.element;
    let word = Group::describe(Kind::Reduce, bytes as u64);
    let last = if inclusive {
        group.me() + 1
    } else {
        group.me()
    };
    // SAFETY: the caller's contract; staged data as in `reduce_staged`.
    unsafe {
        group.publish(number, word, src, bytes)?;
        if last == 0 && bytes > 0 {
            std::ptr::write_bytes(dest, 0, bytes);
        }
        for member in 0..last {
            group.see(member, number)?;
            group.compare(member, number, word)?;
            let theirs = group.staged(member, number, bytes);
            if member == 0 && bytes > 0 {
                copy_nonoverlapping(theirs, dest, bytes);
            } else {
                (operation.combine)(dest, dest, theirs, count);
            }
        }
    }
    group.finish(number);
    Ok(())
}

/// Each member computes a piece for everybody, and writes it where it belongs.
unsafe fn scan_in_pieces(
    group: &Group,
    memory: &impl Memory,
    operation: Operation,
    dest: *mut u8,
    src: *const u8,
    count: usize,
    inclusive: bool,
) -> Result<(), Stop> {
    let number = group.begin();
    let element = operation.element;
    // SAFETY: nothing is read.
    unsafe { arrive(group, number, src, count * element)? };

    let mine = piece(count, element, group.me(), group.size());
    let (mut sum, mut next) = (Scratch([0; BLOCK]), Scratch([0; BLOCK]));
    let (sum, next) = (sum.0.as_mut_ptr(), next.0.as_mut_ptr());
    let mut begin = mine.start;
    while begin < mine.end {
        let n = (mine.end - begin).min(BLOCK / element);
        let bytes = n * element;
        for member in 0..group.size() {
            let pe = group.pe(member);
            // SAFETY: all members are in the call and touch only their own pieces, of everybody's arrays; the element is read before it is
            // overwritten where source and destination are the same.
            unsafe {
                let from = memory.peer(src, pe).add(begin * element);
                let to = memory.peer(dest, pe).add(begin * element);
                if member == 0 {
                    copy_nonoverlapping(from, next, bytes);
                } else {
                    (operation.combine)(next, sum, from, n);
                }
                let value = if inclusive { next } else { sum };
                if member == 0 && !inclusive {
                    std::ptr::write_bytes(to, 0, bytes);
                } else {
                    copy_nonoverlapping(value, to, bytes);
                }
                copy_nonoverlapping(next, sum, bytes);
            }
        }
        begin += n;
    }
    group.finish(number);
    group.wait_finished(number)?;
    Ok(())
}
