//! `npushmem bench` as a user runs it: every figure has its points, files are what they say they are. Nothing is said about times.

mod common;
use common::{path_text, run};
use serde_json::Value;

/// A short run; its JSON.
#[track_caller]
fn json(args: &[&str]) -> Value {
    let ran = run(&[&["bench"], args, &["--json", "-"]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {:.300}", ran.stdout))
}

fn figures(value: &Value) -> Vec<&str> {
    let figures = value["figures"].as_array().expect("figures");
    figures
        .iter()
        .filter_map(|figure| figure["id"].as_str())
        .collect()
}

/// Labels and numbers of points of a figure's series.
fn series(value: &Value, id: &str) -> Vec<(String, usize)> {
    let figures = value["figures"].as_array().expect("figures");
    let figure = figures
        .iter()
        .find(|figure| figure["id"] == id)
        .unwrap_or_else(|| panic!("no {id}"));
    let all = figure["series"].as_array().expect("series");
    all.iter()
        .map(|one| {
            let points = one["points"].as_array().expect("points");
            for point in points {
                let (low, median, high) = (
                    point["low"].as_f64(),
                    point["median"].as_f64(),
                    point["high"].as_f64(),
                );
                assert!(
                    low <= median && median <= high && low >= Some(0.0),
                    "{id}: {point}"
                );
            }
            (
                one["label"].as_str().expect("label").to_owned(),
                points.len(),
            )
        })
        .collect()
}

#[test]
fn every_benchmark_gives_its_figures_on_both_engines() {
    let value = json(&[
        "all",
        "--pes",
        "2",
        "--cores",
        "2",
        "--sizes",
        "8..64",
        "--samples",
        "1",
    ]);
    assert_eq!(
        (&value["version"], &value["clock"], &value["pes"]),
        (&1.into(), &"wall".into(), &2.into())
    );
    assert_eq!(
        figures(&value),
        [
            "put-latency",
            "get-latency",
            "put-signal-latency",
            "word-latency",
            "bandwidth",
            "bandwidth-cores",
            "rate-batch",
            "rate-size",
            "rate-cores",
            "atomic-latency",
            "atomic-rate-cores",
            "barrier",
            "collectives-pes-mapped",
            "collectives-size-mapped",
            "collectives-pes-roce",
            "collectives-size-roce",
            "gups",
            "launch"
        ]
    );
    let expect = |id: &str, labels: &[(&str, usize)]| {
        let labels: Vec<(String, usize)> = labels
            .iter()
            .map(|(label, points)| ((*label).to_owned(), *points))
            .collect();
        assert_eq!(series(&value, id), labels, "{id}");
    };
    expect("get-latency", &[("mapped", 3), ("roce", 3)]);
    expect(
        "bandwidth-cores",
        &[
            ("mapped put", 2),
            ("mapped get", 2),
            ("roce put", 2),
            ("roce get", 2),
        ],
    );
    expect("word-latency", &[("mapped", 6), ("roce", 6)]);
    expect("atomic-latency", &[("64 bits", 14), ("32 bits", 14)]);
    // 1 and 2 PEs.
    expect(
        "barrier",
        &[
            ("mapped barrier", 2),
            ("mapped sync", 2),
            ("roce barrier", 2),
            ("roce sync", 2),
        ],
    );
    assert_eq!(series(&value, "collectives-size-roce").len(), 7);
}

#[test]
fn one_pe_talks_to_itself() {
    for what in ["put-signal", "g", "gups"] {
        let value = json(&[what, "--pes", "1", "--sizes", "8", "--samples", "1"]);
        assert_eq!(figures(&value).len(), 1, "{what}");
    }
}

#[test]
fn tables_and_plots_name_units_and_what_kind_of_time_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("get.svg");
    let ran = run(&[
        "bench",
        "get",
        "--sizes",
        "8..32",
        "--samples",
        "1",
        "--plot",
        &path_text(&path),
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in [
        "Get latency [emulated]",
        "message size",
        "16 B",
        "not of an NPU",
        "get.svg",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let text = std::fs::read_to_string(&path).expect("the plot");
    for part in [
        "<svg",
        "message size (bytes)",
        "latency",
        "mapped",
        "roce",
        "emulated",
        "</svg>",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn several_figures_are_drawn_into_files_of_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.svg");
    let ran = run(&[
        "bench",
        "rate",
        "--sizes",
        "8",
        "--samples",
        "1",
        "--plot",
        &path_text(&path),
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(folder.path().join("r-rate-batch.svg").is_file());
    assert!(folder.path().join("r-rate-size.svg").is_file());
}

/// Counts of a call on an engine.
fn counts<'a>(value: &'a Value, call: &str, engine: &str) -> &'a Value {
    let costs = value["costs"].as_array().expect("costs");
    let cost = costs
        .iter()
        .find(|cost| cost["call"] == call && cost["engine"] == engine);
    &cost.unwrap_or_else(|| panic!("no {call} on {engine}"))["counts"]
}

#[track_caller]
fn counted(value: &Value, call: &str, engine: &str, expected: &[(&str, u64)]) {
    let counts = counts(value, call, engine);
    for (name, count) in expected {
        assert_eq!(
            counts[name].as_u64(),
            Some(*count),
            "{name} of {call} on {engine}: {counts}"
        );
    }
}

#[test]
fn each_call_costs_the_requests_doorbells_and_copies_that_it_must() {
    let value = json(&["cost", "--pes", "4"]);
    let roce = |call, expected: &[(&str, u64)]| counted(&value, call, "roce", expected);
    roce(
        "put_nbi 8 B, commit",
        &[
            ("doorbells", 1),
            ("requests", 1),
            ("ring_copies", 1),
            ("polls", 0),
        ],
    );
    roce(
        "32 put_nbi 8 B",
        &[
            ("doorbells", 1),
            ("requests", 32),
            ("ring_copies", 2),
            ("polls", 0),
            ("roce_bytes", 256),
        ],
    );
    roce(
        "32 put_nbi 8 B at the ring's end",
        &[
            ("doorbells", 1),
            ("requests", 32),
            ("ring_copies", 3),
            ("polls", 0),
        ],
    );
    roce(
        "put 8 B",
        &[
            ("doorbells", 1),
            ("requests", 1),
            ("ring_copies", 1),
            ("polls", 0),
        ],
    );
    roce(
        "put 4 KiB",
        &[("doorbells", 1), ("requests", 1), ("polls", 1)],
    );
    roce(
        "get 4 KiB",
        &[("doorbells", 1), ("requests", 1), ("polls", 1)],
    );
    roce(
        "p",
        &[
            ("doorbells", 1),
            ("requests", 1),
            ("ring_copies", 1),
            ("polls", 0),
        ],
    );
    roce("g", &[("doorbells", 1), ("requests", 1), ("polls", 1)]);
    roce(
        "put_signal_nbi 64 B, commit",
        &[
            ("doorbells", 1),
            ("requests", 1),
            ("sync_requests", 1),
            ("ring_copies", 2),
            ("polls", 0),
        ],
    );
    roce(
        "signal_set",
        &[
            ("doorbells", 1),
            ("requests", 0),
            ("sync_requests", 1),
            ("polls", 0),
        ],
    );
    roce(
        "fence_pe after put_nbi",
        &[
            ("doorbells", 0),
            ("requests", 0),
            ("ring_copies", 0),
            ("polls", 0),
        ],
    );
    roce(
        "quiet after put_nbi to each PE",
        &[
            ("doorbells", 0),
            ("requests", 0),
            ("polls", 3),
            ("cq_doorbells", 3),
        ],
    );
    // Two rounds: a word each.
    roce(
        "barrier_all",
        &[("doorbells", 2), ("requests", 0), ("sync_requests", 2)],
    );
    for call in [
        "put_nbi 8 B, commit",
        "32 put_nbi 8 B",
        "put 4 KiB",
        "get 4 KiB",
        "p",
        "g",
        "put_signal_nbi 64 B, commit",
        "quiet after put_nbi to each PE",
        "barrier_all",
    ] {
        let nothing = [
            ("doorbells", 0),
            ("requests", 0),
            ("sync_requests", 0),
            ("ring_copies", 0),
            ("polls", 0),
            ("roce_bytes", 0),
        ];
        counted(&value, call, "mapped", &nothing);
    }
    counted(
        &value,
        "put 4 KiB",
        "mapped",
        &[
            ("mapped_bytes", 4096),
            ("ub_in_bytes", 4096),
            ("ub_out_bytes", 4096),
        ],
    );
    counted(
        &value,
        "put_nbi 4 KiB from UB, commit",
        "mapped",
        &[("ub_in_bytes", 0), ("ub_out_bytes", 4096)],
    );
    // Atomics are the NIC's, whatever the engine.
    for engine in ["mapped", "roce"] {
        counted(
            &value,
            "atomic_add",
            engine,
            &[("doorbells", 1), ("requests", 1), ("polls", 0)],
        );
        counted(
            &value,
            "atomic_fetch_add",
            engine,
            &[("doorbells", 1), ("requests", 1), ("polls", 1)],
        );
    }
}

/// Shortest samples of a series by x.
fn shortest(value: &Value, id: &str, label: &str) -> Vec<(u64, f64)> {
    points(value, id, label, |point| {
        let samples = point["samples"].as_array().expect("samples");
        let all = samples.iter().filter_map(Value::as_f64);
        all.fold(f64::INFINITY, f64::min)
    })
}

/// Medians of a series by x.
fn medians(value: &Value, id: &str, label: &str) -> Vec<(u64, f64)> {
    points(value, id, label, |point| {
        point["median"].as_f64().expect("median")
    })
}

fn points(value: &Value, id: &str, label: &str, of: impl Fn(&Value) -> f64) -> Vec<(u64, f64)> {
    let figures = value["figures"].as_array().expect("figures");
    let figure = figures
        .iter()
        .find(|figure| figure["id"] == id)
        .unwrap_or_else(|| panic!("no {id}"));
    let all = figure["series"].as_array().expect("series");
    let one = all
        .iter()
        .find(|one| one["label"] == label)
        .unwrap_or_else(|| panic!("no {label}"));
    let points = one["points"].as_array().expect("points");
    points
        .iter()
        .map(|point| (point["x"].as_u64().expect("x"), of(point)))
        .collect()
}

#[test]
fn modelled_messages_are_bound_by_the_start_up_when_small_and_by_the_link_when_large() {
    let value = json(&["put-signal", "--model", "--sizes", "8..16M"]);
    assert_eq!(value["clock"], "modelled");
    let roce = medians(&value, "put-signal-latency", "roce");
    // 5 us and 100 Gbit/s.
    let (start, byte) = (5e-6, 80e-12);
    for &(bytes, seconds) in &roce {
        let least = start + bytes as f64 * byte;
        assert!(
            seconds >= least && seconds <= least + 0.3 * start,
            "{bytes} bytes: {seconds}"
        );
    }
    let (first, last) = (roce[0], roce[roce.len() - 1]);
    assert!(first.1 < 1.3 * start, "{first:?}");
    assert!(last.1 < 1.01 * last.0 as f64 * byte, "{last:?}");
    // HCCS: less start-up, a faster link.
    let mapped = medians(&value, "put-signal-latency", "mapped");
    assert!(mapped
        .iter()
        .zip(&roce)
        .all(|(mapped, roce)| mapped.1 < roce.1));
}

#[test]
fn modelled_messages_take_the_same_time_every_time() {
    for what in ["put-signal", "bandwidth"] {
        let run = || json(&[what, "--model", "--sizes", "8..4K"])["figures"].clone();
        assert_eq!(run(), run(), "{what}");
    }
}

#[test]
fn the_replay_is_held_to_the_executed_model() {
    let value = json(&["scale", "--pes", "5"]);
    for call in ["barrier", "alltoall 64 B", "alltoall 4096 B"] {
        let executed = shortest(&value, "scale", &format!("{call}, executed"));
        let replayed = medians(&value, "scale", &format!("{call}, replayed"));
        assert_eq!(
            executed.iter().map(|point| point.0).collect::<Vec<_>>(),
            [2, 4, 5]
        );
        for (pes, seconds) in executed {
            let other = replayed
                .iter()
                .find(|point| point.0 == pes)
                .expect("replayed too")
                .1;
            assert!(
                (seconds / other - 1.0).abs() < 0.05,
                "{call}, {pes} PEs: executed {seconds}, replayed {other}"
            );
        }
        assert!(replayed.iter().any(|point| point.0 == 1024));
    }
}

#[test]
fn modelled_time_needs_a_common_launcher_and_an_inline_nic() {
    let mut command = common::npushmem(&["bench", "g", "--model", "--samples", "1"]);
    command.env("NPUSIM_NIC", "thread");
    let ran = common::finish(command);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("NPUSIM_TIME=model") && ran.stderr.contains("NPUSIM_NIC=inline"),
        "{ran:?}"
    );
}
