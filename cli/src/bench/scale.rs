//! Barrier and all-to-all at scale, by the time model: executed for as many PEs as the job has, replayed up to 1,024. Both are modelled; a test holds
//! them together.

use npushmem::time_model::replay;

use super::figure::{Axis, Figure, Point, Unit};
use super::plan::{Plan, Scope};
use super::step::{Kernel, Peer, Scale, Step, Whose};
use super::Engine;

/// Kinds of kernels/bench_collective.cpp.
const BARRIER: u64 = 0;
const ALLTOALL: u64 = 5;
/// Bytes to each member.
const SIZES: [u64; 2] = [64, 4096];
/// Most PEs of a replay.
const MOST: u32 = 1024;
/// Samples: on a machine with more runnable threads than processors a modelled wait now and then ends late.
const SAMPLES: u64 = 5;
/// Calls of a sample: the replay's.
const CALLS: u64 = 4;

/// The executed part, and the figure's replayed series.
pub fn executed(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "scale",
        "Barrier and all-to-all by PEs, roce",
        "executed: kernels on emulated NPUs; replayed: their operations, counted, on one clock a PE; one core a PE",
        Axis {
            label: "PEs",
            unit: Unit::Pes,
        },
        Axis {
            label: "time of a call",
            unit: Unit::Seconds,
        },
    ));
    let mut add = |label: &str, kind, n: u64| {
        for pes in Scope::doubling(2.min(scope.pes), scope.pes) {
            let step = Step {
                kernel: Kernel::Collective,
                engine: Engine::Roce as u32,
                kind,
                pes,
                cores: 1,
                peer: Peer::Team,
                n,
                calls: CALLS,
                samples: SAMPLES,
                extra: 0,
                room: (n * u64::from(pes)).max(64),
                whose: Whose::Slowest,
            };
            plan.point(figure, label, pes.into(), Scale::Time(CALLS as f64), step);
        }
    };
    add("barrier, executed", BARRIER, 0);
    for n in SIZES {
        add(&format!("alltoall {n} B, executed"), ALLTOALL, n);
    }
}

/// Adds the replayed series to the finished figure.
pub fn replayed(figures: &mut [Figure], pes: u32) {
    let Some(figure) = figures.iter_mut().find(|figure| figure.id == "scale") else {
        return;
    };
    let mut places = Scope::doubling(2, MOST);
    // Where something was executed there is something to compare with.
    places.extend(Scope::doubling(2.min(pes), pes));
    places.sort_unstable();
    places.dedup();
    let mut add = |label: String, time: &dyn Fn(u32) -> f64| {
        let points = places.iter().map(|&pes| Point {
            x: pes.into(),
            name: None,
            samples: vec![time(pes)],
        });
        figure.series(&label).points.extend(points);
    };
    add("barrier, replayed".to_owned(), &replay::barrier);
    for n in SIZES {
        add(format!("alltoall {n} B, replayed"), &move |pes| {
            replay::alltoall(pes, n)
        });
    }
}
