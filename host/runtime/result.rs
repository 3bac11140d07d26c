//! One thin function a vendor call: the same arguments in Rust types, a `Result` instead of a code, and every call counted.
//!
//! What it is not: it owns nothing (owners.rs does) and decides nothing. Each function's doc names the vendor call.

use std::ffi::{c_void, CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use npushmem_ffi::acl::{self, Acl};
use npushmem_ffi::errors;

use super::Kind;

/// Bytes of the key of a shared buffer, with its end.
pub const BUFFER_KEY_BYTES: usize = 65;
/// `ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION`.
const EXPORT_TO_ANY_PROCESS: u64 = 1;
/// `ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS`.
const IMPORT_WITH_PEER_ACCESS: u64 = 1;

/// A vendor call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclError {
    /// The vendor's function.
    pub call: &'static str,
    /// Its code.
    pub code: i32,
    /// Name of the code, without its prefix; empty when unknown.
    pub name: &'static str,
    /// What the code means; empty when unknown.
    pub text: &'static str,
    /// The runtime's recent error message; empty when it has none.
    pub message: String,
}

impl std::fmt::Display for AclError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed with {}", self.call, self.code)?;
        match (self.name, self.text) {
            ("", "") => write!(f, " (a code that this version does not know)")?,
            (name, text) => write!(f, " ({name}: {})", text.trim_end_matches('.'))?,
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for AclError {}

/// The function table in use, with a count of the calls made through it.
pub struct Api {
    table: Acl,
    kind: Kind,
    calls: AtomicU64,
    dropped: Mutex<Option<AclError>>,
}

/// An address in device memory.
pub type DeviceAddress = u64;

/// Makes the call, counts it, and turns its code into a `Result`.
macro_rules! call {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let api: &Api = $api;
        api.calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the table's functions have the signatures of the vendor's declarations; that the arguments are what the function takes
        // is said where the value comes from: addresses and handles are the runtime's own, out-pointers point to locals.
        let code = unsafe { (api.table.$name)($($argument),*) };
        api.check(stringify!($name), code)
    }};
}

impl Api {
    /// Wraps a table.
    pub(super) fn new(kind: Kind, table: Acl) -> Api {
        Api {
            table,
            kind,
            calls: AtomicU64::new(0),
            dropped: Mutex::new(None),
        }
    }

    /// Which runtime this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The libraries the functions come from; empty for the emulated NPU.
    pub fn libraries(&self) -> &[String] {
        self.table.libraries()
    }

    /// ACL calls made so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn check(&self, call: &'static str, code: acl::aclError) -> Result<(), AclError> {
        if code == acl::ACL_SUCCESS {
            return Ok(());
        }
        let (name, text) = errors::describe(code).unwrap_or(("", ""));
        Err(AclError {
            call,
            code,
            name,
            text,
            message: self.recent_message(),
        })
    }

    /// `aclGetRecentErrMsg`.
    pub(crate) fn recent_message(&self) -> String {
        // SAFETY: takes nothing; gives NULL or text that stays until the thread's next failing call.
        let text = unsafe { (self.table.aclGetRecentErrMsg)() };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null, and NUL-terminated as the vendor documents.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .trim()
            .to_string()
    }

    /// Keeps the first error of an owner's `Drop`, for the next checked call to tell.
    pub(super) fn record_dropped(&self, result: Result<(), AclError>) {
        if let Err(error) = result {
            tracing::warn!("while giving a device resource back: {error}");
            self.dropped
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
        }
    }

    /// The first error that an owner's `Drop` met since the last call.
    pub fn take_dropped(&self) -> Option<AclError> {
        self.dropped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// `aclInit`, without a configuration file.
    pub fn init(&self) -> Result<(), AclError> {
        call!(self, aclInit(std::ptr::null()))
    }

    /// `aclrtGetVersion`: major, minor, patch.
    pub fn version(&self) -> Result<(i32, i32, i32), AclError> {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        call!(self, aclrtGetVersion(&mut major, &mut minor, &mut patch))?;
        Ok((major, minor, patch))
    }

    /// `aclrtGetSocName`; empty when the runtime says nothing.
    pub fn soc_name(&self) -> String {
        self.calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: takes nothing; gives NULL or text of static life.
        let text = unsafe { (self.table.aclrtGetSocName)() };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null, NUL-terminated.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }

    /// `aclrtGetDeviceCount`.
    pub fn device_count(&self) -> Result<u32, AclError> {
        let mut count = 0;
        call!(self, aclrtGetDeviceCount(&mut count))?;
        Ok(count)
    }

    /// `aclrtSetDevice`.
    pub fn set_device(&self, device: i32) -> Result<(), AclError> {
        call!(self, aclrtSetDevice(device))
    }

    /// `aclrtResetDevice`.
    pub fn reset_device(&self, device: i32) -> Result<(), AclError> {
        call!(self, aclrtResetDevice(device))
    }

    /// `aclrtGetDeviceInfo`.
    pub fn device_info(&self, device: u32, attribute: acl::aclrtDevAttr) -> Result<i64, AclError> {
        let mut value = 0;
        call!(self, aclrtGetDeviceInfo(device, attribute, &mut value))?;
        Ok(value)
    }

    /// `aclrtGetLogicDevIdByUserDevId`.
    pub fn logic_device(&self, user: i32) -> Result<i32, AclError> {
        let mut logic = 0;
        call!(self, aclrtGetLogicDevIdByUserDevId(user, &mut logic))?;
        Ok(logic)
    }

    /// `aclrtGetPhyDevIdByLogicDevId`.
    pub fn physical_device(&self, logic: i32) -> Result<i32, AclError> {
        let mut physical = 0;
        call!(self, aclrtGetPhyDevIdByLogicDevId(logic, &mut physical))?;
        Ok(physical)
    }

    /// `aclrtGetCurrentContext`.
    pub fn current_context(&self) -> Result<acl::aclrtContext, AclError> {
        let mut context = std::ptr::null_mut();
        call!(self, aclrtGetCurrentContext(&mut context))?;
        Ok(context)
    }

    /// `aclrtSetCurrentContext`.
    pub fn set_current_context(&self, context: acl::aclrtContext) -> Result<(), AclError> {
        call!(self, aclrtSetCurrentContext(context))
    }

    /// `aclrtGetMemInfo`: free and all bytes.
    pub fn memory_info(&self, attribute: acl::aclrtMemAttr) -> Result<(u64, u64), AclError> {
        let (mut free, mut total) = (0, 0);
        call!(self, aclrtGetMemInfo(attribute, &mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }

    /// `aclrtCreateStream`.
    pub fn create_stream(&self) -> Result<acl::aclrtStream, AclError> {
        let mut stream = std::ptr::null_mut();
        call!(self, aclrtCreateStream(&mut stream))?;
        Ok(stream)
    }

    /// `aclrtDestroyStream`.
    pub fn destroy_stream(&self, stream: acl::aclrtStream) -> Result<(), AclError> {
        call!(self, aclrtDestroyStream(stream))
    }

    /// `aclrtDestroyStreamForce`.
    pub fn destroy_stream_force(&self, stream: acl::aclrtStream) -> Result<(), AclError> {
        call!(self, aclrtDestroyStreamForce(stream))
    }

    /// `aclrtSynchronizeStreamWithTimeout`, milliseconds.
    pub fn synchronize_stream(
        &self,
        stream: acl::aclrtStream,
        milliseconds: i32,
    ) -> Result<(), AclError> {
        call!(
            self,
            aclrtSynchronizeStreamWithTimeout(stream, milliseconds)
        )
    }

    /// `aclrtCreateEventExWithFlag`.
    pub fn create_event(&self, flag: u32) -> Result<acl::aclrtEvent, AclError> {
        let mut event = std::ptr::null_mut();
        call!(self, aclrtCreateEventExWithFlag(&mut event, flag))?;
        Ok(event)
    }

    /// `aclrtDestroyEvent`.
    pub fn destroy_event(&self, event: acl::aclrtEvent) -> Result<(), AclError> {
        call!(self, aclrtDestroyEvent(event))
    }

    /// `aclrtRecordEvent`.
    pub fn record_event(
        &self,
        event: acl::aclrtEvent,
        stream: acl::aclrtStream,
    ) -> Result<(), AclError> {
        call!(self, aclrtRecordEvent(event, stream))
    }

    /// `aclrtQueryEventStatus`: whether the device has reached it.
    pub fn event_reached(&self, event: acl::aclrtEvent) -> Result<bool, AclError> {
        let mut status = acl::ACL_EVENT_RECORDED_STATUS_NOT_READY;
        call!(self, aclrtQueryEventStatus(event, &mut status))?;
        Ok(status == acl::ACL_EVENT_RECORDED_STATUS_COMPLETE)
    }

    /// `aclrtEventElapsedTime`, milliseconds.
    pub fn elapsed(&self, start: acl::aclrtEvent, end: acl::aclrtEvent) -> Result<f32, AclError> {
        let mut milliseconds = 0f32;
        call!(self, aclrtEventElapsedTime(&mut milliseconds, start, end))?;
        Ok(milliseconds)
    }

    /// `aclrtMalloc`.
    pub fn malloc(
        &self,
        bytes: u64,
        policy: acl::aclrtMemMallocPolicy,
    ) -> Result<DeviceAddress, AclError> {
        let mut address: *mut c_void = std::ptr::null_mut();
        call!(self, aclrtMalloc(&mut address, bytes as usize, policy))?;
        Ok(address as DeviceAddress)
    }

    /// `aclrtIpcMemGetExportKey`: the key by which any process of this server imports a buffer.
    pub fn export_buffer(
        &self,
        address: DeviceAddress,
        bytes: u64,
    ) -> Result<[u8; BUFFER_KEY_BYTES], AclError> {
        let mut key = [0u8; BUFFER_KEY_BYTES];
        call!(
            self,
            aclrtIpcMemGetExportKey(
                address as *mut c_void,
                bytes as usize,
                key.as_mut_ptr().cast(),
                key.len(),
                EXPORT_TO_ANY_PROCESS
            )
        )?;
        Ok(key)
    }

    /// `aclrtIpcMemImportByKey`: where another process's buffer is mapped here.
    pub fn import_buffer(&self, key: &CStr) -> Result<DeviceAddress, AclError> {
        let mut address: *mut c_void = std::ptr::null_mut();
        call!(
            self,
            aclrtIpcMemImportByKey(&mut address, key.as_ptr(), IMPORT_WITH_PEER_ACCESS)
        )?;
        Ok(address as DeviceAddress)
    }

    /// `aclrtIpcMemClose`: ends an export or an import.
    pub fn close_buffer(&self, key: &CStr) -> Result<(), AclError> {
        call!(self, aclrtIpcMemClose(key.as_ptr()))
    }

    /// `aclrtFree`.
    pub fn free(&self, address: DeviceAddress) -> Result<(), AclError> {
        call!(self, aclrtFree(address as *mut c_void))
    }

    /// `aclrtMemset` with a byte.
    pub fn memset(&self, address: DeviceAddress, byte: u8, bytes: u64) -> Result<(), AclError> {
        call!(
            self,
            aclrtMemset(
                address as *mut c_void,
                bytes as usize,
                byte.into(),
                bytes as usize
            )
        )
    }

    /// `aclrtMemcpy`, host to device.
    pub fn write(&self, to: DeviceAddress, from: &[u8]) -> Result<(), AclError> {
        let kind = acl::ACL_MEMCPY_HOST_TO_DEVICE;
        call!(
            self,
            aclrtMemcpy(
                to as *mut c_void,
                from.len(),
                from.as_ptr().cast(),
                from.len(),
                kind
            )
        )
    }

    /// `aclrtMemcpy`, device to host.
    pub fn read(&self, to: &mut [u8], from: DeviceAddress) -> Result<(), AclError> {
        let kind = acl::ACL_MEMCPY_DEVICE_TO_HOST;
        call!(
            self,
            aclrtMemcpy(
                to.as_mut_ptr().cast(),
                to.len(),
                from as *const c_void,
                to.len(),
                kind
            )
        )
    }

    /// `aclrtReserveMemAddress`, at any address.
    pub fn reserve(&self, bytes: u64) -> Result<DeviceAddress, AclError> {
        let mut address: *mut c_void = std::ptr::null_mut();
        call!(
            self,
            aclrtReserveMemAddress(&mut address, bytes as usize, 0, std::ptr::null_mut(), 0)
        )?;
        Ok(address as DeviceAddress)
    }

    /// `aclrtReleaseMemAddress`.
    pub fn release(&self, address: DeviceAddress) -> Result<(), AclError> {
        call!(self, aclrtReleaseMemAddress(address as *mut c_void))
    }

    /// `aclrtMemGetAllocationGranularity`, the recommended one.
    pub fn granularity(&self, mut what: acl::aclrtPhysicalMemProp) -> Result<u64, AclError> {
        let mut bytes = 0usize;
        let option = acl::ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        call!(
            self,
            aclrtMemGetAllocationGranularity(&mut what, option, &mut bytes)
        )?;
        Ok(bytes as u64)
    }

    /// `aclrtMallocPhysical`.
    pub fn malloc_physical(
        &self,
        bytes: u64,
        what: &acl::aclrtPhysicalMemProp,
    ) -> Result<acl::aclrtDrvMemHandle, AclError> {
        let mut handle = std::ptr::null_mut();
        call!(
            self,
            aclrtMallocPhysical(&mut handle, bytes as usize, what, 0)
        )?;
        Ok(handle)
    }

    /// `aclrtFreePhysical`.
    pub fn free_physical(&self, handle: acl::aclrtDrvMemHandle) -> Result<(), AclError> {
        call!(self, aclrtFreePhysical(handle))
    }

    /// `aclrtMapMem`, from the reservation's start.
    pub fn map(
        &self,
        address: DeviceAddress,
        bytes: u64,
        handle: acl::aclrtDrvMemHandle,
    ) -> Result<(), AclError> {
        call!(
            self,
            aclrtMapMem(address as *mut c_void, bytes as usize, 0, handle, 0)
        )
    }

    /// `aclrtUnmapMem`.
    pub fn unmap(&self, address: DeviceAddress) -> Result<(), AclError> {
        call!(self, aclrtUnmapMem(address as *mut c_void))
    }

    /// `aclrtMemExportToShareableHandleV2` to a handle that also other servers of a super pod understand, for any process.
    pub fn export_fabric(
        &self,
        handle: acl::aclrtDrvMemHandle,
    ) -> Result<[u8; FABRIC_HANDLE_SIZE], AclError> {
        let mut shared = acl::aclrtMemFabricHandle {
            data: [0; FABRIC_HANDLE_SIZE],
        };
        let flags = acl::ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
        let kind = acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;
        call!(
            self,
            aclrtMemExportToShareableHandleV2(handle, flags, kind, (&raw mut shared).cast())
        )?;
        Ok(shared.data)
    }

    /// `aclrtMemImportFromShareableHandleV2`.
    pub fn import_fabric(
        &self,
        shared: &[u8; FABRIC_HANDLE_SIZE],
    ) -> Result<acl::aclrtDrvMemHandle, AclError> {
        let mut shared = acl::aclrtMemFabricHandle { data: *shared };
        let mut handle = std::ptr::null_mut();
        let kind = acl::ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;
        call!(
            self,
            aclrtMemImportFromShareableHandleV2((&raw mut shared).cast(), kind, 0, &mut handle)
        )?;
        Ok(handle)
    }

    /// `aclrtMemExportToShareableHandle` to a handle for processes of this server.
    pub fn export_server(&self, handle: acl::aclrtDrvMemHandle) -> Result<u64, AclError> {
        let mut shared = 0u64;
        let flags = acl::ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
        let kind = acl::ACL_MEM_HANDLE_TYPE_NONE;
        call!(
            self,
            aclrtMemExportToShareableHandle(handle, kind, flags, &mut shared)
        )?;
        Ok(shared)
    }

    /// `aclrtMemImportFromShareableHandle`.
    pub fn import_server(
        &self,
        shared: u64,
        device: i32,
    ) -> Result<acl::aclrtDrvMemHandle, AclError> {
        let mut handle = std::ptr::null_mut();
        call!(
            self,
            aclrtMemImportFromShareableHandle(shared, device, &mut handle)
        )?;
        Ok(handle)
    }

    /// `aclrtDeviceCanAccessPeer`.
    pub fn can_access_peer(&self, device: i32, peer: i32) -> Result<bool, AclError> {
        let mut can = 0;
        call!(self, aclrtDeviceCanAccessPeer(&mut can, device, peer))?;
        Ok(can == 1)
    }

    /// `aclrtDeviceEnablePeerAccess`.
    pub fn enable_peer_access(&self, peer: i32) -> Result<(), AclError> {
        call!(self, aclrtDeviceEnablePeerAccess(peer, 0))
    }

    /// `aclrtBinaryLoadFromData`.
    pub fn load_binary(&self, bytes: &[u8]) -> Result<acl::aclrtBinHandle, AclError> {
        let mut binary = std::ptr::null_mut();
        let mut option = acl::aclrtBinaryLoadOption {
            type_: acl::ACL_RT_BINARY_LOAD_OPT_MAGIC,
            value: acl::aclrtBinaryLoadOptionValue {
                magic: acl::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE,
            },
        };
        let options = acl::aclrtBinaryLoadOptions {
            options: &mut option,
            numOpt: 1,
        };
        call!(
            self,
            aclrtBinaryLoadFromData(bytes.as_ptr().cast(), bytes.len(), &options, &mut binary)
        )?;
        Ok(binary)
    }

    /// `aclrtBinaryUnLoad`.
    pub fn unload_binary(&self, binary: acl::aclrtBinHandle) -> Result<(), AclError> {
        call!(self, aclrtBinaryUnLoad(binary))
    }

    /// `aclrtBinaryGetFunction`.
    pub fn function(
        &self,
        binary: acl::aclrtBinHandle,
        name: &CString,
    ) -> Result<acl::aclrtFuncHandle, AclError> {
        let mut function = std::ptr::null_mut();
        call!(
            self,
            aclrtBinaryGetFunction(binary, name.as_ptr(), &mut function)
        )?;
        Ok(function)
    }

    /// `aclrtLaunchKernelWithHostArgs`: `arguments` is the packed block, natural alignment.
    pub fn launch(
        &self,
        function: acl::aclrtFuncHandle,
        blocks: u32,
        stream: acl::aclrtStream,
        arguments: &mut [u8],
        mode: LaunchMode,
    ) -> Result<(), AclError> {
        let mut attributes = [
            acl::aclrtLaunchKernelAttr {
                id: acl::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT,
                value: acl::aclrtLaunchKernelAttrValue {
                    timeout: mode.limit_seconds,
                },
            },
            acl::aclrtLaunchKernelAttr {
                id: acl::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE,
                value: acl::aclrtLaunchKernelAttrValue {
                    schemMode: mode.together.into(),
                },
            },
        ];
        let mut configuration = acl::aclrtLaunchKernelCfg {
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len(),
        };
        let (data, size) = (arguments.as_mut_ptr().cast(), arguments.len());
        call!(
            self,
            aclrtLaunchKernelWithHostArgs(
                function,
                blocks,
                stream,
                &mut configuration,
                data,
                size,
                std::ptr::null_mut(),
                0
            )
        )
    }
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct LaunchMode {
    /// Start only when so many cores are free (schedule mode 1, "batch"), as kernels whose blocks wait for one another need.
    pub together: bool,
    /// The runtime ends a kernel that runs longer, seconds (launch attribute TIMEOUT).
    pub limit_seconds: u16,
}

/// Bytes of a fabric handle (aclrtMemFabricHandle).
pub const FABRIC_HANDLE_SIZE: usize = 128;
