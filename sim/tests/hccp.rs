//! Queue pairs of HCCP through the function tables: from nothing to connected, between processes and within one, and data that moves when a
//! doorbell rings. Each scenario runs in processes of its own, because ACL and HCCP have one state a process (`pe/process.rs`).

mod pe;

use npushmem_ffi::hccp as c;
use npushmem_roce::cqe::Status;
use npushmem_roce::wqe::{DataSegment, SendWqe};
use pe::process::{self, board, hear, hear_from, play, start, tell};
use pe::*;

/// The port of these tests.
const PORT: u16 = 10002;

const ROLES: &[(&str, fn())] = &[
    ("server", server),
    ("client", client),
    ("survivor", survivor),
    ("victim", victim),
    ("mesh", mesh),
    ("own_atomics", own_atomics),
    ("unbound_keys", unbound_keys),
    ("not_connected", not_connected),
    ("refused_access", refused_access),
    ("wrong_shapes", wrong_shapes),
    ("foreign_memory", foreign_memory),
    ("flush_at_destroy", flush_at_destroy),
    ("wide_completions", wide_completions),
    ("refused_inline", refused_inline),
];

#[test]
fn a_process_plays_the_role_it_was_started_for() {
    process::play_role(ROLES);
}

#[test]
fn two_processes_connect_queue_pairs_and_move_data_by_ringing_doorbells() {
    play(&["server", "client"], &[]);
}

#[test]
fn they_do_so_with_a_nic_that_has_a_thread_of_its_own() {
    play(&["server", "client"], &[("NPUSIM_NIC", "thread")]);
}

#[test]
fn they_do_so_with_a_nic_that_delays_and_reorders() {
    for seed in ["chaos:1", "chaos:2", "chaos:3"] {
        play(&["server", "client"], &[("NPUSIM_NIC", seed)]);
    }
}

#[test]
fn six_processes_connect_all_to_all_three_queue_pairs_a_pair() {
    play(&["mesh"; MESH as usize], &[]);
}

#[test]
fn requests_to_a_killed_peer_complete_with_retry_exceeded() {
    let (board, mut processes) = start(&["survivor", "victim"], &[]);
    hear_from(&mut processes, board.path(), "survivor connected");
    hear_from(&mut processes, board.path(), "victim ready");
    processes.pop().expect("the victim").kill();
    tell(board.path(), "killed", &[]);
    processes.pop().expect("the survivor").finish();
}

#[test]
fn a_queue_pair_connected_to_the_own_process_runs_atomics_on_own_memory() {
    play(&["own_atomics"], &[]);
}

#[test]
fn a_key_that_is_not_bound_to_the_queue_pair_is_refused() {
    play(&["unbound_keys"], &[]);
}

#[test]
fn a_doorbell_of_a_queue_pair_that_is_not_connected_is_an_error() {
    play(&["not_connected"], &[]);
}

#[test]
fn a_nic_without_remote_atomics_refuses_access_8_and_takes_7() {
    play(&["refused_access"], &[("NPUSIM_NIC_ATOMIC_ACCESS", "off")]);
}

#[test]
fn a_nic_without_inline_payloads_refuses_queue_pairs_for_them_and_makes_others() {
    play(&["refused_inline"], &[("NPUSIM_NIC_INLINE", "off")]);
}

#[test]
fn a_queue_pair_of_a_wrong_shape_is_refused_by_field() {
    play(&["wrong_shapes"], &[]);
}

#[test]
fn memory_that_is_not_the_devices_cannot_be_registered() {
    play(&["foreign_memory"], &[]);
}

#[test]
fn requests_behind_a_failed_one_are_flushed_when_the_host_destroys_the_queue_pair() {
    play(&["flush_at_destroy"], &[]);
}

#[test]
fn completions_of_64_bytes_work_when_they_are_asked_for() {
    play(&["wide_completions"], &[("NPUSIM_CQE_SIZE", "64")]);
}

const BYTES: u64 = 64 << 10;

fn segment(region: &c::HccpMrInfo, at: u64, bytes: u32) -> DataSegment {
    DataSegment::new(region.addr as u64 + at, bytes, region.lkey)
}

fn server() {
    let pe = Pe::start(0);
    let socket = pe.socket();
    check(listen(socket, PORT.into()));
    admit(socket, 1, "pair");
    both_ends(
        &pe,
        socket,
        connection(0, socket, 1, "pair"),
        "server",
        "client",
    );
}

fn client() {
    let pe = Pe::start(1);
    let socket = pe.socket();
    dial(socket, 0, PORT, "pair");
    both_ends(
        &pe,
        socket,
        connection(1, socket, 0, "pair"),
        "client",
        "server",
    );
}

/// Both ends do the same: two queue pairs over one connection, then each writes into, reads from and counts in the other's memory.
fn both_ends(
    pe: &Pe,
    socket: *mut std::ffi::c_void,
    fd: *mut std::ffi::c_void,
    me: &str,
    peer: &str,
) {
    let board = board();
    let region = pe
        .register(pe.memory(BYTES as usize), BYTES, 15)
        .expect("registers");
    let base = region.addr as u64;
    let mut queues = [pe.queue(), pe.queue()];
    for queue in &queues {
        queue.bind(&region);
        assert_eq!(queue.status(), 0);
        queue.connect(fd);
        assert_eq!(queue.status(), 3, "the first answer is connecting");
    }
    queues.iter().for_each(Queue::connected);

    set_word(base, 0x1111 * u64::from(pe.device + 1));
    tell(
        &board,
        &format!("{me} ready"),
        &[base, region.rkey.into(), (pe.device + 1).into()],
    );
    let numbers = hear(&board, &format!("{peer} ready"));
    let (remote, rkey, other) = (numbers[0], numbers[1] as u32, numbers[2]);

    // A READ of the peer's first word.
    assert_eq!(
        queues[0].run(SendWqe::read(rkey, remote, &[segment(&region, 8, 8)])),
        Status::Ok
    );
    assert_eq!(word(base + 8), 0x1111 * other);
    // Three laps of small WRITEs on one queue pair, an inline one on the other, a large one, and a count.
    for n in 0..3 * u64::from(DEPTH) {
        set_word(base + 16, n);
        assert_eq!(
            queues[0].run(SendWqe::write(
                rkey,
                remote + 1024,
                &[segment(&region, 16, 8)]
            )),
            Status::Ok
        );
    }
    let inline = SendWqe::write_inline(rkey, remote + 1032, &[0x5a; 24]).expect("fits");
    assert_eq!(queues[1].run(inline), Status::Ok);
    set_word(base + 8192, 0xfeed);
    set_word(base + 8192 + 16376, 0xbeef);
    assert_eq!(
        queues[1].run(SendWqe::write(
            rkey,
            remote + 32768,
            &[segment(&region, 8192, 16384)]
        )),
        Status::Ok
    );
    assert_eq!(
        queues[1].run(SendWqe::fetch_add(
            rkey,
            remote + 2048,
            base + 24,
            region.lkey,
            5
        )),
        Status::Ok
    );
    assert_eq!(word(base + 24), 0);

    tell(&board, &format!("{me} done"), &[]);
    hear(&board, &format!("{peer} done"));
    assert_eq!(word(base + 1024), u64::from(3 * DEPTH - 1));
    assert_eq!(word(base + 1048), 0x5a5a_5a5a_5a5a_5a5a);
    assert_eq!(
        (word(base + 32768), word(base + 32768 + 16376)),
        (0xfeed, 0xbeef)
    );
    assert_eq!(word(base + 2048), 5);
    tell(&board, &format!("{me} checked"), &[]);
    hear(&board, &format!("{peer} checked"));

    queues.into_iter().for_each(Queue::destroy);
    let mut close = c::HccpSocketCloseInfo {
        handle: socket,
        fd,
        linger: 0,
    };
    // SAFETY: the entry lives through the calls; handles are checked.
    unsafe {
        check((hccp().ra_socket_batch_close)(&mut close, 1));
        assert_ne!(
            (hccp().ra_socket_batch_close)(&mut close, 1),
            0,
            "a connection closes once"
        );
        check((hccp().ra_socket_deinit)(socket));
    }
    stop_acl();
}

/// Processes of the mesh.
const MESH: u32 = 6;

/// One of [`MESH`] processes: it takes the first free number, listens for the higher ones, calls the lower ones, and leaves its number in each
/// one's memory, by three queue pairs each.
fn mesh() {
    const QUEUES: u64 = 3;
    let board = board();
    let free =
        |number: &u32| std::fs::File::create_new(board.join(format!("number {number}"))).is_ok();
    let me = (0..MESH).find(free).expect("a number");
    let pe = Pe::start(me);
    let socket = pe.socket();
    check(listen(socket, PORT.into()));
    let others = || (0..MESH).filter(|other| *other != me);
    for other in others() {
        if other > me {
            admit(socket, other, "mesh");
        } else {
            dial(socket, other, PORT, "mesh");
        }
    }
    let region = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let base = region.addr as u64;
    let mut queues = Vec::new();
    for other in others() {
        let fd = connection(u32::from(other < me), socket, other, "mesh");
        for which in 0..QUEUES {
            let queue = pe.queue();
            queue.bind(&region);
            queue.connect(fd);
            queues.push((other, which, queue));
        }
    }
    queues.iter().for_each(|(_, _, queue)| queue.connected());
    tell(&board, &format!("{me} ready"), &[base, region.rkey.into()]);
    set_word(base, (me + 1).into());
    let slot = |pe: u32, which: u64| 64 + 8 * (u64::from(pe) * QUEUES + which);
    for (other, which, queue) in &mut queues {
        let numbers = hear(&board, &format!("{other} ready"));
        let there = numbers[0] + slot(me, *which);
        let request = SendWqe::write(numbers[1] as u32, there, &[segment(&region, 0, 8)]);
        assert_eq!(queue.run(request), Status::Ok);
    }
    tell(&board, &format!("{me} done"), &[]);
    for other in others() {
        hear(&board, &format!("{other} done"));
        for which in 0..QUEUES {
            assert_eq!(word(base + slot(other, which)), u64::from(other + 1));
        }
    }
    stop_acl();
}

fn survivor() {
    let board = board();
    let pe = Pe::start(0);
    let socket = pe.socket();
    check(listen(socket, PORT.into()));
    admit(socket, 1, "pair");
    let region = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let mut queue = pe.queue();
    queue.bind(&region);
    queue.connect(connection(0, socket, 1, "pair"));
    queue.connected();
    let numbers = hear(&board, "victim ready");
    let write = SendWqe::write(numbers[1] as u32, numbers[0], &[segment(&region, 0, 8)]);
    assert_eq!(queue.run(write), Status::Ok);
    tell(&board, "survivor connected", &[]);
    hear(&board, "killed");
    let status = wait_for("a failure", || {
        Some(queue.run(write)).filter(|status| *status != Status::Ok)
    });
    assert_eq!(status, Status::RetryExceeded);
    stop_acl();
}

fn victim() {
    let board = board();
    let pe = Pe::start(1);
    let socket = pe.socket();
    dial(socket, 0, PORT, "pair");
    let region = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let queue = pe.queue();
    queue.bind(&region);
    queue.connect(connection(1, socket, 0, "pair"));
    queue.connected();
    tell(
        &board,
        "victim ready",
        &[region.addr as u64, region.rkey.into()],
    );
    std::thread::sleep(3 * PATIENCE);
}

fn own_atomics() {
    let pe = Pe::start(3);
    let region = pe.register(pe.memory(4096), 4096, 15).expect("registers");
    let base = region.addr as u64;
    let (mut one, mut other) = loopback(&pe, &[&region]);
    for n in 0..10 {
        assert_eq!(
            one.run(SendWqe::fetch_add(
                region.rkey,
                base,
                base + 8,
                region.lkey,
                3
            )),
            Status::Ok
        );
        assert_eq!(word(base + 8), 6 * n);
        assert_eq!(
            other.run(SendWqe::fetch_add(
                region.rkey,
                base,
                base + 16,
                region.lkey,
                3
            )),
            Status::Ok
        );
        assert_eq!(word(base + 16), 6 * n + 3);
    }
    assert_eq!(
        one.run(SendWqe::compare_swap(
            region.rkey,
            base,
            base + 8,
            region.lkey,
            60,
            7
        )),
        Status::Ok
    );
    assert_eq!((word(base), word(base + 8)), (7, 60));
    stop_acl();
}

fn unbound_keys() {
    let pe = Pe::start(0);
    let bound = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let free = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let at = |region: &c::HccpMrInfo| region.addr as u64;
    let (mut one, mut other) = loopback(&pe, &[&bound]);
    assert_eq!(
        one.run(SendWqe::write(
            bound.rkey,
            at(&bound),
            &[segment(&bound, 8, 8)]
        )),
        Status::Ok
    );
    assert_eq!(
        one.run(SendWqe::write(
            free.rkey,
            at(&free),
            &[segment(&bound, 8, 8)]
        )),
        Status::RemoteAccess
    );
    assert_eq!(
        other.run(SendWqe::write(
            bound.rkey,
            at(&bound),
            &[segment(&free, 8, 8)]
        )),
        Status::LocalProtection
    );
    stop_acl();
}

fn not_connected() {
    let pe = Pe::start(0);
    let region = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let mut queue = pe.queue();
    queue.bind(&region);
    let why = queue
        .post(SendWqe::write(
            region.rkey,
            region.addr as u64,
            &[segment(&region, 8, 8)],
        ))
        .expect_err("not connected");
    assert!(why.contains("not ready to send"), "{why}");
    stop_acl();
}

fn refused_access() {
    let pe = Pe::start(0);
    let memory = pe.memory(4096);
    let (code, why) = pe
        .register(memory, 4096, 15)
        .expect_err("no remote atomics");
    assert_eq!(code, 528_102);
    assert!(
        why.contains("ra_register_mr") && why.contains("0xf") && why.contains("access 7"),
        "{why}"
    );
    pe.register(memory, 4096, 7).expect("registers");
    let (code, why) = pe.register(memory, 4096, 16).expect_err("no such access");
    assert!(code == 128_103 && why.contains("0x10"), "{code}: {why}");
    stop_acl();
}

fn refused_inline() {
    let pe = Pe::start(0);
    let mut wanted = attrs(64);
    wanted.qp_attr.cap.max_inline_data = 8;
    let (code, why) = pe.queue_with(&wanted).err().expect("no inline payloads");
    assert_eq!(code, 528_102);
    assert!(
        why.contains("ra_ai_qp_create")
            && why.contains("max_inline_data is 8")
            && why.contains("pass 0"),
        "{why}"
    );
    wanted.qp_attr.cap.max_inline_data = 0;
    pe.queue_with(&wanted)
        .unwrap_or_else(|(code, why)| panic!("{code}: {why}"))
        .destroy();
    stop_acl();
}

fn wrong_shapes() {
    let pe = Pe::start(0);
    for depth in [0, 1, 32, 100, 65536] {
        let mut wrong = attrs(64);
        wrong.qp_attr.cap.max_send_wr = depth;
        let (code, why) = pe.queue_with(&wrong).err().expect("no such depth");
        assert_eq!(code, 128_103);
        assert!(
            why.contains(&format!("max_send_wr is {depth}")) && why.contains("from 64 to 32768"),
            "{why}"
        );
    }
    let deep = pe
        .queue_with(&attrs(32768))
        .unwrap_or_else(|(code, why)| panic!("{code}: {why}"));
    let info = deep.info.data_plane_info;
    assert_eq!(
        (
            info.sq.depth,
            info.sq.wqebb_size,
            info.scq.depth,
            info.scq.cqe_size
        ),
        (32768, 64, 32768, 32)
    );
    let (begin, end) = npusim::doorbell::range();
    assert!(
        (begin..end).contains(&info.sq.db_reg)
            && info.sq.db_reg % 4096 == 0x230
            && info.scq.db_reg == info.sq.db_reg
    );
    let counters = [
        info.sq.head_addr,
        info.sq.tail_addr,
        info.sq.swdb_addr,
        info.scq.head_addr,
        info.scq.tail_addr,
        info.scq.swdb_addr,
    ];
    for (n, one) in counters.iter().enumerate() {
        assert_eq!(word(*one), 0);
        assert!(
            counters[n + 1..]
                .iter()
                .all(|other| one.abs_diff(*other) >= 64),
            "each counter has a cache line"
        );
    }
    deep.destroy();
    stop_acl();
}

fn foreign_memory() {
    let pe = Pe::start(0);
    let here = [0_u64; 64];
    let (code, why) = pe
        .register(here.as_ptr() as u64, 512, 7)
        .expect_err("host memory");
    assert!(
        code == 128_103 && why.contains("device 0's memory"),
        "{code}: {why}"
    );
    let memory = pe.memory(4096);
    assert!(pe.register(memory, 8192, 7).is_err(), "past the end");
    assert!(pe.register(memory, 0, 7).is_err(), "nothing");
    stop_acl();
}

fn flush_at_destroy() {
    let pe = Pe::start(0);
    let region = pe.register(pe.memory(4096), 4096, 7).expect("registers");
    let (mut one, _other) = loopback(&pe, &[&region]);
    let wrong = SendWqe::write(
        region.rkey ^ 0x100,
        region.addr as u64,
        &[segment(&region, 8, 8)],
    );
    assert_eq!(one.run(wrong), Status::RemoteAccess);
    // Behind the failed one: no completion until the driver flushes.
    let posted = one.post(SendWqe::write(
        region.rkey,
        region.addr as u64,
        &[segment(&region, 8, 8)],
    ));
    assert!(posted.is_err() || one.poll().is_none());
    let before = npusim::hooks::total_counters().nic;
    assert_eq!(before.errors, 1, "{before:?}");
    one.destroy();
    stop_acl();
}

fn wide_completions() {
    let pe = Pe::start(0);
    let region = pe.register(pe.memory(4096), 4096, 15).expect("registers");
    let base = region.addr as u64;
    let (mut one, _other) = loopback(&pe, &[&region]);
    assert_eq!(one.info.data_plane_info.scq.cqe_size, 64);
    for n in 0..2 * u64::from(DEPTH) {
        assert_eq!(
            one.run(SendWqe::fetch_add(
                region.rkey,
                base,
                base + 8,
                region.lkey,
                1
            )),
            Status::Ok
        );
        assert_eq!(word(base + 8), n);
    }
    stop_acl();
}
