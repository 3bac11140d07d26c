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

fn tool(name: &str) -> PathBuf {
    let path = bin().join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo build -p npushmem-cli -p npushmem-capi` first",
        path.display()
    );
    path
}

/// A command without what the environment of the test would add.
fn command(program: &Path) -> Command {
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
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(source);
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
            .args(["-x", kind])
            .arg(&from)
            .args(["-x", "none", "-o"])
            .arg(&path)
            .output()
            .expect("oshcc cannot be started");
        assert!(
            status.success(),
            "{wrapper} {source} {flags:?}: {}",
            text(stderr)
        );
        Self { path }
    }

    /// Runs it on `pes` PEs.
    pub fn run(&self, pes: u32) -> Ran {
        self.run_with(pes, &[], &[])
    }

    /// Runs it with arguments and environment variables.
    pub fn run_with(&self, pes: u32, args: &[&str], env: &[(&str, &str)]) -> Ran {
        static ONE_JOB: Mutex<()> = Mutex::new(());
        let _one = ONE_JOB.lock().unwrap_or_else(PoisonError::into_inner);
        let output = command(&tool("oshrun"))
            .args(["-n", &pes.to_string(), "--timeout", TIMEOUT])
            .arg(&self.path)
            .args(args)
            .env("SHMEM_SYMMETRIC_SIZE", "256M")
            .envs(env.iter().copied())
            .output()
            .expect("oshrun cannot be started");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Names that the library defines for others.
pub fn exports() -> BTreeSet<String> {
    // The library that the wrapper links.
    let shown = command(&tool("oshcc"))
        .arg("--showme:libdirs")
        .output()
        .expect("oshcc");
    let folder = text(shown.stdout);
    let library = Path::new(folder.trim()).join("libnpushmem.so");
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
