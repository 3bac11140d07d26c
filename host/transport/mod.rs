//! Transports: what `enable_device` sets up so that kernels can reach peers, and what is read back after them.
//!
//! bringup.rs brings the NIC and the queue pairs up through hccp.rs; contexts.rs keeps the contexts, regions.rs registered buffers and windows;
//! tables.rs writes the tables of device/abi.h; probe.rs tries the NIC's atomics. What it is not: no data moves through the host. Called by world.rs.

mod bringup;
mod contexts;
mod hccp;
mod probe;
mod regions;
mod tables;

use std::sync::Arc;
use std::time::Duration;

use bytemuck::Zeroable;

use crate::abi::{self, shmem_core, shmem_ctx, shmem_peer};
use crate::bootstrap::wire::Label;
use crate::bootstrap::Bootstrap;
use crate::config::{size_text, AtomicDomain, Config, Engine};
use crate::error::Error;
use crate::heap::Heap;
use crate::runtime::owners::Device;
use crate::runtime::{self, open_hccp, AclError, Series};
use bringup::{Endpoint, Group, Nic};
pub(crate) use contexts::Settings;
use contexts::{Part, ScratchMemory};
pub use hccp::HccpError;
use hccp::{QueueShape, Region};
pub(crate) use regions::WindowPeer;
use tables::{Lines, Shared};

/// Queue pairs and the NIC failed.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// More comm cores than there are.
    #[error(
        "enable_device({asked}): a PE has 1 to {have} comm cores on this device (vector cores)"
    )]
    Cores {
        /// Asked.
        asked: u32,
        /// Vector cores.
        have: u32,
    },
    /// PEs that enable different numbers of cores.
    #[error("enable_device: {what} is {mine} here (PE {me}) and {theirs} on PE {pe}; all PEs must call it alike")]
    Differ {
        /// What differs.
        what: &'static str,
        /// This PE.
        me: u32,
        /// The other.
        pe: u32,
        /// Here.
        mine: u64,
        /// There.
        theirs: u64,
    },
    /// The queue pairs would take too much memory.
    #[error("{pairs} queue pairs ({cores} cores x {n_pes} PEs, depth {depth}) would take {} of device memory, more than NPUSHMEM_QP_BUDGET ({}); use fewer comm cores, a smaller NPUSHMEM_QP_DEPTH or NPUSHMEM_BOUNCE, or raise the budget", size_text(*bytes), size_text(*budget))]
    Budget {
        /// Queue pairs.
        pairs: u64,
        /// Comm cores.
        cores: u32,
        /// PEs.
        n_pes: u32,
        /// Depth of the rings.
        depth: u32,
        /// What they would take.
        bytes: u64,
        /// The setting.
        budget: u64,
    },
    /// The queue pairs of one more context would take too much memory.
    #[error("{pairs} queue pairs of a context would take {} of device memory; those there are take {}, and NPUSHMEM_QP_BUDGET is {}; destroy contexts that are not needed, make it private or of a smaller team, or raise the budget", size_text(*bytes), size_text(*held), size_text(*budget))]
    ContextBudget {
        /// Queue pairs of the context.
        pairs: u64,
        /// What they would take.
        bytes: u64,
        /// What the queue pairs that there are take.
        held: u64,
        /// The setting.
        budget: u64,
    },
    /// A call of HCCP.
    #[error("{doing}: {source}")]
    Hccp {
        /// What the library was doing.
        doing: &'static str,
        /// The error.
        #[source]
        source: HccpError,
    },
    /// The NIC has no address.
    #[error("the NIC of device {device} has no IP address; configure it (hccn_tool -i {device} -ip -s address ... netmask ...)")]
    NoAddress {
        /// Physical device.
        device: u32,
    },
    /// Queue pairs that did not connect.
    #[error("queue pairs did not connect: {reason}; is the network between the NICs up (NPUSHMEM_TIMEOUT bounds the wait)?")]
    Connect {
        /// Who and why.
        reason: String,
    },
    /// Rings that a kernel could not use.
    #[error("the NIC gave a queue pair that kernels cannot use: {0}")]
    Rings(String),
    /// The mapped engine where peers are not mapped.
    #[error(
        "NPUSHMEM_ENGINE=mapped, but PE {pe} is not mapped: {reason}; use NPUSHMEM_ENGINE=auto"
    )]
    EngineMapped {
        /// The peer.
        pe: u32,
        /// Why it is not mapped.
        reason: String,
    },
    /// The core domain where it does not exist.
    #[error("NPUSHMEM_ATOMIC_DOMAIN=core: {0}; use nic or auto")]
    DomainCore(&'static str),
}

/// Result slots of atomics a queue pair; one line each.
const RESULTS: u32 = 64;
/// Largest inline payload that kernels use, bytes.
const INLINE: u32 = 32;

fn hccp_error(doing: &'static str) -> impl FnOnce(HccpError) -> Error {
    move |source| TransportError::Hccp { doing, source }.into()
}

/// What kernels need, ready.
pub(crate) struct Transport {
    generation: u32,
    shared: Shared,
    peers: Vec<shmem_peer>,
    /// What all contexts have in common.
    context: shmem_ctx,
    /// Members of each team that this PE is in, by handle, and this PE's number in it.
    teams: Vec<Option<(u32, Vec<u32>)>>,
    endpoints: Vec<Endpoint>,
    shape: QueueShape,
    // Dropped in this order: queue pairs, then what they use.
    /// By handle; the first is the default context.
    contexts: Vec<Option<Part>>,
    regions: Vec<Option<regions::Entry>>,
    heap_region: Region,
    nic: Nic,
}

/// What the device bring-up needs from the world.
pub(crate) struct Site<'a> {
    pub(crate) device: &'a Arc<Device>,
    pub(crate) bootstrap: &'a Bootstrap,
    pub(crate) config: &'a Config,
    pub(crate) heap: &'a Heap,
    pub(crate) series: Series,
    /// Vector cores of the device.
    pub(crate) vector_cores: u32,
}

impl Site<'_> {
    fn me(&self) -> u32 {
        self.bootstrap.identity().pe
    }

    fn n_pes(&self) -> u32 {
        self.bootstrap.identity().n_pes
    }
}

/// Device memory that one queue pair takes, bytes: rings (64 bytes an entry on both sides), the pages around them, result slots and bounce.
fn pair_bytes(depth: u32, bounce: u32) -> u64 {
    const ENTRY: u64 = 64;
    /// Receive rings, counters, and rounding to pages.
    const OVERHEAD: u64 = 32 << 10;
    u64::from(depth) * 2 * ENTRY
        + OVERHEAD
        + u64::from(RESULTS) * u64::from(abi::SHMEM_LINE)
        + u64::from(bounce)
}

/// Queue pairs of a PE: one a core and peer, two a core for itself (they are connected to one another), two for the probe.
fn pair_count(cores: u32, n_pes: u32) -> u64 {
    u64::from(cores) * (u64::from(n_pes) - 1) + 2 * u64::from(cores) + 2
}

impl Transport {
    /// Brings the NIC up and connects everybody. Collective.
    pub(crate) fn create(site: &Site<'_>, cores: u32) -> Result<Transport, Error> {
        let (config, n_pes) = (site.config, site.n_pes());
        if cores == 0 || cores > site.vector_cores {
            return Err(TransportError::Cores {
                asked: cores,
                have: site.vector_cores,
            }
            .into());
        }
        let (pairs, one) = (
            pair_count(cores, n_pes),
            pair_bytes(config.qp_depth, config.bounce),
        );
        let bytes = pairs * one;
        if bytes > config.qp_budget {
            let (depth, budget) = (config.qp_depth, config.qp_budget);
            return Err(TransportError::Budget {
                pairs,
                cores,
                n_pes,
                depth,
                bytes,
                budget,
            }
            .into());
        }
        tracing::info!(
            "{pairs} queue pairs ({cores} comm cores, {n_pes} PEs) take {} of device memory",
            size_text(bytes)
        );

        let table = open_hccp(site.device.api().kind())?;
        let mut nic = Nic::open(table, site)?;
        let heap_region = nic.register(site.heap.base(), site.heap.size(), true)?;
        // The last slot is the probe's.
        let slots = u64::from(cores) * u64::from(n_pes) + 1;
        let scratch = ScratchMemory::new(&mut nic, site, slots)?;
        let endpoints = nic.meet(site, cores, &heap_region)?;
        let mapped_everywhere = endpoints.iter().all(|endpoint| endpoint.all_mapped != 0);
        let domain = domain(config.atomic_domain, site.series, mapped_everywhere)?;
        let peers = peers(site, &endpoints)?;

        let shape = QueueShape {
            depth: config.qp_depth,
            inline: if config.inline { INLINE } else { 0 },
            traffic_class: (config.traffic_class & !3) as u8,
            service_level: config.service_level as u8,
        };
        let probing = domain == abi::SHMEM_DOMAIN_NIC && config.atomic_probe;
        let everyone: Vec<u32> = (0..n_pes).collect();
        let pending = nic.admit(
            site,
            &endpoints,
            &[Group {
                context: 0,
                cores,
                peers: everyone.clone(),
                probe: probing,
            }],
            0,
        )?;
        // Everybody admits before anybody connects.
        site.bootstrap.meet(Label::Setup)?;
        let (links, shape) = nic.join(site, pending, shape, &[&heap_region, &scratch.region])?;
        site.bootstrap.meet(Label::Setup)?;

        let engine = match config.engine {
            Engine::Auto => abi::SHMEM_ENGINE_AUTO,
            Engine::Mapped => abi::SHMEM_ENGINE_MAPPED,
            Engine::Roce => abi::SHMEM_ENGINE_ROCE,
        };
        let context = shmem_ctx {
            my_pe: site.me() as i32,
            n_pes: n_pes as i32,
            heap_base: site.heap.base(),
            heap_size: site.heap.size(),
            sync_offset: 0,
            timeout_ticks: ticks(config.timeout, site.series),
            ticks_per_second: site.series.ticks_per_second(),
            max_message: config.max_message,
            n_cores: cores,
            atomic_domain: domain,
            default_engine: engine,
            flags: if shape.inline > 0 {
                abi::SHMEM_CTX_INLINE
            } else {
                0
            } | if config.quiet_reads {
                abi::SHMEM_CTX_QUIET_READS
            } else {
                0
            },
            heap_lkey: heap_region.lkey(),
            ..Zeroable::zeroed()
        };
        let tables = || {
            Ok((
                Shared::new(site.device, n_pes)?,
                Lines::new(site.device, n_pes, cores)?,
            ))
        };
        let (shared, lines) = tables().map_err(Error::acl("allocating the device context"))?;
        let default = Part {
            settings: Settings {
                cores,
                team: abi::SHMEM_TEAM_WORLD,
                members: everyone,
                world_team: abi::SHMEM_TEAM_WORLD,
                options: 0,
                engine,
            },
            lines,
            links: links.into_iter().next(),
            scratch: Some(scratch),
        };
        let mut contexts: Vec<Option<Part>> = (0..abi::SHMEM_CTX_MAX).map(|_| None).collect();
        contexts[0] = Some(default);
        let mut transport = Transport {
            generation: 0,
            shared,
            peers,
            context,
            teams: vec![None; abi::SHMEM_TEAM_MAX as usize],
            endpoints,
            shape,
            contexts,
            regions: (0..abi::SHMEM_REGION_MAX).map(|_| None).collect(),
            heap_region,
            nic,
        };
        let refusal = match domain {
            abi::SHMEM_DOMAIN_NIC => transport.try_atomics(site)?,
            _ => None,
        };
        let all = site
            .bootstrap
            .gather(Label::Setup, &[u8::from(refusal.is_none())])?;
        if domain == abi::SHMEM_DOMAIN_NIC {
            match all.iter().position(|answer| answer.first() != Some(&1)) {
                None => transport.context.flags |= abi::SHMEM_CTX_NIC_ATOMICS,
                // One line a job: from the first PE that knows why.
                Some(pe) if pe == site.me() as usize => tracing::warn!(
                    "the NIC of PE {pe} does not execute atomics ({}): everything else works, and an atomic in a kernel fails with an error",
                    refusal.unwrap_or_default()
                ),
                Some(_) => {}
            }
        }
        transport.teams[abi::SHMEM_TEAM_WORLD as usize] = Some((site.me(), (0..n_pes).collect()));
        transport.teams[abi::SHMEM_TEAM_SHARED as usize] = Some(shared_team(site)?);
        transport.write(site)?;
        site.bootstrap.meet(Label::Setup)?;
        Ok(transport)
    }

    /// Why this PE's NIC does not execute a fetch-add, if it does not.
    fn try_atomics(&mut self, site: &Site<'_>) -> Result<Option<String>, Error> {
        let Some(default) = &mut self.contexts[0] else {
            return Ok(None);
        };
        let pair = default.links.as_mut().and_then(|links| links.take_probe());
        if !self.heap_region.atomics() {
            return Ok(Some("it registers no memory for remote atomics".into()));
        }
        let Some(pair) = pair else {
            return Ok(None);
        };
        let tables = || Ok((Shared::new(site.device, 1)?, Lines::new(site.device, 1, 1)?));
        let (shared, lines) = tables().map_err(Error::acl("allocating the probe's context"))?;
        let last = u64::from(default.settings.cores) * u64::from(site.n_pes());
        let Some(scratch) = default.scratch.as_ref().map(|scratch| scratch.slot(last)) else {
            return Ok(None);
        };
        let base = site.heap.base();
        let context = shmem_ctx {
            my_pe: 0,
            n_pes: 1,
            n_cores: 1,
            flags: abi::SHMEM_CTX_NIC_ATOMICS,
            ..self.context
        };
        let write = || {
            shared.write_peers(&[tables::peer(base, base, self.heap_region.rkey(), true)])?;
            lines.write_queues(&[tables::queue(
                pair.requester.rings(),
                self.shape.service_level.into(),
                &scratch,
            )])?;
            lines.write_context(context, &shared)
        };
        write().map_err(Error::acl("writing the probe's context"))?;
        let result = probe::fetch_add(site, &shared, &lines, base + site.heap.probe_offset());
        // What the NIC says about a probe is told by its result.
        for line in runtime::sim_diagnostics(site.device.api().kind()) {
            tracing::info!("during the probe of NIC atomics: {line}");
        }
        Ok(result.err())
    }

    /// Writes all tables anew, with counters at zero. Only while no kernel runs.
    fn write(&self, site: &Site<'_>) -> Result<(), Error> {
        let write = || {
            self.shared.write_peers(&self.peers)?;
            self.shared.write_abort(abi::SHMEM_OK, -1)?;
            for (id, team) in (0..).zip(&self.teams) {
                self.write_team(id, team.as_ref(), site)?;
            }
            Ok(())
        };
        write().map_err(Error::acl("writing the device context"))?;
        for id in 0..abi::SHMEM_CTX_MAX {
            self.write_context(id, site)?;
        }
        self.announce()
    }

    fn write_team(
        &self,
        id: u32,
        team: Option<&(u32, Vec<u32>)>,
        site: &Site<'_>,
    ) -> Result<(), AclError> {
        let n_pes = site.n_pes();
        let offset = abi::team_offset(id, site.vector_cores.into(), n_pes.into());
        let entry = team.map(|(my_pe, members)| (*my_pe, members.as_slice(), offset));
        self.shared.write_team(id, entry, n_pes)
    }

    /// Members of a team by handle, and this PE's number in it.
    pub(crate) fn team(&self, id: u32) -> Option<&(u32, Vec<u32>)> {
        self.teams.get(id as usize)?.as_ref()
    }

    /// Handles that no team of this PE has, one bit each.
    pub(crate) fn free_teams(&self) -> u64 {
        (0..)
            .zip(&self.teams)
            .fold(0, |free, (id, team)| free | u64::from(team.is_none()) << id)
    }

    /// Makes or ends a team of this PE, with its sync memory zeroed. Only while no kernel runs.
    pub(crate) fn set_team(
        &mut self,
        id: u32,
        team: Option<(u32, Vec<u32>)>,
        site: &Site<'_>,
    ) -> Result<(), Error> {
        let n_pes = u64::from(site.n_pes());
        let at = site.heap.base() + abi::team_offset(id, site.vector_cores.into(), n_pes);
        let api = site.device.api();
        api.memset(at, 0, abi::team_size(n_pes))
            .map_err(Error::acl("zeroing a team's sync memory"))?;
        self.write_team(id, team.as_ref(), site)
            .map_err(Error::acl("writing a team's entry"))?;
        self.teams[id as usize] = team;
        Ok(())
    }

    /// Makes the queue pairs of all contexts anew and forgets errors. Collective; no kernel may run on any PE.
    pub(crate) fn recover(&mut self, site: &Site<'_>) -> Result<(), Error> {
        site.bootstrap
            .meet_within(Label::Setup, site.config.patience())?;
        for part in self.contexts.iter_mut().flatten() {
            part.links = None;
        }
        self.generation += 1;
        let bases = site.heap.base();
        let api = site.device.api();
        api.memset(bases, 0, site.heap.reserved())
            .map_err(Error::acl("zeroing the sync area"))?;
        let paired: Vec<u32> = (0..)
            .zip(&self.contexts)
            .filter(|(_, part)| part.as_ref().is_some_and(|part| part.scratch.is_some()))
            .map(|(id, _)| id)
            .collect();
        let groups: Vec<Group> = paired
            .iter()
            .filter_map(|id| Some(self.part(*id)?.group(*id)))
            .collect();
        let pending = self
            .nic
            .admit(site, &self.endpoints, &groups, self.generation)?;
        site.bootstrap.meet(Label::Setup)?;
        let regions: Vec<&Region> = std::iter::once(&self.heap_region)
            .chain(self.registered_regions())
            .chain(
                self.contexts
                    .iter()
                    .flatten()
                    .filter_map(|part| part.scratch.as_ref())
                    .map(|scratch| &scratch.region),
            )
            .collect();
        let (links, shape) = self.nic.join(site, pending, self.shape, &regions)?;
        drop(regions);
        site.bootstrap.meet(Label::Setup)?;
        for (id, links) in paired.into_iter().zip(links) {
            if let Some(part) = &mut self.contexts[id as usize] {
                part.links = Some(links);
            }
        }
        self.shape = shape;
        if shape.inline == 0 {
            self.context.flags &= !abi::SHMEM_CTX_INLINE;
        }
        self.write(site)?;
        site.bootstrap.meet(Label::Setup)?;
        Ok(())
    }

    /// How often the queue pairs were made anew.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Comm cores.
    pub(crate) fn cores(&self) -> u32 {
        self.part(0).map_or(0, |part| part.settings.cores)
    }

    /// Address of `shmem_ctx`.
    pub(crate) fn context(&self) -> u64 {
        self.address_of(0).unwrap_or(0)
    }

    /// Whether NIC atomics work, or the core executes atomics.
    pub(crate) fn atomics(&self) -> bool {
        self.context.atomic_domain == abi::SHMEM_DOMAIN_CORE
            || self.context.flags & abi::SHMEM_CTX_NIC_ATOMICS != 0
    }

    /// Whether the cores, not the NIC, execute atomics.
    pub(crate) fn core_domain(&self) -> bool {
        self.context.atomic_domain == abi::SHMEM_DOMAIN_CORE
    }

    /// Ends every bounded wait of the running kernel.
    pub(crate) fn abort(&self, code: u32, pe: i32) -> Result<(), Error> {
        self.shared
            .write_abort(code, pe)
            .map_err(Error::acl("writing the abort line"))
    }

    /// What the cores counted, on every context.
    pub(crate) fn counters(&self) -> Result<Vec<shmem_core>, Error> {
        let mut all = Vec::new();
        for id in 0..abi::SHMEM_CTX_MAX {
            all.extend(self.counters_of(id)?);
        }
        Ok(all)
    }

    /// Sets the counters to zero.
    pub(crate) fn clear_counters(&self) -> Result<(), Error> {
        self.contexts
            .iter()
            .flatten()
            .try_for_each(|part| part.lines.clear_counters())
            .map_err(Error::acl("clearing counters"))
    }
}

/// This PE's number in the team of the PEs that have one another's heaps mapped, and its members. A PE whose neighbours see other sets than
/// it does is alone. Collective.
fn shared_team(site: &Site<'_>) -> Result<(u32, Vec<u32>), Error> {
    let mine: Vec<u8> = site
        .heap
        .peers()
        .iter()
        .map(|peer| u8::from(peer.mapped != 0))
        .collect();
    let all = site.bootstrap.gather(Label::Setup, &mine)?;
    let members: Vec<u32> = (0..site.n_pes())
        .filter(|pe| mine[*pe as usize] != 0)
        .collect();
    if members.iter().any(|pe| all[*pe as usize] != mine) {
        return Ok((0, vec![site.me()]));
    }
    let number = members.iter().filter(|pe| **pe < site.me()).count() as u32;
    Ok((number, members))
}

/// A time in system-counter ticks.
fn ticks(time: Duration, series: Series) -> u64 {
    (time.as_secs_f64() * series.ticks_per_second() as f64) as u64
}

fn domain(
    asked: AtomicDomain,
    series: Series,
    mapped_everywhere: bool,
) -> Result<u32, TransportError> {
    let core = series == Series::A950 && mapped_everywhere;
    match asked {
        AtomicDomain::Nic => Ok(abi::SHMEM_DOMAIN_NIC),
        AtomicDomain::Auto => Ok(if core {
            abi::SHMEM_DOMAIN_CORE
        } else {
            abi::SHMEM_DOMAIN_NIC
        }),
        AtomicDomain::Core if core => Ok(abi::SHMEM_DOMAIN_CORE),
        AtomicDomain::Core if series != Series::A950 => Err(TransportError::DomainCore(
            "cores of A2 and A3 have no compare-and-swap; 950 has",
        )),
        AtomicDomain::Core => Err(TransportError::DomainCore(
            "not every PE has every other one mapped",
        )),
    }
}

/// The peers' table.
fn peers(site: &Site<'_>, endpoints: &[Endpoint]) -> Result<Vec<shmem_peer>, TransportError> {
    let mut peers = Vec::with_capacity(endpoints.len());
    for (pe, (endpoint, seen)) in endpoints.iter().zip(site.heap.peers()).enumerate() {
        if site.config.engine == Engine::Mapped && seen.mapped == 0 {
            return Err(TransportError::EngineMapped {
                pe: pe as u32,
                reason: seen.reason.clone(),
            });
        }
        peers.push(tables::peer(
            seen.mapped,
            endpoint.heap_base,
            endpoint.rkey,
            true,
        ));
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_domain_needs_a_950_and_every_peer_mapped() {
        assert_eq!(
            domain(AtomicDomain::Auto, Series::A2, true).ok(),
            Some(abi::SHMEM_DOMAIN_NIC)
        );
        assert_eq!(
            domain(AtomicDomain::Auto, Series::A950, true).ok(),
            Some(abi::SHMEM_DOMAIN_CORE)
        );
        assert_eq!(
            domain(AtomicDomain::Auto, Series::A950, false).ok(),
            Some(abi::SHMEM_DOMAIN_NIC)
        );
        assert_eq!(
            domain(AtomicDomain::Core, Series::A950, true).ok(),
            Some(abi::SHMEM_DOMAIN_CORE)
        );
        for (series, mapped) in [
            (Series::A2, true),
            (Series::A3, true),
            (Series::A950, false),
        ] {
            let text = domain(AtomicDomain::Core, series, mapped)
                .expect_err("refused")
                .to_string();
            assert!(text.contains("NPUSHMEM_ATOMIC_DOMAIN=core"), "{text}");
        }
    }

    #[test]
    fn the_budget_message_has_the_numbers() {
        let text = TransportError::Budget {
            pairs: 18,
            cores: 4,
            n_pes: 4,
            depth: 512,
            bytes: 3 << 20,
            budget: 1 << 20,
        }
        .to_string();
        for part in [
            "18",
            "3 MiB",
            "1 MiB",
            "NPUSHMEM_QP_BUDGET",
            "NPUSHMEM_QP_DEPTH",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(pair_count(4, 4), 22);
        assert!(pair_bytes(512, 32768) >= 512 * 128 + 32768);
    }

    #[test]
    fn timeouts_become_ticks_of_the_series_counter() {
        assert_eq!(ticks(Duration::from_millis(1500), Series::A2), 75_000_000);
        assert_eq!(ticks(Duration::from_secs(2), Series::A950), 2_000_000_000);
    }
}
