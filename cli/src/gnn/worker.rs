//! One PE of `npushmem gnn`, as a process of its own: loads its part of the job into symmetric memory, runs the kernels, hands results and counters
//! back. Started by mod.rs through the launcher; not for users.

use std::time::Instant;

use anyhow::{Context, Result};
use bytemuck::{Pod, Zeroable};
use clap::Args;
use npushmem::{kernels, Args as KernelArgs, Function, SymBuf, World};

use super::abi::{Job, MAGIC, PROGRESS_STRIDE, VERSION, WINDOW};
use super::handover::{ComputeSections, Inherited, Measured, PeReport, Section};
use crate::failure::Failure;

/// Byte that memory is filled with before each launch: all bytes together make NaNs, so that a row that was not written shows.
const POISON: u8 = 0xff;

/// Where the parent left the work.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[arg(long)]
    jobs: i32,
    #[arg(long)]
    header: u64,
    #[arg(long)]
    results: i32,
}

/// Runs the PE.
pub fn run(args: WorkerArgs) -> Result<(), Failure> {
    work(args).map_err(|error| Failure::failed(chain(&error)))
}

/// An error and its causes in one text. The library's errors say their causes themselves; those are not said twice.
fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

fn work(args: WorkerArgs) -> Result<()> {
    let inherited = Inherited::open(args.jobs, args.header, args.results)
        .context("cannot read what `npushmem gnn` left for its PEs")?;
    let world = World::init()?;
    let pe = world.my_pe();
    world.enable_device(inherited.header.cores)?;
    let arrays = Arrays::allocate(&world, &inherited)?;
    let mut report = PeReport {
        fetch_once: arrays.fetch_once(&world, &inherited)?,
        all_gather: None,
    };
    inherited.write_results(pe, 0, &arrays.results(&world, &inherited)?)?;
    if inherited.header.all_gather {
        report.all_gather = Some(arrays.all_gather(&world, &inherited)?);
        inherited.write_results(pe, 1, &arrays.results(&world, &inherited)?)?;
    }
    inherited.write_report(pe, &report)?;
    drop(arrays);
    world.finalize()?;
    Ok(())
}

/// Symmetric memory, as large as the largest PE needs. Both kernels use the same arrays in turn, but for the tables.
struct Arrays {
    table: SymBuf<u8>,
    gathered: Option<SymBuf<u8>>,
    results: SymBuf<f32>,
    columns: SymBuf<u32>,
    nodes: SymBuf<super::abi::Node>,
    phases: SymBuf<super::abi::Phase>,
    batches: SymBuf<super::abi::Batch>,
    fetch: SymBuf<u32>,
    cores: SymBuf<super::abi::Core>,
    progress: SymBuf<u8>,
    job: SymBuf<Job>,
}

impl Arrays {
    /// The same calls with the same sizes on every PE.
    fn allocate(world: &World, inherited: &Inherited) -> Result<Self> {
        let header = &inherited.header;
        let cores = u64::from(header.cores);
        Ok(Self {
            table: alloc(
                world,
                (header.largest_owned + header.largest_fetch) * header.row_bytes,
            )?,
            gathered: if header.all_gather {
                Some(alloc(world, header.nodes * header.row_bytes)?)
            } else {
                None
            },
            results: alloc(world, header.largest_owned * u64::from(header.dim))?,
            columns: alloc(world, header.largest_columns)?,
            nodes: alloc(world, header.largest_owned)?,
            phases: alloc(world, header.largest_phases)?,
            batches: alloc(world, header.largest_batches)?,
            fetch: alloc(world, header.largest_fetch)?,
            cores: alloc(world, cores)?,
            progress: alloc(world, cores * PROGRESS_STRIDE as u64)?,
            job: alloc(world, 1)?,
        })
    }

    fn fetch_once(&self, world: &World, inherited: &Inherited) -> Result<Measured> {
        let header = &inherited.header;
        let mine = header.pes[world.my_pe() as usize];
        fill(world, &self.table, POISON)?;
        world.write(&self.table, 0, &inherited.read::<u8>(mine.rows)?)?;
        self.load_compute(world, inherited, &mine.fetch_once)?;
        load(world, &self.batches, inherited, mine.batches)?;
        load(world, &self.fetch, inherited, mine.fetch)?;
        let job = Job {
            table: self.table.addr(),
            staging_row: header.largest_owned as u32,
            ..self.job(inherited)
        };
        world.write(&self.job, 0, &[job])?;
        let kernel = world
            .load(&kernels::GNN_AGGREGATE)?
            .function("gnn_aggregate")?;
        let staging = (header.largest_owned * header.row_bytes) as usize;
        let poison = vec![POISON; (header.largest_fetch * header.row_bytes) as usize];
        self.measure(world, inherited, &kernel, || {
            fill(world, &self.progress, 0)?;
            // A row that a launch does not fetch must not be there from the launch before.
            Ok(world.write(&self.table, staging, &poison)?)
        })
    }

    fn all_gather(&self, world: &World, inherited: &Inherited) -> Result<Measured> {
        let header = &inherited.header;
        let mine = header.pes[world.my_pe() as usize];
        let table = self
            .gathered
            .as_ref()
            .context("no table for the baseline")?;
        self.load_compute(world, inherited, &mine.all_gather)?;
        world.write(
            &self.job,
            0,
            &[Job {
                table: table.addr(),
                ..self.job(inherited)
            }],
        )?;
        let rows = inherited.read::<u8>(mine.rows)?;
        let first = (mine.first * header.row_bytes) as usize;
        let kernel = world
            .load(&kernels::GNN_ALLGATHER)?
            .function("gnn_allgather")?;
        self.measure(world, inherited, &kernel, || {
            fill(world, table, POISON)?;
            Ok(world.write(table, first, &rows)?)
        })
    }

    fn job(&self, inherited: &Inherited) -> Job {
        let header = &inherited.header;
        Job {
            magic: MAGIC,
            version: VERSION,
            size: std::mem::size_of::<Job>() as u16,
            dim: header.dim,
            dtype: header.dtype,
            reduce: header.reduce,
            engine: header.engine,
            n_cores: header.cores,
            results: self.results.addr(),
            columns: self.columns.addr(),
            nodes: self.nodes.addr(),
            phases: self.phases.addr(),
            batches: self.batches.addr(),
            fetch: self.fetch.addr(),
            cores: self.cores.addr(),
            progress: self.progress.addr(),
            window: WINDOW,
            ..Job::zeroed()
        }
    }

    fn load_compute(
        &self,
        world: &World,
        inherited: &Inherited,
        sections: &ComputeSections,
    ) -> Result<()> {
        load(world, &self.cores, inherited, sections.cores)?;
        load(world, &self.nodes, inherited, sections.nodes)?;
        load(world, &self.phases, inherited, sections.phases)?;
        load(world, &self.columns, inherited, sections.columns)
    }

    /// Launches once for the caches and then `repeat` times. `prepare` comes before each launch, is not timed, and all PEs meet after it.
    fn measure(
        &self,
        world: &World,
        inherited: &Inherited,
        kernel: &Function,
        prepare: impl Fn() -> Result<()>,
    ) -> Result<Measured> {
        let header = &inherited.header;
        let args = KernelArgs::new().ctx().ptr(&self.job);
        let mut measured = Measured::default();
        for launch in 0..=header.repeat {
            prepare()?;
            fill(
                world,
                &self.results,
                f32::from_bits(u32::from_ne_bytes([POISON; 4])),
            )?;
            world.reset_stats()?;
            world.barrier_all()?;
            let start = Instant::now();
            world.launch(kernel, header.cores, &args)?;
            world.synchronize()?;
            let seconds = start.elapsed().as_secs_f64();
            measured.acl_calls += world.acl_calls_during_kernel();
            if launch > 0 {
                measured.seconds.push(seconds);
            }
        }
        let stats = world.stats()?;
        measured.requests = stats.data_requests;
        measured.sync_requests = stats.sync_requests;
        measured.sq_doorbells = stats.sq_doorbells;
        measured.cq_doorbells = stats.cq_doorbells;
        measured.roce_bytes = stats.roce_bytes;
        measured.mapped_bytes = stats.mapped_bytes;
        // Nobody may give memory back or rewrite it while a peer still reads it.
        world.barrier_all()?;
        Ok(measured)
    }

    /// The rows that this PE computed.
    fn results(&self, world: &World, inherited: &Inherited) -> Result<Vec<f32>> {
        let owned = inherited.header.pes[world.my_pe() as usize].owned;
        let mut rows = vec![0f32; (owned * u64::from(inherited.header.dim)) as usize];
        world.read(&self.results, 0, &mut rows)?;
        Ok(rows)
    }
}

fn alloc<T: Pod>(world: &World, count: u64) -> Result<SymBuf<T>> {
    Ok(world.alloc::<T>(count.max(1) as usize)?)
}

fn load<T: Pod>(
    world: &World,
    target: &SymBuf<T>,
    inherited: &Inherited,
    section: Section,
) -> Result<()> {
    Ok(world.write(target, 0, &inherited.read::<T>(section)?)?)
}

fn fill<T: Pod>(world: &World, target: &SymBuf<T>, value: T) -> Result<()> {
    Ok(world.write(target, 0, &vec![value; target.len()])?)
}
