//! Chaos mode: the same requests, executed as unkindly as the rules allow. All decisions come from a seed and the queue pair's number.
//!
//! What it does, per queue pair:
//! - stops anywhere between two requests, so that queue pairs overtake one another;
//! - reads a READ's data late, and writes response data of READs and atomics late: later requests without a fence overtake the reading,
//!   later requests without strong order overtake the writing; the completion follows the response data, and completions stay in order;
//! - runs past the doorbell over slots whose owner bit is valid;
//! - if asked to (`early_ack`), completes a WRITE before its payload lands.
//!
//! Writes of one queue pair stay in order always, and so do READs and atomics among themselves.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::copy;
use super::execute::{gather, run_atomic, scatter, Failure, Piece, Pieces, Task};
use super::qp::{Engine, Qp, Step};
use super::types::QpState;
use super::Core;
use crate::cqe::Cqe;
use crate::wqe::{SendWqe, ATOMIC_SIZE};

/// Most requests of one queue pair that are executed before another one gets a turn.
const MOST_IN_A_ROW: u64 = 8;
/// Most requests that are executed past the doorbell at one time.
const MOST_PAST_DOORBELL: u64 = 4;
/// How often a queue pair without work is looked at again, to run past its doorbell.
const MOST_LOOKS: u64 = 4;

/// A small seeded source of decisions (splitmix64).
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64, salt: u64) -> Dice {
        Dice {
            state: seed ^ salt.wrapping_mul(0xd6e8_feb8_6659_fd93),
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `most`, both included.
    pub(super) fn upto(&mut self, most: u64) -> u64 {
        self.next() % (most + 1)
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }
}

/// Response data under way.
enum Response {
    /// A READ whose data has not been read yet.
    Unread { from: *const u8, to: Pieces },
    /// Data that has been read.
    Data { bytes: Box<[u8]>, to: Pieces },
}

/// What is due, in the order of requests: response data, then the completion.
struct Due {
    response: Option<Response>,
    completion: Option<Cqe>,
}

/// The payload of a WRITE that was acknowledged early.
struct LatePayload {
    to: *mut u8,
    bytes: Box<[u8]>,
}

/// What one queue pair has under way. Addresses in it are valid because the engine releases no region while it is not idle.
pub(super) struct Chaos {
    dice: Dice,
    early_ack: bool,
    due: VecDeque<Due>,
    late: VecDeque<LatePayload>,
}

impl Chaos {
    pub(super) fn new(seed: u64, index: usize, early_ack: bool) -> Chaos {
        Chaos {
            dice: Dice::new(seed, index as u64 + 1),
            early_ack,
            due: VecDeque::new(),
            late: VecDeque::new(),
        }
    }

    /// Nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty() && self.late.is_empty()
    }

    fn land_payloads(&mut self, most: usize) {
        for payload in self.late.drain(..most.min(self.late.len())) {
            // SAFETY: the address was checked for this length, and its region is still mapped.
            unsafe { copy::to_remote(payload.to, payload.bytes.as_ptr(), payload.bytes.len()) };
        }
    }

    /// Reads what READs have not read yet; payloads of earlier WRITEs land first.
    fn read_all(&mut self) {
        if self
            .due
            .iter()
            .any(|due| matches!(due.response, Some(Response::Unread { .. })))
        {
            self.land_payloads(usize::MAX);
        }
        for response in self.due.iter_mut().filter_map(|due| due.response.as_mut()) {
            if let Response::Unread { from, to } = *response {
                *response = Response::Data {
                    bytes: read(from, &to),
                    to,
                };
            }
        }
    }
}

fn total(pieces: &Pieces) -> usize {
    pieces.iter().map(|piece| piece.len).sum()
}

fn read(from: *const u8, to: &Pieces) -> Box<[u8]> {
    let mut bytes = vec![0_u8; total(to)].into_boxed_slice();
    // SAFETY: `from` was checked for the pieces' total length, and its region is still mapped.
    unsafe { copy::from_remote(bytes.as_mut_ptr(), from, bytes.len()) };
    bytes
}

/// What a visit left behind.
pub(super) enum Visit {
    /// There is more to do.
    Busy,
    /// Nothing to do; look again this many times.
    Idle {
        /// Number of looks.
        looks: u64,
    },
}

impl Engine {
    /// Executes one request with whatever lateness the dice say. Only in chaos mode.
    pub(super) fn execute_unkindly(&mut self, core: &Core, qp: &Qp, n: u64, wqe: &SendWqe) -> Step {
        let flags = wqe.flags();
        if flags.strong_order {
            while self.land_one(core, qp) {}
        } else if flags.fence {
            self.chaos.iter_mut().for_each(|chaos| chaos.read_all());
        }
        match self
            .check(core, wqe)
            .and_then(|task| self.start(n, wqe, task))
        {
            Ok(due) => {
                self.enqueue(core, qp, due);
                Step::Executed
            }
            Err(failure) => {
                let completion = Some(self.failed(core, n, wqe, &failure));
                self.enqueue(
                    core,
                    qp,
                    Due {
                        response: None,
                        completion,
                    },
                );
                Step::Stopped
            }
        }
    }

    fn start(&mut self, n: u64, wqe: &SendWqe, task: Task) -> Result<Due, Failure> {
        let bytes = match &task {
            Task::Read { to, .. } => total(to) as u32,
            Task::Atomic { .. } => ATOMIC_SIZE,
            Task::Nothing | Task::Write { .. } => 0,
        };
        let completion = self.completion(n, wqe, bytes);
        let (Some(chaos), Some(target)) = (&mut self.chaos, &self.target) else {
            return Ok(Due {
                response: None,
                completion,
            });
        };
        let response = match task {
            Task::Nothing => None,
            Task::Write { to, from } => {
                // A later payload never lands before an earlier one.
                if chaos.early_ack && (!chaos.late.is_empty() || chaos.dice.once_in(2)) {
                    let mut bytes = vec![0_u8; total(&from)].into_boxed_slice();
                    // SAFETY: `check` found the pieces valid, and the buffer has their total length.
                    unsafe { gather(bytes.as_mut_ptr(), &from) };
                    chaos.late.push_back(LatePayload { to, bytes });
                } else {
                    // SAFETY: `check` has just found both sides valid.
                    unsafe { gather(to, &from) };
                }
                None
            }
            Task::Read { from, to } if chaos.dice.once_in(2) => Some(Response::Unread { from, to }),
            Task::Read { from, to } => {
                chaos.read_all();
                chaos.land_payloads(usize::MAX);
                Some(Response::Data {
                    bytes: read(from, &to),
                    to,
                })
            }
            Task::Atomic { at, result, update } => {
                chaos.read_all();
                chaos.land_payloads(usize::MAX);
                // SAFETY: `check` found the word valid and aligned.
                let old = unsafe { run_atomic(&target.responder.port, at, update, true) }?;
                let to = [
                    result,
                    Piece {
                        at: std::ptr::null_mut(),
                        len: 0,
                    },
                ];
                Some(Response::Data {
                    bytes: Box::new(old.to_ne_bytes()),
                    to,
                })
            }
        };
        Ok(Due {
            response,
            completion,
        })
    }

    fn enqueue(&mut self, core: &Core, qp: &Qp, due: Due) {
        let Some(chaos) = &mut self.chaos else { return };
        if due.response.is_none() && chaos.due.is_empty() {
            if let Some(cqe) = due.completion {
                self.complete(core, qp, cqe);
            }
        } else if due.response.is_some() || due.completion.is_some() {
            chaos.due.push_back(due);
        }
    }

    /// Writes the oldest response and completion that are due; false when there is none.
    fn land_one(&mut self, core: &Core, qp: &Qp) -> bool {
        let Some(chaos) = &mut self.chaos else {
            return false;
        };
        if matches!(
            chaos.due.front(),
            Some(Due {
                response: Some(Response::Unread { .. }),
                ..
            })
        ) {
            chaos.read_all();
        }
        let Some(due) = chaos.due.pop_front() else {
            return false;
        };
        if let Some(Response::Data { bytes, to }) = due.response {
            // SAFETY: the pieces were checked, their regions are still mapped, and the buffer has their total length.
            unsafe { scatter(bytes.as_ptr(), &to) };
        }
        if let Some(cqe) = due.completion {
            self.complete(core, qp, cqe);
        }
        true
    }

    /// Ends all lateness.
    pub(super) fn land_everything(&mut self, core: &Core, qp: &Qp) {
        while self.land_one(core, qp) {}
        self.chaos
            .iter_mut()
            .for_each(|chaos| chaos.land_payloads(usize::MAX));
    }

    /// One turn of the queue pair in chaos mode: some of its work, perhaps none.
    pub(super) fn visit(&mut self, core: &Core, qp: &Qp) -> Visit {
        let roll = |engine: &mut Engine, most| {
            engine
                .chaos
                .as_mut()
                .map_or(most, |chaos| chaos.dice.upto(most))
        };
        let announced = qp.announced.load(Ordering::Acquire);
        let mut stopped = self.state(core) != QpState::Rts;
        for _ in 0..roll(self, MOST_IN_A_ROW) {
            let next = qp.executed.load(Ordering::Relaxed);
            if stopped || next >= announced {
                break;
            }
            match self.step(core, qp, next) {
                Step::Executed => (),
                Step::NotOwned => {
                    self.report_stall(core, next);
                    stopped = true;
                }
                Step::Stopped => stopped = true,
            }
        }
        let past = roll(self, MOST_PAST_DOORBELL);
        self.run_past_doorbell(core, qp, past);
        for _ in 0..roll(self, 2) {
            self.land_one(core, qp);
        }
        let payloads = roll(self, 2) as usize;
        self.chaos
            .iter_mut()
            .for_each(|chaos| chaos.land_payloads(payloads));
        let work_left = !stopped && qp.executed.load(Ordering::Relaxed) < announced;
        if work_left || self.chaos.as_ref().is_some_and(|chaos| !chaos.is_idle()) {
            return Visit::Busy;
        }
        self.run(core, qp); // flushes and releases regions, where that is due
        Visit::Idle {
            looks: if stopped { 0 } else { roll(self, MOST_LOOKS) },
        }
    }

    fn run_past_doorbell(&mut self, core: &Core, qp: &Qp, most: u64) {
        for _ in 0..most {
            let next = qp.executed.load(Ordering::Relaxed);
            let past = next >= qp.announced.load(Ordering::Acquire);
            if !past || self.state(core) != QpState::Rts || !self.is_settled(next) {
                return;
            }
            if self.step(core, qp, next) != Step::Executed {
                return;
            }
        }
    }
}
