//! Configuration: one table of settings that makes the parser, the listing of `npushmem info` and the page docs/configuration.md.
//!
//! What it is not: it does not find out who this process is (bootstrap/identity.rs does, from these settings or from another launcher's
//! variables), and the emulated NPU's own `NPUSIM_*` variables are read by the emulator. Called by [`crate::World::init`] and the programs.
//!
//! Every value is checked before anything is opened; an error names the variable, the value and what is accepted.

mod value;

use std::time::Duration;

pub use value::{parse_size, size_text, split_address, HeapSize, Kind, Value};
use value::{FromValue, GIB, KIB, MIB, TIB};

/// A setting whose value is one word of a list.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// The accepted words, in the order of the documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word that stands for this choice.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl FromValue for $name {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $(Value::Text(word) if word == $word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

choice! {
    /// Which function table stands behind the library.
    Runtime {
        /// The vendor's runtime when its library loads and counts a device, else the emulated NPU.
        Auto = "auto",
        /// The vendor's runtime; an error when it does not load.
        Acl = "acl",
        /// The emulated NPU inside this process.
        Sim = "sim",
    }
}

choice! {
    /// How kernels reach peers when they do not ask for an engine themselves.
    Engine {
        /// Mapped where a mapping exists, else work requests to the NIC.
        Auto = "auto",
        /// Copies through mapped peer memory only.
        Mapped = "mapped",
        /// Work requests to the NIC only.
        Roce = "roce",
    }
}

choice! {
    /// Whether peers' heaps are mapped into this process.
    Mapped {
        /// Map every peer that can be mapped.
        Auto = "auto",
        /// As `auto`, but a peer of the same machine that cannot be mapped is an error.
        On = "on",
        /// Map none; the NIC reaches everybody.
        Off = "off",
    }
}

choice! {
    /// Whether huge pages stand behind a symmetric heap in host memory.
    HugePages {
        /// Where the system lets programs ask for them.
        Auto = "auto",
        /// As `auto`, and a line on standard error where it does not.
        On = "on",
        /// Never.
        Off = "off",
    }
}

choice! {
    /// Who executes every atomic of the job.
    AtomicDomain {
        /// The core on the 950 series where every peer is mapped, else the NIC.
        Auto = "auto",
        /// The NIC of the target PE, also for oneself.
        Nic = "nic",
        /// The cores' own atomic instructions: 950 series only, every peer mapped.
        Core = "core",
    }
}

choice! {
    /// Who serves the job's TCP store.
    StoreServer {
        /// The launcher when `NPUSHMEM_PE` comes from it, else PE 0.
        Auto = "auto",
        /// Somebody else, already listening.
        Launcher = "launcher",
        /// PE 0 listens at `NPUSHMEM_STORE`.
        Pe0 = "pe0",
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// The default as one would write it; empty: unset.
    pub default: &'static str,
    /// Heading under which the documentation lists it.
    pub category: &'static str,
    /// Unit of the value; empty: none.
    pub unit: &'static str,
    /// One or two sentences.
    pub help: &'static str,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The value is outside what the setting accepts.
    #[error("{name}={value:?} is not accepted: {reason}; give {accepted}")]
    Value {
        /// The environment variable.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// Why that is refused.
        reason: String,
        /// What is accepted.
        accepted: String,
    },
    /// The value is not text.
    #[error("{name} is not valid UTF-8; give {accepted}")]
    Encoding {
        /// The environment variable.
        name: &'static str,
        /// What is accepted.
        accepted: String,
    },
}

macro_rules! settings {
    ($($field:ident: $ty:ty = $name:literal, $kind:expr, $default:literal, $category:literal, $unit:literal, $help:literal;)+) => {
        /// All settings of a job, checked. Made by [`Config::from_env`]; the fields may be changed before
        /// [`crate::World::init_with`].
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $(#[doc = $help] pub $field: $ty,)+
            /// No setting: whether `NPUSHMEM_TIMEOUT` was set, see [`Config::wait_limit`].
            pub timeout_set: bool,
            /// No setting: whether the symmetric heap is host memory, for programs that dereference symmetric addresses and never enable the
            /// device.
            pub host_heap: bool,
        }

        /// The table: one row an environment variable.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            name: $name, kind: $kind, default: $default, category: $category, unit: $unit, help: $help,
        },)+];

        impl Config {
            /// Reads every setting through `lookup` (a variable's value, or `None` when it is not set). An empty value counts as not set.
            ///
            /// # Errors
            /// The first setting whose value is not accepted.
            pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
                let mut rows = SETTINGS.iter();
                let timeout_set = SETTINGS
                    .iter()
                    .any(|row| row.name == "NPUSHMEM_TIMEOUT" && row.given(&lookup).is_some());
                Ok(Config { $($field: {
                    // The rows and the fields come from one list, so a row is always there.
                    let row = rows.next().unwrap_or(&SETTINGS[0]);
                    let value = row.read(&lookup)?;
                    <$ty as FromValue>::from_value(&value).ok_or_else(|| row.refuse(format!("{value:?}"), "out of range".into()))?
                },)+ timeout_set, host_heap: false })
            }
        }
    };
}

/// Most PEs of a job: indices and table sizes stay far from overflow.
pub const MAX_PES: u64 = 1 << 16;
/// Smallest symmetric heap of a PE, bytes.
pub const MIN_HEAP: u64 = 64 * KIB;
/// Largest symmetric heap of a PE, bytes.
pub const MAX_HEAP: u64 = 64 * TIB;
/// Most comm cores a PE (no SoC has more vector cores).
pub const MAX_CORES: u64 = 256;

settings! {
    pe: Option<u32> = "NPUSHMEM_PE", Kind::Integer { min: 0, max: MAX_PES - 1 }, "", "Job", "",
        "Number of this PE. Set by `npushmem run`; without it torchrun's, Slurm's, Open MPI's or PMI's variables are read, and with none of them the job has one PE.";
    n_pes: Option<u32> = "NPUSHMEM_NPES", Kind::Integer { min: 1, max: MAX_PES }, "", "Job", "PEs",
        "Number of PEs of the job. Needed with `NPUSHMEM_PE`.";
    local_rank: Option<u32> = "NPUSHMEM_LOCAL_RANK", Kind::Integer { min: 0, max: MAX_PES - 1 }, "", "Job", "",
        "Number of this PE among those of its machine; it chooses the device. Unset: the launcher's own variable, else the PE's number.";
    store: Option<String> = "NPUSHMEM_STORE", Kind::Address, "", "Job", "",
        "Where the job's TCP store listens. Set by `npushmem run`; under other launchers unset means an address derived from theirs.";
    store_server: StoreServer = "NPUSHMEM_STORE_SERVER", Kind::Choice(StoreServer::WORDS), "auto", "Job", "",
        "Who serves the store: the launcher, or PE 0.";
    job: String = "NPUSHMEM_JOB", Kind::Text { max: 256 }, "", "Job", "",
        "The job's token. Processes that come with another token are refused, so that two jobs never meet. Unset: a name derived from the launcher's job number, which keeps accidents away but is no secret.";
    join_timeout: Duration = "NPUSHMEM_JOIN_TIMEOUT", Kind::Seconds { min: 0.1, max: 86400.0 }, "60", "Job", "seconds",
        "How long init waits for all PEs. The error lists who is missing.";
    timeout: Duration = "NPUSHMEM_TIMEOUT", Kind::Seconds { min: 0.05, max: 86400.0 }, "30", "Job", "seconds",
        "Bound of every other wait: barriers, connections, and each wait inside a kernel. In C programs, where PEs may rightly work for long before they meet, it bounds barriers, collectives, locks and waits for variables only when it is set; the death of a PE ends them in any case.";
    kernel_timeout: Option<Duration> = "NPUSHMEM_KERNEL_TIMEOUT", Kind::Seconds { min: 0.05, max: 604800.0 }, "", "Job", "seconds",
        "How long synchronize waits for a kernel before it tells the kernel to stop. Unset: twice `NPUSHMEM_TIMEOUT`, so that a wait inside the kernel times out first and says what it waited for.";

    runtime: Runtime = "NPUSHMEM_RUNTIME", Kind::Choice(Runtime::WORDS), "auto", "Runtime", "",
        "The vendor's runtime (`acl`), the emulated NPU (`sim`), or the first when its library loads and counts a device (`auto`).";
    device: Option<u32> = "NPUSHMEM_DEVICE", Kind::Integer { min: 0, max: 4095 }, "", "Runtime", "",
        "Device that this PE uses. Unset: local rank modulo the number of devices.";

    symmetric_size: HeapSize = "SHMEM_SYMMETRIC_SIZE", Kind::HeapSize { min: MIN_HEAP, max: MAX_HEAP }, "256M", "Heap", "bytes",
        "Size of the symmetric heap of each PE; the same on every PE. A percentage is one of the machine's memory (of a container's limit, if that is less), shared out evenly over the job's PEs on it; with the vendor's runtime, of the device's memory. Host memory is taken page by page when it is first touched. What the library needs for itself comes on top.";
    huge_pages: HugePages = "NPUSHMEM_HUGE_PAGES", Kind::Choice(HugePages::WORDS), "auto", "Heap", "",
        "Huge pages behind a symmetric heap in host memory: `auto` asks for transparent ones where /sys/kernel/mm/transparent_hugepage/shmem_enabled lets programs ask, `on` says so in one line where that is not possible, `off` never asks.";
    mapped: Mapped = "NPUSHMEM_MAPPED", Kind::Choice(Mapped::WORDS), "auto", "Heap", "",
        "Whether peers' heaps are mapped into this process, for the `mapped` engine and for the host's put and get.";
    check_symmetry: bool = "NPUSHMEM_CHECK", Kind::Switch, "on", "Heap", "",
        "Whether host barriers compare the PEs' sequences of heap calls and name the first PE that differs.";

    debug: bool = "SHMEM_DEBUG", Kind::Flag, "off", "OpenSHMEM", "",
        "Whether the C API checks every call's arguments, and says what happens at init: a wrong one ends the job with a line that names routine, argument, value and range.";
    print_version: bool = "SHMEM_VERSION", Kind::Flag, "off", "OpenSHMEM", "",
        "Whether PE 0 of a C program prints the library's name and version at init.";
    print_info: bool = "SHMEM_INFO", Kind::Flag, "off", "OpenSHMEM", "",
        "Whether PE 0 of a C program prints all settings with their values at init.";

    cores: u32 = "NPUSHMEM_CORES", Kind::Integer { min: 1, max: MAX_CORES }, "4", "Device", "cores",
        "Comm cores a PE that programs enable when they do not choose themselves. Each has its own queue pair to every PE.";
    engine: Engine = "NPUSHMEM_ENGINE", Kind::Choice(Engine::WORDS), "auto", "Device", "",
        "How kernels reach peers by default.";
    atomic_domain: AtomicDomain = "NPUSHMEM_ATOMIC_DOMAIN", Kind::Choice(AtomicDomain::WORDS), "auto", "Device", "",
        "Who executes every atomic of the job. `core` exists on the 950 series, with every peer mapped.";
    atomic_probe: bool = "NPUSHMEM_ATOMIC_PROBE", Kind::Switch, "on", "Device", "",
        "Whether bring-up tries one fetch-add on its own NIC. Off: the NIC's answer to a registration with atomic access decides.";
    quiet_reads: bool = "NPUSHMEM_QUIET_READS", Kind::Switch, "off", "Device", "",
        "Whether quiet adds a flushing READ to each queue pair with open writes, for NICs whose completion does not mean visibility.";

    qp_depth: u32 = "NPUSHMEM_QP_DEPTH", Kind::PowerOfTwo { min: 64, max: 32768 }, "512", "RoCE", "requests",
        "Entries of each send ring and completion ring.";
    qp_budget: u64 = "NPUSHMEM_QP_BUDGET", Kind::Size { min: MIB, max: TIB }, "1G", "RoCE", "bytes",
        "Most device memory that the queue pairs of one PE may take; more is refused with the numbers.";
    bounce: u32 = "NPUSHMEM_BOUNCE", Kind::PowerOfTwo { min: 1024, max: 1 << 24 }, "32768", "RoCE", "bytes",
        "Bounce ring of each queue pair, through which payloads from UB travel.";
    max_message: u64 = "NPUSHMEM_MAX_MESSAGE", Kind::Size { min: 64, max: 2 * GIB }, "1G", "RoCE", "bytes",
        "Longest transfer of one work request; longer ones are split.";
    inline: bool = "NPUSHMEM_INLINE", Kind::Switch, "on", "RoCE", "",
        "Whether queue pairs are made for inline payloads. Where the NIC refuses such queue pairs they are made without.";
    port: u16 = "NPUSHMEM_PORT", Kind::Integer { min: 1, max: 65535 }, "10002", "RoCE", "",
        "First port tried for the connections over which the NIC driver sets queue pairs up. A busy one is skipped.";
    traffic_class: u32 = "NPUSHMEM_TRAFFIC_CLASS", Kind::Integer { min: 0, max: 255 }, "132", "RoCE", "",
        "Traffic class of the queue pairs; a multiple of 4.";
    service_level: u32 = "NPUSHMEM_SERVICE_LEVEL", Kind::Integer { min: 0, max: 7 }, "4", "RoCE", "",
        "Service level of the queue pairs and their doorbells.";
}

impl Config {
    /// Reads every setting from the process's environment.
    ///
    /// # Errors
    /// The first setting whose value is not accepted: the message names the variable, the value and the accepted range.
    pub fn from_env() -> Result<Config, ConfigError> {
        for row in SETTINGS {
            if let Some(value) = std::env::var_os(row.name) {
                if value.to_str().is_none() {
                    return Err(ConfigError::Encoding {
                        name: row.name,
                        accepted: row.kind.accepted(),
                    });
                }
            }
        }
        for (name, _) in std::env::vars_os() {
            let Some(name) = name.to_str() else { continue };
            if name.starts_with("NPUSHMEM_")
                && !SETTINGS.iter().any(|row| row.name == name)
                && !FOREIGN.contains(&name)
            {
                tracing::warn!(
                    "{name} is set, but no such setting exists; `npushmem info` lists them"
                );
            }
        }
        Config::from_lookup(|name| std::env::var(name).ok())
    }

    /// The defaults, as with an empty environment.
    pub fn defaults() -> Config {
        match Config::from_lookup(|_| None) {
            Ok(config) => config,
            // A test checks that every default of the table parses.
            Err(error) => unreachable!("a default of the settings table does not parse: {error}"),
        }
    }

    /// How long synchronize waits for a kernel before it writes the abort line.
    pub fn kernel_wait(&self) -> Duration {
        self.kernel_timeout.unwrap_or(self.timeout * 2)
    }

    /// How long a host program's own waits for others may last; `None`: as long as all PEs live.
    pub fn wait_limit(&self) -> Option<Duration> {
        self.timeout_set.then_some(self.timeout)
    }

    /// When the runtime itself ends a kernel, seconds: a little after the abort line was written, which lets the kernel say where it was.
    pub(crate) fn kernel_limit(&self) -> u16 {
        (self.kernel_wait().as_secs_f64().ceil() + 1.0).min(u16::MAX.into()) as u16
    }

    /// How long PEs wait for one another where the last of them may still be waiting for its kernel.
    pub(crate) fn patience(&self) -> Duration {
        let limit = Duration::from_secs(self.kernel_limit().into());
        self.kernel_wait().max(limit) + self.timeout
    }
}

/// Variables of our name that other parts read: the build of kernels, and the test harness.
const FOREIGN: &[&str] = &[
    "NPUSHMEM_CLANG",
    "NPUSHMEM_LOG",
    "NPUSHMEM_TEST_SCALE",
    "NPUSHMEM_NPU_ARCHS",
    "NPUSHMEM_SIM_MARCH",
    "NPUSHMEM_BLESS",
];

/// One line of `npushmem info`: a setting with the value in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The row of the table.
    pub name: &'static str,
    /// The value in force as text; empty: unset.
    pub value: String,
    /// The environment variable that it comes from; `None`: it is the default.
    pub source: Option<String>,
    /// Heading.
    pub category: &'static str,
    /// Unit, may be empty.
    pub unit: &'static str,
    /// What is accepted.
    pub accepted: String,
    /// What it does.
    pub help: &'static str,
}

/// The settings with the values in force, for `npushmem info`. Values are shown as they were given, also those that [`Config`] would refuse.
/// The job token is not shown.
pub fn listing(lookup: impl Fn(&str) -> Option<String>) -> Vec<Entry> {
    SETTINGS
        .iter()
        .map(|row| {
            let given = row.given(&lookup);
            let (source, value) = match given {
                Some((source, _)) if row.name == "NPUSHMEM_JOB" => (Some(source), "(set)".into()),
                Some((source, value)) => (Some(source), value),
                None => (None, row.default.to_string()),
            };
            Entry {
                name: row.name,
                value,
                source,
                category: row.category,
                unit: row.unit,
                accepted: row.kind.accepted(),
                help: row.help,
            }
        })
        .collect()
}

impl Setting {
    /// The variable that is set, and its value: this setting's own; for the standard's settings else that of the deprecated name (`SMA_...`).
    fn given(&self, lookup: &impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
        let old = self.name.strip_prefix("SHMEM_");
        let names = [Some(self.name.to_string()), old.map(|n| format!("SMA_{n}"))];
        names.into_iter().flatten().find_map(|name| {
            let value = lookup(&name).filter(|text| !text.trim().is_empty())?;
            Some((name, value))
        })
    }

    fn read(&self, lookup: &impl Fn(&str) -> Option<String>) -> Result<Value, ConfigError> {
        let given = self.given(lookup);
        let text = given
            .as_ref()
            .map_or(self.default, |(_, value)| value)
            .trim();
        if text.is_empty() {
            return Ok(match self.kind {
                Kind::Text { .. } => Value::Text(String::new()),
                _ => Value::Unset,
            });
        }
        self.kind
            .parse(text)
            .map_err(|reason| self.refuse(text.to_string(), reason))
    }

    fn refuse(&self, value: String, reason: String) -> ConfigError {
        ConfigError::Value {
            name: self.name,
            value,
            reason,
            accepted: self.kind.accepted(),
        }
    }
}

/// The page docs/configuration.md, made from the table.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Settings are environment variables. This page is made from the table in `host/config/mod.rs`; a test keeps the two equal, and\n\
         `npushmem info` lists the values in force. A value that is not accepted ends init with a message that names the variable, the\n\
         value and what is accepted. An empty value counts as not set. The emulated NPU has variables of its own (`NPUSIM_*`).\n",
    );
    let mut categories: Vec<&str> = Vec::new();
    for row in SETTINGS {
        if !categories.contains(&row.category) {
            categories.push(row.category);
        }
    }
    for category in categories {
        page.push_str(&format!("\n## {category}\n\n| variable | default | accepted | meaning |\n| --- | --- | --- | --- |\n"));
        for row in SETTINGS.iter().filter(|row| row.category == category) {
            let default = if row.default.is_empty() {
                "unset".to_string()
            } else {
                format!("`{}`", row.default)
            };
            let unit = if row.unit.is_empty()
                || matches!(row.kind, Kind::Seconds { .. } | Kind::Size { .. })
            {
                String::new()
            } else {
                format!(" ({})", row.unit)
            };
            page.push_str(&format!(
                "| `{}` | {default} | {}{unit} | {} |\n",
                row.name,
                row.kind.accepted(),
                row.help
            ));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(name: &str, value: &str) -> Result<Config, ConfigError> {
        Config::from_lookup(|asked| (asked == name).then(|| value.to_string()))
    }

    #[test]
    fn every_default_of_the_table_is_accepted() {
        let config = Config::defaults();
        assert_eq!(config.symmetric_size, HeapSize::Bytes(256 << 20));
        assert_eq!(config.timeout, Duration::from_secs(30));
        assert_eq!(config.qp_depth, 512);
        assert_eq!(config.pe, None);
        assert_eq!(config.runtime, Runtime::Auto);
        assert_eq!(config.kernel_wait(), Duration::from_secs(60));
    }

    #[test]
    fn a_refused_value_names_the_variable_the_value_and_the_range() {
        for (name, value, range) in [
            ("NPUSHMEM_PORT", "65536", "1 to 65535"),
            ("NPUSHMEM_PORT", "0", "1 to 65535"),
            ("NPUSHMEM_PORT", "-1", "1 to 65535"),
            ("NPUSHMEM_STORE", "localhost:65536", "1 to 65535"),
            ("NPUSHMEM_STORE", "localhost", "host:port"),
            ("NPUSHMEM_STORE", "::1:80", "host:port"),
            ("NPUSHMEM_NPES", "0", "1 to 65536"),
            ("NPUSHMEM_NPES", "99999999999999999999999", "1 to 65536"),
            ("NPUSHMEM_TIMEOUT", "0", "0.05 to 86400"),
            ("NPUSHMEM_TIMEOUT", "NaN", "0.05 to 86400"),
            ("NPUSHMEM_TIMEOUT", "soon", "0.05 to 86400"),
            ("NPUSHMEM_QP_DEPTH", "500", "power of two from 64 to 32768"),
            ("NPUSHMEM_QP_DEPTH", "32", "power of two from 64 to 32768"),
            ("NPUSHMEM_RUNTIME", "cuda", "auto, acl, sim"),
            ("SHMEM_SYMMETRIC_SIZE", "1X", "up to 64 TiB"),
            ("SHMEM_SYMMETRIC_SIZE", "1.2.3G", "such as 512M or 1.5G"),
            ("SHMEM_SYMMETRIC_SIZE", "-1G", "such as 512M or 1.5G"),
            ("SHMEM_SYMMETRIC_SIZE", "G", "such as 512M or 1.5G"),
            ("NPUSHMEM_HUGE_PAGES", "2M", "one of auto, on, off"),
            ("SHMEM_SYMMETRIC_SIZE", "99999T", "up to 64 TiB"),
            (
                "SHMEM_SYMMETRIC_SIZE",
                "99999999999999999999T",
                "up to 64 TiB",
            ),
            ("NPUSHMEM_CHECK", "perhaps", "on or off"),
        ] {
            let text = with(name, value).expect_err(value).to_string();
            assert!(
                text.contains(name) && text.contains(value) && text.contains(range),
                "{text}"
            );
        }
    }

    #[test]
    fn sizes_take_the_usual_suffixes() {
        for (text, bytes) in [
            ("65536", 65536),
            ("64K", 65536),
            ("64kib", 65536),
            ("1.5M", 3 << 19),
            ("1.5G", 3 << 29),
            ("0.5g", 1 << 29),
            (".25g", 1 << 28),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("512 MiB", 512 << 20),
            (" 512mb ", 512 << 20),
            ("20mm", 20 << 20),
            (".5m", 1 << 19),
            ("3.1M", 3250586),
            ("70000.5", 70001),
            ("0", 65536),
            ("1.5", 65536),
            ("63K", 65536),
            ("2 G", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(
                with("SHMEM_SYMMETRIC_SIZE", text).map(|c| c.symmetric_size),
                Ok(HeapSize::Bytes(bytes)),
                "{text}"
            );
        }
        assert_eq!(size_text(1 << 29), "512 MiB");
        assert_eq!(size_text((1 << 30) + (1 << 29)), "1.5 GiB");
        assert_eq!(size_text(100), "100 B");
    }

    #[test]
    fn a_percentage_of_memory_is_shared_out_over_the_pes() {
        let gib = 1u64 << 30;
        for (text, memory, sharers, bytes) in [
            ("25%", 24 * gib, 1, 6 * gib),
            ("25%", 24 * gib, 4, 3 * gib / 2),
            ("100%", 24 * gib, 1, 24 * gib),
            ("100.0 %", 24 * gib, 3, 8 * gib),
            ("12.5%", 8 * gib, 2, gib / 2),
            ("0.5%", gib, 1, (gib / 200) & !0xffff),
            ("0.0001%", gib, 4, 0),
        ] {
            let size = with("SHMEM_SYMMETRIC_SIZE", text).map(|c| c.symmetric_size);
            let size = size.unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(size.bytes(memory, sharers), bytes, "{text}");
        }
        for text in [
            "0%", "0.0%", "100.1%", "200%", "%", "-5%", "1e1%", "5%%", "NaN%", "1M%",
        ] {
            let error = with("SHMEM_SYMMETRIC_SIZE", text)
                .expect_err(text)
                .to_string();
            assert!(
                error.contains(text)
                    && error.contains("such as 512M or 1.5G")
                    && error.contains("such as 25%"),
                "{error}"
            );
        }
    }

    #[test]
    fn an_empty_value_counts_as_not_set() {
        assert_eq!(with("NPUSHMEM_PE", " "), Ok(Config::defaults()));
        assert_eq!(with("NPUSHMEM_TIMEOUT", ""), Ok(Config::defaults()));
        assert_eq!(Config::defaults().wait_limit(), None);
        assert_eq!(
            with("NPUSHMEM_TIMEOUT", "30").map(|c| c.wait_limit()),
            Ok(Some(Duration::from_secs(30)))
        );
    }

    #[test]
    fn the_listing_shows_where_a_value_comes_from_and_hides_the_token() {
        let entries = listing(|name| match name {
            "NPUSHMEM_JOB" => Some("secret".into()),
            "NPUSHMEM_TIMEOUT" => Some("5".into()),
            _ => None,
        });
        let of = |name: &str| {
            entries
                .iter()
                .find(|e| e.name == name)
                .cloned()
                .expect(name)
        };
        assert_eq!(of("NPUSHMEM_JOB").value, "(set)");
        assert_eq!(
            of("NPUSHMEM_TIMEOUT").source.as_deref(),
            Some("NPUSHMEM_TIMEOUT")
        );
        assert_eq!(of("NPUSHMEM_QP_DEPTH").value, "512");
        assert_eq!(of("NPUSHMEM_QP_DEPTH").source, None);
    }

    #[test]
    fn the_standards_settings_have_their_old_names_too() {
        let both = |new: &'static str| {
            move |name: &str| match name {
                "SMA_SYMMETRIC_SIZE" => Some("2M".to_string()),
                "SHMEM_SYMMETRIC_SIZE" => Some(new.to_string()),
                "SMA_DEBUG" => Some("anything".to_string()),
                _ => None,
            }
        };
        let config = Config::from_lookup(both("")).expect("accepted");
        assert_eq!(config.symmetric_size, HeapSize::Bytes(2 << 20));
        assert!(config.debug);
        let config = Config::from_lookup(both("4M")).expect("accepted");
        assert_eq!(config.symmetric_size, HeapSize::Bytes(4 << 20));
        let entries = listing(both(""));
        let size = entries.iter().find(|e| e.name == "SHMEM_SYMMETRIC_SIZE");
        let source = size.and_then(|e| e.source.as_deref());
        assert_eq!(source, Some("SMA_SYMMETRIC_SIZE"));
    }

    #[test]
    fn a_flag_is_on_with_any_value_but_those_that_say_no() {
        for (value, on) in [
            ("1", true),
            ("yes", true),
            ("x", true),
            ("0", false),
            ("off", false),
            ("No", false),
        ] {
            assert_eq!(
                with("SHMEM_DEBUG", value).map(|c| c.debug),
                Ok(on),
                "{value}"
            );
        }
    }

    #[test]
    fn the_documentation_page_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        if std::env::var_os("NPUSHMEM_BLESS").is_some() {
            std::fs::write(path, markdown()).expect("write docs/configuration.md");
        }
        let page = std::fs::read_to_string(path).expect("docs/configuration.md");
        assert_eq!(
            page,
            markdown(),
            "run the test once with NPUSHMEM_BLESS=1 to write the page anew"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused_without_a_panic(text in ".*") {
            for row in SETTINGS {
                let _ = row.kind.parse(&text);
            }
            let _ = split_address(&text);
        }

        #[test]
        fn whole_sizes_come_back_exactly(n in 0u64..1 << 23, unit in 0usize..5) {
            let suffix = ["", "K", "M", "G", "T"][unit];
            prop_assert_eq!(parse_size(&format!("{n}{suffix}")), Ok(n << (10 * unit)));
        }
    }
}
