//! types.h of the test programs: the lists of the type table as C macros that call a macro once a type.
//!
//! Not a header for users. `X(NAME, TYPE)` for types, `X(SIZE, BYTES)` for sizes; DISTINCT_ lists leave out types that C cannot tell apart.

use std::fmt::Write as _;

use crate::families::{Row, Types};

/// The file's text.
pub fn text() -> String {
    let mut text = String::from("/* Generated from the type table for the test programs. */\n");
    let mut list = |name: &str, rows: Vec<Row>| {
        let entries: Vec<String> = rows
            .iter()
            .map(|row| format!("X({}, {})", row.name, row.c))
            .collect();
        let _ = writeln!(text, "#define {name}(X) \\\n  {}", entries.join(" \\\n  "));
    };
    for (name, types) in [
        ("RMA_TYPES", Types::Rma),
        ("AMO_TYPES", Types::AmoStd),
        ("AMO_EXTENDED_TYPES", Types::AmoExt),
        ("AMO_BITWISE_TYPES", Types::Bitwise),
        ("WAIT_TYPES", Types::Wait),
        ("OLD_WAIT_TYPES", Types::OldWait),
        ("OLD_AMO_TYPES", Types::OldAmo),
        ("OLD_AMO_EXTENDED_TYPES", Types::OldAmoExt),
        ("REDUCE_BITWISE_TYPES", Types::ReduceBitwise),
        ("REDUCE_MINMAX_TYPES", Types::ReduceMinmax),
        ("REDUCE_ARITH_TYPES", Types::ReduceArith),
        ("TO_ALL_BITWISE_TYPES", Types::ToAllBitwise),
        ("TO_ALL_MINMAX_TYPES", Types::ToAllMinmax),
        ("TO_ALL_ARITH_TYPES", Types::ToAllArith),
        ("SIZES", Types::Sizes),
        ("COLLECTIVE_SIZES", Types::CollectiveSizes),
    ] {
        list(name, types.rows());
        list(&format!("DISTINCT_{name}"), types.distinct_rows());
    }
    text
}
