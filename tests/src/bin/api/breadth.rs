//! Scenarios of strided transfers, waits on many variables, and atomics.

use anyhow::Result;
use npushmem_tests::kernels::BREADTH;

use crate::stand::{print, Numbers, Stand};

/// Byte that no pattern leaves in place by accident: fills what must stay untouched.
const UNTOUCHED: u8 = 0xEE;

fn pattern(pe: u64, round: u64, n: usize) -> Vec<u8> {
    (0..n as u64)
        .map(|i| ((i * 7 + pe * 31 + round * 13) % 199) as u8)
        .collect()
}

/// Random strides, blocks, counts and alignments, in each form, against a plain loop.
pub fn strided(s: &Stand) -> Result<()> {
    let rounds: u64 = s.get("rounds", 60)?;
    let mut numbers = Numbers(s.get("seed", 1u64)? * 77_777 + 1);
    let mut wrong = 0u64;
    let mut moved = 0u64;
    for round in 0..rounds {
        let kind = round % 4;
        let size = 1u64 << numbers.between(0, 4);
        let block = if kind < 2 {
            1
        } else {
            numbers.between(1, [40, 300, 5][(round % 3) as usize])
        };
        let n = numbers.between(0, [3, 50, 700][(round / 4 % 3) as usize]);
        // Contiguous on one side, on both, or on none.
        let stride = |numbers: &mut Numbers| {
            block
                + if numbers.between(0, 2) == 0 {
                    0
                } else {
                    numbers.between(1, 30)
                }
        };
        let (to, from) = (stride(&mut numbers), stride(&mut numbers));
        let span = ((n.max(1) - 1) * to.max(from) + block) * size;
        if span as usize > s.a.len() {
            continue;
        }
        let get = kind % 2 == 1;
        let (source, target) = if get { (&s.a, &s.b) } else { (&s.b, &s.a) };
        s.world
            .write(source, 0, &pattern(s.me(), round, span as usize))?;
        s.world.write(target, 0, &vec![UNTOUCHED; span as usize])?;
        s.world.barrier_all()?;
        s.launch(
            &BREADTH,
            "br_strided",
            1,
            &[s.next(), n, block, kind | size << 8 | to << 16 | from << 32],
        )?;
        s.world.barrier_all()?;
        let theirs = pattern(
            if get { s.next() } else { s.before() },
            round,
            span as usize,
        );
        let mut expected = vec![UNTOUCHED; span as usize];
        for i in 0..n {
            let (at, of, len) = (
                (i * to * size) as usize,
                (i * from * size) as usize,
                (block * size) as usize,
            );
            expected[at..at + len].copy_from_slice(&theirs[of..of + len]);
        }
        let mut seen = vec![0; span as usize];
        s.world.read(target, 0, &mut seen)?;
        if seen != expected {
            wrong += 1;
            let first = (0..seen.len()).find(|&i| seen[i] != expected[i]);
            eprintln!("kind {kind}, {n} blocks of {block} x {size} bytes, strides {to} and {from}: first difference at {first:?}");
        }
        moved += 1;
        s.world.barrier_all()?;
    }
    if let Some(bad) = bad_strides(s)? {
        eprintln!("{bad}");
        wrong += 1;
    }
    print("moved", moved);
    print("wrong", wrong);
    Ok(())
}

/// Strides that contradict the contract are refused, with the call's name; nothing moves.
fn bad_strides(s: &Stand) -> Result<Option<String>> {
    let code = |stride: i16| u64::from(stride as u16);
    for (n, block, to, from) in [
        (2u64, 4u64, 3i16, 4i16),
        (2, 4, 4, 3),
        (1, 1, 0, 1),
        (3, 1, -1, 1),
    ] {
        let result = s.launch(
            &BREADTH,
            "br_strided",
            1,
            &[
                s.next(),
                n,
                block,
                2 | 4 << 8 | code(to) << 16 | code(from) << 32,
            ],
        );
        s.world.barrier_all()?;
        s.world.recover()?;
        match result {
            Ok(()) => {
                return Ok(Some(format!(
                    "{n} blocks of {block}, strides {to} and {from}: accepted"
                )))
            }
            Err(error) if !error.to_string().contains("put") => {
                return Ok(Some(format!("no word of the call: {error}")))
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Every form of wait and test on many variables.
pub fn waits(s: &Stand) -> Result<()> {
    let mut wrong = 0u64;
    for k in (0..12).chain([14]) {
        for (n, m) in [(1u64, 1u64), (7, 3), (64, 27), (33, 10)] {
            s.clear()?;
            let values: Vec<i64> = (1..=n as i64).collect();
            s.world.write(&s.b, 0, bytemuck::cast_slice(&values))?;
            s.world.barrier_all()?;
            s.launch(&BREADTH, "br_waits", 1, &[1, n, m, k])?;
            let words = s.results(0, 3)?;
            if s.me() == 0 && words != [n, 0, 0] {
                eprintln!("form {k} on {n} variables: {words:?}");
                wrong += 1;
            }
            s.world.barrier_all()?;
        }
    }
    // A wait that nobody ends ends by itself.
    s.clear()?;
    s.world.barrier_all()?;
    let result = s.launch(&BREADTH, "br_waits", 1, &[1, 5, 1, 13]);
    match (s.me(), result) {
        (0, Err(error)) if error.to_string().contains("wait") => {}
        (0, other) => {
            eprintln!("a wait without end: {other:?}");
            wrong += 1;
        }
        (_, other) => other?,
    }
    s.world.recover()?; // it waits longer for the others than a barrier does
    print("wrong", wrong);
    Ok(())
}
