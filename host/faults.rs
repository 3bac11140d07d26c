//! What went wrong on the device, in words: the error records of device/abi.h, each code with its cause and its fix.
//!
//! What it is not: it reads no device memory (transport/tables.rs does). Called by world.rs after a kernel has ended.

use npushmem_roce::cqe::Status;

use crate::abi::{self, shmem_error};

/// An error that a kernel recorded: the earliest of its cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The PE whose kernel it was.
    pub pe: u32,
    /// The core (block) that recorded it.
    pub core: u32,
    /// The PE that the operation was toward, if one was.
    pub target: Option<u32>,
    /// The operation.
    pub operation: Operation,
    /// The code.
    pub code: Code,
    /// Queue pair, for errors of the NIC.
    pub qpn: u32,
    /// Status of the completion | sub-status << 8, for errors of the NIC.
    pub syndrome: u32,
    /// System counter when it was recorded.
    pub tick: u64,
    /// What the code says about them; see device/abi.h.
    pub detail: [u64; 2],
    /// How the target PE died, if the job's store knows.
    pub died: Option<String>,
}

/// Declares an enum for numbered names of device/abi.h, with a fallback for numbers that this version does not know.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:path),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A number that this version does not know.
            Unknown(u32),
        }

        impl $name {
            /// All that have a name.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// From the number in device/abi.h.
            pub fn from_number(number: u32) -> Self {
                $(if number == $number { return Self::$variant; })+
                Self::Unknown(number)
            }

            /// The number in device/abi.h.
            pub fn number(self) -> u32 {
                match self {
                    $(Self::$variant => $number,)+
                    Self::Unknown(number) => number,
                }
            }
        }
    };
}

numbered! {
    /// Error codes (enum shmem_code).
    Code {
        /// The context is not of this header's version.
        Abi = abi::SHMEM_E_ABI,
        /// A core beyond the comm cores.
        Core = abi::SHMEM_E_CORE,
        /// PE out of range.
        Pe = abi::SHMEM_E_PE,
        /// Outside the symmetric heap.
        Bounds = abi::SHMEM_E_BOUNDS,
        /// A source that no region covers.
        Source = abi::SHMEM_E_SOURCE,
        /// Alignment.
        Align = abi::SHMEM_E_ALIGN,
        /// No engine reaches the PE.
        Unreachable = abi::SHMEM_E_UNREACHABLE,
        /// The NIC failed a request.
        Completion = abi::SHMEM_E_COMPLETION,
        /// A wait ended by its time limit.
        Timeout = abi::SHMEM_E_TIMEOUT,
        /// The host wrote the abort line.
        Abort = abi::SHMEM_E_ABORT,
        /// The NIC refuses atomics.
        Atomics = abi::SHMEM_E_ATOMICS,
        /// A queue pair in error.
        Broken = abi::SHMEM_E_BROKEN,
        /// Two kernels on one context.
        Busy = abi::SHMEM_E_BUSY,
        /// Wrong arguments.
        Usage = abi::SHMEM_E_USAGE,
        /// The UB range does not do.
        Space = abi::SHMEM_E_SPACE,
        /// A team that this PE is not in.
        Team = abi::SHMEM_E_TEAM,
        /// A context that this PE does not have.
        Context = abi::SHMEM_E_CONTEXT,
        /// A window that this PE does not have.
        Window = abi::SHMEM_E_WINDOW,
    }
}

numbered! {
    /// Call sites (enum shmem_op).
    Operation {
        /// None named.
        None = abi::SHMEM_OP_NONE,
        /// shmem_attach.
        Attach = abi::SHMEM_OP_ATTACH,
        /// shmem_put and its family.
        Put = abi::SHMEM_OP_PUT,
        /// shmem_get and its family.
        Get = abi::SHMEM_OP_GET,
        /// shmem_p.
        P = abi::SHMEM_OP_P,
        /// shmem_g.
        G = abi::SHMEM_OP_G,
        /// shmem_put_signal.
        PutSignal = abi::SHMEM_OP_PUT_SIGNAL,
        /// shmem_signal_*.
        Signal = abi::SHMEM_OP_SIGNAL,
        /// shmem_wait_until, shmem_signal_wait_until.
        Wait = abi::SHMEM_OP_WAIT,
        /// shmem_atomic_*.
        Atomic = abi::SHMEM_OP_ATOMIC,
        /// shmem_fence.
        Fence = abi::SHMEM_OP_FENCE,
        /// shmem_quiet, shmem_pe_quiet, shmem_wait.
        Quiet = abi::SHMEM_OP_QUIET,
        /// shmem_barrier_all, shmem_barrier.
        Barrier = abi::SHMEM_OP_BARRIER,
        /// shmem_sync_all, shmem_team_sync.
        Sync = abi::SHMEM_OP_SYNC,
        /// shmem_sync_pe.
        SyncPe = abi::SHMEM_OP_SYNC_PE,
        /// The end of the attach guard.
        Detach = abi::SHMEM_OP_DETACH,
        /// shmem_broadcast.
        Broadcast = abi::SHMEM_OP_BROADCAST,
        /// shmem_collect, shmem_fcollect.
        Collect = abi::SHMEM_OP_COLLECT,
        /// shmem_alltoall, shmem_alltoalls.
        Alltoall = abi::SHMEM_OP_ALLTOALL,
        /// shmem_*_reduce, shmem_*_reduce_scatter.
        Reduce = abi::SHMEM_OP_REDUCE,
        /// shmem_sum_inscan, shmem_sum_exscan.
        Scan = abi::SHMEM_OP_SCAN,
        /// A call's context.
        Context = abi::SHMEM_OP_CONTEXT,
    }
}

impl Operation {
    /// The name for messages.
    pub fn word(self) -> &'static str {
        match self {
            Operation::None => "a shmem call",
            Operation::Attach => "shmem_attach",
            Operation::Put => "put",
            Operation::Get => "get",
            Operation::P => "p",
            Operation::G => "g",
            Operation::PutSignal => "put_signal",
            Operation::Signal => "signal",
            Operation::Wait => "wait_until",
            Operation::Atomic => "atomic",
            Operation::Fence => "fence",
            Operation::Quiet => "quiet",
            Operation::Barrier => "barrier_all or a team's barrier",
            Operation::Sync => "sync_all or team_sync",
            Operation::SyncPe => "sync_pe",
            Operation::Detach => "the end of the kernel (detach)",
            Operation::Broadcast => "broadcast",
            Operation::Collect => "collect",
            Operation::Alltoall => "alltoall",
            Operation::Reduce => "reduce",
            Operation::Scan => "scan",
            Operation::Context => "a call by a context",
            Operation::Unknown(_) => "an unknown operation",
        }
    }
}

/// What a wait waited for (device/abi.h, shmem_awaited).
fn waited_for([what, which]: [u64; 2]) -> String {
    match u32::try_from(what).unwrap_or(0) {
        abi::SHMEM_WAIT_COMPLETION => format!("the completion of request {which}"),
        abi::SHMEM_WAIT_VALUE => format!("the word at {which:#x}"),
        abi::SHMEM_WAIT_CORE => format!("core {which} of this PE"),
        abi::SHMEM_WAIT_PE => format!("the other PE's arrival (epoch {which})"),
        abi::SHMEM_WAIT_ATOMIC => format!("an atomic on {which:#x} that others keep changing"),
        _ => format!("({what}, {which})"),
    }
}

impl DeviceError {
    /// The earliest record, by system counter. `pe`: whose records they are.
    pub fn earliest(pe: u32, records: &[shmem_error]) -> Option<DeviceError> {
        records
            .iter()
            .filter(|record| record.code != abi::SHMEM_OK)
            .min_by_key(|record| record.tick)
            .map(|record| DeviceError::from_record(pe, record))
    }

    fn from_record(pe: u32, record: &shmem_error) -> DeviceError {
        DeviceError {
            pe,
            core: record.core,
            target: u32::try_from(record.pe).ok(),
            operation: Operation::from_number(record.op),
            code: Code::from_number(record.code),
            qpn: record.qpn,
            syndrome: record.syndrome,
            tick: record.tick,
            detail: [record.detail0, record.detail1],
            died: None,
        }
    }

    /// What happened, with the inputs.
    pub fn cause(&self) -> String {
        let [a, b] = self.detail;
        match self.code {
            Code::Abi => "the context is not of the layout that the kernel was compiled for".into(),
            Code::Core if self.operation == Operation::Context => {
                format!("core {a} used a context that has queue pairs for {b} comm cores")
            }
            Code::Core => format!("core {a} called shmem_attach, but queue pairs exist for {b} comm cores"),
            Code::Pe => format!("PE {} is outside the job", self.target.map_or(a as i64, i64::from)),
            Code::Bounds if (1..=u64::from(abi::SHMEM_REGION_MAX)).contains(&(a >> 56)) => {
                format!("{b} bytes at offset {:#x} leave window {}", a & ((1 << 56) - 1), (a >> 56) - 1)
            }
            Code::Bounds => format!("{b} bytes at heap offset {a:#x} leave the symmetric heap"),
            Code::Source => {
                let (what, does) = match self.operation {
                    Operation::Get => ("destination", "write"),
                    _ => ("source", "read"),
                };
                format!("the local {what} {a:#x} ({b} bytes) is neither in the symmetric heap nor in a registered buffer nor in UB, so the NIC may not {does} it")
            }
            Code::Align => format!("address {a:#x} is not aligned to {b} bytes"),
            Code::Unreachable => "no engine that the kernel may use reaches the PE".into(),
            Code::Completion => {
                let status = Status::from_code(self.syndrome & 0xff);
                format!("the NIC completed a request of queue pair {:#x} with {:#04x}: {}", self.qpn, self.syndrome & 0xff, status.text())
            }
            Code::Timeout => format!("timed out waiting for {}", waited_for(self.detail)),
            Code::Abort => format!("the host ended the wait for {}", waited_for(self.detail)),
            Code::Atomics => "the NIC refuses atomics".into(),
            Code::Broken => format!("queue pair {:#x} is in error since an earlier failure", self.qpn),
            Code::Busy => format!("another kernel owns the context (handle {b}), or one was stopped in the middle"),
            Code::Usage => format!("the arguments contradict the call's contract ({a}, {b})"),
            Code::Space if self.operation == Operation::Attach => {
                format!("the UB range given to shmem_attach (offset {a}, {b} bytes) is too small or misaligned")
            }
            Code::Space => format!("the UB scratch given to the call has {a} bytes a half; it needs at least {b} bytes in all"),
            Code::Window => format!("this PE has no window with the handle {}", a as i64),
            Code::Context => format!("this PE has no context with the handle {}", a as i64),
            Code::Team => format!("this PE is in no team with the handle {}", a as i64),
            Code::Unknown(code) => format!("error code {code}, which this version does not know"),
        }
    }

    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self.code {
            Code::Abi => "compile the kernel against this npushmem's device/ headers",
            Code::Core => "enable_device with as many cores as communicate, or launch fewer blocks",
            Code::Pe => "PE numbers run from 0 to shmem_n_pes() - 1",
            Code::Bounds => "pass addresses of World::alloc on this PE, and check the element count",
            Code::Source => "register the buffer (World::register_buffer), or copy to the symmetric heap or to UB first",
            Code::Align => "atomics, p, g and signals need natural alignment",
            Code::Unreachable => "allow the other engine (NPUSHMEM_ENGINE=auto), or NPUSHMEM_MAPPED=auto",
            Code::Completion => match Status::from_code(self.syndrome & 0xff) {
                Status::RetryExceeded | Status::RemoteAborted => "the PE has probably died; look at its output",
                Status::RemoteInvalidRequest => "look for a misaligned atomic, or a NIC that refuses atomics; then recover() on all PEs",
                Status::LocalLength => "lower NPUSHMEM_MAX_MESSAGE to what the NIC transfers by one request; then recover() on all PEs",
                _ => "look for a buffer that one PE freed or never allocated; then recover() on all PEs",
            },
            Code::Timeout => "is the other side still running, and does it do its part? Else raise NPUSHMEM_TIMEOUT; then recover() on all PEs",
            Code::Abort => "see the reason that the host gives; then recover() on all PEs",
            Code::Atomics => "everything but atomics works on this NIC; on 950 NPUSHMEM_ATOMIC_DOMAIN=core may help",
            Code::Broken => "call recover() on all PEs",
            Code::Busy => "synchronize() before the next launch; recover() on all PEs after a kernel was stopped",
            Code::Usage => "see the call's comment in device/shmem.h",
            Code::Space => "give at least the default UB range, or none; 32-byte aligned",
            Code::Window => "pass Window::id() of a window that is open",
            Code::Context => "pass Context::id() of a context of this PE that still lives",
            Code::Team => "pass Team::id() of a team of this PE that still lives",
            Code::Unknown(_) => "use kernels and library of one version",
        }
    }

    /// Whether queue pairs may be broken afterwards.
    pub fn breaks_queues(&self) -> bool {
        matches!(
            self.code,
            Code::Completion | Code::Timeout | Code::Abort | Code::Broken | Code::Busy
        )
    }
}

impl std::fmt::Display for DeviceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PE {}: {}", self.pe, self.operation.word())?;
        if let Some(target) = self.target {
            write!(f, " toward PE {target}")?;
        }
        write!(f, " failed on core {}: {}", self.core, self.cause())?;
        match (&self.died, self.target) {
            (Some(reason), Some(target)) => write!(f, "; PE {target} died: {reason}"),
            _ => write!(f, "; {}", self.fix()),
        }
    }
}

impl std::error::Error for DeviceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(code: u32, tick: u64) -> shmem_error {
        shmem_error {
            code,
            pe: 2,
            op: abi::SHMEM_OP_PUT,
            core: 1,
            tick,
            detail0: 0x40,
            detail1: 8,
            ..Default::default()
        }
    }

    #[test]
    fn the_earliest_record_wins() {
        let records = [
            record(0, 1),
            record(abi::SHMEM_E_TIMEOUT, 9),
            record(abi::SHMEM_E_BOUNDS, 5),
            record(0, 0),
        ];
        let error = DeviceError::earliest(3, &records).expect("an error");
        assert_eq!((error.code, error.tick, error.pe), (Code::Bounds, 5, 3));
        assert_eq!(DeviceError::earliest(3, &[record(0, 1)]), None);
    }

    #[test]
    fn every_code_and_operation_has_a_text_a_cause_and_a_fix() {
        for (i, code) in Code::ALL.iter().enumerate() {
            assert_eq!(
                code.number(),
                i as u32 + 1,
                "codes are numbered without gaps"
            );
            for operation in Operation::ALL {
                let mut record = record(code.number(), 1);
                record.op = operation.number();
                let error = DeviceError::earliest(0, &[record]).expect("an error");
                let text = error.to_string();
                assert!(
                    text.starts_with("PE 0: ")
                        && text.contains("toward PE 2")
                        && text.contains("core 1"),
                    "{text}"
                );
                assert!(
                    !error.cause().is_empty() && error.fix().len() > 10,
                    "{code:?}"
                );
                assert!(!text.contains("unknown"), "{text}");
            }
        }
        assert_eq!(Operation::ALL.len() as u32, abi::SHMEM_OP_CONTEXT + 1);
    }

    #[test]
    fn an_unknown_code_is_shown_by_number() {
        let text = DeviceError::earliest(0, &[record(77, 1)])
            .expect("an error")
            .to_string();
        assert!(text.contains("77"), "{text}");
    }

    #[test]
    fn a_completion_names_its_status() {
        let mut failed = record(abi::SHMEM_E_COMPLETION, 1);
        failed.syndrome = 0x13 | 0x21 << 8;
        failed.qpn = 0x1a;
        let text = DeviceError::earliest(0, &[failed])
            .expect("an error")
            .to_string();
        assert!(
            text.contains("0x13") && text.contains("remote access error") && text.contains("0x1a"),
            "{text}"
        );
    }

    #[test]
    fn a_transfer_above_the_nics_limit_names_the_setting() {
        let mut failed = record(abi::SHMEM_E_COMPLETION, 1);
        failed.syndrome = 0x01;
        let error = DeviceError::earliest(0, &[failed]).expect("an error");
        assert!(error.fix().contains("NPUSHMEM_MAX_MESSAGE"), "{error}");
    }

    #[test]
    fn a_dead_target_is_named_with_its_reason() {
        let mut error =
            DeviceError::earliest(0, &[record(abi::SHMEM_E_TIMEOUT, 1)]).expect("an error");
        error.died = Some("killed by signal 9".into());
        assert!(
            error.to_string().contains("PE 2 died: killed by signal 9"),
            "{error}"
        );
    }
}
