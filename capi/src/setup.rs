//! Library set-up, exit and queries (OpenSHMEM 1.6, 9.1; `shmem_pcontrol`: 10).
//!
//! Init joins the job through the `npushmem` crate, maps everybody's memory (window.rs) and publishes the state. Not here: the meaning of
//! the launcher's environment (host/bootstrap), barriers (collectives/).

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use npushmem::config::{Mapped, Runtime};
use npushmem::{Config, World};

use crate::constants::{
    SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE,
    VENDOR_STRING,
};
use crate::entry::{entry, hot};
use crate::state::{self, State, FAILURE};
use crate::window::{self, StaticRecord};

/// What a PE tells the others when it calls `shmem_global_exit`, in front of the status.
const GLOBAL_EXIT: &str = "shmem_global_exit ";
/// How long a PE that is told to end may take to flush its output.
const FLUSH_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// Init and finalize of several threads come one after the other.
static SETUP: Mutex<()> = Mutex::new(());
/// The process that registered the exit handler: a forked child has it too, and must not act.
static EXIT_PID: AtomicU32 = AtomicU32::new(0);
/// Thread level of the last init, for queries after finalize.
static LEVEL: AtomicI32 = AtomicI32::new(SHMEM_THREAD_SINGLE);
/// The process is on its way out; the handler has nothing to do.
static ENDING: AtomicBool = AtomicBool::new(false);

fn init(routine: &'static str, level: c_int) -> c_int {
    let _one = SETUP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(state) = state::get() {
        state.references.fetch_add(1, Ordering::Relaxed);
        return state.thread_level.load(Ordering::Relaxed);
    }
    state::set_debugging(
        std::env::var_os("SHMEM_DEBUG").is_some_and(|value| !value.is_empty() && value != "0"),
    );
    match start(level) {
        Ok(state) => {
            state.open();
            LEVEL.store(level, Ordering::Relaxed);
            at_exit();
        }
        Err(message) => {
            state::tell(routine, &message);
            leave_now(FAILURE);
        }
    }
    level
}

fn start(level: c_int) -> Result<&'static State, String> {
    let text = |error: npushmem::Error| error.to_string();
    let mut config = Config::from_env().map_err(|error| error.to_string())?;
    // Symmetric addresses are dereferenced by the program: host memory, and all of it reachable.
    config.runtime = Runtime::Sim;
    config.mapped = Mapped::On;
    let world = World::init_with(config).map_err(text)?;
    let me = world.my_pe() as usize;
    let sent = StaticRecord::own().encode();
    let records: Vec<_> = world
        .exchange(&sent)
        .map_err(text)?
        .iter()
        .map(|bytes| StaticRecord::decode(bytes))
        .collect();
    let mut heaps = Vec::with_capacity(records.len());
    let mut len = 0;
    for pe in 0..world.n_pes() {
        let Some((at, bytes)) = world.heap_of(pe) else {
            return Err(format!(
                "PE {pe} is on another machine; the C API reaches PEs of one machine only"
            ));
        };
        heaps.push(at as usize);
        len = bytes as usize;
    }
    let layout = window::build(me, &heaps, len, &records)?;
    if state::debugging() {
        for (pe, reason) in &layout.unreachable {
            state::tell(
                "shmem_init",
                &format!("static data of PE {pe} is not symmetric: {reason}"),
            );
        }
    }
    world.watch_death(told);
    let sync = world
        .shm_area()
        .ok_or("the heap is no host memory; please report it")?;
    let state = State::install(state::Parts {
        world,
        window: layout,
        sync,
        thread_level: level,
    })
    .map_err(text)?;
    crate::teams::start(state);
    // Everybody has mapped everybody, and every sync area is zero.
    if let Some(world) = &*state.world() {
        world.exchange(&[]).map_err(text)?;
    }
    Ok(state)
}

/// Another PE has ended the job, or died: this process ends too, whatever its threads do.
fn told(pe: Option<u32>, reason: &str) {
    if ENDING.swap(true, Ordering::AcqRel) {
        return;
    }
    let status = match reason
        .strip_prefix(GLOBAL_EXIT)
        .and_then(|text| text.parse().ok())
    {
        Some(status) => status,
        None => {
            let who = match pe {
                Some(pe) => format!("PE {pe} has ended: {reason}"),
                None => format!("the job's store went away: {reason}"),
            };
            state::tell("this PE ends", &who);
            FAILURE
        }
    };
    flush_and_leave(status);
}

/// Writes out what C's streams hold, if that is possible in [`FLUSH_TIME`], and ends the process.
fn flush_and_leave(status: c_int) -> ! {
    let _ = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(FLUSH_TIME);
        leave_now(status)
    });
    // SAFETY: flushing all streams is allowed at any time; a stream locked for ever is what the thread above is for.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    leave_now(status)
}

fn leave_now(status: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Ends the whole job after an error that has been told.
pub(crate) fn abort(reason: &str, status: c_int) -> ! {
    ENDING.store(true, Ordering::Release);
    tell_others(reason);
    flush_and_leave(status)
}

/// Tells the others that this PE ends. Never waits: the caller may hold any lock.
fn tell_others(reason: &str) {
    if let Some(state) = state::get() {
        if let Ok(world) = state.try_world() {
            if let Some(world) = &*world {
                world.abort(reason);
            }
        }
    }
}

/// Has the C library call [`at_exit`]'s handler when the program ends without finalize.
fn at_exit() {
    extern "C" {
        fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }
    let pid = std::process::id();
    if EXIT_PID.swap(pid, Ordering::AcqRel) != pid {
        // SAFETY: the handler stays loaded: a library with thread-local destructors is never unloaded.
        unsafe { on_exit(ended, std::ptr::null_mut()) };
    }
}

extern "C" fn ended(status: c_int, _argument: *mut c_void) {
    if EXIT_PID.load(Ordering::Acquire) != std::process::id() || ENDING.load(Ordering::Acquire) {
        return;
    }
    if state::get().is_none() {
        return;
    }
    if status == 0 {
        // A program that began with start_pes ends so, rightly (OpenSHMEM 1.6, start_pes).
        let _ = std::panic::catch_unwind(|| finalize(true));
    } else {
        ENDING.store(true, Ordering::Release);
        tell_others(&format!(
            "it exited with status {status} without shmem_finalize"
        ));
    }
}

/// `all`: the process ends, whatever the number of init calls.
fn finalize(all: bool) {
    let _one = SETUP.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(state) = state::get() else { return };
    crate::order::full_fence();
    barrier();
    let left = state.references.fetch_sub(1, Ordering::Relaxed) - 1;
    if left > 0 && !all {
        return;
    }
    crate::teams::stop();
    if let Some(world) = state.close() {
        if all {
            return world.depart();
        }
        if let Err(error) = world.finalize() {
            if !ENDING.load(Ordering::Acquire) {
                state::tell("shmem_finalize", &error.to_string());
                leave_now(FAILURE);
            }
        }
    }
    window::drop_all(&state.spans);
}

/// A barrier of all PEs that the library itself needs.
pub(crate) fn barrier() {
    crate::order::full_fence();
    crate::teams::barrier_all("shmem_barrier_all");
}

entry! {
    /// Begins OpenSHMEM. Collective.
    fn shmem_init() {
        init("shmem_init", SHMEM_THREAD_SINGLE);
    }

    /// Begins OpenSHMEM with a thread level; every level is given.
    fn shmem_init_thread(requested: c_int, provided: *mut c_int) -> c_int {
        if !(SHMEM_THREAD_SINGLE..=SHMEM_THREAD_MULTIPLE).contains(&requested) {
            state::tell("shmem_init_thread", &format!("argument requested: {requested} is none of SHMEM_THREAD_SINGLE (0) to SHMEM_THREAD_MULTIPLE (3)"));
            return FAILURE;
        }
        let given = init("shmem_init_thread", requested);
        if !provided.is_null() {
            // SAFETY: the caller's variable.
            unsafe { *provided = given };
        }
        0
    }

    /// Ends OpenSHMEM. Collective.
    fn shmem_finalize() {
        state::require("shmem_finalize");
        finalize(false);
    }

    /// Ends the whole job.
    fn shmem_global_exit(status: c_int) {
        let state = state::require("shmem_global_exit");
        if !ENDING.swap(true, Ordering::AcqRel) {
            if let Ok(world) = state.try_world() {
                if let Some(world) = &*world {
                    world.abort(&format!("{GLOBAL_EXIT}{status}"));
                }
            }
            // SAFETY: the standard wants C's normal termination: handlers run, streams are flushed.
            unsafe { libc::exit(status) }
        }
        // Another thread is ending this process.
        loop {
            std::thread::sleep(FLUSH_TIME);
        }
    }

    /// Whether the library is initialised; may be called at any time.
    fn shmem_query_initialized(initialized: *mut c_int) {
        // SAFETY: the caller's variable.
        unsafe { *initialized = c_int::from(state::get().is_some()) };
    }

    /// The thread level in force.
    fn shmem_query_thread(provided: *mut c_int) {
        // SAFETY: the caller's variable.
        unsafe { *provided = LEVEL.load(Ordering::Relaxed) };
    }

    /// Version of the standard.
    fn shmem_info_get_version(major: *mut c_int, minor: *mut c_int) {
        // SAFETY: the caller's variables.
        unsafe { (*major, *minor) = (SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION) };
    }

    /// The library's name: `SHMEM_VENDOR_STRING`, in a buffer of `SHMEM_MAX_NAME_LEN` bytes.
    fn shmem_info_get_name(name: *mut c_char) {
        // SAFETY: the caller's buffer is longer than the name.
        unsafe {
            std::ptr::copy_nonoverlapping(VENDOR_STRING.as_ptr().cast(), name, VENDOR_STRING.len());
            *name.add(VENDOR_STRING.len()) = 0;
        }
    }

    /// Whether PE `pe` can be reached.
    fn shmem_pe_accessible(pe: c_int) -> c_int {
        let state = state::require("shmem_pe_accessible");
        c_int::from((0..state.n_pes).contains(&pe))
    }

    /// Whether `addr` is symmetric and PE `pe` can be reached.
    fn shmem_addr_accessible(addr: *const c_void, pe: c_int) -> c_int {
        let state = state::require("shmem_addr_accessible");
        c_int::from((0..state.n_pes).contains(&pe) && state.is_symmetric(addr as usize, 1))
    }

    /// Profiling control; nothing is profiled here. Further arguments are ignored.
    fn shmem_pcontrol(_level: c_int) {}
}

/// The body of `shmem_ptr`: the address at which PE `pe`'s instance of `addr` is mapped here; null when there is none.
pub(crate) fn pointer(addr: *const c_void, pe: c_int) -> *mut c_void {
    let state = state::require("shmem_ptr");
    if !(0..state.n_pes).contains(&pe) || !state.is_symmetric(addr as usize, 1) {
        return std::ptr::null_mut();
    }
    state.at(addr as usize, pe).cast()
}

entry! {
    /// The local address of PE `pe`'s instance of a symmetric object.
    fn shmem_ptr(addr: *const c_void, pe: c_int) -> *mut c_void {
        pointer(addr, pe)
    }
}

#[cold]
#[inline(never)]
fn outside(routine: &'static str) -> c_int {
    state::require(routine).my_pe
}

hot! {
    /// Number of this PE.
    fn shmem_my_pe() -> c_int {
        let pe = state::my_pe();
        if pe < 0 { outside("shmem_my_pe") } else { pe }
    }

    /// PEs of the job.
    fn shmem_n_pes() -> c_int {
        state::require("shmem_n_pes").n_pes
    }
}
