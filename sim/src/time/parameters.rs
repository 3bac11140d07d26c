//! The parameters of the time model: one table, each figure with its source. Change a figure here and nowhere else.
//!
//! Times are picoseconds, so that integers do for 100 Gbit/s as for a store. Nothing here was measured by us: nothing of ours has run on an NPU.
//! Where a source gives both directions together, a direction has half. "Assumed" says that no public source was found; such a figure wants
//! measuring first (docs/hardware-assumptions.md).

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// `ns` or `GB/s` (10^9 bytes a second).
    pub unit: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

/// How many picoseconds a nanosecond has.
const NS: f64 = 1e3;
/// Picoseconds a byte at 1 GB/s.
const BYTE: f64 = 1e3;

macro_rules! parameters {
    ($( $field:ident: $name:literal, $value:literal $unit:tt, $source:literal; )*) => {
        /// The table.
        pub const TABLE: &[Parameter] = &[
            $( Parameter { name: $name, value: $value, unit: unit!($unit), source: $source }, )*
        ];

        /// The table's values as the model uses them: picoseconds, and picoseconds a byte.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Parameters {
            $( #[doc = $name] pub $field: f64, )*
        }

        impl Parameters {
            /// Those of the table.
            pub const fn table() -> Parameters {
                Parameters { $( $field: convert!($value $unit), )* }
            }
        }
    };
}

macro_rules! unit {
    (ns) => {
        "ns"
    };
    (gbps) => {
        "GB/s"
    };
}

macro_rules! convert {
    ($value:literal ns) => {
        $value * NS
    };
    ($value:literal gbps) => {
        BYTE / $value
    };
}

parameters! {
    roce_start: "RoCE, start-up: from a doorbell to the message's first byte at the target", 5000.0 ns,
        "the project's requirement for this model; includes the NIC's reading of the work request and the network";
    roce_byte: "RoCE, link of a NIC, each way", 12.5 gbps,
        "100 Gbit/s, the project's requirement; 910B servers have 200 Gbit/s NICs (vendor's product pages of Atlas 800T A2)";
    roce_gap: "RoCE, least time between two requests of a NIC", 100.0 ns,
        "assumed: 10 million requests a second";
    roce_ack: "RoCE, from the last byte at the target to the completion entry", 1000.0 ns,
        "assumed: the way back through the network, without the start-up";
    roce_atomic: "RoCE, an atomic at the target's NIC", 500.0 ns,
        "assumed: a read and a write of HBM by the NIC";
    hccs_latency: "HCCS, one way", 1000.0 ns,
        "assumed; Zuo et al. 2025 (CloudMatrix384, arXiv 2506.12708) report 1 to 2 us for remote accesses of 512 bytes between NPUs of the next generation";
    hccs_byte: "HCCS, to one peer, each way", 28.0 gbps,
        "910B: 56 GB/s to one peer, 392 GB/s to seven, both directions together (arthurchiao.art, GPU performance data sheets)";
    fabric_byte: "HCCS of 910C and the fabric of 950, to all peers together, each way", 196.0 gbps,
        "Zuo et al. 2025: 392 GB/s each way for a package of two dies";
    sio_latency: "SIO, one way", 500.0 ns,
        "assumed: half of HCCS";
    sio_byte: "SIO, between the two dies of a package, each way", 270.0 gbps,
        "Zuo et al. 2025: 540 GB/s, both directions together";
    mte_start: "MTE, a copy's start", 70.0 ns,
        "assumed, from the AscendC guide's advice to move 16 KiB or more at once: there a copy takes 1.15 times its bytes' time";
    mte_byte: "MTE, one core between HBM and UB", 33.0 gbps,
        "910B: 1.6 TB/s of HBM shared by 48 vector cores; what one core alone can draw is assumed to be no more";
    store: "core, an uncached store", 20.0 ns,
        "assumed: posted, so its issue alone";
    load: "core, an uncached load of the own HBM", 200.0 ns,
        "assumed; every further look of a wait at the same word is free";
    doorbell: "core, a doorbell", 100.0 ns,
        "assumed: a store to the NIC's registers";
    flag: "core, a flag waited for", 10.0 ns,
        "assumed: some cycles of 1.8 GHz";
    meeting: "core, SyncAll", 1000.0 ns,
        "assumed";
}

/// Kinds of links between two devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// The device's own memory.
    Own,
    /// The other die of the package.
    Sio,
    /// 910B's link to one peer.
    Hccs,
    /// What 910C and 950 have between packages.
    Fabric,
}

impl Parameters {
    /// Picoseconds one way over a link.
    pub fn latency(&self, link: Link) -> f64 {
        match link {
            Link::Own => 0.0,
            Link::Sio => self.sio_latency,
            Link::Hccs | Link::Fabric => self.hccs_latency,
        }
    }

    /// Picoseconds that the MTE of one of `cores` cores takes for a byte over a link: its own speed, or its part of the link's.
    pub fn byte(&self, link: Link, cores: u64) -> f64 {
        let shared = match link {
            Link::Own => 0.0,
            Link::Sio => self.sio_byte,
            Link::Hccs => self.hccs_byte,
            Link::Fabric => self.fabric_byte,
        };
        self.mte_byte.max(shared * cores as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_the_tables_in_picoseconds() {
        let p = Parameters::table();
        assert_eq!((p.roce_start, p.roce_byte), (5e6, 80.0));
        assert!(TABLE
            .iter()
            .all(|row| row.value > 0.0 && !row.source.is_empty()));
    }

    #[test]
    fn cores_share_a_link_but_not_their_own_engines() {
        let p = Parameters::table();
        assert_eq!(p.byte(Link::Own, 1), p.mte_byte);
        assert_eq!(p.byte(Link::Own, 48), p.mte_byte);
        assert_eq!(p.byte(Link::Hccs, 1), p.hccs_byte);
        assert_eq!(p.byte(Link::Hccs, 4), 4.0 * p.hccs_byte);
        assert_eq!(p.byte(Link::Fabric, 1), p.mte_byte);
    }
}
