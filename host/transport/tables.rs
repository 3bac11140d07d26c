//! The tables of device/abi.h in device memory: filled here, read by kernels; error records and counters read back.
//!
//! What it is not: it makes no queue pairs (bringup.rs). A block of device memory a context, and one for what they share; each table on lines of its own.

use bytemuck::Zeroable;

use crate::abi::{
    self, shmem_abort, shmem_core, shmem_ctx, shmem_error, shmem_peer, shmem_qp, shmem_region,
    shmem_team,
};
use crate::runtime::owners::{Device, DeviceBuffer};
use crate::runtime::AclError;

/// What a queue pair needs beside its rings, in scratch memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scratch {
    pub(super) results: u64,
    pub(super) n_results: u32,
    pub(super) bounce: u64,
    pub(super) bounce_size: u32,
    pub(super) lkey: u32,
}

/// Where the tables that all contexts of a PE share lie, bytes from the block's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SharedLayout {
    peers: u64,
    abort: u64,
    contexts: u64,
    regions: u64,
    teams: u64,
    /// Two lists a team, each of `list` bytes.
    lists: u64,
    list: u64,
    bytes: u64,
}

impl SharedLayout {
    fn new(n_pes: u64) -> SharedLayout {
        // Every table is whole lines, so they may simply follow one another.
        let line = u64::from(abi::SHMEM_LINE);
        let peers = 0;
        let abort = peers + n_pes * size_of::<shmem_peer>() as u64;
        let contexts = abort + size_of::<shmem_abort>() as u64;
        let handles = u64::from(abi::SHMEM_CTX_MAX) * size_of::<u64>() as u64;
        let regions = contexts + handles.next_multiple_of(line);
        let teams = regions + u64::from(abi::SHMEM_REGION_MAX) * size_of::<shmem_region>() as u64;
        let n_teams = u64::from(abi::SHMEM_TEAM_MAX);
        let lists = teams + n_teams * size_of::<shmem_team>() as u64;
        let list = (n_pes * size_of::<i32>() as u64).next_multiple_of(line);
        SharedLayout {
            peers,
            abort,
            contexts,
            regions,
            teams,
            lists,
            list,
            bytes: lists + 2 * n_teams * list,
        }
    }
}

/// The tables that all contexts of this PE share: peers, teams, registered memory, the list of contexts, the abort line.
pub(super) struct Shared {
    memory: DeviceBuffer,
    layout: SharedLayout,
}

impl Shared {
    /// Device memory for so many PEs, zeroed.
    pub(super) fn new(device: &Device, n_pes: u32) -> Result<Shared, AclError> {
        let layout = SharedLayout::new(n_pes.into());
        Ok(Shared {
            memory: DeviceBuffer::zeroed(device, layout.bytes)?,
            layout,
        })
    }

    /// Writes the peers' table.
    pub(super) fn write_peers(&self, peers: &[shmem_peer]) -> Result<(), AclError> {
        self.memory.write(self.layout.peers, peers)
    }

    /// Writes the addresses of this PE's contexts, by handle; 0: none.
    pub(super) fn write_contexts(&self, addresses: &[u64]) -> Result<(), AclError> {
        self.memory.write(self.layout.contexts, addresses)
    }

    /// Writes an entry of registered memory.
    pub(super) fn write_region(&self, index: u32, region: shmem_region) -> Result<(), AclError> {
        let at = self.layout.regions + u64::from(index) * size_of::<shmem_region>() as u64;
        self.memory.write(at, &[region])
    }

    /// Writes team `id`: its members by number in the team, and every PE's number in it. `rounds` is the heap offset of its sync memory.
    /// `None`: no such team any more. Only while no kernel runs.
    pub(super) fn write_team(
        &self,
        id: u32,
        team: Option<(u32, &[u32], u64)>,
        n_pes: u32,
    ) -> Result<(), AclError> {
        let at = self.layout.teams + u64::from(id) * size_of::<shmem_team>() as u64;
        let Some((my_pe, members, rounds)) = team else {
            return self.memory.write(at, &[shmem_team::zeroed()]);
        };
        let mut numbers = vec![-1i32; n_pes as usize];
        for (number, pe) in (0..).zip(members) {
            numbers[*pe as usize] = number;
        }
        let list = self.layout.lists + 2 * u64::from(id) * self.layout.list;
        let pes: Vec<i32> = members.iter().map(|pe| *pe as i32).collect();
        self.memory.write(list, &pes)?;
        self.memory.write(list + self.layout.list, &numbers)?;
        let (magic, version, size) = abi::header::<shmem_team>();
        let base = self.memory.address();
        self.memory.write(
            at,
            &[shmem_team {
                magic,
                version,
                size,
                my_pe: my_pe as i32,
                n_pes: members.len() as i32,
                members: base + list,
                numbers: base + list + self.layout.list,
                rounds,
                counts: rounds + u64::from(abi::SHMEM_SYNC_ROUNDS * abi::SHMEM_LINE),
                ..Zeroable::zeroed()
            }],
        )
    }

    /// Writes the abort line: ends every bounded wait of this PE's kernels. Code 0 takes it back.
    pub(super) fn write_abort(&self, code: u32, pe: i32) -> Result<(), AclError> {
        self.memory.write(
            self.layout.abort,
            &[shmem_abort {
                code,
                pe,
                ..Zeroable::zeroed()
            }],
        )
    }
}

/// Where the parts of one context lie, bytes from the block's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinesLayout {
    qps: u64,
    cores: u64,
    errors: u64,
    bytes: u64,
}

impl LinesLayout {
    fn new(n_pes: u64, n_cores: u64) -> LinesLayout {
        // As above; the context comes first.
        let qps = size_of::<shmem_ctx>() as u64;
        let cores = qps + n_pes * n_cores * size_of::<shmem_qp>() as u64;
        let errors = cores + n_cores * size_of::<shmem_core>() as u64;
        LinesLayout {
            qps,
            cores,
            errors,
            bytes: errors + n_cores * size_of::<shmem_error>() as u64,
        }
    }
}

/// What is one context's own: the context, its queue pairs, what its cores count, their error records.
pub(super) struct Lines {
    memory: DeviceBuffer,
    layout: LinesLayout,
    n_cores: usize,
}

impl Lines {
    /// Device memory for a context of so many PEs and comm cores, zeroed.
    pub(super) fn new(device: &Device, n_pes: u32, n_cores: u32) -> Result<Lines, AclError> {
        let layout = LinesLayout::new(n_pes.into(), n_cores.into());
        Ok(Lines {
            memory: DeviceBuffer::zeroed(device, layout.bytes)?,
            layout,
            n_cores: n_cores as usize,
        })
    }

    /// The context's address: the first argument of kernels.
    pub(super) fn context(&self) -> u64 {
        self.memory.address()
    }

    /// Writes the context; the addresses of the tables are filled in here.
    pub(super) fn write_context(
        &self,
        mut ctx: shmem_ctx,
        shared: &Shared,
    ) -> Result<(), AclError> {
        let (own, all) = (self.memory.address(), shared.memory.address());
        (ctx.magic, ctx.version, ctx.size) = abi::header::<shmem_ctx>();
        ctx.n_cores = self.n_cores as u32;
        ctx.qps = own + self.layout.qps;
        ctx.cores = own + self.layout.cores;
        ctx.errors = own + self.layout.errors;
        ctx.peers = all + shared.layout.peers;
        ctx.abort = all + shared.layout.abort;
        ctx.teams = all + shared.layout.teams;
        ctx.contexts = all + shared.layout.contexts;
        ctx.regions = all + shared.layout.regions;
        self.memory.write(0, &[ctx])
    }

    /// Writes the queue pairs' table, counters included: only while no kernel runs.
    pub(super) fn write_queues(&self, queues: &[shmem_qp]) -> Result<(), AclError> {
        self.memory.write(self.layout.qps, queues)
    }

    /// Zeroes what cores count and share.
    pub(super) fn clear_cores(&self) -> Result<(), AclError> {
        self.memory
            .write(self.layout.cores, &vec![shmem_core::zeroed(); self.n_cores])
    }

    /// What cores count and share.
    pub(super) fn read_cores(&self) -> Result<Vec<shmem_core>, AclError> {
        let mut cores = vec![shmem_core::zeroed(); self.n_cores];
        self.memory.read(self.layout.cores, &mut cores)?;
        Ok(cores)
    }

    /// Zeroes the counters of each core, and only them.
    pub(super) fn clear_counters(&self) -> Result<(), AclError> {
        let line = std::mem::offset_of!(shmem_core, data_requests) as u64;
        let bytes = size_of::<shmem_core>() as u64 - line;
        for core in 0..self.n_cores as u64 {
            let offset = self.layout.cores + core * size_of::<shmem_core>() as u64 + line;
            self.memory.write(offset, &vec![0u8; bytes as usize])?;
        }
        Ok(())
    }

    /// The error records, one a core.
    pub(super) fn read_errors(&self) -> Result<Vec<shmem_error>, AclError> {
        let mut errors = vec![shmem_error::zeroed(); self.n_cores];
        self.memory.read(self.layout.errors, &mut errors)?;
        Ok(errors)
    }

    /// Zeroes the error records.
    pub(super) fn clear_errors(&self) -> Result<(), AclError> {
        self.memory.write(
            self.layout.errors,
            &vec![shmem_error::zeroed(); self.n_cores],
        )
    }

    /// The error records; zeroed when there is one.
    pub(super) fn take_errors(&self) -> Result<Vec<shmem_error>, AclError> {
        let errors = self.read_errors()?;
        if errors.iter().any(|error| error.code != abi::SHMEM_OK) {
            self.clear_errors()?;
        }
        Ok(errors)
    }
}

/// A peer's line.
pub(super) fn peer(mapped: u64, base: u64, rkey: u32, roce: bool) -> shmem_peer {
    let (magic, version, size) = abi::header::<shmem_peer>();
    let mut engines = 0;
    if mapped != 0 {
        engines |= abi::SHMEM_ENGINE_MAPPED;
    }
    if roce {
        engines |= abi::SHMEM_ENGINE_ROCE;
    }
    shmem_peer {
        magic,
        version,
        size,
        mapped,
        base,
        rkey,
        engines,
        ..Zeroable::zeroed()
    }
}

/// A queue pair's lines, with counters at zero.
pub(super) fn queue(
    rings: &npushmem_ffi::hccp::ai_data_plane_info,
    service_level: u32,
    scratch: &Scratch,
) -> shmem_qp {
    let (magic, version, size) = abi::header::<shmem_qp>();
    shmem_qp {
        magic,
        version,
        size,
        qpn: rings.sq.wqn,
        cqn: rings.scq.cqn,
        sq_depth: rings.sq.depth,
        cq_depth: rings.scq.depth,
        cqe_size: rings.scq.cqe_size,
        sl: service_level,
        sq_buf: rings.sq.buf_addr,
        cq_buf: rings.scq.buf_addr,
        sq_db: rings.sq.db_reg,
        cq_db: rings.scq.db_reg,
        results: scratch.results,
        bounce: scratch.bounce,
        n_results: scratch.n_results,
        bounce_size: scratch.bounce_size,
        scratch_lkey: scratch.lkey,
        usable: 1,
        ..Zeroable::zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_one_another_on_whole_lines() {
        for (n_pes, n_cores) in [(1, 1), (3, 5), (7, 4), (64, 48)] {
            let (shared, lines) = (SharedLayout::new(n_pes), LinesLayout::new(n_pes, n_cores));
            for offset in [
                shared.peers,
                shared.abort,
                shared.contexts,
                shared.regions,
                shared.teams,
                shared.lists,
                shared.list,
                shared.bytes,
                lines.qps,
                lines.cores,
                lines.errors,
                lines.bytes,
            ] {
                assert_eq!(offset % u64::from(abi::SHMEM_LINE), 0);
            }
            assert_eq!(lines.cores - lines.qps, n_pes * n_cores * 256);
            assert!(shared.abort < shared.contexts && shared.contexts < shared.regions);
            assert!(lines.errors < lines.bytes && shared.lists < shared.bytes);
        }
    }

    #[test]
    fn engines_say_what_reaches_a_peer() {
        assert_eq!(peer(0, 1, 2, true).engines, abi::SHMEM_ENGINE_ROCE);
        assert_eq!(
            peer(1, 1, 2, true).engines,
            abi::SHMEM_ENGINE_ROCE | abi::SHMEM_ENGINE_MAPPED
        );
        assert_eq!(peer(0, 1, 2, false).engines, 0);
    }
}
