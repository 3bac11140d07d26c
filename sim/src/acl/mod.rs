//! The entries of the ACL runtime: they check arguments, and call the modules that do the work. They export no symbols; [`table`] hands them out.

mod device;
mod kernel;
mod mapped;
mod memory;
mod share;
mod stream;

use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicBool, Ordering};

use npushmem_ffi::acl::{self, Acl, AclFns, AclOptional};

use crate::error::{fail, invalid, Outcome};

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Refuses calls before aclInit and after aclFinalize.
pub(crate) fn ready() -> Outcome {
    if INITIALISED.load(Ordering::Acquire) {
        Ok(())
    } else {
        Err(fail(acl::ACL_ERROR_UNINITIALIZE, "call aclInit first"))
    }
}

/// Stores a result through an out-parameter.
fn put<T>(at: *mut T, name: &str, value: T) -> Outcome {
    if at.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    // SAFETY: the C caller passes a pointer to a T, or NULL, which was refused.
    unsafe { at.write(value) };
    Ok(())
}

/// A structure that the caller passes by pointer.
fn read<T: Copy>(at: *const T, name: &str) -> Outcome<T> {
    if at.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    // SAFETY: the C caller passes a pointer to a T, or NULL, which was refused.
    Ok(unsafe { at.read() })
}

/// An array that the caller passes by pointer and count.
///
/// # Safety
/// `at` is NULL or leads to `count` values that live as long as the result.
unsafe fn array<'a, T>(at: *const T, count: usize, name: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        return Err(invalid(format!(
            "{name} is NULL, and {count} entries are said to be there"
        )));
    }
    // SAFETY: the caller says so.
    Ok(unsafe { std::slice::from_raw_parts(at, count) })
}

/// A string that the caller passes.
fn text(at: *const c_char, name: &str) -> Outcome<String> {
    if at.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    // SAFETY: the C caller passes a NUL-terminated string, or NULL, which was refused.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str()
        .map(str::to_owned)
        .map_err(|_| invalid(format!("{name} is not UTF-8")))
}

/// The ACL table of the emulated NPU.
pub(crate) fn table() -> Acl {
    Acl::from_fns(AclFns {
        aclInit: device::aclInit,
        aclFinalize: device::aclFinalize,
        aclGetRecentErrMsg: device::aclGetRecentErrMsg,
        aclrtGetVersion: device::aclrtGetVersion,
        aclrtGetSocName: device::aclrtGetSocName,
        aclrtSetDevice: device::aclrtSetDevice,
        aclrtResetDevice: device::aclrtResetDevice,
        aclrtGetDevice: device::aclrtGetDevice,
        aclrtGetDeviceCount: device::aclrtGetDeviceCount,
        aclrtGetRunMode: device::aclrtGetRunMode,
        aclrtGetDeviceInfo: device::aclrtGetDeviceInfo,
        aclrtQueryDeviceStatus: device::aclrtQueryDeviceStatus,
        aclrtGetDevicesTopo: device::aclrtGetDevicesTopo,
        aclrtGetLogicDevIdByUserDevId: device::aclrtGetLogicDevIdByUserDevId,
        aclrtGetPhyDevIdByLogicDevId: device::aclrtGetPhyDevIdByLogicDevId,
        aclrtCreateContext: device::aclrtCreateContext,
        aclrtDestroyContext: device::aclrtDestroyContext,
        aclrtSetCurrentContext: device::aclrtSetCurrentContext,
        aclrtGetCurrentContext: device::aclrtGetCurrentContext,
        aclrtDeviceCanAccessPeer: device::aclrtDeviceCanAccessPeer,
        aclrtDeviceEnablePeerAccess: device::aclrtDeviceEnablePeerAccess,
        aclrtDeviceDisablePeerAccess: device::aclrtDeviceDisablePeerAccess,
        aclrtGetHardwareSyncAddr: device::aclrtGetHardwareSyncAddr,
        aclrtCreateStream: stream::aclrtCreateStream,
        aclrtCreateStreamWithConfig: stream::aclrtCreateStreamWithConfig,
        aclrtDestroyStream: stream::aclrtDestroyStream,
        aclrtDestroyStreamForce: stream::aclrtDestroyStreamForce,
        aclrtSynchronizeStream: stream::aclrtSynchronizeStream,
        aclrtSynchronizeStreamWithTimeout: stream::aclrtSynchronizeStreamWithTimeout,
        aclrtSynchronizeDevice: stream::aclrtSynchronizeDevice,
        aclrtStreamQuery: stream::aclrtStreamQuery,
        aclrtStreamWaitEvent: stream::aclrtStreamWaitEvent,
        aclrtCreateEvent: stream::aclrtCreateEvent,
        aclrtCreateEventExWithFlag: stream::aclrtCreateEventExWithFlag,
        aclrtDestroyEvent: stream::aclrtDestroyEvent,
        aclrtRecordEvent: stream::aclrtRecordEvent,
        aclrtSynchronizeEvent: stream::aclrtSynchronizeEvent,
        aclrtQueryEventStatus: stream::aclrtQueryEventStatus,
        aclrtEventElapsedTime: stream::aclrtEventElapsedTime,
        aclrtValueWrite: stream::aclrtValueWrite,
        aclrtValueWait: stream::aclrtValueWait,
        aclrtLaunchHostFunc: stream::aclrtLaunchHostFunc,
        aclrtMalloc: memory::aclrtMalloc,
        aclrtFree: memory::aclrtFree,
        aclrtMallocHost: memory::aclrtMallocHost,
        aclrtFreeHost: memory::aclrtFreeHost,
        aclrtHostRegister: memory::aclrtHostRegister,
        aclrtHostUnregister: memory::aclrtHostUnregister,
        aclrtMemcpy: memory::aclrtMemcpy,
        aclrtMemcpyAsync: memory::aclrtMemcpyAsync,
        aclrtMemset: memory::aclrtMemset,
        aclrtMemsetAsync: memory::aclrtMemsetAsync,
        aclrtPointerGetAttributes: memory::aclrtPointerGetAttributes,
        aclrtGetMemInfo: memory::aclrtGetMemInfo,
        aclrtReserveMemAddress: mapped::aclrtReserveMemAddress,
        aclrtReleaseMemAddress: mapped::aclrtReleaseMemAddress,
        aclrtMallocPhysical: mapped::aclrtMallocPhysical,
        aclrtFreePhysical: mapped::aclrtFreePhysical,
        aclrtMapMem: mapped::aclrtMapMem,
        aclrtUnmapMem: mapped::aclrtUnmapMem,
        aclrtMemSetAccess: mapped::aclrtMemSetAccess,
        aclrtMemGetAllocationGranularity: mapped::aclrtMemGetAllocationGranularity,
        aclrtMemExportToShareableHandle: share::aclrtMemExportToShareableHandle,
        aclrtMemExportToShareableHandleV2: share::aclrtMemExportToShareableHandleV2,
        aclrtMemImportFromShareableHandle: share::aclrtMemImportFromShareableHandle,
        aclrtMemImportFromShareableHandleV2: share::aclrtMemImportFromShareableHandleV2,
        aclrtMemSetPidToShareableHandle: share::aclrtMemSetPidToShareableHandle,
        aclrtMemSetPidToShareableHandleV2: share::aclrtMemSetPidToShareableHandleV2,
        aclrtDeviceGetBareTgid: share::aclrtDeviceGetBareTgid,
        aclrtIpcMemGetExportKey: share::aclrtIpcMemGetExportKey,
        aclrtIpcMemClose: share::aclrtIpcMemClose,
        aclrtIpcMemImportByKey: share::aclrtIpcMemImportByKey,
        aclrtIpcMemSetImportPid: share::aclrtIpcMemSetImportPid,
        aclrtBinaryLoadFromFile: kernel::aclrtBinaryLoadFromFile,
        aclrtBinaryLoadFromData: kernel::aclrtBinaryLoadFromData,
        aclrtBinaryUnLoad: kernel::aclrtBinaryUnLoad,
        aclrtBinaryGetFunction: kernel::aclrtBinaryGetFunction,
        aclrtKernelArgsInit: kernel::aclrtKernelArgsInit,
        aclrtKernelArgsAppend: kernel::aclrtKernelArgsAppend,
        aclrtKernelArgsFinalize: kernel::aclrtKernelArgsFinalize,
        aclrtLaunchKernelWithConfig: kernel::aclrtLaunchKernelWithConfig,
        aclrtLaunchKernelWithHostArgs: kernel::aclrtLaunchKernelWithHostArgs,
        optional: AclOptional {
            aclrtResetDeviceForce: Some(device::aclrtResetDeviceForce),
            aclrtGetUserDevIdByLogicDevId: Some(device::aclrtGetUserDevIdByLogicDevId),
            aclrtSetStreamAttribute: Some(stream::aclrtSetStreamAttribute),
            ..AclOptional::default()
        },
    })
}
