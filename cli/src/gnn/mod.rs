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

use crate::failure::{check_target, Failure};
use crate::features::{self, Dtype, Features};
use crate::graph::{self, Form, Graph, Rules, SelfLoops, Weights};
use crate::launch::{self, Input, Job};
use crate::operator::{self, Norm};
use crate::plan::{Partition, Scheme, Weighted};
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
/// an edge between a and b (with --directed: an edge "a b"). Arrays (.npz, .npy, OGB) are taken as they stand: directed, node r is row r, self loops
/// kept; a matrix M gives M X, an edge index gives each target its sources. docs/gnn.md says more. Exit codes: 0 well, 1 a failed run or results
/// beyond 1e-5 of the reference, 2 bad input.
#[derive(Debug, Args)]
pub struct GnnArgs {
    /// Edge list (blank, tab or comma separated; # and % start comments; also gzipped), Matrix Market file, SciPy's .npz (csr, csc, coo), edge_index
    /// as .npy, or a folder: indptr.npy and indices.npy, edge_index.npy, or OGB's edge.csv.gz and num-node-list.csv.gz.
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
    /// Take the edges of arrays as undirected; both directions that are stored must have one weight.
    #[arg(long, conflicts_with = "directed")]
    pub undirected: bool,
    /// Turn every edge round: M^T X instead of M X.
    #[arg(long)]
    pub transpose: bool,
    /// What becomes of edges from a node to itself [default: drop for lines of text, keep for arrays].
    #[arg(long, value_name = "HOW")]
    pub self_loops: Option<SelfLoops>,
    /// Node ids are exactly 0 to N - 1, whether or not an edge names them.
    #[arg(long, value_name = "N", conflicts_with = "rmat")]
    pub nodes: Option<u64>,
    /// Multiply each neighbour's row with the weight of the edge: the third column of an edge list, the values of a matrix, or a .npy file with one
    /// number for each stored edge. Mean divides by the number of neighbours.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with = "rmat")]
    pub weights: Option<Option<PathBuf>>,
    /// Normalise the weights; d(a) and e(b) are the sums of row a and column b: gcn w / sqrt(d(a) d(b)), both w / sqrt(d(a) e(b)).
    #[arg(long, default_value = "none")]
    pub norm: Norm,
    /// Aggregate so many times in one launch: each layer reads the results of the one before.
    #[arg(long, value_name = "L", default_value_t = 1)]
    pub layers: u32,
    /// Compute the gradient instead: --features are the gradients of the results, --out those of the features. Not for max.
    #[arg(long)]
    pub backward: bool,
    /// Number of PEs.
    #[arg(long, short = 'n', value_name = "N")]
    pub pes: u32,
    /// Communicating cores of each PE.
    #[arg(long, value_name = "C", default_value_t = 4)]
    pub cores: u32,
    /// Features: a .npy matrix of float32 or float16 in C order, or OGB's node-feat.csv.gz; one row a node.
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
    operator::check(&graph, args.norm)
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let features = load_features(&args, &graph)?;
    check_room(&args, &graph, &features)?;

    let partition = Partition::new(args.partition, graph.nodes(), args.pes as usize);
    // The backward pass is a sum whose weights hold the shares of a mean.
    let mean = args.backward && args.reduce == Reduce::Mean;
    let weights = operator::weights(&graph, args.norm, mean);
    let task = handover::Task {
        matrix: Weighted {
            graph: &graph,
            weights: weights.as_deref(),
        },
        features: &features,
        reduce: if args.backward {
            Reduce::Sum
        } else {
            args.reduce
        },
        partition: &partition,
    };
    let jobs = handover::Jobs::new(&args, task)
        .map_err(|error| Failure::failed(format!("cannot hand the work to the PEs: {error}")))?;
    drop(weights);
    let heap = jobs.heap_bytes() + HEAP_SLACK;
    let mut env = Vec::new();
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
    launch::run_while(&job, || progress::spinner("running")).map_err(|error| Failure {
        message: error.to_string(),
        code: error.exit_code(),
    })?;
    let outcome = jobs
        .collect(&partition)
        .map_err(|error| Failure::failed(format!("cannot read the PEs' results: {error}")))?;

    let error = args.verify.then(|| {
        let problem = reference::Problem {
            graph: &graph,
            features: &features,
            reduce: args.reduce,
            norm: args.norm,
            layers: args.layers,
            backward: args.backward,
        };
        let found: Vec<&[f32]> = std::iter::once(&outcome.results)
            .chain(&outcome.baseline_results)
            .map(Vec::as_slice)
            .collect();
        reference::max_relative_error(problem, &found)
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
    if !(1..=abi::MAX_LAYERS).contains(&args.layers) {
        return Err(Failure::input(format!(
            "--layers {}: from 1 to {} in one launch",
            args.layers,
            abi::MAX_LAYERS
        )));
    }
    if args.backward && args.reduce == Reduce::Max {
        return Err(Failure::input(
            "--backward --reduce max: the gradient of a maximum goes to the neighbour that had it, which only the forward pass knows; \
             use --reduce sum or mean",
        ));
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
            check_inputs(args, option, path)?;
        }
    }
    if let (Some(out), Some(json)) = (&args.out, &args.json) {
        if out == json || same_file(out, json) {
            return Err(Failure::input(format!(
                "--out and --json both name {}; name two files",
                out.display()
            )));
        }
    }
    Ok(())
}

/// Files of a folder of arrays or of an OGB data set.
const IN_FOLDERS: [&str; 12] = [
    "format.npy",
    "shape.npy",
    "indptr.npy",
    "indices.npy",
    "data.npy",
    "weights.npy",
    "edge_index.npy",
    "edge_weight.npy",
    "edge.csv",
    "edge.csv.gz",
    "num-node-list.csv",
    "num-node-list.csv.gz",
];

/// A result must not take the place of what it is made of.
fn check_inputs(args: &GnnArgs, option: &str, target: &Path) -> Result<(), Failure> {
    let mut inputs: Vec<(&str, PathBuf)> = Vec::new();
    if let Some(graph) = &args.graph {
        inputs.push(("--graph", graph.clone()));
        inputs.extend(IN_FOLDERS.map(|file| ("--graph", graph.join(file))));
    }
    inputs.extend(
        args.features
            .iter()
            .map(|file| ("--features", file.clone())),
    );
    inputs.extend(
        args.weights
            .iter()
            .flatten()
            .map(|file| ("--weights", file.clone())),
    );
    match inputs.iter().find(|(_, input)| same_file(target, input)) {
        Some((input, _)) => Err(Failure::input(format!(
            "{option} {}: is an input ({input}), which it would overwrite; name another file",
            target.display()
        ))),
        None => Ok(()),
    }
}

/// Whether both names lead to one file that exists.
fn same_file(left: &Path, right: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    id(left).is_some_and(|left| id(right) == Some(left))
}

/// What edges mean: as the user says, else as the form of the file says.
fn rules(args: &GnnArgs, form: Form) -> Rules {
    Rules {
        directed: args.directed || (form == Form::Arrays && !args.undirected),
        transpose: args.transpose,
        self_loops: args.self_loops.unwrap_or(match form {
            Form::Text => SelfLoops::Drop,
            Form::Arrays => SelfLoops::Keep,
        }),
    }
}

fn load_graph(args: &GnnArgs) -> Result<(Graph, String), Failure> {
    if let Some(scale) = args.rmat {
        let name = format!("R-MAT scale {scale}");
        let raw =
            graph::generate_rmat(scale, args.edge_factor, args.seed).map_err(Failure::input)?;
        return Ok((
            Graph::build(raw, rules(args, Form::Text), &name).map_err(Failure::input)?,
            name,
        ));
    }
    // clap requires one of the two.
    let path = args
        .graph
        .as_deref()
        .ok_or_else(|| Failure::input("no graph: give --graph FILE or --rmat SCALE"))?;
    let weights = match &args.weights {
        None => Weights::Ones,
        Some(None) => Weights::Own,
        Some(Some(file)) => Weights::File(file),
    };
    let shown = path.display().to_string();
    let (raw, form) = graph::read_edges(path, &weights, args.nodes).map_err(Failure::input)?;
    let graph = Graph::build(raw, rules(args, form), &shown).map_err(Failure::input)?;
    let name = path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    Ok((graph, name))
}

/// The rows are handed over, kept by their owners and gathered by everyone; results exist three times, with the baseline's six. Layers have tables
/// of their own, which the baseline fills everywhere; the gradient's sums travel; plans and the reference are as large as the edges.
fn check_room(args: &GnnArgs, graph: &Graph, features: &Features) -> Result<(), Failure> {
    let nodes = graph.nodes();
    let (dim, pes) = (features.dim as u64, u64::from(args.pes));
    let mut copies = if args.skip_allgather {
        (2, 3)
    } else {
        (2 + pes, 6)
    };
    if args.layers > 1 {
        let tables = u64::from(args.layers.min(2));
        copies.1 += tables * if args.skip_allgather { 2 } else { pes };
    }
    if args.backward {
        copies.1 += 2;
    }
    let entries = graph.neighbours.len() as u64;
    let mut more = entries * if args.backward { 80 } else { 16 };
    if args.verify {
        more += reference::room(nodes as u64, dim, entries);
    }
    let results = nodes as u64 * dim * 4;
    let rows = features.bytes.len() as u64;
    room::check(
        rows.saturating_mul(copies.0)
            .saturating_add(results.saturating_mul(copies.1))
            .saturating_add(more),
        format!(
            "{} features for each of {nodes} nodes on {} PEs",
            features.dim, args.pes
        ),
        "use fewer features a node, fewer PEs, or --skip-allgather",
    )
    .map_err(Failure::input)
}

fn load_features(args: &GnnArgs, graph: &Graph) -> Result<Features, Failure> {
    let nodes = graph.nodes();
    let mut features = match &args.features {
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
    if args.reduce == Reduce::Max {
        // Cores do not say which operand their maximum takes then, so the result would depend on the order of neighbours. Times a weight of 0 infinity
        // is no number either.
        let plain = graph.weights.is_none() && args.norm == Norm::None;
        let fits = |value: f64| value.is_finite() || (plain && !value.is_nan());
        if let Some((node, column)) = features.first_unfit(fits) {
            let what = if plain { "a number" } else { "finite" };
            return Err(Failure::input(format!(
                "row {node}, column {column} of the features is not {what}, and has no place in a maximum; replace it, or use --reduce sum or mean"
            )));
        }
    }
    if args.backward {
        // Sums travel in f32, and so do the gradients that they are made of.
        features = features.widened().map_err(Failure::input)?;
    }
    Ok(features)
}
