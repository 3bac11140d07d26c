//! 01 hello: the life of a program. Join the job, take memory, enable the device, launch a kernel, look at what it wrote, leave.
//!
//! `npushmem run -n 4 -- target/debug/01-hello` starts four processes. Each is one PE (processing element): it has one NPU and a number.

use anyhow::{ensure, Result};
use npushmem::{Args, World};
use npushmem_examples::HELLO;

fn main() -> Result<()> {
    // Meets the other PEs and takes this PE's device.
    let world = World::init()?;
    // Memory that has a copy on every PE. Later examples reach the others' copies.
    let out = world.alloc::<i32>(2)?;
    // What kernels communicate through: queue pairs and doorbells, for one core of this PE.
    world.enable_device(1)?;

    // HELLO holds hello.cpp, compiled for the emulated NPU and, where a CANN toolkit was found, for real ones.
    let hello = world.load(&HELLO)?.function("hello")?;
    // On one core, with the kernel's parameters in their order. Launching returns at once; synchronizing waits, with a deadline,
    // and says what went wrong in the kernel if something did.
    world.launch(&hello, 1, &Args::new().ctx().ptr(&out))?;
    world.synchronize()?;

    let said = world.to_vec(&out)?;
    ensure!(
        said == [world.my_pe() as i32, world.n_pes() as i32],
        "the kernel of PE {} of {} wrote {said:?}",
        world.my_pe(),
        world.n_pes()
    );
    println!("verified: kernel of PE {} of {}", said[0], said[1]);

    drop(out);
    world.finalize()?;
    Ok(())
}
