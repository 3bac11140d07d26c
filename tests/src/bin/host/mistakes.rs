//! Scenarios of what is refused, and of waits that cannot end.

use anyhow::{ensure, Context as _, Result};
use npushmem::{Cmp, Error, HostContextOptions, ShmemError, Strides, World};

fn said<T>(result: Result<T, impl Into<Error>>, part: &str) -> Result<()> {
    let error = result
        .err()
        .map(Into::into)
        .with_context(|| format!("accepted, where {part:?} should be said"))?;
    ensure!(
        error.to_string().contains(part),
        "{part:?} is not in: {error}"
    );
    Ok(())
}

/// Wrong arguments, each with a reason; everything goes on.
pub fn refused(world: &World) -> Result<()> {
    let buffer = world.alloc_zeroed::<u64>(10)?;
    let ctx = world.ctx();
    let n_pes = world.n_pes();
    world.barrier_all()?;
    said(world.pe(n_pes), "is outside")?;
    said(ctx.p(buffer.at(0)?, 1, n_pes), "is outside")?;
    said(buffer.at(10), "10..11")?;
    said(buffer.slice(4..11), "4..11")?;
    said(buffer.slice(..)?.slice(3..)?.at(7), "7..8")?;
    said(
        ctx.put(&buffer, &[1, 2], 0),
        "10 elements of the destination for 2",
    )?;
    said(ctx.get(&mut [0; 11], &buffer, 0), "same length")?;
    let strides = |dest, src| Strides { dest, src };
    said(
        ctx.iput(&buffer, &[1; 4], strides(0, 1), 4, 0),
        "stride of 0",
    )?;
    said(ctx.iput(&buffer, &[1; 4], strides(4, 1), 4, 0), "12..13")?;
    said(
        ctx.ibput(&buffer, &[1; 9], strides(2, 3), 3, 2, 0),
        "stride of 2",
    )?;
    said(
        ctx.iget(&mut [0; 3], &buffer, strides(1, 3), 4, 0),
        "outside a buffer",
    )?;
    said(
        ctx.iget(&mut [0; 3], &buffer, strides(usize::MAX, 1), usize::MAX, 0),
        "outside a buffer",
    )?;
    said(
        ctx.put_sym(buffer.slice(..4)?, buffer.slice(2..6)?, world.me()),
        "overlap",
    )?;
    said(
        world.wait_until_all_vector(&buffer, &[], Cmp::Eq, &[1, 2]),
        "2 entries for 10",
    )?;
    said(
        world.test_any(&buffer, &[true], Cmp::Eq, 1),
        "1 entries for 10",
    )?;
    let all = world.on_all()?;
    said(
        all.broadcast(buffer.slice(..2)?, buffer.slice(..2)?, n_pes),
        "is outside",
    )?;
    said(
        all.alltoalls(&buffer, &buffer, strides(1, 0), 1),
        "stride of 0",
    )?;
    said(all.gather([0u8; 4096]), "up to 2048 bytes")?;
    said(
        all.reduce(npushmem::op::Sum, buffer.slice(1..5)?, buffer.slice(..4)?),
        "overlap",
    )?;
    if n_pes > 1 {
        said(all.fcollect(&buffer, buffer.slice(..10)?), "same length")?;
    }
    // Where the destination is short, all learn it, and the team goes on.
    said(
        all.collect(buffer.slice(5..5)?, buffer.slice(..2)?),
        "room for 0",
    )?;
    all.barrier()?;
    // A team that was destroyed has no contexts.
    let team = world
        .team_split_strided(&world.team_world()?, 0, 1, n_pes)?
        .context("everybody is in")?;
    let kept = team.clone();
    world.team_destroy(team)?;
    said(
        world.host_context(HostContextOptions::new().team(&kept)),
        "does not exist",
    )?;
    // Views of memory.
    ensure!(world.ptr(&buffer, n_pes - 1)?.is_some());
    ensure!(world.ptr(buffer.slice(..0)?, 0)?.is_none());
    world.barrier_all()?;
    // SAFETY: nobody writes between the barriers.
    ensure!(unsafe { world.as_slice(&buffer) }? == [0; 10]);
    world.barrier_all()?;
    // SAFETY: nobody else uses it between the barriers.
    unsafe { world.as_mut_slice(&buffer) }?[3] = 4;
    world.barrier_all()?;
    ensure!(ctx.g(buffer.at(3)?, world.ring(1))? == 4);
    Ok(())
}

/// Without mapped peers there are no collectives between hosts, and it is said; one's own memory works.
pub fn unshared(world: &World) -> Result<()> {
    let word = world.alloc_one::<u64>()?;
    said(world.on_all(), "NPUSHMEM_MAPPED")?;
    said(world.on_team(&world.team_world()?), "mapped")?;
    said(world.sync_pe(world.ring(1)), "mapped")?;
    let ctx = world.ctx();
    said(ctx.p(&word, 1, world.ring(1)), "not mapped")?;
    ctx.p(&word, 3, world.me())?;
    ensure!(ctx.atomic_fetch_inc(&word, world.me())? == 3);
    ensure!(world.wait_until(&word, Cmp::Eq, 4)? == 4);
    Ok(())
}

/// Members of a team in different collectives are told, and the team is of no use any more.
pub fn mismatch(world: &World) -> Result<()> {
    let buffer = world.alloc::<u64>(8)?;
    world.barrier_all()?;
    let all = world.on_all()?;
    let result = if world.my_pe() == 0 {
        all.sync()
    } else {
        all.broadcast(buffer.slice(..4)?, buffer.slice(..4)?, 1)
    };
    // The one who is alone hears it from the first that it sees; the others may have been served without it.
    if world.my_pe() == 0 {
        said(result, "a broadcast")?;
        said(all.sync(), "cannot be used any more")?;
    }
    Ok(())
}

/// Waits for what never comes end in time: a flag, a lock that is held, a PE that takes no part.
pub fn missing(world: &World) -> Result<()> {
    let flag = world.alloc_one::<u64>()?;
    let lock = world.alloc_lock()?;
    world.barrier_all()?;
    let timeout = |result: Result<(), Error>| match result {
        Err(Error::Shmem(ShmemError::Timeout { .. })) => Ok(()),
        other => anyhow::bail!("no timeout: {other:?}"),
    };
    if world.n_pes() == 1 {
        let held = world.set_lock(&lock)?;
        timeout(world.set_lock(&lock).map(drop))?;
        drop(held);
        return timeout(world.wait_until(&flag, Cmp::Ne, 0).map(drop));
    }
    // All but one wait for the last one, which waits for its flag meanwhile.
    if world.my_pe() + 1 < world.n_pes() {
        timeout(world.on_all()?.sync())
    } else {
        timeout(world.wait_until(&flag, Cmp::Ne, 0).map(drop))
    }
}

/// PE 1 ends everybody, wherever they are.
pub fn exit(world: &World) -> Result<()> {
    let flag = world.alloc_one::<u64>()?;
    world.barrier_all()?;
    if world.my_pe() == 1 {
        world.global_exit(17);
    }
    world.wait_until(&flag, Cmp::Ne, 0)?;
    Ok(())
}
