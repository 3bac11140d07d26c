//! Waits for the PEs, passes signals on, and ends the job: on the first failure, at the timeout, or when the launcher is asked to end.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant};

use npushmem::bootstrap::store::Server;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};

use super::guard::Guard;
use super::signals::Signals;
use super::{End, Job, LaunchError};

/// A started PE: leader of its own process group.
pub struct Pe {
    number: u32,
    child: Child,
    group: Pid,
    descriptor: OwnedFd,
}

impl Pe {
    /// Takes a child that was started as leader of a process group.
    pub fn new(number: u32, mut child: Child) -> Result<Self, LaunchError> {
        let group = Pid::from_child(&child);
        match pidfd_open(group, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self {
                number,
                child,
                group,
                descriptor,
            }),
            Err(error) => {
                // Ours, and not yet reaped.
                let _ = child.kill();
                let _ = child.wait();
                Err(LaunchError::System {
                    what: "pidfd_open (Linux 5.3 or newer)",
                    source: error.into(),
                })
            }
        }
    }

    /// Signals the PE and all that it started in its group. It has not been reaped, so the group is its own.
    fn signal(&self, signal: Signal) {
        // The only failure is a group without processes that may be signalled: nothing to do then.
        let _ = kill_process_group(self.group, signal);
    }

    /// The PE has ended (or is ended now): ends what it left in its group, reaps it and says how it ended.
    fn reap(&mut self, guard: &Guard) -> End {
        self.signal(Signal::KILL);
        guard.forget(self.group.as_raw_nonzero().get());
        match self.child.wait() {
            Ok(status) => match (
                status.code(),
                std::os::unix::process::ExitStatusExt::signal(&status),
            ) {
                (Some(code), _) => End::Code(code),
                (None, Some(signal)) => End::Signal(signal),
                (None, None) => End::Code(-1),
            },
            Err(_) => End::Code(-1),
        }
    }
}

/// Whether a PE that ended while all were being ended was killed by somebody else; `grace`: we have not sent KILL yet.
fn killed_by_others(end: End, grace: bool) -> bool {
    match end {
        End::Signal(signal) if signal == Signal::TERM.as_raw() => false,
        End::Signal(signal) if signal == Signal::KILL.as_raw() => grace,
        End::Signal(_) => true,
        End::Code(_) => false,
    }
}

/// Why the PEs are being ended.
enum Ending {
    Failure { pe: u32, end: End, ended: usize },
    Timeout(Vec<u32>),
    Signal(i32),
}

/// The PEs of a job that have not ended. Dropping it ends them.
pub struct Watch<'a> {
    job: &'a Job,
    server: &'a Server,
    signals: &'a Signals,
    guard: &'a Guard,
    running: Vec<Pe>,
    ending: Option<Ending>,
    timeout: Option<Instant>,
    kill: Option<Instant>,
}

impl<'a> Watch<'a> {
    /// A watch without PEs; the job's time begins.
    pub fn new(job: &'a Job, server: &'a Server, signals: &'a Signals, guard: &'a Guard) -> Self {
        let timeout = job
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        Self {
            job,
            server,
            signals,
            guard,
            running: Vec::new(),
            ending: None,
            timeout,
            kill: None,
        }
    }

    /// Watches one PE more.
    pub fn add(&mut self, pe: Pe) {
        self.running.push(pe);
    }

    /// Returns when no PE is left.
    pub fn run(&mut self) -> Result<(), LaunchError> {
        while !self.running.is_empty() {
            let ended = self.wait()?;
            self.collect(ended);
            while let Some(signal) = self.signals.next() {
                self.pass_on(signal);
            }
            let now = Instant::now();
            if self.timeout.is_some_and(|timeout| now >= timeout) && !self.running.is_empty() {
                self.timeout = None;
                if self.ending.is_none() {
                    self.ending = Some(Ending::Timeout(
                        self.running.iter().map(|pe| pe.number).collect(),
                    ));
                    self.end_all(Signal::TERM);
                }
            }
            if self.kill.is_some_and(|kill| now >= kill) {
                self.kill = None;
                self.running.iter().for_each(|pe| pe.signal(Signal::KILL));
            }
        }
        match self.ending.take() {
            None => Ok(()),
            Some(Ending::Failure { pe, end, ended }) => Err(LaunchError::Pe {
                pe,
                pes: self.job.pes,
                end,
                ended,
            }),
            Some(Ending::Timeout(running)) => Err(LaunchError::Timeout {
                timeout: self.job.timeout.unwrap_or_default(),
                running,
            }),
            Some(Ending::Signal(signal)) => Err(LaunchError::Interrupted(signal)),
        }
    }

    /// Waits for a PE to end, a signal or the next deadline. Returns the indices of the PEs that ended.
    fn wait(&self) -> Result<Vec<usize>, LaunchError> {
        let mut descriptors = vec![PollFd::new(self.signals, PollFlags::IN)];
        descriptors.extend(
            self.running
                .iter()
                .map(|pe| PollFd::new(&pe.descriptor, PollFlags::IN)),
        );
        let deadline = [self.timeout, self.kill].into_iter().flatten().min();
        let timeout = deadline.map(|deadline| {
            // A millisecond more, so that the deadline has passed when poll returns.
            let left =
                deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => {
                return Err(LaunchError::System {
                    what: "poll",
                    source: error.into(),
                })
            }
        }
        Ok((0..self.running.len())
            .filter(|&index| !descriptors[index + 1].revents().is_empty())
            .collect())
    }

    fn collect(&mut self, ended: Vec<usize>) {
        let mut failures = Vec::new();
        for index in ended.into_iter().rev() {
            let mut pe = self.running.remove(index);
            let end = pe.reap(self.guard);
            if end.success() {
                self.server.declare_done(pe.number);
            } else {
                // While all are being ended their ends tell nobody anything new.
                if self.ending.is_none() {
                    self.server.declare_dead(pe.number, &end.to_string());
                }
                failures.push((pe.number, end));
            }
        }
        // Of several at once the one that a signal killed is the likelier cause: the others may have failed because of it.
        failures.sort_by_key(|&(pe, end)| (matches!(end, End::Code(_)), pe));
        let Some(&(pe, end)) = failures.first() else {
            return;
        };
        match &mut self.ending {
            // Its end came to be known later than that of a PE that noticed it. No signal of ours: we end with TERM, and later KILL.
            Some(Ending::Failure {
                pe: first,
                end: first_end @ End::Code(_),
                ..
            }) if killed_by_others(end, self.kill.is_some()) => {
                (*first, *first_end) = (pe, end);
            }
            _ => {}
        }
        if self.ending.is_none() {
            let ended = if self.job.keep_going {
                0
            } else {
                self.running.len()
            };
            self.ending = Some(Ending::Failure { pe, end, ended });
            if !self.job.keep_going {
                self.end_all(Signal::TERM);
            }
        }
    }

    fn pass_on(&mut self, signal: i32) {
        let Some(named) = Signal::from_named_raw(signal) else {
            return;
        };
        match named {
            Signal::TSTP => {
                self.running.iter().for_each(|pe| pe.signal(Signal::STOP));
                // Our own stop; execution goes on here after SIGCONT.
                let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
                self.running.iter().for_each(|pe| pe.signal(Signal::CONT));
            }
            Signal::USR1 | Signal::USR2 => self.running.iter().for_each(|pe| pe.signal(named)),
            // Asked a second time: at once.
            _ if matches!(self.ending, Some(Ending::Signal(_))) => self.kill = Some(Instant::now()),
            _ => {
                if self.ending.is_none() {
                    self.ending = Some(Ending::Signal(signal));
                }
                self.end_all(named);
            }
        }
    }

    fn end_all(&mut self, signal: Signal) {
        self.running.iter().for_each(|pe| pe.signal(signal));
        self.kill = Instant::now().checked_add(self.job.grace);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        for pe in &mut self.running {
            pe.reap(self.guard);
        }
    }
}
