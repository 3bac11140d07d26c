//! What each PE does: which rows it owns, which remote rows it fetches and in which order, and how its cores share the edges.
//!
//! Made once, by the parent process of `npushmem gnn`; kernels walk it as it is (kernels/gnn_abi.h). It moves no data and knows no features.
//!
//! A *table* is the array of feature rows that a PE's kernel reads: for the fetch-once kernel own rows and then a staging area, one slot for each
//! distinct remote row; for the all-gather baseline every row of the graph in order of position. *Columns* are row numbers of the table.

mod partition;

use crate::gnn::abi::{Batch, Core, Node, Phase};
use crate::graph::Graph;
pub use partition::{Partition, Scheme};

/// What a node costs beyond its edges, in edges: storing the result and the reduction's own steps.
const NODE_WEIGHT: u64 = 2;

/// How the cores of a PE share its nodes.
#[derive(Debug, Clone, Default)]
pub struct Compute {
    /// One record a core; its batches are empty unless a fetch plan fills them.
    pub cores: Vec<Core>,
    /// Nodes in the order in which cores finish them.
    pub nodes: Vec<Node>,
    /// Edges of a core in groups that wait for the same progress.
    pub phases: Vec<Phase>,
    /// Table rows of the neighbours, in the order of `nodes`.
    pub columns: Vec<u32>,
}

/// The fetch-once plan of one PE.
#[derive(Debug, Clone)]
pub struct FetchPlan {
    /// The cores' work.
    pub compute: Compute,
    /// Requests that are rung together; each core's are consecutive, in its order.
    pub batches: Vec<Batch>,
    /// Row at its owner, for each staging slot.
    pub fetch: Vec<u32>,
    /// Entries of the adjacency whose neighbour is remote.
    pub remote_entries: u64,
}

/// Parameters of a fetch plan.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Communicating cores of each PE.
    pub cores: usize,
    /// Rows fetched by one batch.
    pub batch: usize,
    /// Table row of the first staging slot, the same on every PE.
    pub staging_row: u32,
}

/// Plans the fetch-once aggregation of `pe`.
pub fn fetch_once(graph: &Graph, partition: &Partition, pe: usize, shape: Shape) -> FetchPlan {
    let Shape {
        cores,
        batch,
        staging_row,
    } = shape;
    let own = partition.starts[pe]..partition.starts[pe + 1];
    let mut remote: Vec<u32> = Vec::new();
    let mut remote_entries = 0u64;
    for &node in partition.nodes_of(pe) {
        let positions = graph
            .row(node as usize)
            .iter()
            .map(|&neighbour| partition.positions[neighbour as usize]);
        let before = remote.len();
        remote.extend(positions.filter(|position| !own.contains(position)));
        remote_entries += (remote.len() - before) as u64;
        if remote.len() > 4 * graph.nodes() {
            remote.sort_unstable();
            remote.dedup();
        }
    }
    remote.sort_unstable();
    remote.dedup();

    // Batches of the owners in turn, beginning behind this PE so that not everybody asks PE 0 first; dealt to the cores in turn.
    let mut by_owner: Vec<std::slice::Chunks<'_, u32>> = Vec::new();
    for step in 1..partition.pes() {
        let owner = (pe + step) % partition.pes();
        let from = remote.partition_point(|&position| position < partition.starts[owner]);
        let to = remote.partition_point(|&position| position < partition.starts[owner + 1]);
        by_owner.push(remote[from..to].chunks(batch));
    }
    let mut dealt: Vec<Vec<&[u32]>> = vec![Vec::new(); cores];
    let mut next_core = 0;
    loop {
        let mut more = false;
        for owner in &mut by_owner {
            if let Some(rows) = owner.next() {
                dealt[next_core].push(rows);
                next_core = (next_core + 1) % cores;
                more = true;
            }
        }
        if !more {
            break;
        }
    }

    let mut batches = Vec::new();
    let mut fetch = Vec::with_capacity(remote.len());
    // For each distinct remote row: its slot, and how many batches each core must have got before it is certainly there.
    let mut slots = vec![(0u32, 0u32); remote.len()];
    let mut ranges = Vec::with_capacity(cores);
    for core in &dealt {
        let first_batch = batches.len() as u32;
        for (round, rows) in core.iter().enumerate() {
            let (owner, _) = partition.locate(rows[0]);
            batches.push(Batch {
                pe: owner as u32,
                count: rows.len() as u32,
                first_slot: fetch.len() as u32,
                reserved: 0,
            });
            let index = remote.partition_point(|&position| position < rows[0]);
            for (offset, &position) in rows.iter().enumerate() {
                slots[index + offset] = (fetch.len() as u32, round as u32 + 1);
                fetch.push(partition.locate(position).1);
            }
        }
        ranges.push((first_batch, batches.len() as u32));
    }

    let mut compute = Compute::new(graph, partition, pe, cores, |position| {
        if own.contains(&position) {
            return (position - own.start, 0);
        }
        // Every remote position of this PE's rows was collected above.
        let (slot, need) = slots[remote.partition_point(|&other| other < position)];
        (staging_row + slot, need)
    });
    for (core, (begin, end)) in compute.cores.iter_mut().zip(ranges) {
        (core.batch_begin, core.batch_end) = (begin, end);
    }
    FetchPlan {
        compute,
        batches,
        fetch,
        remote_entries,
    }
}

/// Plans the baseline of `pe`: every row is there, so columns are positions, and each core sends its share of the PE's own rows.
pub fn all_gather(graph: &Graph, partition: &Partition, pe: usize, cores: usize) -> Compute {
    let mut compute = Compute::new(graph, partition, pe, cores, |position| (position, 0));
    let owned = partition.owned(pe);
    for (index, core) in compute.cores.iter_mut().enumerate() {
        core.send_begin = partition.starts[pe] + (index * owned / cores) as u32;
        core.send_end = partition.starts[pe] + ((index + 1) * owned / cores) as u32;
    }
    compute
}

impl Compute {
    /// Shares the nodes of `pe`: consecutive rows a core, balanced by edges, and within a core in the order in which their rows can be there.
    /// `column` gives the table row of a position and the progress that it needs (0: there from the start).
    fn new(
        graph: &Graph,
        partition: &Partition,
        pe: usize,
        cores: usize,
        column: impl Fn(u32) -> (u32, u32),
    ) -> Self {
        let mut compute = Self::default();
        let weight = |node: u32| graph.row(node as usize).len() as u64 + NODE_WEIGHT;
        let total: u64 = partition
            .nodes_of(pe)
            .iter()
            .map(|&node| weight(node))
            .sum();
        let mut rows = partition.nodes_of(pe).iter().enumerate().peekable();
        let mut done = 0u64;
        for core in 0..cores as u64 {
            let target = total * (core + 1) / cores as u64;
            let mut share: Vec<(u32, u32, Vec<u32>)> = Vec::new();
            while let Some((row, &node)) = rows.next_if(|_| done < target) {
                done += weight(node);
                let mapped = graph
                    .row(node as usize)
                    .iter()
                    .map(|&neighbour| column(partition.positions[neighbour as usize]));
                let (mut columns, needs): (Vec<u32>, Vec<u32>) = mapped.unzip();
                // Ascending columns let a kernel load neighbours that lie side by side in one copy.
                columns.sort_unstable();
                share.push((needs.into_iter().max().unwrap_or(0), row as u32, columns));
            }
            share.sort_by_key(|&(need, row, _)| (need, row));
            compute.append(&share);
        }
        compute
    }

    fn append(&mut self, share: &[(u32, u32, Vec<u32>)]) {
        let mut core = Core {
            node_begin: self.nodes.len() as u32,
            phase_begin: self.phases.len() as u32,
            edge_begin: self.columns.len() as u64,
            ..Core::default()
        };
        for same_need in share.chunk_by(|left, right| left.0 == right.0) {
            for (_, row, columns) in same_need {
                self.nodes.push(Node {
                    row: *row,
                    degree: columns.len() as u32,
                });
                self.columns.extend_from_slice(columns);
            }
            let edge_end = self.columns.len() as u64;
            self.phases.push(Phase {
                edge_end,
                need: same_need[0].0,
                reserved: 0,
            });
        }
        core.node_end = self.nodes.len() as u32;
        core.phase_end = self.phases.len() as u32;
        core.edge_end = self.columns.len() as u64;
        self.cores.push(core);
    }
}

#[cfg(test)]
mod tests;
