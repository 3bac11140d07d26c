//! `npushmem gnn` as users of graph libraries need it: weights, normalisation, several layers in one launch, the backward pass, and graphs as arrays.

mod common;
use std::io::{Cursor, Write};
use std::path::Path;

use common::{file, finish, karate, npushmem, path_text, run};
use serde_json::Value;

/// Runs with `--verify` and returns the numbers and the bytes of the result.
#[track_caller]
fn result(args: &[&str], env: &[(&str, &str)]) -> (Value, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let json = path_text(&folder.path().join("numbers.json"));
    let out = path_text(&folder.path().join("out.npy"));
    let mut all = vec![
        "gnn",
        "--verify",
        "--repeat",
        "1",
        "--timeout",
        "120",
        "--json",
        &json,
        "--out",
        &out,
    ];
    all.extend(args);
    let mut command = npushmem(&all);
    command.envs(env.iter().copied());
    let ran = finish(command);
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    let numbers = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    (numbers, std::fs::read(&out).unwrap())
}

fn field(numbers: &Value, name: &str) -> u64 {
    numbers[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {numbers}"))
}

fn values(npy: Vec<u8>) -> Vec<f32> {
    npyz::NpyFile::new(Cursor::new(npy))
        .unwrap()
        .into_vec()
        .unwrap()
}

/// A .npy array of this type and shape.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

fn int32(numbers: &[i32]) -> Vec<u8> {
    let data: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    npy("<i4", &format!("({},)", numbers.len()), &data)
}

fn int64(numbers: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    npy("<i8", &format!("({},)", numbers.len()), &data)
}

fn float64(numbers: &[f64]) -> Vec<u8> {
    let data: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    npy("<f8", &format!("({},)", numbers.len()), &data)
}

/// One feature a node: 1, 10, 100, ...
fn powers(nodes: u32) -> Vec<u8> {
    let data: Vec<u8> = (0..nodes)
        .flat_map(|node| 10f32.powi(node as i32).to_le_bytes())
        .collect();
    npy("<f4", &format!("({nodes}, 1)"), &data)
}

/// An .npz archive, compressed as scipy.sparse.save_npz does.
fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// 0 <- 1 (2), 0 <- 2 (3), 1 <- 1 (5), 3 <- 0 (7); node 2 has no neighbour.
fn csr() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("indices", int32(&[1, 2, 1, 0])),
        ("indptr", int32(&[0, 2, 3, 3, 4])),
        ("format", npy("|S3", "()", b"csr")),
        ("shape", int64(&[4, 4])),
        ("data", float64(&[2.0, 3.0, 5.0, 7.0])),
    ]
}

#[test]
fn every_combination_agrees_with_the_reference_on_both_engines() {
    let (_folder, weighted) = file(
        "weighted.txt",
        b"0 1 0.5\n1 2 -2\n2 3 1.5\n3 4 4\n4 0 0.25\n5 5 3\n0 6 1\n6 2 -1\n7 8 2\n",
    );
    let weighted = path_text(&weighted);
    for engine in ["mapped", "roce"] {
        for (pes, cores, more) in [
            ("1", "1", "--weights --layers 3"),
            ("2", "3", "--weights --backward"),
            (
                "3",
                "2",
                "--weights --layers 2 --reduce mean --self-loops keep",
            ),
            ("5", "1", "--weights --layers 2 --reduce max --directed"),
            (
                "8",
                "2",
                "--weights --backward --layers 3 --directed --partition hash",
            ),
            ("3", "4", "--backward --reduce mean --directed --transpose"),
            (
                "4",
                "2",
                "--norm gcn --self-loops add --layers 4 --dtype f16",
            ),
            ("4", "2", "--norm both --directed --backward --dtype f16"),
        ] {
            for dim in ["1", "3", "17", "600"] {
                let mut args = vec![
                    "--graph", &weighted, "--pes", pes, "--cores", cores, "--engine", engine,
                    "--dim", dim,
                ];
                args.extend(more.split(' '));
                let (numbers, _) = result(&args, &[]);
                assert_eq!(field(&numbers, "launches"), 1);
                assert_eq!(field(&numbers, "acl_calls_during_kernel"), 0);
            }
        }
    }
}

#[test]
fn rows_longer_than_a_tile_and_odd_ones_go_through_layers_and_back() {
    for more in [
        "--layers 2 --norm gcn",
        "--backward --layers 2 --reduce mean",
    ] {
        for dim in ["1601", "3100"] {
            let graph = karate();
            let mut args = vec![
                "--graph", &graph, "--pes", "3", "--engine", "roce", "--dim", dim,
            ];
            args.extend(more.split(' '));
            result(&args, &[]);
        }
    }
}

#[test]
fn results_are_the_same_bits_whatever_the_engine_and_the_nic_do() {
    for more in [
        vec![],
        vec!["--layers", "3", "--norm", "gcn"],
        vec!["--backward", "--layers", "2", "--reduce", "mean"],
    ] {
        let bits = |engine: &str, nic: &str| {
            let mut args = vec![
                "--rmat", "8", "--pes", "3", "--cores", "3", "--dim", "24", "--engine", engine,
            ];
            args.extend(&more);
            result(&args, &[("NPUSIM_NIC", nic)]).1
        };
        let expected = bits("mapped", "inline");
        for (engine, nic) in [
            ("roce", "inline"),
            ("roce", "thread"),
            ("roce", "chaos:1"),
            ("roce", "chaos:2"),
        ] {
            assert!(bits(engine, nic) == expected, "{more:?} {engine} {nic}");
        }
    }
}

#[test]
fn layers_fetch_the_same_rows_anew_and_the_backward_pass_sends_each_sum_once() {
    let graph = karate();
    let run = |more: &str| {
        let mut args = vec![
            "--graph", &graph, "--pes", "4", "--cores", "2", "--dim", "64", "--engine", "roce",
        ];
        args.extend(more.split(' ').filter(|word| !word.is_empty()));
        result(&args, &[]).0
    };
    let one = run("");
    let rows = field(&one, "distinct_remote_rows");
    let three = run("--layers 3");
    assert_eq!(field(&three, "distinct_remote_rows"), rows);
    assert_eq!(field(&three, "requests"), 3 * rows);
    let back = run("--backward");
    // An undirected graph has as many rows to send as to fetch; a batch of up to 32 rows is one request.
    assert_eq!(field(&back, "distinct_remote_rows"), rows);
    assert!((1..=4 * 3).contains(&field(&back, "requests")), "{back}");
    assert_eq!(back["backward"], true);
}

#[test]
fn matrices_and_edge_indices_are_taken_as_they_stand() {
    let (_folder, features) = file("x.npy", &powers(4));
    let features = path_text(&features);
    let check = |graph: &Path, more: &[&str], expected: [f32; 4]| {
        for pes in ["1", "3"] {
            let graph = path_text(graph);
            let mut args = vec!["--graph", &graph, "--features", &features, "--pes", pes];
            args.extend(more);
            assert_eq!(values(result(&args, &[]).1), expected, "{graph} {more:?}");
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    };
    let path = place("csr.npz", &npz(&csr()));
    check(&path, &[], [110.0, 10.0, 0.0, 1.0]);
    check(&path, &["--weights"], [320.0, 50.0, 0.0, 7.0]);
    check(
        &path,
        &["--weights", "--transpose"],
        [7000.0, 52.0, 3.0, 0.0],
    );
    check(
        &path,
        &["--weights", "--backward"],
        [7000.0, 52.0, 3.0, 0.0],
    );
    check(
        &path,
        &["--weights", "--layers", "2"],
        [100.0, 250.0, 0.0, 2240.0],
    );
    check(&path, &["--self-loops", "drop"], [110.0, 0.0, 0.0, 1.0]);
    check(
        &path,
        &["--weights", "--undirected"],
        [7320.0, 52.0, 3.0, 7.0],
    );
    let mut csc = csr();
    csc[2].1 = npy(
        "<U3",
        "()",
        &"csc"
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect::<Vec<_>>(),
    );
    check(
        &place("csc.npz", &npz(&csc)),
        &["--weights"],
        [7000.0, 52.0, 3.0, 0.0],
    );
    let coo = [
        ("row", int64(&[0, 0, 1, 3, 0])),
        ("col", int32(&[1, 2, 1, 0, 1])),
        ("format", npy("|S3", "()", b"coo")),
        ("shape", int64(&[4, 4])),
        (
            "data",
            npy(
                "<f4",
                "(5,)",
                &[2f32, 3.0, 5.0, 7.0, 1.0].map(f32::to_le_bytes).concat(),
            ),
        ),
    ];
    check(
        &place("coo.npz", &npz(&coo)),
        &["--weights"],
        [330.0, 50.0, 0.0, 7.0],
    );
    // Sources 1 2 1 0 and targets 0 0 1 3.
    let index: Vec<u8> = [1i64, 2, 1, 0, 0, 0, 1, 3]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    let index = npy("<i8", "(2, 4)", &index);
    let weights = path_text(&place("weights.npy", &float64(&[2.0, 3.0, 5.0, 7.0])));
    check(
        &place("edge_index.npy", &index),
        &[],
        [110.0, 10.0, 0.0, 1.0],
    );
    check(
        &place("edge_index.npy", &index),
        &[&format!("--weights={weights}"), "--nodes", "4"],
        [320.0, 50.0, 0.0, 7.0],
    );
    place("pyg/edge_index.npy", &index);
    place("pyg/edge_weight.npy", &float64(&[2.0, 3.0, 5.0, 7.0]));
    check(
        &folder.path().join("pyg"),
        &["--weights"],
        [320.0, 50.0, 0.0, 7.0],
    );
    place("dgl/indptr.npy", &int64(&[0, 2, 3, 3, 4]));
    place("dgl/indices.npy", &int64(&[1, 2, 1, 0]));
    check(&folder.path().join("dgl"), &[], [110.0, 10.0, 0.0, 1.0]);
    let gzip = |text: &str| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    place("ogb/edge.csv.gz", &gzip("1,0\n2,0\n1,1\n0,3\n"));
    place("ogb/num-node-list.csv.gz", &gzip("4\n"));
    let table = path_text(&place(
        "ogb/node-feat.csv.gz",
        &gzip("1\n10\n100\n1000.0\n"),
    ));
    check(&folder.path().join("ogb"), &[], [110.0, 10.0, 0.0, 1.0]);
    let ogb = path_text(&folder.path().join("ogb"));
    let (_, out) = result(&["--graph", &ogb, "--features", &table, "--pes", "2"], &[]);
    assert_eq!(values(out), [110.0, 10.0, 0.0, 1.0]);
    check(
        &place("packed.txt.gz", &gzip("0 1\n3 1\n")),
        &["--nodes", "4"],
        [10.0, 1001.0, 0.0, 10.0],
    );
}

#[test]
fn a_graph_without_edges_and_one_of_one_node_are_aggregated() {
    let none = npz(&[("indptr", int32(&[0, 0, 0, 0])), ("indices", int32(&[]))]);
    let (_folder, none) = file("none.npz", &none);
    let (_folder2, one) = file(
        "one.npz",
        &npz(&[("indptr", int32(&[0, 1])), ("indices", int32(&[0]))]),
    );
    for more in [
        "--reduce mean",
        "--layers 2",
        "--backward --layers 2",
        "--norm gcn",
        "--reduce max --norm both",
    ] {
        for (graph, pes) in [(&none, "3"), (&one, "1")] {
            let graph = path_text(graph);
            let mut args = vec![
                "--graph", &graph, "--pes", pes, "--dim", "5", "--engine", "roce",
            ];
            args.extend(more.split(' '));
            result(&args, &[]);
        }
    }
}

#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let mut all = vec!["gnn", "--pes", "2"];
    all.extend(args);
    let ran = run(&all);
    assert_eq!(
        (ran.code, ran.stderr.lines().count()),
        (2, 1),
        "{args:?}: {ran:?}"
    );
    for word in words {
        assert!(
            ran.stderr.contains(word),
            "{args:?}: {word:?} is not in {:?}",
            ran.stderr
        );
    }
}

#[test]
fn arrays_that_are_no_graph_are_refused_in_one_line() {
    let whole = npz(&csr());
    let with = |key: &str, array: Vec<u8>| {
        let mut members = csr();
        members.retain(|(name, _)| *name != key);
        members.push(("unused", int32(&[])));
        let place = members.len() - 1;
        if !array.is_empty() {
            members.push(("placeholder", array));
            let last = members.len() - 1;
            members[last].0 = match key {
                "indices" => "indices",
                "indptr" => "indptr",
                "shape" => "shape",
                "format" => "format",
                _ => "data",
            };
        }
        members.remove(place);
        npz(&members)
    };
    for (content, words) in [
        (whole[..whole.len() / 2].to_vec(), &["no .npz archive"][..]),
        (
            with("indices", int32(&[1, 2, 9, 0])),
            &["indices", "element 2 is 9", "0 to 3"],
        ),
        (
            with("indices", int32(&[1, 2, -1, 0])),
            &["indices", "element 2 is -1"],
        ),
        (
            with("indices", float64(&[1.0, 2.0, 1.0, 0.0])),
            &["indices", "<f8", "integers"],
        ),
        (with("indices", vec![]), &["no indices"]),
        (with("indices", int32(&[1, 2])), &["indptr"]),
        (
            with("indptr", int32(&[0, 2, 3, 4])),
            &["indptr has 4 elements"],
        ),
        (
            with("indptr", int32(&[0, 3, 2, 3, 4])),
            &["indptr is wrong at row 1"],
        ),
        (with("indptr", vec![]), &["holds no graph"]),
        (with("shape", int64(&[4, 5])), &["(4, 5)", "square"]),
        (
            with("format", npy("|S3", "()", b"bsr")),
            &["\"bsr\"", "tocsr"],
        ),
        (
            with("data", float64(&[1.0, 2.0])),
            &["(2,)", "4 stored edges"],
        ),
        (
            with("data", float64(&[1.0, 2.0, f64::NAN, 1.0])),
            &["element 2 is NaN"],
        ),
        (with("data", vec![]), &["no weights"]),
        (
            with("data", npy("<f8", "(4,)", &[0; 20])),
            &["ends after 20 of the 32 bytes"],
        ),
    ] {
        let (_folder, path) = file("graph.npz", &content);
        let mut all = vec!["graph.npz"];
        all.extend(words);
        refused(&["--graph", &path_text(&path), "--weights"], &all);
    }
    for (content, words) in [
        (
            npy("<i8", "(4, 2)", &[0; 64]),
            &["(4, 2)", "(2, edges)"][..],
        ),
        (npy("<i8", "(2, 0)", &[]), &["no edge"]),
        (npy("<f4", "(2, 1)", &[0; 8]), &["integers"]),
    ] {
        let (_folder, path) = file("edge_index.npy", &content);
        refused(&["--graph", &path_text(&path)], words);
    }
    let (_folder, path) = file("few.txt", b"0 1\n7 2\n");
    refused(
        &["--graph", &path_text(&path), "--nodes", "5"],
        &["edge 1 is 7 2", "0 to 4"],
    );
    let (_folder, path) = file("edge.csv", b"0,1\n");
    std::fs::write(path.with_file_name("num-node-list.csv"), b"2\n3\n").unwrap();
    let folder = path_text(path.parent().unwrap());
    refused(&["--graph", &folder], &["num-node-list.csv", "one line"]);
    std::fs::write(path.with_file_name("num-node-list.csv"), b"2\n").unwrap();
    refused(
        &["--graph", &folder, "--nodes", "3"],
        &["num-node-list.csv", "2 nodes", "--nodes says 3"],
    );
    let (_folder, table) = file("node-feat.csv", b"1,2\n3\n");
    refused(
        &["--graph", &karate(), "--features", &path_text(&table)],
        &["node-feat.csv:2:", "2 columns"],
    );
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let graph = karate();
    refused(
        &["--graph", &graph, "--backward", "--reduce", "max"],
        &["--backward --reduce max"],
    );
    refused(&["--graph", &graph, "--layers", "0"], &["--layers 0"]);
    refused(
        &["--graph", &graph, "--layers", "65"],
        &["--layers 65", "64"],
    );
    refused(
        &["--graph", &graph, "--weights"],
        &["a weight (a finite number)"],
    );
    refused(&["--rmat", "5", "--weights"], &["--weights"]);
    refused(
        &["--graph", &graph, "--directed", "--undirected"],
        &["--undirected"],
    );
    let (_folder, path) = file("negative.txt", b"0 1 -2\n1 2 1\n");
    refused(
        &["--graph", &path_text(&path), "--weights", "--norm", "gcn"],
        &["negative.txt", "-2", "square root"],
    );
}

#[test]
fn a_result_does_not_take_the_place_of_an_input() {
    let (folder, graph) = file("edges.txt", b"0 1\n1 2\n");
    let graph = path_text(&graph);
    refused(
        &["--graph", &graph, "--out", &graph],
        &["--out", "input (--graph)"],
    );
    let link = path_text(&folder.path().join("link.json"));
    std::os::unix::fs::symlink(&graph, &link).unwrap();
    refused(
        &["--graph", &graph, "--json", &link],
        &["--json", "input (--graph)"],
    );
    let same = path_text(&folder.path().join("same"));
    refused(
        &["--graph", &graph, "--json", &same, "--out", &same],
        &["--out and --json"],
    );
    assert_eq!(std::fs::read(&graph).unwrap(), b"0 1\n1 2\n");
}
