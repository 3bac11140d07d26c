//! What the parent hands to the PEs and back: two anonymous files (memfd) that the PEs inherit, one with the steps, one for their ticks.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{memfd_create, MemfdFlags};
use serde::{Deserialize, Serialize};

use super::step::{Step, Whose};

/// What every PE does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// Comm cores to enable.
    pub cores: u32,
    /// Bytes of each of the two buffers.
    pub room: u64,
    pub steps: Vec<Step>,
}

impl Orders {
    /// 64-bit words of a PE's results: seconds of a tick, then each step's samples, the slowest core's.
    fn words(&self) -> u64 {
        1 + self.steps.iter().map(|step| step.samples).sum::<u64>()
    }
}

/// The parent's side.
pub struct Jobs {
    orders: Orders,
    file: File,
    results: File,
}

impl Jobs {
    /// Writes the orders.
    pub fn new(orders: Orders) -> io::Result<Self> {
        let anonymous = |name: &str| -> io::Result<File> {
            let descriptor: OwnedFd = memfd_create(name, MemfdFlags::empty())?;
            Ok(File::from(descriptor))
        };
        let file = anonymous("npushmem-bench-orders")?;
        file.write_all_at(&serde_json::to_vec(&orders)?, 0)?;
        Ok(Self {
            orders,
            file,
            results: anonymous("npushmem-bench-results")?,
        })
    }

    /// Arguments of the PEs' processes.
    pub fn worker_args(&self) -> Vec<OsString> {
        vec![
            "bench-pe".into(),
            self.file.as_raw_fd().to_string().into(),
            self.results.as_raw_fd().to_string().into(),
        ]
    }

    /// Seconds of a tick, and the ticks of each step's samples.
    pub fn collect(&self) -> io::Result<(f64, Vec<Vec<u64>>)> {
        let words = self.orders.words();
        let read = |pe: u32, word: u64| -> io::Result<u64> {
            let mut bytes = [0; 8];
            self.results
                .read_exact_at(&mut bytes, (u64::from(pe) * words + word) * 8)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        let tick = f64::from_bits(read(0, 0)?);
        let mut word = 1;
        let mut all = Vec::new();
        for step in &self.orders.steps {
            let pes = match step.whose {
                Whose::First => 1,
                Whose::Slowest => step.pes,
            };
            let mut samples = Vec::new();
            for sample in 0..step.samples {
                let mut most = 0;
                for pe in 0..pes {
                    most = most.max(read(pe, word + sample)?);
                }
                samples.push(most);
            }
            all.push(samples);
            word += step.samples;
        }
        Ok((tick, all))
    }
}

/// The PE's side.
pub struct Inherited {
    results: File,
    pub orders: Orders,
}

impl Inherited {
    /// Opens the inherited files.
    pub fn open(orders: RawFd, results: RawFd) -> io::Result<Self> {
        let open = |descriptor: RawFd| {
            File::options()
                .read(true)
                .write(true)
                .open(format!("/proc/self/fd/{descriptor}"))
        };
        Ok(Self {
            orders: serde_json::from_reader(open(orders)?)?,
            results: open(results)?,
        })
    }

    /// Leaves what a PE measured: seconds of a tick, and the ticks of all samples of all steps.
    pub fn write(&self, pe: u32, tick: f64, ticks: &[u64]) -> io::Result<()> {
        let mut bytes = tick.to_bits().to_ne_bytes().to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(ticks));
        self.results
            .write_all_at(&bytes, u64::from(pe) * self.orders.words() * 8)
    }
}
