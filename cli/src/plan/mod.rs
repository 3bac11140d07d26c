//! What each PE does: which rows it owns, which remote rows it fetches and in which order, and how its cores share the edges.
//!
//! Made once, by the parent process of `npushmem gnn`; kernels walk it as it is (kernels/gnn_abi.h). It moves no data and knows no features.
//!
//! A *table* is the array of feature rows that a PE's kernel reads: for the fetch-once kernel own rows and then a staging area, one slot for each
//! distinct remote row; for the all-gather baseline every row of the graph in order of position. *Columns* are row numbers of the table.

mod partition;
mod scatter;

use crate::gnn::abi::{Batch, Core, Node, Phase};
use crate::graph::Graph;
pub use partition::{Partition, Scheme};
pub use scatter::scatter;

/// What a node costs beyond its edges, in edges: storing the result and the reduction's own steps.
const NODE_WEIGHT: u64 = 2;

/// How the cores of a PE share its nodes.
#[derive(Debug, Clone, Default)]
pub struct Compute {
    /// One record a core; its batches are empty unless a fetch plan fills them. A scatter plan has a second set, for what the cores send.
    pub cores: Vec<Core>,
    /// Nodes in the order in which cores finish them.
    pub nodes: Vec<Node>,
    /// Edges of a core in groups that wait for the same progress.
    pub phases: Vec<Phase>,
    /// Table rows of the neighbours, in the order of `nodes`.
    pub columns: Vec<u32>,
    /// The weight of each column; empty when every weight is 1.
    pub weights: Vec<f32>,
}

/// One edge of a node.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Row of the table.
    column: u32,
    /// Progress that the row needs; 0: it is there from the start.
    need: u32,
    weight: f32,
}

/// A node of a core, before it has its place.
struct Share {
    need: u32,
    row: u32,
    entries: Vec<Entry>,
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

/// A graph and the weight of each of its entries; `None`: every weight is 1.
#[derive(Debug, Clone, Copy)]
pub struct Weighted<'a> {
    /// The adjacency.
    pub graph: &'a Graph,
    /// One an entry.
    pub weights: Option<&'a [f32]>,
}

impl Weighted<'_> {
    fn weight(&self, entry: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[entry])
    }
}

/// The distinct positions of other PEs' nodes that the rows of `pe` name, ascending, and how many entries name one.
pub fn remote_positions(graph: &Graph, partition: &Partition, pe: usize) -> (Vec<u32>, u64) {
    let own = partition.starts[pe]..partition.starts[pe + 1];
    let mut remote: Vec<u32> = Vec::new();
    let mut entries = 0u64;
    for &node in partition.nodes_of(pe) {
        let positions = graph
            .row(node as usize)
            .iter()
            .map(|&neighbour| partition.positions[neighbour as usize]);
        let before = remote.len();
        remote.extend(positions.filter(|position| !own.contains(position)));
        entries += (remote.len() - before) as u64;
        if remote.len() > 4 * graph.nodes() {
            remote.sort_unstable();
            remote.dedup();
        }
    }
    remote.sort_unstable();
    remote.dedup();
    (remote, entries)
}

/// The part of `remote` (ascending positions) that belongs to `owner`.
fn owned_by<'a>(remote: &'a [u32], partition: &Partition, owner: usize) -> &'a [u32] {
    let from = remote.partition_point(|&position| position < partition.starts[owner]);
    let to = remote.partition_point(|&position| position < partition.starts[owner + 1]);
    &remote[from..to]
}

/// Plans the fetch-once aggregation of `pe`.
pub fn fetch_once(
    matrix: Weighted<'_>,
    partition: &Partition,
    pe: usize,
    shape: Shape,
) -> FetchPlan {
    let Shape {
        cores,
        batch,
        staging_row,
    } = shape;
    let own = partition.starts[pe]..partition.starts[pe + 1];
    let (remote, remote_entries) = remote_positions(matrix.graph, partition, pe);

    // Batches of the owners in turn, beginning behind this PE so that not everybody asks PE 0 first; dealt to the cores in turn.
    let mut by_owner: Vec<std::slice::Chunks<'_, u32>> = Vec::new();
    for step in 1..partition.pes() {
        let owner = (pe + step) % partition.pes();
        by_owner.push(owned_by(&remote, partition, owner).chunks(batch));
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
                target: 0,
            });
            let index = remote.partition_point(|&position| position < rows[0]);
            for (offset, &position) in rows.iter().enumerate() {
                slots[index + offset] = (fetch.len() as u32, round as u32 + 1);
                fetch.push(partition.locate(position).1);
            }
        }
        ranges.push((first_batch, batches.len() as u32));
    }

    let mut compute = Compute::new(matrix, partition, pe, cores, |position| {
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

/// Plans the baseline of `pe`: every row is there, so columns are positions, and each core sends the rows that it computes.
pub fn all_gather(matrix: Weighted<'_>, partition: &Partition, pe: usize, cores: usize) -> Compute {
    let mut compute = Compute::new(matrix, partition, pe, cores, |position| (position, 0));
    let mut next = partition.starts[pe];
    for core in &mut compute.cores {
        core.send_begin = next;
        next += core.node_end - core.node_begin;
        core.send_end = next;
    }
    compute
}

impl Compute {
    /// Shares the nodes of `pe` and their neighbours among the cores. `column` gives the table row of a position and the progress that it needs.
    fn new(
        matrix: Weighted<'_>,
        partition: &Partition,
        pe: usize,
        cores: usize,
        column: impl Fn(u32) -> (u32, u32),
    ) -> Self {
        let graph = matrix.graph;
        let nodes = partition.nodes_of(pe);
        let degree = |row: usize| graph.row(nodes[row] as usize).len();
        let entries = |row: usize| {
            graph
                .entries(nodes[row] as usize)
                .map(|entry| {
                    let neighbour = graph.neighbours[entry] as usize;
                    let (column, need) = column(partition.positions[neighbour]);
                    let weight = matrix.weight(entry);
                    Entry {
                        column,
                        need,
                        weight,
                    }
                })
                .collect()
        };
        Self::share(
            nodes.len(),
            cores,
            matrix.weights.is_some(),
            degree,
            entries,
        )
    }

    /// Shares `rows` rows: consecutive ones a core, balanced by edges, and within a core in the order in which their rows can be there.
    fn share(
        rows: usize,
        cores: usize,
        weighted: bool,
        degree: impl Fn(usize) -> usize,
        entries: impl Fn(usize) -> Vec<Entry>,
    ) -> Self {
        let mut compute = Self::default();
        let weight = |row: usize| degree(row) as u64 + NODE_WEIGHT;
        let total: u64 = (0..rows).map(weight).sum();
        let mut rows = (0..rows).peekable();
        let mut done = 0u64;
        for core in 0..cores as u64 {
            let target = total * (core + 1) / cores as u64;
            let mut shares = Vec::new();
            while let Some(row) = rows.next_if(|_| done < target) {
                done += weight(row);
                let mut entries = entries(row);
                // Ascending columns let a kernel load neighbours that lie side by side in one copy.
                entries.sort_unstable_by_key(|entry| entry.column);
                shares.push(Share {
                    need: entries.iter().map(|entry| entry.need).max().unwrap_or(0),
                    row: row as u32,
                    entries,
                });
            }
            shares.sort_by_key(|share| (share.need, share.row));
            compute.append(&shares, weighted);
        }
        compute
    }

    /// Begins the record of a core; [`Compute::end`] completes it.
    fn begin(&self) -> Core {
        Core {
            node_begin: self.nodes.len() as u32,
            phase_begin: self.phases.len() as u32,
            edge_begin: self.columns.len() as u64,
            ..Core::default()
        }
    }

    fn end(&mut self, core: Core) {
        self.cores.push(Core {
            node_end: self.nodes.len() as u32,
            phase_end: self.phases.len() as u32,
            edge_end: self.columns.len() as u64,
            ..core
        });
    }

    fn push_phase(&mut self, need: u32) {
        self.phases.push(Phase {
            edge_end: self.columns.len() as u64,
            need,
            reserved: 0,
        });
    }

    fn append(&mut self, shares: &[Share], weighted: bool) {
        let core = self.begin();
        for same_need in shares.chunk_by(|left, right| left.need == right.need) {
            for share in same_need {
                self.nodes.push(Node {
                    row: share.row,
                    degree: share.entries.len() as u32,
                });
                self.columns
                    .extend(share.entries.iter().map(|entry| entry.column));
                if weighted {
                    self.weights
                        .extend(share.entries.iter().map(|entry| entry.weight));
                }
            }
            self.push_phase(same_need[0].need);
        }
        self.end(core);
    }
}

#[cfg(test)]
mod tests;
