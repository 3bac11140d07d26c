//! Barriers and all-to-alls of more PEs than one machine can run, by the roce engine with one core a PE: what the device library does, counted and
//! written down as operations on clocks, replayed for every PE in one process.
//!
//! The operations are those that the library's calls were counted to make (`npushmem bench cost`; device/impl: queue.h, order.h, collect.h,
//! team_data.h), in their order, with the same places where queue pairs are held. The replay and the executed kernels share clock.rs and
//! parameters.rs; a test holds the two together for as many PEs as can be executed. What a replay adds is scale, not knowledge.

use super::clock::{Clock, Request};
use super::parameters::{Link, Parameters};

/// Queue pairs that a core holds at once (MAX_QUEUES), peers whose entry it holds (PEER_CACHE): device/impl/state.h.
const QUEUES: usize = 8;
const PEERS: usize = 16;
/// Loads that find a peer's entry, and a queue pair's; stores that save its counters (state.h, queue.h).
const PEER_LOADS: u32 = 5;
const QUEUE_LOADS: u32 = 28;
const SAVE_STORES: u32 = 6;
/// Loads that ask whether a queue pair that is not held has requests open (order.h, quiet_left).
const LEFT_LOADS: u32 = 4;
/// Bytes of a work request and of a word.
const WQE: u64 = 64;
const WORD: u64 = 8;
const MTE3: usize = 5;
const MTE2: usize = 4;
const SCALAR: usize = 0;

/// A queue pair that is held.
#[derive(Debug, Clone, Copy)]
struct Held {
    pe: usize,
    used: u64,
    /// Bytes of the staged request, if there is one.
    staged: Option<u64>,
    /// When its last request completes, until that was polled.
    open: Option<f64>,
}

/// One PE with its core.
#[derive(Debug, Clone)]
struct Pe {
    me: usize,
    n: usize,
    clock: Clock,
    held: Vec<Option<Held>>,
    last: usize,
    turn: u64,
    peers: [Option<usize>; PEERS],
    /// Completions of queue pairs that are not held.
    left: Vec<Option<f64>>,
    left_open: bool,
    /// Arrivals of the requests sent since they were last taken.
    sent: Vec<(usize, f64)>,
}

impl Pe {
    fn new(me: usize, n: usize, parameters: Parameters) -> Pe {
        Pe {
            me,
            n,
            clock: Clock::new(parameters, 0.0, 1),
            held: vec![None; QUEUES.min(n)],
            last: 0,
            turn: 0,
            peers: [None; PEERS],
            left: vec![None; n],
            left_open: false,
            sent: Vec::new(),
        }
    }

    fn loads(&mut self, count: u32) {
        (0..count).for_each(|_| self.clock.load(Link::Own));
    }

    fn stores(&mut self, count: u32) {
        (0..count).for_each(|_| {
            self.clock.store(Link::Own);
        });
    }

    /// Flags by which the core waits for its copies in and out.
    fn copies_done(&mut self) {
        for pipe in [MTE2, MTE3] {
            self.clock.set_flag(pipe, SCALAR, 0);
            self.clock.wait_flag(pipe, SCALAR, 0);
        }
        self.clock.stores_done();
    }

    /// The staged request of a held queue pair goes to the NIC.
    fn commit(&mut self, slot: usize) {
        let Some(Held {
            pe,
            staged: Some(bytes),
            ..
        }) = self.held[slot]
        else {
            return;
        };
        self.clock.stores_done();
        self.clock.set_flag(SCALAR, MTE3, 0);
        self.clock.wait_flag(SCALAR, MTE3, 0);
        self.clock.barrier(MTE3);
        self.clock.copy_out(Link::Own, WQE);
        self.stores(SAVE_STORES);
        self.clock.set_flag(MTE3, SCALAR, 0);
        self.clock.wait_flag(MTE3, SCALAR, 0);
        self.clock.stores_done();
        self.clock.doorbell();
        let times = self.clock.request(pe, Request::Write, bytes, false);
        self.sent.push((pe, times.arrival));
        if let Some(held) = &mut self.held[slot] {
            held.staged = None;
            held.open = Some(times.completion);
        }
    }

    fn commit_all(&mut self) {
        (0..self.held.len()).for_each(|slot| self.commit(slot));
    }

    /// Makes a slot hold the queue pair toward `pe`.
    fn toward(&mut self, pe: usize) -> usize {
        if self.held[self.last].is_some_and(|held| held.pe == pe) {
            return self.last;
        }
        self.turn += 1;
        let mut oldest = 0;
        for slot in 0..self.held.len() {
            if let Some(held) = self.held[slot].as_mut().filter(|held| held.pe == pe) {
                held.used = self.turn;
                self.last = slot;
                return slot;
            }
            let used = |held: &Option<Held>| held.map_or(0, |held| held.used);
            if self.held[oldest].is_some() && used(&self.held[slot]) < used(&self.held[oldest]) {
                oldest = slot;
            }
        }
        if self.held[oldest].is_some() {
            self.commit(oldest);
            self.stores(SAVE_STORES);
        }
        if let Some(out) = self.held[oldest].take() {
            if out.open.is_some() {
                self.left[out.pe] = out.open;
                self.left_open = true;
            }
        }
        self.loads(QUEUE_LOADS);
        self.held[oldest] = Some(Held {
            pe,
            used: self.turn,
            staged: None,
            open: self.left[pe].take(),
        });
        self.last = oldest;
        oldest
    }

    fn find_peer(&mut self, pe: usize) {
        let place = &mut self.peers[pe % PEERS];
        if place.replace(pe) != Some(pe) {
            self.loads(PEER_LOADS);
        }
    }

    /// A put that is staged.
    fn stage(&mut self, pe: usize, bytes: u64) -> usize {
        self.find_peer(pe);
        let slot = self.toward(pe);
        if let Some(held) = &mut self.held[slot] {
            held.staged = Some(bytes);
        }
        slot
    }

    /// A word that is rung at once.
    fn send_word(&mut self, pe: usize) {
        let slot = self.stage(pe, WORD);
        self.commit(slot);
    }

    /// Waits for a held queue pair's completion and tells the NIC.
    fn confirm(&mut self, slot: usize) {
        let open = self.held[slot].as_mut().and_then(|held| held.open.take());
        if let Some(completion) = open {
            self.clock.wait(completion);
            self.clock.doorbell();
        }
    }

    fn quiet(&mut self) {
        self.copies_done();
        self.commit_all();
        (0..self.held.len()).for_each(|slot| self.confirm(slot));
        if !self.left_open {
            return;
        }
        let held = self.held.iter().flatten().count() as u32;
        self.stores(SAVE_STORES * held);
        for pe in 0..self.n {
            self.loads(LEFT_LOADS);
            if self.left[pe].is_some() {
                let slot = self.toward(pe);
                self.confirm(slot);
            }
        }
        self.left_open = false;
    }
}

/// All PEs of a job.
#[derive(Debug)]
struct Job {
    pes: Vec<Pe>,
}

impl Job {
    fn new(n: usize) -> Job {
        let parameters = Parameters::table();
        Job {
            pes: (0..n).map(|me| Pe::new(me, n, parameters)).collect(),
        }
    }

    /// The rounds between the PEs, with the words around them (collect.h, meet).
    fn meet(&mut self) {
        let n = self.pes.len();
        for pe in &mut self.pes {
            pe.stores(1);
            pe.loads(1);
        }
        let mut distance = 1;
        while distance < n {
            let mut arrivals = vec![0.0; n];
            for pe in &mut self.pes {
                let (to, from) = ((pe.me + distance) % n, (pe.me + n - distance) % n);
                pe.loads(if to == from { 1 } else { 2 });
                pe.sent.clear();
                pe.send_word(to);
                // What the slot sent before it, if its queue pair was given up for this one, goes elsewhere.
                arrivals[to] = pe.sent.last().map_or(0.0, |(_, arrival)| *arrival);
            }
            for pe in &mut self.pes {
                pe.loads(1);
                pe.clock.wait(arrivals[pe.me]);
            }
            distance *= 2;
        }
        self.pes.iter_mut().for_each(|pe| pe.stores(3));
    }

    fn barrier(&mut self) {
        self.pes.iter_mut().for_each(Pe::quiet);
        self.meet();
    }

    fn alltoall(&mut self, bytes: u64) {
        for pe in &mut self.pes {
            pe.copies_done();
            pe.commit_all();
            for k in 0..pe.n {
                pe.loads(1);
                pe.stage((pe.me + k) % pe.n, bytes);
            }
            pe.quiet();
        }
        self.meet();
    }

    fn now(&self) -> f64 {
        self.pes.iter().fold(0.0, |now, pe| pe.clock.now.max(now))
    }

    /// Seconds of a call, of `calls` after a first one.
    fn time(mut self, calls: u32, mut call: impl FnMut(&mut Job)) -> f64 {
        self.barrier();
        call(&mut self);
        let begin = self.now();
        (0..calls).for_each(|_| call(&mut self));
        (self.now() - begin) / f64::from(calls) * 1e-12
    }
}

/// Calls that a replayed time is the mean of.
const CALLS: u32 = 4;

/// Seconds of a barrier of so many PEs, modelled.
pub fn barrier(pes: u32) -> f64 {
    Job::new(pes.max(1) as usize).time(CALLS, Job::barrier)
}

/// Seconds of an all-to-all of so many PEs, each of which sends `bytes` to each, modelled.
pub fn alltoall(pes: u32, bytes: u64) -> f64 {
    Job::new(pes.max(1) as usize).time(CALLS, |job| job.alltoall(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_takes_a_start_up_a_round() {
        let start = Parameters::table().roce_start * 1e-12;
        for (pes, rounds) in [(2, 1.0), (4, 2.0), (5, 3.0), (8, 3.0), (64, 6.0)] {
            let time = barrier(pes);
            assert!(
                time > rounds * start && time < rounds * start * 1.6,
                "{pes} PEs: {time}"
            );
        }
        assert!(barrier(1) < start);
    }

    #[test]
    fn a_large_all_to_all_is_bound_by_the_link() {
        let bytes = 16 << 20;
        for pes in [2, 5, 16] {
            let link = f64::from(pes) * bytes as f64 * Parameters::table().roce_byte * 1e-12;
            let time = alltoall(pes, bytes);
            assert!(
                time > link && time < 1.01 * link,
                "{pes} PEs: {time} and {link}"
            );
        }
    }

    #[test]
    fn a_thousand_pes_are_replayed() {
        assert!(barrier(1024) > barrier(512) && alltoall(1024, 64) > 2.0 * alltoall(256, 64));
    }
}
