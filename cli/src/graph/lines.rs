//! Lines of a text file with their numbers, as bytes, without a copy where the buffer holds the whole line. The readers of graph formats sit on it.

use std::io::BufRead;

use super::GraphError;

/// Longest line that is read; a longer one means that the file is no text.
const LONGEST_LINE: usize = 1 << 20; // bytes
/// How much of a wrong line a message shows.
const SHOWN: usize = 60; // characters

/// Splits a reader into lines and makes errors that name file and line.
pub struct Lines<'a, R> {
    reader: R,
    name: &'a str,
    line: Vec<u8>,
    number: u64,
    repeat: bool,
}

impl<'a, R: BufRead> Lines<'a, R> {
    /// Lines of `reader`; `name` is the file's name in messages.
    pub fn new(reader: R, name: &'a str) -> Self {
        Self {
            reader,
            name,
            line: Vec::new(),
            number: 0,
            repeat: false,
        }
    }

    /// The next line without its end; `None` at the end of the file.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, GraphError> {
        if std::mem::take(&mut self.repeat) {
            return Ok(Some(&self.line));
        }
        self.line.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let read = std::io::Read::take(&mut self.reader, limit).read_until(b'\n', &mut self.line);
        let read = read.map_err(|source| GraphError::Io {
            path: self.name.to_owned(),
            source,
        })?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > LONGEST_LINE {
            return Err(self.error("lines of text below 1 MiB", "a longer one"));
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3); // a byte order mark
        }
        Ok(Some(&self.line))
    }

    /// Makes `next_line` return the current line once more.
    pub fn repeat_line(&mut self) {
        self.repeat = true;
    }

    /// The current line.
    pub fn current(&self) -> &[u8] {
        &self.line
    }

    /// An error at the current line.
    pub fn error(&self, expected: &str, found: &str) -> GraphError {
        GraphError::Line {
            path: self.name.to_owned(),
            line: self.number,
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }

    /// An error at the current line that quotes `text`.
    pub fn error_at(&self, expected: &str, text: &[u8]) -> GraphError {
        self.error(expected, &quote(text))
    }

    /// The error for a token that [`number`] refused.
    pub fn number_error(&self, token: &[u8]) -> GraphError {
        let digits = !token.is_empty() && token.iter().all(u8::is_ascii_digit);
        let expected = if digits {
            "a node id (a whole number from 0 up) below 2^64"
        } else {
            "a node id (a whole number from 0 up)"
        };
        self.error_at(expected, token)
    }
}

/// `text` in quotes, control characters escaped, shortened when long.
pub fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}

/// Splits the first token off: what stands before the next blank, tab or comma.
pub fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|&byte| matches!(byte, b' ' | b'\t' | b','))
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Drops blanks and tabs in front.
pub fn skip_blanks(text: &[u8]) -> &[u8] {
    let start = text
        .iter()
        .position(|&byte| !matches!(byte, b' ' | b'\t'))
        .unwrap_or(text.len());
    &text[start..]
}

/// A finite number of f32's range.
pub fn finite(token: &[u8]) -> Option<f32> {
    let value: f64 = std::str::from_utf8(token).ok()?.parse().ok()?;
    Some(value as f32).filter(|value| value.is_finite())
}

/// A whole number in decimal digits; `None` for anything else, also when it does not fit.
pub fn number(token: &[u8]) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}
