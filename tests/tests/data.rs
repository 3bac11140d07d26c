//! Data movement from kernels, between processes, on both engines.

use npushmem_tests::Job;

const ENGINES: [&str; 2] = ["mapped", "roce"];

fn job(pes: usize, scenario: &str, engine: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_pe"), pes, scenario).arg("engine", engine)
}

#[test]
fn attach_tells_a_kernel_who_it_is_and_who_is_mapped() {
    let outcome = job(3, "attach", "auto").arg("cores", 4).run().ok();
    assert_eq!(outcome.value::<u64>(0, "mapped"), 1);
    let outcome = job(3, "attach", "auto")
        .env("NPUSHMEM_MAPPED", "off")
        .run()
        .ok();
    assert_eq!(outcome.value::<u64>(0, "mapped"), 0);
}

#[test]
fn every_form_of_put_and_get_moves_exactly_its_bytes() {
    for engine in ENGINES {
        for pes in [1, 2, 3] {
            let outcome = job(pes, "move", engine).arg("step", 7).run().ok();
            assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
        }
    }
}

#[test]
fn sizes_up_to_a_page_move_exactly_at_many_alignments() {
    for engine in ENGINES {
        let outcome = job(2, "move", engine)
            .arg("upto", 4096)
            .arg("step", 97)
            .run()
            .ok();
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    }
}

#[test]
fn a_transfer_above_the_nics_limit_is_split() {
    for n in [8191, 8192, 8193, 100_000] {
        let outcome = job(2, "large", "roce")
            .arg("n", n)
            .env("NPUSHMEM_MAX_MESSAGE", 8192)
            .env("NPUSIM_NIC_MAX_MESSAGE", 8192)
            .run()
            .ok();
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
        assert_eq!(outcome.value::<u64>(0, "requests"), u64::div_ceil(n, 8192));
    }
}

#[test]
fn large_transfers_from_several_cores_arrive_whole() {
    for engine in ENGINES {
        for k in 0..4 {
            let outcome = job(2, "large", engine)
                .arg("cores", 3)
                .arg("bytes", 4 << 20)
                .arg("n", (1 << 20) + 3)
                .arg("k", k)
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
        }
    }
}

#[test]
fn cores_of_one_kernel_that_use_different_engines_move_their_own_bytes() {
    for nic in ["inline", "thread", "chaos:5"] {
        for k in 0..8 {
            let outcome = job(3, "large", "both")
                .arg("cores", 4)
                .arg("n", 10_007)
                .arg("k", k)
                .env("NPUSIM_NIC", nic)
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
            for pe in 0..3 {
                for engine in ["roce_bytes", "mapped_bytes"] {
                    assert_eq!(outcome.value::<u64>(pe, engine), 2 * 10_007);
                }
            }
        }
    }
}

#[test]
fn a_core_that_talks_to_more_pes_than_it_stages_loses_nothing() {
    let outcome = job(11, "scatter", "roce").run().ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn scalars_of_every_width_arrive_alone() {
    for engine in ENGINES {
        let outcome = job(2, "scalar", engine).run().ok();
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    }
}

#[test]
fn a_signal_comes_after_its_data() {
    for engine in ENGINES {
        for nic in ["inline", "thread", "chaos:7"] {
            let outcome = job(3, "signal", engine).env("NPUSIM_NIC", nic).run().ok();
            assert_eq!(
                outcome.sum("wrong"),
                0,
                "{engine} {nic}: {}",
                outcome.report()
            );
        }
    }
}

#[test]
fn a_put_signal_of_nothing_still_signals() {
    for engine in ENGINES {
        let outcome = job(2, "signal", engine).arg("n", 0).run().ok();
        assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    }
}

#[test]
fn rows_fetched_by_tickets_arrive_with_few_doorbells() {
    let outcome = job(2, "rows", "roce").arg("n", 512).run().ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    assert_eq!(outcome.value::<u64>(0, "requests"), 512);
    assert!(
        outcome.value::<u64>(0, "doorbells") * 16 <= 512,
        "{}",
        outcome.report()
    );
    let outcome = job(2, "rows", "mapped")
        .arg("n", 512)
        .arg("m", 100)
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn a_batch_of_32_puts_costs_one_doorbell_and_at_most_three_ring_copies() {
    let outcome = job(2, "batch", "roce").run().ok();
    assert_eq!(outcome.value::<u64>(0, "requests"), 32);
    assert_eq!(outcome.value::<u64>(0, "doorbells"), 1);
    assert!((2..=3).contains(&outcome.value::<u64>(0, "ring_copies")));
    assert_eq!(outcome.value::<u64>(0, "polls"), 1);
}

#[test]
fn everything_moves_without_inline_payloads_and_with_wide_completions() {
    let outcome = job(2, "signal", "roce")
        .env("NPUSIM_NIC_INLINE", "off")
        .env("NPUSHMEM_INLINE", "off")
        .env("NPUSIM_CQE_SIZE", 64)
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
    let outcome = job(2, "move", "roce")
        .arg("step", 31)
        .env("NPUSHMEM_INLINE", "off")
        .env("NPUSHMEM_QP_DEPTH", 64)
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn where_the_nic_refuses_inline_payloads_queue_pairs_are_made_without() {
    let outcome = job(2, "signal", "roce").run().ok();
    assert!(outcome.sum("inline_writes") > 0, "{}", outcome.report());
    for scenario in ["signal", "scalar", "atomics", "barrier"] {
        let outcome = job(2, scenario, "roce")
            .env("NPUSIM_NIC_INLINE", "off")
            .run()
            .ok();
        let bad = if scenario == "barrier" {
            outcome.sum("behind") + outcome.sum("errors")
        } else {
            outcome.sum("wrong")
        };
        assert_eq!(bad, 0, "{}", outcome.report());
        if scenario == "signal" {
            assert_eq!(outcome.sum("inline_writes"), 0, "{}", outcome.report());
        }
    }
}

#[test]
fn barriers_hold_back_every_pe_and_core_with_any_number_of_pes() {
    for engine in ["mapped", "roce", "both"] {
        for (pes, cores) in [(1, 1), (2, 3), (3, 2), (5, 1), (8, 1)] {
            for k in 0..4 {
                let outcome = job(pes, "barrier", engine)
                    .arg("cores", cores)
                    .arg("n", 50)
                    .arg("k", k)
                    .run()
                    .ok();
                assert_eq!(
                    outcome.sum("behind") + outcome.sum("errors"),
                    0,
                    "{}",
                    outcome.report()
                );
            }
        }
    }
}
