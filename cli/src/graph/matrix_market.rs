//! Matrix Market coordinate files: `%%MatrixMarket matrix coordinate FIELD SYMMETRY`, comments, a line `rows columns entries`, then one entry a
//! line, counted from 1. An entry is an edge, its value the weight where weights are wanted. All rows are nodes, also those without an entry.

use std::io::BufRead;

use super::lines::{finite, number, quote, skip_blanks, token, Lines};
use super::{GraphError, RawEdges};

/// How every Matrix Market file begins.
const BANNER: &str = "%%matrixmarket";

/// Whether `line` is the first line of a Matrix Market file.
pub fn is_banner(line: &[u8]) -> bool {
    line.len() >= BANNER.len() && line[..BANNER.len()].eq_ignore_ascii_case(BANNER.as_bytes())
}

/// Reads all entries, and their values as weights when `weighted`; the banner is the current line.
pub fn read<R: BufRead>(lines: &mut Lines<'_, R>, weighted: bool) -> Result<RawEdges, GraphError> {
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
    if weighted && !matches!(words[3], "real" | "integer") {
        let found = format!("field \"{}\"", words[3]);
        return Err(lines.error("a matrix of field real or integer, for weights", &found));
    }
    // The other half of a skew-symmetric matrix has the other sign.
    let mirrored = if words[4] == "skew-symmetric" {
        -1.0
    } else {
        1.0
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
    let mut weights = weighted.then(Vec::new);
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
        let weight = match weights {
            Some(_) => value(lines)?,
            None => 1.0,
        };
        let mut put = |pair, weight| {
            pairs.push(pair);
            if let Some(weights) = &mut weights {
                weights.push(weight);
            }
        };
        put((row - 1, column - 1), weight);
        if symmetric && row != column {
            put((column - 1, row - 1), mirrored * weight);
        }
    }
    if found != entries {
        return Err(lines.error(&format!("{entries} entries"), &found.to_string()));
    }
    Ok(RawEdges {
        pairs,
        weights,
        declared_nodes: Some(rows),
    })
}

/// The value of the entry in the current line.
fn value<R: BufRead>(lines: &Lines<'_, R>) -> Result<f32, GraphError> {
    let mut rest = skip_blanks(lines.current());
    for _ in 0..2 {
        rest = skip_blanks(token(rest).1);
    }
    finite(token(rest).0).ok_or_else(|| {
        lines.error_at(
            "row, column and value (a finite number) of an entry",
            lines.current(),
        )
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
