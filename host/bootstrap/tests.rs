//! The store and its clients in one process, over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::client::{Client, StoreError};
use super::store::Server;
use super::wire::{self, Decoder, Label, Message};

const SOON: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(150);

fn place(address: SocketAddr) -> (String, u16) {
    (address.ip().to_string(), address.port())
}

fn server(n_pes: u32) -> Server {
    Server::bind("127.0.0.1:0", n_pes, b"token").expect("bind")
}

fn enter(server: &Server, pe: u32, n_pes: u32, token: &[u8]) -> Result<Client, StoreError> {
    Client::connect(
        &place(server.address()),
        pe,
        n_pes,
        token,
        SOON,
        "the launcher",
    )
}

/// Runs `f` for every PE on its own thread.
fn job<T: Send>(server: &Server, n_pes: u32, f: impl Fn(u32, Client) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_pes)
            .map(|pe| {
                let f = &f;
                scope.spawn(move || f(pe, enter(server, pe, n_pes, b"token").expect("join")))
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("thread"))
            .collect()
    })
}

#[test]
fn every_pe_gets_everybodys_bytes_in_the_order_of_the_pes() {
    let store = server(5);
    let seen = job(&store, 5, |pe, mut client| {
        let mut rounds = Vec::new();
        for round in 0..20u32 {
            let bytes = vec![pe as u8; (pe * round) as usize];
            rounds.push(
                client
                    .gather(Label::Exchange, &bytes, SOON, "X")
                    .expect("gather"),
            );
        }
        client.leave(None);
        rounds
    });
    for rounds in seen {
        for (round, payloads) in rounds.into_iter().enumerate() {
            for (pe, payload) in payloads.into_iter().enumerate() {
                assert_eq!(payload, vec![pe as u8; pe * round]);
            }
        }
    }
}

#[test]
fn large_exchanges_arrive_whole() {
    let store = server(3);
    let seen = job(&store, 3, |pe, mut client| {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i ^ pe) as u8).collect();
        let all = client
            .gather(Label::Exchange, &bytes, SOON, "X")
            .expect("gather");
        client.leave(None);
        all
    });
    for all in seen {
        for (pe, payload) in all.iter().enumerate() {
            assert!(payload
                .iter()
                .enumerate()
                .all(|(i, b)| *b == (i as u32 ^ pe as u32) as u8));
        }
    }
}

#[test]
fn a_deadline_lists_who_is_missing() {
    let store = server(4);
    let a = enter(&store, 0, 4, b"token").expect("join");
    let b = enter(&store, 2, 4, b"token").expect("join");
    std::thread::scope(|scope| {
        for client in [&a, &b] {
            scope.spawn(move || {
                let error = client
                    .gather(Label::Join, &[], SHORT, "NPUSHMEM_JOIN_TIMEOUT")
                    .expect_err("late");
                let text = error.to_string();
                assert!(
                    matches!(&error, StoreError::Late { missing, .. } if *missing == [1, 3]),
                    "{text}"
                );
                assert!(
                    text.contains("PEs 1, 3") && text.contains("NPUSHMEM_JOIN_TIMEOUT"),
                    "{text}"
                );
            });
        }
    });
}

#[test]
fn a_pe_that_comes_after_the_deadline_is_told_so() {
    let store = server(2);
    let a = enter(&store, 0, 2, b"token").expect("join");
    let b = enter(&store, 1, 2, b"token").expect("join");
    a.gather(Label::Barrier, &[], SHORT, "X").expect_err("late");
    let error = b
        .gather(Label::Barrier, &[], SOON, "X")
        .expect_err("after the deadline");
    assert!(error.to_string().contains("deadline passed"), "{error}");
}

#[test]
fn a_dead_pe_ends_everybodys_wait_and_is_named() {
    let store = server(3);
    let clients: Vec<Client> = (0..2)
        .map(|pe| enter(&store, pe, 3, b"token").expect("join"))
        .collect();
    let mut raw = raw_member(&store, 2, 3);
    std::thread::scope(|scope| {
        for client in &clients {
            scope.spawn(move || {
                let error = client
                    .gather(Label::Barrier, &[], SOON, "X")
                    .expect_err("dead peer");
                assert!(matches!(&error, StoreError::Died { pe: 2, .. }), "{error}");
            });
        }
        std::thread::sleep(SHORT);
        raw.flush().expect("flush");
        drop(raw);
    });
    // And every later collective says the same at once.
    for client in &clients {
        assert_eq!(client.death().and_then(|d| d.pe), Some(2));
        let error = client
            .gather(Label::Barrier, &[], SOON, "X")
            .expect_err("dead peer");
        assert!(error.to_string().starts_with("PE 2 died"), "{error}");
    }
}

#[test]
fn the_launchers_word_on_a_death_reaches_the_pes() {
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    store.declare_dead(1, "killed by signal 9");
    let error = client
        .gather(Label::Barrier, &[], SOON, "X")
        .expect_err("dead peer");
    assert!(error.to_string().contains("killed by signal 9"), "{error}");
}

#[test]
fn a_pe_that_died_before_it_joined_ends_the_job_for_those_who_come_later() {
    let store = server(2);
    store.declare_dead(1, "exit code 7");
    // The order reaches the store's thread in its own time: before this PE is in, or after.
    let error = match enter(&store, 0, 2, b"token") {
        Err(error) => error,
        Ok(client) => client
            .gather(Label::Join, &[], SOON, "X")
            .expect_err("dead peer"),
    };
    assert!(error.to_string().contains("exit code 7"), "{error}");
}

#[test]
fn nobody_waits_for_a_pe_that_ended_without_joining() {
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    store.declare_done(1);
    let error = client
        .gather(Label::Join, &[], SOON, "X")
        .expect_err("absent peer");
    assert!(
        matches!(&error, StoreError::Died { pe: 1, reason, .. } if reason.contains("without joining")),
        "{error}"
    );
    // Who joined and left as it should has not died.
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    let mut other = enter(&store, 1, 2, b"token").expect("join");
    other.leave(None);
    store.declare_done(1);
    let error = client
        .gather(Label::Barrier, &[], SOON, "X")
        .expect_err("absent peer");
    assert!(error.to_string().contains("has left the job"), "{error}");
}

#[test]
fn a_pe_that_leaves_with_an_error_tells_the_others_why() {
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    let mut other = enter(&store, 1, 2, b"token").expect("join");
    other.leave(Some("out of memory"));
    let error = client
        .gather(Label::Barrier, &[], SOON, "X")
        .expect_err("aborted peer");
    assert!(
        matches!(&error, StoreError::Died { pe: 1, reason, .. } if reason == "out of memory"),
        "{error}"
    );
}

#[test]
fn a_pe_that_left_in_peace_breaks_only_collectives_that_need_it() {
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    let mut other = enter(&store, 1, 2, b"token").expect("join");
    other.leave(None);
    let error = client
        .gather(Label::Barrier, &[], SOON, "X")
        .expect_err("peer left");
    assert!(
        error.to_string().contains("PE 1 has left the job"),
        "{error}"
    );
    assert_eq!(client.death(), None);
}

#[test]
fn calls_in_different_order_are_named() {
    let store = server(2);
    let a = enter(&store, 0, 2, b"token").expect("join");
    let b = enter(&store, 1, 2, b"token").expect("join");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            a.gather(Label::Barrier, &[], SOON, "X")
                .expect_err("mismatch")
                .to_string()
        });
        let second = scope.spawn(|| {
            b.gather(Label::Exchange, &[1], SOON, "X")
                .expect_err("mismatch")
                .to_string()
        });
        for text in [first.join().expect("a"), second.join().expect("b")] {
            assert!(
                text.contains("barrier_all") && text.contains("exchange"),
                "{text}"
            );
        }
    });
}

#[test]
fn strangers_are_refused_with_a_reason() {
    let store = server(2);
    let _zero = enter(&store, 0, 2, b"token").expect("join");
    for (pe, n_pes, token, reason) in [
        (1, 2, &b"other"[..], "another job's token"),
        (1, 2, &b""[..], "another job's token"),
        (0, 2, &b"token"[..], "has joined already"),
        (2, 2, &b"token"[..], "outside a job of 2 PEs"),
        (1, 3, &b"token"[..], "2 PEs"),
    ] {
        let error = enter(&store, pe, n_pes, token).err().expect("refused");
        assert!(
            matches!(&error, StoreError::Refused { .. }) && error.to_string().contains(reason),
            "{error}"
        );
    }
    // The job goes on.
    enter(&store, 1, 2, b"token").expect("join");
}

#[test]
fn garbage_and_oversize_frames_do_not_hold_the_job_up() {
    let store = server(2);
    let mut silent = TcpStream::connect(store.address()).expect("connect");
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0xff; 64][..],
        &[0, 0, 0, 0][..],
        &[1, 0, 0, 0, 9][..],
    ] {
        let mut stream = TcpStream::connect(store.address()).expect("connect");
        stream.write_all(garbage).expect("write");
        let mut answer = Vec::new();
        stream.set_read_timeout(Some(SOON)).expect("timeout");
        let mut decoder = Decoder::default();
        let message = loop {
            let mut chunk = [0u8; 256];
            let n = stream.read(&mut chunk).expect("read");
            answer.extend_from_slice(&chunk[..n]);
            decoder.feed(&chunk[..n]);
            if let Some(message) = decoder.next(wire::MAX_FRAME).expect("frame") {
                break message;
            }
            assert_ne!(n, 0, "closed without a reason");
        };
        assert!(matches!(message, Message::Refused { .. }), "{message:?}");
    }
    silent.write_all(&[7]).expect("half a frame");
    job(&store, 2, |_, mut client| {
        client.gather(Label::Join, &[], SOON, "X").expect("join");
        client.leave(None);
    });
}

#[test]
fn a_pe_that_sends_one_byte_at_a_time_is_as_good_as_any() {
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = TcpStream::connect(store.address()).expect("connect");
            stream.set_nodelay(true).expect("nodelay");
            let mut bytes = wire::encode(&Message::Hello {
                pe: 1,
                n_pes: 2,
                pid: 1,
                token: b"token".to_vec(),
            });
            bytes.extend(wire::encode(&Message::Gather {
                seq: 0,
                deadline_ms: 20_000,
                label: Label::Exchange,
                payload: b"slow".to_vec(),
            }));
            for byte in bytes {
                stream.write_all(&[byte]).expect("write");
                std::thread::sleep(Duration::from_millis(1));
            }
            // Read one byte at a time, too.
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            while seen.len() < 2 {
                let mut byte = [0u8; 1];
                stream.read_exact(&mut byte).expect("read");
                decoder.feed(&byte);
                seen.extend(decoder.next(wire::MAX_FRAME).expect("frame"));
            }
            assert!(
                matches!(&seen[1], Message::Gathered { payloads, .. } if payloads[0] == b"fast"),
                "{seen:?}"
            );
            stream.write_all(&wire::encode(&Message::Bye)).expect("bye");
        });
        let all = client
            .gather(Label::Exchange, b"fast", SOON, "X")
            .expect("gather");
        assert_eq!(all, [b"fast".to_vec(), b"slow".to_vec()]);
    });
}

#[test]
fn the_job_may_begin_anew_after_everybody_left() {
    let store = server(3);
    for _ in 0..30 {
        job(&store, 3, |_, mut client| {
            client.gather(Label::Join, &[], SOON, "X").expect("join");
            client
                .gather(Label::Finalize, &[], SOON, "X")
                .expect("finalize");
            client.leave(None);
        });
    }
}

#[test]
fn init_may_follow_finalize_while_others_still_leave() {
    let store = server(4);
    std::thread::scope(|scope| {
        for pe in 0..4u32 {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut client = enter(store, pe, 4, b"token").expect("join");
                    client.gather(Label::Join, &[], SOON, "X").expect("join");
                    client
                        .gather(Label::Finalize, &[], SOON, "X")
                        .expect("finalize");
                    client.leave(None);
                }
            });
        }
    });
}

#[test]
fn a_store_that_goes_away_is_noticed() {
    let store = server(2);
    let client = enter(&store, 0, 2, b"token").expect("join");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let error = client
                .gather(Label::Barrier, &[], SOON, "X")
                .expect_err("gone");
            assert!(matches!(error, StoreError::Gone { .. }), "{error}");
        });
        std::thread::sleep(SHORT);
        drop(store);
    });
}

#[test]
fn nobody_at_the_address_is_an_error_that_names_it() {
    let address = {
        let store = server(2);
        place(store.address())
    };
    let error = Client::connect(&address, 1, 2, b"token", SHORT, "PE 0")
        .err()
        .expect("nobody there");
    let text = error.to_string();
    assert!(
        text.contains(&address.1.to_string())
            && text.contains("PE 0")
            && text.contains("NPUSHMEM_STORE"),
        "{text}"
    );
}

#[test]
fn a_taken_address_is_refused_with_the_setting() {
    let store = server(1);
    let error = Server::bind(store.address(), 1, b"token")
        .err()
        .expect("taken");
    assert!(error.to_string().contains("NPUSHMEM_STORE"), "{error}");
}

/// A member without a client: its connection can end without a goodbye.
fn raw_member(store: &Server, pe: u32, n_pes: u32) -> TcpStream {
    let mut stream = TcpStream::connect(store.address()).expect("connect");
    let hello = Message::Hello {
        pe,
        n_pes,
        pid: 4711,
        token: b"token".to_vec(),
    };
    stream.write_all(&wire::encode(&hello)).expect("hello");
    let mut decoder = Decoder::default();
    let mut byte = [0u8; 1];
    loop {
        stream.read_exact(&mut byte).expect("read");
        decoder.feed(&byte);
        if let Some(message) = decoder.next(wire::MAX_FRAME).expect("frame") {
            assert_eq!(message, Message::Welcome);
            return stream;
        }
    }
}
