//! docs/coverage.md: which routine exists where, and what executes an operation on a type. The page is made here, from the headers and sources
//! themselves, and compared; `NPUSHMEM_BLESS=1 cargo test -p npushmem-tests --test coverage` writes it anew. What other libraries have is
//! stated by hand in `ROWS`, from their public documentation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One family of routines. Names are OpenSHMEM's without `shmem_`; a family stands for its typed and sized forms.
struct Row {
    family: &'static str,
    /// C: a declaration to find; empty: the standard has none.
    c: &'static str,
    /// Functions of the Rust API, any of which does it.
    rust: &'static [&'static str],
    /// Names in the device headers, all of which must be there.
    device: &'static [&'static str],
    /// Method of `OnStream`.
    stream: &'static str,
    /// NVSHMEM, rocSHMEM, Intel SHMEM, CANN SHMEM: h host, d device, s on a stream or queue, - none, ? not known.
    peers: [&'static str; 4],
}

const fn row(
    family: &'static str,
    c: &'static str,
    rust: &'static [&'static str],
    device: &'static [&'static str],
    stream: &'static str,
    peers: [&'static str; 4],
) -> Row {
    Row {
        family,
        c,
        rust,
        device,
        stream,
        peers,
    }
}

#[rustfmt::skip]
const ROWS: &[(&str, &[Row])] = &[
    ("Set-up and queries", &[
        row("init, finalize", "shmem_init", &["init", "finalize"], &[], "", ["h", "h", "h", "h"]),
        row("my_pe, n_pes", "shmem_my_pe", &["my_pe", "n_pes"], &["shmem_my_pe", "shmem_n_pes"], "", ["hd", "hd", "hd", "hd"]),
        row("ptr", "shmem_ptr", &["heap_of"], &["shmem_ptr"], "", ["hd", "hd", "hd", "hd"]),
        row("malloc, align, free", "shmem_malloc", &["alloc", "alloc_aligned"], &[], "", ["h", "h", "h", "h"]),
    ]),
    ("Remote memory access", &[
        row("put, get", "shmem_float_put", &["put", "get"], &["shmem_put", "shmem_get", "shmem_putmem"], "put", ["hds", "hds", "hds", "hd"]),
        row("put_nbi, get_nbi", "shmem_float_put_nbi", &[], &["shmem_put_nbi", "shmem_get_nbi"], "", ["hds", "hd", "hds", "hd"]),
        row("p, g", "shmem_float_p", &[], &["shmem_p", "shmem_g"], "", ["hds", "hd", "hd", "hd"]),
        row("iput, iget", "shmem_float_iput", &[], &["shmem_iput", "shmem_iget"], "", ["hds", "-", "hds", "?"]),
        row("ibput, ibget (1.6)", "shmem_float_ibput", &[], &["shmem_ibput", "shmem_ibget"], "", ["-", "-", "hds", "?"]),
        row("memory outside the heap (ours)", "", &["register_buffer", "open_window"], &["shmem_window_put", "shmem_window_get"], "", ["h", "-", "-", "?"]),
    ]),
    ("Atomics", &[
        row("fetch, set", "shmem_float_atomic_fetch", &[], &["shmem_atomic_fetch", "shmem_atomic_set"], "", ["hd", "hd", "hd", "d (950)"]),
        row("add, inc, fetch_add, fetch_inc", "shmem_int_atomic_fetch_add", &[], &["shmem_atomic_add", "shmem_atomic_fetch_inc"], "", ["hd", "hd", "hd", "d (add; fetching: 950)"]),
        row("swap, compare_swap", "shmem_int_atomic_compare_swap", &[], &["shmem_atomic_swap", "shmem_atomic_compare_swap"], "", ["hd", "hd", "hd", "d (950)"]),
        row("and, or, xor", "shmem_uint_atomic_fetch_and", &[], &["shmem_atomic_and"], "", ["hd", "hd", "hd", "d (950)"]),
        row("fetching, nbi", "shmem_int_atomic_fetch_add_nbi", &[], &["shmem_atomic_fetch_add_nbi", "shmem_atomic_compare_swap_nbi"], "", ["-", "-", "?", "-"]),
        row("min, max, float add (ours)", "", &[], &["shmem_atomic_fetch_and", "min and max (ours)"], "", ["-", "-", "-", "d (float add)"]),
    ]),
    ("Signals and waiting", &[
        row("put_signal", "shmem_float_put_signal", &[], &["shmem_put_signal"], "put_signal", ["hds", "hd", "hds", "hd"]),
        row("put_signal_nbi", "shmem_float_put_signal_nbi", &[], &["shmem_put_signal_nbi"], "", ["hds", "hd", "hds", "hd"]),
        row("signal_fetch, signal_wait_until", "shmem_signal_wait_until", &[], &["shmem_signal_fetch", "shmem_signal_wait_until"], "signal_wait", ["hds", "d", "hds", "hd"]),
        row("signal_set, signal_add (1.6)", "", &[], &["shmem_signal_set", "shmem_signal_add"], "", ["ds", "?", "d", "d"]),
        row("wait_until, test", "shmem_int_wait_until", &[], &["shmem_wait_until", "shmem_test"], "", ["hd", "d", "hds", "hd"]),
        row("wait_until_all, any, some; test_...", "shmem_int_wait_until_all", &[], &["shmem_wait_until_all", "shmem_wait_until_any", "shmem_wait_until_some"], "", ["d", "d", "hd", "?"]),
        row("their _vector forms", "shmem_int_wait_until_all_vector", &[], &["wait_until_all_vector", "wait_until_some_vector"], "", ["d", "d", "?", "?"]),
    ]),
    ("Order and completion", &[
        row("fence, quiet", "shmem_quiet", &["quiet"], &["shmem_fence", "shmem_quiet"], "quiet", ["hds", "d", "hds", "hd"]),
        row("pe_quiet, fence toward one PE", "", &[], &["shmem_pe_quiet", "shmem_fence_pe"], "", ["-", "d", "-", "?"]),
        row("flush: source reusable (ours)", "", &[], &["shmem_flush"], "", ["-", "-", "-", "-"]),
        row("tickets: wait for part of the requests (ours)", "", &[], &["shmem_last", "shmem_done", "shmem_wait"], "", ["-", "-", "-", "-"]),
    ]),
    ("Contexts", &[
        row("create, destroy", "shmem_ctx_create", &["create_context", "destroy_context"], &[], "", ["-", "d", "-", "-"]),
        row("team_create_ctx, get_team", "shmem_team_create_ctx", &["create_context"], &["shmem_ctx_get_team"], "", ["-", "?", "-", "-"]),
        row("every call above by a context", "shmem_ctx_float_put", &[], &["shmem_ctx_put", "shmem_ctx_atomic_add", "shmem_ctx_quiet"], "", ["-", "d", "-", "-"]),
    ]),
    ("Teams", &[
        row("my_pe, n_pes, translate_pe", "shmem_team_translate_pe", &["translate"], &["shmem_team_my_pe", "shmem_team_translate_pe"], "", ["hd", "hd", "hd", "hd"]),
        row("split_strided, destroy", "shmem_team_split_strided", &["team_split_strided", "team_destroy"], &[], "", ["h", "h", "h", "h"]),
        row("split_2d", "shmem_team_split_2d", &["team_split_2d"], &[], "", ["h", "-", "h", "h"]),
        row("from a list of PEs (ours)", "", &["team_from_pes"], &[], "", ["-", "-", "-", "-"]),
    ]),
    ("Collectives", &[
        row("barrier_all, barrier of a team", "shmem_barrier_all", &["barrier_all"], &["shmem_barrier_all", "shmem_barrier"], "barrier", ["hds", "hds", "hds", "hds"]),
        row("sync_all, team_sync", "shmem_team_sync", &[], &["shmem_sync_all", "shmem_team_sync"], "", ["hds", "hd", "hds", "hd"]),
        row("broadcast", "shmem_float_broadcast", &[], &["shmem_broadcast"], "broadcast", ["hds", "ds", "hds", "-"]),
        row("collect", "shmem_float_collect", &[], &["shmem_collect"], "", ["-", "-", "hds", "-"]),
        row("fcollect", "shmem_float_fcollect", &[], &["shmem_fcollect"], "", ["hds", "d", "hds", "-"]),
        row("alltoall", "shmem_float_alltoall", &[], &["shmem_alltoall"], "", ["hds", "ds", "hds", "-"]),
        row("alltoalls", "shmem_float_alltoalls", &[], &["shmem_alltoalls"], "", ["-", "-", "-", "-"]),
        row("reduce", "shmem_float_sum_reduce", &[], &["shmem_sum_reduce"], "sum_f32", ["hds", "d", "hds", "-"]),
        row("reduce_scatter (ours)", "", &[], &["shmem_sum_reduce_scatter"], "", ["hds", "-", "-", "-"]),
        row("inscan, exscan (1.6)", "shmem_float_sum_inscan", &[], &["shmem_sum_inscan", "shmem_sum_exscan"], "", ["-", "-", "hds", "-"]),
        row("sync of two PEs (ours)", "", &[], &["shmem_sync_pe"], "", ["-", "-", "-", "-"]),
    ]),
    ("Locks", &[
        row("set_lock, test_lock, clear_lock", "shmem_set_lock", &[], &[], "", ["-", "-", "-", "-"]),
    ]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files under a folder with this ending, as one text.
fn text_of(folder: &str, ending: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                text += &std::fs::read_to_string(&path).expect("readable source");
            }
        }
    }
    text
}

/// Whether `text` has `name` as a whole word.
fn has(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + name.len()..].starts_with(part))
}

fn mark(there: bool) -> &'static str {
    if there {
        "yes"
    } else {
        "-"
    }
}

/// The rows of a table of device/types.h: names and C types.
fn types(header: &str, table: &str) -> Vec<(String, String)> {
    let start = header
        .find(&format!("#define {table}(X)"))
        .unwrap_or_else(|| panic!("device/types.h has no {table}"));
    let body: String = header[start..]
        .lines()
        .scan(true, |more, line| {
            let taken = more.then_some(line);
            *more = line.trim_end().ends_with('\\');
            taken
        })
        .collect::<Vec<_>>()
        .join("\n");
    let body = &body[body.find("(X)").expect("its parameter") + 3..];
    body.split("X(")
        .skip(1)
        .filter_map(|row| row.split_once(')')?.0.split_once(','))
        .map(|(name, kind)| (name.trim().to_string(), kind.trim().to_string()))
        .collect()
}

/// What the vector unit adds and compares, by the plain type: read from device/impl/reduce.h.
fn vector_units(header: &str) -> BTreeMap<String, (bool, bool)> {
    header
        .split("struct vector_types<")
        .skip(1)
        .filter_map(|part| {
            let (name, rest) = part.split_once("> {")?;
            let body = rest.split_once("};")?.0;
            let has = |what: &str| body.contains(what) && !body.contains(&format!("{what} = void"));
            Some((name.to_string(), (has("using sum"), has("using order"))))
        })
        .collect()
}

/// The integer or float that stands for a C type.
fn plain(kind: &str) -> &str {
    match kind {
        "char" | "signed char" => "int8_t",
        "short" => "int16_t",
        "int" => "int32_t",
        "long" | "long long" => "int64_t",
        "unsigned char" => "uint8_t",
        "unsigned short" => "uint16_t",
        "unsigned int" => "uint32_t",
        "unsigned long" | "unsigned long long" => "uint64_t",
        other => other,
    }
}

fn page() -> String {
    let declarations = text_of("capi/include", ".h");
    let host = text_of("host", ".rs");
    let stream = std::fs::read_to_string(root().join("host/stream.rs")).expect("host/stream.rs");
    let device: String = ["shmem.h", "shmem_collectives.h", "shmem_contexts.h"]
        .iter()
        .map(|name| std::fs::read_to_string(root().join("device").join(name)).expect("a header"))
        .collect();
    let types_header = std::fs::read_to_string(root().join("device/types.h")).expect("types.h");
    let reduce = std::fs::read_to_string(root().join("device/impl/reduce.h")).expect("reduce.h");

    let mut page = String::from(
        "# What exists where\n\n\
         Made by `tests/tests/coverage.rs` from the headers and sources; do not edit (`NPUSHMEM_BLESS=1 cargo test -p npushmem-tests --test coverage`).\n\n\
         ## Routines\n\n\
         A row is a family of OpenSHMEM 1.6 with its typed and sized forms, or one of ours. **C**: `libnpushmem.so`. **Rust**: methods of the host library. **Device**: \
         in kernels (device/shmem.h and what it includes). **Stream**: enqueued on a stream by the host (`World::on_stream`).\n\n\
         The other libraries, from their public documentation: NVSHMEM 3.5, rocSHMEM 3 (development documentation of 2025), Intel SHMEM 1.5, CANN SHMEM (aclshmem, documentation of \
         2025 to 2026). h: host, d: device, s: on a stream or queue, -: not documented, ?: we could not tell. Versions differ from one another \
         in details; where it matters, look there.\n",
    );
    for (section, rows) in ROWS {
        let _ = write!(
            page,
            "\n### {section}\n\n| | C | Rust | device | stream | NVSHMEM | rocSHMEM | Intel SHMEM | CANN SHMEM |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        );
        for row in *rows {
            let c = !row.c.is_empty() && has(&declarations, row.c);
            assert!(
                c || row.c.is_empty(),
                "{}: capi declares no {}",
                row.family,
                row.c
            );
            let rust = !row.rust.is_empty();
            for name in row.rust {
                assert!(
                    host.contains(&format!("pub fn {name}")),
                    "{}: host/ has no {name}",
                    row.family
                );
            }
            for name in row.device {
                assert!(
                    has(&device, name),
                    "{}: the device headers have no {name}",
                    row.family
                );
            }
            if !row.stream.is_empty() {
                assert!(
                    stream.contains(&format!("pub fn {}", row.stream)),
                    "{}: no {} on streams",
                    row.family,
                    row.stream
                );
            }
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {} |",
                row.family,
                mark(c),
                mark(rust),
                mark(!row.device.is_empty()),
                mark(!row.stream.is_empty()),
                row.peers.join(" | ")
            );
        }
    }

    page += "\n## Types and operations on a device\n\n\
         Who executes what, from device/types.h and device/impl/reduce.h. **MTE, NIC**: copies by the MTE queues through a mapped peer, or a work request. **scalar**: uncached loads and stores of the \
         scalar unit, or a work request. **NIC**: one request of the target's NIC (A2, A3). **NIC loop**: a compare-and-swap loop on the containing 8-byte word. **core**: an instruction of the 950's cores; there \
         the bitwise ones are loops. **vector**: the vector unit. **host only**: the host's C API has it, kernels do not. Sources: the vendor's AscendC documentation for the units, OpenSHMEM 1.6's type \
         tables for the rows.\n\n\
         | type | put, get | p, g | wait, test | fetch, add | set, swap | compare_swap | and, or, xor | sum, prod | min, max | reduce and, or | reduce xor |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    let table = |name: &str| types(&types_header, name);
    let (values, storage) = (table("SHMEM_VALUE_TYPES"), table("SHMEM_STORAGE_TYPES"));
    let (amo, float_amo) = (table("SHMEM_AMO_TYPES"), table("SHMEM_FLOAT_AMO_TYPES"));
    let (bitwise, integers) = (table("SHMEM_BITWISE_TYPES"), table("SHMEM_INTEGER_TYPES"));
    let units = vector_units(&reduce);
    let within = |table: &[(String, String)], name: &str| table.iter().any(|row| row.0 == name);
    for (name, kind) in values.iter().chain(&storage) {
        let by_value = within(&values, name);
        let atomic = within(&amo, name) || within(&float_amo, name);
        let eight = plain(kind).contains("64");
        let real = within(&float_amo, name);
        let none = |there: bool, text: &'static str| if there { text } else { "-" };
        let add = match (eight, real) {
            (true, _) => "NIC; core",
            (_, true) => "NIC loop; core",
            _ => "NIC loop (upper half: NIC); core",
        };
        let (sum, order) = units.get(plain(kind)).copied().unwrap_or((false, false));
        let unit = |vector: bool| match (by_value, vector) {
            (false, _) => "host only",
            (_, true) => "vector",
            _ => "scalar",
        };
        let bits = within(&integers, name);
        let _ = writeln!(
            page,
            "| {name} | MTE, NIC | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            none(by_value, "scalar"),
            none(within(&amo, name), "scalar"),
            none(atomic, add),
            none(atomic, "NIC loop; core"),
            none(atomic, if eight { "NIC; core" } else { "NIC loop; core" }),
            none(within(&bitwise, name), "NIC loop; core"),
            unit(sum),
            unit(order),
            none(bits, "vector"),
            none(bits, "scalar"),
        );
    }
    page += "\nlong double and the complex types are host only. 1- and 2-byte types have no atomics in the standard. Signals are `uint64_t`: SET as p, ADD as the atomic add.\n";
    page
}

#[test]
fn the_coverage_page_says_what_the_headers_and_sources_have() {
    let path = root().join("docs/coverage.md");
    let made = page();
    if std::env::var_os("NPUSHMEM_BLESS").is_some() {
        std::fs::write(&path, &made).expect("docs/ is writable");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "docs/coverage.md is not what the sources say; run the test once with NPUSHMEM_BLESS=1 and look at the difference"
    );
}
