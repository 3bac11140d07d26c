//! When words of memory changed: a table that all processes of a job share, beside the memory itself.
//!
//! A word (8 aligned bytes of a memfd) that somebody may wait for is written by one small store or one small request. Its entry holds the last
//! changes, each with what the word held before and the virtual time at which the change arrives. The bytes in memory change at once, as always
//! in the emulator; a core that looks is shown what the word held at its own time, and learns when the next change comes. So a core that is early
//! by the model waits for the arrival, one that is late sees the change at once, and the order in which the operating system runs the processes
//! is not seen.
//!
//! An entry keeps [`DEPTH`] changes. A core that is more changes behind than that sees the oldest of them early. When the table is full, words
//! without an entry are seen as memory has them.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{memfd_create, MemfdFlags};
use rustix::mm::{mmap, MapFlags, ProtFlags};

use crate::error::{system, Outcome};

/// Changes that an entry keeps.
const DEPTH: usize = 6;
/// Entries: a power of two. 32 MiB, of which only what is used becomes memory.
const ENTRIES: usize = 1 << 18;
/// Entries that are looked at for a free one.
const PROBES: usize = 32;
/// Turns of waiting for an entry's lock, which is held for some instructions; then its holder has died, and the lock is taken over.
const TURNS: u32 = 1 << 22;

#[repr(C, align(128))]
struct Entry {
    /// 0: free.
    key: AtomicU64,
    lock: AtomicU32,
    changes: AtomicU32,
    /// What the word held before the change.
    before: [AtomicU64; DEPTH],
    /// When the change arrives, picoseconds.
    at: [AtomicU64; DEPTH],
}

/// A change that a core has not seen yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// What the word holds until then.
    pub(crate) before: u64,
    /// When it arrives, picoseconds.
    pub(crate) at: u64,
    /// What it holds afterwards; `None`: what memory holds.
    pub(crate) after: Option<u64>,
}

/// The table, mapped.
pub(crate) struct Words {
    entries: *const Entry,
}

// SAFETY: the entries are atomics in a shared mapping that lives as long as the process.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

/// Names a word: which file, where in it.
pub(crate) fn key(inode: u64, offset: u64) -> u64 {
    // splitmix64 over both, so that neighbours spread; 0 says "free".
    let mut x = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (offset & !7);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)).max(1)
}

impl Words {
    /// Maps the file that the launcher made, or one of this process's own.
    pub(crate) fn open(inherited: Option<File>) -> Outcome<Words> {
        let file: OwnedFd = match inherited {
            Some(file) => file.into(),
            None => memfd_create("npusim-time", MemfdFlags::CLOEXEC)
                .map_err(|e| system("memfd_create", e))?,
        };
        let bytes = size_of::<Entry>() * ENTRIES;
        // Every process does so; the size is the same.
        rustix::fs::ftruncate(&file, bytes as u64)
            .map_err(|e| system("cannot size the table of arrival times", e))?;
        // SAFETY: a new mapping at an address that the kernel chooses; it is never unmapped.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file.as_fd(),
                0,
            )
        }
        .map_err(|e| system("cannot map the table of arrival times", e))?;
        Ok(Words {
            entries: base.cast_const().cast(),
        })
    }

    fn entry(&self, index: usize) -> &Entry {
        // SAFETY: the mapping has ENTRIES entries, zeroed at first, which is a free entry.
        unsafe { &*self.entries.add(index % ENTRIES) }
    }

    /// The entry of a word; made when `make` says so and there is room.
    fn find(&self, key: u64, make: bool) -> Option<&Entry> {
        for probe in 0..PROBES {
            let entry = self.entry(key as usize + probe);
            let found = entry.key.load(Ordering::Acquire);
            if found == key {
                return Some(entry);
            }
            if found == 0 {
                if !make {
                    return None;
                }
                match entry
                    .key
                    .compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire)
                {
                    Ok(_) => return Some(entry),
                    Err(now) if now == key => return Some(entry),
                    Err(_) => {}
                }
            }
        }
        None
    }

    /// Remembers that a word changes at `at` from what it holds, `before`, to something else. Called before memory changes.
    pub(crate) fn change(&self, key: u64, before: u64, at: u64) {
        let Some(entry) = self.find(key, true) else {
            return;
        };
        let _guard = Locked::take(entry);
        let mut count = entry.changes.load(Ordering::Relaxed) as usize;
        if count >= DEPTH {
            for i in 1..DEPTH {
                entry.before[i - 1]
                    .store(entry.before[i].load(Ordering::Relaxed), Ordering::Relaxed);
                entry.at[i - 1].store(entry.at[i].load(Ordering::Relaxed), Ordering::Relaxed);
            }
            count = DEPTH - 1;
        }
        entry.before[count].store(before, Ordering::Relaxed);
        entry.at[count].store(at, Ordering::Relaxed);
        entry.changes.store(count as u32 + 1, Ordering::Relaxed);
    }

    /// The first change of a word that has not arrived at `now`.
    pub(crate) fn pending(&self, key: u64, now: u64) -> Option<Pending> {
        let entry = self.find(key, false)?;
        let _guard = Locked::take(entry);
        let count = (entry.changes.load(Ordering::Relaxed) as usize).min(DEPTH);
        let first = (0..count).find(|&i| entry.at[i].load(Ordering::Relaxed) > now)?;
        Some(Pending {
            before: entry.before[first].load(Ordering::Relaxed),
            at: entry.at[first].load(Ordering::Relaxed),
            after: (first + 1 < count).then(|| entry.before[first + 1].load(Ordering::Relaxed)),
        })
    }
}

/// An entry's lock.
struct Locked<'a>(&'a Entry);

impl<'a> Locked<'a> {
    fn take(entry: &'a Entry) -> Self {
        for turn in 0..TURNS {
            if entry
                .lock
                .compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
            if turn % 64 == 63 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        Locked(entry)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.lock.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_shown_each_change_in_turn() {
        let words = Words::open(None).expect("a table");
        let key = key(7, 64);
        words.change(key, 10, 100);
        words.change(key, 11, 200);
        let pending = |now| words.pending(key, now);
        assert_eq!(
            pending(50),
            Some(Pending {
                before: 10,
                at: 100,
                after: Some(11)
            })
        );
        assert_eq!(
            pending(100),
            Some(Pending {
                before: 11,
                at: 200,
                after: None
            })
        );
        assert_eq!(pending(200), None);
        assert_eq!(words.pending(super::key(7, 72), 0), None);
    }

    #[test]
    fn the_oldest_changes_are_forgotten() {
        let words = Words::open(None).expect("a table");
        for n in 0..10 {
            words.change(5, n, 100 + n);
        }
        assert_eq!(
            words.pending(5, 0).map(|p| (p.before, p.at)),
            Some((4, 104))
        );
    }

    #[test]
    fn two_mappings_of_one_file_share_the_table() {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).expect("a memfd"));
        let one = Words::open(Some(file.try_clone().expect("a descriptor"))).expect("a table");
        let two = Words::open(Some(file)).expect("the table");
        one.change(9, 1, 1000);
        assert_eq!(two.pending(9, 0).map(|p| p.at), Some(1000));
    }

    #[test]
    fn words_of_other_files_and_places_have_other_names() {
        assert_ne!(key(1, 0), key(2, 0));
        assert_ne!(key(1, 0), key(1, 8));
        assert_eq!(key(1, 3), key(1, 0));
    }
}
