//! The breadth of the device API beyond put and get: strided transfers and waits on many variables, on both engines.

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

#[test]
fn strided_transfers_of_every_size_move_their_blocks_and_nothing_else() {
    for engine in ["mapped", "roce"] {
        for seed in 1..=2 {
            let outcome = job(2, "strided")
                .arg("engine", engine)
                .arg("seed", seed)
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
            assert!(outcome.value::<u64>(0, "moved") > 30);
        }
    }
}

#[test]
fn strided_transfers_are_right_under_the_chaos_nic() {
    let outcome = job(3, "strided")
        .arg("engine", "roce")
        .arg("seed", 9)
        .env("NPUSIM_NIC", "chaos:3")
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn waits_on_many_variables_report_each_one_once_in_every_form_and_end_by_themselves() {
    for engine in ["mapped", "roce"] {
        let outcome = job(2, "waits")
            .arg("engine", engine)
            .env("NPUSHMEM_TIMEOUT", "3")
            .run()
            .ok();
        assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
    }
}

/// The settings of a job whose atomic domain is the core.
fn on_cores(job: Job) -> Job {
    job.env("NPUSIM_SOC", "Ascend950PR_9599")
        .env("NPUSHMEM_ATOMIC_DOMAIN", "core")
}

#[test]
fn random_sequences_of_every_atomic_on_every_type_fetch_what_a_plain_word_holds() {
    for engine in ["mapped", "roce"] {
        let nic = job(2, "atomics").arg("engine", engine).run().ok();
        assert_eq!(nic.sum("wrong"), 0, "{engine}: {}", nic.report());
    }
    let core = on_cores(job(2, "atomics")).run().ok();
    assert_eq!(core.sum("wrong"), 0, "{}", core.report());
    let chaos = job(2, "atomics").env("NPUSIM_NIC", "chaos:4").run().ok();
    assert_eq!(chaos.sum("wrong"), 0, "{}", chaos.report());
}

#[test]
fn no_float_add_bit_or_extreme_is_lost_when_all_cores_work_on_the_same_words() {
    for outcome in [
        job(3, "contend").arg("cores", 3).run(),
        on_cores(job(3, "contend")).arg("cores", 3).run(),
    ] {
        let outcome = outcome.ok();
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    }
}
