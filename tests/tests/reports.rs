//! Faults that users of similar libraries reported, as cases for this one. Each test names the report in a word or two; the report's kind is
//! tested, not its one value.
//!
//! Here, by test: unaligned sizes (NVSHMEM 3.3.9, rocm-systems #7955): every_size_up_to_a_page...; 64-bit atomics for 3, 5, 7 PEs (rocm-systems #7861):
//! atomics_and_meetings...; torn inline payloads (rocm-systems #8664): a_value_of_eight_bytes...; allocations of 0 and in free (SOS #404, #78,
//! pytorch #195500): allocating_and_freeing...; early signal waits (NVIDIA/nvshmem #66): a_signal_wait_never...; one counter for unordered chunks (NVIDIA/nvshmem
//! #84): a_counter_of_signals...; barriers without order (NVIDIA/nvshmem PR #36): barriers_work...; reused barriers (rocSHMEM PRs #110, #121):
//! a_hundred_thousand_barriers...; caches (rocm-systems #5781): puts_gets_and_cached...; fences that walk every queue pair (NVIDIA/nvshmem #61):
//! a_fence_to_one_pe...; two submitters (DeepEP PR #181): a_second_user...; leaks of finalize (NVIDIA/nvshmem PR #109, #81): a_hundred_rounds...; missing
//! atomics at init (ishmem #20): an_atomic_domain...; exhaustion (SOS #104, sglang #29942): exhausted_memory...; ignored failures of creation (DeepEP #157):
//! queue_pairs_that_cannot...; self-targeted calls (NVIDIA/nvshmem #7, #16): a_pe_reaches_itself...; completion memory (rocSHMEM PR #313): garbage_in...
//!
//! Cases that other files hold: world's numbers where a team's are due (rocSHMEM PR #35) in teams.rs and contexts.rs; nested 2d splits (SOS #1156), split and
//! barrier and destroy (DeepEP PR #478) and more than 40 PEs (CANN SHMEM) in teams.rs and collectives.rs; small staging buffers of strided transfers in
//! breadth.rs; the right way to reset a signal (DistCA #75) in docs/memory-model.md; put_signal of nothing (OpenSHMEM specification #206), transfers around the NIC's limit (gloo #474) and
//! self-targeted calls of one PE in data.rs; signals that cover the data of their own put, and others only behind a fence (NVIDIA/nvshmem
//! #75) in litmus.rs; strided transfers in breadth.rs; dead peers (DeepEP PR #370, NVIDIA/nvshmem #63), waits that nobody fulfils (sglang
//! #36943) and calls without attach in faults.rs; NICs without atomics (ishmem #20) in atomics.rs; missing PEs (NCCL PR #2318) in
//! host_several_pes.rs; strangers (CANN SHMEM: two jobs on one port) and peers that send one byte at a time (NVIDIA/nvshmem PR #97) in
//! host/bootstrap/tests.rs; port 65536 (CANN SHMEM) in host/config/mod.rs; codes without a text (jax #26674) in host/faults.rs.

use std::time::Duration;

use npushmem_tests::{scale, Job, Outcome};

const ENGINES: [&str; 2] = ["mapped", "roce"];
const NICS: [&str; 3] = ["inline", "thread", "chaos:11"];

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_pe"), pes, scenario)
}

/// A job of many rounds, which may take long on a busy machine.
fn patient(pes: usize, scenario: &str) -> Job {
    job(pes, scenario)
        .env("NPUSHMEM_KERNEL_TIMEOUT", 240)
        .env("NPUSHMEM_TIMEOUT", 120)
        .deadline(Duration::from_secs(300))
}

/// A count that grows and shrinks with `NPUSHMEM_TEST_SCALE`.
fn scaled(count: u64) -> u64 {
    ((count as f64 * scale()).ceil() as u64).max(1)
}

#[track_caller]
fn nothing_wrong(outcome: Outcome) -> Outcome {
    let outcome = outcome.ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    outcome
}

/// The one line that a PE prints when it gives up.
#[track_caller]
fn complaint(outcome: &Outcome, pe: usize) -> &str {
    assert!(!outcome.timed_out, "{}", outcome.report());
    assert_eq!(
        outcome.pes[pe].status.code(),
        Some(1),
        "{}",
        outcome.report()
    );
    let line = outcome.pes[pe]
        .stderr
        .lines()
        .find(|line| line.starts_with("error: "));
    line.unwrap_or_else(|| panic!("no error line\n{}", outcome.report()))
}

// --- Sizes, alignment, overflow ---------------------------------------------------------------------------------------------------------

/// NVSHMEM's changelog of 3.3.9 (a wrong tail where the size was no multiple of 16), rocm-systems #7955 (unaligned copies faulted).
#[test]
fn every_size_up_to_a_page_at_every_alignment_arrives_byte_for_byte() {
    // A smaller scale takes larger steps; odd, so that all remainders come.
    let step = ((1.0 / scale()).ceil() as u64) | 1;
    for engine in ENGINES {
        for pes in [1, 2] {
            let outcome = nothing_wrong(
                patient(pes, "sizes")
                    .arg("engine", engine)
                    .arg("cores", 2)
                    .arg("step", step)
                    .run(),
            );
            assert_eq!(outcome.sum("errors"), 0, "{}", outcome.report());
        }
    }
}

/// rocm-systems #7861: words of the library's own arrays were misaligned for odd numbers of PEs.
#[test]
fn atomics_and_meetings_work_for_odd_numbers_of_pes() {
    for pes in [3, 5, 7] {
        nothing_wrong(job(pes, "hammer").arg("cores", 3).arg("n", 50).run());
        for k in 0..3 {
            let outcome = job(pes, "barrier")
                .arg("engine", "roce")
                .arg("cores", 3)
                .arg("n", 10)
                .arg("k", k)
                .run()
                .ok();
            assert_eq!(
                outcome.sum("behind") + outcome.sum("errors"),
                0,
                "{}",
                outcome.report()
            );
        }
    }
}

/// rocm-systems #8664: an inline payload reached the bus in several writes.
#[test]
fn a_value_of_eight_bytes_is_never_seen_in_parts() {
    for engine in ENGINES {
        for nic in NICS {
            nothing_wrong(
                job(2, "torn")
                    .arg("engine", engine)
                    .arg("n", scaled(20_000))
                    .env("NPUSIM_NIC", nic)
                    .run(),
            );
        }
    }
}

/// SOS #404 and #78: malloc(0) and its like hung, or gave each PE something else. pytorch #195500 and #195501: a collective hidden in a free
/// or in the first allocation.
#[test]
fn allocating_and_freeing_waits_for_nobody_and_nothing_is_an_allocation_too() {
    job(3, "lonely").env("NPUSHMEM_TIMEOUT", 5).run().ok();
}

// --- Ordering and visibility --------------------------------------------------------------------------------------------------------------

/// NVIDIA/nvshmem #66: a signal wait returned before its signal, or before its data.
#[test]
fn a_signal_wait_never_returns_early() {
    for engine in ENGINES {
        nothing_wrong(
            patient(2, "turns")
                .arg("engine", engine)
                .arg("n", 8)
                .arg("m", scaled(100_000))
                .run(),
        );
        nothing_wrong(
            patient(2, "turns")
                .arg("engine", engine)
                .arg("n", 40)
                .arg("m", scaled(2_000))
                .env("NPUSIM_NIC", "chaos:4")
                .run(),
        );
    }
}

/// NVIDIA/nvshmem #84: data of 32 MB and more was wrong because one counter stood for chunks that come in any order.
#[test]
fn a_counter_of_signals_covers_chunks_that_come_in_any_order() {
    let large = patient(2, "chunks")
        .env("SHMEM_SYMMETRIC_SIZE", "160M")
        .arg("bytes", (64 << 20) + 64)
        .arg("cores", 4);
    for engine in ENGINES {
        nothing_wrong(
            large
                .clone()
                .arg("engine", engine)
                .arg("n", 1 << 20)
                .arg("m", 64)
                .run(),
        );
        nothing_wrong(
            job(2, "chunks")
                .arg("engine", engine)
                .arg("cores", 3)
                .arg("n", 8 << 10)
                .arg("m", 40)
                .env("NPUSIM_NIC", "chaos:9")
                .run(),
        );
    }
}

/// NVIDIA/nvshmem PR #36: a barrier hung where the network does not keep order.
#[test]
fn barriers_work_where_the_network_keeps_no_order() {
    for seed in 1..=scaled(4) {
        for engine in ["roce", "both"] {
            for k in [0, 1, 2] {
                let outcome = job(3, "barrier")
                    .arg("engine", engine)
                    .arg("cores", 2)
                    .arg("n", 30)
                    .arg("k", k)
                    .env("NPUSIM_NIC", format!("chaos:{seed}"))
                    .run()
                    .ok();
                assert_eq!(
                    outcome.sum("behind") + outcome.sum("errors"),
                    0,
                    "{}",
                    outcome.report()
                );
            }
        }
    }
}

/// rocSHMEM PRs #110 and #121: counters of a barrier were reset, and generations mixed, when PEs were skewed.
#[test]
fn a_hundred_thousand_barriers_of_skewed_pes_never_mix() {
    for engine in ENGINES {
        let outcome = patient(2, "barrier")
            .arg("engine", engine)
            .arg("n", scaled(100_000))
            .arg("k", 3)
            .run()
            .ok();
        assert_eq!(
            outcome.sum("behind") + outcome.sum("errors"),
            0,
            "{}",
            outcome.report()
        );
    }
    let outcome = job(3, "barrier")
        .arg("engine", "both")
        .arg("cores", 2)
        .arg("n", scaled(1_000))
        .arg("k", 3)
        .run()
        .ok();
    assert_eq!(
        outcome.sum("behind") + outcome.sum("errors"),
        0,
        "{}",
        outcome.report()
    );
}

/// rocm-systems #5781: puts, gets and local accesses saw different values because of caches.
#[test]
fn puts_gets_and_cached_accesses_agree_across_barriers() {
    for engine in ENGINES {
        for nic in NICS {
            nothing_wrong(
                job(3, "mixed")
                    .arg("engine", engine)
                    .arg("m", scaled(50))
                    .env("NPUSIM_NIC", nic)
                    .run(),
            );
        }
    }
}

/// NVIDIA/nvshmem #61: a fence went through every queue pair.
#[test]
fn a_fence_to_one_pe_rings_one_queue_pair() {
    let outcome = job(4, "fence").arg("engine", "roce").run().ok();
    assert_eq!(
        outcome.value::<u64>(0, "doorbells"),
        1,
        "{}",
        outcome.report()
    );
    assert_eq!(outcome.sum("error"), 0, "{}", outcome.report());
}

/// DeepEP PR #181: two submitters on one queue pair corrupted its ring.
#[test]
fn a_second_user_of_a_cores_queue_pairs_gets_an_error() {
    let outcome = job(2, "crowd").arg("cores", 2).arg("blocks", 3).run().ok();
    let said: String = outcome.value(0, "result");
    assert!(
        said.contains("core 2 called shmem_attach, but queue pairs exist for 2 comm cores"),
        "{said}"
    );
    let outcome = job(2, "twice").run().ok();
    let said: String = outcome.value(0, "result");
    assert!(
        said.contains("PE 0: shmem_attach") && said.contains("owns the context"),
        "{said}"
    );
}

// --- Init, finalize, memory ----------------------------------------------------------------------------------------------------------------

/// NVIDIA/nvshmem PR #109 and #81: finalize leaked handles.
#[test]
fn a_hundred_rounds_of_init_and_finalize_leave_nothing_open() {
    const ROUNDS: usize = 100;
    /// Mappings that the allocator's own habits may add; a leak of one a round is more.
    const MAPS: usize = ROUNDS / 4;
    let outcome = job(2, "again").arg("rounds", ROUNDS).run().ok();
    for pe in 0..2 {
        for (what, slack) in [("fds", 0), ("threads", 2), ("maps", MAPS)] {
            let early: usize = outcome.value(pe, &format!("{what}_early"));
            let last: usize = outcome.value(pe, &format!("{what}_last"));
            assert!(
                last <= early + slack,
                "{what}: {early} became {last}\n{}",
                outcome.report()
            );
        }
    }
}

/// ishmem #20: a crash where the platform lacks an atomic.
#[test]
fn an_atomic_domain_that_the_device_lacks_is_refused_at_once() {
    let outcome = job(2, "attach").env("NPUSHMEM_ATOMIC_DOMAIN", "core").run();
    let said = complaint(&outcome, 0);
    assert!(
        said.contains("NPUSHMEM_ATOMIC_DOMAIN=core") && said.contains("compare-and-swap"),
        "{said}"
    );
}

/// SOS #104: no help when the heap was exhausted. sglang #29942: exhausted memory was called an invalid argument.
#[test]
fn exhausted_memory_says_what_was_asked_and_what_to_raise() {
    let outcome = job(2, "attach")
        .env("SHMEM_SYMMETRIC_SIZE", "1M")
        .arg("bytes", 800 << 10)
        .run();
    let said = complaint(&outcome, 0);
    for part in ["800 KiB", "free", "largest", "SHMEM_SYMMETRIC_SIZE"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let outcome = job(2, "attach")
        .env("SHMEM_SYMMETRIC_SIZE", "256M")
        .env("NPUSIM_HBM", "64M")
        .run();
    let said = complaint(&outcome, 0);
    assert!(
        said.contains("memory")
            && said.contains("SHMEM_SYMMETRIC_SIZE")
            && !said.contains("invalid"),
        "{said}"
    );
}

/// DeepEP #157: a creation failed, nobody looked, and a later call crashed.
#[test]
fn queue_pairs_that_cannot_be_made_end_the_bring_up_with_the_reason() {
    let outcome = job(2, "attach")
        .arg("cores", 8)
        .env("NPUSHMEM_QP_BUDGET", "1M")
        .run();
    let said = complaint(&outcome, 0);
    assert!(
        said.contains("NPUSHMEM_QP_BUDGET") && said.contains("8 cores"),
        "{said}"
    );
    // The budget allows them, and the device does not have the memory.
    let outcome = job(2, "attach")
        .arg("cores", 16)
        .env("SHMEM_SYMMETRIC_SIZE", "4M")
        .env("NPUSIM_HBM", "24M")
        .env("NPUSHMEM_QP_DEPTH", 8192)
        .run();
    let said = complaint(&outcome, 0);
    assert!(said.contains("no device memory for a queue pair"), "{said}");
}

// --- Hangs, faults -------------------------------------------------------------------------------------------------------------------------

/// NVIDIA/nvshmem #7 and #16: calls that target the caller's own PE hung over the NIC.
#[test]
fn a_pe_reaches_itself_on_every_engine() {
    for engine in ENGINES {
        for nic in ["thread", "chaos:11"] {
            for (scenario, counts) in [
                ("move", ["wrong", "wrong"]),
                ("scalar", ["wrong", "wrong"]),
                ("signal", ["wrong", "wrong"]),
                ("atomics", ["wrong", "wrong"]),
                ("rows", ["wrong", "wrong"]),
                ("hammer", ["wrong", "errors"]),
                ("lock", ["errors", "errors"]),
                ("barrier", ["behind", "errors"]),
            ] {
                let outcome = job(1, scenario)
                    .arg("engine", engine)
                    .arg("step", 41)
                    .arg("n", 100)
                    .env("NPUSIM_NIC", nic)
                    .deadline(Duration::from_secs(60))
                    .run()
                    .ok();
                let bad: u64 = counts.iter().map(|key| outcome.sum(key)).sum();
                assert_eq!(bad, 0, "{}", outcome.report());
            }
        }
    }
}

/// rocSHMEM PR #313: completion memory was not zeroed, and garbage was taken for completions.
#[test]
fn garbage_in_fresh_memory_is_taken_for_nothing() {
    for engine in ENGINES {
        for (scenario, key) in [
            ("move", "wrong"),
            ("signal", "wrong"),
            ("atomics", "wrong"),
            ("barrier", "behind"),
            ("rows", "wrong"),
        ] {
            let outcome = job(2, scenario)
                .arg("engine", engine)
                .arg("step", 31)
                .env("NPUSIM_POISON", "all")
                .run()
                .ok();
            assert_eq!(outcome.sum(key), 0, "{}", outcome.report());
        }
        let outcome = job(2, "fault")
            .arg("mistake", 2)
            .arg("m", 0x1234_5678_9000u64)
            .arg("engine", engine)
            .arg("recover", 2)
            .env("NPUSIM_POISON", "all")
            .run();
        nothing_wrong(outcome);
    }
}
