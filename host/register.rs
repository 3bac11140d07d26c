//! Buffers outside the symmetric heap: registered for this PE's own transfers, and windows, which every PE registers and kernels address.
//!
//! What it is not: tables and keys are transport/regions.rs's. Called by programs through [`World`]. A registration ends by `deregister` or
//! `close_window`; without it the memory stays until the World ends.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::abi;
use crate::config::size_text;
use crate::config::Mapped;
use crate::error::Error;
use crate::launch::Args;
use crate::runtime::owners::{DeviceBuffer, ImportedBuffer, SharedBuffer, BUFFER_KEY_BYTES};
use crate::transport::WindowPeer;
use crate::world::World;

/// A buffer cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// No entry left.
    #[error("no more buffers can be registered: a PE has at most {} at once, windows included (and a window needs the same free entry on all PEs); deregister those that are not needed", abi::SHMEM_REGION_MAX)]
    Exhausted,
    /// Nothing to register.
    #[error("a buffer of 0 bytes cannot be registered")]
    Empty,
    /// Windows of different sizes.
    #[error("open_window: {} here (PE {me}) and {} on PE {pe}; a window has the same size on every PE", size_text(*mine), size_text(*theirs))]
    Differ {
        /// This PE.
        me: u32,
        /// The first PE that differs.
        pe: u32,
        /// Bytes here.
        mine: u64,
        /// Bytes there.
        theirs: u64,
    },
}

/// A buffer that kernels of this PE may use as source and destination of their transfers by either engine. The other PEs cannot reach it.
pub struct RegisteredBuffer {
    index: u32,
    memory: Arc<DeviceBuffer>,
}

impl RegisteredBuffer {
    /// Its first byte, as the cores see it.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// The memory, for the host's own copies.
    pub fn memory(&self) -> &DeviceBuffer {
        &self.memory
    }
}

/// Memory outside the heap that every PE has registered, with the same size: kernels address it like the symmetric heap, by the address in
/// their own part, or by (window, offset).
pub struct Window {
    index: u32,
    // Dropped before the memory, whose end would end it.
    _shared: Option<SharedBuffer>,
    memory: Arc<DeviceBuffer>,
    mapped: u32,
}

impl Window {
    /// The handle, for kernels (`shmem_window_t`).
    pub fn id(&self) -> i32 {
        self.index as i32
    }

    /// First byte of this PE's part, as its cores see it.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// This PE's part, for the host's own copies.
    pub fn memory(&self) -> &DeviceBuffer {
        &self.memory
    }

    /// PEs whose parts are mapped here, this one included; the others are reached by their NIC.
    pub fn mapped_pes(&self) -> u32 {
        self.mapped
    }
}

/// What a PE tells the others about its part of a window.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Part {
    base: u64,
    bytes: u64,
    free: u64,
    rkey: u32,
    /// 1: `key` names it.
    shared: u32,
    key: [u8; BUFFER_KEY_BYTES],
    padding: [u8; 7],
}

impl World {
    /// Device memory of this PE outside the symmetric heap, zeroed; at least a byte.
    ///
    /// # Errors
    /// The device has no more memory.
    pub fn device_buffer(&self, bytes: u64) -> Result<DeviceBuffer, Error> {
        self.bind()?;
        DeviceBuffer::zeroed(self.surroundings().0, bytes)
            .map_err(Error::acl("allocating device memory"))
    }

    /// Registers a buffer with the NIC, so that kernels of this PE may put from it and get to it by either engine. Local. Kernels that are
    /// launched afterwards see it.
    ///
    /// # Errors
    /// The device is not enabled; no entry left; the NIC refuses.
    pub fn register_buffer(&self, buffer: DeviceBuffer) -> Result<RegisteredBuffer, Error> {
        let memory = Arc::new(buffer);
        let index = self.with_transport("register_buffer", |transport, _| {
            let free = transport.free_regions();
            if free == 0 {
                return Err(RegisterError::Exhausted.into());
            }
            // From the top: windows need the same entry on all PEs, and take the lowest.
            let index = 63 - free.leading_zeros();
            transport.register(
                index,
                memory.address(),
                memory.bytes(),
                Some(memory.clone()),
                false,
            )?;
            Ok(index)
        })?;
        Ok(RegisteredBuffer { index, memory })
    }

    /// Ends a registration, and gives the memory back. Waits for launched kernels first; what they left open must be complete (quiet).
    ///
    /// # Errors
    /// What kernels still had to tell; the runtime's.
    pub fn deregister(&self, buffer: RegisteredBuffer) -> Result<(), Error> {
        self.synchronize()?;
        self.quiet()?;
        self.with_transport("deregister", |transport, _| {
            transport.deregister(buffer.index)
        })
    }

    /// Makes a window of `buffer`, of the same size on every PE: peers on this server map it, the others, and the roce engine, reach it by
    /// their NICs. Collective. Kernels launched afterwards address it (device/shmem.h, Windows).
    ///
    /// # Errors
    /// The device is not enabled; no entry left; sizes that differ; the NIC refuses.
    pub fn open_window(&self, buffer: DeviceBuffer) -> Result<Window, Error> {
        let memory = Arc::new(buffer);
        let free =
            self.with_transport("open_window", |transport, _| Ok(transport.free_regions()))?;
        let offers = self.tell_part(&Part {
            bytes: memory.bytes(),
            free,
            ..Zeroable::zeroed()
        })?;
        for (pe, theirs) in (0..).zip(&offers) {
            if theirs.bytes != memory.bytes() {
                return Err(RegisterError::Differ {
                    me: self.my_pe(),
                    pe,
                    mine: memory.bytes(),
                    theirs: theirs.bytes,
                }
                .into());
            }
        }
        let free = offers.iter().fold(u64::MAX, |free, part| free & part.free);
        if free == 0 {
            return Err(RegisterError::Exhausted.into());
        }
        let index = free.trailing_zeros();
        let rkey = self.with_transport("open_window", |transport, _| {
            transport.register(
                index,
                memory.address(),
                memory.bytes(),
                Some(memory.clone()),
                true,
            )
        })?;
        let (device, _, config) = self.surroundings();
        let shared = match config.mapped {
            Mapped::Off => None,
            _ => SharedBuffer::new(device, &memory)
                .map_err(|error| {
                    tracing::info!(
                        "a window's part cannot be shared, peers reach it by the NIC: {error}"
                    )
                })
                .ok(),
        };
        let parts = self.tell_part(&Part {
            base: memory.address(),
            bytes: memory.bytes(),
            free: 0,
            rkey,
            shared: u32::from(shared.is_some()),
            key: shared
                .as_ref()
                .map_or([0; BUFFER_KEY_BYTES], |shared| *shared.key()),
            padding: [0; 7],
        })?;
        let mapped_heaps = self.mapped_pes();
        let me = self.my_pe();
        let peers: Vec<WindowPeer> = (0..)
            .zip(&parts)
            .map(|(pe, part)| {
                // Where the heap is not mapped, this memory would not be either.
                let reach = pe != me && part.shared != 0 && mapped_heaps.contains(&pe);
                let mapped = reach
                    .then(|| ImportedBuffer::new(device, &part.key))
                    .and_then(|imported| {
                        imported
                            .map_err(|error| {
                                tracing::info!("PE {pe}'s part of a window is not mapped: {error}")
                            })
                            .ok()
                    });
                WindowPeer {
                    mapped,
                    base: part.base,
                    rkey: part.rkey,
                }
            })
            .collect();
        let mapped = 1 + peers.iter().filter(|peer| peer.mapped.is_some()).count() as u32;
        self.with_transport("open_window", |transport, site| {
            transport.open_window(index, peers, site)
        })?;
        // Nobody sends before everybody has bound the keys.
        self.exchange(&[])?;
        Ok(Window {
            index,
            memory,
            _shared: shared,
            mapped,
        })
    }

    /// Ends a window. Collective; begins with [`World::barrier_all`], so that what kernels that have ended sent has arrived.
    ///
    /// # Errors
    /// As [`World::barrier_all`].
    pub fn close_window(&self, window: Window) -> Result<(), Error> {
        self.synchronize()?;
        self.barrier_all()?;
        self.with_transport("close_window", |transport, _| {
            transport.deregister(window.index)
        })?;
        self.exchange(&[])?;
        Ok(())
    }

    fn tell_part(&self, part: &Part) -> Result<Vec<Part>, Error> {
        let all = self.exchange(bytemuck::bytes_of(part))?;
        Ok(all
            .iter()
            .map(|bytes| bytemuck::try_pod_read_unaligned(bytes).unwrap_or_else(|_| Part::zeroed()))
            .collect())
    }
}

impl Args {
    /// The address of a registered buffer.
    pub fn buffer(self, buffer: &RegisteredBuffer) -> Args {
        self.u64(buffer.address())
    }

    /// A window's handle, for kernels that take a `shmem_window_t`.
    pub fn window(self, window: &Window) -> Args {
        self.i32(window.id())
    }
}
