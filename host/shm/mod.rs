//! OpenSHMEM over shared memory: what the C API (capi/) and the Rust API have in common, so that it exists once.
//!
//! Not an interface for programs: it takes addresses, checks nothing, and changes without notice. Programs use [`crate::World`], or C.
//!
//! Map: table.rs (the types of the typed families), copy.rs (moving bytes), wait.rs (how a PE waits); for collectives group.rs (members, numbering,
//! barrier), layout.rs (the symmetric area they use), data.rs, reduce.rs, ops.rs; for teams shape.rs (which PEs) and slots.rs (whose area).
//!
//! A [`group::Group`] is what an algorithm sees: members numbered from 0, a page of single-writer lines in each member's symmetric memory, and the
//! memory of every member. Every operation has a number that all members count alike, since a team's collectives come in the same order
//! everywhere (OpenSHMEM 1.6, section "Collective Routines"). Lines hold such numbers and only grow: nothing is reset, so that nothing can race
//! with a reset.

pub mod copy;
pub mod data;
pub mod group;
pub mod layout;
pub mod ops;
pub mod reduce;
pub mod shape;
pub mod slots;
pub mod table;
pub mod wait;
