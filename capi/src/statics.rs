//! Symmetric static data: the executable's writable segment, moved onto memory that peers can map (OpenSHMEM 1.6, section 4: global and
//! static variables of the program are symmetric).
//!
//! The move happens in the library's ELF constructor, before the program has threads: from the end of RELRO to the end of the segment, so that
//! access stays a plain load and store. Only an executable that itself names this library in DT_NEEDED is touched (an interpreter that loads
//! the library later keeps its memory). A child of fork gets a private copy. Not here: mapping the peers' (window.rs).

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use crate::state::Segment;

/// Libraries whose users get symmetric static data.
const OUR_NAMES: [&str; 2] = ["libnpushmem.so", "libsma.so"];

static BASE: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);
static FD: AtomicI32 = AtomicI32::new(-1);
/// Fingerprint of the executable: its build id, else its layout.
static BUILD: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// The snapshot that a fork in progress has taken.
static SNAPSHOT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Where this process's symmetric static data is; empty when there is none.
pub(crate) fn segment() -> Segment {
    Segment {
        base: BASE.load(Ordering::Acquire),
        len: LEN.load(Ordering::Acquire),
    }
}

/// The descriptor behind [`segment`]; -1: none.
pub(crate) fn descriptor() -> c_int {
    FD.load(Ordering::Acquire)
}

/// What must be equal on PEs that share static data.
pub(crate) fn build() -> [u64; 2] {
    [
        BUILD[0].load(Ordering::Acquire) as u64,
        BUILD[1].load(Ordering::Acquire) as u64,
    ]
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    let mut found: Option<Executable> = None;
    // SAFETY: the callback gets a pointer to `found`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first_object), (&raw mut found).cast()) };
    let Some(executable) = found else { return };
    if executable.ours {
        // Where it fails, the program has a heap but no symmetric static data; init tells.
        let _ = remap(&executable);
    }
}

/// What the program headers of the executable say.
#[derive(Clone, Copy)]
struct Executable {
    /// It names this library itself.
    ours: bool,
    /// Writable data after RELRO, in whole pages.
    data: Segment,
    build: [u64; 2],
}

/// `dl_iterate_phdr` gives the executable first; the walk ends there.
unsafe extern "C" fn first_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `info` is the loader's; `data` is the caller's Option.
    let (info, found) = unsafe { (&*info, &mut *data.cast::<Option<Executable>>()) };
    *found = Some(describe(info));
    1
}

fn describe(info: &libc::dl_phdr_info) -> Executable {
    let page = page_size();
    let base = info.dlpi_addr as usize;
    // SAFETY: the loader's table of `dlpi_phnum` program headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let (mut from, mut to) = (usize::MAX, 0);
    let mut relro_end = 0;
    let mut ours = false;
    let mut build = [0u64; 2];
    for header in headers {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_memsz as usize);
        match header.p_type {
            libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => {
                from = from.min(start);
                to = to.max(end);
            }
            libc::PT_GNU_RELRO => relro_end = end,
            // SAFETY: a mapped part of the executable.
            libc::PT_DYNAMIC => ours = unsafe { needs_us(start, base) },
            libc::PT_NOTE => {
                // SAFETY: a mapped part of the executable.
                if let Some(id) = unsafe { build_id(start, end) } {
                    build = id;
                }
            }
            _ => {}
        }
    }
    // The loader protects RELRO up to a page's beginning.
    let from = (from & !(page - 1)).max(relro_end & !(page - 1));
    let to = to.next_multiple_of(page);
    let data = Segment {
        base: from,
        len: to.saturating_sub(from),
    };
    if build == [0; 2] {
        build = [from.wrapping_sub(base) as u64, to.wrapping_sub(base) as u64];
    }
    Executable { ours, data, build }
}

/// Whether the dynamic section at `at` names this library.
///
/// # Safety
/// `at` is the dynamic section of a loaded object whose load address is `base`.
unsafe fn needs_us(at: usize, base: usize) -> bool {
    const DT_NULL: u64 = 0;
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    let entries = at as *const [u64; 2];
    let table = (0..)
        // SAFETY: the section ends with DT_NULL.
        .map(|i| unsafe { *entries.add(i) })
        .take_while(|[tag, _]| *tag != DT_NULL);
    let Some([_, strings]) = table.clone().find(|[tag, _]| *tag == DT_STRTAB) else {
        return false;
    };
    // glibc has added the load address; other loaders (musl) have not.
    let strings = if (strings as usize) < base {
        base + strings as usize
    } else {
        strings as usize
    };
    let found = table.filter(|[tag, _]| *tag == DT_NEEDED).any(|[_, name]| {
        // SAFETY: an entry of the loaded string table.
        let name = unsafe { CStr::from_ptr((strings + name as usize) as *const c_char) };
        name.to_str().is_ok_and(|name| {
            let name = name.rsplit('/').next().unwrap_or(name);
            OUR_NAMES.iter().any(|ours| name.starts_with(ours))
        })
    });
    found
}

/// The first 16 bytes of the build id in the notes at `[from, to)`.
///
/// # Safety
/// The range is the mapped note segment of a loaded object.
unsafe fn build_id(from: usize, to: usize) -> Option<[u64; 2]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    const HEADER: usize = 12;
    let mut at = from;
    while at + HEADER <= to {
        // SAFETY: inside the segment.
        let [name_len, len, kind] = unsafe { *(at as *const [u32; 3]) };
        let name = at + HEADER;
        let body = name + (name_len as usize).next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && len >= 16 && body + 16 <= to {
            // SAFETY: inside the segment; notes are aligned to 4 bytes only.
            return Some(unsafe { (body as *const [u64; 2]).read_unaligned() });
        }
        at = body + (len as usize).next_multiple_of(4);
    }
    None
}

fn page_size() -> usize {
    // SAFETY: a query without side effects.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Calls `copy` with each maximal run of resident pages in the segment: pages never touched are zero in both places.
fn resident_runs(data: Segment, mut copy: impl FnMut(usize, usize) -> bool) -> bool {
    /// Pages asked about at once.
    const BATCH: usize = 4096;
    let page = page_size();
    let mut states = [0u8; BATCH];
    let mut at = data.base;
    let end = data.base + data.len;
    while at < end {
        let pages = ((end - at) / page).min(BATCH);
        // SAFETY: the range is mapped, the vector has a byte for each of its pages.
        let known =
            unsafe { libc::mincore(at as *mut c_void, pages * page, states.as_mut_ptr().cast()) }
                == 0;
        let mut i = 0;
        while i < pages {
            let run = states[i..pages]
                .iter()
                .take_while(|state| !known || **state & 1 != 0)
                .count();
            if run > 0 && !copy(at + i * page, run * page) {
                return false;
            }
            i += run.max(1);
        }
        at += pages * page;
    }
    true
}

fn remap(executable: &Executable) -> Option<()> {
    let data = executable.data;
    if data.len == 0 {
        return None;
    }
    // SAFETY: system calls on memory of our own making; the segment is replaced by a copy of itself while no other thread exists.
    unsafe {
        let fd = libc::memfd_create(c"shmem static data".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let written = libc::ftruncate(fd, data.len as libc::off_t) == 0
            && resident_runs(data, |at, len| {
                write_all(fd, at, len, at - data.base).is_some()
            });
        if !written {
            libc::close(fd);
            return None;
        }
        let mapped = libc::mmap(
            data.base as *mut c_void,
            data.len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
            fd,
            0,
        );
        if mapped == libc::MAP_FAILED {
            libc::close(fd);
            return None;
        }
        FD.store(fd, Ordering::Release);
        libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
    }
    for (to, from) in BUILD.iter().zip(executable.build) {
        to.store(from as usize, Ordering::Release);
    }
    BASE.store(data.base, Ordering::Release);
    LEN.store(data.len, Ordering::Release);
    Some(())
}

/// # Safety
/// `[at, at + len)` is readable.
unsafe fn write_all(fd: c_int, at: usize, len: usize, offset: usize) -> Option<()> {
    let mut done = 0;
    while done < len {
        // SAFETY: by this function's contract.
        let n = unsafe {
            libc::pwrite(
                fd,
                (at + done) as *const c_void,
                len - done,
                (offset + done) as libc::off_t,
            )
        };
        done += usize::try_from(n).ok().filter(|n| *n > 0)?;
    }
    Some(())
}

/// fork: the child must not write into its parent's symmetric data, so it gets what is there now.
extern "C" fn before_fork() {
    let data = segment();
    // SAFETY: a fresh mapping of the segment's size, filled from the segment, page by page where something is.
    unsafe {
        let copy = libc::mmap(
            std::ptr::null_mut(),
            data.len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if copy == libc::MAP_FAILED {
            return;
        }
        resident_runs(data, |at, len| {
            let to = copy.cast::<u8>().add(at - data.base);
            std::ptr::copy_nonoverlapping(at as *const u8, to, len);
            true
        });
        SNAPSHOT.store(copy, Ordering::Release);
    }
}

extern "C" fn in_parent() {
    let copy = SNAPSHOT.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !copy.is_null() {
        // SAFETY: the snapshot of before_fork, which nobody else knows.
        unsafe { libc::munmap(copy, segment().len) };
    }
}

extern "C" fn in_child() {
    let copy = SNAPSHOT.swap(std::ptr::null_mut(), Ordering::AcqRel);
    let data = segment();
    if !copy.is_null() {
        // SAFETY: the child's only thread moves its snapshot over the shared segment.
        unsafe {
            libc::mremap(
                copy,
                data.len,
                data.len,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                data.base as *mut c_void,
            )
        };
    }
}
