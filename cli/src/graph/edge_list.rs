//! Edge lists: two node ids a line, separated by blanks, tabs or one comma; `#` and `%` start comment lines; further columns are ignored.

use std::io::BufRead;

use super::lines::{number, skip_blanks, token, Lines};
use super::{GraphError, RawEdges};

/// Reads all edges.
pub fn read<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<RawEdges, GraphError> {
    let mut pairs = Vec::new();
    while let Some(line) = lines.next_line()? {
        let text = skip_blanks(line);
        if text.is_empty() || matches!(text[0], b'#' | b'%') {
            continue;
        }
        match edge(text) {
            Ok(pair) => pairs.push(pair),
            Err(Wrong::Token(start, end)) => {
                let text = skip_blanks(lines.current());
                return Err(lines.number_error(&text[start..end]));
            }
            Err(Wrong::Missing) => return Err(lines.error_at("two node ids", lines.current())),
        }
    }
    Ok(RawEdges {
        pairs,
        declared_nodes: None,
    })
}

enum Wrong {
    /// The token from..to is no id.
    Token(usize, usize),
    /// There are no two ids.
    Missing,
}

fn edge(text: &[u8]) -> Result<(u64, u64), Wrong> {
    let (first, rest) = token(text);
    let separated = skip_blanks(rest);
    let separated = skip_blanks(separated.strip_prefix(b",").unwrap_or(separated));
    let (second, _) = token(separated);
    // A wrong first id is the better message when the second is missing too, unless nothing stands there.
    let from = match number(first) {
        Some(id) => id,
        None if first.is_empty() => return Err(Wrong::Missing),
        None => return Err(Wrong::Token(0, first.len())),
    };
    if second.is_empty() {
        return Err(Wrong::Missing);
    }
    let start = text.len() - separated.len();
    let to = number(second).ok_or(Wrong::Token(start, start + second.len()))?;
    Ok((from, to))
}
