//! `npushmem gnn` on public graphs: friendships of 4,039 people and citations of 2,708 papers. They are too large for the repository: without
//! them (`NPUSHMEM_DATA`, or `shared/data` beside the workspace) the tests say so and pass.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{finish, npushmem, path_text};
use serde_json::Value;

/// Largest relative difference from the plain reference that a correct run may show.
const TOLERANCE: f64 = 1e-5;
/// Requests that share a doorbell at least, in full batches of 32.
const REQUESTS_PER_DOORBELL: u64 = 16;

fn graph(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NPUSHMEM_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!(
        "skipped: no {name} in {}; set NPUSHMEM_DATA",
        folder.display()
    );
    None
}

fn run(graph: &Path, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let json = path_text(&folder.path().join("numbers.json"));
    let graph = path_text(graph);
    let mut args = vec![
        "gnn", "--graph", &graph, "--verify", "--repeat", "1", "--json", &json,
    ];
    args.extend(more);
    let ran = finish(npushmem(&args));
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap()
}

fn field(numbers: &Value, name: &str) -> u64 {
    numbers[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {numbers}"))
}

#[test]
fn facebook_is_aggregated_right_on_both_engines_for_every_reduction() {
    let Some(graph) = graph("facebook_combined.txt") else {
        return;
    };
    for engine in ["mapped", "roce"] {
        for reduce in ["sum", "mean", "max"] {
            let numbers = run(
                &graph,
                &[
                    "--pes", "4", "--dim", "64", "--engine", engine, "--reduce", reduce,
                ],
            );
            assert_eq!(field(&numbers, "nodes"), 4039);
            assert_eq!(field(&numbers, "edges"), 88_234);
            assert!(
                numbers["max_rel_error"].as_f64().unwrap() <= TOLERANCE,
                "{numbers}"
            );
            assert_eq!(field(&numbers, "acl_calls_during_kernel"), 0);
            let rows = field(&numbers, "distinct_remote_rows");
            let requests = field(&numbers, "requests");
            assert_eq!(requests, if engine == "roce" { rows } else { 0 });
            assert!(
                field(&numbers, "doorbells") * REQUESTS_PER_DOORBELL <= rows,
                "{numbers}"
            );
        }
    }
}

#[test]
fn cora_fetches_each_distinct_remote_row_once_and_less_than_all_gather() {
    let Some(graph) = graph("cora.cites") else {
        return;
    };
    for engine in ["mapped", "roce"] {
        let numbers = run(&graph, &["--pes", "4", "--dim", "64", "--engine", engine]);
        assert_eq!(field(&numbers, "nodes"), 2708);
        assert_eq!(field(&numbers, "edges"), 5278);
        // 2,708 papers in four blocks of 677.
        assert_eq!(
            field(&numbers, "distinct_remote_rows"),
            1364 + 1018 + 829 + 903
        );
        assert!(field(&numbers, "bytes_fetched") < field(&numbers, "allgather_bytes"));
        assert!(
            numbers["max_rel_error"].as_f64().unwrap() <= TOLERANCE,
            "{numbers}"
        );
    }
}

/// Multiplies the adjacency matrix with the features, as the users of such results would.
const WITH_NUMPY: &str = r#"
import sys
import numpy as np
graph, features, out = sys.argv[1:]
edges = np.loadtxt(graph, dtype=np.int64)
x, y = np.load(features), np.load(out)
ids = np.unique(edges)
pairs = np.searchsorted(ids, edges)
pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
expected = np.zeros(x.shape, dtype=np.float64)
np.add.at(expected, pairs[:, 0], x[pairs[:, 1]])
np.add.at(expected, pairs[:, 1], x[pairs[:, 0]])
assert y.shape == x.shape and y.dtype == np.float32, (y.shape, y.dtype)
assert np.allclose(y, expected, rtol=1e-5, atol=1e-5), np.abs(y - expected).max()
"#;

#[test]
fn the_written_result_is_what_numpy_computes() {
    let Some(graph) = graph("cora.cites") else {
        return;
    };
    let python = |code: &str, args: &[&str]| {
        Command::new("python3")
            .arg("-c")
            .arg(code)
            .args(args)
            .output()
    };
    if !python("import numpy", &[]).is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: no python3 with numpy");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let features = path_text(&folder.path().join("features.npy"));
    let out = path_text(&folder.path().join("out.npy"));
    let made = python(
        "import sys, numpy as np; np.save(sys.argv[1], np.random.default_rng(1).random((2708, 24), dtype=np.float32))",
        &[&features],
    )
    .unwrap();
    assert!(made.status.success(), "{made:?}");
    for engine in ["mapped", "roce"] {
        run(
            &graph,
            &[
                "--pes",
                "3",
                "--features",
                &features,
                "--engine",
                engine,
                "--out",
                &out,
            ],
        );
        let checked = python(WITH_NUMPY, &[&path_text(&graph), &features, &out]).unwrap();
        assert!(checked.status.success(), "{engine}: {checked:?}");
    }
}
