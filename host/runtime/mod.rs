//! The device runtime: the vendor's ACL, or the emulated NPU behind the same functions.
//!
//! Three layers: `npushmem_ffi` (raw), result.rs (one thin function a vendor call, returning `Result`), owners.rs (owning types whose
//! `Drop` never panics and is never collective). This file picks the function table; it is the only place of the library that names the
//! emulated NPU. What it is not: it knows nothing of PEs or heaps. Called by heap/, transport/ and [`crate::World`].

pub mod owners;
pub mod result;

use std::sync::{Arc, Mutex, PoisonError};

use npushmem_ffi::acl::{Acl, LIBRARIES};
use npushmem_ffi::hccp::{self, Hccp};
use npushmem_ffi::LoadError;

pub use npusim::hooks::{BlockCounters, LaunchCounters};
pub use npusim::time as time_model;
pub use result::{AclError, Api, LaunchMode};

use crate::config;

/// Which runtime is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The vendor's.
    Acl,
    /// The emulated NPU.
    Sim,
}

/// No runtime can be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The vendor's library does not load.
    #[error("NPUSHMEM_RUNTIME=acl, but the vendor's runtime does not load: {0}; source the toolkit's set_env.sh, or set NPUSHMEM_RUNTIME=sim for the emulated NPU")]
    Load(#[source] LoadError),
    /// HCCP does not load.
    #[error("the NIC's library does not load, so kernels cannot use it: {0}; source the toolkit's set_env.sh")]
    LoadHccp(#[source] LoadError),
    /// The runtime refuses to start.
    #[error("the runtime does not start: {0}")]
    Start(#[source] AclError),
    /// The emulated NPU's settings.
    #[error("{0}")]
    Settings(String),
    /// No device.
    #[error("the runtime counts no device; is the driver loaded and is this user in its group? NPUSHMEM_RUNTIME=sim needs none")]
    NoDevice,
    /// The device does not exist.
    #[error("device {device} does not exist: the runtime counts {count} (0 to {}); check NPUSHMEM_DEVICE and the number of PEs a machine", count.saturating_sub(1))]
    Device {
        /// Asked.
        device: u32,
        /// Devices there are.
        count: u32,
    },
    /// A SoC that is not known.
    #[error("SoC {0:?} is not supported: A2 (Ascend910B...), A3 (Ascend910_93...) and 950 (Ascend950...) are")]
    Soc(String),
}

/// The runtime of this process: opened once and kept, because the vendor allows one initialisation a process.
static RUNTIME: Mutex<Option<Arc<Api>>> = Mutex::new(None);

/// Opens the runtime that `choice` asks for. A second call gives the same one.
///
/// # Errors
/// The vendor's library does not load or does not start.
pub fn open(choice: config::Runtime) -> Result<Arc<Api>, RuntimeError> {
    let mut current = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(api) = &*current {
        let fits = match choice {
            config::Runtime::Auto => true,
            config::Runtime::Acl => api.kind() == Kind::Acl,
            config::Runtime::Sim => api.kind() == Kind::Sim,
        };
        if fits {
            return Ok(api.clone());
        }
    }
    let api = match choice {
        config::Runtime::Sim => start(Kind::Sim, npusim::acl())?,
        config::Runtime::Acl => {
            let api = start(Kind::Acl, Acl::load(LIBRARIES).map_err(RuntimeError::Load)?)?;
            if api.device_count().map_err(RuntimeError::Start)? == 0 {
                return Err(RuntimeError::NoDevice);
            }
            api
        }
        config::Runtime::Auto => match vendor() {
            Ok(api) => api,
            Err(reason) => {
                tracing::info!("no hardware: {reason}; using the emulated NPU");
                start(Kind::Sim, npusim::acl())?
            }
        },
    };
    let api = Arc::new(api);
    *current = Some(api.clone());
    Ok(api)
}

/// The vendor's runtime, when it loads and counts a device.
fn vendor() -> Result<Api, String> {
    let table = Acl::load(LIBRARIES).map_err(|error| error.to_string())?;
    let api = start(Kind::Acl, table).map_err(|error| error.to_string())?;
    match api.device_count() {
        Ok(0) => Err("the vendor's runtime counts no device".into()),
        Ok(_) => Ok(api),
        Err(error) => Err(error.to_string()),
    }
}

fn start(kind: Kind, table: Acl) -> Result<Api, RuntimeError> {
    let api = Api::new(kind, table);
    match api.init() {
        Ok(()) => Ok(api),
        // Somebody else in this process (PyTorch, say) has done it.
        Err(error) if error.code == npushmem_ffi::acl::ACL_ERROR_REPEAT_INITIALIZE => Ok(api),
        Err(error) => Err(RuntimeError::Start(error)),
    }
}

/// HCCP of the same runtime.
///
/// # Errors
/// The vendor's library does not load.
pub fn open_hccp(kind: Kind) -> Result<Hccp, RuntimeError> {
    match kind {
        Kind::Sim => Ok(npusim::hccp()),
        Kind::Acl => Hccp::load(hccp::LIBRARIES).map_err(RuntimeError::LoadHccp),
    }
}

/// What the emulated NPU counted; `None` on hardware.
pub fn sim_counters(kind: Kind) -> Option<LaunchCounters> {
    (kind == Kind::Sim).then(npusim::hooks::last_launch_counters)
}

/// What the emulated NPU counted since its start or the last reset; `None` on hardware.
pub fn sim_totals(kind: Kind) -> Option<LaunchCounters> {
    (kind == Kind::Sim).then(npusim::hooks::total_counters)
}

/// Sets the emulated NPU's counters to zero.
pub fn reset_sim_counters(kind: Kind) {
    if kind == Kind::Sim {
        npusim::hooks::reset_counters();
    }
}

/// What the emulated NPU noticed and nobody asked for: stalled rings, overflows. Empty on hardware.
pub fn sim_diagnostics(kind: Kind) -> Vec<String> {
    match kind {
        Kind::Sim => npusim::hooks::diagnostics(),
        Kind::Acl => Vec::new(),
    }
}

/// Whether host code may touch device memory: the emulated NPU's lies in this process.
pub fn host_accessible(kind: Kind) -> bool {
    kind == Kind::Sim
}

/// A runtime, in words for `npushmem info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeDescription {
    /// The vendor's, or the emulated NPU.
    pub kind: Kind,
    /// ACL's version: major, minor, patch.
    pub version: (i32, i32, i32),
    /// The SoC's name.
    pub soc: String,
    /// Devices that it counts.
    pub devices: u32,
    /// The libraries it comes from; empty for the emulated NPU.
    pub libraries: Vec<String>,
}

/// Opens the runtime that `choice` asks for and describes it; takes no device.
///
/// # Errors
/// No such runtime, or it does not answer.
pub fn describe_runtime(choice: config::Runtime) -> Result<RuntimeDescription, RuntimeError> {
    let api = open(choice)?;
    Ok(RuntimeDescription {
        kind: api.kind(),
        version: api.version().map_err(RuntimeError::Start)?,
        soc: api.soc_name(),
        devices: api.device_count().map_err(RuntimeError::Start)?,
        libraries: api.libraries().to_vec(),
    })
}

/// Checks, for a launcher, what every PE of a job would refuse alike: that the vendor's library is there when it is asked for, else the
/// emulated NPU's settings. Initialises nothing. Returns the emulated NPU's vector cores; `None` where the vendor's library would be used.
///
/// # Errors
/// The library does not load; a setting that is not accepted.
pub fn check_runtime(choice: config::Runtime) -> Result<Option<u32>, RuntimeError> {
    if choice != config::Runtime::Sim {
        match Acl::load(LIBRARIES) {
            Ok(vendor) => {
                // Vendor libraries do not bear being unloaded.
                std::mem::forget(vendor);
                return Ok(None);
            }
            Err(error) if choice == config::Runtime::Acl => return Err(RuntimeError::Load(error)),
            Err(_) => {}
        }
    }
    npusim::hooks::check_settings()
        .map(Some)
        .map_err(RuntimeError::Settings)
}

/// A family of SoCs that behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Ascend 910B (A2).
    A2,
    /// Ascend 910C (A3): two dies a package, super pods.
    A3,
    /// Ascend 950.
    A950,
}

impl Series {
    /// The series of a SoC name, as `aclrtGetSocName` gives it.
    ///
    /// # Errors
    /// The name is of no series that npushmem knows.
    pub fn of(soc: &str) -> Result<Series, RuntimeError> {
        if soc.starts_with("Ascend910B") {
            Ok(Series::A2)
        } else if soc.starts_with("Ascend910_93") {
            Ok(Series::A3)
        } else if soc.starts_with("Ascend950") {
            Ok(Series::A950)
        } else {
            Err(RuntimeError::Soc(soc.to_string()))
        }
    }

    /// `__NPU_ARCH__` of its kernels.
    pub fn npu_arch(self) -> u32 {
        match self {
            Series::A2 | Series::A3 => 2201,
            Series::A950 => 3510,
        }
    }

    /// Ticks a second of the cores' system counter (AscendC, GetSystemCycle).
    pub fn ticks_per_second(self) -> u64 {
        match self {
            Series::A2 | Series::A3 => 50_000_000,
            Series::A950 => 1_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soc_names_have_a_series() {
        assert_eq!(Series::of("Ascend910B1").ok(), Some(Series::A2));
        assert_eq!(Series::of("Ascend910_9391").ok(), Some(Series::A3));
        assert_eq!(Series::of("Ascend950PR_9599").ok(), Some(Series::A950));
        let text = Series::of("Ascend310P3")
            .expect_err("unsupported")
            .to_string();
        assert!(text.contains("Ascend310P3"), "{text}");
    }
}
