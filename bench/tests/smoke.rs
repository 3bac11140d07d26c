//! The whole program once, with few calls: rows for both engines, and reasons for what it skips. Nothing is said about times.

use std::process::Command;

#[test]
fn a_short_run_has_a_row_for_every_measurement_and_says_what_it_skips() {
    let output = Command::new(env!("CARGO_BIN_EXE_npushmem-bench"))
        .args([
            "--rounds",
            "1",
            "--calls",
            "1",
            "--rmat",
            "6",
            "--graph",
            "no-such-graph",
        ])
        .args([
            "--python",
            "no-such-python",
            "--npushmem",
            "no-such-program",
            "--json",
            "-",
        ])
        .env("NPUSHMEM_RUNTIME", "sim")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    for engine in ["mapped", "roce"] {
        assert_eq!(rows.iter().filter(|row| row["engine"] == engine).count(), 9);
    }
    assert!(rows
        .iter()
        .all(|row| row["seconds"]["median"].as_f64().unwrap() >= 0.0));
    assert!(value["skipped"][0]
        .as_str()
        .unwrap()
        .contains("no-such-program"));
}

#[test]
fn the_graph_job_is_measured_against_the_product_of_the_same_graph() {
    let bench = env!("CARGO_BIN_EXE_npushmem-bench");
    let program = std::path::Path::new(bench).with_file_name("npushmem");
    if !program.is_file() {
        eprintln!("skipped: no {} (build npushmem-cli too)", program.display());
        return;
    }
    let output = Command::new(bench)
        .args([
            "--rounds",
            "1",
            "--calls",
            "1",
            "--rmat",
            "6",
            "--dim",
            "8",
            "--graph",
            "no-such-graph",
        ])
        .args(["--python", "no-such-python", "--json", "-"])
        .env("NPUSHMEM_RUNTIME", "sim")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    let products = rows
        .iter()
        .filter(|row| row["limit"] == "CSR product, Rust");
    assert_eq!(products.count(), 2);
    let skipped = value["skipped"].to_string();
    assert!(
        skipped.contains("no-such-graph") && skipped.contains("no-such-python"),
        "{skipped}"
    );
}

#[test]
fn zero_rounds_are_refused_in_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_npushmem-bench"))
        .args(["--rounds", "0"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "npushmem-bench: --rounds 0: at least one\n"
    );
}
