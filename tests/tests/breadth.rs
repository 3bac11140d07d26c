//! The breadth of the device API beyond put and get: strided transfers and waits on many variables, on both engines.

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

#[test]
fn strided_transfers_of_every_size_move_their_blocks_and_nothing_else() {
    for engine in ["mapped", "roce"] {
        for seed in 1..=2 {
            let outcome = job(2, "strided").arg("engine", engine).arg("seed", seed).run().ok();
            assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
            assert!(outcome.value::<u64>(0, "moved") > 30);
        }
    }
}

#[test]
fn strided_transfers_are_right_under_the_chaos_nic() {
    let outcome = job(3, "strided").arg("engine", "roce").arg("seed", 9).env("NPUSIM_NIC", "chaos:3").run().ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn waits_on_many_variables_report_each_one_once_in_every_form_and_end_by_themselves() {
    for engine in ["mapped", "roce"] {
        let outcome = job(2, "waits").arg("engine", engine).env("NPUSHMEM_TIMEOUT", "3").run().ok();
        assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
    }
}
