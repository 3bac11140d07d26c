//! Memory of the emulated devices: one sealed memfd a device, handed out in pieces, and the registry of every address that ACL made.
//!
//! A device's arena is a range of addresses without access; an allocation opens a piece of it, at the same offset of the device's memfd. Guard
//! gaps lie between allocations, freed addresses come back as late as possible, and fresh memory is poisoned, so that a kernel which strays
//! meets a fault or a pattern. Everything that peers or the NIC reach is found here by [`lookup`]: which memfd, which offset.
//!
//! Reservations (`vmm.rs`) put their mappings into the same registry. Called by the ACL entries, by launch (to explain wild addresses) and by HCCP.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use npushmem_ffi::acl;
use rustix::fs::{
    fallocate, fcntl_add_seals, ftruncate, memfd_create, FallocateFlags, MemfdFlags, SealFlags,
};
use rustix::mm::{madvise, mmap, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::config::{self, Poison};
use crate::error::{fail, invalid, system, Outcome};

/// Bytes of a small page.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a huge page.
pub(crate) const HUGE_PAGE: u64 = 2 << 20;
/// Addresses without access between two allocations.
const GUARD: u64 = 64 << 10;
/// What fresh memory holds.
pub(crate) const POISON: u8 = 0xcd;
/// What the bytes between an allocation's size and the end of its page hold; checked when it is freed.
const SLACK: u8 = 0xb5;
/// Allocations up to this many bytes are poisoned everywhere; larger ones at both ends (unless `NPUSIM_POISON=all`), because poison costs a page of
/// real memory each.
const POISON_WHOLE: u64 = 1 << 20;
/// Bytes poisoned at each end of a large allocation.
const POISON_END: u64 = 64 << 10;
/// Addresses of an arena for each byte of device memory: freed ones stay unused for long.
const ARENA_FACTOR: u64 = 4;
/// Bytes that a process may allocate with `aclrtMallocHost`.
const HOST_ARENA: u64 = 1 << 40;

/// What lies at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Memory of a device of this process.
    Device,
    /// Host memory that ACL allocated.
    Host,
    /// The caller's own host memory, registered with ACL; it has no memfd.
    Registered,
    /// Memory of another process's device, imported.
    Peer,
}

/// A piece of memory that ACL knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    /// First address.
    pub(crate) va: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// The memfd behind it, owned by the registry; -1 for registered host memory.
    pub(crate) fd: RawFd,
    /// Where the region begins in the memfd.
    pub(crate) offset: u64,
    /// What it is.
    pub(crate) kind: Kind,
    /// The device it belongs to (in the owner's numbering).
    pub(crate) device: i32,
    /// Bytes of a page, as ACL reports it.
    pub(crate) page: u64,
    /// Whether it lies in a reservation of `aclrtReserveMemAddress`.
    pub(crate) reserved: bool,
}

impl Region {
    pub(crate) fn end(&self) -> u64 {
        self.va + self.len
    }

    pub(crate) fn on_device(&self) -> bool {
        matches!(self.kind, Kind::Device | Kind::Peer)
    }
}

/// What an allocation holds at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// A pattern that is no sensible value.
    Poison,
    /// Zeros, as rings and counters need them.
    Zero,
}

static REGIONS: RwLock<BTreeMap<u64, Region>> = RwLock::new(BTreeMap::new());

/// The region that holds all of `[va, va + len)` and has a memfd behind it, so that it can be registered with a NIC or shared.
pub(crate) fn lookup(va: u64, len: u64) -> Option<Region> {
    find(va, len).filter(|region| region.fd >= 0)
}

/// The region that holds all of `[va, va + len)`.
pub(crate) fn find(va: u64, len: u64) -> Option<Region> {
    let region = containing(va)?;
    va.checked_add(len)
        .filter(|end| *end <= region.end())
        .map(|_| region)
}

/// The region that holds the byte at `va`.
pub(crate) fn containing(va: u64) -> Option<Region> {
    let regions = REGIONS.read().unwrap_or_else(PoisonError::into_inner);
    regions
        .range(..=va)
        .next_back()
        .map(|(_, region)| *region)
        .filter(|region| va < region.end())
}

/// The last region below `va` and the first one above it.
fn neighbours(va: u64) -> (Option<Region>, Option<Region>) {
    let regions = REGIONS.read().unwrap_or_else(PoisonError::into_inner);
    (
        regions.range(..=va).next_back().map(|(_, region)| *region),
        regions.range(va..).next().map(|(_, region)| *region),
    )
}

/// Adds a region to the registry; refuses an overlap.
pub(crate) fn register(region: Region) -> Outcome {
    let mut regions = REGIONS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, other)) = regions
        .range(..region.end())
        .next_back()
        .filter(|(_, other)| other.end() > region.va)
    {
        return Err(invalid(format!(
            "[{:#x}, {:#x}) overlaps memory that is known already: [{:#x}, {:#x})",
            region.va,
            region.end(),
            other.va,
            other.end()
        )));
    }
    regions.insert(region.va, region);
    Ok(())
}

/// Takes the region that begins at `va` out of the registry.
pub(crate) fn unregister(va: u64) -> Option<Region> {
    REGIONS
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&va)
}

/// A memfd of `len` bytes that can grow but never shrink: a shrunken one would kill whoever has it mapped.
pub(crate) fn sealed_memfd(name: &str, len: u64) -> Outcome<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(|e| system("memfd_create", e))?;
    ftruncate(&fd, len).map_err(|e| system(&format!("cannot make a memfd of {len} bytes"), e))?;
    fcntl_add_seals(&fd, SealFlags::SHRINK).map_err(|e| system("cannot seal a memfd", e))?;
    Ok(fd)
}

/// Reserves `len` addresses without access, aligned to `align` (a power of two of at least a page).
pub(crate) fn reserve_address_range(len: u64, align: u64) -> Outcome<u64> {
    let span = len.checked_add(align).ok_or_else(|| {
        invalid(format!(
            "a range of {len} bytes is beyond any address space"
        ))
    })?;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let raw = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            span as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }
    .map_err(|e| {
        fail(
            acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
            format!("cannot reserve {len} bytes of addresses: {e}; raise the limit of address space (ulimit -v unlimited)"),
        )
    })? as u64;
    let base = raw.next_multiple_of(align);
    trim(raw, base);
    trim(base + len, raw + span);
    Ok(base)
}

fn trim(from: u64, to: u64) {
    if to > from {
        // SAFETY: the range is the unused edge of a mapping that the caller has just made. A failure leaves addresses without access behind.
        let _ = unsafe { munmap(from as *mut c_void, (to - from) as usize) };
    }
}

/// Maps `len` bytes of `fd` at `offset` over addresses that the caller reserved.
///
/// # Safety
/// `[va, va + len)` belongs to a reservation of the caller and nothing uses what was mapped there.
pub(crate) unsafe fn map_over(va: u64, len: u64, fd: impl AsFd, offset: u64) -> Outcome {
    // SAFETY: the caller owns the addresses.
    unsafe {
        mmap(
            va as *mut c_void,
            len as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            fd,
            offset,
        )
    }
    .map_err(|e| {
        fail(
            acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
            format!("cannot map {len} bytes at {va:#x}: {e}"),
        )
    })?;
    if len >= HUGE_PAGE {
        // SAFETY: the range mapped above. Where the system gives no huge pages to shared memory, small ones do.
        let _ = unsafe { madvise(va as *mut c_void, len as usize, Advice::LinuxHugepage) };
    }
    Ok(())
}

/// Takes the access to `[va, va + len)` away and keeps the addresses reserved.
///
/// # Safety
/// `[va, va + len)` belongs to a reservation of the caller.
pub(crate) unsafe fn close_over(va: u64, len: u64) -> Outcome {
    // SAFETY: the caller owns the addresses.
    unsafe {
        mmap_anonymous(
            va as *mut c_void,
            len as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
        )
    }
    .map(|_| ())
    .map_err(|e| system(&format!("cannot unmap {len} bytes at {va:#x}"), e))
}

/// Poisons fresh memory as the settings say.
///
/// # Safety
/// `[va, va + len)` is mapped for writing and nobody else uses it yet.
pub(crate) unsafe fn poison(va: u64, len: u64, how: Poison) {
    let pieces = if how == Poison::All || len <= POISON_WHOLE {
        [(va, len), (va, 0)]
    } else {
        [(va, POISON_END), (va + len - POISON_END, POISON_END)]
    };
    for (at, bytes) in pieces {
        // SAFETY: inside the caller's range.
        unsafe { std::ptr::write_bytes(at as *mut u8, POISON, bytes as usize) };
    }
}

struct Piece {
    /// Bytes asked for.
    len: u64,
    /// Bytes mapped: whole small pages.
    mapped: u64,
    /// Bytes charged to the device: whole pages of its page size.
    charged: u64,
}

struct Arena {
    name: String,
    base: u64,
    size: u64,
    /// Bytes that may be charged.
    limit: u64,
    fd: OwnedFd,
    /// Where the search for free addresses begins.
    next: u64,
    pieces: BTreeMap<u64, Piece>,
    /// Bytes charged by pieces and by physical memory of `vmm.rs`.
    charged: u64,
    kind: Kind,
    device: i32,
}

impl Arena {
    fn new(name: String, size: u64, limit: u64, kind: Kind, device: i32) -> Outcome<Self> {
        let fd = sealed_memfd(&name, size)?;
        let base = reserve_address_range(size, HUGE_PAGE)?;
        Ok(Self {
            name,
            base,
            size,
            limit,
            fd,
            next: 0,
            pieces: BTreeMap::new(),
            charged: 0,
            kind,
            device,
        })
    }

    fn place(&self, from: u64, mapped: u64, align: u64) -> Option<u64> {
        let mut at = (from + GUARD).next_multiple_of(align);
        while at.checked_add(mapped + GUARD)? <= self.size {
            // The last piece that begins below the end of the candidate: if it does not reach into it, none does.
            match self
                .pieces
                .range(..at + mapped + GUARD)
                .next_back()
                .filter(|(start, piece)| *start + piece.mapped + GUARD > at)
            {
                None => return Some(at),
                Some((start, piece)) => at = (start + piece.mapped + GUARD).next_multiple_of(align),
            }
        }
        None
    }

    fn allocate(&mut self, len: u64, align: u64, page: u64, fill: Fill) -> Outcome<Region> {
        let too_big = || {
            fail(
                acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
                format!(
                    "{} is exhausted: asked {len} bytes, free {} of {}; free memory, or raise NPUSIM_HBM",
                    self.name,
                    self.limit.saturating_sub(self.charged),
                    self.limit
                ),
            )
        };
        let charged = len
            .checked_next_multiple_of(page)
            .filter(|bytes| self.charged.saturating_add(*bytes) <= self.limit)
            .ok_or_else(too_big)?;
        let mapped = len.next_multiple_of(PAGE);
        let at = self
            .place(self.next, mapped, align)
            .or_else(|| self.place(0, mapped, align))
            .ok_or_else(too_big)?;
        let va = self.base + at;
        // SAFETY: the piece lies in this arena's reservation, and `place` found it free.
        unsafe { map_over(va, mapped, &self.fd, at)? };
        if fill == Fill::Poison {
            // SAFETY: mapped just now; nobody knows the address yet.
            unsafe { poison(va, len, config::get()?.poison) };
        }
        // SAFETY: the rest of the last page, mapped just now.
        unsafe { std::ptr::write_bytes((va + len) as *mut u8, SLACK, (mapped - len) as usize) };
        let region = Region {
            va,
            len,
            fd: self.fd.as_raw_fd(),
            offset: at,
            kind: self.kind,
            device: self.device,
            page,
            reserved: false,
        };
        register(region)?;
        self.pieces.insert(
            at,
            Piece {
                len,
                mapped,
                charged,
            },
        );
        self.charged += charged;
        self.next = at + mapped;
        Ok(region)
    }

    fn release(&mut self, at: u64) -> Outcome {
        let va = self.base + at;
        let piece = self
            .pieces
            .remove(&at)
            .ok_or_else(|| invalid(format!("{va:#x} is not the beginning of an allocation")))?;
        self.charged -= piece.charged;
        unregister(va);
        // SAFETY: the rest of the piece's last page; it is mapped until `close_over` below.
        let slack = unsafe {
            std::slice::from_raw_parts(
                (va + piece.len) as *const u8,
                (piece.mapped - piece.len) as usize,
            )
        };
        if let Some(past) = slack.iter().position(|byte| *byte != SLACK) {
            crate::hooks::diagnose(format!(
                "{}: the allocation of {} bytes at {va:#x} was written {past} bytes past its end (noticed when it was freed)",
                self.name, piece.len
            ));
        }
        // SAFETY: the piece lies in this arena's reservation; the caller has given the memory up.
        unsafe { close_over(va, piece.mapped)? };
        // The pages go back to the system, and whoever still has them mapped reads zeros.
        fallocate(
            &self.fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            at,
            piece.mapped,
        )
        .map_err(|e| system("cannot free memory", e))
    }
}

static ARENAS: OnceLock<Mutex<HashMap<i32, Arc<Mutex<Arena>>>>> = OnceLock::new();
/// The key of the host arena.
const HOST: i32 = -1;

fn arenas() -> MutexGuard<'static, HashMap<i32, Arc<Mutex<Arena>>>> {
    ARENAS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn arena(device: i32) -> Outcome<Arc<Mutex<Arena>>> {
    let mut arenas = arenas();
    if let Some(arena) = arenas.get(&device) {
        return Ok(arena.clone());
    }
    let config = config::get()?;
    let arena = if device == HOST {
        Arena::new(
            "npusim host memory".to_owned(),
            HOST_ARENA,
            HOST_ARENA / 2,
            Kind::Host,
            0,
        )?
    } else {
        Arena::new(
            format!("npusim memory of device {device}"),
            config.hbm * ARENA_FACTOR,
            config.hbm,
            Kind::Device,
            device,
        )?
    };
    let arena = Arc::new(Mutex::new(arena));
    arenas.insert(device, arena.clone());
    Ok(arena)
}

/// Allocates memory of a device, as the HCCP agent does for queues and `aclrtMalloc` for everybody. `align` is a power of two.
pub(crate) fn alloc_device(device: i32, len: u64, align: u64, fill: Fill) -> Outcome<Region> {
    alloc_device_pages(device, len, align, PAGE, fill)
}

/// The same with a page size to charge and to report.
pub(crate) fn alloc_device_pages(
    device: i32,
    len: u64,
    align: u64,
    page: u64,
    fill: Fill,
) -> Outcome<Region> {
    if len == 0 || !align.is_power_of_two() {
        return Err(invalid(format!("an allocation of {len} bytes aligned to {align}: a size above 0 and a power of two are wanted")));
    }
    let arena = arena(device)?;
    let mut arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
    arena.allocate(len, align.max(page), page, fill)
}

/// Allocates host memory that the NIC can reach.
pub(crate) fn alloc_host(len: u64) -> Outcome<Region> {
    if len == 0 {
        return Err(invalid("an allocation of 0 bytes"));
    }
    let arena = arena(HOST)?;
    let mut arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
    arena.allocate(len, PAGE, PAGE, Fill::Poison)
}

/// Frees what [`alloc_device`] or [`alloc_host`] returned.
pub(crate) fn free(va: u64) -> Outcome {
    let all: Vec<_> = arenas().values().cloned().collect();
    for arena in all {
        let mut arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
        if (arena.base..arena.base + arena.size).contains(&va) {
            let at = va - arena.base;
            return arena.release(at);
        }
    }
    Err(invalid(format!(
        "{va:#x} was not allocated by this runtime"
    )))
}

/// Charges physical memory of `vmm.rs` to a device.
pub(crate) fn charge(device: i32, bytes: u64) -> Outcome {
    let arena = arena(device)?;
    let mut arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
    let free = arena.limit.saturating_sub(arena.charged);
    if bytes > free {
        return Err(fail(
            acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
            format!("{} is exhausted: asked {bytes} bytes, free {free} of {}; free memory, or raise NPUSIM_HBM", arena.name, arena.limit),
        ));
    }
    arena.charged += bytes;
    Ok(())
}

/// Gives back what [`charge`] took.
pub(crate) fn uncharge(device: i32, bytes: u64) {
    if let Ok(arena) = arena(device) {
        let mut arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
        arena.charged = arena.charged.saturating_sub(bytes);
    }
}

/// Free and total bytes of a device.
pub(crate) fn usage(device: i32) -> Outcome<(u64, u64)> {
    let arena = arena(device)?;
    let arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((arena.limit.saturating_sub(arena.charged), arena.limit))
}

/// The name of the device memory or reservation whose addresses hold `va`, allocated or not.
pub(crate) fn range_of(va: u64) -> Option<String> {
    for arena in arenas().values() {
        let arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
        if (arena.base..arena.base + arena.size).contains(&va) {
            return Some(arena.name.clone());
        }
    }
    crate::vmm::reservation_of(va)
        .map(|(base, size)| format!("the reservation [{base:#x}, {:#x})", base + size))
}

/// Says in words what lies at an address that faulted.
pub(crate) fn describe(va: u64) -> String {
    let (begin, end) = crate::doorbell::range();
    if (begin..end).contains(&va) {
        return "a doorbell page: a plain load or store cannot ring a doorbell, use st_dev or an MTE3 copy of 8 aligned bytes".to_owned();
    }
    if va < PAGE {
        return "a null pointer, or a small offset from one".to_owned();
    }
    if let Some(region) = containing(va) {
        return format!(
            "inside memory [{:#x}, {:#x}) that has no such access",
            region.va,
            region.end()
        );
    }
    let Some(range) = range_of(va) else {
        return "no memory of the emulated NPU".to_owned();
    };
    let near = match neighbours(va) {
        (Some(below), _)
            if va - below.end() < HUGE_PAGE && range_of(below.va).as_ref() == Some(&range) =>
        {
            format!(
                ": {} bytes past the end of an allocation of {} bytes",
                va - below.end(),
                below.len
            )
        }
        (_, Some(above))
            if above.va - va < HUGE_PAGE && range_of(above.va).as_ref() == Some(&range) =>
        {
            format!(
                ": {} bytes before an allocation of {} bytes",
                above.va - va,
                above.len
            )
        }
        _ => String::new(),
    };
    format!("in {range}, but nothing is allocated or mapped there{near}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(va: u64) -> u8 {
        // SAFETY: tests read live allocations only.
        unsafe { (va as *const u8).read() }
    }

    #[test]
    fn fresh_memory_is_poisoned_and_queue_memory_is_zero() {
        let poisoned = alloc_device(3, 5000, 64, Fill::Poison).expect("allocates");
        let zeroed = alloc_device(3, 5000, 64, Fill::Zero).expect("allocates");
        assert_eq!(
            (byte(poisoned.va), byte(poisoned.va + 4999)),
            (POISON, POISON)
        );
        assert_eq!((byte(zeroed.va), byte(zeroed.va + 4999)), (0, 0));
        assert!(
            zeroed.va >= poisoned.end() + GUARD || poisoned.va >= zeroed.end() + GUARD,
            "a guard gap lies between"
        );
        free(poisoned.va).expect("frees");
        free(zeroed.va).expect("frees");
    }

    #[test]
    fn lookup_finds_the_memfd_of_any_part_and_refuses_what_reaches_outside() {
        let region = alloc_device(4, 10_000, PAGE, Fill::Zero).expect("allocates");
        let inner = lookup(region.va + 100, 50).expect("inside");
        assert_eq!(
            (inner.va, inner.len, inner.fd),
            (region.va, 10_000, region.fd)
        );
        assert!(lookup(region.va, 10_001).is_none());
        assert!(lookup(region.va + 9_999, u64::MAX).is_none());
        assert!(lookup(region.va - 1, 1).is_none());
        free(region.va).expect("frees");
        assert!(lookup(region.va, 1).is_none());
    }

    #[test]
    fn freed_addresses_are_not_reused_at_once_and_a_second_free_is_refused() {
        let first = alloc_device(5, 4096, PAGE, Fill::Zero).expect("allocates");
        free(first.va).expect("frees");
        let second = alloc_device(5, 4096, PAGE, Fill::Zero).expect("allocates");
        assert_ne!(first.va, second.va);
        assert!(free(first.va).is_err());
        assert!(
            describe(first.va).contains("nothing is allocated"),
            "{}",
            describe(first.va)
        );
        free(second.va).expect("frees");
    }

    #[test]
    fn an_allocation_that_does_not_fit_says_what_is_free() {
        let fail = alloc_device(6, 1 << 41, PAGE, Fill::Zero).expect_err("too big");
        assert_eq!(fail.code, acl::ACL_ERROR_RT_MEMORY_ALLOCATION);
        assert!(
            fail.text.contains("NPUSIM_HBM") && fail.text.contains("free"),
            "{}",
            fail.text
        );
    }

    #[test]
    fn a_write_past_the_end_is_told_when_the_memory_is_freed() {
        let region = alloc_device(7, 100, 64, Fill::Poison).expect("allocates");
        // SAFETY: the page of the allocation is mapped whole; this is the very mistake that is looked for.
        unsafe { ((region.va + 103) as *mut u8).write(1) };
        free(region.va).expect("frees");
        assert!(crate::hooks::diagnostics()
            .iter()
            .any(|line| line.contains("written 3 bytes past its end")));
    }
}
