//! Symmetric static data in executables of every kind, and what says so where it cannot be.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::harness::{library, Job, Language, Program};

/// Drops what the system has read of a program's file, so that its pages come from the disk when they are first touched.
fn forget_pages(program: &Program) {
    let file = File::open(program.path()).expect("the program's file");
    file.sync_all().expect("written");
    // SAFETY: advice about a file.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[test]
fn static_data_is_symmetric_in_executables_of_every_kind() {
    for flags in [
        &["-O2"][..],
        &["-no-pie", "-fno-pie"],
        &["-fPIE", "-pie", "-Wl,-z,now,-z,relro"],
        &["-fPIE", "-pie", "-Wl,-z,lazy,-z,norelro"],
        &["-O2", "-Wl,--build-id=none"],
    ] {
        let mut flags = flags.to_vec();
        flags.push("-pthread");
        for source in ["memory.c", "statics.c"] {
            let program = Program::build(source, Language::C, &flags);
            forget_pages(&program);
            program.run(2).succeeds();
        }
    }
}

#[test]
fn pes_of_a_position_independent_program_are_at_different_addresses() {
    let program = Program::build("statics.c", Language::C, &["-fPIE", "-pie", "-pthread"]);
    for pes in [1, 2, 3] {
        let ran = program.run(pes);
        ran.succeeds();
        let mut places: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(places.len(), pes as usize, "{ran:?}");
        places.sort_unstable();
        places.dedup();
        let random = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
        if random.is_ok_and(|text| text.trim() == "2") {
            assert_eq!(places.len(), pes as usize, "{ran:?}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn four_gibibytes_of_static_data_are_symmetric() {
    for flags in [
        &["-mcmodel=medium", "-DLARGE", "-pthread"][..],
        &[
            "-mcmodel=medium",
            "-DLARGE",
            "-pthread",
            "-no-pie",
            "-fno-pie",
        ],
        &[
            "-mcmodel=large",
            "-DLARGE",
            "-pthread",
            "-no-pie",
            "-fno-pie",
        ],
    ] {
        let program = Program::build("statics.c", Language::C, flags);
        for pes in [1, 2] {
            program.run(pes).succeeds();
        }
    }
}

#[test]
fn static_data_that_cannot_be_symmetric_is_told_and_the_heap_works() {
    let program = Program::build("unreachable.c", Language::C, &[]);
    let ran = program.job(2).arg("taken").run();
    ran.succeeds();
    let line = "static data of this program is not symmetric: no place in the address space";
    assert_eq!(ran.stderr.matches(line).count(), 2, "{ran:?}");
    let ran = program.run(2);
    ran.succeeds();
    assert!(ran.stderr.is_empty(), "{ran:?}");

    let other = Program::build("unreachable.c", Language::C, &["-DOTHER"]);
    let choose = format!(
        "if [ $NPUSHMEM_PE = 0 ]; then exec {}; else exec {}; fi",
        program.path().display(),
        other.path().display()
    );
    let ran = Job::new(Path::new("/bin/sh"), 3)
        .arg("-c")
        .arg(choose)
        .run();
    ran.succeeds();
    let line =
        "static data of PE 1 cannot be reached (nor that of 1 other): it runs another executable";
    assert_eq!(ran.stderr.matches(line).count(), 1, "{ran:?}");
}

/// Debian's interpreter keeps its own state in static data, which moved would be shared with its children by fork.
#[test]
fn an_interpreter_that_loads_the_library_and_its_children_go_on_as_ever() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        println!("skipped: there is no {}", python.display());
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/statics.py");
    for pes in [1, 2] {
        let ran = Job::new(python, pes)
            .arg(script.display().to_string())
            .arg(library().display().to_string())
            .run();
        ran.succeeds();
        assert_eq!(
            ran.stdout.matches("done\n").count(),
            pes as usize,
            "{ran:?}"
        );
        assert!(ran.stderr.is_empty(), "{ran:?}");
    }
}
