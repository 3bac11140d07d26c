//! Graphs as arrays: SciPy's .npz (csr, csc, coo), `edge_index.npy` of PyG, `indptr.npy` and `indices.npy` of DGL, each alone, in an .npz archive or in
//! a folder; and a folder of OGB's node property data sets.
//!
//! A matrix is read as it stands: row `a` combines `b` for each stored entry (a, b). An edge index names sources, then targets; a target combines
//! its sources, so a target is a row. Nothing is executed and nothing unpickled.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use zip::result::ZipError;
use zip::ZipArchive;

use super::{edge_list, open_text, GraphError, Lines, RawEdges};
use crate::npy::{shape_text, Array};

/// What reads `--weights`.
pub enum Weights<'a> {
    /// Every weight is 1.
    Ones,
    /// What the graph's own file holds.
    Own,
    /// A .npy file with one number a stored edge.
    File(&'a Path),
}

/// Where arrays come from by name.
pub enum Store {
    /// Members of an archive.
    Archive(Box<ZipArchive<BufReader<File>>>),
    /// Files NAME.npy of a folder.
    Folder(PathBuf),
    /// One file, whose array has this name.
    Single(PathBuf, &'static str),
}

impl Store {
    /// Opens an archive.
    pub fn archive(path: &Path, name: &str) -> Result<Self, GraphError> {
        let file = File::open(path).map_err(|source| GraphError::Io {
            path: name.to_owned(),
            source,
        })?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            content(
                name,
                format!("is no .npz archive that can be read: {error}"),
            )
        })?;
        Ok(Self::Archive(Box::new(archive)))
    }

    /// The array `key`, if there is one.
    fn get(&mut self, name: &str, key: &str) -> Result<Option<Array>, GraphError> {
        let (label, array) = match self {
            Self::Archive(archive) => {
                let label = format!("{name}: {key}");
                match archive.by_name(&format!("{key}.npy")) {
                    Ok(mut member) => (label, Array::read(&mut member)),
                    Err(ZipError::FileNotFound) => return Ok(None),
                    Err(error) => (label, Err(format!("cannot be read: {error}"))),
                }
            }
            Self::Folder(folder) => {
                let path = folder.join(format!("{key}.npy"));
                if !path.exists() {
                    return Ok(None);
                }
                (path.display().to_string(), read_file(&path)?)
            }
            Self::Single(path, only) if *only == key => {
                (path.display().to_string(), read_file(path)?)
            }
            Self::Single(..) => return Ok(None),
        };
        array.map(Some).map_err(|problem| content(&label, problem))
    }
}

/// The array of a file; a file that cannot be opened is an error of its own.
fn read_file(path: &Path) -> Result<Result<Array, String>, GraphError> {
    let file = File::open(path).map_err(|source| GraphError::Io {
        path: path.display().to_string(),
        source,
    })?;
    Ok(Array::read(&mut BufReader::new(file)))
}

/// Makes errors of what is wrong in an array or a file.
fn content(path: &str, problem: impl Into<String>) -> GraphError {
    GraphError::Content {
        path: path.to_owned(),
        problem: problem.into(),
    }
}

/// A vector of node numbers or offsets below `end`.
fn numbers(
    array: &Array,
    name: &str,
    key: &str,
    end: u64,
    what: &str,
) -> Result<Vec<u64>, GraphError> {
    if array.shape.len() != 1 {
        let found = shape_text(&array.shape);
        return Err(content(
            name,
            format!("{key} has shape {found}; expected one dimension"),
        ));
    }
    array
        .indices(end, what)
        .map_err(|problem| content(name, format!("{key}: {problem}")))
}

/// Reads the graph of `store`; `nodes` is what `--nodes` says.
pub fn read(
    mut store: Store,
    name: &str,
    weights: &Weights<'_>,
    nodes: Option<u64>,
) -> Result<RawEdges, GraphError> {
    let format = match store.get(name, "format")? {
        Some(array) => array.text(),
        None => None,
    };
    if let Some(format) = format
        .as_deref()
        .filter(|format| !matches!(*format, "csr" | "csc" | "coo"))
    {
        let problem = format!("is a sparse matrix of format {format:?}; expected csr, csc or coo (matrix.tocsr() makes it)");
        return Err(content(name, problem));
    }
    let shape = match store.get(name, "shape")? {
        Some(array) => Some(square(
            &numbers(&array, name, "shape", u64::MAX, "extents")?,
            name,
        )?),
        None => None,
    };
    if let (Some(shape), Some(nodes)) = (shape, nodes) {
        if shape != nodes {
            let problem = format!("is a matrix of {shape} rows, and --nodes says {nodes}");
            return Err(content(name, problem));
        }
    }
    let declared = shape.or(nodes);
    let (pairs, declared_nodes) = if let Some(indptr) = store.get(name, "indptr")? {
        let indices = required(&mut store, name, "indices")?;
        compressed(
            &indptr,
            &indices,
            declared,
            format.as_deref() == Some("csc"),
            name,
        )?
    } else if let Some(index) = store.get(name, "edge_index")? {
        edge_index(&index, declared, name)?
    } else if let Some(row) = store.get(name, "row")? {
        let Some(nodes) = declared else {
            return Err(content(name, "has row and col but no shape"));
        };
        let row = numbers(&row, name, "row", nodes, "rows")?;
        let col = required(&mut store, name, "col")?;
        let col = numbers(&col, name, "col", nodes, "columns")?;
        if row.len() != col.len() {
            let problem = format!(
                "has {} rows and {} columns of entries",
                row.len(),
                col.len()
            );
            return Err(content(name, problem));
        }
        (row.into_iter().zip(col).collect(), nodes)
    } else {
        return Err(content(
            name,
            "holds no graph; expected indptr and indices (csr, csc), row, col and shape (coo), or edge_index",
        ));
    };
    let weights = match weights {
        Weights::Ones => None,
        Weights::File(path) => Some(weights_of(path, pairs.len())?),
        Weights::Own => {
            let mut own = None;
            for key in ["data", "weights", "edge_weight"] {
                if own.is_none() {
                    own = store.get(name, key)?;
                }
            }
            let Some(own) = own else {
                return Err(content(
                    name,
                    "has no weights (data, weights or edge_weight); leave --weights out, or name their file: --weights=FILE.npy",
                ));
            };
            Some(weight_values(&own, name, pairs.len())?)
        }
    };
    Ok(RawEdges {
        pairs,
        weights,
        declared_nodes: Some(declared_nodes),
    })
}

fn required(store: &mut Store, name: &str, key: &str) -> Result<Array, GraphError> {
    store
        .get(name, key)?
        .ok_or_else(|| content(name, format!("has no {key}")))
}

fn square(shape: &[u64], name: &str) -> Result<u64, GraphError> {
    match *shape {
        [rows, columns] if rows == columns => Ok(rows),
        _ => Err(content(
            name,
            format!(
                "is a matrix of shape {}; expected a square one",
                shape_text(shape)
            ),
        )),
    }
}

type Edges = (Vec<(u64, u64)>, u64);

/// Compressed rows; compressed columns when `columns`.
fn compressed(
    indptr: &Array,
    indices: &Array,
    declared: Option<u64>,
    columns: bool,
    name: &str,
) -> Result<Edges, GraphError> {
    let nodes = match declared {
        Some(nodes) => nodes,
        None => (indptr.len() as u64).saturating_sub(1),
    };
    let starts = numbers(indptr, name, "indptr", u64::MAX >> 1, "offsets")?;
    if starts.len() as u64 != nodes + 1 {
        let problem = format!(
            "indptr has {} elements; expected one more than the {nodes} rows",
            starts.len()
        );
        return Err(content(name, problem));
    }
    let indices = numbers(indices, name, "indices", nodes, "node numbers")?;
    let mut pairs = Vec::with_capacity(indices.len());
    let mut end = 0u64;
    for (row, bounds) in starts.windows(2).enumerate() {
        if bounds[0] != end || bounds[1] < bounds[0] || bounds[1] > indices.len() as u64 {
            let problem = format!(
                "indptr is wrong at row {row} ({} to {}): it begins at 0, never falls, and ends at the {} indices",
                bounds[0],
                bounds[1],
                indices.len()
            );
            return Err(content(name, problem));
        }
        end = bounds[1];
        let entries = &indices[bounds[0] as usize..bounds[1] as usize];
        pairs.extend(entries.iter().map(|&other| match columns {
            false => (row as u64, other),
            true => (other, row as u64),
        }));
    }
    if pairs.len() != indices.len() {
        let problem = format!(
            "indptr ends at {end}, and there are {} indices",
            indices.len()
        );
        return Err(content(name, problem));
    }
    Ok((pairs, nodes))
}

/// Sources, then targets; nodes are counted from 0 to the largest that is named, unless `declared` says.
fn edge_index(index: &Array, declared: Option<u64>, name: &str) -> Result<Edges, GraphError> {
    let &[2, edges] = &index.shape[..] else {
        let problem = format!(
            "edge_index has shape {}; expected (2, edges): sources, then targets",
            shape_text(&index.shape)
        );
        return Err(content(name, problem));
    };
    let end = declared.unwrap_or(u64::from(u32::MAX));
    let ids = index
        .indices(end, "node numbers")
        .map_err(|problem| content(name, format!("edge_index: {problem}")))?;
    let pairs: Vec<(u64, u64)> = if index.fortran {
        ids.chunks_exact(2).map(|pair| (pair[1], pair[0])).collect()
    } else {
        let (sources, targets) = ids.split_at(edges as usize);
        targets
            .iter()
            .copied()
            .zip(sources.iter().copied())
            .collect()
    };
    let named = ids.iter().max().map_or(0, |largest| largest + 1);
    Ok((pairs, declared.unwrap_or(named)))
}

/// The weights of a .npy file, one for each of `edges`.
pub fn weights_of(path: &Path, edges: usize) -> Result<Vec<f32>, GraphError> {
    let name = path.display().to_string();
    let array = read_file(path)?.map_err(|problem| content(&name, problem))?;
    weight_values(&array, &name, edges)
}

fn weight_values(array: &Array, name: &str, edges: usize) -> Result<Vec<f32>, GraphError> {
    if array.len() != edges {
        let found = shape_text(&array.shape);
        return Err(content(
            name,
            format!("weights of shape {found} for {edges} stored edges; expected one each"),
        ));
    }
    array
        .floats("weights")
        .map_err(|problem| content(name, problem))
}

/// The raw folder of one of OGB's node property data sets: `edge.csv.gz` (source,target a line) and `num-node-list.csv.gz`.
pub fn read_ogb(
    folder: &Path,
    weights: &Weights<'_>,
    asked: Option<u64>,
) -> Result<RawEdges, GraphError> {
    let file = |stem: &str| {
        let packed = folder.join(format!("{stem}.csv.gz"));
        if packed.exists() {
            packed
        } else {
            folder.join(format!("{stem}.csv"))
        }
    };
    let counts = file("num-node-list");
    let name = counts.display().to_string();
    let mut lines = Lines::new(open_text(&counts, &name)?.0, &name);
    let mut found = Vec::new();
    while let Some(line) = lines.next_line()? {
        let text = line.trim_ascii();
        if !text.is_empty() {
            found.push(super::lines::number(text));
        }
        if found.len() > 1 {
            break;
        }
    }
    let &[Some(nodes)] = &found[..] else {
        return Err(content(
            &name,
            "expected one line with the number of nodes: data sets of one graph are read",
        ));
    };
    if let Some(asked) = asked.filter(|&asked| asked != nodes) {
        return Err(content(
            &name,
            format!("says {nodes} nodes, and --nodes says {asked}"),
        ));
    }
    let edges = file("edge");
    let name = edges.display().to_string();
    let mut lines = Lines::new(open_text(&edges, &name)?.0, &name);
    let mut raw = edge_list::read(&mut lines, false)?;
    within(&raw.pairs, nodes, &name)?;
    raw.declared_nodes = Some(nodes);
    // A target combines its sources.
    for pair in &mut raw.pairs {
        *pair = (pair.1, pair.0);
    }
    raw.weights = match weights {
        Weights::Ones => None,
        Weights::File(path) => Some(weights_of(path, raw.pairs.len())?),
        Weights::Own => {
            let problem = "this layout has no weights; name their file: --weights=FILE.npy";
            return Err(content(&folder.display().to_string(), problem));
        }
    };
    Ok(raw)
}

/// Whether all ids are below `nodes`.
pub fn within(pairs: &[(u64, u64)], nodes: u64, name: &str) -> Result<(), GraphError> {
    match pairs.iter().position(|&(a, b)| a >= nodes || b >= nodes) {
        None => Ok(()),
        Some(edge) => Err(content(
            name,
            format!(
                "edge {edge} is {} {}; node numbers go from 0 to {}",
                pairs[edge].0,
                pairs[edge].1,
                nodes.saturating_sub(1)
            ),
        )),
    }
}
