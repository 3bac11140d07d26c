//! What stands for verbs in a build without them: types that cannot exist, and an `open` that says why.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::{Completion, Request, VerbsAddress, VerbsConfig, VerbsError};

enum Never {}

pub(crate) struct Device(Never);
#[derive(Debug)]
pub(crate) struct Region(std::convert::Infallible);
pub(crate) struct QueuePair(Never);

impl Device {
    pub(crate) fn open(_config: &VerbsConfig) -> Result<Arc<Device>, VerbsError> {
        Err(VerbsError::NotCompiled)
    }

    pub(crate) fn ip(&self) -> Ipv4Addr {
        match self.0 {}
    }

    pub(crate) fn max_message(&self) -> u64 {
        match self.0 {}
    }

    /// # Safety
    /// As in `sys.rs`.
    pub(crate) unsafe fn register(
        self: &Arc<Self>,
        _at: *mut u8,
        _len: u64,
        _va: u64,
        _access: u32,
    ) -> Result<Region, VerbsError> {
        match self.0 {}
    }

    pub(crate) fn create_qp(
        self: &Arc<Self>,
        _depth: u32,
        _inline: u32,
        _atomics: bool,
    ) -> Result<QueuePair, VerbsError> {
        match self.0 {}
    }
}

impl Region {
    pub(crate) fn lkey(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn rkey(&self) -> u32 {
        match self.0 {}
    }
}

impl QueuePair {
    pub(crate) fn address(&self) -> VerbsAddress {
        match self.0 {}
    }

    pub(crate) fn connect(&self, _peer: &VerbsAddress) -> Result<(), VerbsError> {
        match self.0 {}
    }

    pub(crate) fn fail(&self) {
        match self.0 {}
    }

    pub(crate) fn post(&mut self, _requests: &[Request]) -> (usize, Option<i32>) {
        match self.0 {}
    }

    pub(crate) fn poll(&mut self, _into: &mut Vec<Completion>) {
        match self.0 {}
    }
}
