//! Scenarios of puts and gets in all forms, against a model of every PE's memory.

use anyhow::{ensure, Result};
use npushmem::{HostContextOptions, Strides, World};

use crate::{Arguments, Numbers};

/// Elements of the symmetric buffer.
const LEN: usize = 300;

/// Every PE in turn makes random transfers to random PEs, of elements that depend on the round; all follow them in a model.
pub fn random(world: &World, args: &Arguments) -> Result<()> {
    let mut numbers = Numbers(args.get("seed", 1u64)? * 7919 + 1);
    let n_pes = u64::from(world.n_pes());
    let buffer = world.alloc::<u32>(LEN)?;
    let ctx = world.ctx();
    let mut model: Vec<Vec<u32>> = (0..n_pes as u32)
        .map(|pe| (0..LEN as u32).map(|i| pe * 1000 + i).collect())
        .collect();
    let me = world.my_pe() as usize;
    world.write(&buffer, 0, &model[me])?;
    world.barrier_all()?;
    for round in 0..args.get("rounds", 200u64)? {
        let from = numbers.between(0, n_pes - 1) as usize;
        let to = numbers.between(0, n_pes - 1) as u32;
        let start = numbers.between(0, LEN as u64 - 1) as usize;
        let n = numbers.between(0, (LEN - start) as u64) as usize;
        let data: Vec<u32> = (0..n as u32).map(|i| round as u32 * 100_000 + i).collect();
        let strides = Strides {
            dest: numbers.between(1, 7) as usize,
            src: numbers.between(1, 5) as usize,
        };
        let block = numbers.between(1, strides.dest.min(strides.src) as u64) as usize;
        let fits =
            |stride: usize, len: usize| len.checked_sub(block).map_or(0, |rest| rest / stride + 1);
        let there = LEN - start;
        let kind = numbers.between(0, 8);
        let acts = from == me;
        let theirs = &mut model[to as usize];
        match kind {
            0 => {
                if acts {
                    ctx.put(buffer.slice(start..start + n)?, &data, to)?;
                }
                theirs[start..start + n].copy_from_slice(&data);
            }
            1 => {
                if acts {
                    ctx.p(buffer.at(start)?, round as u32, to)?;
                }
                theirs[start] = round as u32;
            }
            2 if acts => {
                let mut got = vec![0; n];
                ctx.get(&mut got, buffer.slice(start..start + n)?, to)?;
                ensure!(
                    got == theirs[start..start + n],
                    "round {round}: get of {n} at {start} from {to}"
                );
                ensure!(
                    ctx.g(buffer.at(start)?, to)? == theirs[start],
                    "round {round}: g"
                );
            }
            3 | 4 => {
                let count = fits(strides.dest, there).min(8);
                let src: Vec<u32> = (0..(count * strides.src + block) as u32)
                    .map(|i| i + round as u32)
                    .collect();
                if acts {
                    let dest = buffer.slice(start..)?;
                    if block == 1 {
                        ctx.iput(dest, &src, strides, count, to)?;
                    } else {
                        ctx.ibput(dest, &src, strides, block, count, to)?;
                    }
                }
                for i in 0..count {
                    let at = start + i * strides.dest;
                    theirs[at..at + block].copy_from_slice(&src[i * strides.src..][..block]);
                }
            }
            5 if acts => {
                let count = fits(strides.src, there).min(8);
                let mut got = vec![7; count * strides.dest + block];
                let mut expected = got.clone();
                for i in 0..count {
                    let at = start + i * strides.src;
                    expected[i * strides.dest..][..block].copy_from_slice(&theirs[at..at + block]);
                }
                let src = buffer.slice(start..)?;
                if block == 1 {
                    ctx.iget(&mut got, src, strides, count, to)?;
                } else {
                    ctx.ibget(&mut got, src, strides, block, count, to)?;
                }
                ensure!(got == expected, "round {round}: strided get");
            }
            6 => {
                // From the own instance, to a part that does not overlap with it.
                let half = LEN / 2;
                let n = n.min(half);
                if acts {
                    ctx.put_sym(buffer.slice(half..half + n)?, buffer.slice(..n)?, to)?;
                }
                let source = model[from][..n].to_vec();
                model[to as usize][half..half + n].copy_from_slice(&source);
            }
            7 => {
                let half = LEN / 2;
                let n = n.min(half);
                if acts {
                    ctx.get_sym(buffer.slice(..n)?, buffer.slice(half..half + n)?, to)?;
                }
                let source = model[to as usize][half..half + n].to_vec();
                model[from][..n].copy_from_slice(&source);
            }
            8 => {
                let mut got = vec![0; n];
                let before = theirs[start..start + n].to_vec();
                if acts {
                    ctx.nbi(|nbi| {
                        nbi.get(&mut got, buffer.slice(start..start + n)?, to)?;
                        nbi.put(buffer.slice(start..start + n)?, &data, to)
                    })?;
                    ensure!(got == before, "round {round}: nbi");
                }
                theirs[start..start + n].copy_from_slice(&data);
            }
            _ => {}
        }
        world.on_all()?.barrier()?;
        if round % 16 == 0 {
            ensure!(
                world.to_vec(&buffer)? == model[me],
                "round {round} (kind {kind})"
            );
            world.on_all()?.barrier()?;
        }
    }
    ensure!(world.to_vec(&buffer)? == model[me], "at the end");
    world.barrier_all()?;
    Ok(())
}

/// Contexts with options and on a team: whose numbers count, and who is refused.
pub fn contexts(world: &World) -> Result<()> {
    let buffer = world.alloc_zeroed::<u64>(4)?;
    world.barrier_all()?;
    let private = world.host_context(HostContextOptions::new().private().no_store())?;
    ensure!(private.no_store() && private.team().is_none());
    private.p(buffer.at(0)?, 5, world.ring(1))?;
    let serialized = world.host_context(HostContextOptions::new().serialized())?;
    std::thread::scope(|scope| {
        let (world, buffer) = (&world, &buffer);
        // A serialized context moves to another thread.
        let moved = scope.spawn(move || serialized.p(buffer.at(1)?, 6, world.ring(1)));
        moved.join().expect("no panic")
    })?;
    // The odd PEs, backwards.
    let n_pes = world.n_pes();
    let all = world.team_world()?;
    let odd: Vec<u32> = (0..n_pes).filter(|pe| pe % 2 == 1).rev().collect();
    if !odd.is_empty() {
        if let Some(team) = world.team_from_pes(&all, &odd)? {
            let ctx = world.host_context(HostContextOptions::new().team(&team))?;
            let me = team.my_pe();
            ensure!(team.pe(me)? == world.me() && team.number_of(world.me()) == Some(me));
            let next = (me + 1) % team.n_pes();
            ctx.p(buffer.at(2)?, 100 + u64::from(me), next)?;
            ctx.p(buffer.at(3)?, 7, team.pe(next)?)?;
            let error = ctx
                .p(buffer.at(2)?, 0, world.pe(0)?)
                .expect_err("PE 0 is even");
            ensure!(error.to_string().contains("context's team"), "{error}");
            ensure!(ctx.p(buffer.at(2)?, 0, team.n_pes()).is_err());
            ctx.pe_quiet(&[next])?;
        }
    }
    world.barrier_all()?;
    let seen = world.to_vec(&buffer)?;
    let me = world.my_pe();
    let team_part = if me % 2 == 1 {
        let number = odd.iter().position(|pe| *pe == me).expect("odd") as u64;
        let n = odd.len() as u64;
        [100 + (number + n - 1) % n, 7]
    } else {
        [0, 0]
    };
    ensure!(seen == [5, 6, team_part[0], team_part[1]], "{seen:?}");
    Ok(())
}
