//! The HCCP agent of a process: listeners, connections, and the exchange that brings queue pairs to "ready to send".
//!
//! On hardware this runs on the device and is reached over a management network. Here it is one thread a process that polls abstract unix
//! sockets (`wire.rs`); it starts with the first socket handle and ends with the last, at `shutdown`, or with the process. It never waits
//! longer than `NPUSIM_HCCP_TIMEOUT` for anything, and it knows nothing of C structures: `entry.rs` calls it. What happens on a connection
//! once it is admitted is in `link.rs`.
//!
//! **White list.** A listener admits a connection only when its socket handle's white list has an entry with the client's NIC address and the
//! very tag, and fewer such connections are open than the entry's limit. A connection that is not (yet) on the list is held back, without an
//! answer, until an entry is added or the time limit passes; then it is refused, and the client's status becomes "timeout". Removing an entry
//! leaves open connections alone.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use npushmem_roce::nic::QpAddress;
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::error::HccpError;
use super::handles;
use super::link::{Link, Role};
use super::queue::Queue;
use super::wire::{self, Message, Received, Tag};

/// First pause between two attempts to reach a listener that is not there yet; it doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(1);
/// Longest pause between two attempts.
const RETRY_MAX: Duration = Duration::from_millis(50);

/// One socket handle: a NIC address of this process, and whom its listeners admit.
struct Local {
    device: u32,
    ip: Ipv4Addr,
    white: Vec<White>,
    limit: Duration,
}

struct White {
    ip: Ipv4Addr,
    tag: Tag,
    limit: u32,
}

struct Listener {
    owner: usize,
    port: u16,
    socket: Arc<OwnedFd>,
}

/// A connection that came in and is not admitted yet.
struct Arrival {
    owner: usize,
    port: u16,
    socket: Arc<OwnedFd>,
    hello: Option<(Ipv4Addr, Tag)>,
    deadline: Instant,
}

/// A connection that goes out and is not admitted yet.
struct Dial {
    owner: usize,
    remote: Ipv4Addr,
    port: u16,
    tag: Tag,
    deadline: Instant,
    stage: Stage,
}

enum Stage {
    Waiting { next: Instant, pause: Duration },
    Greeted(Arc<OwnedFd>),
    Failed(String),
}

/// What `Agent::find` says of a connection.
pub enum Found {
    /// Admitted; the handle, given out this once.
    Connected(usize),
    /// On its way.
    Connecting,
    /// It will not come; why.
    Failed(String),
    /// Nothing is known of it.
    Nothing,
}

#[derive(Default)]
struct State {
    sockets: HashMap<usize, Local>,
    listeners: Vec<Listener>,
    arrivals: Vec<Arrival>,
    dials: Vec<Dial>,
    links: HashMap<usize, Link>,
    thread: Option<JoinHandle<()>>,
    wake: Option<Arc<OwnedFd>>,
}

/// The agent of this process.
pub struct Agent {
    state: Mutex<State>,
}

/// The one agent of this process.
pub fn agent() -> &'static Agent {
    static AGENT: std::sync::LazyLock<Agent> = std::sync::LazyLock::new(|| Agent {
        state: Mutex::default(),
    });
    &AGENT
}

impl Agent {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a socket handle for a NIC address, and the agent's thread if it does not run.
    pub fn open(
        &'static self,
        device: u32,
        ip: Ipv4Addr,
        limit: Duration,
    ) -> Result<usize, HccpError> {
        let mut state = self.lock();
        if state.thread.is_none() {
            let system = |source: Errno| HccpError::System {
                what: "cannot start the HCCP agent".into(),
                source,
            };
            state.wake = Some(Arc::new(
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system)?,
            ));
            let thread = std::thread::Builder::new()
                .name("npusim-hccp".into())
                .spawn(move || self.run());
            state.thread =
                Some(thread.map_err(|e| system(Errno::from_io_error(&e).unwrap_or(Errno::AGAIN)))?);
        }
        let handle = handles::next();
        state.sockets.insert(
            handle,
            Local {
                device,
                ip,
                white: Vec::new(),
                limit,
            },
        );
        Ok(handle)
    }

    /// Ends a socket handle with its listeners and connections.
    pub fn close(&self, handle: usize) -> Result<(), HccpError> {
        let mut state = self.lock();
        state.local(handle)?;
        state.drop_socket(handle);
        state.wake();
        Ok(())
    }

    /// Ends every socket handle of a device.
    pub fn close_device(&self, device: u32) {
        let mut state = self.lock();
        let handles: Vec<usize> = state
            .sockets
            .iter()
            .filter(|(_, local)| local.device == device)
            .map(|(handle, _)| *handle)
            .collect();
        for handle in handles {
            state.drop_socket(handle);
        }
        state.wake();
    }

    /// Ends everything, and waits for the thread to leave.
    pub fn shutdown(&self) {
        let thread = {
            let mut state = self.lock();
            for handle in state.sockets.keys().copied().collect::<Vec<_>>() {
                state.drop_socket(handle);
            }
            state.wake();
            state.thread.take()
        };
        if let Some(thread) = thread {
            // A panic of the thread was reported when it happened; there is nothing left to stop.
            let _ = thread.join();
        }
    }

    /// Listens on a port of the handle's NIC.
    pub fn listen(&self, handle: usize, port: u16) -> Result<(), HccpError> {
        let mut state = self.lock();
        let ip = state.local(handle)?.ip;
        let socket = wire::listen(ip, port).map_err(|source| match source {
            Errno::ADDRINUSE => HccpError::AddressInUse { ip, port },
            source => HccpError::System {
                what: format!("cannot listen on {ip}:{port}"),
                source,
            },
        })?;
        state.listeners.push(Listener {
            owner: handle,
            port,
            socket: Arc::new(socket),
        });
        state.wake();
        Ok(())
    }

    /// Stops listening. Connections that are open stay; those held back are dropped, and their clients try again until their time is up.
    pub fn stop(&self, handle: usize, port: u16) -> Result<(), HccpError> {
        let mut state = self.lock();
        state.local(handle)?;
        let before = state.listeners.len();
        state
            .listeners
            .retain(|listener| listener.owner != handle || listener.port != port);
        if state.listeners.len() == before {
            return Err(HccpError::NotListening(port));
        }
        state
            .arrivals
            .retain(|arrival| arrival.owner != handle || arrival.port != port);
        state.wake();
        Ok(())
    }

    /// Admits `limit` connections from `ip` with `tag`.
    pub fn admit(
        &self,
        handle: usize,
        ip: Ipv4Addr,
        tag: Tag,
        limit: u32,
    ) -> Result<(), HccpError> {
        if limit == 0 {
            return Err(HccpError::EmptyLimit(ip));
        }
        let mut state = self.lock();
        state.local(handle)?.white.push(White { ip, tag, limit });
        state.wake();
        Ok(())
    }

    /// Takes an entry off the white list.
    pub fn dismiss(&self, handle: usize, ip: Ipv4Addr, tag: &Tag) -> Result<(), HccpError> {
        let mut state = self.lock();
        let local = state.local(handle)?;
        let entry = local
            .white
            .iter()
            .position(|white| white.ip == ip && white.tag == *tag);
        local
            .white
            .remove(entry.ok_or(HccpError::NoWhiteEntry(ip))?);
        Ok(())
    }

    /// Starts to connect; `find` tells how it goes.
    pub fn connect(
        &self,
        handle: usize,
        remote: Ipv4Addr,
        port: u16,
        tag: Tag,
    ) -> Result<(), HccpError> {
        let mut state = self.lock();
        let now = Instant::now();
        let deadline = now + state.local(handle)?.limit;
        state.dials.retain(|dial| {
            !(matches!(dial.stage, Stage::Failed(_))
                && (dial.owner, dial.remote, dial.tag) == (handle, remote, tag))
        });
        let stage = Stage::Waiting {
            next: now,
            pause: RETRY_MIN,
        };
        state.dials.push(Dial {
            owner: handle,
            remote,
            port,
            tag,
            deadline,
            stage,
        });
        state.wake();
        Ok(())
    }

    /// Looks for a connection of a socket handle to a NIC address with a tag; each one is handed out once.
    pub fn find(
        &self,
        role: Role,
        handle: usize,
        remote: Ipv4Addr,
        tag: &Tag,
    ) -> Result<Found, HccpError> {
        let mut state = self.lock();
        state.local(handle)?;
        let unclaimed = |link: &Link| !link.claimed && link.is(role, handle, remote, tag);
        // Handles ascend with time: the oldest connection comes first.
        let oldest = state
            .links
            .iter_mut()
            .filter(|(_, link)| unclaimed(link))
            .min_by_key(|(fd, _)| **fd);
        if let Some((&fd, link)) = oldest {
            let Some(why) = link.closed.clone() else {
                link.claimed = true;
                return Ok(Found::Connected(fd));
            };
            state.links.remove(&fd);
            return Ok(Found::Failed(format!(
                "the connection with {remote} closed before it was used: {why}"
            )));
        }
        let dials = || {
            state.dials.iter().filter(|dial| {
                role == Role::Client
                    && (dial.owner, dial.remote, &dial.tag) == (handle, remote, tag)
            })
        };
        if dials().any(|dial| !matches!(dial.stage, Stage::Failed(_))) {
            return Ok(Found::Connecting);
        }
        Ok(dials()
            .find_map(|dial| {
                if let Stage::Failed(why) = &dial.stage {
                    Some(Found::Failed(why.clone()))
                } else {
                    None
                }
            })
            .unwrap_or(Found::Nothing))
    }

    /// Whether `fd` is a connection that `find` has handed out.
    pub fn has(&self, fd: usize) -> bool {
        self.lock().links.get(&fd).is_some_and(|link| link.claimed)
    }

    /// Closes a connection; queue pairs on their way over it get "closed", connected ones stay connected.
    pub fn hang_up(&self, handle: usize, fd: usize) -> Result<(), HccpError> {
        let mut state = self.lock();
        state.local(handle)?;
        match state.links.get(&fd) {
            Some(link) if link.owner == handle => {}
            _ => {
                return Err(HccpError::Handle {
                    kind: "connection",
                    value: fd,
                })
            }
        }
        if let Some(mut link) = state.links.remove(&fd) {
            link.settle_all("this process closed the connection");
        }
        state.wake();
        Ok(())
    }

    /// Starts to connect a queue pair over a connection; its status tells how it goes.
    pub fn exchange(
        &self,
        fd: usize,
        queue: &Arc<Queue>,
        address: QpAddress,
    ) -> Result<(), HccpError> {
        let mut state = self.lock();
        let state = &mut *state;
        let link = state.links.get_mut(&fd).ok_or(HccpError::Handle {
            kind: "connection",
            value: fd,
        })?;
        let owner = state.sockets.get(&link.owner).ok_or(HccpError::Handle {
            kind: "socket",
            value: link.owner,
        })?;
        link.begin(queue, address, Instant::now() + owner.limit)?;
        state.wake();
        Ok(())
    }

    /// Forgets a queue pair that is about to be destroyed; its peer is told if it still waits.
    pub fn forget(&self, queue: &Arc<Queue>) {
        let mut state = self.lock();
        for link in state.links.values_mut() {
            link.abandon(queue);
        }
        state.wake();
    }

    /// The thread: waits for sockets or the clock, then moves everything on.
    fn run(&self) {
        let mut ready = HashSet::new();
        loop {
            let (sockets, wake, timeout) = {
                let mut state = self.lock();
                let next = state.progress(Instant::now(), &ready);
                let Some(wake) = state.wake.clone().filter(|_| !state.sockets.is_empty()) else {
                    state.thread = None;
                    return;
                };
                (
                    state.interests(),
                    wake,
                    next.map(|at| at.saturating_duration_since(Instant::now())),
                )
            };
            // The clones keep the descriptors open while the lock is free, so that no number is used anew meanwhile.
            let mut polled: Vec<PollFd<'_>> = sockets
                .iter()
                .map(|(socket, events)| PollFd::new(socket, *events))
                .collect();
            polled.push(PollFd::new(&wake, PollFlags::IN));
            let timeout = timeout.map(|wait| Timespec {
                tv_sec: wait.as_secs() as i64,
                tv_nsec: i64::from(wait.subsec_nanos()),
            });
            ready.clear();
            match poll(&mut polled, timeout.as_ref()) {
                Ok(_) => ready.extend(
                    sockets
                        .iter()
                        .zip(&polled)
                        .filter(|(_, one)| !one.revents().is_empty())
                        .map(|((socket, _), _)| socket.as_raw_fd()),
                ),
                Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::warn!("the HCCP agent cannot poll: {error}");
                    std::thread::sleep(RETRY_MAX);
                }
            }
            let _ = rustix::io::read(&wake, &mut [0; 8]);
        }
    }
}

impl State {
    fn local(&mut self, handle: usize) -> Result<&mut Local, HccpError> {
        self.sockets.get_mut(&handle).ok_or(HccpError::Handle {
            kind: "socket",
            value: handle,
        })
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // It can only fail when the counter is full, and then the thread wakes anyway.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }

    fn drop_socket(&mut self, handle: usize) {
        self.sockets.remove(&handle);
        self.listeners.retain(|listener| listener.owner != handle);
        self.arrivals.retain(|arrival| arrival.owner != handle);
        self.dials.retain(|dial| dial.owner != handle);
        self.links.retain(|_, link| {
            if link.owner == handle {
                link.settle_all("this process closed the socket handle");
            }
            link.owner != handle
        });
    }

    /// What the thread waits for.
    fn interests(&self) -> Vec<(Arc<OwnedFd>, PollFlags)> {
        let mut all = Vec::new();
        all.extend(
            self.listeners
                .iter()
                .map(|listener| (listener.socket.clone(), PollFlags::IN)),
        );
        all.extend(
            self.arrivals
                .iter()
                .map(|arrival| (arrival.socket.clone(), PollFlags::IN)),
        );
        for dial in &self.dials {
            if let Stage::Greeted(socket) = &dial.stage {
                all.push((socket.clone(), PollFlags::IN));
            }
        }
        for link in self.links.values().filter(|link| link.closed.is_none()) {
            all.push((link.socket.clone(), link.interest()));
        }
        all
    }

    /// Moves everything on whose descriptor is ready or whose time has come; says when to come back.
    fn progress(&mut self, now: Instant, ready: &HashSet<RawFd>) -> Option<Instant> {
        self.accept(now, ready);
        self.admit_arrivals(now, ready);
        self.advance_dials(now, ready);
        for link in self.links.values_mut().filter(|link| link.closed.is_none()) {
            if ready.contains(&link.socket.as_raw_fd()) {
                link.advance();
            }
            link.expire(now);
        }
        let arrivals = self.arrivals.iter().map(|arrival| arrival.deadline);
        let dials = self.dials.iter().filter_map(|dial| match &dial.stage {
            Stage::Waiting { next, .. } => Some(*next),
            Stage::Greeted(_) => Some(dial.deadline),
            Stage::Failed(_) => None,
        });
        let exchanges = self.links.values().filter_map(Link::deadline);
        arrivals.chain(dials).chain(exchanges).min()
    }

    fn accept(&mut self, now: Instant, ready: &HashSet<RawFd>) {
        for listener in self
            .listeners
            .iter()
            .filter(|listener| ready.contains(&listener.socket.as_raw_fd()))
        {
            let Some(limit) = self.sockets.get(&listener.owner).map(|local| local.limit) else {
                continue;
            };
            loop {
                match wire::accept(listener.socket.as_fd()) {
                    Ok(Some(socket)) if wire::same_user(socket.as_fd()) => {
                        self.arrivals.push(Arrival {
                            owner: listener.owner,
                            port: listener.port,
                            socket: Arc::new(socket),
                            hello: None,
                            deadline: now + limit,
                        })
                    }
                    Ok(Some(_)) => tracing::warn!(
                        "a process of another user tried to connect to port {}; refused",
                        listener.port
                    ),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!("cannot accept on port {}: {error}", listener.port);
                        break;
                    }
                }
            }
        }
    }

    fn admit_arrivals(&mut self, now: Instant, ready: &HashSet<RawFd>) {
        for mut arrival in std::mem::take(&mut self.arrivals) {
            if ready.contains(&arrival.socket.as_raw_fd()) || arrival.hello.is_none() {
                match wire::receive(&arrival.socket) {
                    Received::Message(Message::Hello { from, tag }) if arrival.hello.is_none() => {
                        arrival.hello = Some((from, tag))
                    }
                    Received::Nothing => {}
                    // The client gave up, or it does not speak this protocol.
                    Received::Message(_) | Received::Closed(_) => continue,
                }
            }
            let Some(local) = self.sockets.get(&arrival.owner) else {
                continue;
            };
            let admitted = arrival.hello.filter(|(from, tag)| {
                let open = self.links.values().filter(|link| {
                    link.closed.is_none() && link.is(Role::Server, arrival.owner, *from, tag)
                });
                let limit: u64 = local
                    .white
                    .iter()
                    .filter(|white| white.ip == *from && white.tag == *tag)
                    .map(|white| u64::from(white.limit))
                    .sum();
                (open.count() as u64) < limit
            });
            if let Some((from, tag)) = admitted {
                let mut link = Link::new(Role::Server, arrival.owner, from, tag, arrival.socket);
                link.say(Message::Accept);
                self.links.insert(handles::next(), link);
            } else if now >= arrival.deadline {
                tracing::warn!(
                    "a connection to {} from {:?} was not on the white list in time; refused",
                    local.ip,
                    arrival.hello.map(|hello| hello.0)
                );
                // The client has its own time limit, should this answer not reach it.
                let _ = wire::send(&arrival.socket, &Message::Refuse);
            } else {
                self.arrivals.push(arrival);
            }
        }
    }

    fn advance_dials(&mut self, now: Instant, ready: &HashSet<RawFd>) {
        for mut dial in std::mem::take(&mut self.dials) {
            let Some(local) = self.sockets.get(&dial.owner) else {
                continue;
            };
            let to = format!("{}:{}", dial.remote, dial.port);
            let limit = local.limit.as_secs_f64();
            match &mut dial.stage {
                Stage::Waiting { next, pause } if now >= *next => {
                    let greeted = wire::dial(dial.remote, dial.port).and_then(|socket| {
                        let ours = wire::same_user(socket.as_fd());
                        let sent = ours
                            && wire::send(
                                &socket,
                                &Message::Hello {
                                    from: local.ip,
                                    tag: dial.tag,
                                },
                            )?;
                        Ok((socket, ours, sent))
                    });
                    match greeted {
                        Ok((socket, true, true)) => dial.stage = Stage::Greeted(Arc::new(socket)),
                        Ok((_, false, _)) => {
                            dial.stage =
                                Stage::Failed(format!("{to} is held by a process of another user"))
                        }
                        _ if now >= dial.deadline => {
                            dial.stage = Stage::Failed(format!(
                                "nobody listened on {to} within {limit} s: is the peer up, and did it call ra_socket_listen_start with this port?"
                            ));
                        }
                        _ => {
                            *next = (now + *pause).min(dial.deadline);
                            *pause = (*pause * 2).min(RETRY_MAX);
                        }
                    }
                }
                Stage::Greeted(socket) if ready.contains(&socket.as_raw_fd()) => {
                    match wire::receive(&*socket) {
                        Received::Message(Message::Accept) => {
                            let link = Link::new(
                                Role::Client,
                                dial.owner,
                                dial.remote,
                                dial.tag,
                                socket.clone(),
                            );
                            self.links.insert(handles::next(), link);
                            continue;
                        }
                        Received::Message(Message::Refuse) => {
                            dial.stage = Stage::Failed(format!("{to} refused: this address and tag are not on its white list, or its limit is reached"));
                        }
                        Received::Nothing => {}
                        Received::Message(_) => {
                            dial.stage = Stage::Failed(format!("{to} answered out of turn"))
                        }
                        // It stopped listening or died; another may come.
                        Received::Closed(_) => {
                            dial.stage = Stage::Waiting {
                                next: now + RETRY_MIN,
                                pause: RETRY_MIN,
                            }
                        }
                    }
                }
                Stage::Greeted(_) if now >= dial.deadline => {
                    dial.stage = Stage::Failed(format!(
                        "{to} did not admit this connection within {limit} s: is this address with this tag on its white list (ra_socket_white_list_add)?"
                    ));
                }
                _ => {}
            }
            self.dials.push(dial);
        }
    }
}
