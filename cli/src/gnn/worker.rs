//! One PE of `npushmem gnn`, as a process of its own: loads its part of the job into symmetric memory, runs the kernels, hands results and counters
//! back. Started by mod.rs through the launcher; not for users.

use std::time::Instant;

use anyhow::{Context, Result};
use bytemuck::{Pod, Zeroable};
use clap::Args;
use npushmem::{kernels, Args as KernelArgs, Function, SymBuf, World};

use super::abi::{Job, MAGIC, PROGRESS_STRIDE, VERSION, WINDOW};
use super::handover::{ComputeSections, Inherited, Measured, PeReport, Section};
use crate::failure::{self, Failure};

/// Byte that memory is filled with before each launch: all bytes together make NaNs, so that a row that was not written shows.
const POISON: u8 = 0xff;
/// The same as a value of f32.
const NOT_WRITTEN: f32 = f32::from_bits(u32::from_ne_bytes([POISON; 4]));

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
    work(args).map_err(|error| Failure::failed(failure::chain(&error)))
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
    inherited.write_results(pe, 0, &arrays.results(&world, &inherited, 0)?)?;
    if inherited.header.all_gather {
        report.all_gather = Some(arrays.all_gather(&world, &inherited)?);
        let first = gathered_row(&inherited, pe);
        inherited.write_results(pe, 1, &arrays.results(&world, &inherited, first)?)?;
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
    outputs: Vec<SymBuf<f32>>,
    sums: SymBuf<f32>,
    columns: SymBuf<u32>,
    weights: SymBuf<f32>,
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
        Ok(Self {
            table: alloc(world, header.table_rows() * header.row_bytes)?,
            gathered: if header.all_gather {
                Some(alloc(world, header.nodes * header.row_bytes)?)
            } else {
                None
            },
            outputs: (0..header.layers.min(2))
                .map(|which| alloc(world, header.output_rows(which) * u64::from(header.dim)))
                .collect::<Result<_>>()?,
            sums: alloc(world, header.largest_sums * u64::from(header.dim))?,
            columns: alloc(world, header.largest_columns)?,
            weights: alloc(world, header.largest_weights())?,
            nodes: alloc(world, header.largest_nodes)?,
            phases: alloc(world, header.largest_phases)?,
            batches: alloc(world, header.largest_batches)?,
            fetch: alloc(world, header.largest_fetch)?,
            cores: alloc(world, header.core_records())?,
            progress: alloc(world, header.progress_lines() * PROGRESS_STRIDE as u64)?,
            job: alloc(world, 1)?,
        })
    }

    /// The kernel that moves what is needed: fetch-once, or scatter in the backward pass.
    fn fetch_once(&self, world: &World, inherited: &Inherited) -> Result<Measured> {
        let header = &inherited.header;
        let mine = header.pes[world.my_pe() as usize];
        fill(world, &self.table, POISON)?;
        world.write(&self.table, 0, &inherited.read::<u8>(mine.rows)?)?;
        self.load_compute(world, inherited, &mine.compute)?;
        load(world, &self.batches, inherited, mine.batches)?;
        load(world, &self.fetch, inherited, mine.fetch)?;
        let job = Job {
            table: self.table.addr(),
            staging_row: header.largest_owned as u32,
            ..self.job(inherited)
        };
        world.write(&self.job, 0, &[job])?;
        let kernel = if header.backward {
            world.load(&kernels::GNN_SCATTER)?.function("gnn_scatter")?
        } else {
            world
                .load(&kernels::GNN_AGGREGATE)?
                .function("gnn_aggregate")?
        };
        let staging = (header.largest_owned * header.row_bytes) as usize;
        let poison = vec![POISON; (header.largest_staging * header.row_bytes) as usize];
        self.measure(world, inherited, &kernel, || {
            fill(world, &self.progress, 0)?;
            fill(world, &self.sums, NOT_WRITTEN)?;
            // A row that a launch does not move must not be there from the launch before.
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
                output_row: gathered_row(inherited, world.my_pe()) as u32,
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
            outputs: [0, 1].map(|which| self.outputs.get(which).map_or(0, SymBuf::addr)),
            columns: self.columns.addr(),
            weights: if header.weighted {
                self.weights.addr()
            } else {
                0
            },
            nodes: self.nodes.addr(),
            phases: self.phases.addr(),
            batches: self.batches.addr(),
            fetch: self.fetch.addr(),
            cores: self.cores.addr(),
            progress: self.progress.addr(),
            sums: self.sums.addr(),
            window: WINDOW,
            layers: header.layers,
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
        load(world, &self.columns, inherited, sections.columns)?;
        load(world, &self.weights, inherited, sections.weights)
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
            for output in &self.outputs {
                fill(world, output, NOT_WRITTEN)?;
            }
            world.reset_stats()?;
            world.barrier_all()?;
            let start = Instant::now();
            measured.launches = 0;
            world.launch(kernel, header.cores, &args)?;
            measured.launches += 1; // it does all layers
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

    /// The rows that this PE computed, which begin at row `first` of the last layer's output.
    fn results(&self, world: &World, inherited: &Inherited, first: u64) -> Result<Vec<f32>> {
        let header = &inherited.header;
        let owned = header.pes[world.my_pe() as usize].owned;
        let dim = u64::from(header.dim);
        let mut rows = vec![0f32; (owned * dim) as usize];
        let output = &self.outputs[(header.layers as usize - 1) % 2];
        world.read(output, (first * dim) as usize, &mut rows)?;
        Ok(rows)
    }
}

/// Row of the outputs where the baseline writes the first row of `pe`: its place among all rows where a further layer gathers them.
fn gathered_row(inherited: &Inherited, pe: u32) -> u64 {
    if inherited.header.layers == 1 {
        0
    } else {
        inherited.header.pes[pe as usize].first
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
