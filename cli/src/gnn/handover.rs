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

use super::abi::{Batch, Core, Node, Phase, PROGRESS_STRIDE};
use super::{GnnArgs, Reduce, BATCH};
use crate::features::Features;
use crate::plan::{self, Compute, Partition, Shape, Weighted};
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
    /// Their weights.
    pub weights: Section,
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
    /// Work of the fetch-once kernel, or of the backward kernel.
    pub compute: ComputeSections,
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
    /// Layers of one launch.
    pub layers: u32,
    /// Whether gradients are scattered; else features are gathered.
    pub backward: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// Timed launches of each kernel.
    pub repeat: u32,
    /// Whether the baseline runs.
    pub all_gather: bool,
    /// Nodes of the graph.
    pub nodes: u64,
    /// Rows of the largest PE; the first staging slot.
    pub largest_owned: u64,
    /// Most distinct remote rows that a PE fetches.
    pub largest_fetch: u64,
    /// Most staging slots of a PE.
    pub largest_staging: u64,
    /// Most rows that a PE sends in the backward pass.
    pub largest_sums: u64,
    /// Most node records of a PE, in either kernel.
    pub largest_nodes: u64,
    /// Most phases of a PE, in either kernel.
    pub largest_phases: u64,
    /// Most edges of a PE's nodes, in either kernel.
    pub largest_columns: u64,
    /// Most batches of a PE.
    pub largest_batches: u64,
    /// One entry a PE.
    pub pes: Vec<PeJob>,
}

impl Header {
    /// Rows of the table that layer 0 reads.
    pub fn table_rows(&self) -> u64 {
        self.largest_owned + self.largest_staging
    }

    /// Rows of the table that layers `which`, `which + 2`, ... write: only own rows where no layer reads it.
    pub fn output_rows(&self, which: u32) -> u64 {
        if which >= self.layers {
            return 0;
        }
        if self.layers == 1 {
            return self.largest_owned;
        }
        let gathered = if self.all_gather { self.nodes } else { 0 };
        self.table_rows().max(gathered)
    }

    /// Core records: a second set says what the backward kernel's cores send.
    pub fn core_records(&self) -> u64 {
        u64::from(self.cores) * if self.backward { 2 } else { 1 }
    }

    /// Lines of progress.
    pub fn progress_lines(&self) -> u64 {
        u64::from(self.cores) * u64::from(self.layers)
    }

    /// Weights of a PE.
    pub fn largest_weights(&self) -> u64 {
        if self.weighted {
            self.largest_columns
        } else {
            0
        }
    }

    /// Bytes of symmetric heap that the worker allocates.
    pub fn heap_bytes(&self) -> u64 {
        let baseline = if self.all_gather {
            self.nodes * self.row_bytes
        } else {
            0
        };
        let rows = self.output_rows(0) + self.output_rows(1) + self.largest_sums;
        let plan = self.core_records() * 64
            + self.progress_lines() * PROGRESS_STRIDE as u64
            + self.largest_nodes * 8
            + self.largest_phases * 16
            + self.largest_columns * 4
            + self.largest_weights() * 4
            + self.largest_batches * 16
            + self.largest_fetch * 4;
        self.table_rows() * self.row_bytes + baseline + rows * u64::from(self.dim) * 4 + plan
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
    /// Launches of the kernel for one result.
    pub launches: u64,
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
    /// The fetch-once kernel, or the backward kernel.
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
    /// Distinct remote rows of each PE in each layer: fetched, or sent in the backward pass.
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
            weights: self.put::<f32>(&compute.weights)?,
        })
    }
}

/// What is to be computed, in the kernels' terms.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The adjacency; for the backward pass it is the forward pass's.
    pub matrix: Weighted<'a>,
    /// The rows of layer 0; f32 for the backward pass.
    pub features: &'a Features,
    /// How the kernel combines.
    pub reduce: Reduce,
    /// Who owns what.
    pub partition: &'a Partition,
}

impl Jobs {
    /// Plans every PE and writes the job file. One plan is in memory at a time.
    pub fn new(args: &GnnArgs, task: Task<'_>) -> io::Result<Self> {
        let Task {
            matrix,
            features,
            partition,
            ..
        } = task;
        let graph = matrix.graph;
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
            reduce: task.reduce as u32,
            engine: args.engine as u32,
            cores: args.cores,
            layers: args.layers,
            backward: args.backward,
            weighted: matrix.weights.is_some(),
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
        // The backward pass needs to know who sends what to whom; the baseline pulls along the edges turned round.
        let senders = if args.backward {
            (0..partition.pes())
                .map(|pe| plan::remote_positions(graph, partition, pe))
                .collect()
        } else {
            Vec::new()
        };
        let (remote, entries): (Vec<_>, Vec<u64>) = senders.into_iter().unzip();
        remote_entries += entries.iter().sum::<u64>();
        let turned = (args.backward && header.all_gather).then(|| graph.transposed(matrix.weights));
        let bar = progress::count("planning", partition.pes() as u64);
        for pe in 0..partition.pes() {
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
            let raise = |largest: &mut u64, value: usize| *largest = (*largest).max(value as u64);
            let mut all = |compute: &Compute| {
                raise(&mut header.largest_phases, compute.phases.len());
                raise(&mut header.largest_columns, compute.columns.len());
                raise(&mut header.largest_nodes, compute.nodes.len());
            };
            let (batches, moved) = if args.backward {
                let plan = plan::scatter(matrix, partition, &remote, pe, shape);
                all(&plan.compute);
                job.compute = writer.put_compute(&plan.compute)?;
                job.batches = writer.put::<Batch>(&plan.batches)?;
                raise(&mut header.largest_sums, plan.sent);
                raise(&mut header.largest_staging, plan.received);
                (plan.batches.len(), plan.sent)
            } else {
                let plan = plan::fetch_once(matrix, partition, pe, shape);
                all(&plan.compute);
                job.compute = writer.put_compute(&plan.compute)?;
                job.batches = writer.put::<Batch>(&plan.batches)?;
                job.fetch = writer.put(&plan.fetch)?;
                remote_entries += plan.remote_entries;
                raise(&mut header.largest_fetch, plan.fetch.len());
                raise(&mut header.largest_staging, plan.fetch.len());
                (plan.batches.len(), plan.fetch.len())
            };
            if header.all_gather {
                let matrix = turned.as_ref().map_or(matrix, |turned| Weighted {
                    graph: turned,
                    weights: turned.weights.as_deref(),
                });
                let baseline = plan::all_gather(matrix, partition, pe, args.cores as usize);
                all(&baseline);
                job.all_gather = writer.put_compute(&baseline)?;
            }
            raise(&mut header.largest_batches, batches);
            distinct.push(moved as u64);
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
