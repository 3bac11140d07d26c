//! Doorbell pages: where a kernel's 8-byte store reaches the emulated NIC.
//!
//! One address range a process is reserved without access, so that a plain store to it faults and cannot pass for a doorbell. Each open NIC
//! has a page of it; its one register lies at [`REGISTER`] (`ROCEE_VF_DB_CFG0`, the same offset as on hardware), and serves send queues and
//! completion queues alike. The launch code tells blocks the range and calls [`ring`] for stores into it; HCCP puts register addresses into
//! the queue information. This file knows nothing of rings: the NIC decodes the value.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use npushmem_roce::doorbell::{Doorbell, REGISTER_OFFSET};
use npushmem_roce::nic::Nic;
use rustix::mm::{mmap_anonymous, MapFlags, ProtFlags};

/// Bytes of a doorbell page (a UAR page of the NIC).
pub const PAGE: u64 = 4096;
/// Offset of the doorbell register in its page, bytes (`ROCEE_VF_DB_CFG0`).
pub const REGISTER: u64 = REGISTER_OFFSET as u64;
/// NICs that a process can have open.
const PAGES: usize = 1024;
/// Bytes of a store to the register.
const STORE: u64 = 8;

/// Which queue a doorbell was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellKind {
    /// A send queue has new requests.
    Send,
    /// A completion queue's consumer index moved, or it wants an event.
    Completion,
}

fn kind(value: u64) -> DoorbellKind {
    match Doorbell::decode(value) {
        Doorbell::Consumer { .. } | Doorbell::Arm { .. } => DoorbellKind::Completion,
        // What the NIC does not know it has refused before.
        Doorbell::Send { .. } | Doorbell::Other { .. } => DoorbellKind::Send,
    }
}

/// The pages of this process and the NICs behind them.
struct Pages {
    begin: u64,
    nics: Vec<RwLock<Option<Arc<Nic>>>>,
}

static PAGES_OF_PROCESS: LazyLock<Result<Pages, String>> = LazyLock::new(|| {
    let bytes = PAGES as u64 * PAGE;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice replaces nothing.
    let begin = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            bytes as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    };
    let begin = begin.map_err(|error| {
        format!("cannot reserve {bytes} bytes of addresses for doorbell pages: {error}")
    })?;
    Ok(Pages {
        begin: begin as u64,
        nics: (0..PAGES).map(|_| RwLock::new(None)).collect(),
    })
});

fn pages() -> Result<&'static Pages, String> {
    PAGES_OF_PROCESS.as_ref().map_err(Clone::clone)
}

/// The reserved range, `[begin, end)`; empty at 0 when the system had no addresses to reserve.
pub fn range() -> (u64, u64) {
    pages().map_or((0, 0), |pages| {
        (pages.begin, pages.begin + PAGES as u64 * PAGE)
    })
}

/// Puts a NIC behind a free page; returns the page's address.
pub(crate) fn attach(nic: &Arc<Nic>) -> Result<u64, String> {
    let pages = pages()?;
    for (index, slot) in pages.nics.iter().enumerate() {
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(nic.clone());
            return Ok(pages.begin + index as u64 * PAGE);
        }
    }
    Err(format!(
        "all {PAGES} doorbell pages of this process are in use"
    ))
}

/// Takes the NIC from behind a page.
pub(crate) fn detach(page: u64) {
    let Ok(pages) = pages() else { return };
    if let Some(slot) = page
        .checked_sub(pages.begin)
        .and_then(|offset| pages.nics.get((offset / PAGE) as usize))
    {
        *slot.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// An 8-byte store to a doorbell page. Any thread may call it; in the NIC's inline mode the requests run before it returns.
///
/// # Errors
/// A sentence: the address is not a register, no NIC is behind the page, or what the NIC has against the value.
pub fn ring(address: u64, value: u64) -> Result<DoorbellKind, String> {
    let pages = pages()?;
    let offset = address
        .checked_sub(pages.begin)
        .filter(|offset| *offset < PAGES as u64 * PAGE);
    let offset =
        offset.ok_or_else(|| format!("{address:#x} is in no doorbell page of this process"))?;
    let (index, place) = (offset / PAGE, offset % PAGE);
    if place != REGISTER {
        return Err(format!(
            "a store of {value:#018x} to offset {place:#x} of a doorbell page; its register takes {STORE} bytes at offset {REGISTER:#x} (db_reg of the queue)"
        ));
    }
    // The slot is held meanwhile: a NIC is taken away between two doorbells, not during one.
    let slot = pages.nics[index as usize]
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    let nic = slot.as_ref().ok_or_else(|| {
        format!("no open NIC is behind the doorbell page of {address:#x}; its process has finalized ACL")
    })?;
    nic.doorbell(value).map_err(|error| error.to_string())?;
    Ok(kind(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use npushmem_roce::nic::NicConfig;

    #[test]
    fn a_store_outside_of_every_page_is_refused() {
        let (begin, end) = range();
        assert!(begin != 0 && end > begin);
        assert!(ring(end + REGISTER, 0).is_err_and(|why| why.contains("in no doorbell page")));
    }

    #[test]
    fn a_store_beside_the_register_is_refused_with_the_right_offset() {
        let (begin, _) = range();
        let why = ring(begin + REGISTER + 8, 0).expect_err("offset 0x238 is no register");
        assert!(
            why.contains("offset 0x238") && why.contains("offset 0x230"),
            "{why}"
        );
    }

    #[test]
    fn a_page_without_a_nic_says_so_and_a_closed_one_too() {
        let nic = Nic::open(NicConfig::default()).expect("a NIC");
        let page = attach(&nic).expect("a page");
        let why = ring(page + REGISTER, 0x00ff_ffff).expect_err("no such queue pair");
        assert!(!why.contains("no open NIC"), "{why}");
        detach(page);
        assert!(ring(page + REGISTER, 0).is_err_and(|why| why.contains("no open NIC")));
    }

    #[test]
    fn the_command_field_tells_the_queue() {
        assert_eq!(kind(0x0005_0001_0012_3456), DoorbellKind::Send);
        assert_eq!(kind(0x0200_0001_0300_abcd), DoorbellKind::Completion);
        assert_eq!(kind(0x0200_0002_0400_abcd), DoorbellKind::Completion);
    }
}
