//! The plain reference that `--verify` compares with: loops over the adjacency, in f64. Slow and obvious on purpose; it shares no code with plans,
//! weights or kernels.

use crate::features::Features;
use crate::gnn::Reduce;
use crate::graph::Graph;
use crate::operator::Norm;
use crate::progress;

/// What is to be computed.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// The adjacency with the user's weights.
    pub graph: &'a Graph,
    /// Features, or gradients of the results in the backward pass.
    pub features: &'a Features,
    /// How neighbours are combined.
    pub reduce: Reduce,
    /// How weights are normalised.
    pub norm: Norm,
    /// How often.
    pub layers: u32,
    /// Whether the gradient of the features is wanted.
    pub backward: bool,
}

/// Values of one layer, and the magnitudes that errors are relative to; nodes x dim each.
struct Rows {
    values: Vec<f64>,
    magnitudes: Vec<f64>,
}

/// Largest relative error of each of `found` (nodes x dim, f32) against the reference.
///
/// The difference is taken relative to the sum of the magnitudes that went into a value (their mean for `mean`, the value itself for `max`), which
/// through several layers is the sum over all paths. For features and weights of one sign this is the relative error of the value; where signs
/// cancel, it is the error that the order of summation may cause, and not its ratio to a result near zero. A value that is not finite where the
/// reference is (or the other way round) counts as infinite error.
pub fn max_relative_error(problem: Problem<'_>, found: &[&[f32]]) -> f64 {
    let Problem {
        graph, features, ..
    } = problem;
    let dim = features.dim;
    let bar = progress::count(
        "verifying",
        u64::from(problem.layers) * graph.nodes() as u64,
    );
    let weights = entry_weights(problem);
    let mut rows = Rows {
        values: Vec::with_capacity(graph.nodes() * dim),
        magnitudes: Vec::with_capacity(graph.nodes() * dim),
    };
    for node in 0..graph.nodes() {
        for column in 0..dim {
            let value = Features::value(features.row(node), features.dtype, column);
            rows.values.push(value);
            rows.magnitudes.push(value.abs());
        }
    }
    for _ in 0..problem.layers {
        rows = if problem.backward {
            scatter(problem, &weights, &rows)
        } else {
            gather(problem, &weights, &rows)
        };
        bar.inc(graph.nodes() as u64);
    }
    bar.finish_and_clear();
    let mut largest = 0.0f64;
    for values in found {
        for ((&value, &expected), &scale) in values.iter().zip(&rows.values).zip(&rows.magnitudes) {
            largest = largest.max(relative(f64::from(value), expected, scale));
        }
    }
    largest
}

/// Bytes that the reference takes beyond its inputs.
pub fn room(nodes: u64, dim: u64, entries: u64) -> u64 {
    nodes.saturating_mul(dim).saturating_mul(32) + entries * 8
}

/// The weight of each entry by the formulas of the documentation.
fn entry_weights(problem: Problem<'_>) -> Vec<f64> {
    let graph = problem.graph;
    let plain: Vec<f64> = match &graph.weights {
        Some(weights) => weights.iter().map(|&weight| f64::from(weight)).collect(),
        None => vec![1.0; graph.neighbours.len()],
    };
    let mut row_sums = vec![0.0; graph.nodes()];
    let mut column_sums = vec![0.0; graph.nodes()];
    let mut edges = Vec::with_capacity(plain.len());
    for (row, sum) in row_sums.iter_mut().enumerate() {
        for (entry, &neighbour) in graph.entries(row).zip(graph.row(row)) {
            *sum += plain[entry];
            column_sums[neighbour as usize] += plain[entry];
            edges.push((row, neighbour as usize));
        }
    }
    let divided = |weight: f64, product: f64| {
        if product > 0.0 {
            weight / product.sqrt()
        } else {
            0.0
        }
    };
    edges
        .into_iter()
        .zip(plain)
        .map(|((a, b), weight)| match problem.norm {
            Norm::None => weight,
            Norm::Gcn => divided(weight, row_sums[a] * row_sums[b]),
            Norm::Both => divided(weight, row_sums[a] * column_sums[b]),
        })
        .collect()
}

/// One layer forward.
fn gather(problem: Problem<'_>, weights: &[f64], input: &Rows) -> Rows {
    let (graph, dim) = (problem.graph, problem.features.dim);
    let mut output = Rows {
        values: vec![0.0; graph.nodes() * dim],
        magnitudes: vec![0.0; graph.nodes() * dim],
    };
    for node in 0..graph.nodes() {
        let row = node * dim..(node + 1) * dim;
        let (values, magnitudes) = (&mut output.values[row.clone()], &mut output.magnitudes[row]);
        if problem.reduce == Reduce::Max && !graph.row(node).is_empty() {
            values.fill(f64::NEG_INFINITY);
        }
        for (entry, &neighbour) in graph.entries(node).zip(graph.row(node)) {
            for column in 0..dim {
                let at = neighbour as usize * dim + column;
                let value = weights[entry] * input.values[at];
                match problem.reduce {
                    Reduce::Max => values[column] = values[column].max(value),
                    Reduce::Sum | Reduce::Mean => values[column] += value,
                }
                magnitudes[column] += weights[entry].abs() * input.magnitudes[at];
            }
        }
        let degree = graph.row(node).len().max(1) as f64;
        for (value, magnitude) in values.iter_mut().zip(magnitudes) {
            match problem.reduce {
                Reduce::Sum => {}
                Reduce::Mean => (*value, *magnitude) = (*value / degree, *magnitude / degree),
                Reduce::Max => *magnitude = value.abs(),
            }
        }
    }
    output
}

/// One layer backward: each edge gives its share of the row's gradient to the neighbour.
fn scatter(problem: Problem<'_>, weights: &[f64], input: &Rows) -> Rows {
    let (graph, dim) = (problem.graph, problem.features.dim);
    let mut output = Rows {
        values: vec![0.0; graph.nodes() * dim],
        magnitudes: vec![0.0; graph.nodes() * dim],
    };
    for node in 0..graph.nodes() {
        let share = match problem.reduce {
            Reduce::Mean => 1.0 / graph.row(node).len() as f64,
            Reduce::Sum | Reduce::Max => 1.0,
        };
        for (entry, &neighbour) in graph.entries(node).zip(graph.row(node)) {
            for column in 0..dim {
                let (from, to) = (node * dim + column, neighbour as usize * dim + column);
                output.values[to] += share * weights[entry] * input.values[from];
                output.magnitudes[to] += share * weights[entry].abs() * input.magnitudes[from];
            }
        }
    }
    output
}

fn relative(found: f64, expected: f64, scale: f64) -> f64 {
    if found == expected || (found.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let error = (found - expected).abs() / scale.max(f64::from(f32::MIN_POSITIVE));
    if error.is_nan() {
        f64::INFINITY
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Dtype;
    use crate::graph::{RawEdges, Rules, SelfLoops};

    fn path_graph() -> (Graph, Features) {
        let raw = RawEdges {
            pairs: vec![(0, 1), (1, 2)],
            weights: None,
            declared_nodes: Some(4),
        };
        let rules = Rules {
            directed: false,
            transpose: false,
            self_loops: SelfLoops::Drop,
        };
        let graph = Graph::build(raw, rules, "path").unwrap();
        let bytes = [-1.0f32, -2.0, -4.0, 9.0]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        (
            graph,
            Features {
                dim: 1,
                dtype: Dtype::F32,
                bytes,
            },
        )
    }

    fn error(problem: Problem<'_>, found: &[f32]) -> f64 {
        max_relative_error(problem, &[found])
    }

    fn problem<'a>(graph: &'a Graph, features: &'a Features, reduce: Reduce) -> Problem<'a> {
        Problem {
            graph,
            features,
            reduce,
            norm: Norm::None,
            layers: 1,
            backward: false,
        }
    }

    #[test]
    fn right_results_have_no_error_and_isolated_nodes_are_zero() {
        let (graph, features) = path_graph();
        for (reduce, values) in [
            (Reduce::Sum, [-2.0f32, -5.0, -2.0, 0.0]),
            (Reduce::Mean, [-2.0, -2.5, -2.0, 0.0]),
            (Reduce::Max, [-2.0, -1.0, -2.0, 0.0]),
        ] {
            assert_eq!(error(problem(&graph, &features, reduce), &values), 0.0);
        }
    }

    #[test]
    fn layers_weights_norms_and_gradients_are_what_a_hand_computes() {
        let (mut graph, features) = path_graph();
        let sum = problem(&graph, &features, Reduce::Sum);
        let two = Problem { layers: 2, ..sum };
        assert_eq!(error(two, &[-5.0, -4.0, -5.0, 0.0]), 0.0);
        let gcn = Problem {
            norm: Norm::Gcn,
            ..sum
        };
        let root = 0.5f32.sqrt();
        assert!(error(gcn, &[-2.0 * root, -5.0 * root, -2.0 * root, 0.0]) < 1e-6);
        let mean = Problem {
            backward: true,
            ..problem(&graph, &features, Reduce::Mean)
        };
        // Row 1 halves its gradient of -2 between 0 and 2; both of them give theirs to 1.
        assert_eq!(error(mean, &[-1.0, -5.0, -1.0, 0.0]), 0.0);
        // Entries in order: 0-1, 1-0, 1-2, 2-1.
        graph.weights = Some(vec![3.0, 5.0, 7.0, 11.0]);
        let weighted = problem(&graph, &features, Reduce::Sum);
        assert_eq!(error(weighted, &[-6.0, -33.0, -22.0, 0.0]), 0.0);
        let back = Problem {
            backward: true,
            ..weighted
        };
        assert_eq!(error(back, &[-10.0, -47.0, -14.0, 0.0]), 0.0);
    }

    #[test]
    fn wrong_results_show() {
        let (graph, features) = path_graph();
        let sum = problem(&graph, &features, Reduce::Sum);
        let found = error(sum, &[-2.0, -5.05, -2.0, 0.0]);
        assert!((found - 0.01).abs() < 1e-6, "{found}");
        let max = problem(&graph, &features, Reduce::Max);
        assert_eq!(error(max, &[-2.0, f32::NAN, -2.0, 0.0]), f64::INFINITY);
        assert!(error(sum, &[-2.0, -5.0, -2.0, 1e-3]) > 1.0);
    }
}
