//! Plans against a model: what a kernel that walks the plan would compute.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::graph::RawEdges;

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
        let plan = fetch_once(graph, partition, pe, shape);
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
        let baseline = all_gather(graph, partition, pe, shape.cores);
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
        let raw = RawEdges { pairs, declared_nodes: Some(nodes) };
        let graph = Graph::build(raw, directed, "model").unwrap();
        let scheme = if hash { Scheme::Hash } else { Scheme::Block };
        let partition = Partition::new(scheme, graph.nodes(), pes);
        check(&graph, &partition, shape(&partition, cores, batch));
    }
}

#[test]
fn cores_get_edges_in_equal_parts() {
    let graph = Graph::build(
        crate::graph::generate_rmat(12, 16, 1).unwrap(),
        false,
        "rmat",
    )
    .unwrap();
    let partition = Partition::new(Scheme::Block, graph.nodes(), 2);
    let plan = fetch_once(&graph, &partition, 0, shape(&partition, 4, 32));
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
    let graph = crate::graph::read(&folder.join("cora.cites"), false).unwrap();
    let partition = Partition::new(Scheme::Block, graph.nodes(), 4);
    let shape = shape(&partition, 4, 32);
    check(&graph, &partition, shape);
    let distinct: Vec<usize> = (0..4)
        .map(|pe| fetch_once(&graph, &partition, pe, shape).fetch.len())
        .collect();
    assert_eq!(distinct, [1364, 1018, 829, 903]);
    assert!((0..4).all(|pe| graph.nodes() - partition.owned(pe) == 2031));
}
