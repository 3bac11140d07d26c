//! The plain reference that `--verify` compares with: one loop over the adjacency, in f64. Slow and obvious on purpose; it shares no code with plans
//! or kernels.

use crate::features::Features;
use crate::gnn::Reduce;
use crate::graph::Graph;
use crate::progress;

/// Largest relative error of `values` (nodes x dim, f32) against the reference.
///
/// The difference is taken relative to the sum of the magnitudes that went into a value (their mean for `mean`, the value itself for `max`). For
/// features of one sign this is the relative error of the value; where signs cancel, it is the error that the order of summation may cause, and not
/// its ratio to a result near zero. A value that is not finite where the reference is (or the other way round) counts as infinite error.
pub fn max_relative_error(
    graph: &Graph,
    features: &Features,
    reduce: Reduce,
    values: &[f32],
) -> f64 {
    let dim = features.dim;
    let bar = progress::count("verifying", graph.nodes() as u64);
    let mut largest = 0.0f64;
    let mut sums = vec![0.0f64; dim];
    let mut magnitudes = vec![0.0f64; dim];
    for node in 0..graph.nodes() {
        let neighbours = graph.row(node);
        let start = if reduce == Reduce::Max {
            f64::NEG_INFINITY
        } else {
            0.0
        };
        sums.fill(if neighbours.is_empty() { 0.0 } else { start });
        magnitudes.fill(0.0);
        for &neighbour in neighbours {
            let row = features.row(neighbour as usize);
            for column in 0..dim {
                let value = Features::value(row, features.dtype, column);
                match reduce {
                    Reduce::Max => sums[column] = sums[column].max(value),
                    Reduce::Sum | Reduce::Mean => sums[column] += value,
                }
                magnitudes[column] += value.abs();
            }
        }
        for column in 0..dim {
            let (expected, scale) = match reduce {
                Reduce::Sum => (sums[column], magnitudes[column]),
                Reduce::Mean if neighbours.is_empty() => (0.0, 0.0),
                Reduce::Mean => (
                    sums[column] / neighbours.len() as f64,
                    magnitudes[column] / neighbours.len() as f64,
                ),
                Reduce::Max => (sums[column], sums[column].abs()),
            };
            largest = largest.max(relative(
                f64::from(values[node * dim + column]),
                expected,
                scale,
            ));
        }
        if node % 1024 == 0 {
            bar.set_position(node as u64);
        }
    }
    bar.finish_and_clear();
    largest
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
    use crate::graph::RawEdges;

    fn path_graph() -> (Graph, Features) {
        let raw = RawEdges {
            pairs: vec![(0, 1), (1, 2)],
            declared_nodes: Some(4),
        };
        let graph = Graph::build(raw, false, "path").unwrap();
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

    #[test]
    fn right_results_have_no_error_and_isolated_nodes_are_zero() {
        let (graph, features) = path_graph();
        for (reduce, values) in [
            (Reduce::Sum, [-2.0f32, -5.0, -2.0, 0.0]),
            (Reduce::Mean, [-2.0, -2.5, -2.0, 0.0]),
            (Reduce::Max, [-2.0, -1.0, -2.0, 0.0]),
        ] {
            assert_eq!(max_relative_error(&graph, &features, reduce, &values), 0.0);
        }
    }

    #[test]
    fn wrong_results_show() {
        let (graph, features) = path_graph();
        let error = max_relative_error(&graph, &features, Reduce::Sum, &[-2.0, -5.05, -2.0, 0.0]);
        assert!((error - 0.01).abs() < 1e-6, "{error}");
        assert_eq!(
            max_relative_error(&graph, &features, Reduce::Max, &[-2.0, f32::NAN, -2.0, 0.0]),
            f64::INFINITY
        );
        assert!(
            max_relative_error(&graph, &features, Reduce::Sum, &[-2.0, -5.0, -2.0, 1e-3]) > 1.0
        );
    }
}
