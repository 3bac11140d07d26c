//! Whether this machine has the memory that an input asks for: asked before a large allocation, because one that fails ends the process without a word
//! that helps.
//!
//! Not an allocator and no reservation: what is there now may be gone later. Readers of graphs and features call it, and `gnn` for the whole run.

use thiserror::Error;

/// More memory than there is.
#[derive(Debug, Error)]
#[error("{what} would take about {} of memory, and this machine has {} to give; {fix}", text(*.needed), text(*.available))]
pub struct NoRoom {
    what: String,
    fix: &'static str,
    needed: u64,
    available: u64,
}

/// Refuses `what` when its `needed` bytes are more than there are; `fix` says what the user can do.
pub fn check(needed: u64, what: impl Into<String>, fix: &'static str) -> Result<(), NoRoom> {
    match available() {
        Some(available) if needed > available => Err(NoRoom {
            what: what.into(),
            fix,
            needed,
            available,
        }),
        _ => Ok(()),
    }
}

/// Bytes that this process may still take; `None` when the system does not tell.
fn available() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let free = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .saturating_mul(1024);
    Some(free.min(address_space().unwrap_or(u64::MAX)))
}

/// What `ulimit -v` leaves.
fn address_space() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let pages: u64 = std::fs::read_to_string("/proc/self/statm")
        .ok()?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    Some(limit.saturating_sub(pages.saturating_mul(rustix::param::page_size() as u64)))
}

fn text(bytes: u64) -> String {
    npushmem::config::size_text(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_any_machine_has_is_refused_with_both_numbers() {
        check(1, "a byte", "").unwrap();
        let text = check(1 << 60, "a graph of 9 nodes", "use a smaller one")
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with(
                "a graph of 9 nodes would take about 1048576 TiB of memory, and this machine has "
            ),
            "{text}"
        );
        assert!(text.ends_with(" to give; use a smaller one"), "{text}");
    }
}
