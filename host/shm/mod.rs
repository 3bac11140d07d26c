//! OpenSHMEM over shared memory: what the C API (capi/) and the Rust API have in common, so that it exists once.
//!
//! Not an interface for programs: it takes addresses, checks nothing, and changes without notice. Programs use [`crate::World`], or C.
//!
//! Map: table.rs (the types of the typed families); copy.rs, strided.rs, amo.rs, order.rs (access to memory); wait.rs (how a PE waits), vars.rs
//! (for what), lock.rs; for collectives group.rs (members, numbering, barrier), layout.rs (the symmetric area they use), data.rs, reduce.rs,
//! ops.rs; for teams shape.rs (which PEs), slots.rs (whose area), and pairs.rs for PEs without a common team.
//!
//! A [`group::Group`] is what an algorithm sees: members numbered from 0, a page of single-writer lines in each member's symmetric memory, and the
//! memory of every member. Every operation has a number that all members count alike, since a team's collectives come in the same order
//! everywhere (OpenSHMEM 1.6, section "Collective Routines"). Lines hold such numbers and only grow: nothing is reset, so that nothing can race
//! with a reset.

pub mod amo;
pub mod copy;
pub mod data;
pub mod group;
pub mod layout;
pub mod lock;
pub mod ops;
pub mod order;
pub mod pairs;
pub mod reduce;
pub mod shape;
pub mod slots;
pub mod strided;
pub mod table;
pub mod vars;
pub mod wait;
