//! What the vendor's ABI has no call for: what the kernels did, counted, and what the emulator noticed.
//!
//! The counters are a cost model that needs no hardware: doorbells, copies, flags and bytes do not depend on how fast this machine is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use npushmem_roce::nic::NicCounters;

use crate::abi::npusim_counters;

/// Diagnostics kept; older ones are dropped.
const KEPT: usize = 256;

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident ),* $(,)?) => {
        /// What blocks did, added up. The fields are those of `struct npusim_counters` (ascendc/npusim.h).
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct BlockCounters { $( $(#[$doc])* pub $name: u64, )* }

        impl BlockCounters {
            pub(crate) fn add(&mut self, block: &npusim_counters) {
                $( self.$name += block.$name; )*
            }

            fn merge(&mut self, other: &Self) {
                $( self.$name += other.$name; )*
            }
        }
    };
}

counters! {
    /// Send doorbells.
    sq_doorbells,
    /// Completion doorbells (consumer index, arming).
    cq_doorbells,
    /// Copies from global memory to the unified buffer.
    mte2_copies,
    /// Bytes of these.
    mte2_bytes,
    /// Copies from the unified buffer to global memory.
    mte3_copies,
    /// Bytes of these.
    mte3_bytes,
    /// Vector instructions.
    vector_ops,
    /// Flags set between pipes.
    flags_set,
    /// Flags waited for.
    flags_waited,
    /// Pipe barriers.
    pipe_barriers,
    /// Single cache lines cleaned and invalidated.
    dcci_lines,
    /// Whole-cache cleans.
    dcci_all,
    /// Uncached scalar loads of global memory.
    device_loads,
    /// Uncached scalar stores to global memory.
    device_stores,
    /// Scalar loads through the data cache.
    cached_loads,
    /// Scalar stores through the data cache.
    cached_stores,
    /// Atomic operations of the core.
    core_atomics,
}

/// The counters of one or more launches.
#[derive(Debug, Clone, Default)]
pub struct LaunchCounters {
    /// Name of the kernel; empty for totals.
    pub kernel: String,
    /// Launches added up.
    pub launches: u64,
    /// Blocks added up.
    pub blocks: u64,
    /// Sum over the blocks.
    pub sum: BlockCounters,
    /// Totals of this process's NICs at the time of the call.
    pub nic: NicCounters,
}

impl std::ops::Deref for LaunchCounters {
    type Target = BlockCounters;

    fn deref(&self) -> &BlockCounters {
        &self.sum
    }
}

struct State {
    last: LaunchCounters,
    total: LaunchCounters,
    kernels: BTreeMap<String, LaunchCounters>,
    diagnostics: VecDeque<String>,
    dropped: u64,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Where the totals of this process's NICs come from.
pub(crate) struct NicSource {
    /// The sum over the NICs.
    pub(crate) counters: fn() -> NicCounters,
    /// What the NICs noticed since the last call.
    pub(crate) diagnostics: fn() -> Vec<String>,
}

static NIC: OnceLock<NicSource> = OnceLock::new();

/// Names the source; HCCP calls it when it opens the first NIC.
pub(crate) fn set_nic_source(source: NicSource) {
    // A second call names the same functions.
    let _ = NIC.set(source);
}

fn with<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state: MutexGuard<'_, Option<State>> =
        STATE.lock().unwrap_or_else(PoisonError::into_inner);
    body(state.get_or_insert_with(|| State {
        last: LaunchCounters::default(),
        total: LaunchCounters::default(),
        kernels: BTreeMap::new(),
        diagnostics: VecDeque::new(),
        dropped: 0,
    }))
}

fn with_nic(mut counters: LaunchCounters) -> LaunchCounters {
    if let Some(source) = NIC.get() {
        counters.nic = (source.counters)();
    }
    counters
}

/// The latest finished kernel: the sum over its blocks.
pub fn last_launch_counters() -> LaunchCounters {
    with_nic(with(|state| state.last.clone()))
}

/// Everything since the start or the last [`reset_counters`].
pub fn total_counters() -> LaunchCounters {
    with_nic(with(|state| state.total.clone()))
}

/// The same for each kernel name, in order of the names.
pub fn kernel_counters() -> Vec<LaunchCounters> {
    with(|state| state.kernels.values().cloned().collect::<Vec<_>>())
        .into_iter()
        .map(with_nic)
        .collect()
}

/// Sets the launch counters to zero. Those of the NICs go on: take differences.
pub fn reset_counters() {
    with(|state| {
        state.last = LaunchCounters::default();
        state.total = LaunchCounters::default();
        state.kernels.clear();
    });
}

/// What the emulator noticed and no call returned: overruns found at free, stalls of the NIC, lost kernels. Each is told once.
pub fn diagnostics() -> Vec<String> {
    let mut lines = with(|state| {
        let mut lines: Vec<String> = state.diagnostics.drain(..).collect();
        if state.dropped > 0 {
            lines.push(format!(
                "{} earlier diagnostics were dropped",
                std::mem::take(&mut state.dropped)
            ));
        }
        lines
    });
    if let Some(source) = NIC.get() {
        lines.extend((source.diagnostics)());
    }
    lines
}

/// Keeps a line for [`diagnostics`].
pub(crate) fn diagnose(line: String) {
    tracing::debug!("{line}");
    with(|state| {
        if state.diagnostics.len() == KEPT {
            state.diagnostics.pop_front();
            state.dropped += 1;
        }
        state.diagnostics.push_back(line);
    });
}

/// Takes the counters of a launch that has ended.
pub(crate) fn finished(kernel: &str, blocks: u64, sum: &BlockCounters) {
    with(|state| {
        state.last.kernel.clear();
        state.last.kernel.push_str(kernel);
        (state.last.launches, state.last.blocks, state.last.sum) = (1, blocks, *sum);
        let by_name = match state.kernels.get_mut(kernel) {
            Some(counters) => counters,
            None => state
                .kernels
                .entry(kernel.to_owned())
                .or_insert_with(|| LaunchCounters {
                    kernel: kernel.to_owned(),
                    ..Default::default()
                }),
        };
        for counters in [by_name, &mut state.total] {
            counters.launches += 1;
            counters.blocks += blocks;
            counters.sum.merge(sum);
        }
    });
}

/// Checks every setting of the emulated NPU and of its NIC (`NPUSIM_*`) without starting anything; returns the vector cores of a device.
///
/// # Errors
/// The variable, its value and what is accepted.
pub fn check_settings() -> Result<u32, String> {
    let config = crate::config::get().map_err(|fail| fail.text)?;
    npushmem_roce::nic::NicConfig::from_env().map_err(|error| error.to_string())?;
    crate::hccp::check_settings().map_err(|error| error.to_string())?;
    Ok(config.cores)
}
