//! Reservations and physical memory.

use std::ffi::c_void;
use std::sync::Arc;

use npushmem_ffi::acl;

use super::{array, put, read};
use crate::device;
use crate::error::{entries, invalid};
use crate::handles::Handles;
use crate::vmm::{self, Physical};

/// All handles to physical memory.
pub(crate) static PHYSICAL: Handles<Physical> = Handles::new("handle to physical memory", 7);

entries! {
    fn aclrtReserveMemAddress(at: *mut *mut c_void, size: usize, alignment: usize, expect: *mut c_void, flags: u64) {
        device::current()?;
        if at.is_null() {
            return Err(invalid("virPtr is NULL"));
        }
        put(at, "virPtr", vmm::reserve(size as u64, alignment as u64, expect as u64, flags)? as *mut c_void)
    }

    fn aclrtReleaseMemAddress(at: *mut c_void) {
        vmm::release(at as u64)
    }

    fn aclrtMallocPhysical(handle: *mut acl::aclrtDrvMemHandle, size: usize, prop: *const acl::aclrtPhysicalMemProp, flags: u64) {
        device::current()?;
        let prop = read(prop, "prop")?;
        if handle.is_null() {
            return Err(invalid("handle is NULL"));
        }
        put(handle, "handle", PHYSICAL.insert(Arc::new(Physical::allocate(size as u64, &prop, flags)?)))
    }

    fn aclrtFreePhysical(handle: acl::aclrtDrvMemHandle) {
        PHYSICAL.get(handle)?.check_free()?;
        PHYSICAL.remove(handle).map(|_| ())
    }

    fn aclrtMapMem(at: *mut c_void, size: usize, offset: usize, handle: acl::aclrtDrvMemHandle, flags: u64) {
        let device = device::current()?.device.clone();
        let physical = PHYSICAL.get(handle)?;
        vmm::map(at as u64, size as u64, offset as u64, &physical, flags, |peer| device.reaches(peer))
    }

    fn aclrtUnmapMem(at: *mut c_void) {
        vmm::unmap(at as u64)
    }

    fn aclrtMemSetAccess(at: *mut c_void, size: usize, descriptions: *mut acl::aclrtMemAccessDesc, count: usize) {
        // SAFETY: the caller passes `count` descriptions.
        let descriptions = unsafe { array(descriptions, count, "desc") }?;
        vmm::set_access(at as u64, size as u64, descriptions)
    }

    fn aclrtMemGetAllocationGranularity(prop: *mut acl::aclrtPhysicalMemProp, option: acl::aclrtMemGranularityOptions, granularity: *mut usize) {
        if option != acl::ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != acl::ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED {
            return Err(invalid(format!("option {option}: 0 (minimum) or 1 (recommended) is wanted")));
        }
        put(granularity, "granularity", vmm::granularity(&read(prop, "prop")?)? as usize)
    }
}
