//! Random requests on several queue pairs against a sequential model of the memory they work on.
//!
//! Each queue pair has an area of the remote memory of its own, so that the model needs no order between queue pairs. Within one, requests
//! run in order; in chaos mode those behind a READ or an atomic carry the fence bit, because its reading may be overtaken otherwise.

mod common;

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::{Mode, NicConfig};
use npushmem_roce::wqe::{Flags, SendWqe};
use proptest::prelude::*;

const QUEUES: usize = 3;
/// Bytes of one queue pair's area; requests may begin and end a little outside of the last one's region.
const AREA: usize = 512;
/// Where results land: one slot a request, never reused.
const RESULTS: usize = 4096;
const RESULT: usize = 256;
/// Most requests of one test; the rings are never full.
const MOST: usize = 60;
/// Where flushing READs land.
const FLUSHED: usize = RESULTS + MOST * RESULT;

#[derive(Debug, Clone)]
enum Request {
    Write {
        offset: usize,
        source: usize,
        len: usize,
    },
    Inline {
        offset: usize,
        payload: Vec<u8>,
    },
    Read {
        offset: usize,
        len: usize,
    },
    Add {
        offset: usize,
        value: u64,
    },
    Swap {
        offset: usize,
        matches: bool,
        value: u64,
    },
}

#[derive(Debug, Clone)]
struct Action {
    queue: usize,
    request: Request,
    signaled: bool,
    /// Ring after this request.
    ring: bool,
}

fn request() -> impl Strategy<Value = Request> {
    let word = (0..AREA / 8).prop_map(|index| index * 8);
    prop_oneof![
        3 => (0..AREA - RESULT, 0..2048_usize, 0..=RESULT).prop_map(|(offset, source, len)| Request::Write { offset, source, len }),
        3 => (0..AREA - 32, prop::collection::vec(any::<u8>(), 0..=32)).prop_map(|(offset, payload)| Request::Inline { offset, payload }),
        3 => (0..AREA - RESULT, 0..=RESULT).prop_map(|(offset, len)| Request::Read { offset, len }),
        2 => (word.clone(), any::<u64>()).prop_map(|(offset, value)| Request::Add { offset, value }),
        2 => (word, any::<bool>(), any::<u64>()).prop_map(|(offset, matches, value)| Request::Swap { offset, matches, value }),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = (
        0..QUEUES,
        request(),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.4),
    )
        .prop_map(|(queue, request, signaled, ring)| Action {
            queue,
            request,
            signaled,
            ring,
        });
    prop::collection::vec(action, 1..MOST)
}

/// Memory as it must be, and what each READ or atomic must have brought.
struct Expected {
    areas: Vec<u8>,
    results: Vec<(usize, Vec<u8>)>,
}

impl Expected {
    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.areas[at..at + 8].try_into().unwrap())
    }
}

/// Runs the actions on the NIC and on the model; what the model says at the end.
fn run(config: NicConfig, fence: bool, actions: &[Action]) -> Result<(), TestCaseError> {
    let shape = Shape {
        sq_depth: 64,
        cq_depth: 128,
        ..SMALL
    };
    let (here, there) = (Station::new(config.clone()), Station::new(config));
    let mut queues: Vec<Queue> = Vec::new();
    let mut far = Vec::new();
    for _ in 0..QUEUES {
        let (queue, peer) = (here.queue(shape), there.queue(shape));
        queue.connect(&peer.address());
        peer.connect(&queue.address());
        queues.push(queue);
        far.push(peer);
    }
    let source: Vec<u8> = (0..RESULTS)
        .map(|index| ((index * 13) >> 2) as u8)
        .collect();
    here.memory.fill(0, &source);
    let mut expected = Expected {
        areas: vec![0; QUEUES * AREA],
        results: Vec::new(),
    };

    for (index, action) in actions.iter().enumerate() {
        let area = action.queue * AREA;
        let result = RESULTS + index * RESULT;
        let (rkey, lkey) = (there.keys.rkey, here.keys.lkey);
        let wqe = match &action.request {
            Request::Write {
                offset,
                source: from,
                len,
            } => {
                let at = area + offset;
                expected.areas[at..at + len].copy_from_slice(&source[*from..from + len]);
                SendWqe::write(rkey, there.at(at), &[here.segment(*from, *len)])
            }
            Request::Inline { offset, payload } => {
                let at = area + offset;
                expected.areas[at..at + payload.len()].copy_from_slice(payload);
                SendWqe::write_inline(rkey, there.at(at), payload).unwrap()
            }
            Request::Read { offset, len } => {
                let at = area + offset;
                expected
                    .results
                    .push((result, expected.areas[at..at + len].to_vec()));
                SendWqe::read(rkey, there.at(at), &[here.segment(result, *len)])
            }
            Request::Add { offset, value } => {
                let at = area + offset;
                let old = expected.word(at);
                expected.areas[at..at + 8].copy_from_slice(&old.wrapping_add(*value).to_le_bytes());
                expected.results.push((result, old.to_le_bytes().to_vec()));
                SendWqe::fetch_add(rkey, there.at(at), here.at(result), lkey, *value)
            }
            Request::Swap {
                offset,
                matches,
                value,
            } => {
                let at = area + offset;
                let old = expected.word(at);
                let compare = if *matches { old } else { old ^ 1 };
                if *matches {
                    expected.areas[at..at + 8].copy_from_slice(&value.to_le_bytes());
                }
                expected.results.push((result, old.to_le_bytes().to_vec()));
                SendWqe::compare_swap(rkey, there.at(at), here.at(result), lkey, compare, *value)
            }
        };
        let queue = &mut queues[action.queue];
        queue.post(wqe.flagged(Flags {
            signaled: action.signaled,
            fence,
            ..Flags::default()
        }));
        if action.ring {
            queue.ring();
        }
    }
    // Quiet: a flushing READ with strong order on each queue pair, and everything it completes.
    for (index, queue) in queues.iter_mut().enumerate() {
        let flush = SendWqe::read(
            there.keys.rkey,
            there.at(index * AREA),
            &[here.segment(FLUSHED + index, 1)],
        );
        queue.submit(flush.flagged(SIGNALED_STRONG));
        let last = (queue.head - 1) as u16;
        loop {
            let cqe = queue.wait();
            prop_assert_eq!(cqe.status(), Status::Ok);
            if cqe.wqe_index() == last {
                break;
            }
        }
        prop_assert!(queue.poll().is_none());
    }
    let memory = there.memory.bytes(0, QUEUES * AREA);
    prop_assert!(memory == expected.areas, "remote memory differs");
    for (offset, bytes) in &expected.results {
        prop_assert_eq!(
            &here.memory.bytes(*offset, bytes.len()),
            bytes,
            "result at {:#x}",
            offset
        );
    }
    prop_assert!(here.nic.diagnostics().is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn inline_requests_do_what_a_sequential_model_says(actions in actions()) {
        run(NicConfig::default(), false, &actions)?;
    }

    #[test]
    fn chaotic_requests_with_fences_end_as_a_sequential_model_says(
        actions in actions(),
        seed in any::<u64>(),
        early_ack in any::<bool>(),
    ) {
        run(NicConfig { mode: Mode::Chaos { seed }, early_ack, ..NicConfig::default() }, true, &actions)?;
    }
}
