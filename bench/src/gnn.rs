//! The graph job: the kernels of `npushmem gnn` on 2 PEs against the same sums as a sparse product on one thread, in Rust and by scipy.
//!
//! Within a round each side is the best of some repetitions, as the `npushmem` program reports it; the rounds give median and spread.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{bail, ensure, Context, Result};

use crate::figure::{Goal, Row};
use crate::graph::{self, Graph};

/// PEs of the job.
const PES: u32 = 2;
/// Repetitions of each side in a round.
const REPEAT: usize = 10;
/// Engines and how many times the product's time each may take.
const ENGINES: [(&str, f64); 2] = [("mapped", 4.0), ("roce", 10.0)];
/// Exit code of the script where there is no scipy.
const NO_SCIPY: i32 = 3;
const SCRIPT: &str = include_str!("scipy_product.py");

/// How the job runs.
pub struct Settings {
    pub rounds: usize,
    pub dim: usize,
    /// Comm cores a PE.
    pub cores: u32,
    pub npushmem: Option<PathBuf>,
    pub python: PathBuf,
}

/// The processors shared among the PEs: an emulated core is a thread.
pub fn default_cores() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    (processors / PES).max(1)
}

/// Adds the rows of both graphs; what cannot be measured goes to `skipped` with its reason.
pub fn measure(
    settings: &Settings,
    file: &Path,
    scale: u32,
    rows: &mut Vec<Row>,
    skipped: &mut Vec<String>,
) -> Result<()> {
    let program = match &settings.npushmem {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("npushmem"),
    };
    if !program.is_file() {
        skipped.push(format!(
            "gnn: there is no {}; build it: cargo build --release -p npushmem-cli",
            program.display()
        ));
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let name = file
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            let graph = Graph::parse(&text).with_context(|| file.display().to_string())?;
            one(
                settings,
                &program,
                folder.path(),
                file,
                &graph,
                &name,
                rows,
                skipped,
            )?;
        }
        Err(error) => skipped.push(format!(
            "gnn on {}: {error}; name a graph with --graph",
            file.display()
        )),
    }
    let text = graph::rmat(scale);
    let path = folder.path().join("rmat.txt");
    std::fs::write(&path, &text)?;
    let name = format!("R-MAT {scale}");
    one(
        settings,
        &program,
        folder.path(),
        &path,
        &Graph::parse(&text)?,
        &name,
        rows,
        skipped,
    )
}

#[allow(clippy::too_many_arguments)] // each is one part of the picture, and there is one caller
fn one(
    settings: &Settings,
    program: &Path,
    folder: &Path,
    file: &Path,
    graph: &Graph,
    name: &str,
    rows: &mut Vec<Row>,
    skipped: &mut Vec<String>,
) -> Result<()> {
    let mut scipy = Scipy::new(settings, folder, graph)?;
    let (mut rust, mut numpy) = (Vec::new(), Vec::new());
    let mut kernels = [Vec::new(), Vec::new()];
    for _ in 0..settings.rounds {
        rust.push(product(graph, settings.dim));
        if let Some(seconds) = scipy.time(skipped)? {
            numpy.push(seconds);
        }
        for ((engine, _), samples) in ENGINES.iter().zip(&mut kernels) {
            samples.push(kernel(settings, program, file, graph, engine)?);
        }
    }
    for (limit_name, limit) in [("CSR product, Rust", &rust), ("CSR product, scipy", &numpy)] {
        if limit.is_empty() {
            continue;
        }
        for ((engine, times), figure) in ENGINES.iter().zip(&kernels) {
            rows.push(Row {
                name: format!(
                    "gnn, {name}, {} features, {PES} PEs x {}",
                    settings.dim, settings.cores
                ),
                engine: (*engine).to_owned(),
                figure: figure.clone(),
                limit_name: limit_name.to_owned(),
                limit: limit.clone(),
                goal: Some(Goal::Ratio(1.0 / times)),
                bytes: None,
            });
        }
    }
    Ok(())
}

/// Seconds of the plain product.
fn product(graph: &Graph, dim: usize) -> f64 {
    let values = vec![1.0; graph.columns.len()];
    let features: Vec<f32> = (0..graph.nodes() * dim)
        .map(|i| (i % 1000) as f32 * 1e-3)
        .collect();
    let mut out = vec![0.0; features.len()];
    let mut best = f64::INFINITY;
    for _ in 0..=REPEAT {
        let begin = Instant::now();
        graph.multiply(&values, std::hint::black_box(&features), dim, &mut out);
        std::hint::black_box(&mut out);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    best
}

/// Seconds of the kernel, from launch to the end of synchronize on the slowest PE.
fn kernel(
    settings: &Settings,
    program: &Path,
    file: &Path,
    graph: &Graph,
    engine: &str,
) -> Result<f64> {
    let mut command = Command::new(program);
    command.arg("gnn").arg("--graph").arg(file).args([
        "--engine",
        engine,
        "--reduce",
        "sum",
        "--skip-allgather",
        "--json",
        "-",
    ]);
    for (option, value) in [
        ("--pes", PES as usize),
        ("--cores", settings.cores as usize),
        ("--dim", settings.dim),
        ("--repeat", REPEAT),
    ] {
        command.args([option, &value.to_string()]);
    }
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "npushmem gnn ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let result: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("the JSON of npushmem gnn")?;
    ensure!(
        result["edges"].as_u64() == Some(graph.edges() as u64),
        "npushmem gnn counts {} edges, this program {}: not the same graph",
        result["edges"],
        graph.edges()
    );
    result["seconds"]
        .as_f64()
        .context("no seconds in the JSON of npushmem gnn")
}

/// The product by scipy, if there is one.
struct Scipy<'a> {
    python: &'a Path,
    arguments: [String; 4],
    missing: bool,
}

impl<'a> Scipy<'a> {
    fn new(settings: &'a Settings, folder: &Path, graph: &Graph) -> Result<Scipy<'a>> {
        let write = |name: &str, numbers: &[i32]| -> Result<String> {
            let path = folder.join(name);
            std::fs::write(&path, bytemuck::cast_slice::<i32, u8>(numbers))?;
            Ok(path.display().to_string())
        };
        let arguments = [
            write("starts", &graph.starts)?,
            write("columns", &graph.columns)?,
            settings.dim.to_string(),
            REPEAT.to_string(),
        ];
        Ok(Scipy {
            python: &settings.python,
            arguments,
            missing: false,
        })
    }

    /// Seconds; none where there is no scipy, which is said once.
    fn time(&mut self, skipped: &mut Vec<String>) -> Result<Option<f64>> {
        if self.missing {
            return Ok(None);
        }
        let output = Command::new(self.python)
            .arg("-c")
            .arg(SCRIPT)
            .args(&self.arguments)
            .output();
        match output {
            Ok(output) if output.status.success() => {
                let text = String::from_utf8_lossy(&output.stdout);
                Ok(Some(
                    text.trim()
                        .parse()
                        .with_context(|| format!("scipy's time: {text:.60}"))?,
                ))
            }
            Ok(output) if output.status.code() != Some(NO_SCIPY) => {
                bail!(
                    "{}: {}",
                    self.python.display(),
                    String::from_utf8_lossy(&output.stderr)
                )
            }
            _ => {
                self.missing = true;
                let line = format!(
                    "scipy: {} has none; name another with --python",
                    self.python.display()
                );
                if !skipped.contains(&line) {
                    skipped.push(line);
                }
                Ok(None)
            }
        }
    }
}
