//! Seeded random numbers whose sequence never changes between versions: graphs and features made from a seed are data that results are compared
//! on. Not for secrets.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).

/// Odd constant nearest to 2^64 divided by the golden ratio: the step of SplitMix64's counter.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of `value`: a bijection on 64 bits.
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN_STEP);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A value in [-1, 1) with 24 random bits, which f32 holds exactly.
pub fn unit(bits: u64) -> f32 {
    ((bits >> 40) as f32) / ((1u32 << 23) as f32) - 1.0
}

/// A seeded sequence.
pub struct Sequence {
    state: u64,
}

impl Sequence {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        let out = mix(self.state);
        self.state = self.state.wrapping_add(GOLDEN_STEP);
        out
    }

    /// A number below `bound` (not 0); biased by less than bound / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_values_fill_the_half_open_interval_from_minus_one_to_one() {
        assert_eq!(unit(0), -1.0);
        assert!(unit(u64::MAX) < 1.0);
        let mut sequence = Sequence::new(1);
        let mean: f32 = (0..10_000).map(|_| unit(sequence.next())).sum::<f32>() / 10_000.0;
        assert!(mean.abs() < 0.05, "mean {mean}");
    }

    #[test]
    fn a_seed_names_one_sequence_for_ever() {
        let mut sequence = Sequence::new(42);
        let first: Vec<u64> = (0..3).map(|_| sequence.next()).collect();
        let mut again = Sequence::new(42);
        assert_eq!(first, (0..3).map(|_| again.next()).collect::<Vec<_>>());
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf); // SplitMix64's first output for seed 0
    }

    #[test]
    fn numbers_below_a_bound_stay_below_it_and_reach_everything() {
        let mut sequence = Sequence::new(7);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[sequence.below(5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
