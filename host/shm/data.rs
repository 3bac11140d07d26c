//! Collectives that move data: broadcast, fcollect, collect, alltoall, alltoalls.
//!
//! Not reductions (`reduce`). Called by the C routines and by active sets, with sizes in bytes; addresses are this PE's copies.
//!
//! A contribution up to `layout::STAGED` bytes is copied into the contributor's staging buffer, so that it may return at once; a larger one
//! is read from the contributor's own buffer, and the contributor waits until all have read. Nobody writes into another PE's memory.

use super::group::{Group, Kind, Memory};
use super::layout::STAGED;
use super::wait::Stop;
use std::ptr::copy_nonoverlapping;

/// Copies unless source and destination are the same place. They may overlap: programs do that, wrongly, and shall not fare worse here.
///
/// # Safety
/// Both are valid for `bytes`, or `bytes` is 0.
#[inline]
unsafe fn place(src: *const u8, dst: *mut u8, bytes: usize) {
    if src != dst.cast_const() && bytes > 0 {
        // SAFETY: the caller's contract.
        unsafe { std::ptr::copy(src, dst, bytes) }
    }
}

/// Copies `bytes` of `src` on member `root` to `dest` on every member; to the root's own `dest` only if `also_root` (team-based forms).
///
/// # Safety
/// Symmetric addresses, valid for `bytes` on all members; the same call by all members.
#[inline]
pub unsafe fn broadcast(
    group: &Group,
    memory: &impl Memory,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
    root: usize,
    also_root: bool,
) -> Result<(), Stop> {
    let number = group.begin();
    let word = Group::describe(Kind::Broadcast, (root as u64) << 40 ^ bytes as u64);
    let staged = bytes <= STAGED;
    if group.me() == root {
        // SAFETY: the caller's contract; a staged contribution fits.
        unsafe {
            group.publish(number, word, src, if staged { bytes } else { 0 })?;
            if also_root {
                place(src, dest, bytes);
            }
        }
        group.finish(number);
        if !staged {
            group.wait_finished(number)?;
        }
    } else {
        group.see_only(root, number)?;
        group.compare(root, number, word)?;
        // SAFETY: the root has published, and waits (or leaves its staging buffer alone) until this PE finishes.
        unsafe {
            let from = if staged {
                group.staged(root, number, bytes)
            } else {
                memory.peer(src, group.pe(root))
            };
            place(from, dest, bytes);
        }
        group.finish(number);
    }
    Ok(())
}

/// Concatenates `bytes` of `src` of every member, in order, in `dest` of every member.
///
/// # Safety
/// Symmetric addresses, `src` valid for `bytes` and `dest` for `bytes` times the size of the group, not overlapping; the same call by all members.
#[inline]
pub unsafe fn fcollect(
    group: &Group,
    memory: &impl Memory,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
) -> Result<(), Stop> {
    let number = group.begin();
    let word = Group::describe(Kind::Fcollect, bytes as u64);
    let staged = bytes <= STAGED;
    // SAFETY: the caller's contract.
    unsafe {
        group.publish(number, word, src, if staged { bytes } else { 0 })?;
        place(src, dest.add(group.me() * bytes), bytes);
    }
    for step in 1..group.size() {
        let member = group.after(step);
        group.see(member, number)?;
        group.compare(member, number, word)?;
        // SAFETY: published, and held until this PE finishes.
        unsafe {
            let from = if staged {
                group.staged(member, number, bytes)
            } else {
                memory.peer(src, group.pe(member))
            };
            place(from, dest.add(member * bytes), bytes);
        }
    }
    group.heard_all(number);
    group.finish(number);
    if !staged {
        group.wait_finished(number)?;
    }
    Ok(())
}

/// As [`fcollect`], with a size of its own for each member. `dest` has `room` bytes, of which no more are written; gives how many the members
/// have altogether.
///
/// # Safety
/// As for [`fcollect`]; `dest` is valid for `room`, or for the sum of all sizes if that is less.
pub unsafe fn collect(
    group: &Group,
    memory: &impl Memory,
    dest: *mut u8,
    room: usize,
    src: *const u8,
    bytes: usize,
) -> Result<usize, Stop> {
    let number = group.begin();
    let staged = if bytes <= STAGED { bytes } else { 0 };
    // SAFETY: the caller's contract.
    unsafe { group.publish(number, bytes as u64, src, staged)? };
    let mut offset = 0usize;
    for member in 0..group.size() {
        group.see(member, number)?;
        // SAFETY: published, and held until this PE finishes.
        unsafe {
            let theirs = group.word(member, number) as usize;
            let from = if member == group.me() {
                src
            } else if theirs <= STAGED {
                group.staged(member, number, theirs)
            } else {
                memory.peer(src, group.pe(member))
            };
            let fits = theirs
                .min(room.saturating_sub(offset))
                .min(memory.reach(src));
            place(from, dest.wrapping_add(offset), fits);
            offset = offset.saturating_add(theirs);
        }
    }
    group.heard_all(number);
    group.finish(number);
    if bytes > STAGED {
        group.wait_finished(number)?;
    }
    Ok(offset)
}

/// Block k of `src` on member i goes to block i of `dest` on member k; blocks have `bytes`.
///
/// # Safety
/// Symmetric addresses, both valid for `bytes` times the size of the group, not overlapping; the same call by all members.
#[inline]
pub unsafe fn alltoall(
    group: &Group,
    memory: &impl Memory,
    dest: *mut u8,
    src: *const u8,
    bytes: usize,
) -> Result<(), Stop> {
    let number = group.begin();
    let me = group.me();
    let word = Group::describe(Kind::Alltoall, bytes as u64);
    let total = bytes * group.size();
    let staged = total <= STAGED;
    // SAFETY: the caller's contract.
    unsafe {
        group.publish(number, word, src, if staged { total } else { 0 })?;
        place(src.add(me * bytes), dest.add(me * bytes), bytes);
    }
    for step in 1..group.size() {
        let member = group.after(step);
        group.see(member, number)?;
        group.compare(member, number, word)?;
        // SAFETY: published, and held until this PE finishes.
        unsafe {
            let from = if staged {
                group.staged(member, number, total)
            } else {
                memory.peer(src, group.pe(member)).cast_const()
            };
            place(from.add(me * bytes), dest.add(member * bytes), bytes);
        }
    }
    group.heard_all(number);
    group.finish(number);
    if !staged {
        group.wait_finished(number)?;
    }
    Ok(())
}

/// Elements of a strided exchange.
#[derive(Debug, Clone, Copy)]
pub struct Strides {
    /// Elements between consecutive ones in `dest`.
    pub dest: usize,
    /// Elements between consecutive ones in `src`.
    pub src: usize,
    /// Bytes of an element.
    pub element: usize,
    /// Elements of a block.
    pub count: usize,
}

impl Strides {
    /// Copies block `theirs` of `src` to block `mine` of `dest`.
    ///
    /// # Safety
    /// Both blocks lie in memory valid for them and do not overlap.
    unsafe fn copy(self, src: *const u8, theirs: usize, dest: *mut u8, mine: usize) {
        let (from, to) = (self.src * self.element, self.dest * self.element);
        for k in 0..self.count {
            // SAFETY: the caller's contract.
            unsafe {
                let from = src.add((theirs * self.count + k) * from);
                let to = dest.add((mine * self.count + k) * to);
                copy_element(from, to, self.element);
            }
        }
    }
}

/// Copies one element; the sizes of the standard's types without a call.
///
/// # Safety
/// As for `copy_nonoverlapping` of `bytes`.
#[inline]
unsafe fn copy_element(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's contract; unaligned accesses.
    unsafe {
        match bytes {
            8 => to
                .cast::<u64>()
                .write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to
                .cast::<u32>()
                .write_unaligned(from.cast::<u32>().read_unaligned()),
            16 => to
                .cast::<u128>()
                .write_unaligned(from.cast::<u128>().read_unaligned()),
            2 => to
                .cast::<u16>()
                .write_unaligned(from.cast::<u16>().read_unaligned()),
            1 => *to = *from,
            _ => copy_nonoverlapping(from, to, bytes),
        }
    }
}

/// As [`alltoall`], with elements apart from each other (OpenSHMEM 1.6, `shmem_alltoalls`).
///
/// # Safety
/// As for [`alltoall`], for the strided extents.
pub unsafe fn alltoalls(
    group: &Group,
    memory: &impl Memory,
    dest: *mut u8,
    src: *const u8,
    strides: Strides,
) -> Result<(), Stop> {
    if strides.dest == 1 && strides.src == 1 {
        // SAFETY: the caller's contract.
        return unsafe { alltoall(group, memory, dest, src, strides.count * strides.element) };
    }
    let number = group.begin();
    let me = group.me();
    let word = Group::describe(Kind::Alltoall, (strides.count * strides.element) as u64);
    // SAFETY: the caller's contract.
    unsafe {
        group.publish(number, word, src, 0)?;
        strides.copy(src, me, dest, me);
    }
    for step in 1..group.size() {
        let member = group.after(step);
        group.see(member, number)?;
        group.compare(member, number, word)?;
        // SAFETY: the member waits until this PE finishes.
        unsafe { strides.copy(memory.peer(src, group.pe(member)), me, dest, member) };
    }
    group.heard_all(number);
    group.finish(number);
    group.wait_finished(number)?;
    Ok(())
}
