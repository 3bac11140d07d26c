//! The golden vectors of the RoCE format against the device's encoder and decoder: each vector through `st_encode`, `st_doorbell`, `st_cqe`.
//! Called by scenario.rs. What the vectors mean stands at the head of roce/golden/vectors.txt; the NIC's codec is tested against the same file.

use std::collections::BTreeMap;

use anyhow::{anyhow, ensure, Context as _, Result};
use npushmem::Args;

use crate::scenario::print;
use crate::stand::Stand;

const VECTORS: &str = include_str!("../../../../roce/golden/vectors.txt");
/// Longest inline payload that the device writes, bytes (`INLINE_BYTES` of device/impl/wqe.h).
const INLINE: usize = 8;
/// Bytes of a work request.
const REQUEST: usize = 64;

/// One line of the file.
struct Vector {
    kind: &'static str,
    keys: BTreeMap<&'static str, &'static str>,
}

impl Vector {
    fn all() -> Result<Vec<Vector>> {
        let lines = VECTORS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(Vector::parse).collect()
    }

    fn parse(line: &'static str) -> Result<Vector> {
        let (kind, rest) = line.split_once(' ').with_context(|| line.to_owned())?;
        let pair = |word: &'static str| {
            word.split_once('=')
                .with_context(|| format!("{word} in: {line}"))
        };
        Ok(Vector {
            kind,
            keys: rest.split(' ').map(pair).collect::<Result<_>>()?,
        })
    }

    fn text(&self, key: &str) -> Result<&'static str> {
        self.keys
            .get(key)
            .copied()
            .with_context(|| format!("{:?} has no {key}", self.keys))
    }

    fn number(&self, key: &str) -> Result<u64> {
        let text = self.text(key)?;
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.with_context(|| format!("{key}={text}"))
    }

    fn hex(&self, key: &str) -> Result<Vec<u8>> {
        let text = self.text(key)?;
        let byte = |at: usize| {
            text.get(at..at + 2)
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        };
        (0..text.len())
            .step_by(2)
            .map(|at| byte(at).ok_or_else(|| anyhow!("{key}={text}")))
            .collect()
    }

    /// The vector as `struct st_request`; `None` for what the device never writes.
    fn request(&self) -> Result<Option<[u64; 12]>> {
        let flag = |key| Ok::<_, anyhow::Error>(self.number(key)? != 0);
        if flag("fence")? || flag("solicited")? {
            return Ok(None);
        }
        let (op, operand, compare) = match self.text("op")? {
            "write" => (0, 0, 0),
            "read" => (1, 0, 0),
            "compare_swap" => (2, self.number("swap")?, self.number("compare")?),
            "fetch_add" => (3, self.number("add")?, 0),
            "write_inline" => {
                let payload = self.hex("payload")?;
                if payload.len() > INLINE {
                    return Ok(None);
                }
                let mut word = [0; 8];
                word[..payload.len()].copy_from_slice(&payload);
                (4, u64::from_le_bytes(word), 0)
            }
            _ => return Ok(None),
        };
        let (lkey, addr, length) = if op == 4 {
            (0, 0, self.hex("payload")?.len() as u64)
        } else if self.number("sges")? == 1 {
            (
                self.number("lkey0")?,
                self.number("addr0")?,
                self.number("len0")?,
            )
        } else {
            return Ok(None);
        };
        let log2_depth = self.number("depth")?.ilog2().into();
        let (signaled, strong) = (self.number("signaled")?, self.number("so")?);
        let (rkey, va) = (self.number("rkey")?, self.number("va")?);
        Ok(Some([
            op,
            self.number("n")?,
            log2_depth,
            signaled,
            strong,
            rkey,
            va,
            lkey,
            addr,
            length,
            operand,
            compare,
        ]))
    }
}

/// Launches a format kernel on `inputs`; gives `outputs` words an input.
fn launch<const N: usize>(
    s: &Stand,
    kernel: &str,
    inputs: &[[u64; N]],
    outputs: usize,
) -> Result<Vec<Vec<u64>>> {
    s.clear()?;
    s.world
        .write(&s.a, 0, bytemuck::cast_slice(inputs.as_flattened()))?;
    let args = Args::new().ptr(&s.a).ptr(&s.out).u64(inputs.len() as u64);
    s.launch_plain(kernel, &args)?;
    let words = s.results(0, inputs.len() * outputs)?;
    Ok(words.chunks(outputs).map(<[u64]>::to_vec).collect())
}

/// Prints how many vectors the device handled and how many of them wrong, and the names of those that it never writes.
pub fn golden(s: &Stand) -> Result<()> {
    let vectors = Vector::all()?;
    let (mut tried, mut wrong) = (0, 0);
    let mut check = |name: &str, seen: &[u64], expected: &[u64]| {
        tried += 1;
        if seen != expected {
            wrong += 1;
            eprintln!("{name}: {seen:#x?}, expected {expected:#x?}");
        }
    };

    let mut left_out = Vec::new();
    let mut requests = Vec::new();
    for vector in vectors.iter().filter(|vector| vector.kind == "wqe") {
        match vector.request()? {
            Some(request) => requests.push((vector, request)),
            None => left_out.push(vector.text("name")?),
        }
    }
    let inputs: Vec<_> = requests.iter().map(|(_, request)| *request).collect();
    for ((vector, _), seen) in requests
        .iter()
        .zip(launch(s, "st_encode", &inputs, REQUEST / 8)?)
    {
        let bytes = vector.hex("bytes")?;
        ensure!(
            bytes.len() == REQUEST,
            "{}: {} bytes",
            vector.text("name")?,
            bytes.len()
        );
        let expected: Vec<u64> = bytes
            .chunks_exact(8)
            .map(bytemuck::pod_read_unaligned)
            .collect();
        check(vector.text("name")?, &seen, &expected);
    }

    let mut rings = Vec::new();
    for vector in &vectors {
        match vector.kind {
            "sq_doorbell" => rings.push((
                vector,
                [
                    0,
                    vector.number("qpn")?,
                    vector.number("sl")?,
                    vector.number("head")?,
                ],
            )),
            "cq_doorbell" if vector.text("from")? != "cann" => {
                rings.push((vector, [1, vector.number("cqn")?, 0, vector.number("ci")?]))
            }
            "cq_doorbell" | "cq_arm" | "direct_wqe" => left_out.push(vector.text("name")?),
            _ => {}
        }
    }
    let inputs: Vec<_> = rings.iter().map(|(_, ring)| *ring).collect();
    for ((vector, _), seen) in rings.iter().zip(launch(s, "st_doorbell", &inputs, 1)?) {
        check(vector.text("name")?, &seen, &[vector.number("value")?]);
    }

    let mut entries = Vec::new();
    for vector in vectors.iter().filter(|vector| vector.kind == "cqe") {
        let (n, depth, bytes) = (
            vector.number("n")?,
            vector.number("depth")?,
            vector.hex("bytes")?,
        );
        let word = |at: usize| {
            bytes
                .get(at..at + 4)
                .map(bytemuck::pod_read_unaligned::<u32>)
                .map(u64::from)
        };
        let (Some(first), Some(last)) = (word(0), word(12)) else {
            return Err(anyhow!("a completion of {} bytes", bytes.len()));
        };
        let fields = [
            vector.number("status")?,
            vector.number("sub_status")?,
            vector.number("wqe_index")? & 0xffff,
        ];
        let name = vector.text("name")?;
        // The entry is valid on its own lap, and not on the next, where the same bytes are yesterday's.
        for (valid, n) in [(1, n), (0, n + depth)] {
            entries.push((
                name,
                [n, depth, first, last],
                [&[valid][..], &fields].concat(),
            ));
        }
    }
    // A ring that was never written.
    entries.push(("zeroed", [0, 64, 0, 0], vec![0; 4]));
    let inputs: Vec<_> = entries.iter().map(|(_, entry, _)| *entry).collect();
    for ((name, _, expected), seen) in entries.iter().zip(launch(s, "st_cqe", &inputs, 4)?) {
        check(name, &seen, expected);
    }
    print("tried", tried);
    print("wrong", wrong);
    print("left_out", left_out.join(" "));
    Ok(())
}
