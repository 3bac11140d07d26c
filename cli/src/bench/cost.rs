//! The cost model: what each call costs in doorbells, requests, copies, flags, cache operations and bytes, counted and not timed. On hardware the
//! library's own counters mean the same; those of the emulated NPU are left out there.

use comfy_table::{presets, CellAlignment, Table};
use serde::Serialize;

use super::plan::Scope;
use super::step::{Kernel, Peer, Step, Whose, COUNTS, NOT_COUNTED};
use super::Engine;

/// Kinds of kernels/bench_cost.cpp that the worker treats apart.
pub const PUT_NBI_32: u64 = 1;
pub const PUT_NBI_32_AT_END: u64 = 2;
pub const ALIGN: u64 = 17;
/// Slots that are left in the ring where a batch is to wrap.
pub const BEFORE_END: u64 = 16;
const QUIET: u64 = 14;
const BARRIER: u64 = 15;
/// Bytes of a put that does not go inline.
const LARGE: u64 = 4096;

struct Row {
    kind: u64,
    label: &'static str,
    n: u64,
    /// Why the counts cannot be lower.
    why: &'static str,
}

const fn row(kind: u64, label: &'static str, n: u64, why: &'static str) -> Row {
    Row {
        kind,
        label,
        n,
        why,
    }
}

const ROWS: [Row; 17] = [
    row(0, "put_nbi 8 B, commit", 8, "one request is one slot: its copy, and the doorbell that tells the NIC"),
    row(PUT_NBI_32, "32 put_nbi 8 B", 8, "slots 2 to 32 go first and slot 1 last, because the NIC may read slots before the doorbell: 2 copies; one doorbell for all"),
    row(PUT_NBI_32_AT_END, "32 put_nbi 8 B at the ring's end", 8, "the ring is a circle in linear memory: the copy of slots 2 to 32 has two parts"),
    row(3, "put 8 B", 8, "inline: the source is free when the request is written, nothing to poll"),
    row(4, "put 4 KiB", LARGE, "the NIC reads the source later, so the call polls one completion"),
    row(5, "put_nbi 4 KiB from UB, commit", LARGE, "the NIC cannot read UB: one copy to the bounce ring"),
    row(6, "get 4 KiB", LARGE, "one completion says that the data is there"),
    row(7, "p", 8, "rung at once"),
    row(8, "g", 8, "a READ into a result line, one completion"),
    row(9, "put_signal_nbi 64 B, commit", 64, "data and signal are two requests of one batch, in order on one queue pair: one doorbell"),
    row(10, "signal_set", 8, "an inline WRITE"),
    row(11, "atomic_add", 8, "a request of the NIC, on every engine: one atomic domain"),
    row(12, "atomic_fetch_add", 8, "and one completion for the old value"),
    row(13, "fence_pe after put_nbi", 64, "writes of one queue pair stay in order: nothing to do"),
    row(QUIET, "quiet after put_nbi to each PE", 64, "one completion for each queue pair that was used; one doorbell each tells that it was consumed"),
    row(BARRIER, "barrier_all", 0, "dissemination: a word for each of ceil(log2 PEs) rounds; less than a round halves nothing"),
    row(16, "sync_all", 0, "as barrier_all, and nothing is quieted"),
];

/// The steps of all rows, and which row and engine each is.
pub fn steps(scope: &Scope) -> Vec<(usize, Engine, Step)> {
    let mut all = Vec::new();
    for &engine in &scope.engines {
        for (number, row) in ROWS.iter().enumerate() {
            let everybody = row.kind >= BARRIER;
            let step = Step {
                kernel: Kernel::Cost,
                engine: engine as u32,
                kind: row.kind,
                pes: if everybody { scope.pes } else { 1 },
                cores: 1,
                peer: Peer::Pe(1 % scope.pes),
                n: row.n,
                calls: 1,
                samples: COUNTS.len() as u64,
                // A PE that is alone touches itself. More than 7 queue pairs are not held at once (device/impl/state.h).
                extra: u64::from((scope.pes - 1).clamp(1, 7)),
                room: 2 * LARGE + 64,
                whose: Whose::First,
            };
            all.push((number, engine, step));
        }
    }
    all
}

/// One call's counts.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    pub call: &'static str,
    pub engine: &'static str,
    pub why: &'static str,
    /// By the names of [`COUNTS`]; what was not counted is not there.
    pub counts: std::collections::BTreeMap<&'static str, u64>,
}

impl Cost {
    /// Of a step's results.
    pub fn new(number: usize, engine: Engine, counts: &[u64]) -> Self {
        let row = &ROWS[number];
        let counted = COUNTS.into_iter().zip(counts.iter().copied());
        Self {
            call: row.label,
            engine: engine.name(),
            why: row.why,
            counts: counted.filter(|(_, count)| *count != NOT_COUNTED).collect(),
        }
    }
}

/// The table: a row a call and engine, with the reasons below.
pub fn table(costs: &[Cost]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let heads = [
        ("doorbells", "doorbells"),
        ("cq_doorbells", "cq doorbells"),
        ("requests", "requests"),
        ("sync_requests", "sync requests"),
        ("ring_copies", "ring copies"),
        ("polls", "polls"),
        ("flags", "flags"),
        ("cache_ops", "cache ops"),
        ("ub_in_bytes", "UB bytes in"),
        ("ub_out_bytes", "UB bytes out"),
        ("stores", "stores"),
    ];
    table.set_header(
        ["call", "engine"]
            .into_iter()
            .chain(heads.iter().map(|(_, head)| *head)),
    );
    for cost in costs {
        let counts = heads
            .iter()
            .map(|(name, _)| cost.counts.get(name).map_or("-".to_owned(), u64::to_string));
        table.add_row(
            [cost.call.to_owned(), cost.engine.to_owned()]
                .into_iter()
                .chain(counts),
        );
    }
    for column in 2..2 + heads.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text =
        format!("Cost of a call [counted, not timed]\n{table}\nWhy not less, by roce:\n");
    for cost in costs
        .iter()
        .filter(|cost| cost.engine == Engine::Roce.name())
    {
        text += &format!("  {}: {}\n", cost.call, cost.why);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_shown_as_a_dash() {
        let mut counts = [0; COUNTS.len()];
        counts[0] = 1;
        counts[8] = NOT_COUNTED;
        let cost = Cost::new(0, Engine::Roce, &counts);
        assert_eq!(
            (cost.counts.get("doorbells"), cost.counts.get("flags")),
            (Some(&1), None)
        );
        let text = table(&[cost]);
        assert!(
            text.contains("put_nbi 8 B, commit") && text.contains(" - "),
            "{text}"
        );
    }
}
