//! The launcher's process above this one: what names a job where the launcher's variables do not.
//!
//! Not a way to talk to it. Used by identity.rs for launchers whose PEs all descend from one process of a known name.

/// Processes that are looked at, from this one up.
const MOST: usize = 16;

/// Number and start time of the nearest process above this one whose name begins with `name`, as text that no other process of this machine
/// shares (until it is started anew).
pub(super) fn named(name: &str) -> Option<String> {
    // What /proc shows of a name.
    const SHOWN: usize = 15;
    let name = &name[..name.len().min(SHOWN)];
    let mut pid = std::process::id();
    for _ in 0..MOST {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let stat = Stat::parse(&text)?;
        if stat.name.starts_with(name) {
            return Some(format!("{pid}-{}", stat.started));
        }
        pid = stat.parent;
        if pid <= 1 {
            return None;
        }
    }
    None
}

/// What /proc/PID/stat says (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat<'a> {
    name: &'a str,
    parent: u32,
    started: &'a str,
}

impl<'a> Stat<'a> {
    fn parse(text: &'a str) -> Option<Stat<'a>> {
        // The name stands in parentheses, and may hold any.
        let (before, rest) = text.rsplit_once(')')?;
        let name = before.split_once('(')?.1;
        let mut fields = rest.split_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        // Field 22; the state is field 3, the parent field 4.
        let started = fields.nth(17)?;
        Some(Stat {
            name,
            parent,
            started,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_understood_whatever_its_name() {
        let fields: Vec<String> = (5..=30).map(|n| n.to_string()).collect();
        let text = format!("77 (a ) b) S 12 {}", fields.join(" "));
        let stat = Stat::parse(&text);
        let wanted = Stat {
            name: "a ) b",
            parent: 12,
            started: "22",
        };
        assert_eq!(stat, Some(wanted));
        assert_eq!(Stat::parse("77"), None);
    }

    #[test]
    fn a_process_above_this_one_is_found_by_its_name() {
        let own = std::fs::read_to_string("/proc/self/stat").expect("Linux");
        let stat = Stat::parse(&own).expect("understood");
        let found = named(stat.name).expect("itself");
        assert!(
            found.starts_with(&format!("{}-", std::process::id())),
            "{found}"
        );
        assert_eq!(named("no process has this name"), None);
    }
}
