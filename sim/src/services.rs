//! The functions that a kernel object calls: doorbells, the meeting of all blocks, the system counter, giving way, printing.
//!
//! They run on a block's thread on behalf of kernel code. None unwinds, none is left by a jump: each returns, and the kernel side leaves by itself
//! when the answer says so.

use std::cell::Cell;
use std::ffi::c_char;
use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use crate::abi::{
    npusim_block, npusim_fault_code, npusim_services, NPUSIM_FAULT_RULE, NPUSIM_MAGIC,
    NPUSIM_VERSION,
};
use crate::doorbell::{self, DoorbellKind};
use crate::fault::service;
use crate::launch::{Launch, Meeting, Status};
use crate::time::Timed;

/// Calls in a row that only pause the CPU. The kernel side calls after 32 looks, so these are some microseconds.
const POLLS_PAUSE: u32 = 4;
/// Calls in a row that give the CPU away; later ones sleep.
const POLLS_YIELD: u32 = 2000;
/// How long a block sleeps that has polled for long.
const POLL_SLEEP: Duration = Duration::from_micros(50);
/// Time between two calls after which they count as a new wait. The kernel side makes up to 1024 steps in between.
const POLLS_FORGET: Duration = Duration::from_micros(100);

/// What the emulator keeps for a running block (`emulator_side`).
pub(crate) struct Side<'a> {
    pub(crate) launch: &'a Launch,
    /// The block's clock, where time is modelled.
    pub(crate) timed: Option<Timed>,
    polls: Cell<u32>,
    last: Cell<Option<Instant>>,
}

impl<'a> Side<'a> {
    pub(crate) fn new(launch: &'a Launch, timed: Option<Timed>) -> Self {
        Self {
            launch,
            timed,
            polls: Cell::new(0),
            last: Cell::new(None),
        }
    }
}

/// The table for an NPU whose system counter has so many ticks a second.
pub(crate) fn table(counter_hz: u64) -> &'static npusim_services {
    static TABLE: OnceLock<npusim_services> = OnceLock::new();
    TABLE.get_or_init(|| npusim_services {
        magic: NPUSIM_MAGIC,
        version: NPUSIM_VERSION,
        size: size_of::<npusim_services>() as u64,
        doorbell: Some(doorbell_service),
        sync_all: Some(sync_all),
        system_cycle: Some(if counter_hz == 1_000_000_000 {
            cycle_1ghz
        } else {
            cycle_50mhz
        }),
        yield_: Some(give_way),
        print: Some(print),
        time: Some(time),
    })
}

/// Fills a block's fault. `text` is cut to fit.
pub(crate) fn fill_fault(block: &mut npusim_block, code: npusim_fault_code, text: &str) {
    block.fault.code = code as i32;
    block.fault.file = std::ptr::null();
    block.fault.line = 0;
    let room = block.fault.message.len() - 1;
    let cut = if text.len() <= room {
        text.len()
    } else {
        (0..=room)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0)
    };
    for (to, from) in block
        .fault
        .message
        .iter_mut()
        .zip(text.as_bytes()[..cut].iter().chain(&[0]))
    {
        *to = *from as c_char;
    }
}

/// The block, and what the emulator keeps for it.
///
/// # Safety
/// `block` is what a kernel object got from `block.rs` and runs right now.
unsafe fn parts<'a>(block: *mut npusim_block) -> (&'a mut npusim_block, &'a Side<'a>) {
    // SAFETY: both live while the block runs; `emulator_side` was set to a Side by `block.rs`.
    unsafe { (&mut *block, &*(*block).emulator_side.cast::<Side<'a>>()) }
}

/// Runs a service that may panic: the kernel gets a fault then.
fn guarded(
    block: &mut npusim_block,
    body: impl FnOnce(&mut npusim_block) -> Result<(), String>,
) -> i32 {
    service(|| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(block)));
        match result {
            Ok(Ok(())) => 0,
            Ok(Err(text)) => {
                fill_fault(block, NPUSIM_FAULT_RULE, &text);
                1
            }
            Err(_) => {
                fill_fault(
                    block,
                    NPUSIM_FAULT_RULE,
                    "the emulator failed inside; this is a fault of npusim, please report it",
                );
                1
            }
        }
    })
}

unsafe extern "C" fn doorbell_service(block: *mut npusim_block, address: u64, value: u64) -> i32 {
    // SAFETY: npusim.h: called on the thread of a running block.
    let (block, side) = unsafe { parts(block) };
    side.polls.set(0);
    guarded(block, |block| {
        let ring = || doorbell::ring(address, value);
        let kind = match &side.timed {
            Some(timed) => timed.ringing(ring),
            None => ring(),
        };
        match kind? {
            DoorbellKind::Send => block.counters.sq_doorbells += 1,
            DoorbellKind::Completion => block.counters.cq_doorbells += 1,
        }
        Ok(())
    })
}

unsafe extern "C" fn sync_all(block: *mut npusim_block) -> i32 {
    // SAFETY: npusim.h: called on the thread of a running block.
    let (block, side) = unsafe { parts(block) };
    side.polls.set(0);
    let index = block.block_idx as u32;
    let mut stopped = false;
    let code = guarded(block, |_| {
        side.launch.set_status(index, Status::Meeting);
        let timed = side.timed.as_ref();
        let number = timed.map(|timed| timed.arrive(&side.launch.meetings));
        let result = side.launch.meet();
        if let (Some(timed), Some(number)) = (timed, number) {
            timed.leave(&side.launch.meetings, number);
        }
        side.launch.set_status(index, Status::Running);
        match result {
            Meeting::Done => Ok(()),
            Meeting::Stopped => {
                stopped = true;
                Err("asked to leave while it waited in SyncAll".to_owned())
            }
            Meeting::Impossible(text) => Err(text),
        }
    });
    if stopped {
        block.fault.code = crate::abi::NPUSIM_FAULT_STOPPED as i32;
    }
    code
}

fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The counter of a block whose time is modelled.
fn modelled(block: *const npusim_block) -> Option<u64> {
    // SAFETY: npusim.h: called on the thread of a running block.
    let (_, side) = unsafe { parts(block.cast_mut()) };
    side.timed.as_ref().map(Timed::ticks)
}

unsafe extern "C" fn time(block: *mut npusim_block, step: u32, a: u64, b: u64, c: u64) -> u64 {
    // SAFETY: npusim.h: called on the thread of a running block.
    let (_, side) = unsafe { parts(block) };
    match &side.timed {
        Some(timed) => service(|| timed.step(step, a, b, c)),
        None => c,
    }
}

unsafe extern "C" fn cycle_50mhz(block: *const npusim_block) -> u64 {
    /// Nanoseconds of a tick.
    const TICK: u64 = 20;
    modelled(block).unwrap_or_else(|| nanoseconds() / TICK)
}

unsafe extern "C" fn cycle_1ghz(block: *const npusim_block) -> u64 {
    modelled(block).unwrap_or_else(nanoseconds)
}

unsafe extern "C" fn give_way(block: *mut npusim_block) {
    // SAFETY: npusim.h: called on the thread of a running block.
    let (block, side) = unsafe { parts(block) };
    let polls = side.polls.get();
    side.polls.set(polls.saturating_add(1));
    if polls < POLLS_PAUSE {
        std::hint::spin_loop();
        return;
    }
    service(|| {
        // A block that did something else since the last call waits for something new.
        if side
            .last
            .get()
            .is_some_and(|last| last.elapsed() > POLLS_FORGET)
        {
            side.polls.set(POLLS_PAUSE);
        }
        side.launch
            .set_status(block.block_idx as u32, Status::Polling);
        if side.polls.get() < POLLS_YIELD {
            std::thread::yield_now();
        } else {
            std::thread::sleep(POLL_SLEEP);
        }
        side.last.set(Some(Instant::now()));
    });
}

unsafe extern "C" fn print(block: *mut npusim_block, text: *const c_char, length: u64) {
    if text.is_null() {
        return;
    }
    // SAFETY: npusim.h: `text` has `length` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    let _ = block;
    service(|| {
        let mut out = std::io::stdout().lock();
        // A closed standard output is no reason to stop a kernel.
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    });
}
