//! A group of PEs that run collectives together: numbering of operations, publishing, flow control, barrier.
//!
//! Not the data movement itself (`data`, `reduce`). Used by teams and active sets, one group each.
//!
//! Protocol. Operation numbers grow by one a collective. A member that contributes to operation N writes its data, then N, into its header of
//! N (a ring of [`layout::RING`]); readers wait until the header says at least N. Before a member reuses a header, all members have finished
//! the operation that used it last: known for free when an operation heard from everybody (who is in N has finished N-1), else read from the
//! members' "finished" lines. Numbers never go back, also when a slot passes to another group: that one starts above.

use super::layout::{self, Slot, HEADER_AUX, MOST_ROUNDS, RING, STAGED};
use super::wait::{self, GiveUp, Stop, Waiting};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::Arc;

/// Members up to which a barrier reads everybody's line, where every PE has a core of its own. Beyond, rounds of a dissemination barrier cost less.
const FLAT_WITH_CORES: usize = 16;

/// How a group reaches the memory of its members.
pub trait Memory {
    /// Address in this process of PE `pe`'s copy of the symmetric address `addr`.
    ///
    /// # Safety
    /// `addr` lies in this PE's symmetric memory, and `pe` is a PE of the program.
    unsafe fn peer(&self, addr: *const u8, pe: usize) -> *mut u8;

    /// Bytes from `addr` to the end of the symmetric memory, where that is known: no member's contribution is read beyond.
    fn reach(&self, _addr: *const u8) -> usize {
        usize::MAX
    }
}

/// A number in a line of shared memory.
///
/// # Safety
/// `line` is mapped, 8-byte aligned, and accessed only atomically while the program runs.
#[inline]
pub unsafe fn number<'a>(line: *mut u8) -> &'a AtomicU64 {
    // SAFETY: the caller's contract.
    unsafe { AtomicU64::from_ptr(line.cast()) }
}

/// What operations members compare ([`Policy::compare`]): a kind and a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Barrier or sync.
    Sync = 1,
    /// Broadcast.
    Broadcast,
    /// fcollect.
    Fcollect,
    /// alltoall and alltoalls.
    Alltoall,
    /// Reductions and scans.
    Reduce,
    /// Creation of teams.
    Split,
    /// The comparison of a collective's arguments before it.
    Arguments,
}

/// A routine's name, for messages: thin, so that it is stored at once.
pub type Routine = &'static &'static str;

/// How the members of a group wait, and what they check.
#[derive(Clone, Default)]
pub struct Policy {
    /// Asked by waits that last; `None`: they last until they end.
    pub give_up: Option<Arc<GiveUp>>,
    /// Members compare what they are in: [`Stop::Mismatch`].
    pub compare: bool,
}

/// PEs that run collectives together.
pub struct Group {
    slots: Box<[Slot]>,
    pes: Box<[u32]>,
    me: usize,
    flat: bool,
    policy: Policy,
    /// The routine that this PE is in, or was in last: a [`Routine`], or null.
    routine: AtomicPtr<&'static str>,
    /// Number of the operation that this PE is in or was in last. Relaxed: one thread at a time is in a team's collectives.
    number: AtomicU64,
    /// Every member is known to have finished this operation.
    known: AtomicU64,
}

// SAFETY: the pointers are to shared memory that lives as long as the program is initialised; access to it is by atomics and by the protocol.
unsafe impl Send for Group {}
// SAFETY: as above; the standard forbids two threads in collectives of one team at a time.
unsafe impl Sync for Group {}

impl Group {
    /// A group of `members` (the slot of each, as mapped here, and its world PE), of which this PE is number `me`, that has done `start` operations.
    pub fn new(
        members: Vec<(Slot, u32)>,
        me: usize,
        start: u64,
        cores: usize,
        policy: Policy,
    ) -> Group {
        let size = members.len();
        Group {
            slots: members.iter().map(|m| m.0).collect(),
            pes: members.iter().map(|m| m.1).collect(),
            me,
            flat: size <= FLAT_WITH_CORES || size > cores,
            policy,
            routine: AtomicPtr::default(),
            number: AtomicU64::new(start),
            known: AtomicU64::new(start),
        }
    }

    /// Notes the routine whose work begins, for messages about waits.
    #[inline]
    pub fn enter(&self, routine: Routine) {
        self.routine
            .store(std::ptr::from_ref(routine).cast_mut(), Ordering::Relaxed);
    }

    /// What a wait in operation `number` waits for: the members whose number in `line` is lower, and what they have not done.
    #[cold]
    fn waiting(&self, line: impl Fn(Slot) -> *mut u8, number: u64, deed: &str) -> Waiting {
        let is_late = |member: usize| {
            // SAFETY: a line of a mapped slot.
            let theirs = unsafe { super::group::number(line(self.slots[member])) };
            theirs.load(Ordering::Acquire) < number
        };
        let late: Vec<u32> = (0..self.size())
            .filter(|member| *member != self.me && is_late(*member))
            .map(|member| self.pes[member])
            .collect();
        self.waiting_for(&late, deed)
    }

    #[cold]
    fn waiting_for(&self, late: &[u32], deed: &str) -> Waiting {
        // SAFETY: null, or a name that is never freed.
        let routine = unsafe { self.routine.load(Ordering::Relaxed).as_ref() };
        let has = if late.len() == 1 { "has" } else { "have" };
        Waiting {
            routine: routine.copied().unwrap_or("a collective"),
            what: match late {
                // They have come in this very moment.
                [] => format!("members of a team of {}", self.size()),
                late => format!(
                    "{} of {} in the team, which {has} not {deed}",
                    wait::pe_list(late),
                    self.size()
                ),
            },
        }
    }

    /// Members.
    #[inline]
    pub fn size(&self) -> usize {
        self.slots.len()
    }

    /// This PE's number among the members.
    #[inline]
    pub fn me(&self) -> usize {
        self.me
    }

    /// The world PE of member `index`.
    #[inline]
    pub fn pe(&self, index: usize) -> usize {
        self.pes[index] as usize
    }

    /// Operations done so far.
    pub fn done(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Where the "finished" lines of the members are, for one who must know later that all have left.
    pub fn finished_lines(&self) -> Vec<*mut u8> {
        self.slots.iter().map(|s| s.finished()).collect()
    }

    /// Starts the next operation.
    #[inline]
    pub fn begin(&self) -> u64 {
        let number = self.number.load(Ordering::Relaxed) + 1;
        self.number.store(number, Ordering::Relaxed);
        number
    }

    /// Publishes this member's part of operation `number`: `bytes` at `data` (none when 0), and a word.
    ///
    /// # Safety
    /// `data` is readable for `bytes`, at most [`STAGED`].
    #[inline]
    pub unsafe fn publish(
        &self,
        number: u64,
        word: u64,
        data: *const u8,
        bytes: usize,
    ) -> Result<(), Stop> {
        debug_assert!(bytes <= STAGED);
        // The header was last used by operation number - RING.
        if self.known.load(Ordering::Relaxed) + (RING as u64) < number {
            self.wait_finished(number - RING as u64)?;
        }
        let slot = self.slots[self.me];
        let header = slot.header(number);
        // SAFETY: the slot is this PE's own and all members have finished reading what was here.
        unsafe {
            header.add(HEADER_AUX).cast::<u64>().write(word);
            if bytes > 0 {
                std::ptr::copy_nonoverlapping(data, slot.staging(number, bytes), bytes);
            }
            super::group::number(header).store(number, Ordering::Release);
        }
        Ok(())
    }

    /// Waits until a line holds `number` at least.
    #[inline]
    fn reaches(
        &self,
        line: &AtomicU64,
        number: u64,
        what: impl Fn() -> Waiting + Sync,
    ) -> Result<(), Stop> {
        wait::until_or_for(self.policy.give_up.as_deref(), Some(&what), || {
            line.load(Ordering::Acquire) >= number
        })
    }

    /// Waits until `member` has published its part of operation `number`.
    #[inline]
    pub fn see(&self, member: usize, number: u64) -> Result<(), Stop> {
        let header = self.slots[member].header(number);
        // SAFETY: a header of a mapped slot.
        self.reaches(unsafe { super::group::number(header) }, number, || {
            self.waiting(|slot| slot.header(number), number, "come")
        })
    }

    /// As [`Group::see`], for an operation in which only `member` publishes.
    #[inline]
    pub fn see_only(&self, member: usize, number: u64) -> Result<(), Stop> {
        let header = self.slots[member].header(number);
        // SAFETY: a header of a mapped slot.
        self.reaches(unsafe { super::group::number(header) }, number, || {
            self.waiting_for(&[self.pes[member]], "come")
        })
    }

    /// The word that `member` published with operation `number`.
    ///
    /// # Safety
    /// [`Group::see`] has returned for it, and this PE has not finished the operation.
    #[inline]
    pub unsafe fn word(&self, member: usize, number: u64) -> u64 {
        // SAFETY: published and not reused before this PE finishes.
        unsafe {
            self.slots[member]
                .header(number)
                .add(HEADER_AUX)
                .cast::<u64>()
                .read()
        }
    }

    /// The `bytes` that `member` published with operation `number`: readable after [`Group::see`] until this PE finishes the operation.
    #[inline]
    pub fn staged(&self, member: usize, number: u64, bytes: usize) -> *const u8 {
        self.slots[member].staging(number, bytes)
    }

    /// A description for the word of an operation whose members pass equal arguments.
    #[inline]
    pub fn describe(kind: Kind, size: u64) -> u64 {
        (kind as u64) << 56 | size & ((1 << 56) - 1)
    }

    /// Where members compare: whether `member` published this PE's description for operation `number`.
    ///
    /// # Errors
    /// [`Stop::Mismatch`].
    #[inline]
    pub fn compare(&self, member: usize, number: u64, mine: u64) -> Result<(), Stop> {
        if self.policy.compare {
            // SAFETY: called after `see`, before `finish`.
            let theirs = unsafe { self.word(member, number) };
            if theirs != mine {
                return Err(self.mismatch(member, mine, theirs));
            }
        }
        Ok(())
    }

    #[cold]
    fn mismatch(&self, member: usize, mine: u64, theirs: u64) -> Stop {
        let split = |word: u64| ((word >> 56) as u8, word & ((1 << 56) - 1));
        Stop::Mismatch {
            other: self.pe(member),
            mine: split(mine),
            theirs: split(theirs),
        }
    }

    /// Notes that every member has been heard from in operation `number`, so has finished the one before.
    #[inline]
    pub fn heard_all(&self, number: u64) {
        self.known.store(number - 1, Ordering::Relaxed);
    }

    /// Says that this PE reads nobody's data of operation `number` any more.
    #[inline]
    pub fn finish(&self, number: u64) {
        // SAFETY: this PE's own line.
        unsafe { super::group::number(self.slots[self.me].finished()) }
            .store(number, Ordering::Release);
    }

    /// Waits until every other member has finished operation `number`.
    pub fn wait_finished(&self, number: u64) -> Result<(), Stop> {
        for step in 1..self.size() {
            let line = self.slots[self.after(step)].finished();
            // SAFETY: a line of a mapped slot.
            self.reaches(unsafe { super::group::number(line) }, number, || {
                self.waiting(Slot::finished, number, "finished")
            })?;
        }
        self.known.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Says that this PE has done the first part of operation `number`.
    pub fn first_part_done(&self, number: u64) {
        // SAFETY: this PE's own line.
        unsafe { super::group::number(self.slots[self.me].phase()) }
            .store(number, Ordering::Release);
    }

    /// Waits until `member` has done the first part of operation `number`.
    pub fn wait_first_part(&self, member: usize, number: u64) -> Result<(), Stop> {
        // SAFETY: a line of a mapped slot.
        let line = unsafe { super::group::number(self.slots[member].phase()) };
        self.reaches(line, number, || {
            self.waiting(Slot::phase, number, "done its part")
        })
    }

    /// The member `step` places after this one, around the group.
    #[inline]
    pub fn after(&self, step: usize) -> usize {
        let index = self.me + step;
        if index >= self.size() {
            index - self.size()
        } else {
            index
        }
    }

    /// Waits for all members (OpenSHMEM 1.6, `shmem_team_sync`). Stores before it, by any member, are visible after it.
    #[inline]
    pub fn sync(&self) -> Result<(), Stop> {
        let number = self.begin();
        if self.size() > 1 {
            if self.flat {
                self.meet_flat(number)?;
            } else {
                self.meet_in_rounds(number)?;
            }
            self.heard_all(number);
        }
        self.finish(number);
        Ok(())
    }

    /// Everybody writes one line and reads all others'.
    #[inline]
    fn meet_flat(&self, number: u64) -> Result<(), Stop> {
        let word = Group::describe(Kind::Sync, 0);
        // SAFETY: nothing to read.
        unsafe { self.publish(number, word, std::ptr::null(), 0) }?;
        for step in 1..self.size() {
            let member = self.after(step);
            self.see(member, number)?;
            self.compare(member, number, word)?;
        }
        Ok(())
    }

    /// In round r, everybody tells the member 2^r places after, and hears from the one 2^r before.
    fn meet_in_rounds(&self, number: u64) -> Result<(), Stop> {
        let own = self.slots[self.me];
        // For messages only: everybody can see who has come.
        self.first_part_done(number);
        let mut distance = 1;
        for round in 0..MOST_ROUNDS {
            if distance >= self.size() {
                break;
            }
            let partner = self.slots[self.after(distance)];
            // SAFETY: in each line only one partner writes.
            unsafe { super::group::number(partner.round(round)) }.store(number, Ordering::Release);
            // SAFETY: a line of this PE's slot.
            let line = unsafe { super::group::number(own.round(round)) };
            self.reaches(line, number, || self.waiting(Slot::phase, number, "come"))?;
            distance *= 2;
        }
        Ok(())
    }

    /// Gives `mine` to all and returns what each member gave, in order.
    pub fn exchange<const N: usize>(
        &self,
        kind: Kind,
        mine: [u64; N],
    ) -> Result<Vec<[u64; N]>, Stop> {
        const { assert!(N * 8 <= layout::INLINE) };
        let number = self.begin();
        let bytes = N * 8;
        let word = Group::describe(kind, bytes as u64);
        // SAFETY: an array of words.
        unsafe { self.publish(number, word, mine.as_ptr().cast(), bytes) }?;
        let mut all = Vec::with_capacity(self.size());
        for member in 0..self.size() {
            self.see(member, number)?;
            self.compare(member, number, word)?;
            // SAFETY: published, and this PE has not finished; headers are 16-byte aligned.
            all.push(unsafe { self.staged(member, number, bytes).cast::<[u64; N]>().read() });
        }
        self.heard_all(number);
        self.finish(number);
        Ok(all)
    }
}
