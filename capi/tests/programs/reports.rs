//! Faults that users of similar libraries reported, as cases for the C API. Each test names the report in a word or two; the report's kind is
//! tested, not its one value.
//!
//! Cases that other files hold: malloc(0) and its like (SOS #404, #78) in heap.c; atomics for odd numbers of PEs (rocm-systems #7861) in amo.c;
//! what a signal covers (NVIDIA/nvshmem #75) in litmus.c; a reduction of 64 MB (NVIDIA/nvshmem #84) in main.rs; nested splits (SOS #1156) and
//! contexts that number PEs as their team does (rocSHMEM PR #35) in teams.c; calls before init (DeepEP #289) in mistakes.rs; dead PEs (DeepEP PR
//! #370) and waits without an end (sglang #36943) in waits_end.rs; a PE to itself (NVIDIA/nvshmem #7) in every program on one PE.

use crate::harness::{Language, Program};

#[track_caller]
fn holds(case: &str, pes: &[u32]) {
    let program = Program::build("reports.c", Language::C, &["-O2"]);
    for &pes in pes {
        program.job(pes).arg(case).run().succeeds();
    }
}

/// OpenSHMEM specification #206: put_signal of 0 bytes.
#[test]
fn a_signal_without_data_arrives() {
    holds("signals without data", &[1, 2, 3]);
}

/// NVSHMEM's changelog of 3.3.9 (a wrong tail where the size was no multiple of 16), rocm-systems #7955 (unaligned copies faulted).
#[test]
fn every_size_at_every_alignment_arrives_byte_for_byte() {
    holds("sizes", &[1, 2]);
}

/// NVIDIA/nvshmem #66: a signal wait returned before its signal, or before its data.
#[test]
fn a_signal_wait_returns_with_its_signal_and_data() {
    holds("signals on time", &[2, 3]);
}

/// rocSHMEM PRs #110 and #121: counters of a barrier were reset, and generations mixed, when PEs were skewed.
#[test]
fn barriers_of_skewed_pes_never_mix() {
    holds("barriers", &[2, 5]);
}

/// DeepEP PR #478: split and barrier deadlocked.
#[test]
fn a_thousand_rounds_of_split_sync_and_destroy_end() {
    holds("teams", &[1, 2, 3]);
}

/// CANN SHMEM: a team above 40 PEs wrote the next team's flags.
#[test]
fn teams_of_more_than_64_pes_work() {
    holds("many", &[66]);
}

/// NVIDIA/nvshmem PR #109, #81: finalize leaked handles.
#[test]
fn a_hundred_rounds_of_init_and_finalize_leave_nothing_open() {
    holds("init", &[1, 2]);
}

/// SOS #104: the heap was exhausted, and nothing said what to do.
#[test]
fn an_exhausted_heap_says_what_is_free_and_which_setting_to_raise() {
    let program = Program::build("reports.c", Language::C, &["-O2"]);
    let ran = program.job(2).arg("exhausted").run();
    ran.succeeds();
    let line = "symmetric heap exhausted: asked 100 MiB, free 56";
    assert_eq!(ran.stderr.matches(line).count(), 2, "{ran:?}");
    assert!(
        ran.stderr
            .contains("raise SHMEM_SYMMETRIC_SIZE (now 256 MiB)"),
        "{ran:?}"
    );
}
