//! Builds and runs C programs for the tests beside it.
//!
//! Programs are built into a folder of this test run's own; jobs run one at a time, each bounded by oshrun's timeout.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Numbers of PEs that programs run on.
pub const PES: [u32; 5] = [1, 2, 3, 5, 8];

/// Seconds that a job may take.
const TIMEOUT: &str = "120";

/// Which wrapper builds a program.
#[derive(Debug, Clone, Copy)]
pub enum Language {
    /// oshcc.
    C,
    /// oshcxx, whatever the file's name.
    Cxx,
}

/// A built program.
pub struct Program {
    path: PathBuf,
}

/// A program on some PEs, and how it is started.
pub struct Job<'a> {
    program: &'a Path,
    pes: u32,
    options: Vec<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

/// How a job ended.
#[derive(Debug)]
pub struct Ran {
    /// oshrun's exit code.
    pub code: i32,
    /// Standard output of all PEs.
    pub stdout: String,
    /// Standard error of all PEs and of oshrun.
    pub stderr: String,
}

impl Ran {
    /// Fails the test when the job did not end well.
    #[track_caller]
    pub fn succeeds(&self) {
        assert!(self.code == 0, "{self:#?}");
    }
}

/// Folder of the programs that cargo built: the test itself is in its deps folder.
fn bin() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    own.ancestors().nth(2).expect("target/PROFILE").to_owned()
}

/// A program that cargo built.
pub fn tool(name: &str) -> PathBuf {
    let path = bin().join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo build -p npushmem-cli -p npushmem-capi` first",
        path.display()
    );
    path
}

/// A command without what the environment of the test would add.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars() {
        if ["NPUSHMEM_", "NPUSIM_", "SHMEM_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The folder that programs are built in, with the generated types.h.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
        std::fs::create_dir_all(&folder).expect("a folder for programs");
        std::fs::write(folder.join("types.h"), crate::types::text()).expect("types.h");
        folder
    })
}

impl Program {
    /// Builds a file, whose path starts at this folder, with warnings as errors.
    #[track_caller]
    pub fn build(source: &str, language: Language, flags: &[&str]) -> Self {
        Self::build_with(source, language, flags, &[])
    }

    /// As [`Program::build`], with further arguments behind the file: libraries.
    #[track_caller]
    pub fn build_with(
        source: &str,
        language: Language,
        flags: &[&str],
        libraries: &[&str],
    ) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let from = here.join(source);
        let name = Path::new(source).file_stem().unwrap_or_default();
        let path = folder().join(format!("{}-{number}", name.to_string_lossy()));
        let (wrapper, kind) = match language {
            Language::C => ("oshcc", "c"),
            Language::Cxx => ("oshcxx", "c++"),
        };
        let Output { status, stderr, .. } = command(&tool(wrapper))
            .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-value", "-g"])
            .args(flags)
            .arg("-I")
            .arg(folder())
            .arg("-I")
            .arg(&here)
            .args(["-x", kind])
            .arg(&from)
            .args(["-x", "none", "-o"])
            .arg(&path)
            .args(libraries)
            .output()
            .expect("oshcc cannot be started");
        assert!(
            status.success(),
            "{wrapper} {source} {flags:?}: {}",
            text(stderr)
        );
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A job of it on `pes` PEs.
    pub fn job(&self, pes: u32) -> Job<'_> {
        Job::new(&self.path, pes)
    }

    /// Runs it on `pes` PEs.
    pub fn run(&self, pes: u32) -> Ran {
        self.job(pes).run()
    }
}

impl<'a> Job<'a> {
    /// A job of any program; found as a shell finds it.
    pub fn new(program: &'a Path, pes: u32) -> Self {
        Self {
            program,
            pes,
            options: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Adds an argument of the program.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds an option of oshrun.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Has every call checked.
    pub fn checked(self) -> Self {
        self.env("SHMEM_DEBUG", "1")
    }

    /// Runs it to its end.
    pub fn run(self) -> Ran {
        let mut command = command(&tool("oshrun"));
        command
            .args(["-n", &self.pes.to_string(), "--timeout", TIMEOUT])
            .args(&self.options)
            .arg(self.program)
            .args(&self.args)
            .env("SHMEM_SYMMETRIC_SIZE", "256M")
            .envs(self.env);
        alone(command)
    }
}

/// Runs a command when no other job of this test runs: more processes than cores are in each.
pub fn alone(mut command: Command) -> Ran {
    static ONE_JOB: Mutex<()> = Mutex::new(());
    let _one = ONE_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The library that the wrappers link.
pub fn library() -> PathBuf {
    let shown = command(&tool("oshcc"))
        .arg("--showme:libdirs")
        .output()
        .expect("oshcc");
    Path::new(text(shown.stdout).trim()).join("libnpushmem.so")
}

/// Names that the library defines for others.
pub fn exports() -> BTreeSet<String> {
    let library = library();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(&library)
        .output()
        .expect("nm (binutils) cannot be started");
    assert!(
        output.status.success(),
        "nm {}: {}",
        library.display(),
        text(output.stderr)
    );
    text(output.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}
