//! The library's error type: what failed, with which inputs, and what to do about it.
//!
//! What it is not: context for programs (they add their own). Errors of single parts stand beside these parts (config.rs, bootstrap/,
//! runtime/, heap/, transport/, faults.rs) and are wrapped here.

use crate::bootstrap::{IdentityError, StoreError};
use crate::config::ConfigError;
use crate::context::ContextError;
use crate::faults::DeviceError;
use crate::heap::HeapError;
use crate::openshmem::ShmemError;
use crate::register::RegisterError;
use crate::runtime::{AclError, RuntimeError};
use crate::teams::TeamError;
use crate::transport::TransportError;

/// Anything that can go wrong in the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is not accepted.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The environment does not say who this PE is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The job's store: somebody is missing, died, or calls something else.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No runtime or device.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The symmetric heap.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// Queue pairs and the NIC.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Making or asking a team.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// Making or using a context.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Registering a buffer, or making a window.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// An operation of the host (openshmem/) that cannot be done, or did not end.
    #[error(transparent)]
    Shmem(#[from] ShmemError),
    /// A call of the vendor's runtime.
    #[error("{doing}: {source}")]
    Acl {
        /// What the library was doing.
        doing: &'static str,
        /// The vendor's error.
        #[source]
        source: AclError,
    },
    /// A kernel recorded an error.
    #[error(transparent)]
    Device(Box<DeviceError>),
    /// The runtime stopped a kernel: a wild address, a broken rule, a trap.
    #[error("PE {pe}: kernel {kernel} was stopped: {source}{}{}; call recover() on all PEs before the next launch", trapped(source), also(record))]
    Kernel {
        /// This PE.
        pe: u32,
        /// The kernel.
        kernel: String,
        /// The runtime's error.
        #[source]
        source: Box<AclError>,
        /// What the kernel had recorded before.
        record: Option<Box<DeviceError>>,
    },
    /// A kernel ran too long: it ended when it was told to, or the runtime stopped it.
    #[error("PE {pe}: kernel {kernel} did not end within {seconds} s and was {}{}; raise NPUSHMEM_KERNEL_TIMEOUT if it is only slow; call recover() on all PEs before the next launch", stopped(source), also(record))]
    KernelTimeout {
        /// This PE.
        pe: u32,
        /// The kernel.
        kernel: String,
        /// How long was waited.
        seconds: f64,
        /// The runtime's error, if it had to stop the kernel.
        source: Option<Box<AclError>>,
        /// Where it was when it stopped.
        record: Option<Box<DeviceError>>,
    },
    /// A kernel does not end.
    #[error("PE {pe}: kernel {kernel} did not end within {seconds:.1} s and does not obey the abort line{}: a loop without an end outside of shmem calls that wait? Its stream is lost, and this process cannot launch again; end it", dead(died))]
    KernelLost {
        /// This PE.
        pe: u32,
        /// The kernel.
        kernel: String,
        /// How long was waited.
        seconds: f64,
        /// The PE whose death made the host write the abort line, and how it died.
        died: Option<(u32, String)>,
    },
    /// A PE died while this one's kernel ran.
    #[error(
        "PE {dead} died ({reason}) while PE {pe} ran kernel {kernel}{}{}",
        source.as_ref().map(|source| format!(", which did not end and was stopped by the runtime: {source}")).unwrap_or_default(),
        also(record)
    )]
    PeerDied {
        /// This PE.
        pe: u32,
        /// The dead one.
        dead: u32,
        /// How it died.
        reason: String,
        /// This PE's kernel.
        kernel: String,
        /// The runtime's error, if it had to stop the kernel.
        source: Option<Box<AclError>>,
        /// What the kernel recorded.
        record: Option<Box<DeviceError>>,
    },
    /// The job's store went away while a kernel ran.
    #[error("PE {pe}: the job's store went away ({reason}) while kernel {kernel} ran: the launcher or PE 0, which serves it, has ended")]
    StoreGone {
        /// This PE.
        pe: u32,
        /// How.
        reason: String,
        /// This PE's kernel.
        kernel: String,
    },
    /// A launch that needs the device before `enable_device`.
    #[error("the device is not enabled: call enable_device(cores) on all PEs before {0}")]
    NotEnabled(&'static str),
    /// `enable_device` twice.
    #[error("the device is enabled already, with {cores} comm cores a PE")]
    AlreadyEnabled {
        /// With so many.
        cores: u32,
    },
    /// A launch after an error that broke the queue pairs.
    #[error("the device must be recovered first: {0}; call recover() on all PEs")]
    NeedsRecover(String),
    /// Two kernels that use one context at a time.
    #[error("the context belongs to kernel {running} on another stream; synchronize() that first, or launch on the same stream")]
    ContextBusy {
        /// Who has it.
        running: String,
    },
    /// A launch of no blocks.
    #[error("a launch of 0 blocks of kernel {0}: give at least one")]
    NoBlocks(String),
    /// A kernel object without code for this device.
    #[error("kernel object {name} has no code for {wanted}; it has {}. Kernels for hardware are built where ASCEND_HOME_PATH names a CANN toolkit", list(has))]
    NoTarget {
        /// The object.
        name: &'static str,
        /// What is needed.
        wanted: crate::Target,
        /// What there is.
        has: Vec<crate::Target>,
    },
    /// A name that C cannot carry.
    #[error("kernel name {0:?} has a NUL byte in it")]
    Name(String),
    /// A collective after `finalize`, or on a job that is over.
    #[error("this World has ended: {0}")]
    Ended(String),
}

impl Error {
    /// Whether a setting, or what a launcher says, is the reason: programs end with exit code 2 then.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Error::Config(_)
                | Error::Identity(_)
                | Error::Heap(HeapError::Share { .. })
                | Error::Runtime(RuntimeError::Settings(_))
        )
    }

    /// Adds what the library was doing to a vendor error; for `map_err`.
    pub(crate) fn acl(doing: &'static str) -> impl FnOnce(AclError) -> Error {
        move |source| Error::Acl { doing, source }
    }
}

fn also(record: &Option<Box<DeviceError>>) -> String {
    match record {
        None => String::new(),
        Some(record) => format!("; the kernel recorded: {record}"),
    }
}

/// The causes of a trap that the device library has.
fn trapped(source: &AclError) -> &'static str {
    use npushmem_ffi::acl::{
        ACL_ERROR_RT_AICORE_TRAP_EXCEPTION, ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION,
    };
    match source.code {
        ACL_ERROR_RT_AICORE_TRAP_EXCEPTION | ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION => {
            "; a shmem call before shmem_attach traps (attach first, on every core that communicates), and so does shmem_attach of what is no context of this version (is the first argument Args::ctx(), and was the kernel compiled against this npushmem's device/ headers?)"
        }
        _ => "",
    }
}

fn stopped(source: &Option<Box<AclError>>) -> String {
    match source {
        None => "told to stop".into(),
        Some(source) => format!("stopped by the runtime: {source}"),
    }
}

fn dead(died: &Option<(u32, String)>) -> String {
    match died {
        None => String::new(),
        Some((pe, reason)) => format!(", written because PE {pe} died ({reason})"),
    }
}

fn list(targets: &[crate::Target]) -> String {
    if targets.is_empty() {
        return "none".into();
    }
    targets
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
