//! Values of settings: what text is accepted, and what it becomes.
//!
//! What it is not: it knows no setting by name (mod.rs has the table).

use std::time::Duration;

/// What a setting accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number from `min` to `max`.
    Integer {
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
    },
    /// A whole power of two from `min` to `max`.
    PowerOfTwo {
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
    },
    /// Bytes, with the suffixes K, M, G, T (powers of 1024; `KiB`, `kb` and so on mean the same).
    Size {
        /// Smallest accepted value, bytes.
        min: u64,
        /// Largest accepted value, bytes.
        max: u64,
    },
    /// Bytes as OpenSHMEM 1.6 has them (section "Environment Variables": what follows the suffix is ignored), or a percentage above 0 and up to
    /// 100, such as `12.5%`. Less than `min` becomes `min`.
    HeapSize {
        /// Smallest size, bytes.
        min: u64,
        /// Largest accepted value, bytes.
        max: u64,
    },
    /// Seconds, as a decimal fraction.
    Seconds {
        /// Smallest accepted value, seconds.
        min: f64,
        /// Largest accepted value, seconds.
        max: f64,
    },
    /// One word of a list.
    Choice(&'static [&'static str]),
    /// `on` or `off` (also 1/0, true/false, yes/no).
    Switch,
    /// On with any value but 0, off, false and no.
    Flag,
    /// `host:port`, port 1 to 65535; IPv6 hosts in brackets.
    Address,
    /// Text of at most `max` bytes.
    Text {
        /// Longest accepted value, bytes.
        max: usize,
    },
}

/// A value that [`Kind::parse`] accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not set, and no default.
    Unset,
    /// A number, or bytes.
    Integer(u64),
    /// A part of something, in percent.
    Percent(f64),
    /// A duration.
    Seconds(Duration),
    /// A switch.
    Switch(bool),
    /// A word, an address or text.
    Text(String),
}

/// Conversion from a checked value to a field of [`Config`].
pub(super) trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(n) => Some(*n),
            _ => None,
        }
    }
}
impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value).and_then(|n| n.try_into().ok())
    }
}
impl FromValue for u16 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value).and_then(|n| n.try_into().ok())
    }
}
impl FromValue for HeapSize {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(n) => Some(HeapSize::Bytes(*n)),
            Value::Percent(percent) => Some(HeapSize::Percent(*percent)),
            _ => None,
        }
    }
}
impl FromValue for Duration {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Seconds(d) => Some(*d),
            _ => None,
        }
    }
}
impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Switch(on) => Some(*on),
            _ => None,
        }
    }
}
impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}
impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(None),
            set => T::from_value(set).map(Some),
        }
    }
}

/// How large a symmetric heap is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeapSize {
    /// So many bytes.
    Bytes(u64),
    /// So much of the memory that there is, above 0 and up to 100, shared out evenly over the PEs that use it.
    Percent(f64),
}

impl HeapSize {
    /// Bytes a PE, where `sharers` PEs share `memory` bytes. Whole units of 64 KiB where it is a percentage, so that machines whose memory
    /// differs by a few pages agree.
    pub fn bytes(self, memory: u64, sharers: u32) -> u64 {
        match self {
            HeapSize::Bytes(bytes) => bytes,
            HeapSize::Percent(percent) => {
                let share = memory as f64 * (percent / 100.0) / f64::from(sharers.max(1));
                share as u64 / (64 * KIB) * (64 * KIB)
            }
        }
    }
}

impl HeapSize {
    /// This size, or `bytes` where it is a smaller number of bytes. A percentage stays as it is.
    pub fn at_least(self, bytes: u64) -> HeapSize {
        match self {
            HeapSize::Bytes(size) => HeapSize::Bytes(size.max(bytes)),
            percent => percent,
        }
    }
}

impl From<u64> for HeapSize {
    fn from(bytes: u64) -> Self {
        HeapSize::Bytes(bytes)
    }
}

impl std::fmt::Display for HeapSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeapSize::Bytes(bytes) => f.write_str(&size_text(*bytes)),
            HeapSize::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Bytes in a KiB, MiB, GiB and TiB.
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;
impl Kind {
    /// What is accepted, as the end of a sentence: "a whole number from 1 to 65535".
    pub fn accepted(&self) -> String {
        match self {
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::PowerOfTwo { min, max } => format!("a power of two from {min} to {max}"),
            Kind::Size { min, max } => {
                format!(
                    "bytes from {} to {}, with the suffixes K, M, G or T if you like",
                    size_text(*min),
                    size_text(*max)
                )
            }
            Kind::HeapSize { min, max } => {
                format!(
                    "bytes up to {} (at least {} are made), with the suffixes K, M, G or T if you like, such as 512M or 1.5G, or a percentage above 0 up to 100, such as 25%",
                    size_text(*max),
                    size_text(*min)
                )
            }
            Kind::Seconds { min, max } => format!("seconds from {min} to {max}, such as 0.5 or 30"),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Switch => "on or off".to_string(),
            Kind::Flag => "any value; 0, off, false and no leave it off".to_string(),
            Kind::Address => {
                "host:port with a port from 1 to 65535, such as 127.0.0.1:29500".to_string()
            }
            Kind::Text { max } => format!("text of at most {max} bytes"),
        }
    }

    /// Checks `text`.
    ///
    /// # Errors
    /// Why it is refused, as a phrase.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self {
            Kind::Integer { min, max } => in_range(whole(text)?, *min, *max).map(Value::Integer),
            Kind::PowerOfTwo { min, max } => {
                let n = in_range(whole(text)?, *min, *max)?;
                if n.is_power_of_two() {
                    Ok(Value::Integer(n))
                } else {
                    Err("not a power of two".to_string())
                }
            }
            Kind::Size { min, max } => in_range(parse_size(text)?, *min, *max).map(Value::Integer),
            Kind::HeapSize { min, max } => match text.strip_suffix('%') {
                Some(number) => percentage(number.trim_end()).map(Value::Percent),
                None => in_range(standard_size(text)?.max(*min), *min, *max).map(Value::Integer),
            },
            Kind::Seconds { min, max } => {
                let seconds: f64 = text
                    .parse()
                    .map_err(|_| "not a number of seconds".to_string())?;
                if seconds.is_finite() && (*min..=*max).contains(&seconds) {
                    Ok(Value::Seconds(Duration::from_secs_f64(seconds)))
                } else {
                    Err("out of range".to_string())
                }
            }
            Kind::Choice(words) => {
                let word = text.to_ascii_lowercase();
                if words.contains(&word.as_str()) {
                    Ok(Value::Text(word))
                } else {
                    Err("unknown word".to_string())
                }
            }
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                "on" | "1" | "true" | "yes" => Ok(Value::Switch(true)),
                "off" | "0" | "false" | "no" => Ok(Value::Switch(false)),
                _ => Err("neither on nor off".to_string()),
            },
            Kind::Flag => Ok(Value::Switch(!matches!(
                text.to_ascii_lowercase().as_str(),
                "0" | "off" | "false" | "no"
            ))),
            Kind::Address => split_address(text).map(|_| Value::Text(text.to_string())),
            Kind::Text { max } => {
                if text.len() <= *max {
                    Ok(Value::Text(text.to_string()))
                } else {
                    Err(format!("{} bytes long", text.len()))
                }
            }
        }
    }
}

/// Splits `host:port`, or `[v6]:port`.
///
/// # Errors
/// Why `text` is no address, as a phrase.
pub fn split_address(text: &str) -> Result<(String, u16), String> {
    let (host, port) = text.rsplit_once(':').ok_or("no port in it")?;
    let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(v6) => v6,
        None if host.contains(':') => {
            return Err("an IPv6 host needs brackets, as in [::1]:29500".to_string())
        }
        None => host,
    };
    if host.is_empty() {
        return Err("no host in it".to_string());
    }
    let number = whole(port).map_err(|_| format!("port {port:?} is not a number"))?;
    match u16::try_from(number) {
        Ok(port) if port != 0 => Ok((host.to_string(), port)),
        _ => Err(format!("port {number} is out of range")),
    }
}

fn whole(text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("not a whole number".to_string());
    }
    text.parse().map_err(|_| "too large".to_string())
}

fn percentage(text: &str) -> Result<f64, String> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent: f64 = text
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or("not a percentage")?;
    if percent <= 0.0 {
        Err("no memory at all".to_string())
    } else if percent > 100.0 {
        Err("more than all memory".to_string())
    } else {
        Ok(percent)
    }
}

fn in_range(n: u64, min: u64, max: u64) -> Result<u64, String> {
    if n < min {
        Err("too small".to_string())
    } else if n > max {
        Err("too large".to_string())
    } else {
        Ok(n)
    }
}

/// As [`parse_size`], the standard's way: a number alone may be a fraction, and what follows the suffix is ignored ("20kk" is "20k").
fn standard_size(text: &str) -> Result<u64, String> {
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let digits = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    match rest.trim_start().chars().next() {
        Some(suffix) if "kmgt".contains(suffix.to_ascii_lowercase()) => {
            parse_size(&format!("{number}{suffix}"))
        }
        None if number.contains('.') => match number.parse::<f64>() {
            Ok(bytes) if bytes < 2f64.powi(63) => Ok(bytes.ceil() as u64),
            _ => Err("not a number of bytes".to_string()),
        },
        _ => parse_size(text),
    }
}

/// Bytes from text such as `1048576`, `256M`, `1.5GiB`, `64 kb`.
///
/// # Errors
/// Why it is refused, as a phrase.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit = match suffix.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        "t" | "tb" | "tib" => TIB,
        _ => return Err(format!("unknown suffix {:?}", suffix.trim())),
    };
    if let Ok(n) = whole(number) {
        return n.checked_mul(unit).ok_or_else(|| "too large".to_string());
    }
    if !number.contains('.') && !number.is_empty() {
        return Err("too large".to_string());
    }
    let fraction: f64 = number
        .parse()
        .map_err(|_| "not a number of bytes".to_string())?;
    if unit == 1 {
        return Err("a fraction of a byte".to_string());
    }
    let bytes = (fraction * unit as f64).ceil();
    if bytes.is_finite() && bytes < 2f64.powi(63) {
        Ok(bytes as u64)
    } else {
        Err("too large".to_string())
    }
}

/// Bytes as people read them: `256 MiB`, `1.5 GiB`, `100 B`.
pub fn size_text(bytes: u64) -> String {
    for (unit, name) in [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes >= unit {
            let scaled = bytes as f64 / unit as f64;
            return if bytes.is_multiple_of(unit) {
                format!("{} {name}", bytes / unit)
            } else {
                format!("{scaled:.1} {name}")
            };
        }
    }
    format!("{bytes} B")
}
