//! Numbers of PEs.
//!
//! What it is not: a place in a team; [`Pe`] always counts in the job, and a plain number counts in the context or team that it is given to.

use crate::error::Error;
use crate::heap::HeapError;
use crate::world::World;

/// A PE of the job, checked when it was made (OpenSHMEM 1.6, section "Execution Model": PEs are numbered from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pe(u32);

impl Pe {
    pub(crate) fn new(number: u32) -> Pe {
        Pe(number)
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The number, for indexing.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for Pe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PE {}", self.0)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for super::Pe {}
}

/// What says which PE an operation is for: a [`Pe`], or a number in the context's team (all PEs, if it has none). Checked at each call.
pub trait PeNumber: Copy + sealed::Sealed {
    /// The number in the job, of a context with these members (`None`: all PEs).
    #[doc(hidden)]
    fn resolve(self, members: Option<&[u32]>, n_pes: u32) -> Result<u32, HeapError>;
}

impl PeNumber for u32 {
    #[inline]
    fn resolve(self, members: Option<&[u32]>, n_pes: u32) -> Result<u32, HeapError> {
        match members {
            None if self < n_pes => Ok(self),
            None => Err(HeapError::Pe { pe: self, n_pes }),
            Some(members) => members
                .get(self as usize)
                .copied()
                .ok_or(HeapError::Number {
                    number: self,
                    n_pes: members.len() as u32,
                }),
        }
    }
}

impl PeNumber for Pe {
    #[inline]
    fn resolve(self, members: Option<&[u32]>, n_pes: u32) -> Result<u32, HeapError> {
        match members {
            None if self.0 < n_pes => Ok(self.0),
            None => Err(HeapError::Pe { pe: self.0, n_pes }),
            Some(members) if members.contains(&self.0) => Ok(self.0),
            Some(members) => Err(HeapError::Stranger {
                pe: self.0,
                n_pes: members.len() as u32,
            }),
        }
    }
}

impl World {
    /// The PE with this number (OpenSHMEM 1.6, `shmem_pe_accessible`).
    ///
    /// # Errors
    /// A number outside the job.
    pub fn pe(&self, number: u32) -> Result<Pe, Error> {
        Ok(Pe(number.resolve(None, self.n_pes())?))
    }

    /// This PE (OpenSHMEM 1.6, `shmem_my_pe`).
    pub fn me(&self) -> Pe {
        Pe(self.my_pe())
    }

    /// All PEs, in order (OpenSHMEM 1.6, `shmem_n_pes`).
    pub fn pes(&self) -> impl DoubleEndedIterator<Item = Pe> + ExactSizeIterator {
        (0..self.n_pes()).map(Pe)
    }

    /// The PE `steps` places after this one around the ring of all PEs; before it, if negative.
    pub fn ring(&self, steps: i64) -> Pe {
        let place = i64::from(self.my_pe()) + steps % i64::from(self.n_pes());
        Pe(place.rem_euclid(i64::from(self.n_pes())) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_in_the_contexts_team_and_pes_in_the_job() {
        let team = [4, 1, 3];
        assert_eq!(2u32.resolve(None, 3), Ok(2));
        assert!(3u32.resolve(None, 3).is_err());
        assert_eq!(0u32.resolve(Some(&team), 5), Ok(4));
        assert_eq!(Pe(3).resolve(Some(&team), 5), Ok(3));
        let error = Pe(0).resolve(Some(&team), 5).expect_err("not a member");
        assert!(error.to_string().contains("PE 0"), "{error}");
        assert!(3u32.resolve(Some(&team), 5).is_err());
    }
}
