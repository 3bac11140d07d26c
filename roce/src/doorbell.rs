//! Doorbells: one 64-bit register for every queue (rdma-core `hns_roce_db`, register `ROCEE_VF_DB_CFG0`).
//!
//! Encoders for the writers, one decoder for the NIC. A doorbell is always one 8-byte store.

use crate::bits::Bits;

/// Offset of the register in a doorbell page, bytes (rdma-core `ROCEE_VF_DB_CFG0_OFFSET`).
pub const REGISTER_OFFSET: usize = 0x230;

/// Fields of the doorbell.
pub mod field {
    use super::Bits;
    /// Queue pair or completion queue number.
    pub const TAG: Bits = Bits::new(23, 0);
    /// A value of [`super::command`].
    pub const COMMAND: Bits = Bits::new(27, 24);
    /// Direct WQE marker; 0 in a doorbell.
    pub const FLAG: Bits = Bits::new(31, 31);
    /// Send queue: producer index, a 16-bit counter (not modulo depth).
    pub const PRODUCER: Bits = Bits::new(47, 32);
    /// Send queue: service level.
    pub const SERVICE_LEVEL: Bits = Bits::new(50, 48);
    /// Completion queue: consumer index, a 24-bit counter.
    pub const CONSUMER: Bits = Bits::new(55, 32);
    /// Arm: 0 next completion, 1 next solicited one.
    pub const SOLICITED: Bits = Bits::new(56, 56);
    /// Consumer index: 1. Arm: a 2-bit sequence number.
    pub const SEQUENCE: Bits = Bits::new(58, 57);
}

/// Commands.
pub mod command {
    /// Send queue.
    pub const SEND: u32 = 0;
    /// Receive queue.
    pub const RECEIVE: u32 = 1;
    /// Shared receive queue.
    pub const SHARED_RECEIVE: u32 = 2;
    /// Completion queue: consumer index.
    pub const CONSUMER: u32 = 3;
    /// Completion queue: arm.
    pub const ARM: u32 = 4;
}

/// What a doorbell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// Requests up to `producer` are ready.
    Send {
        /// Queue pair.
        qpn: u32,
        /// 16-bit counter: requests published.
        producer: u32,
        /// Service level.
        service_level: u32,
    },
    /// Completions up to `consumer` are consumed.
    Consumer {
        /// Completion queue.
        cqn: u32,
        /// 24-bit counter: completions consumed.
        consumer: u32,
    },
    /// Asks for an event.
    Arm {
        /// Completion queue.
        cqn: u32,
        /// 24-bit counter: completions consumed.
        consumer: u32,
        /// Only for a solicited completion.
        solicited: bool,
        /// Sequence number.
        sequence: u32,
    },
    /// A command for a queue that one-sided requests do not have.
    Other {
        /// Its command field.
        command: u32,
    },
}

fn tagged(command: u32, tag: u32) -> u64 {
    field::COMMAND.set(field::TAG.set(0, tag.into()), command.into())
}

impl Doorbell {
    /// The register value. An [`Doorbell::Other`] has only its command.
    pub fn encode(self) -> u64 {
        match self {
            Doorbell::Send {
                qpn,
                producer,
                service_level,
            } => {
                let value = field::PRODUCER.set(tagged(command::SEND, qpn), producer.into());
                field::SERVICE_LEVEL.set(value, service_level.into())
            }
            Doorbell::Consumer { cqn, consumer } => {
                let value = field::CONSUMER.set(tagged(command::CONSUMER, cqn), consumer.into());
                field::SEQUENCE.set(value, 1)
            }
            Doorbell::Arm {
                cqn,
                consumer,
                solicited,
                sequence,
            } => {
                let value = field::CONSUMER.set(tagged(command::ARM, cqn), consumer.into());
                field::SEQUENCE.set(
                    field::SOLICITED.set(value, solicited.into()),
                    sequence.into(),
                )
            }
            Doorbell::Other { command } => tagged(command, 0),
        }
    }

    /// What a register value says. For a consumer index neither the sequence number nor bit 56 matters: CANN's device code sets
    /// bit 56 where rdma-core sets bit 57, and both work.
    pub fn decode(value: u64) -> Doorbell {
        let get = |bits: Bits| bits.get(value) as u32;
        match get(field::COMMAND) {
            command::SEND => Doorbell::Send {
                qpn: get(field::TAG),
                producer: get(field::PRODUCER),
                service_level: get(field::SERVICE_LEVEL),
            },
            command::CONSUMER => Doorbell::Consumer {
                cqn: get(field::TAG),
                consumer: get(field::CONSUMER),
            },
            command::ARM => Doorbell::Arm {
                cqn: get(field::TAG),
                consumer: get(field::CONSUMER),
                solicited: get(field::SOLICITED) != 0,
                sequence: get(field::SEQUENCE),
            },
            command => Doorbell::Other { command },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_wider_than_its_field_is_cut() {
        let value = Doorbell::Send {
            qpn: 1,
            producer: 0x12345,
            service_level: 0,
        }
        .encode();
        assert_eq!(
            Doorbell::decode(value),
            Doorbell::Send {
                qpn: 1,
                producer: 0x2345,
                service_level: 0
            }
        );
    }

    #[test]
    fn a_receive_doorbell_is_told_apart() {
        assert_eq!(
            Doorbell::decode(1 << 24),
            Doorbell::Other {
                command: command::RECEIVE
            }
        );
    }
}
