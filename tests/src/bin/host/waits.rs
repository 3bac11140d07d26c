//! Scenarios of signals, waits in all forms, and locks.

use anyhow::{ensure, Result};
use npushmem::{Cmp, SignalOp, World};

use crate::Arguments;

/// Rows go round the ring, each with a signal that says it has come; then every PE adds to PE 0's signal.
pub fn signals(world: &World) -> Result<()> {
    const ROUNDS: u64 = 200;
    let (row, flag) = (world.alloc::<u64>(40)?, world.alloc_one::<u64>()?);
    let (sum, back) = (world.alloc_one::<u64>()?, world.alloc_one::<u64>()?);
    let ctx = world.ctx();
    world.barrier_all()?;
    let before = u64::from(world.ring(-1).number());
    for round in 1..=ROUNDS {
        let data: Vec<u64> = (0..40)
            .map(|i| u64::from(world.my_pe()) << 32 | round << 8 | i)
            .collect();
        if round % 2 == 0 {
            ctx.put_signal(&row, &data, &flag, round, SignalOp::Set, world.ring(1))?;
        } else {
            ctx.nbi(|nbi| nbi.put_signal(&row, &data, &flag, round, SignalOp::Set, world.ring(1)))?;
        }
        ensure!(world.signal_wait_until(&flag, Cmp::Ge, round)? == round);
        let expected: Vec<u64> = (0..40).map(|i| before << 32 | round << 8 | i).collect();
        ensure!(world.to_vec(&row)? == expected, "round {round}");
        // The one before may write the next row.
        ctx.signal_set(&back, round, world.ring(-1))?;
        world.wait_until(&back, Cmp::Eq, round)?;
    }
    for _ in 0..ROUNDS {
        ctx.signal_add(&sum, 1, 0)?;
    }
    ctx.put_signal(row.slice(..0)?, &[], &sum, 5, SignalOp::Add, 0)?;
    if world.my_pe() == 0 {
        let all = u64::from(world.n_pes()) * (ROUNDS + 5);
        ensure!(world.signal_wait_until(&sum, Cmp::Ge, all)? == all);
        ensure!(world.signal_fetch(&sum)? == all);
    }
    world.barrier_all()?;
    Ok(())
}

/// Every form of wait and test, on variables that the other PEs set.
pub fn forms(world: &World) -> Result<()> {
    const N: usize = 12;
    let vars = world.alloc_zeroed::<i64>(N)?;
    let small = world.alloc_zeroed::<u32>(2)?;
    let ctx = world.ctx();
    world.barrier_all()?;
    let values: Vec<i64> = (0..N as i64).map(|i| 10 + i).collect();
    let mut excluded = vec![false; N];
    excluded[3] = true;
    // Nothing is set: tests say so, and nobody to wait for ends at once.
    ensure!(!world.test_all(&vars, &[], Cmp::Ne, 0)?);
    ensure!(world.test_any(&vars, &[], Cmp::Ne, 0)?.is_none());
    ensure!(world.test_some(&vars, &[], Cmp::Ne, 0)?.is_empty());
    ensure!(world
        .wait_until_any(&vars, &[true; N], Cmp::Eq, 1)?
        .is_none());
    ensure!(world
        .wait_until_some(vars.slice(..0)?, &[], Cmp::Eq, 1)?
        .is_empty());
    world.wait_until_all(&vars, &[true; N], Cmp::Eq, 1)?;
    world.on_all()?.barrier()?;
    // The next PE's variables are set one by one, the excluded one never.
    for i in (0..N).filter(|i| *i != 3) {
        ctx.p(vars.at(i)?, values[i], world.ring(1))?;
    }
    world.wait_until_all_vector(&vars, &excluded, Cmp::Eq, &values)?;
    let mut found = [false; N];
    while found.iter().filter(|found| **found).count() < N - 1 {
        let taken: Vec<bool> = (0..N).map(|i| found[i] || excluded[i]).collect();
        let i = world
            .wait_until_any_vector(&vars, &taken, Cmp::Ge, &values)?
            .expect("some are left");
        ensure!(!taken[i]);
        found[i] = true;
    }
    let some = world.wait_until_some(&vars, &excluded, Cmp::Gt, 15)?;
    ensure!(some == [6, 7, 8, 9, 10, 11], "{some:?}");
    ensure!(world.test_all_vector(&vars, &excluded, Cmp::Le, &values)?);
    ensure!(world.test_some_vector(&vars, &[], Cmp::Lt, &values)? == [3]);
    ensure!(world.test_any_vector(&vars, &[], Cmp::Ne, &values)? == Some(3));
    ensure!(world.wait_until_some_vector(&vars, &[], Cmp::Lt, &values)? == [3]);
    ensure!(world.wait_until(vars.at(4)?, Cmp::Lt, 15)? == 14);
    ctx.p(small.at(1)?, 9, world.ring(1))?;
    ensure!(world.wait_until(small.at(1)?, Cmp::Gt, 8)? == 9);
    ensure!(world.test(small.at(0)?, Cmp::Eq, 0)? && !world.test(small.at(1)?, Cmp::Ne, 9)?);
    world.barrier_all()?;
    Ok(())
}

/// A counter that only the lock protects, read and written in two halves.
pub fn locks(world: &World, args: &Arguments) -> Result<()> {
    let rounds: u64 = args.get("rounds", 200)?;
    let lock = world.alloc_lock()?;
    let counter = world.alloc_zeroed::<u64>(2)?;
    let ctx = world.ctx();
    world.barrier_all()?;
    for round in 0..rounds {
        let held = if round % 3 == 0 {
            loop {
                if let Some(held) = world.test_lock(&lock)? {
                    break held;
                }
                std::thread::yield_now();
            }
        } else {
            world.set_lock(&lock)?
        };
        let (mut now, last) = ([0; 2], world.n_pes() - 1);
        ctx.get(&mut now, &counter, last)?;
        ensure!(now[0] == now[1], "{now:?}: somebody else was in");
        ctx.p(counter.at(0)?, now[0] + 1, last)?;
        std::thread::yield_now();
        ctx.p(counter.at(1)?, now[0] + 1, last)?;
        drop(held);
    }
    world.barrier_all()?;
    ensure!(ctx.g(counter.at(1)?, world.n_pes() - 1)? == rounds * u64::from(world.n_pes()));
    world.barrier_all()?;
    Ok(())
}
