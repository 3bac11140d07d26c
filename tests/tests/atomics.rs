//! Atomics from kernels: each ticket once, in each domain, whatever engine a context asked for.

use npushmem_tests::{Job, Outcome};

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_pe"), pes, scenario)
}

/// The settings of a job whose atomic domain is the core.
fn on_cores(job: Job) -> Job {
    job.env("NPUSIM_SOC", "Ascend950PR_9599")
        .env("NPUSHMEM_ATOMIC_DOMAIN", "core")
}

#[track_caller]
fn each_ticket_once(outcome: Outcome, tickets: u64) {
    let outcome = outcome.ok();
    assert_eq!(
        outcome.value::<u64>(0, "tickets"),
        tickets,
        "{}",
        outcome.report()
    );
    assert_eq!(
        outcome.sum("wrong") + outcome.sum("errors"),
        0,
        "{}",
        outcome.report()
    );
}

#[test]
fn every_operation_of_every_type_does_what_the_standard_says() {
    for engine in ["mapped", "roce"] {
        let nic = job(2, "atomics").arg("engine", engine).run().ok();
        assert_eq!(nic.sum("wrong"), 0, "{engine}: {}", nic.report());
    }
    let core = on_cores(job(2, "atomics")).run().ok();
    assert_eq!(core.sum("wrong"), 0, "{}", core.report());
}

#[test]
fn four_pes_with_four_cores_draw_each_ticket_once_from_the_nic_by_contexts_of_both_engines() {
    let outcome = job(4, "hammer")
        .arg("cores", 4)
        .arg("n", 20_000)
        .arg("bytes", 4096)
        .arg("engine", "both")
        .run();
    each_ticket_once(outcome, 4 * 4 * 20_000);
}

#[test]
fn four_pes_with_four_cores_draw_each_ticket_once_from_the_cores() {
    let outcome = on_cores(job(4, "hammer"))
        .arg("cores", 4)
        .arg("n", 20_000)
        .arg("bytes", 4096)
        .arg("engine", "both")
        .run();
    each_ticket_once(outcome, 4 * 4 * 20_000);
}

#[test]
fn tickets_of_32_bits_in_both_halves_of_a_word_come_once_each() {
    for k in [1, 2, 3, 6] {
        let outcome = job(2, "hammer")
            .arg("cores", 2)
            .arg("n", 300)
            .arg("k", k)
            .arg("at", 1)
            .run();
        each_ticket_once(outcome, 2 * 2 * 300);
    }
}

#[test]
fn tickets_come_once_each_under_the_chaos_nic() {
    for seed in 1..=5 {
        let outcome = job(2, "hammer")
            .arg("cores", 2)
            .arg("n", 300)
            .arg("engine", "both")
            .env("NPUSIM_NIC", format!("chaos:{seed}"))
            .run();
        each_ticket_once(outcome, 2 * 2 * 300);
    }
}

#[test]
fn signals_and_additions_that_fetch_nothing_are_all_counted() {
    for k in [4, 5] {
        let outcome = job(3, "hammer")
            .arg("cores", 2)
            .arg("n", 500)
            .arg("k", k)
            .run()
            .ok();
        assert_eq!(
            outcome.value::<u64>(0, "counter"),
            3 * 2 * 500,
            "{}",
            outcome.report()
        );
        assert_eq!(outcome.sum("errors"), 0);
    }
}

#[test]
fn a_lock_by_compare_swap_protects_a_counter() {
    let lock = || job(3, "lock").arg("cores", 2).arg("n", 50);
    for (domain, job) in [
        ("nic, mapped", lock().arg("engine", "mapped")),
        ("nic, roce", lock().arg("engine", "roce")),
        ("nic, both", lock().arg("engine", "both")),
        ("core", on_cores(lock())),
    ] {
        let outcome = job.run().ok();
        assert_eq!(
            outcome.value::<u64>(0, "counter"),
            3 * 2 * 50,
            "{domain}: {}",
            outcome.report()
        );
        assert_eq!(outcome.sum("errors"), 0);
    }
}

#[test]
fn eight_pes_that_write_neighbouring_slots_of_a_line_lose_nothing() {
    for engine in ["mapped", "roce", "both"] {
        for k in 0..3 {
            let outcome = job(8, "neighbours")
                .arg("engine", engine)
                .arg("cores", 2)
                .arg("k", k)
                .run()
                .ok();
            // All of them write to PE 0.
            assert_eq!(
                outcome.value::<u64>(0, "lost") + outcome.sum("errors"),
                0,
                "{}",
                outcome.report()
            );
        }
    }
}

#[test]
fn with_a_nic_that_refuses_atomics_all_else_works_and_an_atomic_says_so() {
    for refusal in ["NPUSIM_NIC_ATOMICS", "NPUSIM_NIC_ATOMIC_ACCESS"] {
        let outcome = job(2, "barrier")
            .arg("engine", "roce")
            .arg("cores", 2)
            .arg("n", 20)
            .env(refusal, "off")
            .run()
            .ok();
        assert_eq!(
            outcome.sum("behind") + outcome.sum("errors"),
            0,
            "{}",
            outcome.report()
        );
        let outcome = job(2, "hammer").arg("n", 10).env(refusal, "off").run();
        let pe = &outcome.pes[0];
        assert_eq!(pe.status.code(), Some(1), "{}", outcome.report());
        let line = pe
            .stderr
            .lines()
            .find(|line| line.starts_with("error: "))
            .unwrap_or_default();
        assert!(line.contains("atomic"), "{}", outcome.report());
    }
}
