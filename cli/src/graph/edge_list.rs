//! Edge lists: two node ids a line, separated by blanks, tabs or one comma; `#` and `%` start comment lines; a third column is the weight where
//! weights are wanted, and further columns are ignored.

use std::io::BufRead;

use super::lines::{finite, number, skip_blanks, token, Lines};
use super::{GraphError, RawEdges};

/// Reads all edges, and their weights when `weighted`.
pub fn read<R: BufRead>(lines: &mut Lines<'_, R>, weighted: bool) -> Result<RawEdges, GraphError> {
    let mut pairs = Vec::new();
    let mut weights = weighted.then(Vec::new);
    while let Some(line) = lines.next_line()? {
        let text = skip_blanks(line);
        if text.is_empty() || matches!(text[0], b'#' | b'%') {
            continue;
        }
        match edge(text) {
            Ok((pair, rest)) => {
                if let Some(weights) = &mut weights {
                    let Some(weight) = finite(token(rest).0) else {
                        let expected = "two node ids and a weight (a finite number)";
                        return Err(lines.error_at(expected, lines.current()));
                    };
                    weights.push(weight);
                }
                pairs.push(pair);
            }
            Err(Wrong::Token(start, end)) => {
                let text = skip_blanks(lines.current());
                return Err(lines.number_error(&text[start..end]));
            }
            Err(Wrong::Missing) => return Err(lines.error_at("two node ids", lines.current())),
        }
    }
    Ok(RawEdges {
        pairs,
        weights,
        declared_nodes: None,
    })
}

enum Wrong {
    /// The token from..to is no id.
    Token(usize, usize),
    /// There are no two ids.
    Missing,
}

/// Drops what separates two columns: blanks, and one comma among them.
fn next_column(rest: &[u8]) -> &[u8] {
    let separated = skip_blanks(rest);
    skip_blanks(separated.strip_prefix(b",").unwrap_or(separated))
}

/// Both ids, and what stands behind them.
fn edge(text: &[u8]) -> Result<((u64, u64), &[u8]), Wrong> {
    let (first, rest) = token(text);
    let separated = next_column(rest);
    let (second, rest) = token(separated);
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
    Ok(((from, to), next_column(rest)))
}
