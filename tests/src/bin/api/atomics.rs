//! Scenarios of atomics: random sequences against a plain word, and all cores on the same words.

use anyhow::{ensure, Result};
use npushmem_tests::kernels::BREADTH;

use crate::stand::{print, Numbers, Stand};

/// A type of the atomics: bytes, and how its bits are read.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unsigned(u32),
    Signed(u32),
    Float,
}

impl Kind {
    fn of(k: u64) -> Kind {
        match k {
            0 => Kind::Unsigned(8),
            1 | 2 => Kind::Unsigned(4),
            3 => Kind::Signed(8),
            4 | 5 => Kind::Signed(4),
            _ => Kind::Float,
        }
    }

    fn mask(self) -> u64 {
        match self {
            Kind::Unsigned(8) | Kind::Signed(8) => u64::MAX,
            _ => u64::from(u32::MAX),
        }
    }

    fn less(self, a: u64, b: u64) -> bool {
        match self {
            Kind::Unsigned(_) => a < b,
            Kind::Signed(8) => (a as i64) < b as i64,
            Kind::Signed(_) => (a as u32 as i32) < b as u32 as i32,
            Kind::Float => f32::from_bits(a as u32) < f32::from_bits(b as u32),
        }
    }

    fn add(self, a: u64, b: u64) -> u64 {
        match self {
            Kind::Float => {
                u64::from((f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits())
            }
            _ => a.wrapping_add(b) & self.mask(),
        }
    }

    fn one(self) -> u64 {
        if self == Kind::Float {
            u64::from(1f32.to_bits())
        } else {
            1
        }
    }

    /// An operand: small numbers often, so that comparisons hold at times.
    fn operand(self, numbers: &mut Numbers) -> u64 {
        if self == Kind::Float {
            return u64::from((numbers.between(0, 64) as f32 - 32.0).to_bits());
        }
        let wide = numbers.next();
        [wide, wide % 4, (wide % 4).wrapping_neg()][numbers.between(0, 2) as usize] & self.mask()
    }
}

/// What the word holds after a step, and what the step fetches.
fn model(kind: Kind, word: u64, what: u64, value: u64, cond: u64) -> (u64, u64) {
    let fetches = what >= 64 || matches!(what, 0 | 4..=7 | 10 | 11 | 19..=21);
    let least = if kind.less(value, word) { value } else { word };
    let most = if kind.less(word, value) { value } else { word };
    let after = match what & 63 {
        0 => word,
        1 | 6 => value,
        2 | 4 => kind.add(word, value),
        3 | 5 => kind.add(word, kind.one()),
        7 if word == cond => value,
        7 => word,
        8 | 10 => least,
        9 | 11 => most,
        16 | 19 => word & value,
        17 | 20 => word | value,
        _ => word ^ value,
    };
    (after, if fetches { word } else { 0 })
}

/// Random steps of every operation on every type, on the own PE and on the next.
pub fn steps(s: &Stand) -> Result<()> {
    const ANY: [u64; 19] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 64, 68, 69, 70, 71, 74, 75,
    ];
    const BITS: [u64; 9] = [16, 17, 18, 19, 20, 21, 83, 84, 85];
    let n: usize = s.get("n", 300)?;
    let mut numbers = Numbers(s.get("seed", 1u64)? * 31_337 + s.me() + 1);
    let mut wrong = 0u64;
    for k in 0..8u64 {
        let kind = Kind::of(k);
        for target in [s.me(), s.next()] {
            s.clear()?;
            let neighbours = [0x0102_0304_0506_0708u64, 0x1112_1314_1516_1718];
            s.world.write(&s.a, 0, bytemuck::cast_slice(&neighbours))?;
            let (at, size) = (
                if matches!(k, 2 | 5 | 7) { 4 } else { 0 },
                if matches!(kind, Kind::Unsigned(8) | Kind::Signed(8)) {
                    8
                } else {
                    4
                },
            );
            s.world.write(&s.a, at, &0u64.to_le_bytes()[..size])?;
            let mut list = Vec::new();
            let mut expected = Vec::new();
            let mut word = 0u64;
            for _ in 0..n {
                let bits = kind != Kind::Float && numbers.between(0, 2) == 0;
                let what = if bits {
                    BITS[numbers.between(0, 8) as usize]
                } else {
                    ANY[numbers.between(0, 18) as usize]
                };
                let value = kind.operand(&mut numbers);
                let cond = if numbers.between(0, 1) == 0 {
                    word
                } else {
                    kind.operand(&mut numbers)
                };
                list.extend([what, value, cond]);
                let (after, fetched) = model(kind, word, what, value, cond);
                word = after;
                expected.push(fetched);
            }
            expected.push(0); // no error
            s.world.write(&s.b, 0, bytemuck::cast_slice(&list))?;
            s.world.barrier_all()?;
            s.launch(&BREADTH, "br_atomics", 1, &[target, n as u64, 0, k])?;
            let seen = s.results(0, n + 1)?;
            if let Some(i) = (0..=n).find(|&i| seen[i] != expected[i]) {
                eprintln!(
                    "type {k} on PE {target}: step {i} {:x?} fetched {:#x}, not {:#x}",
                    list.get(3 * i..3 * i + 3),
                    seen[i],
                    expected[i]
                );
                wrong += 1;
            }
            s.world.barrier_all()?;
            // Everybody worked on one word of its target, from 0, and left the neighbours alone.
            let theirs = s.world.exchange(&word.to_le_bytes())?;
            let from = if target == s.me() { s.me() } else { s.before() };
            let mut expected: Vec<u8> = bytemuck::cast_slice(&neighbours).to_vec();
            expected[at..at + size].copy_from_slice(&theirs[from as usize][..size]);
            let mut memory = vec![0u8; 16];
            s.world.read(&s.a, 0, &mut memory)?;
            if memory != expected {
                eprintln!("type {k}: memory {memory:x?}, not {expected:x?}");
                wrong += 1;
            }
            s.world.barrier_all()?;
        }
    }
    print("wrong", wrong);
    Ok(())
}

/// All cores of all PEs on the same words of PE 0.
pub fn contend(s: &Stand) -> Result<()> {
    let n: u64 = s.get("n", 60)?;
    let workers = s.n_pes() * u64::from(s.cores);
    ensure!(workers <= 31, "{workers} workers do not fit into 31 bits");
    s.launch(&BREADTH, "br_contend", s.cores, &[0, n, 0, 0])?;
    let mut wrong: u64 = s.results(0, s.cores as usize)?.iter().sum();
    s.world.barrier_all()?;
    if s.me() == 0 {
        let mut bytes = [0u8; 24];
        s.world.read(&s.a, 0, &mut bytes)?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let most = (workers - 1) * 1000 + n - 1;
        let even = (0..workers)
            .filter(|me| me % 2 == 0)
            .fold(0u32, |bits, me| bits | 1 << me);
        let expected = [
            ((workers * n) as f32).to_bits(),
            most as u32,
            (1 << workers) - 1,
            0,
            even,
            (most as u32).wrapping_neg(),
        ];
        let seen: Vec<u32> = (0..6).map(|i| word(4 * i)).collect();
        if seen != expected {
            eprintln!("words {seen:x?}, not {expected:x?}");
            wrong += 1;
        }
    }
    print("wrong", wrong);
    Ok(())
}
