//! The NIC format of the Ascend 910B/910C's on-die RoCE port (HNS RoCE v2), and a software NIC that speaks it.
//!
//! [`wqe`], [`cqe`] and [`doorbell`] are layouts as data: plain structures of little-endian words with named fields.
//! [`ring`] holds the rules of the send and completion rings (owner bits, laps, ordering points). [`nic`] executes requests:
//! it walks a ring as the hardware does and moves data between the processes of one machine, or, with feature `verbs`, between machines
//! through the host's own RDMA NIC ([`verbs`]).
//!
//! The crate depends on nothing else of the project; the emulated NPU puts its HCCP calls on top of [`nic`].
//! Facts about the format are from rdma-core's `providers/hns` and Linux's `drivers/infiniband/hw/hns`; what no source
//! publishes about the hardware's behaviour is said to be a choice where it is made.

pub mod bits;
pub mod cqe;
pub mod doorbell;
pub mod nic;
pub mod ring;
pub mod verbs;
pub mod wqe;
