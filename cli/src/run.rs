//! `npushmem run`: starts the PEs of a program on this machine.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::launch::{self, Input, Job};

/// Start N PEs of a program on this machine, prefix their output, and end all of them when one fails.
///
/// Exit code: that of the first PE that failed (128 + signal when a signal killed it), 124 after a timeout, 127 when the program is not found.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Number of PEs.
    #[arg(short = 'n', long = "pes", value_name = "N")]
    pub pes: u32,
    /// Text before each line of output; {pe} becomes the PE's number.
    #[arg(long, value_name = "TEXT", default_value = "[{pe}] ")]
    pub prefix: String,
    /// Let PEs write to stdout and stderr directly, without a prefix.
    #[arg(long)]
    pub no_prefix: bool,
    /// Who gets the launcher's stdin: a PE number, `all` or `none`.
    #[arg(long, value_name = "PE", default_value = "0")]
    pub stdin: Input,
    /// End the job after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Time that PEs get between SIGTERM and SIGKILL.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    pub grace: Duration,
    /// Let the others go on when a PE fails.
    #[arg(long)]
    pub keep_going: bool,
    /// The program and its arguments.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM"
    )]
    pub command: Vec<OsString>,
}

/// A time in seconds, fractions allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| "expected a number of seconds".to_owned())?;
    if value <= 0.0 {
        return Err("expected a time above zero".to_owned());
    }
    Duration::try_from_secs_f64(value).map_err(|error| error.to_string())
}

/// Most PEs on one machine.
pub const MAX_PES: u32 = 4096;

/// Refuses numbers of PEs that cannot be started.
pub fn check_pes(pes: u32) -> Result<(), Failure> {
    match pes {
        0 => Err(Failure::input("0 PEs: a job needs at least 1")),
        1..=MAX_PES => Ok(()),
        _ => Err(Failure::input(format!(
            "{pes} PEs: one machine can hold at most {MAX_PES}"
        ))),
    }
}

/// Runs the command.
pub fn run(args: RunArgs) -> Result<(), Failure> {
    check_pes(args.pes)?;
    if let Input::Pe(pe) = args.stdin {
        if pe >= args.pes {
            return Err(Failure::input(format!(
                "--stdin {pe}: PEs run from 0 to {}",
                args.pes - 1
            )));
        }
    }
    let mut command = args.command.into_iter();
    let program = command
        .next()
        .ok_or_else(|| Failure::input("no program given"))?;
    let job = Job {
        pes: args.pes,
        program,
        args: command.collect(),
        env: Vec::new(),
        prefix: (!args.no_prefix).then_some(args.prefix),
        input: args.stdin,
        timeout: args.timeout,
        keep_going: args.keep_going,
        grace: args.grace,
    };
    launch::run(&job).map_err(|error| Failure {
        message: error.to_string(),
        code: error.exit_code(),
    })
}
