//! Whether the NIC executes atomics: one fetch-add by a kernel on its own PE, through a queue pair that serves for nothing else.
//!
//! What it is not: no error of the probe is an error of the job. Whether the die's NIC runs atomics is not published, so it is tried.

use std::ffi::CString;

use crate::abi;
use crate::faults::DeviceError;
use crate::object::Target;
use crate::runtime::owners::{Binary, Stream};
use crate::runtime::{AclError, Kind, LaunchMode};

use super::tables::{Lines, Shared};
use super::Site;

/// Tries to increment the word at `address`; the error says why that did not work.
pub(super) fn fetch_add(
    site: &Site<'_>,
    shared: &Shared,
    lines: &Lines,
    address: u64,
) -> Result<(), String> {
    let target = Target {
        sim: site.device.api().kind() == Kind::Sim,
        npu_arch: site.series.npu_arch(),
    };
    let Some(object) = object(target) else {
        return Err(format!("there is no probe kernel for {target}; set NPUSHMEM_ATOMIC_PROBE=off to trust the registration"));
    };
    match run(site, shared, lines, address, object) {
        Ok(1) => Ok(()),
        Ok(_) => {
            let record = lines
                .read_errors()
                .ok()
                .and_then(|records| DeviceError::earliest(site.me(), &records));
            Err(record.map_or_else(
                || "a fetch-add left the word as it was".into(),
                |record| format!("it was tried, and {}", record.cause()),
            ))
        }
        Err(error) => Err(format!("the kernel that tries it did not run: {error}")),
    }
}

fn object(target: Target) -> Option<&'static [u8]> {
    crate::kernels::PROBE.for_target(target)
}

/// Runs the kernel; gives the word afterwards.
fn run(
    site: &Site<'_>,
    shared: &Shared,
    lines: &Lines,
    address: u64,
    object: &[u8],
) -> Result<u64, AclError> {
    let device = site.device;
    let api = device.api();
    api.memset(address, 0, size_of::<u64>() as u64)?;
    let binary = Binary::load(device, object)?;
    let function = binary.function(&CString::from(c"shmem_probe"))?;
    let stream = Stream::new(device)?;
    let mode = LaunchMode {
        together: false,
        limit_seconds: site.config.kernel_limit(),
    };
    let mut arguments = Vec::new();
    arguments.extend_from_slice(&lines.context().to_ne_bytes());
    arguments.extend_from_slice(&address.to_ne_bytes());
    binary.launch(function, 1, &stream, &mut arguments, mode)?;
    // The kernel's own wait ends after NPUSHMEM_TIMEOUT.
    let limit = site.config.kernel_wait().as_millis().min(i32::MAX as u128) as i32;
    if !stream.wait(limit)? {
        shared.write_abort(abi::SHMEM_E_TIMEOUT, -1)?;
        if !stream.wait(limit)? {
            tracing::warn!("the probe's kernel does not end; its stream is given up");
            stream.mark_lost();
            std::mem::forget(binary);
            return Ok(0);
        }
    }
    let mut word = [0u8; 8];
    api.read(&mut word, address)?;
    Ok(u64::from_ne_bytes(word))
}
