//! Teams: made by the host in every way, used by kernels, on both engines and with odd numbers of PEs.

use npushmem_tests::Job;

fn job(pes: usize, scenario: &str) -> Job {
    Job::new(env!("CARGO_BIN_EXE_api"), pes, scenario)
}

#[test]
fn teams_of_teams_have_the_members_of_a_plain_model_on_host_and_device() {
    for (pes, seed) in [(1, 1), (3, 2), (5, 3), (6, 4)] {
        let outcome = job(pes, "teams").arg("seed", seed).run().ok();
        assert!(outcome.sum("made") > 0, "{}", outcome.report());
    }
}

#[test]
fn the_shared_team_is_this_pe_alone_when_no_peer_is_mapped() {
    let outcome = job(3, "teams")
        .arg("rounds", 2)
        .env("NPUSHMEM_MAPPED", "off")
        .run();
    outcome.ok();
}

#[test]
fn barriers_of_world_halves_rows_and_columns_hold_with_several_cores() {
    for engine in ["mapped", "roce"] {
        for (pes, cores) in [(5, 2), (3, 3)] {
            let outcome = job(pes, "team_barriers")
                .arg("engine", engine)
                .arg("cores", cores)
                .run()
                .ok();
            assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
        }
    }
}

#[test]
fn barriers_of_teams_hold_under_the_chaos_nic() {
    let outcome = job(3, "team_barriers")
        .arg("engine", "roce")
        .arg("n", 20)
        .env("NPUSIM_NIC", "chaos:5")
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn teams_can_be_made_used_and_destroyed_again_and_again() {
    let rounds = (250.0 * npushmem_tests::scale()) as u32;
    let outcome = job(4, "team_churn")
        .arg("rounds", rounds)
        .arg("cores", 2)
        .run()
        .ok();
    assert_eq!(outcome.sum("wrong"), 0, "{}", outcome.report());
}

#[test]
fn wrong_teams_are_refused_with_a_reason_and_everything_goes_on() {
    let outcome = job(3, "team_mistakes").run().ok();
    assert_eq!(outcome.sum("behind"), 0, "{}", outcome.report());
}
