//! Events: points in a stream that hosts and other streams wait for. Called by the ACL entries and the stream workers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use npushmem_ffi::acl;

use crate::error::{fail, invalid, Outcome};
use crate::handles::Handles;

/// How often a wait looks whether it was asked to stop.
const LOOK: Duration = Duration::from_millis(10);

/// One event.
pub(crate) struct Event {
    /// Whether its time can be asked for.
    timed: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Recordings put into streams.
    recorded: u64,
    /// The latest recording that a stream has reached.
    reached: u64,
    at: Option<Instant>,
}

/// All events.
pub(crate) static EVENTS: Handles<Event> = Handles::new("event", 2);

impl Event {
    pub(crate) fn new(timed: bool) -> Self {
        Self {
            timed,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new recording was put into a stream; returns its number.
    pub(crate) fn record(&self) -> u64 {
        let mut state = self.state();
        state.recorded += 1;
        state.recorded
    }

    /// The latest recording; 0 when there is none.
    pub(crate) fn latest(&self) -> u64 {
        self.state().recorded
    }

    /// A stream has reached a recording.
    pub(crate) fn reach(&self, number: u64) {
        let mut state = self.state();
        if number >= state.reached {
            state.reached = number;
            state.at = Some(Instant::now());
        }
        self.changed.notify_all();
    }

    /// Whether the latest recording was reached. An event that was never recorded is not ready (documented).
    pub(crate) fn is_complete(&self) -> bool {
        let state = self.state();
        state.recorded > 0 && state.reached >= state.recorded
    }

    /// Waits until a recording was reached; false when `stop` said so first.
    pub(crate) fn wait(&self, number: u64, stop: impl Fn() -> bool) -> bool {
        let mut state = self.state();
        while state.reached < number {
            if stop() {
                return false;
            }
            (state, _) = self
                .changed
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    fn time(&self, which: &str) -> Outcome<Instant> {
        let state = self.state();
        if !self.timed {
            return Err(invalid(format!(
                "the {which} event was made without ACL_EVENT_TIME_LINE and takes no time"
            )));
        }
        match state.at {
            Some(at) if state.reached >= state.recorded => Ok(at),
            _ => Err(fail(
                acl::ACL_ERROR_RT_PARAM_INVALID,
                format!("the {which} event was not recorded, or its stream is not there yet: synchronize it first"),
            )),
        }
    }

    /// Milliseconds from `start` to `end`.
    pub(crate) fn elapsed(start: &Self, end: &Self) -> Outcome<f32> {
        let (start, end) = (start.time("start")?, end.time("end")?);
        Ok(if end >= start {
            (end - start).as_secs_f64() * 1e3
        } else {
            -((start - end).as_secs_f64() * 1e3)
        } as f32)
    }
}
