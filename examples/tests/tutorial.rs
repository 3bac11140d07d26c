//! Every example on several numbers of PEs, on both engines and under the chaos NIC.

use std::time::Duration;

use npushmem_tests::{Job, Outcome};

/// Runs an example; every PE must say that it has verified its result.
#[track_caller]
fn verified(job: Job) -> Outcome {
    let outcome = job.run().ok();
    for pe in &outcome.pes {
        assert!(pe.stdout.contains("verified: "), "{}", outcome.report());
    }
    outcome
}

/// An example with its own idea of sizes on the numbers of PEs that matter: one, two, odd ones, eight.
#[track_caller]
fn runs_everywhere(program: &str, arguments: &[&str]) {
    let job = |pes, engine| {
        let job = Job::of(program, pes).env("NPUSHMEM_ENGINE", engine);
        arguments.iter().fold(job, |job, word| job.word(word))
    };
    for (pes, engine) in [(1, "roce"), (2, "mapped"), (3, "roce"), (5, "mapped")] {
        verified(job(pes, engine));
    }
    verified(job(8, "roce").deadline(Duration::from_secs(240)));
    verified(job(3, "roce").env("NPUSIM_NIC", "chaos:3"));
    verified(job(2, "auto").env("NPUSIM_NIC", "chaos:4"));
}

#[test]
fn hello_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_01-hello"), &[]);
}

#[test]
fn put_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_02-put"), &[]);
}

#[test]
fn ring_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_03-ring"), &[]);
}

#[test]
fn ping_pong_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_04-ping-pong"), &[]);
}

#[test]
fn lock_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_05-lock"), &[]);
}

#[test]
fn histogram_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_06-histogram"), &[]);
}

#[test]
fn halo_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_07-halo"), &[]);
    // Bands of one row, rows longer than a piece of UB, an even number of steps.
    let program = env!("CARGO_BIN_EXE_07-halo");
    let job = Job::of(program, 3).env("NPUSHMEM_ENGINE", "roce");
    verified(
        job.word("--rows=3")
            .word("--columns=5001")
            .word("--steps=7"),
    );
}

#[test]
fn moe_runs_on_sizes_that_divide_nothing() {
    runs_everywhere(
        env!("CARGO_BIN_EXE_08-moe"),
        &[
            "--tokens=13",
            "--hidden=4103",
            "--top-k=3",
            "--experts=11",
            "--cores=3",
        ],
    );
}

#[test]
fn moe_runs_with_one_expert_and_with_fewer_experts_than_pes() {
    for (experts, top_k) in [("1", "1"), ("2", "2")] {
        let job = Job::of(env!("CARGO_BIN_EXE_08-moe"), 3)
            .env("NPUSHMEM_ENGINE", "roce")
            .word("--tokens=1")
            .word("--hidden=1");
        verified(
            job.word(&format!("--experts={experts}"))
                .word(&format!("--top-k={top_k}")),
        );
    }
}

#[test]
fn moe_of_the_size_of_a_real_model_is_right_and_moves_no_padding() {
    for engine in ["mapped", "roce"] {
        let job = Job::of(env!("CARGO_BIN_EXE_08-moe"), 8).env("NPUSHMEM_ENGINE", engine);
        let outcome = verified(job.deadline(Duration::from_secs(300)));
        let figures = |name: &str| -> Vec<u64> {
            let lines = outcome.pes[0].stdout.lines();
            let words = lines
                .flat_map(|line| line.strip_prefix(name))
                .flat_map(str::split_whitespace);
            words.map_while(|word| word.parse().ok()).collect()
        };
        let rows = 8 * 128 * 8u64;
        for name in ["dispatch", "combine"] {
            let [bytes, payload, requests, doorbells] = figures(name)[..] else {
                panic!("no figures for {name}\n{}", outcome.report());
            };
            assert_eq!(payload, rows * 7168 * 2);
            // What is not rows: the counts, and the barriers' words.
            assert!(
                bytes >= payload && bytes < payload + payload / 100,
                "{}",
                outcome.report()
            );
            if engine == "roce" {
                assert!(requests >= rows && doorbells < rows, "{}", outcome.report());
            }
        }
        assert!(figures("padded")[0] > rows * 7168 * 2);
    }
}

#[test]
fn gnn_runs() {
    runs_everywhere(env!("CARGO_BIN_EXE_09-gnn"), &[]);
    let program = env!("CARGO_BIN_EXE_09-gnn");
    let job = Job::of(program, 3).env("NPUSHMEM_ENGINE", "roce");
    // Rows longer than a piece of UB, an odd number of layers.
    verified(job.word("--dim=4099").word("--layers=3"));
}

#[test]
fn sizes_that_do_not_go_together_are_one_line_and_exit_code_2() {
    for (program, pes, words) in [
        (env!("CARGO_BIN_EXE_07-halo"), 3, ["--rows=2", "--steps=1"]),
        (
            env!("CARGO_BIN_EXE_08-moe"),
            1,
            ["--top-k=9", "--experts=8"],
        ),
    ] {
        let job = words
            .iter()
            .fold(Job::of(program, pes), |job, word| job.word(word));
        let outcome = job.run();
        for pe in &outcome.pes {
            assert_eq!(pe.status.code(), Some(2), "{}", outcome.report());
            assert_eq!(pe.stderr.lines().count(), 1, "{}", outcome.report());
        }
    }
}
