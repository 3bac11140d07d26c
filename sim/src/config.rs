//! Settings of the emulated NPU from the environment, read once. Nothing here belongs to the NIC.

use std::sync::OnceLock;
use std::time::Duration;

use npushmem_ffi::acl;

use crate::error::{fail, Outcome};
use crate::soc::{self, Soc};

/// Devices of a machine when nothing is said.
const DEFAULT_DEVICES: u32 = 16;
/// More devices than any server has.
const MAX_DEVICES: u32 = 1024;
/// More blocks at once than a process can have threads for.
const MAX_CORES: u32 = 1024;
/// Least memory of a device: a huge page for the heap and one for everything else.
const MIN_HBM: u64 = 4 << 20;
/// Most memory of a device: its address range must fit beside the others.
const MAX_HBM: u64 = 1 << 40;
/// Seconds that a kernel may run when its launch sets no limit.
const DEFAULT_KERNEL_TIMEOUT: f64 = 300.0;

/// How fresh large allocations are poisoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Poison {
    /// Both ends only.
    Ends,
    /// Every byte.
    All,
}

/// The settings.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) soc: &'static Soc,
    pub(crate) devices: u32,
    pub(crate) cores: u32,
    pub(crate) hbm: u64,
    pub(crate) kernel_timeout: Duration,
    pub(crate) poison: Poison,
    /// 0: MTE3 copies complete at once.
    pub(crate) chaos_seed: u64,
    /// Time is the model's (`time/`).
    pub(crate) modelled: bool,
}

/// The process's settings. A value that cannot be read is an error that names the variable.
pub(crate) fn get() -> Outcome<&'static Config> {
    static CONFIG: OnceLock<Result<Config, String>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            Config::parse(|name| {
                std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
            })
        })
        .as_ref()
        .map_err(|text| fail(acl::ACL_ERROR_INVALID_PARAM, text.clone()))
}

impl Config {
    fn parse(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());

        let name = variable("NPUSIM_SOC").unwrap_or_else(|| soc::DEFAULT.to_owned());
        let soc = soc::find(&name).ok_or_else(|| {
            let known: Vec<&str> = soc::TABLE.iter().map(|soc| soc.name).collect();
            format!(
                "NPUSIM_SOC={name}: unknown SoC; one of {}",
                known.join(", ")
            )
        })?;
        let devices = match variable("NPUSIM_DEVICES") {
            Some(text) => number("NPUSIM_DEVICES", &text, 1, u64::from(MAX_DEVICES))? as u32,
            None => DEFAULT_DEVICES,
        };
        let cores = match variable("NPUSIM_CORES") {
            Some(text) => number("NPUSIM_CORES", &text, 1, u64::from(MAX_CORES))? as u32,
            None => soc.aiv_cores,
        };
        let hbm = match variable("NPUSIM_HBM") {
            Some(text) => bytes("NPUSIM_HBM", &text)?,
            None => soc.hbm,
        };
        let timeout = match variable("NPUSIM_KERNEL_TIMEOUT") {
            Some(text) => text
                .parse::<f64>()
                .ok()
                .filter(|seconds| seconds.is_finite() && *seconds > 0.0 && *seconds <= 1e6)
                .ok_or_else(|| {
                    format!(
                        "NPUSIM_KERNEL_TIMEOUT={text}: seconds between 0 and 1000000 are wanted"
                    )
                })?,
            None => DEFAULT_KERNEL_TIMEOUT,
        };
        let poison = match variable("NPUSIM_POISON").as_deref() {
            None | Some("ends") => Poison::Ends,
            Some("all") => Poison::All,
            Some(other) => return Err(format!("NPUSIM_POISON={other}: ends or all is wanted")),
        };
        let chaos_seed = match variable("NPUSIM_CHAOS") {
            Some(text) => number("NPUSIM_CHAOS", &text, 0, u64::MAX)?,
            // The NIC's own parser reports what is wrong with this one.
            None => variable("NPUSIM_NIC")
                .and_then(|mode| {
                    mode.strip_prefix("chaos:")
                        .and_then(|seed| seed.parse().ok())
                })
                .unwrap_or(0),
        };
        let modelled = match variable("NPUSIM_TIME").as_deref() {
            None | Some("wall") => false,
            Some("model") => true,
            Some(other) => return Err(format!("NPUSIM_TIME={other}: wall or model is wanted")),
        };
        let nic = variable("NPUSIM_NIC").unwrap_or_default();
        if modelled && (chaos_seed != 0 || !(nic.is_empty() || nic == "inline")) {
            return Err("NPUSIM_TIME=model: requests must run in the ringing core and copies in order: NPUSIM_NIC=inline, no NPUSIM_CHAOS".to_owned());
        }
        Ok(Self {
            soc,
            devices,
            cores,
            hbm,
            kernel_timeout: Duration::from_secs_f64(timeout),
            poison,
            chaos_seed,
            modelled,
        })
    }
}

fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    text.trim()
        .parse::<u64>()
        .ok()
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| format!("{name}={text}: a whole number from {least} to {most} is wanted"))
}

fn bytes(name: &str, text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let (digits, shift) = match trimmed.char_indices().last() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 10),
        Some((at, 'm' | 'M')) => (&trimmed[..at], 20),
        Some((at, 'g' | 'G')) => (&trimmed[..at], 30),
        Some((at, 't' | 'T')) => (&trimmed[..at], 40),
        _ => (trimmed, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|value| value.checked_mul(1 << shift))
        .filter(|value| (MIN_HBM..=MAX_HBM).contains(value))
        .ok_or_else(|| format!("{name}={text}: bytes from 4M to 1T are wanted, for example 8G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &[(&str, &str)]) -> Result<Config, String> {
        Config::parse(|name| {
            settings
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_settings_it_is_a_910b1_with_sixteen_devices() {
        let config = with(&[]).expect("defaults");
        assert_eq!(
            (config.soc.name, config.devices, config.cores, config.hbm),
            ("Ascend910B1", 16, 48, 64 << 30)
        );
        assert_eq!(config.chaos_seed, 0);
    }

    #[test]
    fn settings_are_read_and_sizes_have_units() {
        let config = with(&[
            ("NPUSIM_SOC", "Ascend950PR_9599"),
            ("NPUSIM_CORES", "4"),
            ("NPUSIM_HBM", "2G"),
            ("NPUSIM_NIC", "chaos:77"),
        ])
        .expect("good");
        assert_eq!(
            (
                config.soc.npu_arch,
                config.cores,
                config.hbm,
                config.chaos_seed
            ),
            (3510, 4, 2 << 30, 77)
        );
        assert_eq!(
            with(&[("NPUSIM_CHAOS", "5"), ("NPUSIM_NIC", "chaos:77")])
                .expect("good")
                .chaos_seed,
            5
        );
    }

    #[test]
    fn modelled_time_goes_with_the_inline_nic_only() {
        let modelled = |more: &[(&str, &str)]| with(&[&[("NPUSIM_TIME", "model")], more].concat());
        assert!(modelled(&[]).is_ok_and(|config| config.modelled));
        assert!(modelled(&[("NPUSIM_NIC", "inline")]).is_ok());
        assert!(with(&[("NPUSIM_TIME", "wall")]).is_ok_and(|config| !config.modelled));
        for wrong in [
            ("NPUSIM_NIC", "thread"),
            ("NPUSIM_NIC", "chaos:3"),
            ("NPUSIM_CHAOS", "3"),
        ] {
            let text = modelled(&[wrong]).expect_err("refused");
            assert!(text.starts_with("NPUSIM_TIME=model"), "{text}");
        }
    }

    #[test]
    fn a_bad_setting_is_refused_with_its_name_and_what_is_wanted() {
        for (name, value) in [
            ("NPUSIM_SOC", "Ascend1"),
            ("NPUSIM_DEVICES", "0"),
            ("NPUSIM_CORES", "many"),
            ("NPUSIM_HBM", "12"),
            ("NPUSIM_HBM", "9999999999T"),
            ("NPUSIM_KERNEL_TIMEOUT", "-1"),
            ("NPUSIM_POISON", "some"),
            ("NPUSIM_CHAOS", "x"),
            ("NPUSIM_TIME", "fast"),
        ] {
            let text = with(&[(name, value)]).expect_err("refused");
            assert!(text.starts_with(&format!("{name}={value}: ")), "{text}");
        }
    }
}
