//! One PE of `npushmem bench`, as a process of its own: carries the steps out and hands their ticks back. Started by mod.rs through the launcher;
//! not for users.

use std::os::fd::RawFd;
use std::time::Instant;

use anyhow::{bail, Context, Result};
use clap::Args;
use npushmem::{Args as KernelArgs, SymBuf, Team, World};

use super::cost;
use super::handover::Inherited;
use super::step::{Kernel, Peer, Step, COUNTS, NOT_COUNTED};
use super::Engine;
use crate::failure::{self, Failure};

/// Seconds of a tick of the system counter: 50 MHz on A2 and A3, 1 GHz on 950 (AscendC documentation of GetSystemCycle).
const TICK: f64 = 20e-9;
const TICK_950: f64 = 1e-9;

/// Where the parent left the work: descriptors of the two files.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    orders: RawFd,
    results: RawFd,
}

/// Runs the PE.
pub fn run(args: WorkerArgs) -> Result<(), Failure> {
    work(args).map_err(|error| Failure::failed(failure::chain(&error)))
}

fn work(args: WorkerArgs) -> Result<()> {
    let inherited = Inherited::open(args.orders, args.results)
        .context("cannot read what `npushmem bench` left for its PEs")?;
    let world = World::init()?;
    let stand = Stand::new(&world, &inherited)?;
    let mut ticks = Vec::new();
    for (number, step) in inherited.orders.steps.iter().enumerate() {
        let mine = stand
            .step(step)
            .with_context(|| format!("step {number}: {step:?}"))?;
        ticks.extend(mine);
    }
    inherited.write(world.my_pe(), stand.tick, &ticks)?;
    drop(stand);
    world.finalize()?;
    Ok(())
}

struct Stand<'a> {
    world: &'a World,
    a: SymBuf<u8>,
    b: SymBuf<u8>,
    out: SymBuf<u64>,
    /// The team of PEs 0 to n - 1, by n, where this PE is in it.
    teams: Vec<(u32, Option<Team>)>,
    tick: f64,
}

impl<'a> Stand<'a> {
    fn new(world: &'a World, inherited: &Inherited) -> Result<Self> {
        let orders = &inherited.orders;
        let words = orders
            .steps
            .iter()
            .map(|step| step.result_words() * u64::from(step.cores))
            .max()
            .unwrap_or(8);
        let a = world.alloc_zeroed::<u8>(orders.room as usize)?;
        let b = world.alloc_zeroed::<u8>(orders.room as usize)?;
        let out = world.alloc_zeroed::<u64>(words as usize)?;
        world.enable_device(orders.cores)?;
        let mut teams: Vec<(u32, Option<Team>)> = Vec::new();
        let whole = world.team_world()?;
        for step in orders.steps.iter().filter(|step| step.peer == Peer::Team) {
            if teams.iter().all(|(pes, _)| *pes != step.pes) {
                let team = world.team_split_strided(&whole, 0, 1, step.pes)?;
                teams.push((step.pes, team));
            }
        }
        let tick = if world.soc_name().starts_with("Ascend950") {
            TICK_950
        } else {
            TICK
        };
        Ok(Self {
            world,
            a,
            b,
            out,
            teams,
            tick,
        })
    }

    /// The ticks of a step's samples, the slowest core's of each; zeros on PEs that take no part.
    fn step(&self, step: &Step) -> Result<Vec<u64>> {
        let world = self.world;
        match step.kernel {
            // The words that messages are counted in, and everybody else's.
            Kernel::PingPong | Kernel::Gups => {
                world.write(&self.a, 0, &vec![0; self.a.len()])?;
                world.write(&self.b, 0, &vec![0; self.b.len()])?;
            }
            _ => {}
        }
        world.barrier_all()?;
        let mut ticks = vec![0; step.samples as usize];
        if world.my_pe() < step.pes {
            match step.kernel {
                Kernel::Empty => self.launches(step, &mut ticks)?,
                Kernel::Cost => ticks = self.cost(step)?,
                _ => {
                    self.launch(step)?;
                    self.read(step, &mut ticks)?;
                }
            }
        }
        if step.kernel == Kernel::Gups {
            self.check_updates(step)?;
        }
        Ok(ticks)
    }

    fn launch(&self, step: &Step) -> Result<()> {
        let world = self.world;
        let (object, name) = step.kernel.object();
        let me = world.my_pe();
        let peer = match step.peer {
            Peer::Next => u64::from((me + 1) % step.pes),
            Peer::Pe(pe) => u64::from(pe),
            Peer::Team => {
                let team = self.teams.iter().find(|(pes, _)| *pes == step.pes);
                let team = team.and_then(|(_, team)| team.as_ref());
                team.context("this PE is in no team of that size")?.id() as u64
            }
        };
        let extra = match step.kernel {
            Kernel::PingPong => u64::from(me == 0),
            _ => step.extra,
        };
        let args = KernelArgs::new()
            .ctx()
            .ptr(&self.a)
            .ptr(&self.b)
            .ptr(&self.out)
            .u64(u64::from(step.engine))
            .u64(step.kind)
            .u64(peer)
            .u64(step.n)
            .u64(step.calls)
            .u64(step.samples)
            .u64(extra);
        let function = world.load(object)?.function(name)?;
        world.launch(&function, step.cores, &args)?;
        world.synchronize()?;
        Ok(())
    }

    /// What one call adds to the counters: a launch without it, and one with it.
    fn cost(&self, step: &Step) -> Result<Vec<u64>> {
        let world = self.world;
        let depth = u64::from(world.config().qp_depth);
        let slot = match step.kind {
            cost::PUT_NBI_32 => Some(0),
            cost::PUT_NBI_32_AT_END => Some(depth - cost::BEFORE_END),
            _ => None,
        };
        if let Some(slot) = slot.filter(|_| step.engine == Engine::Roce as u32) {
            // Both launches below make one request before the call.
            let n = (slot + depth - 2) % depth;
            self.launch(&Step {
                kind: cost::ALIGN,
                n,
                extra: depth,
                calls: 0,
                ..step.clone()
            })?;
        }
        let mut counts = [Vec::new(), Vec::new()];
        for (calls, counts) in counts.iter_mut().enumerate() {
            world.reset_stats()?;
            self.launch(&Step {
                calls: calls as u64,
                ..step.clone()
            })?;
            self.read(step, &mut [])?;
            *counts = self.counts()?;
            world.quiet()?;
        }
        let [without, with] = counts;
        let difference = |(without, with): (u64, u64)| match with {
            NOT_COUNTED => NOT_COUNTED,
            with => with.saturating_sub(without),
        };
        Ok(without.into_iter().zip(with).map(difference).collect())
    }

    /// The counters of the last launch, in the order of [`COUNTS`].
    fn counts(&self) -> Result<Vec<u64>> {
        let stats = self.world.stats()?;
        let mut counts = vec![
            stats.sq_doorbells,
            stats.cq_doorbells,
            stats.data_requests,
            stats.sync_requests,
            stats.ring_copies,
            stats.polls,
            stats.roce_bytes,
            stats.mapped_bytes,
        ];
        match self.world.sim_counters() {
            Some(sim) => counts.extend([
                sim.flags_set,
                sim.pipe_barriers,
                sim.dcci_lines + sim.dcci_all,
                sim.mte2_bytes,
                sim.mte3_bytes,
                sim.device_stores,
            ]),
            None => counts.resize(COUNTS.len(), NOT_COUNTED),
        }
        Ok(counts)
    }

    /// What an empty launch and its synchronize take, as ticks.
    fn launches(&self, step: &Step, ticks: &mut [u64]) -> Result<()> {
        let (object, name) = step.kernel.object();
        let function = self.world.load(object)?.function(name)?;
        for turn in 0..=ticks.len() {
            let begin = Instant::now();
            for _ in 0..step.calls {
                self.world
                    .launch(&function, step.cores, &KernelArgs::new())?;
                self.world.synchronize()?;
            }
            let seconds = begin.elapsed().as_secs_f64();
            if turn > 0 {
                ticks[turn - 1] = (seconds / self.tick) as u64;
            }
        }
        Ok(())
    }

    fn read(&self, step: &Step, ticks: &mut [u64]) -> Result<()> {
        let words = step.result_words() as usize;
        let mut mine = vec![0u64; words];
        for core in 0..step.cores as usize {
            self.world.read(&self.out, core * words, &mut mine)?;
            if mine[0] != 0 {
                bail!("core {core} recorded device error {}", mine[0]);
            }
            for (most, word) in ticks.iter_mut().zip(&mine[1..]) {
                *most = (*most).max(*word);
            }
        }
        Ok(())
    }

    /// Every update arrived: the tables' words add up to the number of updates.
    fn check_updates(&self, step: &Step) -> Result<()> {
        self.world.barrier_all()?;
        let mut bytes = vec![0u8; step.n as usize * 8];
        self.world.read(&self.a, 0, &mut bytes)?;
        let mine: u64 = bytes
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
            .sum();
        let all: u64 = self
            .world
            .exchange(&mine.to_ne_bytes())?
            .iter()
            .map(|word| u64::from_ne_bytes(word.as_slice().try_into().unwrap_or_default()))
            .sum();
        let expected =
            u64::from(step.pes) * u64::from(step.cores) * step.calls * (step.samples + 1);
        if all != expected {
            bail!("{expected} updates were made, and the tables hold {all}");
        }
        Ok(())
    }
}
