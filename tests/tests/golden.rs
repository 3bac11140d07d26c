//! The device's encoder of work requests and doorbells, and its decoder of completions, against the golden vectors that the NIC's codec is
//! tested with (roce/golden/vectors.txt).

use npushmem_tests::Job;

/// What the device never writes: two segments, immediate data, sends, long inline payloads, the FENCE bit, direct requests, the arm doorbell,
/// and the other form of the consumer doorbell. Each is decoded by the NIC alone.
const NEVER_WRITTEN: &str = "write_two_segments_strong_order write_imm_solicited send inline_16 write_fence_bit inline_32 direct \
                             ci_1_bit_56 next solicited";

#[test]
fn the_device_writes_and_reads_the_golden_bytes_on_every_architecture() {
    for soc in ["Ascend910B1", "Ascend950PR_9599"] {
        let outcome = Job::new(env!("CARGO_BIN_EXE_pe"), 1, "golden")
            .env("NPUSIM_SOC", soc)
            .run()
            .ok();
        assert_eq!(outcome.value::<u64>(0, "wrong"), 0, "{}", outcome.report());
        assert!(
            outcome.value::<u64>(0, "tried") >= 37,
            "{}",
            outcome.report()
        );
        assert_eq!(outcome.value::<String>(0, "left_out"), NEVER_WRITTEN);
    }
}
