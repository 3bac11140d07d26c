//! The symmetric heap: what it gives, how large it is, what it costs, and the settings that say so.

use crate::harness::{Language, Program};

#[test]
fn the_heap_gives_what_was_asked_for_and_init_can_be_repeated() {
    let program = Program::build("heap.c", Language::C, &[]);
    for pes in [1, 2, 5] {
        let job = program.job(pes).env("SHMEM_SYMMETRIC_SIZE", "32M");
        job.run().succeeds();
    }
}

#[test]
fn a_heap_larger_than_memory_costs_only_what_is_touched() {
    let program = Program::build("lazy.c", Language::C, &[]);
    for pes in [1, 3] {
        for huge_pages in ["off", "auto"] {
            program
                .job(pes)
                .env("SHMEM_SYMMETRIC_SIZE", "64G")
                .env("NPUSHMEM_HUGE_PAGES", huge_pages)
                .run()
                .succeeds();
        }
    }
}

#[test]
fn a_size_is_given_in_bytes_with_a_suffix_or_in_percent_of_memory() {
    let program = Program::build("examples/basics.c", Language::C, &[]);
    for size in ["512m", "1.5G", "20kk", "0", "25%", "0.5 %", "100%"] {
        let ran = program.job(2).env("SHMEM_SYMMETRIC_SIZE", size).run();
        assert_eq!(ran.code, 0, "{size}: {ran:?}");
    }
    program
        .job(2)
        .env("SMA_SYMMETRIC_SIZE", "1M")
        .run()
        .succeeds();
}

#[test]
fn a_size_that_is_none_is_refused_with_what_is_accepted() {
    let program = Program::build("examples/basics.c", Language::C, &[]);
    for (size, reason) in [
        ("0%", "no memory at all"),
        ("120%", "more than all memory"),
        ("12Q", "unknown suffix \"Q\""),
        ("-1G", "not a"),
        ("plenty", "unknown suffix"),
        ("99999999T", "too large"),
        ("0.000001%", "a heap has 64 KiB at least"),
    ] {
        let ran = program.job(2).env("SHMEM_SYMMETRIC_SIZE", size).run();
        assert_eq!(ran.code, 2, "{size}: {ran:?}");
        assert!(
            ran.stderr.contains("SHMEM_SYMMETRIC_SIZE") && ran.stderr.contains(reason),
            "{size}: {ran:?}"
        );
        if !size.starts_with("0.0") {
            assert!(ran.stderr.contains("such as 512M or 1.5G"), "{ran:?}");
        }
    }
}

#[test]
fn huge_pages_that_the_kernel_refuses_are_told_once() {
    let rule = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let allowed = std::fs::read_to_string(rule).is_ok_and(|text| {
        ["[always]", "[advise]", "[within_size]", "[force]"]
            .iter()
            .any(|word| text.contains(word))
    });
    let program = Program::build("examples/basics.c", Language::C, &[]);
    let ran = program.job(3).env("NPUSHMEM_HUGE_PAGES", "on").run();
    ran.succeeds();
    let lines = ran.stderr.matches("NPUSHMEM_HUGE_PAGES=on: ").count();
    assert_eq!(lines, usize::from(!allowed), "{ran:?}");
    let ran = program.job(3).run();
    assert!(ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn a_program_tells_version_and_settings_on_request() {
    let program = Program::build("examples/basics.c", Language::C, &[]);
    let ran = program.job(2).env("SHMEM_VERSION", "1").run();
    ran.succeeds();
    assert_eq!(ran.stdout.matches("OpenSHMEM 1.6").count(), 1, "{ran:?}");
    let ran = program.job(2).env("SHMEM_INFO", "y").run();
    for part in [
        "SHMEM_SYMMETRIC_SIZE=256M (SHMEM_SYMMETRIC_SIZE)",
        "SHMEM_DEBUG=off (default)",
    ] {
        assert_eq!(ran.stdout.matches(part).count(), 1, "{part}: {ran:?}");
    }
}
