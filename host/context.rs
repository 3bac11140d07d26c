//! Contexts: made by the host, used by kernels by their handle, and what they counted.
//!
//! What it is not: the calls by a context are the device's (device/shmem_contexts.h); queue pairs and tables are transport/'s. Called by
//! programs through [`World`], and by stream.rs, whose streams have a context each. Making one is collective over its team, because a queue pair
//! has two ends: the members agree on a free handle by a small kernel on the default context, as for teams.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::abi::{self, shmem_core};
use crate::config::Engine;
use crate::error::Error;
use crate::launch::Args;
use crate::teams::Team;
use crate::transport::{Settings, TransportError};
use crate::world::{Stats, World};

/// A context cannot be made or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// No handle that is free on all members of the team.
    #[error("no context can be made: a PE has at most {} at once, the default and those of streams included, and the team's members have no free handle in common; destroy contexts that are not needed", abi::SHMEM_CTX_MAX)]
    Exhausted,
    /// Another member's budget does not hold its queue pairs.
    #[error("no context can be made: on another PE of the team its queue pairs would take more than NPUSHMEM_QP_BUDGET; see that PE's error")]
    Budget,
    /// PEs that call it differently.
    #[error("create_context: {differ} of {n_pes} members of the team made another call, or with other options; all must make the same")]
    Differ {
        /// How many.
        differ: u64,
        /// PEs of the team.
        n_pes: u32,
    },
    /// More cores than the device was enabled with, or none.
    #[error("create_context: {asked} comm cores, but 1 to {have} are possible (enable_device)")]
    Cores {
        /// Asked.
        asked: u32,
        /// Comm cores.
        have: u32,
    },
    /// A context that was destroyed, or of another World.
    #[error("context {id} does not exist (any more) on this PE")]
    Gone {
        /// The handle.
        id: i32,
    },
}

/// What a context is to be (OpenSHMEM 1.6, `shmem_ctx_create`: the options; team, engine and cores are ours). The default: the job's engine, all
/// PEs, as many comm cores as `enable_device` made.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    options: u32,
    engine: Option<Engine>,
    team: Option<Team>,
    cores: Option<u32>,
}

impl ContextOptions {
    /// The default.
    pub fn new() -> ContextOptions {
        ContextOptions::default()
    }

    /// `SHMEM_CTX_SERIALIZED`: two cores never use it at once. Changes nothing: each core has queue pairs of its own.
    pub fn serialized(mut self) -> ContextOptions {
        self.options |= abi::SHMEM_CTX_SERIALIZED;
        self
    }

    /// `SHMEM_CTX_PRIVATE`: comm core 0 alone uses it, and only that core has queue pairs.
    pub fn private(mut self) -> ContextOptions {
        self.options |= abi::SHMEM_CTX_PRIVATE;
        self
    }

    /// `SHMEM_CTX_NOSTORE`: its fence and quiet need not cover a kernel's own stores through `shmem_ptr`.
    pub fn no_store(mut self) -> ContextOptions {
        self.options |= abi::SHMEM_CTX_NOSTORE;
        self
    }

    /// The engine of its calls.
    pub fn engine(mut self, engine: Engine) -> ContextOptions {
        self.engine = Some(engine);
        self
    }

    /// PE numbers of its calls are those of this team, and only its members can be reached (OpenSHMEM 1.6, `shmem_team_create_ctx`).
    pub fn team(mut self, team: &Team) -> ContextOptions {
        self.team = Some(team.clone());
        self
    }

    /// Comm cores that have queue pairs: cores 0 to `cores` - 1 may use it.
    pub fn cores(mut self, cores: u32) -> ContextOptions {
        self.cores = Some(cores);
        self
    }
}

/// A context of this PE. [`Context::id`] is what kernels take (`shmem_ctx_t`); it is the same on all members of the team.
#[derive(Debug, PartialEq, Eq)]
pub struct Context {
    id: u32,
    team: Team,
    cores: u32,
}

impl Context {
    /// The handle, for kernels.
    pub fn id(&self) -> i32 {
        self.id as i32
    }

    /// The team whose numbers its calls take (OpenSHMEM 1.6, `shmem_ctx_get_team`).
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The same once more, for who gives it back while something else still holds it.
    pub(crate) fn again(&self) -> Context {
        Context {
            id: self.id,
            team: self.team.clone(),
            cores: self.cores,
        }
    }

    /// Comm cores that may use it.
    pub fn cores(&self) -> u32 {
        self.cores
    }
}

impl World {
    /// Makes a context with queue pairs of its own: its order and completion are independent of those of other contexts. Collective over the
    /// team, with the same options on all members; kernels that use the default context on this PE must have been launched before. Its queue pairs
    /// count against `NPUSHMEM_QP_BUDGET`; a mapped context has none where the cores execute atomics (OpenSHMEM 1.6, `shmem_ctx_create`,
    /// `shmem_team_create_ctx`).
    ///
    /// # Errors
    /// The device is not enabled, no handle left, the budget, members that call it differently, a network that does not connect.
    pub fn create_context(&self, options: ContextOptions) -> Result<Context, Error> {
        self.new_context(options, abi::SHMEM_TEAM_WORLD)
    }

    /// Ends a context: its queue pairs are destroyed, its handle may be used for another. No kernel uses it any more, and its requests are complete
    /// (quiet) on every member. Collective over its team, unlike the standard's: a queue pair has two ends (OpenSHMEM 1.6, `shmem_ctx_destroy`).
    ///
    /// # Errors
    /// A context that does not exist; what kernels still had to tell.
    pub fn destroy_context(&self, context: Context) -> Result<(), Error> {
        self.check_context(&context)?;
        self.synchronize()?;
        self.quiet()?;
        // Nobody's queue pairs go while another member still has requests under way, and no handle is taken again before all have let it go.
        self.agree(&context.team, 0, 0)?;
        self.with_transport("destroy_context", |transport, _| {
            transport.drop_context(context.id)
        })?;
        self.agree(&context.team, 0, 0)?;
        Ok(())
    }

    /// What the comm cores of this PE counted on a context since it was made or the last [`World::reset_stats`].
    ///
    /// # Errors
    /// A context that does not exist; the runtime's.
    pub fn context_stats(&self, context: &Context) -> Result<Stats, Error> {
        self.check_context(context)?;
        self.stats_of(context.id)
    }

    /// The same of the default context alone; [`World::stats`] adds all up.
    ///
    /// # Errors
    /// The device is not enabled; the runtime's.
    pub fn default_context_stats(&self) -> Result<Stats, Error> {
        self.stats_of(0)
    }

    fn stats_of(&self, id: u32) -> Result<Stats, Error> {
        self.with_transport("stats", |transport, _| {
            Ok(added_up(&transport.counters_of(id)?))
        })
    }

    fn check_context(&self, context: &Context) -> Result<(), Error> {
        let there = self.with_transport("contexts", |transport, _| {
            Ok(transport.settings(context.id).is_some_and(|settings| {
                settings.cores == context.cores && settings.members == context.team.members()
            }))
        })?;
        if there {
            Ok(())
        } else {
            Err(ContextError::Gone { id: context.id() }.into())
        }
    }

    /// Makes a context whose kernels, when they attach it, mean `world_team` by SHMEM_TEAM_WORLD.
    pub(crate) fn new_context(
        &self,
        options: ContextOptions,
        world_team: u32,
    ) -> Result<Context, Error> {
        let team = match options.team {
            Some(team) => team,
            None => self.team_world()?,
        };
        let engine = options.engine.unwrap_or(self.config().engine);
        let (settings, free, refusal) =
            self.with_transport("create_context", |transport, site| {
                let have = transport.cores();
                let private = options.options & abi::SHMEM_CTX_PRIVATE != 0;
                let cores = options.cores.unwrap_or(if private { 1 } else { have });
                if cores == 0 || cores > have || (private && cores != 1) {
                    let have = if private { 1 } else { have };
                    return Err(ContextError::Cores { asked: cores, have }.into());
                }
                let settings = Settings {
                    cores,
                    team: team.id() as u32,
                    members: team.members().to_vec(),
                    world_team,
                    options: options.options,
                    engine: match engine {
                        Engine::Auto => abi::SHMEM_ENGINE_AUTO,
                        Engine::Mapped => abi::SHMEM_ENGINE_MAPPED,
                        Engine::Roce => abi::SHMEM_ENGINE_ROCE,
                    },
                };
                let refusal: Option<TransportError> = transport.over_budget(&settings, site);
                Ok((settings, transport.free_contexts(), refusal))
            })?;
        /// Bit of a member whose budget holds the queue pairs.
        const AFFORDED: u64 = 1 << 63;
        let afforded = if refusal.is_none() { AFFORDED } else { 0 };
        let mut digest = DefaultHasher::new();
        let engine = settings.engine;
        (settings.cores, settings.options, engine, world_team).hash(&mut digest);
        let (all, differ) = self.agree(&team, free | afforded, digest.finish())?;
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        if differ != 0 {
            let n_pes = team.n_pes();
            return Err(ContextError::Differ { differ, n_pes }.into());
        }
        if all & AFFORDED == 0 {
            return Err(ContextError::Budget.into());
        }
        let free = all & !AFFORDED;
        if free == 0 {
            return Err(ContextError::Exhausted.into());
        }
        let id = free.trailing_zeros();
        let cores = settings.cores;
        let made = self
            .with_transport("create_context", |transport, site| {
                transport.begin_context(id, settings, site)
            })
            .and_then(|pending| {
                // Everybody admits before anybody connects, and nobody uses it before everybody has connected.
                self.agree(&team, 0, 0)?;
                self.with_transport("create_context", |transport, site| {
                    transport.finish_context(id, pending, site)
                })?;
                self.agree(&team, 0, 0)
            });
        if let Err(error) = made {
            self.with_transport("create_context", |transport, _| transport.drop_context(id))?;
            return Err(error);
        }
        Ok(Context { id, team, cores })
    }
}

impl Args {
    /// A context's handle, for kernels that take a `shmem_ctx_t`. The launch is refused while a kernel on another stream has the context.
    pub fn context(self, context: &Context) -> Args {
        self.claim(context.id).i32(context.id())
    }

    /// A team's handle, for kernels that take a `shmem_team_t`.
    pub fn team(self, team: &Team) -> Args {
        self.i32(team.id())
    }
}

pub(crate) fn added_up(cores: &[shmem_core]) -> Stats {
    cores.iter().fold(Stats::default(), |sum, core| Stats {
        data_requests: sum.data_requests + core.data_requests,
        sync_requests: sum.sync_requests + core.sync_requests,
        sq_doorbells: sum.sq_doorbells + core.sq_doorbells,
        cq_doorbells: sum.cq_doorbells + core.cq_doorbells,
        ring_copies: sum.ring_copies + core.ring_copies,
        polls: sum.polls + core.polls,
        roce_bytes: sum.roce_bytes + core.roce_bytes,
        mapped_bytes: sum.mapped_bytes + core.mapped_bytes,
    })
}
