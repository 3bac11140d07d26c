//! One PE: measures the device API by kernels and, on PE 0, the bare limits in between; PE 0 prints the rows as JSON.
//!
//! Times come from the system counter inside the kernel, over many calls; only a launch is timed by the host. PE 1 is idle except where the
//! measurement needs both.

use std::time::Instant;

use anyhow::{bail, Context, Result};
use npushmem::{kernels, Args, Function, KernelObject, SymBuf, World};

use crate::figure::{Goal, Row};
use crate::limits::{self, Buffers};
use crate::stats::Summary;

/// Bytes of the large transfers.
const LARGE: u64 = 1 << 20;
/// Bytes of each symmetric buffer: a large transfer and the lines around it.
const BUFFER: usize = 2 << 20;
/// Seconds of a tick of the system counter: 50 MHz on A2 and A3, 1 GHz on 950.
const TICK: f64 = 20e-9;
const TICK_950: f64 = 1e-9;
/// Engines of the device API with their codes (`SHMEM_ENGINE_*`).
const ENGINES: [(u64, &str); 2] = [(1, "mapped"), (2, "roce")];

/// A call of the kernels of `npushmem bench`, which are measured here too.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Put,
    Get,
    P,
    G,
    FetchAdd,
    Barrier,
    PutSignal,
    PutWindow,
}

impl Kind {
    /// Object, kernel, and its `kind` (kernels/bench_*.cpp).
    fn kernel(self) -> (&'static KernelObject, &'static str, u64) {
        match self {
            Kind::Put => (&kernels::BENCH_RMA, "bench_rma", 0),
            Kind::Get => (&kernels::BENCH_RMA, "bench_rma", 1),
            Kind::PutWindow => (&kernels::BENCH_RMA, "bench_rma", 2),
            Kind::P => (&kernels::BENCH_RMA, "bench_rma", 4),
            Kind::G => (&kernels::BENCH_RMA, "bench_rma", 5),
            Kind::PutSignal => (&kernels::BENCH_RMA, "bench_rma", 8),
            Kind::FetchAdd => (&kernels::BENCH_ATOMIC, "bench_atomic", 4),
            Kind::Barrier => (&kernels::BENCH_COLLECTIVE, "bench_collective", 0),
        }
    }
}

type Limit = fn(&mut Buffers, u64) -> f64;

struct Plan {
    name: &'static str,
    kind: Kind,
    bytes: u64,
    calls: u64,
    limit_name: &'static str,
    limit: Limit,
    limit_calls: u64,
    goals: [Option<Goal>; 2],
    /// Whether PE 1 runs the kernel too.
    both: bool,
}

const COPY: Limit = |buffers, calls| buffers.copy(calls);
const REQUEST: Limit = |_, calls| limits::request(calls);
const STORE: Limit = |_, calls| limits::store(calls);
const LOAD: Limit = |_, calls| limits::load(calls);
const FETCH_ADD: Limit = |_, calls| limits::fetch_add(calls);
const FLAG: Limit = |_, calls| limits::flag(calls);

/// Both engines are measured by every plan. A sample takes at most a millisecond: less than the operating
/// system's time slice, so that the median is one that nobody interrupted, also on a machine with other work; and at least a thousand ticks.
///
/// The first goal is mapped's, the second roce's.
static PLANS: [Plan; 9] = [
    Plan {
        name: "put, 1 MiB",
        kind: Kind::Put,
        bytes: LARGE,
        calls: 25,
        limit_name: "memcpy",
        limit: COPY,
        limit_calls: 25,
        goals: [Some(Goal::Ratio(0.5)), Some(Goal::Ratio(0.8))],
        both: false,
    },
    Plan {
        name: "get, 1 MiB",
        kind: Kind::Get,
        bytes: LARGE,
        calls: 25,
        limit_name: "memcpy",
        limit: COPY,
        limit_calls: 25,
        goals: [None, None],
        both: false,
    },
    Plan {
        name: "put_nbi, 8 bytes, a core",
        kind: Kind::PutWindow,
        bytes: 8,
        calls: 10_000,
        limit_name: "64 + 8 bytes stored",
        limit: REQUEST,
        limit_calls: 100_000,
        goals: [None, Some(Goal::Rate(5e6))],
        both: false,
    },
    Plan {
        name: "put, 8 bytes",
        kind: Kind::Put,
        bytes: 8,
        calls: 2_000,
        limit_name: "64 + 8 bytes stored",
        limit: REQUEST,
        limit_calls: 100_000,
        goals: [None, Some(Goal::Seconds(500e-9))],
        both: false,
    },
    Plan {
        name: "p, 8 bytes",
        kind: Kind::P,
        bytes: 8,
        calls: 2_000,
        limit_name: "store",
        limit: STORE,
        limit_calls: 100_000,
        goals: [None, None],
        both: false,
    },
    Plan {
        name: "g, 8 bytes",
        kind: Kind::G,
        bytes: 8,
        calls: 2_000,
        limit_name: "load",
        limit: LOAD,
        limit_calls: 100_000,
        goals: [None, None],
        both: false,
    },
    Plan {
        name: "put_signal_nbi, 8 bytes",
        kind: Kind::PutSignal,
        bytes: 8,
        calls: 2_000,
        limit_name: "64 + 8 bytes stored",
        limit: REQUEST,
        limit_calls: 100_000,
        goals: [None, None],
        both: false,
    },
    Plan {
        name: "atomic_fetch_add",
        kind: Kind::FetchAdd,
        bytes: 8,
        calls: 2_000,
        limit_name: "the processor's",
        limit: FETCH_ADD,
        limit_calls: 100_000,
        goals: [None, None],
        both: false,
    },
    Plan {
        name: "barrier_all, 2 PEs",
        kind: Kind::Barrier,
        bytes: 0,
        calls: 200,
        limit_name: "flag, one way",
        limit: FLAG,
        limit_calls: 2_000,
        goals: [None, None],
        both: true,
    },
];

/// What a row is measured by.
enum Source {
    /// A kernel on an engine.
    Kernel(&'static Plan, u64),
    /// The host.
    Launch,
}

/// Launches of the measurement of an empty kernel.
const LAUNCHES: u64 = 50;

/// The part of a job's PE. PE 0 prints what it measured.
pub fn run(rounds: usize, percent: u64, only: &str) -> Result<()> {
    let stand = Stand::new()?;
    let rows = stand.measure(rounds, percent, only)?;
    if stand.world.my_pe() == 0 {
        println!("{}", serde_json::to_string(&rows)?);
    }
    stand.end()
}

struct Stand {
    world: World,
    a: SymBuf<u8>,
    b: SymBuf<u8>,
    out: SymBuf<u64>,
    tick: f64,
}

impl Stand {
    fn new() -> Result<Stand> {
        let world = World::init()?;
        let a = world.alloc_zeroed::<u8>(BUFFER)?;
        let b = world.alloc_zeroed::<u8>(BUFFER)?;
        let out = world.alloc_zeroed::<u64>(64)?;
        world.enable_device(1)?;
        let tick = if world.soc_name().starts_with("Ascend950") {
            TICK_950
        } else {
            TICK
        };
        Ok(Stand {
            world,
            a,
            b,
            out,
            tick,
        })
    }

    fn end(self) -> Result<()> {
        self.world.barrier_all()?;
        let Stand {
            world, a, b, out, ..
        } = self;
        drop((a, b, out));
        Ok(world.finalize()?)
    }

    fn measure(&self, rounds: usize, percent: u64, only: &str) -> Result<Vec<Row>> {
        let scaled = |calls: u64| (calls * percent / 100).max(1);
        let mut buffers = Buffers::new(LARGE as usize);
        let mut all: Vec<(Row, Source)> = Vec::new();
        for plan in &PLANS {
            for ((code, engine), goal) in ENGINES.into_iter().zip(plan.goals) {
                let bytes = (plan.bytes == LARGE).then_some(LARGE);
                let row = row(plan.name, engine, plan.limit_name, goal, bytes);
                all.push((row, Source::Kernel(plan, code)));
            }
        }
        let goal = Some(Goal::Seconds(30e-6));
        let launch = row(
            "empty launch and synchronize",
            "",
            "thread woken, and back",
            goal,
            None,
        );
        all.push((launch, Source::Launch));
        all.retain(|(row, _)| row.name.contains(only));
        // The first round warms up: pages, queue pairs, the processor's clock.
        for round in 0..=rounds {
            for (row, source) in &mut all {
                let (limit, figure) = match source {
                    Source::Kernel(plan, engine) => {
                        self.one(plan, *engine, scaled, &mut buffers)?
                    }
                    Source::Launch => self.launches(scaled(LAUNCHES))?,
                };
                if round > 0 {
                    row.limit.push(limit);
                    row.figure.push(figure);
                }
            }
        }
        Ok(all.into_iter().map(|(row, _)| row).collect())
    }

    /// Limit and figure of one measurement, seconds a call.
    fn one(
        &self,
        plan: &Plan,
        engine: u64,
        scaled: impl Fn(u64) -> u64,
        buffers: &mut Buffers,
    ) -> Result<(f64, f64)> {
        let first = self.world.my_pe() == 0;
        self.world.barrier_all()?;
        let limit = if first {
            (plan.limit)(buffers, scaled(plan.limit_calls))
        } else {
            0.0
        };
        if plan.both {
            self.world.barrier_all()?;
        } else if !first {
            return Ok((0.0, 0.0));
        }
        let calls = scaled(plan.calls);
        self.launch(plan, engine, calls)?;
        let mut words = [0; 2];
        self.world.read(&self.out, 0, &mut words)?;
        let [error, ticks] = words;
        if error != 0 {
            bail!("{}: the device recorded error {error}", plan.name);
        }
        Ok((limit, ticks as f64 * self.tick / calls as f64))
    }

    /// Limit and figure of an empty kernel: the median of `calls` launches, seconds.
    fn launches(&self, calls: u64) -> Result<(f64, f64)> {
        self.world.barrier_all()?;
        if self.world.my_pe() != 0 {
            return Ok((0.0, 0.0));
        }
        let limit = limits::wake(calls);
        let function = self
            .world
            .load(&kernels::BENCH_RMA)?
            .function("bench_empty")?;
        let mut samples = Vec::with_capacity(calls as usize);
        for _ in 0..calls {
            let begin = Instant::now();
            self.run(&function, &Args::new())?;
            samples.push(begin.elapsed().as_secs_f64());
        }
        Ok((limit, Summary::of(&samples).median))
    }

    fn launch(&self, plan: &Plan, engine: u64, calls: u64) -> Result<()> {
        let (object, kernel, kind) = plan.kind.kernel();
        let function = self.world.load(object)?.function(kernel)?;
        let peer = match plan.kind {
            Kind::Barrier => 0, // the team of all
            _ => u64::from((self.world.my_pe() + 1) % self.world.n_pes()),
        };
        let bytes = if plan.kind == Kind::Barrier {
            0
        } else {
            plan.bytes
        };
        // One sample; calls between two quiets: all.
        let args = Args::new()
            .ctx()
            .ptr(&self.a)
            .ptr(&self.b)
            .ptr(&self.out)
            .u64(engine)
            .u64(kind)
            .u64(peer)
            .u64(bytes)
            .u64(calls)
            .u64(1)
            .u64(if plan.kind == Kind::FetchAdd {
                0
            } else {
                calls
            });
        self.run(&function, &args)
            .with_context(|| format!("measuring {}", plan.name))
    }

    fn run(&self, function: &Function, args: &Args) -> Result<()> {
        self.world
            .launch(function, 1, args)
            .with_context(|| format!("launch of {}", function.name()))?;
        Ok(self.world.synchronize()?)
    }
}

fn row(name: &str, engine: &str, limit_name: &str, goal: Option<Goal>, bytes: Option<u64>) -> Row {
    Row {
        name: name.to_owned(),
        engine: engine.to_owned(),
        figure: Vec::new(),
        limit_name: limit_name.to_owned(),
        limit: Vec::new(),
        goal,
        bytes,
    }
}
