//! The cores of a device: no more blocks run at once than it has, and the rest start in order as cores become free.
//!
//! A core is a permission, not a thread. A launch whose attribute asks for it ("batch") gets all its cores at once or waits. Called by launch
//! and by the threads of the pool.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::block;
use crate::launch::Launch;

/// The cores of one device.
pub(crate) struct Scheduler {
    pub(crate) cores: u32,
    state: Mutex<State>,
}

struct State {
    free: u32,
    /// Cores held by kernels that never ended.
    lost: u32,
    /// Launches with blocks that have not started, in order.
    waiting: VecDeque<Arc<Launch>>,
}

impl Scheduler {
    pub(crate) fn new(cores: u32) -> Self {
        Self {
            cores,
            state: Mutex::new(State {
                free: cores,
                lost: 0,
                waiting: VecDeque::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a launch in line. True when its block 0 may start at once on the calling thread; else the launch is told later.
    pub(crate) fn submit(&self, launch: &Arc<Launch>) -> bool {
        let mut grants = Vec::new();
        {
            let mut state = self.state();
            state.waiting.push_back(launch.clone());
            assign(&mut state, &mut grants);
        }
        let mut mine = false;
        for (granted, index) in grants {
            if index == 0 && Arc::ptr_eq(&granted, launch) {
                mine = true;
            } else {
                start(granted, index);
            }
        }
        mine
    }

    /// Takes a launch out of the line; its blocks that have not started never will.
    pub(crate) fn withdraw(&self, launch: &Launch) {
        let mut grants = Vec::new();
        {
            let mut state = self.state();
            state
                .waiting
                .retain(|waiting| !std::ptr::eq(&**waiting, launch));
            launch.drop_unstarted();
            assign(&mut state, &mut grants);
        }
        for (granted, index) in grants {
            start(granted, index);
        }
    }

    /// Gives a core back. Returns the block that the calling thread should run next on it: any (`only` is None), or one of `only`.
    pub(crate) fn release(&self, only: Option<&Arc<Launch>>) -> Option<(Arc<Launch>, u32)> {
        let mut grants = Vec::new();
        {
            let mut state = self.state();
            state.free += 1;
            assign(&mut state, &mut grants);
        }
        let mut mine = None;
        for (granted, index) in grants {
            let fits = index != 0 && only.is_none_or(|only| Arc::ptr_eq(only, &granted));
            if fits && mine.is_none() {
                mine = Some((granted, index));
            } else {
                start(granted, index);
            }
        }
        mine
    }

    /// Cores that a kernel which never ended keeps for good.
    pub(crate) fn lose(&self, cores: u32) {
        self.state().lost += cores;
    }

    /// A core that was thought lost came back.
    pub(crate) fn regain(&self) {
        let mut state = self.state();
        state.lost = state.lost.saturating_sub(1);
    }

    /// Cores that are left.
    pub(crate) fn usable(&self) -> u32 {
        self.cores.saturating_sub(self.state().lost)
    }
}

/// Starts a block that has got its core: block 0 on its stream's worker, any other on a thread of the pool.
fn start(launch: Arc<Launch>, index: u32) {
    if index == 0 {
        launch.grant();
    } else {
        block::dispatch(launch, index);
    }
}

fn assign(state: &mut State, grants: &mut Vec<(Arc<Launch>, u32)>) {
    while state.free > 0 {
        let Some(front) = state.waiting.front() else {
            return;
        };
        if front.is_stopped() {
            front.drop_unstarted();
            state.waiting.pop_front();
            continue;
        }
        let index = front.next.load(Ordering::Relaxed);
        if front.batch && index == 0 && state.free < front.blocks {
            return;
        }
        let launch = front.clone();
        launch.next.store(index + 1, Ordering::Relaxed);
        state.free -= 1;
        if index + 1 >= launch.blocks {
            state.waiting.pop_front();
        }
        grants.push((launch, index));
    }
}
