//! Contexts of a PE: which there are, their queue pairs, scratch memory and lines, and what they take of the budget.
//!
//! What it is not: bringing queue pairs up is bringup.rs's, the layout of the tables tables.rs's. The default context is one of them, with
//! handle 0. Called by mod.rs, and through `Transport` by host/context.rs.

use bytemuck::Zeroable;

use super::bringup::{Group, Links, Pending};
use super::hccp::Region;
use super::tables::{self, Lines, Scratch};
use super::{hccp_error, pair_bytes, Site, Transport, TransportError, RESULTS};
use crate::abi::{self, shmem_core, shmem_ctx, shmem_error, shmem_qp};
use crate::config::size_text;
use crate::error::Error;
use crate::runtime::owners::DeviceBuffer;

/// What a context is to be.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) cores: u32,
    /// Handle of the team whose numbers its calls take.
    pub(crate) team: u32,
    /// PEs of that team.
    pub(crate) members: Vec<u32>,
    /// Handle of the team that SHMEM_TEAM_WORLD means in kernels that attach it.
    pub(crate) world_team: u32,
    /// SHMEM_CTX_* options.
    pub(crate) options: u32,
    /// SHMEM_ENGINE_*.
    pub(crate) engine: u32,
}

/// Memory that queue pairs use beside their rings: result slots and bounce rings, one slot a queue pair.
pub(super) struct ScratchMemory {
    pub(super) region: Region,
    memory: DeviceBuffer,
    slots: u64,
}

impl ScratchMemory {
    pub(super) fn new(
        transport_nic: &mut super::Nic,
        site: &Site<'_>,
        slots: u64,
    ) -> Result<ScratchMemory, Error> {
        let slot = u64::from(RESULTS) * u64::from(abi::SHMEM_LINE) + u64::from(site.config.bounce);
        let memory = DeviceBuffer::zeroed(site.device, slots * slot)
            .map_err(Error::acl("allocating scratch memory of the queue pairs"))?;
        let region = transport_nic.register(memory.address(), slots * slot, false)?;
        Ok(ScratchMemory {
            region,
            memory,
            slots,
        })
    }

    /// That of one queue pair.
    pub(super) fn slot(&self, index: u64) -> Scratch {
        let size = self.memory.bytes() / self.slots;
        let results = u64::from(RESULTS) * u64::from(abi::SHMEM_LINE);
        let start = self.memory.address() + index * size;
        Scratch {
            results: start,
            n_results: RESULTS,
            bounce: start + results,
            bounce_size: (size - results) as u32,
            lkey: self.region.lkey(),
        }
    }
}

/// A context.
pub(super) struct Part {
    pub(super) settings: Settings,
    pub(super) lines: Lines,
    // Dropped in this order: queue pairs, then what they use. Both are there, or neither.
    pub(super) links: Option<Links>,
    pub(super) scratch: Option<ScratchMemory>,
}

impl Part {
    pub(super) fn group(&self, context: u32) -> Group {
        Group {
            context,
            cores: self.settings.cores,
            peers: self.settings.members.clone(),
            probe: false,
        }
    }

    /// The queue pairs' table: an entry a core and PE of the job, unusable where there is no queue pair.
    pub(super) fn queues(&self, n_pes: u32, service_level: u32) -> Vec<shmem_qp> {
        let (magic, version, size) = abi::header::<shmem_qp>();
        let none = shmem_qp {
            magic,
            version,
            size,
            ..Zeroable::zeroed()
        };
        let members = &self.settings.members;
        let entry = |core: u32, pe: u32| {
            let (links, scratch) = (self.links.as_ref()?, self.scratch.as_ref()?);
            let pair = links.requester(core, pe)?;
            let place = members.iter().position(|member| *member == pe)?;
            let slot = scratch.slot(u64::from(core) * members.len() as u64 + place as u64);
            Some(tables::queue(pair.rings(), service_level, &slot))
        };
        (0..self.settings.cores)
            .flat_map(|core| (0..n_pes).map(move |pe| (core, pe)))
            .map(|(core, pe)| entry(core, pe).unwrap_or(none))
            .collect()
    }

    /// Queue pairs: one a core and peer, and another one a core for itself (the two are connected to one another).
    fn pairs(&self) -> u64 {
        match &self.links {
            Some(_) => pairs_of(&self.settings),
            None => 0,
        }
    }
}

fn pairs_of(settings: &Settings) -> u64 {
    u64::from(settings.cores) * (settings.members.len() as u64 + 1)
}

impl Transport {
    /// Handles that no context of this PE has, one bit each.
    pub(crate) fn free_contexts(&self) -> u64 {
        (0..)
            .zip(&self.contexts)
            .fold(0, |free, (id, part)| free | u64::from(part.is_none()) << id)
    }

    /// Whether a context needs queue pairs: a mapped one does not, where the cores execute atomics.
    fn wants_pairs(&self, settings: &Settings) -> bool {
        settings.engine != abi::SHMEM_ENGINE_MAPPED
            || self.context.atomic_domain == abi::SHMEM_DOMAIN_NIC
    }

    /// Why the queue pairs of one more context are too many.
    pub(crate) fn over_budget(
        &self,
        settings: &Settings,
        site: &Site<'_>,
    ) -> Option<TransportError> {
        if !self.wants_pairs(settings) {
            return None;
        }
        let one = pair_bytes(site.config.qp_depth, site.config.bounce);
        // Two pairs of the probe.
        let held = 2 + self.contexts.iter().flatten().map(Part::pairs).sum::<u64>();
        let more = pairs_of(settings);
        ((held + more) * one > site.config.qp_budget).then(|| TransportError::ContextBudget {
            pairs: more,
            bytes: more * one,
            held: held * one,
            budget: site.config.qp_budget,
        })
    }

    /// First half of making a context: its lines and scratch memory, and the peers' connections admitted. All members do this before any of them
    /// goes on with [`Transport::finish_context`].
    pub(crate) fn begin_context(
        &mut self,
        id: u32,
        settings: Settings,
        site: &Site<'_>,
    ) -> Result<Option<Pending>, Error> {
        let lines = Lines::new(site.device, site.n_pes(), settings.cores)
            .map_err(Error::acl("allocating a context"))?;
        let mut part = Part {
            settings,
            lines,
            links: None,
            scratch: None,
        };
        let mut pending = None;
        if self.wants_pairs(&part.settings) {
            let slots = u64::from(part.settings.cores) * part.settings.members.len() as u64;
            part.scratch = Some(ScratchMemory::new(&mut self.nic, site, slots)?);
            pending =
                Some(
                    self.nic
                        .admit(site, &self.endpoints, &[part.group(id)], self.generation)?,
                );
            tracing::info!(
                "{} queue pairs of context {id} take {} of device memory",
                pairs_of(&part.settings),
                size_text(
                    pairs_of(&part.settings) * pair_bytes(site.config.qp_depth, site.config.bounce)
                )
            );
        }
        self.contexts[id as usize] = Some(part);
        Ok(pending)
    }

    /// Second half: the queue pairs. Kernels may use the context when all members have done it.
    pub(crate) fn finish_context(
        &mut self,
        id: u32,
        pending: Option<Pending>,
        site: &Site<'_>,
    ) -> Result<(), Error> {
        if let Some(pending) = pending {
            let regions = self.regions_for(id);
            let (links, _) = self.nic.join(site, pending, self.shape, &regions)?;
            if let Some(part) = &mut self.contexts[id as usize] {
                part.links = links.into_iter().next();
            }
        }
        self.write_context(id, site)?;
        self.announce()
    }

    /// Ends a context, or takes back one that was begun. Only while no kernel uses it.
    pub(crate) fn drop_context(&mut self, id: u32) -> Result<(), Error> {
        self.contexts[id as usize] = None;
        self.announce()
    }

    /// Writes a context anew, with counters at zero.
    pub(super) fn write_context(&self, id: u32, site: &Site<'_>) -> Result<(), Error> {
        let Some(part) = self.part(id) else {
            return Ok(());
        };
        let write = || {
            let service_level = u32::from(self.shape.service_level);
            part.lines
                .write_queues(&part.queues(site.n_pes(), service_level))?;
            part.lines.clear_cores()?;
            part.lines.clear_errors()
        };
        write().map_err(Error::acl("writing a context"))
    }

    /// Tells kernels that start from now on which contexts and registered buffers there are.
    pub(super) fn announce(&self) -> Result<(), Error> {
        let n_contexts = self.contexts.iter().flatten().count() as u32;
        let addresses: Vec<u64> = self
            .contexts
            .iter()
            .map(|part| part.as_ref().map_or(0, |part| part.lines.context()))
            .collect();
        let write = || {
            for (id, part) in (0..).zip(&self.contexts) {
                let Some(part) = part else { continue };
                let settings = &part.settings;
                let context = shmem_ctx {
                    id,
                    team: settings.team as i32,
                    world_team: settings.world_team as i32,
                    options: settings.options,
                    default_engine: settings.engine,
                    n_contexts,
                    n_regions: self.n_regions(),
                    ..self.context
                };
                part.lines.write_context(context, &self.shared)?;
            }
            self.shared.write_contexts(&addresses)
        };
        write().map_err(Error::acl("writing the contexts"))
    }

    pub(super) fn part(&self, id: u32) -> Option<&Part> {
        self.contexts.get(id as usize)?.as_ref()
    }

    /// Settings of a context.
    pub(crate) fn settings(&self, id: u32) -> Option<&Settings> {
        Some(&self.part(id)?.settings)
    }

    /// Address of a context.
    pub(crate) fn address_of(&self, id: u32) -> Option<u64> {
        Some(self.part(id)?.lines.context())
    }

    /// What the cores counted on a context.
    pub(crate) fn counters_of(&self, id: u32) -> Result<Vec<shmem_core>, Error> {
        match self.part(id) {
            Some(part) => part
                .lines
                .read_cores()
                .map_err(Error::acl("reading counters")),
            None => Ok(Vec::new()),
        }
    }

    /// The error records of a context; zeroed when there is one.
    pub(crate) fn errors_of(&self, id: u32) -> Result<Vec<shmem_error>, Error> {
        match self.part(id) {
            Some(part) => part
                .lines
                .take_errors()
                .map_err(Error::acl("reading error records")),
            None => Ok(Vec::new()),
        }
    }

    /// Contexts whose last kernel ended with requests that it did not see complete: address and comm cores. Those of streams are not among
    /// them: their kernels may be running.
    pub(crate) fn left_open(&self) -> Result<Vec<(u64, u32)>, Error> {
        let mut open = Vec::new();
        for part in self.contexts.iter().flatten() {
            if part.settings.world_team != abi::SHMEM_TEAM_WORLD {
                continue;
            }
            let cores = part
                .lines
                .read_cores()
                .map_err(Error::acl("reading counters"))?;
            if cores.iter().any(|core| core.left_open != 0) {
                open.push((part.lines.context(), part.settings.cores));
            }
        }
        Ok(open)
    }

    /// Regions whose keys the queue pairs of a context need.
    pub(super) fn regions_for(&self, id: u32) -> Vec<&Region> {
        let scratch = self.part(id).and_then(|part| part.scratch.as_ref());
        std::iter::once(&self.heap_region)
            .chain(scratch.map(|scratch| &scratch.region))
            .chain(self.registered_regions())
            .collect()
    }

    /// Makes a region's keys usable on all queue pairs.
    pub(super) fn bind_everywhere(&self, region: &Region) -> Result<(), Error> {
        for links in self
            .contexts
            .iter()
            .flatten()
            .filter_map(|part| part.links.as_ref())
        {
            links
                .bind(region)
                .map_err(hccp_error("binding memory to a queue pair"))?;
        }
        Ok(())
    }
}
