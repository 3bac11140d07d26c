//! The launcher: starts the PEs of a job on this machine, passes their output on, and ends all of them when one fails.
//!
//! Behind `npushmem run` and `npushmem gnn`. It serves the job's TCP store (the library's) and hands out the job token; it takes no part in
//! any transfer. It signals only processes that it started: each PE is the leader of a process group of its own, and is signalled before it
//! is reaped, so that a recycled process id can never be meant. PEs die with the launcher (PR_SET_PDEATHSIG), and what they started with them
//! (guard.rs).

mod guard;
mod input;
mod output;
mod signals;
mod watch;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use npushmem::bootstrap::store::{ServeError, Server};
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::process::Signal;
use thiserror::Error;

use guard::Guard;
pub use input::Input;
use output::Output;
use signals::Signals;
use watch::{Pe, Watch};

/// Settings of the emulated NPU that concern a whole job.
const TIME: &str = "NPUSIM_TIME";
const TIME_TABLE: &str = "NPUSIM_TIME_TABLE";
/// Bytes of the job token, before it is written in hexadecimal.
const TOKEN_BYTES: usize = 16;

/// What to start and how.
pub struct Job {
    /// Number of PEs, at least 1.
    pub pes: u32,
    /// The program, found as execvp(3) finds it.
    pub program: OsString,
    /// Its arguments, the same for every PE.
    pub args: Vec<OsString>,
    /// Environment variables added for every PE.
    pub env: Vec<(OsString, OsString)>,
    /// Text before each line of output, `{pe}` replaced; `None`: the PEs write to our stdout and stderr themselves.
    pub prefix: Option<String>,
    /// Who gets our stdin.
    pub input: Input,
    /// All PEs are ended after this time.
    pub timeout: Option<Duration>,
    /// Let the others go on when a PE fails.
    pub keep_going: bool,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// How a PE ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl End {
    /// Whether all is well.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// The exit code that a shell reports.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code as u8,
            Self::Signal(signal) => 128u8.wrapping_add(signal as u8),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exited with code {code}"),
            Self::Signal(signal) => write!(formatter, "was killed by {}", signals::name(*signal)),
        }
    }
}

/// Why a job did not end well.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The program cannot be started.
    #[error("cannot start {program:?}: {source}{}", advice(.source))]
    Start {
        /// The program.
        program: OsString,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A PE failed.
    #[error("PE {pe} of {pes} {end}{}", others(*.ended))]
    Pe {
        /// The first that failed.
        pe: u32,
        /// PEs of the job.
        pes: u32,
        /// How.
        end: End,
        /// PEs that were running and were ended for it.
        ended: usize,
    },
    /// The time was up.
    #[error("the job did not end within {} s; PEs still running: {}", .timeout.as_secs_f64(), list(.running))]
    Timeout {
        /// The limit.
        timeout: Duration,
        /// Who was still running.
        running: Vec<u32>,
    },
    /// A signal asked the launcher to end.
    #[error("ended by {}", signals::name(*.0))]
    Interrupted(i32),
    /// The PEs' output could not be passed on.
    #[error("cannot write the PEs' output: {0}; some of it is lost")]
    Output(std::io::Error),
    /// The job's store cannot be served.
    #[error(transparent)]
    Store(#[from] ServeError),
    /// A resource of the system is missing.
    #[error("cannot start the job: {what}: {source}{}", advice(.source))]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl LaunchError {
    /// Exit code of a launcher that ends with this error: the PE's own; as timeout(1) and env(1) have them for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Pe { end, .. } => end.exit_code(),
            Self::Timeout { .. } => 124,
            Self::Start { source, .. } if source.kind() == std::io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            Self::Interrupted(signal) => 128u8.wrapping_add(*signal as u8),
            Self::Output(_) | Self::Store(_) | Self::System { .. } => 1,
        }
    }
}

fn others(ended: usize) -> String {
    match ended {
        0 => String::new(),
        1 => "; the other running PE was ended".to_owned(),
        more => format!("; the {more} other running PEs were ended"),
    }
}

/// What to do about a limit of the system.
fn advice(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            "; raise the limit of open files (ulimit -n: the launcher needs four a PE), or start fewer PEs"
        }
        Some(libc::EAGAIN) => "; raise the limit of processes and threads (ulimit -u), or start fewer PEs",
        Some(libc::ENOMEM) => "; free memory or raise the limit of address space (ulimit -v), or start fewer PEs",
        _ => "",
    }
}

fn list(pes: &[u32]) -> String {
    pes.iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Runs a job to its end.
///
/// # Errors
/// The first PE that failed and how; a program that cannot be started; a timeout; a signal. No PE is running when it returns.
pub fn run(job: &Job) -> Result<(), LaunchError> {
    run_while(job, || ())
}

/// Runs a job to its end while what `show` returns lives, which may have threads of its own.
///
/// # Errors
/// As [`run`].
pub fn run_while<T>(job: &Job, show: impl FnOnce() -> T) -> Result<(), LaunchError> {
    // Blocked before any thread starts, so that every thread leaves them to the watch.
    let signals = Signals::block().map_err(|source| LaunchError::System {
        what: "signalfd",
        source,
    })?;
    let shown = show();
    let token = token().map_err(|source| LaunchError::System {
        what: "/dev/urandom",
        source,
    })?;
    let guard = Guard::start().map_err(|source| LaunchError::System {
        what: "a process that ends what PEs leave",
        source,
    })?;
    let server = Server::bind("127.0.0.1:0", job.pes, token.as_bytes())?;
    let output = Output::default();
    let table = time_table(job).map_err(|source| LaunchError::System {
        what: "a table of arrival times",
        source,
    })?;
    let mut watch = Watch::new(job, &server, &signals, &guard);
    let mut sinks = Vec::new();
    for pe in 0..job.pes {
        // A failure here drops the watch, which ends the PEs already started.
        let started = start(
            job,
            pe,
            &server,
            &token,
            signals.before(),
            &guard,
            table.as_ref(),
        )?;
        let (child, stdin) = output.attach(started, pe, job.prefix.as_deref())?;
        sinks.extend(stdin);
        watch.add(Pe::new(pe, child)?);
    }
    input::forward(job.input, sinks);
    let result = watch.run();
    drop(watch);
    let lost = output.finish();
    drop(shown);
    match (result, lost) {
        // A PE that could not write any more may have failed because of it.
        (Ok(()) | Err(LaunchError::Pe { .. }), Some(source)) => Err(LaunchError::Output(source)),
        (result, _) => result,
    }
}

fn start(
    job: &Job,
    pe: u32,
    server: &Server,
    token: &str,
    signals: libc::sigset_t,
    guard: &Guard,
    table: Option<&OwnedFd>,
) -> Result<std::process::Child, LaunchError> {
    let mut command = Command::new(&job.program);
    if let Some(table) = table {
        command.env(TIME_TABLE, table.as_raw_fd().to_string());
    }
    command
        .args(&job.args)
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .env("NPUSHMEM_PE", pe.to_string())
        .env("NPUSHMEM_NPES", job.pes.to_string())
        .env("NPUSHMEM_LOCAL_RANK", pe.to_string())
        .env("NPUSHMEM_STORE", server.address().to_string())
        .env("NPUSHMEM_STORE_SERVER", "launcher")
        .env("NPUSHMEM_JOB", token)
        .stdin(if job.input.is_for(pe) {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .process_group(0);
    if job.prefix.is_some() {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let launcher = rustix::process::getpid();
    let guard = guard.descriptor();
    // SAFETY: between fork and exec only system calls are made; nothing allocates or takes a lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The PE leads its group by now.
            guard::tell(guard, libc::getpid());
            // What the launcher blocks for itself a PE must hear, or SIGTERM could not end it.
            if libc::sigprocmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The launcher may have died before the line above.
            if rustix::process::getppid() != Some(launcher) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
    command.spawn().map_err(|source| LaunchError::Start {
        program: job.program.clone(),
        source,
    })
}

/// What the PEs of a job whose time is modelled share (sim/src/time): an anonymous file that they inherit.
fn time_table(job: &Job) -> std::io::Result<Option<OwnedFd>> {
    let given = job.env.iter().find(|(name, _)| name == TIME);
    let value = given
        .map(|(_, value)| value.clone())
        .or_else(|| std::env::var_os(TIME));
    if value.is_none_or(|value| value != "model") {
        return Ok(None);
    }
    Ok(Some(memfd_create("npusim-time", MemfdFlags::empty())?))
}

fn token() -> std::io::Result<String> {
    let mut bytes = [0u8; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(End::Code(3).exit_code(), 3);
        assert_eq!(End::Signal(libc::SIGKILL).exit_code(), 137);
        assert_eq!(
            End::Signal(libc::SIGSEGV).to_string(),
            "was killed by SIGSEGV (signal 11)"
        );
        let error = LaunchError::Pe {
            pe: 2,
            pes: 4,
            end: End::Code(3),
            ended: 2,
        };
        assert_eq!(
            error.to_string(),
            "PE 2 of 4 exited with code 3; the 2 other running PEs were ended"
        );
        assert_eq!(
            LaunchError::Timeout {
                timeout: Duration::from_millis(1500),
                running: vec![0, 3]
            }
            .exit_code(),
            124
        );
    }
}
