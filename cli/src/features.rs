//! Feature matrices, one row a node: reading .npy files, generating, and writing results. Rows are kept as the little-endian bytes that kernels read.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use half::f16;
use npyz::{DType, NpyHeader, Order, WriterBuilder};
use thiserror::Error;

use crate::graph::{self, GraphError};
use crate::npy::{excerpt, header_bytes, overflowing_shape, shape_text};
use crate::progress;
use crate::random;
use crate::room::{self, NoRoom};

/// What to do about features that do not fit.
const FEWER: &str = "use fewer features a node, or a machine with more memory";

/// How a feature is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[repr(u32)]
pub enum Dtype {
    /// 32-bit IEEE.
    F32 = 0,
    /// 16-bit IEEE; summed in f32.
    F16 = 1,
}

impl Dtype {
    /// Bytes of one feature.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }

    /// As options and numpy spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        }
    }
}

/// What can be wrong with a feature file.
#[derive(Debug, Error)]
pub enum FeatureError {
    /// The file cannot be opened, read or written, or is no .npy file.
    #[error("{path}: {source}")]
    Io {
        /// The file as the user named it.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Something else than a matrix of f32 or f16 in C order.
    #[error("{path}: holds {found}; expected {expected}")]
    Kind {
        /// The file as the user named it.
        path: String,
        /// What the header says.
        found: String,
        /// What is needed.
        expected: String,
    },
    /// A table of text is not what it should be.
    #[error(transparent)]
    Table(#[from] GraphError),
    /// More memory than there is.
    #[error(transparent)]
    Room(#[from] NoRoom),
    /// The wrong number of rows or columns.
    #[error("{path}: has shape {found}; expected {expected}")]
    Shape {
        /// The file as the user named it.
        path: String,
        /// Shape in the header.
        found: String,
        /// Shape that fits the graph and the options.
        expected: String,
    },
}

/// A matrix of features in C order.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Columns.
    pub dim: usize,
    /// Type of an element.
    pub dtype: Dtype,
    /// Rows one after another, little-endian.
    pub bytes: Vec<u8>,
}

impl Features {
    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.dim * self.dtype.bytes()
    }

    /// The bytes of one row.
    pub fn row(&self, node: usize) -> &[u8] {
        let row = self.row_bytes();
        &self.bytes[node * row..(node + 1) * row]
    }

    /// The same in f32.
    ///
    /// # Errors
    /// More than this machine's memory holds.
    pub fn widened(self) -> Result<Self, NoRoom> {
        if self.dtype == Dtype::F32 {
            return Ok(self);
        }
        let elements = self.bytes.len() / self.dtype.bytes();
        room::check(elements as u64 * 4, "features in f32", FEWER)?;
        let bytes = (0..elements)
            .flat_map(|at| (Self::value(&self.bytes, self.dtype, at) as f32).to_le_bytes())
            .collect();
        Ok(Self {
            dim: self.dim,
            dtype: Dtype::F32,
            bytes,
        })
    }

    /// Row and column of the first value that does not fit.
    pub fn first_unfit(&self, fits: impl Fn(f64) -> bool) -> Option<(usize, usize)> {
        let at = self
            .bytes
            .chunks_exact(self.dtype.bytes())
            .position(|value| !fits(Self::value(value, self.dtype, 0)))?;
        Some((at / self.dim, at % self.dim))
    }

    /// One feature in f64.
    pub fn value(row: &[u8], dtype: Dtype, column: usize) -> f64 {
        match dtype {
            Dtype::F32 => f64::from(f32::from_le_bytes([
                row[4 * column],
                row[4 * column + 1],
                row[4 * column + 2],
                row[4 * column + 3],
            ])),
            Dtype::F16 => f64::from(f16::from_le_bytes([row[2 * column], row[2 * column + 1]])),
        }
    }

    fn read_csv(
        path: &Path,
        name: String,
        nodes: usize,
        dim: Option<usize>,
    ) -> Result<Self, FeatureError> {
        let (values, columns) = graph::read_table(path, nodes)?;
        if values.len() != nodes * columns || dim.is_some_and(|dim| dim != columns) {
            let rows = values.len().checked_div(columns).unwrap_or(0);
            let expected = dim.map_or("columns".to_owned(), |dim| dim.to_string());
            return Err(FeatureError::Shape {
                path: name,
                found: shape_text(&[rows as u64, columns as u64]),
                expected: format!("({nodes}, {expected}): one row for each node of the graph"),
            });
        }
        Ok(Self {
            dim: columns,
            dtype: Dtype::F32,
            bytes: values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        })
    }

    /// Features in [-1, 1) that depend on the seed and on the position only.
    ///
    /// # Errors
    /// More than this machine's memory holds.
    pub fn generate(nodes: usize, dim: usize, dtype: Dtype, seed: u64) -> Result<Self, NoRoom> {
        let size = (nodes as u64).saturating_mul((dim * dtype.bytes()) as u64);
        room::check(
            size,
            format!("{dim} features for each of {nodes} nodes"),
            FEWER,
        )?;
        let bar = progress::count("features", nodes as u64);
        let base = random::mix(seed);
        let mut bytes = Vec::with_capacity(nodes * dim * dtype.bytes());
        for node in 0..nodes {
            for column in 0..dim {
                let value = random::unit(random::mix(base ^ (node * dim + column) as u64));
                match dtype {
                    Dtype::F32 => bytes.extend_from_slice(&value.to_le_bytes()),
                    Dtype::F16 => bytes.extend_from_slice(&f16::from_f32(value).to_le_bytes()),
                }
            }
            if node % 4096 == 0 {
                bar.set_position(node as u64);
            }
        }
        bar.finish_and_clear();
        Ok(Self { dim, dtype, bytes })
    }

    /// Reads a matrix with one row for each of `nodes`; `dim`, when given, must be its number of columns. A file named .csv or .csv.gz has a line a
    /// row, all others are .npy.
    pub fn read(path: &Path, nodes: usize, dim: Option<usize>) -> Result<Self, FeatureError> {
        let name = path.display().to_string();
        if name.ends_with(".csv") || name.ends_with(".csv.gz") {
            return Self::read_csv(path, name, nodes, dim);
        }
        let io = |source| FeatureError::Io {
            path: name.clone(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let bar = progress::bytes("features", length);
        let mut reader = BufReader::new(bar.wrap_read(file));
        let unreadable = |source: std::io::Error| FeatureError::Io {
            path: name.clone(),
            source: std::io::Error::new(
                source.kind(),
                format!("is no .npy file that can be read: {}", excerpt(&source)),
            ),
        };
        let header = header_bytes(&mut reader).map_err(unreadable)?;
        // npyz multiplies the extents without a check.
        if let Some(found) = overflowing_shape(&header) {
            return Err(FeatureError::Shape {
                path: name,
                found,
                expected: format!("no more than the file's {length} bytes can hold"),
            });
        }
        let header = NpyHeader::from_reader(&header[..]).map_err(unreadable)?;
        let (dtype, swapped) = element(&header.dtype()).ok_or_else(|| FeatureError::Kind {
            path: name.clone(),
            found: format!("elements of type {}", header.dtype().descr()),
            expected: "float32 ('<f4') or float16 ('<f2')".to_owned(),
        })?;
        let shape = header.shape().to_vec();
        let wrong_shape = |expected: String| FeatureError::Shape {
            path: name.clone(),
            found: shape_text(&shape),
            expected,
        };
        let columns = dim.map_or("columns".to_owned(), |dim| dim.to_string());
        let fitting = format!("({nodes}, {columns}): one row for each node of the graph");
        let [rows, found_dim] = shape[..] else {
            return Err(wrong_shape(fitting));
        };
        if rows != nodes as u64 || found_dim == 0 || dim.is_some_and(|dim| dim as u64 != found_dim)
        {
            return Err(wrong_shape(fitting));
        }
        if header.order() != Order::C && nodes > 1 && found_dim > 1 {
            let expected = "C order (numpy.ascontiguousarray makes it)".to_owned();
            return Err(FeatureError::Kind {
                path: name.clone(),
                found: "a matrix in Fortran order".to_owned(),
                expected,
            });
        }
        let size = found_dim
            .checked_mul(rows)
            .and_then(|elements| elements.checked_mul(dtype.bytes() as u64));
        let Some(size) = size.filter(|&size| size <= length) else {
            return Err(wrong_shape(format!(
                "no more than the file's {length} bytes can hold"
            )));
        };
        room::check(size, format!("{name}: its matrix"), FEWER)?;
        let mut bytes = vec![0; size as usize];
        reader
            .read_exact(&mut bytes)
            .map_err(|source| FeatureError::Io {
                path: name.clone(),
                source: std::io::Error::new(
                    source.kind(),
                    format!(
                        "ends before the {size} bytes of its shape {}",
                        shape_text(&shape)
                    ),
                ),
            })?;
        if swapped {
            bytes
                .chunks_exact_mut(dtype.bytes())
                .for_each(<[u8]>::reverse);
        }
        bar.finish_and_clear();
        Ok(Self {
            dim: found_dim as usize,
            dtype,
            bytes,
        })
    }
}

/// Type and whether bytes are in big-endian order; `None` for other types.
fn element(dtype: &DType) -> Option<(Dtype, bool)> {
    let DType::Plain(kind) = dtype else {
        return None;
    };
    match kind.to_string().trim_matches('\'') {
        "<f4" => Some((Dtype::F32, false)),
        "<f2" => Some((Dtype::F16, false)),
        ">f4" => Some((Dtype::F32, true)),
        ">f2" => Some((Dtype::F16, true)),
        _ => None,
    }
}

/// Writes a matrix of f32 in C order as .npy.
pub fn write(path: &Path, values: &[f32], dim: usize) -> Result<(), FeatureError> {
    let io = |source| FeatureError::Io {
        path: path.display().to_string(),
        source,
    };
    let mut file = BufWriter::new(File::create(path).map_err(io)?);
    let shape = [(values.len() / dim) as u64, dim as u64];
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&shape)
        .writer(&mut file)
        .begin_nd()
        .map_err(io)?;
    writer.extend(values.iter().copied()).map_err(io)?;
    writer.finish().map_err(io)?;
    file.flush().map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> tempfile::NamedTempFile {
        let order = if fortran { "True" } else { "False" };
        let mut header =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut file = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
        file.write_all(b"\x93NUMPY\x01\x00").unwrap();
        file.write_all(&(header.len() as u16).to_le_bytes())
            .unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.write_all(data).unwrap();
        file
    }

    fn refusal(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> String {
        let file = npy(descr, fortran, shape, data);
        let text = Features::read(file.path(), 2, None)
            .unwrap_err()
            .to_string();
        text[text.rfind(".npy: ").unwrap_or(0)..].to_owned()
    }

    #[test]
    fn f32_and_f16_matrices_of_either_byte_order_are_read() {
        let values = [1.0f32, -2.5, 0.25, 8.0];
        let little: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let big: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect();
        let half: Vec<u8> = values
            .iter()
            .flat_map(|value| f16::from_f32(*value).to_le_bytes())
            .collect();
        for (descr, data) in [("<f4", &little), (">f4", &big), ("<f2", &half)] {
            let file = npy(descr, false, "(2, 2)", data);
            let features = Features::read(file.path(), 2, Some(2)).unwrap();
            let found: Vec<f64> = (0..2)
                .flat_map(|node| (0..2).map(move |column| (node, column)))
                .map(|(node, column)| Features::value(features.row(node), features.dtype, column))
                .collect();
            assert_eq!(found, [1.0, -2.5, 0.25, 8.0], "{descr}");
        }
    }

    #[test]
    fn files_that_do_not_fit_are_refused_in_words() {
        let data = [0u8; 64];
        assert!(refusal("<f4", false, "(3, 4)", &data)
            .contains("has shape (3, 4); expected (2, columns): one row for each node"));
        assert!(
            refusal("<f4", false, "(8,)", &data).contains("has shape (8,); expected (2, columns)")
        );
        assert!(refusal("<f4", false, "(2, 0)", &data).contains("has shape (2, 0)"));
        assert!(refusal("<f8", false, "(2, 4)", &data)
            .contains("elements of type '<f8'; expected float32"));
        assert!(refusal("<f4", true, "(2, 4)", &data).contains("Fortran order"));
        assert!(refusal("<f4", false, "(2, 1000)", &data).contains("can hold"));
        for shape in [
            "(2, 18446744073709551615)",
            "(2, 9223372036854775808)",
            "(2, 99999999999999999999)",
        ] {
            let text = refusal("<f4", false, shape, &data);
            assert!(
                text.contains(&format!("has shape {shape}")) && text.contains("can hold"),
                "{text}"
            );
        }
        let text = refusal("<f4", false, &"(".repeat(20_000), &data);
        assert!(text.contains("at most 10000"), "{text}");
        let text = refusal("<f4", false, &"(".repeat(5_000), &data);
        assert!(text.len() < 300, "{text}");
        let file = npy("<f4", false, "(2, 4)", &data);
        assert!(Features::read(file.path(), 2, Some(5))
            .unwrap_err()
            .to_string()
            .contains("expected (2, 5)"));
    }

    #[test]
    fn a_file_that_is_no_npy_is_named() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0 1\n1 2\n").unwrap();
        let text = Features::read(file.path(), 2, None)
            .unwrap_err()
            .to_string();
        assert!(text.contains("is no .npy file"), "{text}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3).unwrap();
        let features = Features::read(file.path(), 2, Some(3)).unwrap();
        assert_eq!(Features::value(features.row(1), Dtype::F32, 2), 6.0);
    }

    #[test]
    fn generated_features_depend_on_seed_and_position_only() {
        let generate = |dtype, seed| Features::generate(3, 5, dtype, seed).unwrap();
        let first = generate(Dtype::F32, 9);
        assert_eq!(first, generate(Dtype::F32, 9));
        assert_ne!(first, generate(Dtype::F32, 10));
        let half = generate(Dtype::F16, 9);
        assert_eq!(half.bytes.len(), 30);
        assert!(
            (Features::value(first.row(2), Dtype::F32, 4)
                - Features::value(half.row(2), Dtype::F16, 4))
            .abs()
                < 1e-3
        );
    }
}
