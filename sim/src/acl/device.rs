//! aclInit, devices, contexts, access between devices.

use std::ffi::{c_char, c_void, CStr, CString};
use std::sync::atomic::Ordering;
use std::sync::OnceLock;

use npushmem_ffi::acl;

use super::{put, INITIALISED};
use crate::config;
use crate::device::{self, CONTEXTS};
use crate::error::{entries, fail, guard, invalid, open_entries, take_recent, Outcome};

/// The ACL version whose rules are emulated.
const VERSION: (i32, i32, i32) = (1, 17, 0);

#[allow(non_snake_case)]
pub(crate) unsafe extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    take_recent()
}

#[allow(non_snake_case)]
pub(crate) unsafe extern "C" fn aclrtGetSocName() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    let mut name = std::ptr::null();
    guard("aclrtGetSocName", || {
        let soc = config::get()?.soc;
        // Names of the table have no NUL.
        name = NAME
            .get_or_init(|| CString::new(soc.name).unwrap_or_default())
            .as_ptr();
        Ok(())
    });
    name
}

open_entries! {
    fn aclInit(config_path: *const c_char) {
        // Wrong settings are told here, not at the first call that needs one.
        config::get()?;
        if !config_path.is_null() {
            // SAFETY: the caller passes a NUL-terminated string or NULL.
            let path = unsafe { CStr::from_ptr(config_path) }.to_string_lossy().into_owned();
            // Of the vendor's settings none concerns the emulator; a file that is not there is a mistake nevertheless.
            if !path.is_empty() && std::fs::metadata(&path).is_err() {
                return Err(fail(acl::ACL_ERROR_INVALID_FILE, format!("the configuration file {path} cannot be read; pass NULL for none")));
            }
        }
        crate::share::prepare()?;
        if INITIALISED.swap(true, Ordering::AcqRel) {
            return Err(fail(acl::ACL_ERROR_REPEAT_INITIALIZE, "the runtime is initialised already in this process; call aclFinalize before"));
        }
        Ok(())
    }

    fn aclFinalize() {
        if !INITIALISED.swap(false, Ordering::AcqRel) {
            return Err(fail(acl::ACL_ERROR_REPEAT_FINALIZE, "the runtime is not initialised (or was finalised already)"));
        }
        device::finalize();
        crate::hccp::shutdown();
        Ok(())
    }

    fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) {
        put(major, "majorVersion", VERSION.0)?;
        put(minor, "minorVersion", VERSION.1)?;
        put(patch, "patchVersion", VERSION.2)
    }

    fn aclrtGetDeviceCount(count: *mut u32) {
        put(count, "count", config::get()?.devices)
    }

    fn aclrtGetRunMode(mode: *mut acl::aclrtRunMode) {
        put(mode, "runMode", acl::ACL_HOST)
    }
}

fn info(device: u32, attribute: acl::aclrtDevAttr) -> Outcome<i64> {
    device::check(i32::try_from(device).unwrap_or(-1))?;
    let config = config::get()?;
    let soc = config.soc;
    Ok(match attribute {
        acl::ACL_DEV_ATTR_AICPU_CORE_NUM => 6,
        acl::ACL_DEV_ATTR_AICORE_CORE_NUM | acl::ACL_DEV_ATTR_CUBE_CORE_NUM => {
            i64::from(soc.aic_cores)
        }
        acl::ACL_DEV_ATTR_VECTOR_CORE_NUM => i64::from(config.cores),
        acl::ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE => soc.ub as i64,
        acl::ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE => config.hbm as i64,
        acl::ACL_DEV_ATTR_L2_CACHE_SIZE => soc.l2 as i64,
        acl::ACL_DEV_ATTR_PHY_CHIP_ID | acl::ACL_DEV_ATTR_SUPER_POD_DEVICE_ID => i64::from(device),
        // One server, which is no part of a super pod.
        acl::ACL_DEV_ATTR_SUPER_POD_SERVER_ID
        | acl::ACL_DEV_ATTR_SUPER_POD_ID
        | acl::ACL_DEV_ATTR_IS_VIRTUAL => 0,
        acl::ACL_DEV_ATTR_NPU_ARCH => i64::from(soc.npu_arch),
        other => {
            return Err(invalid(format!(
                "attribute {other} is none that the emulator knows"
            )))
        }
    })
}

entries! {
    fn aclrtSetDevice(id: i32) {
        device::set(id)
    }

    fn aclrtResetDevice(id: i32) {
        device::reset(id, false)
    }

    fn aclrtResetDeviceForce(id: i32) {
        device::reset(id, true)
    }

    fn aclrtGetDevice(id: *mut i32) {
        put(id, "deviceId", device::current()?.device.id)
    }

    fn aclrtGetDeviceInfo(id: u32, attribute: acl::aclrtDevAttr, value: *mut i64) {
        put(value, "value", info(id, attribute)?)
    }

    fn aclrtQueryDeviceStatus(id: i32, status: *mut acl::aclrtDeviceStatus) {
        device::check(id)?;
        put(status, "deviceStatus", acl::ACL_RT_DEVICE_STATUS_NORMAL)
    }

    fn aclrtGetDevicesTopo(id: u32, other: u32, value: *mut u64) {
        device::check(i32::try_from(id).unwrap_or(-1))?;
        device::check(i32::try_from(other).unwrap_or(-1))?;
        put(value, "value", acl::ACL_RT_DEVS_TOPOLOGY_HCCS)
    }

    fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: *mut i32) {
        device::check(user)?;
        put(logic, "logicDevId", user)
    }

    fn aclrtGetPhyDevIdByLogicDevId(logic: i32, physical: *mut i32) {
        device::check(logic)?;
        put(physical, "phyDevId", logic)
    }

    fn aclrtGetUserDevIdByLogicDevId(logic: i32, user: *mut i32) {
        device::check(logic)?;
        put(user, "userDevid", logic)
    }

    fn aclrtCreateContext(context: *mut acl::aclrtContext, id: i32) {
        if context.is_null() {
            return Err(invalid("context is NULL"));
        }
        put(context, "context", device::create_context(id)?.handle())
    }

    fn aclrtDestroyContext(context: acl::aclrtContext) {
        let context = CONTEXTS.get(context)?;
        if !context.explicit {
            return Err(invalid("this is the context of aclrtSetDevice: aclrtResetDevice ends it"));
        }
        device::end(&context);
        Ok(())
    }

    fn aclrtSetCurrentContext(context: acl::aclrtContext) {
        device::set_current(CONTEXTS.get(context)?)
    }

    fn aclrtGetCurrentContext(context: *mut acl::aclrtContext) {
        put(context, "context", device::current()?.handle())
    }

    fn aclrtDeviceCanAccessPeer(can: *mut i32, id: i32, peer: i32) {
        device::check(id)?;
        device::check(peer)?;
        if id == peer {
            return Err(invalid(format!("deviceId and peerDeviceId are both {id}: two devices are wanted")));
        }
        put(can, "canAccessPeer", 1)
    }

    fn aclrtDeviceEnablePeerAccess(peer: i32, flags: u32) {
        device::check(peer)?;
        let device = device::current()?.device.clone();
        if flags != 0 {
            return Err(invalid(format!("flags {flags:#x}: the parameter is reserved and must be 0 (documented)")));
        }
        if peer == device.id {
            return Err(invalid(format!("device {peer} is the current device: a peer is another one")));
        }
        // Enabling twice is no mistake.
        device.enable_peer(peer);
        Ok(())
    }

    fn aclrtDeviceDisablePeerAccess(peer: i32) {
        device::check(peer)?;
        if !device::current()?.device.disable_peer(peer) {
            return Err(invalid(format!("access to device {peer} is not enabled")));
        }
        Ok(())
    }

    fn aclrtGetHardwareSyncAddr(address: *mut *mut c_void) {
        let soc = config::get()?.soc;
        if soc.npu_arch != 2201 {
            return Err(fail(acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, format!("A2 and A3 only (documented), this is {}", soc.name)));
        }
        put(address, "addr", device::current()?.device.sync_address()? as *mut c_void)
    }
}
