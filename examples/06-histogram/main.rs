//! 06 histogram: atomics that fetch nothing, and several cores of a PE.

use anyhow::{ensure, Result};
use npushmem::{Args, World};
use npushmem_examples::HISTOGRAM;

/// Values of each PE.
const N: usize = 2000;
/// Bins over all PEs; not a multiple of most numbers of PEs.
const BINS: usize = 100;
/// Communicating cores of each PE.
const CORES: u32 = 2;

fn main() -> Result<()> {
    let world = World::init()?;
    let (me, pes) = (world.my_pe() as usize, world.n_pes() as usize);
    // As many words on every PE, though some need one less.
    let bins = world.alloc_zeroed::<u64>(BINS.div_ceil(pes))?;
    let values = world.alloc::<u32>(N)?;
    world.write(&values, 0, &values_of(me))?;
    world.enable_device(CORES)?;
    ensure!(
        world.atomics() == Some(true),
        "the NIC refuses atomics, which this example is about"
    );
    world.barrier_all()?;

    let histogram = world.load(&HISTOGRAM)?.function("histogram")?;
    let args = Args::new()
        .ctx()
        .ptr(&bins)
        .ptr(&values)
        .u64(N as u64)
        .u32(BINS as u32);
    world.launch(&histogram, CORES, &args)?;
    world.synchronize()?;

    let mut expected = vec![0u64; BINS];
    for value in (0..pes).flat_map(values_of) {
        expected[value as usize % BINS] += 1;
    }
    let counted = world.to_vec(&bins)?;
    let own = (me..BINS).step_by(pes);
    for (count, bin) in counted.iter().zip(own.clone()) {
        ensure!(
            *count == expected[bin],
            "bin {bin}: {count} values instead of {}",
            expected[bin]
        );
    }
    println!(
        "verified: PE {me} has {} of {BINS} bins, {} of {} values",
        own.len(),
        counted.iter().sum::<u64>(),
        N * pes
    );

    drop((bins, values));
    world.finalize()?;
    Ok(())
}

/// Random values of a PE, more small ones than large ones.
fn values_of(pe: usize) -> Vec<u32> {
    let mut state = pe as u64 + 1;
    let mut random = || {
        // A linear congruential generator with Knuth's constants.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % 1000
    };
    (0..N).map(|_| random().min(random())).collect()
}
