//! How waits end that would never end by themselves: by the limit `NPUSHMEM_TIMEOUT`, or because a PE died; and what is said then.

use crate::harness::{Language, Program, Ran};

/// Ways to wait: the argument of waits_end.c, and what the message says of it on 3 PEs of which the last does not come.
const WAYS: &[(&str, &[&str])] = &[
    (
        "barrier",
        &[
            "shmem_barrier_all: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "sync",
        &[
            "shmem_sync_all: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "active set",
        &[
            "shmem_barrier: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "smaller active set",
        &[
            "a collective on an active set: ",
            "PE 2, to agree on the active set",
        ],
    ),
    (
        "team",
        &[
            "shmem_team_sync: ",
            "PE 2 of 2 in the team, which has not come",
        ],
    ),
    ("pair", &["shmem_sync_pe: ", "PE 2, which has not come"]),
    (
        "broadcast",
        &[
            "shmem_long_broadcast: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "reduce",
        &[
            "shmem_long_sum_reduce: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "alltoall",
        &[
            "shmem_long_alltoall: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "collect",
        &[
            "shmem_long_collect: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "malloc",
        &[
            "shmem_malloc: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "finalize",
        &[
            "shmem_finalize: ",
            "PE 2 of 3 in the team, which has not come",
        ],
    ),
    (
        "wait",
        &[
            "shmem_long_wait_until: ",
            "the variable at 0x",
            " to be == 42; it is 0",
        ],
    ),
    (
        "all",
        &[
            "shmem_long_wait_until_all: ",
            "all of the 4 variables at 0x",
            "index 0, 1, 2, 3",
        ],
    ),
    (
        "any",
        &[
            "shmem_long_wait_until_any: ",
            "any of the 4 variables at 0x",
        ],
    ),
    (
        "some",
        &[
            "shmem_long_wait_until_some: ",
            "some of the 4 variables at 0x",
        ],
    ),
    (
        "signal",
        &["shmem_signal_wait_until: ", " to be >= 7; it is 0"],
    ),
    (
        "lock",
        &[
            "shmem_set_lock: ",
            "the lock whose instance on PE 0 is at 0x",
            "1 who asked before",
        ],
    ),
];

/// Some line says all `parts`.
#[track_caller]
fn says(way: &str, ran: &Ran, parts: &[&str]) {
    let said = ran
        .stderr
        .lines()
        .any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(said, "{way}: no line with {parts:?}: {ran:?}");
    assert!(!ran.stdout.contains("goes on"), "{way}: {ran:?}");
}

#[test]
fn a_wait_that_lasts_longer_than_the_limit_ends_the_job_and_says_what_for() {
    let program = Program::build("waits_end.c", Language::C, &["-O2"]);
    for (way, parts) in WAYS {
        let job = program.job(3).arg(*way).env("NPUSHMEM_TIMEOUT", "0.6");
        let ran = job.run();
        assert_eq!(ran.code, 1, "{way}: {ran:?}");
        let limit = "waited 0.6 s (NPUSHMEM_TIMEOUT) for ";
        says(way, &ran, &[&[limit], *parts].concat());
    }
}

#[test]
fn a_wait_for_a_pe_that_was_killed_ends_and_names_it_and_what_was_waited_for() {
    let program = Program::build("waits_end.c", Language::C, &["-O2"]);
    for (way, parts) in WAYS {
        let job = program.job(3).arg(*way).arg("dies").option("--keep-going");
        let ran = job.run();
        // The PEs that waited end with 1; who is reaped first is chance.
        assert!([1, 137].contains(&ran.code), "{way}: {ran:?}");
        // Active sets of two: PE 0 is not in it, and not asked.
        let death = "PE 2 has ended: ";
        says(
            way,
            &ran,
            &[&[death, "; this PE waited for "], *parts].concat(),
        );
    }
}

#[test]
fn pes_that_live_are_waited_for_as_long_as_it_takes() {
    let program = Program::build("waits_end.c", Language::C, &["-O2"]);
    let ran = program
        .job(2)
        .arg("barrier")
        .option("--timeout")
        .option("2")
        .run();
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(!ran.stderr.contains("waited"), "{ran:?}");
}
