//! What an aggregation multiplies with: the weight of every entry of the adjacency, from the user's weights and the normalisation.
//!
//! Plans and kernels know weights only. The reference does not use this module.

use thiserror::Error;

use crate::graph::Graph;

/// How the weights are normalised. d(a) is the sum of the weights of row a, e(b) that of column b; both are degrees without weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Norm {
    /// As they are.
    None,
    /// w / sqrt(d(a) d(b)), as PyG's gcn_norm; 0 where a degree is 0.
    Gcn,
    /// w / sqrt(d(a) e(b)), as norm="both" of DGL's GraphConv.
    Both,
}

impl Norm {
    /// As the option spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gcn => "gcn",
            Self::Both => "both",
        }
    }
}

/// Weights that cannot be normalised.
#[derive(Debug, Error)]
#[error("the weights of {what} {row} add up to {degree}, which has no square root; --norm takes sums from 0 up")]
pub struct NegativeDegree {
    what: &'static str,
    row: usize,
    degree: f64,
}

/// The degrees of all rows and of all columns, in f64.
fn degrees(graph: &Graph) -> (Vec<f64>, Vec<f64>) {
    let mut rows = vec![0.0; graph.nodes()];
    let mut columns = vec![0.0; graph.nodes()];
    for (row, degree) in rows.iter_mut().enumerate() {
        for entry in graph.entries(row) {
            let weight = graph
                .weights
                .as_ref()
                .map_or(1.0, |all| f64::from(all[entry]));
            *degree += weight;
            columns[graph.neighbours[entry] as usize] += weight;
        }
    }
    (rows, columns)
}

/// Refuses weights whose sums have no square root.
pub fn check(graph: &Graph, norm: Norm) -> Result<(), NegativeDegree> {
    if norm == Norm::None {
        return Ok(());
    }
    let (rows, columns) = degrees(graph);
    let sums = [("row", &rows), ("column", &columns)];
    let used = if norm == Norm::Gcn {
        &sums[..1]
    } else {
        &sums[..]
    };
    for &(what, sums) in used {
        if let Some(row) = sums.iter().position(|&degree| degree < 0.0) {
            return Err(NegativeDegree {
                what,
                row,
                degree: sums[row],
            });
        }
    }
    Ok(())
}

/// The weight of each entry, or `None` when all are 1; with `mean` each divided by the number of its row's entries.
pub fn weights(graph: &Graph, norm: Norm, mean: bool) -> Option<Vec<f32>> {
    if norm == Norm::None && !mean {
        return graph.weights.clone();
    }
    let inverse_root = |degree: f64| {
        if degree > 0.0 {
            1.0 / degree.sqrt()
        } else {
            0.0
        }
    };
    let (rows, columns) = degrees(graph);
    let right = if norm == Norm::Gcn { &rows } else { &columns };
    let mut weights = vec![0f32; graph.neighbours.len()];
    for (row, &degree) in rows.iter().enumerate() {
        let entries = graph.entries(row);
        let share = if mean {
            1.0 / entries.len() as f64
        } else {
            1.0
        };
        for entry in entries {
            let mut weight = graph
                .weights
                .as_ref()
                .map_or(1.0, |all| f64::from(all[entry]))
                * share;
            if norm != Norm::None {
                let neighbour = graph.neighbours[entry] as usize;
                weight *= inverse_root(degree) * inverse_root(right[neighbour]);
            }
            weights[entry] = weight as f32;
        }
    }
    Some(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{RawEdges, Rules, SelfLoops};

    fn graph(weights: Option<Vec<f32>>) -> Graph {
        let raw = RawEdges {
            pairs: vec![(0, 1), (0, 2), (1, 2)],
            weights,
            declared_nodes: Some(4),
        };
        let rules = Rules {
            directed: true,
            transpose: false,
            self_loops: SelfLoops::Drop,
        };
        Graph::build(raw, rules, "three edges").unwrap()
    }

    #[test]
    fn plain_sums_have_no_weights_and_means_have_shares() {
        assert_eq!(weights(&graph(None), Norm::None, false), None);
        assert_eq!(
            weights(&graph(None), Norm::None, true).unwrap(),
            [0.5, 0.5, 1.0]
        );
    }

    #[test]
    fn both_takes_rows_on_the_left_and_columns_on_the_right() {
        let found = weights(&graph(None), Norm::Both, false).unwrap();
        // Rows have 2 and 1 entries, columns 1 and 2 have 1 and 2.
        let root = |value: f64| (1.0 / value.sqrt()) as f32;
        assert_eq!(found, [root(2.0), root(4.0), root(2.0)]);
    }

    #[test]
    fn gcn_gives_nothing_to_a_neighbour_without_a_degree() {
        let found = weights(&graph(None), Norm::Gcn, false).unwrap();
        assert_eq!(found, [(1.0 / 2f64.sqrt()) as f32, 0.0, 0.0]);
    }

    #[test]
    fn a_negative_sum_is_refused_with_its_row() {
        let graph = graph(Some(vec![1.0, -3.0, 1.0]));
        check(&graph, Norm::None).unwrap();
        let text = check(&graph, Norm::Gcn).unwrap_err().to_string();
        assert!(
            text.starts_with("the weights of row 0 add up to -2,"),
            "{text}"
        );
        assert!(check(&graph, Norm::Both).is_err());
    }
}
