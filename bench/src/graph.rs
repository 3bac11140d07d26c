//! A graph in compressed rows, as the limits of the graph job multiply it, and the R-MAT edges that the job reads from a file.
//!
//! The `npushmem` program has readers for what users bring; this one reads edge lists of two numbers a line and nothing else.

use std::fmt::Write as _;

use anyhow::{ensure, Context, Result};

/// Edges a node of a generated graph, before duplicates are dropped (Graph500).
const EDGE_FACTOR: u64 = 16;
/// Percent of edges in the first three quarters of the matrix (Graph500: 57, 19, 19, 5).
const QUARTERS: [u64; 3] = [57, 57 + 19, 57 + 19 + 19];

/// An undirected graph: both directions of every edge, no duplicates, no self loops; rows in ascending order of id.
#[derive(Debug, PartialEq)]
pub struct Graph {
    /// Where each row's columns begin; one more than nodes.
    pub starts: Vec<i32>,
    /// Neighbours.
    pub columns: Vec<i32>,
}

impl Graph {
    /// Of an edge list's text.
    pub fn parse(text: &str) -> Result<Graph> {
        let mut pairs = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let mut id = || -> Result<u64> {
                words
                    .next()
                    .context("two ids a line")?
                    .parse()
                    .context("an id is a number")
            };
            let pair = id().and_then(|a| Ok((a, id()?)));
            pairs.push(pair.with_context(|| format!("line {}: {line:.60}", number + 1))?);
        }
        Graph::build(&pairs)
    }

    fn build(pairs: &[(u64, u64)]) -> Result<Graph> {
        let mut ids: Vec<u64> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        ids.sort_unstable();
        ids.dedup();
        ensure!(
            i32::try_from(2 * pairs.len() + 1).is_ok(),
            "a graph of more than 2^30 edges"
        );
        let row = |id: u64| ids.partition_point(|&other| other < id) as i32;
        let mut entries: Vec<(i32, i32)> = pairs
            .iter()
            .filter(|(a, b)| a != b)
            .map(|&(a, b)| (row(a), row(b)))
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .collect();
        entries.sort_unstable();
        entries.dedup();
        let mut starts = vec![0; ids.len() + 1];
        for &(row, _) in &entries {
            starts[row as usize + 1] += 1;
        }
        for row in 0..ids.len() {
            starts[row + 1] += starts[row];
        }
        Ok(Graph {
            starts,
            columns: entries.into_iter().map(|(_, column)| column).collect(),
        })
    }

    /// Rows.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Undirected edges.
    pub fn edges(&self) -> usize {
        self.columns.len() / 2
    }

    /// `out` = adjacency x `features` (both rows of `dim`), with the values 1 multiplied as any matrix's: plain and on one thread.
    pub fn multiply(&self, values: &[f32], features: &[f32], dim: usize, out: &mut [f32]) {
        for (row, out) in out.chunks_exact_mut(dim).enumerate() {
            out.fill(0.0);
            let entries = self.starts[row] as usize..self.starts[row + 1] as usize;
            for (column, value) in self.columns[entries.clone()].iter().zip(&values[entries]) {
                let from = *column as usize * dim;
                for (sum, feature) in out.iter_mut().zip(&features[from..from + dim]) {
                    *sum += value * feature;
                }
            }
        }
    }
}

/// The edge list of an R-MAT graph of 2^`scale` nodes: skewed degrees, the same at every run.
pub fn rmat(scale: u32) -> String {
    let mut state = 1_u64;
    let mut random = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let nodes = 1_usize << scale;
    let mut label: Vec<usize> = (0..nodes).collect();
    for last in (1..nodes).rev() {
        label.swap(last, (random() % (last as u64 + 1)) as usize);
    }
    let mut text = String::new();
    for _ in 0..EDGE_FACTOR << scale {
        let (mut row, mut column) = (0, 0);
        for _ in 0..scale {
            let draw = random() % 100;
            let quarter = QUARTERS.iter().filter(|&&bound| draw >= bound).count();
            row = row << 1 | quarter >> 1;
            column = column << 1 | quarter & 1;
        }
        let _ = writeln!(text, "{} {}", label[row], label[column]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_list_becomes_rows_of_both_directions_without_duplicates_and_loops() {
        let graph = Graph::parse("# ids\n10 30\n30 10\n\n10,20\n20\t20 7\n").unwrap();
        assert_eq!(
            graph,
            Graph {
                starts: vec![0, 2, 3, 4],
                columns: vec![1, 2, 0, 0]
            }
        );
        assert_eq!((graph.nodes(), graph.edges()), (3, 2));
    }

    #[test]
    fn what_is_no_edge_is_named_with_its_line() {
        let error = format!("{:#}", Graph::parse("1 2\n3 x\n").unwrap_err());
        assert!(error.contains("line 2") && error.contains("3 x"), "{error}");
        assert!(Graph::parse("1\n").is_err());
    }

    #[test]
    fn the_product_adds_the_neighbours_rows() {
        let graph = Graph::parse("0 1\n0 2\n").unwrap();
        let mut out = vec![9.0; 6];
        graph.multiply(
            &[1.0; 4],
            &[1.0, 2.0, 10.0, 20.0, 100.0, 200.0],
            2,
            &mut out,
        );
        assert_eq!(out, [110.0, 220.0, 1.0, 2.0, 1.0, 2.0]);
    }

    #[test]
    fn generated_graphs_are_the_same_at_every_run_and_skewed() {
        assert_eq!(rmat(6), rmat(6));
        let graph = Graph::parse(&rmat(10)).unwrap();
        let degree = |row: usize| graph.starts[row + 1] - graph.starts[row];
        let largest = (0..graph.nodes()).map(degree).max().unwrap();
        assert!(largest as usize > 4 * graph.columns.len() / graph.nodes());
    }
}
