//! put, get, p, g, put with signal: latency, bandwidth, message rate.

use super::figure::{Axis, Figure, Unit};
use super::plan::{Plan, Scope};
use super::step::{Kernel, Peer, Scale, Step, Whose, WINDOW};
use super::Engine;

/// Kinds of kernels/bench_rma.cpp.
const PUT: u64 = 0;
const GET: u64 = 1;
const PUT_NBI: u64 = 2;
const GET_NBI: u64 = 3;
const P: u64 = 4;
const G: u64 = 5;
const PUT_QUIET: u64 = 6;
const P_QUIET: u64 = 7;
/// Kinds of kernels/bench_pingpong.cpp.
const TURN_PUT_SIGNAL: u64 = 0;
const TURN_P: u64 = 1;
const TURN_SIGNAL_SET: u64 = 2;
const TURN_SIGNAL_ADD: u64 = 3;
const TURN_PUT_FENCE_P: u64 = 4;

/// Most calls of a sample of a latency, and of a rate.
const LATENCY_CALLS: u64 = 200;
const RATE_CALLS: u64 = 4096;
/// Bytes of the messages whose rate is measured, and calls between two quiets unless the x axis says.
const SMALL: u64 = 8;
const BATCH: u64 = 64;

/// Bytes on the x axis.
pub const SIZE: Axis = Axis {
    label: "message size",
    unit: Unit::Bytes,
};
const LATENCY: Axis = Axis {
    label: "latency",
    unit: Unit::Seconds,
};
const RATE: Axis = Axis {
    label: "messages",
    unit: Unit::PerSecond,
};

/// A step on PE 0 toward the next one.
fn one_sided(
    scope: &Scope,
    engine: Engine,
    kind: u64,
    n: u64,
    calls: u64,
    cores: u32,
    batch: u64,
) -> Step {
    Step {
        kernel: Kernel::Rma,
        engine: engine as u32,
        kind,
        pes: 1,
        cores,
        peer: Peer::Pe(1 % scope.pes),
        n,
        calls,
        samples: scope.samples,
        extra: batch,
        room: u64::from(cores) * n.max(WINDOW),
        whose: Whose::First,
    }
}

/// One call after the other.
fn latency(scope: &Scope, engine: Engine, kind: u64, n: u64) -> (Scale, Step) {
    let calls = scope.calls(n, LATENCY_CALLS);
    let step = one_sided(scope, engine, kind, n, calls, 1, 1);
    (Scale::Time(calls as f64), step)
}

/// Half a round trip between PEs 0 and 1; from PE 0 to itself where there is one PE.
fn turns(scope: &Scope, engine: Engine, kind: u64, n: u64) -> (Scale, Step) {
    let calls = scope.calls(2 * n, LATENCY_CALLS);
    let pes = scope.pes.min(2);
    let step = Step {
        kernel: Kernel::PingPong,
        engine: engine as u32,
        kind,
        pes,
        cores: 1,
        peer: Peer::Next,
        n,
        calls,
        samples: scope.samples,
        extra: 0,
        room: n.next_multiple_of(64) + 64,
        whose: Whose::First,
    };
    (Scale::Time(calls as f64 * f64::from(pes)), step)
}

/// Latency of put by size.
pub fn put(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "put-latency",
        "Put latency",
        "put: until the source may be changed; + quiet: until it is visible at the target; put, fence, p: half a round trip",
        SIZE,
        LATENCY,
    ));
    for &engine in &scope.engines {
        for (kind, label) in [(PUT, "put"), (PUT_QUIET, "put + quiet")] {
            for &n in &scope.sizes {
                let (scale, step) = latency(scope, engine, kind, n);
                plan.point(
                    figure,
                    &format!("{} {label}", engine.name()),
                    n,
                    scale,
                    step,
                );
            }
        }
        for &n in &scope.sizes {
            let (scale, step) = turns(scope, engine, TURN_PUT_FENCE_P, n);
            plan.point(
                figure,
                &format!("{} put, fence, p", engine.name()),
                n,
                scale,
                step,
            );
        }
    }
}

/// Latency of get by size.
pub fn get(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "get-latency",
        "Get latency",
        "get: until the data is there",
        SIZE,
        LATENCY,
    ));
    for &engine in &scope.engines {
        for &n in &scope.sizes {
            let (scale, step) = latency(scope, engine, GET, n);
            plan.point(figure, engine.name(), n, scale, step);
        }
    }
}

/// Latency of put with signal by size.
pub fn put_signal(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "put-signal-latency",
        "Put with signal, latency",
        "half a round trip: from the call to the end of the other PE's wait",
        SIZE,
        LATENCY,
    ));
    for &engine in &scope.engines {
        for &n in &scope.sizes {
            let (scale, step) = turns(scope, engine, TURN_PUT_SIGNAL, n);
            plan.point(figure, engine.name(), n, scale, step);
        }
    }
}

/// Which calls on single words are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    P,
    G,
    All,
}

/// Latency of p, g and signals: 8 bytes.
pub fn words(plan: &mut Plan, scope: &Scope, which: Words) {
    let figure = plan.figure(Figure::new(
        "word-latency",
        "Latency of 8-byte calls",
        "p: until the call returns; + quiet: until it is visible; turns: half a round trip; g: until the value is there",
        Axis {
            label: "call",
            unit: Unit::Name,
        },
        LATENCY,
    ));
    for &engine in &scope.engines {
        let mut x = 0;
        let mut add = |name: &'static str, (scale, step): (Scale, Step)| {
            plan.named(figure, engine.name(), x, name, scale, step);
            x += 1;
        };
        if which != Words::G {
            add("p", latency(scope, engine, P, SMALL));
            add("p + quiet", latency(scope, engine, P_QUIET, SMALL));
            add("p, turns", turns(scope, engine, TURN_P, SMALL));
        }
        if which != Words::P {
            add("g", latency(scope, engine, G, SMALL));
        }
        if which == Words::All {
            add(
                "signal set, turns",
                turns(scope, engine, TURN_SIGNAL_SET, SMALL),
            );
            add(
                "signal add, turns",
                turns(scope, engine, TURN_SIGNAL_ADD, SMALL),
            );
        }
    }
}

/// Bandwidth by size, and by cores where there are several.
pub fn bandwidth(plan: &mut Plan, scope: &Scope) {
    let y = Axis {
        label: "bandwidth",
        unit: Unit::BytesPerSecond,
    };
    let about = |cores: u32| {
        format!("{BATCH} nbi calls, then quiet; {cores} core(s) of one PE, toward one other")
    };
    let by_size = plan.figure(Figure::new(
        "bandwidth",
        "Bandwidth",
        about(scope.cores),
        SIZE,
        y.clone(),
    ));
    let kinds = [(PUT_NBI, "put"), (GET_NBI, "get")];
    let step = |engine, kind, n, cores: u32| {
        let calls = scope.calls(n, RATE_CALLS).max(8);
        let amount = n as f64 * calls as f64 * f64::from(cores);
        (
            Scale::PerSecond(amount),
            one_sided(scope, engine, kind, n, calls, cores, BATCH),
        )
    };
    for &engine in &scope.engines {
        for (kind, label) in kinds {
            for &n in &scope.sizes {
                let (scale, step) = step(engine, kind, n, scope.cores);
                plan.point(
                    by_size,
                    &format!("{} {label}", engine.name()),
                    n,
                    scale,
                    step,
                );
            }
        }
    }
    let largest = scope.sizes.last().copied().unwrap_or(SMALL);
    if scope.cores > 1 {
        let by_cores = plan.figure(Figure::new(
            "bandwidth-cores",
            format!("Bandwidth by cores, {}", super::figure::bytes(largest)),
            format!("{BATCH} nbi calls, then quiet; cores of one PE, toward one other"),
            CORES,
            y,
        ));
        for &engine in &scope.engines {
            for (kind, label) in kinds {
                for cores in Scope::doubling(1, scope.cores) {
                    let (scale, step) = step(engine, kind, largest, cores);
                    plan.point(
                        by_cores,
                        &format!("{} {label}", engine.name()),
                        cores.into(),
                        scale,
                        step,
                    );
                }
            }
        }
    }
}

/// Cores on the x axis.
pub const CORES: Axis = Axis {
    label: "cores",
    unit: Unit::Cores,
};

/// Message rate by calls between two quiets, by size, and by cores where there are several.
pub fn rate(plan: &mut Plan, scope: &Scope) {
    let step = |engine, kind, n, cores: u32, batch: u64| {
        let calls = scope.calls(n, RATE_CALLS).max(batch);
        let calls = calls - calls % batch;
        let amount = calls as f64 * f64::from(cores);
        (
            Scale::PerSecond(amount),
            one_sided(scope, engine, kind, n, calls, cores, batch),
        )
    };
    let kinds = [(PUT_NBI, "put_nbi"), (GET_NBI, "get_nbi")];
    let by_batch = plan.figure(Figure::new(
        "rate-batch",
        "Message rate by batch, 8 bytes",
        "nbi calls between two quiets; one core",
        Axis {
            label: "calls between two quiets",
            unit: Unit::Calls,
        },
        RATE,
    ));
    let by_size = plan.figure(Figure::new(
        "rate-size",
        "Message rate by size",
        format!("{BATCH} nbi calls, then quiet; one core"),
        SIZE,
        RATE,
    ));
    for &engine in &scope.engines {
        for (kind, label) in kinds {
            let series = format!("{} {label}", engine.name());
            for batch in Scope::doubling(1, 256) {
                let (scale, step) = step(engine, kind, SMALL, 1, batch.into());
                plan.point(by_batch, &series, batch.into(), scale, step);
            }
            for &n in &scope.sizes {
                let (scale, step) = step(engine, kind, n, 1, BATCH);
                plan.point(by_size, &series, n, scale, step);
            }
        }
    }
    if scope.cores > 1 {
        let by_cores = plan.figure(Figure::new(
            "rate-cores",
            "Message rate by cores, 8 bytes",
            format!("{BATCH} nbi calls, then quiet; each core has its own queue pair"),
            CORES,
            RATE,
        ));
        for &engine in &scope.engines {
            for (kind, label) in kinds {
                for cores in Scope::doubling(1, scope.cores) {
                    let (scale, step) = step(engine, kind, SMALL, cores, BATCH);
                    plan.point(
                        by_cores,
                        &format!("{} {label}", engine.name()),
                        cores.into(),
                        scale,
                        step,
                    );
                }
            }
        }
    }
}
