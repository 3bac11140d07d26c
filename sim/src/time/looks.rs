//! What a core's looks at memory mean: the first look at something new, or another look of a wait.
//!
//! How often a waiting core looks depends on how the operating system runs the processes, and the model must not. So looks that repeat cost nothing,
//! and neither do looks at other words in between (the abort line, completion entries): a wait costs one look, however it went. A change that has not
//! arrived is skipped to only by a core that has nothing else to do: one that looks at this word as often as at any other.

use std::collections::HashMap;

/// How much rarer than the most frequent look a look may be that still counts as waiting.
const RARE: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Seen {
    value: u64,
    times: u32,
    /// Looked at for the first time while another word was waited for.
    aside: bool,
}

/// The looks of one core since it last did something else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Looks {
    seen: HashMap<u64, Seen>,
    waiting: bool,
    most: u32,
}

/// What one look is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// It costs a load.
    pub(crate) costs: bool,
    /// The core waits for this word: it may skip to the next change.
    pub(crate) waits: bool,
}

impl Looks {
    /// The core did something else.
    pub(crate) fn clear(&mut self) {
        if !self.seen.is_empty() {
            self.seen.clear();
        }
        self.waiting = false;
        self.most = 0;
    }

    /// A look at `address` begins.
    pub(crate) fn begin(&mut self, address: u64) -> Look {
        match self.seen.get_mut(&address) {
            Some(seen) => {
                seen.times += 1;
                self.most = self.most.max(seen.times);
                Look {
                    costs: false,
                    waits: seen.times * RARE >= self.most,
                }
            }
            None => Look {
                costs: !self.waiting,
                waits: false,
            },
        }
    }

    /// It showed `value`.
    pub(crate) fn end(&mut self, address: u64, value: u64) {
        match self.seen.get_mut(&address) {
            Some(seen) if seen.value == value => self.waiting = true,
            Some(seen) => {
                // The wait is over: all is as if it had shown this at once.
                seen.value = value;
                self.waiting = false;
                self.most = 1;
                self.seen.retain(|_, seen| !seen.aside);
                self.seen.values_mut().for_each(|seen| seen.times = 1);
            }
            None => {
                self.seen.insert(
                    address,
                    Seen {
                        value,
                        times: 1,
                        aside: self.waiting,
                    },
                );
                self.most = self.most.max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cost of looks at (address, value) in turn.
    fn costs(looks: &[(u64, u64)]) -> usize {
        let mut all = Looks::default();
        looks
            .iter()
            .filter(|(address, value)| {
                let look = all.begin(*address);
                all.end(*address, *value);
                look.costs
            })
            .count()
    }

    #[test]
    fn a_wait_costs_one_look_however_long_it_takes() {
        assert_eq!(costs(&[(1, 1), (2, 0)]), 2);
        assert_eq!(costs(&[(1, 0), (1, 1), (2, 0)]), 2);
        assert_eq!(
            costs(&[
                (1, 0),
                (1, 0),
                (1, 0),
                (9, 0),
                (1, 0),
                (9, 0),
                (1, 1),
                (2, 0)
            ]),
            2
        );
        // What was looked at aside costs when it is looked at for its own sake.
        assert_eq!(costs(&[(1, 0), (1, 0), (9, 0), (1, 1), (9, 0)]), 2);
        assert_eq!(costs(&[(1, 1), (9, 0)]), 2);
    }

    #[test]
    fn only_a_word_that_is_looked_at_as_often_as_any_other_is_waited_for() {
        let mut looks = Looks::default();
        let mut look = |address| {
            let look = looks.begin(address);
            looks.end(address, 0);
            look.waits
        };
        assert!(!look(1));
        for _ in 0..15 {
            assert!(look(1));
        }
        assert!(!look(2));
        for _ in 0..15 {
            look(1);
        }
        assert!(!look(2), "looked at twice against 31 times");
    }

    #[test]
    fn several_words_looked_at_in_turn_are_all_waited_for() {
        let mut looks = Looks::default();
        let mut waits = Vec::new();
        for address in [1, 2, 3, 1, 2, 3] {
            waits.push(looks.begin(address).waits);
            looks.end(address, 0);
        }
        assert_eq!(waits, [false, false, false, true, true, true]);
    }
}
