//! Graphs: reading them from files or generating them, and the adjacency in compressed rows that plans and references are made from.
//!
//! It knows nothing about PEs or features. `gnn` calls it.

mod edge_list;
mod lines;
mod matrix_market;
mod rmat;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use thiserror::Error;

use crate::progress;
use crate::room::{self, NoRoom};
use lines::Lines;
pub use rmat::{
    generate as generate_rmat, EDGE_FACTOR as RMAT_EDGE_FACTOR, MAX_SCALE as RMAT_MAX_SCALE,
};

/// What can be wrong with a graph.
#[derive(Debug, Error)]
pub enum GraphError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file as the user named it.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line is not what the format says.
    #[error("{path}:{line}: expected {expected}, found {found}")]
    Line {
        /// The file as the user named it.
        path: String,
        /// Line number, from 1.
        line: u64,
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// No line names a node.
    #[error("{path}: no edge in it; expected one edge a line: two node ids separated by blanks, tabs or a comma")]
    Empty {
        /// The file as the user named it.
        path: String,
    },
    /// More nodes than a 32-bit row number can name.
    #[error(
        "{path}: {nodes} nodes, more than the {} that row numbers can name",
        u32::MAX
    )]
    TooManyNodes {
        /// The file as the user named it.
        path: String,
        /// How many there are.
        nodes: u64,
    },
    /// More memory than there is.
    #[error(transparent)]
    Room(#[from] NoRoom),
}

/// Edges as they were found, before renumbering.
#[derive(Debug, Default)]
pub struct RawEdges {
    /// Pairs of original ids, in the order of the file.
    pub pairs: Vec<(u64, u64)>,
    /// The nodes are exactly the ids `0..count`, whether or not an edge names them.
    pub declared_nodes: Option<u64>,
}

/// Adjacency in compressed rows. Row `r` belongs to the node with the r-th smallest original id; its neighbours ascend and hold neither `r` itself
/// nor a value twice. For a directed graph row `a` holds `b` for each line "a b".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// `nodes + 1` offsets into `neighbours`.
    pub starts: Vec<u64>,
    /// Rows of neighbours, one after another.
    pub neighbours: Vec<u32>,
    /// Distinct edges; an undirected edge counts once and has two entries in `neighbours`.
    pub edges: u64,
    /// Repetitions that were dropped ("b a" repeats "a b" in an undirected graph).
    pub duplicates: u64,
    /// Self loops that were dropped.
    pub self_loops: u64,
}

impl Graph {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The neighbours of `node`.
    pub fn row(&self, node: usize) -> &[u32] {
        &self.neighbours[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The largest number of neighbours.
    #[cfg(test)]
    pub fn largest_degree(&self) -> u64 {
        self.starts
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap_or(0)
    }

    /// Builds the adjacency: renumbers, drops self loops and duplicates. `name` is for messages.
    pub fn build(raw: RawEdges, directed: bool, name: &str) -> Result<Self, GraphError> {
        let RawEdges {
            mut pairs,
            declared_nodes,
        } = raw;
        let nodes = match declared_nodes {
            Some(nodes) => nodes,
            None => renumber(&mut pairs),
        };
        if nodes == 0 {
            return Err(GraphError::Empty {
                path: name.to_owned(),
            });
        }
        if nodes > u64::from(u32::MAX) {
            return Err(GraphError::TooManyNodes {
                path: name.to_owned(),
                nodes,
            });
        }
        let found = pairs.len() as u64;
        // Two lists of starts; an edge's key and its two entries.
        room::check(
            nodes * 16 + found * 16,
            format!("{name}: a graph of {nodes} nodes and {found} edges"),
            "use a smaller graph, or a machine with more memory",
        )?;
        let spinner = progress::spinner("sorting");
        // An edge as one number, row in the upper half: sorting it sorts rows, then neighbours.
        let mut keys: Vec<u64> = Vec::with_capacity(pairs.len());
        for (a, b) in pairs {
            if a != b {
                let (row, column) = if directed || a < b { (a, b) } else { (b, a) };
                keys.push(row << 32 | column);
            }
        }
        let self_loops = found - keys.len() as u64;
        keys.sort_unstable();
        keys.dedup();
        let edges = keys.len() as u64;
        let duplicates = found - self_loops - edges;

        let mut starts = vec![0u64; nodes as usize + 1];
        for &key in &keys {
            starts[(key >> 32) as usize + 1] += 1;
            if !directed {
                starts[(key as u32) as usize + 1] += 1;
            }
        }
        for row in 0..nodes as usize {
            starts[row + 1] += starts[row];
        }
        let mut neighbours = vec![0u32; starts[nodes as usize] as usize];
        let mut next = starts.clone();
        // In key order a row first receives its smaller neighbours, ascending, then its larger ones, ascending.
        for &key in &keys {
            let (row, column) = ((key >> 32) as usize, key as u32);
            neighbours[next[row] as usize] = column;
            next[row] += 1;
            if !directed {
                neighbours[next[column as usize] as usize] = row as u32;
                next[column as usize] += 1;
            }
        }
        spinner.finish_and_clear();
        Ok(Self {
            starts,
            neighbours,
            edges,
            duplicates,
            self_loops,
        })
    }
}

/// Reads a graph from `path`: Matrix Market when the first line says so, else an edge list.
pub fn read(path: &Path, directed: bool) -> Result<Graph, GraphError> {
    let name = path.display().to_string();
    let io = |source| GraphError::Io {
        path: name.clone(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if metadata.is_dir() {
        return Err(io(std::io::Error::other("is a folder, not a graph file")));
    }
    let bar = progress::bytes("reading", metadata.len());
    let mut lines = Lines::new(
        BufReader::with_capacity(1 << 20, bar.wrap_read(file)),
        &name,
    );
    let raw = match lines.next_line()? {
        Some(first) if matrix_market::is_banner(first) => matrix_market::read(&mut lines)?,
        Some(_) => {
            lines.repeat_line();
            edge_list::read(&mut lines)?
        }
        None => RawEdges::default(),
    };
    bar.finish_and_clear();
    Graph::build(raw, directed, &name)
}

/// Replaces ids by their ranks in ascending order and returns how many there are.
fn renumber(pairs: &mut [(u64, u64)]) -> u64 {
    let Some(largest) = pairs.iter().map(|&(a, b)| a.max(b)).max() else {
        return 0;
    };
    // A table by id costs 4 bytes an id; worth it unless ids are much sparser than edges.
    let table_limit = 8 * pairs.len() as u64 + (1 << 20);
    if largest < table_limit {
        let mut rank = vec![0u32; largest as usize + 1];
        for &(a, b) in pairs.iter() {
            rank[a as usize] = 1;
            rank[b as usize] = 1;
        }
        let mut nodes = 0u32;
        for slot in &mut rank {
            let present = *slot;
            *slot = nodes;
            nodes += present;
        }
        for (a, b) in pairs.iter_mut() {
            *a = u64::from(rank[*a as usize]);
            *b = u64::from(rank[*b as usize]);
        }
        return u64::from(nodes);
    }
    let mut ids: Vec<u64> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    ids.sort_unstable();
    ids.dedup();
    // Every id is in the list it was taken from.
    let rank = |id: u64| ids.partition_point(|&other| other < id) as u64;
    for (a, b) in pairs.iter_mut() {
        *a = rank(*a);
        *b = rank(*b);
    }
    ids.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn parse(text: &str, directed: bool) -> Result<Graph, GraphError> {
        let mut file = tempfile::Builder::new()
            .prefix("graph")
            .suffix(".txt")
            .tempfile()
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read(file.path(), directed)
    }

    fn message(text: &str) -> String {
        let message = parse(text, false).unwrap_err().to_string();
        message[message.rfind(".txt").unwrap() + 4..].to_owned()
    }

    #[test]
    fn sparse_ids_become_rows_in_ascending_order_of_id() {
        let graph = parse("700 5\n5 900000000000\n", false).unwrap();
        assert_eq!(graph.nodes(), 3);
        assert_eq!(graph.row(0), [1, 2]);
        assert_eq!(graph.row(1), [0]);
        assert_eq!(graph.row(2), [0]);
    }

    #[test]
    fn blanks_tabs_commas_comments_and_further_columns_are_understood() {
        let text = "# made by hand\n% and this\n\n0 1 0.5 x\n1\t2\n2,3\n 3 , 4 \r\n\r\n4  5";
        let graph = parse(text, false).unwrap();
        assert_eq!((graph.nodes(), graph.edges), (6, 5));
        assert_eq!(parse("\u{feff}0 1\n", false).unwrap().edges, 1);
    }

    #[test]
    fn duplicates_and_self_loops_are_dropped_and_counted() {
        let graph = parse("0 1\n1 0\n0 1\n2 2\n1 2\n", false).unwrap();
        assert_eq!((graph.edges, graph.duplicates, graph.self_loops), (2, 2, 1));
        let graph = parse("0 1\n1 0\n0 1\n2 2\n1 2\n", true).unwrap();
        assert_eq!((graph.edges, graph.duplicates, graph.self_loops), (3, 1, 1));
        assert_eq!(graph.row(1), [0, 2]);
        assert_eq!(graph.row(2), [0u32; 0]);
    }

    #[test]
    fn a_node_that_only_loops_to_itself_is_a_node_without_neighbours() {
        let graph = parse("0 1\n7 7\n", false).unwrap();
        assert_eq!(graph.nodes(), 3);
        assert_eq!(graph.row(2), [0u32; 0]);
    }

    #[test]
    fn errors_name_the_line_and_what_stood_there() {
        assert_eq!(
            message("0 1\n# c\n2 x7\n"),
            ":3: expected a node id (a whole number from 0 up), found \"x7\""
        );
        assert_eq!(
            message("source,target\n0,1\n"),
            ":1: expected a node id (a whole number from 0 up), found \"source\""
        );
        assert_eq!(
            message("0 1\n5\n"),
            ":2: expected two node ids, found \"5\""
        );
        assert_eq!(
            message("0,,1\n"),
            ":1: expected two node ids, found \"0,,1\""
        );
        assert_eq!(
            message("0 -1\n"),
            ":1: expected a node id (a whole number from 0 up), found \"-1\""
        );
        assert_eq!(
            message("0 99999999999999999999\n"),
            ":1: expected a node id (a whole number from 0 up) below 2^64, found \"99999999999999999999\""
        );
        assert!(message("# nothing\n").starts_with(": no edge in it"));
        assert!(message("").starts_with(": no edge in it"));
        assert!(message("0 \u{1b}[31mred\n").contains("found \"\\u{1b}[31mred\""));
    }

    #[test]
    fn a_missing_file_and_a_folder_are_named() {
        let error = read(Path::new("/nonexistent/graph.txt"), false)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/nonexistent/graph.txt: "), "{error}");
        let error = read(Path::new("/"), false).unwrap_err().to_string();
        assert!(error.contains("is a folder"), "{error}");
    }

    #[test]
    fn matrix_market_keeps_nodes_without_entries() {
        let text =
            "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n4 4 2\n2 1\n3 1\n";
        let graph = parse(text, false).unwrap();
        assert_eq!((graph.nodes(), graph.edges), (4, 2));
        assert_eq!(graph.row(0), [1, 2]);
        assert_eq!(graph.row(3), [0u32; 0]);
    }

    #[test]
    fn a_symmetric_matrix_has_both_directions_when_read_as_directed() {
        let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 1.5\n";
        let graph = parse(text, true).unwrap();
        assert_eq!((graph.edges, graph.self_loops), (2, 1));
        assert_eq!(graph.row(0), [1]);
        assert_eq!(graph.row(1), [0]);
    }

    #[test]
    fn matrix_market_errors_name_line_and_content() {
        let head = "%%MatrixMarket matrix coordinate pattern general\n";
        assert!(
            message("%%MatrixMarket matrix array real general\n2 2\n").contains(":1: expected ")
        );
        assert!(message(&format!("{head}3 4 1\n1 1\n"))
            .contains(":2: expected a square matrix, found 3 x 4"));
        assert!(message(&format!("{head}3 3 1\n0 1\n"))
            .contains(":3: expected a row from 1 to 3, found 0"));
        assert!(message(&format!("{head}3 3 1\n1 4\n"))
            .contains(":3: expected a column from 1 to 3, found 4"));
        assert!(message(&format!("{head}3 3 2\n1 2\n")).contains("expected 2 entries, found 1"));
        assert!(message(&format!("{head}3 3 1\n1 2\n1 3\n"))
            .contains(":4: expected the end of the file after 1 entries"));
        assert!(message(&format!("{head}3 x 1\n")).contains(":2: expected "));
    }

    #[test]
    fn rows_of_the_real_graphs_have_the_published_facts() {
        let Some(folder) = crate::testdata::shared() else {
            return;
        };
        let facebook = read(&folder.join("facebook_combined.txt"), false).unwrap();
        assert_eq!(
            (facebook.nodes(), facebook.edges, facebook.largest_degree()),
            (4039, 88_234, 1045)
        );
        let cora = read(&folder.join("cora.cites"), false).unwrap();
        assert_eq!(
            (cora.nodes(), cora.edges, cora.self_loops, cora.duplicates),
            (2708, 5278, 0, 151)
        );
        assert_eq!(cora.largest_degree(), 168);
    }

    proptest::proptest! {
        #[test]
        fn adjacency_equals_a_set_model(
            pairs in proptest::collection::vec((0u64..40, 0u64..40), 1..200),
            spread in proptest::sample::select(vec![1u64, 1 << 40]),
            directed: bool,
        ) {
            let raw = RawEdges { pairs: pairs.iter().map(|&(a, b)| (a * spread, b * spread)).collect(), declared_nodes: None };
            let graph = Graph::build(raw, directed, "model").unwrap();
            let ids: std::collections::BTreeSet<u64> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
            let ids: Vec<u64> = ids.into_iter().collect();
            let mut rows = vec![std::collections::BTreeSet::new(); ids.len()];
            for &(a, b) in &pairs {
                let (a, b) = (ids.binary_search(&a).unwrap(), ids.binary_search(&b).unwrap());
                if a != b {
                    rows[a].insert(b as u32);
                    if !directed { rows[b].insert(a as u32); }
                }
            }
            let entries: usize = rows.iter().map(|row| row.len()).sum();
            proptest::prop_assert_eq!(graph.nodes(), ids.len());
            proptest::prop_assert_eq!(graph.edges as usize, if directed { entries } else { entries / 2 });
            for (node, row) in rows.iter().enumerate() {
                proptest::prop_assert_eq!(graph.row(node), &row.iter().copied().collect::<Vec<_>>()[..]);
            }
            proptest::prop_assert_eq!(graph.edges + graph.duplicates + graph.self_loops, pairs.len() as u64);
        }
    }
}
