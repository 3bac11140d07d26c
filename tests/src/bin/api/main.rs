//! One PE of the tests of the device API's breadth: strided transfers, waits on many variables, atomics, teams, collectives, contexts,
//! windows, streams. Launches the
//! kernels of kernels/breadth.cpp, kernels/contexts.cpp and kernels/teams.cpp as its scenario says, compares with plain Rust, and prints `key=value` lines that
//! the tests read. Not for users. Exit code 0: the scenario ran to its end; 1: an error, printed to standard error.

mod atomics;
mod breadth;
mod collectives;
mod contexts;
mod stand;
mod streams;
mod teams;
mod windows;

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
        "contexts_apart" => contexts::apart(&stand)?,
        "contexts_turns" => contexts::turns(&stand)?,
        "context_families" => contexts::families(&stand)?,
        "context_churn" => contexts::churn(&stand)?,
        "context_misuse" => contexts::misuse(&stand)?,
        "context_budget" => contexts::budget(&stand)?,
        "wrong_context" => contexts::wrong(&stand)?,
        "windows" => windows::moves(&stand)?,
        "window_misuse" => windows::misuse(&stand)?,
        "stream_pipeline" => streams::pipeline(&stand)?,
        "stream_asynchronous" => streams::asynchronous(&stand)?,
        "stream_owners" => streams::owners(&stand)?,
        other => bail!("no scenario {other}"),
    }
    stand.end()
}
