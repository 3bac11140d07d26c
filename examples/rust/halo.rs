//! Heat on a plate that is cut into tiles, one a PE, in rows and columns of PEs: every step needs the neighbours' edges, the halo.
//!
//! Two teams say who the neighbours are: the row and the column of a PE. Rows of the tile are contiguous and go by put; columns are strided and go by
//! iput. At the end the heat of the whole plate is what it was: what leaves a tile arrives in another.

use npushmem::{op, Error, Strides, SymBuf, Team, World};

/// Cells of a tile's side, without the halo.
const SIDE: usize = 16;
/// With it.
const WIDE: usize = SIDE + 2;
const STEPS: usize = 50;

/// Place of a cell of a tile, halo included.
fn at(row: usize, column: usize) -> usize {
    row * WIDE + column
}

/// Puts this tile's edges into the halos of its four neighbours, around the ends.
fn exchange(world: &World, tile: &SymBuf<f64>, row: &Team, column: &Team) -> Result<(), Error> {
    let ctx = world.ctx();
    let mine = world.to_vec(tile)?;
    let before = |team: &Team| team.pe((team.my_pe() + team.n_pes() - 1) % team.n_pes());
    let after = |team: &Team| team.pe((team.my_pe() + 1) % team.n_pes());
    // The first row goes below the tile above, the last one above the tile below.
    let halo_row = |row: usize| tile.slice(at(row, 1)..at(row, 1) + SIDE);
    ctx.put(
        halo_row(SIDE + 1)?,
        &mine[at(1, 1)..][..SIDE],
        before(column)?,
    )?;
    ctx.put(halo_row(0)?, &mine[at(SIDE, 1)..][..SIDE], after(column)?)?;
    // Columns: one element a row, a row apart on both sides.
    let apart = Strides {
        dest: WIDE,
        src: WIDE,
    };
    ctx.iput(
        tile.slice(at(1, SIDE + 1)..)?,
        &mine[at(1, 1)..],
        apart,
        SIDE,
        before(row)?,
    )?;
    ctx.iput(
        tile.slice(at(1, 0)..)?,
        &mine[at(1, SIDE)..],
        apart,
        SIDE,
        after(row)?,
    )?;
    Ok(())
}

fn main() -> Result<(), Error> {
    let world = World::init()?;
    let n = world.n_pes();
    // Rows of PEs that fill the plate: the widest divisor up to the square root.
    let width = (1..=n)
        .filter(|w| n.is_multiple_of(*w) && w * w <= n)
        .max()
        .unwrap_or(1);
    let (row, column) = world.team_split_2d(&world.team_world()?, width)?;
    let tile = world.alloc_zeroed::<f64>(WIDE * WIDE)?;
    // A hot spot on PE 0.
    if world.my_pe() == 0 {
        world.write(&tile, at(SIDE / 2, SIDE / 2), &[1000.0])?;
    }
    world.barrier_all()?;

    for _ in 0..STEPS {
        exchange(&world, &tile, &row, &column)?;
        world.on_all()?.barrier()?; // all halos are there
        let old = world.to_vec(&tile)?;
        let mut new = old.clone();
        for r in 1..=SIDE {
            for c in 1..=SIDE {
                let around =
                    old[at(r - 1, c)] + old[at(r + 1, c)] + old[at(r, c - 1)] + old[at(r, c + 1)];
                new[at(r, c)] = 0.6 * old[at(r, c)] + 0.1 * around;
            }
        }
        world.write(&tile, 0, &new)?;
        world.on_all()?.barrier()?; // nobody's halo is written before its owner has gone on
    }

    let cells = world.to_vec(&tile)?;
    let inner = |r: usize| cells[at(r, 1)..][..SIDE].iter().sum::<f64>();
    let heat = world
        .on_all()?
        .reduce_value(op::Sum, (1..=SIDE).map(inner).sum::<f64>())?;
    assert!((heat - 1000.0).abs() < 1e-6, "{heat}");
    if world.my_pe() == 0 {
        println!(
            "{} x {width} tiles: the plate's heat is {heat:.3}",
            n / width
        );
    }
    world.barrier_all()?;
    drop((row, column, tile));
    world.finalize()
}
