//! Bad input gets one clear line on stderr, nothing on stdout, and exit code 2.

mod common;
use common::{file, karate, path_text, run};

#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let ran = run(args);
    assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
    assert_eq!(ran.stdout, "", "{args:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{args:?}: {:?}", ran.stderr);
    assert!(
        ran.stderr.starts_with("npushmem: "),
        "{args:?}: {:?}",
        ran.stderr
    );
    for word in words {
        assert!(
            ran.stderr.contains(word),
            "{args:?}: {word:?} is not in {:?}",
            ran.stderr
        );
    }
}

fn npy(descr: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

#[test]
fn a_missing_graph_is_named() {
    refused(
        &["gnn", "--graph", "/nonexistent/graph.txt", "--pes", "2"],
        &["/nonexistent/graph.txt", "No such file"],
    );
}

#[test]
fn letters_where_an_id_stands_are_shown_with_file_and_line() {
    let (_folder, path) = file("edges.txt", b"0 1\n1 two\n");
    refused(
        &["gnn", "--graph", &path_text(&path), "--pes", "1"],
        &["edges.txt:2:", "\"two\""],
    );
}

#[test]
fn an_empty_graph_and_bytes_that_are_no_text_are_refused() {
    let (_folder, path) = file("empty.txt", b"");
    refused(
        &["gnn", "--graph", &path_text(&path), "--pes", "1"],
        &["empty.txt", "no edge"],
    );
    let (_folder, path) = file("binary", &[0u8; 4096]);
    refused(
        &["gnn", "--graph", &path_text(&path), "--pes", "1"],
        &["binary:1:"],
    );
}

#[test]
fn features_of_the_wrong_shape_or_type_are_refused() {
    for (content, word) in [
        (npy("<f4", "(33, 8)", 33 * 32), "(33, 8)"),
        (npy("<f4", "(34,)", 34 * 4), "(34,)"),
        (npy("<f8", "(34, 8)", 34 * 64), "<f8"),
        (b"not a numpy file".to_vec(), "npy"),
    ] {
        let (_folder, path) = file("features.npy", &content);
        refused(
            &[
                "gnn",
                "--graph",
                &karate(),
                "--pes",
                "2",
                "--features",
                &path_text(&path),
            ],
            &["features.npy", word],
        );
    }
    let (_folder, path) = file("features.npy", &npy("<f4", "(34, 8)", 34 * 32));
    refused(
        &[
            "gnn",
            "--graph",
            &karate(),
            "--pes",
            "2",
            "--features",
            &path_text(&path),
            "--dim",
            "9",
        ],
        &["(34, 8)", "(34, 9)"],
    );
    refused(
        &[
            "gnn",
            "--graph",
            &karate(),
            "--pes",
            "2",
            "--features",
            "/nonexistent.npy",
        ],
        &["/nonexistent.npy"],
    );
}

#[test]
fn numbers_of_pes_that_make_no_sense_are_refused() {
    refused(
        &["gnn", "--graph", &karate(), "--pes", "35"],
        &["35 PEs", "34 nodes"],
    );
    refused(&["gnn", "--graph", &karate(), "--pes", "0"], &["0 PEs"]);
    refused(&["gnn", "--graph", &karate(), "--pes", "many"], &["many"]);
    refused(&["gnn", "--graph", &karate(), "--pes", "-1"], &["-1"]);
    refused(&["run", "-n", "0", "--", "true"], &["0 PEs"]);
    refused(
        &["run", "-n", "2", "--stdin", "2", "--", "true"],
        &["--stdin 2"],
    );
}

#[test]
fn options_out_of_range_are_refused() {
    for (option, value) in [
        ("--cores", "0"),
        ("--dim", "0"),
        ("--repeat", "0"),
        ("--timeout", "-1"),
        ("--reduce", "median"),
        ("--engine", "ib"),
    ] {
        refused(
            &[
                "gnn",
                "--graph",
                &karate(),
                "--pes",
                "2",
                &format!("{option}={value}"),
            ],
            &[value],
        );
    }
    refused(&["gnn", "--rmat", "40", "--pes", "2"], &["40"]);
    refused(&["gnn", "--pes", "2"], &["--graph"]);
    refused(
        &["gnn", "--graph", &karate(), "--rmat", "5", "--pes", "2"],
        &["--rmat"],
    );
    refused(&["run", "-n", "2"], &["PROGRAM"]);
}

#[test]
fn places_that_cannot_be_written_are_found_before_the_run() {
    refused(
        &[
            "gnn",
            "--graph",
            &karate(),
            "--pes",
            "2",
            "--out",
            "/nonexistent/out.npy",
        ],
        &["--out", "/nonexistent"],
    );
    refused(
        &["gnn", "--graph", &karate(), "--pes", "2", "--json", "/"],
        &["--json", "folder"],
    );
}

#[test]
fn graphs_and_features_that_no_memory_holds_are_refused_before_they_are_made() {
    refused(
        &["gnn", "--rmat", "28", "--edge-factor", "1024", "--pes", "2"],
        &["R-MAT", "memory", "--edge-factor"],
    );
    let text = b"%%MatrixMarket matrix coordinate pattern general\n4294967295 4294967295 1\n1 2\n";
    let (_folder, path) = file("large.mtx", text);
    let path = path_text(&path);
    refused(
        &["gnn", "--graph", &path, "--dim", "262144", "--pes", "1"],
        &["4294967295 nodes", "memory"],
    );
    let (_folder, path) = file(
        "features.npy",
        &npy("<f4", "(34, 18446744073709551615)", 64),
    );
    refused(
        &[
            "gnn",
            "--graph",
            &karate(),
            "--pes",
            "2",
            "--features",
            &path_text(&path),
        ],
        &["features.npy", "(34, 18446744073709551615)"],
    );
}

#[test]
fn a_maximum_over_what_is_not_a_number_is_refused() {
    let mut content = npy("<f4", "(34, 8)", 34 * 32);
    let at = content.len() - 4;
    content[at..].copy_from_slice(&f32::NAN.to_le_bytes());
    let (_folder, path) = file("features.npy", &content);
    let path = path_text(&path);
    refused(
        &[
            "gnn",
            "--graph",
            &karate(),
            "--pes",
            "2",
            "--features",
            &path,
            "--reduce",
            "max",
        ],
        &["row 33, column 7"],
    );
}

#[test]
fn settings_that_are_not_accepted_are_named() {
    for (name, value, word) in [
        ("NPUSHMEM_TIMEOUT", "soon", "seconds from"),
        ("SHMEM_SYMMETRIC_SIZE", "99999999999999999999", "too large"),
        ("NPUSHMEM_LOG", "a=b=c", "give error, warn"),
        ("NPUSIM_SOC", "Ascend1", "Ascend910B1"),
        ("NPUSIM_DEVICES", "0", "from 1 to"),
        ("NPUSIM_NIC", "chaos:x", "expected inline"),
        ("NPUSIM_CQE_SIZE", "33", "32 or 64"),
    ] {
        let mut command = common::npushmem(&["gnn", "--graph", &karate(), "--pes", "2"]);
        command.env("NPUSHMEM_RUNTIME", "sim").env(name, value);
        let ran = common::finish(command);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{ran:?}");
        for expected in [name, value, word] {
            assert!(ran.stderr.contains(expected), "{ran:?}");
        }
    }
}

#[test]
fn more_cores_than_the_emulated_npu_has_are_refused_once() {
    let mut command = common::npushmem(&["gnn", "--graph", &karate(), "--pes", "2"]);
    command.args(["--cores", "9"]);
    command
        .env("NPUSHMEM_RUNTIME", "sim")
        .env("NPUSIM_CORES", "8");
    let ran = common::finish(command);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{ran:?}");
    assert!(
        ran.stderr.contains("--cores 9") && ran.stderr.contains("1 to 8"),
        "{ran:?}"
    );
}

#[test]
fn wrong_options_of_a_benchmark_are_refused() {
    refused(&["bench", "nothing"], &["nothing", "put"]);
    refused(&["bench", "put", "--pes", "0"], &["0 PEs"]);
    refused(&["bench", "put", "--cores", "0"], &["--cores 0", "1 to"]);
    refused(
        &["bench", "put", "--samples", "0"],
        &["--samples 0", "1 to"],
    );
    refused(&["bench", "put", "--engine", "pigeon"], &["pigeon", "roce"]);
    for (sizes, word) in [
        ("1M..8", "larger"),
        ("0..8", "1 B"),
        ("8..1T", "256 MiB"),
        ("8..x", "x"),
    ] {
        refused(&["bench", "put", "--sizes", sizes], &["--sizes", word]);
    }
    refused(&["bench", "put", "--plot", "put.png"], &["--plot", ".svg"]);
    refused(
        &["bench", "put", "--plot", "/nonexistent/put.svg"],
        &["/nonexistent"],
    );
    refused(&["bench", "put", "--json", "/"], &["--json /", "folder"]);
}
