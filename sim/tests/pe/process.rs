//! Scenarios of several processes: each process is this very test program, started anew with a role.
//!
//! A test starts processes and waits for them; a failed one shows its output. The test program's test
//! `a_process_plays_the_role_it_was_started_for` calls [`play_role`], which does nothing in the first process.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{wait_for, PATIENCE};

/// Which role this process plays.
const ROLE: &str = "NPUSIM_TEST_ROLE";
/// Folder where the processes of a scenario leave one another numbers, as a bootstrap would.
const BOARD: &str = "NPUSIM_TEST_BOARD";
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// A process of a scenario; it is killed when the test ends first.
pub struct Process {
    role: &'static str,
    child: Child,
}

impl Process {
    fn start(
        role: &'static str,
        job: &str,
        board: &std::path::Path,
        settings: &[(&str, &str)],
    ) -> Self {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([
            "--exact",
            "a_process_plays_the_role_it_was_started_for",
            "--nocapture",
        ]);
        command
            .env(ROLE, role)
            .env(BOARD, board)
            .env("NPUSHMEM_JOB", job)
            .envs(settings.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                Ok(rustix::process::set_parent_process_death_signal(Some(
                    rustix::process::Signal::KILL,
                ))?)
            });
        }
        Self {
            role,
            child: command.spawn().expect("a process"),
        }
    }

    /// Whether it has ended; the test ends when it failed.
    fn ended(&mut self) -> bool {
        match self.child.try_wait().expect("its status") {
            None => false,
            Some(status) if status.success() => true,
            Some(status) => self.explain(&status.to_string()),
        }
    }

    fn explain(&mut self, how: &str) -> ! {
        let _ = self.child.kill();
        let mut text = String::new();
        let _ = self
            .child
            .stdout
            .take()
            .map(|mut pipe| pipe.read_to_string(&mut text));
        let _ = self
            .child
            .stderr
            .take()
            .map(|mut pipe| pipe.read_to_string(&mut text));
        panic!("{}: {how}:\n{text}", self.role);
    }

    /// Waits for its end.
    pub fn finish(mut self) {
        let deadline = Instant::now() + 3 * PATIENCE;
        while !self.ended() {
            if Instant::now() > deadline {
                self.explain("did not end");
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the processes of a scenario, with a folder for what they tell one another.
pub fn start(
    roles: &[&'static str],
    settings: &[(&str, &str)],
) -> (tempfile::TempDir, Vec<Process>) {
    let board = tempfile::tempdir().expect("a folder");
    let job = board.path().display().to_string();
    let processes = roles
        .iter()
        .map(|role| Process::start(role, &job, board.path(), settings))
        .collect();
    (board, processes)
}

/// Waits until the processes have left something on the board.
pub fn hear_from(processes: &mut [Process], board: &std::path::Path, name: &str) {
    wait_for(name, || {
        processes
            .iter_mut()
            .for_each(|process| assert!(!process.ended(), "{} ended too early", process.role));
        board.join(name).exists().then_some(())
    });
}

/// Runs a scenario.
pub fn play(roles: &[&'static str], settings: &[(&str, &str)]) {
    let (_board, processes) = start(roles, settings);
    for process in processes {
        process.finish();
    }
}

/// The folder of this process's scenario.
pub fn board() -> PathBuf {
    PathBuf::from(std::env::var_os(BOARD).expect("a scenario sets the board"))
}

/// Leaves numbers on the board.
pub fn tell(at: &std::path::Path, name: &str, numbers: &[u64]) {
    let text: Vec<String> = numbers.iter().map(u64::to_string).collect();
    std::fs::write(at.join(format!("{name}.part")), text.join(" ")).expect("writes");
    std::fs::rename(at.join(format!("{name}.part")), at.join(name)).expect("renames");
}

/// Waits for numbers on the board.
pub fn hear(at: &std::path::Path, name: &str) -> Vec<u64> {
    let text = wait_for(name, || std::fs::read_to_string(at.join(name)).ok());
    text.split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect()
}

/// Plays the role that this process was started for, if it was.
pub fn play_role(roles: &[(&str, fn())]) {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let (_, body) = roles
        .iter()
        .find(|(name, _)| *name == role)
        .unwrap_or_else(|| panic!("no role {role}"));
    body();
}
