//! What a thread that runs a block does about signals: a wild address, a division by zero, a stack that runs over, a request to leave.
//!
//! The handlers are installed once, before what was there, and look at the calling thread first: only a thread that runs kernel code right now is
//! theirs. It is sent to the kernel object's `leave`, which jumps back to the object's entry; unwinding through foreign frames is not possible.
//! Every other fault goes on to the previous handler. Nothing here allocates or locks, as it runs inside signal handlers. Called by `block.rs`.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Once;

use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};

use crate::abi::{
    npusim_block, NPUSIM_FAULT_MEMORY, NPUSIM_FAULT_NONE, NPUSIM_FAULT_RULE, NPUSIM_FAULT_STOPPED,
};
use crate::error::{system, Outcome};

/// Bytes of a thread's signal stack.
const SIGNAL_STACK: usize = 64 << 10;
/// Faults in this many bytes below a stack are its overflow.
const BELOW_STACK: u64 = 1 << 20;
/// Bytes above the end of a stack at which a thread that ran over is sent to `leave`.
const ROOM_TO_LEAVE: u64 = 64 << 10;
/// Bytes below a thread's stack pointer that belong to the interrupted function (x86-64's red zone is 128).
const RED_ZONE: u64 = 512;
/// The request to leave. Ignored by default, and sent to threads of ours only.
pub(crate) const SIGNAL_LEAVE: c_int = libc::SIGURG;

/// The signals and where each one's previous action is kept.
const SIGNALS: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    SIGNAL_LEAVE,
];

struct Thread {
    block: Cell<*mut npusim_block>,
    leave: Cell<u64>,
    text: Cell<(u64, u64)>,
    /// The thread is inside of a service of the emulator, which may hold locks.
    in_service: Cell<bool>,
    stack: Cell<(u64, u64)>,
    /// A handler has sent the thread to `leave` already.
    leaving: Cell<bool>,
    detail: Cell<Detail>,
}

/// What a handler saw.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Detail {
    /// The stack ran over.
    pub(crate) overflow: bool,
    /// The access was a store, where the CPU tells.
    pub(crate) store: bool,
    /// Offset of the instruction in the kernel object's code; 0 when it was elsewhere.
    pub(crate) offset: u64,
}

thread_local! {
    // Constant and without a destructor, so that a handler may look at it.
    static THREAD: Thread = const {
        Thread {
            block: Cell::new(std::ptr::null_mut()),
            leave: Cell::new(0),
            text: Cell::new((0, 0)),
            in_service: Cell::new(false),
            stack: Cell::new((0, 0)),
            leaving: Cell::new(false),
            detail: Cell::new(Detail { overflow: false, store: false, offset: 0 }),
        }
    };
}

/// The previous actions, written before the handlers are installed.
static mut PREVIOUS: [MaybeUninit<libc::sigaction>; SIGNALS.len()] =
    [const { MaybeUninit::uninit() }; SIGNALS.len()];

/// The stack that a thread's handlers run on.
pub(crate) struct SignalStack(*mut c_void);

impl Drop for SignalStack {
    fn drop(&mut self) {
        let off = libc::stack_t {
            ss_sp: std::ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: dropped by the thread that it belongs to, outside of a handler; the mapping is the one of `prepare_thread`.
        unsafe {
            libc::sigaltstack(&off, std::ptr::null_mut());
            let _ = munmap(self.0, SIGNAL_STACK);
        }
    }
}

/// Gets the calling thread ready to run blocks: handlers, a signal stack, the bounds of its stack.
pub(crate) fn prepare_thread() -> Outcome<SignalStack> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(install);

    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let stack = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            SIGNAL_STACK,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
    .map_err(|e| system("cannot allocate a signal stack", e))?;
    let description = libc::stack_t {
        ss_sp: stack,
        ss_flags: 0,
        ss_size: SIGNAL_STACK,
    };
    let stack = SignalStack(stack);
    // SAFETY: the stack was mapped above and stays until `SignalStack` has taken it out of use.
    if unsafe { libc::sigaltstack(&description, std::ptr::null_mut()) } != 0 {
        return Err(system("sigaltstack", std::io::Error::last_os_error()));
    }
    THREAD.with(|thread| thread.stack.set(stack_bounds()));
    Ok(stack)
}

/// Lowest address and end of the calling thread's stack; (0, 0) when it cannot be told.
fn stack_bounds() -> (u64, u64) {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call, read by the second and destroyed by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return (0, 0);
        }
        libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    (low as u64, low as u64 + size as u64)
}

fn install() {
    for (index, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: `Once` lets one thread in; the previous action is stored before our handler, its only reader, is in place.
        unsafe {
            let previous = (&raw mut PREVIOUS[index]).cast::<libc::sigaction>();
            if libc::sigaction(signal, std::ptr::null(), previous) != 0 {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Declares that the calling thread runs kernel code for `block` from now on.
pub(crate) fn enter(block: *mut npusim_block, leave: u64, text: (u64, u64)) {
    THREAD.with(|thread| {
        thread.detail.set(Detail::default());
        thread.in_service.set(false);
        thread.leaving.set(false);
        thread.leave.set(leave);
        thread.text.set(text);
        thread.block.set(block);
    });
}

/// Declares that it does no longer; returns what a handler saw.
pub(crate) fn exit() -> Detail {
    THREAD.with(|thread| {
        thread.block.set(std::ptr::null_mut());
        thread.detail.get()
    })
}

/// Runs emulator code on behalf of a kernel: a fault in it is the emulator's own.
pub(crate) fn service<T>(body: impl FnOnce() -> T) -> T {
    THREAD.with(|thread| thread.in_service.set(true));
    let result = body();
    THREAD.with(|thread| thread.in_service.set(false));
    result
}

unsafe extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handled = THREAD.with(|thread| {
        let block = thread.block.get();
        if block.is_null() || thread.in_service.get() || info.is_null() || context.is_null() {
            return false;
        }
        // SAFETY: the kernel passes valid structures, and the block lives while the thread runs it.
        unsafe {
            handle(
                thread,
                &mut *block,
                signal,
                &*info,
                &mut *context.cast::<libc::ucontext_t>(),
            )
        }
    });
    if !handled {
        // SAFETY: the arguments are those that the kernel passed.
        unsafe { pass_on(signal, info, context) };
    }
}

/// # Safety
/// Called by the signal handler of a thread that runs `block`.
unsafe fn handle(
    thread: &Thread,
    block: &mut npusim_block,
    signal: c_int,
    info: &libc::siginfo_t,
    context: &mut libc::ucontext_t,
) -> bool {
    let (instruction, stack_pointer) = registers(context);
    let text = thread.text.get();
    let in_text = (text.0..text.1).contains(&instruction);
    let mut detail = Detail {
        offset: if in_text { instruction - text.0 } else { 0 },
        ..Detail::default()
    };
    let (low, high) = thread.stack.get();

    if signal == SIGNAL_LEAVE {
        // SAFETY: `stop` points into the launch, which outlives its blocks.
        let asked = !block.stop.is_null() && unsafe { block.stop.read_volatile() } != 0;
        // Outside of the object's own code (in libc, say) the thread may hold a lock: it is asked again later.
        if !asked || !in_text || thread.leaving.get() {
            return true;
        }
        if block.fault.code == NPUSIM_FAULT_NONE as i32 {
            block.fault.code = NPUSIM_FAULT_STOPPED as i32;
        }
    } else {
        // Sent by a process and not by an instruction, or the way out is broken too.
        if info.si_code <= 0 || thread.leaving.get() {
            return false;
        }
        if signal == libc::SIGSEGV || signal == libc::SIGBUS {
            // SAFETY: these signals carry an address.
            let address = unsafe { info.si_addr() } as u64;
            detail.overflow =
                low != 0 && address < low + crate::memory::PAGE && address + BELOW_STACK >= low;
            detail.store = is_store(context);
            block.fault.code = NPUSIM_FAULT_MEMORY as i32;
            block.fault.address = address;
        } else {
            block.fault.code = NPUSIM_FAULT_RULE as i32;
            block.fault.address = instruction;
            let text: &[u8] = if signal == libc::SIGFPE {
                b"integer division by zero, or a quotient that does not fit"
            } else {
                b"an illegal instruction: the compiler ended the code here (unreachable code, a failed assertion)"
            };
            for (to, from) in block.fault.message.iter_mut().zip(text.iter().chain(&[0])) {
                *to = *from as std::ffi::c_char;
            }
        }
        block.fault.file = std::ptr::null();
        block.fault.line = 0;
    }
    thread.detail.set(detail);
    thread.leaving.set(true);

    let usable = (low + ROOM_TO_LEAVE..high).contains(&stack_pointer);
    let stack = if usable || low == 0 {
        stack_pointer - RED_ZONE
    } else {
        low + ROOM_TO_LEAVE
    };
    // SAFETY: `leave` is the object's function, and `stack` lies in this thread's stack below everything that `leave` will return to.
    unsafe {
        redirect(
            context,
            thread.leave.get(),
            (block as *mut npusim_block) as u64,
            stack & !15,
        )
    };
    true
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> (u64, u64) {
    let registers = &context.uc_mcontext.gregs;
    (
        registers[libc::REG_RIP as usize] as u64,
        registers[libc::REG_RSP as usize] as u64,
    )
}

#[cfg(target_arch = "x86_64")]
fn is_store(context: &libc::ucontext_t) -> bool {
    // Bit 1 of the page fault's error code: a write.
    context.uc_mcontext.gregs[libc::REG_ERR as usize] & 2 != 0
}

/// # Safety
/// `target` takes one pointer and never returns; the 8 bytes below `stack` may be overwritten.
#[cfg(target_arch = "x86_64")]
unsafe fn redirect(context: &mut libc::ucontext_t, target: u64, argument: u64, stack: u64) {
    /// The direction flag, which the calling convention wants clear.
    const DIRECTION: i64 = 0x400;
    let registers = &mut context.uc_mcontext.gregs;
    // As after a call: the stack pointer is 8 below a multiple of 16, at a return address.
    let stack = stack - 8;
    // SAFETY: the caller says so.
    unsafe { (stack as *mut u64).write(0) };
    registers[libc::REG_RIP as usize] = target as i64;
    registers[libc::REG_RDI as usize] = argument as i64;
    registers[libc::REG_RSP as usize] = stack as i64;
    registers[libc::REG_EFL as usize] &= !DIRECTION;
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> (u64, u64) {
    (context.uc_mcontext.pc, context.uc_mcontext.sp)
}

#[cfg(target_arch = "aarch64")]
fn is_store(_context: &libc::ucontext_t) -> bool {
    // The syndrome is in an extension record that is not looked for here.
    false
}

/// # Safety
/// `target` takes one pointer and never returns.
#[cfg(target_arch = "aarch64")]
unsafe fn redirect(context: &mut libc::ucontext_t, target: u64, argument: u64, stack: u64) {
    context.uc_mcontext.pc = target;
    context.uc_mcontext.regs[0] = argument;
    context.uc_mcontext.regs[30] = 0;
    context.uc_mcontext.sp = stack;
}

/// Does what would have been done without us.
///
/// # Safety
/// The arguments are those of the running signal handler.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(index) = SIGNALS.iter().position(|known| *known == signal) else {
        return;
    };
    // SAFETY: written before the handler was installed.
    let previous = unsafe { &*(&raw const PREVIOUS[index]).cast::<libc::sigaction>() };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN if signal == SIGNAL_LEAVE => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: with the default action back in place the instruction runs again and ends the process as it should.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the previous owner installed a function of this type.
            let handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            // SAFETY: called as the kernel would.
            unsafe { handler(signal, info, context) };
        }
        handler => {
            // SAFETY: the previous owner installed a function of this type.
            let handler: unsafe extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            // SAFETY: called as the kernel would.
            unsafe { handler(signal) };
        }
    }
}
