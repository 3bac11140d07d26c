//! Scenarios of contexts: apart from one another, every family, teams, limits, misuse, recovery.

use anyhow::{ensure, Context as _, Result};
use npushmem::{Context, ContextOptions, Error};
use npushmem_tests::kernels::CONTEXTS;

use crate::stand::{print, Stand};

/// Options of the scenario: the engine of the stand.
fn options(s: &Stand) -> ContextOptions {
    match s.engine {
        1 => ContextOptions::new().engine(npushmem::config::Engine::Mapped),
        2 => ContextOptions::new().engine(npushmem::config::Engine::Roce),
        _ => ContextOptions::new(),
    }
}

fn words(s: &Stand, seed: u64, n: usize) -> Vec<u64> {
    (0..n as u64)
        .map(|i| (s.me() + 1) * 1_000_003 + seed * 7919 + i * 17)
        .collect()
}

/// Requests of two contexts: completion or order of one of them.
pub fn apart(s: &Stand) -> Result<()> {
    let how = s.get("how", 0u64)?;
    let n: usize = s.get("n", 10)?;
    let first = s.world.create_context(options(s))?;
    let second = s.world.create_context(options(s))?;
    s.world
        .write(&s.b, 0, bytemuck::cast_slice(&words(s, 0, 2 * n)))?;
    s.world.barrier_all()?;
    s.world.reset_stats()?;
    let saved = s.engine | how << 8;
    let function = s.world.load(&CONTEXTS)?.function("ct_apart")?;
    let args = npushmem::Args::new().ctx().ptr(&s.a).ptr(&s.b).ptr(&s.out);
    let args = args.u64(saved).u64(s.next()).u64(n as u64);
    let args = args.u64(first.id() as u64).u64(second.id() as u64);
    s.world.launch(&function, 1, &args)?;
    s.world.synchronize()?;
    let seen = s.results(0, 5)?;
    for (key, value) in [
        "error",
        "first_doorbells",
        "first_polls",
        "second_doorbells",
        "second_polls",
    ]
    .iter()
    .zip(&seen)
    {
        print(key, value);
    }
    print("second_polls_after", s.world.context_stats(&second)?.polls);
    let all = s.world.stats()?;
    print("all_requests", all.data_requests);
    print(
        "default_requests",
        s.world.default_context_stats()?.data_requests,
    );
    // The host's quiet covers what the kernel left on any context.
    s.world.barrier_all()?;
    print("second_polls_host", s.world.context_stats(&second)?.polls);
    let mut seen = vec![0u64; 2 * n];
    s.world
        .read(&s.a, 0, bytemuck::cast_slice_mut::<u64, u8>(&mut seen))?;
    let wanted: Vec<u64> = (0..2 * n as u64)
        .map(|i| (s.before() + 1) * 1_000_003 + i * 17)
        .collect();
    print("wrong", u64::from(seen != wanted));
    s.world.barrier_all()?;
    s.world.destroy_context(first)?;
    s.world.destroy_context(second)?;
    Ok(())
}

/// Several contexts that take turns toward all PEs.
pub fn turns(s: &Stand) -> Result<()> {
    let (n, m) = (s.get("rounds", 20usize)?, s.get("contexts", 3usize)?);
    let made = (0..m)
        .map(|_| s.world.create_context(options(s)))
        .collect::<Result<Vec<Context>, Error>>()?;
    ensure!(made.iter().zip(1..).all(|(context, id)| context.id() == id));
    s.world
        .write(&s.b, 0, bytemuck::cast_slice(&words(s, 1, m * n * 8)))?;
    s.world.barrier_all()?;
    s.launch(&CONTEXTS, "ct_turns", s.cores, &[0, n as u64, m as u64, 0])?;
    s.world.barrier_all()?;
    let mut wrong = 0;
    let mut seen = vec![0u64; m * s.n_pes() as usize * 8];
    s.world
        .read(&s.a, 0, bytemuck::cast_slice_mut::<u64, u8>(&mut seen))?;
    for context in 0..m {
        for pe in 0..s.n_pes() {
            let slot = (context * s.n_pes() as usize + pe as usize) * 8;
            let base = (context * n + n - 1) as u64 * 8;
            let wanted = |j: u64| (pe + 1) * 1_000_003 + 7919 + (base + j) * 17;
            wrong += u64::from((0..8).any(|j| seen[slot + j as usize] != wanted(j)));
        }
    }
    print("wrong", wrong);
    s.world.barrier_all()?;
    for context in made {
        s.world.destroy_context(context)?;
    }
    Ok(())
}

/// Every family of calls, by a context of the world and by one of a team that counts the PEs backwards.
pub fn families(s: &Stand) -> Result<()> {
    let world = s.world.team_world()?;
    let backwards: Vec<u32> = (0..s.n_pes() as u32).rev().collect();
    let team = s
        .world
        .team_from_pes(&world, &backwards)?
        .context("this PE is in the team")?;
    let mut wrong = 0u64;
    for (kind, made) in [
        options(s),
        options(s).team(&team),
        options(s).private().no_store().serialized(),
    ]
    .into_iter()
    .enumerate()
    {
        let context = s.world.create_context(made)?;
        let number = context
            .team()
            .members()
            .iter()
            .position(|pe| u64::from(*pe) == s.next())
            .context("the next PE is in the team")?;
        s.clear()?;
        s.world
            .write(&s.b, 0, bytemuck::cast_slice(&words(s, 2, 64)))?;
        s.world.barrier_all()?;
        s.launch(
            &CONTEXTS,
            "ct_families",
            1,
            &[number as u64, 0, context.id() as u64, 0],
        )?;
        let seen = s.results(0, 2)?;
        if seen != [0, 0] {
            eprintln!("context {kind}: error {}, failed {:#x}", seen[0], seen[1]);
            wrong += 1;
        }
        s.world.barrier_all()?;
        // What arrived here comes from the PE before.
        let mut block = vec![0u64; 32];
        s.world
            .read(&s.a, 0, bytemuck::cast_slice_mut::<u64, u8>(&mut block))?;
        let theirs = (0..32u64).map(|i| (s.before() + 1) * 1_000_003 + 2 * 7919 + i * 17);
        if !block.iter().copied().eq(theirs) {
            eprintln!("context {kind}: another PE's data");
            wrong += 1;
        }
        s.world.barrier_all()?;
        s.world.destroy_context(context)?;
    }
    s.world.team_destroy(team)?;
    print("wrong", wrong);
    Ok(())
}

/// Making and destroying: again and again, too many, and by part of the PEs.
pub fn churn(s: &Stand) -> Result<()> {
    let mut wrong = 0u64;
    for round in 0..s.get("rounds", 6u64)? {
        let context = s.world.create_context(options(s))?;
        s.clear()?;
        s.world
            .write(&s.b, 0, bytemuck::cast_slice(&words(s, round, 64)))?;
        s.world.barrier_all()?;
        let id = context.id() as u64;
        s.launch(&CONTEXTS, "ct_families", 1, &[s.next(), 0, id, 0])?;
        wrong += u64::from(s.results(0, 2)? != [0, 0]);
        s.world.barrier_all()?;
        s.world.destroy_context(context)?;
    }
    // A team of every second PE makes one by itself; the others do nothing.
    let world = s.world.team_world()?;
    let some = s
        .world
        .team_split_strided(&world, 0, 2, (s.n_pes() as u32).div_ceil(2))?;
    if let Some(team) = some {
        let context = s.world.create_context(options(s).team(&team))?;
        let next = (team.my_pe() + 1) % team.n_pes();
        s.world
            .write(&s.b, 0, bytemuck::cast_slice(&words(s, 5, 64)))?;
        let id = context.id() as u64;
        s.launch(&CONTEXTS, "ct_families", 1, &[next.into(), 0, id, 0])?;
        wrong += u64::from(s.results(0, 2)? != [0, 0]);
        s.world.destroy_context(context)?;
        s.world.team_destroy(team)?;
    }
    s.world.barrier_all()?;
    let mut made = Vec::new();
    let refusal = loop {
        match s.world.create_context(ContextOptions::new().private()) {
            Ok(context) => made.push(context),
            Err(error) => break error.to_string(),
        }
    };
    print("made", made.len());
    print("refusal", refusal.replace('\n', " "));
    for context in made {
        s.world.destroy_context(context)?;
    }
    print("wrong", wrong);
    Ok(())
}

/// Handles, cores and numbers that a context does not have; then recovery, and everything works.
pub fn misuse(s: &Stand) -> Result<()> {
    let context = s.world.create_context(options(s).private())?;
    let id = context.id() as u64;
    let mut wrong = 0u64;
    let gone = s.world.create_context(options(s))?;
    let gone_id = gone.id() as u64;
    s.world.destroy_context(gone)?;
    for (n, k, said) in [
        (9u64, 0u64, "no context with the handle 9"),
        (gone_id, 3, "no context with the handle"),
        (u64::MAX, 3, "no context with the handle -1"),
        (
            1,
            1,
            "core 1 used a context that has queue pairs for 1 comm cores",
        ),
        (s.n_pes(), 2, "outside the job"),
    ] {
        let blocks = if k == 1 { s.cores } else { 1 };
        let result = s.launch(&CONTEXTS, "ct_misuse", blocks, &[s.next(), n, id, k]);
        match result {
            Err(error) if error.to_string().contains(said) => {}
            other => {
                eprintln!("case {k} with {n}: {other:?}");
                wrong += 1;
            }
        }
        s.world.barrier_all()?;
    }
    // A request that fails at the other side breaks queue pairs; contexts are mended with the rest.
    s.world.recover()?;
    s.clear()?;
    s.world
        .write(&s.b, 0, bytemuck::cast_slice(&words(s, 3, 64)))?;
    s.world.barrier_all()?;
    s.launch(&CONTEXTS, "ct_families", 1, &[s.next(), 0, id, 0])?;
    let seen = s.results(0, 2)?;
    if seen != [0, 0] {
        eprintln!("after recover(): {seen:x?}");
        wrong += 1;
    }
    s.world.barrier_all()?;
    s.world.destroy_context(context)?;
    print("wrong", wrong);
    Ok(())
}

/// A context that the budget does not hold.
pub fn budget(s: &Stand) -> Result<()> {
    let refused = s.world.create_context(options(s));
    let text = refused
        .err()
        .map_or_else(|| "accepted".to_string(), |error| error.to_string());
    print("refusal", text.replace('\n', " "));
    Ok(())
}

/// A kernel that is given a buffer where its context is due.
pub fn wrong(s: &Stand) -> Result<()> {
    let meet = s.world.load(&CONTEXTS)?.function("ct_meet")?;
    let args = npushmem::Args::new().ptr(&s.a).ptr(&s.out).u64(1);
    s.world.launch(&meet, 1, &args)?;
    let said = s.world.synchronize().err().map(|error| error.to_string());
    print("said", said.unwrap_or_default().replace('\n', " "));
    s.world.recover()?;
    let args = npushmem::Args::new().ctx().ptr(&s.out).u64(1);
    s.world.launch(&meet, 1, &args)?;
    s.world.synchronize()?;
    Ok(())
}
