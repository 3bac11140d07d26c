//! 08 MoE: an all-to-all whose sizes are known only at run time. Tokens go to the experts that a router chose for them, and come back.
//!
//! What a message-passing all-to-all needs, rows padded to the largest count, is compared with what the kernels moved: each row once,
//! to its place. The example also shows more heap than the default, options, and the counters that mean the same on hardware.

mod reference;

use anyhow::{Context, Result};
use clap::Parser;
use half::f16;
use npushmem::bootstrap::identity;
use npushmem::{Args, Config, Stats, World};
use npushmem_examples::MOE;
use reference::Problem;

/// Dispatch and combine of a mixture of experts, against a plain reference.
#[derive(Parser)]
struct Options {
    /// Tokens of each PE.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    tokens: u32,
    /// Features of a token.
    #[arg(long, default_value_t = 7168, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    hidden: u32,
    /// Experts of a token.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=16))]
    top_k: u32,
    /// Experts in all, spread over the PEs.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    experts: u32,
    /// Communicating cores of each PE.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=24))]
    cores: u32,
}

/// Tokens whose rows a core fetches together (moe.cpp).
const GROUP: usize = 8;

fn main() -> Result<()> {
    let options = Options::parse();
    if options.top_k > options.experts {
        eprintln!(
            "08-moe: --top-k {}: there are {} experts",
            options.top_k, options.experts
        );
        std::process::exit(2);
    }
    let (tokens, hidden) = (options.tokens as usize, options.hidden as usize);
    let (top_k, experts) = (options.top_k as usize, options.experts as usize);
    let cores = options.cores as usize;

    // What the heap needs follows from the options and the number of PEs, which the environment tells before init.
    let mut config = Config::from_env()?;
    let who = identity::find(&config, |name| std::env::var(name).ok())?;
    let pes = who.n_pes as usize;
    let per_pe = experts.div_ceil(pes);
    // All tokens may choose the experts of one PE. Memory that no row comes to costs nothing on the emulator.
    let rows = pes * tokens * top_k.min(per_pe);
    let width = experts.next_multiple_of(16);
    let needed = (rows + 2 * tokens + 2 * cores * GROUP * top_k) * hidden * size_of::<f16>()
        + (3 * tokens * top_k + (pes + 1) * cores * width + per_pe + 1) * size_of::<u32>();
    config.symmetric_size = config.symmetric_size.at_least(needed as u64 + (1 << 20));
    let world = World::init_with(config)?;
    let me = world.my_pe() as usize;
    let problem = Problem {
        pes,
        tokens,
        hidden,
        top_k,
        experts,
    };

    let token_rows = world.alloc::<f16>(tokens * hidden)?;
    let routes = world.alloc::<i32>(tokens * top_k)?;
    let weights = world.alloc::<f32>(tokens * top_k)?;
    let slots = world.alloc::<i32>(tokens * top_k)?;
    let counts = world.alloc_zeroed::<i32>((pes + 1) * cores * width)?;
    let starts = world.alloc_zeroed::<i32>(per_pe + 1)?;
    let received = world.alloc::<f16>(rows * hidden)?;
    let staging = world.alloc::<f16>(cores * 2 * GROUP * top_k * hidden)?;
    let results = world.alloc::<f16>(tokens * hidden)?;
    for token in 0..tokens {
        world.write(&token_rows, token * hidden, &problem.token(me, token))?;
    }
    let routing = problem.routing(me);
    world.write(&routes, 0, &routing.experts)?;
    world.write(&weights, 0, &routing.weights)?;
    world.enable_device(options.cores)?;
    world.barrier_all()?;

    let module = world.load(&MOE)?;
    let args = Args::new().ctx();
    let args = args.ptr(&token_rows).ptr(&routes).ptr(&weights).ptr(&slots);
    let args = args.ptr(&counts).ptr(&starts).ptr(&received);
    let args = args.ptr(&staging).ptr(&results);
    let args = args
        .u32(options.tokens)
        .u32(options.hidden)
        .u32(options.top_k)
        .u32(options.experts);
    // A model would launch all three and synchronize once. Here each one's work is looked at.
    let run = |kernel| -> Result<Stats> {
        world.reset_stats()?;
        world.launch(&module.function(kernel)?, options.cores, &args)?;
        world.synchronize()?;
        Ok(world.stats()?)
    };

    let dispatched = run("moe_dispatch")?;
    let starts_there = world.to_vec(&starts)?;
    let mut row = vec![f16::ZERO; hidden];
    let expected = problem.received(me);
    for (at, source) in expected.iter().enumerate() {
        world.read(&received, at * hidden, &mut row)?;
        anyhow::ensure!(
            row == problem.token(source.pe, source.token),
            "PE {me}: row {at} is not token {} of PE {}",
            source.token,
            source.pe
        );
    }
    let own_experts = per_pe.min(experts.saturating_sub(me * per_pe));
    let end = starts_there.get(own_experts).copied().unwrap_or(0);
    anyhow::ensure!(
        end as usize == expected.len(),
        "PE {me}: {end} rows instead of {}",
        expected.len()
    );

    run("moe_experts")?;
    let combined = run("moe_combine")?;
    for token in 0..tokens {
        world.read(&results, token * hidden, &mut row)?;
        let expected = problem.result(me, token, &routing);
        // The kernel rounds where the reference rounds, so the bits are the same.
        anyhow::ensure!(
            row == expected,
            "PE {me}: the result of token {token} differs"
        );
    }
    println!(
        "verified: PE {me} received {} rows and combined {tokens} tokens of {hidden} features",
        expected.len()
    );

    let dispatched = total(&world, &dispatched)?;
    let combined = total(&world, &combined)?;
    if me == 0 {
        report(&problem, &dispatched, &combined);
    }
    drop((token_rows, routes, weights, slots, counts));
    drop((starts, received, staging, results, module));
    world.finalize()?;
    Ok(())
}

/// Bytes, requests and doorbells of all PEs.
fn total(world: &World, own: &Stats) -> Result<[u64; 3]> {
    let own = [
        own.roce_bytes + own.mapped_bytes,
        own.data_requests,
        own.sq_doorbells,
    ];
    let mut sum = [0; 3];
    for bytes in world.exchange(bytemuck::bytes_of(&own))? {
        let theirs: [u64; 3] = bytemuck::try_pod_read_unaligned(&bytes)
            .ok()
            .context("a PE told something else")?;
        for (sum, more) in sum.iter_mut().zip(theirs) {
            *sum += more;
        }
    }
    Ok(sum)
}

fn report(problem: &Problem, dispatch: &[u64; 3], combine: &[u64; 3]) {
    let row = (problem.hidden * size_of::<f16>()) as u64;
    let (exact, capacity) = problem.rows();
    let padded = (problem.pes * problem.experts * capacity) as u64 * row;
    println!(
        "{} PEs, {} tokens a PE, hidden {}, top {} of {} experts, {} rows in all",
        problem.pes, problem.tokens, problem.hidden, problem.top_k, problem.experts, exact
    );
    println!("            bytes moved    of which rows   requests  doorbells");
    for (name, [bytes, requests, doorbells]) in [("dispatch", dispatch), ("combine", combine)] {
        let rows = exact as u64 * row;
        println!("{name:<9} {bytes:>13} {rows:>16} {requests:>10} {doorbells:>10}");
    }
    println!(
        "padded    {padded:>13}   each way: {capacity} rows from every PE to every expert; {:.1} times as much",
        padded as f64 / (exact as u64 * row) as f64
    );
}
