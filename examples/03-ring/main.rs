//! 03 ring: waiting for data, and order. Kernels of different PEs run at the same time and wait for one another; the host sleeps.

use anyhow::{ensure, Result};
use npushmem::{Args, World};
use npushmem_examples::RING;

/// Messages that go round.
const LAPS: usize = 10;
/// Words of a message.
const N: usize = 1000;

fn main() -> Result<()> {
    let world = World::init()?;
    let me = world.my_pe();
    let inbox = world.alloc_zeroed::<u64>(LAPS * N)?;
    let messages = world.alloc::<u64>(LAPS * N)?;
    let hops = world.alloc_zeroed::<u64>(1)?;
    let text: Vec<u64> = (1..).take(LAPS * N).collect();
    if me == 0 {
        world.write(&messages, 0, &text)?;
    }
    world.enable_device(1)?;
    world.barrier_all()?;

    let ring = world.load(&RING)?.function("ring")?;
    let args = Args::new().ctx().ptr(&inbox).ptr(&messages).ptr(&hops);
    world.launch(&ring, 1, &args.u64(N as u64).u64(LAPS as u64))?;
    world.synchronize()?;

    ensure!(
        world.to_vec(&inbox)? == text,
        "PE {me} received something else"
    );
    println!("verified: PE {me} received and passed on {LAPS} messages of {N} words");

    drop((inbox, messages, hops));
    world.finalize()?;
    Ok(())
}
