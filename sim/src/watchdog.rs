//! A thread that looks after running launches: it ends those over their time and signals blocks that do not leave.
//!
//! It sleeps for good while nothing runs. Called by `launch.rs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::launch::Launch;

/// Time between two looks.
const TICK: Duration = Duration::from_millis(20);
/// Looks without a launch after which the thread sleeps for good.
const IDLE_LOOKS: u32 = 50;

static RUNNING: Mutex<Vec<Arc<Launch>>> = Mutex::new(Vec::new());
static PARKED: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<Thread> = OnceLock::new();

fn running() -> MutexGuard<'static, Vec<Arc<Launch>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks after a launch from now on.
pub(crate) fn watch(launch: &Arc<Launch>) {
    static START: Once = Once::new();
    START.call_once(|| {
        let spawned = std::thread::Builder::new()
            .name("npusim-watchdog".to_owned())
            .stack_size(256 << 10)
            .spawn(work);
        match spawned {
            Ok(handle) => {
                let _ = THREAD.set(handle.thread().clone());
            }
            Err(error) => crate::hooks::diagnose(format!(
                "kernels run without a time limit, because the system gives no thread to watch them: {error}"
            )),
        }
    });
    running().push(launch.clone());
    if PARKED.swap(false, Ordering::SeqCst) {
        if let Some(thread) = THREAD.get() {
            thread.unpark();
        }
    }
}

/// Stops looking after it.
pub(crate) fn forget(launch: &Arc<Launch>) {
    let mut running = running();
    if let Some(at) = running.iter().position(|other| Arc::ptr_eq(other, launch)) {
        running.swap_remove(at);
    }
}

fn work() {
    let mut idle = 0;
    loop {
        let launches = running().clone();
        idle = if launches.is_empty() { idle + 1 } else { 0 };
        if idle > IDLE_LOOKS {
            idle = 0;
            PARKED.store(true, Ordering::SeqCst);
            // A launch that came before the flag was up would not have woken us.
            if running().is_empty() {
                std::thread::park();
            }
            PARKED.store(false, Ordering::SeqCst);
        } else {
            let now = Instant::now();
            for launch in &launches {
                launch.look_after(now);
            }
        }
        drop(launches);
        std::thread::sleep(TICK);
    }
}
