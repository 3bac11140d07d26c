//! Graphs: reading them from files or generating them, and the adjacency in compressed rows that plans and references are made from.
//!
//! It knows nothing about PEs or features. `gnn` calls it.

mod arrays;
mod edge_list;
mod lines;
mod matrix_market;
mod rmat;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use thiserror::Error;

use crate::progress;
use crate::room::{self, NoRoom};
use arrays::Store;
pub use arrays::Weights;
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
    /// The two directions of an undirected edge have different weights.
    #[error(
        "{path}: between rows {row} and {neighbour} one direction has weight {there} and the other {back}, so the edge has no one weight; \
         use --directed"
    )]
    TwoWeights {
        /// The file as the user named it.
        path: String,
        /// Row of the adjacency.
        row: u64,
        /// Another row.
        neighbour: u64,
        /// Weight of one direction.
        there: f32,
        /// Weight of the other.
        back: f32,
    },
    /// An array file, or a folder of them, is not what the format says.
    #[error("{path}: {problem}")]
    Content {
        /// The file as the user named it.
        path: String,
        /// What is wrong, and what is expected.
        problem: String,
    },
    /// More memory than there is.
    #[error(transparent)]
    Room(#[from] NoRoom),
}

/// Edges as they were found, before renumbering.
#[derive(Debug, Default)]
pub struct RawEdges {
    /// Pairs of original ids, in the order of the file: the row that an edge belongs to, and the neighbour.
    pub pairs: Vec<(u64, u64)>,
    /// One a pair; all finite.
    pub weights: Option<Vec<f32>>,
    /// The nodes are exactly the ids `0..count`, whether or not an edge names them.
    pub declared_nodes: Option<u64>,
}

/// What becomes of edges from a node to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SelfLoops {
    /// They are left out.
    Drop,
    /// They are edges like others.
    Keep,
    /// Every node gets one, of weight 1 where it has none.
    Add,
}

/// How edges become an adjacency.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Only the direction that is given counts.
    pub directed: bool,
    /// Row and neighbour of each edge change places.
    pub transpose: bool,
    /// What becomes of self loops.
    pub self_loops: SelfLoops,
}

/// Adjacency in compressed rows. Row `r` belongs to the node with the r-th smallest original id; its neighbours ascend and hold no value twice. For
/// a directed graph row `a` holds `b` for each line "a b".
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// `nodes + 1` offsets into `neighbours`.
    pub starts: Vec<u64>,
    /// Rows of neighbours, one after another.
    pub neighbours: Vec<u32>,
    /// The weight of each entry of `neighbours`; none: every weight is 1.
    pub weights: Option<Vec<f32>>,
    /// Whether only the direction that was given counts.
    pub directed: bool,
    /// Distinct edges; an undirected edge counts once and has two entries in `neighbours`, a self loop one.
    pub edges: u64,
    /// Repetitions ("b a" repeats "a b" in an undirected graph): dropped, or with weights added up.
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

    /// The entries of `node` in `neighbours` and `weights`.
    pub fn entries(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    /// Builds the adjacency: renumbers, and sees to self loops and duplicates. `name` is for messages.
    pub fn build(raw: RawEdges, rules: Rules, name: &str) -> Result<Self, GraphError> {
        let RawEdges {
            mut pairs,
            weights,
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
        let added = if rules.self_loops == SelfLoops::Add {
            nodes
        } else {
            0
        };
        // Two lists of starts; an edge's key, its two entries and their weights.
        let an_edge = if weights.is_some() { 40 } else { 16 };
        room::check(
            nodes * 16 + (found + added) * an_edge,
            format!("{name}: a graph of {nodes} nodes and {found} edges"),
            "use a smaller graph, or a machine with more memory",
        )?;
        let spinner = progress::spinner("sorting");
        let merged = match weights {
            None => merge(pairs, nodes, rules),
            Some(weights) => merge_weighted(pairs, &weights, nodes, rules, name)?,
        };
        let graph = merged.adjacency(nodes as usize, rules.directed, found);
        spinner.finish_and_clear();
        Ok(graph)
    }

    /// The graph whose row `b` holds `a` where this one's row `a` holds `b`, with the weights of `weights` (one an entry).
    pub fn transposed(&self, weights: Option<&[f32]>) -> Self {
        let mut starts = vec![0u64; self.starts.len()];
        for &neighbour in &self.neighbours {
            starts[neighbour as usize + 1] += 1;
        }
        for row in 0..self.nodes() {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0u32; self.neighbours.len()];
        let mut moved = weights.map(|weights| vec![0f32; weights.len()]);
        for row in 0..self.nodes() {
            for entry in self.entries(row) {
                let target = &mut next[self.neighbours[entry] as usize];
                neighbours[*target as usize] = row as u32;
                if let (Some(moved), Some(weights)) = (&mut moved, weights) {
                    moved[*target as usize] = weights[entry];
                }
                *target += 1;
            }
        }
        Self {
            starts,
            neighbours,
            weights: moved,
            ..*self
        }
    }
}

/// Distinct edges in ascending order: row in the upper half of a key, neighbour in the lower; for undirected graphs the smaller of both is the row.
struct Merged {
    keys: Vec<u64>,
    weights: Option<Vec<f32>>,
    self_loops: u64,
    /// Edges that no input named.
    added: u64,
}

/// The key of an edge, and whether it names the larger node first.
fn key(pair: (u64, u64), rules: Rules) -> (u64, bool) {
    let (row, neighbour) = if rules.transpose {
        (pair.1, pair.0)
    } else {
        pair
    };
    if rules.directed || row <= neighbour {
        (row << 32 | neighbour, false)
    } else {
        (neighbour << 32 | row, true)
    }
}

fn is_loop(key: u64) -> bool {
    key >> 32 == u64::from(key as u32)
}

fn merge(pairs: Vec<(u64, u64)>, nodes: u64, rules: Rules) -> Merged {
    let found = pairs.len();
    let mut keys: Vec<u64> = Vec::with_capacity(found);
    for pair in pairs {
        let (key, _) = key(pair, rules);
        if rules.self_loops != SelfLoops::Drop || !is_loop(key) {
            keys.push(key);
        }
    }
    let self_loops = (found - keys.len()) as u64;
    keys.sort_unstable();
    keys.dedup();
    let mut added = 0;
    if rules.self_loops == SelfLoops::Add {
        let before = keys.len();
        keys.extend((0..nodes).map(|node| node << 32 | node));
        keys.sort_unstable();
        keys.dedup();
        added = (keys.len() - before) as u64;
    }
    Merged {
        keys,
        weights: None,
        self_loops,
        added,
    }
}

/// Repetitions in one direction add up, as in SciPy; both directions of an undirected edge must agree.
fn merge_weighted(
    pairs: Vec<(u64, u64)>,
    weights: &[f32],
    nodes: u64,
    rules: Rules,
    name: &str,
) -> Result<Merged, GraphError> {
    let found = pairs.len();
    let mut edges: Vec<(u64, bool, f32)> = Vec::with_capacity(found);
    for (pair, &weight) in pairs.into_iter().zip(weights) {
        let (key, back) = key(pair, rules);
        if rules.self_loops != SelfLoops::Drop || !is_loop(key) {
            edges.push((key, back, weight));
        }
    }
    let self_loops = (found - edges.len()) as u64;
    // Stable: what adds up does so in the order of the file.
    edges.sort_by_key(|&(key, back, _)| (key, back));
    let (mut keys, mut merged) = (Vec::new(), Vec::new());
    for same in edges.chunk_by(|left, right| left.0 == right.0) {
        let key = same[0].0;
        let split = same.partition_point(|&(_, back, _)| !back);
        let sum = |part: &[(u64, bool, f32)]| {
            (!part.is_empty()).then(|| {
                part.iter()
                    .map(|&(_, _, weight)| f64::from(weight))
                    .sum::<f64>() as f32
            })
        };
        let weight = match (sum(&same[..split]), sum(&same[split..])) {
            (Some(there), Some(back)) if there != back => {
                return Err(GraphError::TwoWeights {
                    path: name.to_owned(),
                    row: key >> 32,
                    neighbour: u64::from(key as u32),
                    there,
                    back,
                })
            }
            (Some(weight), _) | (None, Some(weight)) => weight,
            (None, None) => continue, // chunks are not empty
        };
        keys.push(key);
        merged.push(weight);
    }
    let mut added = 0;
    if rules.self_loops == SelfLoops::Add {
        let mut all: Vec<(u64, f32)> = keys.iter().copied().zip(merged).collect();
        let missing = (0..nodes)
            .map(|node| node << 32 | node)
            .filter(|key| keys.binary_search(key).is_err());
        all.extend(missing.map(|key| (key, 1.0)));
        added = (all.len() - keys.len()) as u64;
        all.sort_by_key(|&(key, _)| key);
        (keys, merged) = all.into_iter().unzip();
    }
    Ok(Merged {
        keys,
        weights: Some(merged),
        self_loops,
        added,
    })
}

impl Merged {
    fn adjacency(self, nodes: usize, directed: bool, found: u64) -> Graph {
        let both = |key: u64| !directed && !is_loop(key);
        let mut starts = vec![0u64; nodes + 1];
        for &key in &self.keys {
            starts[(key >> 32) as usize + 1] += 1;
            if both(key) {
                starts[(key as u32) as usize + 1] += 1;
            }
        }
        for row in 0..nodes {
            starts[row + 1] += starts[row];
        }
        let entries = starts[nodes] as usize;
        let mut neighbours = vec![0u32; entries];
        let mut weights = self.weights.as_ref().map(|_| vec![0f32; entries]);
        let mut next = starts.clone();
        let mut put = |row: usize, neighbour: u32, edge: usize| {
            let entry = next[row] as usize;
            next[row] += 1;
            neighbours[entry] = neighbour;
            if let (Some(weights), Some(merged)) = (&mut weights, &self.weights) {
                weights[entry] = merged[edge];
            }
        };
        // In key order a row first receives its smaller neighbours, ascending, then itself and its larger ones, ascending.
        for (edge, &key) in self.keys.iter().enumerate() {
            put((key >> 32) as usize, key as u32, edge);
            if both(key) {
                put((key as u32) as usize, (key >> 32) as u32, edge);
            }
        }
        let edges = self.keys.len() as u64;
        Graph {
            starts,
            neighbours,
            weights,
            directed,
            edges,
            duplicates: found + self.added - self.self_loops - edges,
            self_loops: self.self_loops,
        }
    }
}

/// What a file holds decides what its edges mean unless the user says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line an edge: undirected, without self loops.
    Text,
    /// Arrays, a matrix or an edge index: exactly the entries that are stored.
    Arrays,
}

/// Reads the edges of `path`, which is an edge list (also gzipped), a Matrix Market file, an .npz archive, an `edge_index` as .npy, or a folder of
/// arrays or of an OGB data set: what it begins with decides. `nodes`: the ids are exactly `0..nodes`.
pub fn read_edges(
    path: &Path,
    weights: &Weights<'_>,
    nodes: Option<u64>,
) -> Result<(RawEdges, Form), GraphError> {
    let name = path.display().to_string();
    if path.is_dir() {
        return read_folder(path, &name, weights, nodes);
    }
    let (reader, first) = open_text(path, &name)?;
    if first.starts_with(b"PK") {
        drop(reader);
        let store = Store::archive(path, &name)?;
        return Ok((arrays::read(store, &name, weights, nodes)?, Form::Arrays));
    }
    if first.starts_with(b"\x93NUMPY") {
        drop(reader);
        let store = Store::Single(path.to_owned(), "edge_index");
        return Ok((arrays::read(store, &name, weights, nodes)?, Form::Arrays));
    }
    let mut lines = Lines::new(reader, &name);
    let own = matches!(weights, Weights::Own);
    let mut raw = match lines.next_line()? {
        Some(first) if matrix_market::is_banner(first) => matrix_market::read(&mut lines, own)?,
        Some(_) => {
            lines.repeat_line();
            edge_list::read(&mut lines, own)?
        }
        None => RawEdges::default(),
    };
    if let Weights::File(file) = weights {
        raw.weights = Some(arrays::weights_of(file, raw.pairs.len())?);
    }
    if let Some(nodes) = nodes {
        arrays::within(&raw.pairs, nodes, &name)?;
        raw.declared_nodes = Some(nodes);
    }
    Ok((raw, Form::Text))
}

fn read_folder(
    path: &Path,
    name: &str,
    weights: &Weights<'_>,
    nodes: Option<u64>,
) -> Result<(RawEdges, Form), GraphError> {
    let has = |file: &str| path.join(file).is_file();
    if has("edge.csv.gz") || has("edge.csv") {
        return Ok((arrays::read_ogb(path, weights, nodes)?, Form::Arrays));
    }
    if has("indptr.npy") || has("edge_index.npy") {
        let store = Store::Folder(path.to_owned());
        return Ok((arrays::read(store, name, weights, nodes)?, Form::Arrays));
    }
    Err(GraphError::Io {
        path: name.to_owned(),
        source: std::io::Error::other(
            "is a folder without indptr.npy and indices.npy, edge_index.npy or edge.csv.gz",
        ),
    })
}

/// Reads a table of finite numbers, a line a row and commas between columns; `rows` is how many are expected, more are an error. Gives the values, row
/// by row, and the number of columns.
pub fn read_table(path: &Path, rows: usize) -> Result<(Vec<f32>, usize), GraphError> {
    let name = path.display().to_string();
    let mut lines = Lines::new(open_text(path, &name)?.0, &name);
    let (mut values, mut columns, mut found) = (Vec::new(), 0, 0usize);
    while let Some(line) = lines.next_line()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if found == rows {
            let expected = format!("the end of the file after {rows} rows, one for each node");
            return Err(lines.error_at(&expected, lines.current()));
        }
        let before = values.len();
        let mut wrong = None;
        for cell in line.split(|&byte| byte == b',') {
            match lines::finite(cell.trim_ascii()) {
                Some(value) => values.push(value),
                None => wrong = wrong.or(Some(cell.to_vec())),
            }
        }
        if let Some(cell) = wrong {
            return Err(lines.error_at("finite numbers with commas between them", &cell));
        }
        let width = values.len() - before;
        if found == 0 {
            columns = width;
            room::check(
                (rows as u64).saturating_mul(columns as u64 * 8),
                format!("{name}: its matrix"),
                "use fewer features a node, or a machine with more memory",
            )?;
        } else if width != columns {
            return Err(lines.error(&format!("{columns} columns"), &width.to_string()));
        }
        found += 1;
    }
    Ok((values, columns))
}

/// A file's text, unpacked when it is gzipped, with a progress bar; and the bytes that it begins with.
fn open_text(path: &Path, name: &str) -> Result<(Box<dyn BufRead>, Vec<u8>), GraphError> {
    let io = |source| GraphError::Io {
        path: name.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let bar = progress::bytes("reading", file.metadata().map_err(io)?.len());
    let mut reader = BufReader::with_capacity(1 << 20, Bar::new(file, bar));
    let first = reader.fill_buf().map_err(io)?;
    let first = first[..first.len().min(8)].to_vec();
    if first.starts_with(&[0x1f, 0x8b]) {
        let unpacked = BufReader::with_capacity(1 << 20, MultiGzDecoder::new(reader));
        return Ok((Box::new(unpacked), first));
    }
    Ok((Box::new(reader), first))
}

/// A file whose progress bar goes when it does.
struct Bar {
    file: indicatif::ProgressBarIter<File>,
}

impl Bar {
    fn new(file: File, bar: indicatif::ProgressBar) -> Self {
        Self {
            file: bar.wrap_read(file),
        }
    }
}

impl Read for Bar {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.file.progress.finish_and_clear();
    }
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
mod tests;
