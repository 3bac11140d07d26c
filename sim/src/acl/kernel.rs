//! Kernel objects, their arguments, launches.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use npushmem_ffi::acl;

use super::{array, put, read, text};
use crate::config;
use crate::error::{entries, fail, invalid, Outcome};
use crate::launch::{Launch, Order};
use crate::module::{Args, ArgsState, Function, Module, ARGS, FUNCTIONS, MODULES};
use crate::stream;
use crate::task::Task;

/// Most blocks of a launch (documented: 65535).
const MAX_BLOCKS: u32 = 65_535;
/// Most bytes of arguments, placeholder data included.
const MAX_ARGS: usize = 64 << 10;
/// Alignment of an argument block.
const ARGS_ALIGN: usize = 8;

fn check_options(options: *const acl::aclrtBinaryLoadOptions) -> Outcome {
    if options.is_null() {
        return Ok(());
    }
    let options = read(options, "options")?;
    // SAFETY: the caller passes numOpt options.
    for option in unsafe { array(options.options, options.numOpt, "options->options") }? {
        match option.type_ {
            acl::ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD | acl::ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE => {
            }
            acl::ACL_RT_BINARY_LOAD_OPT_MAGIC => {
                // SAFETY: every bit pattern is a number.
                let magic = unsafe { option.value.magic };
                if ![
                    acl::ACL_RT_BINARY_MAGIC_ELF_AICORE,
                    acl::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE,
                ]
                .contains(&magic)
                {
                    return Err(fail(
                        acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                        format!("magic {magic:#x}: the emulated NPU has vector cores only (0x41415246), or mixed objects (0x43554245)"),
                    ));
                }
            }
            other => return Err(invalid(format!("load option {other} is none that exists"))),
        }
    }
    Ok(())
}

fn load(bytes: &[u8], handle: *mut acl::aclrtBinHandle) -> Outcome {
    if handle.is_null() {
        return Err(invalid("binHandle is NULL"));
    }
    put(
        handle,
        "binHandle",
        MODULES.insert(Arc::new(Module::load(bytes)?)),
    )
}

/// What a launch's attributes say.
struct Attributes {
    batch: bool,
    limit: Duration,
}

fn attributes(cfg: *const acl::aclrtLaunchKernelCfg) -> Outcome<Attributes> {
    let mut out = Attributes {
        batch: false,
        limit: config::get()?.kernel_timeout,
    };
    if cfg.is_null() {
        return Ok(out);
    }
    let cfg = read(cfg, "cfg")?;
    // SAFETY: the caller passes numAttrs attributes.
    for attribute in unsafe { array(cfg.attrs, cfg.numAttrs, "cfg->attrs") }? {
        let value = attribute.value;
        // SAFETY: every member is a number, and every bit pattern one.
        unsafe {
            match attribute.id {
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE => match value.schemMode {
                    0 => out.batch = false,
                    1 => out.batch = true,
                    other => {
                        return Err(invalid(format!(
                            "schemMode {other}: 0 (normal) or 1 (batch) is wanted"
                        )))
                    }
                },
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE
                    if value.engineType != acl::ACL_RT_ENGINE_TYPE_AIV =>
                {
                    return Err(fail(
                        acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                        format!(
                            "engineType {}: the emulated NPU has AIV (1) only",
                            value.engineType
                        ),
                    ));
                }
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET if value.blockDimOffset != 0 => {
                    return Err(fail(
                        acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                        "blockDimOffset: the emulated NPU has 0 only",
                    ));
                }
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT if value.timeout != 0 => {
                    out.limit = Duration::from_secs(u64::from(value.timeout))
                }
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US => {
                    let us = u64::from(value.timeoutUs.timeoutHigh) << 32
                        | u64::from(value.timeoutUs.timeoutLow);
                    if us != 0 {
                        out.limit = Duration::from_micros(us);
                    }
                }
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE
                | acl::ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET
                | acl::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT
                | acl::ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE
                | acl::ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH
                | acl::ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP => {}
                other => {
                    return Err(invalid(format!(
                        "launch attribute {other} is none that the emulator knows"
                    )))
                }
            }
        }
    }
    Ok(out)
}

fn launch(
    function: &Arc<Function>,
    blocks: u32,
    stream: acl::aclrtStream,
    cfg: *const acl::aclrtLaunchKernelCfg,
    args: Vec<u8>,
    places: Vec<(u32, u32)>,
) -> Outcome {
    let stream = stream::get(stream)?;
    if blocks == 0 || blocks > MAX_BLOCKS {
        return Err(invalid(format!(
            "numBlocks {blocks}: 1 to {MAX_BLOCKS} are wanted"
        )));
    }
    let Attributes { batch, limit } = attributes(cfg)?;
    let cores = stream.device.scheduler.cores;
    if batch && blocks > cores {
        return Err(invalid(format!(
            "numBlocks {blocks} with schemMode 1 (batch): all blocks start together, and device {} has {cores} cores",
            stream.device.id
        )));
    }
    let wanted = function.kernel.args_size as usize;
    let fits = args.len() == wanted
        || args.len() == wanted.next_multiple_of(ARGS_ALIGN)
        || (!places.is_empty() && args.len() > wanted);
    if !fits {
        return Err(invalid(format!(
            "the arguments have {} bytes, and kernel {} takes {wanted} ({} parameter(s), packed with natural alignment)",
            args.len(),
            function.name,
            function.params.len()
        )));
    }
    let order = Order {
        function: function.clone(),
        device: stream.device.clone(),
        blocks,
        batch,
        limit,
        args,
        places,
    };
    stream.submit(Task::Kernel(Arc::new(Launch::new(order))))
}

entries! {
    fn aclrtBinaryLoadFromFile(path: *const c_char, options: *mut acl::aclrtBinaryLoadOptions, handle: *mut acl::aclrtBinHandle) {
        check_options(options)?;
        let path = text(path, "binPath")?;
        let bytes = std::fs::read(&path).map_err(|e| fail(acl::ACL_ERROR_RT_FILE_OPEN, format!("cannot read the kernel object {path}: {e}")))?;
        load(&bytes, handle)
    }

    fn aclrtBinaryLoadFromData(data: *const c_void, length: usize, options: *const acl::aclrtBinaryLoadOptions, handle: *mut acl::aclrtBinHandle) {
        check_options(options)?;
        if length == 0 {
            return Err(invalid("length 0: an object is wanted"));
        }
        // SAFETY: the caller passes `length` bytes.
        load(unsafe { array(data.cast::<u8>(), length, "data") }?, handle)
    }

    fn aclrtBinaryUnLoad(handle: acl::aclrtBinHandle) {
        // Functions and launches keep the object until they end.
        let module = MODULES.remove(handle)?;
        FUNCTIONS.remove_where(|function| Arc::ptr_eq(&function.module, &module));
        Ok(())
    }

    fn aclrtBinaryGetFunction(handle: acl::aclrtBinHandle, name: *const c_char, function: *mut acl::aclrtFuncHandle) {
        let module = MODULES.get(handle)?;
        if function.is_null() {
            return Err(invalid("funcHandle is NULL"));
        }
        put(function, "funcHandle", FUNCTIONS.insert(Arc::new(module.function(&text(name, "kernelName")?)?)))
    }

    fn aclrtKernelArgsInit(function: acl::aclrtFuncHandle, handle: *mut acl::aclrtArgsHandle) {
        let function = FUNCTIONS.get(function)?;
        if handle.is_null() {
            return Err(invalid("argsHandle is NULL"));
        }
        put(handle, "argsHandle", ARGS.insert(Arc::new(Args { function, state: Mutex::new(ArgsState::default()) })))
    }

    fn aclrtKernelArgsAppend(handle: acl::aclrtArgsHandle, param: *mut c_void, size: usize, out: *mut acl::aclrtParamHandle) {
        let args = ARGS.get(handle)?;
        // SAFETY: the caller passes `size` bytes.
        let at = args.append(unsafe { array(param.cast::<u8>(), size, "param") }?)?;
        if !out.is_null() {
            // Offset 0 must not look like NULL.
            put(out, "paramHandle", (at + 1) as acl::aclrtParamHandle)?;
        }
        Ok(())
    }

    fn aclrtKernelArgsFinalize(handle: acl::aclrtArgsHandle) {
        let args = ARGS.get(handle)?;
        let mut state = args.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = args.function.params.len();
        if state.count != wanted {
            return Err(invalid(format!("kernel {} has {wanted} parameter(s), and {} were appended", args.function.name, state.count)));
        }
        state.finished = true;
        Ok(())
    }

    fn aclrtLaunchKernelWithConfig(
        function: acl::aclrtFuncHandle,
        blocks: u32,
        stream: acl::aclrtStream,
        cfg: *mut acl::aclrtLaunchKernelCfg,
        handle: acl::aclrtArgsHandle,
        reserve: *mut c_void,
    ) {
        let function = FUNCTIONS.get(function)?;
        if !reserve.is_null() {
            return Err(invalid("reserve must be NULL"));
        }
        let args = ARGS.get(handle)?;
        if !std::ptr::eq(args.function.kernel.name, function.kernel.name) {
            return Err(invalid(format!("the arguments were made for kernel {}, not for {}", args.function.name, function.name)));
        }
        let bytes = {
            let state = args.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.finished {
                return Err(invalid("the arguments are not finished: call aclrtKernelArgsFinalize first"));
            }
            state.bytes.clone()
        };
        launch(&function, blocks, stream, cfg, bytes, Vec::new())?;
        // A list serves one launch; the runtime gives its memory back with it.
        ARGS.remove(handle).map(|_| ())
    }

    fn aclrtLaunchKernelWithHostArgs(
        function: acl::aclrtFuncHandle,
        blocks: u32,
        stream: acl::aclrtStream,
        cfg: *mut acl::aclrtLaunchKernelCfg,
        arguments: *mut c_void,
        size: usize,
        places: *mut acl::aclrtPlaceHolderInfo,
        count: usize,
    ) {
        let function = FUNCTIONS.get(function)?;
        if size > MAX_ARGS {
            return Err(invalid(format!("argsSize {size}: at most {MAX_ARGS} bytes are possible")));
        }
        // SAFETY: the caller passes `size` bytes.
        let bytes = unsafe { array(arguments.cast::<u8>().cast_const(), size, "hostArgs") }?.to_vec();
        let mut offsets = Vec::new();
        // SAFETY: the caller passes `count` placeholders.
        for place in unsafe { array(places, count, "placeHolderArray") }? {
            if place.addrOffset as usize + 8 > size || place.addrOffset % 8 != 0 || place.dataOffset as usize >= size {
                return Err(invalid(format!(
                    "a placeholder with the address at {} and the data at {}: both lie in the {size} bytes of arguments, the address aligned to 8",
                    place.addrOffset, place.dataOffset
                )));
            }
            offsets.push((place.addrOffset, place.dataOffset));
        }
        launch(&function, blocks, stream, cfg, bytes, offsets)
    }
}
