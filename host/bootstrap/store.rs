//! The job's TCP store, server side: it lets the PEs of one job in, gathers their bytes, and tells everybody when one dies.
//!
//! What it is not: no key-value store, and no path for user data. Served by the launcher (`npushmem run`) or by PE 0; talked to by
//! client.rs. One thread with poll(2), so a slow or hostile connection holds nobody up.
//!
//! Rules: a connection says hello with the job's token within [`HELLO_TIME`] or is dropped; strangers, wrong tokens, PEs outside the job
//! and second PEs of one number are told why; a collective ends when all PEs have come, when its deadline passes (the answer lists who is
//! missing), or when a PE that has not come dies or leaves. When the last PE has left, the job may begin anew
//! (init after finalize), unless a PE died: then it is over.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};

use super::wire::{self, Decoder, Label, Message};

/// A connection that has not said hello after this time is dropped.
pub const HELLO_TIME: Duration = Duration::from_secs(10);
/// A refused connection is kept this long so that it can read the reason.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// Most connections that have not said hello.
const MAX_STRANGERS: usize = 256;
/// Most bytes waiting for a PE that does not read before it counts as dead.
const MAX_BACKLOG: usize = 1 << 30;

/// The store cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot serve the job's store at {address}: {source}; is another job using the port? set NPUSHMEM_STORE to a free one")]
    Bind {
        /// The address.
        address: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A resource of the system is missing.
    #[error("cannot start the job's store: {0}")]
    System(#[from] std::io::Error),
}

/// A serving store. Dropping it ends the service; PEs that are still connected see the store go away.
pub struct Server {
    address: SocketAddr,
    orders: Arc<Mutex<VecDeque<Order>>>,
    departures: Arc<Departures>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// How often each PE has left, for those who wait until all have. Counts, because a PE may be in again at once (init after finalize).
struct Departures {
    counts: Mutex<Vec<u64>>,
    changed: Condvar,
}

enum Order {
    Dead { pe: u32, reason: String },
    Done { pe: u32 },
    Stop,
}

impl Server {
    /// Listens at `address` (port 0: any free port) for a job of `n_pes` PEs with this token.
    ///
    /// # Errors
    /// The address cannot be listened at, or the system gives no thread.
    pub fn bind(
        address: impl ToSocketAddrs + std::fmt::Debug,
        n_pes: u32,
        token: &[u8],
    ) -> Result<Server, ServeError> {
        let listener = TcpListener::bind(&address).map_err(|source| ServeError::Bind {
            address: format!("{address:?}"),
            source,
        })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let orders = Arc::new(Mutex::new(VecDeque::new()));
        let departures = Arc::new(Departures {
            counts: Mutex::new(vec![0; n_pes as usize]),
            changed: Condvar::new(),
        });
        let mut service = Service {
            listener,
            woken,
            orders: orders.clone(),
            departures: departures.clone(),
            token: token.to_vec(),
            n_pes,
            connections: BTreeMap::new(),
            next_connection: 0,
            members: (0..n_pes).map(|_| Member::default()).collect(),
            gathers: HashMap::new(),
            dead: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new()
            .name("npushmem-store".into())
            .spawn(move || service.run())?;
        Ok(Server {
            address,
            orders,
            departures,
            wake,
            thread: Some(thread),
        })
    }

    /// Where PEs reach the store, for `NPUSHMEM_STORE`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often `pe` has left.
    pub(super) fn departures(&self, pe: u32) -> u64 {
        let counts = self
            .departures
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.get(pe as usize).copied().unwrap_or(0)
    }

    /// Waits until `done` is true of how often each PE has left; false when that took longer than `within`.
    pub(super) fn wait_until(&self, within: Duration, done: impl Fn(&[u64]) -> bool) -> bool {
        let counts = self
            .departures
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (counts, _) = self
            .departures
            .changed
            .wait_timeout_while(counts, within, |counts| !done(counts))
            .unwrap_or_else(PoisonError::into_inner);
        done(&counts)
    }

    /// Tells all PEs that `pe` died, with a better reason than its closed connection: the launcher knows the exit status.
    pub fn declare_dead(&self, pe: u32, reason: &str) {
        self.order(Order::Dead {
            pe,
            reason: reason.to_string(),
        });
    }

    /// Says that the process of `pe` has ended well. Tells all PEs when it never joined the job, because then nobody needs to wait for it.
    pub fn declare_done(&self, pe: u32) {
        self.order(Order::Done { pe });
    }

    fn order(&self, order: Order) {
        self.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(order);
        // A full pipe wakes the thread as well.
        let _ = (&self.wake).write(&[1]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.order(Order::Stop);
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::warn!("the store's thread ended with a panic");
            }
        }
    }
}

#[derive(Default)]
struct Member {
    /// The PE's connection, while it is in.
    connection: Option<u64>,
    /// How often this PE has joined; collectives of different rounds never mix.
    round: u64,
    pid: u32,
}

struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    out: VecDeque<Arc<Vec<u8>>>,
    /// Bytes of the first entry of `out` that are gone already, and bytes in `out` altogether.
    sent: usize,
    backlog: usize,
    pe: Option<u32>,
    /// When the connection is dropped: set for strangers and for refused ones.
    until: Option<Instant>,
    /// Nothing more is read.
    refused: bool,
}

/// A collective: (round, number).
type Key = (u64, u64);

struct Gather {
    label: Label,
    payloads: Vec<Option<Vec<u8>>>,
    came: u32,
    deadline: Instant,
    /// Ended without success; latecomers get this.
    failed: Option<String>,
}

struct Service {
    listener: TcpListener,
    departures: Arc<Departures>,
    woken: UnixStream,
    orders: Arc<Mutex<VecDeque<Order>>>,
    token: Vec<u8>,
    n_pes: u32,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    members: Vec<Member>,
    gathers: HashMap<Key, Gather>,
    dead: BTreeMap<u32, String>,
}

impl Service {
    fn run(&mut self) {
        loop {
            let ids: Vec<u64> = self.connections.keys().copied().collect();
            let ready = match self.wait(&ids) {
                Ok(ready) => ready,
                Err(error) => {
                    tracing::error!("the job's store stops: {error}");
                    return;
                }
            };
            if ready.woken && !self.take_orders() {
                return;
            }
            if ready.listener {
                self.accept();
            }
            for (id, readable, writable) in ready.connections {
                if writable {
                    self.send(id);
                }
                if readable {
                    self.receive(id);
                }
            }
            self.end_late();
        }
    }

    fn wait(&self, ids: &[u64]) -> rustix::io::Result<Ready> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
        ];
        for id in ids {
            let connection = &self.connections[id];
            let mut flags = PollFlags::IN;
            if !connection.out.is_empty() {
                flags |= PollFlags::OUT;
            }
            fds.push(PollFd::from_borrowed_fd(connection.stream.as_fd(), flags));
        }
        let next = self
            .gathers
            .values()
            .filter(|gather| gather.failed.is_none())
            .map(|gather| gather.deadline)
            .chain(
                self.connections
                    .values()
                    .filter_map(|connection| connection.until),
            )
            .min();
        let timeout = next.map(|at| {
            // One millisecond more, so that the deadline has passed when poll returns.
            let left = at.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error),
        }
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        Ok(Ready {
            woken: fds[0].revents().intersects(readable),
            listener: fds[1].revents().intersects(readable),
            connections: ids
                .iter()
                .zip(&fds[2..])
                .map(|(id, fd)| {
                    (
                        *id,
                        fd.revents().intersects(readable),
                        fd.revents().contains(PollFlags::OUT),
                    )
                })
                .filter(|(_, readable, writable)| *readable || *writable)
                .collect(),
        })
    }

    /// Returns false when the service is to stop.
    fn take_orders(&mut self) -> bool {
        let mut sink = [0u8; 64];
        while matches!((&self.woken).read(&mut sink), Ok(n) if n > 0) {}
        loop {
            let order = self
                .orders
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            match order {
                None => return true,
                Some(Order::Stop) => return false,
                Some(Order::Dead { pe, reason }) => self.bury(pe, reason),
                Some(Order::Done { pe }) => {
                    if self.members.get(pe as usize).is_some_and(|m| m.round == 0) {
                        self.bury(pe, "it ended without joining the job".to_string());
                    }
                }
            }
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let strangers = self.connections.values().filter(|c| c.pe.is_none()).count();
                    if strangers >= MAX_STRANGERS || stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    let _ = stream.set_nodelay(true);
                    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
                    self.connections.insert(
                        self.next_connection,
                        Connection {
                            stream,
                            decoder: Decoder::default(),
                            out: VecDeque::new(),
                            sent: 0,
                            backlog: 0,
                            pe: None,
                            until: Some(Instant::now() + HELLO_TIME),
                            refused: false,
                        },
                    );
                    self.next_connection += 1;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!("the job's store cannot accept a connection: {error}");
                    // Out of descriptors: poll would report the listener at once again.
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            }
        }
    }

    fn receive(&mut self, id: u64) {
        /// Bytes read from a connection at once.
        const CHUNK: usize = 1 << 16;
        let mut chunk = vec![0u8; CHUNK];
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let (mut ended, mut error) = (false, None);
        match connection.stream.read(&mut chunk) {
            Ok(0) => ended = true,
            Ok(n) if !connection.refused => connection.decoder.feed(&chunk[..n]),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => {
                ended = true;
                error = Some(e);
            }
        }
        while let Some(connection) = self.connections.get_mut(&id) {
            if connection.refused {
                break;
            }
            let limit = if connection.pe.is_some() {
                wire::MAX_FRAME
            } else {
                wire::MAX_HELLO
            };
            match connection.decoder.next(limit) {
                Ok(Some(message)) => self.handle(id, message),
                Ok(None) => break,
                Err(error) => match connection.pe {
                    Some(pe) => {
                        self.connections.remove(&id);
                        self.bury(pe, format!("it sent the store what is no message: {error}"));
                    }
                    None => {
                        self.refuse(id, format!("this is the store of an npushmem job: {error}"))
                    }
                },
            }
        }
        if ended {
            self.close(id, error.map(|e| e.to_string()));
        }
    }

    /// The connection is at its end.
    fn close(&mut self, id: u64, error: Option<String>) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        if let Some(pe) = connection.pe {
            let pid = self.members[pe as usize].pid;
            let how = error.unwrap_or_else(|| "its connection closed without a goodbye".into());
            self.bury(pe, format!("process {pid} ended: {how}"));
        }
    }

    fn handle(&mut self, id: u64, message: Message) {
        let pe = self.connections.get(&id).and_then(|c| c.pe);
        match (pe, message) {
            (
                None,
                Message::Hello {
                    pe,
                    n_pes,
                    pid,
                    token,
                },
            ) => self.hello(id, pe, n_pes, pid, &token),
            (None, _) => self.refuse(id, "say hello first".into()),
            (
                Some(pe),
                Message::Gather {
                    seq,
                    deadline_ms,
                    label,
                    payload,
                },
            ) => self.contribute(pe, seq, deadline_ms, label, payload),
            (Some(pe), Message::Bye) => {
                self.connections.remove(&id);
                self.members[pe as usize].connection = None;
                self.leave(pe);
            }
            (Some(pe), Message::Abort { reason }) => {
                self.connections.remove(&id);
                self.bury(pe, reason);
            }
            (Some(pe), _) => {
                self.connections.remove(&id);
                self.bury(
                    pe,
                    "it sent the store a message that only the store sends".into(),
                );
            }
        }
    }

    fn hello(&mut self, id: u64, pe: u32, n_pes: u32, pid: u32, token: &[u8]) {
        if !wire::same_token(token, &self.token) {
            return self.refuse(
                id,
                "another job's token: this store belongs to a different job (NPUSHMEM_JOB), so the address is taken or wrong".into(),
            );
        }
        if n_pes != self.n_pes {
            return self.refuse(
                id,
                format!(
                    "this job has {} PEs, the caller believes {n_pes}",
                    self.n_pes
                ),
            );
        }
        let Some(member) = self.members.get(pe as usize) else {
            return self.refuse(id, format!("PE {pe} is outside a job of {n_pes} PEs"));
        };
        if member.connection.is_some() {
            return self.refuse(
                id,
                format!(
                    "PE {pe} has joined already, as process {}; is NPUSHMEM_PE set twice alike?",
                    member.pid
                ),
            );
        }
        if let Some((dead, reason)) = self.dead.iter().next() {
            return self.refuse(id, format!("the job is over: PE {dead} died ({reason})"));
        }
        let member = &mut self.members[pe as usize];
        *member = Member {
            connection: Some(id),
            round: member.round + 1,
            pid,
        };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.pe = Some(pe);
            connection.until = None;
        }
        self.post(id, &Message::Welcome);
    }

    fn refuse(&mut self, id: u64, reason: String) {
        tracing::warn!("the job's store refuses a connection: {reason}");
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.refused = true;
            connection.until = Some(Instant::now() + REFUSAL_TIME);
        }
        self.post(id, &Message::Refused { reason });
    }

    fn contribute(&mut self, pe: u32, seq: u64, deadline_ms: u64, label: Label, payload: Vec<u8>) {
        let round = self.members[pe as usize].round;
        let n = self.n_pes as usize;
        // A day at most, so that the sum cannot overflow.
        let deadline = Instant::now() + Duration::from_millis(deadline_ms.min(86_400_000));
        let gather = self.gathers.entry((round, seq)).or_insert_with(|| Gather {
            label,
            payloads: vec![None; n],
            came: 0,
            deadline,
            failed: None,
        });
        if gather.payloads[pe as usize].is_some() {
            return self.answer(
                pe,
                &Message::Broken {
                    seq,
                    reason: format!("PE {pe} came twice to collective {seq}"),
                },
            );
        }
        gather.payloads[pe as usize] = Some(payload);
        gather.came += 1;
        gather.deadline = gather.deadline.min(deadline);
        if let Some(reason) = gather.failed.clone() {
            if gather.came == self.n_pes {
                self.gathers.remove(&(round, seq));
            }
            return self.answer(pe, &Message::Broken { seq, reason });
        }
        if gather.label != label {
            let other = gather
                .payloads
                .iter()
                .enumerate()
                .find(|(i, p)| *i != pe as usize && p.is_some())
                .map(|(i, _)| i);
            let reason = format!(
                "PE {pe} calls {} where PE {} calls {}: collectives must be called in the same order by all PEs",
                label.word(),
                other.unwrap_or_default(),
                gather.label.word()
            );
            return self.fail((round, seq), reason);
        }
        if gather.came < self.n_pes {
            if let Some(reason) = self.absent((round, seq)) {
                self.fail((round, seq), reason);
            }
            return;
        }
        let Some(gather) = self.gathers.remove(&(round, seq)) else {
            return;
        };
        let payloads: Vec<Vec<u8>> = gather.payloads.into_iter().flatten().collect();
        let total: u64 = payloads.iter().map(|p| p.len() as u64 + 4).sum();
        let answer = if total > u64::from(u32::MAX - 64) {
            Message::Broken { seq, reason: format!("the exchange has {total} bytes altogether, more than one message can carry (4 GiB)") }
        } else {
            Message::Gathered { seq, payloads }
        };
        let bytes = Arc::new(wire::encode(&answer));
        for pe in 0..self.n_pes {
            self.post_bytes(pe, bytes.clone());
        }
    }

    /// Why the collective can never end: a PE that has not come is dead or has left.
    fn absent(&self, key: Key) -> Option<String> {
        let gather = self.gathers.get(&key)?;
        let missing = |pe: u32| gather.payloads[pe as usize].is_none();
        if let Some((pe, reason)) = self.dead.iter().find(|(pe, _)| missing(**pe)) {
            return Some(format!("PE {pe} died: {reason}"));
        }
        (0..self.n_pes)
            .find(|pe| {
                let member = &self.members[*pe as usize];
                missing(*pe) && member.connection.is_none() && member.round >= key.0
            })
            .map(|pe| {
                format!(
                    "PE {pe} has left the job (finalize) and will not call {}",
                    gather.label.word()
                )
            })
    }

    fn fail(&mut self, key: Key, reason: String) {
        let Some(gather) = self.gathers.get_mut(&key) else {
            return;
        };
        gather.failed = Some(reason.clone());
        let came: Vec<u32> = (0..self.n_pes)
            .filter(|pe| gather.payloads[*pe as usize].is_some())
            .collect();
        if came.len() == self.n_pes as usize {
            self.gathers.remove(&key);
        }
        for pe in came {
            self.answer(
                pe,
                &Message::Broken {
                    seq: key.1,
                    reason: reason.clone(),
                },
            );
        }
    }

    fn end_late(&mut self) {
        let now = Instant::now();
        let late: Vec<Key> = self
            .gathers
            .iter()
            .filter(|(_, g)| g.failed.is_none() && g.deadline <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in late {
            let Some(gather) = self.gathers.get_mut(&key) else {
                continue;
            };
            let (came, missing): (Vec<u32>, Vec<u32>) =
                (0..self.n_pes).partition(|pe| gather.payloads[*pe as usize].is_some());
            gather.failed = Some(format!(
                "the other PEs waited for this {} until their deadline passed",
                gather.label.word()
            ));
            for pe in came {
                self.answer(
                    pe,
                    &Message::Late {
                        seq: key.1,
                        missing: missing.clone(),
                    },
                );
            }
        }
        let stale: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, c)| c.until.is_some_and(|at| at <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in stale {
            self.connections.remove(&id);
        }
    }

    /// `pe` is dead: everybody is told, and collectives that wait for it end.
    fn bury(&mut self, pe: u32, reason: String) {
        let Some(member) = self.members.get_mut(pe as usize) else {
            return;
        };
        if let Some(id) = member.connection.take() {
            self.connections.remove(&id);
        }
        if self.dead.contains_key(&pe) {
            return;
        }
        self.dead.insert(pe, reason.clone());
        let bytes = Arc::new(wire::encode(&Message::Died { pe, reason }));
        for other in 0..self.n_pes {
            self.post_bytes(other, bytes.clone());
        }
        self.leave(pe);
    }

    /// `pe` is out: ends collectives that wait for it; when nobody is left, the job may begin anew unless somebody died.
    fn leave(&mut self, pe: u32) {
        if let Some(count) = self
            .departures
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(pe as usize)
        {
            *count += 1;
        }
        self.departures.changed.notify_all();
        let keys: Vec<Key> = self
            .gathers
            .iter()
            .filter(|(_, g)| g.failed.is_none() && g.payloads[pe as usize].is_none())
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            if let Some(reason) = self.absent(key) {
                self.fail(key, reason);
            }
        }
        if self
            .members
            .iter()
            .all(|member| member.connection.is_none())
        {
            let round = self.members.iter().map(|m| m.round).max().unwrap_or(0);
            for member in &mut self.members {
                member.round = round;
            }
            self.gathers.clear();
        }
    }

    fn answer(&mut self, pe: u32, message: &Message) {
        self.post_bytes(pe, Arc::new(wire::encode(message)));
    }

    fn post_bytes(&mut self, pe: u32, bytes: Arc<Vec<u8>>) {
        if let Some(id) = self.members[pe as usize].connection {
            self.queue(id, bytes);
        }
    }

    fn post(&mut self, id: u64, message: &Message) {
        self.queue(id, Arc::new(wire::encode(message)));
    }

    fn queue(&mut self, id: u64, bytes: Arc<Vec<u8>>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.backlog += bytes.len();
            connection.out.push_back(bytes);
        }
        self.send(id);
    }

    fn send(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        while let Some(first) = connection.out.front() {
            match connection.stream.write(&first[connection.sent..]) {
                Ok(n) => {
                    connection.sent += n;
                    connection.backlog -= n;
                    if connection.sent == first.len() {
                        connection.out.pop_front();
                        connection.sent = 0;
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e)
                    if e.kind() == ErrorKind::WouldBlock && connection.backlog <= MAX_BACKLOG =>
                {
                    return
                }
                // The end of the stream is seen, with its cause, when it is read next.
                Err(_) => {
                    connection.out.clear();
                    let _ = connection.stream.shutdown(std::net::Shutdown::Both);
                    return;
                }
            }
        }
    }
}

#[derive(Default)]
struct Ready {
    woken: bool,
    listener: bool,
    connections: Vec<(u64, bool, bool)>,
}
