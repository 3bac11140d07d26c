//! Send work requests: the 64-byte RC WQE of HNS RoCE v2 (rdma-core `hns_roce_rc_sq_wqe`, Linux `hns_roce_v2_rc_send_wqe`).
//!
//! Layout, constructors and accessors; nothing here reads a ring or executes anything. The software NIC decodes with it, tests
//! and host-driven queue pairs encode with it. The device's C++ encoder has the same layout and is tested against the same
//! golden vectors (`golden/vectors.txt`).

use bytemuck::{Pod, Zeroable};

use crate::bits::{Bits, Le32, Le64};
use crate::ring;

/// Size of a send slot, bytes.
pub const WQE_SIZE: usize = 64;
/// Longest payload inside the WQE itself (inline type 0), bytes.
pub const MAX_INLINE: usize = 32;
/// Data segments inside the WQE; further ones would lie in the extended area, which one-sided requests of ours never need.
pub const SEGMENTS: usize = 2;
/// Length of an atomic's operand, bytes.
pub const ATOMIC_SIZE: u32 = 8;

/// Opcodes of send requests (rdma-core `HNS_ROCE_WQE_OP_*`; 0x13 from the Ascend driver's header).
pub mod opcode {
    /// Two-sided send.
    pub const SEND: u32 = 0x0;
    /// Send that invalidates a key.
    pub const SEND_INV: u32 = 0x1;
    /// Send with immediate data.
    pub const SEND_IMM: u32 = 0x2;
    /// Write to remote memory.
    pub const WRITE: u32 = 0x3;
    /// Write that also consumes a receive entry.
    pub const WRITE_IMM: u32 = 0x4;
    /// Read from remote memory.
    pub const READ: u32 = 0x5;
    /// 64-bit compare and swap.
    pub const COMPARE_SWAP: u32 = 0x6;
    /// 64-bit fetch and add.
    pub const FETCH_ADD: u32 = 0x7;
    /// Nothing (Ascend).
    pub const NOP: u32 = 0x13;
    /// Marks a slot invalid.
    pub const INVALID: u32 = 0x1f;
}

/// Fields of dword 0.
pub mod control {
    use super::Bits;
    /// What to do: a value of [`super::opcode`].
    pub const OPCODE: Bits = Bits::of_dword(4, 0);
    /// Direct WQE only: service level bits 1:0.
    pub const DB_SL_L: Bits = Bits::of_dword(6, 5);
    /// Owner bit, see [`crate::ring::send_owner`].
    pub const OWNER: Bits = Bits::of_dword(7, 7);
    /// Make a completion entry (rdma-core calls it CQE).
    pub const SIGNALED: Bits = Bits::of_dword(8, 8);
    /// Wait for earlier READs and atomics, but not for their data to be in memory.
    pub const FENCE: Bits = Bits::of_dword(9, 9);
    /// Strong order: also wait until response data is written.
    pub const STRONG_ORDER: Bits = Bits::of_dword(10, 10);
    /// Solicited event.
    pub const SOLICITED: Bits = Bits::of_dword(11, 11);
    /// The payload is in the WQE.
    pub const INLINE: Bits = Bits::of_dword(12, 12);
    /// Direct WQE only: service level bit 2.
    pub const DB_SL_H: Bits = Bits::of_dword(14, 13);
    /// Direct WQE only: producer index after this request.
    pub const WQE_IDX: Bits = Bits::of_dword(30, 15);
    /// Direct WQE marker.
    pub const DIRECT: Bits = Bits::of_dword(31, 31);
}

/// Fields of dword 3.
pub mod count {
    use super::Bits;
    /// 0 for RC.
    pub const XRC_SRQN: Bits = Bits::of_dword(119, 96);
    /// Number of non-empty data segments.
    pub const SGE_NUM: Bits = Bits::of_dword(127, 120);
}

/// Fields of dword 4.
pub mod extended {
    use super::Bits;
    /// First slot in the extended area; 0 when none.
    pub const MSG_START_SGE_IDX: Bits = Bits::of_dword(151, 128);
    /// Data type of a reducing write (values not published).
    pub const REDUCE_TYPE: Bits = Bits::of_dword(155, 152);
    /// Operation of a reducing write (values not published).
    pub const REDUCE_OP: Bits = Bits::of_dword(158, 156);
    /// 0: inline payload in the WQE; 1: in the extended area.
    pub const INLINE_TYPE: Bits = Bits::of_dword(159, 159);
}

/// One piece of local memory (`hns_roce_v2_wqe_data_seg`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DataSegment {
    /// Bytes.
    pub len: Le32,
    /// Local key.
    pub lkey: Le32,
    /// Address.
    pub addr: Le64,
}

impl DataSegment {
    /// `len` bytes at `addr`, registered under `lkey`.
    pub const fn new(addr: u64, len: u32, lkey: u32) -> Self {
        DataSegment {
            len: Le32::new(len),
            lkey: Le32::new(lkey),
            addr: Le64::new(addr),
        }
    }
}

/// Operands of an atomic, in place of the second data segment (`hns_roce_wqe_atomic_seg`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct AtomicSegment {
    /// What to add, or what to store if the comparison holds.
    pub add_or_swap: Le64,
    /// What to compare with; 0 for fetch-add.
    pub compare: Le64,
}

/// A send slot.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SendWqe {
    /// Dword 0, fields of [`control`].
    pub control: Le32,
    /// Total bytes of the message.
    pub msg_len: Le32,
    /// Immediate data or a key, by opcode; else 0.
    pub immediate: Le32,
    /// Dword 3, fields of [`count`].
    pub count: Le32,
    /// Dword 4, fields of [`extended`].
    pub extended: Le32,
    /// Remote key.
    pub rkey: Le32,
    /// Remote virtual address.
    pub va: Le64,
    /// Data segments; the bytes of both are the inline payload, and the second is the [`AtomicSegment`] of an atomic.
    pub segments: [DataSegment; SEGMENTS],
}

/// The rest of a slot's meaning that is not the operation: flags of dword 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// Make a completion entry.
    pub signaled: bool,
    /// Wait for earlier READs and atomics.
    pub fence: bool,
    /// Wait until their response data is written.
    pub strong_order: bool,
    /// Solicited event.
    pub solicited: bool,
}

impl SendWqe {
    fn one_sided(code: u32, rkey: u32, va: u64, len: u32) -> SendWqe {
        SendWqe {
            control: Le32::default().with(control::OPCODE, code),
            msg_len: Le32::new(len),
            rkey: Le32::new(rkey),
            va: Le64::new(va),
            ..SendWqe::default()
        }
    }

    fn with_segments(mut self, segments: &[DataSegment]) -> SendWqe {
        let filled = segments.iter().filter(|segment| segment.len.get() != 0);
        let mut number = 0;
        let mut total = 0_u32;
        for (slot, segment) in self.segments.iter_mut().zip(filled) {
            *slot = *segment;
            number += 1;
            total = total.wrapping_add(segment.len.get());
        }
        self.msg_len = Le32::new(total);
        self.count = self.count.with(count::SGE_NUM, number);
        self
    }

    /// A WRITE of up to two local segments (empty ones are skipped) to `va`.
    pub fn write(rkey: u32, va: u64, segments: &[DataSegment]) -> SendWqe {
        SendWqe::one_sided(opcode::WRITE, rkey, va, 0).with_segments(segments)
    }

    /// A WRITE whose payload is in the slot; `None` when it is longer than [`MAX_INLINE`].
    pub fn write_inline(rkey: u32, va: u64, payload: &[u8]) -> Option<SendWqe> {
        let mut wqe = SendWqe::one_sided(opcode::WRITE, rkey, va, payload.len() as u32);
        wqe.control = wqe.control.with(control::INLINE, 1);
        wqe.inline_bytes_mut()
            .get_mut(..payload.len())?
            .copy_from_slice(payload);
        Some(wqe)
    }

    /// A READ from `va` into up to two local segments.
    pub fn read(rkey: u32, va: u64, segments: &[DataSegment]) -> SendWqe {
        SendWqe::one_sided(opcode::READ, rkey, va, 0).with_segments(segments)
    }

    /// Adds `add` to the 64-bit word at `va`; its old value goes to the 8 bytes at `result`.
    pub fn fetch_add(rkey: u32, va: u64, result: u64, lkey: u32, add: u64) -> SendWqe {
        let operands = AtomicSegment {
            add_or_swap: Le64::new(add),
            compare: Le64::default(),
        };
        SendWqe::atomic(opcode::FETCH_ADD, rkey, va, result, lkey, operands)
    }

    /// Stores `swap` to the 64-bit word at `va` if it holds `compare`; its old value goes to the 8 bytes at `result`.
    pub fn compare_swap(
        rkey: u32,
        va: u64,
        result: u64,
        lkey: u32,
        compare: u64,
        swap: u64,
    ) -> SendWqe {
        let operands = AtomicSegment {
            add_or_swap: Le64::new(swap),
            compare: Le64::new(compare),
        };
        SendWqe::atomic(opcode::COMPARE_SWAP, rkey, va, result, lkey, operands)
    }

    fn atomic(
        code: u32,
        rkey: u32,
        va: u64,
        result: u64,
        lkey: u32,
        operands: AtomicSegment,
    ) -> SendWqe {
        let target = DataSegment::new(result, ATOMIC_SIZE, lkey);
        let mut wqe = SendWqe::one_sided(code, rkey, va, ATOMIC_SIZE).with_segments(&[target]);
        wqe.segments[1] = bytemuck::cast(operands);
        wqe
    }

    /// A SEND of up to two local segments.
    pub fn send(segments: &[DataSegment]) -> SendWqe {
        SendWqe::one_sided(opcode::SEND, 0, 0, 0).with_segments(segments)
    }

    /// The same request as a WRITE with immediate data (a host integer).
    pub fn with_immediate(mut self, immediate: u32) -> SendWqe {
        self.control = self.control.with(control::OPCODE, opcode::WRITE_IMM);
        self.immediate = Le32::new(immediate);
        self
    }

    /// The slot with its flags set.
    pub fn flagged(mut self, flags: Flags) -> SendWqe {
        self.control = self
            .control
            .with(control::SIGNALED, flags.signaled.into())
            .with(control::FENCE, flags.fence.into())
            .with(control::STRONG_ORDER, flags.strong_order.into())
            .with(control::SOLICITED, flags.solicited.into());
        self
    }

    /// The slot as request number `n` of a ring of `depth` slots: with its owner bit.
    pub fn owned(mut self, n: u64, depth: u32) -> SendWqe {
        self.control = self
            .control
            .with(control::OWNER, ring::send_owner(n, depth).into());
        self
    }

    /// The slot as a direct WQE (hip09): service level and the producer index after this request in dword 0.
    pub fn direct(mut self, producer_index: u64, service_level: u32) -> SendWqe {
        self.control = self
            .control
            .with(control::DIRECT, 1)
            .with(control::DB_SL_L, service_level)
            .with(control::DB_SL_H, service_level >> 2)
            .with(control::WQE_IDX, producer_index as u32);
        self
    }

    /// What to do: a value of [`opcode`].
    pub fn opcode(&self) -> u32 {
        self.control.field(control::OPCODE)
    }

    /// The owner bit.
    pub fn owner(&self) -> bool {
        self.control.is_set(control::OWNER)
    }

    /// The flags of dword 0.
    pub fn flags(&self) -> Flags {
        Flags {
            signaled: self.control.is_set(control::SIGNALED),
            fence: self.control.is_set(control::FENCE),
            strong_order: self.control.is_set(control::STRONG_ORDER),
            solicited: self.control.is_set(control::SOLICITED),
        }
    }

    /// Whether the payload is in the slot (or, for inline type 1, in the extended area).
    pub fn is_inline(&self) -> bool {
        self.control.is_set(control::INLINE)
    }

    /// Number of non-empty data segments.
    pub fn sge_num(&self) -> usize {
        self.count.field(count::SGE_NUM) as usize
    }

    /// The operands of an atomic.
    pub fn atomic_segment(&self) -> AtomicSegment {
        bytemuck::cast(self.segments[1])
    }

    /// The bytes where an inline payload lies.
    pub fn inline_bytes(&self) -> &[u8; MAX_INLINE] {
        bytemuck::cast_ref(&self.segments)
    }

    fn inline_bytes_mut(&mut self) -> &mut [u8; MAX_INLINE] {
        bytemuck::cast_mut(&mut self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn words_lie_where_the_format_has_them() {
        assert_eq!(size_of::<SendWqe>(), WQE_SIZE);
        assert_eq!(offset_of!(SendWqe, control), 0);
        assert_eq!(offset_of!(SendWqe, msg_len), 4);
        assert_eq!(offset_of!(SendWqe, immediate), 8);
        assert_eq!(offset_of!(SendWqe, count), 12);
        assert_eq!(offset_of!(SendWqe, extended), 16);
        assert_eq!(offset_of!(SendWqe, rkey), 20);
        assert_eq!(offset_of!(SendWqe, va), 24);
        assert_eq!(offset_of!(SendWqe, segments), 32);
        assert_eq!(size_of::<DataSegment>(), 16);
        assert_eq!(offset_of!(DataSegment, lkey), 4);
        assert_eq!(offset_of!(DataSegment, addr), 8);
        assert_eq!(size_of::<AtomicSegment>(), 16);
        assert_eq!(offset_of!(AtomicSegment, compare), 8);
    }

    #[test]
    fn fields_of_dword_0_cover_it_without_overlap() {
        use control::*;
        let fields = [
            OPCODE,
            DB_SL_L,
            OWNER,
            SIGNALED,
            FENCE,
            STRONG_ORDER,
            SOLICITED,
            INLINE,
            DB_SL_H,
            WQE_IDX,
            DIRECT,
        ];
        let mut seen = 0;
        for field in fields {
            let mask = field.set(0, u64::MAX);
            assert_eq!(seen & mask, 0, "{field:?} overlaps an earlier field");
            seen |= mask;
        }
        assert_eq!(seen, u64::from(u32::MAX));
    }

    #[test]
    fn an_inline_payload_of_33_bytes_is_refused() {
        assert!(SendWqe::write_inline(1, 2, &[0; MAX_INLINE + 1]).is_none());
        assert!(SendWqe::write_inline(1, 2, &[0; MAX_INLINE]).is_some());
    }

    #[test]
    fn empty_segments_are_skipped() {
        let wqe = SendWqe::write(
            1,
            2,
            &[DataSegment::new(8, 0, 1), DataSegment::new(16, 4, 2)],
        );
        assert_eq!(
            (wqe.sge_num(), wqe.msg_len.get(), wqe.segments[0].addr.get()),
            (1, 4, 16)
        );
        assert_eq!(SendWqe::write(1, 2, &[]).sge_num(), 0);
    }
}
