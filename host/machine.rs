//! What this machine has for its PEs: memory, and whether the kernel lends huge pages to shared memory.
//!
//! What it is not: the device (runtime/). Read by the heap, and by `npushmem info`.

use std::path::{Path, PathBuf};

use crate::config::HugePages;

/// Where cgroups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The kernel's rule for huge pages behind shared memory.
const SHMEM_HUGE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Bytes of memory that the processes of this machine share: all of it, or a container's limit where that is less. `None` where the system
/// does not say.
pub fn memory() -> Option<u64> {
    let total = total(&read("/proc/meminfo")?)?;
    let limits = cgroup_files(&read("/proc/self/cgroup").unwrap_or_default())
        .into_iter()
        .filter_map(|file| limit(&read(file)?));
    Some(limits.fold(total, u64::min))
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// `MemTotal` of /proc/meminfo, bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// A cgroup's limit, bytes; `None`: none.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes > 0)
}

/// The files with memory limits of a process, from its /proc/PID/cgroup: of its own group and of every one above (cgroups(7), both versions).
fn cgroup_files(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (root, file) = if controllers.is_empty() {
            (PathBuf::from(CGROUPS), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (Path::new(CGROUPS).join("memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        let group = root.join(path.trim_start_matches('/'));
        files.extend(
            group
                .ancestors()
                .take_while(|folder| folder.starts_with(&root))
                .map(|folder| folder.join(file)),
        );
    }
    files
}

/// What the kernel says to a program that asks for huge pages behind shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedHugePages {
    /// It gives them to everybody.
    Always,
    /// It gives them to who asks.
    OnAdvice,
    /// It gives none.
    Never,
    /// It has no such thing.
    Absent,
}

impl SharedHugePages {
    /// Whether a program that asks gets them.
    pub fn available(self) -> bool {
        matches!(self, Self::Always | Self::OnAdvice)
    }
}

/// The rule in force: the word in brackets in /sys/kernel/mm/transparent_hugepage/shmem_enabled.
pub fn shared_huge_pages() -> SharedHugePages {
    rule(&read(SHMEM_HUGE).unwrap_or_default())
}

fn rule(text: &str) -> SharedHugePages {
    match text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word)
    {
        Some("always" | "within_size" | "force") => SharedHugePages::Always,
        Some("advise") => SharedHugePages::OnAdvice,
        Some(_) => SharedHugePages::Never,
        None => SharedHugePages::Absent,
    }
}

/// Whether to ask for huge pages, as the setting and the kernel say; the error is the line to tell where `NPUSHMEM_HUGE_PAGES=on` cannot be
/// granted.
///
/// # Errors
/// As above.
pub fn wants_huge_pages(setting: HugePages) -> Result<bool, String> {
    let rule = shared_huge_pages();
    match setting {
        HugePages::Off => Ok(false),
        HugePages::Auto => Ok(rule.available()),
        HugePages::On if rule.available() => Ok(true),
        HugePages::On => Err(match rule {
            SharedHugePages::Absent => format!(
                "NPUSHMEM_HUGE_PAGES=on: this kernel has no huge pages for shared memory ({SHMEM_HUGE} is not there); the heap has ordinary pages"
            ),
            _ => format!(
                "NPUSHMEM_HUGE_PAGES=on: {SHMEM_HUGE} says never; the heap has ordinary pages; as root, write advise there"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_known() {
        let bytes = memory().expect("Linux says how much memory it has");
        assert!(bytes > 64 << 20, "{bytes}");
        assert_eq!(
            total("MemTotal:       24665724 kB\nMemFree: 1 kB"),
            Some(24665724 << 10)
        );
        assert_eq!(total("nothing"), None);
    }

    #[test]
    fn limits_of_containers_are_looked_for_in_every_group_above() {
        let files = cgroup_files("0::/user/job\n");
        let names: Vec<_> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "/sys/fs/cgroup/user/job/memory.max",
                "/sys/fs/cgroup/user/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        let old = cgroup_files("5:cpu,cpuacct:/a\n4:memory:/a\n");
        assert_eq!(old.len(), 2, "{old:?}");
        assert!(old[0].ends_with("memory/a/memory.limit_in_bytes"));
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("1048576\n"), Some(1 << 20));
    }

    #[test]
    fn the_kernels_rule_for_huge_pages_is_the_word_in_brackets() {
        for (text, is) in [
            (
                "always within_size advise [never] deny force\n",
                SharedHugePages::Never,
            ),
            (
                "always within_size [advise] never deny force\n",
                SharedHugePages::OnAdvice,
            ),
            (
                "[always] within_size advise never deny force\n",
                SharedHugePages::Always,
            ),
            (
                "always within_size advise never [deny] force\n",
                SharedHugePages::Never,
            ),
            ("", SharedHugePages::Absent),
        ] {
            assert_eq!(rule(text), is, "{text}");
        }
        assert_eq!(wants_huge_pages(HugePages::Off), Ok(false));
    }
}
