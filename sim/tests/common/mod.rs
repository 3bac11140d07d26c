//! What the tests share: the runtime through its function table only, as any host has it, and kernels compiled from kernels.c.

#![allow(dead_code)]

use std::ffi::{c_void, CStr, CString};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use npushmem_ffi::acl::{self, Acl};

/// AIV cores of the emulated devices in tests.
pub const CORES: u32 = 4;
/// Milliseconds after which a synchronisation that should have ended is a failure.
pub const PATIENCE: i32 = 60_000;

/// The runtime, initialised once in this process with few cores and little memory.
pub fn runtime() -> &'static Acl {
    static ACL: OnceLock<Acl> = OnceLock::new();
    ACL.get_or_init(|| {
        for (name, value) in [
            ("NPUSIM_CORES", CORES.to_string()),
            ("NPUSIM_HBM", "4G".to_owned()),
        ] {
            if std::env::var_os(name).is_none() {
                std::env::set_var(name, value);
            }
        }
        let acl = npusim::acl();
        // SAFETY: NULL is no configuration.
        assert_eq!(unsafe { (acl.aclInit)(std::ptr::null()) }, 0);
        acl
    })
}

/// The runtime with device `id` set in the calling thread.
pub fn device(id: i32) -> &'static Acl {
    let acl = runtime();
    // SAFETY: no pointers.
    assert_eq!(unsafe { (acl.aclrtSetDevice)(id) }, 0);
    acl
}

/// Serialises tests that look at process-wide counters or hold cores.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recent error text of this thread.
pub fn recent() -> String {
    // SAFETY: the pointer is good until the next call on this thread.
    unsafe {
        let text = (runtime().aclGetRecentErrMsg)();
        if text.is_null() {
            String::new()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// Fails with the recent text unless the call succeeded.
#[track_caller]
pub fn ok(code: i32) {
    assert_eq!(code, 0, "{}", recent());
}

/// Checks a refusal: its code, and that the sentence holds each of `words`.
#[track_caller]
pub fn refused(code: i32, wanted: i32, words: &[&str]) {
    let text = recent();
    assert_eq!(code, wanted, "{text}");
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in: {text}");
    }
}

/// Compiles kernels.c for an architecture, once a process.
pub fn object(arch: u32) -> Vec<u8> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _one = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("kernels.so");
    let clang = std::env::var("NPUSHMEM_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let status = Command::new(clang)
        .args([
            "-O2",
            "-g",
            "-std=gnu11",
            "-Wall",
            "-Werror",
            "-Wno-infinite-recursion",
            "-fPIC",
            "-shared",
            "-Wl,-z,defs",
        ])
        .arg(format!("-DARCH={arch}"))
        .arg("-I")
        .arg(root.join("ascendc"))
        .arg(root.join("tests/common/kernels.c"))
        .arg("-o")
        .arg(&out)
        .status()
        .expect("clang runs (Debian, Ubuntu: apt install clang)");
    assert!(status.success());
    std::fs::read(out).expect("the object")
}

/// A loaded object.
pub struct Kernels(pub acl::aclrtBinHandle);

// SAFETY: a handle is a number that any thread may use.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

/// The kernels of kernels.c, loaded once.
pub fn kernels() -> &'static Kernels {
    static LOADED: OnceLock<Kernels> = OnceLock::new();
    LOADED.get_or_init(|| {
        let bytes = object(2201);
        let mut handle = std::ptr::null_mut();
        // SAFETY: the bytes live during the call.
        ok(unsafe {
            (runtime().aclrtBinaryLoadFromData)(
                bytes.as_ptr().cast(),
                bytes.len(),
                std::ptr::null(),
                &mut handle,
            )
        });
        Kernels(handle)
    })
}

/// One kernel of kernels.c.
pub fn function(name: &str) -> acl::aclrtFuncHandle {
    let name = CString::new(name).expect("no NUL");
    let mut function = std::ptr::null_mut();
    // SAFETY: handle and name are good.
    ok(unsafe { (runtime().aclrtBinaryGetFunction)(kernels().0, name.as_ptr(), &mut function) });
    function
}

/// A new stream on the current device.
pub fn stream() -> acl::aclrtStream {
    let mut stream = std::ptr::null_mut();
    // SAFETY: an out-parameter.
    ok(unsafe { (runtime().aclrtCreateStream)(&mut stream) });
    stream
}

/// Launches with packed arguments.
pub fn launch(name: &str, blocks: u32, stream: acl::aclrtStream, args: &[u8]) -> i32 {
    launch_with(function(name), blocks, stream, None, args)
}

/// Launches with packed arguments and attributes.
pub fn launch_with(
    function: acl::aclrtFuncHandle,
    blocks: u32,
    stream: acl::aclrtStream,
    attrs: Option<&mut [acl::aclrtLaunchKernelAttr]>,
    args: &[u8],
) -> i32 {
    let mut args = args.to_vec();
    let mut cfg = attrs.map(|attrs| acl::aclrtLaunchKernelCfg {
        attrs: attrs.as_mut_ptr(),
        numAttrs: attrs.len(),
    });
    let cfg = cfg.as_mut().map_or(std::ptr::null_mut(), |cfg| cfg);
    // SAFETY: everything lives during the call, which copies it.
    unsafe {
        (runtime().aclrtLaunchKernelWithHostArgs)(
            function,
            blocks,
            stream,
            cfg,
            args.as_mut_ptr().cast(),
            args.len(),
            std::ptr::null_mut(),
            0,
        )
    }
}

/// Synchronises, but not for ever.
pub fn synchronize(stream: acl::aclrtStream) -> i32 {
    // SAFETY: a stream handle.
    unsafe { (runtime().aclrtSynchronizeStreamWithTimeout)(stream, PATIENCE) }
}

/// Device memory.
pub fn malloc(size: usize) -> u64 {
    let mut at = std::ptr::null_mut::<c_void>();
    // SAFETY: an out-parameter.
    ok(unsafe { (runtime().aclrtMalloc)(&mut at, size, acl::ACL_MEM_MALLOC_HUGE_FIRST) });
    at as u64
}

/// Frees device memory.
pub fn free(at: u64) {
    // SAFETY: memory of `malloc`.
    ok(unsafe { (runtime().aclrtFree)(at as *mut c_void) });
}

/// Sets device memory to zeros.
pub fn zero(at: u64, len: usize) {
    // SAFETY: device memory of the caller.
    ok(unsafe { (runtime().aclrtMemset)(at as *mut c_void, len, 0, len) });
}

/// Reads words of device memory.
pub fn words(at: u64, count: usize) -> Vec<u64> {
    let mut out = vec![0u64; count];
    let bytes = count * 8;
    // SAFETY: the target has so many bytes.
    ok(unsafe {
        (runtime().aclrtMemcpy)(
            out.as_mut_ptr().cast(),
            bytes,
            at as *const c_void,
            bytes,
            acl::ACL_MEMCPY_DEVICE_TO_HOST,
        )
    });
    out
}
