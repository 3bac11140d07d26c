//! The examples of examples/rust: each runs on several numbers of PEs and checks its own result.

use npushmem_tests::Job;

#[track_caller]
fn right(program: &str, pes: &[usize]) {
    for n in pes {
        Job::new(program, *n, "run").run().ok();
    }
}

#[test]
fn hello_reaches_the_next_pe() {
    right(env!("CARGO_BIN_EXE_host-hello"), &[1, 4]);
}

#[test]
fn the_token_goes_round_the_ring() {
    right(env!("CARGO_BIN_EXE_host-ring"), &[1, 2, 5]);
}

#[test]
fn the_dot_product_is_the_sum_of_its_parts() {
    right(env!("CARGO_BIN_EXE_host-dot"), &[1, 3]);
}

#[test]
fn every_item_of_the_queue_is_worked_on_once() {
    right(env!("CARGO_BIN_EXE_host-queue"), &[1, 3]);
}

#[test]
fn no_heat_is_lost_between_the_tiles() {
    right(env!("CARGO_BIN_EXE_host-halo"), &[1, 4, 6]);
}
