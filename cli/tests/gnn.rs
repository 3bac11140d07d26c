//! `npushmem gnn` for real: processes, emulated NPUs, kernels that move their own data.

mod common;
use std::collections::BTreeSet;
use std::io::Cursor;

use common::{file, finish, karate, npushmem, path_text, run, Ran};
use serde_json::Value;

/// Runs with `--json` and `--verify` and returns the numbers.
fn numbers(args: &[&str], env: &[(&str, &str)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let json = path_text(&folder.path().join("numbers.json"));
    let mut all = vec![
        "gnn",
        "--verify",
        "--repeat",
        "1",
        "--timeout",
        "120",
        "--json",
        &json,
    ];
    all.extend(args);
    let mut command = npushmem(&all);
    command.envs(env.iter().copied());
    let ran = finish(command);
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    assert!(ran.stdout.contains("fetch once"), "{ran:?}");
    serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap()
}

fn field(numbers: &Value, name: &str) -> u64 {
    numbers[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {numbers}"))
}

fn npy_f32(path: &std::path::Path) -> (Vec<u64>, Vec<f32>) {
    let file = npyz::NpyFile::new(Cursor::new(std::fs::read(path).unwrap())).unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

#[test]
fn results_equal_the_reference_on_both_engines_for_every_reduction() {
    for engine in ["mapped", "roce"] {
        for reduce in ["sum", "mean", "max"] {
            let numbers = numbers(
                &[
                    "--graph",
                    &karate(),
                    "--pes",
                    "4",
                    "--dim",
                    "16",
                    "--engine",
                    engine,
                    "--reduce",
                    reduce,
                ],
                &[],
            );
            assert!(
                numbers["max_rel_error"].as_f64().unwrap() < 1e-5,
                "{numbers}"
            );
            assert_eq!(
                (&numbers["engine"], &numbers["reduce"]),
                (&engine.into(), &reduce.into())
            );
            assert_eq!(
                (
                    field(&numbers, "nodes"),
                    field(&numbers, "edges"),
                    field(&numbers, "pes")
                ),
                (34, 78, 4)
            );
        }
    }
}

#[test]
fn the_json_file_has_exactly_the_documented_keys() {
    let numbers = numbers(
        &["--graph", &karate(), "--pes", "2", "--engine", "mapped"],
        &[],
    );
    let keys: BTreeSet<&str> = numbers
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let documented = [
        "pes",
        "engine",
        "reduce",
        "weights",
        "norm",
        "layers",
        "backward",
        "nodes",
        "edges",
        "distinct_remote_rows",
        "requests",
        "sync_requests",
        "doorbells",
        "launches",
        "bytes_fetched",
        "allgather_bytes",
        "seconds",
        "allgather_seconds",
        "acl_calls_during_kernel",
        "max_rel_error",
    ];
    assert_eq!(keys, documented.into_iter().collect());
    // Every PE gets the 17 rows of 64 floats that it does not own.
    assert_eq!(field(&numbers, "allgather_bytes"), 2 * 17 * 256);
    assert_eq!(
        field(&numbers, "bytes_fetched"),
        field(&numbers, "distinct_remote_rows") * 256
    );
    assert_eq!(field(&numbers, "acl_calls_during_kernel"), 0);
    assert_eq!(field(&numbers, "launches"), 1);
}

#[test]
fn by_roce_each_distinct_remote_row_is_one_request() {
    for (partition, cores) in [("block", "1"), ("hash", "3")] {
        let numbers = numbers(
            &[
                "--rmat",
                "8",
                "--pes",
                "3",
                "--dim",
                "8",
                "--engine",
                "roce",
                "--partition",
                partition,
                "--cores",
                cores,
            ],
            &[],
        );
        assert_eq!(
            field(&numbers, "requests"),
            field(&numbers, "distinct_remote_rows"),
            "{numbers}"
        );
        assert_eq!(field(&numbers, "acl_calls_during_kernel"), 0);
        // Batches of 32 ring once; the rest is the last batch toward each PE and the completion queues.
        assert!(
            field(&numbers, "doorbells") * 8 < field(&numbers, "requests"),
            "{numbers}"
        );
    }
}

#[test]
fn rows_of_any_length_and_half_precision_are_aggregated() {
    for (dim, dtype) in [
        ("1", "f32"),
        ("3", "f32"),
        ("7", "f16"),
        ("64", "f16"),
        ("1601", "f32"),
        ("3100", "f16"),
    ] {
        for engine in ["mapped", "roce"] {
            numbers(
                &[
                    "--graph",
                    &karate(),
                    "--pes",
                    "3",
                    "--dim",
                    dim,
                    "--dtype",
                    dtype,
                    "--engine",
                    engine,
                    "--reduce",
                    "mean",
                ],
                &[],
            );
        }
    }
}

#[test]
fn results_are_right_with_every_mode_of_the_software_nic() {
    for nic in ["inline", "thread", "chaos:1", "chaos:2"] {
        numbers(
            &[
                "--rmat", "7", "--pes", "4", "--dim", "24", "--engine", "roce", "--reduce", "max",
            ],
            &[("NPUSIM_NIC", nic)],
        );
    }
}

#[test]
fn a_nic_that_refuses_inline_payloads_does_the_job_too() {
    let args = ["--graph", &karate(), "--pes", "2", "--engine", "roce"];
    let numbers = numbers(&args, &[("NPUSIM_NIC_INLINE", "off")]);
    assert!(numbers["max_rel_error"].as_f64().unwrap() < 1e-5);
}

#[test]
fn what_a_nic_refuses_is_told_once_a_job() {
    for (switch, what) in [
        ("NPUSIM_NIC_ATOMICS", "atomics"),
        ("NPUSIM_NIC_ATOMIC_ACCESS", "atomics"),
        ("NPUSIM_NIC_INLINE", "inline payloads"),
    ] {
        let mut command = npushmem(&[
            "gnn",
            "--graph",
            &karate(),
            "--pes",
            "3",
            "--engine",
            "roce",
        ]);
        command.env(switch, "off");
        let ran = finish(command);
        assert_eq!(ran.code, 0, "{switch}: {ran:?}");
        let warnings: Vec<&str> = ran
            .stderr
            .lines()
            .filter(|line| line.contains("WARN"))
            .collect();
        assert!(
            warnings.len() == 1 && warnings[0].contains(what),
            "{switch}: {warnings:#?}"
        );
    }
}

#[test]
fn one_pe_fetches_nothing() {
    let numbers = numbers(
        &["--graph", &karate(), "--pes", "1", "--engine", "roce"],
        &[],
    );
    assert_eq!(
        (
            field(&numbers, "distinct_remote_rows"),
            field(&numbers, "requests"),
            field(&numbers, "allgather_bytes")
        ),
        (0, 0, 0)
    );
}

#[test]
fn the_output_file_has_a_row_a_node_in_ascending_order_of_id() {
    // Node ids 5, 10, 700 and the isolated 900; features count from 1 in f16.
    let (_folder, graph) = file("sparse.csv", b"# a comment\n700,5,0.5\n10\t5\n900 900\n");
    let mut features =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f2', 'fortran_order': False, 'shape': (4, 2), }"
            .to_vec();
    features.resize(127, b' ');
    features.push(b'\n');
    for value in [1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0] {
        features.extend_from_slice(&half::f16::from_f32(value).to_le_bytes());
    }
    let (_folder2, features) = file("features.npy", &features);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.npy");
    for (reduce, directed, expected) in [
        (
            "sum",
            false,
            [8.0f32, -10.0, 1.0, -2.0, 1.0, -2.0, 0.0, 0.0],
        ),
        ("mean", false, [4.0, -5.0, 1.0, -2.0, 1.0, -2.0, 0.0, 0.0]),
        ("max", false, [5.0, -4.0, 1.0, -2.0, 1.0, -2.0, 0.0, 0.0]),
        ("sum", true, [0.0, 0.0, 1.0, -2.0, 1.0, -2.0, 0.0, 0.0]),
    ] {
        let (graph, features, out_text) =
            (path_text(&graph), path_text(&features), path_text(&out));
        let mut args = vec![
            "gnn",
            "--graph",
            &graph,
            "--features",
            &features,
            "--pes",
            "2",
            "--cores",
            "2",
            "--reduce",
            reduce,
            "--out",
            &out_text,
        ];
        if directed {
            args.push("--directed");
        }
        let ran: Ran = run(&args);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(
            npy_f32(&out),
            (vec![4, 2], expected.to_vec()),
            "{reduce} {directed}"
        );
    }
}

#[test]
fn a_pe_for_each_node_works() {
    let (_folder, graph) = file("path.txt", b"0 1\n1 2\n2 3\n3 4\n");
    numbers(
        &[
            "--graph",
            &path_text(&graph),
            "--pes",
            "5",
            "--cores",
            "1",
            "--engine",
            "roce",
            "--dim",
            "5",
        ],
        &[],
    );
}

/// Processes whose parent is `parent`.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // After the name in parentheses: state, parent.
            stat.rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok())
                == Some(parent)
        })
        .collect()
}

#[test]
fn a_pe_that_is_killed_ends_the_run_and_leaves_nothing_behind() {
    let args = [
        "gnn",
        "--rmat",
        "10",
        "--pes",
        "3",
        "--cores",
        "2",
        "--repeat",
        "1000",
        "--timeout",
        "120",
        "--engine",
        "roce",
    ];
    let mut command = npushmem(&args);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let job = command.spawn().unwrap();
    let pes = loop {
        let found = children(job.id());
        if found.len() == 3 {
            break found;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &pes[1].to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = job.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 9), "{stderr}");
    assert!(
        stderr.contains("of 3 was killed by SIGKILL (signal 9)"),
        "{stderr}"
    );
    for pid in pes {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "PE process {pid} is left"
        );
    }
}

#[test]
fn a_pe_that_cannot_start_says_its_reason_once() {
    let mut command = npushmem(&["gnn", "--graph", &karate(), "--pes", "1"]);
    command
        .env("NPUSHMEM_RUNTIME", "sim")
        .env("NPUSIM_HBM", "16M")
        .env("SHMEM_SYMMETRIC_SIZE", "1G");
    let ran = finish(command);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.stderr.matches("failed with").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("SHMEM_SYMMETRIC_SIZE"), "{ran:?}");
}
