//! What `npushmem gnn` writes is what NumPy computes from the same files, with examples/python/gnn_check.py. Without NumPy the test says so and passes.

mod common;
use std::path::Path;
use std::process::Command;

use common::{finish, npushmem, path_text};

#[test]
fn numpy_computes_the_same_from_the_same_files() {
    let python = |args: &[&str]| Command::new("python3").args(args).output();
    if !python(&["-c", "import numpy"]).is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: no python3 with numpy");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| path_text(&folder.path().join(name));
    let (graph, features, out) = (place("graph.npz"), place("x.npy"), place("y.npy"));
    let script =
        path_text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/python/gnn_check.py"));
    let made = python(&[&script, "--make", &graph, &features]).unwrap();
    assert!(made.status.success(), "{made:?}");
    for (engine, options) in [
        ("roce", "--reduce sum"),
        ("mapped", "--weights --reduce max --layers 2"),
        ("roce", "--weights --norm gcn --layers 3"),
        ("roce", "--weights --norm both --reduce mean"),
        ("mapped", "--weights --backward --reduce mean"),
        ("roce", "--weights --norm gcn --backward --layers 2"),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let mut args = vec![
            "gnn",
            "--graph",
            &graph,
            "--features",
            &features,
            "--pes",
            "3",
            "--repeat",
            "1",
            "--engine",
            engine,
            "--out",
            &out,
        ];
        args.extend(&options);
        let ran = finish(npushmem(&args));
        assert_eq!(ran.code, 0, "{options:?}: {ran:?}");
        let mut args = vec![script.as_str(), &graph, &features, &out];
        args.extend(&options);
        let checked = python(&args).unwrap();
        assert!(
            checked.status.success(),
            "{engine} {options:?}: {checked:?}"
        );
    }
}
