//! 09 graph network: the host plans once what to fetch from where, and a kernel runs all layers without it.
//!
//! The short form of what `npushmem gnn` does (kernels/gnn_aggregate.cpp), which adds rows up while others are still on their way.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::Parser;
use npushmem::{Args, World};
use npushmem_examples::GNN_LAYER;

/// Layers of a graph network on Zachary's karate club.
#[derive(Parser)]
struct Options {
    /// Features of a node.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1 << 18))]
    dim: u32,
    /// Layers.
    #[arg(long, default_value_t = 2)]
    layers: u32,
}

/// Who is whose neighbour, the node itself included: nodes in order, each node's neighbours in order.
type Graph = Vec<Vec<usize>>;

/// One PE's part of the work. Rows of its table: own nodes, then fetched ones.
struct Plan {
    /// PE and row there, of each row to fetch.
    fetch: Vec<[u32; 2]>,
    /// First entry in `columns` of each own node, and the end.
    begin: Vec<u32>,
    /// Rows of the table.
    columns: Vec<u32>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let (dim, layers) = (options.dim as usize, options.layers as usize);
    let world = World::init()?;
    let (me, pes) = (world.my_pe() as usize, world.n_pes() as usize);
    let graph = graph(include_str!("../data/karate.txt"))?;
    let first_node = |pe: usize| graph.len() * pe / pes;
    let own = first_node(me)..first_node(me + 1);

    // Every PE has the graph, so every PE knows the largest plan, and allocates alike.
    let staging = graph.len().div_ceil(pes);
    let plans: Vec<Plan> = (0..pes).map(|pe| plan(&graph, pes, pe, staging)).collect();
    let largest = |size: fn(&Plan) -> usize| plans.iter().map(size).max().unwrap_or(0);
    let rows = staging + largest(|plan| plan.fetch.len());
    let tables = world.alloc::<f32>(2 * rows * dim)?;
    let fetch = world.alloc::<[u32; 2]>(largest(|plan| plan.fetch.len()))?;
    let begin = world.alloc::<u32>(staging + 1)?;
    let columns = world.alloc::<u32>(largest(|plan| plan.columns.len()))?;
    let mine = &plans[me];
    world.write(&fetch, 0, &mine.fetch)?;
    world.write(&begin, 0, &mine.begin)?;
    world.write(&columns, 0, &mine.columns)?;
    let features: Vec<Vec<f32>> = (0..graph.len()).map(|node| features(node, dim)).collect();
    world.write(&tables, 0, &features[own.clone()].concat())?;
    world.enable_device(1)?;
    world.barrier_all()?;

    let kernel = world.load(&GNN_LAYER)?.function("gnn_layers")?;
    let args = Args::new().ctx();
    let args = args.ptr(&tables).ptr(&fetch).ptr(&begin).ptr(&columns);
    let args = args.u32(own.len() as u32).u32(mine.fetch.len() as u32);
    let args = args.u32(staging as u32).u32(rows as u32);
    world.launch(&kernel, 1, &args.u32(options.dim).u32(options.layers))?;
    world.synchronize()?;

    let mut result = vec![0.0; own.len() * dim];
    world.read(&tables, layers % 2 * rows * dim, &mut result)?;
    let expected = (0..layers).fold(features, |rows, _| layer(&graph, &rows));
    for (row, node) in result.chunks(dim).zip(own.clone()) {
        for (value, expected) in row.iter().zip(&expected[node]) {
            // The kernel adds in the order of its table, the reference in the order of the nodes.
            anyhow::ensure!(
                (value - expected).abs() <= 1e-5,
                "PE {me}, node {node}: {value} instead of {expected}"
            );
        }
    }
    println!(
        "verified: PE {me}, {layers} layers, {} nodes of {}, {} rows fetched a layer",
        own.len(),
        graph.len(),
        mine.fetch.len()
    );

    drop((tables, fetch, begin, columns));
    world.finalize()?;
    Ok(())
}

/// An edge list; lines that start with # are comments, nodes count from 1.
fn graph(text: &str) -> Result<Graph> {
    let mut graph = Graph::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let ends: Option<Vec<usize>> = line
            .split_whitespace()
            .map(|word| word.parse::<usize>().ok()?.checked_sub(1))
            .collect();
        let [a, b] = ends.unwrap_or_default()[..] else {
            anyhow::bail!("{line:?} is not an edge");
        };
        for node in graph.len()..=a.max(b) {
            graph.push(vec![node]);
        }
        graph[a].push(b);
        graph[b].push(a);
    }
    graph.iter_mut().for_each(|neighbours| neighbours.sort());
    graph.first().context("the graph has no nodes")?;
    Ok(graph)
}

/// Node n belongs to the PE whose block [nodes * pe / pes, nodes * (pe + 1) / pes) has it.
fn plan(graph: &Graph, pes: usize, pe: usize, staging: usize) -> Plan {
    let first_node = |pe: usize| graph.len() * pe / pes;
    let own = first_node(pe)..first_node(pe + 1);
    let mut plan = Plan {
        fetch: Vec::new(),
        begin: vec![0],
        columns: Vec::new(),
    };
    let mut staged = BTreeMap::new();
    for node in own.clone() {
        for &neighbour in &graph[node] {
            let row = if own.contains(&neighbour) {
                neighbour - own.start
            } else {
                *staged.entry(neighbour).or_insert_with(|| {
                    let owner = (0..pes).rfind(|pe| first_node(*pe) <= neighbour);
                    let owner = owner.unwrap_or(0);
                    let row = neighbour - first_node(owner);
                    plan.fetch.push([owner as u32, row as u32]);
                    staging + plan.fetch.len() - 1
                })
            };
            plan.columns.push(row as u32);
        }
        plan.begin.push(plan.columns.len() as u32);
    }
    plan
}

/// Features of a node, in [-1, 1).
fn features(node: usize, dim: usize) -> Vec<f32> {
    (0..dim)
        .map(|i| ((node * 37 + i * 11) % 64) as f32 / 32.0 - 1.0)
        .collect()
}

/// The reference: one layer of the whole graph.
fn layer(graph: &Graph, rows: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let mean = |neighbours: &Vec<usize>, i: usize| {
        let sum: f32 = neighbours.iter().map(|node| rows[*node][i]).sum();
        (sum / neighbours.len() as f32).max(0.0)
    };
    let dim = rows.first().map_or(0, Vec::len);
    graph
        .iter()
        .map(|neighbours| (0..dim).map(|i| mean(neighbours, i)).collect())
        .collect()
}
