//! What can go wrong in the host's OpenSHMEM operations.

/// An operation cannot be done, or did not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShmemError {
    /// Memory that host code cannot touch.
    #[error("{what} between hosts is done by loads and stores, and {reason}; let a kernel do it (device/shmem.h), or run on the emulated NPU with NPUSHMEM_MAPPED=auto")]
    NotShared {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// A host's atomic where the NIC would have to do it.
    #[error("an atomic of the host is executed by the job's NICs, and they execute none (see the warning at enable_device)")]
    NoAtomics,
    /// A host's atomic on memory that only the device reaches, without a device.
    #[error(
        "an atomic on device memory is executed by a kernel: call enable_device on all PEs first"
    )]
    AtomicNeedsDevice,
    /// A wait that lasted too long.
    #[error("PE {me}: {what} did not end within {} s; is a PE missing, or its condition never made true? NPUSHMEM_TIMEOUT is the limit", limit.as_secs_f64())]
    Timeout {
        /// This PE.
        me: u32,
        /// What was waited for.
        what: &'static str,
        /// How long.
        limit: std::time::Duration,
    },
    /// A PE died while this one waited.
    #[error("PE {me}: {what} was given up: {} died ({reason})", dead.map_or("the job's store".to_string(), |pe| format!("PE {pe}")))]
    Died {
        /// This PE.
        me: u32,
        /// What was waited for.
        what: &'static str,
        /// Who; `None`: the job's store.
        dead: Option<u32>,
        /// How.
        reason: String,
    },
    /// Members of a team in different collectives.
    #[error("PE {me} is in {} and PE {other} in {}; all members of a team must call the same collectives in the same order, with the same sizes and roots (NPUSHMEM_CHECK=off skips this check)", described(*mine), described(*theirs))]
    Mismatch {
        /// This PE.
        me: u32,
        /// The first that differs.
        other: u32,
        /// Kind, size and root here.
        mine: (u8, u64),
        /// There.
        theirs: (u8, u64),
    },
    /// A team after an error in one of its collectives.
    #[error("{what}: this team cannot be used any more after an earlier error in one of its collectives; its members may be in different ones")]
    Broken {
        /// What was to be done.
        what: &'static str,
    },
    /// Two sides of different lengths.
    #[error("{what}: {dest} elements of the destination for {src} of the source; give slices of the same length")]
    Length {
        /// The operation.
        what: &'static str,
        /// Elements of the destination.
        dest: usize,
        /// Elements of the source.
        src: usize,
    },
    /// A list without a value for each variable.
    #[error("{what}: {given} entries for {wanted} variables; give one for each")]
    Entries {
        /// The operation.
        what: &'static str,
        /// Entries given.
        given: usize,
        /// Variables.
        wanted: usize,
    },
    /// A stride below the block it has to step over.
    #[error("{what}: a stride of {stride} elements for blocks of {block}; strides are at least 1, and at least a block long")]
    Stride {
        /// The operation.
        what: &'static str,
        /// Elements between the starts of two blocks.
        stride: usize,
        /// Elements of a block.
        block: usize,
    },
    /// Source and destination that lie in one another.
    #[error("{what}: source and destination overlap; they may be the same elements where the routine says so, or must lie apart")]
    Overlap {
        /// The operation.
        what: &'static str,
    },
    /// A destination that does not hold what all members give.
    #[error("collect: the members give {total} elements altogether, and the destination has room for {room}")]
    Room {
        /// Elements of all members.
        total: usize,
        /// Elements of the destination.
        room: usize,
    },
    /// Bytes that do not divide among the members.
    #[error("{what}: {len} elements are not a multiple of the team's {n_pes} members")]
    Blocks {
        /// The operation.
        what: &'static str,
        /// Elements.
        len: usize,
        /// Members.
        n_pes: u32,
    },
    /// A value too long to be staged.
    #[error("{what} takes values of up to {limit} bytes, and this one has {bytes}; use symmetric memory")]
    TooLong {
        /// The operation.
        what: &'static str,
        /// Bytes of the value.
        bytes: usize,
        /// Bytes at most.
        limit: usize,
    },
}

/// A collective, in words.
fn described((kind, size): (u8, u64)) -> String {
    let name = match kind {
        1 => "a sync or barrier",
        2 => "a broadcast",
        3 => "an fcollect",
        4 => "an alltoall",
        5 => "a reduction or scan",
        6 => "a team split",
        _ => "a collect",
    };
    format!("{name} (size and root {size:#x})")
}
