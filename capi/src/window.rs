//! Where peers' symmetric memory is mapped: so that one distance a PE serves both its heap and its static data.
//!
//! This PE's static data is where the loader put it, so the heap goes to a place of our choice, and PE i's memory of both kinds to that of this
//! PE plus the same distance. A put is then one addition, without asking which kind of object it is for. Not here: who the peers are
//! (setup.rs). Used once, by init.

use std::ffi::c_void;

use crate::state::Segment;

/// What each PE tells the others about its static data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticRecord {
    /// Process number.
    pub(crate) pid: u32,
    /// Descriptor of its static data there; -1: none.
    pub(crate) fd: i32,
    /// Inode behind the descriptor.
    pub(crate) inode: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Fingerprint of the executable.
    pub(crate) build: [u64; 2],
}

impl StaticRecord {
    /// Bytes of a record on the wire.
    pub(crate) const BYTES: usize = 40;

    /// As sent.
    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.fd.to_le_bytes());
        let words = [self.inode, self.len, self.build[0], self.build[1]];
        for (to, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// As received; `None`: not such a record.
    pub(crate) fn decode(bytes: &[u8]) -> Option<StaticRecord> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let half = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let word = |at: usize| {
            u64::from(u32::from_le_bytes(half(at)))
                | u64::from(u32::from_le_bytes(half(at + 4))) << 32
        };
        Some(StaticRecord {
            pid: u32::from_le_bytes(half(0)),
            fd: i32::from_le_bytes(half(4)),
            inode: word(8),
            len: word(16),
            build: [word(24), word(32)],
        })
    }

    /// This process's own.
    pub(crate) fn own() -> StaticRecord {
        let fd = crate::statics::descriptor();
        StaticRecord {
            pid: std::process::id(),
            fd,
            inode: inode(fd).unwrap_or(0),
            len: crate::statics::segment().len as u64,
            build: crate::statics::build(),
        }
    }

    /// Whether static data of the two can stand for one another.
    fn fits(&self, other: &StaticRecord) -> bool {
        self.fd >= 0 && other.fd >= 0 && self.len == other.len && self.build == other.build
    }
}

fn inode(fd: i32) -> Option<u64> {
    // SAFETY: fstat fills the structure or fails.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (fd >= 0 && libc::fstat(fd, &raw mut stat) == 0).then_some(stat.st_ino)
    }
}

/// The finished layout.
pub(crate) struct Window {
    /// Address of the heap as the program sees it.
    pub(crate) heap: Segment,
    /// Static data that is symmetric; empty: none.
    pub(crate) statics: Segment,
    /// By PE.
    pub(crate) delta: Box<[isize]>,
    /// All addresses that this layout holds: first, bytes.
    pub(crate) spans: Vec<(usize, usize)>,
    /// Where each PE's heap is mapped: first address, bytes.
    pub(crate) heaps: Vec<(usize, usize)>,
    /// Peers whose static data cannot be reached, and why.
    pub(crate) unreachable: Vec<(usize, String)>,
}

/// Places for the own heap: between an executable's data and where the kernel maps by itself, on x86-64 and AArch64 with 47 or 48 bits.
const HEAP_PLACES: [usize; 4] = [0x2000 << 32, 0x3000 << 32, 0x1200 << 32, 0x4000 << 32];
/// Distances to the first peer: further than an executable's own heap (brk) grows.
const FIRST_DISTANCES: [usize; 3] = [1 << 40, 1 << 42, 1 << 38];
/// Unit of distances, bytes: a huge page.
const HUGE: usize = 2 << 20;

/// Lays out this process's view. `heaps`: by PE, where its heap is mapped already (each `heap_len` bytes of shared memory).
pub(crate) fn build(
    me: usize,
    heaps: &[usize],
    heap_len: usize,
    records: &[Option<StaticRecord>],
) -> Result<Window, String> {
    let n = heaps.len();
    let mut statics = crate::statics::segment();
    let others = n - 1;
    // A gap without access between neighbours catches what runs over an end.
    let stride = heap_len.max(statics.len).next_multiple_of(HUGE) + HUGE;
    let span = stride
        .checked_mul(others)
        .ok_or_else(|| format!("{n} heaps of {heap_len} bytes are more than the address space"))?;
    let mut places = reserve(statics, heap_len, span);
    if places.is_none() && statics.len > 0 {
        statics = Segment::default();
        places = reserve(statics, heap_len, span);
    }
    let Some(Places {
        heap: heap_at,
        first,
        spans,
    }) = places
    else {
        return Err(format!(
            "no room in this process's address space for {n} heaps of {heap_len} bytes; lower SHMEM_SYMMETRIC_SIZE"
        ));
    };
    let mut delta = vec![0isize; n];
    let mut mapped_heaps = Vec::with_capacity(n);
    let mut unreachable = Vec::new();
    if statics.len == 0 && crate::statics::segment().len > 0 {
        unreachable.push((me, "no place in the address space".to_string()));
    }
    let own = records.get(me).copied().flatten();
    let mut index = 0;
    for pe in 0..n {
        let distance = if pe == me {
            0
        } else {
            index += 1;
            first + (index - 1) * stride
        };
        delta[pe] = distance as isize;
        // SAFETY: the target was reserved by `reserve` and is nobody else's; a length of 0 duplicates the shared mapping.
        let at = unsafe {
            libc::mremap(
                heaps[pe] as *mut c_void,
                0,
                heap_len,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                (heap_at + distance) as *mut c_void,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(format!(
                "PE {pe}'s heap cannot be mapped: {}",
                std::io::Error::last_os_error()
            ));
        }
        mapped_heaps.push((heap_at + distance, heap_len));
        if pe == me || statics.len == 0 {
            continue;
        }
        let mapped = match (own, records[pe]) {
            (Some(own), Some(theirs)) if own.fits(&theirs) => {
                map_statics(&theirs, statics.base + distance)
            }
            _ => Err("it runs another executable, or has no symmetric static data".to_string()),
        };
        if let Err(reason) = mapped {
            unreachable.push((pe, reason));
        }
    }
    Ok(Window {
        heap: Segment {
            base: heap_at,
            len: heap_len,
        },
        statics,
        delta: delta.into(),
        spans,
        heaps: mapped_heaps,
        unreachable,
    })
}

/// Tells the kernel that huge pages are welcome in these mappings. Whoever touches a page first decides, so this is for every PE's heap.
pub(crate) fn ask_for_huge_pages(heaps: &[(usize, usize)]) {
    for (at, len) in heaps {
        // SAFETY: advice about mappings that `build` made; refusing it changes nothing.
        unsafe { libc::madvise(*at as *mut c_void, *len, libc::MADV_HUGEPAGE) };
    }
}

/// What [`reserve`] found.
struct Places {
    /// Address of the own heap.
    heap: usize,
    /// Distance of the first peer.
    first: usize,
    /// All that was reserved: first address, bytes.
    spans: Vec<(usize, usize)>,
}

/// Finds the own heap's place and the first distance, and reserves all that is needed.
fn reserve(statics: Segment, heap_len: usize, span: usize) -> Option<Places> {
    for heap in HEAP_PLACES {
        if !claim(heap, heap_len) {
            continue;
        }
        for first in FIRST_DISTANCES {
            let mut spans = vec![(heap, heap_len)];
            if span == 0 {
                return Some(Places { heap, first, spans });
            }
            if !claim(heap + first, span) {
                continue;
            }
            spans.push((heap + first, span));
            if statics.len == 0 {
                return Some(Places { heap, first, spans });
            }
            if claim(statics.base + first, span) {
                spans.push((statics.base + first, span));
                return Some(Places { heap, first, spans });
            }
            release(heap + first, span);
        }
        release(heap, heap_len);
    }
    if statics.len > 0 {
        return None;
    }
    // Anywhere: the own heap, then the others.
    let own = heap_len.next_multiple_of(HUGE) + HUGE;
    let whole = own + span + HUGE;
    // SAFETY: a fresh reservation.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            whole,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (at != libc::MAP_FAILED).then(|| Places {
        heap: (at as usize).next_multiple_of(HUGE),
        first: own,
        spans: vec![(at as usize, whole)],
    })
}

/// Reserves addresses, if they are free.
fn claim(at: usize, len: usize) -> bool {
    // SAFETY: NOREPLACE leaves alone what is mapped there.
    let got = unsafe {
        libc::mmap(
            at as *mut c_void,
            len,
            libc::PROT_NONE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if got != libc::MAP_FAILED && got as usize != at {
        // A kernel that does not know the flag took the address for a wish.
        release(got as usize, len);
        return false;
    }
    got != libc::MAP_FAILED
}

fn release(at: usize, len: usize) {
    // SAFETY: a reservation that `claim` has just made.
    unsafe { libc::munmap(at as *mut c_void, len) };
}

/// Maps a peer's static data at `at`.
fn map_statics(theirs: &StaticRecord, at: usize) -> Result<(), String> {
    let path = format!("/proc/{}/fd/{}\0", theirs.pid, theirs.fd);
    // SAFETY: plain system calls; the mapping goes to addresses that `reserve` holds.
    unsafe {
        let fd = libc::open(path.as_ptr().cast(), libc::O_RDWR | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(format!(
                "process {} cannot be opened ({}): another PID namespace, or not dumpable?",
                theirs.pid,
                std::io::Error::last_os_error()
            ));
        }
        let got = if inode(fd) == Some(theirs.inode) {
            libc::mmap(
                at as *mut c_void,
                theirs.len as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                fd,
                0,
            )
        } else {
            libc::MAP_FAILED
        };
        libc::close(fd);
        if got == libc::MAP_FAILED {
            return Err(format!(
                "its static data cannot be mapped: {}",
                std::io::Error::last_os_error()
            ));
        }
    }
    Ok(())
}

/// After finalize: gives the addresses back, so that a later init finds the same places free.
pub(crate) fn drop_all(spans: &[(usize, usize)]) {
    for (at, len) in spans {
        release(*at, *len);
    }
}
