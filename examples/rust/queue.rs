//! A queue of work: each PE takes the next item by one atomic addition to a counter on PE 0, until there is none; results go where they belong.
//!
//! Items take very different times; nobody hands them out.

use npushmem::{op, Error, World};

const ITEMS: usize = 300;

/// Steps of the Collatz sequence from `n` down to 1.
fn work(mut n: u64) -> u32 {
    let mut steps = 0;
    while n > 1 {
        n = if n.is_multiple_of(2) {
            n / 2
        } else {
            3 * n + 1
        };
        steps += 1;
    }
    steps
}

fn main() -> Result<(), Error> {
    let world = World::init()?;
    let (next, results) = (world.alloc_one::<u64>()?, world.alloc_zeroed::<u32>(ITEMS)?);
    world.barrier_all()?;
    let ctx = world.ctx();

    let mut done = 0u32;
    loop {
        let item = ctx.atomic_fetch_inc(&next, 0)? as usize;
        if item >= ITEMS {
            break;
        }
        ctx.p(results.at(item)?, work(item as u64 + 1), 0)?;
        done += 1;
    }
    world.barrier_all()?;

    let all = world.on_all()?;
    assert_eq!(all.reduce_value(op::Sum, done)?, ITEMS as u32);
    let shares = all.gather(done)?;
    if world.my_pe() == 0 {
        let results = world.to_vec(&results)?;
        assert!((1..).zip(&results).all(|(n, steps)| *steps == work(n)));
        println!("items by PE: {shares:?}");
    }
    world.barrier_all()?;
    drop((next, results));
    world.finalize()
}
