//! Scenarios of streams: kernels and host calls in order on them, beside the World's own stream; who has a context.

use anyhow::{bail, Result};
use npushmem::{Args, ContextOptions, Error};
use npushmem_tests::kernels::CONTEXTS;

use crate::stand::{print, Stand};

/// Kernel A writes, a put with signal follows on the stream, the peer's stream waits for it, its kernel B reads. Meanwhile the World's own stream
/// meets all PEs again and again.
pub fn pipeline(s: &Stand) -> Result<()> {
    let rounds: usize = s.get("rounds", 8)?;
    let n: usize = s.get("n", 1000)?;
    let stream = s.world.create_stream()?;
    let module = s.world.load(&CONTEXTS)?;
    let (fill, sum, meet) = (
        module.function("ct_fill")?,
        module.function("ct_sum")?,
        module.function("ct_meet")?,
    );
    let from = s.world.alloc_zeroed::<u64>(n)?;
    let to = s.world.alloc_zeroed::<u64>(n)?;
    let back = s.world.alloc_zeroed::<u64>(n)?;
    let signal = s.world.alloc_zeroed::<u64>(2)?;
    let (next, before) = (s.next() as u32, s.before() as u32);
    s.world.barrier_all()?;
    let on = s.world.on_stream(&stream);
    for round in 0..rounds {
        let value = (s.me() * 1_000_000 + round as u64 * 1000) | 1;
        let args = Args::new().ptr(&from).u64(n as u64).u64(value);
        stream.launch(&fill, 1, &args)?;
        if round % 2 == 0 {
            on.put_signal(&to, 0, &from, 0, n, &signal, 0, round as u64 + 1, next)?;
        } else {
            on.put(&to, 0, &from, 0, n, next)?;
            on.put_signal(&to, 0, &from, 0, 0, &signal, 0, round as u64 + 1, next)?;
        }
        on.signal_wait(&signal, 0, round as u64 + 1)?;
        let args = Args::new().ptr(&to).ptr(&s.out);
        stream.launch(&sum, 1, &args.u64(n as u64).u64(10 + round as u64))?;
        on.get(&back, 0, &to, 0, n, next)?;
        on.barrier()?;
        if round % 3 == 0 {
            let args = Args::new().ctx().ptr(&s.out).u64(5);
            s.world.launch(&meet, 1, &args)?;
        }
    }
    stream.synchronize()?;
    s.world.synchronize()?;
    let mut wrong = 0u64;
    for round in 0..rounds as u64 {
        let value = (u64::from(before) * 1_000_000 + round * 1000) | 1;
        let n = n as u64;
        let wanted = n * value + n * (n - 1) / 2;
        let seen = s.results(10 + round as usize, 1)?[0];
        if seen != wanted {
            eprintln!("round {round}: sum {seen}, not {wanted}");
            wrong += 1;
        }
    }
    // What the next PE had in the last round came from here.
    let last = (s.me() * 1_000_000 + (rounds as u64 - 1) * 1000) | 1;
    let wanted: Vec<u64> = (0..n as u64).map(|i| last + i).collect();
    if s.world.to_vec(&back)? != wanted {
        eprintln!("get");
        wrong += 1;
    }
    // Collectives.
    let floats = s.world.alloc_zeroed::<f32>(100)?;
    let sums = s.world.alloc_zeroed::<f32>(100)?;
    s.world.write(&floats, 0, &vec![s.me() as f32 + 1.0; 100])?;
    s.world.barrier_all()?;
    on.sum_f32(&sums, &floats, 100)?;
    on.barrier()?;
    on.broadcast(&floats, &sums, 100, 0)?;
    stream.synchronize()?;
    let all = (1..=s.n_pes()).sum::<u64>() as f32;
    if s.world.to_vec(&floats)? != vec![all; 100] {
        eprintln!("collectives");
        wrong += 1;
    }
    print("wrong", wrong);
    s.world.barrier_all()?;
    drop((from, to, back, signal, floats, sums));
    stream.destroy()?;
    Ok(())
}

/// The host goes on while the stream waits for what only the host will give.
pub fn asynchronous(s: &Stand) -> Result<()> {
    let stream = s.world.create_stream()?;
    let signal = s.world.alloc_zeroed::<u64>(1)?;
    let from = s.world.alloc_zeroed::<u64>(1)?;
    let to = s.world.alloc_zeroed::<u64>(1)?;
    s.world.write(&from, 0, &[s.me() + 5])?;
    s.world.barrier_all()?;
    let on = s.world.on_stream(&stream);
    on.signal_wait(&signal, 0, 1)?;
    on.put(&to, 0, &from, 0, 1, s.next() as u32)?;
    on.quiet()?;
    let event = stream.event()?;
    print("early", u64::from(event.reached()?));
    s.world.put(&signal, 0, &[1], s.me() as u32)?;
    stream.synchronize()?;
    print("late", u64::from(event.reached()?));
    s.world.barrier_all()?;
    print(
        "wrong",
        u64::from(s.world.to_vec(&to)? != vec![s.before() + 5]),
    );
    s.world.barrier_all()?;
    // A wait that nobody ends is told at the next synchronize, and the stream goes on after recover().
    on.signal_wait(&signal, 0, 99)?;
    let error = stream.synchronize().err().map(|e| e.to_string());
    print("timeout", error.unwrap_or_default().replace('\n', " "));
    print(
        "refused",
        on.quiet().err().map(|e| e.to_string()).unwrap_or_default(),
    );
    s.world.recover()?;
    on.barrier()?;
    stream.synchronize()?;
    drop((signal, from, to));
    stream.destroy()?;
    Ok(())
}

/// A context that a kernel on one stream has: another stream is refused by the host, and by the device if the host was not told.
pub fn owners(s: &Stand) -> Result<()> {
    let first = s.world.create_stream()?;
    let second = s.world.create_stream()?;
    let context = s.world.create_context(ContextOptions::new())?;
    let signal = s.world.alloc_zeroed::<u64>(1)?;
    s.world.barrier_all()?;
    let hold = s.world.load(&CONTEXTS)?.function("ct_hold")?;
    let args = || Args::new().ctx().ptr(&signal);
    first.launch(&hold, 1, &args().u64(1).context(&context))?;
    let mut refusals = 0u64;
    for result in [
        second.launch(&hold, 1, &args().u64(0).context(&context)),
        s.world.launch(&hold, 1, &args().u64(0).context(&context)),
    ] {
        match result {
            Err(Error::ContextBusy { running }) => refusals += u64::from(running == "ct_hold"),
            other => bail!("not refused: {other:?}"),
        }
    }
    // The same stream may: kernels follow one another there. Another stream with other contexts may, too.
    first.launch(&hold, 1, &args().u64(1).context(&context))?;
    second.launch(&hold, 1, &args().u64(0).i32(0))?;
    second.synchronize()?;
    s.world.launch(&hold, 1, &args().u64(0).i32(0))?;
    s.world.synchronize()?;
    // A handle passed as a plain number: the owner word tells once the first kernel has taken it.
    let mut device = String::new();
    for _ in 0..2000 {
        second.launch(&hold, 1, &args().u64(0).i32(context.id()))?;
        match second.synchronize() {
            Ok(()) => std::thread::sleep(std::time::Duration::from_millis(2)),
            Err(error) => {
                device = error.to_string();
                break;
            }
        }
    }
    print("refusals", refusals);
    print("device", device.replace('\n', " "));
    s.world.put(&signal, 0, &[1], s.me() as u32)?;
    first.synchronize()?;
    second
        .launch(&hold, 1, &args().u64(0).context(&context))
        .err()
        .map_or_else(|| print("after", "accepted"), |error| print("after", error));
    s.world.recover()?;
    second.launch(&hold, 1, &args().u64(0).context(&context))?;
    second.synchronize()?;
    s.world.barrier_all()?;
    drop(signal);
    s.world.destroy_context(context)?;
    first.destroy()?;
    second.destroy()?;
    Ok(())
}
