//! Signals to the launcher as a file descriptor, and their names. While a job runs they are blocked and read here; afterwards they act as before.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that are passed on to the PEs.
const FORWARDED: [i32; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
];

/// Owner of the blocked signals; dropping it restores the mask.
pub struct Signals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks the forwarded signals for the calling thread and those that it starts from now on.
    pub fn block() -> std::io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set; the other calls read it and write `before`, both of which outlive them. The descriptor is
        // new and belongs to nobody else.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in FORWARDED {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            if error != 0 {
                return Err(std::io::Error::from_raw_os_error(error));
            }
            let before = before.assume_init();
            let descriptor =
                libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if descriptor < 0 {
                let error = std::io::Error::last_os_error();
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                return Err(error);
            }
            Ok(Self {
                descriptor: OwnedFd::from_raw_fd(descriptor),
                before,
            })
        }
    }

    /// The signals that were blocked before, for the programs that are started meanwhile: a mask survives exec.
    pub fn before(&self) -> libc::sigset_t {
        self.before
    }

    /// The next signal that arrived, if any.
    pub fn next(&self) -> Option<i32> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = std::mem::size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`, for which all-zero and every other content is valid.
        unsafe {
            let read = libc::read(self.descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size);
            (read == size as isize).then(|| info.assume_init().ssi_signo as i32)
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while self.next().is_some() {}
        // SAFETY: `before` was filled by pthread_sigmask.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}

/// "SIGSEGV (signal 11)".
pub fn name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    format!("{name} (signal {signal})")
}
