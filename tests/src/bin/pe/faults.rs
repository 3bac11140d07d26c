//! The scenarios in which something goes wrong, and what works after it. Called by scenario.rs.

use anyhow::{bail, Result};

use crate::scenario::{pattern, print};
use crate::stand::Stand;

fn tell(result: Result<(), npushmem::Error>) {
    match result {
        Ok(()) => print("result", "ok"),
        Err(error) => print("result", format!("{error:#}").replace('\n', " ")),
    }
}

/// One mistake on PE 0; what synchronize says is printed, by every PE. `others=barrier`: the other PEs wait in a kernel for PE 0 meanwhile.
/// `recover=1`: afterwards all PEs recover, and everything is tried. `end=1`: the process ends at once.
pub fn fault(s: &Stand) -> Result<()> {
    let k: u64 = s.get("mistake", 0)?;
    let n: u64 = s.get("n", 64)?;
    let m: u64 = s.get("m", 0)?;
    let blocks: u32 = s.get("blocks", 1)?;
    let a_offset: u64 = s.get("a_offset", 0)?;
    let others: String = s.get("others", "idle".to_owned())?;
    tell(match (s.me(), others.as_str()) {
        (0, _) => s.launch_at("st_fault", blocks, (a_offset, 0), s.next(), [n, m, k]),
        (_, "idle") => Ok(()),
        (_, "barrier") => s.launch("st_barrier", 0, 1, 0, 0),
        (_, other) => bail!("others={other}"),
    });
    if s.get("end", 0)? == 1 {
        std::process::exit(0);
    }
    for _ in 0..s.get("recover", 0)? {
        s.world.recover()?;
        print("wrong", all_that_works(s)?);
    }
    Ok(())
}

/// Data movement both ways, barriers and atomics, by every core and both engines: how much was not as it should be.
fn all_that_works(s: &Stand) -> Result<u64> {
    const BYTES: u64 = 1000;
    const ROUNDS: u64 = 20;
    let cores = s.cores as usize;
    let all = BYTES as usize * cores;
    let mut wrong = 0;
    for engine in [1, 2] {
        for get in [0, 1] {
            let (source, target) = if get == 1 { (&s.a, &s.b) } else { (&s.b, &s.a) };
            let from = if get == 1 { s.next() } else { s.before() };
            s.clear()?;
            s.world.write(source, 0, &pattern(s.me(), engine, all))?;
            s.world.barrier_all()?;
            s.launch_engine("st_move", engine, s.next(), [BYTES, 1, 8 | get])?;
            s.world.barrier_all()?;
            let mut seen = vec![0; all];
            s.world.read(target, 0, &mut seen)?;
            wrong += u64::from(seen != pattern(from, engine, all));
            wrong += s.results(0, cores)?.iter().sum::<u64>();
            s.world.barrier_all()?;
        }
        // Barriers, then pairs of PEs.
        for k in [0, 2] {
            s.clear()?;
            s.world.barrier_all()?;
            let partner = s.me() ^ 1;
            if k == 0 || partner < s.n_pes() {
                s.launch_engine("st_barrier", engine, partner, [ROUNDS, 0, k])?;
            }
            wrong += s.results(0, 2 * cores)?.iter().sum::<u64>();
            s.world.barrier_all()?;
        }
        s.clear()?;
        s.world.barrier_all()?;
        s.launch_engine("st_hammer", engine, 0, [ROUNDS, 0, 5])?;
        s.world.barrier_all()?;
        let mut count = [0u8; 8];
        s.world.read(&s.a, 0, &mut count)?;
        let expected = if s.me() == 0 {
            ROUNDS * s.n_pes() * cores as u64
        } else {
            0
        };
        wrong += u64::from(u64::from_le_bytes(count) != expected);
        s.world.barrier_all()?;
    }
    Ok(wrong)
}

/// Puts until an error comes; the harness kills a PE meanwhile. `how` says what the survivors do. Ends with exit code 3, or, with
/// `finalize=1`, by finalize.
pub fn victim(s: &Stand) -> Result<()> {
    println!("ready");
    let target = s.get("to", 0)?;
    tell(match s.get("how", "put".to_owned())?.as_str() {
        "put" => s.launch_at("st_fault", 1, (0, 0), target, [0, 0, 8]),
        "barrier" => s.launch("st_barrier", 0, u64::MAX / 2, 0, 0),
        "host" => {
            if s.me() == target {
                std::thread::sleep(std::time::Duration::from_secs(60));
            }
            s.world.barrier_all()
        }
        "flag" => s.launch_at("st_fault", 1, (0, 0), target, [77, 0, 7]),
        other => bail!("how={other}"),
    });
    if s.get("finalize", 0)? == 1 {
        return Ok(());
    }
    std::process::exit(3);
}
