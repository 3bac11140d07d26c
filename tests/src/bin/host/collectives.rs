//! Scenarios of the hosts' collectives, on the world and on random teams, against plain loops.

use anyhow::{ensure, Context as _, Result};
use npushmem::{op, Strides, SymBuf, Team, World};

use crate::{Arguments, Numbers};

/// Elements of each buffer: more than is staged, so that every way of an algorithm is taken.
const LEN: usize = 3000;

/// What PE `pe` holds before round `round`.
fn data(pe: u32, round: u64) -> Vec<i64> {
    let mut numbers = Numbers(u64::from(pe) * 65_537 + round * 31 + 1);
    (0..LEN).map(|_| numbers.draw() as i64 >> 8).collect()
}

fn combine(which: u64, a: i64, b: i64) -> i64 {
    match which {
        0 => a.wrapping_add(b),
        1 => a.wrapping_mul(b),
        2 => a.min(b),
        3 => a.max(b),
        4 => a & b,
        5 => a | b,
        _ => a ^ b,
    }
}

struct Stand<'w> {
    world: &'w World,
    src: SymBuf<i64>,
    dest: SymBuf<i64>,
}

impl Stand<'_> {
    fn reduce(&self, team: &Team, which: u64, n: usize, in_place: bool) -> Result<()> {
        let on = self.world.on_team(team)?;
        let src = self.src.slice(..n)?;
        let dest = if in_place { src } else { self.dest.slice(..n)? };
        match which {
            0 => on.reduce(op::Sum, dest, src)?,
            1 => on.reduce(op::Prod, dest, src)?,
            2 => on.reduce(op::Min, dest, src)?,
            3 => on.reduce(op::Max, dest, src)?,
            4 => on.reduce(op::And, dest, src)?,
            5 => on.reduce(op::Or, dest, src)?,
            _ => on.reduce(op::Xor, dest, src)?,
        }
        Ok(())
    }

    /// One call, drawn from `numbers`, which all members have alike.
    fn call(&self, team: &Team, round: u64, numbers: &mut Numbers) -> Result<()> {
        let (world, members) = (self.world, team.members());
        let (m, me) = (members.len(), team.my_pe() as usize);
        let theirs: Vec<Vec<i64>> = members.iter().map(|pe| data(*pe, round)).collect();
        world.write(&self.src, 0, &theirs[me])?;
        let poison = vec![-1i64; LEN];
        world.write(&self.dest, 0, &poison)?;
        let on = world.on_team(team)?;
        on.barrier()?;
        let mut expected = poison.clone();
        let (kind, which) = (numbers.between(0, 9), numbers.between(0, 6));
        let sizes = [0, 1, 5, 30, 256, 257, 900];
        let n = (sizes[numbers.between(0, 6) as usize] / m.max(1)).max(usize::from(kind == 0));
        let root = numbers.between(0, m as u64 - 1) as usize;
        let in_place = numbers.between(0, 1) == 1;
        let mut source = theirs[me].clone();
        match kind {
            0 => {
                on.broadcast(self.dest.slice(..n)?, self.src.slice(..n)?, root as u32)?;
                expected[..n].copy_from_slice(&theirs[root][..n]);
            }
            1 => {
                on.fcollect(self.dest.slice(..n * m)?, self.src.slice(..n)?)?;
                for (i, block) in theirs.iter().enumerate() {
                    expected[i * n..][..n].copy_from_slice(&block[..n]);
                }
            }
            2 => {
                let lengths: Vec<usize> = (0..m).map(|i| (n + 7 * i) % 400).collect();
                let total = on.collect(&self.dest, self.src.slice(..lengths[me])?)?;
                ensure!(total == lengths.iter().sum::<usize>());
                let all = theirs
                    .iter()
                    .zip(&lengths)
                    .flat_map(|(block, n)| &block[..*n]);
                for (to, from) in expected.iter_mut().zip(all) {
                    *to = *from;
                }
            }
            3 => {
                on.alltoall(self.dest.slice(..n * m)?, self.src.slice(..n * m)?)?;
                for (i, block) in theirs.iter().enumerate() {
                    expected[i * n..][..n].copy_from_slice(&block[me * n..][..n]);
                }
            }
            4 => {
                let strides = Strides {
                    dest: 2,
                    src: 1 + which as usize % 3,
                };
                let n = n.min(LEN / (3 * m) - 1);
                on.alltoalls(&self.dest, &self.src, strides, n)?;
                for (i, block) in theirs.iter().enumerate() {
                    for k in 0..n {
                        expected[(i * n + k) * strides.dest] = block[(me * n + k) * strides.src];
                    }
                }
            }
            5 | 6 => {
                let n = if kind == 5 { n } else { LEN };
                self.reduce(team, which, n, in_place)?;
                let to = if in_place { &mut source } else { &mut expected };
                for (i, to) in to[..n].iter_mut().enumerate() {
                    let first = theirs[0][i];
                    *to = theirs[1..]
                        .iter()
                        .fold(first, |sum, block| combine(which, sum, block[i]));
                }
            }
            7 | 8 => {
                let n = if which < 3 { n } else { LEN };
                let src = self.src.slice(..n)?;
                let dest = if in_place { src } else { self.dest.slice(..n)? };
                let last = if kind == 7 { me + 1 } else { me };
                if kind == 7 {
                    on.inscan(dest, src)?;
                } else {
                    on.exscan(dest, src)?;
                }
                let to = if in_place { &mut source } else { &mut expected };
                for (i, to) in to[..n].iter_mut().enumerate() {
                    *to = theirs[..last]
                        .iter()
                        .fold(0i64, |sum, block| sum.wrapping_add(block[i]));
                }
            }
            _ => {
                let mine = theirs[me][0];
                ensure!(
                    on.gather(mine)? == theirs.iter().map(|block| block[0]).collect::<Vec<_>>()
                );
                let most = theirs.iter().map(|block| block[0]).max();
                ensure!(Some(on.reduce_value(op::Max, mine)?) == most);
                ensure!(on.broadcast_value(mine, root as u32)? == theirs[root][0]);
            }
        }
        on.sync()?;
        let what = format!("round {round}: kind {kind}, {n} elements, operation {which}, in place {in_place}, members {members:?}");
        ensure!(world.to_vec(&self.dest)? == expected, "{what}: destination");
        ensure!(world.to_vec(&self.src)? == source, "{what}: source");
        on.barrier()?;
        Ok(())
    }
}

/// Random collectives on the world, halves, rows, columns and a list.
pub fn random(world: &World, args: &Arguments) -> Result<()> {
    let stand = Stand {
        world,
        src: world.alloc(LEN)?,
        dest: world.alloc(LEN)?,
    };
    let n_pes = world.n_pes();
    let all = world.team_world()?;
    let backwards: Vec<u32> = (0..n_pes).rev().collect();
    let list = world
        .team_from_pes(&all, &backwards)?
        .context("everybody is in")?;
    let (row, column) = world.team_split_2d(&all, 2)?;
    let half = world.team_split_strided(&all, 0, 2, n_pes.div_ceil(2))?;
    let seed: u64 = args.get("seed", 1)?;
    for round in 0..args.get("rounds", 60u64)? {
        // One sequence of draws a team.
        let mut numbers = Numbers(seed * 1_000_003 + round * 17 + 5);
        for team in [
            Some(&all),
            Some(&list),
            Some(&row),
            Some(&column),
            half.as_ref(),
        ]
        .into_iter()
        .flatten()
        {
            let key = team
                .members()
                .iter()
                .fold(3u64, |key, pe| key * 31 + u64::from(*pe));
            stand.call(team, round, &mut Numbers(numbers.draw() ^ key << 20))?;
        }
    }
    // A float sum has the same bits everywhere.
    let sum = world
        .on_all()?
        .reduce_value(op::Sum, 0.1f64 * f64::from(world.my_pe() + 1))?;
    let sums = world.on_all()?.gather(sum.to_bits())?;
    ensure!(sums.iter().all(|bits| *bits == sum.to_bits()));
    for team in [list, row, column] {
        world.team_destroy(team)?;
    }
    // `half` is dropped.
    Ok(())
}

/// Teams that come and go, by destroying and by dropping, before and after the device is enabled; and the meeting of two.
pub fn teams(world: &World) -> Result<()> {
    let n_pes = world.n_pes();
    let all = world.team_world()?;
    ensure!(all.id() == 0 && world.team_shared()?.members() == all.members());
    for round in 0..300u32 {
        let start = round % n_pes;
        let size = (n_pes - start).min(1 + round % 3);
        if let Some(team) = world.team_split_strided(&all, start, 1, size)? {
            ensure!(team.id() == -1, "kernels know nothing of it");
            ensure!(world.on_team(&team)?.reduce_value(op::Sum, 1u32)? == size);
            if round % 2 == 0 {
                let again = team.clone();
                world.team_destroy(team)?;
                let error = world
                    .on_team(&again)
                    .err()
                    .context("a destroyed team was used")?;
                ensure!(error.to_string().contains("does not exist"), "{error}");
            }
        }
    }
    // Every second PE meets the one after it, again and again.
    for _ in 0..100 {
        let me = world.my_pe();
        let other = if me.is_multiple_of(2) { me + 1 } else { me - 1 };
        if other < n_pes {
            world.sync_pe(other)?;
        }
    }
    let before = world
        .team_split_strided(&all, 0, 1, n_pes)?
        .context("everybody is in")?;
    world.enable_device(1)?;
    let after = world
        .team_split_strided(&all, 0, 1, n_pes)?
        .context("everybody is in")?;
    ensure!(before.id() == -1 && after.id() > 1, "{before:?} {after:?}");
    for team in [&before, &after, &world.team_world()?, &all] {
        ensure!(world.on_team(team)?.reduce_value(op::Sum, 1u32)? == n_pes);
    }
    let of_before = world
        .team_split_strided(&before, 0, 1, n_pes)?
        .context("everybody is in")?;
    ensure!(of_before.id() == -1);
    Ok(())
}
