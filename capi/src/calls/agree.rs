//! `SHMEM_DEBUG`: before a collective, its members compare the routine and what all must pass alike, and say exactly what differs.
//!
//! Not part of any collective when calls are not checked. All members have the setting, as all have the same environment.

use crate::state::{self, State};
use crate::teams::done;
use npushmem::shm::group::{Group, Kind, Routine};

/// Words for the routine's name.
const NAME: usize = 6;
/// Arguments that are compared at most.
const MOST: usize = 8;

/// An argument that all members must pass alike.
pub(crate) struct Argument {
    name: &'static str,
    value: u64,
    place: bool,
}

impl Argument {
    /// A number.
    pub(crate) fn number(name: &'static str, value: i64) -> Argument {
        Argument {
            name,
            value: value as u64,
            place: false,
        }
    }

    /// A symmetric address: where it is in the heap or in static data, which is the same on all PEs.
    pub(crate) fn place(name: &'static str, state: &State, address: usize) -> Argument {
        /// Set for static data.
        const STATIC: u64 = 1 << 63;
        let value = if state.heap.contains(address, 0) {
            (address - state.heap.base) as u64
        } else if state.statics.contains(address, 0) {
            (address - state.statics.base) as u64 | STATIC
        } else {
            // Not symmetric: that is told by another check.
            u64::MAX
        };
        Argument {
            name,
            value,
            place: true,
        }
    }

    fn text(&self, value: u64) -> String {
        match (self.place, value) {
            (false, value) => (value as i64).to_string(),
            (true, u64::MAX) => "an address that is not symmetric".to_owned(),
            (true, value) if value >> 63 == 1 => {
                format!("byte {:#x} of static data", value & !(1 << 63))
            }
            (true, value) => format!("byte {value:#x} of the heap"),
        }
    }
}

/// A name as words, cut where it is too long.
fn packed(name: &str) -> [u64; NAME] {
    let mut bytes = [0u8; NAME * 8];
    let len = name.len().min(bytes.len());
    bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
    std::array::from_fn(|i| {
        bytes[i * 8..][..8]
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    })
}

/// The name behind [`packed`].
fn unpacked(words: &[u64]) -> String {
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Compares `routine` and `arguments` with those of all members of `group`; ends the job where they differ. Collective.
pub(crate) fn agree(routine: Routine, group: &Group, arguments: &[Argument]) {
    let mut mine = [0u64; NAME + MOST];
    mine[..NAME].copy_from_slice(&packed(routine));
    for (to, argument) in mine[NAME..].iter_mut().zip(arguments) {
        *to = argument.value;
    }
    group.enter(routine);
    let all = done(group.exchange(Kind::Arguments, mine));
    for (member, theirs) in all.iter().enumerate() {
        let pe = group.pe(member);
        if theirs[..NAME] != mine[..NAME] {
            let other = unpacked(&theirs[..NAME]);
            state::fail(
                routine,
                &format!("members of a team are in different routines: this PE is in {routine}, PE {pe} in {other}"),
            );
        }
        for (argument, value) in arguments.iter().zip(&theirs[NAME..]) {
            if argument.value != *value {
                state::fail(
                    routine,
                    &format!(
                        "argument {}: {} here, {} on PE {pe}; all members must pass the same",
                        argument.name,
                        argument.text(argument.value),
                        argument.text(*value)
                    ),
                );
            }
        }
    }
}
