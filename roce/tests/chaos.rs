//! Modes thread and chaos: what stays in order, what does not, and that each liberty of chaos mode is really taken.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::{Mode, NicConfig, QpState};
use npushmem_roce::wqe::{Flags, SendWqe};

const SEEDS: std::ops::Range<u64> = 0..100;
/// Seeds tried until a liberty shows.
const MANY_SEEDS: std::ops::Range<u64> = 0..2000;

fn chaos(seed: u64) -> NicConfig {
    NicConfig {
        mode: Mode::Chaos { seed },
        ..NicConfig::default()
    }
}

/// A queue pair connected to itself, and another one.
fn two_loops(config: NicConfig) -> (Station, Queue, Queue) {
    let station = Station::new(config);
    let (first, second) = (station.loopback(SMALL), station.loopback(SMALL));
    (station, first, second)
}

fn put(station: &Station, offset: usize, value: u64) -> SendWqe {
    SendWqe::write_inline(station.keys.rkey, station.at(offset), &value.to_le_bytes()).unwrap()
}

#[test]
fn thread_mode_executes_everything_in_order_without_further_doorbells() {
    let station = Station::new(NicConfig {
        mode: Mode::Thread,
        ..NicConfig::default()
    });
    let mut queues: Vec<Queue> = (0..4).map(|_| station.loopback(SMALL)).collect();
    for round in 1..=500 {
        for (index, queue) in queues.iter_mut().enumerate() {
            let (data, flag) = (
                put(&station, 64 * index, round),
                put(&station, 64 * index + 8, round),
            );
            queue.post_batch(&[data, flag.flagged(SIGNALED)]);
            queue.ring();
        }
        for (index, queue) in queues.iter_mut().enumerate() {
            assert_eq!(queue.wait().status(), Status::Ok);
            assert_eq!(
                (
                    station.memory.get(64 * index),
                    station.memory.get(64 * index + 8)
                ),
                (round, round)
            );
        }
    }
    assert!(station.nic.diagnostics().is_empty());
}

/// Writes a data word and a flag word by the given queue pairs; whether someone who polls the flag saw it before the data.
fn flag_overtakes_data(
    station: &Station,
    data_by: &mut Queue,
    flag_by: Option<&mut Queue>,
) -> bool {
    const VALUE: u64 = 5;
    let (data, flag) = (
        put(station, 0, VALUE),
        put(station, 512, VALUE).flagged(SIGNALED),
    );
    let overtook = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the flag", || station.memory.get(512) == VALUE);
            overtook.store(station.memory.get(0) != VALUE, Ordering::Relaxed);
        });
        match flag_by {
            None => {
                data_by.post_batch(&[data, flag]);
                data_by.ring();
                assert_eq!(data_by.wait().status(), Status::Ok);
            }
            Some(flag_by) => {
                data_by.submit(data.flagged(SIGNALED));
                flag_by.submit(flag);
                assert_eq!(
                    (data_by.wait().status(), flag_by.wait().status()),
                    (Status::Ok, Status::Ok)
                );
            }
        }
    });
    overtook.load(Ordering::Relaxed)
}

#[test]
fn writes_of_one_queue_pair_stay_in_order_in_every_seed() {
    for seed in SEEDS {
        for early_ack in [false, true] {
            let (station, mut queue, _) = two_loops(NicConfig {
                early_ack,
                ..chaos(seed)
            });
            assert!(
                !flag_overtakes_data(&station, &mut queue, None),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn queue_pairs_overtake_one_another_in_some_seed() {
    let found = MANY_SEEDS.into_iter().any(|seed| {
        let (station, mut first, mut second) = two_loops(chaos(seed));
        flag_overtakes_data(&station, &mut first, Some(&mut second))
    });
    assert!(found);
}

/// A READ, then a WRITE of a flag; whether the flag could be seen before the READ's data.
fn write_overtakes_response(seed: u64, flags: Flags) -> bool {
    const DATA: u64 = 9;
    let (station, mut queue, _) = two_loops(chaos(seed));
    station.memory.set(0, DATA);
    let read = SendWqe::read(station.keys.rkey, station.at(0), &[station.segment(64, 8)]);
    let overtook = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the flag", || station.memory.get(512) == 1);
            overtook.store(station.memory.get(64) != DATA, Ordering::Relaxed);
        });
        queue.post_batch(&[read, put(&station, 512, 1).flagged(flags)]);
        queue.ring();
        assert_eq!(queue.wait().status(), Status::Ok);
        assert_eq!(
            station.memory.get(64),
            DATA,
            "the completion follows the data of earlier requests"
        );
    });
    overtook.load(Ordering::Relaxed)
}

#[test]
fn a_write_overtakes_the_data_of_an_open_read_in_some_seed_and_with_the_fence_bit_too() {
    assert!(MANY_SEEDS
        .into_iter()
        .any(|seed| write_overtakes_response(seed, SIGNALED)));
    let fence = Flags {
        fence: true,
        ..SIGNALED
    };
    assert!(MANY_SEEDS
        .into_iter()
        .any(|seed| write_overtakes_response(seed, fence)));
}

#[test]
fn a_write_with_strong_order_waits_for_the_data_of_an_open_read_in_every_seed() {
    assert!(!SEEDS
        .into_iter()
        .any(|seed| write_overtakes_response(seed, SIGNALED_STRONG)));
}

/// A READ of a word that the next WRITE changes; what the READ brought.
fn read_then_write(seed: u64, flags: Flags) -> u64 {
    let (station, mut queue, _) = two_loops(chaos(seed));
    station.memory.set(0, 1);
    let read = SendWqe::read(station.keys.rkey, station.at(0), &[station.segment(64, 8)]);
    queue.post_batch(&[read, put(&station, 0, 2).flagged(flags)]);
    queue.ring();
    assert_eq!(queue.wait().status(), Status::Ok);
    station.memory.get(64)
}

#[test]
fn a_read_may_see_a_later_write_that_has_no_fence_and_never_one_that_has() {
    assert!(MANY_SEEDS
        .into_iter()
        .any(|seed| read_then_write(seed, SIGNALED) == 2));
    let fence = Flags {
        fence: true,
        ..SIGNALED
    };
    assert!(SEEDS
        .into_iter()
        .all(|seed| read_then_write(seed, fence) == 1));
}

#[test]
fn completions_of_one_queue_pair_stay_in_order_in_every_seed() {
    for seed in SEEDS {
        let (station, mut queue, _) = two_loops(chaos(seed));
        let read = SendWqe::read(station.keys.rkey, station.at(0), &[station.segment(64, 8)])
            .flagged(SIGNALED);
        let add = SendWqe::fetch_add(
            station.keys.rkey,
            station.at(0),
            station.at(128),
            station.keys.lkey,
            1,
        );
        let write = put(&station, 512, 1).flagged(SIGNALED);
        queue.post_batch(&[read, write, add.flagged(SIGNALED), write, read, write]);
        queue.ring();
        let indices: Vec<u16> = (0..6).map(|_| queue.wait().wqe_index()).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4, 5], "seed {seed}");
        assert_eq!(station.memory.get(0), 1);
    }
}

/// Whether a WRITE's completion was there before its payload.
fn completion_precedes_payload(config: NicConfig) -> bool {
    let (station, mut queue, _) = two_loops(config);
    queue.submit(put(&station, 0, 1).flagged(SIGNALED));
    assert_eq!(queue.wait().status(), Status::Ok);
    let early = station.memory.get(0) != 1;
    eventually("the payload lands without further requests", || {
        station.memory.get(0) == 1
    });
    early
}

#[test]
fn a_completion_means_visibility_unless_early_acknowledgement_is_asked_for() {
    assert!(!SEEDS
        .into_iter()
        .any(|seed| completion_precedes_payload(chaos(seed))));
    let early = |seed| {
        completion_precedes_payload(NicConfig {
            early_ack: true,
            ..chaos(seed)
        })
    };
    assert!(MANY_SEEDS.into_iter().any(early));
}

#[test]
fn a_read_on_the_queue_pair_flushes_early_acknowledged_payloads_in_every_seed() {
    for seed in SEEDS {
        let (station, mut queue, _) = two_loops(NicConfig {
            early_ack: true,
            ..chaos(seed)
        });
        let read = SendWqe::read(
            station.keys.rkey,
            station.at(512),
            &[station.segment(576, 8)],
        )
        .flagged(SIGNALED);
        queue.post_batch(&[put(&station, 0, 1), put(&station, 64, 2), read]);
        queue.ring();
        assert_eq!(queue.wait().status(), Status::Ok);
        assert_eq!(
            (station.memory.get(0), station.memory.get(64)),
            (1, 2),
            "seed {seed}"
        );
    }
}

#[test]
fn the_nic_runs_past_the_doorbell_over_slots_with_valid_owner_bits() {
    let found = MANY_SEEDS.into_iter().any(|seed| {
        let (station, mut queue, _) = two_loops(chaos(seed));
        queue.post(put(&station, 0, 1).flagged(SIGNALED));
        queue.ring();
        queue.post(put(&station, 64, 1).flagged(SIGNALED)); // never rung
        assert_eq!(queue.wait().status(), Status::Ok);
        let deadline = std::time::Instant::now() + std::time::Duration::from_millis(5);
        while std::time::Instant::now() < deadline && station.memory.get(64) == 0 {
            std::thread::yield_now();
        }
        let ran = station.memory.get(64) == 1;
        queue.ring(); // a doorbell for what was executed already does no harm
        assert_eq!(queue.wait().status(), Status::Ok);
        ran
    });
    assert!(found);
}

#[test]
fn a_batch_gated_by_its_first_slot_is_never_executed_in_part_however_its_copy_is_torn() {
    const BATCH: u64 = 5;
    for seed in SEEDS {
        let (station, mut queue, _) = two_loops(chaos(seed));
        let mut value = 0;
        for round in 0..40 {
            let first = queue.head;
            let batch: Vec<SendWqe> = (1..=BATCH)
                .map(|index| put(&station, 0, value + index))
                .collect();
            // Slots 2..n arrive in any order, with pauses, while the NIC may be running past the last doorbell.
            for turn in 0..BATCH - 1 {
                let index = 1 + (turn + seed + round) % (BATCH - 1);
                queue.write_slot(first + index, batch[index as usize]);
                if (turn + round) % 3 == 0 {
                    std::thread::yield_now();
                }
            }
            assert_eq!(
                station.memory.get(0),
                value,
                "seed {seed}: executed before the first slot was there"
            );
            queue.write_slot(first, batch[0]);
            queue.head += BATCH - 1;
            queue.head += 1;
            value += BATCH;
            queue.ring();
            let expected = value;
            eventually("the batch is executed", || {
                station.memory.get(0) == expected
            });
        }
        assert!(
            station.nic.diagnostics().is_empty(),
            "{:?}",
            station.nic.diagnostics()
        );
    }
}

#[test]
fn a_batch_whose_first_slot_comes_first_is_executed_in_part_in_some_seed() {
    let found = MANY_SEEDS.into_iter().any(|seed| {
        let (station, mut queue, _) = two_loops(chaos(seed));
        queue.submit(put(&station, 0, 1).flagged(SIGNALED));
        queue.write_slot(1, put(&station, 0, 2)); // the first of two, not gated
        std::thread::sleep(std::time::Duration::from_micros(200));
        let executed = station.memory.get(0) == 2;
        queue.write_slot(2, put(&station, 0, 3).flagged(SIGNALED));
        queue.head += 2;
        queue.ring();
        assert_eq!(
            (queue.wait().status(), queue.wait().status()),
            (Status::Ok, Status::Ok)
        );
        executed
    });
    assert!(found);
}

#[test]
fn a_failure_behind_late_responses_completes_after_them_and_ends_the_queue_pair() {
    for seed in SEEDS {
        let (station, mut queue, _) = two_loops(chaos(seed));
        station.memory.set(0, 3);
        let read = SendWqe::read(station.keys.rkey, station.at(0), &[station.segment(64, 8)])
            .flagged(SIGNALED);
        let bad = SendWqe::write_inline(0, station.at(0), &[1]).unwrap();
        queue.post_batch(&[read, bad, put(&station, 512, 1)]);
        queue.ring();
        let outcome: Vec<(Status, u16)> = (0..2)
            .map(|_| queue.wait())
            .map(|cqe| (cqe.status(), cqe.wqe_index()))
            .collect();
        assert_eq!(
            outcome,
            [(Status::Ok, 0), (Status::RemoteAccess, 1)],
            "seed {seed}"
        );
        assert_eq!(
            station.nic.qp_state(queue.numbers.qpn).unwrap(),
            QpState::Error
        );
        assert_eq!(station.memory.get(64), 3);
        station.nic.flush(queue.numbers.qpn).unwrap();
        assert_eq!(queue.wait().status(), Status::Flushed);
        assert_eq!(station.memory.get(512), 0);
    }
}

#[test]
fn destroying_a_queue_pair_ends_its_lateness() {
    for seed in SEEDS {
        let (station, mut queue, _) = two_loops(NicConfig {
            early_ack: true,
            ..chaos(seed)
        });
        queue.submit(put(&station, 0, 1).flagged(SIGNALED));
        assert_eq!(queue.wait().status(), Status::Ok);
        station.nic.destroy_qp(queue.numbers.qpn).unwrap();
        assert_eq!(station.memory.get(0), 1, "seed {seed}");
    }
}
