//! Graph readers against small files, and the adjacency against a model.

use super::*;
use std::io::Write;

fn rules(directed: bool) -> Rules {
    Rules {
        directed,
        transpose: false,
        self_loops: SelfLoops::Drop,
    }
}

fn read(path: &Path, directed: bool) -> Result<Graph, GraphError> {
    let (raw, _) = read_edges(path, &Weights::Ones, None)?;
    Graph::build(raw, rules(directed), &path.display().to_string())
}

fn parse(text: &str, directed: bool) -> Result<Graph, GraphError> {
    let mut file = tempfile::Builder::new()
        .prefix("graph")
        .suffix(".txt")
        .tempfile()
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
    read(file.path(), directed)
}

fn message(text: &str) -> String {
    let message = parse(text, false).unwrap_err().to_string();
    message[message.rfind(".txt").unwrap() + 4..].to_owned()
}

#[test]
fn sparse_ids_become_rows_in_ascending_order_of_id() {
    let graph = parse("700 5\n5 900000000000\n", false).unwrap();
    assert_eq!(graph.nodes(), 3);
    assert_eq!(graph.row(0), [1, 2]);
    assert_eq!(graph.row(1), [0]);
    assert_eq!(graph.row(2), [0]);
}

#[test]
fn blanks_tabs_commas_comments_and_further_columns_are_understood() {
    let text = "# made by hand\n% and this\n\n0 1 0.5 x\n1\t2\n2,3\n 3 , 4 \r\n\r\n4  5";
    let graph = parse(text, false).unwrap();
    assert_eq!((graph.nodes(), graph.edges), (6, 5));
    assert_eq!(parse("\u{feff}0 1\n", false).unwrap().edges, 1);
}

#[test]
fn duplicates_and_self_loops_are_dropped_and_counted() {
    let graph = parse("0 1\n1 0\n0 1\n2 2\n1 2\n", false).unwrap();
    assert_eq!((graph.edges, graph.duplicates, graph.self_loops), (2, 2, 1));
    let graph = parse("0 1\n1 0\n0 1\n2 2\n1 2\n", true).unwrap();
    assert_eq!((graph.edges, graph.duplicates, graph.self_loops), (3, 1, 1));
    assert_eq!(graph.row(1), [0, 2]);
    assert_eq!(graph.row(2), [0u32; 0]);
}

#[test]
fn a_node_that_only_loops_to_itself_is_a_node_without_neighbours() {
    let graph = parse("0 1\n7 7\n", false).unwrap();
    assert_eq!(graph.nodes(), 3);
    assert_eq!(graph.row(2), [0u32; 0]);
}

#[test]
fn errors_name_the_line_and_what_stood_there() {
    assert_eq!(
        message("0 1\n# c\n2 x7\n"),
        ":3: expected a node id (a whole number from 0 up), found \"x7\""
    );
    assert_eq!(
        message("source,target\n0,1\n"),
        ":1: expected a node id (a whole number from 0 up), found \"source\""
    );
    assert_eq!(
        message("0 1\n5\n"),
        ":2: expected two node ids, found \"5\""
    );
    assert_eq!(
        message("0,,1\n"),
        ":1: expected two node ids, found \"0,,1\""
    );
    assert_eq!(
        message("0 -1\n"),
        ":1: expected a node id (a whole number from 0 up), found \"-1\""
    );
    assert_eq!(
        message("0 99999999999999999999\n"),
        ":1: expected a node id (a whole number from 0 up) below 2^64, found \"99999999999999999999\""
    );
    assert!(message("# nothing\n").starts_with(": no edge in it"));
    assert!(message("").starts_with(": no edge in it"));
    assert!(message("0 \u{1b}[31mred\n").contains("found \"\\u{1b}[31mred\""));
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let error = read(Path::new("/nonexistent/graph.txt"), false)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("/nonexistent/graph.txt: "), "{error}");
    let error = read(Path::new("/"), false).unwrap_err().to_string();
    assert!(error.contains("is a folder"), "{error}");
}

#[test]
fn matrix_market_keeps_nodes_without_entries() {
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n4 4 2\n2 1\n3 1\n";
    let graph = parse(text, false).unwrap();
    assert_eq!((graph.nodes(), graph.edges), (4, 2));
    assert_eq!(graph.row(0), [1, 2]);
    assert_eq!(graph.row(3), [0u32; 0]);
}

#[test]
fn a_symmetric_matrix_has_both_directions_when_read_as_directed() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 1.5\n";
    let graph = parse(text, true).unwrap();
    assert_eq!((graph.edges, graph.self_loops), (2, 1));
    assert_eq!(graph.row(0), [1]);
    assert_eq!(graph.row(1), [0]);
}

#[test]
fn matrix_market_errors_name_line_and_content() {
    let head = "%%MatrixMarket matrix coordinate pattern general\n";
    assert!(message("%%MatrixMarket matrix array real general\n2 2\n").contains(":1: expected "));
    assert!(message(&format!("{head}3 4 1\n1 1\n"))
        .contains(":2: expected a square matrix, found 3 x 4"));
    assert!(
        message(&format!("{head}3 3 1\n0 1\n")).contains(":3: expected a row from 1 to 3, found 0")
    );
    assert!(message(&format!("{head}3 3 1\n1 4\n"))
        .contains(":3: expected a column from 1 to 3, found 4"));
    assert!(message(&format!("{head}3 3 2\n1 2\n")).contains("expected 2 entries, found 1"));
    assert!(message(&format!("{head}3 3 1\n1 2\n1 3\n"))
        .contains(":4: expected the end of the file after 1 entries"));
    assert!(message(&format!("{head}3 x 1\n")).contains(":2: expected "));
}

#[test]
fn rows_of_the_real_graphs_have_the_published_facts() {
    let Some(folder) = crate::testdata::shared() else {
        return;
    };
    let facebook = read(&folder.join("facebook_combined.txt"), false).unwrap();
    assert_eq!(
        (facebook.nodes(), facebook.edges, facebook.largest_degree()),
        (4039, 88_234, 1045)
    );
    let cora = read(&folder.join("cora.cites"), false).unwrap();
    assert_eq!(
        (cora.nodes(), cora.edges, cora.self_loops, cora.duplicates),
        (2708, 5278, 0, 151)
    );
    assert_eq!(cora.largest_degree(), 168);
}

fn build(pairs: &[(u64, u64)], weights: &[f32], rules: Rules) -> Result<Graph, GraphError> {
    let raw = RawEdges {
        pairs: pairs.to_vec(),
        weights: (!weights.is_empty()).then(|| weights.to_vec()),
        declared_nodes: Some(4),
    };
    Graph::build(raw, rules, "graph")
}

/// All entries as (row, neighbour, weight).
fn entries(graph: &Graph) -> Vec<(usize, u32, f32)> {
    (0..graph.nodes())
        .flat_map(|row| graph.entries(row).map(move |entry| (row, entry)))
        .map(|(row, entry)| {
            let weight = graph.weights.as_ref().map_or(1.0, |weights| weights[entry]);
            (row, graph.neighbours[entry], weight)
        })
        .collect()
}

#[test]
fn weights_of_repeated_edges_add_up_and_both_directions_must_agree() {
    let pairs = [(0, 1), (1, 2), (0, 1), (2, 1)];
    let graph = build(&pairs, &[1.0, 4.0, 2.0, 4.0], rules(false)).unwrap();
    assert_eq!(
        entries(&graph),
        [(0, 1, 3.0), (1, 0, 3.0), (1, 2, 4.0), (2, 1, 4.0)]
    );
    assert_eq!((graph.edges, graph.duplicates), (2, 2));
    let graph = build(&pairs, &[1.0, 4.0, 2.0, 5.0], rules(true)).unwrap();
    assert_eq!(entries(&graph), [(0, 1, 3.0), (1, 2, 4.0), (2, 1, 5.0)]);
    let text = build(&pairs, &[1.0, 4.0, 2.0, 5.0], rules(false))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("between rows 1 and 2 one direction has weight 4 and the other 5"),
        "{text}"
    );
    assert!(text.contains("--directed"), "{text}");
}

#[test]
fn self_loops_are_dropped_kept_or_given_to_every_node() {
    let pairs = [(0, 0), (0, 1), (2, 2), (2, 2)];
    for directed in [false, true] {
        let with = |self_loops, weights: &[f32]| {
            let rules = Rules {
                self_loops,
                ..rules(directed)
            };
            build(&pairs, weights, rules).unwrap()
        };
        let mut expected = vec![(0, 1, 1.0)];
        if !directed {
            expected.push((1, 0, 1.0));
        }
        let dropped = with(SelfLoops::Drop, &[]);
        assert_eq!((entries(&dropped), dropped.self_loops), (expected, 3));
        let kept = with(SelfLoops::Keep, &[5.0, 1.0, 2.0, 3.0]);
        let loops = |graph: &Graph| -> Vec<(usize, f32)> {
            entries(graph)
                .into_iter()
                .filter(|&(row, neighbour, _)| row == neighbour as usize)
                .map(|(row, _, weight)| (row, weight))
                .collect()
        };
        assert_eq!(
            (loops(&kept), kept.self_loops, kept.duplicates),
            (vec![(0, 5.0), (2, 5.0)], 0, 1)
        );
        let added = with(SelfLoops::Add, &[5.0, 1.0, 2.0, 3.0]);
        assert_eq!(loops(&added), [(0, 5.0), (1, 1.0), (2, 5.0), (3, 1.0)]);
        assert_eq!(added.duplicates, 1);
        assert_eq!(
            loops(&with(SelfLoops::Add, &[])),
            [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]
        );
    }
}

#[test]
fn a_transposed_graph_turns_every_entry_round() {
    let pairs = [(0, 1), (0, 3), (2, 1), (3, 3)];
    let weights = [1.0, 2.0, 3.0, 4.0];
    let keep = Rules {
        self_loops: SelfLoops::Keep,
        ..rules(true)
    };
    let graph = build(&pairs, &weights, keep).unwrap();
    let turned = build(
        &pairs,
        &weights,
        Rules {
            transpose: true,
            ..keep
        },
    )
    .unwrap();
    assert_eq!(
        entries(&turned),
        [(1, 0, 1.0), (1, 2, 3.0), (3, 0, 2.0), (3, 3, 4.0)]
    );
    assert_eq!(graph.transposed(graph.weights.as_deref()), turned);
}

#[test]
fn weights_of_text_are_read_where_they_are_wanted() {
    let read = |text: &str| {
        let mut file = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read_edges(file.path(), &Weights::Own, None).map(|(raw, _)| raw.weights.unwrap_or_default())
    };
    assert_eq!(
        read("0 1 0.5\n1\t2\t-3e2 more\n2,3,1\n").unwrap(),
        [0.5, -300.0, 1.0]
    );
    let head = "%%MatrixMarket matrix coordinate";
    assert_eq!(
        read(&format!("{head} real general\n2 2 1\n1 2 0.25\n")).unwrap(),
        [0.25]
    );
    let skew = read(&format!("{head} integer skew-symmetric\n2 2 1\n2 1 7\n")).unwrap();
    assert_eq!(skew, [7.0, -7.0]);
    for (text, words) in [
        (
            "0 1\n",
            ":1: expected two node ids and a weight (a finite number), found \"0 1\"",
        ),
        ("0 1 nan\n", "a weight (a finite number)"),
        ("0 1 1e39\n", "a weight (a finite number)"),
        (
            "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n",
            "field real or integer, for weights",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2\n",
            ":3: expected row, column and value",
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn adjacency_equals_a_set_model(
        pairs in proptest::collection::vec((0u64..40, 0u64..40), 1..200),
        spread in proptest::sample::select(vec![1u64, 1 << 40]),
        directed: bool,
    ) {
        let raw = RawEdges { pairs: pairs.iter().map(|&(a, b)| (a * spread, b * spread)).collect(), weights: None, declared_nodes: None };
        let graph = Graph::build(raw, rules(directed), "model").unwrap();
        let ids: std::collections::BTreeSet<u64> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        let ids: Vec<u64> = ids.into_iter().collect();
        let mut rows = vec![std::collections::BTreeSet::new(); ids.len()];
        for &(a, b) in &pairs {
            let (a, b) = (ids.binary_search(&a).unwrap(), ids.binary_search(&b).unwrap());
            if a != b {
                rows[a].insert(b as u32);
                if !directed { rows[b].insert(a as u32); }
            }
        }
        let entries: usize = rows.iter().map(|row| row.len()).sum();
        proptest::prop_assert_eq!(graph.nodes(), ids.len());
        proptest::prop_assert_eq!(graph.edges as usize, if directed { entries } else { entries / 2 });
        for (node, row) in rows.iter().enumerate() {
            proptest::prop_assert_eq!(graph.row(node), &row.iter().copied().collect::<Vec<_>>()[..]);
        }
        proptest::prop_assert_eq!(graph.edges + graph.duplicates + graph.self_loops, pairs.len() as u64);
    }
}
