//! Mistakes and deaths: the kernel ends, synchronize says who, what and why within the bound, and nothing is left behind.

use std::time::Duration;

use npushmem_tests::{Job, Outcome};

/// Bound of every wait in these jobs, seconds.
const TIMEOUT: u64 = 2;

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

#[test]
fn a_put_without_attach_does_not_pass_silently() {
    let outcome = mistake(9, "auto").arg("end", 1).run().ok();
    let said: String = outcome.value(0, "result");
    assert_ne!(said, "ok", "{}", outcome.report());
}

#[test]
fn a_kernel_that_never_ends_is_lost_but_the_process_goes_on() {
    let outcome = mistake(3, "auto").arg("end", 1).run().ok();
    says(&outcome, 0, &["PE 0", "st_fault", "did not end"]);
    assert!(!outcome.timed_out);
}

#[test]
fn more_blocks_than_cores_that_spin_on_one_another_are_diagnosed() {
    let outcome = mistake(4, "auto")
        .arg("blocks", 3)
        .arg("n", 3)
        .arg("cores", 2)
        .env("NPUSIM_CORES", 2)
        .arg("end", 1)
        .run()
        .ok();
    let said: String = outcome.value(0, "result");
    assert_ne!(said, "ok", "{}", outcome.report());
    assert!(said.contains("core"), "{said}");
}

#[test]
fn a_wait_that_nobody_fulfils_ends_at_the_timeout() {
    let outcome = mistake(7, "auto").arg("n", 77).arg("end", 1).run().ok();
    says(&outcome, 0, &["PE 0", "wait"]);
}

#[test]
fn after_recover_the_device_works_again() {
    for engine in ["mapped", "roce"] {
        let outcome = job(3, "recover")
            .arg("engine", engine)
            .arg("cores", 2)
            .run()
            .ok();
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
        assert_ne!(outcome.value::<String>(0, "first"), "ok");
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
