//! Scenarios of the host's atomics: against a model, and together with kernels.

use anyhow::{ensure, Result};
use npushmem::openshmem::{Atomic, AtomicBits, AtomicInteger};
use npushmem::{Args, SymRef, World};
use npushmem_tests::kernels::SELFTEST;

use crate::{Arguments, Numbers};

/// Every operation of a type, by one PE on the next one's words, against Rust's own arithmetic.
fn integers<T>(
    world: &World,
    seed: u64,
    of: impl Fn(u64) -> T,
    add: impl Fn(T, T) -> T,
) -> Result<()>
where
    T: AtomicInteger + std::fmt::Debug,
{
    let mut numbers = Numbers(seed);
    let words = world.alloc_zeroed::<T>(4)?;
    world.barrier_all()?;
    let (ctx, next, cell) = (world.ctx(), world.ring(1), words.at(1)?);
    let mut model = of(0);
    for _ in 0..20 {
        let value = of(numbers.draw());
        let (old, new): (T, T) = match numbers.between(0, 6) {
            0 => (ctx.atomic_fetch_add(cell, value, next)?, add(model, value)),
            1 => (ctx.atomic_fetch_inc(cell, next)?, add(model, of(1))),
            2 => (ctx.atomic_swap(cell, value, next)?, value),
            3 => {
                let cond = if numbers.between(0, 1) == 0 {
                    model
                } else {
                    value
                };
                let old = ctx.atomic_compare_swap(cell, cond, value, next)?;
                (old, if cond == model { value } else { model })
            }
            4 => {
                ctx.atomic_set(cell, value, next)?;
                (model, value)
            }
            5 => {
                ctx.atomic_add(cell, value, next)?;
                ctx.atomic_inc(cell, next)?;
                (model, add(add(model, value), of(1)))
            }
            _ => {
                let mut old = of(0);
                ctx.nbi(|nbi| nbi.atomic_fetch_add(&mut old, cell, value, next))?;
                (old, add(model, value))
            }
        };
        ensure!(old == model, "{old:?}, not {model:?}");
        model = new;
        ensure!(ctx.atomic_fetch(cell, next)? == model);
    }
    world.barrier_all()?;
    let all = world.to_vec(&words)?;
    ensure!(
        all[0] == of(0) && all[2] == of(0) && all[3] == of(0),
        "neighbours: {all:?}"
    );
    Ok(())
}

fn bits<T>(world: &World, values: [T; 3], of: impl Fn(&str, T, T) -> T) -> Result<()>
where
    T: AtomicBits + std::fmt::Debug,
{
    let word = world.alloc_one::<T>()?;
    world.barrier_all()?;
    let (ctx, next) = (world.ctx(), world.ring(1));
    let mut model = T::zeroed();
    for value in values {
        let steps: [(&str, T); 3] = [
            ("or", ctx.atomic_fetch_or(&word, value, next)?),
            ("xor", ctx.atomic_fetch_xor(&word, values[0], next)?),
            ("and", ctx.atomic_fetch_and(&word, values[2], next)?),
        ];
        for ((name, old), operand) in steps.into_iter().zip([value, values[0], values[2]]) {
            ensure!(old == model, "{name}: {old:?}, not {model:?}");
            model = of(name, model, operand);
        }
        ctx.atomic_or(&word, value, next)?;
        ctx.atomic_xor(&word, value, next)?;
        ctx.atomic_and(&word, value, next)?;
        model = of("and", of("xor", of("or", model, value), value), value);
    }
    ensure!(ctx.atomic_fetch(&word, next)? == model);
    world.barrier_all()?;
    Ok(())
}

fn floats<T: Atomic + std::fmt::Debug + PartialEq>(world: &World, values: [T; 3]) -> Result<()> {
    let word = world.alloc_one::<T>()?;
    world.barrier_all()?;
    let (ctx, next) = (world.ctx(), world.ring(1));
    ctx.atomic_set(&word, values[0], next)?;
    ensure!(ctx.atomic_swap(&word, values[1], next)? == values[0]);
    let mut old = values[2];
    ctx.nbi(|nbi| nbi.atomic_swap(&mut old, &word, values[2], next))?;
    ensure!(old == values[1] && ctx.atomic_fetch(&word, next)? == values[2]);
    world.barrier_all()?;
    Ok(())
}

macro_rules! bit_ops {
    () => {
        |name, a, b| match name {
            "or" => a | b,
            "and" => a & b,
            _ => a ^ b,
        }
    };
}

/// All types and operations; with `device=1` in the device's domain.
pub fn model(world: &World, args: &Arguments) -> Result<()> {
    if args.get("device", 0)? == 1 {
        world.enable_device(1)?;
    }
    let seed = args.get("seed", 3u64)?;
    integers::<i32>(world, seed, |n| n as i32, i32::wrapping_add)?;
    integers::<u32>(world, seed + 1, |n| n as u32, u32::wrapping_add)?;
    integers::<i64>(world, seed + 2, |n| n as i64, i64::wrapping_add)?;
    integers::<u64>(world, seed + 3, |n| n, u64::wrapping_add)?;
    integers::<isize>(world, seed + 4, |n| n as isize, isize::wrapping_add)?;
    integers::<usize>(world, seed + 5, |n| n as usize, usize::wrapping_add)?;
    bits::<u32>(world, [0xf0f0_1234, 0x0ff0_0ff0, 0xffff_00ff], bit_ops!())?;
    bits::<i32>(world, [-5, 0x0ff0_0ff0, 0x7fff_00ff], bit_ops!())?;
    bits::<u64>(world, [u64::MAX / 3, 1 << 63, u64::MAX / 7], bit_ops!())?;
    bits::<i64>(world, [i64::MIN, -1, i64::MAX / 7], bit_ops!())?;
    floats::<f32>(world, [1.5, -0.0, f32::MAX])?;
    floats::<f64>(world, [1e300, -2.5, f64::MIN_POSITIVE])?;
    Ok(())
}

/// Hosts, and kernels where `device=1`, take tickets from one counter at the same time; each ticket is taken once.
pub fn tickets(world: &World, args: &Arguments) -> Result<()> {
    let device = args.get("device", 0)? == 1;
    let (rounds, each) = (args.get("rounds", 6u64)?, args.get("n", 20usize)?);
    let owner = world.n_pes() - 1;
    let counter = world.alloc_zeroed::<u64>(8)?;
    let (unused, out) = (world.alloc::<u64>(8)?, world.alloc_zeroed::<u64>(4096)?);
    let kernel = if device {
        world.enable_device(2)?;
        Some(world.load(&SELFTEST)?.function("st_hammer")?)
    } else {
        None
    };
    world.barrier_all()?;
    let (ctx, cell) = (world.ctx(), counter.at(0)?);
    let mut mine: Vec<u64> = Vec::new();
    for round in 0..rounds {
        // PEs take turns in having a kernel run, so that hosts and kernels of several PEs meet at the counter.
        let hammers = kernel
            .as_ref()
            .filter(|_| (round + u64::from(world.my_pe())) % 2 == 0);
        if let Some(kernel) = hammers {
            let args = Args::new().ctx().ptr(&counter).ptr(&unused).ptr(&out);
            let args = args.u64(0).u64(owner.into()).u64(each as u64).u64(0).u64(0);
            world.launch(kernel, 2, &args)?;
        }
        for _ in 0..each {
            mine.push(ctx.atomic_fetch_inc(cell, owner)?);
        }
        if hammers.is_some() {
            world.synchronize()?;
            let mut taken = vec![0; 2 * each];
            world.read(&out, 0, &mut taken)?;
            mine.extend(taken);
        }
    }
    world.barrier_all()?;
    let total = ctx.atomic_fetch(cell, owner)?;
    let all: Vec<Vec<u8>> = world.exchange(bytemuck::cast_slice(&mine))?;
    let mut seen = vec![0u32; total as usize];
    let mut count = 0;
    for ticket in all.iter().flat_map(|bytes| bytes.chunks_exact(8)) {
        let ticket = u64::from_ne_bytes(ticket.try_into()?);
        ensure!(ticket < total, "ticket {ticket} of {total}");
        seen[ticket as usize] += 1;
        count += 1;
    }
    ensure!(
        count == total && seen.iter().all(|times| *times == 1),
        "{count} tickets for {total}"
    );
    println!("tickets={count}");
    let _: SymRef<'_, u64> = cell;
    Ok(())
}
