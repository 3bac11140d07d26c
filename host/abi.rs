//! The host's view of device/abi.h: the structures that host and kernels share, generated from the header by build.rs.
//!
//! What it is not: no layout is declared here. transport/tables.rs fills the structures, faults.rs reads the error records.

#![allow(missing_docs, non_camel_case_types, non_upper_case_globals)] // the header's names and comments
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::doc_lazy_continuation,
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags
)] // generated

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// Structures that are written to and read from device memory as bytes.
macro_rules! plain {
    ($($name:ident),+) => {$(
        // SAFETY: a `repr(C)` struct of integers and integer arrays, for which every bit pattern is valid; the test below checks that it
        // has no padding.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: as above.
        unsafe impl bytemuck::Pod for $name {}
    )+};
}
plain!(
    shmem_peer,
    shmem_qp,
    shmem_core,
    shmem_error,
    shmem_abort,
    shmem_team,
    shmem_region,
    shmem_ctx
);

/// What a structure that the host writes begins with: magic, version, size.
pub(crate) fn header<T>() -> (u32, u16, u16) {
    (
        SHMEM_ABI_MAGIC,
        SHMEM_ABI_VERSION as u16,
        std::mem::size_of::<T>() as u16,
    )
}

/// Bytes of the lines of `shmem_sync_pe` at the beginning of the sync area: the macro SHMEM_SYNC_PAIR_OFFSET.
fn pairs_size(n_cores: u64, n_pes: u64) -> u64 {
    n_cores * n_pes * u64::from(SHMEM_LINE)
}

/// Bytes of a team's sync memory: the macro SHMEM_SYNC_TEAM_SIZE.
pub(crate) fn team_size(n_pes: u64) -> u64 {
    (u64::from(SHMEM_SYNC_ROUNDS) + 2 * n_pes) * u64::from(SHMEM_LINE)
}

/// Heap offset of a team's sync memory.
pub(crate) fn team_offset(team: u32, max_cores: u64, n_pes: u64) -> u64 {
    pairs_size(max_cores, n_pes) + u64::from(team) * team_size(n_pes)
}

/// Bytes of the sync area: the macro SHMEM_SYNC_SIZE.
pub(crate) fn sync_size(n_cores: u64, n_pes: u64) -> u64 {
    team_offset(SHMEM_TEAM_MAX, n_cores, n_pes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn structures_are_whole_lines_without_padding() {
        assert_eq!(size_of::<shmem_peer>(), 64);
        assert_eq!(size_of::<shmem_qp>(), 256);
        assert_eq!(size_of::<shmem_core>(), 128);
        assert_eq!(size_of::<shmem_error>(), 64);
        assert_eq!(size_of::<shmem_abort>(), 64);
        assert_eq!(size_of::<shmem_team>(), 128);
        assert_eq!(size_of::<shmem_ctx>(), 256);
        // The fields add up to the sizes, so nothing lies between them.
        assert_eq!(offset_of!(shmem_peer, reserved) + 32, 64);
        assert_eq!(offset_of!(shmem_qp, reserved) + 32, 128);
        assert_eq!(offset_of!(shmem_qp, reserved3) + 64, 256);
        assert_eq!(offset_of!(shmem_core, mapped_bytes) + 8, 128);
        assert_eq!(offset_of!(shmem_error, reserved) + 16, 64);
        assert_eq!(offset_of!(shmem_abort, reserved) + 56, 64);
        assert_eq!(offset_of!(shmem_team, reserved) + 16, 64);
        assert_eq!(offset_of!(shmem_team, epoch), 64);
        assert_eq!(offset_of!(shmem_team, reserved2) + 48, 128);
        assert_eq!(size_of::<shmem_region>(), 64);
        assert_eq!(offset_of!(shmem_region, reserved) + 28, 64);
        assert_eq!(offset_of!(shmem_ctx, reserved) + 80, 256);
    }

    #[test]
    fn the_cores_part_of_a_queue_pair_begins_on_a_line_of_its_own() {
        assert_eq!(offset_of!(shmem_qp, head), 128);
        assert_eq!(offset_of!(shmem_core, data_requests), 64);
    }

    #[test]
    fn counters_and_rings_lie_where_the_device_asserts_them() {
        assert_eq!(offset_of!(shmem_qp, qpn), 8);
        assert_eq!(offset_of!(shmem_qp, cqn), 12);
        assert_eq!(offset_of!(shmem_qp, sq_depth), 16);
        assert_eq!(offset_of!(shmem_qp, cq_depth), 20);
        assert_eq!(offset_of!(shmem_qp, cqe_size), 24);
        assert_eq!(offset_of!(shmem_qp, sl), 28);
        assert_eq!(offset_of!(shmem_qp, sq_buf), 32);
        assert_eq!(offset_of!(shmem_qp, cq_buf), 40);
        assert_eq!(offset_of!(shmem_qp, sq_db), 48);
        assert_eq!(offset_of!(shmem_qp, cq_db), 56);
        assert_eq!(offset_of!(shmem_qp, results), 64);
        assert_eq!(offset_of!(shmem_qp, bounce), 72);
        assert_eq!(offset_of!(shmem_qp, n_results), 80);
        assert_eq!(offset_of!(shmem_qp, bounce_size), 84);
        assert_eq!(offset_of!(shmem_qp, scratch_lkey), 88);
        assert_eq!(offset_of!(shmem_qp, usable), 92);
        assert_eq!(offset_of!(shmem_qp, head), 128);
        assert_eq!(offset_of!(shmem_qp, tail), 136);
        assert_eq!(offset_of!(shmem_qp, cq_ci), 144);
        assert_eq!(offset_of!(shmem_qp, cq_published), 152);
        assert_eq!(offset_of!(shmem_qp, bounce_head), 160);
        assert_eq!(offset_of!(shmem_qp, sync_epoch), 168);
        assert_eq!(offset_of!(shmem_qp, open), 176);
        assert_eq!(offset_of!(shmem_qp, broken), 180);
        assert_eq!(offset_of!(shmem_core, arrived), 0);
        assert_eq!(offset_of!(shmem_core, released), 8);
        assert_eq!(offset_of!(shmem_core, epoch), 16);
        assert_eq!(offset_of!(shmem_core, owner), 24);
        assert_eq!(offset_of!(shmem_core, left_open), 32);
        assert_eq!(offset_of!(shmem_core, data_requests), 64);
        assert_eq!(offset_of!(shmem_core, sync_requests), 72);
        assert_eq!(offset_of!(shmem_core, sq_doorbells), 80);
        assert_eq!(offset_of!(shmem_core, cq_doorbells), 88);
        assert_eq!(offset_of!(shmem_core, ring_copies), 96);
        assert_eq!(offset_of!(shmem_core, polls), 104);
        assert_eq!(offset_of!(shmem_core, roce_bytes), 112);
        assert_eq!(offset_of!(shmem_core, mapped_bytes), 120);
        assert_eq!(offset_of!(shmem_error, code), 0);
        assert_eq!(offset_of!(shmem_error, pe), 4);
        assert_eq!(offset_of!(shmem_error, qpn), 8);
        assert_eq!(offset_of!(shmem_error, syndrome), 12);
        assert_eq!(offset_of!(shmem_error, op), 16);
        assert_eq!(offset_of!(shmem_error, core), 20);
        assert_eq!(offset_of!(shmem_error, tick), 24);
        assert_eq!(offset_of!(shmem_error, detail0), 32);
        assert_eq!(offset_of!(shmem_error, detail1), 40);
        assert_eq!(offset_of!(shmem_abort, pe), 4);
        assert_eq!(offset_of!(shmem_peer, mapped), 8);
        assert_eq!(offset_of!(shmem_peer, base), 16);
        assert_eq!(offset_of!(shmem_peer, rkey), 24);
        assert_eq!(offset_of!(shmem_peer, engines), 28);
    }

    #[test]
    fn contexts_teams_and_regions_lie_where_the_device_asserts_them() {
        assert_eq!(offset_of!(shmem_ctx, my_pe), 8);
        assert_eq!(offset_of!(shmem_ctx, n_pes), 12);
        assert_eq!(offset_of!(shmem_ctx, heap_base), 16);
        assert_eq!(offset_of!(shmem_ctx, heap_size), 24);
        assert_eq!(offset_of!(shmem_ctx, peers), 32);
        assert_eq!(offset_of!(shmem_ctx, qps), 40);
        assert_eq!(offset_of!(shmem_ctx, cores), 48);
        assert_eq!(offset_of!(shmem_ctx, errors), 56);
        assert_eq!(offset_of!(shmem_ctx, abort), 64);
        assert_eq!(offset_of!(shmem_ctx, sync_offset), 72);
        assert_eq!(offset_of!(shmem_ctx, timeout_ticks), 80);
        assert_eq!(offset_of!(shmem_ctx, ticks_per_second), 88);
        assert_eq!(offset_of!(shmem_ctx, max_message), 96);
        assert_eq!(offset_of!(shmem_ctx, n_cores), 104);
        assert_eq!(offset_of!(shmem_ctx, atomic_domain), 108);
        assert_eq!(offset_of!(shmem_ctx, default_engine), 112);
        assert_eq!(offset_of!(shmem_ctx, flags), 116);
        assert_eq!(offset_of!(shmem_ctx, heap_lkey), 120);
        assert_eq!(offset_of!(shmem_ctx, teams), 128);
        assert_eq!(offset_of!(shmem_ctx, contexts), 136);
        assert_eq!(offset_of!(shmem_ctx, regions), 144);
        assert_eq!(offset_of!(shmem_ctx, id), 152);
        assert_eq!(offset_of!(shmem_ctx, team), 156);
        assert_eq!(offset_of!(shmem_ctx, world_team), 160);
        assert_eq!(offset_of!(shmem_ctx, options), 164);
        assert_eq!(offset_of!(shmem_ctx, n_contexts), 168);
        assert_eq!(offset_of!(shmem_ctx, n_regions), 172);
        assert_eq!(offset_of!(shmem_region, base), 8);
        assert_eq!(offset_of!(shmem_region, bytes), 16);
        assert_eq!(offset_of!(shmem_region, peers), 24);
        assert_eq!(offset_of!(shmem_region, lkey), 32);
        assert_eq!(offset_of!(shmem_team, magic), 0);
        assert_eq!(offset_of!(shmem_team, version), 4);
        assert_eq!(offset_of!(shmem_team, size), 6);
        assert_eq!(offset_of!(shmem_team, my_pe), 8);
        assert_eq!(offset_of!(shmem_team, n_pes), 12);
        assert_eq!(offset_of!(shmem_team, members), 16);
        assert_eq!(offset_of!(shmem_team, numbers), 24);
        assert_eq!(offset_of!(shmem_team, rounds), 32);
        assert_eq!(offset_of!(shmem_team, counts), 40);
        assert_eq!(offset_of!(shmem_team, epoch), 64);
        assert_eq!(offset_of!(shmem_team, exchanges), 72);
    }

    #[test]
    fn the_sync_area_has_a_line_a_core_and_pe_and_memory_for_each_team() {
        assert_eq!(team_size(8), (32 + 16) * 64);
        assert_eq!(team_offset(1, 4, 8), 32 * 64 + team_size(8));
        assert_eq!(sync_size(4, 8), 32 * 64 + 64 * team_size(8));
        // Odd numbers of PEs leave every line whole.
        for n_pes in [1, 3, 5, 7, 65] {
            assert_eq!(team_offset(3, 5, n_pes) % 64, 0);
        }
    }
}
