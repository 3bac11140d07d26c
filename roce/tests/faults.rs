//! Requests that must fail, each with its status; what happens behind them; and calls that must be refused.

mod common;

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::{
    access, Backing, Flush, MrInit, Nic, NicConfig, NicError, QpInit, QpState,
};
use npushmem_roce::wqe::{control, count, opcode, DataSegment, SendWqe};

/// Runs `request` on a fresh pair of NICs; its status.
fn status(
    config: NicConfig,
    shape: Shape,
    request: impl Fn(&Station, &Station) -> SendWqe,
) -> Status {
    let (here, mut queue, there, _far) = pair(&config, shape);
    queue.submit(request(&here, &there)); // unsignaled: a failure completes all the same
    match queue.poll() {
        None => Status::Ok,
        Some(cqe) => {
            assert_eq!(
                here.nic.qp_state(queue.numbers.qpn).unwrap(),
                QpState::Error
            );
            let said = here.nic.diagnostics();
            assert!(said[0].contains(cqe.status().text()), "{said:?}");
            cqe.status()
        }
    }
}

fn plain(request: impl Fn(&Station, &Station) -> SendWqe) -> Status {
    status(NicConfig::default(), SMALL, request)
}

fn write_to(there: &Station, segments: &[DataSegment]) -> SendWqe {
    SendWqe::write(there.keys.rkey, there.at(0), segments)
}

fn add_to(here: &Station, there: &Station, offset: usize) -> SendWqe {
    SendWqe::fetch_add(
        there.keys.rkey,
        there.at(offset),
        here.at(0),
        here.keys.lkey,
        1,
    )
}

#[test]
fn unknown_opcodes_and_misbuilt_requests_are_local_qp_operation_errors() {
    let recode = |code: u32| {
        plain(move |here, there| {
            let mut wqe = write_to(there, &[here.segment(0, 8)]);
            wqe.control = wqe.control.with(control::OPCODE, code);
            wqe
        })
    };
    for code in [0x8, 0x9, 0xa, 0xb, 0xc, 0x14, 0x16, opcode::INVALID] {
        assert_eq!(recode(code), Status::LocalQpOperation, "opcode {code:#x}");
    }
    assert_eq!(recode(opcode::NOP), Status::Ok);
    let inline_read = plain(|here, there| {
        let mut wqe = SendWqe::read(there.keys.rkey, there.at(0), &[here.segment(0, 8)]);
        wqe.control = wqe.control.with(control::INLINE, 1);
        wqe
    });
    assert_eq!(inline_read, Status::LocalQpOperation);
    let atomic_of_two = plain(|here, there| {
        let mut wqe = add_to(here, there, 0);
        wqe.count = wqe.count.with(count::SGE_NUM, 2);
        wqe
    });
    assert_eq!(atomic_of_two, Status::LocalQpOperation);
    let three_segments = plain(|here, there| {
        let mut wqe = write_to(there, &[here.segment(0, 8)]);
        wqe.count = wqe.count.with(count::SGE_NUM, 3);
        wqe
    });
    assert_eq!(three_segments, Status::LocalQpOperation);
}

#[test]
fn inline_payloads_are_refused_where_they_were_not_asked_for() {
    let inline = |_: &Station, there: &Station| {
        SendWqe::write_inline(there.keys.rkey, there.at(0), &[1; 9]).unwrap()
    };
    assert_eq!(
        status(
            NicConfig::default(),
            Shape {
                max_inline: 0,
                ..SMALL
            },
            inline
        ),
        Status::LocalQpOperation
    );
    assert_eq!(
        status(
            NicConfig::default(),
            Shape {
                max_inline: 8,
                ..SMALL
            },
            inline
        ),
        Status::LocalLength
    );
}

#[test]
fn a_nic_without_inline_payloads_makes_only_queue_pairs_without_them() {
    let config = NicConfig {
        inline: false,
        ..NicConfig::default()
    };
    let nic = Nic::open(config.clone()).unwrap();
    let rings = Memory::new(64 * 64 + 64 * 32);
    let init = |max_inline| QpInit {
        sq: rings.ptr(0),
        sq_depth: 64,
        cq: rings.ptr(64 * 64),
        cq_depth: 64,
        cqe_size: 32,
        max_inline,
        sq_sig_all: false,
        sq_swdb: std::ptr::null_mut(),
        cq_swdb: std::ptr::null_mut(),
    };
    // SAFETY: `rings` holds both rings and outlives the NIC's use of them: the queue pair is destroyed below.
    let refused = unsafe { nic.create_qp(init(8)) }.expect_err("refused");
    assert!(matches!(refused, NicError::Inline { max_inline: 8 }));
    assert!(refused.to_string().contains("inline payloads of 8 bytes"));
    // SAFETY: as above.
    let made = unsafe { nic.create_qp(init(0)) }.unwrap();
    nic.destroy_qp(made.qpn).unwrap();
    let put = |here: &Station, there: &Station| write_to(there, &[here.segment(0, 8)]);
    let plain = Shape {
        max_inline: 0,
        ..SMALL
    };
    assert_eq!(status(config, plain, put), Status::Ok);
}

#[test]
fn lengths_that_contradict_one_another_or_a_limit_are_local_length_errors() {
    let longer = plain(|here, there| {
        let mut wqe = write_to(there, &[here.segment(0, 8)]);
        wqe.msg_len = npushmem_roce::bits::Le32::new(9);
        wqe
    });
    assert_eq!(longer, Status::LocalLength);
    let limit = NicConfig {
        max_message: 4096,
        ..NicConfig::default()
    };
    let of = |len| move |here: &Station, there: &Station| write_to(there, &[here.segment(0, len)]);
    assert_eq!(status(limit.clone(), SMALL, of(4096)), Status::Ok);
    assert_eq!(status(limit, SMALL, of(4097)), Status::LocalLength);
    assert_eq!(plain(of(STATION_BYTES + 1)), Status::LocalLength);
    let short_atomic = plain(|here, there| {
        let mut wqe = add_to(here, there, 0);
        wqe.msg_len = npushmem_roce::bits::Le32::new(4);
        wqe
    });
    assert_eq!(short_atomic, Status::LocalLength);
}

#[test]
fn local_keys_bounds_and_access_are_local_protection_errors() {
    assert_eq!(
        plain(|here, there| write_to(there, &[here.segment(STATION_BYTES - 7, 8)])),
        Status::LocalProtection
    );
    assert_eq!(
        plain(|here, there| write_to(
            there,
            &[DataSegment::new(here.at(0) - 1, 8, here.keys.lkey)]
        )),
        Status::LocalProtection
    );
    assert_eq!(
        plain(|here, there| write_to(
            there,
            &[DataSegment::new(here.at(0), 8, here.keys.lkey ^ 1 << 20)]
        )),
        Status::LocalProtection
    );
    let (_here, mut queue, there, _far) = pair(&NicConfig::default(), SMALL);
    let memory = Memory::new(4096);
    let keys = queue.nic.register_mr(memory.mr(0)).unwrap();
    let segment = DataSegment::new(memory.va(), 8, keys.lkey);
    queue.nic.bind_mr(queue.numbers.qpn, keys.lkey).unwrap();
    assert_eq!(
        queue.run(SendWqe::write(there.keys.rkey, there.at(0), &[segment])),
        Status::Ok,
        "a source needs no access"
    );
    assert_eq!(
        queue.run(SendWqe::read(there.keys.rkey, there.at(0), &[segment])),
        Status::LocalProtection
    );
}

#[test]
fn a_key_is_usable_only_after_registration_on_the_queue_pair() {
    let (here, mut queue, there, far) = pair(&NicConfig::default(), SMALL);
    let memory = Memory::new(4096);
    let keys = there
        .nic
        .register_mr(memory.mr(access::LOCAL_WRITE | access::REMOTE_WRITE))
        .unwrap();
    let write = SendWqe::write(keys.rkey, memory.va(), &[here.segment(0, 8)]);
    let (mut second, second_far) = (here.queue(SMALL), there.queue(SMALL));
    second.connect(&second_far.address());
    second_far.connect(&second.address());
    there.nic.bind_mr(far.numbers.qpn, keys.lkey).unwrap();
    assert_eq!(queue.run(write), Status::Ok);
    assert_eq!(second.run(write), Status::RemoteAccess);
    assert!(
        here.nic.diagnostics()[0].contains("was not registered on the queue pair"),
        "{:?}",
        here.nic.diagnostics()
    );

    let local = here
        .nic
        .register_mr(memory.mr(access::LOCAL_WRITE))
        .unwrap();
    let unbound = DataSegment::new(memory.va(), 8, local.lkey);
    assert_eq!(
        queue.run(SendWqe::write(there.keys.rkey, there.at(0), &[unbound])),
        Status::LocalProtection
    );
}

#[test]
fn remote_keys_bounds_and_access_are_remote_access_errors() {
    let write = |rkey, va| {
        move |here: &Station, _: &Station| SendWqe::write(rkey, va, &[here.segment(0, 8)])
    };
    assert_eq!(plain(write(0xdead_beef, 0)), Status::RemoteAccess);
    assert_eq!(
        plain(|here, there| SendWqe::write(here.keys.rkey, there.at(0), &[here.segment(0, 8)])),
        Status::RemoteAccess
    );
    let past_end = |here: &Station, there: &Station| {
        SendWqe::write(
            there.keys.rkey,
            there.at(STATION_BYTES - 4),
            &[here.segment(0, 8)],
        )
    };
    assert_eq!(plain(past_end), Status::RemoteAccess);
    assert_eq!(
        plain(|here, there| SendWqe::read(there.keys.rkey, there.at(0) - 8, &[here.segment(0, 8)])),
        Status::RemoteAccess
    );

    type Request = fn(&Station, &Station) -> SendWqe;
    let requests: [(u32, Request); 3] = [
        (access::REMOTE_WRITE, |here, there| {
            write_to(there, &[here.segment(0, 8)])
        }),
        (access::REMOTE_READ, |here, there| {
            SendWqe::read(there.keys.rkey, there.at(0), &[here.segment(0, 8)])
        }),
        (access::REMOTE_ATOMIC, |here, there| add_to(here, there, 0)),
    ];
    for (needed, request) in requests {
        for missing in [false, true] {
            let granted = if missing {
                15 & !needed
            } else {
                needed | access::LOCAL_WRITE
            };
            let here = Station::new(NicConfig::default());
            let there = Station::with_access(NicConfig::default(), granted);
            let (mut queue, far) = (here.queue(SMALL), there.queue(SMALL));
            queue.connect(&far.address());
            far.connect(&queue.address());
            let expected = if missing {
                Status::RemoteAccess
            } else {
                Status::Ok
            };
            assert_eq!(
                queue.run(request(&here, &there)),
                expected,
                "access {granted} for a request that needs {needed}"
            );
        }
    }
}

#[test]
fn misaligned_atomics_and_atomics_that_the_peer_refuses_are_invalid_requests() {
    assert_eq!(
        plain(|here, there| add_to(here, there, 4)),
        Status::RemoteInvalidRequest
    );
    assert_eq!(
        status(
            NicConfig {
                atomics: false,
                ..NicConfig::default()
            },
            SMALL,
            |here, there| add_to(here, there, 0)
        ),
        Status::RemoteInvalidRequest
    );
}

#[test]
fn requests_for_a_receive_queue_are_never_received() {
    assert_eq!(
        plain(|here, _| SendWqe::send(&[here.segment(0, 8)])),
        Status::ReceiverNotReady
    );
    assert_eq!(
        plain(|here, there| write_to(there, &[here.segment(0, 8)]).with_immediate(7)),
        Status::ReceiverNotReady
    );
}

#[test]
fn a_deregistered_region_is_unknown_to_both_sides() {
    let (here, mut queue, there, _far) = pair(&NicConfig::default(), SMALL);
    assert_eq!(
        queue.run(write_to(&there, &[here.segment(0, 8)])),
        Status::Ok
    );
    there.nic.deregister_mr(there.keys.lkey).unwrap();
    assert_eq!(
        queue.run(write_to(&there, &[here.segment(0, 8)])),
        Status::RemoteAccess
    );
    assert!(matches!(
        there.nic.deregister_mr(there.keys.lkey),
        Err(NicError::NoMr { .. })
    ));
    let again = there.nic.register_mr(there.memory.mr(7)).unwrap();
    assert_ne!(again, there.keys);
}

#[test]
fn nothing_is_executed_behind_a_failure_until_the_host_flushes() {
    let (here, mut queue, there, _far) = pair(&NicConfig::default(), SMALL);
    let good = SendWqe::write_inline(there.keys.rkey, there.at(0), &[1]).unwrap();
    let bad = SendWqe::write_inline(0, there.at(0), &[2]).unwrap();
    let behind = SendWqe::write_inline(there.keys.rkey, there.at(8), &[3]).unwrap();
    queue.post_batch(&[good, bad, behind, behind]);
    queue.ring();
    let cqe = queue.poll().expect("the failed one");
    assert_eq!((cqe.status(), cqe.wqe_index()), (Status::RemoteAccess, 1));
    assert!(queue.poll().is_none());
    queue.submit(behind); // a core that does not know yet: the doorbell is no error
    assert!(queue.poll().is_none());
    assert_eq!(
        (there.memory.bytes(0, 1)[0], there.memory.bytes(8, 1)[0]),
        (1, 0)
    );

    here.nic.flush(queue.numbers.qpn).unwrap();
    let flushed: Vec<(Status, u16)> = std::iter::from_fn(|| queue.poll())
        .map(|cqe| (cqe.status(), cqe.wqe_index()))
        .collect();
    assert_eq!(
        flushed,
        [
            (Status::Flushed, 2),
            (Status::Flushed, 3),
            (Status::Flushed, 4)
        ]
    );
    assert_eq!(there.memory.bytes(8, 1)[0], 0);
    assert_eq!(here.nic.counters().errors, 4);
}

#[test]
fn with_flush_auto_everything_behind_a_failure_completes_by_itself() {
    let (_here, mut queue, there, _far) = pair(
        &NicConfig {
            flush: Flush::Auto,
            ..NicConfig::default()
        },
        SMALL,
    );
    let bad = SendWqe::write_inline(0, there.at(0), &[2]).unwrap();
    queue.post_batch(&[bad, bad]);
    queue.ring();
    queue.submit(bad);
    let statuses: Vec<Status> = std::iter::from_fn(|| queue.poll())
        .map(|cqe| cqe.status())
        .collect();
    assert_eq!(
        statuses,
        [Status::RemoteAccess, Status::Flushed, Status::Flushed]
    );
}

#[test]
fn a_flush_completes_a_stalled_queue_pair() {
    let (here, mut queue, there, _far) = pair(&NicConfig::default(), SMALL);
    queue.head += 1; // rung without a slot
    queue.ring();
    assert!(queue.poll().is_none());
    here.nic.flush(queue.numbers.qpn).unwrap();
    assert_eq!(queue.poll().expect("flushed").status(), Status::Flushed);
    drop(there);
}

#[test]
fn a_peer_that_was_destroyed_closed_or_is_in_error_does_not_answer() {
    let request = |here: &Station, there: &Station| write_to(there, &[here.segment(0, 8)]);
    let (here, mut queue, there, far) = pair(&NicConfig::default(), SMALL);
    there.nic.destroy_qp(far.numbers.qpn).unwrap();
    assert_eq!(queue.run(request(&here, &there)), Status::RetryExceeded);
    assert!(
        here.nic.diagnostics()[0].contains("was destroyed"),
        "{:?}",
        here.nic.diagnostics()
    );

    let (here, mut queue, there, far) = pair(&NicConfig::default(), SMALL);
    there.nic.flush(far.numbers.qpn).unwrap();
    assert_eq!(queue.run(request(&here, &there)), Status::RetryExceeded);

    let (here, mut queue, there, far) = pair(&NicConfig::default(), SMALL);
    let write = request(&here, &there);
    drop(far);
    drop(there);
    assert_eq!(queue.run(write), Status::RetryExceeded);
}

#[test]
fn a_peer_marked_dead_does_not_answer() {
    let (here, mut queue, there, far) = pair(&NicConfig::default(), SMALL);
    here.nic.mark_peer_dead(&far.address());
    assert!(here.nic.is_peer_dead(&far.address()));
    assert_eq!(
        queue.run(write_to(&there, &[here.segment(0, 8)])),
        Status::RetryExceeded
    );
    assert!(
        here.nic.diagnostics()[0].contains("has ended"),
        "{:?}",
        here.nic.diagnostics()
    );
}

#[test]
fn a_peer_that_never_connects_does_not_answer() {
    let (here, there) = (
        Station::new(NicConfig::default()),
        Station::new(NicConfig::default()),
    );
    let (mut queue, far) = (here.queue(SMALL), there.queue(SMALL));
    queue.connect(&far.address());
    assert_eq!(
        queue.run(write_to(&there, &[here.segment(0, 8)])),
        Status::RetryExceeded
    );
}

#[test]
fn a_request_waits_for_a_peer_that_is_about_to_connect() {
    let (here, there) = (
        Station::new(NicConfig::default()),
        Station::new(NicConfig::default()),
    );
    let (mut queue, far) = (here.queue(SMALL), there.queue(SMALL));
    queue.connect(&far.address());
    let address = queue.address();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            far.connect(&address);
        });
        assert_eq!(
            queue.run(write_to(&there, &[here.segment(0, 8)])),
            Status::Ok
        );
    });
}

#[test]
fn a_queue_pair_connected_to_someone_else_does_not_answer() {
    let (here, there) = (
        Station::new(NicConfig::default()),
        Station::new(NicConfig::default()),
    );
    let (mut queue, other, far) = (here.queue(SMALL), here.queue(SMALL), there.queue(SMALL));
    queue.connect(&far.address());
    far.connect(&other.address());
    assert_eq!(
        queue.run(write_to(&there, &[here.segment(0, 8)])),
        Status::RetryExceeded
    );
}

#[test]
fn connecting_twice_or_to_a_damaged_or_stale_address_is_refused() {
    let (here, queue, there, far) = pair(&NicConfig::default(), SMALL);
    assert!(matches!(
        here.nic.connect(queue.numbers.qpn, &far.address()),
        Err(NicError::State {
            state: QpState::Rts,
            ..
        })
    ));
    let fresh = here.queue(SMALL);
    let mut address = far.address();
    address.version = 9;
    assert!(matches!(
        here.nic.connect(fresh.numbers.qpn, &address),
        Err(NicError::Address { .. })
    ));
    let stale = far.address();
    there.nic.destroy_qp(far.numbers.qpn).unwrap();
    let again = there.queue(SMALL);
    let reused = npushmem_roce::nic::QpAddress {
        qpn: again.numbers.qpn,
        incarnation: 77,
        ..stale
    };
    let refused = here.nic.connect(fresh.numbers.qpn, &reused).unwrap_err();
    assert!(
        refused.to_string().contains("has destroyed its queue pair"),
        "{refused}"
    );
}

#[test]
fn arguments_outside_the_format_are_refused_with_what_is_allowed() {
    let nic = Nic::open(NicConfig::default()).unwrap();
    let memory = Memory::new(1 << 16);
    let good = QpInit {
        sq: memory.ptr(0),
        sq_depth: 64,
        cq: memory.ptr(8192),
        cq_depth: 64,
        cqe_size: 32,
        max_inline: 32,
        sq_sig_all: false,
        sq_swdb: std::ptr::null_mut(),
        cq_swdb: std::ptr::null_mut(),
    };
    let wrong = [
        (
            QpInit {
                sq_depth: 65,
                ..good
            },
            "send depth is 65: a power of two from 64 to 32768",
        ),
        (
            QpInit {
                sq_depth: 32,
                ..good
            },
            "send depth is 32",
        ),
        (
            QpInit {
                sq_depth: 65536,
                ..good
            },
            "send depth is 65536",
        ),
        (
            QpInit {
                cq_depth: 16,
                ..good
            },
            "completion depth is 16",
        ),
        (
            QpInit {
                cqe_size: 48,
                ..good
            },
            "completion entry size is 48",
        ),
        (
            QpInit {
                max_inline: 33,
                ..good
            },
            "inline limit is 33",
        ),
        (
            QpInit {
                sq: memory.ptr(8),
                ..good
            },
            "64-byte aligned",
        ),
        (
            QpInit {
                cq: std::ptr::null_mut(),
                ..good
            },
            "address of the completion ring is 0",
        ),
        (
            QpInit {
                cq_swdb: memory.ptr(2).cast(),
                ..good
            },
            "4-byte aligned",
        ),
    ];
    for (init, expected) in wrong {
        // SAFETY: the memory stays mapped until the process ends.
        let message = unsafe { nic.create_qp(init) }.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let mr = memory.mr(7);
    let message = |mr: MrInit| nic.register_mr(mr).unwrap_err().to_string();
    assert!(message(MrInit { len: 0, ..mr }).contains("length of the region is 0"));
    assert!(message(MrInit {
        va: u64::MAX - 3,
        ..mr
    })
    .contains("wrap"));
    assert!(message(MrInit { access: 0x40, ..mr }).contains("bits 1, 2, 4, 8"));
    assert!(message(MrInit {
        access: access::REMOTE_WRITE,
        ..mr
    })
    .contains("local write (1)"));
    assert!(message(MrInit { len: 1 << 20, ..mr }).contains("only 0x10000 bytes"));
    assert!(message(MrInit {
        backing: Backing { fd: 0, offset: 0 },
        ..mr
    })
    .contains("cannot be registered"));
}

#[test]
fn access_8_is_refused_by_its_switch_and_7_is_not() {
    let nic = Nic::open(NicConfig {
        atomic_access: false,
        ..NicConfig::default()
    })
    .unwrap();
    let memory = Memory::new(4096);
    let refused = nic.register_mr(memory.mr(15)).unwrap_err();
    assert!(matches!(refused, NicError::AtomicAccess { access: 15 }));
    assert!(
        refused.to_string().ends_with("register with access 7"),
        "{refused}"
    );
    assert!(nic.register_mr(memory.mr(7)).is_ok());
}
