//! R-MAT graphs with the parameters of Graph500: skewed degrees, as in social networks, at any size and without a file.
//!
//! Source: Chakrabarti, Zhan, Faloutsos, R-MAT (SDM 2004); the Graph500 specification: A = 0.57, B = 0.19, C = 0.19, D = 0.05, 16 edges a node, node
//! labels permuted.

use super::RawEdges;
use crate::progress;
use crate::random::Sequence;
use crate::room::{self, NoRoom};

/// Edges a node, before duplicates and self loops are dropped.
pub const EDGE_FACTOR: u64 = 16;
/// Largest scale: 2^28 nodes are 64 GiB of edges.
pub const MAX_SCALE: u32 = 28;

/// Probabilities of the four quarters of the matrix as bounds of a 32-bit random number: below A, below A + B, below A + B + C.
const BOUNDS: [u64; 3] = [quarter(57), quarter(57 + 19), quarter(57 + 19 + 19)];

const fn quarter(percent: u64) -> u64 {
    (percent << 32) / 100
}

/// Generates 2^`scale` nodes and `edge_factor` x 2^`scale` edges from `seed`.
///
/// # Errors
/// More than this machine's memory holds.
pub fn generate(scale: u32, edge_factor: u64, seed: u64) -> Result<RawEdges, NoRoom> {
    let nodes = 1u64 << scale;
    let edges = edge_factor << scale;
    // A label a node; a pair an edge, and what the adjacency is made with.
    room::check(
        nodes * 20 + edges * 32,
        format!("an R-MAT graph of {nodes} nodes and {edges} edges"),
        "use a smaller --rmat or --edge-factor",
    )?;
    let mut random = Sequence::new(seed);
    let mut label: Vec<u32> = (0..nodes as u32).collect();
    for last in (1..label.len()).rev() {
        label.swap(last, random.below(last as u64 + 1) as usize);
    }
    let bar = progress::count("generating", edges);
    let mut pairs = Vec::with_capacity(edges as usize);
    for edge in 0..edges {
        let (mut row, mut column) = (0usize, 0usize);
        let mut bits = 0u64;
        for level in 0..scale {
            // One 64-bit number serves two levels.
            bits = if level % 2 == 0 {
                random.next()
            } else {
                bits >> 32
            };
            let draw = bits & u64::from(u32::MAX);
            let quadrant = BOUNDS.iter().filter(|&&bound| draw >= bound).count();
            row = row << 1 | quadrant >> 1;
            column = column << 1 | quadrant & 1;
        }
        pairs.push((u64::from(label[row]), u64::from(label[column])));
        if edge % (1 << 20) == 0 {
            bar.set_position(edge);
        }
    }
    bar.finish_and_clear();
    Ok(RawEdges {
        pairs,
        weights: None,
        declared_nodes: Some(nodes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, Rules, SelfLoops};

    const RULES: Rules = Rules {
        directed: false,
        transpose: false,
        self_loops: SelfLoops::Drop,
    };

    #[test]
    fn a_seed_names_one_graph_and_degrees_are_skewed() {
        let first = generate(10, EDGE_FACTOR, 1).unwrap();
        assert_eq!(first.pairs, generate(10, EDGE_FACTOR, 1).unwrap().pairs);
        assert_ne!(first.pairs, generate(10, EDGE_FACTOR, 2).unwrap().pairs);
        let graph = Graph::build(first, RULES, "rmat").unwrap();
        assert_eq!(graph.nodes(), 1024);
        assert_eq!(graph.edges + graph.duplicates + graph.self_loops, 16 * 1024);
        let mean = graph.neighbours.len() as u64 / 1024;
        assert!(
            graph.largest_degree() > 5 * mean,
            "largest {} mean {mean}",
            graph.largest_degree()
        );
    }

    #[test]
    fn the_smallest_scale_is_a_graph_of_two_nodes() {
        let graph = Graph::build(generate(1, EDGE_FACTOR, 3).unwrap(), RULES, "rmat").unwrap();
        assert_eq!(graph.nodes(), 2);
    }
}
