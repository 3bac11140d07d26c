//! Runs blocks: a thread is an AIV core with its own unified buffer. The stream's worker runs block 0, threads of a pool the others.
//!
//! A core's unified buffer has pages without access on both sides and is poisoned again after a block that moved data through it. Kernels have a
//! budget of 32 KiB of stack on hardware; a core here has far more, and a page without access below it, so that an overflow is reported as one.

use std::cell::RefCell;
use std::ffi::{c_void, CStr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use npushmem_ffi::acl;
use rustix::mm::{mmap_anonymous, mprotect, munmap, MapFlags, MprotectFlags, ProtFlags};

use crate::abi::{
    npusim_block, npusim_counters, NPUSIM_FAULT_MEMORY, NPUSIM_FAULT_NONE, NPUSIM_FAULT_RULE,
    NPUSIM_FAULT_STOPPED, NPUSIM_FAULT_TRAP, NPUSIM_MAGIC, NPUSIM_VERSION,
};
use crate::config::{self, Config};
use crate::error::{fail, system, Fail, Outcome};
use crate::fault::{self, Detail};
use crate::launch::{Launch, Status};
use crate::memory::{self, PAGE, POISON};
use crate::services::Side;
use crate::time::Timed;

/// Bytes of a core's stack. Kernels get 32 KiB on hardware; x86 code spills more, and the NIC's work runs here too.
pub(crate) const STACK: usize = 2 << 20;

struct Core {
    ub: u64,
    size: u64,
    dirty: bool,
    /// The thread's signal stack, which lives as long as the core.
    _signals: fault::SignalStack,
}

impl Core {
    fn new(config: &Config) -> Outcome<Self> {
        let signals = fault::prepare_thread()?;
        let size = config.soc.ub;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                (size + 2 * PAGE) as usize,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )
        }
        .map_err(|e| system("cannot allocate a unified buffer", e))? as u64;
        let ub = base + PAGE;
        // SAFETY: the middle of the mapping made above.
        unsafe {
            mprotect(
                ub as *mut c_void,
                size as usize,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
        }
        .map_err(|e| system("cannot open a unified buffer", e))?;
        Ok(Self {
            ub,
            size,
            dirty: true,
            _signals: signals,
        })
    }

    fn clean(&mut self) {
        if std::mem::take(&mut self.dirty) {
            // SAFETY: the unified buffer of this thread, which runs no block now.
            unsafe { std::ptr::write_bytes(self.ub as *mut u8, POISON, self.size as usize) };
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`, with its guards; no block runs on this thread any more.
        let _ = unsafe {
            munmap(
                (self.ub - PAGE) as *mut c_void,
                (self.size + 2 * PAGE) as usize,
            )
        };
    }
}

thread_local! {
    static CORE: RefCell<Option<Core>> = const { RefCell::new(None) };
}

/// Poisons the calling core's unified buffer if a block has used it: done while nobody waits.
pub(crate) fn clean() {
    CORE.with_borrow_mut(|core| {
        if let Some(core) = core {
            core.clean();
        }
    });
}

/// How a block ended.
#[derive(Default)]
struct Ended {
    counters: Option<npusim_counters>,
    fail: Option<Fail>,
}

impl From<Fail> for Ended {
    fn from(fail: Fail) -> Self {
        Self {
            counters: None,
            fail: Some(fail),
        }
    }
}

/// Runs one block on the calling thread and reports its end to the launch.
pub(crate) fn run(launch: &Launch, index: u32) {
    let ended = if launch.is_stopped() {
        Ended::default()
    } else {
        CORE.with_borrow_mut(|slot| run_on(slot, launch, index))
    };
    launch.block_ended(index, ended.counters.as_ref(), ended.fail);
}

fn run_on(slot: &mut Option<Core>, launch: &Launch, index: u32) -> Ended {
    let config = match config::get() {
        Ok(config) => config,
        Err(fail) => return fail.into(),
    };
    let core = match slot {
        Some(core) => core,
        None => match Core::new(config) {
            Ok(core) => slot.insert(core),
            Err(fail) => return fail.into(),
        },
    };
    core.clean();
    let (doorbell_begin, doorbell_end) = crate::doorbell::range();
    let timed = match Timed::new(launch) {
        Ok(timed) => timed,
        Err(fail) => return fail.into(),
    };
    let side = Side::new(launch, timed);
    let mut block = npusim_block {
        magic: NPUSIM_MAGIC,
        version: NPUSIM_VERSION,
        size: size_of::<npusim_block>() as u64,
        block_idx: i64::from(index),
        block_num: i64::from(launch.blocks),
        ub: core.ub as *mut u8,
        ub_size: core.size,
        doorbell_begin,
        doorbell_end,
        chaos_seed: chaos(config.chaos_seed, launch, index),
        stop: launch.stop.as_ptr(),
        timed: u64::from(side.timed.is_some()),
        emulator_side: (&raw const side).cast_mut().cast(),
        ..Default::default()
    };
    let Some(run) = launch.function.kernel.run else {
        return fail(
            acl::ACL_ERROR_RT_INVALID_DEVICE_FUNCTION,
            "the kernel has no code",
        )
        .into();
    };
    launch.block_begins(index);
    fault::enter(
        &mut block,
        launch.function.module.leave(),
        launch.function.module.text,
    );
    // SAFETY: npusim.h: the block is complete, the arguments have the size that the kernel says, and the module is held by the launch.
    unsafe { run(&mut block, launch.args().cast()) };
    let detail = fault::exit();
    if let Some(timed) = &side.timed {
        timed.end();
    }
    let counters = block.counters;
    core.dirty = touched(&counters) || block.fault.code != NPUSIM_FAULT_NONE as i32;
    let fail = match block.fault.code as u32 {
        NPUSIM_FAULT_NONE | NPUSIM_FAULT_STOPPED => None,
        _ => Some(report(launch, index, &block, detail)),
    };
    Ended {
        counters: Some(counters),
        fail,
    }
}

/// Whether a block may have left something in the unified buffer.
fn touched(counters: &npusim_counters) -> bool {
    counters.mte2_copies + counters.mte3_copies + counters.vector_ops + counters.flags_set > 0
}

/// The seed of a block: never 0 unless there is no chaos.
fn chaos(seed: u64, launch: &Launch, index: u32) -> u64 {
    if seed == 0 {
        return 0;
    }
    let place =
        launch.number << 32 | (launch.device.id as u64 & 0xffff) << 16 | u64::from(index & 0xffff);
    // splitmix64, so that neighbouring places have seeds far apart.
    let mut x = seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) | 1
}

/// A fault as a sentence: kernel, block, file and line, what was wrong.
fn report(launch: &Launch, index: u32, block: &npusim_block, detail: Detail) -> Fail {
    let fault = &block.fault;
    let mut text = format!(
        "kernel {}, block {index} of {}: ",
        launch.function.name, launch.blocks
    );
    if !fault.file.is_null() {
        // SAFETY: npusim.h: a NUL-terminated string in the object's static storage.
        let file = unsafe { CStr::from_ptr(fault.file) }.to_string_lossy();
        text.push_str(&format!("{file}:{}: ", fault.line));
    }
    let mut message = fault.message;
    if let Some(last) = message.last_mut() {
        *last = 0;
    }
    // SAFETY: the last byte was set to NUL above.
    let message = unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy();
    let code = match fault.code as u32 {
        NPUSIM_FAULT_MEMORY => {
            if detail.overflow {
                text.push_str("the stack ran over: kernels have a budget of 32 KiB on hardware (recursion, or a large local array?)");
            } else {
                let access = if detail.store {
                    "a store to"
                } else {
                    "an access to"
                };
                text.push_str(&format!(
                    "{access} the wild address {:#x}: {}",
                    fault.address,
                    memory::describe(fault.address)
                ));
            }
            if !message.is_empty() {
                text.push_str(&format!(" ({message})"));
            }
            acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION
        }
        NPUSIM_FAULT_TRAP => {
            text.push_str(if message.is_empty() {
                "trap()"
            } else {
                &message
            });
            acl::ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION
        }
        NPUSIM_FAULT_RULE => {
            text.push_str(if message.is_empty() {
                "a rule of AscendC was broken"
            } else {
                &message
            });
            acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION
        }
        other => {
            text.push_str(&format!(
                "fault code {other}, which the emulator does not know: {message}"
            ));
            acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION
        }
    };
    if detail.offset != 0 {
        text.push_str(&format!(" [code offset {:#x}]", detail.offset));
    }
    fail(code, text)
}

/// A thread of the pool that waits for blocks.
struct Idle {
    job: Mutex<Option<(Arc<Launch>, u32)>>,
    given: Condvar,
}

static IDLE: Mutex<Vec<Arc<Idle>>> = Mutex::new(Vec::new());

/// Runs a block on a thread of the pool. The core was taken already.
pub(crate) fn dispatch(launch: Arc<Launch>, index: u32) {
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    if let Some(idle) = idle {
        *idle.job.lock().unwrap_or_else(PoisonError::into_inner) = Some((launch, index));
        idle.given.notify_one();
        return;
    }
    let first = (launch.clone(), index);
    let spawned = std::thread::Builder::new()
        .name("npusim-core".to_owned())
        .stack_size(STACK)
        .spawn(move || pool_thread(first));
    if let Err(error) = spawned {
        launch.block_ended(
            index,
            None,
            Some(system("cannot start a thread for a core", error)),
        );
        if let Some((launch, index)) = launch.device.scheduler.release(None) {
            dispatch(launch, index);
        }
    }
}

fn pool_thread(first: (Arc<Launch>, u32)) {
    let me = Arc::new(Idle {
        job: Mutex::new(None),
        given: Condvar::new(),
    });
    let mut job = Some(first);
    loop {
        while let Some((launch, index)) = job.take() {
            run(&launch, index);
            clean();
            job = launch.device.scheduler.release(None);
        }
        IDLE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(me.clone());
        let mut slot = me.job.lock().unwrap_or_else(PoisonError::into_inner);
        while slot.is_none() {
            slot = me.given.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
        job = slot.take();
    }
}

/// The number of the calling thread, for signals.
pub(crate) fn thread_id() -> i32 {
    thread_local! {
        static ID: i32 = rustix::thread::gettid().as_raw_nonzero().get();
    }
    ID.with(|id| *id)
}

/// Asks the thread to leave its block.
pub(crate) fn signal(thread: i32) {
    // SAFETY: a signal to a thread of this process that has the handler installed; a thread that is gone gives an error, which is fine.
    unsafe {
        libc::syscall(
            libc::SYS_tgkill,
            std::process::id(),
            thread,
            fault::SIGNAL_LEAVE,
        )
    };
}

/// Marks a block's status for diagnosis.
pub(crate) fn mark(launch: &Launch, index: u32, status: Status) {
    if let Some(slot) = launch.status.get(index as usize) {
        slot.store(status as u8, Ordering::Relaxed);
    }
}
