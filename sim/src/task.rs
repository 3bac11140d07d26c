//! Work for streams: copies, sets, words written and waited for, calls of host functions. The checks are those of the ACL calls.
//!
//! Copies are checked twice: at the call, where the caller gets the error, and when the stream comes to them, as the memory may be gone by then.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use npushmem_ffi::acl;

use crate::error::{fail, invalid, Outcome};
use crate::event::Event;
use crate::launch::Launch;
use crate::memory::{self, Region};

/// How long a wait for a word pauses between looks after it has looked for a while.
const PAUSE: Duration = Duration::from_micros(20);
/// Looks before a wait for a word begins to pause.
const LOOKS: u32 = 2000;

/// One task of a stream.
pub(crate) enum Task {
    Kernel(Arc<Launch>),
    Copy(Copy),
    Set(Set),
    Record(Arc<Event>, u64),
    Wait(Arc<Event>, u64),
    WriteWord {
        address: u64,
        value: u64,
    },
    WaitWord {
        address: u64,
        value: u64,
        test: u32,
    },
    Call {
        function: unsafe extern "C" fn(*mut c_void),
        argument: usize,
    },
}

impl Task {
    /// What it is, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Kernel(launch) => launch.describe(),
            Self::Copy(copy) => format!("a copy of {} bytes", copy.len),
            Self::Set(set) => format!("a memset of {} bytes", set.len),
            Self::Record(..) => "an event record".to_owned(),
            Self::Wait(..) => "a wait for an event that its stream has not reached".to_owned(),
            Self::WriteWord { address, .. } => format!("a write of the word at {address:#x}"),
            Self::WaitWord {
                address,
                value,
                test,
            } => {
                format!("a wait for the word at {address:#x} (value {value:#x}, condition {test})")
            }
            Self::Call { .. } => "a call of a host function".to_owned(),
        }
    }

    /// Does it. `stop` tells whether the stream was asked to give up.
    pub(crate) fn run(&self, stop: &dyn Fn() -> bool) -> Outcome {
        match self {
            Self::Kernel(launch) => launch.execute(),
            Self::Copy(copy) => copy.run(),
            Self::Set(set) => set.run(),
            Self::Record(event, number) => {
                event.reach(*number);
                Ok(())
            }
            Self::Wait(event, number) => {
                if event.wait(*number, stop) {
                    Ok(())
                } else {
                    Err(given_up("its wait for an event"))
                }
            }
            Self::WriteWord { address, value } => {
                word(*address)?.store(*value, Ordering::Release);
                Ok(())
            }
            Self::WaitWord {
                address,
                value,
                test,
            } => wait_word(*address, *value, *test, stop),
            Self::Call { function, argument } => {
                // SAFETY: the caller of aclrtLaunchHostFunc gave the function and its argument for this call.
                unsafe { function(*argument as *mut c_void) };
                Ok(())
            }
        }
    }
}

fn given_up(what: &str) -> crate::error::Fail {
    fail(
        acl::ACL_ERROR_RT_STREAM_ABORT,
        format!("the stream was asked to stop and gave up {what}"),
    )
}

/// A word of device memory.
fn word(address: u64) -> Outcome<&'static AtomicU64> {
    check_word(address)?;
    // SAFETY: checked above to be 8 aligned bytes of live device memory; kernels and the NIC change it with atomic accesses too.
    Ok(unsafe { AtomicU64::from_ptr(address as *mut u64) })
}

/// Refuses an address that is no aligned word of device memory.
pub(crate) fn check_word(address: u64) -> Outcome {
    if !address.is_multiple_of(8) {
        return Err(fail(
            acl::ACL_ERROR_RT_ADDR_UNALIGNED,
            format!("{address:#x} is not aligned to 8 bytes"),
        ));
    }
    memory::find(address, 8)
        .filter(Region::on_device)
        .map(|_| ())
        .ok_or_else(|| {
            invalid(format!(
                "{address:#x} is no device memory ({})",
                memory::describe(address)
            ))
        })
}

fn wait_word(address: u64, value: u64, test: u32, stop: &dyn Fn() -> bool) -> Outcome {
    let word = word(address)?;
    let mut looks = 0;
    loop {
        let now = word.load(Ordering::Acquire);
        let fits = match test {
            acl::ACL_STREAM_WAIT_VALUE_GEQ => now.wrapping_sub(value) as i64 >= 0,
            acl::ACL_STREAM_WAIT_VALUE_EQ => now == value,
            acl::ACL_STREAM_WAIT_VALUE_AND => now & value != 0,
            _ => !(now | value) != 0,
        };
        if fits {
            return Ok(());
        }
        if stop() {
            return Err(given_up(&format!("its wait for the word at {address:#x}")));
        }
        if looks < LOOKS {
            looks += 1;
            std::thread::yield_now();
        } else {
            std::thread::sleep(PAUSE);
            // The memory may be freed meanwhile.
            check_word(address)?;
        }
    }
}

/// Where one end of a copy lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Device(Region),
    Host,
}

fn end_of(name: &str, address: u64, len: u64) -> Outcome<End> {
    if address == 0 {
        return Err(invalid(format!("{name} is NULL")));
    }
    if let Some(region) = memory::find(address, len) {
        return Ok(if region.on_device() {
            End::Device(region)
        } else {
            End::Host
        });
    }
    if let Some(region) = memory::containing(address) {
        return Err(invalid(format!(
            "{name} [{address:#x}, {:#x}) leaves its memory [{:#x}, {:#x}) by {} bytes",
            address.wrapping_add(len),
            region.va,
            region.end(),
            address.wrapping_add(len).wrapping_sub(region.end())
        )));
    }
    if memory::range_of(address).is_some() {
        return Err(invalid(format!(
            "{name} {address:#x}: {}",
            memory::describe(address)
        )));
    }
    // Memory that the runtime knows nothing about is the caller's own.
    Ok(End::Host)
}

/// A copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copy {
    to: u64,
    from: u64,
    len: u64,
}

impl Copy {
    /// Checks the arguments of aclrtMemcpy and aclrtMemcpyAsync.
    pub(crate) fn new(
        to: u64,
        room: u64,
        from: u64,
        len: u64,
        kind: acl::aclrtMemcpyKind,
        asynchronous: bool,
    ) -> Outcome<Self> {
        if len > room {
            return Err(invalid(format!(
                "count {len} is above destMax {room}, what the target holds"
            )));
        }
        let (target, source) = (end_of("dst", to, len)?, end_of("src", from, len)?);
        // (name, source on the device, target on the device)
        let wanted = match kind {
            acl::ACL_MEMCPY_HOST_TO_HOST => Some(("HOST_TO_HOST", false, false)),
            acl::ACL_MEMCPY_HOST_TO_DEVICE => Some(("HOST_TO_DEVICE", false, true)),
            acl::ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE => Some(("HOST_TO_BUF_TO_DEVICE", false, true)),
            acl::ACL_MEMCPY_DEVICE_TO_HOST => Some(("DEVICE_TO_HOST", true, false)),
            acl::ACL_MEMCPY_DEVICE_TO_DEVICE => Some(("DEVICE_TO_DEVICE", true, true)),
            acl::ACL_MEMCPY_INNER_DEVICE_TO_DEVICE => Some(("INNER_DEVICE_TO_DEVICE", true, true)),
            acl::ACL_MEMCPY_INTER_DEVICE_TO_DEVICE => Some(("INTER_DEVICE_TO_DEVICE", true, true)),
            acl::ACL_MEMCPY_DEFAULT => None,
            other => return Err(invalid(format!("kind {other} is none that copies have"))),
        };
        if let Some((name, source_device, target_device)) = wanted {
            for (end, which, address, device) in [
                (source, "src", from, source_device),
                (target, "dst", to, target_device),
            ] {
                if matches!(end, End::Device(_)) != device {
                    let (is, should) = if device {
                        ("host", "device")
                    } else {
                        ("device", "host")
                    };
                    return Err(invalid(format!("kind {name}: {which} {address:#x} is {is} memory, {should} memory is wanted")));
                }
            }
        }
        if let (End::Device(a), End::Device(b), false) = (source, target, asynchronous) {
            if (a.reserved || b.reserved) && a.device != b.device {
                return Err(fail(
                    acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                    format!(
                        "a copy between device {} and device {} with memory of aclrtReserveMemAddress: only aclrtMemcpyAsync does it (documented)",
                        a.device, b.device
                    ),
                ));
            }
        }
        Ok(Self { to, from, len })
    }

    /// Copies when a stream comes to it: the memory may be gone since the call.
    fn run(&self) -> Outcome {
        for (name, address) in [("dst", self.to), ("src", self.from)] {
            end_of(name, address, self.len).map_err(|e| {
                fail(
                    acl::ACL_ERROR_RT_SYS_DMA,
                    format!("when the copy ran: {}", e.text),
                )
            })?;
        }
        self.perform();
        Ok(())
    }

    /// Copies at once after [`Copy::new`] has checked.
    pub(crate) fn perform(&self) {
        // SAFETY: device ends were checked just now; host ends are the caller's promise, as in C. They may overlap.
        unsafe {
            std::ptr::copy(
                self.from as *const u8,
                self.to as *mut u8,
                self.len as usize,
            )
        };
    }
}

/// A memset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Set {
    at: u64,
    value: u8,
    len: u64,
}

impl Set {
    pub(crate) fn new(at: u64, room: u64, value: i32, len: u64) -> Outcome<Self> {
        if len > room {
            return Err(invalid(format!(
                "count {len} is above maxCount {room}, what the target holds"
            )));
        }
        end_of("devPtr", at, len)?;
        Ok(Self {
            at,
            value: value as u8,
            len,
        })
    }

    /// Sets when a stream comes to it.
    fn run(&self) -> Outcome {
        end_of("devPtr", self.at, self.len).map_err(|e| {
            fail(
                acl::ACL_ERROR_RT_SYS_DMA,
                format!("when the memset ran: {}", e.text),
            )
        })?;
        self.perform();
        Ok(())
    }

    /// Sets at once after [`Set::new`] has checked.
    pub(crate) fn perform(&self) {
        // SAFETY: checked just now if it is the device's; else the caller's promise, as in C.
        unsafe { std::ptr::write_bytes(self.at as *mut u8, self.value, self.len as usize) };
    }
}
