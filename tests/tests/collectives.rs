//! Collectives in kernels: every kind, type and team against a plain reference, on both engines, with one core or many, up to many PEs.

use std::time::Duration;

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

#[track_caller]
fn right(job: Job) {
    let outcome = job.run().ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn random_collectives_on_random_teams_give_what_a_plain_loop_gives() {
    let rounds = (100.0 * npushmem_tests::scale()) as u64;
    for engine in ["mapped", "roce"] {
        for (pes, cores, seed) in [(1, 2, 1), (3, 1, 2), (4, 3, 3), (5, 2, 4)] {
            right(
                job(pes, "collectives")
                    .arg("engine", engine)
                    .arg("cores", cores)
                    .arg("seed", seed)
                    .arg("rounds", rounds),
            );
        }
    }
}

#[test]
fn collectives_are_right_under_the_chaos_nic() {
    for seed in 1..=2 {
        right(
            job(3, "collectives")
                .arg("engine", "roce")
                .arg("rounds", 40)
                .arg("cores", 2)
                .env("NPUSIM_NIC", format!("chaos:{seed}")),
        );
    }
}

#[test]
fn collectives_and_barriers_need_no_atomics() {
    right(
        job(3, "each_collective")
            .arg("engine", "roce")
            .arg("cores", 2)
            .env("NPUSIM_NIC_ATOMICS", "off"),
    );
}

#[test]
fn collectives_are_right_where_no_peer_is_mapped() {
    right(
        job(3, "each_collective")
            .arg("cores", 2)
            .env("NPUSHMEM_MAPPED", "off"),
    );
}

#[test]
fn reductions_and_broadcasts_of_megabytes_are_right_in_place() {
    for engine in ["mapped", "roce"] {
        right(
            job(3, "large_collective")
                .arg("engine", engine)
                .arg("bytes", 2 << 20)
                .arg("cores", 4),
        );
    }
}

#[test]
fn a_hundred_and_twenty_eight_pes_of_one_core_run_every_collective() {
    // The waits of all these processes share the machine's few cores: they yield.
    let many = job(128, "each_collective")
        .arg("engine", "roce")
        .arg("bytes", 1 << 16)
        .deadline(Duration::from_secs(600))
        .env("SHMEM_SYMMETRIC_SIZE", "2M")
        .env("NPUSHMEM_QP_DEPTH", 64)
        .env("NPUSHMEM_BOUNCE", 8192)
        .env("NPUSHMEM_TIMEOUT", 240)
        .env("NPUSHMEM_JOIN_TIMEOUT", 240);
    right(many);
}

#[test]
fn sixty_five_pes_of_one_core_run_every_collective() {
    for engine in ["mapped", "roce"] {
        let many = job(65, "each_collective")
            .arg("engine", engine)
            .arg("bytes", 1 << 16)
            .deadline(Duration::from_secs(300));
        let small = many
            .env("SHMEM_SYMMETRIC_SIZE", "2M")
            .env("NPUSHMEM_QP_DEPTH", 64)
            .env("NPUSHMEM_BOUNCE", 8192);
        right(
            small
                .env("NPUSHMEM_TIMEOUT", 120)
                .env("NPUSHMEM_JOIN_TIMEOUT", 120)
                .env("NPUSHMEM_KERNEL_TIMEOUT", 240),
        );
    }
}
