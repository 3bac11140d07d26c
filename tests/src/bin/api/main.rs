//! One PE of the tests of the device API's breadth: strided transfers, waits on many variables, atomics, teams, collectives. Launches the
//! kernels of kernels/breadth.cpp and kernels/teams.cpp as its scenario says, compares with plain Rust, and prints `key=value` lines that
//! the tests read. Not for users. Exit code 0: the scenario ran to its end; 1: an error, printed to standard error.

mod atomics;
mod breadth;
mod collectives;
mod stand;
mod teams;

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
    let stand = stand::Stand::new(args)?;
    match name.as_str() {
        "strided" => breadth::strided(&stand)?,
        "waits" => breadth::waits(&stand)?,
        "atomics" => atomics::steps(&stand)?,
        "contend" => atomics::contend(&stand)?,
        "teams" => teams::model(&stand)?,
        "team_barriers" => teams::barriers(&stand)?,
        "team_churn" => teams::churn(&stand)?,
        "team_mistakes" => teams::mistakes(&stand)?,
        "collectives" => collectives::random(&stand)?,
        "each_collective" => collectives::each(&stand)?,
        "large_collective" => collectives::large(&stand)?,
        other => bail!("no scenario {other}"),
    }
    stand.end()
}
