//! A small process beside the launcher that ends what the PEs started when the launcher is killed and cannot do it itself.
//!
//! PEs die with the launcher by PR_SET_PDEATHSIG; their children know no such thing. Each PE tells its process group before it runs its program,
//! the launcher takes the group back before it reaps the PE. When the socket closes while groups are left, the launcher is gone: they are killed
//! at once, while what is left of them still holds their numbers. The process is nobody's child and exits with the launcher. Only launch/ uses it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Most groups that are kept: the most PEs of one machine.
const MOST: usize = 4096;
/// How long a message may take to be taken: the guard reads at once unless somebody has stopped it.
static PATIENCE: libc::timeval = libc::timeval {
    tv_sec: 0,
    tv_usec: 100_000,
};

/// The launcher's end. Dropping it ends the guard.
pub struct Guard(OwnedFd);

impl Guard {
    /// Starts the process.
    pub fn start() -> std::io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the kernel fills two descriptors, which belong to nobody else; the option is read from a constant that outlives the call.
        let (ours, theirs) = unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let ends = ends.map(|end| OwnedFd::from_raw_fd(end));
            libc::setsockopt(
                ends[0].as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_SNDTIMEO,
                (&raw const PATIENCE).cast(),
                std::mem::size_of_val(&PATIENCE) as libc::socklen_t,
            );
            ends.into()
        };
        // SAFETY: the new processes make system calls only; nothing allocates or takes a lock. The first one is reaped here.
        unsafe {
            match libc::fork() {
                -1 => return Err(std::io::Error::last_os_error()),
                0 => {
                    // Out of the terminal's reach, and a child of nobody whom it would disturb.
                    libc::setsid();
                    if libc::fork() == 0 {
                        watch(theirs.as_raw_fd());
                    }
                    libc::_exit(0);
                }
                child => {
                    while libc::waitpid(child, std::ptr::null_mut(), 0) < 0
                        && errno() == libc::EINTR
                    {}
                }
            }
        }
        drop(theirs);
        Ok(Self(ours))
    }

    /// Where a new PE says its group, see [`tell`].
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The group is the launcher's to end again.
    pub fn forget(&self, group: i32) {
        tell(self.descriptor(), -group);
    }
}

/// A group to keep; a negative one to forget. Makes one system call, so a PE may call it before exec. A guard that is gone guards nothing.
pub fn tell(guard: RawFd, group: i32) {
    // SAFETY: the kernel reads four bytes of a value that outlives the call.
    unsafe {
        libc::send(
            guard,
            (&raw const group).cast(),
            std::mem::size_of::<i32>(),
            libc::MSG_NOSIGNAL,
        );
    }
}

fn errno() -> i32 {
    // SAFETY: the location belongs to this thread.
    unsafe { *libc::__errno_location() }
}

/// # Safety
/// Called in a process of its own, which it ends.
unsafe fn watch(socket: RawFd) -> ! {
    let mut groups = [0i32; MOST];
    let mut count = 0;
    // SAFETY: system calls on descriptors and groups by number; the kernel writes four bytes into a value that outlives the call.
    unsafe {
        libc::dup2(socket, 0);
        if libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32) != 0 {
            (1..4096).for_each(|descriptor| {
                libc::close(descriptor);
            });
        }
        libc::chdir(c"/".as_ptr());
        loop {
            let mut group = 0i32;
            let read = libc::recv(0, (&raw mut group).cast(), std::mem::size_of::<i32>(), 0);
            match read {
                4 if group > 0 && count < MOST => {
                    groups[count] = group;
                    count += 1;
                }
                4 => {
                    if let Some(at) = groups[..count].iter().position(|&kept| kept == -group) {
                        count -= 1;
                        groups[at] = groups[count];
                    }
                }
                -1 if errno() == libc::EINTR => {}
                _ => break,
            }
        }
        for &group in &groups[..count] {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}
