//! What every scenario stands on: a World with the device enabled, the kernels, three symmetric buffers, and the arguments.

use std::collections::HashMap;
use std::str::FromStr;

use anyhow::{anyhow, Context as _, Result};
use npushmem::{Args, KernelObject, SymBuf, World};

/// Words of the result buffer.
const OUT_WORDS: usize = 1 << 12;

/// A job's PE with everything that the kernels need.
pub struct Stand {
    pub world: World,
    args: HashMap<String, String>,
    /// Symmetric, `bytes` long.
    pub a: SymBuf<u8>,
    /// Symmetric, `bytes` long.
    pub b: SymBuf<u8>,
    /// Results of the own kernel.
    pub out: SymBuf<u64>,
    pub cores: u32,
    pub engine: u64,
}

impl Stand {
    pub fn new(args: HashMap<String, String>) -> Result<Stand> {
        let number = |key: &str, default: usize| -> Result<usize> {
            args.get(key).map_or(Ok(default), |text| {
                text.parse().with_context(|| format!("{key}={text}"))
            })
        };
        let bytes = number("bytes", 1 << 18)?;
        let cores = number("cores", 1)? as u32;
        let engine = match args.get("engine").map(String::as_str) {
            None | Some("auto") => 0,
            Some("mapped") => 1,
            Some("roce") => 2,
            Some(other) => return Err(anyhow!("engine={other}")),
        };
        let world = World::init()?;
        let a = world.alloc::<u8>(bytes)?;
        let b = world.alloc::<u8>(bytes)?;
        let out = world.alloc::<u64>(OUT_WORDS)?;
        world.enable_device(cores)?;
        let stand = Stand {
            world,
            args,
            a,
            b,
            out,
            cores,
            engine,
        };
        stand.clear()?;
        stand.world.barrier_all()?;
        Ok(stand)
    }

    /// The argument `key`, or `default`.
    pub fn get<T: FromStr>(&self, key: &str, default: T) -> Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.args.get(key).map_or(Ok(default), |text| {
            text.parse().with_context(|| format!("{key}={text}"))
        })
    }

    /// Zeroes all three buffers of this PE.
    pub fn clear(&self) -> Result<()> {
        self.world.write(&self.a, 0, &vec![0; self.a.len()])?;
        self.world.write(&self.b, 0, &vec![0; self.b.len()])?;
        self.world.write(&self.out, 0, &vec![0; OUT_WORDS])?;
        Ok(())
    }

    pub fn me(&self) -> u64 {
        u64::from(self.world.my_pe())
    }

    pub fn n_pes(&self) -> u64 {
        u64::from(self.world.n_pes())
    }

    /// The next PE of the ring.
    pub fn next(&self) -> u64 {
        (self.me() + 1) % self.n_pes()
    }

    /// The PE before in the ring.
    pub fn before(&self) -> u64 {
        (self.me() + self.n_pes() - 1) % self.n_pes()
    }

    /// Launches a kernel with (ctx, a, b, out, engine, words...), and waits for it.
    pub fn launch(
        &self,
        object: &KernelObject,
        kernel: &str,
        blocks: u32,
        words: &[u64],
    ) -> Result<(), npushmem::Error> {
        let function = self.world.load(object)?.function(kernel)?;
        let mut args = Args::new()
            .ctx()
            .ptr(&self.a)
            .ptr(&self.b)
            .ptr(&self.out)
            .u64(self.engine);
        for word in words {
            args = args.u64(*word);
        }
        self.world.launch(&function, blocks, &args)?;
        self.world.synchronize()
    }

    /// `n` words of the results from `start`.
    pub fn results(&self, start: usize, n: usize) -> Result<Vec<u64>> {
        let mut words = vec![0; n];
        self.world.read(&self.out, start, &mut words)?;
        Ok(words)
    }

    pub fn end(self) -> Result<()> {
        self.world.barrier_all()?;
        let Stand {
            world, a, b, out, ..
        } = self;
        drop((a, b, out));
        world.finalize()?;
        Ok(())
    }
}

/// Prints a line that the test reads.
pub fn print(key: &str, value: impl std::fmt::Display) {
    println!("{key}={value}");
}

/// A generator of numbers for tests: the same seed gives the same numbers on every PE (xorshift64*).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + (self.next() >> 11) % (high - low + 1)
    }
}
