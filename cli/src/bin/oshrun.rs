//! `oshrun`: starts the PEs of an OpenSHMEM program on this machine, with the options that users of other launchers know.
//!
//! The launcher itself is that of `npushmem run` (launch/); this is its other command line.

// The launcher has more than this command line uses.
#[allow(dead_code)]
#[path = "../launch/mod.rs"]
mod launch;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use launch::{Input, Job};

/// Exit code of a command line that cannot be used.
const BAD_INPUT: u8 = 2;
/// Most PEs on one machine.
const MAX_PES: u32 = 4096;
/// Time that PEs get between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

const HELP: &str = "\
Starts the PEs of an OpenSHMEM program on this machine; when one fails, all are ended.

Usage: oshrun [OPTIONS] PROGRAM [ARGUMENTS]

  -n, -np, -c, --np N      number of PEs (default 1)
  -x NAME[=VALUE]          environment variable for the PEs; without a value, as it is here (all are passed on anyway)
  -genv, -env NAME VALUE   the same
  --tag-output, -l         each line of output begins with the number of its PE
  --timeout SECONDS        end the job after this time
  --wdir, -wdir, -wd DIR   folder to start in
  --stdin PE               who gets stdin: a PE number, all or none (default 0)
  --keep-going             let the others go on when a PE fails
  -h, --help; -V, --version

Accepted, without effect on one machine: --oversubscribe, --nooversubscribe, --allow-run-as-root, -q, --quiet, -v, --verbose, --report-bindings,
--display-map, -genvall, --bind-to P, --map-by P, --rank-by P, --mca KEY VALUE, -N N and -ppn N (PEs of a machine), and --host with this machine's
name.

Exit code: that of shmem_global_exit, or of the first PE that failed (128 + signal when a signal killed it); 124 after a timeout, 127 when the
program is not found.
";

/// What the command line says.
enum Request {
    Help,
    Version,
    Run(Box<Job>),
}

fn main() -> ExitCode {
    let job = match parse(std::env::args_os().skip(1)) {
        Ok(Request::Run(job)) => job,
        Ok(Request::Help) => return print(HELP),
        Ok(Request::Version) => {
            return print(concat!(
                "oshrun (npushmem) ",
                env!("CARGO_PKG_VERSION"),
                "\n"
            ))
        }
        Err(message) => {
            eprintln!("oshrun: {message}; `oshrun --help` shows what is accepted");
            return ExitCode::from(BAD_INPUT);
        }
    };
    match launch::run(&job) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oshrun: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn print(text: &str) -> ExitCode {
    use std::io::Write;
    // A reader that has gone away is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn parse(args: impl Iterator<Item = OsString>) -> Result<Request, String> {
    let mut args = args.peekable();
    let mut pes = None;
    let mut per_machine = None;
    let mut tagged = false;
    let mut env = Vec::new();
    let mut job = Job {
        pes: 1,
        program: OsString::new(),
        args: Vec::new(),
        env: Vec::new(),
        prefix: None,
        input: Input::Pe(0),
        timeout: None,
        keep_going: false,
        grace: GRACE,
    };
    let program = loop {
        let Some(arg) = args.next() else {
            return Err("no program given".into());
        };
        let Some(option) = arg.to_str().filter(|text| text.starts_with('-')) else {
            break arg;
        };
        // "--np=4" is "--np 4"; "-n4" is "-n 4".
        let (name, mut inline) = match option.split_once('=') {
            Some((name, value)) if name.starts_with("--") => {
                (name.to_owned(), Some(value.to_owned()))
            }
            _ => match option.strip_prefix("-n") {
                Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                    ("-n".to_owned(), Some(digits.to_owned()))
                }
                _ => (option.to_owned(), None),
            },
        };
        let mut value = |what: &str| -> Result<OsString, String> {
            inline
                .take()
                .map(OsString::from)
                .or_else(|| args.next())
                .ok_or_else(|| format!("{name} needs {what}"))
        };
        match name.as_str() {
            "-n" | "-np" | "-c" | "--n" | "--np" | "--pes" => {
                pes = Some(number(&name, &value("a number of PEs")?)?);
            }
            "-x" => env.extend(variable(&value("a variable")?)),
            "-genv" | "-env" | "--genv" | "--env" => {
                let variable = value("a variable and its value")?;
                env.push((variable, value("a value behind the variable")?));
            }
            "--tag-output" | "-tag-output" | "-l" | "--prepend-rank" | "-prepend-rank" => {
                tagged = true;
            }
            "--timeout" | "-timeout" => {
                let text = value("a time in seconds")?;
                job.timeout = Some(seconds(&text)?);
            }
            "--wdir" | "-wdir" | "-wd" => {
                let folder = value("a folder")?;
                std::env::set_current_dir(&folder)
                    .map_err(|error| format!("{name} {}: {error}", folder.display()))?;
            }
            "--stdin" | "-stdin" => {
                let text = value("a PE number, all or none")?;
                job.input = text
                    .to_string_lossy()
                    .parse()
                    .map_err(|error| format!("{name} {}: {error}", text.display()))?;
            }
            "--keep-going" => job.keep_going = true,
            "--oversubscribe"
            | "-oversubscribe"
            | "--nooversubscribe"
            | "-nooversubscribe"
            | "--allow-run-as-root"
            | "-q"
            | "--quiet"
            | "-v"
            | "--verbose"
            | "--report-bindings"
            | "-report-bindings"
            | "--display-map"
            | "-display-map"
            | "-genvall"
            | "-envall" => {}
            "--bind-to" | "-bind-to" | "--map-by" | "-map-by" | "--rank-by" | "-rank-by" => {
                value("a policy")?;
            }
            "-N" | "-ppn" | "--ppn" | "-npernode" | "--npernode" => {
                per_machine = Some(number(&name, &value("a number of PEs")?)?);
            }
            "--mca" | "-mca" => {
                value("a parameter and its value")?;
                value("a value behind the parameter")?;
            }
            "-h" | "--help" | "-help" => return Ok(Request::Help),
            "-V" | "--version" => return Ok(Request::Version),
            "-H" | "-host" | "--host" | "-hosts" => {
                let names = value("names of machines")?;
                if let Some(other) = elsewhere(&names.to_string_lossy()) {
                    return Err(format!(
                        "{name} {other}: jobs over several hosts are not supported, and that is not this one"
                    ));
                }
            }
            "--hostfile" | "-hostfile" | "-f" | "--machinefile" | "-machinefile" => {
                return Err(format!("{name}: jobs over several hosts are not supported"));
            }
            "--" => match args.next() {
                Some(program) => break program,
                None => return Err("no program given".into()),
            },
            _ => return Err(format!("unknown option {name}")),
        }
    };
    let pes = match (pes, per_machine) {
        (Some(pes), Some(most)) if pes > most => {
            return Err(format!(
                "{pes} PEs with {most} on each machine: jobs over several hosts are not supported"
            ))
        }
        (pes, per_machine) => pes.or(per_machine).unwrap_or(1),
    };
    if let Input::Pe(pe) = job.input {
        if pe >= pes {
            return Err(format!("--stdin {pe}: PEs run from 0 to {}", pes - 1));
        }
    }
    job.pes = pes;
    // One PE may as well write itself; lines of several are passed on whole.
    job.prefix = match (tagged, pes) {
        (true, _) => Some("[{pe}] ".into()),
        (false, 1) => None,
        (false, _) => Some(String::new()),
    };
    job.env = env;
    job.program = program;
    job.args = args.collect();
    if job.args.iter().any(|arg| arg == ":") {
        return Err("several programs in one job (:) are not supported".into());
    }
    Ok(Request::Run(Box::new(job)))
}

fn number(name: &str, text: &OsString) -> Result<u32, String> {
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(pes @ 1..=MAX_PES) => Ok(pes),
        _ => Err(format!(
            "{name} {}: expected a number of PEs from 1 to {MAX_PES}",
            text.display()
        )),
    }
}

/// The first machine in a list such as `localhost:4,n1` that is not this one.
fn elsewhere(list: &str) -> Option<&str> {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = own.trim();
    list.split(',')
        .map(|entry| entry.split(':').next().unwrap_or(entry).trim())
        .find(|name| !["localhost", "127.0.0.1", own].contains(name))
}

/// NAME=VALUE; a name alone is inherited as every variable is.
fn variable(text: &OsString) -> Option<(OsString, OsString)> {
    let (name, value) = text.to_str()?.split_once('=')?;
    Some((name.into(), value.into()))
}

fn seconds(text: &OsString) -> Result<Duration, String> {
    text.to_str()
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|&seconds| seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| {
            format!(
                "--timeout {}: expected a number of seconds above zero",
                text.display()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(line: &str) -> Result<Job, String> {
        match parse(line.split_whitespace().map(OsString::from)) {
            Ok(Request::Run(job)) => Ok(*job),
            Ok(_) => Err("not a run".into()),
            Err(message) => Err(message),
        }
    }

    #[test]
    fn the_number_of_pes_is_given_as_in_other_launchers() {
        for line in [
            "-n 3 prog",
            "-np 3 prog",
            "-n3 prog",
            "--np=3 prog",
            "-c 3 prog",
            "--mca a b --oversubscribe -np 3 prog",
            "-N 3 prog",
            "-n 3 -ppn 4 --bind-to core --host localhost:8 -genvall prog",
        ] {
            assert_eq!(job(line).unwrap().pes, 3, "{line}");
        }
        assert_eq!(job("prog").unwrap().pes, 1);
    }

    #[test]
    fn options_behind_the_program_are_the_programs() {
        let job = job("-n 2 -x A=b=c -genv D e -x HOME prog -n 7 --help").unwrap();
        assert_eq!(job.program, "prog");
        assert_eq!(job.args, ["-n", "7", "--help"]);
        assert_eq!(
            job.env,
            [("A".into(), "b=c".into()), ("D".into(), "e".into())]
        );
    }

    #[test]
    fn output_is_tagged_on_request_and_whole_lines_for_several() {
        assert_eq!(
            job("-n 2 --tag-output prog").unwrap().prefix.as_deref(),
            Some("[{pe}] ")
        );
        assert_eq!(job("-n 2 prog").unwrap().prefix.as_deref(), Some(""));
        assert_eq!(job("prog").unwrap().prefix, None);
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for (line, part) in [
            ("", "no program"),
            ("-n 0 prog", "-n 0: expected a number of PEs"),
            ("-n", "-n needs a number of PEs"),
            ("-n 2 --host a prog", "--host a: jobs over several hosts"),
            ("-n 2 -H localhost,b prog", "-H b: jobs over several hosts"),
            ("-n 4 -N 2 prog", "4 PEs with 2 on each machine"),
            ("--frobnicate prog", "unknown option --frobnicate"),
            ("-n 2 a : -n 2 b", "several programs"),
            ("-n 2 --stdin 2 a", "PEs run from 0 to 1"),
        ] {
            let message = job(line).err().unwrap_or_default();
            assert!(message.contains(part), "{line}: {message}");
        }
    }
}
