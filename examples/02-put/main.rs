//! 02 put: one-sided transfer. A PE writes into another's memory; the other one calls nothing for it.
//!
//! `NPUSHMEM_ENGINE` chooses how: `mapped` copies through the peer's mapped memory, `roce` writes work requests and rings the NIC's
//! doorbell. The kernel is the same.

use anyhow::{ensure, Result};
use npushmem::{Args, World};
use npushmem_examples::PUT;

/// Elements that each PE sends.
const N: usize = 10_000;

fn main() -> Result<()> {
    let world = World::init()?;
    let (me, pes) = (world.my_pe() as usize, world.n_pes() as usize);
    // Symmetric: every PE makes the same allocations in the same order.
    let dst = world.alloc_zeroed::<f32>(N)?;
    let src = world.alloc::<f32>(N)?;
    world.write(&src, 0, &data_of(me))?;
    world.enable_device(1)?;
    // No PE may put into a dst that its owner has still to zero.
    world.barrier_all()?;

    let put = world.load(&PUT)?.function("put_next")?;
    let args = Args::new().ctx().ptr(&dst).ptr(&src).u64(N as u64);
    world.launch(&put, 1, &args)?;
    world.synchronize()?;

    let previous = (me + pes - 1) % pes;
    ensure!(
        world.to_vec(&dst)? == data_of(previous),
        "PE {me} does not have the data of PE {previous}"
    );
    println!("verified: PE {me} has {N} elements of PE {previous}");

    drop((dst, src));
    world.finalize()?;
    Ok(())
}

/// What a PE sends.
fn data_of(pe: usize) -> Vec<f32> {
    (0..N).map(|i| (pe * N + i) as f32).collect()
}
