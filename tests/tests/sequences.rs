//! Random sequences of puts, gets, signals, atomics, fences, quiets and barriers on three PEs against a sequential model, with both engines and the
//! chaos NIC. A failing sequence shrinks and is printed as one environment variable that replays it.
//!
//! Settings: `NPUSHMEM_TEST_SEED` (of the generator), `NPUSHMEM_TEST_SCALE` (times as many sequences), `NPUSHMEM_TEST_SEQUENCE` (one to replay).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use npushmem_tests::sequence::{op, Case, Model, Raw, A_BYTES, B_BYTES, SLOTS};
use npushmem_tests::{scale, Job, Outcome, DEADLINE};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

const PES: usize = 3;
/// Sequences of each kind of job.
const SEQUENCES: f64 = 500.0;
/// Most operations of a sequence, before those are left out that would be races.
const LONGEST: usize = 90;
/// How long PEs may take for one sequence.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long they may take to connect: another test program's job may have to end first.
const CONNECT: Duration = Duration::from_secs(300);

/// One session at a time, whose PEs would wait for each other's turn otherwise.
static TURN: Mutex<()> = Mutex::new(());

/// Environment variables of a job.
type Settings = &'static [(&'static str, &'static str)];

/// The kinds of jobs: name, cores of a PE, settings.
const KINDS: [(&str, usize, Settings); 4] = [
    ("chaos", 1, &[("NPUSIM_NIC", "chaos:1")]),
    ("chaos-2-cores", 2, &[("NPUSIM_NIC", "chaos:2")]),
    (
        "chaos-core-atomics",
        1,
        &[
            ("NPUSIM_NIC", "chaos:3"),
            ("NPUSIM_SOC", "Ascend950PR_9599"),
            ("NPUSHMEM_ATOMIC_DOMAIN", "core"),
        ],
    ),
    (
        "chaos-unmapped",
        2,
        &[("NPUSIM_NIC", "chaos:4"), ("NPUSHMEM_MAPPED", "off")],
    ),
];

/// A job whose PEs wait for cases.
struct Session {
    kind: usize,
    wires: Vec<TcpStream>,
    job: Option<JoinHandle<Outcome>>,
}

impl Session {
    fn start(kind: usize) -> Session {
        let (_, cores, settings) = KINDS[kind];
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        listener.set_nonblocking(true).expect("loopback");
        let address = listener.local_addr().expect("bound");
        let mut job = Job::new(env!("CARGO_BIN_EXE_pe"), PES, "sequence")
            .arg("driver", address)
            .arg("cores", cores)
            .arg("bytes", cores.max(2) * B_BYTES)
            // One job does all sequences of its kind; each has a bound of its own.
            .deadline(DEADLINE.mul_f64(3.0 * scale().max(1.0)));
        for (key, value) in settings {
            job = job.env(key, value);
        }
        let job = std::thread::spawn(move || job.run());
        let mut wires: Vec<Option<TcpStream>> = (0..PES).map(|_| None).collect();
        let begin = Instant::now();
        while wires.iter().any(Option::is_none) {
            match listener.accept() {
                Ok((wire, _)) => {
                    wire.set_nonblocking(false).expect("a socket");
                    wire.set_nodelay(true).expect("a socket");
                    wire.set_read_timeout(Some(PATIENCE)).expect("a socket");
                    let mut wire = wire;
                    let hello = receive(&mut wire).expect("a PE says its number");
                    let pe = u64::from_le_bytes(hello[..8].try_into().expect("eight bytes"));
                    wires[pe as usize] = Some(wire);
                }
                Err(_) if job.is_finished() || begin.elapsed() > CONNECT => {
                    let outcome = job.join().expect("the harness");
                    panic!("PEs do not connect\n{}", outcome.report());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        Session {
            kind,
            wires: wires.into_iter().flatten().collect(),
            job: Some(job),
        }
    }

    /// Runs a case and compares. The error says what differs; after one of the PEs' own the job is over.
    fn check(&mut self, seed: u64, case: &Case) -> Result<(), String> {
        let cores = KINDS[self.kind].1;
        for (wire, lists) in self.wires.iter_mut().zip(case.lists.chunks(cores)) {
            let mut words = vec![seed];
            for list in lists {
                words.push(list.len() as u64);
                words.extend(list.iter().flatten());
            }
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            send(wire, &bytes).map_err(|error| format!("a PE is gone: {error}"))?;
        }
        let answers: Vec<_> = self.wires.iter_mut().map(receive).collect();
        for (pe, answer) in answers.iter().enumerate() {
            let answer = answer
                .as_ref()
                .map_err(|error| format!("PE {pe} does not answer: {error}"))?;
            if answer[0] != 0 {
                return Err(format!(
                    "PE {pe}: {}",
                    String::from_utf8_lossy(&answer[1..])
                ));
            }
        }
        for (pe, answer) in answers.into_iter().flatten().enumerate() {
            let expected = &case.expected[pe];
            let (a, rest) = answer[1..].split_at(A_BYTES);
            let (b, out) = rest.split_at(cores * B_BYTES);
            for (name, found, expected) in [("a", a, &expected.a), ("b", b, &expected.b)] {
                if let Some(at) = (0..found.len()).find(|&at| found[at] != expected[at]) {
                    return Err(format!(
                        "PE {pe}, {name} + {at}: found {:#x}, expected {:#x}",
                        found[at], expected[at]
                    ));
                }
            }
            for &(slot, mask, value) in &expected.out {
                let found: [u8; 8] = out[8 * slot..8 * slot + 8].try_into().expect("eight bytes");
                let found = u64::from_le_bytes(found) & mask;
                if found != value & mask {
                    return Err(format!(
                        "PE {pe}, core {}, slot {}: fetched {found:#x}, expected {:#x}",
                        slot / SLOTS,
                        slot % SLOTS,
                        value & mask
                    ));
                }
            }
        }
        Ok(())
    }

    /// Ends the job, and gives what its PEs said.
    fn end(mut self) -> Outcome {
        for wire in &mut self.wires {
            let _ = send(wire, &[]); // a PE that has failed is gone
        }
        let job = self.job.take().expect("ended once");
        job.join().expect("the harness")
    }
}

fn send(wire: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    wire.write_all(&(bytes.len() as u64).to_le_bytes())?;
    wire.write_all(bytes)
}

fn receive(wire: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0u8; 8];
    wire.read_exact(&mut length)?;
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    wire.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// An operation; transfers, atomics and order in about equal parts, barriers now and then.
fn operation() -> impl Strategy<Value = Raw> {
    let transfers = (op::PUT as u8)..=(op::IBGET as u8);
    let what = prop_oneof![
        10 => transfers,
        3 => (op::PUT_SIGNAL as u8)..=(op::SIGNAL as u8),
        3 => Just(op::WAIT as u8),
        7 => Just(op::ATOMIC as u8),
        6 => (op::FENCE as u8)..=(op::COMMIT as u8),
        1 => Just(op::BARRIER as u8),
        2 => Just(op::ENGINE as u8),
        1 => Just(op::REFILL as u8),
    ];
    let n = prop_oneof![3 => 0u16..16, 3 => 0u16..256, 1 => 0u16..4096];
    // Half of the places are close together, so that operations meet.
    let at = prop_oneof![1 => 0u16..1024, 1 => any::<u16>()];
    (
        what,
        0u8..12,
        0..PES as u8,
        at,
        any::<u16>(),
        n,
        any::<u32>(),
    )
        .prop_map(|(what, actor, pe, at, here, n, value)| Raw {
            what,
            actor,
            pe,
            at,
            here,
            n,
            value,
        })
}

/// A sequence as a kind of job can run it: nobody may ask for the mapped engine where nothing is mapped.
fn fit(kind: usize, mut raw: Vec<Raw>) -> Vec<Raw> {
    let unmapped = KINDS[kind]
        .2
        .iter()
        .any(|(key, _)| *key == "NPUSHMEM_MAPPED");
    for one in &mut raw {
        if unmapped && u64::from(one.what) == op::ENGINE && one.value % 3 == 1 {
            one.value -= 1;
        }
    }
    raw
}

/// The text that replays a sequence.
fn as_text(kind: usize, seed: u64, raw: &[Raw]) -> String {
    let operations: Vec<String> = raw.iter().map(Raw::text).collect();
    format!("{}:{seed}:{}", KINDS[kind].0, operations.join(","))
}

/// What a failure prints.
fn failure(kind: usize, seed: u64, raw: &[Raw], reason: &str, report: &str) -> String {
    let case = Model::run(PES, KINDS[kind].1, seed, raw);
    format!(
        "{reason}\nthe operations that ran, in one order that the model allows:\n{}\nreplay it: NPUSHMEM_TEST_SEQUENCE={}\n{report}",
        case.listing,
        as_text(kind, seed, raw)
    )
}

fn runner(kind: usize, seed: u64) -> TestRunner {
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8] = kind as u8;
    let config = Config {
        cases: (SEQUENCES * scale()).ceil() as u32,
        max_shrink_iters: 2000,
        max_shrink_time: 60_000, // milliseconds
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Sequences of one kind of job, all in one job; a candidate that broke its job is tried on in a new one.
fn sequences(kind: usize) {
    let seed: u64 = match std::env::var("NPUSHMEM_TEST_SEED") {
        Ok(text) => text.parse().expect("NPUSHMEM_TEST_SEED is a number"),
        Err(_) => 1,
    };
    if std::env::var_os("NPUSHMEM_TEST_SEQUENCE").is_some() {
        return; // the replay below is all that is wanted
    }
    let mut runner = runner(kind, seed);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let session = std::cell::RefCell::new(Some(Session::start(kind)));
    let last_report = std::cell::RefCell::new(String::new());
    let (ran, operations) = (std::cell::Cell::new(0u64), std::cell::Cell::new(0u64));
    let strategy = proptest::collection::vec(operation(), 1..LONGEST);
    let result = runner.run(&strategy, |raw| {
        let raw = fit(kind, raw);
        let case = Model::run(PES, KINDS[kind].1, seed, &raw);
        ran.set(ran.get() + 1);
        operations.set(operations.get() + case.listing.lines().count() as u64);
        let mut session = session.borrow_mut();
        let mut current = session.take().unwrap_or_else(|| Session::start(kind));
        match current.check(seed, &case) {
            Ok(()) => *session = Some(current),
            Err(reason) => {
                // Whatever state the PEs are in, the next candidate meets fresh ones.
                *last_report.borrow_mut() = current.end().report();
                return Err(TestCaseError::fail(reason));
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        match error {
            TestError::Fail(reason, raw) => panic!(
                "generator's seed {seed}\n{}",
                failure(
                    kind,
                    seed,
                    &fit(kind, raw),
                    &reason.to_string(),
                    &last_report.borrow()
                )
            ),
            TestError::Abort(reason) => panic!("{reason}"),
        }
    }
    if let Some(session) = session.into_inner() {
        session.end().ok();
    }
    println!(
        "{}: {} sequences, {} operations of them no race",
        KINDS[kind].0,
        ran.get(),
        operations.get()
    );
    assert!(
        operations.get() > 10 * ran.get(),
        "the generator makes races only"
    );
}

#[test]
fn any_sequence_leaves_what_a_sequential_model_leaves() {
    sequences(0);
}

#[test]
fn any_sequence_of_two_cores_a_pe_leaves_what_a_sequential_model_leaves() {
    sequences(1);
}

#[test]
fn any_sequence_with_atomics_of_the_cores_leaves_what_a_sequential_model_leaves() {
    sequences(2);
}

#[test]
fn any_sequence_over_the_nic_alone_leaves_what_a_sequential_model_leaves() {
    sequences(3);
}

#[test]
fn sequences_with_races_are_told_from_those_without() {
    const MOST: u64 = 200;
    if std::env::var_os("NPUSHMEM_TEST_SEQUENCE").is_some() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut session = Session::start(0);
    let mut runner = runner(0, 2);
    let strategy = proptest::collection::vec(operation(), LONGEST);
    let mut found = None;
    for round in 1..=MOST {
        let raw = strategy
            .new_tree(&mut runner)
            .expect("a sequence")
            .current();
        let case = Model::run_with_races(PES, KINDS[0].1, round, &raw);
        if let Err(reason) = session.check(round, &case) {
            found = Some((round, reason));
            break;
        }
    }
    session.end().ok();
    println!("{found:?}");
    assert!(
        found.is_some(),
        "{MOST} sequences with races left what the model says: this test would miss what fences are for"
    );
}

#[test]
fn a_sequence_that_is_given_is_replayed() {
    // Without one: every operation once, to see that the text survives.
    let text = std::env::var("NPUSHMEM_TEST_SEQUENCE").unwrap_or_else(|_| {
        let raw: Vec<Raw> = (0..op::COUNT as u8)
            .map(|what| Raw {
                what,
                actor: what,
                pe: what / 2,
                at: 600 * u16::from(what),
                here: 40 * u16::from(what),
                n: 33,
                value: 7 * u32::from(what),
            })
            .collect();
        as_text(1, 5, &raw)
    });
    let mut parts = text.splitn(3, ':');
    let kind = parts
        .next()
        .and_then(|name| KINDS.iter().position(|kind| kind.0 == name))
        .expect("NPUSHMEM_TEST_SEQUENCE begins with the kind of job");
    let seed: u64 = parts
        .next()
        .and_then(|seed| seed.parse().ok())
        .expect("NPUSHMEM_TEST_SEQUENCE has a seed");
    let raw: Vec<Raw> = parts
        .next()
        .unwrap_or_default()
        .split(',')
        .filter(|text| !text.is_empty())
        .map(|text| Raw::parse(text).unwrap_or_else(|| panic!("{text} is no operation")))
        .collect();
    let case = Model::run(PES, KINDS[kind].1, seed, &raw);
    assert_eq!(as_text(kind, seed, &raw), text);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut session = Session::start(kind);
    let found = session.check(seed, &case);
    let report = session.end().report();
    if let Err(reason) = found {
        panic!("{}", failure(kind, seed, &raw, &reason, &report));
    }
}
