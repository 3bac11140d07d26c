//! The verbs wire between two RDMA devices: what a kernel's requests do when they leave by the host's own NIC.
//!
//! Needs two devices that reach each other: `NPUSIM_VERBS_DEVICE` and `NPUSHMEM_TEST_PEER_DEVICE`. `make test-rdma` runs these tests on two
//! Soft-RoCE devices in a virtual machine; elsewhere they are ignored, not passed.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::{access, Nic, NicConfig, NicError, QpState, Wire};
use npushmem_roce::verbs::VerbsConfig;
use npushmem_roce::wqe::{opcode, DataSegment, SendWqe};

const NEEDS: &str = "NPUSIM_VERBS_DEVICE and NPUSHMEM_TEST_PEER_DEVICE name two RDMA devices";

fn config(variable: &str) -> NicConfig {
    NicConfig {
        wire: Wire::Verbs(VerbsConfig {
            device: Some(std::env::var(variable).expect(NEEDS)),
            gid: None,
        }),
        ..NicConfig::default()
    }
}

fn near() -> NicConfig {
    config("NPUSIM_VERBS_DEVICE")
}

fn far() -> NicConfig {
    config("NPUSHMEM_TEST_PEER_DEVICE")
}

fn joined(here: &Station, there: &Station, shape: Shape) -> (Queue, Queue) {
    let (a, b) = (here.queue(shape), there.queue(shape));
    a.connect(&b.address());
    b.connect(&a.address());
    (a, b)
}

fn connected() -> (Station, Queue, Station, Queue) {
    let (here, there) = (Station::new(near()), Station::new(far()));
    let (a, b) = joined(&here, &there, SMALL);
    (here, a, there, b)
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn writes_reads_and_inline_payloads_cross_the_wire() {
    let (here, mut queue, there, _far) = connected();
    here.memory.fill(100, b"payload");
    let write = SendWqe::write(there.keys.rkey, there.at(333), &[here.segment(100, 7)]);
    queue.submit(write.flagged(SIGNALED));
    let cqe = queue.wait();
    assert_eq!(
        (cqe.status(), cqe.opcode(), cqe.wqe_index()),
        (Status::Ok, opcode::WRITE, 0)
    );
    assert_eq!(there.memory.bytes(332, 9), b"\0payload\0");

    let inline = SendWqe::write_inline(there.keys.rkey, there.at(1001), b"in the slot").unwrap();
    assert_eq!(queue.run(inline), Status::Ok);
    let read = SendWqe::read(
        there.keys.rkey,
        there.at(1001),
        &[here.segment(200, 3), here.segment(300, 8)],
    );
    queue.submit(read.flagged(SIGNALED));
    let cqe = queue.wait();
    assert_eq!((cqe.status(), cqe.byte_cnt.get()), (Status::Ok, 11));
    assert_eq!(here.memory.bytes(200, 3), b"in ");
    assert_eq!(here.memory.bytes(300, 8), b"the slot");
    let counters = here.nic.counters();
    assert_eq!(
        (counters.writes, counters.inline_writes, counters.reads),
        (2, 1, 1)
    );
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn a_transfer_of_nothing_and_one_of_many_packets_arrive() {
    let (here, mut queue, there, _far) = connected();
    assert_eq!(queue.run(SendWqe::write(0, 0, &[])), Status::Ok);
    let bytes: Vec<u8> = (0..30_000_u32)
        .map(|index| ((index * 31) >> 3) as u8)
        .collect();
    here.memory.fill(1, &bytes);
    let write = SendWqe::write(
        there.keys.rkey,
        there.at(30_003),
        &[here.segment(1, bytes.len())],
    );
    assert_eq!(queue.run(write), Status::Ok);
    assert_eq!(there.memory.bytes(30_003, bytes.len()), bytes);
    let read = SendWqe::read(
        there.keys.rkey,
        there.at(30_003),
        &[here.segment(31_001, bytes.len())],
    );
    assert_eq!(queue.run(read), Status::Ok);
    assert_eq!(here.memory.bytes(31_001, bytes.len()), bytes);
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn atomics_bring_the_old_value_and_compare() {
    let (here, mut queue, there, _far) = connected();
    there.memory.set(64, 40);
    let add = |n| SendWqe::fetch_add(there.keys.rkey, there.at(64), here.at(8), here.keys.lkey, n);
    assert_eq!(queue.run(add(2)), Status::Ok);
    assert_eq!((here.memory.get(8), there.memory.get(64)), (40, 42));
    let swap = |compare, new| {
        let (rkey, at) = (there.keys.rkey, there.at(64));
        SendWqe::compare_swap(rkey, at, here.at(8), here.keys.lkey, compare, new)
    };
    assert_eq!(queue.run(swap(41, 7)), Status::Ok);
    assert_eq!((here.memory.get(8), there.memory.get(64)), (42, 42));
    assert_eq!(queue.run(swap(42, 7)), Status::Ok);
    assert_eq!((here.memory.get(8), there.memory.get(64)), (42, 7));
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn both_hosts_and_the_target_itself_add_to_one_counter_and_each_ticket_is_given_once() {
    const EACH: u64 = 100;
    let (here, there) = (Station::new(near()), Station::new(far()));
    let (mut from_here, _b) = joined(&here, &there, SMALL);
    let (mut from_there, _d) = joined(&there, &there, SMALL);
    let (rkey, at) = (there.keys.rkey, there.at(4096));
    let draw = |queue: &mut Queue, own: &Station| -> Vec<u64> {
        (0..EACH)
            .map(|_| {
                let add = SendWqe::fetch_add(rkey, at, own.at(8), own.keys.lkey, 1);
                assert_eq!(queue.run(add), Status::Ok);
                own.memory.get(8)
            })
            .collect()
    };
    let mut tickets = std::thread::scope(|scope| {
        let other = scope.spawn(|| draw(&mut from_there, &there));
        let mut mine = draw(&mut from_here, &here);
        mine.extend(other.join().unwrap());
        mine
    });
    tickets.sort_unstable();
    assert_eq!(tickets, (0..2 * EACH).collect::<Vec<_>>());
    assert_eq!(there.memory.get(4096), 2 * EACH);
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn rings_wrap_and_unsignaled_requests_do_not_clog_the_drivers_ring() {
    let (here, mut queue, there, _far) = connected();
    for round in 0..40_u64 {
        for n in 0..16_u64 {
            let value = round * 16 + n;
            let wqe = SendWqe::write_inline(
                there.keys.rkey,
                there.at(8 * n as usize),
                &value.to_le_bytes(),
            );
            let wqe = wqe.unwrap();
            queue.post(if n == 15 { wqe.flagged(SIGNALED) } else { wqe });
        }
        queue.ring();
        assert_eq!(queue.wait().status(), Status::Ok);
        for n in 0..16 {
            assert_eq!(there.memory.get(8 * n as usize), round * 16 + n);
        }
    }
    // Nothing asks for a completion: two and a half rings of requests, told a few at a time.
    for n in 0..160_u64 {
        let wqe = SendWqe::write_inline(there.keys.rkey, there.at(512), &n.to_le_bytes()).unwrap();
        queue.submit(wqe);
        if n % 16 == 15 {
            eventually("the write arrives", || there.memory.get(512) == n);
        }
    }
    let _ = here;
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn a_strong_order_request_sees_what_an_earlier_read_brought() {
    let (here, mut queue, there, _far) = connected();
    for n in 1..100_u64 {
        there.memory.set(0, n);
        // The second request writes the bytes that the first one reads.
        queue.post(SendWqe::read(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 8)],
        ));
        let back = SendWqe::write(there.keys.rkey, there.at(64), &[here.segment(0, 8)]);
        queue.post(back.flagged(SIGNALED_STRONG));
        queue.ring();
        assert_eq!(queue.wait().status(), Status::Ok);
        assert_eq!(there.memory.get(64), n);
    }
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn refusals_of_the_peers_nic_have_the_status_that_hns_gives() {
    type Make = fn(&Station, &Station) -> SendWqe;
    let cases: [(&str, Make, Status); 5] = [
        (
            "unknown key",
            |here, there| SendWqe::write(0xdead_beef, there.at(0), &[here.segment(0, 8)]),
            Status::RemoteAccess,
        ),
        (
            "past the region's end",
            |here, there| {
                SendWqe::write(
                    there.keys.rkey,
                    there.at(STATION_BYTES - 4),
                    &[here.segment(0, 8)],
                )
            },
            Status::RemoteAccess,
        ),
        (
            "read past the end",
            |here, there| {
                SendWqe::read(
                    there.keys.rkey,
                    there.at(STATION_BYTES),
                    &[here.segment(0, 8)],
                )
            },
            Status::RemoteAccess,
        ),
        (
            "misaligned atomic",
            |here, there| {
                SendWqe::fetch_add(there.keys.rkey, there.at(4), here.at(8), here.keys.lkey, 1)
            },
            Status::RemoteInvalidRequest,
        ),
        (
            "no receive queue",
            |here, _| SendWqe::send(&[here.segment(0, 8)]),
            Status::ReceiverNotReady,
        ),
    ];
    for (what, make, status) in cases {
        let (here, mut queue, there, _far) = connected();
        there.memory.set(STATION_BYTES - 8, 5);
        assert_eq!(queue.run(make(&here, &there)), status, "{what}");
        assert_eq!(
            here.nic.qp_state(queue.numbers.qpn).unwrap(),
            QpState::Error,
            "{what}"
        );
        let said = here.nic.diagnostics();
        assert!(
            said.iter().any(|line| line.contains("failed with status")),
            "{what}: {said:?}"
        );
        assert_eq!(there.memory.get(STATION_BYTES - 8), 5, "{what}");
    }
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn rights_and_keys_end_where_they_are_taken_back() {
    let (here, there) = (
        Station::new(near()),
        Station::with_access(far(), access::LOCAL_WRITE | access::REMOTE_READ),
    );
    let (mut queue, _far) = joined(&here, &there, SMALL);
    assert_eq!(
        queue.run(SendWqe::read(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 8)]
        )),
        Status::Ok
    );
    assert_eq!(
        queue.run(SendWqe::write(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 8)]
        )),
        Status::RemoteAccess
    );

    let (mut queue, _far) = joined(&here, &there, SMALL);
    there.nic.deregister_mr(there.keys.lkey).unwrap();
    assert_eq!(
        queue.run(SendWqe::read(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 8)]
        )),
        Status::RemoteAccess
    );

    let no_atomics = NicConfig {
        atomics: false,
        ..far()
    };
    let there = Station::new(no_atomics);
    let (mut queue, _far) = joined(&here, &there, SMALL);
    let add = SendWqe::fetch_add(there.keys.rkey, there.at(0), here.at(8), here.keys.lkey, 1);
    assert_eq!(queue.run(add), Status::RemoteInvalidRequest);
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn a_local_fault_waits_for_what_is_before_it_and_a_flush_completes_what_is_behind() {
    let (here, mut queue, there, _far) = connected();
    here.memory.set(0, 77);
    // Not signaled: the fault behind it must not overtake it, and must not wait for a completion that never comes.
    queue.post(SendWqe::write(
        there.keys.rkey,
        there.at(0),
        &[here.segment(0, 8)],
    ));
    let wrong = DataSegment::new(here.at(0), 8, 0x1234_5600);
    queue.post(SendWqe::write(there.keys.rkey, there.at(8), &[wrong]));
    queue.post(
        SendWqe::write(there.keys.rkey, there.at(16), &[here.segment(0, 8)]).flagged(SIGNALED),
    );
    queue.ring();
    let cqe = queue.wait();
    assert_eq!(
        (cqe.status(), cqe.wqe_index()),
        (Status::LocalProtection, 1)
    );
    assert_eq!(there.memory.get(0), 77);
    here.nic.flush(queue.numbers.qpn).unwrap();
    let cqe = queue.wait();
    assert_eq!((cqe.status(), cqe.wqe_index()), (Status::Flushed, 2));
    assert_eq!(there.memory.get(16), 0);
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn a_failed_request_stops_the_queue_pair_and_the_rest_is_flushed() {
    let (here, mut queue, there, _far) = connected();
    let good = |n: usize| {
        SendWqe::write(there.keys.rkey, there.at(8 * n), &[here.segment(0, 8)]).flagged(SIGNALED)
    };
    here.memory.set(0, 9);
    queue.post(good(0));
    queue.post(SendWqe::write(0xbad0_bad0, there.at(8), &[here.segment(0, 8)]).flagged(SIGNALED));
    queue.post(good(2));
    queue.post(good(3));
    queue.ring();
    let seen: Vec<_> = (0..2)
        .map(|_| queue.wait())
        .map(|cqe| (cqe.status(), cqe.wqe_index()))
        .collect();
    assert_eq!(seen, [(Status::Ok, 0), (Status::RemoteAccess, 1)]);
    here.nic.flush(queue.numbers.qpn).unwrap();
    let seen: Vec<_> = (0..2)
        .map(|_| queue.wait())
        .map(|cqe| (cqe.status(), cqe.wqe_index()))
        .collect();
    assert_eq!(seen, [(Status::Flushed, 2), (Status::Flushed, 3)]);
    assert_eq!((there.memory.get(0), there.memory.get(16)), (9, 0));
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn a_peer_that_is_gone_is_an_answer_that_does_not_come() {
    let (here, mut queue, there, far) = connected();
    assert_eq!(
        queue.run(SendWqe::write(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 8)]
        )),
        Status::Ok
    );
    there.nic.destroy_qp(far.numbers.qpn).unwrap();
    let begin = Instant::now();
    assert_eq!(
        queue.run(SendWqe::write(
            there.keys.rkey,
            there.at(0),
            &[here.segment(0, 8)]
        )),
        Status::RetryExceeded
    );
    println!("noticed after {:?}", begin.elapsed());
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn completions_come_without_anybody_driving_the_nic_and_faster_when_the_waiter_does() {
    let (here, mut queue, there, _far) = connected();
    let write = SendWqe::write(there.keys.rkey, there.at(0), &[here.segment(0, 8)]);
    queue.submit(write.flagged(SIGNALED));
    // Only looks at the ring; the NIC's thread must bring the completion.
    assert_eq!(queue.wait().status(), Status::Ok);
    queue.submit(write.flagged(SIGNALED));
    let deadline = Instant::now() + PATIENCE;
    while queue.poll().is_none() {
        here.nic.progress();
        assert!(Instant::now() < deadline);
    }
    // The thread of the NIC leaves when the NIC goes.
    let (done, flag) = (Arc::new(AtomicBool::new(false)), here.nic.clone());
    drop((here, queue));
    let seen = done.clone();
    std::thread::spawn(move || {
        drop(flag);
        seen.store(true, Ordering::SeqCst);
    });
    eventually("the NIC closes", || done.load(Ordering::SeqCst));
    std::thread::sleep(Duration::from_millis(1));
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn ends_with_different_wires_and_wrong_devices_are_told_apart() {
    let here = Station::new(near());
    let there = Station::new(NicConfig::default());
    let (a, b) = (here.queue(SMALL), there.queue(SMALL));
    let refused = [
        here.nic.connect(a.numbers.qpn, &b.address()),
        there.nic.connect(b.numbers.qpn, &a.address()),
    ];
    for result in refused {
        let text = result.expect_err("different wires").to_string();
        assert!(text.contains("NPUSIM_WIRE"), "{text}");
    }
    let open = |device: Option<&str>, gid| {
        let wire = Wire::Verbs(VerbsConfig {
            device: device.map(str::to_owned),
            gid,
        });
        let error: NicError = Nic::open(NicConfig {
            wire,
            ..NicConfig::default()
        })
        .err()
        .expect("refused");
        error.to_string()
    };
    let name = std::env::var("NPUSIM_VERBS_DEVICE").expect(NEEDS);
    let text = open(Some("mlx9_9"), None);
    assert!(text.contains("mlx9_9") && text.contains(&name), "{text}");
    let text = open(None, None);
    assert!(
        text.contains("choose one with NPUSIM_VERBS_DEVICE"),
        "{text}"
    );
    let text = open(Some(&name), Some(0));
    assert!(
        text.contains("GID 0")
            && text.contains("no IPv4 address of RoCE v2")
            && text.contains("1 = 10.0.0.1"),
        "{text}"
    );
    let text = open(Some(&name), Some(255));
    assert!(text.contains("NPUSIM_VERBS_GID"), "{text}");
}

#[test]
#[ignore = "needs two RDMA devices: make test-rdma"]
fn memory_that_may_not_be_pinned_is_refused_with_the_limit() {
    let nic = Nic::open(near()).unwrap();
    let memory = Memory::new(1 << 20);
    // Root may pin what it likes; the limit counts for a process without CAP_IPC_LOCK.
    // SAFETY: plain system calls on this thread.
    unsafe {
        let limit = libc::rlimit {
            rlim_cur: 65536,
            rlim_max: 65536,
        };
        assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, 1000, 1000, 1000), 0);
    }
    let error = nic
        .register_mr(memory.mr(access::LOCAL_WRITE))
        .expect_err("64 KiB may be locked");
    let text = error.to_string();
    assert!(
        text.contains("64 KiB") && text.contains("ulimit -l"),
        "{text}"
    );
}
