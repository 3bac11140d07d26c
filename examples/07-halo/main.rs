//! 07 halo exchange: many steps in one launch, neighbours that wait for each other only.
//!
//! A plate whose upper edge is hot; each value becomes the mean of its four neighbours, step after step. Bands of rows, one a PE.

use anyhow::Result;
use clap::Parser;
use npushmem::{Args, World};
use npushmem_examples::HALO;

/// Heat on a plate over several PEs, against the same on one.
#[derive(Parser)]
struct Options {
    /// Rows of the plate, without its edge; at least one a PE.
    #[arg(long, default_value_t = 61)]
    rows: u32,
    /// Columns of the plate, without its edge.
    #[arg(long, default_value_t = 97, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    columns: u32,
    /// Steps.
    #[arg(long, default_value_t = 40)]
    steps: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let world = World::init()?;
    let (me, pes) = (world.my_pe() as usize, world.n_pes() as usize);
    let (rows, columns) = (options.rows as usize, options.columns as usize);
    if rows < pes {
        eprintln!("07-halo: --rows {rows}: {pes} PEs need at least a row each");
        std::process::exit(2);
    }
    let first_row = |pe: usize| rows * pe / pes;
    let width = columns + 2;

    // Two fields; every PE takes memory for the largest band.
    let field = (rows.div_ceil(pes) + 2) * width;
    let fields = world.alloc::<f32>(2 * field)?;
    let signals = world.alloc_zeroed::<u64>(16)?;
    let mut plate = start(rows, columns);
    let band = &plate[first_row(me) * width..(first_row(me + 1) + 2) * width];
    world.write(&fields, 0, band)?;
    world.write(&fields, field, band)?;
    world.enable_device(1)?;
    world.barrier_all()?;

    let halo = world.load(&HALO)?.function("halo")?;
    let args = Args::new().ctx().ptr(&fields).ptr(&signals);
    let args = args
        .u64(field as u64)
        .u32(options.rows)
        .u32(options.columns)
        .u64(options.steps);
    world.launch(&halo, 1, &args)?;
    world.synchronize()?;

    for _ in 0..options.steps {
        plate = step(&plate, width);
    }
    let own = first_row(me + 1) - first_row(me);
    let mut result = vec![0.0; own * width];
    let last = (options.steps % 2) as usize * field;
    world.read(&fields, last + width, &mut result)?;
    let expected = &plate[(first_row(me) + 1) * width..][..own * width];
    // The kernel adds in the order of the reference, so the bits are the same.
    if let Some(at) = (0..result.len()).find(|i| result[*i] != expected[*i]) {
        anyhow::bail!(
            "PE {me}, row {}, column {}: {} instead of {}",
            first_row(me) + at / width,
            at % width,
            result[at],
            expected[at]
        );
    }
    println!(
        "verified: PE {me} has rows {} to {} after {} steps",
        first_row(me),
        first_row(me + 1),
        options.steps
    );

    drop((fields, signals));
    world.finalize()?;
    Ok(())
}

/// The plate with its edge: a hot upper edge, and inside a pattern in which a wrong row would show.
fn start(rows: usize, columns: usize) -> Vec<f32> {
    let width = columns + 2;
    (0..(rows + 2) * width)
        .map(|i| match i / width {
            0 => 100.0,
            row => (row * 31 + (i % width) * 17) as f32 % 10.0,
        })
        .collect()
}

/// The reference.
fn step(plate: &[f32], width: usize) -> Vec<f32> {
    let mut next = plate.to_vec();
    for row in 1..plate.len() / width - 1 {
        for i in row * width + 1..(row + 1) * width - 1 {
            let vertical = plate[i - width] + plate[i + width];
            next[i] = (vertical + (plate[i - 1] + plate[i + 1])) * 0.25;
        }
    }
    next
}
