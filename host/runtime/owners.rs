//! Owning types over the runtime: each gives its resource back when dropped.
//!
//! `Drop` never panics and is never collective; an error it meets is recorded in the [`Api`] and told by the next checked call. What it is
//! not: no policy. Used by heap/, transport/, launch.rs and world.rs.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use npushmem_ffi::acl;

pub use super::result::BUFFER_KEY_BYTES;
use super::result::{AclError, Api, DeviceAddress, LaunchMode, FABRIC_HANDLE_SIZE};

/// A device that this process uses, with the context that its threads need.
pub struct Device {
    api: Arc<Api>,
    number: i32,
    context: acl::aclrtContext,
    /// Distinguishes devices for [`Device::bind`].
    identity: u64,
}

// SAFETY: a context may be made current in any thread of the process (aclrtSetCurrentContext); the handle itself is only passed on.
unsafe impl Send for Device {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Device {}

thread_local! {
    /// The device whose context is current in this thread, by identity; 0: none of ours.
    static BOUND: Cell<u64> = const { Cell::new(0) };
}

static NEXT_DEVICE: AtomicU64 = AtomicU64::new(1);

impl Device {
    /// Takes the device and makes its context current in this thread.
    pub fn open(api: &Arc<Api>, number: u32) -> Result<Device, AclError> {
        let number = number as i32;
        api.set_device(number)?;
        let context = api.current_context()?;
        let identity = NEXT_DEVICE.fetch_add(1, Ordering::Relaxed);
        BOUND.with(|bound| bound.set(identity));
        Ok(Device {
            api: api.clone(),
            number,
            context,
            identity,
        })
    }

    /// The function table.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Its number, as `aclrtSetDevice` takes it.
    pub fn number(&self) -> i32 {
        self.number
    }

    /// Makes the device current in the calling thread, if it is not: the vendor's runtime keeps that a thread.
    pub fn bind(&self) -> Result<(), AclError> {
        if BOUND.with(Cell::get) == self.identity {
            return Ok(());
        }
        self.api.set_current_context(self.context)?;
        BOUND.with(|bound| bound.set(self.identity));
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.api.record_dropped(
            self.bind()
                .and_then(|()| self.api.reset_device(self.number)),
        );
        BOUND.with(|bound| bound.set(0));
    }
}

/// A queue of work on a device.
pub struct Stream {
    api: Arc<Api>,
    handle: acl::aclrtStream,
    lost: AtomicBool,
}

// SAFETY: streams may be used from any thread of the process; the vendor's runtime locks inside.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// `aclrtCreateStream`.
    pub fn new(device: &Device) -> Result<Stream, AclError> {
        Ok(Stream {
            api: device.api.clone(),
            handle: device.api.create_stream()?,
            lost: AtomicBool::new(false),
        })
    }

    /// The vendor's handle.
    pub fn handle(&self) -> acl::aclrtStream {
        self.handle
    }

    /// Waits at most so many milliseconds; `Ok(false)`: not done yet.
    pub fn wait(&self, milliseconds: i32) -> Result<bool, AclError> {
        match self.api.synchronize_stream(self.handle, milliseconds) {
            Ok(()) => Ok(true),
            Err(error) if error.code == acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Its kernel does not end: `Drop` gives the stream up by force.
    pub fn mark_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let result = if self.lost.load(Ordering::Relaxed) {
            self.api.destroy_stream_force(self.handle)
        } else {
            self.api.destroy_stream(self.handle)
        };
        self.api.record_dropped(result);
    }
}

/// A point in a stream whose time is taken.
pub struct Event {
    api: Arc<Api>,
    handle: acl::aclrtEvent,
}

// SAFETY: events may be used from any thread of the process.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// `aclrtCreateEventExWithFlag` with the flag that takes the time.
    pub fn new(device: &Device) -> Result<Event, AclError> {
        Ok(Event {
            api: device.api.clone(),
            handle: device.api.create_event(acl::ACL_EVENT_TIME_LINE)?,
        })
    }

    /// Puts it at the end of the stream's work.
    pub fn record(&self, stream: &Stream) -> Result<(), AclError> {
        self.api.record_event(self.handle, stream.handle)
    }

    /// Whether the device has reached it.
    pub fn reached(&self) -> Result<bool, AclError> {
        self.api.event_reached(self.handle)
    }

    /// Milliseconds from `start` to this event.
    pub fn since(&self, start: &Event) -> Result<f32, AclError> {
        self.api.elapsed(start.handle, self.handle)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.api.record_dropped(self.api.destroy_event(self.handle));
    }
}

/// Pages of device memory, bytes: what can be shared between processes is whole pages.
const PAGE: u64 = 4096;
/// Pages of blocks from this size on.
const HUGE_PAGE: u64 = 2 << 20;

/// Device memory from `aclrtMalloc`; not symmetric. Freed when dropped.
pub struct DeviceBuffer {
    api: Arc<Api>,
    address: DeviceAddress,
    bytes: u64,
    /// Whole pages.
    allocated: u64,
}

impl DeviceBuffer {
    /// `aclrtMalloc` in huge pages where the block is large enough, then `aclrtMemset` to zero. At least one byte.
    pub(crate) fn zeroed(device: &Device, bytes: u64) -> Result<DeviceBuffer, AclError> {
        let bytes = bytes.max(1);
        let page = if bytes < HUGE_PAGE { PAGE } else { HUGE_PAGE };
        let allocated = bytes.next_multiple_of(page);
        let address = device
            .api
            .malloc(allocated, acl::ACL_MEM_MALLOC_HUGE_FIRST)?;
        let buffer = DeviceBuffer {
            api: device.api.clone(),
            address,
            bytes,
            allocated,
        };
        buffer.api.memset(address, 0, bytes)?;
        Ok(buffer)
    }

    /// Its first byte, as the cores see it.
    pub fn address(&self) -> DeviceAddress {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies `data` to byte `offset`. The range must lie in the buffer, which the runtime checks.
    ///
    /// # Errors
    /// The runtime's.
    pub fn write<T: bytemuck::Pod>(&self, offset: u64, data: &[T]) -> Result<(), AclError> {
        self.api
            .write(self.address + offset, bytemuck::cast_slice(data))
    }

    /// Copies from byte `offset`.
    ///
    /// # Errors
    /// As [`DeviceBuffer::write`].
    pub fn read<T: bytemuck::Pod>(&self, offset: u64, data: &mut [T]) -> Result<(), AclError> {
        self.api
            .read(bytemuck::cast_slice_mut(data), self.address + offset)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        self.api.record_dropped(self.api.free(self.address));
    }
}

/// A buffer's export to the other processes of this server; ends when dropped.
pub struct SharedBuffer {
    api: Arc<Api>,
    key: [u8; BUFFER_KEY_BYTES],
}

impl SharedBuffer {
    /// `aclrtIpcMemGetExportKey`, of the buffer's whole pages.
    pub fn new(device: &Device, buffer: &DeviceBuffer) -> Result<SharedBuffer, AclError> {
        Ok(SharedBuffer {
            api: device.api.clone(),
            key: device.api.export_buffer(buffer.address, buffer.allocated)?,
        })
    }

    /// What another process imports it by.
    pub fn key(&self) -> &[u8; BUFFER_KEY_BYTES] {
        &self.key
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        if let Ok(key) = CStr::from_bytes_until_nul(&self.key) {
            self.api.record_dropped(self.api.close_buffer(key));
        }
    }
}

/// Another process's buffer, mapped here; unmapped when dropped.
pub struct ImportedBuffer {
    api: Arc<Api>,
    address: DeviceAddress,
    key: CString,
}

impl ImportedBuffer {
    /// `aclrtIpcMemImportByKey`.
    pub fn new(device: &Device, key: &[u8; BUFFER_KEY_BYTES]) -> Result<ImportedBuffer, AclError> {
        let key = CStr::from_bytes_until_nul(key)
            .map(CStr::to_owned)
            .unwrap_or_default();
        Ok(ImportedBuffer {
            api: device.api.clone(),
            address: device.api.import_buffer(&key)?,
            key,
        })
    }

    /// Its first byte here.
    pub fn address(&self) -> DeviceAddress {
        self.address
    }
}

impl Drop for ImportedBuffer {
    fn drop(&mut self) {
        self.api.record_dropped(self.api.close_buffer(&self.key));
    }
}

/// A range of device addresses without memory behind it.
pub struct Reservation {
    api: Arc<Api>,
    address: DeviceAddress,
}

impl Reservation {
    /// `aclrtReserveMemAddress`.
    pub fn new(device: &Device, bytes: u64) -> Result<Reservation, AclError> {
        Ok(Reservation {
            api: device.api.clone(),
            address: device.api.reserve(bytes)?,
        })
    }

    /// Its first address.
    pub fn address(&self) -> DeviceAddress {
        self.address
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.api.record_dropped(self.api.release(self.address));
    }
}

/// Physical device memory without an address: own, or imported from another process.
pub struct PhysicalMemory {
    api: Arc<Api>,
    handle: acl::aclrtDrvMemHandle,
}

// SAFETY: the handle is only passed to the runtime, which may be called from any thread.
unsafe impl Send for PhysicalMemory {}
// SAFETY: as above.
unsafe impl Sync for PhysicalMemory {}

/// Where physical memory is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The device's HBM.
    Device,
    /// The host's memory.
    Host,
}

impl PhysicalMemory {
    /// `aclrtMallocPhysical`.
    pub fn new(device: &Device, bytes: u64, place: Place) -> Result<PhysicalMemory, AclError> {
        let what = Self::kind(device, place);
        Ok(PhysicalMemory {
            api: device.api.clone(),
            handle: device.api.malloc_physical(bytes, &what)?,
        })
    }

    /// `aclrtMemGetAllocationGranularity` of such memory.
    pub fn granularity(device: &Device, place: Place) -> Result<u64, AclError> {
        device.api.granularity(Self::kind(device, place))
    }

    /// HBM of the device in 2 MiB pages, or the host's memory.
    fn kind(device: &Device, place: Place) -> acl::aclrtPhysicalMemProp {
        let (attribute, id, location) = match place {
            Place::Device => (
                acl::ACL_HBM_MEM_HUGE,
                device.number as u32,
                acl::ACL_MEM_LOCATION_TYPE_DEVICE,
            ),
            Place::Host => (acl::ACL_DDR_MEM_HUGE, 0, acl::ACL_MEM_LOCATION_TYPE_HOST),
        };
        acl::aclrtPhysicalMemProp {
            handleType: acl::ACL_MEM_HANDLE_TYPE_NONE,
            allocationType: acl::ACL_MEM_ALLOCATION_TYPE_PINNED,
            memAttr: attribute,
            location: acl::aclrtMemLocation {
                id,
                type_: location,
            },
            reserve: 0,
        }
    }

    /// Exports it: to a fabric handle where the runtime makes one, else to a handle for this server. Once a process (the vendor's rule).
    pub fn export(&self) -> Result<SharedHandle, AclError> {
        match self.api.export_fabric(self.handle) {
            Ok(data) => Ok(SharedHandle::Fabric(data)),
            Err(error) if unsupported(&error) => {
                tracing::info!("no fabric handles here ({error}); peers of this server only");
                self.api
                    .export_server(self.handle)
                    .map(SharedHandle::Server)
            }
            Err(error) => Err(error),
        }
    }

    /// Imports what another process exported.
    pub fn import(device: &Device, shared: &SharedHandle) -> Result<PhysicalMemory, AclError> {
        let handle = match shared {
            SharedHandle::Fabric(data) => device.api.import_fabric(data)?,
            SharedHandle::Server(number) => device.api.import_server(*number, device.number)?,
        };
        Ok(PhysicalMemory {
            api: device.api.clone(),
            handle,
        })
    }
}

/// Whether the runtime says that it lacks a feature (rather than that something went wrong).
fn unsupported(error: &AclError) -> bool {
    [
        acl::ACL_ERROR_API_NOT_SUPPORT,
        acl::ACL_ERROR_FEATURE_UNSUPPORTED,
        acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ]
    .contains(&error.code)
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        self.api.record_dropped(self.api.free_physical(self.handle));
    }
}

/// Physical memory in a form that travels to another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedHandle {
    /// Understood by all servers of a super pod.
    Fabric([u8; FABRIC_HANDLE_SIZE]),
    /// Understood by this server.
    Server(u64),
}

/// Memory at an address of its own: a reservation with physical memory mapped to its start. Unmapped, freed and released in this order.
pub struct Mapping {
    // Dropped in this order, after the unmapping.
    memory: PhysicalMemory,
    reservation: Reservation,
}

impl Mapping {
    /// Reserves `bytes` and maps `memory`, which has as many. One reservation holds the memory of one owner (the vendor's rule at
    /// aclrtMapMem).
    pub fn new(device: &Device, memory: PhysicalMemory, bytes: u64) -> Result<Mapping, AclError> {
        let reservation = Reservation::new(device, bytes)?;
        device
            .api
            .map(reservation.address(), bytes, memory.handle)?;
        Ok(Mapping {
            memory,
            reservation,
        })
    }

    /// Its first address.
    pub fn address(&self) -> DeviceAddress {
        self.reservation.address()
    }

    /// The memory behind it.
    pub fn memory(&self) -> &PhysicalMemory {
        &self.memory
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let api = &self.reservation.api;
        api.record_dropped(api.unmap(self.reservation.address()));
    }
}

/// A kernel object on the device.
pub struct Binary {
    api: Arc<Api>,
    handle: acl::aclrtBinHandle,
}

// SAFETY: the handle is only passed to the runtime, which may be called from any thread.
unsafe impl Send for Binary {}
// SAFETY: as above.
unsafe impl Sync for Binary {}

impl Binary {
    /// `aclrtBinaryLoadFromData`.
    pub fn load(device: &Device, bytes: &[u8]) -> Result<Binary, AclError> {
        Ok(Binary {
            api: device.api.clone(),
            handle: device.api.load_binary(bytes)?,
        })
    }

    /// `aclrtBinaryGetFunction`. The handle is valid as long as this object lives.
    pub fn function(&self, name: &CString) -> Result<acl::aclrtFuncHandle, AclError> {
        self.api.function(self.handle, name)
    }

    /// `aclrtLaunchKernelWithHostArgs` of one of its functions.
    pub fn launch(
        &self,
        function: acl::aclrtFuncHandle,
        blocks: u32,
        stream: &Stream,
        arguments: &mut [u8],
        mode: LaunchMode,
    ) -> Result<(), AclError> {
        self.api
            .launch(function, blocks, stream.handle, arguments, mode)
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        self.api.record_dropped(self.api.unload_binary(self.handle));
    }
}
