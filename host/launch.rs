//! Kernels and their arguments: modules, functions, and the packed argument block.
//!
//! What it is not: the launch itself, and the waiting, are [`crate::World`]'s.

use std::ffi::CString;
use std::sync::Arc;

use bytemuck::Pod;
use npushmem_ffi::acl;

use crate::error::Error;
use crate::runtime::owners::{Binary, Device};
use crate::sym::SymBuf;

/// A kernel object on the device. Unloaded when it and its functions are dropped and no kernel of it runs.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Loaded>,
}

/// What running kernels keep alive.
pub(crate) struct Loaded {
    pub(crate) binary: Binary,
    name: &'static str,
    // After the binary: the device goes last.
    _device: Arc<Device>,
}

/// A kernel of a module, ready to be launched.
#[derive(Clone)]
pub struct Function {
    pub(crate) handle: acl::aclrtFuncHandle,
    pub(crate) name: String,
    pub(crate) loaded: Arc<Loaded>,
}

// SAFETY: the handle is only passed to the runtime, which may be called from any thread, and `loaded` keeps it valid.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    pub(crate) fn load(
        device: &Arc<Device>,
        name: &'static str,
        bytes: &[u8],
    ) -> Result<Module, Error> {
        let binary = Binary::load(device, bytes).map_err(Error::acl("loading a kernel object"))?;
        Ok(Module {
            inner: Arc::new(Loaded {
                binary,
                name,
                _device: device.clone(),
            }),
        })
    }

    /// The object's name: its source's file stem.
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// The kernel of this name: the plain name for `extern "C"` kernels, the mangled one for others.
    ///
    /// # Errors
    /// The object has no kernel of this name.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let c_name = CString::new(name).map_err(|_| Error::Name(name.to_string()))?;
        let handle = self
            .inner
            .binary
            .function(&c_name)
            .map_err(Error::acl("looking up a kernel"))?;
        Ok(Function {
            handle,
            name: name.to_string(),
            loaded: self.inner.clone(),
        })
    }
}

impl Function {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A kernel's arguments, packed as the runtime passes them: one after the other, each at its natural alignment
/// (aclrtLaunchKernelWithHostArgs).
///
/// ```
/// use npushmem::Args;
/// let args = Args::new().ctx().u64(1 << 40).u32(7).f32(0.5);
/// assert_eq!(args.len(), 8 + 8 + 4 + 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Args {
    bytes: Vec<u8>,
    /// Where the context's address goes, known at the launch.
    contexts: Vec<usize>,
    /// Handles of other contexts that the kernel uses.
    claims: Vec<u32>,
}

impl Args {
    /// No arguments yet.
    pub fn new() -> Args {
        Args::default()
    }

    /// The device context: the first argument of kernels that call `shmem_attach`.
    pub fn ctx(mut self) -> Args {
        self.pad(size_of::<u64>());
        self.contexts.push(self.bytes.len());
        self.push(0u64)
    }

    /// A buffer of the symmetric heap: its address on this PE, 0 for an empty buffer.
    pub fn ptr<T: Pod>(self, buffer: &SymBuf<T>) -> Args {
        let address = buffer.addr();
        self.push(address)
    }

    /// 64 bits: numbers, and device addresses.
    pub fn u64(self, value: u64) -> Args {
        self.push(value)
    }

    /// 64 bits, signed.
    pub fn i64(self, value: i64) -> Args {
        self.push(value)
    }

    /// 32 bits.
    pub fn u32(self, value: u32) -> Args {
        self.push(value)
    }

    /// 32 bits, signed.
    pub fn i32(self, value: i32) -> Args {
        self.push(value)
    }

    /// A float.
    pub fn f32(self, value: f32) -> Args {
        self.push(value)
    }

    /// Any plain value: a structure that host and kernel declare alike.
    pub fn value<T: Pod>(self, value: T) -> Args {
        self.push(value)
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no argument yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The kernel uses this context beside the one that it attaches.
    pub(crate) fn claim(mut self, context: u32) -> Args {
        self.claims.push(context);
        self
    }

    /// Handles of the contexts that the kernel uses beside the one that it attaches.
    pub(crate) fn claims(&self) -> &[u32] {
        &self.claims
    }

    /// Whether the kernel gets the device context.
    pub(crate) fn wants_context(&self) -> bool {
        !self.contexts.is_empty()
    }

    /// The block, with the context's address in its places, padded to whole words.
    pub(crate) fn packed(&self, context: u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for at in &self.contexts {
            bytes[*at..*at + size_of::<u64>()].copy_from_slice(&context.to_ne_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(size_of::<u64>()), 0);
        bytes
    }

    fn push<T: Pod>(mut self, value: T) -> Args {
        self.pad(align_of::<T>());
        self.bytes.extend_from_slice(bytemuck::bytes_of(&value));
        self
    }

    fn pad(&mut self, alignment: usize) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(alignment), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_their_natural_alignment() {
        let args = Args::new().u32(1).ctx().i32(-1).u64(2).f32(1.0);
        let bytes = args.packed(0x1122_3344_5566_7788);
        assert_eq!(bytes.len(), 40);
        assert_eq!(bytes[0..4], 1u32.to_ne_bytes());
        assert_eq!(bytes[8..16], 0x1122_3344_5566_7788u64.to_ne_bytes());
        assert_eq!(bytes[16..20], (-1i32).to_ne_bytes());
        assert_eq!(bytes[24..32], 2u64.to_ne_bytes());
        assert_eq!(bytes[32..36], 1f32.to_ne_bytes());
    }

    #[test]
    fn only_arguments_with_a_context_want_one() {
        assert!(Args::new().ctx().wants_context());
        assert!(!Args::new().u64(0).wants_context());
        assert!(Args::new().is_empty());
    }
}
