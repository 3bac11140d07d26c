//! Runs the `npushmem` program and shows what it said when a test fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command line of `npushmem`, without what the environment of the test would add.
pub fn npushmem<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npushmem"));
    for (name, _) in std::env::vars() {
        if name.starts_with("NPUSHMEM_")
            || name.starts_with("NPUSIM_")
            || name.starts_with("SHMEM_")
        {
            command.env_remove(name);
        }
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// What a run gave.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    #[allow(dead_code)] // shown by Debug in every test file, read in some
    pub stdout: String,
    /// Standard error.
    #[allow(dead_code)] // shown by Debug in every test file, read in some
    pub stderr: String,
}

/// Runs to the end.
pub fn finish(mut command: Command) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("npushmem cannot be started");
    Ran {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Runs `npushmem` with these arguments.
#[allow(dead_code)] // not every test file uses it
pub fn run(args: &[&str]) -> Ran {
    finish(npushmem(args))
}

/// Zachary's karate club, 34 nodes and 78 edges.
#[allow(dead_code)]
pub fn karate() -> String {
    path_text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/karate.txt"))
}

/// A path as an argument.
#[allow(dead_code)]
pub fn path_text(path: &Path) -> String {
    path.to_str().expect("the path is text").to_owned()
}

/// A file with these bytes in a folder of its own.
#[allow(dead_code)]
pub fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a temporary file");
    (folder, path)
}
