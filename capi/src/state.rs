//! The process's OpenSHMEM state: who it is, where everybody's symmetric memory is, the heap.
//!
//! Address translation is one addition: window.rs maps the memory of PE `pe` so that each of its symmetric objects, on the heap or static,
//! lies `delta[pe]` bytes from this PE's own. Not here: how it came to be (setup.rs), collectives. Used by every routine.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use npushmem::{SymBuf, World};

use crate::window::Window;

/// What the data path reads: one line of memory.
///
/// Plain memory, not atomics: only init and finalize write it, and a program orders these before and after all its other calls.
#[repr(C, align(64))]
struct Hot {
    /// PEs of the job; 0 before init, after finalize, and while every call is to be checked (`SHMEM_DEBUG=1`): the slow path then decides.
    n_pes: UnsafeCell<u32>,
    /// This PE; -1 outside init and finalize.
    my_pe: UnsafeCell<i32>,
    /// By PE: distance of its symmetric memory from this PE's.
    delta: UnsafeCell<*const isize>,
}

// SAFETY: written by init and finalize only, which are ordered against every reader, as the type's documentation says.
unsafe impl Sync for Hot {}

static HOT: Hot = Hot {
    n_pes: UnsafeCell::new(0),
    my_pe: UnsafeCell::new(-1),
    delta: UnsafeCell::new(std::ptr::null()),
};

impl Hot {
    fn set(&self, n_pes: u32, my_pe: i32, delta: *const isize) {
        // SAFETY: the callers are init and finalize.
        unsafe {
            *self.delta.get() = delta;
            *self.my_pe.get() = my_pe;
            *self.n_pes.get() = n_pes;
        }
    }
}

/// What the inline functions of shmem.h read; its layout is part of their contract.
#[repr(C)]
pub(crate) struct FastTable {
    /// [`FAST_VERSION`].
    version: u32,
    /// Bytes of this table, its end included.
    bytes: u32,
    /// PEs of the job.
    n_pes: u32,
    /// This PE.
    my_pe: u32,
    // Followed by `n_pes` distances (ptrdiff_t).
}

/// Version of [`FastTable`].
const FAST_VERSION: u32 = 1;

/// The table of the header's inline path; null: call the library (not initialised, or checking).
#[unsafe(export_name = "shmemi_fast_v1")]
static FAST: AtomicPtr<FastTable> = AtomicPtr::new(std::ptr::null_mut());

static STATE: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());
static DEBUG: AtomicBool = AtomicBool::new(false);

/// A range of this process's own symmetric memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    /// First address.
    pub(crate) base: usize,
    /// Bytes.
    pub(crate) len: usize,
}

impl Segment {
    /// Whether all of `len` bytes at `addr` lie in it.
    pub(crate) fn contains(&self, addr: usize, len: usize) -> bool {
        let at = addr.wrapping_sub(self.base);
        at < self.len && len <= self.len - at || (at == self.len && len == 0)
    }
}

/// Everything that is not on the data path. Made by init; kept for the life of the process, because threads may still be looking.
pub(crate) struct State {
    pub(crate) my_pe: i32,
    pub(crate) n_pes: i32,
    /// The heap as the program sees it: user's part and the library's own.
    pub(crate) heap: Segment,
    /// The executable's writable data; empty when it is not symmetric.
    pub(crate) statics: Segment,
    /// Addresses that window.rs reserved.
    pub(crate) spans: Vec<(usize, usize)>,
    /// By PE, as [`Hot::delta`].
    pub(crate) delta: Box<[isize]>,
    /// The table behind [`FAST`], in words.
    fast: Box<[u64]>,
    /// First address of the sync area here.
    sync: usize,
    /// Thread level given (`SHMEM_THREAD_...`).
    pub(crate) thread_level: AtomicI32,
    /// Calls of init minus calls of finalize.
    pub(crate) references: AtomicI32,
    world: Mutex<Option<World>>,
    /// By address: what the heap gave, and the bytes asked for.
    blocks: Mutex<BTreeMap<usize, Block>>,
}

/// A live block, and the bytes asked for.
type Block = (SymBuf<u8>, usize);

/// What init found out.
pub(crate) struct Parts {
    pub(crate) world: World,
    pub(crate) window: Window,
    /// Offsets in the heap of the area of collectives.
    pub(crate) sync: std::ops::Range<u64>,
    pub(crate) thread_level: c_int,
}

/// Gives the program's part of a fresh heap, from `offset` on, back: the emulated device has marked both its ends, so that kernels notice what
/// they did not set. Here nobody has anything in it yet, and memory that is given back costs nothing until it is used.
fn forget(heap: Segment, offset: usize) {
    let at = (heap.base + offset) as *mut libc::c_void;
    // SAFETY: this PE's own heap, in whole pages, before any PE uses it. Where it is refused, the marks stay.
    unsafe { libc::madvise(at, heap.len - offset, libc::MADV_REMOVE) };
}

impl State {
    /// Publishes the state of an initialised process.
    pub(crate) fn install(parts: Parts) -> Result<&'static State, npushmem::Error> {
        let n_pes = parts.world.n_pes();
        let my_pe = parts.world.my_pe();
        let mut fast = vec![0u64; size_of::<FastTable>() / 8 + n_pes as usize];
        fast[0] = u64::from(FAST_VERSION) | (fast.len() as u64 * 8) << 32;
        fast[1] = u64::from(n_pes) | u64::from(my_pe) << 32;
        for (to, from) in fast[2..].iter_mut().zip(&parts.window.delta) {
            *to = *from as u64;
        }
        let window = parts.window;
        let (sync, end) = (parts.sync.start as usize, parts.sync.end as usize);
        forget(window.heap, end);
        let sync_at = window.heap.base + sync;
        let state = Box::leak(Box::new(State {
            my_pe: my_pe as i32,
            n_pes: n_pes as i32,
            heap: window.heap,
            statics: window.statics,
            spans: window.spans,
            delta: window.delta,
            fast: fast.into(),
            sync: sync_at,
            thread_level: AtomicI32::new(parts.thread_level),
            references: AtomicI32::new(1),
            world: Mutex::new(Some(parts.world)),
            blocks: Mutex::default(),
        }));
        Ok(state)
    }

    /// Lets the routines see it.
    pub(crate) fn open(&'static self) {
        STATE.store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        let fast_pes = if debugging() { 0 } else { self.n_pes as u32 };
        HOT.set(fast_pes, self.my_pe, self.delta.as_ptr());
        if !debugging() {
            // A tool that replaces routines wants to see every call.
            if !crate::profile::replaced() {
                FAST.store(self.fast.as_ptr().cast_mut().cast(), Ordering::Release);
            }
        }
    }

    /// Ends what [`State::open`] began; gives the World back.
    pub(crate) fn close(&self) -> Option<World> {
        FAST.store(std::ptr::null_mut(), Ordering::Release);
        HOT.set(0, -1, self.delta.as_ptr());
        STATE.store(std::ptr::null_mut(), Ordering::Release);
        self.blocks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.world().take()
    }

    /// The job behind; `None` after finalize.
    pub(crate) fn world(&self) -> MutexGuard<'_, Option<World>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`State::world`], without waiting.
    pub(crate) fn try_world(&self) -> std::sync::TryLockResult<MutexGuard<'_, Option<World>>> {
        self.world.try_lock()
    }

    /// Takes `bytes` of the symmetric heap: same calls in the same order on every PE. `None`: no room (told on standard error when
    /// checking).
    pub(crate) fn heap_alloc(&self, bytes: usize, align: usize) -> Option<*mut u8> {
        /// The heap's first byte is aligned to so much.
        const PAGE: usize = 4096;
        let world = self.world();
        let (room, within) = if align > PAGE {
            (bytes.checked_add(align)?, 1)
        } else {
            (bytes, align)
        };
        match world.as_ref()?.alloc_aligned::<u8>(room, within as u64) {
            Ok(buffer) if buffer.is_empty() => None,
            Ok(buffer) => {
                let at = (self.heap.base + buffer.offset() as usize).next_multiple_of(align);
                self.blocks().insert(at, (buffer, bytes));
                Some(at as *mut u8)
            }
            Err(error) => {
                tell("shmem_malloc", &error.to_string());
                None
            }
        }
    }

    /// Gives a block of [`State::heap_alloc`] back; false: no block begins there.
    pub(crate) fn heap_free(&self, at: *mut u8) -> bool {
        let _world = self.world();
        self.blocks().remove(&(at as usize)).is_some()
    }

    /// Bytes of the block that begins at `at`.
    pub(crate) fn heap_block(&self, at: *const u8) -> Option<usize> {
        self.blocks().get(&(at as usize)).map(|(_, bytes)| *bytes)
    }

    /// The block that begins last at or before `at`: its address, and the bytes asked for.
    fn block_before(&self, at: usize) -> Option<(usize, usize)> {
        let blocks = self.blocks();
        let (at, (_, bytes)) = blocks.range(..=at).next_back()?;
        Some((*at, *bytes))
    }

    fn blocks(&self) -> MutexGuard<'_, BTreeMap<usize, Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// PE `pe`'s area of collectives (`npushmem::shm::layout`).
    pub(crate) fn sync_area(&self, pe: i32) -> *mut u8 {
        self.at(self.sync, pe)
    }

    /// PE `pe`'s instance of the symmetric object at `addr`. `pe` is in range.
    pub(crate) fn at(&self, addr: usize, pe: i32) -> *mut u8 {
        addr.wrapping_add_signed(self.delta[pe as usize]) as *mut u8
    }

    /// Whether `len` bytes at `addr` are symmetric memory of this PE.
    pub(crate) fn is_symmetric(&self, addr: usize, len: usize) -> bool {
        self.heap.contains(addr, len) || self.statics.contains(addr, len)
    }
}

/// The state, between init and finalize.
pub(crate) fn get() -> Option<&'static State> {
    // SAFETY: null, or a State that is never freed.
    unsafe { STATE.load(Ordering::Acquire).as_ref() }
}

/// The state; outside init and finalize the job ends with a message that names `routine`.
pub(crate) fn require(routine: &'static str) -> &'static State {
    match get() {
        Some(state) => state,
        None => not_initialised(routine),
    }
}

#[cold]
#[inline(never)]
fn not_initialised(routine: &'static str) -> ! {
    fail(
        routine,
        "the library is not initialised; call shmem_init first, and nothing after shmem_finalize",
    )
}

/// Number of this PE; -1 outside init and finalize.
#[inline(always)]
pub(crate) fn my_pe() -> i32 {
    // SAFETY: init and finalize are ordered against this call.
    unsafe { *HOT.my_pe.get() }
}

/// PEs of the job; 0 outside init and finalize.
pub(crate) fn n_pes() -> i32 {
    get().map_or(0, |state| state.n_pes)
}

/// Whether calls are checked: `SHMEM_DEBUG` is set and not 0.
pub(crate) fn debugging() -> bool {
    DEBUG.load(Ordering::Relaxed)
}

/// Says at init whether calls are checked.
pub(crate) fn set_debugging(on: bool) {
    DEBUG.store(on, Ordering::Relaxed);
}

/// Distance of PE `pe`'s symmetric memory; `None`: the slow path decides (not initialised, no such PE, or calls are checked).
#[inline(always)]
pub(crate) fn distance(pe: c_int) -> Option<isize> {
    // SAFETY: init and finalize are ordered against this call; there are `n_pes` distances, which are never freed.
    unsafe {
        if (pe as u32) < *HOT.n_pes.get() {
            Some(*(*HOT.delta.get()).add(pe as u32 as usize))
        } else {
            None
        }
    }
}

/// `addr` on PE `pe`, where a call more does not matter; `routine` and `len` (bytes) are for the checks.
#[inline(always)]
pub(crate) fn target(routine: &'static CRoutine, addr: usize, len: usize, pe: c_int) -> *mut u8 {
    match distance(pe) {
        Some(distance) => addr.wrapping_add_signed(distance) as *mut u8,
        None => slow_target(routine, addr, len, pe),
    }
}

/// The shape of the data path: `at` is `$addr` on the PE at `$distance`; where that is `None`, a cold function of its own, which is jumped
/// to with the same arguments, finds `at` by `$slow` (checks, or the end of the job) and does the same. So the fast path saves no register
/// and keeps no frame.
macro_rules! fast {
    (($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?, $addr:ident at $distance:expr, slow $slow:expr, |$at:ident| $body:expr) => {{
        #[cold]
        #[inline(never)]
        #[allow(unused_variables, clippy::too_many_arguments)]
        unsafe extern "C" fn cold($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the routine's own contract.
            unsafe {
                let $at: *mut u8 = $slow;
                $body
            }
        }
        match $distance {
            Some(distance) => {
                let $at = ($addr as usize).wrapping_add_signed(distance) as *mut u8;
                $body
            }
            None => cold($($arg),*),
        }
    }};
}
pub(crate) use fast;

/// A routine's name for messages.
pub(crate) struct CRoutine(pub(crate) &'static str);

/// `state::routine!(shmem_put)`: a [`CRoutine`] in static memory.
macro_rules! routine {
    ($name:tt) => {{
        static ROUTINE: $crate::state::CRoutine =
            $crate::state::CRoutine($crate::entry::name!($name));
        &ROUTINE
    }};
}
pub(crate) use routine;

/// The other PE's address where [`distance`] does not decide: not initialised, a PE outside the job, or checking is on.
#[cold]
#[inline(never)]
pub(crate) fn slow_target(
    routine: &'static CRoutine,
    addr: usize,
    len: usize,
    pe: c_int,
) -> *mut u8 {
    let state = require(routine.0);
    if pe < 0 || pe >= state.n_pes {
        outside(routine.0, pe, "the job", state.n_pes);
    }
    if debugging() {
        check_symmetric(state, routine.0, addr, len);
    }
    state.at(addr, pe)
}

/// Ends the job: PE number `pe` is not one of the `n_pes` of `what`.
#[cold]
pub(crate) fn outside(routine: &'static str, pe: c_int, what: &str, n_pes: i32) -> ! {
    fail(
        routine,
        &format!(
            "argument pe: PE {pe} is outside {what}; PE numbers run from 0 to {}",
            n_pes - 1
        ),
    )
}

/// `SHMEM_DEBUG`: ends the job when the symmetric address of a routine is none.
pub(crate) fn check_symmetric(state: &State, routine: &'static str, addr: usize, len: usize) {
    check_argument(state, routine, "addr", addr, len);
}

/// `SHMEM_DEBUG`: ends the job when argument `name`, `len` bytes at `addr`, is not symmetric memory that is in use.
pub(crate) fn check_argument(
    state: &State,
    routine: &'static str,
    name: &str,
    addr: usize,
    len: usize,
) {
    let refuse = |message: &str| fail(routine, &format!("argument {name}: {message}"));
    if len == 0 {
        return;
    }
    if len > isize::MAX as usize {
        refuse(&format!(
            "so many elements have more than {} bytes, more than memory holds; see argument nelems",
            isize::MAX
        ));
    }
    if addr == 0 {
        refuse(&format!(
            "a null pointer where {len} bytes of symmetric memory are wanted"
        ));
    }
    let end = addr.saturating_add(len);
    if state.statics.contains(addr, len) {
        return;
    }
    if state.heap.contains(addr, len) {
        let block = state.block_before(addr);
        return match block {
            Some((at, bytes)) if end <= at + bytes => {}
            Some((at, bytes)) if addr < at + bytes => refuse(&format!(
                "[{addr:#x}, {end:#x}) runs {} bytes over the end of the heap block [{at:#x}, {:#x})",
                end - at - bytes,
                at + bytes
            )),
            _ => refuse(&format!(
                "[{addr:#x}, {end:#x}) is in no block of the symmetric heap: it was freed, or never given out"
            )),
        };
    }
    let (heap, statics) = (state.heap, state.statics);
    refuse(&format!(
        "[{addr:#x}, {end:#x}) is not symmetric memory: the heap is [{:#x}, {:#x}), static data [{:#x}, {:#x})",
        heap.base,
        heap.base + heap.len,
        statics.base,
        statics.base + statics.len
    ));
}

/// A line on standard error with this PE's number and the routine.
pub(crate) fn tell(routine: &str, message: &str) {
    let pe = match my_pe() {
        -1 => String::new(),
        pe => format!("PE {pe}: "),
    };
    // Nowhere else to tell it.
    // One write, so that the lines of several PEs do not mix.
    let line = format!("npushmem: {pe}{routine}: {message}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Exit code of a job that an error ended.
pub(crate) const FAILURE: c_int = 1;

/// Tells the error and ends the whole job.
#[cold]
pub(crate) fn fail(routine: &str, message: &str) -> ! {
    tell(routine, message);
    crate::setup::abort(&format!("{routine}: {message}"), FAILURE)
}
