//! The harness of the multi-process tests: starts the PEs of a job, bounds them, shows their output on failure, and leaves nothing behind.
//!
//! It is not a launcher for users (`npushmem run` is). A test describes a [`Job`]: how many PEs run which scenario of the `pe` program of this
//! package, or which other program, with which settings. One job runs at a time on a machine, so that figures and timeouts mean the same in
//! every run.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use npushmem::bootstrap::store::Server;

/// The self-test kernels, see the head of `kernels/selftest.cpp`.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

pub mod sequence;

static ONE_JOB: Mutex<()> = Mutex::new(());

/// How long a job may take before the harness ends its PEs and fails the test.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// A number of PEs that run one scenario of the `pe` program.
#[derive(Clone)]
pub struct Job {
    pes: usize,
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    deadline: Duration,
    kill: Option<(usize, Duration)>,
}

/// How one PE ended.
pub struct Pe {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// All that it wrote to standard output.
    pub stdout: String,
    /// All that it wrote to standard error.
    pub stderr: String,
}

/// How a job ended.
pub struct Outcome {
    /// One entry a PE, in order.
    pub pes: Vec<Pe>,
    /// From the first start to the last exit.
    pub elapsed: Duration,
    /// Whether the harness had to end PEs at the deadline.
    pub timed_out: bool,
    what: String,
}

impl Job {
    /// A job of `pes` PEs that run `scenario` of the program at `program` (`env!("CARGO_BIN_EXE_pe")`).
    pub fn new(program: &str, pes: usize, scenario: &str) -> Job {
        Job::of(program, pes).word(scenario)
    }

    /// A job of `pes` PEs that run any program, so far without arguments.
    pub fn of(program: &str, pes: usize) -> Job {
        Job {
            pes,
            program: program.into(),
            args: Vec::new(),
            env: vec![
                ("NPUSHMEM_RUNTIME".into(), "sim".into()),
                ("SHMEM_SYMMETRIC_SIZE".into(), "32M".into()),
            ],
            deadline: DEADLINE,
            kill: None,
        }
    }

    /// Adds an argument as it is.
    pub fn word(mut self, word: &str) -> Job {
        self.args.push(word.to_owned());
        self
    }

    /// Adds `key=value` to the scenario's arguments.
    pub fn arg(mut self, key: &str, value: impl std::fmt::Display) -> Job {
        self.args.push(format!("{key}={value}"));
        self
    }

    /// Sets an environment variable of every PE.
    pub fn env(mut self, key: &str, value: impl std::fmt::Display) -> Job {
        self.env.push((key.to_owned(), value.to_string()));
        self
    }

    /// The bound on the whole job.
    pub fn deadline(mut self, deadline: Duration) -> Job {
        self.deadline = deadline;
        self
    }

    /// Kills PE `pe` (SIGKILL) when it has printed the line `ready` and `after` has passed.
    pub fn kill(mut self, pe: usize, after: Duration) -> Job {
        self.kill = Some((pe, after));
        self
    }

    /// Runs the job to its end.
    pub fn run(self) -> Outcome {
        let _one = one_job();
        let what = format!("{} PEs: {} {:?}", self.pes, self.args.join(" "), self.env);
        let token = format!("test-{}-{:x}", std::process::id(), unique());
        let server = Server::bind("127.0.0.1:0", self.pes as u32, token.as_bytes())
            .expect("the store binds to loopback");
        // Temporary files of the PEs go to a folder that must be empty again when they have ended.
        let scratch = Path::new(env!("OUT_DIR")).join(&token);
        fs::create_dir(&scratch).unwrap_or_else(|e| panic!("{}: {e}", scratch.display()));
        let begin = Instant::now();
        let mut running: Vec<Running> = (0..self.pes)
            .map(|pe| self.start(pe, &token, &server.address().to_string(), &scratch))
            .collect();
        let mut timed_out = false;
        let mut killed = false;
        let mut ready_at = None;
        loop {
            let mut alive = false;
            for pe in &mut running {
                alive |= pe.poll();
            }
            if !alive {
                break;
            }
            if let (Some((victim, after)), false) = (self.kill, killed) {
                if ready_at.is_none() && running[victim].said("ready") {
                    ready_at = Some(Instant::now());
                }
                if ready_at.is_some_and(|at| at.elapsed() >= after) {
                    running[victim].end();
                    killed = true;
                }
            }
            if begin.elapsed() > self.deadline {
                timed_out = true;
                running.iter_mut().for_each(Running::end);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let elapsed = begin.elapsed();
        let pes = running.into_iter().map(Running::finish).collect();
        drop(server);
        let left = processes_of(&token);
        assert!(left.is_empty(), "{what}: processes left behind: {left:?}");
        let files = names_in(&scratch, |_| true);
        assert!(
            files.is_empty(),
            "{what}: files left behind in TMPDIR: {files:?}"
        );
        // Empty, as was just seen; a folder that stays harms nobody.
        let _ = fs::remove_dir(&scratch);
        let shared = names_in(Path::new("/dev/shm"), |name| {
            name.contains(&token) || name.contains("npushmem") || name.contains("npusim")
        });
        assert!(
            shared.is_empty(),
            "{what}: shared memory left behind: {shared:?}"
        );
        Outcome {
            pes,
            elapsed,
            timed_out,
            what,
        }
    }

    fn start(&self, pe: usize, token: &str, store: &str, scratch: &Path) -> Running {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .env("TMPDIR", scratch)
            .env("NPUSHMEM_PE", pe.to_string())
            .env("NPUSHMEM_NPES", self.pes.to_string())
            .env("NPUSHMEM_LOCAL_RANK", pe.to_string());
        command
            .env("NPUSHMEM_STORE", store)
            .env("NPUSHMEM_JOB", token);
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        // SAFETY: prctl is async-signal-safe; the closure touches nothing else between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{} does not start: {e}", self.program.display()));
        let stdout = Reader::new(child.stdout.take().expect("piped"));
        let stderr = Reader::new(child.stderr.take().expect("piped"));
        Running {
            child,
            stdout,
            stderr,
            status: None,
        }
    }
}

struct Running {
    child: Child,
    stdout: Reader,
    stderr: Reader,
    status: Option<ExitStatus>,
}

impl Running {
    /// Whether the process still runs.
    fn poll(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("own child");
        }
        self.status.is_none()
    }

    fn said(&self, line: &str) -> bool {
        self.stdout
            .text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .lines()
            .any(|l| l == line)
    }

    fn end(&mut self) {
        if self.poll() {
            let _ = self.child.kill();
        }
    }

    fn finish(self) -> Pe {
        Pe {
            status: self.status.expect("ended"),
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        }
    }
}

/// Collects a pipe in the background, so that a PE never blocks on a full one.
struct Reader {
    text: std::sync::Arc<Mutex<String>>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn new(mut pipe: impl Read + Send + 'static) -> Reader {
        let text = std::sync::Arc::new(Mutex::new(String::new()));
        let sink = text.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        Reader { text, thread }
    }

    fn finish(self) -> String {
        let _ = self.thread.join();
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone()
    }
}

impl Outcome {
    /// The outcome, when every PE exited with 0; else the test fails and shows each PE's output.
    #[track_caller]
    pub fn ok(self) -> Outcome {
        if self.timed_out || self.pes.iter().any(|pe| !pe.status.success()) {
            panic!("{}", self.report());
        }
        self
    }

    /// The value that PE `pe` printed as a line `key=value`.
    #[track_caller]
    pub fn value<T: std::str::FromStr>(&self, pe: usize, key: &str) -> T {
        self.pes[pe]
            .stdout
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
            .unwrap_or_else(|| panic!("PE {pe} printed no usable {key}=\n{}", self.report()))
    }

    /// The sum of the values that the PEs printed as `key=value`.
    #[track_caller]
    pub fn sum(&self, key: &str) -> u64 {
        (0..self.pes.len())
            .map(|pe| self.value::<u64>(pe, key))
            .sum()
    }

    /// Each PE's end and output, for a failure's message.
    pub fn report(&self) -> String {
        let mut text = format!(
            "{}{} after {:.1?}\n",
            self.what,
            if self.timed_out {
                ": past its deadline"
            } else {
                ""
            },
            self.elapsed
        );
        for (number, pe) in self.pes.iter().enumerate() {
            let how = match (pe.status.code(), pe.status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "unknown".to_owned(),
            };
            let _ = writeln!(text, "--- PE {number}: {how}\n{}{}", pe.stdout, pe.stderr);
        }
        text
    }
}

/// The machine's turn for one job: within this test program by a mutex, between test programs by a lock on a file of the build directory.
fn one_job() -> (MutexGuard<'static, ()>, File) {
    let guard = ONE_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("OUT_DIR")).join("one-job.lock");
    let file = File::create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
        .expect("flock on a local file");
    (guard, file)
}

/// Names in a folder, as far as they are `wanted`; none when there is no such folder.
fn names_in(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| wanted(name))
        .collect()
}

/// Processes whose environment carries the job token: what a job would have left behind.
pub fn processes_of(token: &str) -> Vec<u32> {
    let needle = format!("NPUSHMEM_JOB={token}\0");
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.windows(needle.len()).any(|w| w == needle.as_bytes()))
        })
        .collect()
}

fn unique() -> u128 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos())
}

/// How many times as long the randomised tests run: `NPUSHMEM_TEST_SCALE`, 1 when unset.
pub fn scale() -> f64 {
    std::env::var("NPUSHMEM_TEST_SCALE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0)
}
