//! `npushmem bench`: microbenchmarks of the device API, measured inside kernels by the system counter.
//!
//! This process plans, starts one process a PE (`bench-pe`, worker.rs) through the launcher, and makes tables, JSON and plots of what they
//! measured. It runs no kernel itself. On hardware the same kernels run unchanged.

mod atomics;
mod collectives;
mod cost;
mod figure;
mod handover;
mod plan;
mod plot;
mod report;
mod rma;
mod scale;
mod stats;
mod step;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use npushmem::config::{parse_size, size_text, Config};

use crate::failure::Failure;
use crate::launch::{self, Input, Job};
use crate::progress;
use crate::run::{check_pes, seconds};
use plan::{Plan, Scope};
pub use worker::{run as run_worker, WorkerArgs};

/// Largest message: the library splits at 1 GiB, and two buffers must fit an emulated NPU.
const MAX_SIZE: u64 = 256 << 20;
/// Sizes when nothing is said.
const DEFAULT_SIZES: (u64, u64) = (8, 1 << 20);
/// Samples of a point when nothing is said.
const SAMPLES: u64 = 21;
const ALL_SAMPLES: u64 = 9;
/// Most samples of a point.
const MAX_SAMPLES: u64 = 1000;
/// Samples of a point of modelled time, which does not vary.
const MODELLED_SAMPLES: u64 = 1;
/// Heap beyond the buffers: allocation units and the library's own needs.
const HEAP_SLACK: u64 = 2 << 20; // bytes

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Everything below.
    All,
    /// Latency of put by size.
    Put,
    /// Latency of get by size.
    Get,
    /// Latency of p.
    P,
    /// Latency of g.
    G,
    /// Latency of put with signal by size.
    #[value(alias = "put_signal")]
    PutSignal,
    /// Bandwidth of put and get by size and cores.
    Bandwidth,
    /// Message rate by batch, size and cores.
    Rate,
    /// Latency of each atomic, and rate with everybody at one word.
    Atomics,
    /// Barrier and sync by PEs.
    Barrier,
    /// Collectives by PEs and size.
    Collectives,
    /// Updates a second of random words on random PEs.
    Gups,
    /// What an empty kernel costs.
    Launch,
    /// Doorbells, requests, copies, flags of each call: counted, not timed.
    Cost,
    /// Barrier and all-to-all up to 1,024 PEs, by the time model: executed up to --pes, replayed beyond.
    Scale,
}

/// How kernels reach the other PEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[repr(u32)]
pub enum Engine {
    /// Copies through mapped peer memory.
    Mapped = 1,
    /// Work requests to the NIC.
    Roce = 2,
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Mapped => "mapped",
            Self::Roce => "roce",
        }
    }
}

/// Measure the device API with kernels that read the system counter themselves; print tables, write JSON and plots.
///
/// Shown are medians and, in brackets, quartiles. Exit codes: 0 well, 1 a failed run, 2 bad input.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure.
    pub what: What,
    /// Number of PEs.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 2)]
    pub pes: u32,
    /// Engines to measure, comma separated.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ENGINE",
        default_value = "mapped,roce"
    )]
    pub engine: Vec<Engine>,
    /// Most communicating cores of a PE.
    #[arg(long, value_name = "C", default_value_t = 1)]
    pub cores: u32,
    /// Message sizes, from A to B in powers of two [default: 8..1M].
    #[arg(long, value_name = "A..B", value_parser = sizes)]
    pub sizes: Option<(u64, u64)>,
    /// Samples of each point, after one that is not counted [default: 21, of `all` 9].
    #[arg(long, value_name = "N")]
    pub samples: Option<u64>,
    /// Write all figures as JSON; - for stdout instead of the tables.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw each figure as SVG; of several figures, each name is put before the suffix: F-bandwidth.svg.
    #[arg(long, value_name = "F.svg")]
    pub plot: Option<PathBuf>,
    /// Let the emulated NPU's time be the time model's, as NPUSIM_TIME=model does.
    #[arg(long)]
    pub model: bool,
    /// End the run after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// "A..B", or one size.
fn sizes(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let size = |text: &str| -> Result<u64, String> {
        let bytes = parse_size(text)?;
        if (1..=MAX_SIZE).contains(&bytes) {
            Ok(bytes)
        } else {
            Err(format!(
                "{text}: messages have 1 B to {}",
                size_text(MAX_SIZE)
            ))
        }
    };
    let (from, to) = (size(from)?, size(to)?);
    if from > to {
        return Err(format!("{text}: the first size is the larger one"));
    }
    Ok((from, to))
}

/// From, 2 from, 4 from, ... and to.
fn steps(from: u64, to: u64, factor: u64) -> Vec<u64> {
    let mut all: Vec<u64> = std::iter::successors(Some(from), |n| n.checked_mul(factor))
        .take_while(|&n| n < to)
        .collect();
    all.push(to);
    all
}

/// Runs the command.
pub fn run(args: BenchArgs) -> Result<(), Failure> {
    check(&args)?;
    let config = Config::from_env().map_err(Failure::input)?;
    // What every PE would refuse is said once.
    let cores = npushmem::check_runtime(config.runtime).map_err(Failure::input)?;
    if let Some(most) = cores.filter(|&most| args.cores > most) {
        return Err(Failure::input(format!(
            "--cores {}: a PE has 1 to {most} cores on the emulated NPU",
            args.cores
        )));
    }
    let emulated = cores.is_some();
    let asked = args.model || args.what == What::Scale;
    if asked && !emulated {
        return Err(Failure::input(
            "modelled time is the emulated NPU's: it is not there on an NPU (NPUSHMEM_RUNTIME=sim chooses the emulated one)",
        ));
    }
    let modelled =
        asked || emulated && std::env::var_os("NPUSIM_TIME").is_some_and(|value| value == "model");
    let (from, to) = args.sizes.unwrap_or(DEFAULT_SIZES);
    let factor = if args.what == What::All { 4 } else { 2 };
    let mut engines = Vec::new();
    for &engine in &args.engine {
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let scope = Scope {
        pes: args.pes,
        cores: args.cores,
        engines,
        sizes: steps(from, to, factor),
        samples: match args.samples {
            Some(samples) => samples,
            None if modelled => MODELLED_SAMPLES,
            None if args.what == What::All => ALL_SAMPLES,
            None => SAMPLES,
        },
        modelled,
    };
    let mut plan = Plan::default();
    add(&mut plan, args.what, &scope);
    let costs = match args.what {
        What::Cost | What::All => cost::steps(&scope),
        _ => Vec::new(),
    };
    let mut all = plan.steps.clone();
    all.extend(costs.iter().map(|(_, _, step)| step.clone()));
    let (tick, mut samples) = measure(&args, &config, all, modelled)?;
    let counts = samples.split_off(plan.steps.len());
    let mut figures = plan.complete(tick, &samples);
    scale::replayed(&mut figures, args.pes);
    let report = report::Report {
        pes: args.pes,
        cores: args.cores,
        emulated,
        modelled,
        figures,
        costs: costs
            .iter()
            .zip(&counts)
            .map(|((number, engine, _), counts)| cost::Cost::new(*number, *engine, counts))
            .collect(),
    };
    report.write(args.json.as_deref(), args.plot.as_deref())
}

/// Adds what is to be measured.
fn add(plan: &mut Plan, what: What, scope: &Scope) {
    let is = |one: What| what == one || what == What::All;
    if is(What::Put) {
        rma::put(plan, scope);
    }
    if is(What::Get) {
        rma::get(plan, scope);
    }
    if is(What::PutSignal) {
        rma::put_signal(plan, scope);
    }
    match what {
        What::All => rma::words(plan, scope, rma::Words::All),
        What::P => rma::words(plan, scope, rma::Words::P),
        What::G => rma::words(plan, scope, rma::Words::G),
        _ => {}
    }
    if is(What::Bandwidth) {
        rma::bandwidth(plan, scope);
    }
    if is(What::Rate) {
        rma::rate(plan, scope);
    }
    if is(What::Atomics) {
        atomics::all(plan, scope);
    }
    if is(What::Barrier) {
        collectives::barrier(plan, scope);
    }
    if is(What::Collectives) {
        collectives::moving(plan, scope);
    }
    if is(What::Gups) {
        atomics::gups(plan, scope);
    }
    // The time model begins and ends inside kernels.
    if is(What::Launch) && !scope.modelled {
        collectives::launch(plan, scope);
    }
    if what == What::Scale {
        scale::executed(plan, scope);
    }
}

/// Starts the PEs; seconds of a tick, and the ticks of the samples of each step.
fn measure(
    args: &BenchArgs,
    config: &Config,
    steps: Vec<step::Step>,
    modelled: bool,
) -> Result<(f64, Vec<Vec<u64>>), Failure> {
    if steps.is_empty() {
        return Ok((0.0, Vec::new()));
    }
    let room = steps
        .iter()
        .map(|step| step.room)
        .max()
        .unwrap_or(0)
        .max(64);
    let orders = handover::Orders {
        cores: args.cores,
        room,
        steps,
    };
    let jobs = handover::Jobs::new(orders)
        .map_err(|error| Failure::failed(format!("cannot hand the work to the PEs: {error}")))?;
    let heap = 2 * room + HEAP_SLACK;
    let mut env = Vec::new();
    if modelled {
        env.push(("NPUSIM_TIME".into(), "model".into()));
    }
    let memory = npushmem::machine::memory().unwrap_or(0);
    if heap > config.symmetric_size.bytes(memory, args.pes) {
        env.push(("SHMEM_SYMMETRIC_SIZE".into(), heap.to_string().into()));
    }
    let job = Job {
        pes: args.pes,
        // This very program, also when its file was replaced meanwhile.
        program: "/proc/self/exe".into(),
        args: jobs.worker_args(),
        env,
        prefix: Some("[{pe}] ".to_owned()),
        input: Input::Nobody,
        timeout: args.timeout,
        keep_going: false,
        grace: Duration::from_secs(2),
    };
    // The spinner has a thread, which must not be the one that a signal reaches. It clears itself when it is dropped.
    launch::run_while(&job, || progress::spinner("measuring")).map_err(|error| Failure {
        message: error.to_string(),
        code: error.exit_code(),
    })?;
    jobs.collect()
        .map_err(|error| Failure::failed(format!("cannot read the PEs' results: {error}")))
}

/// What can be said before anything is started.
fn check(args: &BenchArgs) -> Result<(), Failure> {
    check_pes(args.pes)?;
    if !(1..=step::MAX_CORES).contains(&args.cores) {
        return Err(Failure::input(format!(
            "--cores {}: a PE communicates from 1 to {} cores",
            args.cores,
            step::MAX_CORES
        )));
    }
    if let Some(samples) = args
        .samples
        .filter(|samples| !(1..=MAX_SAMPLES).contains(samples))
    {
        return Err(Failure::input(format!(
            "--samples {samples}: from 1 to {MAX_SAMPLES}"
        )));
    }
    for (option, path) in [("--plot", &args.plot), ("--json", &args.json)] {
        if let Some(path) = path.as_ref().filter(|path| path.as_os_str() != "-") {
            crate::failure::check_target(option, path)?;
        }
    }
    if args
        .plot
        .as_ref()
        .is_some_and(|path| path.extension().is_none_or(|suffix| suffix != "svg"))
    {
        return Err(Failure::input(
            "--plot: the file's name must end in .svg, the only format",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_range_with_units_or_one_size() {
        assert_eq!(sizes("8..1M"), Ok((8, 1 << 20)));
        assert_eq!(sizes("64K"), Ok((65536, 65536)));
        for wrong in ["", "8..", "1M..8", "0..8", "8..1T", "x..y"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn steps_double_and_end_with_the_last_size() {
        assert_eq!(steps(8, 64, 2), [8, 16, 32, 64]);
        assert_eq!(steps(8, 100, 4), [8, 32, 100]);
        assert_eq!(steps(8, 8, 2), [8]);
    }
}
