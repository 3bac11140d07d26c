//! A PE's connection to the job's store.
//!
//! A thread of its own reads, so that the notice of a dead peer arrives whatever this PE is doing. What it is not: it does not choose
//! who this PE is (identity.rs). Used by [`super::Bootstrap`].

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::wire::{self, Decoder, Label, Message};

/// First pause between attempts to reach the store; each is twice as long as the one before.
const RETRY: Duration = Duration::from_millis(1);
/// Longest pause between attempts to reach the store.
const LONGEST_RETRY: Duration = Duration::from_millis(50);
/// How much longer than its deadline a PE waits for the store's own word on it.
const GRACE: Duration = Duration::from_secs(5);
/// Most letters of the reason for which a PE ends.
const MAX_REASON: usize = 1000;
/// Longest blocking write to the store.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// A collective of the bootstrap, or the way into the job, failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store's host name means nothing.
    #[error("the store's address {address} cannot be resolved: {reason}; check NPUSHMEM_STORE or MASTER_ADDR")]
    Resolve {
        /// The address.
        address: String,
        /// The system's reason.
        reason: String,
    },
    /// Nobody listens at the store's address.
    #[error("PE {pe} cannot reach the job's store at {address} within {seconds} s: {reason}; is {server} running, and is the address right (NPUSHMEM_STORE)?")]
    Connect {
        /// This PE.
        pe: u32,
        /// The store's address.
        address: String,
        /// How long was tried.
        seconds: f64,
        /// The last reason.
        reason: String,
        /// Who should serve it.
        server: &'static str,
    },
    /// The store does not let this PE in.
    #[error("the job's store at {address} refused PE {pe}: {reason}")]
    Refused {
        /// This PE.
        pe: u32,
        /// The store's address.
        address: String,
        /// Why.
        reason: String,
    },
    /// Some PEs did not come.
    #[error("{what} timed out after {seconds} s: still missing {}; raise {setting} if they are only slow", pe_list(missing))]
    Late {
        /// The collective.
        what: &'static str,
        /// Its deadline.
        seconds: f64,
        /// Who did not come.
        missing: Vec<u32>,
        /// The setting that bounds the wait.
        setting: &'static str,
    },
    /// A PE died.
    #[error("PE {pe} died while this PE was in {what}: {reason}")]
    Died {
        /// The dead PE.
        pe: u32,
        /// How it died.
        reason: String,
        /// What this PE was doing.
        what: &'static str,
    },
    /// The collective cannot end.
    #[error("{what} failed: {reason}")]
    Broken {
        /// The collective.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The store went away.
    #[error("the job's store went away while this PE was in {what}: {reason}; the launcher or PE 0, which serves it, has ended")]
    Gone {
        /// What this PE was doing.
        what: &'static str,
        /// The connection's state.
        reason: String,
    },
    /// More bytes than one exchange carries.
    #[error("an exchange carries at most {limit} bytes a PE, asked {bytes}; move bulk data through the symmetric heap")]
    TooLarge {
        /// Asked.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The store cannot be served by this PE.
    #[error("{0}")]
    Serve(String),
}

/// "PE 3" or "PEs 1, 2, 5 and 12 more".
pub(crate) fn pe_list(pes: &[u32]) -> String {
    /// PEs named before the rest is only counted.
    const NAMED: usize = 16;
    let named: Vec<String> = pes.iter().take(NAMED).map(u32::to_string).collect();
    let rest = pes.len().saturating_sub(NAMED);
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    let plural = if pes.len() == 1 { "" } else { "s" };
    format!("PE{plural} {}{more}", named.join(", "))
}

/// A PE that died, or left with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The PE; `None`: the store itself went away.
    pub pe: Option<u32>,
    /// How.
    pub reason: String,
}

#[derive(Default)]
struct State {
    welcomed: bool,
    refused: Option<String>,
    replies: HashMap<u64, Message>,
    death: Option<Death>,
    /// Set before this side closes, so that the end of the stream is no news.
    leaving: bool,
    /// Called once each, in the reader's thread, with the first death.
    watchers: Vec<Watcher>,
}

/// What is called when a PE dies.
pub type Watcher = Box<dyn FnOnce(&Death) + Send>;

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A PE that is in.
pub struct Client {
    stream: TcpStream,
    writer: Mutex<()>,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
    next: AtomicU64,
}

impl Client {
    /// Connects, says hello and is let in. Tries again until `deadline` while nobody listens.
    ///
    /// # Errors
    /// The store cannot be reached in time, or does not let this PE in.
    pub fn connect(
        address: &(String, u16),
        pe: u32,
        n_pes: u32,
        token: &[u8],
        within: Duration,
        server: &'static str,
    ) -> Result<Client, StoreError> {
        let name = format!("{}:{}", address.0, address.1);
        let end = Instant::now() + within;
        let unreachable = |reason: String| StoreError::Connect {
            pe,
            address: name.clone(),
            seconds: within.as_secs_f64(),
            reason,
            server,
        };
        let mut pause = RETRY;
        let stream = loop {
            let targets: Vec<SocketAddr> = match (address.0.as_str(), address.1).to_socket_addrs() {
                Ok(targets) => targets.collect(),
                Err(error) => {
                    return Err(StoreError::Resolve {
                        address: name,
                        reason: error.to_string(),
                    })
                }
            };
            let left = end
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            let mut last = "no address".to_string();
            let found =
                targets
                    .iter()
                    .find_map(|target| match TcpStream::connect_timeout(target, left) {
                        Ok(stream) => Some(stream),
                        Err(error) => {
                            last = error.to_string();
                            None
                        }
                    });
            match found {
                Some(stream) => break stream,
                None if Instant::now() >= end => return Err(unreachable(last)),
                None => {
                    std::thread::sleep(pause);
                    pause = (2 * pause).min(LONGEST_RETRY);
                }
            }
        };
        let system = |error: std::io::Error| unreachable(error.to_string());
        stream.set_nodelay(true).map_err(system)?;
        stream.set_write_timeout(Some(WRITE_TIME)).map_err(system)?;
        let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
        let shared = Arc::new(Shared::default());
        let reading = stream.try_clone().map_err(system)?;
        let state = shared.clone();
        let reader = std::thread::Builder::new()
            .name("npushmem-store-reader".into())
            .spawn(move || read(reading, &state))
            .map_err(system)?;
        let client = Client {
            stream,
            writer: Mutex::new(()),
            shared,
            reader: Some(reader),
            next: AtomicU64::new(0),
        };
        client
            .send(&Message::Hello {
                pe,
                n_pes,
                pid: std::process::id(),
                token: token.to_vec(),
            })
            .map_err(&unreachable)?;
        let mut state = client.shared.lock();
        loop {
            if state.welcomed {
                break;
            }
            if let Some(reason) = state.refused.take() {
                return Err(StoreError::Refused {
                    pe,
                    address: name,
                    reason,
                });
            }
            if let Some(death) = &state.death {
                return Err(unreachable(death.reason.clone()));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(unreachable(
                    "it accepted the connection but does not answer; is it an npushmem store?"
                        .into(),
                ));
            }
            state = client
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        drop(state);
        Ok(client)
    }

    /// All PEs' bytes, in the order of the PEs. Every PE must call it, in the same order as all other collectives.
    ///
    /// # Errors
    /// The deadline passed, a PE died or left, or the store went away.
    pub fn gather(
        &self,
        label: Label,
        payload: &[u8],
        within: Duration,
        setting: &'static str,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let what = label.word();
        if payload.len() > wire::MAX_PAYLOAD as usize {
            return Err(StoreError::TooLarge {
                bytes: payload.len(),
                limit: wire::MAX_PAYLOAD as usize,
            });
        }
        if let Some(death) = self.death() {
            return Err(death_error(death, what));
        }
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let deadline_ms = within.as_millis().min(u128::from(u64::MAX)) as u64;
        let sent = self.send(&Message::Gather {
            seq,
            deadline_ms,
            label,
            payload: payload.to_vec(),
        });
        let end = Instant::now() + within + GRACE;
        let mut state = self.shared.lock();
        loop {
            match state.replies.remove(&seq) {
                Some(Message::Gathered { payloads, .. }) => return Ok(payloads),
                Some(Message::Late { missing, .. }) => {
                    return Err(StoreError::Late {
                        what,
                        seconds: within.as_secs_f64(),
                        missing,
                        setting,
                    })
                }
                // The notice of the death that broke it says more.
                Some(Message::Broken { reason, .. }) => {
                    return Err(match state.death.clone() {
                        Some(death) => death_error(death, what),
                        None => StoreError::Broken { what, reason },
                    })
                }
                _ => {}
            }
            if let Some(death) = state.death.clone() {
                return Err(death_error(death, what));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || sent.is_err() {
                let reason = match sent {
                    Err(reason) => reason,
                    Ok(()) => format!("no answer {} s after the deadline", GRACE.as_secs()),
                };
                return Err(StoreError::Gone { what, reason });
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The first death that this PE was told of.
    pub fn death(&self) -> Option<Death> {
        self.shared.lock().death.clone()
    }

    /// Has `watcher` called with the first death, from the thread that reads the store's messages; at once, if there was one.
    pub fn watch(&self, watcher: Watcher) {
        let mut state = self.shared.lock();
        match state.death.clone() {
            Some(death) => {
                drop(state);
                watcher(&death);
            }
            None => state.watchers.push(watcher),
        }
    }

    /// Tells the others that this PE ends with an error. The connection stays; the process should end next.
    pub fn abort(&self, reason: &str) {
        self.shared.lock().leaving = true;
        let reason = reason.chars().take(MAX_REASON).collect();
        if let Err(reason) = self.send(&Message::Abort { reason }) {
            tracing::debug!("the last word did not reach the job's store: {reason}");
        }
    }

    /// Leaves: in peace, or with an error that the others are told.
    pub fn leave(&mut self, error: Option<&str>) {
        let Some(reader) = self.reader.take() else {
            return;
        };
        self.shared.lock().leaving = true;
        let message = match error {
            None => Message::Bye,
            Some(reason) => Message::Abort {
                reason: reason.chars().take(MAX_REASON).collect(),
            },
        };
        if let Err(reason) = self.send(&message) {
            tracing::debug!("the goodbye did not reach the job's store: {reason}");
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        if reader.join().is_err() {
            tracing::warn!("the thread that reads from the job's store ended with a panic");
        }
    }

    fn send(&self, message: &Message) -> Result<(), String> {
        let _one_at_a_time = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.stream)
            .write_all(&wire::encode(message))
            .map_err(|error| error.to_string())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave(Some("it ended without finalize"));
    }
}

fn death_error(death: Death, what: &'static str) -> StoreError {
    match death.pe {
        Some(pe) => StoreError::Died {
            pe,
            reason: death.reason,
            what,
        },
        None => StoreError::Gone {
            what,
            reason: death.reason,
        },
    }
}

/// The reader's loop: until the stream ends.
fn read(mut stream: TcpStream, shared: &Shared) {
    let mut decoder = Decoder::default();
    let mut chunk = vec![0u8; 1 << 16];
    let reason = 'stream: loop {
        match stream.read(&mut chunk) {
            Ok(0) => break "the connection closed".to_string(),
            Ok(n) => decoder.feed(&chunk[..n]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => break error.to_string(),
        }
        loop {
            match decoder.next(u32::MAX) {
                Ok(None) => break,
                Ok(Some(message)) => take(message, shared),
                Err(error) => break 'stream error.to_string(),
            }
        }
    };
    let mut state = shared.lock();
    if !state.leaving && state.death.is_none() {
        state.death = Some(Death { pe: None, reason });
    }
    tell(state, shared);
}

/// Wakes who waits, and tells the watchers of a death, with the lock given back.
fn tell(mut state: MutexGuard<'_, State>, shared: &Shared) {
    shared.changed.notify_all();
    if state.leaving {
        return;
    }
    let Some(death) = state.death.clone() else {
        return;
    };
    let watchers = std::mem::take(&mut state.watchers);
    drop(state);
    for watcher in watchers {
        watcher(&death);
    }
}

fn take(message: Message, shared: &Shared) {
    let mut state = shared.lock();
    match message {
        Message::Welcome => state.welcomed = true,
        Message::Refused { reason } => state.refused = Some(reason),
        Message::Died { pe, reason } => {
            state.death.get_or_insert(Death {
                pe: Some(pe),
                reason,
            });
        }
        Message::Gathered { seq, .. } | Message::Late { seq, .. } | Message::Broken { seq, .. } => {
            state.replies.insert(seq, message);
        }
        other => tracing::warn!("the job's store sent what only PEs send: {other:?}"),
    }
    tell(state, shared);
}
