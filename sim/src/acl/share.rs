//! Memory for other processes: shareable handles of physical memory, IPC keys of buffers.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use npushmem_ffi::acl;

use super::mapped::PHYSICAL;
use super::{array, put, text};
use crate::device;
use crate::error::{entries, fail, invalid, system, Outcome};
use crate::memory::{self, Kind, Region};
use crate::share::{self, Description, Ticket, What, KEY_BYTES};
use crate::vmm::Physical;

/// What this process knows about an IPC key.
enum Key {
    /// It exported the buffer at this address.
    Exported(u64, Ticket),
    /// It imported the buffer and mapped it at this address, so many bytes, inside of a range of its own.
    Imported {
        va: u64,
        range: (u64, u64),
        _fd: OwnedFd,
    },
}

static KEYS: Mutex<BTreeMap<String, Key>> = Mutex::new(BTreeMap::new());

fn keys() -> MutexGuard<'static, BTreeMap<String, Key>> {
    KEYS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the exports of a buffer that is freed.
pub(super) fn withdraw_of(address: u64) {
    keys().retain(|_, key| match key {
        Key::Exported(va, ticket) if *va == address => {
            share::withdraw(*ticket);
            false
        }
        _ => true,
    });
}

fn close(key: Key) -> Outcome {
    match key {
        Key::Exported(_, ticket) => {
            share::withdraw(ticket);
            Ok(())
        }
        Key::Imported { va, range, .. } => {
            memory::unregister(va);
            // SAFETY: the range was reserved for this import alone, which ends.
            unsafe { rustix::mm::munmap(range.0 as *mut c_void, range.1 as usize) }
                .map_err(|e| system("munmap", e))
        }
    }
}

fn export_buffer(address: u64, size: u64, any_pid: bool) -> Outcome<(String, Ticket)> {
    let region = memory::lookup(address, size)
        .filter(|region| region.kind == Kind::Device && !region.reserved);
    let Some(region) = region else {
        return Err(invalid(format!("[{address:#x}, {address:#x} + {size}) does not lie in a buffer of aclrtMalloc of this process")));
    };
    if size == 0 || !address.is_multiple_of(region.page) || !size.is_multiple_of(region.page) {
        return Err(fail(
            acl::ACL_ERROR_RT_PARAM_INVALID,
            format!("devPtr {address:#x} and size {size} must be multiples of the buffer's page, {} bytes (documented): allocate whole pages", region.page),
        ));
    }
    let description = Description {
        what: What::Buffer,
        device: region.device,
        attr: 0,
        offset: region.offset + (address - region.va),
        size,
        page: region.page,
    };
    // SAFETY: the registry's descriptor is the arena's, which is never closed.
    let fd = unsafe { BorrowedFd::borrow_raw(region.fd) };
    let ticket = share::export(fd, description, any_pid)?;
    Ok((ticket.to_key(), ticket))
}

fn import_buffer(key: &str, enable_peer: bool) -> Outcome<u64> {
    if keys().contains_key(key) && !Ticket::from_key(key)?.is_own() {
        return Err(invalid(
            "this process imported the key already: close it first (aclrtIpcMemClose)",
        ));
    }
    let import = share::import(Ticket::from_key(key)?, What::Buffer)?;
    let Description {
        device,
        offset,
        size,
        page,
        ..
    } = import.description;
    let here = device::current()?.device.clone();
    if !here.reaches(device) {
        if !enable_peer {
            return Err(invalid(format!(
                "the buffer is of device {device}: import with flag 1 (ENABLE_PEER_ACCESS), or call aclrtDeviceEnablePeerAccess({device}, 0) first"
            )));
        }
        here.enable_peer(device);
    }
    let bytes = size + 2 * page;
    let base = memory::reserve_address_range(bytes, page)?;
    let va = base + page;
    // SAFETY: the middle of the range that was reserved for this.
    unsafe { memory::map_over(va, size, &import.fd, offset)? };
    memory::register(Region {
        va,
        len: size,
        fd: import.fd.as_raw_fd(),
        offset,
        kind: Kind::Peer,
        device,
        page,
        reserved: false,
    })?;
    keys().insert(
        key.to_owned(),
        Key::Imported {
            va,
            range: (base, bytes),
            _fd: import.fd,
        },
    );
    Ok(va)
}

fn import_physical(ticket: Ticket, handle: *mut acl::aclrtDrvMemHandle) -> Outcome {
    if handle.is_null() {
        return Err(invalid("handle is NULL"));
    }
    put(
        handle,
        "handle",
        PHYSICAL.insert(Arc::new(Physical::import(ticket)?)),
    )
}

/// Reads a shareable handle of the kind that the caller names.
fn ticket_at(handle: *const c_void, kind: acl::aclrtMemSharedHandleType) -> Outcome<Ticket> {
    if handle.is_null() {
        return Err(invalid("shareableHandle is NULL"));
    }
    match kind {
        // SAFETY: a DEFAULT handle is a uint64_t.
        acl::ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT => Ok(Ticket::from_u64(unsafe {
            handle.cast::<u64>().read_unaligned()
        })),
        acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC => {
            // SAFETY: a FABRIC handle has 128 bytes.
            Ticket::from_fabric(unsafe { &*handle.cast::<[u8; 128]>() })
        }
        other => Err(unknown_kind(other)),
    }
}

fn unknown_kind(kind: acl::aclrtMemSharedHandleType) -> crate::error::Fail {
    invalid(format!(
        "shareType {kind}: 1 (DEFAULT) or 2 (FABRIC) is wanted"
    ))
}

entries! {
    fn aclrtMemExportToShareableHandle(handle: acl::aclrtDrvMemHandle, kind: acl::aclrtMemHandleType, flags: u64, out: *mut u64) {
        if kind != acl::ACL_MEM_HANDLE_TYPE_NONE {
            return Err(invalid(format!("handleType {kind}: ACL_MEM_HANDLE_TYPE_NONE (0) is wanted")));
        }
        if out.is_null() {
            return Err(invalid("shareableHandle is NULL"));
        }
        put(out, "shareableHandle", PHYSICAL.get(handle)?.export(flags)?.to_u64()?)
    }

    fn aclrtMemExportToShareableHandleV2(handle: acl::aclrtDrvMemHandle, flags: u64, kind: acl::aclrtMemSharedHandleType, out: *mut c_void) {
        if out.is_null() {
            return Err(invalid("shareableHandle is NULL"));
        }
        let physical = PHYSICAL.get(handle)?;
        match kind {
            acl::ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT => {
                let value = physical.export(flags)?.to_u64()?;
                // SAFETY: the caller provides a uint64_t for a DEFAULT handle.
                unsafe { out.cast::<u64>().write_unaligned(value) };
            }
            acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC => {
                let bytes = physical.export(flags)?.to_fabric(physical.size);
                // SAFETY: the caller provides 128 bytes for a FABRIC handle.
                unsafe { out.cast::<[u8; 128]>().write(bytes) };
            }
            other => return Err(unknown_kind(other)),
        }
        Ok(())
    }

    fn aclrtMemImportFromShareableHandle(shareable: u64, id: i32, handle: *mut acl::aclrtDrvMemHandle) {
        device::check(id)?;
        device::current()?;
        import_physical(Ticket::from_u64(shareable), handle)
    }

    fn aclrtMemImportFromShareableHandleV2(shareable: *mut c_void, kind: acl::aclrtMemSharedHandleType, flags: u64, handle: *mut acl::aclrtDrvMemHandle) {
        device::current()?;
        if flags != 0 {
            return Err(invalid(format!("flags {flags:#x}: the parameter is reserved and must be 0 (documented)")));
        }
        import_physical(ticket_at(shareable, kind)?, handle)
    }

    fn aclrtMemSetPidToShareableHandle(shareable: u64, pids: *mut i32, count: usize) {
        // SAFETY: the caller passes `count` process numbers.
        share::allow(Ticket::from_u64(shareable), unsafe { array(pids, count, "pid") }?)
    }

    fn aclrtMemSetPidToShareableHandleV2(shareable: *mut c_void, kind: acl::aclrtMemSharedHandleType, pids: *mut i32, count: usize) {
        // SAFETY: the caller passes `count` process numbers.
        share::allow(ticket_at(shareable, kind)?, unsafe { array(pids, count, "pid") }?)
    }

    fn aclrtDeviceGetBareTgid(pid: *mut i32) {
        put(pid, "pid", std::process::id() as i32)
    }

    fn aclrtIpcMemGetExportKey(pointer: *mut c_void, size: usize, key: *mut c_char, length: usize, flags: u64) {
        if length != KEY_BYTES {
            return Err(invalid(format!("len {length}: a key has exactly {KEY_BYTES} bytes (documented)")));
        }
        if key.is_null() {
            return Err(invalid("key is NULL"));
        }
        let any_pid = match flags {
            0 => false,
            1 => true,
            _ => return Err(invalid(format!("flags {flags:#x}: 0 or 1 (DISABLE_PID_VALIDATION) is wanted"))),
        };
        let (name, ticket) = export_buffer(pointer as u64, size as u64, any_pid)?;
        for (i, byte) in name.bytes().chain(std::iter::once(0)).enumerate() {
            // SAFETY: the caller says that there are KEY_BYTES bytes, which is the length of a key with its end.
            unsafe { key.add(i).write(byte as c_char) };
        }
        keys().insert(name, Key::Exported(pointer as u64, ticket));
        Ok(())
    }

    fn aclrtIpcMemClose(key: *const c_char) {
        let name = text(key, "key")?;
        let known = keys().remove(&name);
        known.map_or_else(|| Err(invalid("the key was neither exported nor imported by this process, or is closed already")), close)
    }

    fn aclrtIpcMemImportByKey(pointer: *mut *mut c_void, key: *const c_char, flags: u64) {
        if pointer.is_null() {
            return Err(invalid("devPtr is NULL"));
        }
        let enable_peer = match flags {
            0 => false,
            1 => true,
            _ => return Err(invalid(format!("flags {flags:#x}: 0 or 1 (ENABLE_PEER_ACCESS) is wanted"))),
        };
        put(pointer, "devPtr", import_buffer(&text(key, "key")?, enable_peer)? as *mut c_void)
    }

    fn aclrtIpcMemSetImportPid(key: *const c_char, pids: *mut i32, count: usize) {
        let ticket = Ticket::from_key(&text(key, "key")?)?;
        // SAFETY: the caller passes `count` process numbers.
        share::allow(ticket, unsafe { array(pids, count, "pid") }?)
    }
}
