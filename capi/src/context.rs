//! Communication contexts (OpenSHMEM 1.6, 9.4): create, destroy, team, sessions; address translation on a context.
//!
//! Transfers complete as they are issued, so a context orders nothing by itself; what it carries is its team's numbering. Not here: teams
//! (teams/), quiet and fence on a context (order.rs).

use std::collections::HashSet;
use std::ffi::{c_int, c_long, c_void};
use std::sync::{Mutex, PoisonError};

use crate::constants::{handle, SHMEM_CTX_NOSTORE, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use crate::entry::entry;
use crate::state::{self, CRoutine};

/// `shmem_ctx_t`: [`handle::CTX_INVALID`], [`handle::CTX_DEFAULT`], or the address of a [`Context`].
pub(crate) type Ctx = *const Context;

/// What a created context is.
#[repr(C)]
pub(crate) struct Context {
    /// PEs of its team; 0 while every call is to be checked.
    fast_pes: u32,
    /// PEs of its team.
    n_pes: u32,
    /// By PE of its team: distance of that PE's symmetric memory from this PE's.
    distances: *const isize,
    /// What [`Context::distances`] points to.
    _delta: Box<[isize]>,
    /// By PE of its team: number in the job.
    members: Box<[i32]>,
    /// The team's handle.
    team: usize,
    /// `SHMEM_CTX_...`; nothing depends on them here.
    _options: c_long,
}

/// The contexts that exist, by address.
static LIVE: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

/// [`state::distance`] on a context.
///
/// # Safety
/// `ctx` is a context that exists, the default or the invalid one.
#[inline(always)]
pub(crate) unsafe fn ctx_distance(ctx: Ctx, pe: c_int) -> Option<isize> {
    if ctx as usize == handle::CTX_DEFAULT {
        return state::distance(pe);
    }
    if ctx as usize == handle::CTX_INVALID {
        return None;
    }
    // SAFETY: a context that exists, by this function's contract; there are at least `fast_pes` distances.
    unsafe {
        if (pe as u32) < (*ctx).fast_pes {
            Some(*(*ctx).distances.add(pe as u32 as usize))
        } else {
            None
        }
    }
}

/// [`state::target`] on a context.
///
/// # Safety
/// As [`ctx_distance`].
#[inline(always)]
pub(crate) unsafe fn ctx_target(
    routine: &'static CRoutine,
    ctx: Ctx,
    addr: usize,
    len: usize,
    pe: c_int,
) -> *mut u8 {
    // SAFETY: by this function's contract.
    match unsafe { ctx_distance(ctx, pe) } {
        Some(distance) => addr.wrapping_add_signed(distance) as *mut u8,
        None => slow_ctx_target(routine, ctx, addr, len, pe),
    }
}

/// [`state::slow_target`] on a context.
#[cold]
#[inline(never)]
pub(crate) fn slow_ctx_target(
    routine: &'static CRoutine,
    ctx: Ctx,
    addr: usize,
    len: usize,
    pe: c_int,
) -> *mut u8 {
    let state = state::require(routine.0);
    if ctx as usize == handle::CTX_DEFAULT {
        return state::slow_target(routine, addr, len, pe);
    }
    let context = existing(routine.0, ctx);
    if pe < 0 || pe as u32 >= context.n_pes {
        let n_pes = context.n_pes as i32;
        state::outside(routine.0, pe, "the context's team", n_pes);
    }
    if state::debugging() {
        state::check_symmetric(state, routine.0, addr, len);
    }
    state.at(addr, context.members[pe as usize])
}

/// The context behind a handle that is not the default; anything else ends the job.
fn existing(routine: &'static str, ctx: Ctx) -> &'static Context {
    if ctx as usize == handle::CTX_INVALID {
        state::fail(routine, "argument ctx: SHMEM_CTX_INVALID");
    }
    if !live(|live| live.contains(&(ctx as usize))) {
        state::fail(
            routine,
            &format!("argument ctx: {ctx:p} is no context, or one that was destroyed"),
        );
    }
    // SAFETY: it exists.
    unsafe { &*ctx }
}

fn live<T>(body: impl FnOnce(&mut HashSet<usize>) -> T) -> T {
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    body(live.get_or_insert_default())
}

/// PEs of a context's team.
pub(crate) fn size(ctx: Ctx) -> i32 {
    match ctx as usize {
        handle::CTX_DEFAULT => state::n_pes(),
        handle::CTX_INVALID => 0,
        // SAFETY: a context that exists, as the standard wants.
        _ => unsafe { (*ctx).n_pes as i32 },
    }
}

/// Makes a context of the team whose PEs are `members`; gives its handle.
pub(crate) fn create(team: usize, members: Vec<i32>, options: c_long) -> Ctx {
    let state = state::require("shmem_ctx_create");
    let n_pes = members.len() as u32;
    let delta: Box<[isize]> = members.iter().map(|pe| state.delta[*pe as usize]).collect();
    let context = Box::new(Context {
        fast_pes: if state::debugging() { 0 } else { n_pes },
        n_pes,
        distances: delta.as_ptr(),
        _delta: delta,
        members: members.into(),
        team,
        _options: options,
    });
    let ctx: Ctx = Box::into_raw(context);
    live(|live| live.insert(ctx as usize));
    ctx
}

/// Gives a context back.
pub(crate) fn destroy(ctx: Ctx) {
    if live(|live| live.remove(&(ctx as usize))) {
        // Where calls are checked, a handle that is used again must find what says so.
        if !state::debugging() {
            // SAFETY: it was live, so it is a box of `create` that nobody else frees.
            drop(unsafe { Box::from_raw(ctx.cast_mut()) });
        }
    } else {
        existing("shmem_ctx_destroy", ctx);
    }
}

/// Gives back the contexts of a team that ends (`None`: of all).
pub(crate) fn destroy_team(team: Option<usize>) {
    let gone: Vec<usize> = live(|live| {
        live.iter()
            .copied()
            // SAFETY: it is live.
            .filter(|ctx| team.is_none_or(|team| unsafe { (*(*ctx as Ctx)).team } == team))
            .collect()
    });
    for ctx in gone {
        destroy(ctx as Ctx);
    }
}

/// A context of `team` into `*ctx`; C's result.
unsafe fn create_into(routine: &'static str, team: usize, options: c_long, ctx: *mut Ctx) -> c_int {
    state::require(routine);
    let known = SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE;
    if state::debugging() && options & !known != 0 {
        state::fail(
            routine,
            &format!("argument options: {options:#x} has bits that are none of SHMEM_CTX_SERIALIZED ({SHMEM_CTX_SERIALIZED}), SHMEM_CTX_PRIVATE ({SHMEM_CTX_PRIVATE}) and SHMEM_CTX_NOSTORE ({SHMEM_CTX_NOSTORE})"),
        );
    }
    let members = crate::teams::members(routine, team);
    let made = match members {
        Some(members) if options & !known == 0 => create(team, members, options),
        _ => handle::CTX_INVALID as Ctx,
    };
    // SAFETY: the caller's variable.
    unsafe { *ctx = made };
    c_int::from(made as usize == handle::CTX_INVALID)
}

entry! {
    /// A context of all PEs.
    fn shmem_ctx_create(options: c_long, ctx: *mut Ctx) -> c_int {
        // SAFETY: the caller's variable.
        unsafe { create_into("shmem_ctx_create", handle::TEAM_WORLD, options, ctx) }
    }

    /// A context of a team.
    fn shmem_team_create_ctx(team: usize, options: c_long, ctx: *mut Ctx) -> c_int {
        // SAFETY: the caller's variable.
        unsafe { create_into("shmem_team_create_ctx", team, options, ctx) }
    }

    /// Ends a context; its operations are complete.
    fn shmem_ctx_destroy(ctx: Ctx) {
        state::require("shmem_ctx_destroy");
        if ctx as usize == handle::CTX_DEFAULT {
            state::fail("shmem_ctx_destroy", "argument ctx: SHMEM_CTX_DEFAULT cannot be destroyed");
        }
        if ctx as usize != handle::CTX_INVALID {
            crate::order::full_fence();
            destroy(ctx);
        }
    }

    /// The team of a context.
    fn shmem_ctx_get_team(ctx: Ctx, team: *mut usize) -> c_int {
        state::require("shmem_ctx_get_team");
        let (found, result) = match ctx as usize {
            handle::CTX_INVALID => (handle::TEAM_INVALID, -1),
            handle::CTX_DEFAULT => (handle::TEAM_WORLD, 0),
            _ => (existing("shmem_ctx_get_team", ctx).team, 0),
        };
        // SAFETY: the caller's variable.
        unsafe { *team = found };
        result
    }

    /// A hint; nothing is batched here.
    fn shmem_ctx_session_start(_ctx: Ctx, _options: c_long, _config: *const c_void, _config_mask: c_long) {}

    /// Ends what the hint was for.
    fn shmem_ctx_session_stop(_ctx: Ctx) {}
}
