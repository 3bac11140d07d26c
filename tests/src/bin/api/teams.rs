//! Scenarios of teams: members and numbers against a plain model, barriers of many teams, handles that come and go.

use anyhow::{bail, ensure, Context as _, Result};
use npushmem::Team;
use npushmem_tests::kernels::TEAMS;

use crate::stand::{print, Numbers, Stand};

/// What a kernel is told about a team, against the members that it should have (PEs of the job).
fn check(s: &Stand, team: &Team, members: &[u32], what: &str) -> Result<()> {
    ensure!(
        team.members() == members,
        "{what}: members {:?}, not {members:?}",
        team.members()
    );
    let me = members
        .iter()
        .position(|pe| u64::from(*pe) == s.me())
        .context("not a member")?;
    ensure!(
        team.my_pe() as usize == me && team.n_pes() as usize == members.len(),
        "{what}: number {}",
        team.my_pe()
    );
    s.launch(&TEAMS, "tm_query", 1, &[team.id() as u64, 0])?;
    let words = s.results(0, members.len() + 3)?;
    let mut expected = vec![me as u64, members.len() as u64];
    expected.extend(members.iter().map(|pe| u64::from(*pe)));
    expected.push(0);
    ensure!(
        words == expected,
        "{what}: the kernel saw {words:?}, not {expected:?}"
    );
    Ok(())
}

/// Rounds of the team's barrier or sync, on all cores.
pub fn rounds(s: &Stand, team: &Team, n: u64, k: u64) -> Result<u64> {
    let cores = s.cores as usize;
    s.clear()?;
    s.world
        .exchange(&[])
        .context("all PEs clear before any begins")?;
    s.launch(&TEAMS, "tm_rounds", s.cores, &[team.id() as u64, n, k])?;
    Ok(s.results(0, 2 * cores)?.iter().sum())
}

/// Random teams of teams, each way of making them, against plain lists.
pub fn model(s: &Stand) -> Result<()> {
    let seed: u64 = s.get("seed", 1)?;
    let mut numbers = Numbers(seed * 991 + 3);
    let world = s.world.team_world()?;
    check(
        s,
        &world,
        &(0..s.n_pes() as u32).collect::<Vec<_>>(),
        "world",
    )?;
    let shared = s.world.team_shared()?;
    ensure!(
        shared.members() == s.world.mapped_pes(),
        "shared: {:?}",
        shared.members()
    );
    let mut made = 0u64;
    for round in 0..s.get("rounds", 12u64)? {
        // All PEs draw the same numbers, whether they are members or not.
        let mut parent = Some(world.clone());
        let mut list: Vec<u32> = (0..s.n_pes() as u32).collect();
        let mut teams = Vec::new();
        for depth in 0..3 {
            let n = list.len() as u64;
            let what = format!("round {round}, depth {depth}, of {list:?}");
            match numbers.between(0, 2) {
                0 => {
                    let start = numbers.between(0, n - 1) as u32;
                    let up = numbers.between(0, 1) == 1;
                    let stride = numbers.between(1, n) as u32;
                    let room = if up {
                        (n as u32 - 1 - start) / stride
                    } else {
                        start / stride
                    };
                    let size = numbers.between(1, u64::from(room) + 1) as u32;
                    let step = if up { stride as i32 } else { -(stride as i32) };
                    let chosen: Vec<u32> = (0..size as i32)
                        .map(|i| list[(start as i32 + i * step) as usize])
                        .collect();
                    if let Some(of) = &parent {
                        let team = s
                            .world
                            .team_split_strided(of, start, step, size)
                            .with_context(|| what.clone())?;
                        ensure!(
                            team.is_some() == chosen.contains(&(s.me() as u32)),
                            "{what}: {team:?}"
                        );
                        if let Some(team) = &team {
                            check(s, team, &chosen, &what)?;
                            teams.push(team.clone());
                        }
                        parent = team;
                    }
                    list = chosen;
                }
                1 => {
                    let width = numbers.between(1, n + 1) as usize;
                    if let Some(of) = &parent {
                        let (x, y) = s
                            .world
                            .team_split_2d(of, width as u32)
                            .with_context(|| what.clone())?;
                        let me = of.my_pe() as usize;
                        let wide = width.min(list.len());
                        let row: Vec<u32> = list
                            .iter()
                            .copied()
                            .enumerate()
                            .filter(|(i, _)| i / wide == me / wide)
                            .map(|(_, pe)| pe)
                            .collect();
                        let column: Vec<u32> = list
                            .iter()
                            .copied()
                            .enumerate()
                            .filter(|(i, _)| i % wide == me % wide)
                            .map(|(_, pe)| pe)
                            .collect();
                        check(s, &x, &row, &what)?;
                        check(s, &y, &column, &what)?;
                        ensure!(of.translate(of.my_pe(), &x) == Some(x.my_pe()));
                        teams.extend([x, y]);
                    }
                }
                _ => {
                    // A permutation of some of them.
                    let mut order: Vec<u32> = (0..n as u32).collect();
                    for i in (1..order.len()).rev() {
                        order.swap(i, numbers.between(0, i as u64) as usize);
                    }
                    order.truncate(numbers.between(1, n) as usize);
                    let chosen: Vec<u32> = order.iter().map(|i| list[*i as usize]).collect();
                    if let Some(of) = &parent {
                        let team = s
                            .world
                            .team_from_pes(of, &order)
                            .with_context(|| what.clone())?;
                        ensure!(
                            team.is_some() == chosen.contains(&(s.me() as u32)),
                            "{what}: {team:?}"
                        );
                        if let Some(team) = &team {
                            check(s, team, &chosen, &what)?;
                            teams.push(team.clone());
                        }
                        parent = team;
                    }
                    list = chosen;
                }
            }
        }
        made += teams.len() as u64;
        s.world.barrier_all()?;
        for team in teams {
            s.world.team_destroy(team)?;
        }
    }
    print("made", made);
    Ok(())
}

/// Barriers of the world, of halves, rows and columns, and of an odd list, again and again.
pub fn barriers(s: &Stand) -> Result<()> {
    let n: u64 = s.get("n", 60)?;
    let world = s.world.team_world()?;
    let mut wrong = 0;
    let half = s.me() % 2;
    let size = (s.n_pes() - half).div_ceil(2) as u32;
    // Both halves are made by everybody, in one order; each PE is in one.
    let evens = s
        .world
        .team_split_strided(&world, 0, 2, s.n_pes().div_ceil(2) as u32)?;
    let odds = s
        .world
        .team_split_strided(&world, 1, 2, (s.n_pes() / 2) as u32)?;
    let mine = if half == 0 { evens } else { odds };
    let Some(mine) = mine else {
        bail!("in neither half")
    };
    ensure!(mine.n_pes() == size);
    let (row, column) = s.world.team_split_2d(&world, 2)?;
    for k in 0..3 {
        for team in [&world, &mine, &row, &column] {
            wrong += rounds(s, team, n, k)?;
            s.world.barrier_all()?;
        }
    }
    print("wrong", wrong);
    Ok(())
}

/// A team is made, used and destroyed, many times.
pub fn churn(s: &Stand) -> Result<()> {
    let world = s.world.team_world()?;
    let rounds: u32 = s.get("rounds", 100)?;
    let mut wrong = 0u64;
    let n = s.n_pes() as u32;
    for round in 0..rounds {
        let start = round % n;
        let size = (n - start).min(1 + round % 3);
        if let Some(team) = s.world.team_split_strided(&world, start, 1, size)? {
            s.launch(&TEAMS, "tm_rounds", s.cores, &[team.id() as u64, 3, 1])?;
            let errors = s.results(s.cores as usize, s.cores as usize)?;
            wrong += errors.iter().sum::<u64>();
            s.world.team_destroy(team)?;
        }
    }
    print("wrong", wrong);
    Ok(())
}

/// What is refused, and how it is said.
pub fn mistakes(s: &Stand) -> Result<()> {
    let world = s.world.team_world()?;
    // Arguments that differ.
    let error = s
        .world
        .team_split_strided(&world, s.me() as u32 % 2, 1, 1)
        .err()
        .context("differing arguments were accepted")?
        .to_string();
    ensure!(error.contains("another call"), "{error}");
    // The lasting teams.
    let error = s
        .world
        .team_destroy(world.clone())
        .err()
        .context("the world was destroyed")?
        .to_string();
    ensure!(error.contains("cannot be destroyed"), "{error}");
    // A destroyed team as parent.
    let team = s
        .world
        .team_split_strided(&world, 0, 1, s.n_pes() as u32)?
        .context("everybody is in")?;
    s.world.team_destroy(team.clone())?;
    let error = s
        .world
        .team_split_strided(&team, 0, 1, 1)
        .err()
        .context("a destroyed team was split")?
        .to_string();
    ensure!(error.contains("does not exist"), "{error}");
    // As many teams as there are, then one more.
    let mut teams = Vec::new();
    let error = loop {
        match s.world.team_split_strided(&world, 0, 1, s.n_pes() as u32) {
            Ok(Some(team)) => teams.push(team),
            Ok(None) => bail!("not in a team of everybody"),
            Err(error) => break error.to_string(),
        }
    };
    ensure!(
        teams.len() == 62 && error.contains("64"),
        "{} teams, then: {error}",
        teams.len()
    );
    print("behind", rounds(s, &teams[61], 5, 0)?);
    s.world.barrier_all()?;
    for team in teams {
        s.world.team_destroy(team)?;
    }
    // A kernel with a team that this PE is not in.
    let result = s.launch(&TEAMS, "tm_rounds", 1, &[17, 3, 0]);
    let error = result.err().context("a barrier of no team")?.to_string();
    ensure!(error.contains("no team with the handle 17"), "{error}");
    s.world.barrier_all()?;
    s.world.recover()?;
    // Recovered, teams work on.
    let (row, _) = s.world.team_split_2d(&world, 2)?;
    s.world.recover()?;
    print("behind", rounds(s, &row, 5, 0)?);
    Ok(())
}
