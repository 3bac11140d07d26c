//! The port: what a NIC lets its peers see, in a memfd that they map: identity, regions, queue pairs, the lock of its atomics, and
//! the mark that says it is dead.
//!
//! Only the owner writes the tables; peers read them before each request and write nothing but the dead mark and the lock. Everything
//! is atomic words, so a damaged or hostile port can make requests fail, not the NIC fault. It is no security boundary: processes of
//! one user can reach each other's memory anyway.

use std::cell::UnsafeCell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::NicError;
use super::process::{start_time, ForeignFile};
use super::region::{sealed_memfd, Mapping};
use super::types::{QpAddress, QpState};
use crate::verbs::VerbsAddress;

/// Regions a NIC can have at once.
pub(super) const MAX_REGIONS: usize = 4096;
/// Queue pairs a NIC can have at once, the reserved numbers included.
pub(super) const MAX_QPS: usize = 16384;
/// How long a request waits for the lock of the responder's atomics before it counts as unanswered: a stopped process may hold it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// "NPUSPORT" in memory order.
const MAGIC: u64 = u64::from_le_bytes(*b"NPUSPORT");

/// One registered region, as peers see it. `key` is stored last and cleared first.
#[repr(C)]
pub(super) struct RegionSlot {
    pub key: AtomicU32,
    pub access: AtomicU32,
    pub va: AtomicU64,
    pub len: AtomicU64,
    pub inode: AtomicU64,
    pub offset: AtomicU64,
    pub fd: AtomicI32,
    generation: AtomicU32,
}

const BOUND_WORDS: usize = MAX_REGIONS / 64;

/// One queue pair, as peers see it.
#[repr(C)]
pub(super) struct QpSlot {
    /// [`QpWord`], packed.
    word: AtomicU32,
    /// Bits of [`right`]: what peers may do through this queue pair.
    pub rights: AtomicU32,
    /// The peer that may use it.
    pub peer_nonce: AtomicU64,
    pub peer_qpn: AtomicU32,
    _pad: u32,
    /// A bit per region whose keys are usable on this queue pair.
    bound: [AtomicU64; BOUND_WORDS],
}

/// Rights of a queue pair as responder (the queue pair context's RRE, RWE and ATE).
pub(super) mod right {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const ATOMIC: u32 = 4;
}

/// State of a queue pair together with how often its number was given out, so that a stale address is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QpWord {
    pub incarnation: u32,
    pub state: QpState,
}

const STATE_BITS: u32 = 8;

impl QpWord {
    pub(super) fn pack(self) -> u32 {
        let state = match self.state {
            QpState::Reset => 0,
            QpState::Init => 1,
            QpState::Rts => 2,
            QpState::Error => 3,
        };
        self.incarnation << STATE_BITS | state
    }

    fn unpack(word: u32) -> QpWord {
        let state = match word & ((1 << STATE_BITS) - 1) {
            1 => QpState::Init,
            2 => QpState::Rts,
            3 => QpState::Error,
            _ => QpState::Reset,
        };
        QpWord {
            incarnation: word >> STATE_BITS,
            state,
        }
    }

    /// The number of the next queue pair in the same slot.
    pub(super) fn next(self) -> u32 {
        (self.incarnation + 1) & (u32::MAX >> STATE_BITS)
    }
}

impl QpSlot {
    pub(super) fn word(&self) -> QpWord {
        QpWord::unpack(self.packed_word())
    }

    #[inline]
    pub(super) fn packed_word(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    pub(super) fn set_word(&self, word: QpWord) {
        self.word.store(word.pack(), Ordering::Release);
    }

    /// Whether the keys of the region in `slot` are usable on this queue pair.
    #[inline]
    pub(super) fn is_bound(&self, slot: usize) -> bool {
        self.bound[slot / 64].load(Ordering::Acquire) >> (slot % 64) & 1 == 1
    }

    pub(super) fn bind(&self, slot: usize) {
        self.bound[slot / 64].fetch_or(1 << (slot % 64), Ordering::Release);
    }

    pub(super) fn unbind(&self, slot: usize) {
        self.bound[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::Release);
    }

    pub(super) fn unbind_all(&self) {
        self.bound
            .iter()
            .for_each(|word| word.store(0, Ordering::Release));
    }
}

#[repr(C)]
struct Layout {
    magic: AtomicU64,
    version: AtomicU32,
    pid: AtomicU32,
    start_time: AtomicU64,
    nonce: AtomicU64,
    dead: AtomicU32,
    _pad: u32,
    atomics: UnsafeCell<libc::pthread_mutex_t>,
    regions: [RegionSlot; MAX_REGIONS],
    qps: [QpSlot; MAX_QPS],
}

/// A port, mapped here: our own or a peer's.
pub(super) struct Port {
    mapping: Mapping,
    nonce: u64,
}

// SAFETY: all fields of the layout but the mutex are atomics, and the mutex is made to be used by several threads and processes.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

impl Port {
    /// Makes the port of a new NIC. The descriptor stays open as long as peers may come.
    pub(super) fn create() -> Result<(Port, OwnedFd), NicError> {
        let file = sealed_memfd("npushmem-nic-port", size_of::<Layout>() as u64)?;
        let nonce = random_nonzero()?;
        let port = Port {
            mapping: Mapping::new(file.as_fd(), 0, size_of::<Layout>())?,
            nonce,
        };
        let pid = std::process::id();
        let started = start_time(pid).map_err(|source| NicError::System {
            call: "reading /proc/self/stat",
            source,
        })?;
        let layout = port.layout();
        init_robust_mutex(layout.atomics.get())?;
        layout.version.store(QpAddress::VERSION, Ordering::Relaxed);
        layout.pid.store(pid, Ordering::Relaxed);
        layout.start_time.store(started, Ordering::Relaxed);
        layout.nonce.store(nonce, Ordering::Relaxed);
        // Keys of different NICs differ, so that a key used with the wrong peer is noticed.
        for (slot, region) in layout.regions.iter().enumerate() {
            region
                .generation
                .store((nonce as u32).wrapping_add(slot as u32), Ordering::Relaxed);
        }
        layout.magic.store(MAGIC, Ordering::Release);
        Ok((port, file))
    }

    /// Maps a peer's port.
    pub(super) fn import(address: &QpAddress) -> Result<Port, NicError> {
        let foreign = ForeignFile {
            pid: address.pid,
            start_time: address.start_time,
            fd: address.fd,
            inode: address.inode,
            what: "NIC port",
        };
        let file = foreign.open()?;
        let size = rustix::fs::fstat(&file)
            .map_err(NicError::system("fstat"))?
            .st_size;
        if size as u64 != size_of::<Layout>() as u64 {
            return Err(NicError::Address {
                why: format!(
                    "its port has {size} bytes, expected {}",
                    size_of::<Layout>()
                ),
            });
        }
        let port = Port {
            mapping: Mapping::new(file.as_fd(), 0, size_of::<Layout>())?,
            nonce: address.nonce,
        };
        let layout = port.layout();
        if layout.magic.load(Ordering::Acquire) != MAGIC {
            return Err(NicError::Address {
                why: "its port has another magic number".to_owned(),
            });
        }
        let found = (
            layout.version.load(Ordering::Relaxed),
            layout.pid.load(Ordering::Relaxed),
            layout.start_time.load(Ordering::Relaxed),
            layout.nonce.load(Ordering::Relaxed),
        );
        let expected = (
            QpAddress::VERSION,
            address.pid,
            address.start_time,
            address.nonce,
        );
        if found != expected {
            let why = format!(
                "its port says (version, pid, start, nonce) = {found:?}, expected {expected:?}"
            );
            return Err(NicError::Address { why });
        }
        Ok(port)
    }

    fn layout(&self) -> &Layout {
        // SAFETY: the mapping has the layout's size, is page-aligned, sealed against shrinking, and lives as long as `self`; every bit
        // pattern is valid for atomics, and the mutex is only used through its address.
        unsafe { &*self.mapping.base().cast::<Layout>() }
    }

    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The owning process: number and start time.
    pub(super) fn owner(&self) -> (u32, u64) {
        let layout = self.layout();
        (
            layout.pid.load(Ordering::Relaxed),
            layout.start_time.load(Ordering::Relaxed),
        )
    }

    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.layout().dead.load(Ordering::Relaxed) != 0
    }

    pub(super) fn mark_dead(&self) {
        self.layout().dead.store(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn region(&self, slot: usize) -> Option<&RegionSlot> {
        self.layout().regions.get(slot)
    }

    #[inline]
    pub(super) fn qp(&self, slot: usize) -> Option<&QpSlot> {
        self.layout().qps.get(slot)
    }

    /// Takes the lock of this port's atomics; `None` when a stopped process holds it for too long.
    pub(super) fn lock_atomics(&self) -> Option<AtomicsGuard<'_>> {
        let mutex = self.layout().atomics.get();
        // SAFETY: the mutex was initialised by the owner and stays mapped as long as the guard borrows the port.
        let mut result = unsafe { libc::pthread_mutex_trylock(mutex) };
        if result == libc::EBUSY {
            let deadline = realtime_deadline(LOCK_TIMEOUT);
            // SAFETY: as above; the deadline is a valid time.
            result = unsafe { libc::pthread_mutex_timedlock(mutex, &deadline) };
        }
        if result == libc::EOWNERDEAD {
            // The holder died between its read and its write of one word: either happened or not, the word is whole.
            // SAFETY: this thread holds the mutex, in the state that this call repairs.
            result = unsafe { libc::pthread_mutex_consistent(mutex) };
        }
        (result == 0).then_some(AtomicsGuard { port: self })
    }
}

impl RegionSlot {
    /// The key for the next registration in this slot, numbered `slot`: HNS puts the index's top byte into the key's low byte.
    pub(super) fn next_key(&self, slot: usize) -> u32 {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        let index = generation << MAX_REGIONS.ilog2() | slot as u32;
        index.rotate_left(8)
    }
}

/// The slot that a key names.
#[inline]
pub(super) fn key_slot(key: u32) -> usize {
    key.rotate_right(8) as usize & (MAX_REGIONS - 1)
}

/// The right to run one atomic.
pub(super) struct AtomicsGuard<'a> {
    port: &'a Port,
}

impl Drop for AtomicsGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread locked the mutex when the guard was made.
        unsafe { libc::pthread_mutex_unlock(self.port.layout().atomics.get()) };
    }
}

fn realtime_deadline(wait: Duration) -> libc::timespec {
    let at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        + wait;
    libc::timespec {
        tv_sec: at.as_secs() as libc::time_t,
        tv_nsec: at.subsec_nanos() as libc::c_long,
    }
}

fn check(call: &'static str, result: libc::c_int) -> Result<(), NicError> {
    match result {
        0 => Ok(()),
        code => Err(NicError::System {
            call,
            source: std::io::Error::from_raw_os_error(code),
        }),
    }
}

fn init_robust_mutex(mutex: *mut libc::pthread_mutex_t) -> Result<(), NicError> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: the attributes are initialised first and destroyed last; the mutex is fresh memory of this process that nobody uses yet.
    unsafe {
        check(
            "pthread_mutexattr_init",
            libc::pthread_mutexattr_init(attributes),
        )?;
        let set = check(
            "pthread_mutexattr_setpshared",
            libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED),
        )
        .and_then(|()| {
            check(
                "pthread_mutexattr_setrobust",
                libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST),
            )
        })
        .and_then(|()| {
            check(
                "pthread_mutex_init",
                libc::pthread_mutex_init(mutex, attributes),
            )
        });
        libc::pthread_mutexattr_destroy(attributes);
        set
    }
}

fn random_nonzero() -> Result<u64, NicError> {
    let mut bytes = [0_u8; 8];
    // SAFETY: the buffer is valid for the length given.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(NicError::System {
            call: "getrandom",
            source: std::io::Error::last_os_error(),
        });
    }
    Ok(u64::from_ne_bytes(bytes) | 1)
}

/// How peers find a port whose descriptor is `file`.
pub(super) fn address_of(
    port: &Port,
    file: &OwnedFd,
    qpn: u32,
    incarnation: u32,
) -> Result<QpAddress, NicError> {
    let (pid, start_time) = port.owner();
    let inode = rustix::fs::fstat(file)
        .map_err(NicError::system("fstat"))?
        .st_ino;
    Ok(QpAddress {
        magic: QpAddress::MAGIC,
        version: QpAddress::VERSION,
        pid,
        fd: file.as_raw_fd(),
        start_time,
        inode,
        nonce: port.nonce(),
        qpn,
        incarnation,
        verbs: VerbsAddress::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_slot_and_changes_with_every_registration() {
        let (port, _file) = Port::create().unwrap();
        for slot in [0, 1, 255, MAX_REGIONS - 1] {
            let region = port.region(slot).unwrap();
            let keys: Vec<u32> = (0..3).map(|_| region.next_key(slot)).collect();
            assert!(keys.iter().all(|key| key_slot(*key) == slot));
            assert!(keys[0] != keys[1] && keys[1] != keys[2]);
        }
    }

    #[test]
    fn an_imported_port_shows_the_owners_words() {
        let (port, file) = Port::create().unwrap();
        let address = address_of(&port, &file, 9, 3).unwrap();
        let imported = Port::import(&address).unwrap();
        port.qp(9).unwrap().set_word(QpWord {
            incarnation: 3,
            state: QpState::Rts,
        });
        assert_eq!(
            imported.qp(9).unwrap().word(),
            QpWord {
                incarnation: 3,
                state: QpState::Rts
            }
        );
        port.qp(9).unwrap().bind(77);
        assert!(imported.qp(9).unwrap().is_bound(77));
        assert!(!imported.qp(9).unwrap().is_bound(78));
        imported.mark_dead();
        assert!(port.is_dead());
    }

    #[test]
    fn another_nonce_or_magic_is_refused() {
        let (port, file) = Port::create().unwrap();
        let address = address_of(&port, &file, 9, 3).unwrap();
        let refused = |address: QpAddress| {
            Port::import(&address)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(refused(QpAddress {
            nonce: address.nonce + 2,
            ..address
        })
        .contains("nonce"));
        port.layout().magic.store(0, Ordering::Relaxed);
        assert!(refused(address).contains("magic"));
    }

    #[test]
    fn the_lock_survives_a_thread_that_dies_holding_it() {
        let (port, _file) = Port::create().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| std::mem::forget(port.lock_atomics()));
        });
        assert!(port.lock_atomics().is_some());
        assert!(
            port.lock_atomics().is_some(),
            "and is usable again after that"
        );
    }
}
