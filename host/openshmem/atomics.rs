//! The host's atomics, in the job's atomic domain.
//!
//! What it is not: an order; the standard's atomics have none (fence and quiet do). Who executes them:
//!
//! - In a job without a device, and on the 950's cores (domain `core`), this CPU: one locked instruction on the peer's mapped memory. That is atomic to
//!   the cores' atomics on the emulated NPU, where both are atomics of one machine's CPUs. On hardware the heap is device memory, which the CPU does
//!   not reach: there an atomic is a kernel in either domain.
//! - Once the device is enabled and the domain is the NIC, the NIC: a small kernel (kernels/atomics.cpp) on this PE issues the request and hands the
//!   old value back. A CPU's locked instruction is not atomic to a NIC's read-modify-write. It waits for the kernels of this PE that were launched
//!   before, because one kernel owns the context at a time; do not wait in such a kernel for the host's atomic.
//!
//! While `enable_device` runs no host atomic may be under way: the domain changes there.

use super::access::Domain;
use super::context::HostContext;
use super::error::ShmemError;
use super::pe::PeNumber;
use super::types::{Atomic, AtomicBits, AtomicInteger};
use crate::error::Error;
use crate::launch::Args;
use crate::sym::SymRef;
use crate::world::World;

/// Operations of the kernel; numbered as in kernels/atomics.cpp.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Op {
    Fetch = 0,
    Set = 1,
    Swap = 2,
    Add = 3,
    CompareSwap = 4,
    And = 5,
    Or = 6,
    Xor = 7,
}

impl<U> HostContext<'_, U> {
    /// Does `op` where the domain says: by `cpu` on the mapped address, or by the NIC.
    #[inline]
    fn atomic<'s, T: Atomic>(
        &self,
        cell: impl Into<SymRef<'s, T>>,
        pe: impl PeNumber,
        (op, cond, value): (Op, u64, u64),
        cpu: impl FnOnce(*mut u8) -> T,
    ) -> Result<T, Error> {
        let pe = self.number(pe)?;
        let cell = cell.into().view();
        match self.world.domain() {
            Domain::Cpu => Ok(cpu(self.world.locate(&cell, pe)? as *mut u8)),
            Domain::Device => {
                // The kernel takes this PE's own instance, and the PE.
                let own = self.world.locate(&cell, self.world.my_pe())?;
                let (bytes, numbers) = (size_of::<T>() as u32, (op as u32, cond, value));
                let word = self.world.atomic_by_kernel(own, pe, bytes, numbers)?;
                Ok(T::from_word(word))
            }
            Domain::None => Err(ShmemError::AtomicNeedsDevice.into()),
            Domain::Refused => Err(ShmemError::NoAtomics.into()),
        }
    }

    /// The value now (OpenSHMEM 1.6, `shmem_atomic_fetch`).
    ///
    /// # Errors
    /// A PE outside the context's team or that is not mapped here; a NIC that executes no atomics; what the kernel has to tell. Here and below.
    #[inline]
    pub fn atomic_fetch<'s, T: Atomic>(
        &self,
        source: impl Into<SymRef<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        // SAFETY: a located element is mapped, and aligned as all elements of its type are; here and below.
        self.atomic(source, pe, (Op::Fetch, 0, 0), |at| unsafe { T::load(at) })
    }

    /// Sets the value (OpenSHMEM 1.6, `shmem_atomic_set`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_set<'s, T: Atomic>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.atomic(dest, pe, (Op::Set, 0, value.to_word()), |at| {
            // SAFETY: see above.
            unsafe { T::store(at, value) };
            value
        })
        .map(drop)
    }

    /// Sets the value; gives what it was (OpenSHMEM 1.6, `shmem_atomic_swap`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_swap<'s, T: Atomic>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        // SAFETY: see above.
        self.atomic(dest, pe, (Op::Swap, 0, value.to_word()), |at| unsafe {
            T::swap(at, value)
        })
    }

    /// Sets the value where it is `cond`; gives what it was (OpenSHMEM 1.6, `shmem_atomic_compare_swap`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_compare_swap<'s, T: AtomicInteger>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        cond: T,
        value: T,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        let numbers = (Op::CompareSwap, cond.to_word(), value.to_word());
        // SAFETY: see above.
        self.atomic(dest, pe, numbers, |at| unsafe {
            T::compare_swap(at, cond, value)
        })
    }

    /// Adds, around the end of the type; gives what the value was (OpenSHMEM 1.6, `shmem_atomic_fetch_add`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_fetch_add<'s, T: AtomicInteger>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        // SAFETY: see above.
        self.atomic(dest, pe, (Op::Add, 0, value.to_word()), |at| unsafe {
            T::add(at, value)
        })
    }

    /// Adds (OpenSHMEM 1.6, `shmem_atomic_add`). Done when it returns.
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_add<'s, T: AtomicInteger>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.atomic_fetch_add(dest, value, pe).map(drop)
    }

    /// Adds 1; gives what the value was (OpenSHMEM 1.6, `shmem_atomic_fetch_inc`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_fetch_inc<'s, T: AtomicInteger>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        self.atomic_fetch_add(dest, T::ONE, pe)
    }

    /// Adds 1 (OpenSHMEM 1.6, `shmem_atomic_inc`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_inc<'s, T: AtomicInteger>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.atomic_fetch_inc(dest, pe).map(drop)
    }

    /// Bitwise and; gives what the value was (OpenSHMEM 1.6, `shmem_atomic_fetch_and`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_fetch_and<'s, T: AtomicBits>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        // SAFETY: see above.
        self.atomic(dest, pe, (Op::And, 0, value.to_word()), |at| unsafe {
            T::and(at, value)
        })
    }

    /// Bitwise and (OpenSHMEM 1.6, `shmem_atomic_and`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_and<'s, T: AtomicBits>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.atomic_fetch_and(dest, value, pe).map(drop)
    }

    /// Bitwise or; gives what the value was (OpenSHMEM 1.6, `shmem_atomic_fetch_or`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_fetch_or<'s, T: AtomicBits>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        // SAFETY: see above.
        self.atomic(dest, pe, (Op::Or, 0, value.to_word()), |at| unsafe {
            T::or(at, value)
        })
    }

    /// Bitwise or (OpenSHMEM 1.6, `shmem_atomic_or`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_or<'s, T: AtomicBits>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.atomic_fetch_or(dest, value, pe).map(drop)
    }

    /// Bitwise exclusive or; gives what the value was (OpenSHMEM 1.6, `shmem_atomic_fetch_xor`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_fetch_xor<'s, T: AtomicBits>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<T, Error> {
        // SAFETY: see above.
        self.atomic(dest, pe, (Op::Xor, 0, value.to_word()), |at| unsafe {
            T::xor(at, value)
        })
    }

    /// Bitwise exclusive or (OpenSHMEM 1.6, `shmem_atomic_xor`).
    ///
    /// # Errors
    /// See [`atomic_fetch`](Self::atomic_fetch).
    #[inline]
    pub fn atomic_xor<'s, T: AtomicBits>(
        &self,
        dest: impl Into<SymRef<'s, T>>,
        value: T,
        pe: impl PeNumber,
    ) -> Result<(), Error> {
        self.atomic_fetch_xor(dest, value, pe).map(drop)
    }
}

impl World {
    /// One atomic by a kernel of this PE; gives the old value. `own`: this PE's instance of the element.
    fn atomic_by_kernel(
        &self,
        own: u64,
        pe: u32,
        bytes: u32,
        (op, cond, value): (u32, u64, u64),
    ) -> Result<u64, Error> {
        let args = Args::new()
            .ctx()
            .u64(own)
            .u32(pe)
            .u32(bytes)
            .u64(op.into())
            .u64(cond)
            .u64(value);
        Ok(self.run_own(&crate::kernels::ATOMICS, "shmem_host_atomic", 1, args)?[0])
    }
}
