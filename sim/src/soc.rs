//! The SoCs that can be emulated and their numbers. Not a platform description: only what a program can ask for through ACL or run into.
//!
//! Numbers: the vendor's public platform configuration files (`<SoC>.ini` of the runtime) and the UB sizes of the AscendC documentation.

/// One SoC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Soc {
    /// The name that `aclrtGetSocName` returns.
    pub name: &'static str,
    /// `__NPU_ARCH__` of kernels for it: 2201 (A2, A3) or 3510 (950).
    pub npu_arch: u32,
    /// Cube cores (AIC).
    pub aic_cores: u32,
    /// Vector cores (AIV): so many blocks of a vector kernel run at once.
    pub aiv_cores: u32,
    /// Device memory in bytes.
    pub hbm: u64,
    /// Level-2 cache in bytes.
    pub l2: u64,
    /// Unified buffer of a vector core in bytes.
    pub ub: u64,
    /// Ticks a second of the system counter.
    pub counter_hz: u64,
}

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Unified buffer of A2 and A3 in bytes.
const UB_2201: u64 = 196_608;
/// Usable unified buffer of 950 in bytes.
const UB_3510: u64 = 253_952;

const fn a2(name: &'static str, aic_cores: u32, hbm_gib: u64) -> Soc {
    Soc {
        name,
        npu_arch: 2201,
        aic_cores,
        aiv_cores: 2 * aic_cores,
        hbm: hbm_gib * GIB,
        l2: 192 * MIB,
        ub: UB_2201,
        counter_hz: 50_000_000,
    }
}

const fn a5(name: &'static str, aic_cores: u32, hbm_gib: u64) -> Soc {
    Soc {
        name,
        npu_arch: 3510,
        aic_cores,
        aiv_cores: 2 * aic_cores,
        hbm: hbm_gib * GIB,
        l2: 128 * MIB,
        ub: UB_3510,
        counter_hz: 1_000_000_000,
    }
}

/// Every SoC that `NPUSIM_SOC` may name.
pub const TABLE: &[Soc] = &[
    a2("Ascend910B1", 24, 64),
    a2("Ascend910B2", 24, 64),
    a2("Ascend910B2C", 24, 64),
    a2("Ascend910B3", 20, 64),
    a2("Ascend910B4", 20, 32),
    a2("Ascend910_9391", 24, 64),
    a2("Ascend910_9392", 24, 64),
    a2("Ascend910_9381", 24, 64),
    a2("Ascend910_9382", 24, 64),
    a2("Ascend910_9372", 20, 64),
    a2("Ascend910_9362", 20, 64),
    a5("Ascend950PR_9599", 36, 128),
    a5("Ascend950DT_9591", 36, 144),
    a5("Ascend950PR_9589", 32, 128),
    a5("Ascend950DT_9582", 32, 144),
    a5("Ascend950PR_9579", 28, 128),
    a5("Ascend950DT_9571", 28, 144),
];

/// The SoC that is emulated when nothing is said.
pub const DEFAULT: &str = "Ascend910B1";

/// Finds a SoC by its exact name.
pub fn find(name: &str) -> Option<&'static Soc> {
    TABLE.iter().find(|soc| soc.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_soc_is_in_the_table_and_names_are_unique() {
        assert_eq!(
            find(DEFAULT).map(|soc| (soc.aiv_cores, soc.ub)),
            Some((48, 196_608))
        );
        for (i, a) in TABLE.iter().enumerate() {
            assert!(
                TABLE[i + 1..].iter().all(|b| a.name != b.name),
                "{} twice",
                a.name
            );
        }
    }

    #[test]
    fn a_950_has_the_larger_unified_buffer_and_the_faster_counter() {
        let soc = find("Ascend950PR_9599").expect("in the table");
        assert_eq!(
            (soc.npu_arch, soc.aiv_cores, soc.ub, soc.counter_hz),
            (3510, 72, 253_952, 1_000_000_000)
        );
    }
}
