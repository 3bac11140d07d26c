//! `npushmem info`: the settings in force and where they come from, and the runtime, SoC and devices that a job would use.

use clap::Args;
use comfy_table::{presets, Table};
use npushmem::config::{self, Config};
use npushmem::{describe_runtime, Kind};

use crate::failure::Failure;

/// Show the settings in force and the devices that a job would use.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Explain each setting.
    #[arg(long, short = 'l')]
    pub long: bool,
}

/// Runs the command.
pub fn run(args: InfoArgs) -> Result<(), Failure> {
    let mut report = format!("npushmem {}\n", env!("CARGO_PKG_VERSION"));
    let config = Config::from_env().map_err(Failure::input)?;
    for (name, value) in devices(&config)? {
        report += &format!("  {name:<10} {value}\n");
    }
    let mut category = "";
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for entry in config::listing(|name| std::env::var(name).ok()) {
        if entry.category != category {
            category = entry.category;
            table.add_row([category]);
        }
        let value = if entry.value.is_empty() {
            "-".to_owned()
        } else {
            entry.value
        };
        let source = if entry.from_environment {
            "environment"
        } else {
            "default"
        };
        let name = format!("  {}", entry.name);
        if args.long {
            table.add_row([&name, &value, entry.unit, source, entry.help]);
        } else {
            table.add_row([&name, &value, entry.unit, source]);
        }
    }
    // Columns are padded to the end of the line, which nobody needs.
    for line in table.lines() {
        report += line.trim_end();
        report.push('\n');
    }
    crate::print(&report)
}

/// The runtime that a job would use.
fn devices(config: &Config) -> Result<Vec<(&'static str, String)>, Failure> {
    let runtime = describe_runtime(config.runtime).map_err(Failure::failed)?;
    let (major, minor, patch) = runtime.version;
    let name = match runtime.kind {
        Kind::Acl => format!("the vendor's ({})", runtime.libraries.join(", ")),
        Kind::Sim => "emulated NPU, inside each process".to_owned(),
    };
    Ok(vec![
        ("runtime", name),
        ("version", format!("ACL {major}.{minor}.{patch}")),
        ("SoC", runtime.soc),
        ("devices", runtime.devices.to_string()),
    ])
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
