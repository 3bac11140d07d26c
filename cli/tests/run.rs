//! `npushmem run`: output, input, failures, signals, and that nothing is left behind.

mod common;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{finish, npushmem, run};

/// How long a test waits for something that happens at once.
const PATIENCE: Duration = Duration::from_secs(30);

fn shell(pes: &str, options: &[&str], script: &str) -> common::Ran {
    let mut args = vec!["run", "-n", pes];
    args.extend(options);
    args.extend(["--", "sh", "-c", script]);
    run(&args)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn gone(pid: &str) -> bool {
    let start = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        // A zombie of a test container without init counts as gone.
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if status
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
        {
            return true;
        }
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn every_pe_knows_its_number_and_its_lines_are_prefixed() {
    let ran = shell(
        "3",
        &[],
        "echo $NPUSHMEM_PE of $NPUSHMEM_NPES; echo to stderr >&2",
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        sorted(&ran.stdout),
        ["[0] 0 of 3", "[1] 1 of 3", "[2] 2 of 3"]
    );
    assert_eq!(
        sorted(&ran.stderr),
        ["[0] to stderr", "[1] to stderr", "[2] to stderr"]
    );
}

#[test]
fn the_prefix_can_be_changed_and_left_out() {
    assert_eq!(
        shell("1", &["--prefix", "pe{pe}> "], "echo x").stdout,
        "pe0> x\n"
    );
    assert_eq!(shell("1", &["--no-prefix"], "printf x").stdout, "x");
}

#[test]
fn a_failing_pe_ends_the_others_and_its_exit_code_is_the_jobs() {
    let ran = shell(
        "4",
        &[],
        "test $NPUSHMEM_PE = 2 && exit 7; echo $$; sleep 600",
    );
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(
        ran.stderr.contains("PE 2 of 4 exited with code 7"),
        "{ran:?}"
    );
    for line in ran.stdout.lines() {
        assert!(gone(line.split(' ').nth(1).unwrap()), "{line}");
    }
}

#[test]
fn a_killed_pe_is_reported_with_the_signals_name() {
    let ran = shell(
        "2",
        &[],
        "test $NPUSHMEM_PE = 1 && kill -SEGV $$; sleep 600",
    );
    assert_eq!(ran.code, 128 + 11, "{ran:?}");
    assert!(
        ran.stderr
            .contains("PE 1 of 2 was killed by SIGSEGV (signal 11)"),
        "{ran:?}"
    );
}

#[test]
fn pes_that_ignore_sigterm_are_killed() {
    let ran = shell(
        "2",
        &["--grace", "0.1"],
        "test $NPUSHMEM_PE = 1 && exit 1; trap '' TERM; echo $$; while :; do sleep 0.1; done",
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    if let Some(line) = ran.stdout.lines().next() {
        assert!(gone(line.split(' ').nth(1).unwrap()), "{line}");
    }
}

#[test]
fn the_others_may_go_on_when_asked_to() {
    let ran = shell(
        "2",
        &["--keep-going"],
        "test $NPUSHMEM_PE = 1 && exit 3; sleep 0.3; echo finished",
    );
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(ran.stdout, "[0] finished\n");
}

#[test]
fn a_timeout_ends_the_job_and_names_who_was_running() {
    let ran = shell(
        "2",
        &["--timeout", "0.3"],
        "test $NPUSHMEM_PE = 0 && exit 0; sleep 600",
    );
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(ran.stderr.contains("PEs still running: 1"), "{ran:?}");
}

#[test]
fn what_a_pe_started_ends_with_it() {
    let ran = shell("1", &[], "sleep 600 >/dev/null 2>&1 & echo $!");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        gone(ran.stdout.trim().split(' ').nth(1).unwrap()),
        "{ran:?}"
    );
}

#[test]
fn stdin_goes_to_pe_0_or_to_all_or_to_nobody() {
    for (options, expected) in [
        (&[][..], &["[0] hello"][..]),
        (&["--stdin", "all"], &["[0] hello", "[1] hello"]),
        (&["--stdin", "none"], &[]),
    ] {
        let mut args = vec!["run", "-n", "2"];
        args.extend(options);
        args.extend(["--", "cat"]);
        let mut command = npushmem(&args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            sorted(&String::from_utf8_lossy(&output.stdout)),
            expected,
            "{options:?}"
        );
    }
}

#[test]
fn a_program_that_does_not_exist_is_named_with_exit_code_127() {
    let ran = run(&["run", "-n", "2", "--", "/nonexistent/program"]);
    assert_eq!(ran.code, 127, "{ran:?}");
    assert!(ran.stderr.contains("/nonexistent/program"), "{ran:?}");
}

/// Starts a job of two PEs that print their process ids and wait; returns the launcher and the ids.
fn waiting_job() -> (std::process::Child, Vec<String>) {
    let mut command = npushmem(&[
        "run",
        "-n",
        "2",
        "--",
        "sh",
        "-c",
        "echo $$; exec sleep 600",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids = lines
        .take(2)
        .map(|line| line.unwrap().split(' ').nth(1).unwrap().to_owned())
        .collect();
    (child, pids)
}

#[test]
fn a_signal_to_the_launcher_reaches_the_pes() {
    let (mut launcher, pids) = waiting_job();
    let pid = launcher.id().to_string();
    assert!(
        finish({
            let mut kill = std::process::Command::new("kill");
            kill.args(["-TERM", &pid]);
            kill
        })
        .code
            == 0
    );
    assert_eq!(launcher.wait().unwrap().code(), Some(128 + 15));
    for pid in pids {
        assert!(gone(&pid), "PE {pid} is left");
    }
}

#[test]
fn pes_die_with_a_launcher_that_is_killed() {
    let (mut launcher, pids) = waiting_job();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    for pid in pids {
        assert!(gone(&pid), "PE {pid} is left");
    }
}

#[test]
fn what_pes_started_dies_with_a_launcher_that_is_killed() {
    let script = "sleep 600 & echo $!; wait";
    let mut command = npushmem(&["run", "-n", "2", "--", "sh", "-c", script]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut launcher = command.spawn().unwrap();
    let lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
    let pids: Vec<String> = lines
        .take(2)
        .map(|line| line.unwrap().split(' ').nth(1).unwrap().to_owned())
        .collect();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    for pid in pids {
        assert!(gone(&pid), "process {pid} of a PE is left");
    }
}

/// The blocked signals in the status of a process that a shell, which clears them, did not start.
fn blocked_signals(ran: &common::Ran) -> String {
    let line = ran.stdout.lines().find(|line| line.contains("SigBlk:"));
    line.and_then(|line| line.split_whitespace().last())
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn pes_hear_the_signals_that_the_launcher_holds_back_for_itself() {
    let status = ["grep", "SigBlk:", "/proc/self/status"];
    let ran = run(&[&["run", "-n", "1", "--"], &status[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let direct = finish({
        let mut grep = std::process::Command::new(status[0]);
        grep.args(&status[1..]);
        grep
    });
    assert_eq!(blocked_signals(&ran), blocked_signals(&direct), "{ran:?}");
}

#[test]
fn output_that_cannot_be_written_is_an_error_with_its_reason() {
    let mut command = npushmem(&["run", "-n", "2", "--", "echo", "lost"]);
    command.stdout(std::fs::File::create("/dev/full").unwrap());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("No space left"), "{stderr}");
}
