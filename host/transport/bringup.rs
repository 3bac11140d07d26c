//! Bring-up of the NIC and of the queue pairs: the order of calls that HCCP wants, over all PEs.
//!
//! What it is not: it writes no tables (tables.rs) and owns no policy (mod.rs). The server of a connection is the PE of the lower number;
//! every (core, peer) has a connection of its own, whose tag names job, round, core and both PEs. A PE also connects to itself: two queue
//! pairs, joined to one another, of which the first is the requester.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use npushmem_ffi::hccp::Hccp;

use super::hccp::{
    Connection, Handle, HccpError, Library, QueuePair, QueueShape, QueueStatus, Region, Rendezvous,
    Role, Sockets, ACCESS_ATOMIC, ACCESS_PLAIN,
};
use super::{Site, TransportError};
use crate::bootstrap::identity::fnv1a;
use crate::bootstrap::wire::Label;
use crate::bootstrap::StoreError;
use crate::error::Error;
use crate::runtime::AclError;

/// Ports tried from NPUSHMEM_PORT on.
const PORT_TRIES: u16 = 1024;
/// Pause between looks at connections and queue pairs.
const POLL: Duration = Duration::from_micros(500);

fn hccp(doing: &'static str) -> impl FnOnce(HccpError) -> Error {
    move |source| TransportError::Hccp { doing, source }.into()
}

/// How a PE can be reached, exchanged as bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Endpoint {
    version: u64,
    /// The heap's address as registered with the PE's NIC.
    pub(super) heap_base: u64,
    pub(super) rkey: u32,
    cores: u32,
    depth: u32,
    engine: u32,
    domain: u32,
    /// 1: the PE has every peer mapped.
    pub(super) all_mapped: u32,
    /// 4 or 6.
    family: u32,
    port: u32,
    address: [u8; 16],
}

/// Layout version of [`Endpoint`].
const ENDPOINT_VERSION: u64 = 1;

impl Endpoint {
    fn ip(&self) -> IpAddr {
        let a = self.address;
        if self.family == 4 {
            IpAddr::V4(Ipv4Addr::new(a[0], a[1], a[2], a[3]))
        } else {
            IpAddr::V6(Ipv6Addr::from(a))
        }
    }
}

/// The NIC of this PE's device, open.
pub(super) struct Nic {
    // Dropped before the library.
    sockets: Sockets,
    library: Arc<Library>,
    handle: Handle,
    address: IpAddr,
    port: u16,
}

impl Nic {
    /// Finds the physical device, starts HCCP or reuses what is open, and listens.
    pub(super) fn open(table: Hccp, site: &Site<'_>) -> Result<Nic, Error> {
        let api = site.device.api();
        let library = Arc::new(Library::new(table, api.clone()));
        let ids = || -> Result<(u32, u32), AclError> {
            let logic = api.logic_device(site.device.number())?;
            Ok((logic as u32, api.physical_device(logic)? as u32))
        };
        let (logic, physical) = ids().map_err(Error::acl("asking for the physical device"))?;
        let opened = library.opened_nic(physical);
        if opened.is_none() {
            library
                .open(logic, site.n_pes())
                .map_err(hccp("starting the NIC's service (TsdOpen)"))?;
            start(&library, physical, site.config.timeout)?;
        }
        let addresses = library
            .addresses(physical)
            .map_err(hccp("asking for the NIC's address"))?;
        let Some(&address) = addresses.iter().find(|a| a.is_ipv4()).or(addresses.first()) else {
            return Err(TransportError::NoAddress { device: physical }.into());
        };
        let handle = match opened {
            Some(handle) => handle,
            None => library
                .open_nic(physical, address)
                .map_err(hccp("opening the NIC"))?,
        };
        let mut sockets = Sockets::open(&library, physical, address)
            .map_err(hccp("opening sockets on the NIC"))?;
        let port = sockets.listen(site.config.port, PORT_TRIES).map_err(hccp(
            "listening on the NIC (NPUSHMEM_PORT and the 1023 ports after it)",
        ))?;
        tracing::debug!("NIC of physical device {physical}: {address}, port {port}");
        Ok(Nic {
            sockets,
            library,
            handle,
            address,
            port,
        })
    }

    /// Registers memory; with remote atomics where the NIC takes that.
    pub(super) fn register(
        &mut self,
        address: u64,
        size: u64,
        atomics: bool,
    ) -> Result<Region, Error> {
        if atomics {
            match Region::register(&self.library, self.handle, address, size, ACCESS_ATOMIC) {
                Ok(region) => return Ok(region),
                // The warning about atomics comes when all PEs know (mod.rs).
                Err(error) => tracing::info!(
                    "the NIC does not register memory for remote atomics ({error}); registering it without"
                ),
            }
        }
        Region::register(&self.library, self.handle, address, size, ACCESS_PLAIN)
            .map_err(hccp("registering memory with the NIC"))
    }

    /// Tells the others how this PE is reached. Collective.
    pub(super) fn meet(
        &self,
        site: &Site<'_>,
        cores: u32,
        heap: &Region,
    ) -> Result<Vec<Endpoint>, Error> {
        let mut address = [0u8; 16];
        let family = match self.address {
            IpAddr::V4(v4) => {
                address[..4].copy_from_slice(&v4.octets());
                4
            }
            IpAddr::V6(v6) => {
                address = v6.octets();
                6
            }
        };
        let mine = Endpoint {
            version: ENDPOINT_VERSION,
            heap_base: site.heap.base(),
            rkey: heap.rkey(),
            cores,
            depth: site.config.qp_depth,
            engine: site.config.engine as u32,
            domain: site.config.atomic_domain as u32,
            all_mapped: u32::from(site.heap.peers().iter().all(|peer| peer.mapped != 0)),
            family,
            port: self.port.into(),
            address,
        };
        let all = site
            .bootstrap
            .gather(Label::Setup, bytemuck::bytes_of(&mine))?;
        let mut endpoints = Vec::with_capacity(all.len());
        for (pe, bytes) in all.iter().enumerate() {
            let differ = |what, mine, theirs| TransportError::Differ {
                what,
                me: site.me(),
                pe: pe as u32,
                mine,
                theirs,
            };
            let Ok(theirs) = bytemuck::try_pod_read_unaligned::<Endpoint>(bytes) else {
                let size = size_of::<Endpoint>() as u64;
                return Err(differ(
                    "the size of the NIC's description (another version of npushmem?)",
                    size,
                    bytes.len() as u64,
                )
                .into());
            };
            for (what, mine, theirs) in [
                (
                    "the version of the NIC's description",
                    mine.version,
                    theirs.version,
                ),
                (
                    "the number of comm cores",
                    mine.cores.into(),
                    theirs.cores.into(),
                ),
                ("NPUSHMEM_QP_DEPTH", mine.depth.into(), theirs.depth.into()),
                (
                    "NPUSHMEM_ENGINE (0 auto, 1 mapped, 2 roce)",
                    mine.engine.into(),
                    theirs.engine.into(),
                ),
                (
                    "NPUSHMEM_ATOMIC_DOMAIN (0 auto, 1 nic, 2 core)",
                    mine.domain.into(),
                    theirs.domain.into(),
                ),
            ] {
                if mine != theirs {
                    return Err(differ(what, mine, theirs).into());
                }
            }
            endpoints.push(theirs);
        }
        Ok(endpoints)
    }

    /// Admits the peers' connections of these groups of queue pairs. Everybody must have admitted before anybody goes on with
    /// [`Nic::join`]. `round`: counts recoveries.
    pub(super) fn admit(
        &self,
        site: &Site<'_>,
        endpoints: &[Endpoint],
        groups: &[Group],
        round: u32,
    ) -> Result<Pending, Error> {
        let me = site.me();
        let job = fnv1a(site.bootstrap.identity().job.as_bytes());
        let plan = plan(me, groups);
        let rendezvous = |link: &Planned| {
            let (low, high) = (me.min(link.pe), me.max(link.pe));
            let endpoint = &endpoints[link.pe as usize];
            let context = groups[link.group].context;
            Rendezvous {
                address: endpoint.ip(),
                port: endpoint.port as u16,
                tag: format!(
                    "npushmem/{job:016x}/{round}/{context}/{}/{low}-{high}",
                    link.core
                ),
            }
        };
        let of_role = |role| plan.iter().filter(move |link| link.role == role);
        let clients: Vec<Rendezvous> = of_role(Role::Server).map(rendezvous).collect();
        let servers: Vec<Rendezvous> = of_role(Role::Client).map(rendezvous).collect();
        self.sockets
            .admit(&clients)
            .map_err(hccp("admitting the peers' connections"))?;
        Ok(Pending {
            groups: groups.to_vec(),
            plan,
            clients,
            servers,
        })
    }

    /// Makes and connects the queue pairs that were admitted, a [`Links`] a group. Gives the shape that the NIC accepted.
    pub(super) fn join(
        &self,
        site: &Site<'_>,
        pending: Pending,
        mut shape: QueueShape,
        regions: &[&Region],
    ) -> Result<(Vec<Links>, QueueShape), Error> {
        let me = site.me();
        let Pending {
            groups,
            plan,
            clients,
            servers,
        } = pending;
        self.sockets
            .connect(&servers)
            .map_err(hccp("connecting to the peers"))?;

        let mut pairs = Vec::with_capacity(plan.len());
        for _ in &plan {
            let pair = match QueuePair::new(&self.library, self.handle, &shape) {
                Err(error) if shape.inline > 0 && pairs.is_empty() => {
                    let text = format!("the NIC makes no queue pairs for inline payloads ({error}); going on without");
                    // One line a job: NICs of one kind refuse alike.
                    if me == 0 {
                        tracing::warn!("{text}");
                    } else {
                        tracing::info!("{text}");
                    }
                    shape.inline = 0;
                    QueuePair::new(&self.library, self.handle, &shape)
                }
                other => other,
            };
            let pair = pair.map_err(hccp("making a queue pair"))?;
            check_rings(&pair, &shape)?;
            for region in regions {
                pair.bind(region)
                    .map_err(hccp("binding memory to a queue pair"))?;
            }
            pairs.push(pair);
        }

        let deadline = Instant::now() + site.config.timeout;
        let mut incoming: Vec<Option<Connection>> = clients.iter().map(|_| None).collect();
        let mut outgoing: Vec<Option<Connection>> = servers.iter().map(|_| None).collect();
        loop {
            let failed = self
                .sockets
                .collect(Role::Server, &clients, &mut incoming)
                .and_then(|failed| match failed {
                    Some(reason) => Ok(Some(reason)),
                    None => self.sockets.collect(Role::Client, &servers, &mut outgoing),
                })
                .map_err(hccp("collecting the peers' connections"))?;
            if let Some(reason) = failed {
                return Err(TransportError::Connect { reason }.into());
            }
            let missing: Vec<&str> = clients
                .iter()
                .zip(&incoming)
                .chain(servers.iter().zip(&outgoing))
                .filter(|(_, connection)| connection.is_none())
                .map(|(wanted, _)| wanted.tag.as_str())
                .collect();
            if missing.is_empty() {
                break;
            }
            wait(site, deadline, || {
                format!(
                    "{} connections are missing, first {}",
                    missing.len(),
                    missing[0]
                )
            })?;
        }
        let mut incoming = incoming.into_iter().flatten();
        let mut outgoing = outgoing.into_iter().flatten();
        let mut all: Vec<Links> = groups
            .into_iter()
            .map(|group| Links {
                peers: group.peers,
                requesters: Vec::new(),
                responders: Vec::new(),
                probe: None,
            })
            .collect();
        for (planned, pair) in plan.iter().zip(pairs) {
            let connection = match planned.role {
                Role::Server => incoming.next(),
                Role::Client => outgoing.next(),
            };
            let Some(connection) = connection else {
                return Err(TransportError::Connect {
                    reason: "a connection was lost again".into(),
                }
                .into());
            };
            pair.connect(&connection)
                .map_err(hccp("connecting a queue pair"))?;
            let link = Link {
                core: planned.core,
                pe: planned.pe,
                pair,
                _connection: connection,
            };
            let links = &mut all[planned.group];
            match planned.end {
                End::Requester if planned.probe => links.probe = Some(link),
                End::Requester => links.requesters.push(link),
                End::Responder => links.responders.push(link),
            }
        }
        loop {
            let mut waiting = Vec::new();
            for link in all.iter().flat_map(Links::all) {
                match link
                    .pair
                    .status()
                    .map_err(hccp("asking for a queue pair's status"))?
                {
                    QueueStatus::Connected => {}
                    QueueStatus::OnItsWay => waiting.push((link.core, link.pe)),
                    QueueStatus::Failed(how) => {
                        let why = self.library.recent_message();
                        let reason = format!(
                            "the one of core {} to PE {} failed: {how} {why}",
                            link.core, link.pe
                        );
                        return Err(TransportError::Connect { reason }.into());
                    }
                }
            }
            let Some((core, pe)) = waiting.first() else {
                break;
            };
            wait(site, deadline, || {
                format!(
                    "{} are on their way, first that of core {core} to PE {pe}",
                    waiting.len()
                )
            })?;
        }
        self.sockets
            .dismiss(&clients)
            .unwrap_or_else(|error| tracing::debug!("white list entries stay: {error}"));
        Ok((all, shape))
    }
}

/// Starts HCCP. Its device side needs a moment after TsdOpen, and another library (HCCL) may have started it: then the NIC's addresses can
/// be asked for all the same.
fn start(library: &Library, physical: u32, within: Duration) -> Result<(), Error> {
    /// Pause between attempts.
    const RETRY: Duration = Duration::from_millis(100);
    let deadline = Instant::now() + within;
    loop {
        match library.init(physical) {
            Ok(()) => return Ok(()),
            Err(_)
                if library
                    .addresses(physical)
                    .is_ok_and(|addresses| !addresses.is_empty()) =>
            {
                return Ok(())
            }
            Err(_) if Instant::now() < deadline => std::thread::sleep(RETRY),
            Err(error) => return Err(hccp("starting the NIC's interface (ra_init)")(error)),
        }
    }
}

/// Sleeps a little; an error when the deadline has passed or a PE has died.
fn wait(site: &Site<'_>, deadline: Instant, what: impl FnOnce() -> String) -> Result<(), Error> {
    if let Some(death) = site.bootstrap.death() {
        return Err(match death.pe {
            Some(pe) => StoreError::Died {
                pe,
                reason: death.reason,
                what: "enable_device",
            },
            None => StoreError::Gone {
                what: "enable_device",
                reason: death.reason,
            },
        }
        .into());
    }
    if Instant::now() >= deadline {
        let reason = format!("after {} s {}", site.config.timeout.as_secs_f64(), what());
        return Err(TransportError::Connect { reason }.into());
    }
    std::thread::sleep(POLL);
    Ok(())
}

/// Refuses rings whose layout the device library does not know.
fn check_rings(pair: &QueuePair, shape: &QueueShape) -> Result<(), TransportError> {
    /// Bytes of a send ring's entry.
    const SQ_ENTRY: u32 = 64;
    let rings = pair.rings();
    let (sq, cq) = (&rings.sq, &rings.scq);
    let fault = if sq.wqebb_size != SQ_ENTRY {
        format!(
            "send entries of {} bytes instead of {SQ_ENTRY}",
            sq.wqebb_size
        )
    } else if cq.cqe_size != 32 && cq.cqe_size != 64 {
        format!("completions of {} bytes instead of 32 or 64", cq.cqe_size)
    } else if !sq.depth.is_power_of_two() || !cq.depth.is_power_of_two() || sq.depth < shape.depth {
        format!(
            "depths {} and {} (asked {})",
            sq.depth, cq.depth, shape.depth
        )
    } else if cq.depth < sq.depth {
        format!(
            "a completion ring of {} entries for a send ring of {}",
            cq.depth, sq.depth
        )
    } else if [sq.buf_addr, cq.buf_addr, sq.db_reg, cq.db_reg].contains(&0) {
        "an address is missing".to_string()
    } else {
        return Ok(());
    };
    Err(TransportError::Rings(fault))
}

/// Which end of a queue pair pair this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A kernel sends through it.
    Requester,
    /// It only answers: the second queue pair of a PE that is connected to itself.
    Responder,
}

/// The queue pairs of one context: of each core toward each of its peers.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The context's handle.
    pub(super) context: u32,
    pub(super) cores: u32,
    /// PEs of the job, this one among them.
    pub(super) peers: Vec<u32>,
    /// Whether the probe's queue pair is made, too.
    pub(super) probe: bool,
}

/// Queue pairs that are about to be connected.
pub(crate) struct Pending {
    groups: Vec<Group>,
    plan: Vec<Planned>,
    clients: Vec<Rendezvous>,
    servers: Vec<Rendezvous>,
}

/// A queue pair to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Planned {
    group: usize,
    core: u32,
    pe: u32,
    role: Role,
    end: End,
    probe: bool,
}

/// All queue pairs of PE `me`. The probe's has the core number after the last.
fn plan(me: u32, groups: &[Group]) -> Vec<Planned> {
    let mut plan = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let mut add = |core, pe, role, end| {
            plan.push(Planned {
                group: number,
                core,
                pe,
                role,
                end,
                probe: core == group.cores,
            });
        };
        for core in 0..group.cores + u32::from(group.probe) {
            for &pe in &group.peers {
                if pe == me {
                    add(core, pe, Role::Client, End::Requester);
                    add(core, pe, Role::Server, End::Responder);
                } else if core < group.cores {
                    let role = if me < pe { Role::Server } else { Role::Client };
                    add(core, pe, role, End::Requester);
                }
            }
        }
    }
    plan
}

/// A connected queue pair. The connection lives as long: some drivers watch it.
struct Link {
    core: u32,
    pe: u32,
    pair: QueuePair,
    _connection: Connection,
}

/// All connected queue pairs of one context.
pub(super) struct Links {
    /// PEs of the job.
    peers: Vec<u32>,
    /// In order of (core, peer).
    requesters: Vec<Link>,
    responders: Vec<Link>,
    probe: Option<Link>,
}

/// The probe's queue pair.
pub(super) struct ProbePair {
    pub(super) requester: QueuePair,
    _connection: Connection,
}

impl Links {
    /// The queue pair of a core toward a PE.
    pub(super) fn requester(&self, core: u32, pe: u32) -> Option<&QueuePair> {
        let place = self.peers.iter().position(|peer| *peer == pe)?;
        let link = self
            .requesters
            .get(core as usize * self.peers.len() + place)?;
        (link.core == core && link.pe == pe).then_some(&link.pair)
    }

    fn all(&self) -> impl Iterator<Item = &Link> {
        self.requesters
            .iter()
            .chain(&self.responders)
            .chain(&self.probe)
    }

    /// Makes the region's keys usable on all of them.
    pub(super) fn bind(&self, region: &Region) -> Result<(), HccpError> {
        self.all().try_for_each(|link| link.pair.bind(region))
    }

    /// The probe's queue pair, once.
    pub(super) fn take_probe(&mut self) -> Option<ProbePair> {
        let link = self.probe.take()?;
        Some(ProbePair {
            requester: link.pair,
            _connection: link._connection,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_and_peer_has_one_requester_and_both_sides_agree_on_the_server() {
        for n_pes in 1..6u32 {
            let everyone: Vec<u32> = (0..n_pes).collect();
            // The default context of all PEs, and one of every second PE, on one core.
            let groups = |me: u32| {
                let some: Vec<u32> = (0..n_pes).filter(|pe| pe % 2 == me % 2).collect();
                [
                    Group {
                        context: 0,
                        cores: 3,
                        peers: everyone.clone(),
                        probe: true,
                    },
                    Group {
                        context: 1,
                        cores: 1,
                        peers: some,
                        probe: false,
                    },
                ]
            };
            let plans: Vec<_> = (0..n_pes).map(|me| plan(me, &groups(me))).collect();
            for (me, mine) in plans.iter().enumerate() {
                let me = me as u32;
                for (number, group) in groups(me).iter().enumerate() {
                    let requesters: Vec<_> = mine
                        .iter()
                        .filter(|p| p.group == number && p.end == End::Requester && !p.probe)
                        .map(|p| (p.core, p.pe))
                        .collect();
                    let all: Vec<_> = (0..group.cores)
                        .flat_map(|core| group.peers.iter().map(move |pe| (core, *pe)))
                        .collect();
                    assert_eq!(requesters, all, "in the order of the table");
                }
                for link in mine.iter().filter(|p| p.pe != me) {
                    let other = plans[link.pe as usize]
                        .iter()
                        .find(|p| p.group == link.group && p.core == link.core && p.pe == me)
                        .expect("the other side");
                    assert_ne!(link.role, other.role);
                    assert_eq!(link.role == Role::Server, me < link.pe);
                }
                assert_eq!(mine.iter().filter(|p| p.end == End::Responder).count(), 5);
            }
        }
    }
}
