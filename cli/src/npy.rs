//! .npy arrays of any plain type, from a file or from a member of an .npz archive: header, bytes, and the conversions that graphs need.
//!
//! It knows neither features nor graphs; both readers sit on it. Sizes are checked before memory is taken.

use std::io::{Error, ErrorKind, Read};

use half::f16;
use npyz::{DType, NpyHeader, Order, TypeChar};

use crate::room;

/// Longest .npy header that is read; numpy writes 128 bytes for a matrix.
const LONGEST_HEADER: usize = 10_000; // bytes
/// Longest excerpt of a parser's words in a message.
const LONGEST_EXCERPT: usize = 160; // characters

/// An array in memory.
#[derive(Debug)]
pub struct Array {
    /// Extents.
    pub shape: Vec<u64>,
    /// Whether the first index varies fastest.
    pub fortran: bool,
    kind: Kind,
    /// The type as numpy writes it.
    descr: String,
    /// Bytes of an element.
    size: usize,
    /// Elements one after another, little-endian.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Text,
    Unicode,
    Other,
}

impl Array {
    /// Reads an array; what is wrong comes as text without the file's name.
    pub fn read(reader: &mut impl Read) -> Result<Self, String> {
        let header = header_bytes(reader)
            .map_err(|error| format!("is no .npy array that can be read: {}", excerpt(&error)))?;
        if let Some(found) = overflowing_shape(&header) {
            return Err(format!("has shape {found}, more than any memory holds"));
        }
        let header = NpyHeader::from_reader(&header[..])
            .map_err(|error| format!("is no .npy array that can be read: {}", excerpt(&error)))?;
        let descr = header.dtype().descr();
        let DType::Plain(plain) = header.dtype() else {
            return Err(format!("holds records of type {descr}; expected numbers"));
        };
        let kind = match plain.type_char() {
            TypeChar::Float => Kind::Float,
            TypeChar::Int => Kind::Signed,
            TypeChar::Uint | TypeChar::Bool => Kind::Unsigned,
            TypeChar::ByteStr => Kind::Text,
            TypeChar::UnicodeStr => Kind::Unicode,
            _ => Kind::Other,
        };
        let unit = if kind == Kind::Unicode { 4 } else { 1 };
        let size = plain.size_field() as usize * unit;
        let shape = header.shape().to_vec();
        let total = shape
            .iter()
            .try_fold(size as u64, |total, &extent| total.checked_mul(extent))
            .ok_or_else(|| {
                format!(
                    "has shape {}, more than any memory holds",
                    shape_text(&shape)
                )
            })?;
        // The bytes, and the numbers that are made of them.
        room::check(
            total.saturating_mul(3),
            format!("an array of shape {}", shape_text(&shape)),
            "use a machine with more memory",
        )
        .map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        reader
            .take(total)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot be read: {}", excerpt(&error)))?;
        if bytes.len() as u64 != total {
            return Err(format!(
                "ends after {} of the {total} bytes of its shape {}",
                bytes.len(),
                shape_text(&shape)
            ));
        }
        if plain.to_string().trim_matches('\'').starts_with('>') && size > 0 {
            let width = if kind == Kind::Unicode { 4 } else { size };
            if kind != Kind::Text {
                bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
            }
        }
        Ok(Self {
            shape,
            fortran: header.order() != Order::C,
            kind,
            descr,
            size,
            bytes,
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    /// Whole numbers that are not negative and below `end`, in the order of memory; `what` says what they are.
    pub fn indices(&self, end: u64, what: &str) -> Result<Vec<u64>, String> {
        let signed = match self.kind {
            Kind::Signed => true,
            Kind::Unsigned => false,
            _ => return Err(format!("holds {}; expected {what} as integers", self.descr)),
        };
        let mut values = Vec::with_capacity(self.len());
        for (at, element) in self.bytes.chunks_exact(self.size.max(1)).enumerate() {
            let mut wide = [0u8; 8];
            if element.len() > wide.len() {
                return Err(format!("holds {}; expected {what} as integers", self.descr));
            }
            if signed && element.last().is_some_and(|&top| top >= 0x80) {
                wide = [0xff; 8];
            }
            wide[..element.len()].copy_from_slice(element);
            let value = u64::from_le_bytes(wide);
            if value >= end {
                let shown = if signed {
                    (value as i64).to_string()
                } else {
                    value.to_string()
                };
                return Err(format!(
                    "element {at} is {shown}; {what} go from 0 to {}",
                    end.saturating_sub(1)
                ));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Finite numbers as f32, in the order of memory.
    pub fn floats(&self, what: &str) -> Result<Vec<f32>, String> {
        let unfit = || format!("holds {}; expected {what} as numbers", self.descr);
        let mut values = Vec::with_capacity(self.len());
        for (at, element) in self.bytes.chunks_exact(self.size.max(1)).enumerate() {
            let mut wide = [0u8; 8];
            if element.len() > wide.len() {
                return Err(unfit());
            }
            if self.kind == Kind::Signed && element.last().is_some_and(|&top| top >= 0x80) {
                wide = [0xff; 8];
            }
            wide[..element.len()].copy_from_slice(element);
            let bits = u64::from_le_bytes(wide);
            let value = match (self.kind, self.size) {
                (Kind::Float, 2) => f16::from_bits(bits as u16).to_f32(),
                (Kind::Float, 4) => f32::from_bits(bits as u32),
                (Kind::Float, 8) => f64::from_bits(bits) as f32,
                (Kind::Signed, 1..=8) => bits as i64 as f32,
                (Kind::Unsigned, 1..=8) => bits as f32,
                _ => return Err(unfit()),
            };
            if !value.is_finite() {
                return Err(format!(
                    "element {at} is {value}; {what} are finite numbers (of f32's range)"
                ));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// The text of an array of one string.
    pub fn text(&self) -> Option<String> {
        let text: String = match self.kind {
            Kind::Text => String::from_utf8_lossy(&self.bytes).into_owned(),
            Kind::Unicode => self
                .bytes
                .chunks_exact(4)
                .filter_map(|code| {
                    char::from_u32(u32::from_le_bytes([code[0], code[1], code[2], code[3]]))
                })
                .collect(),
            _ => return None,
        };
        Some(text.trim_end_matches('\0').to_owned())
    }
}

/// Magic, version, length and text of the header.
pub fn header_bytes(reader: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut header = vec![0; 10];
    reader.read_exact(&mut header[..8])?;
    // Version 1 has a length of 2 bytes, later ones of 4.
    let length_bytes = if header[6] <= 1 { 2 } else { 4 };
    header.resize(8 + length_bytes, 0);
    reader.read_exact(&mut header[8..])?;
    let length = header[8..]
        .iter()
        .rev()
        .fold(0usize, |length, &byte| length << 8 | usize::from(byte));
    if !header.starts_with(b"\x93NUMPY") {
        return Ok(header); // npyz says what is wrong with it
    }
    if length > LONGEST_HEADER {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("its header claims {length} bytes; at most {LONGEST_HEADER} are read"),
        ));
    }
    let start = header.len();
    header.resize(start + length, 0);
    reader.read_exact(&mut header[start..])?;
    Ok(header)
}

/// The first tuple of numbers in the header whose product is above 2^63.
pub fn overflowing_shape(header: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(header);
    text.split('(')
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(tuple, _)| tuple)
        .find(|tuple| {
            let product = tuple
                .split(',')
                .map(|extent| extent.trim().trim_end_matches('L'))
                .filter(|extent| {
                    !extent.is_empty() && extent.bytes().all(|byte| byte.is_ascii_digit())
                })
                .try_fold(1u64, |product, extent| {
                    product.checked_mul(extent.parse().ok()?)
                });
            product.is_none_or(|product| product > 1 << 63)
        })
        .map(|tuple| format!("({tuple})"))
}

/// The beginning of an error's text, on one line.
pub fn excerpt(error: &Error) -> String {
    let text = error
        .to_string()
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ");
    match text.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A shape as numpy prints it.
pub fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!(
            "({})",
            shape
                .iter()
                .map(u64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}
