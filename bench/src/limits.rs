//! What the machine does without npushmem: the limits that figures are compared with. Each function returns seconds a call, the mean of many.
//!
//! They run in the process of PE 0 between the measurements, so that figure and limit see the same machine a moment apart.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Bytes of a work request.
const REQUEST: usize = 64;
/// Work requests that a ring of the limit holds: as many as a queue pair has by default.
const RING: usize = 512;
/// Looks at a flag before the processor is given away.
const LOOKS: u32 = 100;

fn each(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    for i in 0..calls {
        call(i);
    }
    begin.elapsed().as_secs_f64() / calls as f64
}

/// Ordinary memory that a memcpy goes between, touched before.
pub struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Buffers {
    /// Two buffers of `bytes`.
    pub fn new(bytes: usize) -> Buffers {
        Buffers {
            from: vec![1; bytes],
            to: vec![2; bytes],
        }
    }

    /// A memcpy of all of it.
    pub fn copy(&mut self, calls: u64) -> f64 {
        each(calls, |_| {
            let (from, to) = black_box((&self.from, &mut self.to));
            to.copy_from_slice(from);
        })
    }
}

/// What a small request must move at least: a 64-byte request into a ring, and 8 bytes of payload.
pub fn request(calls: u64) -> f64 {
    let mut ring = vec![[0_u8; REQUEST]; RING];
    let mut target = vec![0_u64; RING];
    let mut request = [7_u8; REQUEST];
    each(calls, |i| {
        let slot = i as usize % RING;
        request[..8].copy_from_slice(&i.to_ne_bytes());
        *black_box(&mut ring[slot]) = *black_box(&request);
        *black_box(&mut target[slot]) = i;
    })
}

/// An 8-byte store.
pub fn store(calls: u64) -> f64 {
    let word = AtomicU64::new(0);
    each(calls, |i| black_box(&word).store(i, Ordering::Release))
}

/// An 8-byte load.
pub fn load(calls: u64) -> f64 {
    let word = AtomicU64::new(0);
    each(calls, |_| {
        black_box(black_box(&word).load(Ordering::Acquire));
    })
}

/// A processor's fetch-and-add.
pub fn fetch_add(calls: u64) -> f64 {
    let word = AtomicU64::new(0);
    each(calls, |_| {
        black_box(black_box(&word).fetch_add(1, Ordering::AcqRel));
    })
}

/// A flag that goes from one processor to another through memory; one way.
pub fn flag(calls: u64) -> f64 {
    /// Apart by more than a prefetched pair of lines.
    #[repr(align(256))]
    struct Line(AtomicU64);
    let (there, back) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    let wait = |line: &Line, value: u64| {
        let mut looks = 0;
        while line.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=calls {
                wait(&there, i);
                back.0.store(i, Ordering::Release);
            }
        });
        each(calls, |i| {
            there.0.store(i + 1, Ordering::Release);
            wait(&back, i + 1);
        }) / 2.0
    })
}

/// A thread that is woken, and wakes its waker: what a launch and its synchronize need at least.
pub fn wake(calls: u64) -> f64 {
    let turn = Mutex::new(0_u64);
    let changed = Condvar::new();
    let step = |from: u64| {
        let mut value = turn.lock().unwrap_or_else(PoisonError::into_inner);
        while *value != from {
            value = changed.wait(value).unwrap_or_else(PoisonError::into_inner);
        }
        *value += 1;
        drop(value);
        changed.notify_all();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| (0..calls).for_each(|i| step(2 * i + 1)));
        let mut samples: Vec<f64> = Vec::with_capacity(calls as usize);
        for i in 0..calls {
            let begin = Instant::now();
            step(2 * i);
            let mut value = turn.lock().unwrap_or_else(PoisonError::into_inner);
            while *value != 2 * i + 2 {
                value = changed.wait(value).unwrap_or_else(PoisonError::into_inner);
            }
            drop(value);
            samples.push(begin.elapsed().as_secs_f64());
        }
        crate::stats::Summary::of(&samples).median
    })
}
