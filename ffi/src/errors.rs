//! What the codes of ACL and its runtime mean, in plain English, and what usually helps. Texts are ours; names and
//! values are the constants of include/acl.h. It makes no error types: the host library builds its messages from
//! [`describe`] and [`explain`], and so does the emulator for its recent error text.

use crate::acl::*;

/// One error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// The value a call returns.
    pub code: aclError,
    /// The vendor's name of it.
    pub name: &'static str,
    /// What happened.
    pub text: &'static str,
    /// What usually helps.
    pub fix: &'static str,
}

/// The entry of a code; `None` for codes that are not listed in include/acl.h.
pub fn find(code: aclError) -> Option<&'static ErrorCode> {
    ERRORS.iter().find(|error| error.code == code)
}

/// Name and meaning of a code.
pub fn describe(code: aclError) -> Option<(&'static str, &'static str)> {
    find(code).map(|error| (error.name, error.text))
}

/// One line for a message: name, code, meaning, fix. Unknown codes are told by their range.
pub fn explain(code: aclError) -> String {
    match find(code) {
        Some(ErrorCode {
            name, text, fix, ..
        }) if !fix.is_empty() => format!("{name} ({code}): {text}; {fix}"),
        Some(ErrorCode { name, text, .. }) => format!("{name} ({code}): {text}"),
        None => format!(
            "ACL error {code}: {}; the vendor's error code reference lists it",
            range(code)
        ),
    }
}

/// What the hundred-thousands of a code say.
fn range(code: aclError) -> &'static str {
    const RANGE: aclError = 100_000;
    match code / RANGE {
        1 => "a mistake in the call",
        2 => "a resource or feature is missing",
        3 => "a limit was passed",
        5 => "a failure inside the runtime, the driver or the device",
        _ => "unknown",
    }
}

macro_rules! errors {
    ($($name:ident: $text:literal, $fix:literal;)*) => {
        /// Every code of include/acl.h.
        pub const ERRORS: &[ErrorCode] =
            &[$(ErrorCode { code: $name, name: stringify!($name), text: $text, fix: $fix }),*];
    };
}

errors! {
    ACL_SUCCESS: "no error", "";

    ACL_ERROR_INVALID_PARAM: "an argument is null, out of range or contradicts another one",
        "check sizes, alignments and flags against the call's documentation; the recent error text usually names the argument";
    ACL_ERROR_UNINITIALIZE: "the runtime has not been started", "call aclInit before anything else";
    ACL_ERROR_REPEAT_INITIALIZE: "the runtime is already started",
        "harmless when another library of the process called aclInit; else call it once";
    ACL_ERROR_INVALID_FILE: "a file is missing, unreadable or has the wrong content",
        "check the path, and that a kernel object was built for this chip";
    ACL_ERROR_KERNEL_NOT_FOUND: "no loaded object has a kernel of that name",
        "use the plain name for extern \"C\" kernels and the mangled one for C++, without _mix_aic or _mix_aiv";
    ACL_ERROR_REPEAT_FINALIZE: "the runtime is already ended", "call aclFinalize once";
    ACL_ERROR_COMPILING_STUB_MODE: "the library is the toolkit's stub, which only serves linking",
        "take the stub folder (devlib) out of LD_LIBRARY_PATH and install the driver";
    ACL_ERROR_BAD_ALLOC: "host memory ran out", "free host memory or raise the limit of the container";
    ACL_ERROR_API_NOT_SUPPORT: "this runtime does not implement the call", "install a newer CANN";
    ACL_ERROR_INVALID_DEVICE: "the device does not exist, or none is set in this thread",
        "call aclrtSetDevice with a number below aclrtGetDeviceCount; look at ASCEND_RT_VISIBLE_DEVICES";
    ACL_ERROR_MEMORY_ADDRESS_UNALIGNED: "an address does not have the alignment that the call needs",
        "align it (64 bytes for most device buffers)";
    ACL_ERROR_RESOURCE_NOT_MATCH: "objects of different devices or contexts were used together",
        "make the stream's context current before the call";
    ACL_ERROR_INVALID_RESOURCE_HANDLE: "a handle is unknown or was destroyed", "check its lifetime";
    ACL_ERROR_FEATURE_UNSUPPORTED: "the device or the driver lacks the feature",
        "look up which chips have it, or update driver and firmware";
    ACL_ERROR_STORAGE_OVER_LIMIT: "more storage was asked for than is allowed", "ask for less or raise the limit";
    ACL_ERROR_INTERNAL_ERROR: "the runtime failed inside", "read the recent error text and the log under ~/ascend/log";
    ACL_ERROR_FAILURE: "the call failed and says no more", "read the recent error text and the log under ~/ascend/log";
    ACL_ERROR_GE_FAILURE: "the graph engine failed", "read the log under ~/ascend/log";
    ACL_ERROR_RT_FAILURE: "the layer below ACL failed", "read the log under ~/ascend/log";
    ACL_ERROR_DRV_FAILURE: "the driver failed", "read dmesg and npu-smi info; reset the device if it is not healthy";
    ACL_ERROR_PROFILING_FAILURE: "the profiler failed", "end other profilers of this device";

    ACL_ERROR_RT_PARAM_INVALID: "the runtime refused an argument",
        "check sizes, alignments and flags; the recent error text usually names the argument";
    ACL_ERROR_RT_INVALID_DEVICEID: "the device number does not exist in this process",
        "use a number below aclrtGetDeviceCount; look at ASCEND_RT_VISIBLE_DEVICES";
    ACL_ERROR_RT_CONTEXT_NULL: "the calling thread has no current context",
        "call aclrtSetDevice or aclrtSetCurrentContext in this thread";
    ACL_ERROR_RT_STREAM_CONTEXT: "the stream belongs to another context",
        "make the context current in which the stream was made";
    ACL_ERROR_RT_ADDR_UNALIGNED: "an address is not aligned", "align it (64 bytes for most device buffers)";
    ACL_ERROR_RT_FILE_OPEN: "a file could not be opened", "check path and permissions";
    ACL_ERROR_RT_INVALID_MEMORY_TYPE: "the memory is of a kind that the call does not take",
        "check that a host address is pinned and a device address belongs to this device";
    ACL_ERROR_RT_INVALID_HANDLE: "the runtime does not know the handle", "check its lifetime";
    ACL_ERROR_RT_INVALID_MALLOC_TYPE: "the allocation policy is not possible on this chip", "use ACL_MEM_MALLOC_HUGE_FIRST";
    ACL_ERROR_RT_WAIT_TIMEOUT: "a wait reached its time limit",
        "find out what did not happen (a notify or a value that no one wrote), or raise the limit";
    ACL_ERROR_RT_TASK_TIMEOUT: "a task ran longer than its limit", "look for an endless wait in it, or raise the limit";
    ACL_ERROR_RT_DEVICE_TASK_ABORT: "the device's tasks are being aborted", "wait for the abort to end, then set up anew";
    ACL_ERROR_RT_STREAM_ABORT: "the stream was aborted", "destroy the stream and make a new one";
    ACL_ERROR_RT_SYMBOL_NOT_FOUND: "the kernel object has no global of that name", "check its spelling and linkage";
    ACL_ERROR_RT_INVALID_DEVICE_FUNCTION: "the function is no kernel for this device",
        "build the kernel for this chip (--npu-arch)";

    ACL_ERROR_RT_FEATURE_NOT_SUPPORT: "chip or driver lack the feature",
        "look up which chips have it, or update driver and firmware";
    ACL_ERROR_RT_MEMORY_ALLOCATION: "device memory could not be allocated",
        "ask for less, or see with npu-smi info who holds the memory";
    ACL_ERROR_RT_MEMORY_FREE: "device memory could not be freed",
        "check that the address came from the matching allocation and is freed once";
    ACL_ERROR_RT_AICORE_OVER_FLOW: "a kernel's arithmetic overflowed", "look for infinities in its inputs";
    ACL_ERROR_RT_NO_DEVICE: "no device is usable by this process",
        "check npu-smi info, the container's devices, and ASCEND_RT_VISIBLE_DEVICES";
    ACL_ERROR_RT_RESOURCE_ALLOC_FAIL: "a device resource ran out", "destroy streams, events and contexts no longer used";
    ACL_ERROR_RT_NO_PERMISSION: "this user or process may not do it",
        "join the group HwHiAiUser, and list this process where the memory is shared by process number";
    ACL_ERROR_RT_NO_EVENT_RESOURCE: "no event is left", "destroy events, or make them by aclrtCreateEventExWithFlag";
    ACL_ERROR_RT_NO_STREAM_RESOURCE: "no stream is left", "destroy streams no longer used";
    ACL_ERROR_RT_NO_NOTIFY_RESOURCE: "no notify is left", "destroy notifies no longer used";
    ACL_ERROR_RT_NO_MODEL_RESOURCE: "no model slot is left", "unload models no longer used";
    ACL_ERROR_RT_NO_CDQ_RESOURCE: "no compute-direct queue is left", "destroy those no longer used";
    ACL_ERROR_RT_OVER_LIMIT: "a limit of the runtime was passed", "use fewer objects of that kind at a time";
    ACL_ERROR_RT_REPEATED_INIT: "something was initialised twice", "initialise it once";
    ACL_ERROR_RT_DEVICE_OOM: "the device's memory is full",
        "ask for less, or see with npu-smi info who holds the memory";
    ACL_ERROR_RT_TIMEOUT: "an operation took too long", "see whether the device is healthy (npu-smi info), or raise the limit";
    ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED: "the link between the two devices cannot do this",
        "choose devices that are joined by HCCS, or copy through the host";

    ACL_ERROR_RT_INTERNAL_ERROR: "the runtime failed inside", "read the recent error text and the log under ~/ascend/log";
    ACL_ERROR_RT_TS_ERROR: "the device's task scheduler failed", "reset the device";
    ACL_ERROR_RT_CONTEXT_RELEASE_ERROR: "a context was released while in use",
        "end all work of a context before destroying it";
    ACL_ERROR_RT_SOC_VERSION: "the software was built for another chip",
        "install the packages for this chip, and build kernels for it";
    ACL_ERROR_RT_LOST_HEARTBEAT: "the device stopped answering", "see npu-smi info and dmesg; reset the device";
    ACL_ERROR_RT_SYS_DMA: "the system DMA engine failed", "check that the copy's addresses were valid until it ended";
    ACL_ERROR_RT_AICORE_TIMEOUT: "a kernel on AI cores ran too long",
        "look for a wait that never ends: a peer that died, or more blocks than cores that wait for one another";
    ACL_ERROR_RT_AICORE_EXCEPTION: "a kernel on AI cores raised an exception",
        "look for bad addresses and unaligned copies; the log has the core's registers";
    ACL_ERROR_RT_AICORE_TRAP_EXCEPTION: "a kernel on AI cores stopped itself by a trap",
        "an assertion in the kernel failed: read its printed text";
    ACL_ERROR_RT_IPC_ERROR: "sharing between processes failed",
        "check that the other process lives, that the key is right, and that both see the same device";
    ACL_ERROR_RT_KERNEL_LOOKUP: "the kernel is not registered", "load its object before launching it";
    ACL_ERROR_RT_KERNEL_DUPLICATE: "the kernel is registered twice", "load each object once";
    ACL_ERROR_RT_DEV_SETUP_ERROR: "the device could not be opened", "see npu-smi info; reset the device";
    ACL_ERROR_RT_VECTOR_CORE_TIMEOUT: "a kernel on vector cores ran too long",
        "look for a wait that never ends: a peer that died, or more blocks than cores that wait for one another";
    ACL_ERROR_RT_VECTOR_CORE_EXCEPTION: "a kernel on vector cores raised an exception",
        "look for bad addresses and unaligned copies; the log has the core's registers";
    ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION: "a kernel on vector cores stopped itself by a trap",
        "an assertion in the kernel failed: read its printed text";
    ACL_ERROR_RT_AICORE_TRAP_READ_OVERFLOW: "an AI core read past the end of a buffer",
        "check the kernel's offsets against the buffers' sizes";
    ACL_ERROR_RT_AICORE_TRAP_WRITE_OVERFLOW: "an AI core wrote past the end of a buffer",
        "check the kernel's offsets against the buffers' sizes";
    ACL_ERROR_RT_VECTOR_CORE_TRAP_READ_OVERFLOW: "a vector core read past the end of a buffer",
        "check the kernel's offsets against the buffers' sizes";
    ACL_ERROR_RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW: "a vector core wrote past the end of a buffer",
        "check the kernel's offsets against the buffers' sizes";
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: "waiting for a stream reached its time limit",
        "the stream's work still runs: find out what it waits for, or raise the limit";
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT: "waiting for an event reached its time limit",
        "find out whether its stream got there, or raise the limit";
    ACL_ERROR_RT_DEVICE_MEM_ERROR: "device memory is damaged", "end the process, then see npu-smi info; reset the device";
    ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR: "device memory has an error beyond repair",
        "reset the device; have it replaced if that returns";
    ACL_ERROR_RT_LINK_ERROR: "a link between devices failed", "see the links with npu-smi and hccn_tool; reset the device";
    ACL_ERROR_RT_SUSPECT_REMOTE_ERROR: "a remote device or its link probably failed",
        "look at the other side's log first";
    ACL_ERROR_RT_DRV_INTERNAL_ERROR: "the driver failed inside", "read dmesg; update or reload the driver";
    ACL_ERROR_RT_AICPU_INTERNAL_ERROR: "the device's own CPU failed", "read the device's log; reset the device";
}
