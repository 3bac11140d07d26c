//! Two processes: transfers between them, atomics on one word from both, and the death of one.
//!
//! The second process is this test binary again, told by an environment variable to run [`the_other_process`] as a responder; it ends
//! when its input does.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::{Mode, Nic, NicConfig, QpAddress};
use npushmem_roce::wqe::SendWqe;

const ROLE: &str = "NPUSHMEM_ROCE_TEST_ROLE";
/// Queue pairs between the two processes.
const QUEUES: usize = 3;

fn to_hex(address: &QpAddress) -> String {
    bytemuck::bytes_of(address)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn from_hex(text: &str) -> QpAddress {
    let bytes: Vec<u8> = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect();
    bytemuck::pod_read_unaligned(&bytes)
}

/// Adds 1 to a word so many times by each of the queue pairs at once.
fn add_by_all(station: &Station, queues: &mut [Queue], va: u64, rkey: u32, times: u64) {
    std::thread::scope(|scope| {
        for (index, queue) in queues.iter_mut().enumerate() {
            let (result, lkey) = (station.at(1024 + 64 * index), station.keys.lkey);
            scope.spawn(move || {
                for _ in 0..times {
                    assert_eq!(
                        queue.run(SendWqe::fetch_add(rkey, va, result, lkey, 1)),
                        Status::Ok
                    );
                }
            });
        }
    });
}

/// Does what its input says, in the second process; nothing in the first.
#[test]
fn the_other_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let station = Station::new(NicConfig::from_env().unwrap());
    let mut queues: Vec<Queue> = (0..QUEUES).map(|_| station.queue(SMALL)).collect();
    let addresses: Vec<String> = queues
        .iter()
        .map(|queue| to_hex(&queue.address()))
        .collect();
    println!(
        "\n@{} {} {}",
        station.memory.va(),
        station.keys.rkey,
        addresses.join(" ")
    );
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words[0] {
            "connect" => queues
                .iter()
                .zip(&words[1..])
                .for_each(|(queue, peer)| queue.connect(&from_hex(peer))),
            "add" => add_by_all(
                &station,
                &mut queues,
                number(1),
                number(2) as u32,
                number(3),
            ),
            "set" => station.memory.set(number(1) as usize, number(2)),
            "get" => print!("\n@{}", station.memory.get(number(1) as usize)),
            other => panic!("unknown command {other}"),
        }
        println!("\n@done");
    }
}

/// The second process, as the first one sees it; killed when dropped.
struct Other {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    va: u64,
    rkey: u32,
    addresses: Vec<QpAddress>,
}

impl Other {
    fn start(settings: &[(&str, &str)]) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_other_process", "--nocapture"])
            .env(ROLE, "responder")
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut other = Other {
            child,
            input,
            output,
            va: 0,
            rkey: 0,
            addresses: Vec::new(),
        };
        let ready = other.line();
        let words: Vec<&str> = ready.split(' ').collect();
        other.va = words[0].parse().unwrap();
        other.rkey = words[1].parse().unwrap();
        other.addresses = words[2..].iter().map(|word| from_hex(word)).collect();
        other
    }

    /// The next line that is meant for us: it begins with `@`.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the other process ended"
            );
            if let Some(text) = line.trim_end().strip_prefix('@') {
                return text.to_owned();
            }
        }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.input, "{command}").unwrap();
    }

    fn finished(&mut self) {
        assert_eq!(self.line(), "done");
    }

    fn command(&mut self, command: &str) {
        self.tell(command);
        self.finished();
    }

    fn get(&mut self, offset: usize) -> u64 {
        self.tell(&format!("get {offset}"));
        let value = self.line().parse().unwrap();
        self.finished();
        value
    }

    /// Queue pairs of `station`, connected to those of the other process.
    fn connect(&mut self, station: &Station) -> Vec<Queue> {
        let queues: Vec<Queue> = (0..QUEUES).map(|_| station.queue(SMALL)).collect();
        let mine: Vec<String> = queues
            .iter()
            .map(|queue| to_hex(&queue.address()))
            .collect();
        queues
            .iter()
            .zip(&self.addresses)
            .for_each(|(queue, peer)| queue.connect(peer));
        self.command(&format!("connect {}", mine.join(" ")));
        queues
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn writes_reads_and_atomics_reach_the_other_process() {
    for (config, settings) in [
        (NicConfig::default(), vec![]),
        (
            NicConfig {
                mode: Mode::Thread,
                ..NicConfig::default()
            },
            vec![("NPUSIM_NIC", "thread")],
        ),
        (
            NicConfig {
                mode: Mode::Chaos { seed: 5 },
                ..NicConfig::default()
            },
            vec![("NPUSIM_NIC", "chaos:6")],
        ),
    ] {
        let mut other = Other::start(&settings);
        let station = Station::new(config);
        let mut queues = other.connect(&station);
        let queue = &mut queues[1];
        let key = other.rkey;

        station.memory.set(0, 0x0123_4567_89ab_cdef);
        assert_eq!(
            queue.run(SendWqe::write(key, other.va + 8, &[station.segment(0, 8)])),
            Status::Ok
        );
        assert_eq!(other.get(8), 0x0123_4567_89ab_cdef);
        assert_eq!(
            queue.run(SendWqe::write_inline(key, other.va + 16, &7_u64.to_le_bytes()).unwrap()),
            Status::Ok
        );
        assert_eq!(other.get(16), 7);

        other.command("set 24 99");
        assert_eq!(
            queue.run(SendWqe::read(key, other.va + 24, &[station.segment(40, 8)])),
            Status::Ok
        );
        assert_eq!(station.memory.get(40), 99);

        let lkey = station.keys.lkey;
        assert_eq!(
            queue.run(SendWqe::fetch_add(
                key,
                other.va + 24,
                station.at(48),
                lkey,
                2
            )),
            Status::Ok
        );
        assert_eq!((station.memory.get(48), other.get(24)), (99, 101));
        assert_eq!(
            queue.run(SendWqe::compare_swap(
                key,
                other.va + 24,
                station.at(48),
                lkey,
                101,
                5
            )),
            Status::Ok
        );
        assert_eq!((station.memory.get(48), other.get(24)), (101, 5));

        assert_eq!(
            queue.run(SendWqe::read(key ^ 1, other.va, &[station.segment(40, 8)])),
            Status::RemoteAccess
        );
    }
}

#[test]
fn requests_to_a_killed_process_end_with_retry_exceeded_and_harm_nobody() {
    let mut other = Other::start(&[]);
    let station = Station::new(NicConfig::default());
    let mut queues = other.connect(&station);
    let write = SendWqe::write_inline(other.rkey, other.va, &[1; 8]).unwrap();
    assert_eq!(queues[0].run(write), Status::Ok);
    other.kill();
    eventually("the watcher notices the death", || {
        station.nic.is_peer_dead(&other.addresses[0])
    });
    for queue in &mut queues {
        assert_eq!(queue.run(write), Status::RetryExceeded);
    }
    let said = station.nic.diagnostics();
    assert!(
        said[0].contains(&format!(
            "the peer's process {} has ended",
            other.child.id()
        )),
        "{said:?}"
    );

    let fresh = station.queue(SMALL);
    let refused = station.nic.connect(fresh.numbers.qpn, &other.addresses[0]);
    assert!(refused.is_ok(), "a known port stays known: {refused:?}");
    let unknown = Nic::open(NicConfig::default()).unwrap();
    let stranger = Queue::new(&unknown, SMALL);
    let refused = unknown
        .connect(stranger.numbers.qpn, &other.addresses[0])
        .unwrap_err()
        .to_string();
    assert!(refused.contains("it has ended"), "{refused}");
}

#[test]
fn atomics_of_one_nic_lose_nothing_from_two_processes_and_several_queue_pairs() {
    const TIMES: u64 = 2000;
    for mode in ["inline", "thread", "chaos:3"] {
        let settings = [("NPUSIM_NIC", mode), ("NPUSIM_NIC_WIDEN_ATOMICS", "on")];
        let mut other = Other::start(&settings);
        let mode = match mode {
            "inline" => Mode::Inline,
            "thread" => Mode::Thread,
            _ => Mode::Chaos { seed: 4 },
        };
        let times = if mode == Mode::Inline {
            TIMES
        } else {
            TIMES / 10
        };
        let station = Station::new(NicConfig {
            mode,
            widen_atomics: true,
            ..NicConfig::default()
        });
        let _toward_other = other.connect(&station);
        let mut loops: Vec<Queue> = (0..QUEUES).map(|_| station.loopback(SMALL)).collect();
        other.tell(&format!(
            "add {} {} {times}",
            station.at(0),
            station.keys.rkey
        ));
        add_by_all(
            &station,
            &mut loops,
            station.at(0),
            station.keys.rkey,
            times,
        );
        other.finished();
        assert_eq!(station.memory.get(0), 2 * QUEUES as u64 * times, "{mode:?}");
    }
}

#[test]
fn atomics_go_on_after_a_process_died_among_them() {
    let mut other = Other::start(&[("NPUSIM_NIC_WIDEN_ATOMICS", "on")]);
    let station = Station::new(NicConfig::default());
    let _toward_other = other.connect(&station);
    let mut loops = vec![station.loopback(SMALL)];
    other.tell(&format!(
        "add {} {} 1000000000",
        station.at(0),
        station.keys.rkey
    ));
    eventually("the other process adds", || station.memory.get(0) > 1000);
    other.kill();
    let before = station.memory.get(0);
    add_by_all(&station, &mut loops, station.at(0), station.keys.rkey, 1000);
    assert_eq!(station.memory.get(0), before + 1000);
}

#[test]
fn mixing_nic_atomics_with_cpu_atomics_on_one_word_loses_updates() {
    let station = Station::new(NicConfig {
        widen_atomics: true,
        ..NicConfig::default()
    });
    let mut queue = station.loopback(SMALL);
    let add = SendWqe::fetch_add(
        station.keys.rkey,
        station.at(0),
        station.at(64),
        station.keys.lkey,
        1,
    );
    const EACH: u64 = 1000;
    eventually("an update is lost", || {
        station.memory.set(0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..EACH {
                    station.memory.word(0).fetch_add(1, Ordering::SeqCst);
                    std::thread::yield_now();
                }
            });
            (0..EACH).for_each(|_| assert_eq!(queue.run(add), Status::Ok));
        });
        station.memory.get(0) < 2 * EACH
    });
}
