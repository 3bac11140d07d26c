//! Matrix Market coordinate files: `%%MatrixMarket matrix coordinate FIELD SYMMETRY`, comments, a line `rows columns entries`, then one entry a
//! line, counted from 1. Values are ignored: an entry is an edge. All rows are nodes, also those without an entry.

use std::io::BufRead;

use super::lines::{number, quote, skip_blanks, token, Lines};
use super::{GraphError, RawEdges};

/// How every Matrix Market file begins.
const BANNER: &str = "%%matrixmarket";

/// Whether `line` is the first line of a Matrix Market file.
pub fn is_banner(line: &[u8]) -> bool {
    line.len() >= BANNER.len() && line[..BANNER.len()].eq_ignore_ascii_case(BANNER.as_bytes())
}

/// Reads all entries; the banner is the current line.
pub fn read<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<RawEdges, GraphError> {
    let banner = String::from_utf8_lossy(lines.current()).to_ascii_lowercase();
    let words: Vec<&str> = banner.split_ascii_whitespace().collect();
    let symmetric = match words[1..] {
        ["matrix", "coordinate", "pattern" | "real" | "integer" | "complex", "general"] => false,
        ["matrix", "coordinate", "pattern" | "real" | "integer" | "complex", "symmetric" | "skew-symmetric" | "hermitian"] => {
            true
        }
        _ => {
            let expected = "\"%%MatrixMarket matrix coordinate pattern|real|integer|complex general|symmetric|skew-symmetric|hermitian\"";
            return Err(lines.error_at(expected, lines.current()));
        }
    };
    let Some([rows, columns, entries]) =
        numbers::<R, 3>(lines, "rows, columns and number of entries")?
    else {
        return Err(lines.error(
            "a line with rows, columns and number of entries",
            "the end of the file",
        ));
    };
    if rows != columns {
        return Err(lines.error("a square matrix", &format!("{rows} x {columns}")));
    }
    // The file's claim is no reason to reserve more than a few pages.
    let mut pairs = Vec::with_capacity(entries.min(1 << 20) as usize);
    let mut found = 0u64;
    while let Some([row, column]) = numbers::<R, 2>(lines, "row and column of an entry")? {
        if found == entries {
            let found = quote(lines.current());
            return Err(lines.error(
                &format!("the end of the file after {entries} entries"),
                &found,
            ));
        }
        found += 1;
        for (name, value) in [("row", row), ("column", column)] {
            if value == 0 || value > rows {
                return Err(lines.error(&format!("a {name} from 1 to {rows}"), &value.to_string()));
            }
        }
        pairs.push((row - 1, column - 1));
        if symmetric && row != column {
            pairs.push((column - 1, row - 1));
        }
    }
    if found != entries {
        return Err(lines.error(&format!("{entries} entries"), &found.to_string()));
    }
    Ok(RawEdges {
        pairs,
        declared_nodes: Some(rows),
    })
}

/// The first `N` numbers of the next line that is neither blank nor a comment.
fn numbers<R: BufRead, const N: usize>(
    lines: &mut Lines<'_, R>,
    what: &str,
) -> Result<Option<[u64; N]>, GraphError> {
    loop {
        let Some(line) = lines.next_line()? else {
            return Ok(None);
        };
        let mut text = skip_blanks(line);
        if text.is_empty() || text[0] == b'%' {
            continue;
        }
        let mut values = [0u64; N];
        let mut complete = true;
        for value in &mut values {
            let (word, rest) = token(text);
            match number(word) {
                Some(number) => *value = number,
                None => complete = false,
            }
            text = skip_blanks(rest);
        }
        if !complete {
            return Err(lines.error_at(what, lines.current()));
        }
        return Ok(Some(values));
    }
}
