//! One PE of the multi-process tests: sets a job up, launches the self-test kernels as its scenario says, and prints `key=value` lines that the
//! tests read. Not for users. Exit code 0: the scenario ran to its end; 1: an error, printed to standard error.

mod faults;
mod golden;
mod reports;
mod scenario;
mod sequence;
mod stand;

use std::collections::HashMap;

use anyhow::{bail, Context as _};

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
}

fn run() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let name = words.next().context("the first argument is the scenario")?;
    let mut args = HashMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            bail!("{word}: key=value is wanted")
        };
        args.insert(key.to_owned(), value.to_owned());
    }
    if name == "again" {
        return reports::again(&args);
    }
    let stand = stand::Stand::new(args)?;
    scenario::run(&name, &stand)?;
    stand.end()
}
