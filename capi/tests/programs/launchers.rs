//! Programs find their PEs under the launchers that people have: Open MPI's, MPICH's (Hydra), Slurm's, and torchrun's variables. A launcher that
//! is not installed, or does not work here, is skipped with a word.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{alone, command, Language, Program};

/// Whether `launcher` starts a process that does nothing.
fn works(launcher: &str, args: &[&str]) -> bool {
    let status = Command::new(launcher)
        .args(args)
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let works = status.as_ref().is_ok_and(|status| status.success());
    if !works {
        println!("skipped: {launcher} does not start `true` here ({status:?})");
    }
    works
}

/// Runs the standard's first programs, and a failing one, under a launcher: `args` and then the number of PEs.
fn finds_its_pes(launcher: &str, args: &[&str]) {
    if !works(launcher, &[args, &["1"]].concat()) {
        return;
    }
    let program = Program::build("examples/basics.c", Language::C, &[]);
    for pes in ["1", "2", "3"] {
        for shell in [false, true] {
            let mut command = command(OsStr::new(launcher).as_ref());
            command.args(args).arg(pes);
            if shell {
                // A script between launcher and program is common.
                let script = format!("{}; exit $?", program.path().display());
                command.args(["/bin/sh", "-c", &script]);
            } else {
                command.arg(program.path());
            }
            let ran = alone(command.env("SHMEM_VERSION", "1").take());
            ran.succeeds();
            // One PE 0: the processes have found one another, and are not so many jobs of one PE.
            assert_eq!(
                ran.stdout.matches("OpenSHMEM 1.6").count(),
                1,
                "{pes}: {ran:?}"
            );
        }
    }
}

/// Lets a command be built in one expression.
trait Take {
    fn take(&mut self) -> Command;
}

impl Take for Command {
    fn take(&mut self) -> Command {
        std::mem::replace(self, Command::new("true"))
    }
}

#[test]
fn programs_find_their_pes_under_open_mpis_launcher() {
    finds_its_pes(
        "mpirun",
        &[
            "--allow-run-as-root",
            "--oversubscribe",
            "--bind-to",
            "none",
            "-n",
        ],
    );
}

#[test]
fn programs_find_their_pes_under_mpichs_launcher() {
    finds_its_pes("mpiexec.hydra", &["-n"]);
}

#[test]
fn programs_find_their_pes_under_slurms_launcher() {
    finds_its_pes("srun", &["-n"]);
}

#[test]
fn programs_find_their_pes_by_torchruns_variables() {
    let program = Program::build("examples/basics.c", Language::C, &[]);
    let pes = 3;
    // Torch's own store would be at this port; ours is beside it.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("loopback")
        .port()
        .to_string();
    let script = format!(
        "for pe in $(seq 1 {}); do RANK=$pe LOCAL_RANK=$pe {program} & all=\"$all $!\"; done; RANK=0 LOCAL_RANK=0 {program} || exit; for one in $all; do wait $one || exit; done",
        pes - 1,
        program = program.path().display()
    );
    let mut command = command(Path::new("/bin/sh"));
    command
        .args(["-c", &script])
        .env("WORLD_SIZE", pes.to_string())
        .env("LOCAL_WORLD_SIZE", pes.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port)
        .env("SHMEM_VERSION", "1");
    let ran = alone(command);
    ran.succeeds();
    assert_eq!(ran.stdout.matches("OpenSHMEM 1.6").count(), 1, "{ran:?}");
}
