//! How fast the NIC is in inline mode: numbers to read, not to assert. `cargo test -p npushmem-roce --release --test rate -- --ignored --nocapture`

mod common;

use std::time::{Duration, Instant};

use common::*;
use npushmem_roce::cqe::Status;
use npushmem_roce::nic::NicConfig;
use npushmem_roce::wqe::SendWqe;

const DEEP: Shape = Shape {
    sq_depth: 512,
    cq_depth: 512,
    ..SMALL
};
const BATCH: usize = 32;
const ROUNDS: usize = 100_000;

/// Posts batches of one request, the last signaled, one doorbell a batch; requests a second.
fn rate(queue: &mut Queue, request: SendWqe) -> f64 {
    let mut batch = [request; BATCH];
    batch[BATCH - 1] = request.flagged(SIGNALED);
    let start = Instant::now();
    for round in 0..ROUNDS {
        queue.post_batch(&batch);
        queue.ring();
        assert_eq!(queue.peek().expect("executed inline").status(), Status::Ok);
        if round % 64 == 0 {
            queue.ring_consumer();
        }
    }
    (BATCH * ROUNDS) as f64 / start.elapsed().as_secs_f64()
}

#[test]
#[ignore = "a measurement"]
fn batched_small_requests() {
    let (here, mut queue, there, _far) = pair(&NicConfig::default(), DEEP);
    let million = |per_second: f64| per_second / 1e6;
    let inline = SendWqe::write_inline(there.keys.rkey, there.at(0), &[1; 8]).unwrap();
    println!(
        "WRITE 8 B inline  {:6.1} M/s",
        million(rate(&mut queue, inline))
    );
    let write = SendWqe::write(there.keys.rkey, there.at(0), &[here.segment(0, 8)]);
    println!(
        "WRITE 8 B         {:6.1} M/s",
        million(rate(&mut queue, write))
    );
    let read = SendWqe::read(there.keys.rkey, there.at(0), &[here.segment(0, 8)]);
    println!(
        "READ 8 B          {:6.1} M/s",
        million(rate(&mut queue, read))
    );
    let row = SendWqe::read(there.keys.rkey, there.at(0), &[here.segment(0, 256)]);
    println!(
        "READ 256 B        {:6.1} M/s",
        million(rate(&mut queue, row))
    );
    let add = SendWqe::fetch_add(there.keys.rkey, there.at(0), here.at(0), here.keys.lkey, 1);
    println!(
        "fetch-add         {:6.1} M/s",
        million(rate(&mut queue, add))
    );
}

#[test]
#[ignore = "a measurement"]
fn one_blocking_small_write() {
    let (_here, mut queue, there, _far) = pair(&NicConfig::default(), DEEP);
    let write = SendWqe::write_inline(there.keys.rkey, there.at(0), &[1; 8]).unwrap();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        assert_eq!(queue.run(write), Status::Ok);
    }
    println!("blocking WRITE 8 B {:?}", start.elapsed() / ROUNDS as u32);
}

#[test]
#[ignore = "a measurement"]
fn one_long_write_against_memcpy() {
    const LEN: usize = 1 << 20;
    let (_here, mut queue, there, far) = pair(&NicConfig::default(), DEEP);
    let (source, target) = (Memory::new(LEN), Memory::new(LEN));
    let from = queue.nic.register_mr(source.mr(7)).unwrap();
    let to = there.nic.register_mr(target.mr(7)).unwrap();
    queue.nic.bind_mr(queue.numbers.qpn, from.lkey).unwrap();
    there.nic.bind_mr(far.numbers.qpn, to.lkey).unwrap();
    let segment = npushmem_roce::wqe::DataSegment::new(source.va(), LEN as u32, from.lkey);
    let write = SendWqe::write(to.rkey, target.va(), &[segment]);
    let mut best = [Duration::MAX; 2];
    for _ in 0..300 {
        let start = Instant::now();
        assert_eq!(queue.run(write), Status::Ok);
        best[0] = best[0].min(start.elapsed());
        let start = Instant::now();
        // SAFETY: both mappings have this many bytes.
        unsafe { std::ptr::copy_nonoverlapping(source.ptr(0), target.ptr(0), LEN) };
        best[1] = best[1].min(start.elapsed());
    }
    let ratio = best[1].as_secs_f64() / best[0].as_secs_f64();
    println!(
        "WRITE 1 MiB {:?}, memcpy {:?}, {ratio:.2} of memcpy's rate",
        best[0], best[1]
    );
}
