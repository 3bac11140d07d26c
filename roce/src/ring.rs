//! The rules of the rings: owner bits, laps, index arithmetic, and the ordering points between writer and reader.
//!
//! No memory of its own and no queue state: [`crate::nic`] walks real rings with it, and `tests/ring_model.rs` runs the very same
//! functions under a model checker, with each ordering point deleted in turn.
//!
//! The protocol of the send ring: a writer fills slots 2..n of a batch with valid owner bits, orders ([`Words::store_release`] of
//! slot 1's first word), and only then lets slot 1 become valid; then it orders again and rings. The NIC may run past the doorbell
//! over slots with valid owner bits, so slot 1 gates the batch. A reader takes the owner bit with an acquiring load and then the body.
//! The completion ring is the mirror image: body first, then the word with the owner bit; the poller acquires it.

/// Words of one slot, eight bytes each, shared between a writer and a reader.
///
/// The first word holds the owner bit. Implemented over raw ring memory by the NIC and over a model checker's atomics by tests.
pub trait Words {
    /// A load that orders nothing.
    fn load(&self, index: usize) -> u64;
    /// A load that no later load of the slot passes.
    fn load_acquire(&self, index: usize) -> u64;
    /// A store that orders nothing.
    fn store(&self, index: usize, value: u64);
    /// A store that no earlier store passes.
    fn store_release(&self, index: usize, value: u64);
}

/// Words of a send slot.
pub const WQE_WORDS: usize = 8;
/// Words of a completion entry.
pub const CQE_WORDS: usize = 4;
/// The owner bit of both rings: bit 7 of the first word.
const OWNER_MASK: u64 = 1 << 7;
/// Width of the completion queue's counters.
pub const CONSUMER_BITS: u32 = 24;

/// Owner bit of request number `n` in a ring of `depth` slots: 1 on the first lap (rings start zeroed), 0 on the next.
pub const fn send_owner(n: u64, depth: u32) -> bool {
    n & depth as u64 == 0
}

/// Owner bit of completion number `n` in a ring of `depth` entries: 1 on the first lap, 0 on the next.
pub const fn completion_owner(n: u64, depth: u32) -> bool {
    n & depth as u64 == 0
}

/// Slot of counter `n` in a ring of `depth` (a power of two).
pub const fn slot(n: u64, depth: u32) -> u64 {
    n & (depth as u64 - 1)
}

/// How far `index`, a counter cut to some bits, is ahead of `from`. Only the low log2(depth) + 1 bits count, so that both known
/// forms of the producer index (modulo 65536, modulo twice the depth) mean the same.
pub const fn ahead(index: u32, from: u64, depth: u32) -> u64 {
    (index as u64).wrapping_sub(from) & (2 * depth as u64 - 1)
}

fn owner_of(word: u64) -> bool {
    u64::from_le(word) & OWNER_MASK != 0
}

/// Reader of the send ring: the slot's words if its owner bit is `owner`; else `Err` with the first word.
pub fn take_wqe(slot: &impl Words, owner: bool) -> Result<[u64; WQE_WORDS], u64> {
    let first = slot.load_acquire(0);
    if owner_of(first) != owner {
        return Err(first);
    }
    let mut words = [first; WQE_WORDS];
    for (index, word) in words.iter_mut().enumerate().skip(1) {
        *word = slot.load(index);
    }
    Ok(words)
}

/// Writer of the send ring: one slot, the word with the owner bit last. The first slot of a batch comes after the others.
pub fn publish_wqe(slot: &impl Words, words: &[u64; WQE_WORDS]) {
    for (index, word) in words.iter().enumerate().skip(1) {
        slot.store(index, *word);
    }
    slot.store_release(0, words[0]);
}

/// Writer of the completion ring: the body, then the word with the owner bit. Everything stored before, the payload included, is
/// visible to whoever sees that bit.
pub fn publish_cqe(entry: &impl Words, words: &[u64; CQE_WORDS]) {
    for (index, word) in words.iter().enumerate().skip(1) {
        entry.store(index, *word);
    }
    entry.store_release(0, words[0]);
}

/// Reader of the completion ring: the entry's words once its owner bit is `owner`.
pub fn poll_cqe(entry: &impl Words, owner: bool) -> Option<[u64; CQE_WORDS]> {
    let first = entry.load_acquire(0);
    if owner_of(first) != owner {
        return None;
    }
    let mut words = [first; CQE_WORDS];
    for (index, word) in words.iter_mut().enumerate().skip(1) {
        *word = entry.load(index);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_bits_alternate_by_lap_starting_with_one() {
        for depth in [64, 8192, 32768] {
            let laps: Vec<bool> = (0..4)
                .map(|lap| send_owner(lap * u64::from(depth), depth))
                .collect();
            assert_eq!(laps, [true, false, true, false]);
            assert!(send_owner(u64::from(depth) - 1, depth));
            assert!(!completion_owner(2 * u64::from(depth) - 1, depth));
        }
    }

    #[test]
    fn both_forms_of_the_producer_index_mean_the_same() {
        let (depth, from, to) = (64, 65_530_u64, 65_540_u64);
        let modulo_65536 = (to & 0xffff) as u32;
        let modulo_twice_the_depth = (to & 127) as u32;
        assert_eq!(ahead(modulo_65536, from, depth), 10);
        assert_eq!(ahead(modulo_twice_the_depth, from, depth), 10);
    }
}
