//! Little-endian words, and named runs of bits in them: the vocabulary in which the layouts of this crate are written.
//!
//! Not a general bit-field library: a field lies within one word, and its position is a constant. Used by [`crate::wqe`],
//! [`crate::cqe`] and [`crate::doorbell`].

use bytemuck::{Pod, Zeroable};

/// A 32-bit word as it lies in a queue: little-endian.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Le32(u32);

/// A 64-bit word as it lies in a queue: little-endian.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Le64(u64);

impl Le32 {
    /// The word that holds `value`.
    pub const fn new(value: u32) -> Self {
        Le32(value.to_le())
    }

    /// Its value.
    pub const fn get(self) -> u32 {
        u32::from_le(self.0)
    }

    /// The value of one field.
    pub const fn field(self, bits: Bits) -> u32 {
        bits.get(self.get() as u64) as u32
    }

    /// The word with one field replaced; bits of `value` beyond the field's width are dropped.
    pub const fn with(self, bits: Bits, value: u32) -> Self {
        Le32::new(bits.set(self.get() as u64, value as u64) as u32)
    }

    /// Whether a one-bit field is set.
    pub const fn is_set(self, bit: Bits) -> bool {
        self.field(bit) != 0
    }
}

impl Le64 {
    /// The word that holds `value`.
    pub const fn new(value: u64) -> Self {
        Le64(value.to_le())
    }

    /// Its value.
    pub const fn get(self) -> u64 {
        u64::from_le(self.0)
    }
}

impl std::fmt::Debug for Le32 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#010x}", self.get())
    }
}

impl std::fmt::Debug for Le64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#018x}", self.get())
    }
}

/// A run of bits in a word of 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    low: u32,
    width: u32,
}

impl Bits {
    /// Bits `high` to `low` of a word, both included, as the format's tables write them ("h:l").
    pub const fn new(high: u32, low: u32) -> Bits {
        assert!(high >= low && high < 64);
        Bits {
            low,
            width: high - low + 1,
        }
    }

    /// One bit.
    pub const fn bit(bit: u32) -> Bits {
        Bits::new(bit, bit)
    }

    /// Bits `high` to `low` counted from the start of a structure of 32-bit words, as a field of the word they lie in.
    pub const fn of_dword(high: u32, low: u32) -> Bits {
        assert!(high / 32 == low / 32, "a field lies within one word");
        Bits::new(high % 32, low % 32)
    }

    /// The largest value the field can hold.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// The field's value in `word`.
    pub const fn get(self, word: u64) -> u64 {
        (word >> self.low) & self.max()
    }

    /// `word` with the field replaced; bits of `value` beyond its width are dropped.
    pub const fn set(self, word: u64, value: u64) -> u64 {
        (word & !(self.max() << self.low)) | ((value & self.max()) << self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_replaces_its_bits_and_no_others() {
        let middle = Bits::new(14, 8);
        assert_eq!(middle.set(u64::MAX, 0), u64::MAX - 0x7f00);
        assert_eq!(middle.set(0, u64::MAX), 0x7f00);
        assert_eq!(middle.get(0x5500), 0x55);
        assert_eq!(Bits::new(63, 0).set(7, u64::MAX), u64::MAX);
    }

    #[test]
    fn words_lie_little_endian_in_memory() {
        assert_eq!(bytemuck::bytes_of(&Le32::new(0x0102_0304)), [4, 3, 2, 1]);
        assert_eq!(
            bytemuck::bytes_of(&Le64::new(0x0102_0304_0506_0708)),
            [8, 7, 6, 5, 4, 3, 2, 1]
        );
    }

    #[test]
    fn structure_bits_fall_into_their_word() {
        assert_eq!(Bits::of_dword(127, 120), Bits::new(31, 24));
    }
}
