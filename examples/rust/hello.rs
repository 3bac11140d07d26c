//! Every PE says hello, and puts its number into the memory of the next one.
//!
//! Run it on 4 PEs: `npushmem run -n 4 -- target/debug/host-hello`.

use npushmem::{Error, World};

fn main() -> Result<(), Error> {
    let world = World::init()?;
    let from = world.alloc_one::<u32>()?; // one number at the same place of every PE's heap
    world.barrier_all()?;

    world.ctx().p(&from, world.my_pe(), world.ring(1))?;
    world.barrier_all()?;

    let told = world.ctx().g(&from, world.me())?;
    println!(
        "{} of {}: {} says hello",
        world.me(),
        world.n_pes(),
        world.pe(told)?
    );
    assert_eq!(told, world.ring(-1).number());

    drop(from);
    world.finalize()
}
