//! The NIC's own thread, in modes thread and chaos: it takes queue pairs whose doorbell was rung and runs their engines.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::chaos::{Dice, Visit};
use super::config::Mode;
use super::error::NicError;
use super::Core;

/// Longest pause of the chaos thread, microseconds.
const LONGEST_PAUSE: u64 = 100;
/// The chaos thread pauses once in so many turns.
const PAUSE_ONCE_IN: u64 = 64;

#[derive(Default)]
struct Inbox {
    rung: VecDeque<usize>,
    stop: bool,
}

/// Queue pairs whose doorbell was rung, each at most once.
#[derive(Default)]
pub(super) struct Queue {
    inbox: Mutex<Inbox>,
    wake: Condvar,
}

impl Queue {
    /// Hands a queue pair to the thread.
    pub(super) fn push(&self, index: usize) {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .rung
            .push_back(index);
        self.wake.notify_one();
    }

    /// Ends the thread as soon as it looks.
    pub(super) fn stop(&self) {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stop = true;
        self.wake.notify_one();
    }

    /// Moves what was rung to `list`, waiting for something if `wait`; false when the thread is to end.
    fn take(&self, list: &mut VecDeque<usize>, wait: bool) -> bool {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        while wait && inbox.rung.is_empty() && !inbox.stop {
            inbox = self
                .wake
                .wait(inbox)
                .unwrap_or_else(PoisonError::into_inner);
        }
        list.append(&mut inbox.rung);
        !inbox.stop
    }
}

/// Starts the thread that the mode needs, if any.
pub(super) fn start(core: &Arc<Core>) -> Result<Option<JoinHandle<()>>, NicError> {
    let work: fn(&Core, u64) = match core.config.mode {
        Mode::Inline => return Ok(None),
        Mode::Thread => |core, _| in_order(core),
        Mode::Chaos { .. } => in_chaos,
    };
    let seed = if let Mode::Chaos { seed } = core.config.mode {
        seed
    } else {
        0
    };
    let core = Arc::clone(core);
    let thread = thread::Builder::new()
        .name("npusim-nic".to_owned())
        .spawn(move || work(&core, seed));
    thread.map(Some).map_err(|source| NicError::System {
        call: "starting the NIC's thread",
        source,
    })
}

fn in_order(core: &Core) {
    let mut rung = VecDeque::new();
    while core.queue.take(&mut rung, true) {
        for index in rung.drain(..) {
            let Some(qp) = core.qp(index) else { continue };
            // Cleared before the engine reads the doorbell's index: a later doorbell comes back to the list.
            qp.queued.store(false, Ordering::SeqCst);
            if let Some(engine) = qp.engine().as_mut() {
                engine.run(core, qp);
            }
        }
    }
}

/// A queue pair with something to do.
struct Active {
    index: usize,
    looks: u64,
}

fn in_chaos(core: &Core, seed: u64) {
    let mut dice = Dice::new(seed, 0);
    let mut rung = VecDeque::new();
    let mut active: Vec<Active> = Vec::new();
    while core.queue.take(&mut rung, active.is_empty()) {
        for index in rung.drain(..) {
            if let Some(qp) = core.qp(index) {
                qp.queued.store(false, Ordering::SeqCst);
                active.push(Active { index, looks: 0 });
            }
        }
        if active.is_empty() {
            continue;
        }
        let chosen = dice.upto(active.len() as u64 - 1) as usize;
        if !turn(core, &mut active[chosen]) {
            active.swap_remove(chosen);
        }
        if dice.once_in(PAUSE_ONCE_IN) {
            thread::sleep(Duration::from_micros(dice.upto(LONGEST_PAUSE)));
        } else if dice.once_in(4) {
            thread::yield_now();
        }
    }
}

/// One turn of a queue pair; false when it needs no more.
fn turn(core: &Core, active: &mut Active) -> bool {
    let Some(qp) = core.qp(active.index) else {
        return false;
    };
    let mut engine = qp.engine();
    let Some(engine) = engine.as_mut() else {
        return false;
    };
    match engine.visit(core, qp) {
        Visit::Busy => {
            active.looks = 0;
            true
        }
        Visit::Idle { looks } if active.looks == 0 => {
            active.looks = looks;
            looks > 0
        }
        Visit::Idle { .. } => {
            active.looks -= 1;
            active.looks > 0
        }
    }
}
