//! The C routines of team management (OpenSHMEM 1.6, section "Team Management").
//!
//! Not the objects behind (`mod.rs`), nor contexts on teams (`context.rs`).

use super::{find, require, Team};
use crate::calls::agree::{self, Argument};
use crate::constants::{handle, SHMEM_TEAM_NUM_CONTEXTS};
use crate::entry::entry;
use crate::state;
use npushmem::shm::group::Routine;
use std::ffi::{c_int, c_long, c_void};

/// `shmem_team_config_t`.
#[repr(C)]
pub(crate) struct Config {
    num_contexts: c_int,
}

/// What a failed routine returns.
const FAILED: c_int = -1;

/// The number of contexts that a configuration asks for.
///
/// # Safety
/// `config` is null or a configuration.
unsafe fn contexts(config: *const Config, mask: c_long) -> c_int {
    if mask & SHMEM_TEAM_NUM_CONTEXTS == 0 || config.is_null() {
        return 0;
    }
    // SAFETY: the caller's contract.
    unsafe { (*config).num_contexts }
}

/// Stores a handle in the caller's variable.
///
/// # Safety
/// `at` is the caller's variable.
unsafe fn give(routine: &'static str, at: *mut usize, team: Option<&Team>) {
    if at.is_null() {
        state::fail(
            routine,
            "the argument for the new team's handle is a null pointer",
        );
    }
    let handle = team.map_or(handle::TEAM_INVALID, |team| team.handle(require(routine)));
    // SAFETY: the caller's contract.
    unsafe { at.write(handle) };
}

/// `SHMEM_DEBUG`: all members of `parent` make the same team.
fn agree<const N: usize>(routine: Routine, parent: &Team, arguments: [(&'static str, c_int); N]) {
    parent.group.enter(routine);
    if state::debugging() {
        let arguments = arguments.map(|(name, value)| Argument::number(name, value.into()));
        agree::agree(routine, &parent.group, &arguments);
    }
}

entry! {
    /// This PE's number in a team; -1 for SHMEM_TEAM_INVALID.
    fn shmem_team_my_pe(team: usize) -> c_int {
        find("shmem_team_my_pe", team).map_or(-1, Team::me)
    }

    /// Members of a team; -1 for SHMEM_TEAM_INVALID.
    fn shmem_team_n_pes(team: usize) -> c_int {
        find("shmem_team_n_pes", team).map_or(-1, |team| team.shape.size)
    }

    /// The configuration that a team was made with.
    fn shmem_team_get_config(team: usize, mask: c_long, config: *mut Config) -> c_int {
        let Some(team) = find("shmem_team_get_config", team) else { return FAILED };
        if mask & SHMEM_TEAM_NUM_CONTEXTS != 0 && !config.is_null() {
            // SAFETY: the caller's variable.
            unsafe { (*config).num_contexts = team.contexts };
        }
        0
    }

    /// The number in one team of a PE given by its number in another; -1 when it is not in both.
    fn shmem_team_translate_pe(src_team: usize, src_pe: c_int, dest_team: usize) -> c_int {
        let routine = "shmem_team_translate_pe";
        let (Some(src), Some(dest)) = (find(routine, src_team), find(routine, dest_team)) else { return -1 };
        if !(0..src.shape.size).contains(&src_pe) {
            return -1;
        }
        dest.shape.member(src.shape.pe(src_pe)).unwrap_or(-1)
    }

    /// The local address of a member's instance of a symmetric object; null when there is none.
    fn shmem_team_ptr(team: usize, addr: *const c_void, pe: c_int) -> *mut c_void {
        match find("shmem_team_ptr", team) {
            Some(team) if (0..team.shape.size).contains(&pe) => crate::setup::pointer(addr, team.shape.pe(pe)),
            _ => std::ptr::null_mut(),
        }
    }

    /// A team of the parent's PEs `start`, `start + stride`, ... Collective over the parent.
    fn shmem_team_split_strided(parent: usize, start: c_int, stride: c_int, size: c_int, config: *const Config, mask: c_long, new_team: *mut usize) -> c_int {
        let routine = &"shmem_team_split_strided";
        // SAFETY: the caller's variables.
        unsafe {
            give(routine, new_team, None);
            let Some(parent) = find(routine, parent) else { return FAILED };
            agree(routine, parent, [("start", start), ("stride", stride), ("size", size)]);
            let Some(shape) = parent.shape.strided(start, stride, size) else {
                if state::debugging() {
                    state::tell(routine, &format!(
                        "start {start}, stride {stride}, size {size} name no PEs of a team of {} (numbers run from 0 to {})",
                        parent.shape.size, parent.shape.size - 1
                    ));
                }
                return FAILED;
            };
            match require(routine).split(parent, [(shape, contexts(config, mask))]) {
                Some([team]) => {
                    give(routine, new_team, team);
                    0
                }
                None => FAILED,
            }
        }
    }

    /// The row and the column of this PE when the parent is laid out in rows of `xrange`. Collective over the parent.
    fn shmem_team_split_2d(parent: usize, xrange: c_int, xconfig: *const Config, xmask: c_long, xteam: *mut usize, yconfig: *const Config, ymask: c_long, yteam: *mut usize) -> c_int {
        let routine = &"shmem_team_split_2d";
        // SAFETY: the caller's variables.
        unsafe {
            give(routine, xteam, None);
            give(routine, yteam, None);
            let Some(parent) = find(routine, parent) else { return FAILED };
            agree(routine, parent, [("xrange", xrange)]);
            let Some((row, column)) = parent.shape.row_and_column(xrange, parent.me()) else {
                if state::debugging() {
                    state::tell(routine, &format!("argument xrange: {xrange} is not positive"));
                }
                return FAILED;
            };
            match require(routine).split(parent, [(row, contexts(xconfig, xmask)), (column, contexts(yconfig, ymask))]) {
                Some([x, y]) => {
                    give(routine, xteam, x);
                    give(routine, yteam, y);
                    0
                }
                None => FAILED,
            }
        }
    }

    /// Ends a team. Nothing happens for SHMEM_TEAM_INVALID.
    fn shmem_team_destroy(team: usize) {
        let routine = "shmem_team_destroy";
        if team == handle::TEAM_WORLD || team == handle::TEAM_SHARED {
            state::fail(routine, "argument team: a predefined team cannot be destroyed");
        }
        if let Some(team) = find(routine, team) {
            require(routine).destroy(team);
        }
    }
}
