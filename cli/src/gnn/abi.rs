//! The layouts of kernels/gnn_abi.h for the host. Meaning is documented there; the tests hold the two together.

use bytemuck::{Pod, Zeroable};

/// "GNNJ" in memory order.
pub const MAGIC: u32 = 0x4a4e_4e47;
/// Version of the layouts.
pub const VERSION: u16 = 2;
/// Bytes between the cores' progress lines.
pub const PROGRESS_STRIDE: usize = 64;
/// Most batches that a core keeps in flight.
pub const MAX_WINDOW: u32 = 16;
/// Batches that each core keeps in flight.
pub const WINDOW: u32 = 8;
const _: () = assert!(WINDOW >= 1 && WINDOW <= MAX_WINDOW);
/// Most layers of one launch.
pub const MAX_LAYERS: u32 = 64;

/// `struct gnn_node`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Node {
    pub row: u32,
    pub degree: u32,
}

/// `struct gnn_phase`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Phase {
    pub edge_end: u64,
    pub need: u32,
    pub reserved: u32,
}

/// `struct gnn_batch`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Batch {
    pub pe: u32,
    pub count: u32,
    pub first_slot: u32,
    pub target: u32,
}

/// `struct gnn_core`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Core {
    pub node_begin: u32,
    pub node_end: u32,
    pub phase_begin: u32,
    pub phase_end: u32,
    pub edge_begin: u64,
    pub edge_end: u64,
    pub batch_begin: u32,
    pub batch_end: u32,
    pub send_begin: u32,
    pub send_end: u32,
    pub reserved: [u8; 16],
}

/// `struct gnn_job`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Job {
    pub magic: u32,
    pub version: u16,
    pub size: u16,
    pub dim: u32,
    pub dtype: u32,
    pub reduce: u32,
    pub engine: u32,
    pub n_cores: u32,
    pub staging_row: u32,
    pub table: u64,
    pub outputs: [u64; 2],
    pub columns: u64,
    pub weights: u64,
    pub nodes: u64,
    pub phases: u64,
    pub batches: u64,
    pub fetch: u64,
    pub cores: u64,
    pub progress: u64,
    pub sums: u64,
    pub window: u32,
    pub layers: u32,
    pub output_row: u32,
    pub reserved: [u32; 13],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    // The same numbers are static_asserts in kernels/gnn_common.h.
    #[test]
    fn layouts_are_those_of_the_kernel_header() {
        assert_eq!((size_of::<Node>(), offset_of!(Node, degree)), (8, 4));
        assert_eq!((size_of::<Phase>(), offset_of!(Phase, need)), (16, 8));
        assert_eq!(
            (
                size_of::<Batch>(),
                offset_of!(Batch, count),
                offset_of!(Batch, first_slot),
                offset_of!(Batch, target)
            ),
            (16, 4, 8, 12)
        );
        assert_eq!(size_of::<Core>(), 64);
        assert_eq!(
            (
                offset_of!(Core, phase_begin),
                offset_of!(Core, edge_begin),
                offset_of!(Core, batch_begin)
            ),
            (8, 16, 32)
        );
        assert_eq!(
            (offset_of!(Core, send_begin), offset_of!(Core, reserved)),
            (40, 48)
        );
        assert_eq!(size_of::<Job>(), 192);
        assert_eq!(
            (
                offset_of!(Job, dim),
                offset_of!(Job, staging_row),
                offset_of!(Job, table),
                offset_of!(Job, outputs),
                offset_of!(Job, weights)
            ),
            (8, 28, 32, 40, 64)
        );
        assert_eq!(
            (
                offset_of!(Job, cores),
                offset_of!(Job, progress),
                offset_of!(Job, sums),
                offset_of!(Job, window)
            ),
            (104, 112, 120, 128)
        );
        assert_eq!(
            (offset_of!(Job, layers), offset_of!(Job, output_row)),
            (132, 136)
        );
    }

    #[test]
    fn constants_are_those_of_the_kernel_header() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/gnn_abi.h");
        let Ok(header) = std::fs::read_to_string(path) else {
            eprintln!("skipped: no {path} (a packaged crate)");
            return;
        };
        for line in [
            format!("#define GNN_MAGIC {MAGIC:#x}u"),
            format!("#define GNN_VERSION {VERSION}u"),
            format!("#define GNN_PROGRESS_STRIDE {PROGRESS_STRIDE}u"),
            format!("#define GNN_MAX_WINDOW {MAX_WINDOW}u"),
            format!("#define GNN_MAX_LAYERS {MAX_LAYERS}u"),
        ] {
            assert!(header.contains(&line), "{line}");
        }
    }
}
