//! What hardware would do silently, in sentences; and the asynchronous events. Bounded: the oldest stay, the rest is counted.

use std::sync::{Mutex, PoisonError};

use super::types::{Event, EventKind};

/// Sentences and events kept, each.
const LIMIT: usize = 256;

#[derive(Default)]
struct Entries {
    sentences: Vec<String>,
    left_out: u64,
    events: Vec<Event>,
}

/// The NIC's diagnostics.
#[derive(Default)]
pub(super) struct Log {
    entries: Mutex<Entries>,
}

impl Log {
    pub(super) fn say(&self, sentence: String) {
        tracing::warn!(target: "npushmem_roce::nic", "{sentence}");
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.sentences.len() < LIMIT {
            entries.sentences.push(sentence);
        } else {
            entries.left_out += 1;
        }
    }

    pub(super) fn raise(&self, kind: EventKind, qpn: u32) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.events.len() < LIMIT {
            entries.events.push(Event { kind, qpn });
        }
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list = entries.sentences.clone();
        if entries.left_out > 0 {
            list.push(format!("and {} more", entries.left_out));
        }
        list
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .events
            .clone()
    }
}
