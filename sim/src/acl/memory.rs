//! Device memory, pinned host memory, copies.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use npushmem_ffi::acl;

use super::put;
use crate::device;
use crate::error::{entries, fail, invalid, Outcome};
use crate::memory::{self, Fill, Kind, Region, HUGE_PAGE, PAGE};
use crate::stream;
use crate::task::{Copy, Set, Task};

/// Allocations up to this size get small pages even where huge ones are wanted first (documented).
const SMALL: u64 = 1 << 20;
/// Least alignment of device memory (documented: 64 bytes); here whole pages.
const ALIGN: u64 = PAGE;
/// Bits of a policy that say how memory is placed; the others name its kind.
const POLICY: u32 = 0xff;

fn page_of(policy: acl::aclrtMemMallocPolicy, size: u64) -> Outcome<u64> {
    Ok(match policy & POLICY {
        acl::ACL_MEM_MALLOC_HUGE_FIRST | acl::ACL_MEM_MALLOC_HUGE_FIRST_P2P => {
            if size > SMALL {
                HUGE_PAGE
            } else {
                PAGE
            }
        }
        acl::ACL_MEM_MALLOC_HUGE_ONLY | acl::ACL_MEM_MALLOC_HUGE_ONLY_P2P => HUGE_PAGE,
        acl::ACL_MEM_MALLOC_NORMAL_ONLY | acl::ACL_MEM_MALLOC_NORMAL_ONLY_P2P => PAGE,
        acl::ACL_MEM_MALLOC_HUGE1G_ONLY | acl::ACL_MEM_MALLOC_HUGE1G_ONLY_P2P => 1 << 30,
        other => {
            return Err(fail(
                acl::ACL_ERROR_RT_INVALID_MALLOC_TYPE,
                format!("policy {other:#x} is none that aclrtMalloc takes"),
            ))
        }
    })
}

fn attributes(address: u64) -> acl::aclrtPtrAttributes {
    let mut out = acl::aclrtPtrAttributes::default();
    match memory::containing(address) {
        Some(region) => {
            let on_device = region.on_device();
            out.location.type_ = if on_device {
                acl::ACL_MEM_LOCATION_TYPE_DEVICE
            } else {
                acl::ACL_MEM_LOCATION_TYPE_HOST
            };
            out.location.id = if on_device { region.device as u32 } else { 0 };
            out.pageSize = region.page as u32;
        }
        None => out.location.type_ = acl::ACL_MEM_LOCATION_TYPE_UNREGISTERED,
    }
    out
}

/// Regions of aclrtHostRegister: address and size.
static REGISTERED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn free_kind(address: *mut c_void, kind: Kind, wanted: &str, other: &str) -> Outcome {
    let at = address as u64;
    match memory::containing(at) {
        Some(region) if region.kind != kind || region.reserved => Err(invalid(format!(
            "{at:#x} is not {wanted}; {other} frees other memory"
        ))),
        Some(region) if region.va != at => Err(invalid(format!(
            "{at:#x} is {} bytes into an allocation: pass its beginning, {:#x}",
            at - region.va,
            region.va
        ))),
        Some(_) => {
            super::share::withdraw_of(at);
            memory::free(at)
        }
        None => Err(invalid(format!(
            "{at:#x} is no allocation of this runtime (never allocated, or freed already)"
        ))),
    }
}

entries! {
    fn aclrtMalloc(pointer: *mut *mut c_void, size: usize, policy: acl::aclrtMemMallocPolicy) {
        if size == 0 {
            return Err(fail(acl::ACL_ERROR_INVALID_PARAM, "size 0: at least one byte must be allocated"));
        }
        if pointer.is_null() {
            return Err(fail(acl::ACL_ERROR_INVALID_PARAM, "devPtr is NULL"));
        }
        let device = device::current()?.device.id;
        let region = memory::alloc_device_pages(device, size as u64, ALIGN, page_of(policy, size as u64)?, Fill::Poison)?;
        put(pointer, "devPtr", region.va as *mut c_void)
    }

    fn aclrtFree(pointer: *mut c_void) {
        free_kind(pointer, Kind::Device, "memory of aclrtMalloc", "aclrtFreeHost or aclrtFreePhysical")
    }

    fn aclrtMallocHost(pointer: *mut *mut c_void, size: usize) {
        if size == 0 {
            return Err(fail(acl::ACL_ERROR_INVALID_PARAM, "size 0: at least one byte must be allocated"));
        }
        if pointer.is_null() {
            return Err(fail(acl::ACL_ERROR_INVALID_PARAM, "hostPtr is NULL"));
        }
        put(pointer, "hostPtr", memory::alloc_host(size as u64)?.va as *mut c_void)
    }

    fn aclrtFreeHost(pointer: *mut c_void) {
        free_kind(pointer, Kind::Host, "memory of aclrtMallocHost", "aclrtFree or aclrtFreePhysical")
    }

    fn aclrtHostRegister(pointer: *mut c_void, size: u64, kind: acl::aclrtHostRegisterType, device_pointer: *mut *mut c_void) {
        device::current()?;
        let at = pointer as u64;
        if at == 0 || size == 0 {
            return Err(invalid(format!("ptr {at:#x}, size {size}: both must not be 0")));
        }
        if kind != acl::ACL_HOST_REGISTER_MAPPED {
            return Err(fail(acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, format!("type {kind}: the emulator has ACL_HOST_REGISTER_MAPPED (0) only")));
        }
        memory::register(Region { va: at, len: size, fd: -1, offset: 0, kind: Kind::Registered, device: 0, page: PAGE, reserved: false })?;
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).insert(at, size);
        // Kernels of the emulated NPU share the process's addresses.
        put(device_pointer, "devPtr", pointer).inspect_err(|_| {
            memory::unregister(at);
        })
    }

    fn aclrtHostUnregister(pointer: *mut c_void) {
        let at = pointer as u64;
        if REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).remove(&at).is_none() {
            return Err(invalid(format!("{at:#x} was not registered with aclrtHostRegister")));
        }
        memory::unregister(at);
        Ok(())
    }

    fn aclrtMemcpy(dst: *mut c_void, room: usize, src: *const c_void, count: usize, kind: acl::aclrtMemcpyKind) {
        device::current()?;
        Copy::new(dst as u64, room as u64, src as u64, count as u64, kind, false)?.perform();
        Ok(())
    }

    fn aclrtMemcpyAsync(dst: *mut c_void, room: usize, src: *const c_void, count: usize, kind: acl::aclrtMemcpyKind, stream: acl::aclrtStream) {
        let stream = stream::get(stream)?;
        stream.submit(Task::Copy(Copy::new(dst as u64, room as u64, src as u64, count as u64, kind, true)?))
    }

    fn aclrtMemset(pointer: *mut c_void, room: usize, value: i32, count: usize) {
        device::current()?;
        Set::new(pointer as u64, room as u64, value, count as u64)?.perform();
        Ok(())
    }

    fn aclrtMemsetAsync(pointer: *mut c_void, room: usize, value: i32, count: usize, stream: acl::aclrtStream) {
        let stream = stream::get(stream)?;
        stream.submit(Task::Set(Set::new(pointer as u64, room as u64, value, count as u64)?))
    }

    fn aclrtPointerGetAttributes(pointer: *const c_void, out: *mut acl::aclrtPtrAttributes) {
        if pointer.is_null() {
            return Err(invalid("ptr is NULL"));
        }
        put(out, "attributes", attributes(pointer as u64))
    }

    fn aclrtGetMemInfo(attribute: acl::aclrtMemAttr, free: *mut usize, total: *mut usize) {
        let device = device::current()?.device.id;
        let (free_bytes, total_bytes) = match attribute {
            acl::ACL_HBM_MEM
            | acl::ACL_HBM_MEM_HUGE
            | acl::ACL_HBM_MEM_NORMAL
            | acl::ACL_HBM_MEM_P2P_HUGE
            | acl::ACL_HBM_MEM_P2P_NORMAL
            | acl::ACL_HBM_MEM_HUGE1G
            | acl::ACL_HBM_MEM_P2P_HUGE1G => memory::usage(device)?,
            acl::ACL_DDR_MEM | acl::ACL_DDR_MEM_HUGE | acl::ACL_DDR_MEM_NORMAL | acl::ACL_DDR_MEM_P2P_HUGE | acl::ACL_DDR_MEM_P2P_NORMAL => (0, 0),
            other => return Err(invalid(format!("attr {other} is none whose use is counted (ACL_HBM_MEM for example)"))),
        };
        put(free, "free", free_bytes as usize)?;
        put(total, "total", total_bytes as usize)
    }
}
