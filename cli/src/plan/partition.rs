//! Who owns which node. A partition puts the nodes in order of owner: position `starts[p]..starts[p + 1]` belong to PE p.

use crate::random::mix;

/// How nodes are spread over PEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheme {
    /// Equal ranges of rows.
    Block,
    /// By a hash of the row: breaks up communities, so it shows the worst case.
    Hash,
}

impl Scheme {
    /// As the option spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Hash => "hash",
        }
    }
}

/// Nodes in order of owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// First position of each PE, and the number of nodes.
    pub starts: Vec<u32>,
    /// Node at each position; ascending within a PE.
    pub nodes: Vec<u32>,
    /// Position of each node.
    pub positions: Vec<u32>,
}

impl Partition {
    /// Spreads `nodes` over `pes` (at least 1).
    pub fn new(scheme: Scheme, nodes: usize, pes: usize) -> Self {
        let owner = |node: usize| match scheme {
            Scheme::Block => 0,
            Scheme::Hash => ((u128::from(mix(node as u64)) * pes as u128) >> 64) as usize,
        };
        let starts: Vec<u32> = match scheme {
            Scheme::Block => (0..=pes).map(|pe| (pe * nodes / pes) as u32).collect(),
            Scheme::Hash => {
                let mut starts = vec![0u32; pes + 1];
                (0..nodes).for_each(|node| starts[owner(node) + 1] += 1);
                (0..pes).for_each(|pe| starts[pe + 1] += starts[pe]);
                starts
            }
        };
        let mut positions: Vec<u32> = (0..nodes as u32).collect();
        if scheme == Scheme::Hash {
            let mut next = starts.clone();
            for (node, position) in positions.iter_mut().enumerate() {
                let slot = &mut next[owner(node)];
                *position = *slot;
                *slot += 1;
            }
        }
        let mut by_position = vec![0u32; nodes];
        for (node, &position) in positions.iter().enumerate() {
            by_position[position as usize] = node as u32;
        }
        Self {
            starts,
            nodes: by_position,
            positions,
        }
    }

    /// Number of PEs.
    pub fn pes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of nodes that `pe` owns.
    pub fn owned(&self, pe: usize) -> usize {
        (self.starts[pe + 1] - self.starts[pe]) as usize
    }

    /// The nodes that `pe` owns, ascending: local row r is the r-th of them.
    pub fn nodes_of(&self, pe: usize) -> &[u32] {
        &self.nodes[self.starts[pe] as usize..self.starts[pe + 1] as usize]
    }

    /// Owner and local row of the node at `position`.
    pub fn locate(&self, position: u32) -> (usize, u32) {
        let pe = self.starts.partition_point(|&start| start <= position) - 1;
        (pe, position - self.starts[pe])
    }

    /// Rows of the largest PE.
    pub fn largest(&self) -> usize {
        (0..self.pes()).map(|pe| self.owned(pe)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_one_owner_and_one_row() {
        for scheme in [Scheme::Block, Scheme::Hash] {
            for (nodes, pes) in [(1, 1), (7, 3), (5, 5), (1000, 8), (10, 7)] {
                let partition = Partition::new(scheme, nodes, pes);
                let mut seen = vec![false; nodes];
                for pe in 0..pes {
                    for (row, &node) in partition.nodes_of(pe).iter().enumerate() {
                        assert!(!std::mem::replace(&mut seen[node as usize], true));
                        assert_eq!(
                            partition.locate(partition.positions[node as usize]),
                            (pe, row as u32)
                        );
                    }
                    assert!(partition
                        .nodes_of(pe)
                        .windows(2)
                        .all(|pair| pair[0] < pair[1]));
                }
                assert!(seen.iter().all(|&seen| seen));
            }
        }
    }

    #[test]
    fn blocks_differ_by_one_row_at_most() {
        let partition = Partition::new(Scheme::Block, 2710, 4);
        assert_eq!(
            (0..4).map(|pe| partition.owned(pe)).collect::<Vec<_>>(),
            [677, 678, 677, 678]
        );
    }
}
