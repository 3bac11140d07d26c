//! 04 ping-pong: data and a signal in one call, and the time of a trip.
//!
//! The times are those of this machine when the NPU is emulated, and say nothing about a real one.

use anyhow::{ensure, Result};
use npushmem::{Args, World};
use npushmem_examples::PING_PONG;

/// Sizes of the message, bytes.
const SIZES: [usize; 5] = [0, 8, 512, 4096, 65536];
/// Trips to and fro.
const ROUNDS: u64 = 100;

fn main() -> Result<()> {
    let world = World::init()?;
    let me = world.my_pe();
    let inbox = world.alloc_zeroed::<u8>(SIZES[4])?;
    let data = world.alloc::<u8>(SIZES[4])?;
    let signal = world.alloc_zeroed::<u64>(1)?;
    let ticks = world.alloc_zeroed::<u64>(1)?;
    world.write(&data, 0, &data_of(me))?;
    world.enable_device(1)?;

    let ping_pong = world.load(&PING_PONG)?.function("ping_pong")?;
    for size in SIZES {
        world.barrier_all()?;
        let args = Args::new()
            .ctx()
            .ptr(&inbox)
            .ptr(&data)
            .ptr(&signal)
            .ptr(&ticks);
        world.launch(&ping_pong, 1, &args.u64(size as u64).u64(ROUNDS))?;
        world.synchronize()?;
        if me == 0 {
            let trip = world.to_vec(&ticks)?[0] as f64 / (2 * ROUNDS) as f64;
            println!("{size:6} bytes: {trip:8.1} ticks a trip");
        }
    }

    // The even PE's data went to the odd one and came back.
    let received = world.to_vec(&inbox)?;
    ensure!(
        received == data_of(me & !1),
        "PE {me} received something else"
    );
    println!("verified: PE {me} received the data of PE {}", me & !1);

    drop((inbox, data, signal, ticks));
    world.finalize()?;
    Ok(())
}

/// What a PE sends.
fn data_of(pe: u32) -> Vec<u8> {
    (0..SIZES[4]).map(|i| (i * 7 + pe as usize) as u8).collect()
}
