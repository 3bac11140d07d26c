//! Latency, bandwidth and message rate of requests that leave by verbs, driven as a kernel drives them: a ring, a doorbell, a completion ring.
//!
//! Prints `name=value` lines; `make bench-rdma` runs it beside perftest's ib_write_lat, ib_write_bw and ib_atomic_lat and prints the ratios.
//! Two threads play two hosts on the devices `NPUSIM_VERBS_DEVICE` and `NPUSHMEM_TEST_PEER_DEVICE`; while one waits it drives its own NIC, so
//! there are two pollers, as with perftest.
#![allow(missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Memory, Queue, Shape, PATIENCE, SIGNALED, SMALL};
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::{access, MrKeys, Nic, NicConfig, Wire};
use npushmem_roce::verbs::VerbsConfig;
use npushmem_roce::wqe::{DataSegment, SendWqe};

/// Registered bytes of each end.
const BYTES: usize = 2 << 20;
/// Where payloads begin.
const DATA: usize = 4096;
/// Requests under way while bandwidth is measured.
const WINDOW: u64 = 32;
/// One completion for so many requests.
const SIGNAL_EACH: u64 = 8;
/// Payloads of the bandwidth figures, bytes.
const SIZES: [usize; 3] = [4096, 65536, 1 << 20];

struct End {
    nic: Arc<Nic>,
    memory: Memory,
    keys: MrKeys,
    queue: Queue,
}

impl End {
    fn new(variable: &str) -> End {
        let device =
            std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names an RDMA device"));
        let wire = Wire::Verbs(VerbsConfig {
            device: Some(device),
            gid: None,
        });
        let nic = Nic::open(NicConfig {
            wire,
            ..NicConfig::default()
        })
        .expect("the device opens");
        let memory = Memory::new(BYTES);
        let all = access::LOCAL_WRITE
            | access::REMOTE_WRITE
            | access::REMOTE_READ
            | access::REMOTE_ATOMIC;
        let keys = nic
            .register_mr(memory.mr(all))
            .expect("memory is registered");
        let shape = Shape {
            sq_depth: 128,
            cq_depth: 128,
            ..SMALL
        };
        let queue = Queue::new(&nic, shape);
        nic.bind_mr(queue.numbers.qpn, keys.lkey)
            .expect("the queue pair exists");
        End {
            nic,
            memory,
            keys,
            queue,
        }
    }

    fn segment(&self, offset: usize, len: usize) -> DataSegment {
        DataSegment::new(self.memory.va() + offset as u64, len as u32, self.keys.lkey)
    }

    /// Waits for a completion and drives the NIC meanwhile.
    fn complete(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(cqe) = self.queue.poll() {
                assert_eq!(cqe.status(), Status::Ok);
                return;
            }
            self.nic.progress();
            assert!(Instant::now() < deadline, "{:?}", self.nic.diagnostics());
        }
    }

    fn await_word(&mut self, value: u64) {
        let deadline = Instant::now() + PATIENCE;
        while self.memory.get(0) != value {
            assert!(Instant::now() < deadline, "{:?}", self.nic.diagnostics());
            std::hint::spin_loop();
        }
    }
}

fn ping(end: &mut End, peer: (u32, u64), value: u64) {
    let wqe = SendWqe::write_inline(peer.0, peer.1, &value.to_le_bytes()).expect("8 bytes");
    end.queue.submit(wqe.flagged(SIGNALED));
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Half the time of a round trip of 8-byte WRITEs, as ib_write_lat counts it, microseconds.
fn write_latency(near: &mut End, far: &mut End, rounds: u64) -> f64 {
    let (to_far, to_near) = (
        (far.keys.rkey, far.memory.va()),
        (near.keys.rkey, near.memory.va()),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                far.await_word(round);
                ping(far, to_near, round);
                far.complete();
            }
        });
        let times = (1..=rounds).map(|round| {
            let begin = Instant::now();
            ping(near, to_far, round);
            near.complete();
            near.await_word(round);
            begin.elapsed() / 2
        });
        median(times.collect())
    })
}

/// Time of one fetch-add from doorbell to completion, microseconds.
fn atomic_latency(near: &mut End, far: &End, rounds: u64) -> f64 {
    let times = (0..rounds).map(|_| {
        let begin = Instant::now();
        let result = near.memory.va() + 64;
        let wqe = SendWqe::fetch_add(
            far.keys.rkey,
            far.memory.va() + 128,
            result,
            near.keys.lkey,
            1,
        );
        near.queue.submit(wqe.flagged(SIGNALED));
        near.complete();
        begin.elapsed()
    });
    median(times.collect())
}

/// WRITEs of `len` bytes a second, with a full window.
fn write_rate(near: &mut End, far: &End, len: usize, count: u64) -> f64 {
    let segment = [near.segment(DATA, len)];
    let plain = SendWqe::write(far.keys.rkey, far.memory.va() + DATA as u64, &segment);
    let count = count.next_multiple_of(SIGNAL_EACH);
    let (mut sent, mut done) = (0, 0);
    let begin = Instant::now();
    while done < count {
        while sent < count && sent - done < WINDOW {
            for n in 1..=SIGNAL_EACH {
                near.queue.post(if n == SIGNAL_EACH {
                    plain.flagged(SIGNALED)
                } else {
                    plain
                });
            }
            near.queue.ring();
            sent += SIGNAL_EACH;
        }
        near.complete();
        done += SIGNAL_EACH;
    }
    count as f64 / begin.elapsed().as_secs_f64()
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000_u64);
    let (mut near, mut far) = (
        End::new("NPUSIM_VERBS_DEVICE"),
        End::new("NPUSHMEM_TEST_PEER_DEVICE"),
    );
    near.queue.connect(&far.queue.address());
    far.queue.connect(&near.queue.address());
    println!(
        "write_lat_us={:.2}",
        write_latency(&mut near, &mut far, rounds)
    );
    println!(
        "atomic_lat_us={:.2}",
        atomic_latency(&mut near, &far, rounds)
    );
    for len in SIZES {
        let count = (rounds * 65536 / len as u64).clamp(64, rounds * 2);
        let rate = write_rate(&mut near, &far, len, count);
        println!("write_bw_{len}_mbs={:.2}", rate * len as f64 / 1e6);
    }
    println!(
        "write_rate_8_per_s={:.0}",
        write_rate(&mut near, &far, 8, rounds * 8)
    );
}
