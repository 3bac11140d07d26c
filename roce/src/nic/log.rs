//! What hardware would do silently, in sentences; and the asynchronous events. Bounded: the oldest stay, the rest is counted.
//!
//! A fault that strikes many queue pairs at once (a peer that dies) is one sentence with a count. Nothing is printed here: a sentence is said
//! while a kernel runs, and belongs to whoever launched it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::types::{Event, EventKind};

/// Sentences and events kept, each.
const LIMIT: usize = 256;

struct Sentence {
    text: String,
    /// What sentences about the same fault have in common; empty: nothing.
    fault: String,
    /// Sentences about the same fault that are not kept.
    alike: u64,
}

#[derive(Default)]
struct Entries {
    sentences: Vec<Sentence>,
    left_out: u64,
    events: Vec<Event>,
}

impl Entries {
    fn texts(&self) -> Vec<String> {
        let text = |sentence: &Sentence| match sentence.alike {
            0 => sentence.text.clone(),
            alike => format!("{} (and {alike} more alike)", sentence.text),
        };
        let mut list: Vec<String> = self.sentences.iter().map(text).collect();
        if self.left_out > 0 {
            list.push(format!("and {} more", self.left_out));
        }
        list
    }
}

/// The NIC's diagnostics.
#[derive(Default)]
pub(super) struct Log {
    entries: Mutex<Entries>,
}

impl Log {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn say(&self, text: String) {
        self.say_of(String::new(), text);
    }

    /// Says something about a fault: kept in full for the first queue pair that it strikes, counted for the others.
    pub(super) fn say_of(&self, fault: String, text: String) {
        tracing::debug!(target: "npushmem_roce::nic", "{text}");
        let mut entries = self.entries();
        let same = |known: &&mut Sentence| !fault.is_empty() && known.fault == fault;
        if let Some(known) = entries.sentences.iter_mut().find(same) {
            known.alike += 1;
        } else if entries.sentences.len() < LIMIT {
            entries.sentences.push(Sentence {
                text,
                fault,
                alike: 0,
            });
        } else {
            entries.left_out += 1;
        }
    }

    pub(super) fn raise(&self, kind: EventKind, qpn: u32) {
        let mut entries = self.entries();
        if entries.events.len() < LIMIT {
            entries.events.push(Event { kind, qpn });
        }
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        self.entries().texts()
    }

    /// The sentences, which are forgotten.
    pub(super) fn take(&self) -> Vec<String> {
        let mut entries = self.entries();
        let texts = entries.texts();
        (entries.sentences, entries.left_out) = (Vec::new(), 0);
        texts
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.entries().events.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_many_queue_pairs_is_one_sentence_until_it_is_taken() {
        let log = Log::default();
        for qpn in 8..11 {
            log.say_of("dead".into(), format!("queue pair {qpn}: dead"));
        }
        log.say("something else".into());
        log.say("something else".into());
        assert_eq!(
            log.take(),
            [
                "queue pair 8: dead (and 2 more alike)",
                "something else",
                "something else"
            ]
        );
        assert!(log.sentences().is_empty());
        log.say_of("dead".into(), "queue pair 11: dead".into());
        assert_eq!(log.sentences(), ["queue pair 11: dead"]);
    }

    #[test]
    fn what_is_above_the_limit_is_counted() {
        let log = Log::default();
        (0..LIMIT + 3).for_each(|n| log.say(n.to_string()));
        let list = log.take();
        assert_eq!((list.len(), &*list[LIMIT]), (LIMIT + 1, "and 3 more"));
    }
}
