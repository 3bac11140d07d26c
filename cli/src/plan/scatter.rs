//! The plan of the backward pass: what each PE adds up for other PEs' nodes, where it sends the sums, and what it adds up of its own.
//!
//! The gradient of node j is the sum over all edges (i, j) of weight times the gradient of i's result. The PE that owns i has the edge; it adds up
//! what its rows contribute to a remote j and sends one row, to a staging slot that the owner of j keeps for this PE. A PE's slots lie in
//! order of sender and then of position, so that what a batch sends lies together on both sides.

use super::{owned_by, Batch, Compute, Entry, Node, Partition, Shape, Weighted};

/// The backward plan of one PE.
#[derive(Debug, Clone)]
pub struct ScatterPlan {
    /// The cores' work on own nodes, and after it as many records of what they send.
    pub compute: Compute,
    /// What is sent together; each core's are consecutive, and so are the rows of `sums` that they send.
    pub batches: Vec<Batch>,
    /// Rows that the PE sends.
    pub sent: usize,
    /// Staging slots: rows that others send.
    pub received: usize,
}

/// Plans the backward pass of `pe`. `remote` are the [`super::remote_positions`] of every PE.
pub fn scatter(
    matrix: Weighted<'_>,
    partition: &Partition,
    remote: &[Vec<u32>],
    pe: usize,
    shape: Shape,
) -> ScatterPlan {
    let own = partition.starts[pe]..partition.starts[pe + 1];
    // Contributions to each own row, and to each remote one: own rows and weights, in order of row.
    let mut to_own: Vec<Vec<Entry>> = vec![Vec::new(); partition.owned(pe)];
    let mut to_remote: Vec<Vec<Entry>> = vec![Vec::new(); remote[pe].len()];
    for (row, &node) in partition.nodes_of(pe).iter().enumerate() {
        for entry in matrix.graph.entries(node as usize) {
            let position = partition.positions[matrix.graph.neighbours[entry] as usize];
            let contribution = Entry {
                column: row as u32,
                need: 0,
                weight: matrix.weight(entry),
            };
            if own.contains(&position) {
                to_own[(position - own.start) as usize].push(contribution);
            } else {
                to_remote[remote[pe].partition_point(|&other| other < position)].push(contribution);
            }
        }
    }
    // What others send: slots in order of sender, each with weight 1.
    let mut received = 0u32;
    for (sender, positions) in remote.iter().enumerate() {
        if sender == pe {
            continue;
        }
        for &position in owned_by(positions, partition, pe) {
            to_own[(position - own.start) as usize].push(Entry {
                column: shape.staging_row + received,
                need: 1,
                weight: 1.0,
            });
            received += 1;
        }
    }
    let weighted = matrix.weights.is_some();
    let mut compute = Compute::share(
        to_own.len(),
        shape.cores,
        weighted,
        |row| to_own[row].len(),
        |row| to_own[row].clone(),
    );

    let mut batches = Vec::new();
    let mut sent = 0;
    for core in deal(partition, &remote[pe], &to_remote, pe, shape) {
        let mut record = compute.begin();
        record.batch_begin = batches.len() as u32;
        for (owner, first, count) in core {
            batches.push(Batch {
                pe: owner as u32,
                count: count as u32,
                first_slot: sent as u32,
                target: slot(partition, remote, pe, owner, remote[pe][first]),
            });
            for contributions in &to_remote[first..first + count] {
                compute.nodes.push(Node {
                    row: sent as u32,
                    degree: contributions.len() as u32,
                });
                sent += 1;
                for contribution in contributions {
                    compute.columns.push(contribution.column);
                    if weighted {
                        compute.weights.push(contribution.weight);
                    }
                }
            }
            compute.push_phase(0);
        }
        record.batch_end = batches.len() as u32;
        compute.end(record);
    }
    ScatterPlan {
        compute,
        batches,
        sent,
        received: received as usize,
    }
}

/// Batches for each core: owner, first index into the PE's remote positions, count. Owners in turn, beginning behind this PE so that not everybody
/// sends to PE 0 first; a batch goes to the core that has least to add so far.
fn deal(
    partition: &Partition,
    remote: &[u32],
    contributions: &[Vec<Entry>],
    pe: usize,
    shape: Shape,
) -> Vec<Vec<(usize, usize, usize)>> {
    let mut owners: Vec<(usize, usize, usize)> = (1..partition.pes())
        .map(|step| (pe + step) % partition.pes())
        .map(|owner| {
            let first = remote.partition_point(|&position| position < partition.starts[owner]);
            (
                owner,
                first,
                first + owned_by(remote, partition, owner).len(),
            )
        })
        .collect();
    let mut cores = vec![Vec::new(); shape.cores];
    let mut loads = vec![0usize; shape.cores];
    loop {
        let mut more = false;
        for (owner, next, end) in &mut owners {
            let count = shape.batch.min(*end - *next);
            if count == 0 {
                continue;
            }
            more = true;
            let core = (0..shape.cores)
                .min_by_key(|&core| loads[core])
                .unwrap_or(0);
            let edges: usize = contributions[*next..*next + count]
                .iter()
                .map(Vec::len)
                .sum();
            loads[core] += edges + count;
            cores[core].push((*owner, *next, count));
            *next += count;
        }
        if !more {
            return cores;
        }
    }
}

/// The staging slot at `owner` for what `pe` contributes to `position`.
fn slot(partition: &Partition, remote: &[Vec<u32>], pe: usize, owner: usize, position: u32) -> u32 {
    let before: usize = (0..pe)
        .filter(|&sender| sender != owner)
        .map(|sender| owned_by(&remote[sender], partition, owner).len())
        .sum();
    let own = owned_by(&remote[pe], partition, owner);
    (before + own.partition_point(|&other| other < position)) as u32
}
