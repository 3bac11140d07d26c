//! The clock of one core: what each operation adds to it, and to the clocks of its pipes and its NIC. Pure arithmetic on times; where memory is and who
//! is far away is told by the caller (mod.rs), as replay.rs tells it from a pattern.
//!
//! The scalar unit's own instructions, the vector unit and the data cache cost nothing. A pipe begins a copy when it has ended the one before and the
//! core has issued it; a flag carries the time at which its pipe was done. The NIC begins a request when its doorbell was rung and the request before
//! has left; a message then takes the start-up, and its bytes the link, whichever of this PE's cores shares it evenly.

use std::collections::HashMap;

use super::parameters::{Link, Parameters};

/// Pipes of `pipe_t` that the model has: all of them, by their numbers.
const PIPES: usize = 11;
const EVENTS: usize = 8;
const PIPE_S: usize = 0;
const PIPE_MTE2: usize = 4;
const PIPE_MTE3: usize = 5;
const PIPE_ALL: usize = 6;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// WRITE.
    Write,
    /// READ.
    Read,
    /// Fetch-add, compare-and-swap.
    Atomic,
    /// Nothing.
    Nothing,
}

/// When a request is felt where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// At the target's memory, picoseconds.
    pub arrival: f64,
    /// At the requester: its completion entry.
    pub completion: f64,
}

/// One core's clock, picoseconds.
#[derive(Debug, Clone)]
pub struct Clock {
    parameters: Parameters,
    /// Cores that share the PE's links.
    cores: u64,
    /// The scalar unit.
    pub now: f64,
    /// When a pipe can begin its next copy; when all its copies are where they go.
    free: [f64; PIPES],
    done: [f64; PIPES],
    flags: Box<[[[f64; EVENTS]; PIPES]; PIPES]>,
    /// When this core's stores are all where they go.
    stores: f64,
    /// When the NIC's line out, and the line of responses, are free for this core's requests.
    line: f64,
    responses: f64,
    /// Completions of a queue pair come in order.
    completions: HashMap<usize, f64>,
}

impl Clock {
    /// A core that begins at `now` and shares the PE's links with others: `cores` in all.
    pub fn new(parameters: Parameters, now: f64, cores: u64) -> Clock {
        Clock {
            parameters,
            cores: cores.max(1),
            now,
            free: [now; PIPES],
            done: [now; PIPES],
            flags: Box::new([[[0.0; EVENTS]; PIPES]; PIPES]),
            stores: now,
            line: now,
            responses: now,
            completions: HashMap::new(),
        }
    }

    /// The core has nothing before `time`: what it waited for came then.
    pub fn wait(&mut self, time: f64) {
        self.now = self.now.max(time);
    }

    /// An uncached load. From afar it takes the way there and back.
    pub fn load(&mut self, link: Link) {
        self.now += match link {
            Link::Own => self.parameters.load,
            far => 2.0 * self.parameters.latency(far),
        };
    }

    /// An uncached store; when it arrives.
    pub fn store(&mut self, link: Link) -> f64 {
        self.now += self.parameters.store;
        let arrival = self.now + self.parameters.latency(link);
        self.stores = self.stores.max(arrival);
        arrival
    }

    /// A data barrier: this core's stores are where they go.
    pub fn stores_done(&mut self) {
        self.now = self.now.max(self.stores);
    }

    fn copy(&mut self, pipe: usize, link: Link, bytes: u64) -> f64 {
        let begin = self.free[pipe].max(self.now);
        let p = &self.parameters;
        self.free[pipe] = begin + p.mte_start + bytes as f64 * p.byte(link, self.cores);
        let there = self.free[pipe] + p.latency(link);
        self.done[pipe] = self.done[pipe].max(there);
        there
    }

    /// An MTE2 copy. From afar its first byte takes the way there and back.
    pub fn copy_in(&mut self, link: Link, bytes: u64) {
        let there = self.copy(PIPE_MTE2, link, bytes) + self.parameters.latency(link);
        self.done[PIPE_MTE2] = self.done[PIPE_MTE2].max(there);
    }

    /// An MTE3 copy; when it arrives.
    pub fn copy_out(&mut self, link: Link, bytes: u64) -> f64 {
        self.copy(PIPE_MTE3, link, bytes)
    }

    /// A flag between two pipes is set by the first.
    pub fn set_flag(&mut self, from: usize, to: usize, id: usize) {
        let time = if from == PIPE_S {
            self.now
        } else {
            self.done[from % PIPES]
        };
        self.flags[from % PIPES][to % PIPES][id % EVENTS] = time;
    }

    /// And waited for by the second.
    pub fn wait_flag(&mut self, from: usize, to: usize, id: usize) {
        let time = self.flags[from % PIPES][to % PIPES][id % EVENTS];
        if to == PIPE_S {
            self.now = self.now.max(time) + self.parameters.flag;
        } else {
            let to = to % PIPES;
            self.free[to] = self.free[to].max(time) + self.parameters.flag;
        }
    }

    /// A pipe's barrier: its next copy begins when the ones before are where they go. All: the core waits for every pipe.
    pub fn barrier(&mut self, pipe: usize) {
        if pipe == PIPE_ALL {
            self.now = self.done.iter().fold(self.now, |now, &done| now.max(done));
        } else {
            let pipe = pipe % PIPES;
            self.free[pipe] = self.free[pipe].max(self.done[pipe]);
        }
    }

    /// A doorbell is rung; its requests follow.
    pub fn doorbell(&mut self) {
        self.now += self.parameters.doorbell;
    }

    /// A request on a queue pair, after its doorbell. `strong`: it waits for the responses of those before it.
    pub fn request(&mut self, qp: usize, what: Request, bytes: u64, strong: bool) -> Times {
        let p = self.parameters;
        let earlier = self.completions.get(&qp).copied().unwrap_or(0.0);
        let ready = self.line.max(self.now);
        // A request that waits for responses keeps its own queue pair from going on, and not the line.
        let stalled = strong && earlier > ready;
        let begin = if stalled { earlier } else { ready };
        let sharing = self.cores as f64;
        let on_line = |bytes: u64| (bytes as f64 * p.roce_byte).max(p.roce_gap) * sharing;
        let sent = match what {
            Request::Write => bytes,
            _ => 0,
        };
        self.line = ready + on_line(sent);
        // The start-up is the first byte's; the last one follows as the link lets it.
        let arrival = begin + p.roce_start + sent as f64 * p.roce_byte * sharing;
        let answered = match what {
            Request::Write | Request::Nothing => arrival,
            Request::Atomic => arrival + p.roce_atomic,
            Request::Read => {
                self.responses = self.responses.max(arrival) + on_line(bytes);
                self.responses
            }
        };
        let completion = (answered + p.roce_ack).max(earlier);
        self.completions.insert(qp, completion);
        Times {
            arrival,
            completion,
        }
    }

    /// The meeting of all cores of a launch, of which the last came at `last`.
    pub fn meeting(&mut self, last: f64) {
        self.now = self.now.max(last) + self.parameters.meeting;
    }

    /// When everything that the core itself began is where it goes.
    pub fn end(&self) -> f64 {
        self.done
            .iter()
            .fold(self.now.max(self.stores), |end, &done| end.max(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Parameters = Parameters::table();

    fn clock() -> Clock {
        Clock::new(P, 0.0, 1)
    }

    #[test]
    fn a_small_message_takes_the_start_up_and_a_large_one_the_link() {
        let small = clock().request(0, Request::Write, 8, false);
        assert_eq!(small.arrival, P.roce_start + 8.0 * P.roce_byte);
        let bytes = 64 << 20;
        let large = clock().request(0, Request::Write, bytes, false);
        let link = bytes as f64 * P.roce_byte;
        assert_eq!(large.arrival, P.roce_start + link);
        assert!(P.roce_start < 0.001 * link);
    }

    #[test]
    fn messages_leave_one_after_the_other_and_share_the_start_up() {
        let mut clock = clock();
        let arrivals: Vec<f64> = (0..3)
            .map(|_| clock.request(0, Request::Write, 1 << 20, false).arrival)
            .collect();
        let link = (1u64 << 20) as f64 * P.roce_byte;
        assert_eq!(
            arrivals,
            [
                P.roce_start + link,
                P.roce_start + 2.0 * link,
                P.roce_start + 3.0 * link
            ]
        );
    }

    #[test]
    fn completions_of_a_queue_pair_come_in_order_and_a_strong_request_waits() {
        let mut clock = clock();
        let read = clock.request(0, Request::Read, 1 << 20, false);
        let write = clock.request(0, Request::Write, 8, false);
        assert_eq!(write.completion, read.completion);
        assert!(write.arrival < read.completion);
        let strong = clock.request(0, Request::Write, 8, true);
        assert!(strong.arrival >= read.completion + P.roce_start);
        assert!(clock.request(1, Request::Write, 8, true).arrival < strong.arrival);
    }

    #[test]
    fn copies_in_and_out_overlap_and_a_flag_carries_the_time() {
        let mut clock = clock();
        let tile = 16 << 10;
        clock.copy_in(Link::Own, tile);
        clock.set_flag(PIPE_MTE2, PIPE_MTE3, 0);
        clock.wait_flag(PIPE_MTE2, PIPE_MTE3, 0);
        let one = P.mte_start + tile as f64 * P.mte_byte;
        let out = clock.copy_out(Link::Hccs, tile);
        assert_eq!(
            out,
            one + P.flag + P.mte_start + tile as f64 * P.hccs_byte + P.hccs_latency
        );
        assert_eq!(clock.now, 0.0);
        // The next copy in does not wait for the one out.
        clock.copy_in(Link::Own, tile);
        clock.set_flag(PIPE_MTE2, PIPE_S, 1);
        clock.wait_flag(PIPE_MTE2, PIPE_S, 1);
        assert_eq!(clock.now, 2.0 * one + P.flag);
        clock.barrier(PIPE_ALL);
        assert_eq!(clock.now, out);
    }

    #[test]
    fn a_data_barrier_waits_for_stores_to_arrive() {
        let mut clock = clock();
        let arrival = clock.store(Link::Hccs);
        assert_eq!((arrival, clock.now), (P.store + P.hccs_latency, P.store));
        clock.stores_done();
        assert_eq!(clock.now, arrival);
    }

    #[test]
    fn cores_share_the_link() {
        let alone = clock().request(0, Request::Write, 1 << 20, false);
        let shared = Clock::new(P, 0.0, 4).request(0, Request::Write, 1 << 20, false);
        let link = (1u64 << 20) as f64 * P.roce_byte;
        assert_eq!(shared.arrival - alone.arrival, 3.0 * link);
    }
}
