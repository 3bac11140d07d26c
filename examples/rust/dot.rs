//! The dot product of two vectors that are spread over the PEs: each multiplies its part, a reduction adds the parts up.
//!
//! Parts are added in the order of the PEs, so that every PE gets the same bits in every run.

use npushmem::{op, Error, World};

const LEN: u32 = 100_000;

fn main() -> Result<(), Error> {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    // This PE's part: every n-th element.
    let part: f64 = (me..LEN)
        .step_by(n as usize)
        .map(|i| f64::from(i) * f64::from(2 * i))
        .sum();

    let dot = world.on_all()?.reduce_value(op::Sum, part)?;

    let expected: f64 = (0..LEN).map(|i| 2.0 * f64::from(i) * f64::from(i)).sum();
    assert!(
        (dot - expected).abs() <= 1e-9 * expected,
        "{dot}, not {expected}"
    );
    if me == 0 {
        println!("x . y = {dot:.6e}");
    }
    world.finalize()
}
