//! Plans against a model: what a kernel that walks the plan would compute.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::graph::{RawEdges, Rules, SelfLoops};

/// Walks the cores' work and returns for each local row the positions that it aggregates, in the order of the plan.
fn walk(compute: &Compute, position: impl Fn(u32) -> u32) -> BTreeMap<u32, Vec<u32>> {
    let mut rows = BTreeMap::new();
    let (mut nodes_end, mut phases_end, mut edges_end) = (0, 0, 0);
    for core in &compute.cores {
        assert_eq!(
            (core.node_begin, core.phase_begin, core.edge_begin),
            (nodes_end, phases_end, edges_end),
            "cores leave no gap"
        );
        (nodes_end, phases_end, edges_end) = (core.node_end, core.phase_end, core.edge_end);
        let mut edge = core.edge_begin as usize;
        for node in &compute.nodes[core.node_begin as usize..core.node_end as usize] {
            let columns = &compute.columns[edge..edge + node.degree as usize];
            edge += node.degree as usize;
            let before = rows.insert(
                node.row,
                columns.iter().map(|&column| position(column)).collect(),
            );
            assert_eq!(before, None, "row {} is aggregated twice", node.row);
        }
        assert_eq!(edge as u64, core.edge_end);
    }
    assert_eq!(nodes_end as usize, compute.nodes.len());
    assert_eq!(phases_end as usize, compute.phases.len());
    assert_eq!(edges_end as usize, compute.columns.len());
    rows
}

fn unweighted(graph: &Graph) -> Weighted<'_> {
    Weighted {
        graph,
        weights: None,
    }
}

fn rules(directed: bool) -> Rules {
    Rules {
        directed,
        transpose: false,
        self_loops: SelfLoops::Drop,
    }
}

fn check(graph: &Graph, partition: &Partition, shape: Shape) {
    let expected = |pe: usize| -> BTreeMap<u32, BTreeSet<u32>> {
        let rows = partition.nodes_of(pe).iter().enumerate();
        rows.map(|(row, &node)| {
            (
                row as u32,
                graph
                    .row(node as usize)
                    .iter()
                    .map(|&other| partition.positions[other as usize])
                    .collect(),
            )
        })
        .collect()
    };
    let as_sets = |rows: BTreeMap<u32, Vec<u32>>| -> BTreeMap<u32, BTreeSet<u32>> {
        rows.into_iter()
            .map(|(row, positions)| {
                let set: BTreeSet<u32> = positions.iter().copied().collect();
                assert_eq!(
                    set.len(),
                    positions.len(),
                    "row {row} adds a neighbour twice"
                );
                (row, set)
            })
            .collect()
    };
    for pe in 0..partition.pes() {
        let plan = fetch_once(unweighted(graph), partition, pe, shape);
        let own = partition.starts[pe]..partition.starts[pe + 1];
        // What each slot receives, from the batches.
        let mut slot_position = vec![None; plan.fetch.len()];
        let mut needs = vec![0; plan.fetch.len()];
        for core in &plan.compute.cores {
            for (round, batch) in plan.batches[core.batch_begin as usize..core.batch_end as usize]
                .iter()
                .enumerate()
            {
                assert!(
                    batch.count as usize <= shape.batch
                        && batch.count > 0
                        && batch.pe as usize != pe
                );
                for slot in batch.first_slot..batch.first_slot + batch.count {
                    let position = partition.starts[batch.pe as usize] + plan.fetch[slot as usize];
                    assert!(plan.fetch[slot as usize] < partition.owned(batch.pe as usize) as u32);
                    assert_eq!(
                        slot_position[slot as usize].replace(position),
                        None,
                        "slot {slot} is filled twice"
                    );
                    needs[slot as usize] = round as u32 + 1;
                }
            }
        }
        let fetched: Vec<u32> = slot_position.into_iter().map(Option::unwrap).collect();
        let distinct: BTreeSet<u32> = fetched.iter().copied().collect();
        let rows = expected(pe);
        let wanted: BTreeSet<u32> = rows
            .values()
            .flatten()
            .copied()
            .filter(|position| !own.contains(position))
            .collect();
        assert_eq!(
            distinct.len(),
            fetched.len(),
            "a remote row is fetched twice"
        );
        assert_eq!(distinct, wanted, "exactly the rows that are needed");
        let remote: usize = rows
            .values()
            .flatten()
            .filter(|position| !own.contains(position))
            .count();
        assert_eq!(plan.remote_entries, remote as u64);
        let position = |column: u32| {
            if column < shape.staging_row {
                own.start + column
            } else {
                fetched[(column - shape.staging_row) as usize]
            }
        };
        assert_eq!(as_sets(walk(&plan.compute, position)), rows);
        for core in &plan.compute.cores {
            let mut edge = core.edge_begin;
            for phase in &plan.compute.phases[core.phase_begin as usize..core.phase_end as usize] {
                for &column in &plan.compute.columns[edge as usize..phase.edge_end as usize] {
                    let need = if column < shape.staging_row {
                        0
                    } else {
                        needs[(column - shape.staging_row) as usize]
                    };
                    assert!(
                        need <= phase.need,
                        "an edge is read before its row is there"
                    );
                }
                edge = phase.edge_end;
            }
            assert_eq!(edge, core.edge_end);
        }
        let baseline = all_gather(unweighted(graph), partition, pe, shape.cores);
        assert_eq!(as_sets(walk(&baseline, |column| column)), rows);
        let mut sent = partition.starts[pe];
        for core in &baseline.cores {
            assert_eq!(core.send_begin, sent);
            sent = core.send_end;
        }
        assert_eq!(sent, own.end);
    }
}

fn shape(partition: &Partition, cores: usize, batch: usize) -> Shape {
    Shape {
        cores,
        batch,
        staging_row: partition.largest() as u32,
    }
}

/// Walks the backward plans of all PEs as the kernels do, on one number a node, and returns each node's sum.
fn walk_scatter(
    matrix: Weighted<'_>,
    partition: &Partition,
    shape: Shape,
    gradients: &[f64],
) -> Vec<f64> {
    let pes = partition.pes();
    let remote: Vec<Vec<u32>> = (0..pes)
        .map(|pe| remote_positions(matrix.graph, partition, pe).0)
        .collect();
    let plans: Vec<_> = (0..pes)
        .map(|pe| scatter(matrix, partition, &remote, pe, shape))
        .collect();
    let own = |pe: usize, row: u32| gradients[partition.nodes_of(pe)[row as usize] as usize];
    let weight = |compute: &Compute, edge: usize| match matrix.weights {
        Some(_) => f64::from(compute.weights[edge]),
        None => 1.0,
    };
    let mut staged: Vec<Vec<Option<f64>>> =
        plans.iter().map(|plan| vec![None; plan.received]).collect();
    for (pe, plan) in plans.iter().enumerate() {
        let compute = &plan.compute;
        assert_eq!(compute.cores.len(), 2 * shape.cores);
        let mut next_sum = 0;
        for core in &compute.cores[shape.cores..] {
            let (mut node, mut edge, mut phase) =
                (core.node_begin, core.edge_begin as usize, core.phase_begin);
            for batch in &plan.batches[core.batch_begin as usize..core.batch_end as usize] {
                assert_eq!(batch.first_slot, next_sum, "sums leave no gap");
                assert!(
                    batch.count as usize <= shape.batch
                        && batch.count > 0
                        && batch.pe as usize != pe
                );
                for offset in 0..batch.count {
                    let record = compute.nodes[node as usize];
                    assert_eq!(record.row, next_sum);
                    let sum = (edge..edge + record.degree as usize)
                        .map(|edge| weight(compute, edge) * own(pe, compute.columns[edge]))
                        .sum();
                    let slot = (batch.target + offset) as usize;
                    let before = staged[batch.pe as usize][slot].replace(sum);
                    assert_eq!(before, None, "a slot is written twice");
                    node += 1;
                    edge += record.degree as usize;
                    next_sum += 1;
                }
                assert_eq!(compute.phases[phase as usize].edge_end, edge as u64);
                phase += 1;
            }
            assert_eq!(
                (node, edge as u64, phase),
                (core.node_end, core.edge_end, core.phase_end)
            );
        }
        assert_eq!(next_sum as usize, plan.sent);
    }
    let mut sums = vec![0.0; gradients.len()];
    for (pe, plan) in plans.iter().enumerate() {
        let compute = &plan.compute;
        let mut rows = 0;
        for core in &compute.cores[..shape.cores] {
            let mut edge = core.edge_begin as usize;
            let mut phases =
                compute.phases[core.phase_begin as usize..core.phase_end as usize].iter();
            let mut phase = phases.next();
            for record in &compute.nodes[core.node_begin as usize..core.node_end as usize] {
                while phase.is_some_and(|phase| phase.edge_end == edge as u64) && record.degree > 0
                {
                    phase = phases.next();
                }
                for edge in edge..edge + record.degree as usize {
                    let column = compute.columns[edge];
                    let value = if column < shape.staging_row {
                        own(pe, column)
                    } else {
                        assert_eq!(
                            phase.map(|phase| phase.need),
                            Some(1),
                            "read before the meeting"
                        );
                        staged[pe][(column - shape.staging_row) as usize]
                            .expect("a slot that nobody writes")
                    };
                    sums[partition.nodes_of(pe)[record.row as usize] as usize] +=
                        weight(compute, edge) * value;
                }
                edge += record.degree as usize;
                rows += 1;
            }
        }
        assert_eq!(rows, partition.owned(pe));
        assert!(
            staged[pe].iter().all(Option::is_some),
            "every slot is written"
        );
    }
    sums
}

proptest! {
    #[test]
    fn a_plan_adds_every_edge_once_and_fetches_every_distinct_remote_row_once(
        pairs in proptest::collection::vec((0u64..60, 0u64..60), 1..400),
        nodes in 60u64..70,
        pes in 1usize..9,
        cores in 1usize..6,
        batch in 1usize..9,
        hash: bool,
        directed: bool,
    ) {
        let raw = RawEdges { pairs, weights: None, declared_nodes: Some(nodes) };
        let graph = Graph::build(raw, rules(directed), "model").unwrap();
        let scheme = if hash { Scheme::Hash } else { Scheme::Block };
        let partition = Partition::new(scheme, graph.nodes(), pes);
        check(&graph, &partition, shape(&partition, cores, batch));
    }

    #[test]
    fn a_backward_plan_gives_every_node_what_its_edges_contribute(
        pairs in proptest::collection::vec((0u64..40, 0u64..40), 0..300),
        pes in 1usize..9,
        cores in 1usize..6,
        batch in 1usize..9,
        hash: bool,
        weighted: bool,
    ) {
        let raw = RawEdges { pairs, weights: None, declared_nodes: Some(40) };
        let graph = Graph::build(raw, Rules { self_loops: SelfLoops::Keep, ..rules(true) }, "model").unwrap();
        let scheme = if hash { Scheme::Hash } else { Scheme::Block };
        let partition = Partition::new(scheme, graph.nodes(), pes);
        // Whole numbers: sums are exact in any order.
        let weights: Vec<f32> = (0..graph.neighbours.len()).map(|entry| (entry % 7) as f32 - 3.0).collect();
        let gradients: Vec<f64> = (0..40).map(|node| f64::from(node * node % 11)).collect();
        let matrix = Weighted { graph: &graph, weights: weighted.then_some(&weights[..]) };
        let mut expected = vec![0.0; 40];
        for (row, gradient) in gradients.iter().enumerate() {
            for entry in graph.entries(row) {
                let weight = if weighted { f64::from(weights[entry]) } else { 1.0 };
                expected[graph.neighbours[entry] as usize] += weight * gradient;
            }
        }
        let found = walk_scatter(matrix, &partition, shape(&partition, cores, batch), &gradients);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn cores_get_edges_in_equal_parts() {
    let graph = Graph::build(
        crate::graph::generate_rmat(12, 16, 1).unwrap(),
        rules(false),
        "rmat",
    )
    .unwrap();
    let partition = Partition::new(Scheme::Block, graph.nodes(), 2);
    let plan = fetch_once(unweighted(&graph), &partition, 0, shape(&partition, 4, 32));
    let edges: Vec<u64> = plan
        .compute
        .cores
        .iter()
        .map(|core| core.edge_end - core.edge_begin)
        .collect();
    let mean = edges.iter().sum::<u64>() / 4;
    assert!(
        edges.iter().all(|&edges| edges.abs_diff(mean) < mean / 4),
        "{edges:?}"
    );
}

#[test]
fn cora_over_four_pes_by_blocks_has_the_published_remote_rows() {
    let Some(folder) = crate::testdata::shared() else {
        return;
    };
    let (raw, _) = crate::graph::read_edges(
        &folder.join("cora.cites"),
        &crate::graph::Weights::Ones,
        None,
    )
    .unwrap();
    let graph = Graph::build(raw, rules(false), "cora").unwrap();
    let partition = Partition::new(Scheme::Block, graph.nodes(), 4);
    let shape = shape(&partition, 4, 32);
    check(&graph, &partition, shape);
    let distinct: Vec<usize> = (0..4)
        .map(|pe| {
            fetch_once(unweighted(&graph), &partition, pe, shape)
                .fetch
                .len()
        })
        .collect();
    assert_eq!(distinct, [1364, 1018, 829, 903]);
    assert!((0..4).all(|pe| graph.nodes() - partition.owned(pe) == 2031));
}
