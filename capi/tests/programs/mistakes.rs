//! Mistakes of programs: what checked calls (`SHMEM_DEBUG=1`) say, and how a job ends when a PE does.

use crate::harness::{Language, Program, Ran};

fn program() -> Program {
    Program::build("mistakes.c", Language::C, &["-O2"])
}

/// The job has failed, and somebody has said all `parts` in one line.
#[track_caller]
fn says(mistake: &str, ran: &Ran, parts: &[&str]) {
    assert_ne!(ran.code, 0, "{mistake}: {ran:?}");
    assert_ne!(ran.code, 124, "{mistake} hangs: {ran:?}");
    let said = ran
        .stderr
        .lines()
        .any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(said, "{mistake}: no line with {parts:?}: {ran:?}");
}

#[test]
fn checked_calls_name_the_routine_the_argument_and_the_range() {
    let program = program();
    for (mistake, parts) in [
        (
            "early",
            &["shmem_long_p: the library is not initialised"][..],
        ),
        (
            "outside",
            &["shmem_long_p: argument pe: PE 2 is outside the job; PE numbers run from 0 to 1"],
        ),
        ("negative", &["shmem_int_get: argument pe: PE -1"]),
        ("negative put", &["shmem_putmem: argument pe: PE -1"]),
        (
            "stack",
            &[
                "shmem_putmem: ",
                "is not symmetric memory: the heap is [",
                "static data [",
            ],
        ),
        ("stack p", &["shmem_long_p: ", "is not symmetric memory"]),
        (
            "null",
            &["shmem_putmem: argument source: a null pointer for 8 bytes"],
        ),
        (
            "null symmetric",
            &["shmem_long_g: argument addr: a null pointer where 8 bytes of symmetric memory are wanted"],
        ),
        (
            "misaligned",
            &["shmem_int_atomic_inc: the atomic variable at"],
        ),
        ("overlap", &["shmem_putmem: dest and source overlap"]),
        ("free", &["shmem_free: argument ptr:"]),
        (
            "context",
            &["shmem_ctx_long_p: argument ctx: SHMEM_CTX_INVALID"],
        ),
        (
            "unlocked",
            &["shmem_clear_lock: argument lock: the lock is not set"],
        ),
    ] {
        let ran = program.job(2).arg(mistake).checked().run();
        says(mistake, &ran, parts);
    }
    program.job(2).arg("none").checked().run().succeeds();
}

#[test]
fn memory_that_was_freed_or_never_given_out_is_told() {
    let program = program();
    for (mistake, parts) in [
        (
            "over the end",
            &[
                "shmem_long_put: argument dest: [",
                "runs 24 bytes over the end of the heap block [",
            ][..],
        ),
        (
            "freed",
            &[
                "shmem_long_p: argument addr: [",
                "is in no block of the symmetric heap: it was freed",
            ],
        ),
        (
            "freed twice",
            &[
                "shmem_free: argument ptr: ",
                "was not given by the symmetric heap, or is free already",
            ],
        ),
        (
            "inside",
            &[
                "shmem_free: argument ptr: ",
                "was not given by the symmetric heap",
            ],
        ),
        (
            "wraps",
            &[
                "shmem_long_put: argument dest: so many elements",
                "see argument nelems",
            ],
        ),
        (
            "wraps get",
            &["shmem_getmem: argument source: so many elements"],
        ),
        (
            "wraps signal",
            &["shmem_long_put_signal: argument dest: so many elements"],
        ),
    ] {
        let ran = program.job(2).arg(mistake).checked().run();
        says(mistake, &ran, parts);
    }
    // These are told, and survived.
    for (mistake, part) in [
        ("calloc wraps", "shmem_calloc: 9223372036854775807 elements of 4 bytes are more than any heap holds"),
        ("alignment", "shmem_align: argument alignment: 24 is no power of two"),
        ("thread level", "shmem_init_thread: argument requested: 99 is none of SHMEM_THREAD_SINGLE (0) to SHMEM_THREAD_MULTIPLE (3)"),
    ] {
        let ran = program.job(2).arg(mistake).run();
        assert_eq!(ran.code, 5, "{mistake}: {ran:?}");
        assert!(ran.stderr.contains(part), "{mistake}: {ran:?}");
    }
}

#[test]
fn sizes_that_wrap_end_a_collective_also_without_checking() {
    let program = program();
    for (mistake, part) in [
        ("wraps reduce", "shmem_long_sum_reduce: argument nelems: 2305843009213693953 elements of 8 bytes for 2 members are more than memory holds"),
        ("wraps alltoall", "shmem_alltoallmem: argument nelems: 9223372036854775807 elements of 1 bytes for 2 members"),
        ("no root", "shmem_long_broadcast: argument PE_root: 2 is no member; members run from 0 to 1"),
        ("stride of 0", "shmem_long_alltoalls: argument dst: a stride of 0; 1 is the least"),
    ] {
        let ran = program.job(2).arg(mistake).run();
        says(mistake, &ran, &[part]);
    }
}

#[test]
fn options_and_handles_that_are_none_are_told() {
    let program = program();
    for (mistake, parts) in [
        ("wait misaligned", &["shmem_long_wait_until: argument ivar: the variable at 0x", "is not aligned to its size, 8 bytes"][..]),
        ("wait stack", &["shmem_long_wait_until: argument ivar: [", "is not symmetric memory"]),
        ("cmp", &["shmem_long_wait_until: argument cmp: 17 is none of SHMEM_CMP_EQ", "(0 to 5)"]),
        ("cmp test", &["shmem_long_test: argument cmp: -1 is none of"]),
        ("no variables", &["shmem_long_wait_until_all: argument ivar: a null pointer where 24 bytes"]),
        ("signal operator", &["shmem_long_put_signal: argument sig_op: 9 is neither SHMEM_SIGNAL_SET (0) nor SHMEM_SIGNAL_ADD (1)"]),
        ("context options", &["shmem_ctx_create: argument options: 0x100000 has bits that are none of SHMEM_CTX_SERIALIZED (1)"]),
        ("hints", &["shmem_malloc_with_hints: argument hints: 0x100000"]),
        ("context gone", &["shmem_ctx_long_p: argument ctx: 0x", "is no context, or one that was destroyed"]),
        ("team context", &["shmem_ctx_long_p: argument pe: PE 2 is outside the context's team; PE numbers run from 0 to 1"]),
        ("team gone", &["shmem_team_sync: argument team: 0x", "is no team, or one that was destroyed"]),
        ("world destroyed", &["shmem_team_destroy: argument team: a predefined team"]),
        ("default context destroyed", &["shmem_ctx_destroy: argument ctx: SHMEM_CTX_DEFAULT"]),
    ] {
        let ran = program.job(2).arg(mistake).checked().run();
        says(mistake, &ran, parts);
    }
}

#[test]
fn collectives_that_differ_between_pes_are_told_with_both_sides() {
    let program = program();
    // Whoever notices first speaks, and ends the job: "here" and "on PE" may be the other way round.
    for (mistake, parts) in [
        ("routines", &["different routines: this PE is in shmem_", "shmem_barrier_all", "shmem_long_broadcast"][..]),
        ("malloc and barrier", &["different routines: this PE is in shmem_", "shmem_barrier_all", "shmem_malloc"]),
        ("sizes of malloc", &["shmem_malloc: argument size: ", "8 ", "1000 ", " on PE ", "; all members must pass the same"]),
        ("other blocks freed", &["shmem_free: argument ptr: ", " here, ", " on PE "]),
        ("types", &["different routines: ", "shmem_long_sum_reduce", "shmem_int_sum_reduce"]),
        ("operations", &["different routines: ", "shmem_long_sum_reduce", "shmem_long_max_reduce"]),
        ("nelems", &["shmem_long_sum_reduce: argument nelems: ", "4 ", "5 ", " on PE "]),
        ("root", &["shmem_long_broadcast: argument PE_root: ", "0 ", "1 ", " on PE "]),
        ("places", &["shmem_long_sum_reduce: argument dest: byte 0x", "of static data here, byte 0x", "of static data on PE "]),
        ("strides", &["shmem_long_alltoalls: argument dst: ", "1 ", "2 ", " on PE "]),
        ("teams", &["shmem_team_split_strided: argument size: ", "1 ", "2 ", " on PE "]),
        ("overlapping collective", &["shmem_long_fcollect: dest [0x", "overlap; they must lie apart"]),
        ("collective on the stack", &["shmem_long_sum_reduce: argument dest: [0x", "is not symmetric memory"]),
        ("outside the set", &["shmem_barrier: PE_start 0, logPE_stride 0, PE_size 3 are no active set; PE numbers run from 0 to 1"]),
        ("not in the set", &["shmem_barrier: PE 1 is not in the active set"]),
        ("negative count", &["shmem_long_sum_to_all: argument nreduce: -1 is negative"]),
    ] {
        let ran = program.job(2).arg(mistake).checked().run();
        says(mistake, &ran, parts);
    }
}

#[test]
fn a_pe_outside_the_job_is_told_also_without_checking() {
    let ran = program().job(2).arg("outside").run();
    says("outside", &ran, &["PE 2 is outside the job"]);
}

#[test]
fn a_global_exit_ends_every_pe_with_its_status() {
    assert_eq!(program().job(2).arg("global exit").run().code, 7);
}

#[test]
fn a_pe_that_dies_or_exits_ends_the_job_with_a_message() {
    let program = program();
    for (how, code) in [("killed", 134), ("exit", 3)] {
        let ran = program.job(2).arg(how).option("--keep-going").run();
        // PE 0 ends with 1; who is reaped first is chance.
        assert!([1, code].contains(&ran.code), "{ran:?}");
        says(how, &ran, &["PE 0: ", "PE 1 has ended: "]);
    }
}

#[test]
fn a_program_may_end_without_finalize() {
    program().job(2).arg("forgotten").run().succeeds();
}
