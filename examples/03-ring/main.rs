//! 03 ring: waiting for data, and order. Kernels of different PEs run at the same time and wait for one another; the host sleeps.

use anyhow::{ensure, Result};
use npushmem::{Args, World};
use npushmem_examples::RING;

/// How often the token goes round.
const LAPS: u64 = 10;

fn main() -> Result<()> {
    let world = World::init()?;
    // Two lines of 64 bytes: the sum, and the number of hops.
    let token = world.alloc_zeroed::<u64>(16)?;
    world.enable_device(1)?;
    world.barrier_all()?;

    let ring = world.load(&RING)?.function("ring")?;
    world.launch(&ring, 1, &Args::new().ctx().ptr(&token).u64(LAPS))?;
    world.synchronize()?;
    // A kernel that ends says nothing of its last puts; the host's barrier completes them.
    world.barrier_all()?;

    // PE 0 ends the last lap; the others saw the token for the last time on the way there.
    let (me, pes) = (u64::from(world.my_pe()), u64::from(world.n_pes()));
    let lap = pes * (pes + 1) / 2;
    let expected = match me {
        0 => LAPS * lap,
        _ => (LAPS - 1) * lap + me * (me + 1) / 2,
    };
    let sum = world.to_vec(&token)?[0];
    ensure!(sum == expected, "PE {me} saw {sum} instead of {expected}");
    println!("verified: PE {me} saw the sum {sum} after {LAPS} laps");

    drop(token);
    world.finalize()?;
    Ok(())
}
