//! The scenarios by name. Each prints what its test asserts; none asserts anything itself but what makes its own result meaningful.

use anyhow::{bail, ensure, Result};

use crate::faults;
use crate::golden;
use crate::reports;
use crate::sequence;
use crate::stand::Stand;

/// Byte that no pattern of [`pattern`] leaves in place by accident: fills what must stay untouched.
const UNTOUCHED: u8 = 0xEE;

/// Runs the scenario `name`.
pub fn run(name: &str, stand: &Stand) -> Result<()> {
    match name {
        "attach" => attach(stand),
        "move" => move_sweep(stand),
        "large" => large(stand),
        "scatter" => scatter(stand),
        "scalar" => scalar(stand),
        "signal" => signal(stand),
        "atomics" => atomics(stand),
        "hammer" => hammer(stand),
        "lock" => lock(stand),
        "neighbours" => neighbours(stand),
        "litmus" => litmus(stand),
        "barrier" => barrier(stand),
        "rows" => rows(stand),
        "batch" => batch(stand),
        "sizes" => reports::sizes(stand),
        "torn" => reports::plain(stand, "rp_torn", 2),
        "turns" => reports::plain(stand, "rp_turns", 3),
        "chunks" => reports::chunks(stand),
        "mixed" => reports::mixed(stand),
        "fence" => reports::fence(stand),
        "twice" => reports::refused(stand, "rp_twice"),
        "crowd" => reports::refused(stand, "st_attach"),
        "lonely" => reports::lonely(stand),
        "sequence" => sequence::sequence(stand),
        "golden" => golden::golden(stand),
        "fault" => faults::fault(stand),
        "victim" => faults::victim(stand),
        other => bail!("no scenario {other}"),
    }
}

pub(crate) fn pattern(pe: u64, round: u64, n: usize) -> Vec<u8> {
    (0..n as u64)
        .map(|i| ((i * 7 + pe * 31 + round * 13) % 199) as u8)
        .collect()
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect()
}

pub(crate) fn print(key: &str, value: impl std::fmt::Display) {
    println!("{key}={value}");
}

fn attach(s: &Stand) -> Result<()> {
    s.launch("st_attach", s.next(), 0, 0, 0)?;
    for core in 0..s.cores as usize {
        let words = s.results(8 * core, 6)?;
        ensure!(
            words[..5] == [s.me(), s.n_pes(), core as u64, u64::from(s.cores), 0],
            "core {core}: {words:?}"
        );
        print("mapped", u64::from(words[5] != 0));
    }
    Ok(())
}

/// Every size from 1 to `upto` in steps, at several alignments of both sides, with every form of put and get.
fn move_sweep(s: &Stand) -> Result<()> {
    let upto: usize = s.get("upto", 300)?;
    let step: usize = s.get("step", 1)?;
    let mut wrong = 0u64;
    let mut moved = 0u64;
    for k in 0..8u64 {
        let (get, ub) = (k & 1 != 0, k & 4 != 0);
        for (round, n) in (1..=upto).step_by(step).enumerate() {
            let at = (64 + (n * 5 + round) as u64 % 64, 64 + (n * 3) as u64 % 64);
            let mine = pattern(s.me(), round as u64, n);
            let clean = vec![UNTOUCHED; n + 256];
            let (source, target) = if get { (&s.a, &s.b) } else { (&s.b, &s.a) };
            let (source_at, target_at) = if get { (at.0, at.1) } else { (at.1, at.0) };
            s.world.write(target, 0, &clean)?;
            s.world.write(source, source_at as usize, &mine)?;
            s.world.barrier_all()?;
            s.launch_at("st_move", 1, at, s.next(), [n as u64, 1, k])?;
            s.world.barrier_all()?;
            let from = if get { s.next() } else { s.before() };
            let mut expected = clean.clone();
            expected[target_at as usize..][..n].copy_from_slice(&pattern(from, round as u64, n));
            let mut seen = vec![0; n + 256];
            s.world.read(target, 0, &mut seen)?;
            if seen != expected {
                wrong += 1;
                let first = (0..seen.len()).find(|&i| seen[i] != expected[i]);
                eprintln!("form {k} (ub {ub}, get {get}), {n} bytes, offsets {at:?}: first difference at {first:?}");
            }
            moved += 1;
            s.world.barrier_all()?;
        }
    }
    print("moved", moved);
    print("wrong", wrong);
    Ok(())
}

/// One transfer of `n` bytes by every core.
fn large(s: &Stand) -> Result<()> {
    let n: usize = s.get("n", 1 << 18)?;
    let k: u64 = s.get("k", 0)?;
    let all = n * s.cores as usize;
    let get = k & 1 != 0;
    let (source, target) = if get { (&s.a, &s.b) } else { (&s.b, &s.a) };
    s.world.write(source, 0, &pattern(s.me(), 1, all))?;
    s.world.barrier_all()?;
    s.launch("st_move", s.next(), n as u64, 1, k | 8)?;
    s.world.barrier_all()?;
    let mut seen = vec![0; all];
    s.world.read(target, 0, &mut seen)?;
    print(
        "wrong",
        u64::from(seen != pattern(if get { s.next() } else { s.before() }, 1, all)),
    );
    let stats = s.world.stats()?;
    print("requests", stats.data_requests);
    print("roce_bytes", stats.roce_bytes);
    print("mapped_bytes", stats.mapped_bytes);
    Ok(())
}

fn scatter(s: &Stand) -> Result<()> {
    let n: usize = s.get("n", 40)?;
    s.world.write(&s.b, 0, &pattern(s.me(), 2, n))?;
    s.world.barrier_all()?;
    s.launch("st_scatter", 0, n as u64, 3, 0)?;
    s.world.barrier_all()?;
    let mut wrong = 0u64;
    for pe in 0..s.n_pes() {
        let mut seen = vec![0; n];
        s.world.read(&s.a, pe as usize * n, &mut seen)?;
        wrong += u64::from(seen != pattern(pe, 2, n));
    }
    print("wrong", wrong);
    Ok(())
}

fn scalar(s: &Stand) -> Result<()> {
    let mut wrong = 0u64;
    for size in [1u64, 2, 4, 8] {
        let (n, m) = (50u64, 100 * s.me());
        s.launch("st_scalar", s.next(), n, m, size)?;
        s.world.barrier_all()?;
        let mask = if size == 8 {
            u64::MAX
        } else {
            (1 << (8 * size)) - 1
        };
        let words = s.results(0, n as usize + 1)?;
        wrong += (0..n)
            .filter(|&i| words[i as usize] != (i + m) & mask)
            .count() as u64
            + words[n as usize];
        let mut seen = vec![0u8; (n * size) as usize];
        s.world.read(&s.a, 0, &mut seen)?;
        for (i, value) in seen.chunks(size as usize).enumerate() {
            let mut wide = [0u8; 8];
            wide[..size as usize].copy_from_slice(value);
            wrong += u64::from(u64::from_le_bytes(wide) != (i as u64 + 100 * s.before()) & mask);
        }
        s.world.barrier_all()?;
    }
    print("wrong", wrong);
    Ok(())
}

fn signal(s: &Stand) -> Result<()> {
    let mut wrong = 0;
    for k in 0..5 {
        s.clear()?;
        s.world.barrier_all()?;
        s.launch_at(
            "st_signal",
            1,
            (0, 0),
            s.next(),
            [s.get("n", 1000)?, s.get("m", 20)?, k],
        )?;
        let words = s.results(0, 2)?;
        wrong += words[0] + words[1];
        s.world.barrier_all()?;
    }
    print("wrong", wrong);
    if let Some(counters) = s.world.sim_totals() {
        print("inline_writes", counters.nic.inline_writes);
    }
    Ok(())
}

/// The steps of `st_atomics` against what a word of the standard's atomics would hold.
fn atomics(s: &Stand) -> Result<()> {
    let mut wrong = 0u64;
    for k in 0..6u64 {
        for target in [s.me(), s.next()] {
            s.clear()?;
            let guard = 0x0102_0304_0506_0708u64;
            s.world.write(
                &s.a,
                0,
                bytemuck::bytes_of(&[if matches!(k, 0 | 3) { 0 } else { guard }, guard]),
            )?;
            s.world.barrier_all()?;
            for turn in 0..s.n_pes() {
                if turn == s.me() {
                    s.launch_at("st_atomics", 1, (0, 0), target, [0, 0, k])?;
                    let words = s.results(0, 14)?;
                    // fetch_add of -201 leaves -1: as many bits as the type has, widened as the kernel widens it.
                    let minus_one = match k {
                        1 | 2 => u64::from(u32::MAX),
                        _ => u64::MAX,
                    };
                    let expected = [0, 5, 5, 0, 13, 0, 14, 15, 100, 200, 200, 200, minus_one, 0];
                    if words != expected {
                        eprintln!("kind {k} on PE {target}: {words:?}, expected {expected:?}");
                        wrong += 1;
                    }
                }
                s.world.barrier_all()?;
            }
            let mut words = [0u32; 4];
            s.world.read(&s.a, 0, bytemuck::bytes_of_mut(&mut words))?;
            let low = guard as u32;
            let high = (guard >> 32) as u32;
            let expected = match k {
                0 | 3 => [u32::MAX, u32::MAX, low, high],
                1 | 4 => [u32::MAX, high, low, high],
                _ => [low, u32::MAX, low, high],
            };
            if words != expected {
                eprintln!("kind {k}: memory {words:x?}, expected {expected:x?}");
                wrong += 1;
            }
            s.world.barrier_all()?;
        }
    }
    print("wrong", wrong);
    Ok(())
}

/// All PEs and cores count on one word of PE `at`; each PE prints a digest of its tickets.
fn hammer(s: &Stand) -> Result<()> {
    let n: u64 = s.get("n", 1000)?;
    let k: u64 = s.get("k", 0)?;
    let at: u64 = s.get("at", 0)?;
    let words = (n * u64::from(s.cores)) as usize;
    ensure!(
        words < s.out.len(),
        "n={n} needs more results than there are"
    );
    s.launch("st_hammer", at, n, 0, k)?;
    s.world.barrier_all()?;
    let errors: u64 = s.results(words, s.cores as usize)?.iter().sum();
    print("errors", errors);
    let mut word = [0u8; 8];
    s.world.read(&s.a, 0, &mut word)?;
    print("counter", u64::from_le_bytes(word));
    if k <= 3 || k == 6 {
        // Tickets travel through the job's exchange, so that every PE can check that each came once.
        let mine = s.results(0, words)?;
        let all = s.world.exchange(bytemuck::cast_slice(&mine))?;
        let mut tickets: Vec<u64> = Vec::new();
        for part in &all {
            tickets.extend(words_of(part));
        }
        tickets.sort_unstable();
        let distinct = if k == 6 { 2 } else { 1 };
        let wrong = tickets
            .iter()
            .enumerate()
            .filter(|(i, ticket)| **ticket != (*i as u64) / distinct)
            .count();
        print("tickets", tickets.len());
        print("wrong", wrong);
    }
    Ok(())
}

fn lock(s: &Stand) -> Result<()> {
    let n: u64 = s.get("n", 100)?;
    s.launch("st_lock", 0, n, 0, 0)?;
    s.world.barrier_all()?;
    print(
        "errors",
        s.results(0, s.cores as usize)?.iter().sum::<u64>(),
    );
    let mut word = [0u8; 8];
    s.world.read(&s.a, 64, &mut word)?;
    print("counter", u64::from_le_bytes(word));
    Ok(())
}

fn neighbours(s: &Stand) -> Result<()> {
    let n: u64 = s.get("n", 200)?;
    let k: u64 = s.get("k", 0)?;
    s.launch("st_neighbours", 0, n, 0, k)?;
    s.world.barrier_all()?;
    let slots = s.n_pes() as usize * s.cores as usize;
    let width = [4, 8, 1][k as usize];
    let mut bytes = vec![0u8; slots * width];
    s.world.read(&s.a, 0, &mut bytes)?;
    let mut expected = n.to_le_bytes().to_vec();
    expected.truncate(width);
    print(
        "lost",
        bytes.chunks(width).filter(|slot| *slot != expected).count(),
    );
    print(
        "errors",
        s.results(0, s.cores as usize)?.iter().sum::<u64>(),
    );
    Ok(())
}

/// A litmus test: a kernel, its variant, the engine and the cores that it takes.
struct Litmus {
    name: &'static str,
    kernel: &'static str,
    engine: u64,
    variant: u64,
    cores: u32,
}

const MAPPED: u64 = 1;
const ROCE: u64 = 2;

/// What the memory model promises, and (`witness_*`) what it does not: the same without the fence.
const LITMUS: &[Litmus] = &[
    Litmus {
        name: "put_fence_flag_mapped",
        kernel: "st_message",
        engine: MAPPED,
        variant: 0,
        cores: 1,
    },
    Litmus {
        name: "put_fence_flag_roce",
        kernel: "st_message",
        engine: ROCE,
        variant: 0,
        cores: 1,
    },
    Litmus {
        name: "one_queue_pair_in_order",
        kernel: "st_message",
        engine: ROCE,
        variant: 1,
        cores: 1,
    },
    Litmus {
        name: "put_signal_mapped",
        kernel: "st_message",
        engine: MAPPED,
        variant: 2,
        cores: 1,
    },
    Litmus {
        name: "put_signal_roce",
        kernel: "st_message",
        engine: ROCE,
        variant: 2,
        cores: 1,
    },
    Litmus {
        name: "put_quiet_atomic_mapped",
        kernel: "st_message",
        engine: MAPPED,
        variant: 3,
        cores: 1,
    },
    Litmus {
        name: "put_quiet_atomic_roce",
        kernel: "st_message",
        engine: ROCE,
        variant: 3,
        cores: 1,
    },
    Litmus {
        name: "mapped_fence_roce",
        kernel: "st_message",
        engine: MAPPED,
        variant: 4,
        cores: 1,
    },
    Litmus {
        name: "roce_fence_mapped",
        kernel: "st_message",
        engine: ROCE,
        variant: 6,
        cores: 1,
    },
    Litmus {
        name: "two_cores_quiet",
        kernel: "st_message",
        engine: ROCE,
        variant: 8,
        cores: 2,
    },
    Litmus {
        name: "put_signal_ub_mapped",
        kernel: "st_message",
        engine: MAPPED,
        variant: 10,
        cores: 1,
    },
    Litmus {
        name: "put_signal_ub_roce",
        kernel: "st_message",
        engine: ROCE,
        variant: 10,
        cores: 1,
    },
    Litmus {
        name: "put_fence_pe_signal_mapped",
        kernel: "st_message",
        engine: MAPPED,
        variant: 11,
        cores: 1,
    },
    Litmus {
        name: "put_fence_pe_signal_roce",
        kernel: "st_message",
        engine: ROCE,
        variant: 11,
        cores: 1,
    },
    Litmus {
        name: "open_read_fence",
        kernel: "st_open_read",
        engine: ROCE,
        variant: 0,
        cores: 1,
    },
    Litmus {
        name: "buffering_quiet_mapped",
        kernel: "st_buffering",
        engine: MAPPED,
        variant: 0,
        cores: 1,
    },
    Litmus {
        name: "buffering_quiet_roce",
        kernel: "st_buffering",
        engine: ROCE,
        variant: 0,
        cores: 1,
    },
    Litmus {
        name: "witness_put_flag_mapped",
        kernel: "st_message",
        engine: MAPPED,
        variant: 1,
        cores: 1,
    },
    // One core's mapped data and roce flag both go through its MTE3 queue, in order; the witness takes two cores.
    Litmus {
        name: "mapped_then_roce_by_one_core",
        kernel: "st_message",
        engine: MAPPED,
        variant: 5,
        cores: 1,
    },
    Litmus {
        name: "mapped_quiet_roce_two_cores",
        kernel: "st_message",
        engine: MAPPED,
        variant: 12,
        cores: 2,
    },
    Litmus {
        name: "witness_mapped_roce",
        kernel: "st_message",
        engine: MAPPED,
        variant: 13,
        cores: 2,
    },
    Litmus {
        name: "witness_roce_mapped",
        kernel: "st_message",
        engine: ROCE,
        variant: 7,
        cores: 1,
    },
    Litmus {
        name: "witness_two_cores",
        kernel: "st_message",
        engine: ROCE,
        variant: 9,
        cores: 2,
    },
    Litmus {
        name: "witness_open_read",
        kernel: "st_open_read",
        engine: ROCE,
        variant: 1,
        cores: 1,
    },
    Litmus {
        name: "witness_buffering_roce",
        kernel: "st_buffering",
        engine: ROCE,
        variant: 1,
        cores: 1,
    },
];

/// All litmus tests, between PE 0 and PE 1. The chaos seed belongs to the process, so a seed is a job.
fn litmus(s: &Stand) -> Result<()> {
    let (n, rounds): (u64, u64) = (s.get("n", 64)?, s.get("m", 10)?);
    for test in LITMUS {
        s.clear()?;
        s.world.barrier_all()?;
        let nmk = if test.kernel == "st_buffering" {
            [rounds, 0, test.variant]
        } else {
            [n, rounds, test.variant]
        };
        s.start(test.kernel, test.cores, (0, 0), test.engine, 1, nmk)?;
        let broken = if test.kernel == "st_buffering" {
            let words = s.results(0, rounds as usize + 1)?;
            ensure!(
                words[rounds as usize] == 0,
                "{}: error {}",
                test.name,
                words[rounds as usize]
            );
            let all = s
                .world
                .exchange(bytemuck::cast_slice(&words[..rounds as usize]))?;
            let parts: Vec<Vec<u64>> = all.iter().map(|part| words_of(part)).collect();
            // Round i: not both PEs may have read their own word from before the other's write of that round.
            (0..rounds)
                .filter(|&i| parts[..2].iter().all(|seen| seen[i as usize] <= i))
                .count() as u64
        } else {
            let words = s.results(0, 3)?;
            ensure!(words[2] == 0, "{}: error {}", test.name, words[2]);
            // The receiver counts in message passing, PE 0 in the open READ; the other PE leaves zeros.
            let all = s.world.exchange(bytemuck::cast_slice(&words[..2]))?;
            let sums = all
                .iter()
                .map(|part| words_of(part))
                .fold([0, 0], |sum, part| [sum[0] + part[0], sum[1] + part[1]]);
            ensure!(
                sums[1] == rounds,
                "{}: {} rounds of {rounds}",
                test.name,
                sums[1]
            );
            sums[0]
        };
        print(test.name, broken);
    }
    Ok(())
}

fn barrier(s: &Stand) -> Result<()> {
    let (n, k): (u64, u64) = (s.get("n", 100)?, s.get("k", 0)?);
    // sync_pe pairs neighbours: an odd PE out pairs with nobody.
    let partner = s.me() ^ 1;
    if k != 2 || partner < s.n_pes() {
        s.launch("st_barrier", partner, n, 0, k)?;
    }
    let cores = s.cores as usize;
    print("behind", s.results(0, cores)?.iter().sum::<u64>());
    print("errors", s.results(cores, cores)?.iter().sum::<u64>());
    Ok(())
}

fn rows(s: &Stand) -> Result<()> {
    let (n, m): (usize, usize) = (s.get("n", 500)?, s.get("m", 256)?);
    s.world.write(&s.a, 0, &pattern(s.me(), 3, n * m))?;
    s.world.barrier_all()?;
    s.world.reset_stats()?;
    s.launch("st_rows", s.next(), n as u64, m as u64, s.get("k", 32)?)?;
    s.world.barrier_all()?;
    let mut seen = vec![0; n * m];
    s.world.read(&s.b, 0, &mut seen)?;
    print("wrong", u64::from(seen != pattern(s.next(), 3, n * m)));
    let stats = s.world.stats()?;
    print("requests", stats.data_requests);
    print("sync_requests", stats.sync_requests);
    print("doorbells", stats.sq_doorbells);
    Ok(())
}

/// The cost model's first line: 32 puts to one PE in one batch.
fn batch(s: &Stand) -> Result<()> {
    s.world.reset_stats()?;
    s.launch("st_bench", s.next(), 8, s.get("m", 32)?, 11)?;
    let stats = s.world.stats()?;
    print("requests", stats.data_requests);
    print("doorbells", stats.sq_doorbells);
    print("ring_copies", stats.ring_copies);
    print("polls", stats.polls);
    Ok(())
}
