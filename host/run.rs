//! Launching kernels and waiting for them: bounded, watching for dead PEs, and turning what is found afterwards into one error.
//!
//! What it is not: it sets nothing up (transport/) and holds no policy on blocks. Called by world.rs, one call at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{self, shmem_error};
use crate::bootstrap::{Bootstrap, Death};
use crate::config::Config;
use crate::error::Error;
use crate::faults::{Code, DeviceError};
use crate::launch::{Args, Function, Loaded};
use crate::runtime::owners::{Device, Stream};
use crate::runtime::{AclError, Api, LaunchMode};
use crate::transport::Transport;

/// How long one wait of the runtime lasts before deaths and deadlines are looked at, milliseconds.
const SLICE_MS: i32 = 20;
/// How long a kernel may take to obey the abort line, and after it the runtime to stop the kernel by force.
const GRACE: Duration = Duration::from_secs(8);
/// How long to wait for the store's word on a PE that the NIC calls dead.
const DEATH_NEWS: Duration = Duration::from_millis(300);

/// The stream that kernels run on, and what runs.
pub(crate) struct Runner {
    stream: Stream,
    api: Arc<Api>,
    /// ACL calls made before the first of the kernels in `names` ran.
    calls_before: u64,
    calls_meanwhile: u64,
    /// Names of the kernels launched since the last wait; what they need is kept alive.
    names: Vec<String>,
    loaded: Vec<Arc<Loaded>>,
    needs_recover: Option<String>,
    lost: bool,
    last: Option<DeviceError>,
    claims: Arc<Claims>,
    /// Distinguishes streams in `claims`.
    number: u64,
}

/// Which contexts kernels on a stream use beside the stream's own: one stream has a context at a time, until it was synchronized.
#[derive(Default)]
pub(crate) struct Claims(Mutex<BTreeMap<u32, (u64, String)>>);

impl Claims {
    /// Takes these contexts for a kernel of stream `who`.
    fn take(&self, who: u64, contexts: &[u32], kernel: &str) -> Result<(), Error> {
        let mut held = self.lock();
        for context in contexts {
            if let Some((_, running)) = held.get(context).filter(|(other, _)| *other != who) {
                return Err(Error::ContextBusy {
                    running: running.clone(),
                });
            }
        }
        for context in contexts {
            held.insert(*context, (who, kernel.to_string()));
        }
        Ok(())
    }

    /// Gives all contexts of stream `who` back.
    fn release(&self, who: u64) {
        self.lock().retain(|_, (holder, _)| *holder != who);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, (u64, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static NEXT_RUNNER: AtomicU64 = AtomicU64::new(1);

/// What a context says of its kernels, and how they are told to stop.
pub(crate) trait Reports {
    /// Ends every bounded wait of this PE's kernels.
    fn abort(&self, code: u32, pe: i32) -> Result<(), Error>;
    /// The error records of the context; zeroed when there is one.
    fn take_errors(&self) -> Result<Vec<shmem_error>, Error>;
}

impl Reports for Transport {
    fn abort(&self, code: u32, pe: i32) -> Result<(), Error> {
        Transport::abort(self, code, pe)
    }

    fn take_errors(&self) -> Result<Vec<shmem_error>, Error> {
        self.errors_of(0)
    }
}

/// How a wait ended.
enum Outcome {
    Done,
    /// The runtime reports a failed kernel.
    Failed(AclError),
    /// It did not end even after the abort line.
    Lost,
}

impl Outcome {
    /// The runtime's error, if there is one.
    fn error(self) -> Option<Box<AclError>> {
        match self {
            Outcome::Failed(error) => Some(Box::new(error)),
            Outcome::Done | Outcome::Lost => None,
        }
    }
}

impl Runner {
    pub(crate) fn new(device: &Device) -> Result<Runner, Error> {
        Runner::beside(device, &Arc::default())
    }

    /// On a stream of its own, beside those that share `claims`.
    pub(crate) fn beside(device: &Device, claims: &Arc<Claims>) -> Result<Runner, Error> {
        let stream = Stream::new(device).map_err(Error::acl("making a stream"))?;
        Ok(Runner {
            stream,
            api: device.api().clone(),
            calls_before: 0,
            calls_meanwhile: 0,
            names: Vec::new(),
            loaded: Vec::new(),
            needs_recover: None,
            lost: false,
            last: None,
            claims: claims.clone(),
            number: NEXT_RUNNER.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Who has which context, of all streams.
    pub(crate) fn claims(&self) -> &Arc<Claims> {
        &self.claims
    }

    /// Puts a kernel into the stream.
    pub(crate) fn launch(
        &mut self,
        function: &Function,
        blocks: u32,
        args: &Args,
        context: u64,
        mode: LaunchMode,
    ) -> Result<(), Error> {
        if blocks == 0 {
            return Err(Error::NoBlocks(function.name.clone()));
        }
        if let Some(reason) = self
            .needs_recover
            .as_ref()
            .filter(|_| self.lost || args.wants_context())
        {
            return Err(Error::NeedsRecover(reason.clone()));
        }
        self.claims
            .take(self.number, args.claims(), &function.name)?;
        let mut packed = args.packed(context);
        function
            .loaded
            .binary
            .launch(function.handle, blocks, &self.stream, &mut packed, mode)
            .map_err(Error::acl("launching a kernel"))?;
        if self.names.is_empty() {
            self.calls_before = self.api.calls();
        }
        if self.names.last() != Some(&function.name) {
            self.names.push(function.name.clone());
        }
        if !self
            .loaded
            .iter()
            .any(|loaded| Arc::ptr_eq(loaded, &function.loaded))
        {
            self.loaded.push(function.loaded.clone());
        }
        Ok(())
    }

    /// Waits for everything launched.
    pub(crate) fn wait(
        &mut self,
        bootstrap: &Bootstrap,
        reports: Option<&dyn Reports>,
        config: &Config,
    ) -> Result<(), Error> {
        let pe = bootstrap.identity().pe;
        if self.lost {
            return Err(self.lost_error(pe, config));
        }
        if self.names.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        let limit = config.kernel_wait();
        let mut death: Option<Death> = None;
        let mut aborted: Option<Instant> = None;
        let mut timed_out = false;
        let mut waits = 0;
        let outcome = loop {
            waits += 1;
            match self.stream.wait(SLICE_MS) {
                Ok(true) => break Outcome::Done,
                Err(error) => break Outcome::Failed(error),
                Ok(false) => {}
            }
            if aborted.is_none() {
                death = bootstrap.death();
                timed_out = death.is_none() && begin.elapsed() >= limit;
                if death.is_some() || timed_out {
                    aborted = Some(Instant::now());
                    let code = if timed_out {
                        abi::SHMEM_E_TIMEOUT
                    } else {
                        abi::SHMEM_E_ABORT
                    };
                    let dead = death.as_ref().and_then(|d| d.pe).map_or(-1, |pe| pe as i32);
                    if let Some(reports) = reports {
                        reports.abort(code, dead)?;
                    }
                }
            } else if aborted.is_some_and(|at| at.elapsed() >= GRACE) {
                break Outcome::Lost;
            }
        };
        let seconds = begin.elapsed().as_secs_f64();
        self.calls_meanwhile = self.api.calls().saturating_sub(self.calls_before + waits);
        if let Outcome::Lost = outcome {
            self.lost = true;
            self.needs_recover =
                Some("a kernel does not end, and this process cannot go on".into());
            self.stream.mark_lost();
            // The kernel may still run: its code must stay.
            for loaded in self.loaded.drain(..) {
                std::mem::forget(loaded);
            }
            return Err(Error::KernelLost {
                pe,
                kernel: self.kernel(),
                seconds,
                died: death.and_then(|death| Some((death.pe?, death.reason))),
            });
        }
        let kernel = self.kernel();
        self.names.clear();
        self.loaded.clear();
        self.claims.release(self.number);
        let records = match reports {
            Some(reports) => reports.take_errors()?,
            None => Vec::new(),
        };
        let mut record = DeviceError::earliest(pe, &records).map(Box::new);
        if let Some(record) = &mut record {
            record.died = self.news(bootstrap, record);
            if death.is_none() && record.died.is_some() {
                death = bootstrap.death();
            }
            self.last = Some((**record).clone());
        }
        let error = match (outcome, death, record) {
            (Outcome::Failed(source), _, record) if aborted.is_none() => Error::Kernel {
                pe,
                kernel,
                source: Box::new(source),
                record,
            },
            (_, Some(Death { pe: None, reason }), _) => Error::StoreGone { pe, reason, kernel },
            // The record says it best when it is about the dead PE itself.
            (_, Some(Death { pe: Some(dead), .. }), Some(record))
                if record.target == Some(dead) && record.code != Code::Abort =>
            {
                Error::Device(record)
            }
            (
                outcome,
                Some(Death {
                    pe: Some(dead),
                    reason,
                }),
                record,
            ) if aborted.is_some() || record.is_some() => Error::PeerDied {
                pe,
                dead,
                reason,
                kernel,
                source: outcome.error(),
                record,
            },
            (outcome, _, record) if timed_out => Error::KernelTimeout {
                pe,
                kernel,
                seconds: limit.as_secs_f64(),
                source: outcome.error(),
                record,
            },
            (_, _, Some(record)) => Error::Device(record),
            (_, _, None) => return Ok(()),
        };
        let breaks = match &error {
            Error::Device(record) => record.breaks_queues(),
            _ => true,
        };
        if breaks {
            self.needs_recover = Some(error.to_string());
        }
        Err(error)
    }

    /// How the PE that a record is about died, if it did.
    fn news(&self, bootstrap: &Bootstrap, record: &DeviceError) -> Option<String> {
        let target = record.target?;
        let deadline = Instant::now() + DEATH_NEWS;
        loop {
            if let Some(death) = bootstrap.death() {
                return (death.pe == Some(target)).then_some(death.reason);
            }
            // The NIC notices a death before the store does: give the news a moment.
            if record.code != Code::Completion || target == record.pe || Instant::now() >= deadline
            {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Before queue pairs are made anew: a stream that failed may refuse work.
    pub(crate) fn renew(&mut self, device: &Device) -> Result<(), Error> {
        if self.lost {
            return Err(Error::NeedsRecover(
                "a kernel does not end, and this process cannot go on".into(),
            ));
        }
        self.stream = Stream::new(device).map_err(Error::acl("making a stream"))?;
        self.needs_recover = None;
        self.last = None;
        Ok(())
    }

    /// Gives running kernels a moment to end, and gives them up otherwise.
    pub(crate) fn stop_before_drop(&mut self, config: &Config) {
        if self.names.is_empty() || self.lost {
            return;
        }
        let limit = config.kernel_wait().min(GRACE).as_millis() as i32;
        if matches!(self.stream.wait(limit), Ok(false)) {
            self.lost = true;
            self.stream.mark_lost();
            for loaded in self.loaded.drain(..) {
                std::mem::forget(loaded);
            }
        }
    }

    /// ACL calls made from the launch's return to the end of the latest wait's kernels; the waits themselves apart.
    pub(crate) fn calls_meanwhile(&self) -> u64 {
        self.calls_meanwhile
    }

    /// The stream that kernels run on.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether a kernel does not end.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// What broke the device, if something did.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.needs_recover.as_deref()
    }

    /// The latest record of a kernel.
    pub(crate) fn last_error(&self) -> Option<DeviceError> {
        self.last.clone()
    }

    fn lost_error(&self, pe: u32, config: &Config) -> Error {
        Error::KernelLost {
            pe,
            kernel: self.kernel(),
            seconds: config.kernel_wait().as_secs_f64(),
            died: None,
        }
    }

    fn kernel(&self) -> String {
        match self.names.as_slice() {
            [] => "(none)".into(),
            [one] => one.clone(),
            many => many.join(", "),
        }
    }
}
