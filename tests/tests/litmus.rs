//! The memory model under the chaos NIC: what it promises holds in every seed; what it does not promise is seen to fail.

use std::collections::BTreeMap;

use npushmem_tests::{scale, Job};

/// Seeds of one run.
const SEEDS: f64 = 100.0;

#[test]
fn promises_hold_in_every_seed_and_every_witness_without_its_fence_fails() {
    let mut broken: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 1..=(SEEDS * scale()).ceil() as u64 {
        let outcome = Job::new(env!("CARGO_BIN_EXE_pe"), 2, "litmus")
            .arg("cores", 2)
            .arg("bytes", 4096)
            .env("NPUSIM_NIC", format!("chaos:{seed}"))
            .run()
            .ok();
        for line in outcome.pes[0].stdout.lines() {
            let Some((name, count)) = line.split_once('=') else {
                continue;
            };
            let count: u64 = count.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(
                count == 0 || name.starts_with("witness_"),
                "seed {seed}: {name} broken in {count} rounds\n{}",
                outcome.report()
            );
            *broken.entry(name.to_owned()).or_default() += count;
        }
    }
    println!("{broken:#?}");
    assert!(broken.len() > 20, "{broken:?}");
    for (name, count) in broken
        .iter()
        .filter(|(name, _)| name.starts_with("witness_"))
    {
        assert!(
            *count > 0,
            "{name} never failed: the chaos NIC does not show what its fence is for; {broken:?}"
        );
    }
}
