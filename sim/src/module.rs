//! Kernel objects: shared objects compiled for the CPU from AscendC sources, loaded from bytes, and the kernels in them.
//!
//! The bytes go into a memfd that dlopen reads. glibc knows a loaded object by its path, so a module keeps its descriptor until the object is
//! unloaded: another one under the same number would bring back the first one's code. Where a memfd may not be executed, an unlinked file is
//! used. The object's functions reach the emulator through the table of `services.rs` only. Called by the ACL entries and by launch.

use std::ffi::{c_void, CStr, CString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use npushmem_ffi::acl;
use rustix::fs::{memfd_create, MemfdFlags};

use crate::abi::{npusim_kernel, npusim_module, npusim_services, NPUSIM_MAGIC, NPUSIM_VERSION};
use crate::config;
use crate::error::{fail, system, Fail, Outcome};
use crate::handles::Handles;

/// `e_machine` of the CPU this runs on.
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
/// Bytes of a 64-bit ELF header.
const ELF_HEADER: usize = 64;
/// Bytes of a 64-bit program header.
const PROGRAM_HEADER: u64 = 56;
/// `e_ident[EI_CLASS]` of a 64-bit object.
const ELFCLASS64: u8 = 2;
/// `e_type` of a shared object.
const ET_DYN: u16 = 3;
/// Most parameters a kernel may have; more is a damaged object.
const MAX_PARAMS: u32 = 1024;
/// Most kernels in an object; more is a damaged one.
const MAX_KERNELS: u32 = 1 << 16;

type Bind = unsafe extern "C" fn(*const npusim_services, *mut npusim_module) -> i32;

/// A loaded kernel object.
pub(crate) struct Module {
    library: *mut c_void,
    fd: Option<OwnedFd>,
    /// Path that it was opened by, to see whether it is really gone.
    path: CString,
    bound: npusim_module,
    /// Where the object's code lies.
    pub(crate) text: (u64, u64),
}

// SAFETY: the handle and the pointers lead to the loaded object, which any thread may use and which lives as long as the module.
unsafe impl Send for Module {}
// SAFETY: as above; nothing in the object is changed after it was bound.
unsafe impl Sync for Module {}

/// All modules.
pub(crate) static MODULES: Handles<Module> = Handles::new("kernel object", 3);

fn bad_object(text: impl Into<String>) -> Fail {
    fail(acl::ACL_ERROR_INVALID_FILE, text)
}

/// Refuses what the dynamic linker would stumble over: it trusts the sizes that an object states, and dies of one that was cut short.
fn check_elf(bytes: &[u8]) -> Outcome {
    if bytes.len() < ELF_HEADER || bytes[..4] != *b"\x7fELF" {
        return Err(bad_object(format!(
            "{} bytes that are no ELF object",
            bytes.len()
        )));
    }
    // Offsets are those of Elf64_Ehdr and Elf64_Phdr (elf(5)).
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| {
        bytes[at..at + 8]
            .iter()
            .rev()
            .fold(0u64, |word, byte| word << 8 | u64::from(*byte))
    };
    let (kind, machine) = (half(16), half(18));
    if bytes[4] != ELFCLASS64 || machine != MACHINE {
        return Err(bad_object(format!(
            "the object is for machine {machine}, and the emulated NPU runs objects of this CPU ({MACHINE}): pass the one compiled for target `sim`"
        )));
    }
    if kind != ET_DYN {
        return Err(bad_object(format!(
            "the object is of ELF type {kind}, a shared object (3) is wanted: link it with -shared"
        )));
    }
    let cut = || {
        bad_object(format!(
            "the object is cut short: {} bytes are less than its header says; copy it whole",
            bytes.len()
        ))
    };
    let (headers, size, count) = (word(32), u64::from(half(54)), u64::from(half(56)));
    let end = headers
        .checked_add(size * count)
        .filter(|end| size >= PROGRAM_HEADER && *end <= bytes.len() as u64)
        .ok_or_else(cut)?;
    for at in (headers..end).step_by(size as usize) {
        let (offset, length) = (word(at as usize + 8), word(at as usize + 32));
        offset
            .checked_add(length)
            .filter(|end| *end <= bytes.len() as u64)
            .ok_or_else(cut)?;
    }
    Ok(())
}

impl Module {
    /// Loads an object from memory.
    pub(crate) fn load(bytes: &[u8]) -> Outcome<Self> {
        check_elf(bytes)?;
        let first = memfd_create("npusim kernel object", MemfdFlags::CLOEXEC)
            .map_err(|e| system("memfd_create", e))
            .and_then(|fd| Self::open(fd, bytes));
        match first {
            Ok((library, fd, path)) => Self::bind(library, fd, path),
            // Where executing a memfd is refused (vm.memfd_noexec, SELinux), a file without a name does.
            Err(first) => match unlinked_file().and_then(|file| Self::open(file.into(), bytes)) {
                Ok((library, fd, path)) => Self::bind(library, fd, path),
                Err(second) => Err(bad_object(format!(
                    "{}; as a file: {}",
                    first.text, second.text
                ))),
            },
        }
    }

    fn open(fd: OwnedFd, bytes: &[u8]) -> Outcome<(*mut c_void, OwnedFd, CString)> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(&fd, rest) {
                Ok(n) => rest = &rest[n..],
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(system("cannot write the kernel object", e)),
            }
        }
        let path = CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd()))
            .map_err(|e| system("a path", e))?;
        // SAFETY: `path` names an ELF object; its constructors are those of a kernel object that the caller asks to run.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(bad_object(format!(
                "the dynamic linker refuses the object: {}",
                dl_error()
            )));
        }
        Ok((library, fd, path))
    }

    fn bind(library: *mut c_void, fd: OwnedFd, path: CString) -> Outcome<Self> {
        // From here on the object is closed when something is wrong.
        let mut module = Self {
            library,
            fd: Some(fd),
            path,
            bound: npusim_module {
                size: size_of::<npusim_module>() as u64,
                ..Default::default()
            },
            text: (0, 0),
        };
        // SAFETY: the library is open.
        let symbol = unsafe { libc::dlsym(library, c"npusim_bind".as_ptr()) };
        if symbol.is_null() {
            return Err(bad_object("the object has no npusim_bind: it was not compiled by npushmem-build for target `sim`"));
        }
        // SAFETY: npusim.h declares the symbol with this type.
        let bind: Bind = unsafe { std::mem::transmute(symbol) };
        let config = config::get()?;
        // SAFETY: both structures are valid for the call, and the services live as long as the process.
        let refused = unsafe {
            bind(
                crate::services::table(config.soc.counter_hz),
                &mut module.bound,
            )
        };
        if refused != 0
            || module.bound.magic != NPUSIM_MAGIC
            || module.bound.version != NPUSIM_VERSION
        {
            return Err(fail(
                acl::ACL_ERROR_RT_SOC_VERSION,
                format!(
                    "the object and the emulator do not fit (answer {refused}, object version {}, emulator version {NPUSIM_VERSION}): rebuild the kernels with this npusim",
                    module.bound.version
                ),
            ));
        }
        if module.bound.npu_arch != config.soc.npu_arch {
            return Err(fail(
                acl::ACL_ERROR_RT_SOC_VERSION,
                format!(
                    "the object is for NPU architecture {}, and {} has {}: load the object of that target, or set NPUSIM_SOC",
                    module.bound.npu_arch, config.soc.name, config.soc.npu_arch
                ),
            ));
        }
        let sane = module.bound.leave.is_some()
            && (1..=MAX_KERNELS).contains(&module.bound.n_kernels)
            && !module.bound.kernels.is_null()
            && module.kernels().iter().all(|kernel| {
                !kernel.name.is_null() && kernel.run.is_some() && kernel.n_params <= MAX_PARAMS
            });
        if !sane {
            return Err(bad_object(
                "the object's kernel table is damaged or empty: rebuild the kernels",
            ));
        }
        module.text = text_range(symbol as u64);
        Ok(module)
    }

    pub(crate) fn kernels(&self) -> &[npusim_kernel] {
        // SAFETY: the bound table has so many entries, in static storage of the object, which lives as long as self.
        unsafe { std::slice::from_raw_parts(self.bound.kernels, self.bound.n_kernels as usize) }
    }

    /// Where the fault handler sends a block's thread.
    pub(crate) fn leave(&self) -> u64 {
        self.bound.leave.map_or(0, |leave| leave as usize as u64)
    }

    /// The kernel called `name`.
    pub(crate) fn function(self: &Arc<Self>, name: &str) -> Outcome<Function> {
        let named: Vec<String> = self.kernels().iter().map(name_of).collect();
        let Some(index) = named.iter().position(|kernel| kernel == name) else {
            return Err(fail(
                acl::ACL_ERROR_RT_KERNEL_LOOKUP,
                format!(
                    "the object has no kernel \"{name}\"; it has: {}",
                    named.join(", ")
                ),
            ));
        };
        let kernel = self.kernels()[index];
        let params = if kernel.n_params == 0 || kernel.param_sizes.is_null() {
            Vec::new()
        } else {
            // SAFETY: the table says so many sizes, in static storage of the object.
            unsafe { std::slice::from_raw_parts(kernel.param_sizes, kernel.n_params as usize) }
                .to_vec()
        };
        Ok(Function {
            module: self.clone(),
            kernel,
            name: name.to_owned(),
            params,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; every block that runs its code holds the module.
        unsafe { libc::dlclose(self.library) };
        // SAFETY: `path` is a NUL-terminated string; NOLOAD opens nothing new.
        let still = unsafe { libc::dlopen(self.path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        if !still.is_null() {
            // The object cannot be unloaded (unique symbols): its path must never mean another one.
            std::mem::forget(self.fd.take());
        }
    }
}

fn name_of(kernel: &npusim_kernel) -> String {
    // SAFETY: the object's kernel names are NUL-terminated strings in its static storage; `bind` refused NULL.
    unsafe { CStr::from_ptr(kernel.name) }
        .to_string_lossy()
        .into_owned()
}

fn dl_error() -> String {
    // SAFETY: dlerror returns NULL or a string that is good until the thread's next dl call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: not NULL, NUL-terminated.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn unlinked_file() -> Outcome<File> {
    let folders = [
        std::env::var_os("XDG_RUNTIME_DIR"),
        Some(std::env::temp_dir().into_os_string()),
    ];
    let mut last = "no folder for temporary files".to_owned();
    for folder in folders.into_iter().flatten() {
        let path = std::path::Path::new(&folder);
        match rustix::fs::open(
            path,
            rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
            0o700.into(),
        ) {
            Ok(fd) => return Ok(fd.into()),
            Err(e) => last = format!("{}: {e}", path.display()),
        }
    }
    Err(bad_object(last))
}

/// The executable segment that holds `address`; (0, 0) when it cannot be found.
fn text_range(address: u64) -> (u64, u64) {
    struct Search {
        address: u64,
        found: (u64, u64),
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> i32 {
        // SAFETY: dl_iterate_phdr passes a valid entry, and the pointer that was given to it.
        let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
        for i in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: the entry has dlpi_phnum program headers.
            let header = unsafe { &*info.dlpi_phdr.add(i) };
            let (from, to) = (
                info.dlpi_addr + header.p_vaddr,
                info.dlpi_addr + header.p_vaddr + header.p_memsz,
            );
            if header.p_type == libc::PT_LOAD
                && header.p_flags & libc::PF_X != 0
                && (from..to).contains(&search.address)
            {
                search.found = (from, to);
                return 1;
            }
        }
        0
    }
    let mut search = Search {
        address,
        found: (0, 0),
    };
    // SAFETY: the callback gets `search`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// One kernel of a loaded object.
pub(crate) struct Function {
    pub(crate) module: Arc<Module>,
    pub(crate) kernel: npusim_kernel,
    pub(crate) name: String,
    /// Bytes of each parameter.
    pub(crate) params: Vec<u32>,
}

// SAFETY: the pointers of `kernel` lead to static storage of the object, which the module keeps loaded.
unsafe impl Send for Function {}
// SAFETY: as above; nothing is changed.
unsafe impl Sync for Function {}

/// All functions that were asked for.
pub(crate) static FUNCTIONS: Handles<Function> = Handles::new("kernel function", 4);

/// Arguments in the making, or finished.
pub(crate) struct Args {
    pub(crate) function: Arc<Function>,
    pub(crate) state: std::sync::Mutex<ArgsState>,
}

#[derive(Default)]
pub(crate) struct ArgsState {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: usize,
    pub(crate) finished: bool,
}

/// All argument lists.
pub(crate) static ARGS: Handles<Args> = Handles::new("argument list", 5);

/// Natural alignment of a parameter of so many bytes.
fn alignment(size: usize) -> usize {
    match size {
        1 | 2 | 4 => size,
        _ => 8,
    }
}

impl Args {
    /// Adds one argument by value.
    pub(crate) fn append(&self, value: &[u8]) -> Outcome<usize> {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let function = &self.function;
        if state.finished {
            return Err(crate::error::invalid("the list is finished (aclrtKernelArgsFinalize): begin a new one with aclrtKernelArgsInit"));
        }
        match function.params.get(state.count) {
            None => {
                return Err(crate::error::invalid(format!(
                    "kernel {} has {} parameter(s), this would be one more",
                    function.name,
                    function.params.len()
                )))
            }
            Some(size) if *size as usize != value.len() => {
                return Err(crate::error::invalid(format!(
                    "parameter {} of kernel {} has {size} bytes, and {} are passed",
                    state.count,
                    function.name,
                    value.len()
                )))
            }
            Some(_) => {}
        }
        let at = state.bytes.len().next_multiple_of(alignment(value.len()));
        state.bytes.resize(at, 0);
        state.bytes.extend_from_slice(value);
        state.count += 1;
        Ok(at)
    }
}
