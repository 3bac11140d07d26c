//! Devices and contexts of this process, and the context that each thread has chosen.
//!
//! A device has cores (`scheduler.rs`) and streams; its memory is in `memory.rs`. Two processes may use the same device number, as on hardware,
//! and then share nothing but the number. Called by the ACL entries.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use npushmem_ffi::acl;

use crate::config;
use crate::error::{fail, invalid, Outcome};
use crate::handles::Handles;
use crate::scheduler::Scheduler;
use crate::stream::Stream;

/// One device as this process sees it.
pub(crate) struct Device {
    pub(crate) id: i32,
    pub(crate) scheduler: Scheduler,
    peers: Mutex<HashSet<i32>>,
    sync_address: OnceLock<u64>,
}

impl Device {
    /// Lets this device reach a peer's memory.
    pub(crate) fn enable_peer(&self, peer: i32) -> bool {
        self.peers().insert(peer)
    }

    pub(crate) fn disable_peer(&self, peer: i32) -> bool {
        self.peers().remove(&peer)
    }

    pub(crate) fn reaches(&self, other: i32) -> bool {
        other == self.id || self.peers().contains(&other)
    }

    fn peers(&self) -> MutexGuard<'_, HashSet<i32>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address that kernels of A2 and A3 need to meet. The emulator meets without it, but it is memory, as on hardware.
    pub(crate) fn sync_address(&self) -> Outcome<u64> {
        if let Some(address) = self.sync_address.get() {
            return Ok(*address);
        }
        let region = crate::memory::alloc_device(
            self.id,
            crate::memory::PAGE,
            crate::memory::PAGE,
            crate::memory::Fill::Zero,
        )?;
        Ok(*self.sync_address.get_or_init(|| region.va))
    }
}

/// A context: what a thread works in.
pub(crate) struct Context {
    pub(crate) device: Arc<Device>,
    /// Made by aclrtCreateContext, not by aclrtSetDevice.
    pub(crate) explicit: bool,
    pub(crate) alive: AtomicBool,
    default_stream: Mutex<Option<Arc<Stream>>>,
    handle: OnceLock<usize>,
}

impl Context {
    /// The stream that a NULL handle means.
    pub(crate) fn default_stream(self: &Arc<Self>) -> Arc<Stream> {
        let mut slot = self
            .default_stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| Stream::new(self)).clone()
    }

    pub(crate) fn existing_default_stream(&self) -> Option<Arc<Stream>> {
        self.default_stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn handle(&self) -> *mut std::ffi::c_void {
        self.handle
            .get()
            .map_or(std::ptr::null_mut(), |handle| *handle as *mut _)
    }
}

/// All contexts.
pub(crate) static CONTEXTS: Handles<Context> = Handles::new("context", 1);

struct Opened {
    device: Arc<Device>,
    primary: Option<Arc<Context>>,
    /// Calls of aclrtSetDevice that aclrtResetDevice has not answered yet.
    uses: u32,
}

static DEVICES: Mutex<BTreeMap<i32, Opened>> = Mutex::new(BTreeMap::new());

fn devices() -> MutexGuard<'static, BTreeMap<i32, Opened>> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

/// Refuses a device number that this machine does not have.
pub(crate) fn check(device: i32) -> Outcome {
    let count = config::get()?.devices;
    if device < 0 || device as u32 >= count {
        return Err(fail(
            acl::ACL_ERROR_RT_INVALID_DEVICEID,
            format!(
                "device {device}: this machine has devices 0 to {} (NPUSIM_DEVICES={count})",
                count - 1
            ),
        ));
    }
    Ok(())
}

fn opened(devices: &mut BTreeMap<i32, Opened>, id: i32) -> Outcome<&mut Opened> {
    check(id)?;
    let cores = config::get()?.cores;
    Ok(devices.entry(id).or_insert_with(|| Opened {
        device: Arc::new(Device {
            id,
            scheduler: Scheduler::new(cores),
            peers: Mutex::default(),
            sync_address: OnceLock::new(),
        }),
        primary: None,
        uses: 0,
    }))
}

fn new_context(device: &Arc<Device>, explicit: bool) -> Arc<Context> {
    let context = Arc::new(Context {
        device: device.clone(),
        explicit,
        alive: AtomicBool::new(true),
        default_stream: Mutex::default(),
        handle: OnceLock::new(),
    });
    let handle = CONTEXTS.insert(context.clone());
    // A fresh context has none yet.
    let _ = context.handle.set(handle as usize);
    context
}

/// aclrtSetDevice: opens the device and makes its primary context the thread's.
pub(crate) fn set(id: i32) -> Outcome {
    let mut devices = devices();
    let opened = opened(&mut devices, id)?;
    opened.uses += 1;
    let context = opened
        .primary
        .get_or_insert_with(|| new_context(&opened.device, false))
        .clone();
    CURRENT.set(Some(context));
    Ok(())
}

/// aclrtResetDevice: the last call ends the primary context and its streams. Memory stays until it is freed.
pub(crate) fn reset(id: i32, force: bool) -> Outcome {
    check(id)?;
    let mut devices = devices();
    let Some(opened) = devices.get_mut(&id).filter(|opened| opened.uses > 0) else {
        return Err(fail(
            acl::ACL_ERROR_RT_INVALID_DEVICEID,
            format!("device {id} was not set by this process (or was reset already)"),
        ));
    };
    opened.uses = if force { 0 } else { opened.uses - 1 };
    if opened.uses > 0 {
        return Ok(());
    }
    let primary = opened.primary.take();
    drop(devices);
    if let Some(context) = primary {
        end(&context);
    }
    Ok(())
}

/// Ends a context: its streams stop.
pub(crate) fn end(context: &Arc<Context>) {
    context.alive.store(false, Ordering::SeqCst);
    // The handle may be gone already when two threads end one context.
    let _ = CONTEXTS.remove(context.handle());
    crate::stream::end_all(context);
    CURRENT.with_borrow_mut(|current| {
        if current
            .as_ref()
            .is_some_and(|mine| Arc::ptr_eq(mine, context))
        {
            *current = None;
        }
    });
}

/// aclrtCreateContext.
pub(crate) fn create_context(id: i32) -> Outcome<Arc<Context>> {
    let mut devices = devices();
    let opened = opened(&mut devices, id)?;
    let context = new_context(&opened.device, true);
    CURRENT.set(Some(context.clone()));
    Ok(context)
}

/// The calling thread's context.
pub(crate) fn current() -> Outcome<Arc<Context>> {
    CURRENT
        .with_borrow(|current| current.clone())
        .filter(|context| context.alive.load(Ordering::SeqCst))
        .ok_or_else(|| fail(acl::ACL_ERROR_RT_CONTEXT_NULL, "this thread has no context: call aclrtSetDevice or aclrtSetCurrentContext in it first"))
}

/// Makes a context the calling thread's.
pub(crate) fn set_current(context: Arc<Context>) -> Outcome {
    if !context.alive.load(Ordering::SeqCst) {
        return Err(invalid("the context was destroyed"));
    }
    CURRENT.set(Some(context));
    Ok(())
}

/// Forgets everything at aclFinalize: contexts end, devices close.
pub(crate) fn finalize() {
    for context in CONTEXTS.all() {
        end(&context);
    }
    // Queue pairs, NICs and the agent's thread: nothing rings a doorbell any more.
    crate::hccp::shutdown();
    for opened in devices().values_mut() {
        opened.uses = 0;
        opened.primary = None;
    }
}
