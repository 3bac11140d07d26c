//! Barriers and collectives, by PEs and by size; what a launch costs.

use super::figure::{Axis, Figure, Unit};
use super::plan::{Plan, Scope};
use super::rma::{CORES, SIZE};
use super::step::{Kernel, Peer, Scale, Step, Whose};
use super::Engine;

/// Kinds of kernels/bench_collective.cpp.
const BARRIER: u64 = 0;
const SYNC: u64 = 1;
/// Collectives with data: kind, name, and whether the larger buffer holds a member's bytes once for every member.
const MOVING: [(u64, &str, bool); 7] = [
    (2, "broadcast", false),
    (3, "collect", true),
    (4, "fcollect", true),
    (5, "alltoall", true),
    (6, "sum_reduce", false),
    (7, "sum_reduce_scatter", true),
    (8, "sum_inscan", false),
];
/// Bytes of a call in the figures by PEs.
const SMALL: u64 = 64;
/// Largest message of a collective in `all`: buffers hold it once a PE.
const MOST_BYTES: u64 = 256 << 10;
/// Calls of a sample, at most.
const CALLS: u64 = 40;
const LAUNCHES: u64 = 5;

const PES: Axis = Axis {
    label: "PEs",
    unit: Unit::Pes,
};
const TIME: Axis = Axis {
    label: "time of a call",
    unit: Unit::Seconds,
};

fn step(scope: &Scope, engine: Engine, kind: u64, pes: u32, n: u64, room: u64) -> (Scale, Step) {
    // Who shares processors waits for the operating system: fewer calls where there are more PEs than that.
    let calls = (scope.calls(n * u64::from(pes), CALLS) / u64::from(pes).div_ceil(4)).max(4);
    let step = Step {
        kernel: Kernel::Collective,
        engine: engine as u32,
        kind,
        pes,
        cores: scope.cores,
        peer: Peer::Team,
        n,
        calls,
        samples: scope.samples,
        extra: 0,
        room: (n * room).max(64),
        whose: Whose::Slowest,
    };
    (Scale::Time(calls as f64), step)
}

/// Numbers of PEs that are measured: 1, 2, 4, ... and all.
fn teams(scope: &Scope) -> Vec<u32> {
    Scope::doubling(1, scope.pes)
}

/// barrier and sync by PEs.
pub fn barrier(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "barrier",
        "Barrier and sync",
        format!(
            "calls back to back, the slowest PE; {} core(s) a PE",
            scope.cores
        ),
        PES,
        TIME,
    ));
    for &engine in &scope.engines {
        for (kind, label) in [(BARRIER, "barrier"), (SYNC, "sync")] {
            for pes in teams(scope) {
                let (scale, step) = step(scope, engine, kind, pes, 0, 1);
                plan.point(
                    figure,
                    &format!("{} {label}", engine.name()),
                    pes.into(),
                    scale,
                    step,
                );
            }
        }
    }
}

/// Each collective that moves data, by PEs and by size.
pub fn moving(plan: &mut Plan, scope: &Scope) {
    for &engine in &scope.engines {
        let name = engine.name();
        let (by_pes, by_size) = match engine {
            Engine::Mapped => ("collectives-pes-mapped", "collectives-size-mapped"),
            Engine::Roce => ("collectives-pes-roce", "collectives-size-roce"),
        };
        let by_pes = plan.figure(Figure::new(
            by_pes,
            format!("Collectives by PEs, {SMALL} bytes, {name}"),
            "bytes that a member contributes (alltoall: to each member); calls back to back, the slowest PE",
            PES,
            TIME,
        ));
        let by_size = plan.figure(Figure::new(
            by_size,
            format!("Collectives by size, {} PEs, {name}", scope.pes),
            "bytes that a member contributes (alltoall: to each member); calls back to back, the slowest PE",
            SIZE,
            TIME,
        ));
        for (kind, label, every) in MOVING {
            let room = |pes: u32| if every { u64::from(pes) } else { 1 };
            for pes in teams(scope) {
                let (scale, step) = step(scope, engine, kind, pes, SMALL, room(pes));
                plan.point(by_pes, label, pes.into(), scale, step);
            }
            // Reductions are of floats.
            let sizes = scope
                .sizes
                .iter()
                .filter(|&&n| n % 4 == 0 && n <= MOST_BYTES);
            for &n in sizes {
                let (scale, step) = step(scope, engine, kind, scope.pes, n, room(scope.pes));
                plan.point(by_size, label, n, scale, step);
            }
        }
    }
}

/// An empty kernel, launched and waited for by the host.
pub fn launch(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "launch",
        "Kernel launch",
        "an empty kernel from launch to the end of synchronize, by the host's clock",
        CORES,
        Axis {
            label: "time of a launch",
            unit: Unit::Seconds,
        },
    ));
    for cores in Scope::doubling(1, scope.cores) {
        let step = Step {
            kernel: Kernel::Empty,
            engine: 0,
            kind: 0,
            pes: 1,
            cores,
            peer: Peer::Pe(0),
            n: 0,
            calls: LAUNCHES,
            samples: scope.samples,
            extra: 0,
            room: 64,
            whose: Whose::First,
        };
        plan.point(
            figure,
            "launch + synchronize",
            cores.into(),
            Scale::Time(LAUNCHES as f64),
            step,
        );
    }
}
