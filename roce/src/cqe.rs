//! Completion entries: the 32-byte CQE of HNS RoCE v2 (rdma-core `hns_roce_v2_cqe`; 64-byte entries only add inline payload).
//!
//! Layout, status codes and accessors. The software NIC encodes with it, tests and host-driven queue pairs decode with it.

use bytemuck::{Pod, Zeroable};

use crate::bits::{Bits, Le32};
use crate::ring;

/// Size of the part of an entry that is ever written, bytes; the ring's stride is 32 or 64.
pub const CQE_SIZE: usize = 32;

/// Fields of dword 0.
pub mod control {
    use super::Bits;
    /// The completed request's opcode.
    pub const OPCODE: Bits = Bits::of_dword(4, 0);
    /// Receive payload is in the entry.
    pub const RQ_INLINE: Bits = Bits::of_dword(5, 5);
    /// 0: send queue, 1: receive queue.
    pub const RECEIVE: Bits = Bits::of_dword(6, 6);
    /// Owner bit, see [`crate::ring::completion_owner`].
    pub const OWNER: Bits = Bits::of_dword(7, 7);
    /// A value of [`super::Status`].
    pub const STATUS: Bits = Bits::of_dword(15, 8);
    /// 16-bit counter of the completed request.
    pub const WQE_IDX: Bits = Bits::of_dword(31, 16);
}

/// Fields of dword 3.
pub mod local {
    use super::Bits;
    /// Own queue pair.
    pub const LCL_QPN: Bits = Bits::of_dword(119, 96);
    /// Vendor's syndrome.
    pub const SUB_STATUS: Bits = Bits::of_dword(127, 120);
}

/// Fields of dword 7.
pub mod remote {
    use super::Bits;
    /// The peer's queue pair.
    pub const RMT_QPN: Bits = Bits::of_dword(247, 224);
}

/// Status codes (rdma-core `HNS_ROCE_V2_CQE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0x00,
    /// Lengths contradict one another or a limit.
    LocalLength = 0x01,
    /// A request that this queue pair cannot do.
    LocalQpOperation = 0x02,
    /// Local key, bounds or access.
    LocalProtection = 0x04,
    /// Never executed: an earlier request failed.
    Flushed = 0x05,
    /// Memory management operation.
    MemoryManagement = 0x06,
    /// The peer's answer made no sense.
    BadResponse = 0x10,
    /// Local access.
    LocalAccess = 0x11,
    /// The responder's queue pair does not accept such a request.
    RemoteInvalidRequest = 0x12,
    /// Remote key, bounds or access.
    RemoteAccess = 0x13,
    /// The responder failed.
    RemoteOperation = 0x14,
    /// The peer did not answer.
    RetryExceeded = 0x15,
    /// The peer had no receive entry.
    ReceiverNotReady = 0x16,
    /// The peer gave up.
    RemoteAborted = 0x22,
    /// Anything else; the queue pair stays as it is.
    General = 0x23,
    /// XRC.
    XrcViolation = 0x24,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 16] = [
        Status::Ok,
        Status::LocalLength,
        Status::LocalQpOperation,
        Status::LocalProtection,
        Status::Flushed,
        Status::MemoryManagement,
        Status::BadResponse,
        Status::LocalAccess,
        Status::RemoteInvalidRequest,
        Status::RemoteAccess,
        Status::RemoteOperation,
        Status::RetryExceeded,
        Status::ReceiverNotReady,
        Status::RemoteAborted,
        Status::General,
        Status::XrcViolation,
    ];

    /// The status with this code; what is unpublished counts as a general error.
    pub fn from_code(code: u32) -> Status {
        Status::ALL
            .into_iter()
            .find(|status| *status as u32 == code)
            .unwrap_or(Status::General)
    }

    /// What it means, in words for a message.
    pub fn text(self) -> &'static str {
        match self {
            Status::Ok => "success",
            Status::LocalLength => "local length error",
            Status::LocalQpOperation => "local queue pair operation error",
            Status::LocalProtection => "local protection error (local key, bounds or access)",
            Status::Flushed => "flushed: an earlier request of the queue pair failed",
            Status::MemoryManagement => "memory management operation error",
            Status::BadResponse => "bad response",
            Status::LocalAccess => "local access error",
            Status::RemoteInvalidRequest => "remote invalid request (the peer's queue pair refuses the operation, or misaligned atomic)",
            Status::RemoteAccess => "remote access error (remote key, bounds or access)",
            Status::RemoteOperation => "remote operation error",
            Status::RetryExceeded => "transport retry exceeded (the peer does not answer)",
            Status::ReceiverNotReady => "receiver-not-ready retry exceeded",
            Status::RemoteAborted => "remote aborted",
            Status::General => "general error",
            Status::XrcViolation => "XRC violation",
        }
    }
}

/// A completion entry.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Cqe {
    /// Dword 0, fields of [`control`]: written last, read first.
    pub control: Le32,
    /// Receive side: remote key or immediate data.
    pub immediate: Le32,
    /// XRC SRQN and inline markers; 0.
    pub xrc: Le32,
    /// Dword 3, fields of [`local`].
    pub local: Le32,
    /// Bytes moved by a READ or an atomic.
    pub byte_cnt: Le32,
    /// Source address (not used for RC).
    pub source: [Le32; 2],
    /// Dword 7, fields of [`remote`].
    pub remote: Le32,
}

impl Cqe {
    /// A send-side entry for request number `wqe_index`, not yet owned.
    pub fn sent(opcode: u32, wqe_index: u64, qpn: u32, remote_qpn: u32) -> Cqe {
        Cqe {
            control: Le32::default()
                .with(control::OPCODE, opcode)
                .with(control::WQE_IDX, wqe_index as u32),
            local: Le32::default().with(local::LCL_QPN, qpn),
            remote: Le32::default().with(remote::RMT_QPN, remote_qpn),
            ..Cqe::default()
        }
    }

    /// The entry with a status and the vendor's syndrome.
    pub fn with_status(mut self, status: Status, sub_status: u8) -> Cqe {
        self.control = self.control.with(control::STATUS, status as u32);
        self.local = self.local.with(local::SUB_STATUS, sub_status.into());
        self
    }

    /// The entry with the bytes that a READ or an atomic moved.
    pub fn with_byte_count(mut self, bytes: u32) -> Cqe {
        self.byte_cnt = Le32::new(bytes);
        self
    }

    /// The entry as completion number `n` of a ring of `depth` entries: with its owner bit.
    pub fn owned(mut self, n: u64, depth: u32) -> Cqe {
        self.control = self
            .control
            .with(control::OWNER, ring::completion_owner(n, depth).into());
        self
    }

    /// The completed request's opcode.
    pub fn opcode(&self) -> u32 {
        self.control.field(control::OPCODE)
    }

    /// The owner bit.
    pub fn owner(&self) -> bool {
        self.control.is_set(control::OWNER)
    }

    /// The status.
    pub fn status(&self) -> Status {
        Status::from_code(self.control.field(control::STATUS))
    }

    /// The vendor's syndrome.
    pub fn sub_status(&self) -> u8 {
        self.local.field(local::SUB_STATUS) as u8
    }

    /// 16-bit counter of the completed request.
    pub fn wqe_index(&self) -> u16 {
        self.control.field(control::WQE_IDX) as u16
    }

    /// Own queue pair.
    pub fn qpn(&self) -> u32 {
        self.local.field(local::LCL_QPN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn words_lie_where_the_format_has_them() {
        assert_eq!(size_of::<Cqe>(), CQE_SIZE);
        assert_eq!(offset_of!(Cqe, control), 0);
        assert_eq!(offset_of!(Cqe, immediate), 4);
        assert_eq!(offset_of!(Cqe, xrc), 8);
        assert_eq!(offset_of!(Cqe, local), 12);
        assert_eq!(offset_of!(Cqe, byte_cnt), 16);
        assert_eq!(offset_of!(Cqe, source), 20);
        assert_eq!(offset_of!(Cqe, remote), 28);
    }

    #[test]
    fn every_status_code_is_found_again_and_others_are_general() {
        for status in Status::ALL {
            assert_eq!(Status::from_code(status as u32), status);
        }
        assert_eq!(Status::from_code(0x77), Status::General);
    }
}
