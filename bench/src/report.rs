//! The table and the JSON file.

use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{presets, CellAlignment, ContentArrangement, Table};
use serde_json::json;

use crate::figure::{Row, Verdict};
use crate::stats::{self, Summary};

/// Prints the table, or writes JSON where it is wanted.
pub fn write(rows: &[Row], skipped: &[String], json: Option<&Path>) -> Result<()> {
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&to_json(rows, skipped))? + "\n";
        if path.as_os_str() == "-" {
            print!("{text}");
            return Ok(());
        }
        std::fs::write(path, text).with_context(|| format!("--json {}", path.display()))?;
    }
    println!("{}", table(rows));
    println!(
        "Medians; half of the rounds lie between the numbers in brackets. Ratio: speed as a share of the limit's (1: as fast as bare). The NPU is emulated\n\
         where there is none: then these are figures of this machine's processors, not of an NPU."
    );
    for line in skipped {
        println!("skipped: {line}");
    }
    Ok(())
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header([
        "",
        "engine",
        "figure",
        "bare limit",
        "",
        "ratio",
        "goal",
        "",
    ]);
    for row in rows {
        let Summary { median, low, high } = row.ratio();
        table.add_row([
            row.name.clone(),
            row.engine.clone(),
            row.shown(),
            row.limit_name.clone(),
            stats::duration(row.limit().median),
            format!(
                "{} ({} - {})",
                stats::digits(median),
                stats::digits(low),
                stats::digits(high)
            ),
            row.goal.map_or_else(String::new, |goal| goal.to_string()),
            match row.verdict() {
                Some(Verdict::Met) => "met",
                Some(Verdict::Missed) => "missed",
                None => "",
            }
            .to_owned(),
        ]);
    }
    for column in [4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn to_json(rows: &[Row], skipped: &[String]) -> serde_json::Value {
    let summary = |s: Summary| json!({ "median": s.median, "low": s.low, "high": s.high });
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name,
                "engine": row.engine,
                "rounds": row.figure.len(),
                "seconds": summary(row.figure()),
                "limit": row.limit_name,
                "limit_seconds": summary(row.limit()),
                "ratio": summary(row.ratio()),
                "goal": row.goal,
                "verdict": row.verdict(),
            })
        })
        .collect();
    json!({ "rows": rows, "skipped": skipped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Goal;

    fn rows() -> Vec<Row> {
        vec![Row {
            name: "put, 1 MiB".into(),
            engine: "roce".into(),
            figure: vec![2e-4, 1e-4, 1e-4],
            limit_name: "memcpy".into(),
            limit: vec![1e-4, 9e-5, 8e-5],
            goal: Some(Goal::Ratio(0.8)),
            bytes: None,
        }]
    }

    #[test]
    fn the_table_shows_figure_limit_ratio_goal_and_verdict() {
        let text = table(&rows()).to_string();
        for part in [
            "put, 1 MiB",
            "roce",
            "100 us (100 us - 150 us)",
            "memcpy",
            "90.0 us",
            "0.80 (0.65 - 0.85)",
            "ratio >= 0.80",
            "met",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn the_json_has_every_number_of_the_table() {
        let value = to_json(&rows(), &["gnn: no file".into()]);
        let row = &value["rows"][0];
        assert_eq!(row["seconds"]["median"], 1e-4);
        assert_eq!(row["limit_seconds"]["median"], 9e-5);
        assert_eq!(row["goal"]["ratio"], 0.8);
        assert_eq!(row["verdict"], "met");
        assert_eq!(value["skipped"][0], "gnn: no file");
    }
}
