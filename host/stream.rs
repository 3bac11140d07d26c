//! Streams beside the World's own: kernels and calls in order on a stream, with the host going on.
//!
//! What it is not: it moves no data itself; each call is a small kernel (kernels/onstream.cpp) on the stream. Called by programs through
//! [`World`]. A stream has a context and a team of its own, so that its kernels share neither queue pairs nor barrier memory with those of other
//! streams; the team and the queue pairs make [`World::create_stream`] collective.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use crate::abi::shmem_error;
use crate::context::{Context, ContextOptions};
use crate::error::Error;
use crate::launch::{Args, Function, Module};
use crate::run::{Reports, Runner};
use crate::runtime::owners::Event;
use crate::sym::SymBuf;
use crate::teams::Team;
use crate::world::World;

/// An order of kernels and calls on the device, beside that of [`World::launch`]. Give it back with [`Stream::destroy`]; dropping it waits for its
/// work, but leaves its context to the end of the World.
pub struct Stream<'w> {
    world: &'w World,
    context: Context,
    team: Team,
    module: Module,
    runner: Mutex<Runner>,
    /// Recoveries that the runner knows of.
    generation: AtomicU32,
}

/// Calls on a stream, of [`World::on_stream`]: each is put at the end of the stream's work and returns at once. It runs after all kernels and calls
/// put there before, and before those put after. Errors are told by [`Stream::synchronize`].
///
/// Buffers must stay until the stream has been synchronized.
pub struct OnStream<'a> {
    stream: &'a Stream<'a>,
}

impl World {
    /// Makes a stream with a context and a team of its own. Collective: all PEs make it, in the same order of their streams and contexts.
    ///
    /// # Errors
    /// The device is not enabled; no handle left for a context or a team; the budget of queue pairs.
    pub fn create_stream(&self) -> Result<Stream<'_>, Error> {
        let world = self.team_world()?;
        let everyone: Vec<u32> = (0..self.n_pes()).collect();
        let team = self
            .team_from_pes(&world, &everyone)?
            .ok_or(Error::NotEnabled("create_stream"))?;
        let context = self.new_context(ContextOptions::new(), team.id() as u32)?;
        let runner = Runner::beside(self.surroundings().0, &self.claims())?;
        let generation =
            self.with_transport("create_stream", |transport, _| Ok(transport.generation()))?;
        Ok(Stream {
            world: self,
            context,
            team,
            module: self.load(&crate::kernels::ONSTREAM)?,
            runner: Mutex::new(runner),
            generation: AtomicU32::new(generation),
        })
    }

    /// Calls on a stream: `world.on_stream(&stream).put(...)`.
    pub fn on_stream<'a>(&self, stream: &'a Stream<'a>) -> OnStream<'a> {
        OnStream { stream }
    }
}

impl Stream<'_> {
    /// The stream's team: all PEs, with barrier memory of its own. What `SHMEM_TEAM_WORLD` means in its kernels.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The stream's context: the one that its kernels attach.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Launches a kernel on the stream and returns at once, as [`World::launch`]; the context that it attaches is the stream's.
    ///
    /// # Errors
    /// As [`World::launch`]. [`Error::ContextBusy`]: it takes a context that a kernel on another stream has and that was not synchronized.
    pub fn launch(&self, function: &Function, blocks: u32, args: &Args) -> Result<(), Error> {
        self.world.bind()?;
        let id = self.context.id() as u32;
        let (context, generation) =
            self.world
                .with_transport("a launch on a stream", |transport, _| {
                    Ok((
                        transport.address_of(id).unwrap_or(0),
                        transport.generation(),
                    ))
                })?;
        let mut runner = self.lock();
        // What broke before the World was recovered is mended. Relaxed: the runner's lock orders it.
        if self.generation.swap(generation, Ordering::Relaxed) != generation {
            runner.renew(self.world.surroundings().0)?;
        }
        let mode = self.world.launch_mode(blocks);
        runner.launch(function, blocks, args, context, mode)
    }

    /// Waits until all kernels and calls of the stream have ended, and returns what went wrong, as [`World::synchronize`].
    ///
    /// # Errors
    /// As [`World::synchronize`].
    pub fn synchronize(&self) -> Result<(), Error> {
        self.world.bind()?;
        let (_, bootstrap, config) = self.world.surroundings();
        self.lock().wait(bootstrap, Some(self), config)
    }

    /// A point in the stream whose time is taken.
    ///
    /// # Errors
    /// The runtime's.
    pub fn event(&self) -> Result<Event, Error> {
        self.world.bind()?;
        let event =
            Event::new(self.world.surroundings().0).map_err(Error::acl("making an event"))?;
        event
            .record(self.lock().stream())
            .map_err(Error::acl("recording an event"))?;
        Ok(event)
    }

    /// Gives the stream back, with its context and its team. Collective.
    ///
    /// # Errors
    /// What its kernels still had to tell; as [`World::destroy_context`].
    pub fn destroy(self) -> Result<(), Error> {
        self.synchronize()?;
        self.world.on_stream(&self).quiet()?;
        self.synchronize()?;
        let (world, context, team) = (self.world, self.context.again(), self.team.clone());
        drop(self);
        world.destroy_context(context)?;
        world.team_destroy(team)
    }

    fn lock(&self) -> MutexGuard<'_, Runner> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, kernel: &str, blocks: u32, args: &Args) -> Result<(), Error> {
        self.launch(&self.module.function(kernel)?, blocks, args)
    }
}

impl Reports for Stream<'_> {
    fn abort(&self, code: u32, pe: i32) -> Result<(), Error> {
        self.world
            .with_transport("synchronize", |transport, _| transport.abort(code, pe))
    }

    fn take_errors(&self) -> Result<Vec<shmem_error>, Error> {
        self.world.with_transport("synchronize", |transport, _| {
            transport.errors_of(self.context.id() as u32)
        })
    }
}

/// Elements of a buffer as address and bytes.
fn part<T: Pod>(buffer: &SymBuf<T>, start: usize, n: usize) -> Result<(u64, u64), Error> {
    buffer.part(start, n)?;
    let size = size_of::<T>();
    Ok((buffer.addr() + (start * size) as u64, (n * size) as u64))
}

impl OnStream<'_> {
    fn args(&self) -> Args {
        Args::new().ctx()
    }

    /// `n` elements of this PE's `src` from `src_start` to PE `pe`'s `dst` from `dst_start`. When it has run, `src` may be changed; it is
    /// visible there after a quiet or a barrier on the stream (OpenSHMEM 1.6, `shmem_put`).
    ///
    /// # Errors
    /// Elements outside a buffer; as [`Stream::launch`].
    pub fn put<T: Pod>(
        &self,
        dst: &SymBuf<T>,
        dst_start: usize,
        src: &SymBuf<T>,
        src_start: usize,
        n: usize,
        pe: u32,
    ) -> Result<(), Error> {
        let ((to, bytes), (from, _)) = (part(dst, dst_start, n)?, part(src, src_start, n)?);
        let args = self.args().u64(to).u64(from).u64(bytes).i32(pe as i32);
        self.stream.run("shmem_stream_put", 1, &args)
    }

    /// `n` elements of PE `pe`'s `src` from `src_start` to this PE's `dst` from `dst_start`. When it has run, they are there (OpenSHMEM 1.6,
    /// `shmem_get`).
    ///
    /// # Errors
    /// As [`OnStream::put`].
    pub fn get<T: Pod>(
        &self,
        dst: &SymBuf<T>,
        dst_start: usize,
        src: &SymBuf<T>,
        src_start: usize,
        n: usize,
        pe: u32,
    ) -> Result<(), Error> {
        let ((to, bytes), (from, _)) = (part(dst, dst_start, n)?, part(src, src_start, n)?);
        let args = self.args().u64(to).u64(from).u64(bytes).i32(pe as i32);
        self.stream.run("shmem_stream_get", 1, &args)
    }

    /// [`OnStream::put`], and then sets PE `pe`'s signal word `signal[at]` to `value`: who waits for it sees the data, and everything that was put
    /// to that PE on this stream before (OpenSHMEM 1.6, `shmem_put_signal` with `SHMEM_SIGNAL_SET`, after a fence).
    ///
    /// # Errors
    /// As [`OnStream::put`].
    #[allow(clippy::too_many_arguments)] // the standard's
    pub fn put_signal<T: Pod>(
        &self,
        dst: &SymBuf<T>,
        dst_start: usize,
        src: &SymBuf<T>,
        src_start: usize,
        n: usize,
        signal: &SymBuf<u64>,
        at: usize,
        value: u64,
        pe: u32,
    ) -> Result<(), Error> {
        let ((to, bytes), (from, _)) = (part(dst, dst_start, n)?, part(src, src_start, n)?);
        let (word, _) = part(signal, at, 1)?;
        let args = self.args().u64(to).u64(from).u64(bytes);
        let args = args.u64(word).u64(value).i32(pe as i32);
        self.stream.run("shmem_stream_put_signal", 1, &args)
    }

    /// Holds the stream until this PE's own word `signal[at]` is at least `value` (OpenSHMEM 1.6, `shmem_signal_wait_until` with `SHMEM_CMP_GE`).
    /// Bounded by `NPUSHMEM_TIMEOUT`.
    ///
    /// # Errors
    /// As [`OnStream::put`].
    pub fn signal_wait(&self, signal: &SymBuf<u64>, at: usize, value: u64) -> Result<(), Error> {
        let (word, _) = part(signal, at, 1)?;
        let args = self.args().u64(word).u64(value);
        self.stream.run("shmem_stream_signal_wait", 1, &args)
    }

    /// All PEs meet on their streams; everything that this stream's kernels and calls did before is done and visible (OpenSHMEM 1.6,
    /// `shmem_barrier_all`).
    ///
    /// # Errors
    /// As [`Stream::launch`].
    pub fn barrier(&self) -> Result<(), Error> {
        let args = self.args();
        self.stream
            .run("shmem_stream_barrier", self.stream.context.cores(), &args)
    }

    /// Everything that this stream's kernels and calls did before is done and visible (OpenSHMEM 1.6, `shmem_quiet`).
    ///
    /// # Errors
    /// As [`Stream::launch`].
    pub fn quiet(&self) -> Result<(), Error> {
        let args = self.args();
        self.stream
            .run("shmem_stream_quiet", self.stream.context.cores(), &args)
    }

    /// `n` elements of PE `root`'s `src` to the `dst` of all PEs (OpenSHMEM 1.6, `shmem_broadcast`). Collective, as all collectives of a kernel:
    /// `dst` is ready everywhere before (a barrier on the stream).
    ///
    /// # Errors
    /// As [`OnStream::put`].
    pub fn broadcast<T: Pod>(
        &self,
        dst: &SymBuf<T>,
        src: &SymBuf<T>,
        n: usize,
        root: u32,
    ) -> Result<(), Error> {
        let ((to, bytes), (from, _)) = (part(dst, 0, n)?, part(src, 0, n)?);
        let args = self.args().u64(to).u64(from).u64(bytes).i32(root as i32);
        self.stream
            .run("shmem_stream_broadcast", self.stream.context.cores(), &args)
    }

    /// The sums of `n` elements of all PEs' `src` to everybody's `dst` (OpenSHMEM 1.6, `shmem_float_sum_reduce`). As [`OnStream::broadcast`].
    ///
    /// # Errors
    /// As [`OnStream::put`].
    pub fn sum_f32(&self, dst: &SymBuf<f32>, src: &SymBuf<f32>, n: usize) -> Result<(), Error> {
        let ((to, _), (from, _)) = (part(dst, 0, n)?, part(src, 0, n)?);
        let args = self.args().u64(to).u64(from).u64(n as u64);
        self.stream
            .run("shmem_stream_sum_float", self.stream.context.cores(), &args)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        let (_, _, config) = self.world.surroundings();
        self.runner
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .stop_before_drop(config);
    }
}
