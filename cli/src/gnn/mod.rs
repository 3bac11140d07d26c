//! `npushmem gnn`: aggregates features over a graph's neighbours with kernels that move their own data, and compares with the all-gather baseline.
//!
//! This process reads, plans, starts one process a PE (`gnn-pe`, worker.rs) through the launcher, and puts the results together. It runs no
//! kernel itself.

pub mod abi;
mod handover;
mod report;
mod worker;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use npushmem::config::Config;

use crate::failure::Failure;
use crate::features::{self, Dtype, Features};
use crate::graph::{self, Graph};
use crate::launch::{self, Input, Job};
use crate::plan::{Partition, Scheme};
use crate::progress;
use crate::reference;
use crate::room;
use crate::run::{check_pes, seconds};
pub use worker::{run as run_worker, WorkerArgs};

/// Largest relative error that counts as equal.
const TOLERANCE: f64 = 1e-5;
/// Features a node when neither --features nor --dim says.
const DEFAULT_DIM: usize = 64;
/// Most features a node: rows of 1 MiB.
const MAX_DIM: usize = 1 << 18;
/// Most comm cores a PE that can be asked for.
const MAX_CORES: u32 = 256;
/// Most repetitions: their times are handed over in one report.
const MAX_REPEAT: u32 = 1000;
/// Rows that one batch of requests fetches: a full batch of the device library rings once.
const BATCH: usize = 32;
/// Heap beyond the arrays: allocation units and the library's own needs.
const HEAP_SLACK: u64 = 1 << 20; // bytes

/// How neighbours are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[repr(u32)]
pub enum Reduce {
    /// Their sum.
    Sum = 0,
    /// Their arithmetic mean.
    Mean = 1,
    /// Their maximum.
    Max = 2,
}

impl Reduce {
    fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Max => "max",
        }
    }
}

/// How kernels reach the other PEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[repr(u32)]
pub enum Engine {
    /// Mapped where a peer is mapped, else roce.
    Auto = 0,
    /// Copies through mapped peer memory.
    Mapped = 1,
    /// Work requests to the NIC.
    Roce = 2,
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Mapped => "mapped",
            Self::Roce => "roce",
        }
    }
}

/// Aggregate features over the neighbours of a graph's nodes, on several PEs, with kernels that fetch remote rows themselves.
///
/// Row r of features and results belongs to the node with the r-th smallest id in the file. The result of node a combines the rows of all b with
/// an edge between a and b (with --directed: an edge "a b"). Exit codes: 0 well, 1 a failed run or results beyond 1e-5 of the reference, 2 bad
/// input.
#[derive(Debug, Args)]
pub struct GnnArgs {
    /// Edge list (blank, tab or comma separated; # and % start comments) or Matrix Market file.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "rmat",
        required_unless_present = "rmat"
    )]
    pub graph: Option<PathBuf>,
    /// Generate an R-MAT graph of 2^SCALE nodes (Graph500 parameters) instead of reading one.
    #[arg(long, value_name = "SCALE")]
    pub rmat: Option<u32>,
    /// Edges a node of the R-MAT graph, before duplicates are dropped.
    #[arg(long, value_name = "N", default_value_t = graph::RMAT_EDGE_FACTOR)]
    pub edge_factor: u64,
    /// Seed of the R-MAT graph and of generated features.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Take edges as directed.
    #[arg(long)]
    pub directed: bool,
    /// Number of PEs.
    #[arg(long, short = 'n', value_name = "N")]
    pub pes: u32,
    /// Communicating cores of each PE.
    #[arg(long, value_name = "C", default_value_t = 4)]
    pub cores: u32,
    /// Features: a .npy matrix of float32 or float16 in C order, one row a node.
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// Features a node; without --features they are generated in [-1, 1) [default: 64].
    #[arg(long, value_name = "D")]
    pub dim: Option<usize>,
    /// How generated features are stored; f16 is summed in f32.
    #[arg(long, default_value = "f32")]
    pub dtype: Dtype,
    /// How neighbours are combined.
    #[arg(long, default_value = "sum")]
    pub reduce: Reduce,
    /// How kernels reach the other PEs.
    #[arg(long, default_value = "auto")]
    pub engine: Engine,
    /// How nodes are spread over PEs.
    #[arg(long, default_value = "block")]
    pub partition: Scheme,
    /// Write the results: a .npy matrix of float32, one row a node.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Compare with a plain reference; differences are relative to the magnitudes that were summed.
    #[arg(long)]
    pub verify: bool,
    /// Write the numbers of the table as JSON; - for stdout instead of the table.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Times each kernel is run after a first one that is not counted; the best time is reported.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeat: u32,
    /// Do not run the all-gather baseline.
    #[arg(long)]
    pub skip_allgather: bool,
    /// End the run after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// Runs the command.
pub fn run(args: GnnArgs) -> Result<(), Failure> {
    check(&args)?;
    let config = Config::from_env().map_err(Failure::input)?;
    // What every PE would refuse is said once, before anything is read.
    let cores = npushmem::check_runtime(config.runtime).map_err(Failure::input)?;
    if let Some(most) = cores.filter(|&most| args.cores > most) {
        return Err(Failure::input(format!(
            "--cores {}: a PE has 1 to {most} cores on the emulated NPU",
            args.cores
        )));
    }
    let (graph, name) = load_graph(&args)?;
    if args.pes as usize > graph.nodes() {
        return Err(Failure::input(format!(
            "{} PEs for the {} nodes of {name}: every PE needs a node; use fewer PEs",
            args.pes,
            graph.nodes()
        )));
    }
    let features = load_features(&args, graph.nodes())?;
    check_room(&args, graph.nodes(), &features)?;

    let partition = Partition::new(args.partition, graph.nodes(), args.pes as usize);
    let jobs = handover::Jobs::new(&args, &graph, &features, &partition)
        .map_err(|error| Failure::failed(format!("cannot hand the work to the PEs: {error}")))?;
    let heap = jobs.heap_bytes() + HEAP_SLACK;
    let mut env = Vec::new();
    if heap > config.symmetric_size {
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
    launch::run_while(&job, || progress::spinner("running")).map_err(|error| Failure {
        message: error.to_string(),
        code: error.exit_code(),
    })?;
    let outcome = jobs
        .collect(&partition)
        .map_err(|error| Failure::failed(format!("cannot read the PEs' results: {error}")))?;

    let error = args.verify.then(|| {
        let mut largest =
            reference::max_relative_error(&graph, &features, args.reduce, &outcome.results);
        if let Some(baseline) = &outcome.baseline_results {
            largest = largest.max(reference::max_relative_error(
                &graph,
                &features,
                args.reduce,
                baseline,
            ));
        }
        largest
    });
    let summary = report::Summary::new(
        &args, &name, &graph, &features, &partition, &jobs, &outcome, error,
    );
    if let Some(out) = &args.out {
        features::write(out, &outcome.results, features.dim).map_err(Failure::input)?;
    }
    summary.write(args.json.as_deref())?;
    match error {
        Some(error) if error.is_nan() || error > TOLERANCE => Err(Failure::failed(format!(
            "results differ from the reference by {error:.3e} (relative), more than {TOLERANCE:e}"
        ))),
        _ => Ok(()),
    }
}

/// What can be said before anything is read.
fn check(args: &GnnArgs) -> Result<(), Failure> {
    check_pes(args.pes)?;
    if !(1..=MAX_CORES).contains(&args.cores) {
        return Err(Failure::input(format!(
            "--cores {}: a PE communicates from 1 to {MAX_CORES} cores",
            args.cores
        )));
    }
    if let Some(dim) = args.dim.filter(|dim| !(1..=MAX_DIM).contains(dim)) {
        return Err(Failure::input(format!(
            "--dim {dim}: rows have from 1 to {MAX_DIM} features"
        )));
    }
    if !(1..=MAX_REPEAT).contains(&args.repeat) {
        return Err(Failure::input(format!(
            "--repeat {}: from 1 to {MAX_REPEAT}",
            args.repeat
        )));
    }
    if let Some(scale) = args
        .rmat
        .filter(|scale| !(1..=graph::RMAT_MAX_SCALE).contains(scale))
    {
        return Err(Failure::input(format!(
            "--rmat {scale}: scales go from 1 to {}",
            graph::RMAT_MAX_SCALE
        )));
    }
    if !(1..=1024).contains(&args.edge_factor) {
        return Err(Failure::input(format!(
            "--edge-factor {}: from 1 to 1024 edges a node",
            args.edge_factor
        )));
    }
    for (option, path) in [("--out", &args.out), ("--json", &args.json)] {
        if let Some(path) = path.as_ref().filter(|path| path.as_os_str() != "-") {
            check_target(option, path)?;
        }
    }
    Ok(())
}

/// A result file must be writable before hours of work, not after.
fn check_target(option: &str, path: &Path) -> Result<(), Failure> {
    let refuse = |reason: &str| {
        Err(Failure::input(format!(
            "{option} {}: {reason}",
            path.display()
        )))
    };
    if path.is_dir() {
        return refuse("is a folder; name a file");
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            refuse(&format!("there is no folder {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn load_graph(args: &GnnArgs) -> Result<(Graph, String), Failure> {
    if let Some(scale) = args.rmat {
        let name = format!("R-MAT scale {scale}");
        let raw =
            graph::generate_rmat(scale, args.edge_factor, args.seed).map_err(Failure::input)?;
        return Ok((
            Graph::build(raw, args.directed, &name).map_err(Failure::input)?,
            name,
        ));
    }
    // clap requires one of the two.
    let path = args
        .graph
        .as_deref()
        .ok_or_else(|| Failure::input("no graph: give --graph FILE or --rmat SCALE"))?;
    let graph = graph::read(path, args.directed).map_err(Failure::input)?;
    let name = path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    Ok((graph, name))
}

/// The rows are handed over, kept by their owners and gathered by everyone; results exist three times, with the baseline's six.
fn check_room(args: &GnnArgs, nodes: usize, features: &Features) -> Result<(), Failure> {
    let copies = if args.skip_allgather {
        (2, 3)
    } else {
        (2 + u64::from(args.pes), 6)
    };
    let results = nodes as u64 * features.dim as u64 * 4;
    let rows = features.bytes.len() as u64;
    room::check(
        rows.saturating_mul(copies.0)
            .saturating_add(results.saturating_mul(copies.1)),
        format!(
            "{} features for each of {nodes} nodes on {} PEs",
            features.dim, args.pes
        ),
        "use fewer features a node, fewer PEs, or --skip-allgather",
    )
    .map_err(Failure::input)
}

fn load_features(args: &GnnArgs, nodes: usize) -> Result<Features, Failure> {
    let features = match &args.features {
        Some(path) => Features::read(path, nodes, args.dim).map_err(Failure::input)?,
        None => Features::generate(
            nodes,
            args.dim.unwrap_or(DEFAULT_DIM),
            args.dtype,
            args.seed,
        )
        .map_err(Failure::input)?,
    };
    if features.dim > MAX_DIM {
        return Err(Failure::input(format!(
            "{} features a node: rows have at most {MAX_DIM}",
            features.dim
        )));
    }
    // Cores do not say which operand their maximum takes then, so the result would depend on the order of neighbours.
    if let Some((node, column)) = (args.reduce == Reduce::Max)
        .then(|| features.first_nan())
        .flatten()
    {
        return Err(Failure::input(format!(
            "row {node}, column {column} of the features is not a number, and has no place in a maximum; replace it, or use --reduce sum or mean"
        )));
    }
    Ok(features)
}
