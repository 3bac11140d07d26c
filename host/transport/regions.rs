//! Memory outside the heap that is registered with the NIC: buffers of this PE alone, and windows, which every PE has.
//!
//! What it is not: the calls for programs are host/register.rs's. Called by mod.rs and, through `Transport`, by host/register.rs.

use std::sync::Arc;

use bytemuck::Zeroable;

use super::hccp::Region;
use super::{tables, Site, Transport};
use crate::abi::{self, shmem_peer, shmem_region};
use crate::error::Error;
use crate::runtime::owners::{DeviceBuffer, ImportedBuffer};

/// A peer's part of a window.
pub(crate) struct WindowPeer {
    /// As mapped here.
    pub(crate) mapped: Option<ImportedBuffer>,
    /// As registered with the peer's NIC.
    pub(crate) base: u64,
    pub(crate) rkey: u32,
}

/// An entry of the table.
pub(super) struct Entry {
    base: u64,
    bytes: u64,
    /// The peers' table of a window.
    peers: Option<DeviceBuffer>,
    _mapped: Vec<ImportedBuffer>,
    // The registration ends before the memory may go.
    region: Region,
    _memory: Option<Arc<DeviceBuffer>>,
}

impl Transport {
    /// Slots of the table that are free, one bit each.
    pub(crate) fn free_regions(&self) -> u64 {
        (0..)
            .zip(&self.regions)
            .fold(0, |free, (i, entry)| free | u64::from(entry.is_none()) << i)
    }

    /// Entries that kernels look at.
    pub(super) fn n_regions(&self) -> u32 {
        self.regions
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last as u32 + 1)
    }

    pub(super) fn registered_regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().flatten().map(|entry| &entry.region)
    }

    /// Registers memory with the NIC and makes its keys usable on every queue pair. Gives the remote key. Kernels that start afterwards
    /// may use it as source and destination of their own transfers.
    pub(crate) fn register(
        &mut self,
        index: u32,
        base: u64,
        bytes: u64,
        memory: Option<Arc<DeviceBuffer>>,
        atomics: bool,
    ) -> Result<u32, Error> {
        let region = self.nic.register(base, bytes, atomics)?;
        self.bind_everywhere(&region)?;
        let rkey = region.rkey();
        self.regions[index as usize] = Some(Entry {
            base,
            bytes,
            peers: None,
            _mapped: Vec::new(),
            region,
            _memory: memory,
        });
        self.publish_region(index)?;
        Ok(rkey)
    }

    /// Makes registered memory a window: gives it its peers, in the order of the PEs.
    pub(crate) fn open_window(
        &mut self,
        index: u32,
        peers: Vec<WindowPeer>,
        site: &Site<'_>,
    ) -> Result<(), Error> {
        let lines: Vec<shmem_peer> = peers
            .iter()
            .map(|peer| {
                let mapped = peer.mapped.as_ref().map_or(0, ImportedBuffer::address);
                tables::peer(mapped, peer.base, peer.rkey, true)
            })
            .collect();
        let table = DeviceBuffer::zeroed(site.device, size_of_val(lines.as_slice()) as u64)
            .and_then(|table| table.write(0, &lines).map(|()| table))
            .map_err(Error::acl("writing a window's peers"))?;
        if let Some(entry) = &mut self.regions[index as usize] {
            entry.peers = Some(table);
            entry._mapped = peers.into_iter().filter_map(|peer| peer.mapped).collect();
        }
        self.publish_region(index)
    }

    /// Ends a registration. Only while no kernel uses it.
    pub(crate) fn deregister(&mut self, index: u32) -> Result<(), Error> {
        let entry = self.regions[index as usize].take();
        let written = self.publish_region(index);
        drop(entry);
        written
    }

    fn publish_region(&self, index: u32) -> Result<(), Error> {
        let line = match &self.regions[index as usize] {
            None => shmem_region::zeroed(),
            Some(entry) => {
                let (magic, version, size) = abi::header::<shmem_region>();
                shmem_region {
                    magic,
                    version,
                    size,
                    base: entry.base,
                    bytes: entry.bytes,
                    peers: entry.peers.as_ref().map_or(0, DeviceBuffer::address),
                    lkey: entry.region.lkey(),
                    ..Zeroable::zeroed()
                }
            }
        };
        self.shared
            .write_region(index, line)
            .map_err(Error::acl("writing a registered buffer's entry"))?;
        self.announce()
    }
}
