//! Library set-up, exit and queries (OpenSHMEM 1.6, 9.1; `shmem_pcontrol`: 10).
//!
//! Init joins the job through the `npushmem` crate, maps everybody's memory (window.rs) and publishes the state. Not here: the meaning of
//! the launcher's environment (host/bootstrap), barriers (collectives/).

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use npushmem::bootstrap::identity;
use npushmem::config::{Mapped, Runtime};
use npushmem::openshmem::{exit_status, GLOBAL_EXIT};
use npushmem::shm::group::Routine;
use npushmem::{Config, World};

use crate::constants::{
    SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE,
    VENDOR_STRING,
};
use crate::entry::{entry, hot};
use crate::state::{self, State, FAILURE};
use crate::window::{self, StaticRecord};

/// Exit code where the user's settings cannot be used.
const BAD_INPUT: c_int = 2;
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
    match start(level) {
        Ok(state) => {
            state.open();
            LEVEL.store(level, Ordering::Relaxed);
            at_exit();
        }
        Err(Refused { message, status }) => {
            state::tell(routine, &message);
            leave_now(status);
        }
    }
    level
}

/// Why init fails.
struct Refused {
    message: String,
    /// Exit code.
    status: c_int,
}

impl Refused {
    /// Of what the user gave: a setting, or a launcher's variables.
    fn input(error: impl std::fmt::Display) -> Refused {
        Refused {
            message: error.to_string(),
            status: BAD_INPUT,
        }
    }
}

impl From<npushmem::Error> for Refused {
    fn from(error: npushmem::Error) -> Refused {
        let status = match error.is_input() {
            true => BAD_INPUT,
            false => FAILURE,
        };
        Refused {
            message: error.to_string(),
            status,
        }
    }
}

impl From<String> for Refused {
    fn from(message: String) -> Refused {
        Refused {
            message,
            status: FAILURE,
        }
    }
}

/// Tells what `SHMEM_VERSION` and `SHMEM_INFO` ask for (OpenSHMEM 1.6, "Environment Variables").
fn introduce(config: &Config) {
    use std::io::Write as _;
    let mut text = String::new();
    if config.print_version || config.print_info {
        text +=
            &format!("{VENDOR_STRING}, OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}\n");
    }
    if config.print_info {
        for entry in npushmem::config::listing(|name| std::env::var(name).ok()) {
            let source = entry.source.as_deref().unwrap_or("default");
            let value = if entry.value.is_empty() {
                "-"
            } else {
                &entry.value
            };
            text += &format!("  {}={value} ({source}): {}\n", entry.name, entry.help);
        }
    }
    // A reader that has gone away is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Says in one line why static data is not symmetric, where the program may count on it.
fn tell_about_statics(me: usize, layout: &window::Window) {
    let line = match (crate::statics::problem(), layout.unreachable.as_slice()) {
        (Some(reason), _) => format!("static data of this program is not symmetric: {reason}"),
        (None, []) => return,
        (None, [(pe, reason), ..]) if *pe == me => {
            format!("static data of this program is not symmetric: {reason}")
        }
        // The others would say the same of PE 0, or of one another.
        (None, _) if me != 0 && !state::debugging() => return,
        (None, [(pe, reason), more @ ..]) => {
            let others = match more.len() {
                0 => String::new(),
                1 => " (nor that of 1 other)".to_owned(),
                more => format!(" (nor that of {more} others)"),
            };
            format!("static data of PE {pe} cannot be reached{others}: {reason}")
        }
    };
    state::tell(
        "shmem_init",
        &format!("{line}; memory of shmem_malloc is symmetric all the same"),
    );
}

fn start(level: c_int) -> Result<&'static State, Refused> {
    let mut config = Config::from_env().map_err(Refused::input)?;
    state::set_debugging(config.debug);
    // Symmetric addresses are dereferenced by the program: host memory, and all of it reachable.
    config.runtime = Runtime::Sim;
    config.mapped = Mapped::On;
    let who = identity::find(&config, |name| std::env::var(name).ok()).map_err(Refused::input)?;
    if who.pe == 0 {
        introduce(&config);
    }
    config.host_heap = true;
    crate::limit::set(config.wait_limit());
    let world = World::init_with(config)?;
    let me = world.my_pe() as usize;
    let sent = StaticRecord::own().encode();
    let records: Vec<_> = world
        .exchange(&sent)?
        .iter()
        .map(|bytes| StaticRecord::decode(bytes))
        .collect();
    let mut heaps = Vec::with_capacity(records.len());
    let mut len = 0;
    for pe in 0..world.n_pes() {
        let Some((at, bytes)) = world.heap_of(pe) else {
            return Err(format!(
                "PE {pe} is on another machine; the C API reaches PEs of one machine only"
            )
            .into());
        };
        heaps.push(at as usize);
        len = bytes as usize;
    }
    let layout = window::build(me, &heaps, len, &records)?;
    match npushmem::machine::wants_huge_pages(world.config().huge_pages) {
        Ok(true) => window::ask_for_huge_pages(&layout.heaps),
        Ok(false) => {}
        // One PE says it for all.
        Err(line) if me == 0 => state::tell("shmem_init", &line),
        Err(_) => {}
    }
    tell_about_statics(me, &layout);
    world.watch_death(told);
    let sync = world
        .shm_area()
        .ok_or_else(|| "the heap is no host memory; please report it".to_owned())?;
    let state = State::install(state::Parts {
        world,
        window: layout,
        sync,
        thread_level: level,
    })?;
    crate::teams::start(state);
    // Everybody has mapped everybody, and every sync area is zero.
    if let Some(world) = &*state.world() {
        world.exchange(&[])?;
    }
    Ok(state)
}

/// Another PE has ended the job, or died: this process ends too, whatever its threads do.
fn told(pe: Option<u32>, reason: &str) {
    if ENDING.swap(true, Ordering::AcqRel) {
        return;
    }
    let status = match exit_status(reason) {
        Some(status) => status,
        None => {
            let who = match pe {
                Some(pe) => format!("PE {pe} has ended: {reason}"),
                None => format!("the job's store went away: {reason}"),
            };
            match crate::limit::waiting() {
                Some(wait) => state::tell(
                    wait.routine,
                    &format!("{who}; this PE waited for {}", wait.what),
                ),
                None => state::tell("this PE ends", &who),
            }
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
    barrier(&"shmem_finalize");
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

/// A barrier of all PEs that `routine` begins or ends with.
pub(crate) fn barrier(routine: Routine) {
    crate::order::full_fence();
    crate::calls::barrier_all(routine);
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
