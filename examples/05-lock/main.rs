//! 05 lock: atomics that fetch. Every PE increments one word by a plain read and a plain write; only the lock keeps increments from
//! getting lost.

use anyhow::{ensure, Context, Result};
use npushmem::{Args, World};
use npushmem_examples::LOCK;

/// Increments of each PE.
const ROUNDS: u64 = 50;

fn main() -> Result<()> {
    let world = World::init()?;
    let pes = u64::from(world.n_pes());
    // Zero is a free lock. Three words, a line of 64 bytes each.
    let lock = world.alloc_zeroed::<u64>(24)?;
    let counter = world.alloc_zeroed::<u64>(1)?;
    world.enable_device(1)?;
    let atomics = world.atomics().context("the device is enabled")?;
    ensure!(atomics, "the NIC refuses atomics, which this lock needs");
    world.barrier_all()?;

    let count = world.load(&LOCK)?.function("count_under_lock")?;
    let args = Args::new().ctx().ptr(&lock).ptr(&counter).u64(ROUNDS);
    world.launch(&count, 1, &args)?;
    world.synchronize()?;

    // The host reads PE 0's copy: it can reach other PEs too.
    let mut counted = [0];
    world.get(&counter, 0, &mut counted, 0)?;
    ensure!(
        counted == [ROUNDS * pes],
        "{} increments of {} are there",
        counted[0],
        ROUNDS * pes
    );
    println!("verified: {} increments, none lost", counted[0]);

    // Others may still be reading.
    world.barrier_all()?;
    drop((lock, counter));
    world.finalize()?;
    Ok(())
}
