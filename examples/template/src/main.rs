use npushmem::{Args, World};

include!(concat!(env!("OUT_DIR"), "/kernels.rs")); // static SHIFT: npushmem::KernelObject

fn main() -> anyhow::Result<()> {
    let world = World::init()?;
    let me = world.my_pe();
    let dst = world.alloc::<f32>(1024)?;
    let src = world.alloc::<f32>(1024)?;
    world.write(&src, 0, &[me as f32; 1024])?;
    world.enable_device(1)?;

    let shift = world.load(&SHIFT)?.function("shift")?;
    let args = Args::new().ctx().ptr(&dst).ptr(&src).u64(1024);
    world.launch(&shift, 1, &args)?;
    world.synchronize()?;

    let previous = (me + world.n_pes() - 1) % world.n_pes();
    anyhow::ensure!(world.to_vec(&dst)? == [previous as f32; 1024]);
    println!("verified: PE {me} has the data of PE {previous}");

    drop((dst, src));
    world.finalize()?;
    Ok(())
}
