//! Mistakes and deaths: the kernel ends, synchronize says who, what and why within the bound, and nothing is left behind.

use std::time::Duration;

use npushmem_tests::{Job, Outcome};

/// Bound of every wait in these jobs, seconds.
const TIMEOUT: u64 = 2;
/// The mistake of `st_fault` whose request the peer's NIC refuses.
const WRONG_KEY: u64 = 12;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_pe"), pes, scenario)
        .env("NPUSHMEM_TIMEOUT", TIMEOUT)
        .deadline(Duration::from_secs(40))
}

#[track_caller]
fn says(outcome: &Outcome, pe: usize, words: &[&str]) {
    let said: String = outcome.value(pe, "result");
    for word in words {
        assert!(
            said.contains(word),
            "PE {pe} said \"{said}\", without \"{word}\"\n{}",
            outcome.report()
        );
    }
}

fn mistake(number: u64, engine: &str) -> Job {
    job(2, "fault").arg("mistake", number).arg("engine", engine)
}

#[test]
fn a_put_past_the_heaps_end_is_refused_with_offset_and_length() {
    for engine in ["mapped", "roce"] {
        let outcome = mistake(0, engine)
            .arg("n", 1u64 << 40)
            .arg("end", 1)
            .run()
            .ok();
        says(&outcome, 0, &["PE 0", "put", "heap"]);
        let outcome = mistake(11, engine).arg("end", 1).run().ok();
        says(&outcome, 0, &["PE 0", "put"]);
        let outcome = mistake(10, engine).arg("end", 1).run().ok();
        says(&outcome, 0, &["PE 0", "put", "heap"]);
    }
}

#[test]
fn a_misaligned_atomic_is_refused() {
    let outcome = mistake(1, "roce").arg("end", 1).run().ok();
    says(&outcome, 0, &["PE 0", "atomic", "align"]);
}

#[test]
fn a_pe_outside_the_job_is_refused() {
    let outcome = mistake(6, "auto").arg("end", 1).run().ok();
    says(&outcome, 0, &["PE 0", "put", "2"]);
}

#[test]
fn a_source_that_no_region_covers_is_refused_by_roce() {
    let outcome = mistake(5, "roce").arg("m", 4096).arg("end", 1).run().ok();
    says(
        &outcome,
        0,
        &["PE 0", "put", "neither in the symmetric heap"],
    );
}

#[test]
fn a_wild_pointer_stops_the_kernel_with_the_address() {
    let outcome = mistake(2, "auto")
        .arg("m", 0x1234_5678_9000u64)
        .arg("end", 1)
        .run()
        .ok();
    says(&outcome, 0, &["PE 0", "st_fault", "1234"]);
}

/// DeepEP #289: a call before init failed with a cryptic message.
#[test]
fn a_call_without_attach_says_to_attach_first() {
    let outcome = mistake(9, "auto").arg("recover", 1).run().ok();
    says(
        &outcome,
        0,
        &["PE 0", "st_fault", "trap", "attach first", "recover()"],
    );
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn a_kernel_that_never_ends_is_stopped_by_the_runtime_and_the_device_recovers() {
    let outcome = mistake(3, "auto").arg("recover", 2).run().ok();
    let limit = format!("did not end within {} s", 2 * TIMEOUT);
    says(
        &outcome,
        0,
        &[
            "PE 0",
            "st_fault",
            &limit,
            "stopped by the runtime",
            "longer than its limit",
            "recover()",
        ],
    );
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn a_kernel_that_never_ends_is_stopped_also_where_timeouts_are_short() {
    let outcome = mistake(3, "auto")
        .arg("recover", 1)
        .env("NPUSHMEM_TIMEOUT", 0.5)
        .run()
        .ok();
    says(&outcome, 0, &["PE 0", "st_fault", "stopped by the runtime"]);
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn more_blocks_than_cores_that_spin_on_one_another_are_diagnosed() {
    let outcome = mistake(4, "auto")
        .arg("blocks", 3)
        .arg("n", 3)
        .arg("cores", 2)
        .env("NPUSIM_CORES", 2)
        .arg("recover", 1)
        .run()
        .ok();
    says(
        &outcome,
        0,
        &[
            "PE 0",
            "st_fault with 3 block(s)",
            "1 never started",
            "each of the 2 cores is held",
        ],
    );
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn a_wait_that_nobody_fulfils_ends_at_the_timeout() {
    let outcome = mistake(7, "auto").arg("n", 77).arg("end", 1).run().ok();
    says(&outcome, 0, &["PE 0", "wait"]);
}

#[test]
fn a_wrong_remote_key_is_named_with_the_nics_status() {
    for nic in ["inline", "thread", "chaos:3"] {
        let outcome = mistake(WRONG_KEY, "roce")
            .env("NPUSIM_NIC", nic)
            .arg("recover", 1)
            .run()
            .ok();
        says(
            &outcome,
            0,
            &[
                "PE 0: quiet toward PE 1",
                "0x13",
                "remote access error",
                "recover()",
            ],
        );
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    }
}

/// Waiting longer could not help, and the timeout would hide the cause.
#[test]
fn a_wait_ends_when_a_request_of_its_own_core_has_failed() {
    let ways = [
        (1, "wait_until"),
        (2, "wait_until"),
        (3, "sync_all"),
        (4, "sync_pe"),
        (5, "wait_until"),
    ];
    for nic in ["inline", "thread"] {
        for (m, operation) in ways {
            let outcome = mistake(WRONG_KEY, "roce")
                .arg("m", m)
                .env("NPUSIM_NIC", nic)
                .arg("recover", 1)
                .run()
                .ok();
            says(&outcome, 0, &["PE 0", operation, "toward PE 1", "0x13"]);
        }
    }
}

#[test]
fn a_wait_hears_of_a_request_of_a_queue_pair_that_is_not_staged_any_more() {
    let outcome = Job::new(env!("CARGO_BIN_EXE_pe"), 11, "fault")
        .env("NPUSHMEM_TIMEOUT", 5)
        .arg("mistake", WRONG_KEY)
        .arg("m", 6)
        .arg("engine", "roce")
        .arg("recover", 1)
        .run()
        .ok();
    says(&outcome, 0, &["PE 0: wait_until toward PE 1", "0x13"]);
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn after_recover_the_device_works_again() {
    // A refused call, a wild pointer, a wait that timed out; the first leaves the queue pairs whole.
    for (number, n, m) in [
        (0, u64::MAX / 2, 0u64),
        (2, 64, 0x1234_5678_9000),
        (7, 77, 0),
    ] {
        for engine in ["mapped", "roce"] {
            let outcome = job(3, "fault")
                .arg("mistake", number)
                .arg("n", n)
                .arg("m", m)
                .arg("engine", engine)
                .arg("cores", 2)
                .arg("blocks", 2)
                .arg("recover", 2)
                .run()
                .ok();
            assert_ne!(outcome.value::<String>(0, "result"), "ok");
            assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
        }
    }
}

#[test]
fn pes_that_waited_for_one_whose_kernel_was_killed_recover_with_it() {
    for engine in ["mapped", "roce"] {
        let outcome = job(3, "fault")
            .arg("mistake", 2)
            .arg("m", 0x1234_5678_9000u64)
            .arg("engine", engine)
            .arg("cores", 2)
            .arg("others", "barrier")
            .arg("recover", 1)
            .run()
            .ok();
        says(&outcome, 0, &["PE 0", "wild address"]);
        for pe in [1, 2] {
            says(
                &outcome,
                pe,
                &[&format!("PE {pe}: barrier_all"), "timed out"],
            );
        }
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    }
}

#[test]
fn every_survivor_names_the_pe_that_died() {
    for (how, engine) in [
        ("put", "roce"),
        ("put", "mapped"),
        ("barrier", "mapped"),
        ("barrier", "roce"),
        ("host", "auto"),
        ("flag", "auto"),
    ] {
        let outcome = job(3, "victim")
            .arg("how", how)
            .arg("to", 1)
            .arg("engine", engine)
            .env("NPUSHMEM_TIMEOUT", 10)
            .kill(1, Duration::from_millis(300))
            .run();
        assert!(!outcome.timed_out, "{how} {engine}: {}", outcome.report());
        assert!(
            outcome.elapsed < Duration::from_secs(20),
            "{how} {engine}: {}",
            outcome.report()
        );
        for pe in [0, 2] {
            assert_eq!(
                outcome.pes[pe].status.code(),
                Some(3),
                "{how} {engine}: {}",
                outcome.report()
            );
            says(&outcome, pe, &["PE 1"]);
        }
    }
}

#[test]
fn survivors_of_a_dead_pe_finalize_and_end() {
    for (how, engine) in [("put", "roce"), ("barrier", "mapped"), ("host", "auto")] {
        let outcome = job(3, "victim")
            .arg("how", how)
            .arg("to", 1)
            .arg("engine", engine)
            .arg("finalize", 1)
            .env("NPUSHMEM_TIMEOUT", 10)
            .kill(1, Duration::from_millis(300))
            .run();
        assert!(
            !outcome.timed_out && outcome.elapsed < Duration::from_secs(20),
            "{how} {engine}: {}",
            outcome.report()
        );
        for pe in [0, 2] {
            assert_eq!(
                outcome.pes[pe].status.code(),
                Some(0),
                "{}",
                outcome.report()
            );
            says(&outcome, pe, &["PE 1"]);
            let said: String = outcome.value(pe, "finalize");
            assert!(said.contains("PE 1"), "{}", outcome.report());
        }
    }
}
