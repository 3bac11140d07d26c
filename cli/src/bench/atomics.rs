//! Atomics: latency of each, rate under contention; GUPS.

use super::figure::{Axis, Figure, Unit};
use super::plan::{Plan, Scope};
use super::rma::CORES;
use super::step::{Kernel, Peer, Scale, Step, Whose};
use super::Engine;

/// Kinds of kernels/bench_atomic.cpp, in its order.
const NAMES: [&str; 14] = [
    "fetch",
    "set",
    "add",
    "inc",
    "fetch_add",
    "fetch_inc",
    "swap",
    "compare_swap",
    "and",
    "or",
    "xor",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
];
const ADD: u64 = 2;
const FETCH_ADD: u64 = 4;
const COMPARE_SWAP: u64 = 7;
const FETCH_XOR: u64 = 13;
/// Bits of `extra`.
const ALL_MEET: u64 = 1;
const ONE_QUIET: u64 = 2;

const LATENCY_CALLS: u64 = 100;
const CONTENDED_CALLS: u64 = 200;
/// Words of each PE's table of GUPS, and updates of a core and sample.
const TABLE: u64 = 1 << 13;
const UPDATES: u64 = 1024;
/// Atomics are the domain's, whatever engine a context has; one is named all the same.
const ENGINE: u32 = Engine::Roce as u32;

fn step(scope: &Scope, kind: u64, n: u64, calls: u64) -> Step {
    Step {
        kernel: Kernel::Atomic,
        engine: ENGINE,
        kind,
        pes: 1,
        cores: 1,
        peer: Peer::Pe(1 % scope.pes),
        n,
        calls,
        samples: scope.samples,
        extra: 0,
        room: 64,
        whose: Whose::First,
    }
}

/// Latency of each atomic, alone; rate of some, with everybody at one word.
pub fn all(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "atomic-latency",
        "Latency of atomics",
        "one core, one word of another PE, nobody else; non-fetching ones with a quiet each",
        Axis {
            label: "atomic",
            unit: Unit::Name,
        },
        Axis {
            label: "latency",
            unit: Unit::Seconds,
        },
    ));
    let calls = scope.calls(1, LATENCY_CALLS);
    for (label, n) in [("64 bits", 8), ("32 bits", 4)] {
        for (kind, name) in NAMES.into_iter().enumerate() {
            let step = step(scope, kind as u64, n, calls);
            plan.named(
                figure,
                label,
                kind as u64,
                name,
                Scale::Time(calls as f64),
                step,
            );
        }
    }
    if scope.modelled {
        // The time model has no queue at the target: every PE would look as if it were alone (docs/emulation.md).
        return;
    }
    let rate = Axis {
        label: "atomics",
        unit: Unit::PerSecond,
    };
    let contended = [
        (ADD, "add"),
        (FETCH_ADD, "fetch_add"),
        (COMPARE_SWAP, "compare_swap"),
        (FETCH_XOR, "fetch_xor (a loop)"),
    ];
    let mut rates = |id, title: &str, about: &str, x: Axis, places: Vec<(u32, u32, u32)>| {
        let figure = plan.figure(Figure::new(id, title, about, x, rate.clone()));
        for (kind, label) in contended {
            for &(x, pes, cores) in &places {
                let calls = (CONTENDED_CALLS / u64::from(pes)).max(8);
                let all = calls as f64 * f64::from(pes) * f64::from(cores);
                let step = Step {
                    pes,
                    cores,
                    peer: Peer::Pe(0),
                    extra: ONE_QUIET | ALL_MEET,
                    whose: Whose::Slowest,
                    ..step(scope, kind, 8, calls)
                };
                plan.point(figure, label, x.into(), Scale::PerSecond(all), step);
            }
        }
    };
    if scope.cores > 1 {
        let places = Scope::doubling(1, scope.cores)
            .into_iter()
            .map(|cores| (cores, scope.pes, cores));
        rates(
            "atomic-rate-cores",
            "Contended atomics by cores",
            "all PEs, each with so many cores, update one 64-bit word of PE 0; all of them together",
            CORES,
            places.collect(),
        );
    } else {
        rates(
            "atomic-rate",
            "Contended atomics",
            "all PEs update one 64-bit word of PE 0; all of them together",
            Axis {
                label: "PEs",
                unit: Unit::Pes,
            },
            vec![(scope.pes, scope.pes, 1)],
        );
    }
}

/// Updates a second of random words on random PEs.
pub fn gups(plan: &mut Plan, scope: &Scope) {
    let figure = plan.figure(Figure::new(
        "gups",
        "Random updates",
        "each core adds 1 to random 64-bit words on random PEs, one quiet a sample; all together; the sum of the tables is checked",
        CORES,
        Axis {
            label: "updates",
            unit: Unit::PerSecond,
        },
    ));
    for cores in Scope::doubling(1, scope.cores) {
        let updates = scope.calls(1, UPDATES);
        let all = updates as f64 * f64::from(scope.pes) * f64::from(cores);
        let step = Step {
            kernel: Kernel::Gups,
            pes: scope.pes,
            cores,
            room: TABLE * 8,
            whose: Whose::Slowest,
            ..step(scope, 0, TABLE, updates)
        };
        plan.point(
            figure,
            &format!("{} PEs", scope.pes),
            cores.into(),
            Scale::PerSecond(all),
            step,
        );
    }
}
