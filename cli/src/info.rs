//! `npushmem info`: the settings in force and where they come from, and the runtime, SoC and devices that a job would use.

use clap::Args;
use comfy_table::{presets, Table};
use npushmem::config::{self, Config};

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
    println!("npushmem {}", env!("CARGO_PKG_VERSION"));
    let config = Config::from_env().map_err(Failure::input)?;
    for (name, value) in devices(&config)? {
        println!("  {name:<10} {value}");
    }
    let mut category = "";
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for entry in config::listing(|name| std::env::var(name).ok()) {
        if entry.category != category {
            category = entry.category;
            table.add_row([category]);
        }
        let value = if entry.value.is_empty() { "-".to_owned() } else { entry.value };
        let source = if entry.from_environment { "environment" } else { "default" };
        let name = format!("  {}", entry.name);
        if args.long {
            table.add_row([&name, &value, entry.unit, source, entry.help]);
        } else {
            table.add_row([&name, &value, entry.unit, source]);
        }
    }
    println!("{table}");
    Ok(())
}
