//! What the NIC does with requests, in inline mode and one process: transfers, rings, completions.

mod common;

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::doorbell::Doorbell;
use npushmem_roce::nic::{DoorbellError, EventKind, Nic, NicConfig, QpState};
use npushmem_roce::ring;
use npushmem_roce::wqe::{opcode, DataSegment, SendWqe};

fn connected() -> (Station, Queue, Station, Queue) {
    pair(&NicConfig::default(), SMALL)
}

#[test]
fn a_write_moves_its_bytes_before_the_doorbell_returns() {
    let (here, mut queue, there, _far) = connected();
    here.memory.fill(100, b"payload");
    queue.submit(
        SendWqe::write(there.keys.rkey, there.at(333), &[here.segment(100, 7)]).flagged(SIGNALED),
    );
    let cqe = queue.poll().expect("executed inline");
    assert_eq!(
        (cqe.status(), cqe.opcode(), cqe.wqe_index()),
        (Status::Ok, opcode::WRITE, 0)
    );
    assert_eq!((cqe.qpn(), cqe.byte_cnt.get()), (queue.numbers.qpn, 0));
    assert_eq!(there.memory.bytes(332, 9), b"\0payload\0");
}

#[test]
fn a_write_gathers_two_segments_and_a_read_scatters_to_two() {
    let (here, mut queue, there, _far) = connected();
    here.memory.fill(0, b"abc");
    here.memory.fill(64, b"defgh");
    let write = SendWqe::write(
        there.keys.rkey,
        there.at(8),
        &[here.segment(0, 3), here.segment(64, 5)],
    );
    assert_eq!(queue.run(write), Status::Ok);
    assert_eq!(there.memory.bytes(8, 8), b"abcdefgh");
    let read = SendWqe::read(
        there.keys.rkey,
        there.at(8),
        &[here.segment(200, 6), here.segment(300, 2)],
    );
    queue.submit(read.flagged(SIGNALED));
    let cqe = queue.wait();
    assert_eq!((cqe.status(), cqe.byte_cnt.get()), (Status::Ok, 8));
    assert_eq!(
        (here.memory.bytes(200, 6), here.memory.bytes(300, 2)),
        (b"abcdef".to_vec(), b"gh".to_vec())
    );
}

#[test]
fn a_long_transfer_arrives_whole_in_both_directions() {
    let (here, mut queue, there, _far) = connected();
    let bytes: Vec<u8> = (0..20_000_u32)
        .map(|index| ((index * 31) >> 3) as u8)
        .collect();
    here.memory.fill(1, &bytes);
    assert_eq!(
        queue.run(SendWqe::write(
            there.keys.rkey,
            there.at(30_003),
            &[here.segment(1, bytes.len())]
        )),
        Status::Ok
    );
    assert_eq!(there.memory.bytes(30_003, bytes.len()), bytes);
    assert_eq!(
        queue.run(SendWqe::read(
            there.keys.rkey,
            there.at(30_003),
            &[here.segment(40_001, bytes.len())]
        )),
        Status::Ok
    );
    assert_eq!(here.memory.bytes(40_001, bytes.len()), bytes);
}

#[test]
fn inline_payloads_of_every_length_arrive() {
    let (_here, mut queue, there, _far) = connected();
    let payload: Vec<u8> = (1..=32).collect();
    for len in 0..=32 {
        there.memory.fill(0, &[0xee; 64]);
        let write = SendWqe::write_inline(there.keys.rkey, there.at(8), &payload[..len]).unwrap();
        assert_eq!(queue.run(write), Status::Ok);
        assert_eq!(there.memory.bytes(8, len), payload[..len]);
        assert_eq!(there.memory.bytes(8 + len, 8), [0xee; 8]);
    }
}

#[test]
fn atomics_return_the_old_value_and_change_the_word() {
    let (here, mut queue, there, _far) = connected();
    there.memory.set(16, 40);
    assert_eq!(
        queue.run(SendWqe::fetch_add(
            there.keys.rkey,
            there.at(16),
            here.at(0),
            here.keys.lkey,
            2
        )),
        Status::Ok
    );
    assert_eq!((here.memory.get(0), there.memory.get(16)), (40, 42));
    let swap = |compare, new| {
        SendWqe::compare_swap(
            there.keys.rkey,
            there.at(16),
            here.at(8),
            here.keys.lkey,
            compare,
            new,
        )
    };
    assert_eq!(queue.run(swap(41, 1)), Status::Ok);
    assert_eq!((here.memory.get(8), there.memory.get(16)), (42, 42));
    queue.submit(swap(42, u64::MAX).flagged(SIGNALED));
    let cqe = queue.wait();
    assert_eq!((cqe.status(), cqe.byte_cnt.get()), (Status::Ok, 8));
    assert_eq!((here.memory.get(8), there.memory.get(16)), (42, u64::MAX));
    assert_eq!(
        queue.run(SendWqe::fetch_add(
            there.keys.rkey,
            there.at(16),
            here.at(0),
            here.keys.lkey,
            3
        )),
        Status::Ok
    );
    assert_eq!(there.memory.get(16), 2);
}

#[test]
fn a_queue_pair_connected_to_itself_works() {
    let station = Station::new(NicConfig::default());
    let mut queue = station.loopback(SMALL);
    station.memory.set(0, 7);
    assert_eq!(
        queue.run(SendWqe::write(
            station.keys.rkey,
            station.at(64),
            &[station.segment(0, 8)]
        )),
        Status::Ok
    );
    assert_eq!(station.memory.get(64), 7);
    let add = SendWqe::fetch_add(
        station.keys.rkey,
        station.at(64),
        station.at(128),
        station.keys.lkey,
        1,
    );
    assert_eq!(queue.run(add), Status::Ok);
    assert_eq!((station.memory.get(64), station.memory.get(128)), (8, 7));
}

#[test]
fn many_regions_are_told_apart_on_both_sides() {
    const REGIONS: usize = 9;
    let (here, mut queue, there, far) = connected();
    let region = |station: &Station, queue: &Queue| {
        let memory = Memory::new(4096);
        let keys = station.nic.register_mr(memory.mr(7)).unwrap();
        station.nic.bind_mr(queue.numbers.qpn, keys.lkey).unwrap();
        (memory, keys)
    };
    let regions: Vec<_> = (0..REGIONS)
        .map(|_| (region(&here, &queue), region(&there, &far)))
        .collect();
    for round in 0..3 {
        for (index, ((source, from), (target, to))) in regions.iter().enumerate() {
            let value = (100 * round + index) as u64;
            source.set(8, value);
            let segment = DataSegment::new(source.va() + 8, 8, from.lkey);
            assert_eq!(
                queue.run(SendWqe::write(to.rkey, target.va() + 16, &[segment])),
                Status::Ok
            );
            assert_eq!(target.get(16), value);
        }
    }
}

#[test]
fn rings_work_over_many_laps_and_past_16_bits_of_counter() {
    for cqe_size in [32, 64] {
        let station = Station::new(NicConfig::default());
        let mut queue = station.loopback(Shape { cqe_size, ..SMALL });
        while queue.head < 70_000 {
            for _ in 0..16 {
                let value = queue.head + 1;
                let write =
                    SendWqe::write_inline(station.keys.rkey, station.at(0), &value.to_le_bytes())
                        .unwrap();
                queue.post(if queue.head % 16 == 15 {
                    write.flagged(SIGNALED)
                } else {
                    write
                });
            }
            queue.ring();
            let cqe = queue.poll().expect("the last of the batch is signaled");
            assert_eq!(u64::from(cqe.wqe_index()), (queue.head - 1) & 0xffff);
            assert_eq!(station.memory.get(0), queue.head);
            assert!(
                queue.peek().is_none(),
                "unsignaled requests make no completion"
            );
        }
        assert!(station.nic.diagnostics().is_empty());
    }
}

#[test]
fn signal_all_completes_every_request() {
    let station = Station::new(NicConfig::default());
    let mut queue = station.loopback(Shape {
        signal_all: true,
        ..SMALL
    });
    let write = SendWqe::write_inline(station.keys.rkey, station.at(0), &[1]).unwrap();
    queue.post_batch(&[write, write, write]);
    queue.ring();
    let indices: Vec<u16> = std::iter::from_fn(|| queue.poll())
        .map(|cqe| cqe.wqe_index())
        .collect();
    assert_eq!(indices, [0, 1, 2]);
}

#[test]
fn both_forms_of_the_producer_index_and_of_the_consumer_doorbell_are_accepted() {
    let station = Station::new(NicConfig::default());
    let mut queue = station.loopback(SMALL);
    let write = SendWqe::write_inline(station.keys.rkey, station.at(0), &[1])
        .unwrap()
        .flagged(SIGNALED);
    for _ in 0..300 {
        queue.post(write);
        let modulo_twice_the_depth = (queue.head % 128) as u32;
        let doorbell = Doorbell::Send {
            qpn: queue.numbers.qpn,
            producer: modulo_twice_the_depth,
            service_level: 3,
        };
        station.nic.doorbell(doorbell.encode()).unwrap();
        assert!(queue.peek().is_some());
        let bit_56 =
            u64::from(queue.numbers.cqn) | 3 << 24 | (queue.consumed & 0xff_ffff) << 32 | 1 << 56;
        station.nic.doorbell(bit_56).unwrap();
    }
    assert_eq!(station.nic.counters().cq_doorbells, 300);
}

#[test]
fn a_slot_without_its_owner_bit_stalls_the_queue_pair_and_is_named() {
    let station = Station::new(NicConfig::default());
    let mut queue = station.loopback(SMALL);
    let write = SendWqe::write_inline(station.keys.rkey, station.at(0), &[1])
        .unwrap()
        .flagged(SIGNALED);
    for _ in 0..64 {
        queue.submit(write);
        queue.wait();
    }
    // The second lap written with the first lap's owner bit, as a writer with a wrong depth does.
    let words = bytemuck::cast(write.owned(0, 64));
    ring::publish_wqe(&queue.sq_slot(queue.head), &words);
    queue.head += 1;
    queue.ring();
    queue.ring();
    assert!(queue.poll().is_none());
    assert_eq!(
        station.nic.qp_state(queue.numbers.qpn).unwrap(),
        QpState::Rts
    );
    let said = station.nic.diagnostics();
    assert_eq!(said.len(), 1, "one stall is told once: {said:?}");
    let qpn = format!(
        "queue pair {:#x} stalls: request 64 (slot 0, lap 1) must have owner bit 0",
        queue.numbers.qpn
    );
    assert!(said[0].contains(&qpn), "{said:?}");
}

#[test]
fn a_producer_index_beyond_the_ring_is_refused_as_doorbell_overflow() {
    let station = Station::new(NicConfig::default());
    let queue = station.loopback(SMALL);
    let doorbell = |producer| {
        Doorbell::Send {
            qpn: queue.numbers.qpn,
            producer,
            service_level: 0,
        }
        .encode()
    };
    assert!(matches!(
        station.nic.doorbell(doorbell(65)),
        Err(DoorbellError::Overflow { ahead: 65, .. })
    ));
    assert!(matches!(
        station.nic.doorbell(doorbell(0xffff)),
        Err(DoorbellError::Overflow { .. })
    ));
    assert_eq!(station.nic.events()[0].kind, EventKind::DoorbellOverflow);
    assert_eq!(station.nic.counters().refused_doorbells, 2);
}

#[test]
fn a_full_completion_ring_is_an_overflow_event_and_an_error_state() {
    let station = Station::new(NicConfig::default());
    let mut queue = station.loopback(SMALL);
    let write = SendWqe::write_inline(station.keys.rkey, station.at(0), &[1])
        .unwrap()
        .flagged(SIGNALED);
    (0..64).for_each(|_| queue.submit(write));
    assert!(station.nic.events().is_empty());
    queue.submit(write);
    assert_eq!(station.nic.events()[0].kind, EventKind::CqOverflow);
    assert_eq!(
        station.nic.qp_state(queue.numbers.qpn).unwrap(),
        QpState::Error
    );
    assert_eq!(
        std::iter::from_fn(|| queue.peek()).count(),
        64,
        "what was completed stays readable"
    );
}

#[test]
fn a_consumer_index_in_the_record_word_counts_like_a_doorbell() {
    let station = Station::new(NicConfig::default());
    let mut queue = station.loopback(Shape {
        record: true,
        ..SMALL
    });
    let write = SendWqe::write_inline(station.keys.rkey, station.at(0), &[1])
        .unwrap()
        .flagged(SIGNALED);
    let record = 64 * 64 + 64 * 32;
    for _ in 0..500 {
        queue.submit(write);
        assert!(queue.peek().is_some());
        queue.rings.set(record, queue.consumed);
    }
    assert!(station.nic.events().is_empty());
    assert_eq!(station.nic.counters().cq_doorbells, 0);
}

#[test]
fn doorbells_for_nothing_are_refused_with_their_value() {
    let station = Station::new(NicConfig::default());
    let unconnected = station.queue(SMALL);
    assert!(matches!(
        station.nic.doorbell(unconnected.doorbell()),
        Err(DoorbellError::State {
            state: QpState::Init,
            ..
        })
    ));
    let doorbell = |value| station.nic.doorbell(value).unwrap_err().to_string();
    assert_eq!(
        doorbell(5),
        "doorbell 0x0000000000000005: queue pair 0x5 does not exist"
    );
    assert!(doorbell(3 << 24).contains("completion queue 0x0 does not exist"));
    assert!(doorbell(1 << 24).contains("command 1 is unknown"));
    let consumer = Doorbell::Consumer {
        cqn: unconnected.numbers.cqn,
        consumer: 1,
    }
    .encode();
    assert!(doorbell(consumer).contains("past the 0 completions made"));
}

#[test]
fn an_arm_doorbell_is_accepted_and_counted() {
    let station = Station::new(NicConfig::default());
    let queue = station.loopback(SMALL);
    let arm = Doorbell::Arm {
        cqn: queue.numbers.cqn,
        consumer: 0,
        solicited: false,
        sequence: 1,
    };
    station.nic.doorbell(arm.encode()).unwrap();
    assert_eq!(station.nic.counters().arm_doorbells, 1);
}

#[test]
fn counters_count_requests_bytes_and_completions_and_outlive_the_queue_pair() {
    let (here, mut queue, there, _far) = connected();
    assert_eq!(
        queue.run(SendWqe::write(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 100)]
        )),
        Status::Ok
    );
    assert_eq!(
        queue.run(SendWqe::write_inline(there.keys.rkey, there.at(0), &[1; 8]).unwrap()),
        Status::Ok
    );
    assert_eq!(
        queue.run(SendWqe::read(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 50)]
        )),
        Status::Ok
    );
    assert_eq!(
        queue.run(SendWqe::fetch_add(
            there.keys.rkey,
            there.at(0),
            here.at(0),
            here.keys.lkey,
            1
        )),
        Status::Ok
    );
    let counters = here.nic.counters();
    assert_eq!(
        (
            counters.writes,
            counters.inline_writes,
            counters.reads,
            counters.fetch_adds
        ),
        (2, 1, 1, 1)
    );
    assert_eq!((counters.bytes_written, counters.bytes_read), (116, 58));
    assert_eq!((counters.completions, counters.errors), (4, 0));
    assert_eq!((counters.sq_doorbells, counters.cq_doorbells), (4, 4));
    here.nic.destroy_qp(queue.numbers.qpn).unwrap();
    assert_eq!(here.nic.counters(), counters);
    assert_eq!(there.nic.counters().writes, 0, "the requester counts");
}

#[test]
fn a_number_of_a_destroyed_queue_pair_is_unknown_and_not_given_out_again_at_once() {
    let station = Station::new(NicConfig::default());
    let first = station.loopback(SMALL);
    station.nic.destroy_qp(first.numbers.qpn).unwrap();
    assert!(station.nic.qp_state(first.numbers.qpn).is_err());
    assert!(station.nic.doorbell(first.doorbell()).is_err());
    let second = station.loopback(SMALL);
    assert_ne!(first.numbers.qpn, second.numbers.qpn);
    assert_ne!(second.numbers.qpn, second.numbers.cqn);
}

#[test]
fn doorbells_of_many_threads_for_one_queue_pair_execute_everything_once() {
    const THREADS: u64 = 4;
    const EACH: u64 = 16;
    for _ in 0..50 {
        let station = Station::new(NicConfig::default());
        let mut queue = station.loopback(SMALL);
        let add = SendWqe::fetch_add(
            station.keys.rkey,
            station.at(0),
            station.at(64),
            station.keys.lkey,
            1,
        );
        (0..THREADS * EACH).for_each(|_| queue.post(add));
        let (nic, qpn): (&Nic, u32) = (&station.nic, queue.numbers.qpn);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for round in 0..EACH {
                        let producer = (round * THREADS + thread + 1) as u32;
                        // An index behind a faster thread's looks like an overflow; that doorbell is refused and does no harm.
                        let _ = nic.doorbell(
                            Doorbell::Send {
                                qpn,
                                producer,
                                service_level: 0,
                            }
                            .encode(),
                        );
                    }
                });
            }
        });
        queue.nic.doorbell(queue.doorbell()).unwrap();
        assert_eq!(station.memory.get(0), THREADS * EACH);
    }
}

#[test]
fn a_transfer_of_nothing_checks_no_remote_key() {
    let (_here, mut queue, _there, _far) = connected();
    assert_eq!(queue.run(SendWqe::write(0x1234, 0, &[])), Status::Ok);
    assert_eq!(
        queue.run(SendWqe::read(0x1234, 0, &[DataSegment::new(0, 0, 0)])),
        Status::Ok
    );
}
