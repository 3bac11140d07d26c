//! C programs as jobs of several processes: static data, the heap, threads, ordering, and how errors end a job.
//!
//! Each program of `jobs/` is compiled with the machine's C compiler against this build's library and `include/`; this harness is the
//! launcher. It does not test the launcher for users, nor the typed families one by one (the generated programs do).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use npushmem::bootstrap::store::Server;

/// How long a job may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// One job at a time: more processes than cores are already in each.
static TURN: Mutex<()> = Mutex::new(());

/// Exit codes (128 + signal for a signal; -1: ended at the deadline) and what was written to standard error.
struct Outcome {
    codes: Vec<i32>,
    stderr: String,
}

/// The folder of this build's libnpushmem.so.
fn library_folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test program has a path");
    let deps = program.parent().expect("in a folder");
    let found = [deps.parent().unwrap_or(deps), deps]
        .into_iter()
        .find(|folder| folder.join("libnpushmem.so").exists())
        .expect("libnpushmem.so is built with the tests");
    found.to_path_buf()
}

/// Compiles `jobs/NAME.c` once; gives the program.
fn program(name: &str, flags: &[&str]) -> PathBuf {
    static BUILT: OnceLock<Mutex<Vec<String>>> = OnceLock::new();
    let mut built = BUILT
        .get_or_init(Default::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let tag = format!("{name}{}", flags.concat());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&tag);
    if !built.contains(&tag) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = library_folder();
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-Werror", "-pthread"])
            .args(flags)
            .arg("-I")
            .arg(here.join("include"))
            .arg(here.join("tests/jobs").join(format!("{name}.c")))
            .arg("-o")
            .arg(&out)
            .arg("-L")
            .arg(&library)
            .arg("-lnpushmem")
            .arg(format!("-Wl,-rpath,{}", library.display()))
            .status()
            .expect("a C compiler named cc");
        assert!(status.success(), "{name}.c does not compile");
        built.push(tag);
    }
    out
}

fn run(program: &Path, pes: usize, args: &[&str], env: &[(&str, &str)]) -> Outcome {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let token = format!("capi-{}-{:?}", std::process::id(), Instant::now());
    let server =
        Server::bind("127.0.0.1:0", pes as u32, token.as_bytes()).expect("loopback has a port");
    let store = server.address().to_string();
    let mut children: Vec<Child> = (0..pes)
        .map(|pe| {
            Command::new(program)
                .args(args)
                .env("NPUSHMEM_PE", pe.to_string())
                .env("NPUSHMEM_NPES", pes.to_string())
                .env("NPUSHMEM_STORE", &store)
                .env("NPUSHMEM_JOB", &token)
                .env("SHMEM_SYMMETRIC_SIZE", "32M")
                .envs(env.iter().copied())
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts")
        })
        .collect();
    let end = Instant::now() + DEADLINE;
    let mut codes = vec![None; pes];
    while codes.iter().any(Option::is_none) {
        for (child, code) in children.iter_mut().zip(&mut codes) {
            if code.is_some() {
                continue;
            }
            if let Some(status) = child.try_wait().expect("own child") {
                let signal = std::os::unix::process::ExitStatusExt::signal(&status);
                *code = Some(status.code().unwrap_or_else(|| 128 + signal.unwrap_or(0)));
            } else if Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                *code = Some(-1);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut stderr = String::new();
    for child in &mut children {
        if let Some(mut pipe) = child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut pipe, &mut stderr);
        }
    }
    Outcome {
        codes: codes.into_iter().flatten().collect(),
        stderr,
    }
}

#[track_caller]
fn passes(name: &str, flags: &[&str], counts: &[usize]) {
    let program = program(name, flags);
    for pes in counts {
        let outcome = run(&program, *pes, &[], &[]);
        assert!(
            outcome.codes.iter().all(|code| *code == 0),
            "{name} on {pes} PEs: {:?}\n{}",
            outcome.codes,
            outcome.stderr
        );
    }
}

/// Runs errors.c on 2 PEs: no PE may hang or succeed, and somebody says `message`.
#[track_caller]
fn ends(how: &str, debug: bool, message: &str) -> Outcome {
    let env: &[_] = if debug { &[("SHMEM_DEBUG", "1")] } else { &[] };
    let outcome = run(&program("errors", &[]), 2, &[how], env);
    let (codes, stderr) = (&outcome.codes, &outcome.stderr);
    assert!(
        codes.iter().all(|code| *code > 0) && stderr.contains(message),
        "{how}: {codes:?}\n{stderr}"
    );
    outcome
}

#[test]
fn static_data_is_symmetric_in_executables_of_every_kind() {
    passes("statics", &[], &[1, 2, 3]);
    passes("statics", &["-no-pie"], &[2]);
    passes("statics", &["-fPIE", "-pie", "-Wl,-z,now"], &[2]);
}

#[test]
fn the_heap_gives_what_was_asked_for_and_init_can_be_repeated() {
    passes("heap", &[], &[1, 2, 5]);
}

#[test]
fn threads_of_every_pe_communicate_at_once() {
    passes("threads", &[], &[1, 2, 3]);
}

#[test]
fn fence_quiet_and_signals_order_what_the_standard_says() {
    passes("litmus", &[], &[2, 4]);
}

#[test]
fn checked_calls_name_the_routine_the_argument_and_the_range() {
    for (how, message) in [
        ("early", "shmem_long_p: the library is not initialised"),
        (
            "outside",
            "shmem_long_p: argument pe: PE 2 is outside the job; PE numbers run from 0 to 1",
        ),
        ("negative", "shmem_putmem: argument pe: PE -1"),
        ("stack", "shmem_long_p: "),
        (
            "null",
            "shmem_putmem: argument source: a null pointer for 8 bytes",
        ),
        ("misaligned", "shmem_int_atomic_inc: the atomic variable at"),
        ("overlap", "shmem_putmem: dest and source overlap"),
        ("free", "shmem_free: argument ptr:"),
        (
            "context",
            "shmem_ctx_long_p: argument ctx: SHMEM_CTX_INVALID",
        ),
        (
            "unlocked",
            "shmem_clear_lock: argument lock: the lock is not set",
        ),
    ] {
        ends(how, true, message);
    }
}

#[test]
fn a_pe_outside_the_job_is_told_also_without_checking() {
    ends("outside", false, "PE 2 is outside the job");
}

#[test]
fn a_global_exit_ends_every_pe_with_its_status() {
    assert_eq!(ends("global", false, "").codes, [7, 7]);
}

#[test]
fn a_pe_that_dies_or_exits_ends_the_job_with_a_message() {
    assert_eq!(ends("killed", false, "PE 1 has ended").codes[0], 1);
    let outcome = ends(
        "exit",
        false,
        "it exited with status 3 without shmem_finalize",
    );
    assert_eq!(outcome.codes, [1, 3]);
}

#[test]
fn a_program_may_end_without_finalize() {
    let outcome = run(&program("errors", &[]), 2, &["forgotten"], &[]);
    assert_eq!(outcome.codes, [0, 0], "{}", outcome.stderr);
}
