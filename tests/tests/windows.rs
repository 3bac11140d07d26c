//! Memory outside the heap: registered buffers and windows, on both engines.

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

#[test]
fn registered_buffers_and_windows_carry_every_size_byte_exact() {
    for engine in ["mapped", "roce"] {
        for pes in [1, 3] {
            // A limit of the NIC's messages that transfers exceed.
            let outcome = job(pes, "windows")
                .arg("engine", engine)
                .arg("limit", 1 << 20)
                .env("NPUSHMEM_MAX_MESSAGE", "1M")
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
        }
    }
    let chaos = job(2, "windows")
        .arg("engine", "roce")
        .env("NPUSIM_NIC", "chaos:8")
        .env("NPUSHMEM_MAX_MESSAGE", "1M")
        .run()
        .ok();
    assert_eq!(chaos.sum("wrong"), 0, "{}", chaos.report());
}

#[test]
fn windows_of_peers_that_are_not_mapped_are_reached_by_the_nic() {
    let outcome = job(2, "windows")
        .arg("unmapped", 1)
        .env("NPUSHMEM_MAPPED", "off")
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn ranges_outside_closed_windows_and_unregistered_memory_are_errors_at_the_call() {
    for engine in ["mapped", "roce"] {
        let outcome = job(2, "window_misuse").arg("engine", engine).run().ok();
        assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
    }
}
