//! What the NIC's tests share: device-like memory, and a queue pair driven as a kernel drives it.
#![allow(dead_code, missing_docs)] // each test binary uses a part

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use npushmem_roce::cqe::{Cqe, Status};
use npushmem_roce::doorbell::Doorbell;
use npushmem_roce::nic::{
    access, Backing, MrInit, MrKeys, Nic, NicConfig, QpAddress, QpInit, QpNumbers,
};
use npushmem_roce::ring::{self, Words, CQE_WORDS, WQE_WORDS};
use npushmem_roce::wqe::{DataSegment, Flags, SendWqe};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const SIGNALED: Flags = Flags {
    signaled: true,
    fence: false,
    strong_order: false,
    solicited: false,
};
pub const SIGNALED_STRONG: Flags = Flags {
    strong_order: true,
    ..SIGNALED
};

/// A sealed memfd, mapped; stays mapped until the end of the test's process.
pub struct Memory {
    file: OwnedFd,
    base: *mut u8,
    len: usize,
}

// SAFETY: plain shared memory; the tests access words of it atomically.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(len: usize) -> Memory {
        let file = rustix::fs::memfd_create(
            "npushmem-test",
            MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
        )
        .unwrap();
        rustix::fs::ftruncate(&file, len as u64).unwrap();
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )
        }
        .unwrap();
        Memory {
            file,
            base: base.cast(),
            len,
        }
    }

    pub fn va(&self) -> u64 {
        self.base as u64
    }

    pub fn ptr(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(offset) }
    }

    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len);
        // SAFETY: inside the mapping and aligned.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    pub fn set(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    pub fn get(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        // SAFETY: inside the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(offset), bytes.len()) }
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        assert!(offset + len <= self.len);
        // SAFETY: inside the mapping.
        unsafe { std::slice::from_raw_parts(self.base.add(offset), len) }.to_vec()
    }

    pub fn mr(&self, access: u32) -> MrInit {
        MrInit {
            va: self.va(),
            len: self.len as u64,
            access,
            backing: Backing {
                fd: self.file.as_raw_fd(),
                offset: 0,
            },
        }
    }
}

/// A NIC with 64 KiB of registered memory.
pub struct Station {
    pub nic: Arc<Nic>,
    pub memory: Arc<Memory>,
    pub keys: MrKeys,
}

pub const STATION_BYTES: usize = 1 << 16;

impl Station {
    pub fn new(config: NicConfig) -> Station {
        let all = access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ;
        let all = if config.atomic_access {
            all | access::REMOTE_ATOMIC
        } else {
            all
        };
        Station::with_access(config, all)
    }

    pub fn with_access(config: NicConfig, access: u32) -> Station {
        let nic = Nic::open(config).unwrap();
        let memory = Arc::new(Memory::new(STATION_BYTES));
        let keys = nic.register_mr(memory.mr(access)).unwrap();
        Station { nic, memory, keys }
    }

    pub fn queue(&self, shape: Shape) -> Queue {
        let queue = Queue::new(&self.nic, shape);
        self.nic.bind_mr(queue.numbers.qpn, self.keys.lkey).unwrap();
        queue
    }

    /// A queue pair connected to itself.
    pub fn loopback(&self, shape: Shape) -> Queue {
        let queue = self.queue(shape);
        queue.connect(&queue.address());
        queue
    }

    pub fn at(&self, offset: usize) -> u64 {
        self.memory.va() + offset as u64
    }

    pub fn segment(&self, offset: usize, len: usize) -> DataSegment {
        DataSegment::new(self.at(offset), len as u32, self.keys.lkey)
    }
}

/// Sizes of a queue pair.
#[derive(Clone, Copy)]
pub struct Shape {
    pub sq_depth: u32,
    pub cq_depth: u32,
    pub cqe_size: u32,
    pub max_inline: u32,
    pub signal_all: bool,
    pub record: bool,
}

pub const SMALL: Shape = Shape {
    sq_depth: 64,
    cq_depth: 64,
    cqe_size: 32,
    max_inline: 32,
    signal_all: false,
    record: false,
};

/// A slot in ring memory, as kernels write and poll it.
pub struct Slot(pub *mut u64);

impl Slot {
    fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the tests stay inside the slots of their rings.
        unsafe { AtomicU64::from_ptr(self.0.add(index)) }
    }
}

impl Words for Slot {
    fn load(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Relaxed)
    }
    fn load_acquire(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Acquire)
    }
    fn store(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Relaxed);
    }
    fn store_release(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Release);
    }
}

/// A queue pair and its rings, driven from one thread.
pub struct Queue {
    pub nic: Arc<Nic>,
    pub numbers: QpNumbers,
    pub shape: Shape,
    pub rings: Memory,
    /// Requests written.
    pub head: u64,
    /// Completions consumed.
    pub consumed: u64,
}

impl Queue {
    pub fn new(nic: &Arc<Nic>, shape: Shape) -> Queue {
        let sq_bytes = shape.sq_depth as usize * 64;
        let cq_bytes = shape.cq_depth as usize * shape.cqe_size as usize;
        let rings = Memory::new(sq_bytes + cq_bytes + 64);
        let init = QpInit {
            sq: rings.ptr(0),
            sq_depth: shape.sq_depth,
            cq: rings.ptr(sq_bytes),
            cq_depth: shape.cq_depth,
            cqe_size: shape.cqe_size,
            max_inline: shape.max_inline,
            sq_sig_all: shape.signal_all,
            sq_swdb: std::ptr::null_mut(),
            cq_swdb: if shape.record {
                rings.ptr(sq_bytes + cq_bytes).cast()
            } else {
                std::ptr::null_mut()
            },
        };
        // SAFETY: the rings stay mapped until the process ends.
        let numbers = unsafe { nic.create_qp(init) }.unwrap();
        Queue {
            nic: Arc::clone(nic),
            numbers,
            shape,
            rings,
            head: 0,
            consumed: 0,
        }
    }

    pub fn address(&self) -> QpAddress {
        self.nic.qp_address(self.numbers.qpn).unwrap()
    }

    pub fn connect(&self, peer: &QpAddress) {
        self.nic.connect(self.numbers.qpn, peer).unwrap();
    }

    pub fn sq_slot(&self, n: u64) -> Slot {
        Slot(
            self.rings
                .ptr(ring::slot(n, self.shape.sq_depth) as usize * 64)
                .cast(),
        )
    }

    pub fn write_slot(&self, n: u64, wqe: SendWqe) {
        let words: [u64; WQE_WORDS] = bytemuck::cast(wqe.owned(n, self.shape.sq_depth));
        ring::publish_wqe(&self.sq_slot(n), &words);
    }

    /// Writes the next slot without ringing.
    pub fn post(&mut self, wqe: SendWqe) {
        self.write_slot(self.head, wqe);
        self.head += 1;
    }

    /// Writes a batch as kernels do: the first slot last.
    pub fn post_batch(&mut self, batch: &[SendWqe]) {
        let (first, rest) = batch.split_first().unwrap();
        for (index, wqe) in rest.iter().enumerate() {
            self.write_slot(self.head + 1 + index as u64, *wqe);
        }
        self.write_slot(self.head, *first);
        self.head += batch.len() as u64;
    }

    pub fn doorbell(&self) -> u64 {
        Doorbell::Send {
            qpn: self.numbers.qpn,
            producer: (self.head & 0xffff) as u32,
            service_level: 0,
        }
        .encode()
    }

    pub fn ring(&self) {
        self.nic.doorbell(self.doorbell()).unwrap();
    }

    pub fn submit(&mut self, wqe: SendWqe) {
        self.post(wqe);
        self.ring();
    }

    fn cq_slot(&self, n: u64) -> Slot {
        let start = self.shape.sq_depth as usize * 64;
        let index = ring::slot(n, self.shape.cq_depth) as usize;
        Slot(
            self.rings
                .ptr(start + index * self.shape.cqe_size as usize)
                .cast(),
        )
    }

    /// The next completion, without telling the NIC.
    pub fn peek(&mut self) -> Option<Cqe> {
        let owner = ring::completion_owner(self.consumed, self.shape.cq_depth);
        let words: [u64; CQE_WORDS] = ring::poll_cqe(&self.cq_slot(self.consumed), owner)?;
        self.consumed += 1;
        Some(bytemuck::cast(words))
    }

    pub fn ring_consumer(&self) {
        let consumer = (self.consumed & 0xff_ffff) as u32;
        self.nic
            .doorbell(
                Doorbell::Consumer {
                    cqn: self.numbers.cqn,
                    consumer,
                }
                .encode(),
            )
            .unwrap();
    }

    pub fn poll(&mut self) -> Option<Cqe> {
        let cqe = self.peek()?;
        self.ring_consumer();
        Some(cqe)
    }

    pub fn wait(&mut self) -> Cqe {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(cqe) = self.poll() {
                return cqe;
            }
            assert!(
                Instant::now() < deadline,
                "no completion; the NIC says {:?}",
                self.nic.diagnostics()
            );
            std::thread::yield_now();
        }
    }

    /// Submits one signaled request; its status.
    pub fn run(&mut self, wqe: SendWqe) -> Status {
        self.submit(wqe.flagged(SIGNALED));
        self.wait().status()
    }
}

/// Two NICs of this process with a queue pair between them.
pub fn pair(config: &NicConfig, shape: Shape) -> (Station, Queue, Station, Queue) {
    let (here, there) = (Station::new(config.clone()), Station::new(config.clone()));
    let (near, far) = (here.queue(shape), there.queue(shape));
    near.connect(&far.address());
    far.connect(&near.address());
    (here, near, there, far)
}

/// Waits until something holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::yield_now();
    }
}
