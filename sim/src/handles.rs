//! Opaque handles of the ABI. A handle is a number that no pointer can have, so that a stale or invented one is refused, never followed.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{bad_handle, Outcome};

/// Handles of one kind.
pub(crate) struct Handles<T> {
    kind: &'static str,
    /// Upper 16 bits of every handle of this kind: not a canonical address, and different for each kind.
    tag: usize,
    next: AtomicUsize,
    map: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    pub(crate) const fn new(kind: &'static str, number: usize) -> Self {
        Self {
            kind,
            tag: (0x4e00 | number) << 48,
            next: AtomicUsize::new(1),
            map: RwLock::new(BTreeMap::new()),
        }
    }

    pub(crate) fn insert(&self, value: Arc<T>) -> *mut c_void {
        let handle = self.tag | (self.next.fetch_add(1, Ordering::Relaxed) << 4);
        self.map
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(handle, value);
        handle as *mut c_void
    }

    pub(crate) fn get(&self, handle: *const c_void) -> Outcome<Arc<T>> {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.get(&(handle as usize))
            .cloned()
            .ok_or_else(|| self.unknown(handle))
    }

    pub(crate) fn remove(&self, handle: *const c_void) -> Outcome<Arc<T>> {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        map.remove(&(handle as usize))
            .ok_or_else(|| self.unknown(handle))
    }

    /// Removes and returns everything that `wanted` picks.
    pub(crate) fn remove_where(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<usize> = map
            .iter()
            .filter(|(_, value)| wanted(value))
            .map(|(key, _)| *key)
            .collect();
        keys.iter().filter_map(|key| map.remove(key)).collect()
    }

    /// Everything that is alive now.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.map
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    fn unknown(&self, handle: *const c_void) -> crate::error::Fail {
        bad_handle(format!("{handle:p} is no {} of this process (never created, destroyed, or another kind of handle)", self.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_handle_is_refused_and_never_comes_back() {
        let handles = Handles::<u32>::new("thing", 1);
        let first = handles.insert(Arc::new(5));
        assert_eq!(handles.get(first).map(|v| *v), Ok(5));
        assert!(handles.remove(first).is_ok());
        assert!(handles
            .get(first)
            .expect_err("gone")
            .text
            .contains("no thing"));
        assert_ne!(handles.insert(Arc::new(6)), first);
        assert!(handles.get(std::ptr::null()).is_err());
    }
}
