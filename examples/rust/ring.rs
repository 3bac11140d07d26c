//! A token goes round the ring ten times, as a row of numbers with a signal: no barrier, and no waiting for an answer.
//!
//! The signal comes after the row that it is sent with; who has seen the one sees the other.

use npushmem::{Cmp, Error, SignalOp, World};

const LAPS: u64 = 10;

fn main() -> Result<(), Error> {
    let world = World::init()?;
    let (row, lap) = (world.alloc::<u64>(100)?, world.alloc_one::<u64>()?);
    world.barrier_all()?;
    let (ctx, next) = (world.ctx(), world.ring(1));

    let mut token = vec![0u64; row.len()];
    for count in 1..=LAPS {
        if world.my_pe() != 0 || count > 1 {
            // PE 0 begins; everybody else, and PE 0 later, adds 1 to what comes.
            let arrived = if world.my_pe() == 0 { count - 1 } else { count };
            world.signal_wait_until(&lap, Cmp::Ge, arrived)?;
            ctx.get(&mut token, &row, world.me())?;
            token.iter_mut().for_each(|word| *word += 1);
        }
        ctx.put_signal(&row, &token, &lap, count, SignalOp::Set, next)?;
    }
    world.signal_wait_until(&lap, Cmp::Ge, LAPS)?;

    if world.my_pe() == 0 {
        let hops = world.to_vec(&row)?[99];
        println!("the token was handed on {} times", hops + 1);
        assert_eq!(hops + 1, LAPS * u64::from(world.n_pes()));
    }
    world.barrier_all()?;
    drop((row, lap));
    world.finalize()
}
