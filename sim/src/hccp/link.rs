//! One admitted connection, and the exchange of queue pairs over it.
//!
//! Each end numbers the queue pairs that it connects over one connection; equal numbers belong together, so both ends must connect them in the
//! same order. An end sends the address, joins its queue pair to the peer's when that arrives, says ready, and is connected when the other end
//! has said so too: a request can then be answered at once, whichever end sends first. `agent.rs` calls this under its lock.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use npushmem_roce::nic::QpAddress;
use rustix::event::PollFlags;

use super::error::HccpError;
use super::queue::{Queue, Status};
use super::wire::{self, Message, Received, Tag};

/// Queue pairs that one connection may serve; more addresses than that from a peer close it.
const EXCHANGES_MAX: u32 = 1 << 16;
/// What a queue pair's status says when the peer sent an abort.
const GIVEN_UP: &str = "the other end gave this queue pair up";

/// Which end of a connection: the first argument of `ra_get_sockets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that listens (0).
    Server,
    /// The end that connects (1).
    Client,
}

/// An admitted connection.
pub struct Link {
    role: Role,
    /// The socket handle that it belongs to.
    pub owner: usize,
    remote: Ipv4Addr,
    tag: Tag,
    /// The connection itself.
    pub socket: Arc<OwnedFd>,
    /// It was handed out.
    pub claimed: bool,
    /// Why it is closed, if it is.
    pub closed: Option<String>,
    out: VecDeque<Message>,
    exchanges: Vec<Exchange>,
    early: HashMap<u32, Early>,
}

/// One queue pair on its way; `queue` is `None` once it is settled.
struct Exchange {
    queue: Option<Arc<Queue>>,
    joined: bool,
    deadline: Instant,
}

/// What came for a queue pair that this end has not connected yet.
enum Early {
    Address(QpAddress),
    Abort,
}

impl Link {
    /// A connection that was just admitted.
    pub fn new(role: Role, owner: usize, remote: Ipv4Addr, tag: Tag, socket: Arc<OwnedFd>) -> Self {
        Self {
            role,
            owner,
            remote,
            tag,
            socket,
            claimed: false,
            closed: None,
            out: VecDeque::new(),
            exchanges: Vec::new(),
            early: HashMap::new(),
        }
    }

    /// Whether it is this end of a connection of a socket handle with a NIC address and a tag.
    pub fn is(&self, role: Role, owner: usize, remote: Ipv4Addr, tag: &Tag) -> bool {
        self.role == role && self.owner == owner && self.remote == remote && self.tag == *tag
    }

    /// What its socket is waited for.
    pub fn interest(&self) -> PollFlags {
        if self.out.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        }
    }

    /// When the first exchange runs out of time.
    pub fn deadline(&self) -> Option<Instant> {
        let waiting = self.exchanges.iter().filter(|one| one.queue.is_some());
        waiting.map(|one| one.deadline).min()
    }

    /// Sends a message as soon as the socket takes it.
    pub fn say(&mut self, message: Message) {
        self.out.push_back(message);
        self.flush();
    }

    /// Reads and writes what the socket has and takes.
    pub fn advance(&mut self) {
        self.receive();
        self.flush();
    }

    /// Starts to connect a queue pair whose address is `address`.
    pub fn begin(
        &mut self,
        queue: &Arc<Queue>,
        address: QpAddress,
        deadline: Instant,
    ) -> Result<(), HccpError> {
        if let Some(why) = &self.closed {
            return Err(HccpError::Closed {
                peer: self.remote,
                why: why.clone(),
            });
        }
        queue.start()?;
        let seq = self.exchanges.len() as u32;
        self.exchanges.push(Exchange {
            queue: Some(queue.clone()),
            joined: false,
            deadline,
        });
        self.out.push_back(Message::Address { seq, address });
        match self.early.remove(&seq) {
            Some(Early::Address(peer)) => self.join(seq, &peer),
            Some(Early::Abort) => self.settle(seq, Status::Timeout, GIVEN_UP.into()),
            None => {}
        }
        self.flush();
        Ok(())
    }

    /// Forgets a queue pair that will not be connected, and tells the peer.
    pub fn abandon(&mut self, queue: &Arc<Queue>) {
        let waiting = |one: &Exchange| {
            one.queue
                .as_ref()
                .is_some_and(|other| Arc::ptr_eq(other, queue))
        };
        if let Some(seq) = self.exchanges.iter().position(waiting) {
            self.exchanges[seq].queue = None;
            self.say(Message::Abort { seq: seq as u32 });
        }
    }

    /// Sends what the socket takes.
    fn flush(&mut self) {
        while let Some(message) = self.out.front() {
            match wire::send(&self.socket, message) {
                Ok(true) => drop(self.out.pop_front()),
                Ok(false) => break,
                Err(error) => {
                    // What the peer said before it left still counts.
                    self.receive();
                    if self.closed.is_none() {
                        self.fail(format!("the other process closed it or died ({error})"));
                    }
                    return;
                }
            }
        }
    }

    fn receive(&mut self) {
        loop {
            match wire::receive(&self.socket) {
                Received::Message(Message::Address { seq, .. } | Message::Abort { seq })
                    if seq >= EXCHANGES_MAX =>
                {
                    return self.fail(format!("the peer connects more than {EXCHANGES_MAX} queue pairs over one connection"));
                }
                Received::Message(Message::Address { seq, address }) => {
                    if (seq as usize) < self.exchanges.len() {
                        self.join(seq, &address);
                    } else {
                        self.early.insert(seq, Early::Address(address));
                    }
                }
                Received::Message(Message::Ready { seq }) => {
                    if self
                        .exchanges
                        .get(seq as usize)
                        .is_some_and(|exchange| exchange.joined)
                    {
                        self.settle(seq, Status::Connected, String::new());
                    }
                }
                Received::Message(Message::Abort { seq }) => {
                    if (seq as usize) < self.exchanges.len() {
                        self.settle(seq, Status::Timeout, GIVEN_UP.into());
                    } else {
                        self.early.insert(seq, Early::Abort);
                    }
                }
                Received::Message(_) => {
                    return self.fail("a greeting on an open connection".into())
                }
                Received::Nothing => return,
                Received::Closed(why) => return self.fail(why),
            }
        }
    }

    /// Joins queue pair `seq` of this end to the peer's.
    fn join(&mut self, seq: u32, peer: &QpAddress) {
        let Some(exchange) = self.exchanges.get_mut(seq as usize) else {
            return;
        };
        let Some(queue) = &exchange.queue else { return };
        match queue.join(peer) {
            Ok(()) => {
                exchange.joined = true;
                self.out.push_back(Message::Ready { seq });
            }
            Err(error) => {
                self.out.push_back(Message::Abort { seq });
                self.settle(seq, Status::Timeout, error.to_string());
            }
        }
    }

    fn settle(&mut self, seq: u32, status: Status, why: String) {
        if let Some(queue) = self
            .exchanges
            .get_mut(seq as usize)
            .and_then(|exchange| exchange.queue.take())
        {
            queue.settle(status, why);
        }
    }

    /// Ends every exchange.
    pub fn settle_all(&mut self, why: &str) {
        for seq in 0..self.exchanges.len() as u32 {
            self.settle(seq, Status::Closed, why.to_owned());
        }
    }

    /// Ends the exchanges whose time is up.
    pub fn expire(&mut self, now: Instant) {
        for seq in 0..self.exchanges.len() as u32 {
            let exchange = &self.exchanges[seq as usize];
            if exchange.queue.is_some() && now >= exchange.deadline {
                let why = if exchange.joined {
                    "did not say ready"
                } else {
                    "did not connect its queue pair of the same number"
                };
                self.settle(seq, Status::Timeout, format!("{} {why} in time: both ends must connect the same queue pairs in the same order", self.remote));
                self.out.push_back(Message::Abort { seq });
            }
        }
        self.flush();
    }

    fn fail(&mut self, why: String) {
        self.settle_all(&why);
        self.out.clear();
        self.closed = Some(why);
    }
}
