//! One PE of the tests of the Rust OpenSHMEM API: host operations against plain Rust, as its scenario says. Prints `key=value` lines that the
//! tests read. Not for users. Exit code 0: the scenario ran to its end and everything was right; 1: an error, printed to standard error.

mod atomics;
mod collectives;
mod mistakes;
mod transfers;
mod waits;

use std::collections::HashMap;

use anyhow::{bail, Context as _, Result};
use npushmem::World;

/// The scenario's arguments.
pub struct Arguments(HashMap<String, String>);

impl Arguments {
    /// The argument `key`, or `default`.
    pub fn get<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.0.get(key).map_or(Ok(default), |text| {
            text.parse().with_context(|| format!("{key}={text}"))
        })
    }
}

/// A generator of numbers for tests: the same seed gives the same numbers on every PE (xorshift64*).
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + (self.draw() >> 11) % (high - low + 1)
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let name = words.next().context("the first argument is the scenario")?;
    let mut args = HashMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            bail!("{word}: key=value is wanted")
        };
        args.insert(key.to_owned(), value.to_owned());
    }
    let args = Arguments(args);
    let world = World::init()?;
    match name.as_str() {
        "transfers" => transfers::random(&world, &args)?,
        "contexts" => transfers::contexts(&world)?,
        "signals" => waits::signals(&world)?,
        "waits" => waits::forms(&world)?,
        "atomics" => atomics::model(&world, &args)?,
        "tickets" => atomics::tickets(&world, &args)?,
        "locks" => waits::locks(&world, &args)?,
        "collectives" => collectives::random(&world, &args)?,
        "teams" => collectives::teams(&world)?,
        "mistakes" => mistakes::refused(&world)?,
        "unshared" => mistakes::unshared(&world)?,
        "mismatch" => mistakes::mismatch(&world)?,
        "missing" => mistakes::missing(&world)?,
        "exit" => mistakes::exit(&world)?,
        other => bail!("no scenario {other}"),
    }
    world.barrier_all()?;
    world.finalize()?;
    Ok(())
}
