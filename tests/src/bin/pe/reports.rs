//! The scenarios of tests/reports.rs: faults that users of similar libraries reported. Called by scenario.rs and main.rs.

use std::collections::HashMap;

use anyhow::{ensure, Context as _, Result};
use npushmem::{Args, World};
use npushmem_tests::kernels;

use crate::scenario::{pattern, print};
use crate::stand::Stand;

/// Every size from 1 to `upto` in steps of `step` at 64 alignments. Constants and places are those of reports.cpp, `transfer`.
pub fn sizes(s: &Stand) -> Result<()> {
    const ALIGNMENTS: usize = 64;
    const GUARD: usize = 16;
    const SLOT: usize = 4096 + 4 * 64;
    let (upto, step): (usize, usize) = (s.get("upto", 4096)?, s.get("step", 1)?);
    let mut target = vec![0xEE; ALIGNMENTS * SLOT];
    s.world.write(&s.a, 0, &target)?;
    s.world.barrier_all()?;
    let mut all = vec![0; (ALIGNMENTS + 1) * SLOT];
    let (mut wrong, mut errors, mut transfers) = (0u64, 0, 0u64);
    for size in (1..=upto).step_by(step) {
        let source = pattern(s.me(), size as u64, SLOT);
        s.world.write(&s.b, 0, &source)?;
        s.launch("rp_sizes", s.next(), size as u64, 0, 0)?;
        errors += s.results(0, s.cores as usize)?.iter().sum::<u64>();
        s.world.read(&s.b, 0, &mut all)?;
        for to in 0..ALIGNMENTS {
            let from = (size * 5 + to * 11) % ALIGNMENTS;
            let back = (size * 3 + to * 7) % ALIGNMENTS;
            let at = to * SLOT + ALIGNMENTS + to;
            // What the next PE holds now, by this PE's own account: nobody else writes there.
            target[at..at + size].copy_from_slice(&source[from..from + size]);
            let expected = &target[at - GUARD..at + size + GUARD];
            let seen = &all[(to + 1) * SLOT + back..][..expected.len()];
            transfers += 1;
            if seen != expected {
                wrong += 1;
                let first = (0..seen.len()).find(|&i| seen[i] != expected[i]);
                eprintln!(
                    "{size} bytes from {from} to {to}: byte {first:?} of {}",
                    seen.len()
                );
            }
        }
    }
    print("transfers", transfers);
    print("wrong", wrong);
    print("errors", errors);
    Ok(())
}

/// A kernel between PE 0 and PE 1 whose first words of results are counts of what went wrong, the last the error.
pub fn plain(s: &Stand, kernel: &str, words: usize) -> Result<()> {
    let (n, m, k): (u64, u64, u64) = (s.get("n", 0)?, s.get("m", 0)?, s.get("k", 0)?);
    s.launch(kernel, s.get("pe", 1)?, n, m, k)?;
    print("wrong", s.results(0, words)?.iter().sum::<u64>());
    Ok(())
}

pub fn chunks(s: &Stand) -> Result<()> {
    let (n, m): (u64, u64) = (s.get("n", 1 << 20)?, s.get("m", 8)?);
    let pattern: Vec<u64> = (0..n * m / 8)
        .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    s.world.write(&s.b, 0, bytemuck::cast_slice(&pattern))?;
    s.world.barrier_all()?;
    s.launch("rp_chunks", 1, n, m, 0)?;
    let mut wrong: u64 = s.results(0, 2)?.iter().sum();
    if s.me() == 1 {
        let mut seen = vec![0u8; (n * m) as usize];
        s.world.read(&s.a, 0, &mut seen)?;
        wrong += u64::from(seen != bytemuck::cast_slice::<u64, u8>(&pattern));
    }
    print("wrong", wrong);
    Ok(())
}

pub fn mixed(s: &Stand) -> Result<()> {
    s.launch("rp_mixed", s.next(), 0, s.get("m", 50)?, 0)?;
    print("wrong", s.results(0, 2)?.iter().sum::<u64>());
    Ok(())
}

pub fn fence(s: &Stand) -> Result<()> {
    s.launch("rp_fence", 1, 0, 0, 0)?;
    let words = s.results(0, 2)?;
    print("doorbells", words[0]);
    print("error", words[1]);
    Ok(())
}

/// Launches a kernel whose failure is what the test looks at.
pub fn refused(s: &Stand, kernel: &str) -> Result<()> {
    let blocks = s.get("blocks", 1)?;
    match s.launch_at(kernel, blocks, (0, 0), s.next(), [0; 3]) {
        Ok(()) => print("result", "ok"),
        Err(error) => print("result", error.to_string().replace('\n', " ")),
    }
    s.world.recover()?;
    s.launch("st_attach", s.next(), 0, 0, 0)?;
    Ok(())
}

/// PE 0 allocates and frees before the others may begin to: with anything collective in it neither side would go on.
pub fn lonely(s: &Stand) -> Result<()> {
    let turn = || -> Result<()> {
        let buffers = (0..10)
            .map(|i| s.world.alloc::<u64>(i * 100))
            .collect::<Result<Vec<_>, _>>()?;
        let after = s.world.alloc_zeroed::<u8>(1000)?;
        ensure!(
            buffers[0].is_empty() && buffers[0].addr() == 0,
            "an allocation of nothing"
        );
        drop(buffers);
        drop(after);
        Ok(())
    };
    if s.me() == 0 {
        turn()?;
    }
    s.world.exchange(b"PE 0 is done")?;
    if s.me() != 0 {
        turn()?;
    }
    s.world.barrier_all()?;
    Ok(())
}

/// Descriptors, threads and mappings of this process.
fn resources() -> Result<[usize; 3]> {
    let count = |path: &str| {
        std::fs::read_dir(path)
            .map(Iterator::count)
            .with_context(|| path.to_owned())
    };
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    Ok([
        count("/proc/self/fd")?,
        count("/proc/self/task")?,
        maps.lines().count(),
    ])
}

/// Joins and leaves the job `rounds` times, with a kernel in between; prints the most that was in use in the first quarter and at the end.
pub fn again(args: &HashMap<String, String>) -> Result<()> {
    let rounds: usize = args.get("rounds").map_or(Ok(100), |text| text.parse())?;
    let mut early = [0; 3];
    let mut last = [0; 3];
    for round in 0..rounds {
        let world = World::init()?;
        let data = world.alloc_zeroed::<u64>(1 << 12)?;
        world.enable_device(2)?;
        let module = world.load(&kernels::SELFTEST)?;
        let kernel = module.function("st_barrier")?;
        world.barrier_all()?;
        let out = data.addr() + (1 << 14);
        let launch_args = Args::new()
            .ctx()
            .ptr(&data)
            .u64(0)
            .u64(out)
            .u64(1 + round as u64 % 2)
            .u64(0)
            .u64(3)
            .u64(0)
            .u64(0);
        world.launch(&kernel, 2, &launch_args)?;
        world.synchronize()?;
        let mut words = [0; 4];
        world.read(&data, 1 << 11, &mut words)?;
        ensure!(words == [0; 4], "round {round}: {words:?}");
        world.barrier_all()?;
        drop((kernel, module, data));
        world.finalize()?;
        last = resources()?;
        if round < rounds / 4 {
            early = std::array::from_fn(|i| last[i].max(early[i]));
        }
    }
    for (i, what) in ["fds", "threads", "maps"].into_iter().enumerate() {
        print(&format!("{what}_early"), early[i]);
        print(&format!("{what}_last"), last[i]);
    }
    Ok(())
}
