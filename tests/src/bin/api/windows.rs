//! Scenarios of registered buffers and windows: sizes, both engines, the heap's other side, misuse, after the end.

use anyhow::Result;
use npushmem::{DeviceBuffer, Error};
use npushmem_tests::kernels::CONTEXTS;

use crate::stand::{print, Numbers, Stand};

fn pattern(pe: u64, round: u64, n: usize) -> Vec<u8> {
    (0..n as u64)
        .map(|i| (i * 11 + pe * 37 + round * 5 + i / 251) as u8)
        .collect()
}

/// (ctx, a, b, out, engine, pe, k, window, offset, local, n)
fn go(s: &Stand, k: u64, window: i32, offset: u64, local: u64, n: u64) -> Result<(), Error> {
    let words = [s.next(), k, window as u64, offset, local, n];
    s.launch(&CONTEXTS, "ct_window", 1, &words)
}

fn read(buffer: &DeviceBuffer, offset: u64, n: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0u8; n];
    buffer.read(offset, &mut bytes)?;
    Ok(bytes)
}

/// Puts and gets of many sizes between a registered buffer and windows.
pub fn moves(s: &Stand) -> Result<()> {
    let size: u64 = s.get("size", 3 << 20)?;
    let window = s.world.open_window(s.world.device_buffer(size)?)?;
    let near = s.world.register_buffer(s.world.device_buffer(size + 64)?)?;
    let heap_unmapped = s.get("unmapped", 0u64)? != 0;
    let mut wrong = 0u64;
    if u64::from(window.mapped_pes()) != if heap_unmapped { 1 } else { s.n_pes() } {
        eprintln!("{} parts are mapped", window.mapped_pes());
        wrong += 1;
    }
    let mut numbers = Numbers(s.get("seed", 1u64)? * 991 + 3);
    let limit: u64 = s.get("limit", 1 << 20)?;
    let mut sizes = vec![
        0,
        1,
        7,
        31,
        33,
        63,
        64,
        65,
        4095,
        limit - 1,
        limit,
        limit + 1,
        size,
    ];
    sizes.extend((0..8).map(|_| numbers.between(1, size)));
    for (round, n) in (0u64..).zip(sizes) {
        let offset = numbers.between(0, size - n);
        let from = numbers.between(0, 64);
        let data = pattern(s.me(), round, n as usize);
        near.memory().write(from, &data)?;
        s.world.barrier_all()?;
        go(s, 0, window.id(), offset, near.address() + from, n)?;
        s.world.barrier_all()?;
        let theirs = pattern(s.before(), round, n as usize);
        if read(window.memory(), offset, n as usize)? != theirs {
            eprintln!("put of {n} bytes at {offset}");
            wrong += 1;
        }
        // And back again: what the next PE has is what this one sent.
        near.memory().write(from, &vec![0u8; n as usize])?;
        go(s, 1, window.id(), offset, near.address() + from, n)?;
        if read(near.memory(), from, n as usize)? != data {
            eprintln!("get of {n} bytes at {offset}");
            wrong += 1;
        }
        s.world.barrier_all()?;
    }
    // With a signal, by registers and atomics, from UB; and between the heap and the registered buffer.
    s.clear()?;
    let data = pattern(s.me(), 99, 5000);
    near.memory().write(0, &data)?;
    s.world.barrier_all()?;
    go(s, 2, window.id(), 128, near.address(), 5000)?;
    if read(window.memory(), 128, 5000)? != pattern(s.before(), 99, 5000) {
        eprintln!("put_signal");
        wrong += 1;
    }
    s.world.barrier_all()?;
    for (k, n) in [(3u64, 9u64), (4, 3001)] {
        go(s, k, window.id(), 4096, near.address(), n)?;
        let seen = s.results(0, 2)?;
        if seen != [0, 0] {
            eprintln!("case {k}: {seen:?}");
            wrong += 1;
        }
        s.world.barrier_all()?;
    }
    go(s, 5, 0, 0, near.address() + 3, 4001)?;
    s.world.barrier_all()?;
    let mut seen = vec![0u8; 4001];
    s.world.read(&s.a, 0, &mut seen)?;
    if seen != pattern(s.before(), 99, 5000)[3..4004] {
        eprintln!("from a registered buffer to the heap");
        wrong += 1;
    }
    go(s, 6, 0, 0, near.address() + 5001, 4001)?;
    if read(near.memory(), 5001, 4001)? != data[3..4004] {
        eprintln!("from the heap to a registered buffer");
        wrong += 1;
    }
    s.world.barrier_all()?;
    s.world.deregister(near)?;
    s.world.close_window(window)?;
    print("wrong", wrong);
    Ok(())
}

/// Ranges outside, handles that are gone, memory that nobody registered, sizes that differ; a context made later sees them, too.
pub fn misuse(s: &Stand) -> Result<()> {
    let size = 10_000u64;
    let window = s.world.open_window(s.world.device_buffer(size)?)?;
    let id = window.id();
    let near = s.world.register_buffer(s.world.device_buffer(size)?)?;
    let stranger = s.world.device_buffer(size)?;
    let mut wrong = 0u64;
    let mut expect = |what: &str, result: Result<(), Error>, said: &str| -> Result<()> {
        let right = match &result {
            Ok(()) => said.is_empty(),
            Err(error) => !said.is_empty() && error.to_string().contains(said),
        };
        if !right {
            eprintln!("{what}: {result:?}");
            wrong += 1;
        }
        s.world.barrier_all()?;
        Ok(())
    };
    let local = near.address();
    let unregistered = if s.engine == 2 {
        "neither in the symmetric heap nor in a registered buffer"
    } else {
        ""
    };
    expect("inside", go(s, 0, id, 0, local, size), "")?;
    expect("nothing, at the end", go(s, 0, id, size, local, 0), "")?;
    expect(
        "a byte too many",
        go(s, 0, id, 1, local, size),
        "leave window",
    )?;
    expect(
        "behind the end",
        go(s, 1, id, size + 1, local, 0),
        "leave window",
    )?;
    expect(
        "far away",
        go(s, 0, id, u64::MAX / 2, local, 1),
        "leave window",
    )?;
    expect(
        "no such window",
        go(s, 0, 63, 0, local, 1),
        "no window with the handle 63",
    )?;
    expect(
        "a negative handle",
        go(s, 1, -1, 0, local, 1),
        "no window with the handle -1",
    )?;
    expect(
        "unregistered source",
        go(s, 5, 0, 0, stranger.address(), 100),
        unregistered,
    )?;
    expect(
        "unregistered destination",
        go(s, 6, 0, 0, stranger.address(), 100),
        unregistered,
    )?;
    let over = if s.engine == 2 {
        "registered buffer"
    } else {
        ""
    };
    expect(
        "over the end of a registered buffer",
        go(s, 5, 0, 0, local + size - 50, 51),
        over,
    )?;
    s.world.deregister(near)?;
    let again = s.world.device_buffer(size)?;
    expect(
        "after deregistration",
        go(s, 5, 0, 0, again.address(), 100),
        unregistered,
    )?;
    s.world.close_window(window)?;
    expect(
        "a closed window",
        go(s, 0, id, 0, s.b.addr(), 1),
        "no window with the handle",
    )?;
    let odd = s.world.device_buffer(100 + s.me() % 2)?;
    match s.world.open_window(odd) {
        Err(error) if s.n_pes() > 1 && error.to_string().contains("same size") => {}
        Err(error) => {
            eprintln!("sizes that differ: {error}");
            wrong += 1;
        }
        Ok(window) => {
            wrong += u64::from(s.n_pes() > 1);
            s.world.close_window(window)?;
        }
    }
    // The entries are used again, and survive recovery.
    let window = s.world.open_window(s.world.device_buffer(4096)?)?;
    s.world.recover()?;
    let data = pattern(s.me(), 7, 4096);
    s.world.write(&s.b, 0, &data)?;
    s.world.barrier_all()?;
    go(s, 0, window.id(), 0, s.b.addr(), 4096)?;
    s.world.barrier_all()?;
    if read(window.memory(), 0, 4096)? != pattern(s.before(), 7, 4096) {
        eprintln!("after recover()");
        wrong += 1;
    }
    s.world.close_window(window)?;
    print("wrong", wrong);
    Ok(())
}
