//! Scenarios of collectives: random calls on random teams against a plain reference, bit for bit.

use anyhow::{ensure, Result};
use npushmem::Team;
use npushmem_tests::kernels::TEAMS;

use crate::stand::{print, Numbers, Stand};

/// Byte that fills what must stay untouched.
const UNTOUCHED: u8 = 0xEE;

/// Element types, numbered as in kernels/teams.cpp.
#[derive(Clone, Copy)]
struct Type(u64);

impl Type {
    fn size(self) -> usize {
        [1, 1, 2, 2, 4, 4, 8, 8, 4, 2][self.0 as usize]
    }

    fn is_float(self) -> bool {
        self.0 >= 8
    }

    /// Bits as a number: sign-extended, zero-extended, or the float's value.
    fn integer(self, bits: u64) -> i128 {
        match self.0 {
            0 => i128::from(bits as u8 as i8),
            2 => i128::from(bits as u16 as i16),
            4 => i128::from(bits as u32 as i32),
            6 => i128::from(bits as i64),
            _ => i128::from(bits),
        }
    }

    fn cut(self, wide: i128) -> u64 {
        let bits = wide as u64;
        match self.size() {
            8 => bits,
            size => bits & ((1 << (8 * size)) - 1),
        }
    }

    fn float(self, bits: u64) -> f32 {
        if self.0 == 8 {
            f32::from_bits(bits as u32)
        } else {
            small_from_half(bits as u16)
        }
    }

    fn bits(self, value: f32) -> u64 {
        if self.0 == 8 {
            u64::from(value.to_bits())
        } else {
            u64::from(half_of_small(value))
        }
    }

    /// Element i of PE pe's source. Halves hold small whole numbers, so that every order gives the same and none is rounded.
    fn element(self, pe: u64, round: u64, i: u64) -> u64 {
        let mut numbers = Numbers((pe + 1) * 0x9E37_79B9 + round * 0x1_0001 + i * 0x85EB_CA77 + 1);
        let wide = numbers.next();
        match self.0 {
            8 => u64::from((((wide >> 40) % 2000) as f32 * 0.37 - 300.0).to_bits()),
            9 => u64::from(half_of_small(((wide >> 40) % 3) as f32)),
            _ => self.cut(i128::from(wide)),
        }
    }

    /// a op b; ops as in kernels/teams.cpp: sum prod min max and or xor.
    fn combine(self, op: u64, a: u64, b: u64) -> u64 {
        if self.is_float() {
            let (x, y) = (self.float(a), self.float(b));
            return self.bits(match op {
                0 => x + y,
                1 => x * y,
                2 => {
                    if y < x {
                        y
                    } else {
                        x
                    }
                }
                _ => {
                    if y > x {
                        y
                    } else {
                        x
                    }
                }
            });
        }
        let (x, y) = (self.integer(a), self.integer(b));
        match op {
            0 => self.cut(x.wrapping_add(y)),
            1 => self.cut(x.wrapping_mul(y)),
            2 => self.cut(x.min(y)),
            3 => self.cut(x.max(y)),
            4 => a & b,
            5 => a | b,
            _ => a ^ b,
        }
    }
}

/// Whole numbers from 0 to 2047, which a half holds exactly.
fn half_of_small(value: f32) -> u16 {
    if value == 0.0 {
        return 0;
    }
    let bits = value.to_bits();
    let exponent = (bits >> 23) as i32 - 127 + 15;
    ((exponent as u16) << 10) | ((bits >> 13) & 0x3ff) as u16
}

fn small_from_half(bits: u16) -> f32 {
    if bits == 0 {
        return 0.0;
    }
    f32::from_bits((u32::from(bits >> 10) + 127 - 15) << 23 | u32::from(bits & 0x3ff) << 13)
}

const BROADCAST: u64 = 0;
const COLLECT: u64 = 1;
const FCOLLECT: u64 = 2;
const ALLTOALL: u64 = 3;
const ALLTOALLS: u64 = 4;
const INSCAN: u64 = 8;
const EXSCAN: u64 = 9;
const REDUCE: u64 = 10;
const REDUCE_SCATTER: u64 = 20;

/// One call, the same on all members.
struct Call {
    kind: u64,
    of: Type,
    n: u64,
    x: u64,
    y: u64,
    flags: u64,
    round: u64,
}

impl Call {
    /// What member `me` gives: collect has n elements more or fewer by member.
    fn count(&self, me: u64) -> u64 {
        if self.kind == COLLECT {
            self.n * (me % 3) + me
        } else {
            self.n
        }
    }

    /// Elements of the source and of dest that a call touches.
    fn extents(&self, members: u64) -> (u64, u64) {
        match self.kind {
            COLLECT => (
                (0..members).map(|i| self.count(i)).max().unwrap_or(0),
                (0..members).map(|i| self.count(i)).sum(),
            ),
            FCOLLECT | 6 => (self.n, self.n * members),
            ALLTOALL => (self.n * members, self.n * members),
            ALLTOALLS => (self.n * members * self.y, self.n * members * self.x),
            REDUCE_SCATTER.. => (self.n * members, self.n),
            _ => (self.n, self.n),
        }
    }

    fn source(&self, pe: u32, n: u64) -> Vec<u64> {
        (0..n)
            .map(|i| self.of.element(u64::from(pe), self.round, i))
            .collect()
    }

    /// dest of member `me`, from what it was.
    fn expected(&self, team: &Team, mut dest: Vec<u64>) -> Vec<u64> {
        let (me, members) = (u64::from(team.my_pe()), u64::from(team.n_pes()));
        let (from, _) = self.extents(members);
        let sources: Vec<Vec<u64>> = team
            .members()
            .iter()
            .map(|pe| self.source(*pe, from))
            .collect();
        let n = self.n as usize;
        match self.kind {
            BROADCAST | 5 => dest[..n].copy_from_slice(&sources[self.x as usize][..n]),
            COLLECT => {
                let all: Vec<u64> = (0..members)
                    .flat_map(|i| sources[i as usize][..self.count(i) as usize].to_vec())
                    .collect();
                dest[..all.len()].copy_from_slice(&all);
            }
            FCOLLECT | 6 => sources
                .iter()
                .enumerate()
                .for_each(|(i, source)| dest[i * n..(i + 1) * n].copy_from_slice(&source[..n])),
            ALLTOALL => {
                for (i, source) in sources.iter().enumerate() {
                    dest[i * n..(i + 1) * n].copy_from_slice(&source[me as usize * n..][..n]);
                }
            }
            ALLTOALLS => {
                for (i, source) in sources.iter().enumerate() {
                    for k in 0..n {
                        dest[(i * n + k) * self.x as usize] =
                            source[(me as usize * n + k) * self.y as usize];
                    }
                }
            }
            INSCAN | EXSCAN => {
                for (i, element) in dest.iter_mut().enumerate().take(n) {
                    let upto = me as usize + usize::from(self.kind == INSCAN);
                    // Sums begin at 0 in exscan, with the first member in inscan: the same bits but for the sign of zero.
                    let start = (
                        if self.kind == INSCAN {
                            sources[0][i]
                        } else {
                            0
                        },
                        usize::from(self.kind == INSCAN),
                    );
                    *element = sources[start.1..upto]
                        .iter()
                        .fold(start.0, |sum, source| self.of.combine(0, sum, source[i]));
                }
            }
            kind => {
                let (op, block) = if kind >= REDUCE_SCATTER {
                    (kind - REDUCE_SCATTER, me as usize * n)
                } else {
                    (kind - REDUCE, 0)
                };
                for (i, element) in dest.iter_mut().enumerate().take(n) {
                    let mut values = sources.iter().map(|source| source[block + i]);
                    let first = values.next().unwrap_or(0);
                    *element = values.fold(first, |sum, value| self.of.combine(op, sum, value));
                }
            }
        }
        dest
    }

    fn bytes(&self, elements: &[u64]) -> Vec<u8> {
        elements
            .iter()
            .flat_map(|bits| bits.to_le_bytes()[..self.of.size()].to_vec())
            .collect()
    }

    fn elements(&self, bytes: &[u8]) -> Vec<u64> {
        bytes
            .chunks_exact(self.of.size())
            .map(|chunk| {
                chunk
                    .iter()
                    .rev()
                    .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
            })
            .collect()
    }

    /// Runs it on this PE, and says what was wrong.
    fn run(&self, s: &Stand, team: &Team) -> Result<Option<String>> {
        let size = self.of.size();
        let (from, to) = self.extents(team.n_pes().into());
        // Some bytes behind dest must stay what they are.
        let room = (to as usize + 64 / size) * size;
        ensure!(
            room <= s.a.len() && from as usize * size <= s.b.len(),
            "buffers are too small"
        );
        let source = self.bytes(&self.source(s.world.my_pe(), from));
        let mut before = vec![UNTOUCHED; room];
        if self.flags & 1 != 0 {
            before[..source.len()].copy_from_slice(&source);
        }
        s.world.write(&s.a, 0, &before)?;
        s.world.write(&s.b, 0, &source)?;
        s.world.barrier_all()?;
        let n = self.count(team.my_pe().into());
        s.launch(
            &TEAMS,
            "tm_collective",
            s.cores,
            &[
                team.id() as u64,
                self.kind,
                self.of.0,
                n,
                self.x,
                self.y,
                self.flags,
            ],
        )?;
        let mut seen = vec![0; room];
        s.world.read(&s.a, 0, &mut seen)?;
        let expected = self.bytes(&self.expected(team, self.elements(&before)));
        let first = (0..expected.len()).find(|&i| seen[i] != expected[i]);
        Ok(first.map(|i| {
            format!(
                "kind {} type {} n {} x {} y {} flags {} on {:?}: byte {i} of {} is {:#x}, not {:#x}",
                self.kind, self.of.0, self.n, self.x, self.y, self.flags, team.members(), expected.len(), seen[i], expected[i]
            )
        }))
    }
}

/// A random call that fits.
fn draw(numbers: &mut Numbers, members: u64, round: u64, limit: u64) -> Call {
    const KINDS: [u64; 9] = [
        BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, 5, 6, INSCAN, EXSCAN,
    ];
    let pick = numbers.between(0, 22);
    let kind = match pick {
        0..=8 => KINDS[pick as usize],
        9..=15 => REDUCE + pick - 9,
        _ => REDUCE_SCATTER + pick - 16,
    };
    let bitwise = kind % 10 >= 4 && kind >= REDUCE;
    let of = Type(numbers.between(0, if bitwise { 7 } else { 9 }));
    let most = limit / 8 / members / 3;
    let n = match numbers.between(0, 3) {
        0 => numbers.between(0, 3),
        1 => numbers.between(1, 70),
        _ => numbers.between(1, most.max(2)),
    };
    let (x, y) = match kind {
        BROADCAST | 5 => (numbers.between(0, members - 1), 0),
        ALLTOALLS => (numbers.between(1, 2), numbers.between(1, 2)),
        _ => (0, 0),
    };
    // Products of halves leave the exact range.
    let of = if of.0 == 9 && kind % 10 == 1 && kind >= REDUCE {
        Type(8)
    } else {
        of
    };
    let in_place =
        matches!(kind, BROADCAST | INSCAN | EXSCAN | 10..=16) && numbers.between(0, 2) == 0;
    let scratch = if numbers.between(0, 2) == 0 { 2 } else { 0 };
    let typed =
        matches!(kind, BROADCAST | FCOLLECT | INSCAN | REDUCE | 16) && of.0 == 6 && scratch == 0;
    Call {
        kind,
        of,
        n,
        x,
        y,
        flags: u64::from(in_place) | scratch | if typed { 4 } else { 0 },
        round,
    }
}

/// Random collectives on the world, halves, rows, and a list in another order.
pub fn random(s: &Stand) -> Result<()> {
    let rounds: u64 = s.get("rounds", 60)?;
    let mut numbers = Numbers(s.get("seed", 1u64)? * 65_537 + 11);
    let world = s.world.team_world()?;
    let (row, column) = s
        .world
        .team_split_2d(&world, (s.n_pes() as u32).div_ceil(2))?;
    let backwards: Vec<u32> = (0..s.n_pes() as u32).rev().collect();
    let backwards = s.world.team_from_pes(&world, &backwards)?;
    let mut wrong = 0u64;
    let mut done = 0u64;
    for round in 0..rounds {
        let choice = numbers.between(0, 3);
        // The same draw on all PEs: sizes that fit the largest team, roots that the smallest has.
        let call = draw(&mut numbers, s.n_pes(), round, s.a.len() as u64);
        let team = match (choice, &backwards) {
            (1, _) => &row,
            (2, _) => &column,
            (3, Some(team)) => team,
            _ => &world,
        };
        let call = Call {
            x: if matches!(call.kind, BROADCAST | 5) {
                call.x % u64::from(team.n_pes())
            } else {
                call.x
            },
            ..call
        };
        if let Some(what) = call.run(s, team)? {
            eprintln!("round {round}: {what}");
            wrong += 1;
        }
        done += 1;
    }
    s.world.barrier_all()?;
    print("done", done);
    print("wrong", wrong);
    Ok(())
}

/// Each kind once, small: for many PEs.
pub fn each(s: &Stand) -> Result<()> {
    let world = s.world.team_world()?;
    let mut wrong = 0u64;
    let kinds = [
        BROADCAST,
        COLLECT,
        FCOLLECT,
        ALLTOALL,
        ALLTOALLS,
        INSCAN,
        EXSCAN,
        REDUCE,
        REDUCE + 3,
        REDUCE_SCATTER,
    ];
    for (round, kind) in kinds.into_iter().enumerate() {
        let (x, y) = if kind == ALLTOALLS {
            (2, 1)
        } else {
            (s.n_pes() / 2, 0)
        };
        let call = Call {
            kind,
            of: Type(4),
            n: s.get("n", 7)?,
            x,
            y,
            flags: 0,
            round: round as u64,
        };
        if let Some(what) = call.run(s, &world)? {
            eprintln!("{what}");
            wrong += 1;
        }
    }
    s.world.barrier_all()?;
    wrong += crate::teams::rounds(s, &world, s.get("barriers", 5)?, 0)?;
    print("wrong", wrong);
    Ok(())
}

/// A float sum of `n` elements, bit for bit in the order of the members.
pub fn large(s: &Stand) -> Result<()> {
    let world = s.world.team_world()?;
    let mut wrong = 0u64;
    for (kind, of) in [(REDUCE, 8), (BROADCAST, 4), (REDUCE, 6)] {
        let call = Call {
            kind,
            of: Type(of),
            n: s.get("n", 200_000)?,
            x: 1,
            y: 0,
            flags: u64::from(kind == REDUCE),
            round: 3,
        };
        if let Some(what) = call.run(s, &world)? {
            eprintln!("{what}");
            wrong += 1;
        }
    }
    s.world.barrier_all()?;
    print("wrong", wrong);
    Ok(())
}
