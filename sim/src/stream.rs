//! Streams: tasks in order on a worker thread, which starts with the first task.
//!
//! A failed task's error is kept and returned by the next synchronisation of its stream, once; later tasks go on, or are dropped when the stream
//! is set to stop on failure. A stream whose kernel is lost (`launch.rs`) fails for good. Called by the ACL entries.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use npushmem_ffi::acl;
use rustix::thread::sched_getcpu;

use crate::block;
use crate::device::{Context, Device};
use crate::error::{fail, system, Fail, Outcome};
use crate::handles::Handles;
use crate::launch::spin;
use crate::task::Task;

/// How often a synchronisation looks whether the stream is lost.
const LOOK: Duration = Duration::from_millis(10);
/// How long the end of a forced stream is waited for.
const END: Duration = Duration::from_secs(3);
/// A thread whose processor is not known yet.
const NOWHERE: usize = usize::MAX;

/// One stream.
pub(crate) struct Stream {
    pub(crate) context: Weak<Context>,
    pub(crate) device: Arc<Device>,
    state: Mutex<State>,
    /// The worker waits here.
    work: Condvar,
    /// Synchronisations wait here.
    done: Condvar,
    /// Tasks put in, and tasks done or dropped.
    submitted: AtomicU64,
    completed: AtomicU64,
    stop: AtomicBool,
    /// Processors on which the worker and the latest synchronisation last were. Who spins on the other's processor keeps the other from it.
    worker_at: AtomicUsize,
    host_at: AtomicUsize,
}

struct State {
    queue: VecDeque<Task>,
    running: Option<Arc<Task>>,
    started: bool,
    worker_sleeps: bool,
    sleepers: u32,
    closed: bool,
    stop_on_failure: bool,
    error: Option<Fail>,
    /// The error comes back at every synchronisation.
    broken: bool,
}

/// All streams that programs made.
pub(crate) static STREAMS: Handles<Stream> = Handles::new("stream", 6);

/// The stream that a handle means; NULL is the current context's default stream.
pub(crate) fn get(handle: acl::aclrtStream) -> Outcome<Arc<Stream>> {
    if handle.is_null() {
        Ok(crate::device::current()?.default_stream())
    } else {
        let stream = STREAMS.get(handle)?;
        if stream
            .context
            .upgrade()
            .is_none_or(|context| !context.alive.load(Ordering::SeqCst))
        {
            return Err(fail(
                acl::ACL_ERROR_RT_STREAM_CONTEXT,
                "the stream's context was destroyed, or its device reset",
            ));
        }
        Ok(stream)
    }
}

/// The streams of a context.
fn of_context(context: &Arc<Context>) -> Vec<Arc<Stream>> {
    let mut streams: Vec<_> = STREAMS.all();
    streams.retain(|stream| std::ptr::eq(stream.context.as_ptr(), Arc::as_ptr(context)));
    streams.extend(context.existing_default_stream());
    streams
}

/// Ends all streams of a context that is destroyed.
pub(crate) fn end_all(context: &Arc<Context>) {
    let mut streams =
        STREAMS.remove_where(|stream| std::ptr::eq(stream.context.as_ptr(), Arc::as_ptr(context)));
    streams.extend(context.existing_default_stream());
    for stream in streams {
        stream.end_by_force();
    }
}

/// aclrtSynchronizeDevice: all streams of the context; the first error is returned after all are done.
pub(crate) fn synchronize_all(context: &Arc<Context>) -> Outcome {
    let mut result = Ok(());
    for stream in of_context(context) {
        let one = stream.synchronize(None);
        if result.is_ok() {
            result = one;
        }
    }
    result
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::downgrade(context),
            device: context.device.clone(),
            state: Mutex::new(State {
                queue: VecDeque::new(),
                running: None,
                started: false,
                worker_sleeps: false,
                sleepers: 0,
                closed: false,
                stop_on_failure: false,
                error: None,
                broken: false,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            worker_at: AtomicUsize::new(NOWHERE),
            host_at: AtomicUsize::new(NOWHERE),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether later tasks are dropped after a failed one.
    pub(crate) fn set_stop_on_failure(&self, stop: bool) {
        self.state().stop_on_failure = stop;
    }

    /// Puts a task in.
    pub(crate) fn submit(self: &Arc<Self>, task: Task) -> Outcome {
        let mut state = self.state();
        if state.closed {
            return Err(fail(
                acl::ACL_ERROR_RT_STREAM_ABORT,
                "the stream was destroyed",
            ));
        }
        if state.broken {
            let error = state.error.clone();
            return Err(error.unwrap_or_else(|| {
                fail(
                    acl::ACL_ERROR_RT_STREAM_ABORT,
                    "the stream has failed: destroy it",
                )
            }));
        }
        if !state.started {
            let stream = self.clone();
            std::thread::Builder::new()
                .name("npusim-stream".to_owned())
                .stack_size(block::STACK)
                .spawn(move || stream.work())
                .map_err(|e| system("cannot start the stream's thread", e))?;
            state.started = true;
        }
        state.queue.push_back(task);
        self.submitted.fetch_add(1, Ordering::SeqCst);
        let wake = state.worker_sleeps;
        drop(state);
        if wake {
            self.work.notify_one();
        }
        Ok(())
    }

    fn work(self: Arc<Self>) {
        let stop = || self.stop.load(Ordering::Relaxed);
        while let Some(task) = self.next() {
            let result = task.run(&stop);
            self.finish(result);
            if let Task::Kernel(_) = &*task {
                block::clean();
            }
        }
    }

    /// The next task; None when the stream was closed and is empty.
    fn next(&self) -> Option<Arc<Task>> {
        let mut first = true;
        loop {
            let mut state = self.state();
            if let Some(task) = state.queue.pop_front() {
                self.worker_at.store(sched_getcpu(), Ordering::Relaxed);
                let task = Arc::new(task);
                state.running = Some(task.clone());
                return Some(task);
            }
            if state.closed {
                return None;
            }
            if std::mem::take(&mut first) {
                let seen = self.submitted.load(Ordering::SeqCst);
                drop(state);
                // A host that launches and synchronises in a loop comes back at once.
                if self.host_at.load(Ordering::Relaxed) != sched_getcpu() {
                    spin(|| self.submitted.load(Ordering::SeqCst) != seen);
                }
                continue;
            }
            state.worker_sleeps = true;
            let mut state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.worker_sleeps = false;
        }
    }

    fn finish(&self, result: Outcome) {
        let mut state = self.state();
        state.running = None;
        // A lost kernel that came back: the stream was given up, and `completed` is past this task already.
        let mut done = u64::from(!state.broken);
        if let Err(error) = result {
            if !state.broken {
                state.error.get_or_insert(error);
                if state.stop_on_failure {
                    state.broken = true;
                    done += state.queue.len() as u64;
                    state.queue.clear();
                }
            }
        }
        self.completed.fetch_add(done, Ordering::SeqCst);
        let wake = state.sleepers > 0;
        drop(state);
        if wake {
            self.done.notify_all();
        }
    }

    /// Waits until everything put in so far is done, and returns the error of what failed.
    pub(crate) fn synchronize(&self, limit: Option<Duration>) -> Outcome {
        let target = self.submitted.load(Ordering::SeqCst);
        let is_done = || self.completed.load(Ordering::SeqCst) >= target;
        let here = sched_getcpu();
        self.host_at.store(here, Ordering::Relaxed);
        let in_the_way = || self.worker_at.load(Ordering::Relaxed) == here;
        if !is_done() {
            spin(|| is_done() || in_the_way());
        }
        if !is_done() {
            let begin = Instant::now();
            let mut state = self.state();
            state.sleepers += 1;
            while !is_done() {
                self.look_for_loss(&mut state);
                if is_done() {
                    break;
                }
                if let Some(limit) = limit.filter(|limit| begin.elapsed() >= *limit) {
                    state.sleepers -= 1;
                    let left = target - self.completed.load(Ordering::SeqCst).min(target);
                    let running = state.running.clone();
                    drop(state);
                    let what =
                        running.map_or_else(|| "nothing yet".to_owned(), |task| task.describe());
                    return Err(fail(
                        acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                        format!("after {limit:?} the stream has {left} task(s) left; it is at {what}. The work goes on: synchronize again, or destroy the stream by force"),
                    ));
                }
                let nap = limit.map_or(LOOK, |limit| {
                    LOOK.min(limit.saturating_sub(begin.elapsed()))
                });
                (state, _) = self
                    .done
                    .wait_timeout(state, nap)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.sleepers -= 1;
        }
        let mut state = self.state();
        let error = if state.broken {
            state.error.clone()
        } else {
            state.error.take()
        };
        error.map_or(Ok(()), Err)
    }

    /// A kernel that is lost takes its stream with it.
    fn look_for_loss(&self, state: &mut State) {
        let lost = match state.running.as_deref() {
            Some(Task::Kernel(launch)) if launch.is_lost() => launch.failure(),
            _ => return,
        };
        if !state.broken {
            state.broken = true;
            state.error = lost.or_else(|| {
                Some(fail(
                    acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
                    "a kernel never ended; destroy the stream by force",
                ))
            });
            state.queue.clear();
            self.completed
                .store(self.submitted.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    /// Whether everything is done.
    pub(crate) fn is_complete(&self) -> bool {
        self.look_for_loss(&mut self.state());
        self.completed.load(Ordering::SeqCst) >= self.submitted.load(Ordering::SeqCst)
    }

    /// Lets the worker end when the queue is empty.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_all();
    }

    /// Drops what has not started, stops what runs, and waits a little for it.
    pub(crate) fn end_by_force(&self) {
        self.stop.store(true, Ordering::SeqCst);
        let running = {
            let mut state = self.state();
            state.closed = true;
            let dropped = state.queue.len() as u64;
            for task in state.queue.drain(..) {
                // Nobody may wait for ever for an event of a stream that is gone.
                if let Task::Record(event, number) = task {
                    event.reach(number);
                }
            }
            self.completed.fetch_add(dropped, Ordering::SeqCst);
            state.running.clone()
        };
        if let Some(Task::Kernel(launch)) = running.as_deref() {
            launch.request_stop(fail(
                acl::ACL_ERROR_RT_DEVICE_TASK_ABORT,
                format!(
                    "kernel {} was stopped, because its stream was destroyed by force",
                    launch.function.name
                ),
            ));
        }
        self.work.notify_all();
        self.done.notify_all();
        let begin = Instant::now();
        let mut state = self.state();
        while state.running.is_some() && begin.elapsed() < END {
            self.look_for_loss(&mut state);
            if state.broken {
                break;
            }
            state.sleepers += 1;
            (state, _) = self
                .done
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            state.sleepers -= 1;
        }
    }
}
