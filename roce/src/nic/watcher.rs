//! Notices the death of peers: one thread a NIC, started with the first peer of another process, waits on pidfds and marks ports.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{poll, EventfdFlags, PollFd, PollFlags};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use super::error::NicError;
use super::process::start_time;
use super::responder::Responder;

struct Watched {
    pidfd: OwnedFd,
    responder: Arc<Responder>,
}

struct Shared {
    wake: OwnedFd,
    stop: AtomicBool,
    watched: Mutex<Vec<Watched>>,
}

/// The watching thread; it ends when this is dropped.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub(super) fn start() -> Result<Watcher, NicError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = rustix::event::eventfd(0, flags).map_err(NicError::system("eventfd"))?;
        let shared = Arc::new(Shared {
            wake,
            stop: AtomicBool::new(false),
            watched: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("npusim-watcher".to_owned())
            .spawn(move || watch(&of_thread))
            .map_err(|source| NicError::System {
                call: "starting the watcher's thread",
                source,
            })?;
        Ok(Watcher {
            shared,
            thread: Some(thread),
        })
    }

    /// Watches the process behind a port. If it has ended already, the port is marked at once.
    pub(super) fn add(&self, responder: &Arc<Responder>) -> Result<(), NicError> {
        let (pid, started) = responder.port.owner();
        let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return Err(NicError::Address {
                why: format!("{pid} is no process number"),
            });
        };
        let pidfd = match pidfd_open(process, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => {
                responder.bury();
                return Ok(());
            }
            Err(errno) => {
                return Err(NicError::System {
                    call: "pidfd_open",
                    source: errno.into(),
                })
            }
        };
        // Read after the pidfd was opened: if it still fits, the pidfd is that process's.
        if start_time(pid).ok() != Some(started) {
            responder.bury();
            return Ok(());
        }
        let watched = Watched {
            pidfd,
            responder: Arc::clone(responder),
        };
        self.shared
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(watched);
        self.shared.wake();
        Ok(())
    }
}

impl Shared {
    fn wake(&self) {
        // An eventfd refuses only when its counter is full; then the thread is about to wake anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic; if it did, it has ended, and that is all that matters here.
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared) {
    while !shared.stop.load(Ordering::SeqCst) {
        match wait_for_deaths(shared) {
            Ok(dead) => mark(shared, &dead),
            Err(error) => {
                tracing::error!(target: "npushmem_roce::nic", "the watcher ends, dead peers will not be noticed: {error}");
                return;
            }
        }
    }
}

/// Waits until something happens; whether each watched process has ended.
fn wait_for_deaths(shared: &Shared) -> io::Result<Vec<bool>> {
    let pidfds: Vec<OwnedFd> = {
        let watched = shared
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        watched
            .iter()
            .map(|entry| entry.pidfd.try_clone())
            .collect::<io::Result<_>>()?
    };
    let mut polled = vec![PollFd::new(&shared.wake, PollFlags::IN)];
    polled.extend(
        pidfds
            .iter()
            .map(|pidfd| PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)),
    );
    match poll(&mut polled, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => (),
        Err(errno) => return Err(errno.into()),
    }
    // Empties the counter; an empty one is not an error worth knowing.
    let _ = rustix::io::read(&shared.wake, &mut [0_u8; 8]);
    Ok(polled[1..]
        .iter()
        .map(|entry| !entry.revents().is_empty())
        .collect())
}

/// Only this thread removes entries, so the first `dead.len()` are those that were polled.
fn mark(shared: &Shared, dead: &[bool]) {
    let mut watched = shared
        .watched
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let mut flags = dead.iter();
    watched.retain(|entry| {
        let ended = flags.next().copied().unwrap_or(false);
        if ended {
            entry.responder.bury();
        }
        !ended
    });
}
