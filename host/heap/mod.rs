//! The symmetric heap: one address reservation a PE, this PE's memory mapped in its own, the peers' memory mapped where it can be reached.
//!
//! alloc.rs hands out offsets. The heap begins with the sync area of device/abi.h, zeroed, and, where host code can touch it, the area of
//! collectives between hosts (shm/layout.rs); what the user allocates comes after them. A remote
//! address is the peer's base + offset, never "the same address everywhere". What it is not: it knows nothing of queue pairs; transport/
//! registers this memory with the NIC. Called by world.rs.
//!
//! Sequence and rules (one reservation an owner, sizes in whole granules, import in another process only): the vendor's documentation of
//! aclrtReserveMemAddress, aclrtMallocPhysical, aclrtMapMem and the shareable-handle calls.

pub mod alloc;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::{Pod, Zeroable};
use npushmem_ffi::acl;

use crate::abi;
use crate::bootstrap::wire::Label;
use crate::bootstrap::Bootstrap;
use crate::config::{size_text, Config, HeapSize, Mapped, MIN_HEAP};
use crate::error::Error;
use crate::runtime::owners::{Device, Mapping, PhysicalMemory, Place, SharedHandle};
use crate::runtime::result::{DeviceAddress, FABRIC_HANDLE_SIZE};
use crate::runtime::{self, AclError, Series};
use crate::shm::layout;
use alloc::{Block, SymmetricAllocator, UNIT};

/// The symmetric heap failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HeapError {
    /// No room.
    #[error("symmetric heap exhausted: asked {}, free {} (largest block {}, {live} live allocations); raise SHMEM_SYMMETRIC_SIZE (now {})", size_text(*asked), size_text(*free), size_text(*largest), size_text(*size))]
    Exhausted {
        /// Bytes asked.
        asked: u64,
        /// Bytes free.
        free: u64,
        /// The largest request that would succeed.
        largest: u64,
        /// Live allocations.
        live: u64,
        /// The heap's size.
        size: u64,
    },
    /// More elements than bytes can be counted.
    #[error("{elements} elements of {size} bytes are more than any heap holds")]
    Overflow {
        /// Elements asked.
        elements: usize,
        /// Bytes of one.
        size: usize,
    },
    /// The device has no such memory.
    #[error("the device has no {} for the symmetric heap ({} of {} free): {source}; lower SHMEM_SYMMETRIC_SIZE, or free device memory", size_text(*asked), size_text(*free), size_text(*total))]
    Memory {
        /// Bytes asked.
        asked: u64,
        /// Free bytes of the device.
        free: u64,
        /// All bytes of the device.
        total: u64,
        /// The runtime's error.
        #[source]
        source: AclError,
    },
    /// A percentage of memory that is too little, or of memory that is not known.
    #[error("SHMEM_SYMMETRIC_SIZE={percent}% of {} for {sharers} PEs is {} a PE; a heap has {} at least", size_text(*memory), size_text(*bytes), size_text(MIN_HEAP))]
    Share {
        /// The setting.
        percent: f64,
        /// Bytes that are shared out; 0 where the system does not say.
        memory: u64,
        /// PEs that share them.
        sharers: u32,
        /// Bytes a PE.
        bytes: u64,
    },
    /// PEs with different heaps.
    #[error("the heap is not symmetric: {what} is {mine} here (PE {me}) and {theirs} on PE {pe}; give all PEs the same settings and devices of one kind")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// This PE.
        me: u32,
        /// The other PE.
        pe: u32,
        /// Here.
        mine: u64,
        /// There.
        theirs: u64,
    },
    /// Different calls on different PEs.
    #[error("the heap is not symmetric: PE {me} has made {mine} heap calls and PE {pe} {theirs}, or with other sizes; alloc and drop must be called alike by all PEs, in the same order (NPUSHMEM_CHECK=off skips this check)")]
    Asymmetric {
        /// This PE.
        me: u32,
        /// The first PE that differs.
        pe: u32,
        /// Calls here.
        mine: u64,
        /// Calls there.
        theirs: u64,
    },
    /// A peer of this machine that cannot be mapped, with `NPUSHMEM_MAPPED=on`.
    #[error("PE {pe}'s heap cannot be mapped: {reason}; NPUSHMEM_MAPPED=auto goes on without")]
    CannotMap {
        /// The peer.
        pe: u32,
        /// Why.
        reason: String,
    },
    /// The host cannot reach a peer's memory.
    #[error("the host cannot reach PE {pe}'s heap: it is not mapped ({reason}); let a kernel do it, or set NPUSHMEM_MAPPED=auto")]
    NotMapped {
        /// The peer.
        pe: u32,
        /// Why.
        reason: String,
    },
    /// Elements outside a buffer.
    #[error("elements {start}..{} are outside a buffer of {len}", start.saturating_add(*count))]
    Range {
        /// First element.
        start: usize,
        /// Elements.
        count: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// A buffer of another World.
    #[error("a buffer of another World: its elements are not in this heap; take it from this World's alloc")]
    Foreign,
    /// A PE of the job that is not in the context's team.
    #[error("PE {pe} is not among the {n_pes} PEs of the context's team")]
    Stranger {
        /// Asked.
        pe: u32,
        /// PEs of the team.
        n_pes: u32,
    },
    /// A number outside the team.
    #[error("number {number} is outside a team of {n_pes} PEs; numbers run from 0 to {}", n_pes.saturating_sub(1))]
    Number {
        /// Asked.
        number: u32,
        /// PEs of the team.
        n_pes: u32,
    },
    /// A PE outside the job.
    #[error("PE {pe} is outside a job of {n_pes} PEs; PE numbers run from 0 to {}", n_pes.saturating_sub(1))]
    Pe {
        /// Asked.
        pe: u32,
        /// PEs of the job.
        n_pes: u32,
    },
}

/// What a PE tells the others about its heap. Fixed layout, exchanged as bytes.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Record {
    version: u64,
    heap_size: u64,
    sync_size: u64,
    user_size: u64,
    /// Which machine: the kernel's boot id.
    host: [u8; 16],
    /// Super pod, -1: none.
    super_pod: i64,
    series: u32,
    device: i32,
    /// 0 none, 1 fabric, 2 this server.
    handle_kind: u32,
    mapped: u32,
    handle: [u8; FABRIC_HANDLE_SIZE],
}

/// Layout version of [`Record`].
const RECORD_VERSION: u64 = 1;

/// How a peer's heap is seen from here.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its first byte in this process's device addresses; 0: not mapped.
    pub(crate) mapped: DeviceAddress,
    /// Why it is not mapped.
    pub(crate) reason: String,
}

/// The heap of this PE and what is mapped of the others'.
pub(crate) struct Heap {
    allocator: SharedAllocator,
    peers: Vec<Peer>,
    size: u64,
    sync_size: u64,
    shm_offset: u64,
    user_offset: u64,
    /// What SHMEM_SYMMETRIC_SIZE came to, bytes.
    asked: u64,
    base: DeviceAddress,
    memory: Option<Memory>,
}

/// What is mapped. Dropped in this order: the peers' memory first, then the own.
struct Memory {
    _imported: Vec<Mapping>,
    _own: Mapping,
}

/// The allocator, shared with the buffers that give their blocks back when dropped.
pub(crate) type SharedAllocator = Arc<Mutex<SymmetricAllocator>>;

/// Locks an allocator; a panic elsewhere leaves it usable.
pub(crate) fn lock(allocator: &Mutex<SymmetricAllocator>) -> MutexGuard<'_, SymmetricAllocator> {
    allocator.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line after the sync area, for the library's own checks of the NIC.
pub(crate) const PROBE_LINE: u64 = 64;

impl Heap {
    /// Makes the heap and maps the peers'. Collective. `max_cores`: comm cores that the sync area has lines for.
    pub(crate) fn create(
        device: &Device,
        bootstrap: &Bootstrap,
        config: &Config,
        series: Series,
        max_cores: u32,
    ) -> Result<Heap, Error> {
        let (me, n_pes) = (bootstrap.identity().pe, bootstrap.identity().n_pes);
        let api = device.api();
        let place = if config.host_heap {
            Place::Host
        } else {
            Place::Device
        };
        let granule = PhysicalMemory::granularity(device, place)
            .map_err(Error::acl("asking for the heap's granularity"))?
            .max(1);
        let sync_size = abi::sync_size(max_cores.into(), n_pes.into());
        let shm_offset = (sync_size + PROBE_LINE).next_multiple_of(USER_ALIGNMENT);
        let shm_size = if runtime::host_accessible(api.kind()) {
            layout::area_bytes(n_pes as usize) as u64
        } else {
            0
        };
        let user_offset = (shm_offset + shm_size).next_multiple_of(USER_ALIGNMENT);
        let asked = wanted(device, config, bootstrap.identity().local_size)?;
        let user_size = asked.next_multiple_of(UNIT);
        let size = (user_offset + user_size).next_multiple_of(granule);
        let memory = PhysicalMemory::new(device, size, place).map_err(|source| {
            let (free, total) = api.memory_info(acl::ACL_HBM_MEM).unwrap_or((0, 0));
            HeapError::Memory {
                asked: size,
                free,
                total,
                source,
            }
        })?;
        let own =
            Mapping::new(device, memory, size).map_err(Error::acl("mapping the symmetric heap"))?;
        let zero = |at: u64, bytes: u64| {
            api.memset(own.address() + at, 0, bytes)
                .map_err(Error::acl("zeroing the sync area"))
        };
        zero(0, shm_offset)?;
        if shm_size > 0 {
            for part in layout::zeroed(n_pes as usize) {
                zero(shm_offset + part.start as u64, part.len() as u64)?;
            }
        }

        let mut record = Record {
            version: RECORD_VERSION,
            heap_size: size,
            sync_size,
            user_size,
            host: host_identity(),
            super_pod: super_pod(device, series),
            series: series as u32,
            device: device.number(),
            handle_kind: 0,
            mapped: u32::from(config.mapped != Mapped::Off),
            handle: [0; FABRIC_HANDLE_SIZE],
        };
        if n_pes > 1 && config.mapped != Mapped::Off {
            match own.memory().export() {
                Ok(SharedHandle::Fabric(data)) => {
                    record.handle_kind = 1;
                    record.handle = data;
                }
                Ok(SharedHandle::Server(number)) => {
                    record.handle_kind = 2;
                    record.handle[..8].copy_from_slice(&number.to_le_bytes());
                }
                Err(source) if config.mapped == Mapped::On => {
                    return Err(Error::Acl {
                        doing: "exporting the symmetric heap (NPUSHMEM_MAPPED=on)",
                        source,
                    })
                }
                Err(error) => {
                    tracing::warn!("the heap cannot be exported, so no peer will map it: {error}")
                }
            }
        }
        let records = exchange(bootstrap, &record)?;
        check(me, &record, &records)?;

        let mut peers = Vec::with_capacity(records.len());
        let mut imported = Vec::new();
        let mut enabled: Vec<i32> = vec![device.number()];
        for (pe, theirs) in records.iter().enumerate() {
            if pe == me as usize {
                peers.push(Peer {
                    mapped: own.address(),
                    reason: String::new(),
                });
                continue;
            }
            let peer = if config.mapped == Mapped::Off {
                Err("NPUSHMEM_MAPPED=off here".to_string())
            } else {
                import(device, &record, theirs, size, &mut enabled)
            };
            match peer {
                Ok(mapping) => {
                    peers.push(Peer {
                        mapped: mapping.address(),
                        reason: String::new(),
                    });
                    imported.push(mapping);
                }
                Err(reason) => {
                    if config.mapped == Mapped::On && theirs.host == record.host {
                        return Err(HeapError::CannotMap {
                            pe: pe as u32,
                            reason,
                        }
                        .into());
                    }
                    if config.mapped != Mapped::Off {
                        tracing::info!("PE {pe}'s heap is not mapped: {reason}");
                    }
                    peers.push(Peer { mapped: 0, reason });
                }
            }
        }
        tracing::info!(
            "symmetric heap of {} at {:#x}, {} of {} peers mapped",
            size_text(size),
            own.address(),
            imported.len(),
            n_pes - 1
        );
        Ok(Heap {
            allocator: Arc::new(Mutex::new(SymmetricAllocator::new(user_size))),
            peers,
            size,
            sync_size,
            shm_offset,
            user_offset,
            asked,
            base: own.address(),
            memory: Some(Memory {
                _imported: imported,
                _own: own,
            }),
        })
    }

    /// Never unmaps: a kernel that does not end may still use it.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(self.memory.take());
    }

    /// First byte of this PE's heap, as its cores see it.
    pub(crate) fn base(&self) -> DeviceAddress {
        self.base
    }

    /// Bytes that SHMEM_SYMMETRIC_SIZE came to.
    pub(crate) fn asked(&self) -> u64 {
        self.asked
    }

    /// Bytes of the heap, sync area included.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes at the start that are the device's: the sync area and the probe's line.
    pub(crate) fn reserved(&self) -> u64 {
        self.shm_offset
    }

    /// Offsets of the area of collectives between hosts (shm/layout.rs); empty where host code cannot touch the heap.
    pub(crate) fn shm_area(&self) -> std::ops::Range<u64> {
        self.shm_offset..self.user_offset
    }

    /// Offset of the probe's line.
    pub(crate) fn probe_offset(&self) -> u64 {
        self.sync_size
    }

    /// How the PEs' heaps are seen from here, by PE.
    pub(crate) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The allocator.
    pub(crate) fn allocator(&self) -> &SharedAllocator {
        &self.allocator
    }

    /// Takes `bytes` of the heap; gives the offset from the heap's base.
    pub(crate) fn allocate(&self, bytes: u64, alignment: u64) -> Result<(u64, Block), HeapError> {
        match lock(&self.allocator).allocate(bytes, alignment) {
            Ok((offset, block)) => Ok((self.user_offset + offset, block)),
            Err(full) => Err(HeapError::Exhausted {
                asked: bytes,
                free: full.free,
                largest: full.largest,
                live: full.live,
                size: self.asked,
            }),
        }
    }

    /// Number and fingerprint of the heap calls so far.
    pub(crate) fn history(&self) -> (u64, u64) {
        lock(&self.allocator).history()
    }

    /// Bytes that can be allocated.
    pub(crate) fn free_bytes(&self) -> u64 {
        lock(&self.allocator).free_bytes()
    }
}

/// Bytes that SHMEM_SYMMETRIC_SIZE comes to for one of `sharers` PEs of this machine.
fn wanted(device: &Device, config: &Config, sharers: u32) -> Result<u64, Error> {
    let HeapSize::Percent(percent) = config.symmetric_size else {
        return Ok(config.symmetric_size.bytes(0, 1));
    };
    let api = device.api();
    let (memory, sharers) = if runtime::host_accessible(api.kind()) {
        (crate::machine::memory().unwrap_or(0), sharers)
    } else {
        let (_, total) = api
            .memory_info(acl::ACL_HBM_MEM)
            .map_err(Error::acl("asking for the device's memory"))?;
        (total, 1)
    };
    let bytes = config.symmetric_size.bytes(memory, sharers);
    if bytes < MIN_HEAP {
        return Err(HeapError::Share {
            percent,
            memory,
            sharers,
            bytes,
        }
        .into());
    }
    Ok(bytes)
}

/// What the user allocates begins at a multiple of this, bytes.
const USER_ALIGNMENT: u64 = 4096;

fn exchange(bootstrap: &Bootstrap, record: &Record) -> Result<Vec<Record>, Error> {
    let all = bootstrap.gather(Label::Setup, bytemuck::bytes_of(record))?;
    let me = bootstrap.identity().pe;
    all.iter()
        .enumerate()
        .map(|(pe, bytes)| {
            bytemuck::try_pod_read_unaligned::<Record>(bytes).map_err(|_| {
                let (mine, theirs) = (size_of::<Record>() as u64, bytes.len() as u64);
                HeapError::Mismatch {
                    what: "the size of the heap's description (another version of npushmem?)",
                    me,
                    pe: pe as u32,
                    mine,
                    theirs,
                }
                .into()
            })
        })
        .collect()
}

fn check(me: u32, mine: &Record, records: &[Record]) -> Result<(), HeapError> {
    for (pe, theirs) in records.iter().enumerate() {
        for (what, mine, theirs) in [
            (
                "the version of npushmem's heap description",
                mine.version,
                theirs.version,
            ),
            ("the SoC series", mine.series.into(), theirs.series.into()),
            ("SHMEM_SYMMETRIC_SIZE", mine.user_size, theirs.user_size),
            (
                "the size of the sync area (number of vector cores)",
                mine.sync_size,
                theirs.sync_size,
            ),
            (
                "the heap's size (granularity)",
                mine.heap_size,
                theirs.heap_size,
            ),
        ] {
            if mine != theirs {
                return Err(HeapError::Mismatch {
                    what,
                    me,
                    pe: pe as u32,
                    mine,
                    theirs,
                });
            }
        }
    }
    Ok(())
}

/// Maps a peer's heap, or says why not.
fn import(
    device: &Device,
    mine: &Record,
    theirs: &Record,
    size: u64,
    enabled: &mut Vec<i32>,
) -> Result<Mapping, String> {
    if theirs.mapped == 0 {
        return Err("NPUSHMEM_MAPPED=off there".into());
    }
    let same_host = theirs.host == mine.host;
    let same_pod = mine.super_pod >= 0 && mine.super_pod == theirs.super_pod;
    let shared = match theirs.handle_kind {
        1 if same_host || same_pod => SharedHandle::Fabric(theirs.handle),
        2 if same_host => {
            let mut number = [0u8; 8];
            number.copy_from_slice(&theirs.handle[..8]);
            SharedHandle::Server(u64::from_le_bytes(number))
        }
        1 | 2 => return Err("it is on another machine".into()),
        _ => return Err("it could not export its heap".into()),
    };
    let text = |error: AclError| error.to_string();
    if same_host && !enabled.contains(&theirs.device) {
        let api = device.api();
        if !api
            .can_access_peer(device.number(), theirs.device)
            .map_err(text)?
        {
            return Err(format!(
                "device {} cannot reach device {}",
                device.number(),
                theirs.device
            ));
        }
        api.enable_peer_access(theirs.device).map_err(text)?;
        enabled.push(theirs.device);
    }
    let memory = PhysicalMemory::import(device, &shared).map_err(text)?;
    Mapping::new(device, memory, size).map_err(text)
}

/// The machine's boot id; zeros when it has none (then nobody counts as being on the same machine by accident: the PE's own process id
/// takes its place).
fn host_identity() -> [u8; 16] {
    let mut identity = [0u8; 16];
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    if digits.len() == 32 {
        for (byte, pair) in identity.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
    } else {
        identity[..4].copy_from_slice(&std::process::id().to_le_bytes());
    }
    identity
}

/// The super pod, within which fabric handles reach other servers (A3 and later); -1: none.
fn super_pod(device: &Device, series: Series) -> i64 {
    if series == Series::A2 {
        return -1;
    }
    device
        .api()
        .device_info(device.number() as u32, acl::ACL_DEV_ATTR_SUPER_POD_ID)
        .unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhaustion_names_what_was_asked_what_is_free_and_the_setting() {
        let text = HeapError::Exhausted {
            asked: 512 << 20,
            free: 100 << 20,
            largest: 64 << 20,
            live: 3,
            size: 256 << 20,
        }
        .to_string();
        for part in [
            "512 MiB",
            "100 MiB",
            "64 MiB",
            "SHMEM_SYMMETRIC_SIZE",
            "256 MiB",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn pes_with_different_settings_are_told_which_one_differs() {
        let mine = Record {
            version: 1,
            heap_size: 8,
            sync_size: 4,
            user_size: 2,
            ..Zeroable::zeroed()
        };
        let theirs = Record {
            user_size: 3,
            ..mine
        };
        let error = check(0, &mine, &[mine, theirs]).expect_err("differs");
        let text = error.to_string();
        assert!(
            text.contains("SHMEM_SYMMETRIC_SIZE is 2 here (PE 0) and 3 on PE 1"),
            "{text}"
        );
    }

    #[test]
    fn the_machine_has_one_identity() {
        assert_eq!(host_identity(), host_identity());
        assert_ne!(host_identity(), [0; 16]);
    }
}
