//! How a PE waits for memory to change: spin, then yield, then sleep. One policy for barriers, collectives, wait routines and locks.
//!
//! Not a notification mechanism: other PEs change memory with plain stores, so that every wait here polls. Called from every blocking routine.
//!
//! A wait polls without a pause first (a cache line that is on its way arrives within tens of nanoseconds), then with a processor pause, then
//! gives up its core between polls. With more PEs than cores the spinning part is short: the PE that is waited for may need this very core; and
//! it becomes short where it does not help, because other programs use the cores. A
//! wait that lasts sleeps for a fraction of the time it has lasted already, so that the delay it adds stays a small fraction too.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Polls without a pause at the start of each wait.
const EAGER_POLLS: u32 = 32;
/// Polls with a pause at most, where every PE has a core of its own: some tens of microseconds.
const SPINS_WITH_CORES: u32 = 2048;
/// Polls with a pause where PEs share cores, or where other programs turn out to use them: about as long as one switch between processes.
const SPINS_SHARED: u32 = 24;
/// Yields between two looks at the clock.
const YIELDS_A_LOOK: u32 = 64;
/// How long a wait yields before it also sleeps, where PEs share cores.
const YIELD_SHARED: Duration = Duration::from_millis(2);
/// How long a wait yields before it also sleeps, where every PE has a core.
const YIELD_WITH_CORES: Duration = Duration::from_millis(50);
/// A sleep is this fraction of the time already waited.
const SLEEP_FRACTION: u32 = 16;
/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The most polls with a pause that [`SPINS`] grows to.
static MOST_SPINS: AtomicU32 = AtomicU32::new(SPINS_SHARED);
/// Polls with a pause now: halved when spinning was in vain, doubled when it was not.
static SPINS: AtomicU32 = AtomicU32::new(SPINS_SHARED);
static WATCH: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// What every wait of this process that lasts calls now and then, with the time it has lasted and what it waits for (`None`: nobody says): ends
/// the program when a limit is over.
pub type Watch = fn(waited: Duration, what: Option<What<'_>>);

/// Says what a wait waits for: asked only when somebody has to be told, perhaps from another thread.
pub type What<'a> = &'a (dyn Fn() -> Waiting + Sync);

/// What a wait waits for, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The routine.
    pub routine: &'static str,
    /// What for: "PE 3", "the variable at ... to be ...".
    pub what: String,
}

/// Waits of this process that have lasted for [`NOTED`].
static WAITS: Mutex<Vec<Noted>> = Mutex::new(Vec::new());
/// A wait that lasts so long can be asked what it waits for.
const NOTED: Duration = Duration::from_millis(1);

/// A wait in [`WAITS`].
struct Noted {
    /// Where the waiting thread keeps what it waits for; alive as long as it stands in the list.
    what: *const (dyn Fn() -> Waiting + Sync),
}

// SAFETY: the pointer is followed only while the list is locked, and what it points to is Sync.
unsafe impl Send for Noted {}

fn waits() -> MutexGuard<'static, Vec<Noted>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the waits of this process wait for that have lasted a millisecond or more.
pub fn waiting() -> Vec<Waiting> {
    let list = waits();
    list.iter()
        // SAFETY: the thread behind takes it out of the list, which is locked, before it goes on.
        .map(|noted| unsafe { (*noted.what)() })
        .collect()
}

/// Keeps a wait in [`WAITS`].
struct Note(*const (dyn Fn() -> Waiting + Sync));

impl Note {
    fn new(what: What<'_>) -> Note {
        // SAFETY: only the lifetime is dropped; the note ends before what it points to, in this thread.
        let what: *const (dyn Fn() -> Waiting + Sync) =
            unsafe { std::mem::transmute::<What<'_>, *const (dyn Fn() -> Waiting + Sync)>(what) };
        waits().push(Noted { what });
        Note(what)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let mut list = waits();
        // Every note is on a stack of its own: addresses tell them apart.
        if let Some(index) = list
            .iter()
            .position(|noted| std::ptr::addr_eq(noted.what, self.0))
        {
            list.swap_remove(index);
        }
    }
}

/// What one wait that lasts asks now and then, with the time it has lasted: whether to give up.
pub type GiveUp = dyn Fn(Duration) -> bool + Send + Sync;

/// Why a wait ended without its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// [`GiveUp`] said so.
    GivenUp,
    /// A member of the group is in another collective, or passed another size or root.
    Mismatch {
        /// Its number among the PEs of the job.
        other: usize,
        /// Kind and size here.
        mine: (u8, u64),
        /// Kind and size there.
        theirs: (u8, u64),
    },
}

/// Sets the policy for `pes` processes on this machine. Called once at initialisation.
pub fn configure(pes: usize, watch: Option<Watch>) {
    let spins = if pes > cores() {
        SPINS_SHARED
    } else {
        SPINS_WITH_CORES
    };
    MOST_SPINS.store(spins, Ordering::Relaxed);
    SPINS.store(spins, Ordering::Relaxed);
    let watch = watch.map_or(std::ptr::null_mut(), |f| f as *mut ());
    WATCH.store(watch, Ordering::Release);
}

/// Cores of this machine that are online: the same answer for every PE on it, whatever cores each is bound to.
pub fn cores() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count: usize = text.trim().split(',').filter_map(range_length).sum();
    if count > 0 {
        count
    } else {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}

/// Numbers in "3" or "0-7".
fn range_length(range: &str) -> Option<usize> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
    Some(last.checked_sub(first)? + 1)
}

/// Returns when `ready` says true. `ready` must read the memory it looks at with acquire ordering or stronger.
#[inline]
pub fn until(mut ready: impl FnMut() -> bool) {
    for _ in 0..EAGER_POLLS {
        if ready() {
            return;
        }
    }
    spin(&mut ready, None, None);
}

/// As [`until`]; `what` says what is waited for, if the wait lasts. It is called from other threads too, and must not wait itself.
#[inline]
pub fn until_for(what: What<'_>, mut ready: impl FnMut() -> bool) {
    for _ in 0..EAGER_POLLS {
        if ready() {
            return;
        }
    }
    spin(&mut ready, None, Some(what));
}

/// As [`until`], unless `give_up` says that it is enough.
///
/// # Errors
/// [`Stop::GivenUp`].
#[inline]
pub fn until_or(give_up: Option<&GiveUp>, ready: impl FnMut() -> bool) -> Result<(), Stop> {
    until_or_for(give_up, None, ready)
}

/// As [`until_or`] and [`until_for`].
///
/// # Errors
/// [`Stop::GivenUp`].
#[inline]
pub fn until_or_for(
    give_up: Option<&GiveUp>,
    what: Option<What<'_>>,
    mut ready: impl FnMut() -> bool,
) -> Result<(), Stop> {
    for _ in 0..EAGER_POLLS {
        if ready() {
            return Ok(());
        }
    }
    if spin(&mut ready, give_up, what) {
        Ok(())
    } else {
        Err(Stop::GivenUp)
    }
}

/// False: given up.
#[inline(never)]
fn spin(ready: &mut dyn FnMut() -> bool, give_up: Option<&GiveUp>, what: Option<What<'_>>) -> bool {
    let spins = SPINS.load(Ordering::Relaxed);
    for _ in 0..spins {
        std::hint::spin_loop();
        if ready() {
            let most = MOST_SPINS.load(Ordering::Relaxed);
            if spins < most {
                SPINS.store((spins * 2).min(most), Ordering::Relaxed);
            }
            return true;
        }
    }
    if spins > SPINS_SHARED {
        SPINS.store((spins / 2).max(SPINS_SHARED), Ordering::Relaxed);
    }
    give_way(ready, give_up, what)
}

#[cold]
fn give_way(
    ready: &mut dyn FnMut() -> bool,
    give_up: Option<&GiveUp>,
    what: Option<What<'_>>,
) -> bool {
    let begin = Instant::now();
    let mut note = None;
    let shared = MOST_SPINS.load(Ordering::Relaxed) == SPINS_SHARED;
    let patience = if shared {
        YIELD_SHARED
    } else {
        YIELD_WITH_CORES
    };
    loop {
        for _ in 0..YIELDS_A_LOOK {
            std::thread::yield_now();
            if ready() {
                return true;
            }
        }
        let waited = begin.elapsed();
        if waited < NOTED {
            continue;
        }
        if let (None, Some(what)) = (&note, what) {
            note = Some(Note::new(what));
        }
        watch(waited, what);
        if give_up.is_some_and(|give_up| give_up(waited)) {
            return ready();
        }
        if waited > patience {
            nap(waited, ready);
            if ready() {
                return true;
            }
        }
    }
}

/// Sleeps in proportion until the condition holds, for about as long as has been waited so far.
fn nap(waited: Duration, ready: &mut dyn FnMut() -> bool) {
    let sleep = (waited / SLEEP_FRACTION).min(LONGEST_SLEEP);
    for _ in 0..SLEEP_FRACTION {
        std::thread::sleep(sleep);
        if ready() {
            return;
        }
    }
}

fn watch(waited: Duration, what: Option<What<'_>>) {
    let watch = WATCH.load(Ordering::Acquire);
    if !watch.is_null() {
        // SAFETY: only `configure` stores here, and what it stores is null or a `Watch`.
        let watch: Watch = unsafe { std::mem::transmute(watch) };
        watch(waited, what);
    }
}
/// Numbers of PEs as people read them: "PE 3", "PEs 1, 2 and 5 to 9"; at most a line of them.
pub fn pe_list(pes: &[u32]) -> String {
    /// Ranges that are shown.
    const MOST: usize = 12;
    let mut sorted = pes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for pe in &sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *pe => *last = *pe,
            _ => ranges.push((*pe, *pe)),
        }
    }
    let shown: Vec<String> = ranges
        .iter()
        .take(MOST)
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    let noun = if sorted.len() == 1 { "PE" } else { "PEs" };
    let rest: u32 = ranges.iter().skip(MOST).map(|(a, b)| b - a + 1).sum();
    match rest {
        0 => format!("{noun} {}", shown.join(", ")),
        rest => format!("{noun} {} and {rest} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn pes_are_listed_as_ranges() {
        for (pes, text) in [
            (&[3][..], "PE 3"),
            (&[2, 1], "PEs 1, 2"),
            (&[0, 1, 2, 7], "PEs 0 to 2, 7"),
            (&[], "PEs "),
        ] {
            assert_eq!(pe_list(pes), text);
        }
        let many: Vec<u32> = (0..100).map(|i| i * 2).collect();
        assert!(
            pe_list(&many).ends_with("20, 22 and 88 more"),
            "{}",
            pe_list(&many)
        );
    }

    #[test]
    fn a_wait_that_lasts_says_what_for_while_it_lasts() {
        static GO: AtomicBool = AtomicBool::new(false);
        const NAME: &str = "a wait of this test";
        let ours = || waiting().into_iter().filter(|w| w.routine == NAME).count();
        let waiter = std::thread::spawn(|| {
            let what = || Waiting {
                routine: NAME,
                what: "this test".into(),
            };
            until_for(&what, || GO.load(Ordering::Acquire));
        });
        while ours() == 0 {
            std::thread::yield_now();
        }
        GO.store(true, Ordering::Release);
        waiter.join().expect("no panic");
        assert_eq!(ours(), 0);
    }
}
