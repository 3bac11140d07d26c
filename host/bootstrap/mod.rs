//! Bootstrap: who this PE is, who the others are, and how they exchange a few bytes before they share memory.
//!
//! identity.rs reads the launcher's environment; store.rs and client.rs are a small TCP store with a job token and deadlines; wire.rs
//! has its frames. What it is not: a data path. Called by [`crate::World`]; [`store::Server`] also by the launcher.

mod ancestor;
pub mod client;
pub mod identity;
pub mod store;
pub mod wire;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub use client::{Death, StoreError};
pub use identity::{Identity, IdentityError};
use wire::Label;

use crate::config::Config;

/// This PE's place in the job. A job of one PE needs no store and has none.
pub struct Bootstrap {
    identity: Identity,
    client: Option<client::Client>,
    timeout: Duration,
}

/// How long a serving PE that fails waits for its own store to tell the others.
const NOTICE_TIME: Duration = Duration::from_secs(1);

/// Stores that PE 0 serves, by address. They live as long as the process, so that init after finalize finds them.
static SERVED: OnceLock<Mutex<HashMap<(String, u16), store::Server>>> = OnceLock::new();

impl Bootstrap {
    /// Joins the job and waits until every PE has.
    ///
    /// # Errors
    /// The store cannot be reached or refuses this PE; or the deadline `NPUSHMEM_JOIN_TIMEOUT` passed, with the list of missing PEs.
    pub fn join(identity: Identity, config: &Config) -> Result<Bootstrap, StoreError> {
        let client = match &identity.store {
            None => None,
            Some(address) => {
                if identity.serves {
                    serve(address, &identity)?;
                }
                let server = if identity.launcher == "NPUSHMEM_PE" {
                    "the launcher"
                } else {
                    "PE 0"
                };
                let token = identity.job.as_bytes();
                let client = client::Client::connect(
                    address,
                    identity.pe,
                    identity.n_pes,
                    token,
                    config.join_timeout,
                    server,
                )?;
                client.gather(
                    Label::Join,
                    &[],
                    config.join_timeout,
                    "NPUSHMEM_JOIN_TIMEOUT",
                )?;
                Some(client)
            }
        };
        Ok(Bootstrap {
            identity,
            client,
            timeout: config.timeout,
        })
    }

    /// Who this PE is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// All PEs' bytes, in the order of the PEs. Collective.
    ///
    /// # Errors
    /// The deadline `NPUSHMEM_TIMEOUT` passed, a PE died or left, or the store went away.
    pub fn gather(&self, label: Label, payload: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
        match &self.client {
            None => Ok(vec![payload.to_vec()]),
            Some(client) => client.gather(label, payload, self.timeout, "NPUSHMEM_TIMEOUT"),
        }
    }

    /// Returns when all PEs have called it. Collective.
    ///
    /// # Errors
    /// As [`Bootstrap::gather`].
    pub fn meet(&self, label: Label) -> Result<(), StoreError> {
        self.gather(label, &[]).map(drop)
    }

    /// As [`Bootstrap::meet`], with a deadline of its own, for meetings that a PE may reach only after its kernel timed out.
    ///
    /// # Errors
    /// As [`Bootstrap::gather`].
    pub fn meet_within(&self, label: Label, within: Duration) -> Result<(), StoreError> {
        match &self.client {
            None => Ok(()),
            Some(client) => client
                .gather(label, &[], within, "NPUSHMEM_TIMEOUT")
                .map(drop),
        }
    }

    /// The first death that this PE was told of.
    pub fn death(&self) -> Option<Death> {
        self.client.as_ref().and_then(client::Client::death)
    }

    /// Has `watcher` called with the first death, from a thread of the bootstrap. No effect in a job of one PE.
    pub fn watch(&self, watcher: client::Watcher) {
        if let Some(client) = &self.client {
            client.watch(watcher);
        }
    }

    /// Tells the others that this PE ends with an error; the process should end next.
    pub fn abort(&self, reason: &str) {
        if let Some(client) = &self.client {
            client.abort(reason);
        }
    }

    /// Leaves the job: in peace, or with an error that the other PEs are told.
    ///
    /// A PE that serves the store stays until the others have left, because its process may end next; bounded by `NPUSHMEM_TIMEOUT`.
    pub fn leave(&mut self, error: Option<&str>) {
        let Some(mut client) = self.client.take() else {
            return;
        };
        let served = SERVED
            .get_or_init(Default::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let server = self
            .identity
            .store
            .as_ref()
            .filter(|_| self.identity.serves)
            .and_then(|at| served.get(at));
        let me = self.identity.pe;
        let round = server.map_or(0, |server| server.departures(me)) + 1;
        client.leave(error);
        if let Some(server) = server {
            let gone = match error {
                None => server.wait_until(self.timeout, |counts| {
                    counts.iter().all(|count| *count >= round)
                }),
                // The notice is on its way once the server has seen this PE go.
                Some(_) => server.wait_until(NOTICE_TIME, |counts| {
                    counts.get(me as usize).is_none_or(|count| *count >= round)
                }),
            };
            if !gone {
                tracing::warn!(
                    "PE {me} serves the job's store and leaves while other PEs are still in"
                );
            }
        }
    }
}

fn serve(address: &(String, u16), identity: &Identity) -> Result<(), StoreError> {
    let mut served = SERVED
        .get_or_init(Default::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if !served.contains_key(address) {
        let server = store::Server::bind(
            (address.0.as_str(), address.1),
            identity.n_pes,
            identity.job.as_bytes(),
        )
        .map_err(|error| StoreError::Serve(error.to_string()))?;
        served.insert(address.clone(), server);
    }
    Ok(())
}
