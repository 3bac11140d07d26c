//! The algorithms of teams' collective operations over shared memory: synchronisation, data movement, reductions, scans.
//!
//! Not the C routines (they are in `calls/`), and not how teams come to be (`teams/`). A [`Group`] is what an algorithm sees: members numbered
//! from 0, a page of single-writer lines in each member's symmetric memory, and the memory of every member.
//!
//! Every operation has a number that all members count alike, since a team's collectives come in the same order everywhere (OpenSHMEM 1.6,
//! section "Collective Routines"). Lines hold such numbers and only grow: nothing is reset, so that nothing can race with a reset.

pub(crate) mod data;
pub(crate) mod group;
pub(crate) mod layout;
pub(crate) mod ops;
pub(crate) mod reduce;
