//! Who answers requests: a port with the regions behind it, our own NIC's or a peer's.
//!
//! There is no responder thread. The requester does the responder's part in its own process: it reads the responder's port and
//! reaches its regions through mappings made on first use.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use std::os::fd::AsFd;

use super::error::NicError;
use super::port::{key_slot, Port, QpSlot};
use super::process::ForeignFile;
use super::region::{check_file, Mapping, Region};
use super::timing::Place;
use super::types::QpAddress;

/// Why a region cannot be used.
#[derive(Debug)]
pub(super) enum NoRegion {
    /// No region has this key (any more).
    Unknown,
    /// It has, but the key was not made usable on the queue pair.
    NotBound,
    /// Its memory cannot be mapped.
    Unreachable(NicError),
}

/// A port and the regions behind it.
pub(super) struct Responder {
    pub port: Port,
    foreign: bool,
    regions: RwLock<HashMap<u32, Arc<Region>>>,
}

impl Responder {
    /// The NIC's own port; its regions are added when they are registered.
    pub(super) fn own(port: Port) -> Responder {
        Responder {
            port,
            foreign: false,
            regions: RwLock::default(),
        }
    }

    /// A peer's port, imported.
    pub(super) fn import(address: &QpAddress) -> Result<Responder, NicError> {
        Ok(Responder {
            port: Port::import(address)?,
            foreign: true,
            regions: RwLock::default(),
        })
    }

    pub(super) fn add(&self, region: Region) {
        self.regions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(region.key, Arc::new(region));
    }

    pub(super) fn remove(&self, key: u32) {
        let removed = self
            .regions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
        if let Some(region) = removed {
            region.deregister();
        }
    }

    /// The process behind the port has ended: no request reaches it any more, and nothing here keeps its memory but the caches of
    /// queue pairs that used it.
    pub(super) fn bury(&self) {
        self.port.mark_dead();
        if self.foreign {
            self.regions
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    }

    fn known(&self, key: u32) -> Option<Arc<Region>> {
        self.regions
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned()
    }

    fn region(&self, key: u32) -> Result<Arc<Region>, NoRegion> {
        if let Some(region) = self.known(key) {
            return Ok(region);
        }
        if !self.foreign {
            return Err(NoRegion::Unknown);
        }
        let region = Arc::new(self.map(key)?);
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        regions.retain(|key, _| self.has_key(*key));
        regions.insert(key, Arc::clone(&region));
        Ok(region)
    }

    #[inline]
    fn has_key(&self, key: u32) -> bool {
        self.port
            .region(key_slot(key))
            .is_some_and(|slot| slot.key.load(Ordering::Acquire) == key)
    }

    fn map(&self, key: u32) -> Result<Region, NoRegion> {
        let slot = self.port.region(key_slot(key)).ok_or(NoRegion::Unknown)?;
        let (pid, start_time) = self.port.owner();
        let foreign = ForeignFile {
            pid,
            start_time,
            fd: slot.fd.load(Ordering::Relaxed),
            inode: slot.inode.load(Ordering::Relaxed),
            what: "registered memory",
        };
        let va = slot.va.load(Ordering::Relaxed);
        let len = slot.len.load(Ordering::Relaxed);
        let access = slot.access.load(Ordering::Relaxed);
        let offset = slot.offset.load(Ordering::Relaxed);
        if !self.has_key(key) {
            return Err(NoRegion::Unknown); // changed while it was read
        }
        let file = foreign.open().map_err(NoRegion::Unreachable)?;
        check_file(file.as_fd(), offset, len)
            .map_err(|why| NoRegion::Unreachable(foreign.refused(&why)))?;
        let mapping =
            Mapping::new(file.as_fd(), offset, len as usize).map_err(NoRegion::Unreachable)?;
        let inode = slot.inode.load(Ordering::Relaxed);
        let place = Place { inode, offset };
        Ok(Region::new(key, access, va, len, mapping, place))
    }
}

/// Ways of the cache; a power of two. A queue pair uses a heap and a scratch region, seldom more.
const WAYS: usize = 4;

/// The regions that one queue pair used last, so that a request costs no lock and no lookup.
#[derive(Default)]
pub(super) struct RegionCache {
    ways: [Option<Arc<Region>>; WAYS],
    /// What was replaced while requests may still hold addresses in it.
    replaced: Vec<Arc<Region>>,
}

impl RegionCache {
    /// The region with this key, if it exists at this moment and is usable on the queue pair `qp` of `responder`. It stays mapped
    /// until [`RegionCache::release`].
    #[inline]
    pub(super) fn get(
        &mut self,
        responder: &Responder,
        qp: &QpSlot,
        key: u32,
    ) -> Result<&Region, NoRegion> {
        let slot = key_slot(key);
        if !responder.has_key(key) {
            return Err(NoRegion::Unknown);
        }
        if !qp.is_bound(slot) {
            return Err(NoRegion::NotBound);
        }
        let way = &mut self.ways[slot % WAYS];
        if way.as_ref().is_none_or(|region| region.key != key) {
            let region = responder.region(key)?;
            self.replaced.extend(way.replace(region));
        }
        way.as_deref().ok_or(NoRegion::Unknown)
    }

    /// Lets go of what was replaced: no request holds addresses any more.
    #[inline]
    pub(super) fn release(&mut self) {
        if !self.replaced.is_empty() {
            self.replaced.clear();
        }
    }
}
