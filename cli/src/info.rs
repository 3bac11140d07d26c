//! `npushmem info`: which OpenSHMEM this is, what a job would use of this machine, and every setting with its value and where it comes from.
//!
//! As text, or with `--json` for programs. It opens the runtime, but takes no device and starts no job.

use clap::Args;
use comfy_table::{presets, Table};
use npushmem::config::{self, size_text, Config};
use npushmem::machine::{self, SharedHugePages};
use npushmem::{describe_runtime, openshmem, Kind};
use serde::Serialize;

use crate::failure::Failure;
use crate::layout::{Layout, LIBRARY};

/// Show which OpenSHMEM this is, the settings in force, and what a job would use of this machine.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Explain each setting.
    #[arg(long, short = 'l')]
    pub long: bool,
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
    /// Number of PEs on this machine that a heap given in percent is shared out to.
    #[arg(long, short = 'n', value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub pes: u32,
}

/// All that is shown.
#[derive(Debug, Serialize)]
struct Report {
    npushmem: &'static str,
    openshmem: OpenShmem,
    heap: Heap,
    runtime: Runtime,
    settings: Vec<Setting>,
}

/// The C API.
#[derive(Debug, Serialize)]
struct OpenShmem {
    version: String,
    name: &'static str,
    thread_level: &'static str,
    max_name_len: usize,
    max_pes: u64,
    /// Who executes atomics of C programs.
    atomic_domain: &'static str,
    /// Path of the library that oshcc links; `None`: not built or not installed.
    library: Option<String>,
    /// Folder of shmem.h.
    include: Option<String>,
    /// Whether calls that oshcc has compiled inline are used as such.
    inline: bool,
}

/// The symmetric heap of a PE, as a C program would get it.
#[derive(Debug, Serialize)]
struct Heap {
    bytes: u64,
    pes: u32,
    /// Bytes that the PEs of this machine share, a container's limit respected.
    machine_memory: Option<u64>,
    static_data: &'static str,
    /// Whether huge pages will be asked for.
    huge_pages: bool,
    /// The kernel's rule for them.
    huge_pages_kernel: &'static str,
}

/// What stands behind World.
#[derive(Debug, Serialize)]
struct Runtime {
    name: &'static str,
    libraries: Vec<String>,
    version: String,
    soc: String,
    devices: u32,
}

#[derive(Debug, Serialize)]
struct Setting {
    name: &'static str,
    value: Option<String>,
    unit: &'static str,
    /// The environment variable, or "default".
    source: String,
    category: &'static str,
    accepted: String,
    help: &'static str,
}

/// Runs the command.
pub fn run(args: InfoArgs) -> Result<(), Failure> {
    let config = Config::from_env().map_err(Failure::input)?;
    let report = Report {
        npushmem: env!("CARGO_PKG_VERSION"),
        openshmem: openshmem(&config),
        heap: heap(&config, args.pes),
        runtime: runtime(&config)?,
        settings: settings(),
    };
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::failed)?;
        return crate::print(&(text + "\n"));
    }
    crate::print(&text(&report, args.long))
}

fn openshmem(config: &Config) -> OpenShmem {
    let (major, minor) = openshmem::VERSION;
    let layout = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .ok()
        .and_then(|own| Layout::find(own.parent()?).ok());
    let path = |path: std::path::PathBuf| path.display().to_string();
    OpenShmem {
        version: format!("{major}.{minor}"),
        name: openshmem::VENDOR_STRING,
        thread_level: openshmem::THREAD_LEVEL,
        max_name_len: openshmem::MAX_NAME_LEN,
        max_pes: config::MAX_PES,
        atomic_domain: "the processors of this machine",
        library: layout.as_ref().map(|l| path(l.lib.join(LIBRARY))),
        include: layout.map(|l| path(l.include)),
        inline: !config.debug,
    }
}

fn heap(config: &Config, pes: u32) -> Heap {
    let machine_memory = machine::memory();
    let asked = config
        .symmetric_size
        .bytes(machine_memory.unwrap_or(0), pes);
    Heap {
        bytes: asked,
        pes,
        machine_memory,
        static_data: "symmetric in programs that oshcc links",
        huge_pages: machine::wants_huge_pages(config.huge_pages).unwrap_or(false),
        huge_pages_kernel: match machine::shared_huge_pages() {
            SharedHugePages::Always => "always",
            SharedHugePages::OnAdvice => "advise",
            SharedHugePages::Never => "never",
            SharedHugePages::Absent => "absent",
        },
    }
}

/// The runtime that a job would use.
fn runtime(config: &Config) -> Result<Runtime, Failure> {
    let runtime = describe_runtime(config.runtime).map_err(Failure::failed)?;
    let (major, minor, patch) = runtime.version;
    Ok(Runtime {
        name: match runtime.kind {
            Kind::Acl => "the vendor's",
            Kind::Sim => "emulated NPU, inside each process",
        },
        libraries: runtime.libraries,
        version: format!("{major}.{minor}.{patch}"),
        soc: runtime.soc,
        devices: runtime.devices,
    })
}

fn settings() -> Vec<Setting> {
    config::listing(|name| std::env::var(name).ok())
        .into_iter()
        .map(|entry| Setting {
            name: entry.name,
            value: Some(entry.value).filter(|value| !value.is_empty()),
            unit: entry.unit,
            source: entry.source.unwrap_or_else(|| "default".to_owned()),
            category: entry.category,
            accepted: entry.accepted,
            help: entry.help,
        })
        .collect()
}

fn text(report: &Report, long: bool) -> String {
    let mut text = format!("npushmem {}\n", report.npushmem);
    let (api, heap, runtime) = (&report.openshmem, &report.heap, &report.runtime);
    let share = match heap.machine_memory {
        Some(memory) => format!(
            "{} a PE ({} PE{} share {})",
            size_text(heap.bytes),
            heap.pes,
            if heap.pes == 1 { "" } else { "s" },
            size_text(memory)
        ),
        None => format!("{} a PE", size_text(heap.bytes)),
    };
    let huge = match (heap.huge_pages, heap.huge_pages_kernel) {
        (true, rule) => format!("asked for (shmem_enabled: {rule})"),
        (false, rule) => format!("not asked for (shmem_enabled: {rule})"),
    };
    let lines = [
        ("OpenSHMEM", api.version.clone()),
        (
            "name",
            format!("{:?}, at most {} bytes", api.name, api.max_name_len),
        ),
        ("threads", api.thread_level.to_owned()),
        ("PEs", format!("at most {}", api.max_pes)),
        (
            "library",
            api.library
                .clone()
                .unwrap_or_else(|| format!("{LIBRARY} is not installed or built")),
        ),
        (
            "header",
            api.include.clone().unwrap_or_else(|| "-".to_owned()),
        ),
        (
            "inline path",
            if api.inline {
                "used".to_owned()
            } else {
                "not used: SHMEM_DEBUG checks every call".to_owned()
            },
        ),
        ("atomics", format!("by {}", api.atomic_domain)),
        ("heap", share),
        ("huge pages", huge),
        ("static data", heap.static_data.to_owned()),
        (
            "runtime",
            match runtime.libraries.as_slice() {
                [] => runtime.name.to_owned(),
                libraries => format!("{} ({})", runtime.name, libraries.join(", ")),
            },
        ),
        ("version", format!("ACL {}", runtime.version)),
        ("SoC", runtime.soc.clone()),
        ("devices", runtime.devices.to_string()),
    ];
    for (name, value) in lines {
        text += &format!("  {name:<11} {value}\n");
    }
    let mut category = "";
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for setting in &report.settings {
        if setting.category != category {
            category = setting.category;
            table.add_row([category]);
        }
        let value = setting.value.as_deref().unwrap_or("-");
        let name = format!("  {}", setting.name);
        let source = match setting.source.as_str() {
            "default" => "default".to_owned(),
            source if source == setting.name => "environment".to_owned(),
            source => format!("environment ({source})"),
        };
        if long {
            table.add_row([&name, value, setting.unit, &source, setting.help]);
        } else {
            table.add_row([&name, value, setting.unit, &source]);
        }
    }
    // Columns are padded to the end of the line, which nobody needs.
    for line in table.lines() {
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The vendor's runtime library on this machine: what it says, or why it is not there.
pub fn acl_library() -> Result<String, String> {
    let runtime =
        describe_runtime(npushmem::config::Runtime::Acl).map_err(|error| error.to_string())?;
    Ok(format!(
        "{}, {} x {}",
        runtime.libraries.join(", "),
        runtime.devices,
        runtime.soc
    ))
}
