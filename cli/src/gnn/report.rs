//! The table and the JSON file of `npushmem gnn`.

use std::path::Path;

use comfy_table::{presets, CellAlignment, Table};
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;

use super::handover::{Jobs, Measured, Outcome};
use super::{Engine, GnnArgs};
use crate::failure::Failure;
use crate::features::Features;
use crate::graph::Graph;
use crate::operator::Norm;
use crate::plan::Partition;

/// The JSON file. Counters are sums over PEs; times are those of the slowest PE, the best of the repetitions.
#[derive(Debug, Serialize)]
struct Json {
    pes: u32,
    engine: &'static str,
    reduce: &'static str,
    /// "none" where edges have no weights of their own, else "edges".
    weights: &'static str,
    norm: &'static str,
    layers: u32,
    backward: bool,
    nodes: u64,
    edges: u64,
    /// In each layer; rows sent for the backward pass.
    distinct_remote_rows: u64,
    requests: u64,
    sync_requests: u64,
    doorbells: u64,
    /// Launches of the kernel on each PE for all layers.
    launches: u64,
    bytes_fetched: u64,
    allgather_bytes: u64,
    seconds: f64,
    allgather_seconds: Option<f64>,
    acl_calls_during_kernel: u64,
    max_rel_error: Option<f64>,
}

/// What a run showed.
pub struct Summary {
    json: Json,
    head: String,
    table: Table,
    foot: Vec<String>,
}

/// Sums over PEs, and the time.
#[derive(Default)]
struct Total {
    requests: u64,
    sync_requests: u64,
    sq_doorbells: u64,
    cq_doorbells: u64,
    bytes: u64,
    acl_calls: u64,
    launches: u64,
    seconds: f64,
}

impl Total {
    fn of<'a>(all: impl Iterator<Item = &'a Measured> + Clone) -> Self {
        let mut total = Self::default();
        for one in all.clone() {
            total.requests += one.requests;
            total.sync_requests += one.sync_requests;
            total.sq_doorbells += one.sq_doorbells;
            total.cq_doorbells += one.cq_doorbells;
            total.bytes += one.roce_bytes + one.mapped_bytes;
            total.acl_calls += one.acl_calls;
            total.launches = total.launches.max(one.launches);
        }
        let launches = all.clone().map(|one| one.seconds.len()).min().unwrap_or(0);
        let slowest = (0..launches).map(|launch| {
            all.clone()
                .map(|one| one.seconds[launch])
                .fold(0.0, f64::max)
        });
        total.seconds = slowest.fold(f64::INFINITY, f64::min);
        total
    }
}

impl Summary {
    /// Adds up what the PEs measured.
    #[allow(clippy::too_many_arguments)] // each is one part of the picture, and there is one caller
    pub fn new(
        args: &GnnArgs,
        name: &str,
        graph: &Graph,
        features: &Features,
        partition: &Partition,
        jobs: &Jobs,
        outcome: &Outcome,
        error: Option<f64>,
    ) -> Self {
        let fetch = Total::of(outcome.reports.iter().map(|report| &report.fetch_once));
        let gather = outcome.baseline_results.as_ref().map(|_| {
            Total::of(
                outcome
                    .reports
                    .iter()
                    .filter_map(|report| report.all_gather.as_ref()),
            )
        });
        let distinct: u64 = jobs.distinct.iter().sum();
        // Every PE receives what it does not own.
        let layers = u64::from(args.layers);
        let gathered_rows = graph.nodes() as u64 * (partition.pes() as u64 - 1);
        // Layers hand on f32.
        let gathered_bytes = gathered_rows
            * (features.row_bytes() + (layers as usize - 1) * features.dim * 4) as u64;
        let engine = match args.engine {
            Engine::Auto if fetch.requests > 0 => Engine::Roce,
            Engine::Auto => Engine::Mapped,
            chosen => chosen,
        };
        let json = Json {
            pes: args.pes,
            engine: engine.name(),
            reduce: args.reduce.name(),
            weights: if graph.weights.is_some() {
                "edges"
            } else {
                "none"
            },
            norm: args.norm.name(),
            layers: args.layers,
            backward: args.backward,
            nodes: graph.nodes() as u64,
            edges: graph.edges,
            distinct_remote_rows: distinct,
            requests: fetch.requests,
            sync_requests: fetch.sync_requests,
            doorbells: fetch.sq_doorbells + fetch.cq_doorbells,
            launches: fetch.launches,
            bytes_fetched: fetch.bytes,
            allgather_bytes: gathered_bytes,
            seconds: fetch.seconds,
            allgather_seconds: gather.as_ref().map(|gather| gather.seconds),
            acl_calls_during_kernel: fetch.acl_calls,
            max_rel_error: error,
        };

        let entries = graph.neighbours.len() as f64;
        let remote = if entries > 0.0 {
            100.0 * jobs.remote_entries as f64 / entries
        } else {
            0.0
        };
        let weighted = if graph.weights.is_some() {
            "weighted "
        } else {
            ""
        };
        let combined = if graph.weights.is_some() {
            "added up"
        } else {
            "dropped"
        };
        let mut what = format!("{weighted}{}", args.reduce.name());
        if args.norm != Norm::None {
            what += &format!(" with {} norm", args.norm.name());
        }
        if args.backward {
            what = format!("gradient of {what}");
        }
        if args.layers > 1 {
            what += &format!(", {} layers", args.layers);
        }
        let head = format!(
            "{name}: {} nodes, {} {} edges ({} duplicates {combined}, {} self loops dropped), {} x {} features\n\
             {} PEs x {} cores, {} partition, {what} over {}: {remote:.1} % of neighbours are remote",
            HumanCount(graph.nodes() as u64),
            HumanCount(graph.edges),
            if graph.directed { "directed" } else { "undirected" },
            HumanCount(graph.duplicates),
            HumanCount(graph.self_loops),
            features.dim,
            features.dtype.name(),
            args.pes,
            args.cores,
            args.partition.name(),
            engine.name(),
        );
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        let moved = if args.backward {
            "scatter once"
        } else {
            "fetch once"
        };
        table.set_header(["all PEs together", moved, "all-gather"]);
        let of_gather =
            |value: &dyn Fn(&Total) -> String| gather.as_ref().map_or("not run".to_owned(), value);
        let mut row = |label: &str, fetched: String, gathered: String| {
            table.add_row([label, &fetched, &gathered]);
        };
        row(
            "rows moved",
            HumanCount(distinct * layers).to_string(),
            HumanCount(gathered_rows * layers).to_string(),
        );
        row(
            "bytes moved",
            HumanBytes(fetch.bytes).to_string(),
            gather
                .as_ref()
                .map_or(HumanBytes(gathered_bytes), |gather| {
                    HumanBytes(gather.bytes)
                })
                .to_string(),
        );
        row(
            "requests (data)",
            HumanCount(fetch.requests).to_string(),
            of_gather(&|total| HumanCount(total.requests).to_string()),
        );
        row(
            "requests (sync)",
            HumanCount(fetch.sync_requests).to_string(),
            of_gather(&|total| HumanCount(total.sync_requests).to_string()),
        );
        let doorbells = |total: &Total| {
            format!(
                "{} + {}",
                HumanCount(total.sq_doorbells),
                HumanCount(total.cq_doorbells)
            )
        };
        row(
            "doorbells (send + completion)",
            doorbells(&fetch),
            of_gather(&doorbells),
        );
        row(
            "launches a PE",
            fetch.launches.to_string(),
            of_gather(&|total| total.launches.to_string()),
        );
        row(
            "kernel time",
            milliseconds(fetch.seconds),
            of_gather(&|total| milliseconds(total.seconds)),
        );
        row(
            "ACL calls during the kernel",
            fetch.acl_calls.to_string(),
            of_gather(&|total| total.acl_calls.to_string()),
        );
        for column in 1..3 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let per_pe: Vec<String> = jobs
            .distinct
            .iter()
            .take(16)
            .map(|rows| HumanCount(*rows).to_string())
            .collect();
        let more = if jobs.distinct.len() > 16 {
            ", ..."
        } else {
            ""
        };
        let mut foot = vec![format!(
            "distinct remote rows a PE{}: {}{more}",
            if args.layers > 1 { " and layer" } else { "" },
            per_pe.join(", ")
        )];
        foot.push(format!(
            "kernel time: launch to end of synchronize, slowest PE, best of {}",
            args.repeat
        ));
        if let Some(error) = error {
            foot.push(format!(
                "largest difference from the reference, relative: {error:.2e}"
            ));
        }
        Self {
            json,
            head,
            table,
            foot,
        }
    }

    /// Prints the table; writes the JSON file where one is wanted.
    pub fn write(&self, json: Option<&Path>) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&self.json).map_err(Failure::failed)? + "\n";
        match json {
            Some(path) if path.as_os_str() == "-" => {
                return crate::print(&text);
            }
            Some(path) => std::fs::write(path, text)
                .map_err(|error| Failure::input(format!("--json {}: {error}", path.display())))?,
            None => {}
        }
        crate::print(&format!(
            "{}\n{}\n{}\n",
            self.head,
            self.table,
            self.foot.join("\n")
        ))
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
