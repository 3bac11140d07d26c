//! How long waits may last, and what they say when they may not go on: the limit `NPUSHMEM_TIMEOUT`, and PEs that died.
//!
//! Without the setting a C program may wait as long as it likes for PEs that live: work between two barriers takes what it takes. Not here: how
//! a wait passes its time (npushmem::shm::wait), how the death of a PE is noticed (host/bootstrap). Called from waits, and by setup.rs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use npushmem::shm::wait::{self, Waiting, What};

use crate::state;

/// Milliseconds that a wait may last; 0: any time.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// `SHMEM_DEBUG`: a wait that lasts so long says what it waits for, once.
const REMARKABLE: Duration = Duration::from_secs(30);
/// How long the thread that hears of a death lets a wait that has only begun go on until it can be asked what it waits for.
const SETTLE: Duration = Duration::from_millis(250);
/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(5);

thread_local! {
    /// Whether this thread's wait has been remarked on.
    static REMARKED: Cell<bool> = const { Cell::new(false) };
}

/// Sets the limit, at init.
pub(crate) fn set(limit: Option<Duration>) {
    let millis = limit.map_or(0, |limit| (limit.as_millis() as u64).max(1));
    LIMIT.store(millis, Ordering::Relaxed);
}

/// Called by every wait that lasts: ends the job when the limit is over.
pub(crate) fn watch(waited: Duration, what: Option<What<'_>>) {
    let what = || match what {
        Some(what) => what(),
        None => Waiting {
            routine: "a wait inside the library",
            what: "another PE".to_owned(),
        },
    };
    let limit = LIMIT.load(Ordering::Relaxed);
    if limit > 0 && waited > Duration::from_millis(limit) {
        let Waiting { routine, what } = what();
        let limit = Duration::from_millis(limit).as_secs_f64();
        state::fail(
            routine,
            &format!("waited {limit} s (NPUSHMEM_TIMEOUT) for {what}"),
        );
    }
    if limit == 0 && state::debugging() {
        let remarkable = waited > REMARKABLE;
        if remarkable && !REMARKED.get() {
            let Waiting { routine, what } = what();
            let seconds = waited.as_secs();
            state::tell(
                routine,
                &format!("has waited {seconds} s for {what}; NPUSHMEM_TIMEOUT would end it"),
            );
        }
        REMARKED.set(remarkable);
    }
}

/// What this process waits for, to be told with the reason why it will not come: the first wait's routine and what for.
pub(crate) fn waiting() -> Option<Waiting> {
    let end = Instant::now() + SETTLE;
    loop {
        let mut waits = wait::waiting();
        if !waits.is_empty() {
            return Some(waits.swap_remove(0));
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}
