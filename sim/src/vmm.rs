//! Address reservations and physical memory: aclrtReserveMemAddress, aclrtMallocPhysical, aclrtMapMem and their like, with the documented rules.
//!
//! A reservation is a range without access; physical memory is a memfd of its own, so that a handle to it can be given to other processes.
//! Rules (vendor documentation of the calls): alignment and flags are 0, a size is above 0 and, for physical memory, a multiple of the granularity;
//! memory is mapped whole; one reservation holds memory of one device and of one making (own or imported). Called by the ACL entries.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use npushmem_ffi::acl;
use rustix::mm::{mmap_anonymous, mprotect, munmap, MapFlags, MprotectFlags, ProtFlags};

use crate::config;
use crate::error::{fail, invalid, system, Outcome};
use crate::memory::{self, Kind, Region, HUGE_PAGE};
use crate::share::{self, Description, Ticket, What};

/// Bytes of a 1 GiB page.
const HUGE_PAGE_1G: u64 = 1 << 30;
/// A wished-for address lies in this range (documented: 16 T to 24 T).
const EXPECT: std::ops::Range<u64> = 16 << 40..24 << 40;
/// Largest reservation: half of what the wish range holds.
const MAX_RESERVATION: u64 = 4 << 40;

/// Physical memory, own or imported.
pub(crate) struct Physical {
    pub(crate) fd: OwnedFd,
    pub(crate) size: u64,
    pub(crate) device: i32,
    pub(crate) on_device: bool,
    pub(crate) page: u64,
    pub(crate) attr: u32,
    /// The process that allocated it, if another one.
    pub(crate) imported_from: Option<u32>,
    state: Mutex<PhysicalState>,
}

#[derive(Default)]
struct PhysicalState {
    maps: u32,
    exported: Option<Ticket>,
    /// Bytes charged to the device.
    charged: u64,
}

impl Physical {
    fn state(&self) -> MutexGuard<'_, PhysicalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates as `prop` says.
    pub(crate) fn allocate(
        size: u64,
        prop: &acl::aclrtPhysicalMemProp,
        flags: u64,
    ) -> Outcome<Self> {
        if flags != 0 {
            return Err(invalid(format!("flags {flags:#x}: 0 is wanted")));
        }
        let place = Place::of(prop)?;
        if size == 0 || !size.is_multiple_of(place.page) {
            return Err(invalid(format!(
                "size {size} is not a positive multiple of the granularity {} (aclrtMemGetAllocationGranularity); round it up",
                place.page
            )));
        }
        let charged = if place.on_device { size } else { 0 };
        memory::charge(place.device, charged)?;
        let fd = memory::sealed_memfd("npusim physical memory", size)
            .inspect_err(|_| memory::uncharge(place.device, charged))?;
        let physical = Self {
            fd,
            size,
            device: place.device,
            on_device: place.on_device,
            page: place.page,
            attr: prop.memAttr,
            imported_from: None,
            state: Mutex::new(PhysicalState {
                charged,
                ..Default::default()
            }),
        };
        physical.poison()?;
        Ok(physical)
    }

    fn poison(&self) -> Outcome {
        let va = memory::reserve_address_range(self.size, memory::PAGE)?;
        // SAFETY: the range was reserved above for this mapping alone, and is given back below.
        unsafe {
            memory::map_over(va, self.size, &self.fd, 0)?;
            memory::poison(va, self.size, config::get()?.poison);
            munmap(va as *mut _, self.size as usize).map_err(|e| system("munmap", e))
        }
    }

    /// Imports what another process exported.
    pub(crate) fn import(ticket: Ticket) -> Outcome<Self> {
        let import = share::import(ticket, What::Physical)?;
        crate::time::check_peers()?;
        let Description {
            device,
            attr,
            size,
            page,
            ..
        } = import.description;
        Ok(Self {
            fd: import.fd,
            size,
            device,
            on_device: !is_host_attr(attr),
            page,
            attr,
            imported_from: Some(import.pid),
            state: Mutex::default(),
        })
    }

    /// Exports it; a handle has one shareable handle.
    pub(crate) fn export(&self, flags: u64) -> Outcome<Ticket> {
        let any_pid = match flags {
            acl::ACL_RT_VMM_EXPORT_FLAG_DEFAULT => false,
            acl::ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION => true,
            _ => {
                return Err(invalid(format!(
                    "flags {flags:#x}: 0 or 1 (DISABLE_PID_VALIDATION) is wanted"
                )))
            }
        };
        if let Some(pid) = self.imported_from {
            return Err(invalid(format!(
                "this memory was imported from process {pid}: only its owner can export it"
            )));
        }
        let mut state = self.state();
        if state.exported.is_some() {
            return Err(invalid(
                "this handle was exported already, and it has one shareable handle only: keep the first one and send it to everybody".to_owned(),
            ));
        }
        let description = Description {
            what: What::Physical,
            device: self.device,
            attr: self.attr,
            offset: 0,
            size: self.size,
            page: self.page,
        };
        let ticket = share::export(self.fd.as_fd(), description, any_pid)?;
        state.exported = Some(ticket);
        Ok(ticket)
    }

    /// Whether it may be freed: nothing maps it.
    pub(crate) fn check_free(&self) -> Outcome {
        match self.state().maps {
            0 => Ok(()),
            n => Err(invalid(format!(
                "this memory is still mapped at {n} place(s): call aclrtUnmapMem first"
            ))),
        }
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticket) = state.exported.take() {
            share::withdraw(ticket);
        }
        if state.charged > 0 {
            memory::uncharge(self.device, state.charged);
        }
    }
}

fn is_host_attr(attr: u32) -> bool {
    matches!(
        attr,
        acl::ACL_DDR_MEM_HUGE
            | acl::ACL_DDR_MEM_NORMAL
            | acl::ACL_DDR_MEM_P2P_HUGE
            | acl::ACL_DDR_MEM_P2P_NORMAL
    )
}

/// Where physical memory is and what its pages are.
struct Place {
    on_device: bool,
    device: i32,
    page: u64,
}

impl Place {
    fn of(prop: &acl::aclrtPhysicalMemProp) -> Outcome<Self> {
        let config = config::get()?;
        if prop.handleType != acl::ACL_MEM_HANDLE_TYPE_NONE {
            return Err(invalid(format!(
                "handleType {}: ACL_MEM_HANDLE_TYPE_NONE (0) is wanted",
                prop.handleType
            )));
        }
        if prop.allocationType != acl::ACL_MEM_ALLOCATION_TYPE_PINNED {
            return Err(invalid(format!(
                "allocationType {}: ACL_MEM_ALLOCATION_TYPE_PINNED (0) is wanted",
                prop.allocationType
            )));
        }
        if prop.reserve != 0 {
            return Err(invalid(format!("reserve {:#x}: 0 is wanted", prop.reserve)));
        }
        let attr = prop.memAttr;
        let page = match attr {
            acl::ACL_MEM_HUGE1G | acl::ACL_MEM_P2P_HUGE1G | acl::ACL_HBM_MEM_HUGE1G | acl::ACL_HBM_MEM_P2P_HUGE1G => {
                if config.soc.npu_arch != 2201 {
                    return Err(fail(
                        acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                        format!("memAttr {attr}: pages of 1 GiB exist on A2 and A3 only, this is {}", config.soc.name),
                    ));
                }
                HUGE_PAGE_1G
            }
            acl::ACL_MEM_NORMAL
            | acl::ACL_MEM_HUGE
            | acl::ACL_MEM_P2P_NORMAL
            | acl::ACL_MEM_P2P_HUGE
            | acl::ACL_HBM_MEM_HUGE
            | acl::ACL_HBM_MEM_NORMAL => HUGE_PAGE,
            _ if is_host_attr(attr) => HUGE_PAGE,
            _ => return Err(invalid(format!("memAttr {attr} is none that aclrtMallocPhysical takes (for device memory: ACL_HBM_MEM_HUGE)"))),
        };
        match prop.location.type_ {
            acl::ACL_MEM_LOCATION_TYPE_DEVICE if !is_host_attr(attr) => {
                if prop.location.id >= config.devices {
                    return Err(fail(
                        acl::ACL_ERROR_RT_INVALID_DEVICEID,
                        format!("location.id {}: this machine has devices 0 to {}", prop.location.id, config.devices - 1),
                    ));
                }
                Ok(Self { on_device: true, device: prop.location.id as i32, page })
            }
            acl::ACL_MEM_LOCATION_TYPE_HOST | acl::ACL_MEM_LOCATION_TYPE_HOST_NUMA if is_host_attr(attr) => {
                Ok(Self { on_device: false, device: 0, page })
            }
            other => Err(invalid(format!("memAttr {attr} and location type {other} do not fit: HBM and MEM kinds are a device's (1), DDR kinds the host's (0, 4)"))),
        }
    }
}

/// The granularity of physical memory as `prop` describes it.
pub(crate) fn granularity(prop: &acl::aclrtPhysicalMemProp) -> Outcome<u64> {
    Place::of(prop).map(|place| place.page)
}

struct Mapping {
    physical: Arc<Physical>,
}

struct Reservation {
    size: u64,
    /// All addresses taken for it, guards included.
    whole: u64,
    whole_size: u64,
    maps: BTreeMap<u64, Mapping>,
}

static RESERVATIONS: Mutex<BTreeMap<u64, Reservation>> = Mutex::new(BTreeMap::new());

fn reservations() -> MutexGuard<'static, BTreeMap<u64, Reservation>> {
    RESERVATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves addresses.
pub(crate) fn reserve(size: u64, alignment: u64, expect: u64, flags: u64) -> Outcome<u64> {
    if size == 0 {
        return Err(invalid("size 0: at least one byte must be reserved"));
    }
    if alignment != 0 {
        return Err(invalid(format!(
            "alignment {alignment}: 0 is the only value (documented)"
        )));
    }
    if flags != 0 {
        return Err(invalid(format!(
            "flags {flags:#x}: the parameter is reserved and must be 0 (documented)"
        )));
    }
    if size > MAX_RESERVATION {
        return Err(fail(
            acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
            format!("size {size}: the emulator reserves at most {MAX_RESERVATION} bytes at once"),
        ));
    }
    let span = size.next_multiple_of(HUGE_PAGE);
    let reservation = if expect == 0 {
        let align = if size >= HUGE_PAGE_1G {
            HUGE_PAGE_1G
        } else {
            HUGE_PAGE
        };
        // Addresses without access before and after keep reservations from touching one another.
        let whole_size = span + align + HUGE_PAGE;
        let whole = memory::reserve_address_range(whole_size, align)?;
        (
            whole + align,
            Reservation {
                size,
                whole,
                whole_size,
                maps: BTreeMap::new(),
            },
        )
    } else {
        let base = expected(span, size, expect)?;
        (
            base,
            Reservation {
                size,
                whole: base,
                whole_size: span,
                maps: BTreeMap::new(),
            },
        )
    };
    reservations().insert(reservation.0, reservation.1);
    Ok(reservation.0)
}

fn expected(span: u64, size: u64, expect: u64) -> Outcome<u64> {
    let config = config::get()?;
    if config.soc.npu_arch == 3510 {
        return Err(invalid(format!(
            "expectPtr {expect:#x}: on {} only NULL is accepted (documented)",
            config.soc.name
        )));
    }
    let align = if size >= HUGE_PAGE_1G {
        HUGE_PAGE_1G
    } else {
        size.next_power_of_two().max(HUGE_PAGE)
    };
    if !EXPECT.contains(&expect) || expect + span > EXPECT.end {
        return Err(invalid(format!("expectPtr {expect:#x}: NULL, or a place between 16 T and 24 T ([{:#x}, {:#x})) is wanted", EXPECT.start, EXPECT.end)));
    }
    if !expect.is_multiple_of(align) {
        return Err(invalid(format!("expectPtr {expect:#x} is not aligned to {align:#x}, as {size} bytes need (2^n below 1 GiB, 1 GiB above)")));
    }
    // SAFETY: NOREPLACE refuses when anything is mapped there.
    unsafe {
        mmap_anonymous(
            expect as *mut _,
            span as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE,
        )
    }
    .map(|at| at as u64)
    .map_err(|e| fail(acl::ACL_ERROR_RT_MEMORY_ALLOCATION, format!("expectPtr {expect:#x}: {size} bytes are not free there ({e}); pass NULL or another place")))
}

/// Gives a reservation back.
pub(crate) fn release(base: u64) -> Outcome {
    let mut reservations = reservations();
    let Some(reservation) = reservations.get(&base) else {
        return Err(invalid(format!(
            "{base:#x} is not the beginning of a reservation of aclrtReserveMemAddress"
        )));
    };
    if !reservation.maps.is_empty() {
        return Err(invalid(format!(
            "{} mapping(s) are left in the reservation at {base:#x}: call aclrtUnmapMem first",
            reservation.maps.len()
        )));
    }
    let (whole, whole_size) = (reservation.whole, reservation.whole_size);
    reservations.remove(&base);
    // SAFETY: the addresses belong to the reservation that was removed, and nothing is mapped in it.
    unsafe { munmap(whole as *mut _, whole_size as usize) }.map_err(|e| system("munmap", e))
}

/// Maps physical memory into a reservation.
pub(crate) fn map(
    va: u64,
    size: u64,
    offset: u64,
    physical: &Arc<Physical>,
    flags: u64,
    peer_enabled: impl Fn(i32) -> bool,
) -> Outcome {
    if flags != 0 || offset != 0 {
        return Err(invalid(format!(
            "offset {offset}, flags {flags:#x}: both must be 0 (documented)"
        )));
    }
    if size != physical.size {
        return Err(invalid(format!(
            "size {size}: the physical memory has {} bytes and is mapped whole (documented)",
            physical.size
        )));
    }
    let mut reservations = reservations();
    let Some((base, reservation)) = reservations
        .range_mut(..=va)
        .next_back()
        .filter(|(base, r)| va < **base + r.size)
    else {
        return Err(invalid(format!(
            "{va:#x} lies in no reservation: call aclrtReserveMemAddress first"
        )));
    };
    let (base, end) = (*base, *base + reservation.size);
    if va.checked_add(size).is_none_or(|to| to > end) {
        return Err(invalid(format!(
            "[{va:#x}, {va:#x} + {size}) leaves the reservation [{base:#x}, {end:#x})"
        )));
    }
    if !va.is_multiple_of(HUGE_PAGE) {
        return Err(fail(
            acl::ACL_ERROR_RT_ADDR_UNALIGNED,
            format!("{va:#x} is not aligned to a page of {HUGE_PAGE} bytes"),
        ));
    }
    if let Some((at, _)) = reservation
        .maps
        .iter()
        .find(|(at, m)| **at < va + size && va < **at + m.physical.size)
    {
        return Err(invalid(format!(
            "[{va:#x}, {:#x}) overlaps the mapping at {at:#x}",
            va + size
        )));
    }
    if let Some(other) = reservation.maps.values().map(|m| &m.physical).next() {
        let imported = |p: &Physical| {
            if p.imported_from.is_some() {
                "imported"
            } else {
                "allocated here"
            }
        };
        if other.imported_from.is_some() != physical.imported_from.is_some() {
            return Err(invalid(format!(
                "the reservation at {base:#x} holds memory that was {}, and this was {}: one reservation must not mix them (documented); reserve one for each PE",
                imported(other),
                imported(physical)
            )));
        }
        if other.device != physical.device || other.on_device != physical.on_device {
            return Err(invalid(format!(
                "the reservation at {base:#x} holds memory of device {}, and this is of device {}: one reservation must not be bound to two (documented); \
                 reserve one for each PE",
                other.device, physical.device
            )));
        }
    }
    if physical.imported_from.is_some() && physical.on_device && !peer_enabled(physical.device) {
        return Err(fail(
            acl::ACL_ERROR_RT_PARAM_INVALID,
            format!(
                "the memory is of device {0}: call aclrtDeviceEnablePeerAccess({0}, 0) first",
                physical.device
            ),
        ));
    }
    // SAFETY: the range lies in a reservation of ours, in which nothing is mapped there.
    unsafe { memory::map_over(va, size, &physical.fd, 0)? };
    let kind = match (physical.on_device, physical.imported_from) {
        (false, _) => Kind::Host,
        (true, None) => Kind::Device,
        (true, Some(_)) => Kind::Peer,
    };
    memory::register(Region {
        va,
        len: size,
        fd: physical.fd.as_raw_fd(),
        offset: 0,
        kind,
        device: physical.device,
        page: physical.page,
        reserved: true,
    })?;
    physical.state().maps += 1;
    reservation.maps.insert(
        va,
        Mapping {
            physical: physical.clone(),
        },
    );
    Ok(())
}

/// Takes a mapping out of its reservation.
pub(crate) fn unmap(va: u64) -> Outcome {
    let mut reservations = reservations();
    let removed = reservations
        .range_mut(..=va)
        .next_back()
        .and_then(|(_, reservation)| reservation.maps.remove(&va));
    let Some(Mapping { physical }) = removed else {
        return Err(invalid(format!(
            "{va:#x} is not the beginning of a mapping of aclrtMapMem"
        )));
    };
    memory::unregister(va);
    // SAFETY: the range belongs to the reservation that it was mapped in.
    unsafe { memory::close_over(va, physical.size)? };
    let mut state = physical.state();
    state.maps = state.maps.saturating_sub(1);
    Ok(())
}

/// Sets the access of a place to mapped memory.
pub(crate) fn set_access(va: u64, size: u64, descriptions: &[acl::aclrtMemAccessDesc]) -> Outcome {
    let region = memory::find(va, size).filter(|region| region.reserved);
    let Some(region) = region.filter(|region| region.va == va && region.len == size) else {
        return Err(invalid(format!(
            "[{va:#x}, {va:#x} + {size}) is not one whole mapping of aclrtMapMem"
        )));
    };
    if descriptions.is_empty() {
        return Err(invalid("no description (count 0)"));
    }
    for description in descriptions {
        let protection = match description.flags {
            acl::ACL_RT_MEM_ACCESS_FLAGS_NONE => MprotectFlags::empty(),
            acl::ACL_RT_MEM_ACCESS_FLAGS_READ => MprotectFlags::READ,
            acl::ACL_RT_MEM_ACCESS_FLAGS_READWRITE => MprotectFlags::READ | MprotectFlags::WRITE,
            other => {
                return Err(invalid(format!(
                    "access flags {other}: 0 (none), 1 (read) or 3 (read and write) are wanted"
                )))
            }
        };
        // SAFETY: one whole mapping of ours; only the access changes.
        unsafe { mprotect(region.va as *mut _, region.len as usize, protection) }
            .map_err(|e| system("mprotect", e))?;
    }
    Ok(())
}

/// The reservation that holds an address: beginning and size.
pub(crate) fn reservation_of(va: u64) -> Option<(u64, u64)> {
    reservations()
        .range(..=va)
        .next_back()
        .map(|(base, r)| (*base, r.size))
        .filter(|(base, size)| va < base + size)
}
