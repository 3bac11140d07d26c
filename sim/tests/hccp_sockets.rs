//! What leads to queue pairs in HCCP, through the function tables: the order of steps, listeners, white lists, the exchange over a connection,
//! and what is left at the end. Each scenario runs in a process of its own, because ACL and HCCP have one state a process (`pe/process.rs`).

mod pe;

use std::ptr::null_mut;
use std::time::Duration;

use npushmem_ffi::hccp as c;
use pe::process::{self, play};
use pe::*;

/// The port of these tests.
const PORT: u16 = 10002;

const ROLES: &[(&str, fn())] = &[
    ("nobody_listens", nobody_listens),
    ("held_back", held_back),
    ("never_admitted", never_admitted),
    ("taken_port", taken_port),
    ("lonely_exchange", lonely_exchange),
    ("closed_exchange", closed_exchange),
    ("skipped_steps", skipped_steps),
    ("nothing_stays", nothing_stays),
];

#[test]
fn a_process_plays_the_role_it_was_started_for() {
    process::play_role(ROLES);
}

#[test]
fn a_connection_to_a_port_where_nobody_listens_times_out() {
    play(&["nobody_listens"], &[("NPUSIM_HCCP_TIMEOUT", "0.2")]);
}

#[test]
fn a_connection_waits_for_the_listener_and_then_for_the_white_list() {
    play(&["held_back"], &[]);
}

#[test]
fn a_connection_that_is_never_on_the_white_list_is_refused() {
    play(&["never_admitted"], &[("NPUSIM_HCCP_TIMEOUT", "0.3")]);
}

#[test]
fn a_port_that_is_taken_is_an_error_and_the_next_one_works() {
    play(&["taken_port"], &[]);
}

#[test]
fn a_queue_pair_whose_peer_does_not_come_times_out() {
    play(&["lonely_exchange"], &[("NPUSIM_HCCP_TIMEOUT", "0.3")]);
}

#[test]
fn a_queue_pair_whose_connection_closes_on_the_way_says_so() {
    play(&["closed_exchange"], &[]);
}

#[test]
fn a_skipped_step_is_named() {
    play(&["skipped_steps"], &[]);
}

#[test]
fn threads_handles_and_doorbells_are_gone_after_finalize() {
    play(&["nothing_stays"], &[]);
}

fn nobody_listens() {
    let pe = Pe::start(0);
    let socket = pe.socket();
    dial(socket, 1, PORT, "pair");
    assert_eq!(find(1, socket, 1, "pair").0, 3);
    assert_eq!(find(1, socket, 1, "another").0, 0);
    wait_for("the time limit", || {
        (find(1, socket, 1, "pair").0 == 2).then_some(())
    });
    assert!(
        recent().contains("nobody listened on 192.168.100.2:10002"),
        "{}",
        recent()
    );
    stop_acl();
}

fn held_back() {
    let pe = Pe::start(0);
    let (there, here) = (pe.socket(), pe.socket());
    dial(there, 0, PORT, "pair");
    std::thread::sleep(Duration::from_millis(20));
    check(listen(here, PORT.into()));
    admit(here, 0, "another tag");
    admit(here, 5, "pair");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(
        (find(1, there, 0, "pair").0, find(0, here, 0, "pair").0),
        (3, 0),
        "held back"
    );
    admit(here, 0, "pair");
    let (client, server) = (
        connection(1, there, 0, "pair"),
        connection(0, here, 0, "pair"),
    );
    assert!(
        client != server && find(1, there, 0, "pair").0 == 0,
        "each connection is handed out once"
    );
    stop_acl();
}

fn never_admitted() {
    let pe = Pe::start(0);
    let socket = pe.socket();
    check(listen(socket, PORT.into()));
    let mut entry = c::HccpSocketWhiteListInfo {
        remoteIp: ip(0),
        connLimit: 1,
        tag: tag("pair"),
    };
    // SAFETY: the entry lives through the calls.
    unsafe {
        check((hccp().ra_socket_white_list_add)(socket, &entry, 1));
        check((hccp().ra_socket_white_list_del)(socket, &entry, 1));
        assert_ne!(
            (hccp().ra_socket_white_list_del)(socket, &entry, 1),
            0,
            "it is off the list"
        );
        entry.connLimit = 0;
        assert_ne!(
            (hccp().ra_socket_white_list_add)(socket, &entry, 1),
            0,
            "it admits nobody"
        );
    }
    dial(socket, 0, PORT, "pair");
    wait_for("the time limit", || {
        (find(1, socket, 0, "pair").0 == 2).then_some(())
    });
    assert!(recent().contains("white list"), "{}", recent());
    assert_eq!(find(0, socket, 0, "pair").0, 0);
    stop_acl();
}

fn taken_port() {
    let pe = Pe::start(0);
    let (one, other) = (pe.socket(), pe.socket());
    check(listen(one, PORT.into()));
    assert_eq!(listen(other, PORT.into()), 128_205);
    assert!(
        recent().contains("192.168.100.1:10002 is in use"),
        "{}",
        recent()
    );
    check(listen(other, u32::from(PORT) + 1));
    assert_eq!(listen(other, 70_000), 128_203);
    let mut stop = c::HccpSocketListenInfo {
        handle: one,
        port: PORT.into(),
        ..Default::default()
    };
    // SAFETY: the entry lives through the calls.
    unsafe {
        check((hccp().ra_socket_listen_stop)(&mut stop, 1));
        assert_ne!(
            (hccp().ra_socket_listen_stop)(&mut stop, 1),
            0,
            "it does not listen any more"
        );
    }
    wait_for("the port", || {
        (listen(other, PORT.into()) == 0).then_some(())
    });
    stop_acl();
}

/// A connection of a process with itself: the client's end and the server's.
fn own_connection(
    pe: &Pe,
) -> (
    *mut std::ffi::c_void,
    *mut std::ffi::c_void,
    *mut std::ffi::c_void,
) {
    let socket = pe.socket();
    check(listen(socket, PORT.into()));
    admit(socket, pe.device, "self");
    dial(socket, pe.device, PORT, "self");
    (
        socket,
        connection(1, socket, pe.device, "self"),
        connection(0, socket, pe.device, "self"),
    )
}

fn lonely_exchange() {
    let pe = Pe::start(0);
    let (_, there, here) = own_connection(&pe);
    let (lonely, late) = (pe.queue(), pe.queue());
    lonely.connect(there);
    // SAFETY: handles are checked by the callee.
    let again = unsafe { (hccp().ra_qp_connect_async)(lonely.handle, there) };
    assert_ne!(again, 0, "it is on its way already");
    assert_eq!(lonely.settled(), 2);
    assert!(recent().contains("same order"), "{}", recent());
    // The other end comes too late: it is told at once.
    late.connect(here);
    assert_eq!(late.settled(), 2);
    stop_acl();
}

fn closed_exchange() {
    let pe = Pe::start(0);
    let (socket, there, here) = own_connection(&pe);
    let (one, other) = (pe.queue(), pe.queue());
    one.connect(there);
    let mut close = c::HccpSocketCloseInfo {
        handle: socket,
        fd: here,
        linger: 0,
    };
    // SAFETY: the entry lives through the call.
    check(unsafe { (hccp().ra_socket_batch_close)(&mut close, 1) });
    assert_eq!(one.settled(), 4, "{}", recent());
    // SAFETY: handles are checked by the callee.
    let code = unsafe { (hccp().ra_qp_connect_async)(other.handle, there) };
    assert_eq!(code, 128_207);
    assert!(recent().contains("closed"), "{}", recent());
    stop_acl();
}

fn skipped_steps() {
    start_acl(0);
    let mut handle = null_mut();
    let config = c::HccpRaInitConfig {
        phyId: 0,
        nicPosition: 1,
        hdcType: 6,
    };
    let refused = |code: i32, text: &str| {
        assert!(
            code != 0 && recent().contains(text),
            "{code}, wanted: {text}"
        );
    };
    // SAFETY: the structures live through the calls.
    unsafe {
        refused((hccp().ra_init)(&config), "call TsdOpen");
        refused((hccp().ra_init)(std::ptr::null()), "config is null");
        refused((hccp().TsdOpen)(99, 2) as i32, "device 99 does not exist");
        check((hccp().TsdOpen)(0, 2) as i32);
        refused(
            (hccp().ra_rdev_init_v2)(init_info(), rdev(0), &mut handle),
            "call ra_init first",
        );
        check((hccp().ra_init)(&config));
        refused((hccp().ra_init)(&config), "initialised already");
        refused(
            (hccp().ra_rdev_get_handle)(0, &mut handle),
            "call ra_rdev_init_v2 first",
        );
        refused(
            (hccp().ra_ai_qp_create)(
                null_mut(),
                &attrs(64),
                &mut c::HccpAiQpInfo::default(),
                &mut handle,
            ),
            "no live NIC handle",
        );
        let mut wrong = rdev(0);
        wrong.localIp = ip(1);
        assert_eq!(
            (hccp().ra_rdev_init_v2)(init_info(), wrong, &mut handle),
            328_008
        );
        assert!(
            recent().contains("192.168.100.2 is not the address of device 0's NIC, 192.168.100.1"),
            "{}",
            recent()
        );
        check((hccp().ra_rdev_init_v2)(init_info(), rdev(0), &mut handle));
        refused((hccp().ra_qp_destroy)(handle), "no live queue pair handle");
        refused(
            (hccp().ra_get_sockets)(7, &mut c::HccpSocketInfo::default(), 1, &mut 0),
            "role is 7",
        );
    }
    stop_acl();
}

fn nothing_stays() {
    let threads = || -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task")
            .expect("threads")
            .flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .map(|name| name.trim().to_owned())
            .collect()
    };
    let pe = Pe::start(0);
    let (_, there, _) = own_connection(&pe);
    let queue = pe.queue();
    queue.connect(there);
    assert!(
        threads().iter().any(|name| name == "npusim-hccp"),
        "{:?}",
        threads()
    );
    stop_acl();
    assert!(
        !threads().iter().any(|name| name == "npusim-hccp"),
        "{:?}",
        threads()
    );
    let why = npusim::doorbell::ring(queue.info.data_plane_info.sq.db_reg, 0)
        .expect_err("the NIC is closed");
    assert!(why.contains("no open NIC"), "{why}");
    let mut status = 0;
    // SAFETY: the place for the status lives through the call; the handle is checked.
    let code = unsafe { (hccp().ra_get_qp_status)(queue.handle, &mut status) };
    assert_ne!(code, 0, "the handle is dead");
}
