//! Test programs in C and C++, built by `oshcc` and `oshcxx` and run by `oshrun` on several numbers of PEs; and what the library exports.
//!
//! The programs are the .c files here; their lists of types come from the type table. Needs the package npushmem-cli built in the same target
//! folder, as `cargo test --workspace` has it.

#[path = "../../src/constants.rs"]
#[allow(unused)]
mod constants;
mod examples;
#[path = "../header/families.rs"]
#[allow(dead_code)]
mod families;
mod harness;
mod heap;
mod launchers;
mod mistakes;
mod reports;
mod statics;
mod types;
mod waits_end;

use std::collections::BTreeSet;

use harness::{Language, Program, PES};

/// Builds a program of this folder and runs it on every number of PEs.
fn passes(source: &str) {
    let program = Program::build(source, Language::C, &[]);
    for pes in PES {
        program.run(pes).succeeds();
    }
}

#[test]
fn the_examples_in_c_verify_their_results_on_every_pe() {
    for source in ["hello.c", "ring.c", "pi.c"] {
        let source = format!("../../../examples/c/{source}");
        let program = Program::build(&source, Language::C, &[]);
        for pes in PES {
            let ran = program.run(pes);
            ran.succeeds();
            let verified = ran.stdout.matches("verified: ").count();
            assert_eq!(verified, pes as usize, "{ran:#?}");
        }
    }
}

#[test]
fn data_arrives_by_every_routine_that_moves_it() {
    passes("rma.c");
}

#[test]
fn every_atomic_does_what_its_name_says() {
    passes("amo.c");
}

#[test]
fn every_wait_and_test_sees_what_neighbours_write() {
    passes("wait.c");
}

#[test]
fn collectives_move_data_between_all_pes_of_a_team() {
    passes("collectives.c");
}

#[test]
fn reductions_and_scans_agree_with_a_plain_model() {
    passes("reduce.c");
}

#[test]
fn teams_and_contexts_number_their_pes_as_the_standard_says() {
    passes("teams.c");
}

#[test]
fn collectives_follow_one_another_at_once_with_pes_out_of_step() {
    let program = Program::build("stress.c", Language::C, &[]);
    // With 16 PEs there are more active sets than slots to keep them in.
    for pes in PES.into_iter().chain([16]) {
        program.run(pes).succeeds();
    }
}

#[test]
fn a_reduction_of_64_mebibytes_is_right() {
    let program = Program::build("stress.c", Language::C, &[]);
    program.job(2).arg("64").run().succeeds();
}

#[test]
fn fence_quiet_and_signals_order_what_the_standard_says() {
    let program = Program::build("litmus.c", Language::C, &["-O2"]);
    for pes in [2, 4] {
        program.run(pes).succeeds();
    }
}

#[test]
fn heap_and_static_data_are_symmetric() {
    passes("memory.c");
}

#[test]
fn the_inline_path_and_the_calls_give_the_same_results() {
    for flags in [&["-O2"][..], &["-O2", "-DNPUSHMEM_NO_INLINE"]] {
        for source in ["rma.c", "amo.c", "memory.c"] {
            Program::build(source, Language::C, flags).run(2).succeeds();
        }
    }
}

#[test]
fn generic_names_work_in_c11_and_in_cxx() {
    for (language, flags) in [
        (Language::C, &["-std=c11", "-O2"][..]),
        (Language::Cxx, &["-std=c++11", "-O2"]),
    ] {
        let program = Program::build("generic.c", language, flags);
        for pes in [1, 2, 3] {
            program.run(pes).succeeds();
        }
    }
}

#[test]
fn global_exit_ends_every_pe_with_its_code() {
    let program = Program::build("global_exit.c", Language::C, &[]);
    for code in [0, 7] {
        let ran = program.job(3).arg(code.to_string()).run();
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(!ran.stdout.contains("still here"), "{ran:?}");
    }
}

#[test]
fn many_threads_call_at_once() {
    for source in ["threads.c", "locks.c"] {
        let program = Program::build(source, Language::C, &["-pthread"]);
        for pes in [1, 2, 3] {
            program.run(pes).succeeds();
        }
    }
}

#[test]
fn a_tool_sees_every_call_through_the_profiling_interface() {
    let program = Program::build("profiling.c", Language::C, &["-O2"]);
    program.run(2).succeeds();
}

#[test]
fn the_library_exports_the_standard_and_nothing_else() {
    let exported = harness::exports();
    for name in &exported {
        assert!(
            ["shmem_", "pshmem_", "shmemi_"]
                .iter()
                .any(|prefix| name.starts_with(prefix)),
            "{name} is exported"
        );
    }
    let missing: Vec<String> = families::sections()
        .into_iter()
        .flat_map(|section| section.routines)
        .flat_map(|routine| routine.names())
        .flat_map(|name| [format!("p{name}"), name])
        .filter(|name| !exported.contains(name))
        .collect();
    assert!(missing.is_empty(), "declared but not exported: {missing:?}");
}

#[test]
fn what_the_library_exports_is_declared() {
    let declared: BTreeSet<String> = families::sections()
        .into_iter()
        .flat_map(|section| section.routines)
        .flat_map(|routine| routine.names())
        .collect();
    for name in harness::exports() {
        let plain = name.strip_prefix('p').unwrap_or(&name);
        assert!(
            declared.contains(plain) || name.starts_with("shmemi_"),
            "{name} has no prototype"
        );
    }
}
