//! The standard's example programs, described and written anew (`examples/*.c`), on the numbers of PEs that they are made for.

use crate::harness::{alone, command, tool, Language, Program};

fn runs(source: &str, flags: &[&str]) {
    let program = Program::build(&format!("examples/{source}"), Language::C, flags);
    for pes in 1..=4 {
        program.run(pes).succeeds();
    }
}

#[test]
fn the_standards_first_programs_run() {
    runs("basics.c", &["-O2"]);
}

#[test]
fn the_standards_programs_on_puts_and_their_order_run() {
    runs("order.c", &["-O2"]);
}

#[test]
fn the_standards_programs_on_atomics_run() {
    runs("atomics.c", &["-O2"]);
}

#[test]
fn the_standards_programs_on_signals_and_waits_run() {
    runs("waits.c", &["-O2"]);
}

#[test]
fn the_standards_programs_on_collectives_run() {
    runs("collectives.c", &[]);
}

#[test]
fn the_standards_programs_on_teams_run() {
    runs("teams.c", &[]);
}

#[test]
fn the_standards_programs_on_contexts_run() {
    runs("contexts.c", &["-O2", "-pthread"]);
}

#[test]
fn a_pe_that_misses_its_input_ends_all() {
    let program = Program::build("examples/missing_input.c", Language::C, &[]);
    for pes in 1..=4 {
        assert_eq!(program.run(pes).code, 1);
        program.job(pes).arg("/dev/null").run().succeeds();
    }
}

/// Needs an MPI: skipped, with a word, where there is none.
#[test]
fn a_program_with_mpi_and_openshmem_maps_one_numbering_to_the_other() {
    let asked = |what: &str| {
        let output = std::process::Command::new("mpicc")
            .arg(what)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let words = text.split_whitespace().map(str::to_owned);
        output.status.success().then(|| words.collect::<Vec<_>>())
    };
    let (Some(compile), Some(link)) = (asked("--showme:compile"), asked("--showme:link")) else {
        println!("skipped: there is no Open MPI here (mpicc --showme:compile)");
        return;
    };
    let flags: Vec<&str> = compile.iter().map(String::as_str).collect();
    let libraries: Vec<&str> = link.iter().map(String::as_str).collect();
    let program = Program::build_with("examples/mpi.c", Language::C, &flags, &libraries);
    for pes in 1..=3 {
        let mut mpirun = command("mpirun".as_ref());
        mpirun
            .args([
                "--allow-run-as-root",
                "--oversubscribe",
                "--bind-to",
                "none",
            ])
            .args(["-n", &pes.to_string()])
            .arg(program.path());
        let ran = alone(mpirun);
        ran.succeeds();
        assert_eq!(
            ran.stdout.matches(&format!(" of {pes}\n")).count(),
            pes,
            "{ran:?}"
        );
    }
    // Without an MPI launcher MPI has one process; OpenSHMEM's numbers are then oshrun's.
    assert!(tool("oshrun").exists());
}
