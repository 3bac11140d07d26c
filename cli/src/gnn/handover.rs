//! What the parent hands to the PEs and back: two anonymous files (memfd) that the PEs inherit, one with every PE's job, one for the results.
//!
//! Anonymous files leave nothing behind, however the processes end. Used by both sides: mod.rs in the parent, worker.rs in the PEs.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use bytemuck::Pod;
use rustix::fs::{memfd_create, MemfdFlags};
use serde::{Deserialize, Serialize};

use super::abi::{Batch, Core, Node, Phase};
use super::{GnnArgs, BATCH};
use crate::features::Features;
use crate::graph::Graph;
use crate::plan::{self, Compute, Partition, Shape};
use crate::progress;

/// Room for a PE's report, before its results.
const REPORT_BYTES: u64 = 64 << 10;

/// A piece of the job file.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Section {
    offset: u64,
    bytes: u64,
}

/// One kernel's arrays of one PE.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ComputeSections {
    /// [`Core`] records.
    pub cores: Section,
    /// [`Node`] records.
    pub nodes: Section,
    /// [`Phase`] records.
    pub phases: Section,
    /// Table rows of neighbours.
    pub columns: Section,
}

/// What one PE reads from the job file.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct PeJob {
    /// Rows that the PE owns.
    pub owned: u64,
    /// Position of the first of them.
    pub first: u64,
    /// Their features.
    pub rows: Section,
    /// Work of the fetch-once kernel.
    pub fetch_once: ComputeSections,
    /// [`Batch`] records.
    pub batches: Section,
    /// Row at its owner, for each staging slot.
    pub fetch: Section,
    /// Work of the baseline.
    pub all_gather: ComputeSections,
}

/// The same for every PE, and the largest arrays of any: symmetric memory is allocated for these.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Header {
    /// Features a row.
    pub dim: u32,
    /// Code of kernels/gnn_abi.h.
    pub dtype: u32,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Code of kernels/gnn_abi.h.
    pub reduce: u32,
    /// Code of device/abi.h.
    pub engine: u32,
    /// Comm cores a PE.
    pub cores: u32,
    /// Timed launches of each kernel.
    pub repeat: u32,
    /// Whether the baseline runs.
    pub all_gather: bool,
    /// Nodes of the graph.
    pub nodes: u64,
    /// Rows of the largest PE; the first staging slot.
    pub largest_owned: u64,
    /// Most distinct remote rows of a PE.
    pub largest_fetch: u64,
    /// Most phases of a PE, in either kernel.
    pub largest_phases: u64,
    /// Most neighbours of a PE's nodes.
    pub largest_columns: u64,
    /// Most batches of a PE.
    pub largest_batches: u64,
    /// One entry a PE.
    pub pes: Vec<PeJob>,
}

impl Header {
    /// Bytes of symmetric heap that the worker allocates.
    pub fn heap_bytes(&self) -> u64 {
        let table = (self.largest_owned + self.largest_fetch) * self.row_bytes;
        let baseline = if self.all_gather {
            self.nodes * self.row_bytes
        } else {
            0
        };
        let results = self.largest_owned * u64::from(self.dim) * 4;
        let cores = u64::from(self.cores) * 64 * 2;
        let plan = self.largest_owned * 8
            + self.largest_phases * 16
            + self.largest_columns * 4
            + self.largest_batches * 16
            + self.largest_fetch * 4;
        table + baseline + results + cores + plan
    }

    fn result_stride(&self) -> u64 {
        REPORT_BYTES + 2 * self.largest_owned * u64::from(self.dim) * 4
    }
}

/// What a PE says about its run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds from launch to the end of synchronize, of each timed launch.
    pub seconds: Vec<f64>,
    /// Work requests for data, of the last launch, as all further counters.
    pub requests: u64,
    /// Work requests of barriers.
    pub sync_requests: u64,
    /// Send doorbells.
    pub sq_doorbells: u64,
    /// Doorbells of completion queues.
    pub cq_doorbells: u64,
    /// Payload bytes of work requests.
    pub roce_bytes: u64,
    /// Payload bytes copied through mapped addresses.
    pub mapped_bytes: u64,
    /// ACL calls of this process while the kernels ran, the waits for them apart; added up over all launches.
    pub acl_calls: u64,
}

/// Both kernels of one PE.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PeReport {
    /// The fetch-once kernel.
    pub fetch_once: Measured,
    /// The baseline, when it ran.
    pub all_gather: Option<Measured>,
}

/// The results of all PEs.
#[derive(Debug)]
pub struct Outcome {
    /// One report a PE.
    pub reports: Vec<PeReport>,
    /// nodes x dim, in order of node.
    pub results: Vec<f32>,
    /// The baseline's.
    pub baseline_results: Option<Vec<f32>>,
}

/// The parent's side.
pub struct Jobs {
    jobs: File,
    results: File,
    header: Header,
    header_offset: u64,
    /// Entries of the adjacency that are remote, over all PEs.
    pub remote_entries: u64,
    /// Distinct remote rows of each PE.
    pub distinct: Vec<u64>,
}

/// A file without a name that child processes inherit.
fn anonymous(name: &str) -> io::Result<File> {
    let descriptor: OwnedFd = memfd_create(name, MemfdFlags::empty())?;
    Ok(File::from(descriptor))
}

struct Writer<'a> {
    file: &'a File,
    end: u64,
}

impl Writer<'_> {
    fn put<T: Pod>(&mut self, values: &[T]) -> io::Result<Section> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let section = Section {
            offset: self.end,
            bytes: bytes.len() as u64,
        };
        self.file.write_all_at(bytes, self.end)?;
        self.end = (self.end + section.bytes).next_multiple_of(64);
        Ok(section)
    }

    fn put_compute(&mut self, compute: &Compute) -> io::Result<ComputeSections> {
        Ok(ComputeSections {
            cores: self.put::<Core>(&compute.cores)?,
            nodes: self.put::<Node>(&compute.nodes)?,
            phases: self.put::<Phase>(&compute.phases)?,
            columns: self.put::<u32>(&compute.columns)?,
        })
    }
}

impl Jobs {
    /// Plans every PE and writes the job file. One plan is in memory at a time.
    pub fn new(
        args: &GnnArgs,
        graph: &Graph,
        features: &Features,
        partition: &Partition,
    ) -> io::Result<Self> {
        let jobs = anonymous("npushmem-gnn-jobs")?;
        let results = anonymous("npushmem-gnn-results")?;
        let mut writer = Writer {
            file: &jobs,
            end: 0,
        };
        let mut header = Header {
            dim: features.dim as u32,
            dtype: features.dtype as u32,
            row_bytes: features.row_bytes() as u64,
            reduce: args.reduce as u32,
            engine: args.engine as u32,
            cores: args.cores,
            repeat: args.repeat,
            all_gather: !args.skip_allgather,
            nodes: graph.nodes() as u64,
            largest_owned: partition.largest() as u64,
            ..Header::default()
        };
        let shape = Shape {
            cores: args.cores as usize,
            batch: BATCH,
            staging_row: partition.largest() as u32,
        };
        let (mut remote_entries, mut distinct) = (0, Vec::new());
        let bar = progress::count("planning", partition.pes() as u64);
        for pe in 0..partition.pes() {
            let plan = plan::fetch_once(graph, partition, pe, shape);
            let mut job = PeJob {
                owned: partition.owned(pe) as u64,
                first: u64::from(partition.starts[pe]),
                ..PeJob::default()
            };
            let rows: Vec<u8> = partition
                .nodes_of(pe)
                .iter()
                .flat_map(|&node| features.row(node as usize))
                .copied()
                .collect();
            job.rows = writer.put(&rows)?;
            job.fetch_once = writer.put_compute(&plan.compute)?;
            job.batches = writer.put::<Batch>(&plan.batches)?;
            job.fetch = writer.put(&plan.fetch)?;
            let mut phases = plan.compute.phases.len();
            if header.all_gather {
                let baseline = plan::all_gather(graph, partition, pe, args.cores as usize);
                phases = phases.max(baseline.phases.len());
                job.all_gather = writer.put_compute(&baseline)?;
            }
            let raise = |largest: &mut u64, value: usize| *largest = (*largest).max(value as u64);
            raise(&mut header.largest_fetch, plan.fetch.len());
            raise(&mut header.largest_phases, phases);
            raise(&mut header.largest_columns, plan.compute.columns.len());
            raise(&mut header.largest_batches, plan.batches.len());
            remote_entries += plan.remote_entries;
            distinct.push(plan.fetch.len() as u64);
            header.pes.push(job);
            bar.inc(1);
        }
        bar.finish_and_clear();
        let header_offset = writer.end;
        writer.put(&serde_json::to_vec(&header)?)?;
        Ok(Self {
            jobs,
            results,
            header,
            header_offset,
            remote_entries,
            distinct,
        })
    }

    /// Bytes of symmetric heap that each PE needs.
    pub fn heap_bytes(&self) -> u64 {
        self.header.heap_bytes()
    }

    /// Arguments of the PEs' processes, which inherit the files.
    pub fn worker_args(&self) -> Vec<OsString> {
        let options = [
            ("--jobs", self.jobs.as_raw_fd().to_string()),
            ("--header", self.header_offset.to_string()),
            ("--results", self.results.as_raw_fd().to_string()),
        ];
        std::iter::once("gnn-pe".into())
            .chain(
                options
                    .into_iter()
                    .flat_map(|(name, value)| [name.into(), value.into()]),
            )
            .collect()
    }

    /// Puts the results of all PEs in order of node.
    pub fn collect(&self, partition: &Partition) -> io::Result<Outcome> {
        let dim = self.header.dim as usize;
        let mut outcome = Outcome {
            reports: Vec::new(),
            results: vec![0.0; self.header.nodes as usize * dim],
            baseline_results: self
                .header
                .all_gather
                .then(|| vec![0.0; self.header.nodes as usize * dim]),
        };
        for pe in 0..partition.pes() {
            let start = pe as u64 * self.header.result_stride();
            let mut text = vec![0u8; REPORT_BYTES as usize];
            self.results.read_exact_at(&mut text, start)?;
            let length = text
                .iter()
                .position(|&byte| byte == 0)
                .unwrap_or(text.len());
            outcome
                .reports
                .push(serde_json::from_slice(&text[..length])?);
            let mut rows = vec![0f32; partition.owned(pe) * dim];
            let targets =
                std::iter::once(&mut outcome.results).chain(&mut outcome.baseline_results);
            for (index, target) in targets.enumerate() {
                let offset = start
                    + REPORT_BYTES
                    + index as u64 * self.header.largest_owned * dim as u64 * 4;
                self.results
                    .read_exact_at(bytemuck::cast_slice_mut(&mut rows), offset)?;
                for (row, &node) in rows.chunks_exact(dim).zip(partition.nodes_of(pe)) {
                    target[node as usize * dim..(node as usize + 1) * dim].copy_from_slice(row);
                }
            }
        }
        Ok(outcome)
    }
}

/// The PE's side.
pub struct Inherited {
    jobs: File,
    results: File,
    /// What all PEs do.
    pub header: Header,
}

impl Inherited {
    /// Opens the inherited files.
    pub fn open(jobs: RawFd, header_offset: u64, results: RawFd) -> io::Result<Self> {
        let open = |descriptor: RawFd| {
            File::options()
                .read(true)
                .write(true)
                .open(format!("/proc/self/fd/{descriptor}"))
        };
        let (jobs, results) = (open(jobs)?, open(results)?);
        let length = jobs.metadata()?.len();
        let mut text = vec![0u8; length.saturating_sub(header_offset) as usize];
        jobs.read_exact_at(&mut text, header_offset)?;
        Ok(Self {
            jobs,
            results,
            header: serde_json::from_slice(&text)?,
        })
    }

    /// Reads a section.
    pub fn read<T: Pod>(&self, section: Section) -> io::Result<Vec<T>> {
        let mut values = vec![T::zeroed(); section.bytes as usize / std::mem::size_of::<T>()];
        self.jobs
            .read_exact_at(bytemuck::cast_slice_mut(&mut values), section.offset)?;
        Ok(values)
    }

    /// Writes the results of one kernel (0: fetch once, 1: baseline).
    pub fn write_results(&self, pe: u32, kernel: u64, rows: &[f32]) -> io::Result<()> {
        let offset = u64::from(pe) * self.header.result_stride()
            + REPORT_BYTES
            + kernel * self.header.largest_owned * u64::from(self.header.dim) * 4;
        self.results
            .write_all_at(bytemuck::cast_slice(rows), offset)
    }

    /// Writes the report; the run of this PE is complete.
    pub fn write_report(&self, pe: u32, report: &PeReport) -> io::Result<()> {
        let mut text = serde_json::to_vec(report)?;
        if text.len() as u64 >= REPORT_BYTES {
            return Err(io::Error::other("the report is too long"));
        }
        text.resize(REPORT_BYTES as usize, 0);
        self.results
            .write_all_at(&text, u64::from(pe) * self.header.result_stride())
    }
}
