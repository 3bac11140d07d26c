//! The ring protocol under a model checker: with all ordering points it holds in every execution, and deleting any one of them breaks it.
//!
//! x86 alone cannot show a missing barrier. Two models, because neither shows everything:
//! - **loom** runs the very functions that the NIC uses ([`npushmem_roce::ring`]) under the C11 memory model: what was stored before an
//!   ordering point may be seen late without it.
//! - **reordering**: litmus tests in which the steps of a thread happen in any order that its ordering points allow. It shows what loom's
//!   model leaves out: a read that happens after a later store, so that a slot is reused while it is still being read.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64 as Count, Ordering::Relaxed};
use std::sync::Arc;

use loom::sync::atomic::{fence, AtomicU64, Ordering};
use npushmem_roce::ring::{self, Words, CQE_WORDS, WQE_WORDS};

/// An ordering point of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    /// Writer: slots 2..n, and slot 1's body, before slot 1's owner bit.
    PublishWqe,
    /// Writer: slots 2..n before slot 1 at all.
    GateByFirstSlot,
    /// Writer: slots before the doorbell.
    BeforeDoorbell,
    /// NIC: the doorbell before the slots that it announces.
    AfterDoorbell,
    /// NIC: a slot's owner bit before its body.
    AcquireWqe,
    /// NIC: payload and entry before the entry's owner bit.
    PublishCqe,
    /// Poller: an entry's owner bit before its body and the payload.
    AcquireCqe,
    /// NIC: one WRITE's payload before the next WRITE's.
    BetweenWrites,
}

/// The protocol with at most one point deleted.
#[derive(Clone, Copy)]
struct Protocol {
    deleted: Option<Point>,
}

impl Protocol {
    fn has(self, point: Point) -> bool {
        self.deleted != Some(point)
    }

    fn order(self, point: Point, order: Ordering) -> Ordering {
        if self.has(point) {
            order
        } else {
            Ordering::Relaxed
        }
    }
}

/// A slot of model memory. The orders of its two ordered accesses are the protocol's.
struct Slot<'a> {
    words: &'a [AtomicU64],
    acquire: Ordering,
    release: Ordering,
}

impl Words for Slot<'_> {
    fn load(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }
    fn load_acquire(&self, index: usize) -> u64 {
        self.words[index].load(self.acquire)
    }
    fn store(&self, index: usize, value: u64) {
        self.words[index].store(value, Ordering::Relaxed);
    }
    fn store_release(&self, index: usize, value: u64) {
        self.words[index].store(value, self.release);
    }
}

fn zeroed<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

/// Executions in which the reader saw what the writer wrote: a model that never gets there proves nothing.
static REACHED: Count = Count::new(0);

/// Whether `execution` holds in every interleaving.
fn holds(execution: impl Fn() + Send + Sync + 'static) -> bool {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    catch_unwind(AssertUnwindSafe(|| builder.check(execution))).is_ok()
}

/// Request `n` of a first lap: every word says which, the first has the owner bit.
fn request(n: u64) -> [u64; WQE_WORDS] {
    std::array::from_fn(|index| (n + 1) << 16 | 1 << 7 | index as u64)
}

/// A batch of two requests; the second arrives as a torn copy whose owner bit comes first.
fn send_ring(protocol: Protocol) {
    struct Memory {
        slots: [[AtomicU64; WQE_WORDS]; 2],
        doorbell: AtomicU64,
    }
    let memory = Arc::new(Memory {
        slots: [zeroed(), zeroed()],
        doorbell: AtomicU64::new(0),
    });
    let slot = move |memory: &Memory, n: usize, then: &dyn Fn(&Slot<'_>)| {
        then(&Slot {
            words: &memory.slots[n],
            acquire: protocol.order(Point::AcquireWqe, Ordering::Acquire),
            release: protocol.order(Point::PublishWqe, Ordering::Release),
        });
    };
    let nic = {
        let memory = Arc::clone(&memory);
        loom::thread::spawn(move || {
            let mut executed = 0;
            let take = |n: usize| {
                let mut taken = None;
                let words = std::cell::Cell::new(None);
                slot(&memory, n, &|slot| {
                    words.set(ring::take_wqe(slot, true).ok())
                });
                if let Some(words) = words.get() {
                    assert_eq!(
                        words,
                        request(n as u64),
                        "a body that the writer never wrote"
                    );
                    taken = Some(());
                }
                taken
            };
            // Runs ahead of the doorbell as far as owner bits are valid.
            while executed < 2 && take(executed).is_some() {
                executed += 1;
            }
            let announced = memory
                .doorbell
                .load(protocol.order(Point::AfterDoorbell, Ordering::Acquire))
                as usize;
            while executed < announced {
                take(executed).expect("the doorbell announced a slot whose owner bit is not valid");
                executed += 1;
            }
            REACHED.fetch_add(u64::from(executed == 2), Relaxed);
        })
    };
    let torn_copy = |n: usize| {
        for (index, word) in request(n as u64).into_iter().enumerate() {
            memory.slots[n][index].store(word, Ordering::Relaxed);
        }
    };
    let first = || slot(&memory, 0, &|slot| ring::publish_wqe(slot, &request(0)));
    if protocol.has(Point::GateByFirstSlot) {
        torn_copy(1);
        first();
    } else {
        first();
        torn_copy(1);
    }
    memory
        .doorbell
        .store(2, protocol.order(Point::BeforeDoorbell, Ordering::Release));
    nic.join().unwrap();
}

/// A payload and its completion.
fn completion_ring(protocol: Protocol) {
    struct Memory {
        entry: [AtomicU64; CQE_WORDS],
        payload: AtomicU64,
    }
    const PAYLOAD: u64 = 77;
    let entry_words: [u64; CQE_WORDS] =
        std::array::from_fn(|index| 1 << 16 | 1 << 7 | index as u64);
    let memory = Arc::new(Memory {
        entry: zeroed(),
        payload: AtomicU64::new(0),
    });
    let orders = (
        protocol.order(Point::AcquireCqe, Ordering::Acquire),
        protocol.order(Point::PublishCqe, Ordering::Release),
    );
    let poller = {
        let memory = Arc::clone(&memory);
        loom::thread::spawn(move || {
            let entry = Slot {
                words: &memory.entry,
                acquire: orders.0,
                release: orders.1,
            };
            if let Some(words) = ring::poll_cqe(&entry, true) {
                assert_eq!(words, entry_words, "an entry that the NIC never wrote");
                assert_eq!(
                    memory.payload.load(Ordering::Relaxed),
                    PAYLOAD,
                    "completed, but not there"
                );
                REACHED.fetch_add(1, Relaxed);
            }
        })
    };
    memory.payload.store(PAYLOAD, Ordering::Relaxed);
    ring::publish_cqe(
        &Slot {
            words: &memory.entry,
            acquire: orders.0,
            release: orders.1,
        },
        &entry_words,
    );
    poller.join().unwrap();
}

/// Data, then a flag, by two WRITEs of one queue pair; the target polls the flag.
fn two_writes(protocol: Protocol) {
    let memory = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let target = {
        let memory = Arc::clone(&memory);
        loom::thread::spawn(move || {
            if memory.1.load(Ordering::Acquire) == 1 {
                assert_eq!(
                    memory.0.load(Ordering::Relaxed),
                    1,
                    "the flag overtook the data"
                );
                REACHED.fetch_add(1, Relaxed);
            }
        })
    };
    memory.0.store(1, Ordering::Relaxed);
    if protocol.has(Point::BetweenWrites) {
        fence(Ordering::Release);
    }
    memory.1.store(1, Ordering::Relaxed);
    target.join().unwrap();
}

type Model = fn(Protocol);
const LOOM_MODELS: [(Model, &[Point]); 3] = [
    (
        send_ring,
        &[
            Point::PublishWqe,
            Point::GateByFirstSlot,
            Point::BeforeDoorbell,
            Point::AfterDoorbell,
            Point::AcquireWqe,
        ],
    ),
    (completion_ring, &[Point::PublishCqe, Point::AcquireCqe]),
    (two_writes, &[Point::BetweenWrites]),
];

#[test]
fn with_all_ordering_points_every_execution_is_right() {
    for (model, _) in LOOM_MODELS {
        let before = REACHED.load(Relaxed);
        assert!(holds(move || model(Protocol { deleted: None })));
        assert!(
            REACHED.load(Relaxed) > before,
            "no execution got to the end"
        );
    }
}

#[test]
fn without_any_one_ordering_point_some_execution_is_wrong() {
    for (model, points) in LOOM_MODELS {
        for point in points {
            assert!(
                !holds(move || model(Protocol {
                    deleted: Some(*point)
                })),
                "nothing depends on {point:?}"
            );
        }
    }
}

/// The reordering model: threads are lists of steps on shared words; a step may happen before an earlier one of its thread unless both touch
/// the same word or an ordering point lies between them.
mod reordering {
    /// One step of a thread.
    #[derive(Debug, Clone, Copy)]
    pub enum Step {
        /// Reads a word into the next register of the thread.
        Load(usize),
        /// Writes a word.
        Store(usize, u64),
        /// Nothing after it happens before anything before it.
        Order,
    }

    struct Search<'a> {
        threads: &'a [&'a [Step]],
        wrong: &'a dyn Fn(&[Vec<u64>]) -> bool,
        words: Vec<u64>,
        done: Vec<Vec<bool>>,
        registers: Vec<Vec<u64>>,
    }

    /// Whether some order of all steps ends with registers (a list a thread, in the order of its loads) that are wrong.
    pub fn can_end_wrong(
        threads: &[&[Step]],
        words: usize,
        wrong: &dyn Fn(&[Vec<u64>]) -> bool,
    ) -> bool {
        let done = threads
            .iter()
            .map(|steps| vec![false; steps.len()])
            .collect();
        let registers = threads.iter().map(|steps| vec![0; steps.len()]).collect();
        Search {
            threads,
            wrong,
            words: vec![0; words],
            done,
            registers,
        }
        .search()
    }

    fn word(step: Step) -> Option<usize> {
        match step {
            Step::Load(word) | Step::Store(word, _) => Some(word),
            Step::Order => None,
        }
    }

    impl Search<'_> {
        fn may_happen(&self, thread: usize, index: usize) -> bool {
            let steps = self.threads[thread];
            let waits_for = |earlier: usize| match (word(steps[earlier]), word(steps[index])) {
                (Some(before), Some(now)) => before == now,
                _ => true,
            };
            !self.done[thread][index]
                && (0..index).all(|earlier| self.done[thread][earlier] || !waits_for(earlier))
        }

        fn search(&mut self) -> bool {
            let mut at_end = true;
            for thread in 0..self.threads.len() {
                for index in 0..self.threads[thread].len() {
                    at_end &= self.done[thread][index];
                    if !self.may_happen(thread, index) {
                        continue;
                    }
                    let before = self.words.clone();
                    self.done[thread][index] = true;
                    match self.threads[thread][index] {
                        Step::Load(word) => self.registers[thread][index] = self.words[word],
                        Step::Store(word, value) => self.words[word] = value,
                        Step::Order => (),
                    }
                    let found = self.search();
                    self.done[thread][index] = false;
                    self.words = before;
                    if found {
                        return true;
                    }
                }
            }
            at_end && (self.wrong)(&self.of_loads())
        }

        fn of_loads(&self) -> Vec<Vec<u64>> {
            let loads = |thread: usize| {
                let is_load = |index: &usize| matches!(self.threads[thread][*index], Step::Load(_));
                (0..self.threads[thread].len())
                    .filter(is_load)
                    .map(|index| self.registers[thread][index])
                    .collect()
            };
            (0..self.threads.len()).map(loads).collect()
        }
    }
}

use reordering::Step::{self, Load, Order, Store};

/// A litmus test: two threads, and which registers are wrong at the end.
struct Litmus {
    name: &'static str,
    threads: [&'static [Step]; 2],
    words: usize,
    wrong: fn(&[Vec<u64>]) -> bool,
}

// Words of the litmus tests.
const OWNER: usize = 0;
const BODY: usize = 1;
const INDEX: usize = 2;
const PAYLOAD: usize = 3;

const LITMUS: [Litmus; 4] = [
    Litmus {
        name: "a request is taken whole",
        threads: [
            &[Store(BODY, 1), Order, Store(OWNER, 1)],
            &[Load(OWNER), Order, Load(BODY)],
        ],
        words: 2,
        wrong: |registers| registers[1] == [1, 0],
    },
    Litmus {
        name: "a completion comes after its payload and its body",
        threads: [
            &[Store(PAYLOAD, 1), Store(BODY, 1), Order, Store(OWNER, 1)],
            &[Load(OWNER), Order, Load(BODY), Load(PAYLOAD)],
        ],
        words: 4,
        wrong: |registers| registers[1][0] == 1 && registers[1][1..] != [1, 1],
    },
    Litmus {
        // The poller reads an entry, then tells its consumer index; the NIC writes the entry anew only after that.
        name: "a completion entry is not written anew while it is read",
        threads: [
            &[Load(BODY), Order, Store(INDEX, 1)],
            &[Load(INDEX), Order, Store(BODY, 2)],
        ],
        words: 3,
        wrong: |registers| registers[1] == [1] && registers[0] == [2],
    },
    Litmus {
        // The NIC reads a request, then completes it; the writer fills the slot anew only after that.
        name: "a send slot is not written anew while it is read",
        threads: [
            &[Load(BODY), Order, Store(OWNER, 1)],
            &[Load(OWNER), Order, Store(BODY, 2)],
        ],
        words: 2,
        wrong: |registers| registers[1] == [1] && registers[0] == [2],
    },
];

#[test]
fn no_reordering_that_the_ordering_points_allow_is_wrong() {
    for litmus in LITMUS {
        assert!(
            !reordering::can_end_wrong(&litmus.threads, litmus.words, &litmus.wrong),
            "{}",
            litmus.name
        );
    }
}

#[test]
fn deleting_any_ordering_point_allows_a_wrong_reordering() {
    for litmus in LITMUS {
        for thread in 0..2 {
            let without: Vec<Step> = litmus.threads[thread]
                .iter()
                .copied()
                .filter(|step| !matches!(step, Order))
                .collect();
            let mut threads = litmus.threads;
            let leaked: &'static [Step] = without.leak();
            threads[thread] = leaked;
            let found = reordering::can_end_wrong(&threads, litmus.words, &litmus.wrong);
            assert!(
                found,
                "{}: nothing depends on the ordering point of thread {thread}",
                litmus.name
            );
        }
    }
}
