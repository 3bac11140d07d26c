//! Sharing memory with other processes of the same user: shareable handles (a 64-bit number, or 128 bytes) and IPC keys (64 letters).
//!
//! Every process that exports keeps one small memfd, its export table. A handle names the process, the descriptor number of that table, a slot
//! in it and a nonce; the slot names the descriptor, inode and size of the memory. An importer opens both through `/proc/PID/fd`, and compares
//! start time, nonce and inode on the way, so that a handle of a dead process never reaches a newcomer with the same numbers. Nothing has a
//! name in a file system, so nothing is left behind by a crash. Called by `vmm.rs` and the IPC entries.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::{bytes_of, Pod, Zeroable};
use npushmem_ffi::acl;
use rustix::fs::{fcntl_get_seals, fstat, SealFlags};
use rustix::io::{pread, pwrite, Errno};

use crate::error::{fail, invalid, system, Fail, Outcome};
use crate::memory::sealed_memfd;

/// "NPUX" in memory order: begins an export table and a fabric handle.
const MAGIC: u32 = 0x5855_504e;
/// Version of the table and of the handles.
const VERSION: u32 = 1;
/// Exports of a process at one time: what the 64-bit handle has room for.
const SLOTS: usize = 1 << 12;
/// Bits of a process number in the 64-bit handle (Linux's largest is 2^22).
const PID_BITS: u32 = 22;
/// Bits of a descriptor number in the 64-bit handle.
const FD_BITS: u32 = 14;
/// Bits of a slot number in the 64-bit handle.
const SLOT_BITS: u32 = 12;
/// Bits of the nonce in the 64-bit handle.
const NONCE_BITS: u32 = 16;
/// Processes on a white list.
pub(crate) const MAX_PIDS: usize = 64;
/// Bytes of an IPC key, its end included (documented).
pub(crate) const KEY_BYTES: usize = acl::IPC_MEM_KEY_SIZE;
/// Letters that begin an IPC key.
const KEY_PREFIX: &str = "npusim1-";

const _: () = assert!(PID_BITS + FD_BITS + SLOT_BITS + NONCE_BITS == 64);

/// What is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum What {
    /// Physical memory of `aclrtMallocPhysical`.
    Physical = 1,
    /// A buffer of `aclrtMalloc`.
    Buffer = 2,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Header {
    magic: u32,
    version: u32,
    pid: u32,
    reserved: u32,
    start_time: u64,
    namespace: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Slot {
    /// 0: free; else a value of [`What`].
    what: u32,
    fd: i32,
    device: i32,
    attr: u32,
    nonce: u64,
    inode: u64,
    offset: u64,
    size: u64,
    page: u64,
    any_pid: u32,
    n_pids: u32,
    pids: [i32; MAX_PIDS],
}

fn slot_offset(slot: usize) -> u64 {
    (size_of::<Header>() + slot * size_of::<Slot>()) as u64
}

/// The bytes of a fabric handle.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Fabric {
    magic: u32,
    version: u32,
    pid: u32,
    table: u32,
    slot: u32,
    reserved: u32,
    nonce: u64,
    start_time: u64,
    namespace: u64,
    size: u64,
    unused: [u64; 9],
}
const _: () = assert!(size_of::<Fabric>() == size_of::<acl::aclrtMemFabricHandle>());

/// Names an export in any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pid: u32,
    table: u32,
    slot: u32,
    /// The whole nonce, or its lowest bits for a ticket from a 64-bit handle.
    nonce: u64,
    nonce_mask: u64,
    /// Known for fabric handles only.
    start_time: Option<u64>,
    namespace: Option<u64>,
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Ticket {
    pub(crate) fn to_u64(self) -> Outcome<u64> {
        if u64::from(self.table) > mask(FD_BITS) || u64::from(self.pid) > mask(PID_BITS) {
            return Err(fail(
                acl::ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                format!(
                    "descriptor {} of process {} does not fit a 64-bit handle: export before the process has opened that many files, or ask for a FABRIC handle",
                    self.table, self.pid
                ),
            ));
        }
        Ok((u64::from(self.pid) << (64 - PID_BITS))
            | (u64::from(self.table) << (SLOT_BITS + NONCE_BITS))
            | (u64::from(self.slot) << NONCE_BITS)
            | (self.nonce & mask(NONCE_BITS)))
    }

    pub(crate) fn from_u64(handle: u64) -> Self {
        Self {
            pid: (handle >> (64 - PID_BITS)) as u32,
            table: ((handle >> (SLOT_BITS + NONCE_BITS)) & mask(FD_BITS)) as u32,
            slot: ((handle >> NONCE_BITS) & mask(SLOT_BITS)) as u32,
            nonce: handle & mask(NONCE_BITS),
            nonce_mask: mask(NONCE_BITS),
            start_time: None,
            namespace: None,
        }
    }

    pub(crate) fn to_fabric(self, size: u64) -> [u8; 128] {
        let mut out = [0; 128];
        out.copy_from_slice(bytes_of(&Fabric {
            magic: MAGIC,
            version: VERSION,
            pid: self.pid,
            table: self.table,
            slot: self.slot,
            reserved: 0,
            nonce: self.nonce,
            start_time: self.start_time.unwrap_or(0),
            namespace: self.namespace.unwrap_or(0),
            size,
            unused: [0; 9],
        }));
        out
    }

    pub(crate) fn from_fabric(bytes: &[u8; 128]) -> Outcome<Self> {
        let fabric: Fabric = bytemuck::pod_read_unaligned(bytes);
        if fabric.magic != MAGIC || fabric.version != VERSION {
            return Err(not_a_handle(
                "the 128 bytes are no fabric handle of this emulator",
            ));
        }
        Ok(Self {
            pid: fabric.pid,
            table: fabric.table,
            slot: fabric.slot,
            nonce: fabric.nonce,
            nonce_mask: u64::MAX,
            start_time: Some(fabric.start_time),
            namespace: Some(fabric.namespace),
        })
    }

    pub(crate) fn to_key(self) -> String {
        format!(
            "{KEY_PREFIX}{:08x}{:08x}{:08x}{:016x}{:016x}",
            self.pid,
            self.table,
            self.slot,
            self.nonce,
            self.start_time.unwrap_or(0)
        )
    }

    pub(crate) fn from_key(key: &str) -> Outcome<Self> {
        let digits = key
            .strip_prefix(KEY_PREFIX)
            .filter(|digits| digits.len() == 56 && digits.is_ascii());
        let field = |from: usize, to: usize| {
            digits.and_then(|digits| u64::from_str_radix(&digits[from..to], 16).ok())
        };
        let all = (
            field(0, 8),
            field(8, 16),
            field(16, 24),
            field(24, 40),
            field(40, 56),
        );
        let (Some(pid), Some(table), Some(slot), Some(nonce), Some(start)) = all else {
            return Err(not_a_handle(&format!(
                "\"{key}\" is no IPC key of this emulator"
            )));
        };
        Ok(Self {
            pid: pid as u32,
            table: table as u32,
            slot: slot as u32,
            nonce,
            nonce_mask: u64::MAX,
            start_time: Some(start),
            namespace: None,
        })
    }

    /// Whether this process made the export.
    pub(crate) fn is_own(&self) -> bool {
        self.pid == std::process::id()
    }
}

fn not_a_handle(why: &str) -> Fail {
    fail(
        acl::ACL_ERROR_RT_INVALID_HANDLE,
        format!("{why}; pass exactly what the export returned"),
    )
}

/// The start time of a process in clock ticks after boot: with the number it names a process for good.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks; what follows the last one does not. Field 22 is the 20th after it.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// The inode of this process's PID namespace; 0 when it cannot be read.
fn namespace() -> u64 {
    std::fs::read_link("/proc/self/ns/pid")
        .ok()
        .and_then(|link| {
            link.to_str().and_then(|text| {
                text.trim_end_matches(']')
                    .rsplit_once('[')
                    .and_then(|(_, n)| n.parse().ok())
            })
        })
        .unwrap_or(0)
}

struct Table {
    fd: OwnedFd,
    header: Header,
    used: Vec<bool>,
    next: usize,
}

static TABLE: OnceLock<Mutex<Option<Table>>> = OnceLock::new();

fn table() -> Outcome<MutexGuard<'static, Option<Table>>> {
    let mut guard = TABLE
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if guard
        .as_ref()
        .is_none_or(|table| table.header.pid != std::process::id())
    {
        let fd = sealed_memfd("npusim exports", slot_offset(SLOTS))?;
        let pid = std::process::id();
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            pid,
            reserved: 0,
            start_time: start_time(pid)
                .ok_or_else(|| system("cannot read /proc/self/stat", "is /proc mounted?"))?,
            namespace: namespace(),
        };
        pwrite(&fd, bytes_of(&header), 0)
            .map_err(|e| system("cannot write the export table", e))?;
        *guard = Some(Table {
            fd,
            header,
            used: vec![false; SLOTS],
            next: 0,
        });
    }
    Ok(guard)
}

/// Makes the export table early, so that its descriptor number is small enough for 64-bit handles.
pub(crate) fn prepare() -> Outcome {
    table().map(|_| ())
}

fn nonce() -> Outcome<u64> {
    let mut bytes = [0; 8];
    let mut source =
        File::open("/dev/urandom").map_err(|e| system("cannot open /dev/urandom", e))?;
    std::io::Read::read_exact(&mut source, &mut bytes)
        .map_err(|e| system("cannot read /dev/urandom", e))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// What an export says about its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) what: What,
    pub(crate) device: i32,
    pub(crate) attr: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) page: u64,
}

/// Exports the memory behind `fd` to the processes of the white list ([`allow`]), or to all of this user's.
pub(crate) fn export(
    fd: BorrowedFd<'_>,
    description: Description,
    any_pid: bool,
) -> Outcome<Ticket> {
    let inode = fstat(fd).map_err(|e| system("fstat", e))?.st_ino;
    let nonce = nonce()?;
    let mut guard = table()?;
    let Some(table) = guard.as_mut() else {
        return Err(system("export", "no table"));
    };
    let slot = (0..SLOTS)
        .map(|i| (table.next + i) % SLOTS)
        .find(|slot| !table.used[*slot])
        .ok_or_else(|| {
            fail(
                acl::ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                format!(
                    "this process has {SLOTS} exports already; free some of the exported memory"
                ),
            )
        })?;
    let entry = Slot {
        what: description.what as u32,
        fd: fd.as_raw_fd(),
        device: description.device,
        attr: description.attr,
        nonce,
        inode,
        offset: description.offset,
        size: description.size,
        page: description.page,
        any_pid: u32::from(any_pid),
        n_pids: 0,
        pids: [0; MAX_PIDS],
    };
    pwrite(&table.fd, bytes_of(&entry), slot_offset(slot))
        .map_err(|e| system("cannot write the export table", e))?;
    table.used[slot] = true;
    table.next = slot + 1;
    Ok(Ticket {
        pid: table.header.pid,
        table: table.fd.as_raw_fd() as u32,
        slot: slot as u32,
        nonce,
        nonce_mask: u64::MAX,
        start_time: Some(table.header.start_time),
        namespace: Some(table.header.namespace),
    })
}

fn read_slot(fd: impl AsFd, slot: u32) -> Result<Slot, Errno> {
    let mut bytes = [0u8; size_of::<Slot>()];
    let got = pread(fd, &mut bytes[..], slot_offset(slot as usize))?;
    if got < bytes.len() {
        return Err(Errno::INVAL);
    }
    Ok(bytemuck::pod_read_unaligned(&bytes))
}

/// Ends an export of this process. Those who imported it keep the memory.
pub(crate) fn withdraw(ticket: Ticket) {
    if let Ok(mut guard) = table() {
        if let Some(table) = guard
            .as_mut()
            .filter(|table| table.header.pid == ticket.pid)
        {
            // A failure leaves an entry whose descriptor is closed: importers get "withdrawn" by its inode.
            let _ = pwrite(
                &table.fd,
                bytes_of(&Slot::zeroed()),
                slot_offset(ticket.slot as usize),
            );
            if let Some(used) = table.used.get_mut(ticket.slot as usize) {
                *used = false;
            }
        }
    }
}

/// Puts processes on an export's white list.
pub(crate) fn allow(ticket: Ticket, pids: &[i32]) -> Outcome {
    let guard = table()?;
    let Some(table) = guard.as_ref().filter(|_| ticket.is_own()) else {
        return Err(invalid(format!(
            "process {} made this export, so only it can say who may import it",
            ticket.pid
        )));
    };
    let mut slot =
        read_slot(&table.fd, ticket.slot).map_err(|e| system("cannot read the export table", e))?;
    if slot.what == 0 || slot.nonce & ticket.nonce_mask != ticket.nonce {
        return Err(not_a_handle(
            "nothing is exported under this handle (any more)",
        ));
    }
    for pid in pids {
        let n = slot.n_pids as usize;
        if slot.pids[..n].contains(pid) {
            continue;
        }
        if n == MAX_PIDS {
            return Err(fail(
                acl::ACL_ERROR_RT_OVER_LIMIT,
                format!("the emulator's white list holds {MAX_PIDS} processes; export with DISABLE_PID_VALIDATION instead"),
            ));
        }
        slot.pids[n] = *pid;
        slot.n_pids += 1;
    }
    pwrite(
        &table.fd,
        bytes_of(&slot),
        slot_offset(ticket.slot as usize),
    )
    .map_err(|e| system("cannot write the export table", e))?;
    Ok(())
}

/// Another process's memory.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) fd: OwnedFd,
    pub(crate) pid: u32,
    pub(crate) description: Description,
}

fn open_foreign(pid: u32, fd: RawFd, what: &str) -> Outcome<OwnedFd> {
    let path =
        std::ffi::CString::new(format!("/proc/{pid}/fd/{fd}")).map_err(|e| system("a path", e))?;
    // SAFETY: `path` is a NUL-terminated string.
    let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if opened >= 0 {
        // SAFETY: open returned a descriptor that nobody else owns.
        return Ok(unsafe { OwnedFd::from_raw_fd(opened) });
    }
    let error = std::io::Error::last_os_error();
    let (code, why) = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => (
            acl::ACL_ERROR_RT_NO_PERMISSION,
            "the system refuses: the process belongs to another user or user namespace, or is not dumpable (PR_SET_DUMPABLE, set-user-ID); run all PEs as one \
             user in one container",
        ),
        Some(libc::ENOENT | libc::ESRCH) if start_time(pid).is_none() => (
            acl::ACL_ERROR_RT_IPC_ERROR,
            "there is no such process here: it has ended, or it lives in another PID namespace (another container); run all PEs of a machine in one PID namespace",
        ),
        Some(libc::ENOENT) => (acl::ACL_ERROR_RT_INVALID_HANDLE, "the process has no such descriptor: the export was withdrawn, or the handle is not from there"),
        _ => (acl::ACL_ERROR_RT_IPC_ERROR, "the system refuses"),
    };
    Err(fail(
        code,
        format!("cannot open {what} of process {pid} through /proc/{pid}/fd/{fd}: {error}; {why}"),
    ))
}

/// Opens the memory that a ticket names.
pub(crate) fn import(ticket: Ticket, wanted: What) -> Outcome<Import> {
    if ticket.is_own() {
        return Err(invalid(
            "this process made the export itself: a handle can be imported only in another process (use the memory you have)".to_owned(),
        ));
    }
    let here = namespace();
    if ticket
        .namespace
        .is_some_and(|there| there != 0 && here != 0 && there != here)
    {
        return Err(fail(
            acl::ACL_ERROR_RT_IPC_ERROR,
            format!(
                "process {} lives in another PID namespace (another container or machine): the emulator shares memory within one only",
                ticket.pid
            ),
        ));
    }
    let table = open_foreign(ticket.pid, ticket.table as RawFd, "the export table")?;
    let mut bytes = [0u8; size_of::<Header>()];
    let got = pread(&table, &mut bytes[..], 0).unwrap_or(0);
    let header: Header = bytemuck::pod_read_unaligned(&bytes);
    if got < bytes.len() || header.magic != MAGIC || header.version != VERSION {
        return Err(not_a_handle(&format!(
            "descriptor {} of process {} is no export table",
            ticket.table, ticket.pid
        )));
    }
    let now = start_time(ticket.pid);
    if header.pid != ticket.pid
        || now != Some(header.start_time)
        || ticket
            .start_time
            .is_some_and(|start| start != header.start_time)
    {
        return Err(fail(
            acl::ACL_ERROR_RT_IPC_ERROR,
            format!("the process that made the export has ended; process {} is another one with its number", ticket.pid),
        ));
    }
    let slot = read_slot(&table, ticket.slot)
        .map_err(|_| not_a_handle("the handle names no slot of the export table"))?;
    if slot.what != wanted as u32 || slot.nonce & ticket.nonce_mask != ticket.nonce {
        return Err(not_a_handle(&format!(
            "process {} exports nothing under this handle (withdrawn, or another kind of memory)",
            ticket.pid
        )));
    }
    let me = std::process::id() as i32;
    let allowed = &slot.pids[..(slot.n_pids as usize).min(MAX_PIDS)];
    if slot.any_pid == 0 && !allowed.contains(&me) {
        return Err(fail(
            acl::ACL_ERROR_RT_NO_PERMISSION,
            format!(
                "process {me} is not on the white list of the export ({allowed:?}): the exporter names it with the SetPid call of this kind of handle \
                 (aclrtDeviceGetBareTgid tells the number), or exports with DISABLE_PID_VALIDATION"
            ),
        ));
    }
    let fd = open_foreign(ticket.pid, slot.fd, "the memory")?;
    let sealed = fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    if fstat(&fd).map_err(|e| system("fstat", e))?.st_ino != slot.inode || !sealed {
        return Err(not_a_handle(&format!(
            "process {} has closed the memory behind this handle",
            ticket.pid
        )));
    }
    let description = Description {
        what: wanted,
        device: slot.device,
        attr: slot.attr,
        offset: slot.offset,
        size: slot.size,
        page: slot.page,
    };
    Ok(Import {
        fd,
        pid: ticket.pid,
        description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            pid: 4_194_303,
            table: 16_383,
            slot: 4095,
            nonce: 0x1122_3344_5566_7788,
            nonce_mask: u64::MAX,
            start_time: Some(99),
            namespace: Some(7),
        }
    }

    #[test]
    fn a_ticket_survives_each_of_its_forms() {
        let short = Ticket::from_u64(ticket().to_u64().expect("fits"));
        assert_eq!(
            (short.pid, short.table, short.slot, short.nonce),
            (4_194_303, 16_383, 4095, 0x7788)
        );
        assert_eq!(Ticket::from_fabric(&ticket().to_fabric(5)), Ok(ticket()));
        let key = ticket().to_key();
        assert_eq!(key.len() + 1, KEY_BYTES);
        assert_eq!(
            Ticket::from_key(&key),
            Ok(Ticket {
                namespace: None,
                ..ticket()
            })
        );
    }

    #[test]
    fn garbage_is_no_ticket() {
        assert!(Ticket::from_fabric(&[7; 128]).is_err());
        for key in [
            "",
            "npusim1-",
            "npusim1-zz",
            &"x".repeat(64),
            &format!("npusim1-{}", "é".repeat(28)),
        ] {
            assert!(Ticket::from_key(key).is_err(), "{key}");
        }
        let huge = Ticket {
            table: 20_000,
            ..ticket()
        };
        assert!(huge
            .to_u64()
            .expect_err("too large")
            .text
            .contains("FABRIC"));
    }

    #[test]
    fn the_own_start_time_is_known() {
        assert!(start_time(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_time(u32::MAX), None);
    }
}
