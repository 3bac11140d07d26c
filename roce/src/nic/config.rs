//! Settings of the software NIC: one structure, and its reading from the environment.

use std::env;

use thiserror::Error;

use crate::verbs::VerbsConfig;

/// Who executes requests, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the ringing thread, before the doorbell returns.
    Inline,
    /// In one thread of the NIC, in the order of doorbells.
    Thread,
    /// In one thread of the NIC, as unkindly as the rules allow: see [`super`] for the list. All decisions follow from the seed.
    Chaos {
        /// Where the decisions start from.
        seed: u64,
    },
}

/// How requests reach a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Wire {
    /// Through shared memory: the processes of one machine.
    #[default]
    Memory,
    /// Through the host's own RDMA NIC: all queue pairs, also those between PEs of one host and of a PE with itself, so that every atomic on
    /// a word is executed by one NIC.
    Verbs(VerbsConfig),
}

/// Who makes the 0x05 completions of the requests behind a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// The host, by [`super::Nic::flush`], as hip08 hardware needs it.
    Driver,
    /// The NIC by itself.
    Auto,
}

/// Settings of one NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicConfig {
    /// How requests reach a peer.
    pub wire: Wire,
    /// Who executes requests, and when.
    pub mode: Mode,
    /// Who flushes what lies behind a failed request.
    pub flush: Flush,
    /// Queue pairs accept atomics as responders. Off: they are answered with "remote invalid request".
    pub atomics: bool,
    /// Memory may be registered with access bit 8 (remote atomic). Off: such a registration is refused.
    pub atomic_access: bool,
    /// Queue pairs may be made for inline payloads. Off: such a queue pair is refused.
    pub inline: bool,
    /// Longest transfer of one request, bytes.
    pub max_message: u64,
    /// Chaos only: a WRITE may complete before its payload has landed; the payload lands later, at the latest when a READ or an
    /// atomic of the same queue pair is executed. Off by default, because a completion otherwise means visibility.
    pub early_ack: bool,
    /// A pause between the read and the write of a NIC atomic, so that mixing with CPU atomics is caught. Always on in chaos mode.
    pub widen_atomics: bool,
}

/// Longest transfer of one HNS work request, bytes (`HNS_ROCE_MAX_MSG_LEN`).
pub const MAX_MESSAGE: u64 = 0x8000_0000;

impl Default for NicConfig {
    fn default() -> Self {
        NicConfig {
            wire: Wire::Memory,
            mode: Mode::Inline,
            flush: Flush::Driver,
            atomics: true,
            atomic_access: true,
            inline: true,
            max_message: MAX_MESSAGE,
            early_ack: false,
            widen_atomics: false,
        }
    }
}

/// A setting that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{variable}={value}: expected {expected}")]
pub struct ConfigError {
    /// The environment variable.
    pub variable: &'static str,
    /// What it holds.
    pub value: String,
    /// What it may hold.
    pub expected: &'static str,
}

const ON_OFF: &str = "on or off";

fn on_off(variable: &'static str, value: &str) -> Result<bool, ConfigError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ConfigError {
            variable,
            value: value.to_owned(),
            expected: ON_OFF,
        }),
    }
}

fn mode(variable: &'static str, value: &str) -> Result<Mode, ConfigError> {
    let refuse = || ConfigError {
        variable,
        value: value.to_owned(),
        expected: "inline, thread, or chaos:SEED with a decimal seed",
    };
    match value {
        "inline" => Ok(Mode::Inline),
        "thread" => Ok(Mode::Thread),
        _ => {
            let seed = value.strip_prefix("chaos:").ok_or_else(refuse)?;
            Ok(Mode::Chaos {
                seed: seed.parse().map_err(|_| refuse())?,
            })
        }
    }
}

fn flush(variable: &'static str, value: &str) -> Result<Flush, ConfigError> {
    match value {
        "driver" => Ok(Flush::Driver),
        "auto" => Ok(Flush::Auto),
        _ => Err(ConfigError {
            variable,
            value: value.to_owned(),
            expected: "driver or auto",
        }),
    }
}

fn gid(variable: &'static str, value: &str) -> Result<Option<u32>, ConfigError> {
    let index: Option<u8> = value.parse().ok();
    match index {
        Some(index) => Ok(Some(index.into())),
        None => Err(ConfigError {
            variable,
            value: value.to_owned(),
            expected: "an index from 0 to 255",
        }),
    }
}

fn max_message(variable: &'static str, value: &str) -> Result<u64, ConfigError> {
    value
        .parse()
        .ok()
        .filter(|bytes| (8..=MAX_MESSAGE).contains(bytes))
        .ok_or_else(|| ConfigError {
            variable,
            value: value.to_owned(),
            expected: "a number of bytes from 8 to 2147483648",
        })
}

impl NicConfig {
    /// Reads `NPUSIM_WIRE` (`memory`, `verbs`) with `NPUSIM_VERBS_DEVICE` and `NPUSIM_VERBS_GID`, `NPUSIM_NIC` (`inline`, `thread`, `chaos:SEED`), `NPUSIM_NIC_FLUSH` (`driver`, `auto`), `NPUSIM_NIC_MAX_MESSAGE` (bytes)
    /// and the switches `NPUSIM_NIC_ATOMICS`, `NPUSIM_NIC_ATOMIC_ACCESS`, `NPUSIM_NIC_INLINE`, `NPUSIM_NIC_EARLY_ACK`,
    /// `NPUSIM_NIC_WIDEN_ATOMICS` (`on`, `off`). What is unset keeps its default.
    ///
    /// # Errors
    /// A variable that holds something else.
    pub fn from_env() -> Result<Self, ConfigError> {
        NicConfig::from_lookup(|variable| {
            env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        fn set<T>(
            target: &mut T,
            lookup: impl Fn(&str) -> Option<String>,
            variable: &'static str,
            parse: impl FnOnce(&'static str, &str) -> Result<T, ConfigError>,
        ) -> Result<(), ConfigError> {
            if let Some(value) = lookup(variable) {
                *target = parse(variable, value.trim())?;
            }
            Ok(())
        }
        let mut config = NicConfig::default();
        let mut device = VerbsConfig {
            device: lookup("NPUSIM_VERBS_DEVICE").filter(|name| !name.is_empty()),
            gid: None,
        };
        set(&mut device.gid, &lookup, "NPUSIM_VERBS_GID", gid)?;
        set(
            &mut config.wire,
            &lookup,
            "NPUSIM_WIRE",
            |variable, value| match value {
                "memory" => Ok(Wire::Memory),
                "verbs" => Ok(Wire::Verbs(device)),
                _ => Err(ConfigError {
                    variable,
                    value: value.to_owned(),
                    expected: "memory or verbs",
                }),
            },
        )?;
        set(&mut config.mode, &lookup, "NPUSIM_NIC", mode)?;
        if let (Wire::Verbs(_), Mode::Chaos { .. }) = (&config.wire, config.mode) {
            return Err(ConfigError {
                variable: "NPUSIM_NIC",
                value: lookup("NPUSIM_NIC").unwrap_or_default(),
                expected:
                    "inline or thread with NPUSIM_WIRE=verbs: chaos belongs to the memory wire",
            });
        }
        set(&mut config.flush, &lookup, "NPUSIM_NIC_FLUSH", flush)?;
        set(&mut config.atomics, &lookup, "NPUSIM_NIC_ATOMICS", on_off)?;
        set(
            &mut config.atomic_access,
            &lookup,
            "NPUSIM_NIC_ATOMIC_ACCESS",
            on_off,
        )?;
        set(&mut config.inline, &lookup, "NPUSIM_NIC_INLINE", on_off)?;
        set(
            &mut config.max_message,
            &lookup,
            "NPUSIM_NIC_MAX_MESSAGE",
            max_message,
        )?;
        set(
            &mut config.early_ack,
            &lookup,
            "NPUSIM_NIC_EARLY_ACK",
            on_off,
        )?;
        set(
            &mut config.widen_atomics,
            &lookup,
            "NPUSIM_NIC_WIDEN_ATOMICS",
            on_off,
        )?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<NicConfig, ConfigError> {
        NicConfig::from_lookup(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        assert_eq!(read(&[]), Ok(NicConfig::default()));
    }

    #[test]
    fn every_variable_is_read() {
        let config = read(&[
            ("NPUSIM_NIC", "chaos:42"),
            ("NPUSIM_NIC_FLUSH", "auto"),
            ("NPUSIM_NIC_ATOMICS", "off"),
            ("NPUSIM_NIC_ATOMIC_ACCESS", "off"),
            ("NPUSIM_NIC_INLINE", "off"),
            ("NPUSIM_NIC_MAX_MESSAGE", "4096"),
            ("NPUSIM_NIC_EARLY_ACK", "on"),
            ("NPUSIM_NIC_WIDEN_ATOMICS", "on"),
        ]);
        let expected = NicConfig {
            wire: Wire::Memory,
            mode: Mode::Chaos { seed: 42 },
            flush: Flush::Auto,
            atomics: false,
            atomic_access: false,
            inline: false,
            max_message: 4096,
            early_ack: true,
            widen_atomics: true,
        };
        assert_eq!(config, Ok(expected));
    }

    #[test]
    fn the_verbs_wire_takes_a_device_and_a_gid_and_no_chaos() {
        let verbs = [
            ("NPUSIM_WIRE", "verbs"),
            ("NPUSIM_VERBS_DEVICE", "rxe0"),
            ("NPUSIM_VERBS_GID", "1"),
        ];
        let device = VerbsConfig {
            device: Some("rxe0".into()),
            gid: Some(1),
        };
        assert_eq!(read(&verbs).unwrap().wire, Wire::Verbs(device));
        assert_eq!(read(&verbs[1..]).unwrap().wire, Wire::Memory);
        for (extra, part) in [
            (("NPUSIM_NIC", "chaos:1"), "inline or thread"),
            (("NPUSIM_VERBS_GID", "256"), "0 to 255"),
            (("NPUSIM_WIRE", "tcp"), "memory or verbs"),
        ] {
            let text = read(&[extra, verbs[0]]).unwrap_err().to_string();
            assert!(text.starts_with(extra.0) && text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_possible() {
        let message = read(&[("NPUSIM_NIC", "chaos")]).unwrap_err().to_string();
        assert_eq!(
            message,
            "NPUSIM_NIC=chaos: expected inline, thread, or chaos:SEED with a decimal seed"
        );
        assert!(read(&[("NPUSIM_NIC_MAX_MESSAGE", "2147483649")]).is_err());
        assert!(read(&[("NPUSIM_NIC_INLINE", "yes")]).is_err());
    }
}
