//! Runs cases of operations that the test sends over a connection (`driver=ADDRESS`), one after another in one job, and sends back what memory holds.
//! kernels/sequence.cpp does the operations; tests/src/sequence.rs makes the cases.
//!
//! A message is its length as u64 and so many bytes, little-endian. To the PE: seed, then for each core the number of records and the records; an empty
//! one ends the job. From the PE: first its number; then for each case a byte, 0 and a, b and out, or 1 and the text of an error, after which it
//! ends.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context as _, Result};
use npushmem::{Args, SymBuf};
use npushmem_tests::kernels;
use npushmem_tests::sequence::{begin, A_BYTES, B_BYTES, MOST, RECORD, SLOTS};

use crate::stand::Stand;

/// Runs cases until the driver has no more.
pub fn sequence(s: &Stand) -> Result<()> {
    let driver: String = s.get("driver", String::new())?;
    let mut wire = TcpStream::connect(&driver).with_context(|| format!("driver={driver}"))?;
    wire.set_nodelay(true)?;
    send(&mut wire, &s.me().to_le_bytes())?;
    let cores = s.cores as usize;
    let stride = (MOST + 1) * RECORD;
    let ops: SymBuf<u64> = s.world.alloc(cores * stride)?;
    let kernel = s.world.load(&kernels::SEQUENCE)?.function("sq_run")?;
    let args = Args::new()
        .ctx()
        .u64(s.a.addr())
        .u64(s.b.addr())
        .u64(s.out.addr())
        .u64(ops.addr())
        .u64(stride as u64 * 8);
    loop {
        let words = receive(&mut wire)?;
        let Some((&seed, mut rest)) = words.split_first() else {
            return Ok(());
        };
        let (a, b) = begin(seed, s.me() as usize, cores);
        s.world.write(&s.a, 0, &a)?;
        s.world.write(&s.b, 0, &b)?;
        s.world.write(&s.out, 0, &vec![0; cores * SLOTS])?;
        for core in 0..cores {
            let (&count, records) = rest.split_first().context("a list for each core")?;
            let (records, others) = records.split_at(count as usize * RECORD);
            let mut list = vec![0; RECORD];
            list[0] = count;
            list.extend(records);
            s.world.write(&ops, core * stride, &list)?;
            rest = others;
        }
        // Nobody's operations may come before everybody's memory is as it must be.
        s.world.barrier_all()?;
        s.world.launch(&kernel, s.cores, &args)?;
        if let Err(error) = s.world.synchronize() {
            let mut answer = vec![1];
            answer.extend(format!("{error:#}").into_bytes());
            send(&mut wire, &answer)?;
            return Err(error.into());
        }
        let mut answer = vec![0; 1 + A_BYTES + cores * (B_BYTES + SLOTS * 8)];
        let (a, rest) = answer[1..].split_at_mut(A_BYTES);
        let (b, out) = rest.split_at_mut(cores * B_BYTES);
        s.world.read(&s.a, 0, a)?;
        s.world.read(&s.b, 0, b)?;
        let slots = s.results(0, cores * SLOTS)?;
        out.copy_from_slice(bytemuck::cast_slice(&slots));
        send(&mut wire, &answer)?;
    }
}

fn send(wire: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    wire.write_all(&(bytes.len() as u64).to_le_bytes())?;
    Ok(wire.write_all(bytes)?)
}

fn receive(wire: &mut TcpStream) -> Result<Vec<u64>> {
    let mut length = [0u8; 8];
    wire.read_exact(&mut length)?;
    let mut words = vec![0u64; u64::from_le_bytes(length) as usize / 8];
    wire.read_exact(bytemuck::cast_slice_mut(&mut words))?;
    Ok(words)
}
