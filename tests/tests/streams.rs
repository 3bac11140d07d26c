//! Calls on streams: in order with the kernels of their stream, apart from other streams, and the host goes on meanwhile.

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

#[test]
fn a_kernel_that_follows_a_signal_wait_on_its_stream_reads_what_the_peers_stream_put() {
    for (engine, nic, pes) in [
        ("mapped", "inline", 2),
        ("roce", "chaos:9", 3),
        ("roce", "inline", 1),
    ] {
        let outcome = job(pes, "stream_pipeline")
            .env("NPUSHMEM_ENGINE", engine)
            .env("NPUSIM_NIC", nic)
            .run()
            .ok();
        assert_eq!(outcome.sum("wrong"), 0, "{engine}: {}", outcome.report());
    }
}

#[test]
fn the_host_goes_on_while_a_stream_waits_and_hears_at_synchronize_what_failed() {
    let outcome = job(2, "stream_asynchronous")
        .env("NPUSHMEM_TIMEOUT", "4")
        .run()
        .ok();
    for pe in 0..2 {
        assert_eq!(outcome.value::<u64>(pe, "early"), 0, "{}", outcome.report());
        assert_eq!(outcome.value::<u64>(pe, "late"), 1, "{}", outcome.report());
        assert_eq!(outcome.value::<u64>(pe, "wrong"), 0, "{}", outcome.report());
        let said: String = outcome.value(pe, "timeout");
        assert!(
            said.contains("wait_until") && said.contains("timed out"),
            "{said}"
        );
        let refused: String = outcome.value(pe, "refused");
        assert!(refused.contains("recover()"), "{refused}");
    }
}

#[test]
fn a_context_that_a_kernel_on_one_stream_has_is_refused_to_another() {
    let outcome = job(1, "stream_owners").run().ok();
    assert_eq!(outcome.value::<u64>(0, "refusals"), 2);
    let device: String = outcome.value(0, "device");
    assert!(
        device.contains("another kernel owns the context"),
        "{device}"
    );
}
