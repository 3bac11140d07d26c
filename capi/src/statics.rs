//! Symmetric static data: the executable's writable segment, moved onto memory that peers can map (OpenSHMEM 1.6, section 4: global and
//! static variables of the program are symmetric).
//!
//! The move happens in the library's ELF constructor, before the program has threads: from the end of RELRO to the end of the last writable
//! segment (large static data, `-mcmodel=medium`, has segments of its own), so that access stays a plain load and store. Only an executable
//! that itself names this library in DT_NEEDED is touched (an interpreter that loads the library later keeps its memory). A child of fork gets
//! a private copy. Not here: mapping the peers' (window.rs).

use std::ffi::{c_char, c_int, c_void, CStr};
use std::os::fd::FromRawFd as _;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use crate::state::Segment;

/// Libraries whose users get symmetric static data.
const OUR_NAMES: [&str; 2] = ["libnpushmem.so", "libsma.so"];

static BASE: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);
static FD: AtomicI32 = AtomicI32::new(-1);
/// Fingerprint of the executable: its build id, else its layout.
static BUILD: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Most writable segments of an executable; linkers make one, or two with large data.
const MOST_PARTS: usize = 4;
/// The mapped parts of the segment, first address and bytes; what lies between is nobody's.
static PARTS: [[AtomicUsize; 2]; MOST_PARTS] =
    [const { [const { AtomicUsize::new(0) }; 2] }; MOST_PARTS];
/// Why there is none in a program that should have it: a [`Step`], and the system's error.
static PROBLEM: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];
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

/// Why this program, which names the library, has no symmetric static data; `None`: it has, or need not.
pub(crate) fn problem() -> Option<String> {
    let step = match PROBLEM[0].load(Ordering::Acquire) {
        0 => return None,
        1 => "its writable segments are too many",
        2 => "memfd_create",
        3 => "the data cannot be copied",
        _ => "the data cannot be mapped",
    };
    let reason = match PROBLEM[1].load(Ordering::Acquire) {
        0 => String::new(),
        error => format!(": {}", std::io::Error::from_raw_os_error(error)),
    };
    Some(format!("{step}{reason}"))
}

/// What may fail, in the order of [`problem`].
#[derive(Clone, Copy)]
enum Step {
    Parts = 1,
    File,
    Copy,
    Map,
}

/// Notes why there is no symmetric static data.
fn refuse(step: Step) {
    let error = match step {
        Step::Parts => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
    };
    PROBLEM[1].store(error, Ordering::Release);
    PROBLEM[0].store(step as i32, Ordering::Release);
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
        if let Err(step) = remap(&executable) {
            refuse(step);
        }
    }
}

/// What the program headers of the executable say.
#[derive(Clone, Copy)]
struct Executable {
    /// It names this library itself.
    ours: bool,
    /// Writable data after RELRO, in whole pages: from the first part to the last.
    data: Segment,
    /// What of it is mapped; the first [`Executable::parts_used`] count.
    parts: [Part; MOST_PARTS],
    /// Writable segments, also beyond [`MOST_PARTS`].
    parts_used: usize,
    build: [u64; 2],
}

/// A writable segment after RELRO, in whole pages.
#[derive(Clone, Copy, Default)]
struct Part {
    at: Segment,
    /// Bytes at its beginning that come from the executable's file; the others are zero until they are written.
    from_file: usize,
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
    let mut parts = [Part::default(); MOST_PARTS];
    let mut parts_used = 0;
    let mut relro_end = 0;
    let mut ours = false;
    let mut build = [0u64; 2];
    for header in headers {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_memsz as usize);
        match header.p_type {
            libc::PT_LOAD if header.p_flags & libc::PF_W != 0 => {
                let first = start & !(page - 1);
                let file_end = (start + header.p_filesz as usize).next_multiple_of(page);
                if let Some(part) = parts.get_mut(parts_used) {
                    *part = Part {
                        at: Segment {
                            base: first,
                            len: end.next_multiple_of(page) - first,
                        },
                        from_file: file_end - first,
                    };
                }
                parts_used += 1;
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
    // The loader protects RELRO up to a page's beginning. Segments come in the order of their addresses (ELF), and may share a page.
    let mut after = relro_end & !(page - 1);
    for part in parts.iter_mut().take(parts_used) {
        let cut = after.saturating_sub(part.at.base).min(part.at.len);
        part.at.base += cut;
        part.at.len -= cut;
        part.from_file = part.from_file.saturating_sub(cut);
        after = part.at.base + part.at.len;
    }
    let from = parts[0].at.base;
    let to = parts[parts_used.clamp(1, MOST_PARTS) - 1].at;
    let data = Segment {
        base: from,
        len: (to.base + to.len).saturating_sub(from),
    };
    if build == [0; 2] {
        build = [from.wrapping_sub(base) as u64, data.len as u64];
    }
    Executable {
        ours,
        data,
        parts,
        parts_used,
        build,
    }
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

/// Calls `copy` with each run of pages that may hold something else than zeros: all that come from the executable's file, and those that were
/// written to since.
fn written_runs(part: &Part, mut copy: impl FnMut(usize, usize) -> bool) -> bool {
    /// Pages asked about at once.
    const BATCH: usize = 4096;
    /// pagemap(5): the page is in memory, or swapped out.
    const THERE: u64 = 0b11 << 62;
    if part.from_file > 0 && !copy(part.at.base, part.from_file) {
        return false;
    }
    let page = page_size();
    let map = std::fs::File::open("/proc/self/pagemap").ok();
    let mut entries = [0u64; BATCH];
    let mut at = part.at.base + part.from_file;
    let end = part.at.base + part.at.len;
    while at < end {
        let pages = ((end - at) / page).min(BATCH);
        // SAFETY: any bytes are numbers.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(entries.as_mut_ptr().cast::<u8>(), pages * 8) };
        let known = map.as_ref().is_some_and(|map| {
            std::os::unix::fs::FileExt::read_exact_at(map, bytes, (at / page * 8) as u64).is_ok()
        });
        let may_hold = |i: usize| match known {
            true => entries[i] & THERE != 0,
            // SAFETY: a page of the segment.
            false => unsafe { !is_zero(at + i * page, page) },
        };
        let mut i = 0;
        while i < pages {
            let run = (i..pages).take_while(|i| may_hold(*i)).count();
            if run > 0 && !copy(at + i * page, run * page) {
                return false;
            }
            i += run.max(1);
        }
        at += pages * page;
    }
    true
}

/// Whether `len` bytes at `at` are all zero.
///
/// # Safety
/// They are readable.
unsafe fn is_zero(at: usize, len: usize) -> bool {
    // SAFETY: by this function's contract; whole pages.
    let words = unsafe { std::slice::from_raw_parts(at as *const u64, len / 8) };
    words.iter().all(|word| *word == 0)
}

fn remap(executable: &Executable) -> Result<(), Step> {
    let data = executable.data;
    if data.len == 0 {
        return Ok(());
    }
    let Some(parts) = executable.parts.get(..executable.parts_used) else {
        return Err(Step::Parts);
    };
    // SAFETY: system calls on memory of our own making; each part is replaced by a copy of itself while no other thread exists.
    unsafe {
        let fd = libc::memfd_create(c"shmem static data".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(Step::File);
        }
        // Closed where something fails.
        let owner = std::os::fd::OwnedFd::from_raw_fd(fd);
        let written = libc::ftruncate(fd, data.len as libc::off_t) == 0
            && parts.iter().all(|part| {
                written_runs(part, |at, len| {
                    write_all(fd, at, len, at - data.base).is_some()
                })
            });
        if !written {
            return Err(Step::Copy);
        }
        for (part, known) in parts.iter().zip(&PARTS) {
            let mapped = libc::mmap(
                part.at.base as *mut c_void,
                part.at.len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                fd,
                (part.at.base - data.base) as libc::off_t,
            );
            // A part that was mapped before stays: it holds the same, and nobody else knows the file.
            if mapped == libc::MAP_FAILED {
                return Err(Step::Map);
            }
            known[0].store(part.at.base, Ordering::Release);
            known[1].store(part.at.len, Ordering::Release);
        }
        std::mem::forget(owner);
        FD.store(fd, Ordering::Release);
        libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
    }
    for (to, from) in BUILD.iter().zip(executable.build) {
        to.store(from as usize, Ordering::Release);
    }
    BASE.store(data.base, Ordering::Release);
    LEN.store(data.len, Ordering::Release);
    Ok(())
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

/// Calls `copy` with each run of the segment that the file holds something of, also what other PEs have put there, and what is swapped out.
fn held_runs(data: Segment, mut copy: impl FnMut(usize, usize)) {
    let (fd, mut at) = (descriptor(), 0);
    while at < data.len {
        // SAFETY: the offset of this process's own descriptor, which nothing else reads.
        let (from, to) = unsafe {
            let from = libc::lseek(fd, at as libc::off_t, libc::SEEK_DATA);
            (from, libc::lseek(fd, from.max(0), libc::SEEK_HOLE))
        };
        // No data up to the end: ENXIO.
        let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) else {
            return;
        };
        let to = to.min(data.len);
        if from >= to {
            return;
        }
        copy(data.base + from, to - from);
        at = to;
    }
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
            const MESSAGE: &[u8] =
                b"npushmem: fork: no address space for a copy of the static data; the child shares it with its parent\n";
            libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
            return;
        }
        held_runs(data, |at, len| {
            let to = copy.cast::<u8>().add(at - data.base);
            std::ptr::copy_nonoverlapping(at as *const u8, to, len);
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
    if copy.is_null() {
        return;
    }
    for [base, len] in &PARTS {
        let (base, len) = (base.load(Ordering::Acquire), len.load(Ordering::Acquire));
        if len > 0 {
            // SAFETY: the child's only thread moves its snapshot over the shared segment, part by part.
            unsafe {
                libc::mremap(
                    copy.cast::<u8>().add(base - data.base).cast(),
                    len,
                    len,
                    libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                    base as *mut c_void,
                )
            };
        }
    }
}
