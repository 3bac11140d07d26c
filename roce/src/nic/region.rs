//! Memory that the NIC can reach: mappings of memfds, and the regions registered in them.
//!
//! The NIC never uses the addresses that kernels use. It maps the memory of each region itself, its own process's and its peers'
//! alike, as hardware pins pages: a kernel's unmapping, or a peer's death, cannot make it fault.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};

use super::error::NicError;
use super::timing::Place;
use super::types::MrInit;
use crate::verbs;

/// A shared mapping of part of a file.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// Where the part begins in the mapping: a file is mapped from a page boundary.
    lead: usize,
}

// SAFETY: the mapping is plain shared memory, valid on every thread until it is dropped; accesses go through raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes (not 0) from `offset`, readable and writable.
    pub(super) fn new(file: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Mapping, NicError> {
        let page = rustix::param::page_size();
        let lead = (offset % page as u64) as usize;
        let total = len + lead;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                total,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                file,
                offset - lead as u64,
            )
        };
        let address = address.map_err(NicError::system("mmap"))?;
        let start = NonNull::new(address.cast()).ok_or(NicError::System {
            call: "mmap",
            source: io::Error::other("null address"),
        })?;
        Ok(Mapping {
            start,
            len: total,
            lead,
        })
    }

    /// Address of the part's first byte.
    pub(super) fn base(&self) -> *mut u8 {
        // SAFETY: `lead` is less than the mapping's length.
        unsafe { self.start.as_ptr().add(self.lead) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing can refer to it any more. A failure would leave address space behind.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A registered region, mapped.
#[derive(Debug)]
pub(super) struct Region {
    pub key: u32,
    pub access: u32,
    va: u64,
    len: u64,
    /// What the host's NIC knows of it, with the verbs wire. Dropped before the mapping.
    wire: Mutex<Option<verbs::Region>>,
    mapping: Mapping,
    /// Where the region begins in its file.
    place: Place,
}

impl Region {
    pub(super) fn new(
        key: u32,
        access: u32,
        va: u64,
        len: u64,
        mapping: Mapping,
        place: Place,
    ) -> Region {
        Region {
            wire: Mutex::new(None),
            key,
            access,
            va,
            len,
            mapping,
            place,
        }
    }

    /// Where a byte that [`Region::translate`] accepted is in its file.
    #[inline]
    pub(super) fn place(&self, va: u64) -> Place {
        Place {
            inode: self.place.inode,
            offset: self.place.offset + (va - self.va),
        }
    }

    /// Registers it with the host's NIC too; the key for peers.
    pub(super) fn register(
        &self,
        device: &std::sync::Arc<verbs::Device>,
    ) -> Result<u32, verbs::VerbsError> {
        let (at, access) = (self.mapping.base(), self.access);
        // SAFETY: the mapping is this region's own; `wire` is dropped before it.
        let region = unsafe { device.register(at, self.len, self.va, access) }?;
        let rkey = region.rkey();
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner) = Some(region);
        Ok(rkey)
    }

    /// Ends the registration with the host's NIC, though requests may still hold the mapping.
    pub(super) fn deregister(&self) {
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        *wire = None;
    }

    /// The host's NIC's key for own requests.
    pub(super) fn wire_key(&self) -> Option<u32> {
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        wire.as_ref().map(verbs::Region::lkey)
    }

    /// Bytes of the region.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Where the NIC finds the bytes `va..va + len`, if all lie in the region.
    #[inline]
    pub(super) fn translate(&self, va: u64, len: u64) -> Option<*mut u8> {
        let offset = va.checked_sub(self.va)?;
        if offset > self.len || len > self.len - offset {
            return None;
        }
        // SAFETY: the mapping has `self.len` bytes from its base on.
        Some(unsafe { self.mapping.base().add(offset as usize) })
    }
}

/// Refuses memory that peers could not map, or that could vanish under them; its inode if it is fit.
pub(super) fn check_backing(mr: &MrInit) -> Result<u64, NicError> {
    let refuse = |why: String| NicError::Backing {
        va: mr.va,
        len: mr.len,
        fd: mr.backing.fd,
        offset: mr.backing.offset,
        why,
    };
    if mr.backing.fd < 0 {
        return Err(refuse("the descriptor is negative".to_owned()));
    }
    // SAFETY: the descriptor is open for the time of the call by the contract of `Backing`; if it is not, the calls report it.
    let file = unsafe { BorrowedFd::borrow_raw(mr.backing.fd) };
    check_file(file, mr.backing.offset, mr.len).map_err(refuse)
}

/// The inode of a file that holds `len` bytes from `offset` on, for good; else what is wrong with it.
pub(super) fn check_file(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<u64, String> {
    let stat = rustix::fs::fstat(file).map_err(|errno| io::Error::from(errno).to_string())?;
    let seals = rustix::fs::fcntl_get_seals(file)
        .map_err(|_| "it is not a memfd made with MFD_ALLOW_SEALING".to_owned())?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(
            "it can shrink, and a peer that writes would fault; add F_SEAL_SHRINK".to_owned(),
        );
    }
    let size = stat.st_size as u64;
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(stat.st_ino),
        _ => Err(format!("the file has only {size:#x} bytes")),
    }
}

/// A memfd of `len` bytes, sealed against any change of its size.
pub(super) fn sealed_memfd(name: &str, len: u64) -> Result<OwnedFd, NicError> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags).map_err(NicError::system("memfd_create"))?;
    rustix::fs::ftruncate(&file, len).map_err(NicError::system("ftruncate"))?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).map_err(NicError::system("fcntl(F_ADD_SEALS)"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use super::super::types::{access, Backing};
    use super::*;

    fn region(va: u64, len: u64) -> Region {
        let file = sealed_memfd("npushmem-test", 1 << 16).unwrap();
        Region::new(
            1,
            access::ALL,
            va,
            len,
            Mapping::new(file.as_fd(), 0, len as usize).unwrap(),
            Place {
                inode: 1,
                offset: 0x40,
            },
        )
    }

    #[test]
    fn only_ranges_inside_the_region_are_translated() {
        let region = region(0x1000, 0x100);
        let base = region.translate(0x1000, 0x100).unwrap();
        assert_eq!(
            region.translate(0x10ff, 1).unwrap() as usize,
            base as usize + 0xff
        );
        assert_eq!(region.place(0x1010).offset, 0x50);
        assert!(region.translate(0x1100, 0).is_some());
        assert!(region.translate(0x1100, 1).is_none());
        assert!(region.translate(0x0fff, 1).is_none());
        assert!(region.translate(0x1001, 0x100).is_none());
        assert!(region.translate(0x1001, u64::MAX).is_none());
        assert!(region.translate(u64::MAX, 2).is_none());
    }

    #[test]
    fn a_mapping_begins_at_its_offset_even_inside_a_page() {
        let file = sealed_memfd("npushmem-test", 1 << 16).unwrap();
        let whole = Mapping::new(file.as_fd(), 0, 1 << 16).unwrap();
        let part = Mapping::new(file.as_fd(), 0x1238, 8).unwrap();
        // SAFETY: both mappings cover these bytes.
        unsafe {
            part.base().write(7);
            assert_eq!(whole.base().add(0x1238).read(), 7);
        }
    }

    #[test]
    fn memory_that_can_shrink_or_is_too_short_is_refused() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
        let open = rustix::fs::memfd_create("npushmem-test", flags).unwrap();
        rustix::fs::ftruncate(&open, 4096).unwrap();
        let mr = |fd: i32, offset, len| MrInit {
            va: 0x1000,
            len,
            access: 7,
            backing: Backing { fd, offset },
        };
        let why = |mr| check_backing(&mr).unwrap_err().to_string();
        assert!(why(mr(open.as_raw_fd(), 0, 4096)).contains("F_SEAL_SHRINK"));
        let sealed = sealed_memfd("npushmem-test", 4096).unwrap();
        assert!(check_backing(&mr(sealed.as_raw_fd(), 0, 4096)).is_ok());
        assert!(why(mr(sealed.as_raw_fd(), 8, 4096)).contains("only 0x1000 bytes"));
        assert!(why(mr(sealed.as_raw_fd(), u64::MAX, 4096)).contains("only 0x1000 bytes"));
        assert!(why(mr(-1, 0, 4096)).contains("negative"));
    }
}
