//! `make bench`: what this machine does through npushmem, as ratios to what it does bare, both taken in the same run.
//!
//! This process starts two PEs (processes of the same program), has them measure the device API, measures the graph job by the `npushmem`
//! program, and prints one table. It is no test: nothing here fails because something is slow.

mod figure;
mod gnn;
mod graph;
mod job;
mod limits;
mod measure;
mod report;
mod stats;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{ensure, Context, Result};
use clap::{Parser, Subcommand};

/// Prints figures of this machine as ratios to its bare limits, taken in one run.
#[derive(Debug, Parser)]
#[command(name = "npushmem-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Times the device API is measured; medians of these rounds are shown.
    #[arg(long, value_name = "N", default_value_t = 51)]
    rounds: usize,
    /// The same for the graph job, whose rounds start processes.
    #[arg(long, value_name = "N", default_value_t = 9)]
    gnn_rounds: usize,
    /// Measure only rows of the device API whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Calls of each measurement, as a percentage of the usual number.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    calls: u64,
    /// Graph file of the graph job: an edge list.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "../shared/data/facebook_combined.txt"
    )]
    graph: PathBuf,
    /// The generated R-MAT graph has 2^SCALE nodes and 16 edges a node.
    #[arg(long, value_name = "SCALE", default_value_t = 13, value_parser = clap::value_parser!(u32).range(4..=20))]
    rmat: u32,
    /// Features a node.
    #[arg(long, value_name = "D", default_value_t = 64)]
    dim: usize,
    /// Comm cores of each PE of the graph job [default: the processors of this machine shared among the PEs].
    #[arg(long, value_name = "C")]
    cores: Option<u32>,
    /// Do not run the graph job.
    #[arg(long)]
    skip_gnn: bool,
    /// The `npushmem` program [default: beside this program].
    #[arg(long, value_name = "PATH")]
    npushmem: Option<PathBuf>,
    /// Python with scipy, for the graph job's other limit.
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Write the rows as JSON; - for stdout instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// One PE; started by this program.
    #[command(hide = true)]
    Pe {
        rounds: usize,
        calls: u64,
        only: String,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("npushmem-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    if let Some(Command::Pe {
        rounds,
        calls,
        only,
    }) = cli.command
    {
        return measure::run(rounds, calls, &only);
    }
    ensure!(cli.rounds > 0, "--rounds 0: at least one");
    ensure!(cli.gnn_rounds > 0, "--gnn-rounds 0: at least one");
    ensure!(cli.calls > 0, "--calls 0: at least 1 percent");
    ensure!(cli.dim > 0, "--dim 0: at least one feature");
    let mut rows =
        job::measure(cli.rounds, cli.calls, &cli.only).context("the PEs' measurements")?;
    let mut skipped = Vec::new();
    if cli.skip_gnn {
        skipped.push("gnn: --skip-gnn".to_owned());
    } else {
        let settings = gnn::Settings {
            rounds: cli.gnn_rounds,
            dim: cli.dim,
            cores: cli.cores.unwrap_or_else(gnn::default_cores),
            npushmem: cli.npushmem,
            python: cli.python,
        };
        gnn::measure(&settings, &cli.graph, cli.rmat, &mut rows, &mut skipped)
            .context("the graph job")?;
    }
    report::write(&rows, &skipped, cli.json.as_deref())
}
