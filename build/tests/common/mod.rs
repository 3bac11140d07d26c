//! Runs kernels of an object through its trampoline with services made here: a stand-in for the emulator that knows no devices.

#![allow(dead_code)] // each test program uses a part

use std::ffi::{c_char, c_int, c_void, CStr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Mutex;

const MAGIC: u32 = 0x4d49_534e;
const VERSION: u32 = 2;
/// Unified buffer of an A2 core, bytes.
pub const UB: usize = 196_608;
pub const FAULT_RULE: i32 = 1;
pub const FAULT_TRAP: i32 = 3;
pub const FAULT_STOPPED: i32 = 4;

// The structures of sim/ascendc/npusim.h.

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    pub sq_doorbells: u64,
    pub cq_doorbells: u64,
    pub mte2_copies: u64,
    pub mte2_bytes: u64,
    pub mte3_copies: u64,
    pub mte3_bytes: u64,
    pub vector_ops: u64,
    pub flags_set: u64,
    pub flags_waited: u64,
    pub pipe_barriers: u64,
    pub dcci_lines: u64,
    pub dcci_all: u64,
    pub device_loads: u64,
    pub device_stores: u64,
    pub cached_loads: u64,
    pub cached_stores: u64,
    pub core_atomics: u64,
}

#[repr(C)]
pub struct Fault {
    pub code: i32,
    pub line: u32,
    pub file: *const c_char,
    pub address: u64,
    pub message: [c_char; 480],
}

#[repr(C)]
pub struct Block {
    magic: u32,
    version: u32,
    size: u64,
    pub block_idx: i64,
    pub block_num: i64,
    ub: *mut u8,
    ub_size: u64,
    doorbell_begin: u64,
    doorbell_end: u64,
    pub chaos_seed: u64,
    stop: *const AtomicU32,
    timed: u64,
    pub counters: Counters,
    pub fault: Fault,
    kernel_side: *mut c_void,
    emulator_side: *mut c_void,
}

#[repr(C)]
struct Services {
    magic: u32,
    version: u32,
    size: u64,
    doorbell: extern "C" fn(*mut Block, u64, u64) -> c_int,
    sync_all: extern "C" fn(*mut Block) -> c_int,
    system_cycle: extern "C" fn(*const Block) -> u64,
    yield_: extern "C" fn(*mut Block),
    print: extern "C" fn(*mut Block, *const c_char, u64),
    time: extern "C" fn(*mut Block, u32, u64, u64, u64) -> u64,
}

#[repr(C)]
struct RawKernel {
    name: *const c_char,
    n_params: u32,
    args_size: u32,
    param_sizes: *const u32,
    run: extern "C" fn(*mut Block, *const c_void) -> c_int,
}

#[repr(C)]
struct RawModule {
    magic: u32,
    version: u32,
    size: u64,
    npu_arch: u32,
    n_kernels: u32,
    kernels: *const RawKernel,
    leave: Option<extern "C" fn(*mut Block)>,
}

/// What the services saw of one run; block->emulator_side points here.
#[derive(Default)]
struct Seen {
    doorbells: Mutex<Vec<(u64, u64)>>,
    printed: Mutex<String>,
    yields: AtomicU64,
    /// Doorbells fail with this sentence.
    refuse_doorbells: bool,
    /// The stop word is set at this yield.
    stop_at_yield: u64,
    stop: AtomicU32,
}

fn seen<'a>(block: *mut Block) -> &'a Seen {
    // SAFETY: Module::run put a Seen there that outlives the run.
    unsafe { &*(*block).emulator_side.cast::<Seen>() }
}

extern "C" fn doorbell(block: *mut Block, address: u64, value: u64) -> c_int {
    let seen = seen(block);
    if seen.refuse_doorbells {
        // SAFETY: the block is the caller's own.
        let fault = unsafe { &mut (*block).fault };
        fault.code = FAULT_RULE;
        for (to, from) in fault.message.iter_mut().zip(b"the NIC refuses\0") {
            *to = *from as c_char;
        }
        return 1;
    }
    seen.doorbells.lock().unwrap().push((address, value));
    0
}
extern "C" fn sync_all(_: *mut Block) -> c_int {
    0
}
/// Blocks here are not timed.
extern "C" fn time(_: *mut Block, _: u32, _: u64, _: u64, c: u64) -> u64 {
    c
}
extern "C" fn system_cycle(_: *const Block) -> u64 {
    static CYCLE: AtomicU64 = AtomicU64::new(1);
    CYCLE.fetch_add(1, Ordering::Relaxed)
}
extern "C" fn yield_(block: *mut Block) {
    let seen = seen(block);
    let n = seen.yields.fetch_add(1, Ordering::Relaxed) + 1;
    if seen.stop_at_yield != 0 && n >= seen.stop_at_yield {
        seen.stop.store(1, Ordering::Relaxed);
    }
}
extern "C" fn print(block: *mut Block, text: *const c_char, length: u64) {
    // SAFETY: the kernel side passes a text of that length.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length as usize) };
    seen(block)
        .printed
        .lock()
        .unwrap()
        .push_str(&String::from_utf8_lossy(bytes));
}

static SERVICES: Services = Services {
    magic: MAGIC,
    version: VERSION,
    size: std::mem::size_of::<Services>() as u64,
    doorbell,
    sync_all,
    system_cycle,
    yield_,
    print,
    time,
};

/// A loaded kernel object.
pub struct Module {
    raw: RawModule,
    _library: libloading::Library,
}
// SAFETY: the module's tables are constant after binding.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Module {}

/// How to run a block.
pub struct Launch {
    pub chaos_seed: u64,
    pub block_idx: i64,
    pub block_num: i64,
    /// Doorbell pages; (0, 0): none.
    pub doorbells: (u64, u64),
    pub refuse_doorbells: bool,
    pub stop_at_yield: u64,
}
impl Default for Launch {
    fn default() -> Self {
        Launch {
            chaos_seed: 0,
            block_idx: 0,
            block_num: 1,
            doorbells: (0, 0),
            refuse_doorbells: false,
            stop_at_yield: 0,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub file: String,
    pub line: u32,
    pub message: String,
    pub counters: Counters,
    pub doorbells: Vec<(u64, u64)>,
    pub printed: String,
    pub yields: u64,
}

/// The folder of the emulated NPU's AscendC headers.
pub fn ascendc() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/ascendc")
}

/// The compiler for kernels under tests/kernels.
pub fn compiler() -> npushmem_build::sim::Compiler {
    npushmem_build::sim::Compiler::find(ascendc())
        .unwrap()
        .root(env!("CARGO_MANIFEST_DIR"))
}

impl Module {
    /// Compiles tests/kernels/`name` and loads it.
    pub fn compile(name: &str, arch: u32) -> Module {
        let folder = tempfile::tempdir().unwrap();
        let object = compiler()
            .compile(&Path::new("tests/kernels").join(name), arch, folder.path())
            .unwrap();
        Module::load(&object.path)
    }

    /// Loads an object and binds it to the services here.
    pub fn load(path: &Path) -> Module {
        // SAFETY: a kernel object has no constructors that do anything but initialise its own data.
        let library = unsafe { libloading::Library::new(path) }.unwrap();
        // SAFETY: npusim.h declares the function so.
        let bind: libloading::Symbol<
            unsafe extern "C" fn(*const Services, *mut RawModule) -> c_int,
        > = unsafe { library.get(b"npusim_bind\0") }.unwrap();
        let mut raw = RawModule {
            magic: 0,
            version: 0,
            size: 0,
            npu_arch: 0,
            n_kernels: 0,
            kernels: std::ptr::null(),
            leave: None,
        };
        let mut old = Services {
            version: VERSION + 1,
            ..SERVICES
        };
        // SAFETY: both pointers are valid for the call.
        unsafe {
            assert_ne!(
                bind(&old, &mut raw),
                0,
                "services of another version are refused"
            );
            old.version = VERSION;
            old.size -= 1;
            assert_ne!(
                bind(&old, &mut raw),
                0,
                "services that are too small are refused"
            );
            assert_eq!(bind(&SERVICES, &mut raw), 0);
        }
        assert_eq!(
            (raw.magic, raw.version, raw.size),
            (MAGIC, VERSION, std::mem::size_of::<RawModule>() as u64)
        );
        Module {
            raw,
            _library: library,
        }
    }

    pub fn arch(&self) -> u32 {
        self.raw.npu_arch
    }

    fn kernels(&self) -> &[RawKernel] {
        // SAFETY: the module says how many there are.
        unsafe { std::slice::from_raw_parts(self.raw.kernels, self.raw.n_kernels as usize) }
    }

    /// Names in the order of the source.
    pub fn names(&self) -> Vec<&str> {
        // SAFETY: names are static texts of the object.
        self.kernels()
            .iter()
            .map(|k| unsafe { CStr::from_ptr(k.name) }.to_str().unwrap())
            .collect()
    }

    fn kernel(&self, name: &str) -> &RawKernel {
        let index = self
            .names()
            .iter()
            .position(|n| *n == name)
            .unwrap_or_else(|| panic!("no kernel {name} in {:?}", self.names()));
        &self.kernels()[index]
    }

    /// Bytes of the argument block and of each parameter.
    pub fn layout(&self, name: &str) -> (u32, Vec<u32>) {
        let kernel = self.kernel(name);
        // SAFETY: the kernel says how many there are.
        (
            kernel.args_size,
            unsafe { std::slice::from_raw_parts(kernel.param_sizes, kernel.n_params as usize) }
                .to_vec(),
        )
    }

    /// Runs one block on a thread of its own.
    pub fn run(&self, name: &str, arguments: &[u8], launch: &Launch) -> Outcome {
        std::thread::scope(|scope| {
            scope
                .spawn(|| self.run_here(name, arguments, launch))
                .join()
                .unwrap()
        })
    }

    /// Runs one block on this thread.
    pub fn run_here(&self, name: &str, arguments: &[u8], launch: &Launch) -> Outcome {
        let kernel = self.kernel(name);
        assert_eq!(
            arguments.len(),
            kernel.args_size as usize,
            "{name}: packed arguments"
        );
        let mut packed = vec![0u64; arguments.len().div_ceil(8).max(1)];
        bytes_of_mut(&mut packed)[..arguments.len()].copy_from_slice(arguments);
        let mut ub = vec![0u64; UB / 8 + 8];
        let ub_start = ub.as_mut_ptr().cast::<u8>();
        let seen = Seen {
            refuse_doorbells: launch.refuse_doorbells,
            stop_at_yield: launch.stop_at_yield,
            ..Seen::default()
        };
        let mut block = Box::new(Block {
            magic: MAGIC,
            version: VERSION,
            size: std::mem::size_of::<Block>() as u64,
            block_idx: launch.block_idx,
            block_num: launch.block_num,
            // SAFETY: there are 64 bytes more than the buffer needs.
            ub: unsafe { ub_start.add(ub_start.align_offset(64)) },
            ub_size: UB as u64,
            doorbell_begin: launch.doorbells.0,
            doorbell_end: launch.doorbells.1,
            chaos_seed: launch.chaos_seed,
            stop: &seen.stop,
            timed: 0,
            counters: Counters::default(),
            fault: Fault {
                code: 0,
                line: 0,
                file: std::ptr::null(),
                address: 0,
                message: [0; 480],
            },
            kernel_side: std::ptr::null_mut(),
            emulator_side: std::ptr::from_ref(&seen).cast_mut().cast(),
        });
        let code = (kernel.run)(&mut *block, packed.as_ptr().cast());
        assert_eq!(code, block.fault.code);
        assert!(
            block.kernel_side.is_null(),
            "the trampoline gives its state back"
        );
        let text = |p: *const c_char| {
            if p.is_null() {
                String::new()
            } else {
                // SAFETY: a static text of the object, or the block's own message, which ends with NUL.
                unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
            }
        };
        Outcome {
            code,
            file: text(block.fault.file),
            line: block.fault.line,
            message: text(block.fault.message.as_ptr()),
            counters: block.counters,
            doorbells: seen.doorbells.into_inner().unwrap(),
            printed: seen.printed.into_inner().unwrap(),
            yields: seen.yields.into_inner(),
        }
    }
}

fn bytes_of_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are a u64.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Global memory for kernels: 64-byte aligned, zeroed.
pub struct Gm {
    words: Vec<u64>,
    start: usize,
}
impl Gm {
    pub fn new(bytes: usize) -> Gm {
        let words = vec![0u64; bytes.div_ceil(8) + 8];
        let start = words.as_ptr().align_offset(64);
        Gm { words, start }
    }
    pub fn address(&self) -> u64 {
        self.words[self.start..].as_ptr() as u64
    }
    pub fn words(&mut self) -> &mut [u64] {
        &mut self.words[self.start..]
    }
    pub fn bytes(&mut self) -> &mut [u8] {
        bytes_of_mut(&mut self.words[self.start..])
    }
    pub fn put<const N: usize>(&mut self, at: usize, values: &[[u8; N]]) {
        for (i, value) in values.iter().enumerate() {
            self.bytes()[at + i * N..at + (i + 1) * N].copy_from_slice(value);
        }
    }
    pub fn f32s(&mut self, at: usize, n: usize) -> Vec<f32> {
        self.bytes()[at..at + 4 * n]
            .chunks_exact(4)
            .map(|b| f32::from_ne_bytes(b.try_into().unwrap()))
            .collect()
    }
    pub fn u32s(&mut self, at: usize, n: usize) -> Vec<u32> {
        self.bytes()[at..at + 4 * n]
            .chunks_exact(4)
            .map(|b| u32::from_ne_bytes(b.try_into().unwrap()))
            .collect()
    }
}

/// Packs pointers and 64-bit numbers.
pub fn pack(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

/// Line of tests/kernels/`file` that ends in the comment `// here: <word>`.
pub fn line_of(file: &str, word: &str) -> u32 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/kernels")
        .join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mark = format!("// here: {word}");
    let line = text
        .lines()
        .position(|l| l.ends_with(&mark))
        .unwrap_or_else(|| panic!("{file} has no line with {mark}"));
    line as u32 + 1
}
