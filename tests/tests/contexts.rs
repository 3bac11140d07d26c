//! Contexts on the device: apart from one another, every family of calls, teams, limits, misuse, recovery; on both engines.

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

/// The settings of a job whose atomic domain is the core.
fn on_cores(job: Job) -> Job {
    job.env("NPUSIM_SOC", "Ascend950PR_9599")
        .env("NPUSHMEM_ATOMIC_DOMAIN", "core")
}

#[test]
fn quiet_flush_and_fence_of_one_context_neither_ring_nor_poll_for_another() {
    // quiet, fence, pe_quiet, flush, fence_pe: those that complete poll once, those that order poll nothing.
    for (how, polls) in [(0, 1), (1, 0), (2, 1), (3, 1), (4, 0)] {
        let outcome = job(2, "contexts_apart")
            .arg("engine", "roce")
            .arg("how", how)
            .run()
            .ok();
        for pe in 0..2 {
            let value = |key| outcome.value::<u64>(pe, key);
            assert_eq!(value("error"), 0, "{}", outcome.report());
            assert_eq!(value("first_doorbells"), 1, "{}", outcome.report());
            assert_eq!(value("first_polls"), polls, "{}", outcome.report());
            // The other one is rung when the kernel ends, and polled by the host's quiet.
            assert_eq!(value("second_doorbells"), 0, "{}", outcome.report());
            assert_eq!(value("second_polls"), 0, "{}", outcome.report());
            assert_eq!(value("second_polls_after"), 0, "{}", outcome.report());
            assert_eq!(value("second_polls_host"), 1, "{}", outcome.report());
            assert_eq!(value("all_requests"), 20, "{}", outcome.report());
            assert_eq!(value("default_requests"), 0, "{}", outcome.report());
            assert_eq!(value("wrong"), 0, "{}", outcome.report());
        }
    }
}

#[test]
fn contexts_that_take_turns_toward_all_pes_keep_their_own_order() {
    for (pes, nic) in [(1, "inline"), (3, "chaos:5"), (5, "chaos:6")] {
        for engine in ["mapped", "roce"] {
            let outcome = job(pes, "contexts_turns")
                .arg("engine", engine)
                .env("NPUSIM_NIC", nic)
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
        }
    }
}

#[test]
fn every_family_of_calls_goes_by_a_context_with_the_numbers_of_its_team() {
    for engine in ["mapped", "roce"] {
        for pes in [1, 3] {
            let outcome = job(pes, "context_families")
                .arg("engine", engine)
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
        }
    }
    let chaos = job(2, "context_families")
        .arg("engine", "roce")
        .env("NPUSIM_NIC", "chaos:7")
        .run()
        .ok();
    assert_eq!(chaos.sum("wrong"), 0, "{}", chaos.report());
    // Mapped, with the cores' atomics: no queue pairs at all.
    let core = on_cores(job(2, "context_families"))
        .arg("engine", "mapped")
        .run()
        .ok();
    assert_eq!(core.sum("wrong"), 0, "{}", core.report());
}

#[test]
fn contexts_are_made_and_destroyed_again_and_again_until_there_are_too_many() {
    let outcome = job(3, "context_churn").arg("engine", "roce").run().ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    for pe in 0..3 {
        assert_eq!(outcome.value::<usize>(pe, "made"), 15);
        let refusal: String = outcome.value(pe, "refusal");
        assert!(refusal.contains("at most 16"), "{refusal}");
    }
}

#[test]
fn handles_cores_and_numbers_that_a_context_does_not_have_are_errors_and_recovery_mends_contexts() {
    for engine in ["mapped", "roce"] {
        let outcome = job(2, "context_misuse")
            .arg("engine", engine)
            .arg("cores", 2)
            .run()
            .ok();
        assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
    }
}

#[test]
fn a_context_whose_queue_pairs_exceed_the_budget_is_refused_on_all_pes() {
    // 2 PEs, one core: 5 pairs of 132 KiB at bring-up, and 3 more.
    let outcome = job(2, "context_budget")
        .env("NPUSHMEM_QP_BUDGET", "1M")
        .run()
        .ok();
    for pe in 0..2 {
        let refusal: String = outcome.value(pe, "refusal");
        assert!(
            refusal.contains("NPUSHMEM_QP_BUDGET is 1 MiB") && refusal.contains("3 queue pairs"),
            "{refusal}"
        );
    }
}

#[test]
fn a_kernel_that_is_given_a_buffer_for_its_context_is_an_error_at_synchronize() {
    let outcome = job(2, "wrong_context").run().ok();
    for pe in 0..2 {
        let said: String = outcome.value(pe, "said");
        assert!(
            said.contains("ct_meet") && said.contains("shmem_attach of what is no context"),
            "{said}"
        );
    }
}
