//! The time model: a virtual clock for the emulated NPU (`NPUSIM_TIME=model`). Times are computed from the parameters in parameters.rs, nothing is
//! measured; every figure that comes of it is to be called modelled.
//!
//! Each core has a clock (clock.rs) that its operations move on. Between cores, and between processes, time travels with what is written: a word's
//! change has an arrival time (words.rs), and a core that waits for it goes on at that time at the earliest (looks.rs). There is no global clock, and
//! none is needed: what two cores do without waiting for one another is not ordered on hardware either. The system counter that kernels read is the
//! core's clock.
//!
//! **Limits.** The scalar and vector units' own instructions and the data cache take no time. Changes of more than 8 bytes have no arrival time of their
//! own: wait for a flag that follows them. A link is shared evenly by the cores of a launch, used or not; nothing queues at a target, so contended
//! atomics and many senders to one PE look too good. A core that polls several words at once skips to the change that comes first in real time, and one
//! that polls memory by copies, or another PE's memory, pays for each look: then runs differ. Requests run in the ringing core, so the NIC must be in
//! mode `inline`. Times begin and end inside kernels: a launch takes none, and a PE's clock goes on where its last kernel ended.
//!
//! Called by services.rs (steps of blocks, the system counter), launch.rs (the meeting of all cores) and, through timing.rs, by the NIC.

pub mod clock;
mod looks;
pub mod parameters;
pub mod replay;
mod words;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use npushmem_ffi::acl;
use npushmem_roce::nic::{Executed, Place, Timing};
use npushmem_roce::wqe::opcode;

use self::clock::{Clock, Request};
use self::looks::Looks;
use self::parameters::{Link, Parameters};
use self::words::{Pending, Words};
use crate::abi::{
    NPUSIM_STEP_BARRIER, NPUSIM_STEP_COPY_IN, NPUSIM_STEP_COPY_OUT, NPUSIM_STEP_LOAD,
    NPUSIM_STEP_SET_FLAG, NPUSIM_STEP_STORE, NPUSIM_STEP_STORES_DONE, NPUSIM_STEP_WAIT_FLAG,
};
use crate::config;
use crate::error::{fail, Outcome};
use crate::launch::Launch;
use crate::memory::{self, Kind, Region};

/// The variable that names the descriptor of the job's table of arrival times. The launcher sets it.
pub const TABLE_VARIABLE: &str = "NPUSIM_TIME_TABLE";
/// A launch begins at a multiple of this, picoseconds.
const START: u64 = 1_000_000;
/// Largest word that has an arrival time, bytes.
const WORD: u64 = 8;

/// What the cores of this process share.
struct Process {
    words: Words,
    /// Whether other processes have the same table.
    shared: bool,
    /// Completion entries: by address, as the words are, but nobody else's business.
    completions: Mutex<HashMap<u64, Pending>>,
    /// When the latest kernel ended, picoseconds.
    clock: AtomicU64,
}

static PROCESS: OnceLock<Result<Process, String>> = OnceLock::new();

fn process() -> Outcome<&'static Process> {
    PROCESS
        .get_or_init(|| {
            let inherited = inherited()?;
            let shared = inherited.is_some();
            Ok(Process {
                words: Words::open(inherited).map_err(|fail| fail.text)?,
                shared,
                completions: Mutex::default(),
                clock: AtomicU64::new(0),
            })
        })
        .as_ref()
        .map_err(|text| fail(acl::ACL_ERROR_INVALID_PARAM, text.clone()))
}

fn inherited() -> Result<Option<File>, String> {
    let Some(text) = std::env::var_os(TABLE_VARIABLE) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let open = text
        .parse::<u32>()
        .map_err(|error| error.to_string())
        .and_then(|descriptor| {
            File::options()
                .read(true)
                .write(true)
                .open(format!("/proc/self/fd/{descriptor}"))
                .map_err(|error| error.to_string())
        });
    open.map(Some).map_err(|why| {
        format!("{TABLE_VARIABLE}={text}: {why}; `npushmem run` and `npushmem bench` set it, leave it to them")
    })
}

/// Whether time is modelled.
pub(crate) fn is_on() -> bool {
    config::get().is_ok_and(|config| config.modelled)
}

/// Refuses to meet another process without a common table of arrival times.
pub(crate) fn check_peers() -> Outcome {
    if !is_on() || process()?.shared {
        return Ok(());
    }
    Err(fail(
        acl::ACL_ERROR_INVALID_PARAM,
        "NPUSIM_TIME=model: several PEs need a common table of arrival times; start them with `npushmem run` or `npushmem bench`",
    ))
}

/// The clock of a running block.
pub(crate) struct Timed {
    process: &'static Process,
    device: i32,
    clock: RefCell<Clock>,
    looks: RefCell<Looks>,
    /// Meetings of all blocks so far.
    meetings: Cell<u64>,
    tick: f64,
}

thread_local! {
    /// The block whose doorbell is being served on this thread.
    static RINGING: Cell<*const Timed> = const { Cell::new(std::ptr::null()) };
}

/// When the cores of a launch came to its meetings. Two places take turns: a place is used again only after everybody has left it.
#[derive(Default)]
pub(crate) struct Meetings([AtomicU64; 2]);

/// Where an access goes.
struct Target {
    link: Link,
    /// The word's name in the table.
    key: u64,
}

impl Timed {
    /// The clock of a block of a launch; `None` when time is not modelled.
    pub(crate) fn new(launch: &Launch) -> Outcome<Option<Timed>> {
        let config = config::get()?;
        if !config.modelled {
            return Ok(None);
        }
        let process = process()?;
        // The launch before has ended, so its blocks begin at its end.
        // Whole microseconds, so that how long other kernels ran does not shift the ticks.
        let now = launch.begin.next_multiple_of(START) as f64;
        Ok(Some(Timed {
            process,
            device: launch.device.id,
            clock: RefCell::new(Clock::new(Parameters::table(), now, launch.blocks.into())),
            looks: RefCell::default(),
            meetings: Cell::new(0),
            tick: 1e12 / config.soc.counter_hz as f64,
        }))
    }

    /// The system counter.
    pub(crate) fn ticks(&self) -> u64 {
        (self.clock.borrow().now / self.tick) as u64
    }

    /// The block has ended.
    pub(crate) fn end(&self) {
        self.process
            .clock
            .fetch_max(self.clock.borrow().end().ceil() as u64, Ordering::AcqRel);
    }

    /// A step of the block (`enum npusim_step`); the answer is a load's.
    pub(crate) fn step(&self, step: u32, a: u64, b: u64, c: u64) -> u64 {
        match step {
            NPUSIM_STEP_LOAD => return self.load(a, b, c),
            NPUSIM_STEP_STORE => {
                self.looks.borrow_mut().clear();
                let target = self.target(a);
                let arrival = self.clock.borrow_mut().store(target.link);
                self.change(a, target.key, arrival);
            }
            NPUSIM_STEP_COPY_IN => {
                let link = self.target(a).link;
                (0..c).for_each(|_| self.clock.borrow_mut().copy_in(link, b));
            }
            NPUSIM_STEP_COPY_OUT => {
                self.looks.borrow_mut().clear();
                let target = self.target(a);
                let mut arrival = 0.0;
                (0..c).for_each(|_| arrival = self.clock.borrow_mut().copy_out(target.link, b));
                if b <= WORD && c == 1 {
                    self.change(a, target.key, arrival);
                }
            }
            NPUSIM_STEP_SET_FLAG => self
                .clock
                .borrow_mut()
                .set_flag(a as usize, b as usize, c as usize),
            NPUSIM_STEP_WAIT_FLAG => self
                .clock
                .borrow_mut()
                .wait_flag(a as usize, b as usize, c as usize),
            NPUSIM_STEP_BARRIER => self.clock.borrow_mut().barrier(a as usize),
            NPUSIM_STEP_STORES_DONE => self.clock.borrow_mut().stores_done(),
            _ => {}
        }
        0
    }

    /// The word at `address` is about to change.
    fn change(&self, address: u64, key: u64, arrival: f64) {
        if key != 0 {
            let at = arrival.ceil() as u64;
            self.process.words.change(key, held(address), at);
        }
    }

    fn load(&self, address: u64, bytes: u64, memory: u64) -> u64 {
        let look = self.looks.borrow_mut().begin(address);
        let mut clock = self.clock.borrow_mut();
        let completion = self
            .process
            .completions()
            .get(&(address & !(WORD - 1)))
            .copied();
        let next = match completion {
            // When a completion is polled depends on how long the core waits for something else: looking at one costs nothing.
            Some(completion) => {
                Some(completion).filter(|completion| completion.at > clock.now.floor() as u64)
            }
            None => {
                let target = self.target(address);
                if look.costs || target.link != Link::Own {
                    clock.load(target.link);
                }
                let now = clock.now.floor() as u64;
                (target.key != 0)
                    .then(|| self.process.words.pending(target.key, now))
                    .flatten()
            }
        };
        let part = |word: u64| {
            let shifted = word >> (8 * (address % WORD));
            if bytes >= WORD {
                shifted
            } else {
                shifted & ((1 << (8 * bytes)) - 1)
            }
        };
        let seen = match next {
            None => memory,
            Some(next) if look.waits => {
                clock.wait(next.at as f64);
                // What memory held when this step began may be older than the change.
                next.after.map_or_else(|| part(held(address)), part)
            }
            Some(next) => part(next.before),
        };
        self.looks.borrow_mut().end(address, seen);
        seen
    }

    /// All blocks of the launch meet: called before, and after with the answer.
    pub(crate) fn arrive(&self, meetings: &Meetings) -> u64 {
        let number = self.meetings.get();
        self.meetings.set(number + 1);
        self.looks.borrow_mut().clear();
        meetings.0[(number % 2) as usize]
            .fetch_max(self.clock.borrow().now.ceil() as u64, Ordering::AcqRel);
        number
    }

    /// The meeting that [`Timed::arrive`] began is over.
    pub(crate) fn leave(&self, meetings: &Meetings, number: u64) {
        let last = meetings.0[(number % 2) as usize].load(Ordering::Acquire);
        self.clock.borrow_mut().meeting(last as f64);
    }

    /// Serves a doorbell of this block: requests that the NIC runs meanwhile are this core's.
    pub(crate) fn ringing<T>(&self, body: impl FnOnce() -> T) -> T {
        self.looks.borrow_mut().clear();
        self.clock.borrow_mut().doorbell();
        struct Over;
        impl Drop for Over {
            fn drop(&mut self) {
                RINGING.set(std::ptr::null());
            }
        }
        RINGING.set(self);
        let _over = Over;
        body()
    }
}

impl Process {
    fn completions(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The aligned word that holds the byte at `address`.
fn held(address: u64) -> u64 {
    let word = (address & !(WORD - 1)) as *const AtomicU64;
    // SAFETY: the kernel side has just accessed this address, or is about to, and faults of its own are its own; a word that holds a mapped byte is mapped.
    unsafe { &*word }.load(Ordering::Acquire)
}

impl Timed {
    /// Where an address leads. Memory that ACL does not know is the core's own.
    fn target(&self, address: u64) -> Target {
        let Some(region) = memory::containing(address).filter(|region| region.fd >= 0) else {
            return Target {
                link: Link::Own,
                key: 0,
            };
        };
        // SAFETY: the registry keeps the descriptor open while the region is in it.
        let file = unsafe { BorrowedFd::borrow_raw(region.fd) };
        let inode = rustix::fs::fstat(file).map_or(0, |stat| stat.st_ino);
        Target {
            link: link(self.device, &region),
            key: words::key(inode, region.offset + (address - region.va)),
        }
    }
}

/// What lies between a device and memory.
fn link(device: i32, region: &Region) -> Link {
    if region.kind != Kind::Peer {
        return Link::Own;
    }
    let name = config::get().map_or("", |config| config.soc.name);
    let package = name.starts_with("Ascend910_93");
    if package && device / 2 == region.device / 2 {
        Link::Sio
    } else if package || name.starts_with("Ascend950") {
        Link::Fabric
    } else {
        Link::Hccs
    }
}

/// When this process's latest kernel ended, picoseconds; 0 when time is not modelled.
pub(crate) fn now() -> u64 {
    if !is_on() {
        return 0;
    }
    process().map_or(0, |process| process.clock.load(Ordering::Acquire))
}

/// The NIC's part.
struct NicTiming;

/// What the NIC is to tell of its requests; `None` when time is not modelled.
pub(crate) fn timing() -> Option<Arc<dyn Timing>> {
    is_on().then(|| Arc::new(NicTiming) as Arc<dyn Timing>)
}

thread_local! {
    /// When the request that the NIC has just run completes.
    static COMPLETES: Cell<f64> = const { Cell::new(0.0) };
}

fn ringing<T>(body: impl FnOnce(&Timed) -> T) -> Option<T> {
    let timed = RINGING.get();
    // SAFETY: set by `ringing` for as long as the block's doorbell is served on this thread.
    (!timed.is_null()).then(|| body(unsafe { &*timed }))
}

impl Timing for NicTiming {
    fn request(&self, request: &Executed) {
        ringing(|timed| {
            let what = match request.opcode {
                opcode::WRITE => Request::Write,
                opcode::READ => Request::Read,
                opcode::FETCH_ADD | opcode::COMPARE_SWAP => Request::Atomic,
                _ => Request::Nothing,
            };
            let times =
                timed
                    .clock
                    .borrow_mut()
                    .request(request.qp, what, request.bytes, request.strong);
            COMPLETES.set(times.completion);
            let changes = matches!(what, Request::Write | Request::Atomic);
            if let Some((Place { inode, offset }, before)) = request.word.filter(|_| changes) {
                timed.process.words.change(
                    words::key(inode, offset),
                    before,
                    times.arrival.ceil() as u64,
                );
            }
        });
    }

    fn completion(&self, address: u64, before: u64) {
        ringing(|timed| {
            let pending = Pending {
                before,
                at: COMPLETES.get().ceil() as u64,
                after: None,
            };
            timed
                .process
                .completions()
                .insert(address & !(WORD - 1), pending);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meetings_end_when_the_last_one_came() {
        let meetings = Meetings::default();
        meetings.0[0].fetch_max(70, Ordering::Relaxed);
        let mut clock = Clock::new(Parameters::table(), 50.0, 2);
        clock.meeting(meetings.0[0].load(Ordering::Relaxed) as f64);
        assert_eq!(clock.now, 70.0 + Parameters::table().meeting);
    }
}
