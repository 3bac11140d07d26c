//! The `npushmem` program: starts jobs, runs the graph aggregation and benchmarks, and says what this machine has.
//!
//! What it is not: the library. It prints, exits and starts processes; everything else is in the crate npushmem.

mod bench;
mod doctor;
mod failure;
mod features;
mod gnn;
mod graph;
mod info;
mod launch;
mod layout;
mod npy;
mod operator;
mod plan;
mod progress;
mod random;
mod reference;
mod room;
mod run;
#[cfg(test)]
mod testdata;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::{Failure, BAD_INPUT};
use tracing_subscriber::EnvFilter;

/// SHMEM for Ascend NPUs, driven by the device. Runs on an emulated NPU where there is none.
#[derive(Debug, Parser)]
#[command(name = "npushmem", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Gnn(gnn::GnnArgs),
    Bench(bench::BenchArgs),
    Info(info::InfoArgs),
    Doctor(doctor::DoctorArgs),
    #[command(name = "gnn-pe", hide = true)]
    GnnPe(gnn::WorkerArgs),
    #[command(name = "bench-pe", hide = true)]
    BenchPe(bench::WorkerArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    // NPUSHMEM_LOG=debug shows what the library does.
    let filter = match log_filter() {
        Ok(filter) => filter,
        Err(failure) => return end(&failure),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
    let result = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Gnn(args) => gnn::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Info(args) => info::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::GnnPe(args) => gnn::run_worker(args),
        Command::BenchPe(args) => bench::run_worker(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => end(&failure),
    }
}

/// What NPUSHMEM_LOG lets through; warnings when it is not set.
fn log_filter() -> Result<EnvFilter, Failure> {
    let text = std::env::var("NPUSHMEM_LOG").unwrap_or_default();
    if text.is_empty() {
        return Ok(EnvFilter::new("warn"));
    }
    EnvFilter::try_new(&text).map_err(|error| {
        Failure::input(format!(
            "NPUSHMEM_LOG={text:?} is not accepted: {error}; give error, warn, info, debug or trace"
        ))
    })
}

/// Prints what a command was asked for. A reader that has gone away is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn end(failure: &Failure) -> ExitCode {
    eprintln!("npushmem: {}", failure.line());
    ExitCode::from(failure.code)
}

/// Help and version go to stdout as clap has them; a wrong command line is one line on stderr.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr()
        || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        let code = if error.use_stderr() { BAD_INPUT } else { 0 };
        // A closed stdout is nothing to complain about.
        let _ = error.print();
        return ExitCode::from(code);
    }
    let text = error.to_string();
    let first: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .collect();
    // "... were not provided:" and the list that follows it are one sentence.
    let message = first
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
        .replace(":\n", ": ");
    let message = message.trim_start_matches("error: ");
    end(&Failure::input(format!(
        "{message}\n`npushmem --help` shows what is accepted"
    )))
}
