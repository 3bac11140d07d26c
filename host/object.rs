//! Kernel objects: compiled kernels as bytes, one set a target, and the choice among them.
//!
//! What it is not: it loads nothing; [`crate::World::load`] does. The statics are made by npushmem-build.

/// A kernel source compiled for every target that the build found.
#[derive(Debug)]
pub struct KernelObject {
    /// The source's file stem.
    pub name: &'static str,
    /// One object a target.
    pub targets: &'static [(Target, &'static [u8])],
}

/// What an object runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The emulated NPU, not hardware.
    pub sim: bool,
    /// `__NPU_ARCH__`: 2201 (A2, A3) or 3510 (950).
    pub npu_arch: u32,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}",
            if self.sim { "sim" } else { "npu" },
            self.npu_arch
        )
    }
}

impl KernelObject {
    /// The object for `target`.
    pub fn for_target(&self, target: Target) -> Option<&'static [u8]> {
        self.targets
            .iter()
            .find(|(t, _)| *t == target)
            .map(|(_, bytes)| *bytes)
    }
}

/// The kernels that npushmem ships, from kernels/.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
