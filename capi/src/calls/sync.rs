//! Barrier and sync on all PEs and on teams; the meeting of two PEs.
//!
//! Not the active-set forms (`active.rs`).

use super::{on_team, sync, Call};
use crate::entry::hot;
use crate::{order, state, teams};
use std::ffi::c_int;

hot! {
    /// Waits for all PEs; what everybody has put before is complete.
    fn shmem_barrier_all() {
        super::barrier_all(&"shmem_barrier_all");
    }

    /// Waits for all PEs.
    fn shmem_sync_all() {
        let teams = teams::require("shmem_sync_all");
        sync(&Call::new(&"shmem_sync_all", teams.world(), teams.state()));
    }

    /// Waits for all members of a team.
    fn shmem_team_sync(team: usize) -> c_int {
        on_team(&"shmem_team_sync", team, sync)
    }

    /// Meets PE `pe`, which calls this with this PE's number (an extension): both go on when both have come, and what either has put before is
    /// complete.
    fn shmem_sync_pe(pe: c_int) {
        let teams = teams::require("shmem_sync_pe");
        if !(0..teams.state().n_pes).contains(&pe) {
            state::slow_target(state::routine!(shmem_sync_pe), 0, 0, pe);
        }
        order::store_fence();
        teams::done(teams.active().pairs.meet(pe as usize));
    }
}
