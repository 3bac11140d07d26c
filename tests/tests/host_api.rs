//! The Rust OpenSHMEM API between hosts: every operation against plain Rust, on odd numbers of PEs, with and without a device.

use npushmem_tests::Job;

/// PEs of most tests.
const PES: [usize; 4] = [1, 2, 3, 5];

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_host"), pes, scenario)
}

#[test]
fn transfers_of_all_forms_leave_what_a_model_says() {
    for pes in PES {
        job(pes, "transfers").arg("seed", pes).run().ok();
    }
}

#[test]
fn contexts_count_in_their_team_and_may_move_between_threads() {
    for pes in PES {
        job(pes, "contexts").run().ok();
    }
}

#[test]
fn data_is_there_when_its_signal_is() {
    for pes in PES {
        job(pes, "signals").run().ok();
    }
}

#[test]
fn every_form_of_wait_and_test_finds_what_others_set() {
    for pes in PES {
        job(pes, "waits").run().ok();
    }
}

#[test]
fn locks_let_one_pe_in_at_a_time() {
    for pes in [1, 3, 5] {
        job(pes, "locks").run().ok();
    }
}

#[test]
fn atomics_of_every_type_follow_rusts_arithmetic() {
    for pes in [1, 3] {
        job(pes, "atomics").run().ok();
    }
}

#[test]
fn atomics_of_every_type_follow_rusts_arithmetic_in_the_nics_domain() {
    job(2, "atomics").arg("device", 1).run().ok();
}

#[test]
fn hosts_take_every_ticket_once() {
    let outcome = job(3, "tickets").arg("n", 2000).run().ok();
    assert_eq!(outcome.value::<u64>(0, "tickets"), 3 * 6 * 2000);
}

#[test]
fn hosts_and_kernels_take_every_ticket_once_from_one_counter() {
    for soc in ["Ascend910B1", "Ascend950PR_9599"] {
        let outcome = job(3, "tickets")
            .arg("device", 1)
            .env("NPUSIM_SOC", soc)
            .run()
            .ok();
        assert_eq!(outcome.value::<u64>(0, "tickets"), 3 * (6 * 20 + 3 * 40));
    }
}

#[test]
fn hosts_and_kernels_share_a_counter_under_the_chaos_nic() {
    let outcome = job(3, "tickets")
        .arg("device", 1)
        .arg("rounds", 4)
        .env("NPUSIM_NIC", "chaos:3")
        .run()
        .ok();
    assert_eq!(outcome.value::<u64>(0, "tickets"), 3 * (4 * 20 + 2 * 40));
}

#[test]
fn random_collectives_on_teams_give_what_plain_loops_give() {
    let rounds = (60.0 * npushmem_tests::scale()) as u64;
    for pes in [1, 2, 3, 5, 8] {
        job(pes, "collectives")
            .arg("seed", pes)
            .arg("rounds", rounds)
            .run()
            .ok();
    }
}

#[test]
fn teams_of_hosts_come_and_go_by_destroying_and_by_dropping() {
    for pes in PES {
        job(pes, "teams").run().ok();
    }
}

#[test]
fn wrong_arguments_are_refused_with_a_reason_and_everything_goes_on() {
    for pes in [1, 3] {
        job(pes, "mistakes").run().ok();
    }
}

#[test]
fn without_mapped_peers_what_cannot_work_says_so() {
    job(2, "unshared").env("NPUSHMEM_MAPPED", "off").run().ok();
}

#[test]
fn members_in_different_collectives_are_told_which() {
    job(3, "mismatch").run().ok();
}

#[test]
fn waits_for_what_never_comes_end_in_time() {
    job(1, "missing").env("NPUSHMEM_TIMEOUT", "0.3").run().ok();
    job(2, "missing").env("NPUSHMEM_TIMEOUT", "4").run().ok();
}

#[test]
fn one_pe_can_end_all_with_a_status() {
    let outcome = job(3, "exit").run();
    for pe in &outcome.pes {
        assert_eq!(pe.status.code(), Some(17), "{}", outcome.report());
    }
}
