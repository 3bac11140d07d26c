//! Starts the two PEs that measure (processes of this program) with a store between them, bounds them, and takes PE 0's rows.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use npushmem::bootstrap::store::Server;

use crate::figure::Row;

/// PEs of the job.
const PES: u32 = 2;
/// How long the start and the end may take, and each round.
const START_LIMIT: Duration = Duration::from_secs(60);
const ROUND_LIMIT: Duration = Duration::from_secs(10);

/// Ends the PEs that are left, however this ends.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// All rows that PEs measure.
pub fn measure(rounds: usize, calls: u64, only: &str) -> Result<Vec<Row>> {
    let token = format!("bench-{}", std::process::id());
    let server = Server::bind("127.0.0.1:0", PES, token.as_bytes())?;
    let program = std::env::current_exe().context("where this program is")?;
    let mut children = Children(Vec::new());
    for pe in 0..PES {
        let mut command = Command::new(&program);
        command.args(["pe", &rounds.to_string(), &calls.to_string(), only]);
        command
            .env("NPUSHMEM_PE", pe.to_string())
            .env("NPUSHMEM_NPES", PES.to_string());
        command
            .env("NPUSHMEM_LOCAL_RANK", pe.to_string())
            .env("NPUSHMEM_JOB", &token);
        command.env("NPUSHMEM_STORE", server.address().to_string());
        command.stdin(Stdio::null());
        command.stdout(if pe == 0 {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        children.0.push(
            command
                .spawn()
                .with_context(|| format!("cannot start {}", program.display()))?,
        );
    }
    let mut pipe = children.0[0].stdout.take().context("PE 0's output")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + START_LIMIT + ROUND_LIMIT * (rounds as u32 + 1);
    loop {
        let mut running = false;
        for (pe, child) in children.0.iter_mut().enumerate() {
            match child.try_wait()? {
                Some(status) if !status.success() => bail!("PE {pe} failed: {status}"),
                Some(_) => {}
                None => running = true,
            }
        }
        if !running {
            break;
        }
        if Instant::now() > deadline {
            bail!("the PEs did not end in time; they were stopped");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = reader
        .join()
        .map_err(|_| anyhow::anyhow!("the reader of PE 0's output failed"))??;
    serde_json::from_str(&text).with_context(|| format!("PE 0 printed no rows: {text:.200}"))
}
