//! What every scenario stands on: a World with the device enabled, the self-test kernels, three symmetric buffers, and the arguments.

use std::collections::HashMap;
use std::str::FromStr;

use anyhow::{anyhow, Context as _, Result};
use npushmem::{Args, Function, Module, SymBuf, World};
use npushmem_tests::kernels;

/// Words of the result buffer.
const OUT_WORDS: usize = 1 << 18;

/// A job's PE with everything that the kernels need.
pub struct Stand {
    pub world: World,
    module: Module,
    reports: Module,
    args: HashMap<String, String>,
    /// Symmetric, `bytes` long: what kernels write to.
    pub a: SymBuf<u8>,
    /// Symmetric, `bytes` long: sources, landing places of gets.
    pub b: SymBuf<u8>,
    /// Results of the own kernel.
    pub out: SymBuf<u64>,
    pub cores: u32,
    /// SHMEM_ENGINE_*, or (`engine=both`) what lets the cores take turns; see the head of kernels/selftest.cpp.
    pub engine: u64,
}

impl Stand {
    pub fn new(args: HashMap<String, String>) -> Result<Stand> {
        let number = |key: &str, default: usize| -> Result<usize> {
            args.get(key).map_or(Ok(default), |text| {
                text.parse().with_context(|| format!("{key}={text}"))
            })
        };
        let bytes = number("bytes", 1 << 20)?;
        let cores = number("cores", 1)? as u32;
        let engine = match args.get("engine").map(String::as_str) {
            None | Some("auto") => 0,
            Some("mapped") => 1,
            Some("roce") => 2,
            Some("both") => 3,
            Some(other) => return Err(anyhow!("engine={other}")),
        };
        let world = World::init()?;
        // Core 0 of even PEs uses the mapped engine, core 0 of odd PEs roce.
        let engine = if engine == 3 {
            3 + u64::from(world.my_pe() % 2)
        } else {
            engine
        };
        let a = world.alloc::<u8>(bytes)?;
        let b = world.alloc::<u8>(bytes)?;
        let out = world.alloc::<u64>(OUT_WORDS)?;
        world.enable_device(cores)?;
        let module = world.load(&kernels::SELFTEST)?;
        let reports = world.load(&kernels::REPORTS)?;
        let stand = Stand {
            world,
            module,
            reports,
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

    /// A kernel of kernels/reports.cpp (`rp_*`) or kernels/selftest.cpp.
    fn function(&self, kernel: &str) -> Result<Function, npushmem::Error> {
        let module = if kernel.starts_with("rp_") {
            &self.reports
        } else {
            &self.module
        };
        module.function(kernel)
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

    /// Launches `kernel` on `blocks` cores with buffers at offsets of a and b, and waits for it.
    pub fn launch_at(
        &self,
        kernel: &str,
        blocks: u32,
        at: (u64, u64),
        pe: u64,
        nmk: [u64; 3],
    ) -> Result<(), npushmem::Error> {
        self.start(kernel, blocks, at, self.engine, pe, nmk)
    }

    /// Launches `kernel` on all comm cores with an engine of its own.
    pub fn launch_engine(
        &self,
        kernel: &str,
        engine: u64,
        pe: u64,
        nmk: [u64; 3],
    ) -> Result<(), npushmem::Error> {
        self.start(kernel, self.cores, (0, 0), engine, pe, nmk)
    }

    /// Launches `kernel` with everything chosen, and waits for it.
    pub fn start(
        &self,
        kernel: &str,
        blocks: u32,
        at: (u64, u64),
        engine: u64,
        pe: u64,
        nmk: [u64; 3],
    ) -> Result<(), npushmem::Error> {
        let function = self.function(kernel)?;
        let args = Args::new()
            .ctx()
            .u64(self.a.addr() + at.0)
            .u64(self.b.addr() + at.1)
            .u64(self.out.addr())
            .u64(engine)
            .u64(pe)
            .u64(nmk[0])
            .u64(nmk[1])
            .u64(nmk[2]);
        self.world.launch(&function, blocks, &args)?;
        self.world.synchronize()
    }

    /// Launches `kernel` on one core with arguments of its own, and waits for it.
    pub fn launch_plain(&self, kernel: &str, args: &Args) -> Result<(), npushmem::Error> {
        let function = self.function(kernel)?;
        self.world.launch(&function, 1, args)?;
        self.world.synchronize()
    }

    /// Launches `kernel` on all comm cores.
    pub fn launch(
        &self,
        kernel: &str,
        pe: u64,
        n: u64,
        m: u64,
        k: u64,
    ) -> Result<(), npushmem::Error> {
        self.launch_at(kernel, self.cores, (0, 0), pe, [n, m, k])
    }

    /// `n` words of the results from `start`.
    pub fn results(&self, start: usize, n: usize) -> Result<Vec<u64>> {
        let mut words = vec![0; n];
        self.world.read(&self.out, start, &mut words)?;
        Ok(words)
    }

    /// Leaves the job. `finalize=1`: without a barrier before, and what finalize says is printed.
    pub fn end(self) -> Result<()> {
        let told = self.get("finalize", 0)? == 1;
        if !told {
            self.world.barrier_all()?;
        }
        let Stand {
            world,
            module,
            reports,
            a,
            b,
            out,
            ..
        } = self;
        drop((module, reports, a, b, out));
        match world.finalize() {
            Ok(()) if told => println!("finalize=ok"),
            Err(error) if told => println!("finalize={}", format!("{error:#}").replace('\n', " ")),
            result => result?,
        }
        Ok(())
    }
}
