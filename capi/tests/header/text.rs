//! Writes the generated parts of the headers from the routines and constants.
//!
//! Not the parts that people write: `include/shmem.h` and its siblings include these. Each function gives one file's text.

use std::fmt::Write as _;

use crate::constants;
use crate::families::{arguments, sections, Routine, Row, Types};

/// First lines of every generated file.
fn head(file: &str, about: &str) -> String {
    format!(
        "/* {file}: {about}\n\
         \x20*\n\
         \x20* Generated from host/shm/table.rs and capi/src/constants.rs by `make header`; do not edit. Included by shmem.h; not for programs. */\n"
    )
}

/// constants.h: macros for every constant.
pub fn constants() -> String {
    let mut text = head(
        "constants.h",
        "constants of OpenSHMEM 1.6 (Library Constants).",
    );
    text.push('\n');
    for (name, value, about) in constants::CONSTANTS {
        let about = about.trim();
        let value = match (*name, *value) {
            // Flags and values of type long.
            (name, value) if is_long(name) => format!("{value}L"),
            (_, value) => value.to_string(),
        };
        // An extension's macro says so.
        let name = name.replace("SHMEM_MALLOC_NO_BARRIER", "SHMEMX_MALLOC_NO_BARRIER");
        let _ = writeln!(text, "#define {name} {value} /* {about} */");
    }
    let _ = writeln!(
        text,
        "#define SHMEM_VENDOR_STRING \"{}\"",
        constants::VENDOR_STRING
    );
    text.push_str("\n/* Names with an underscore in front (deprecated). */\n");
    for name in [
        "SYNC_VALUE",
        "SYNC_SIZE",
        "BARRIER_SYNC_SIZE",
        "BCAST_SYNC_SIZE",
        "REDUCE_SYNC_SIZE",
        "COLLECT_SYNC_SIZE",
        "ALLTOALL_SYNC_SIZE",
        "ALLTOALLS_SYNC_SIZE",
        "REDUCE_MIN_WRKDATA_SIZE",
        "MAJOR_VERSION",
        "MINOR_VERSION",
        "MAX_NAME_LEN",
        "VENDOR_STRING",
        "CMP_EQ",
        "CMP_NE",
        "CMP_LT",
        "CMP_LE",
        "CMP_GT",
        "CMP_GE",
    ] {
        let _ = writeln!(text, "#define _SHMEM_{name} SHMEM_{name}");
    }
    text.push_str("\n/* Handles: numbers behind opaque pointers. */\n");
    for (name, kind, value) in [
        ("SHMEM_CTX_INVALID", "ctx", constants::handle::CTX_INVALID),
        ("SHMEM_CTX_DEFAULT", "ctx", constants::handle::CTX_DEFAULT),
        (
            "SHMEM_TEAM_INVALID",
            "team",
            constants::handle::TEAM_INVALID,
        ),
        ("SHMEM_TEAM_WORLD", "team", constants::handle::TEAM_WORLD),
        ("SHMEM_TEAM_SHARED", "team", constants::handle::TEAM_SHARED),
    ] {
        let _ = writeln!(text, "#define {name} ((shmem_{kind}_t){value})");
    }
    text
}

fn is_long(name: &str) -> bool {
    [
        "SHMEM_CTX_",
        "SHMEM_TEAM_NUM",
        "SHMEM_MALLOC_",
        "SHMEM_SYNC_VALUE",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// declarations.h (`profiling`: profiling.h): prototypes of every routine (of every routine's profiling name).
pub fn declarations(profiling: bool) -> String {
    let (mut text, prefix) = if profiling {
        (head("profiling.h", "prototypes of the profiling interface: pshmem_X is shmem_X by a name that no tool replaces (Profiling Interface)."), "p")
    } else {
        (
            head(
                "declarations.h",
                "prototypes of every routine of OpenSHMEM 1.6, deprecated ones included.",
            ),
            "",
        )
    };
    for section in sections() {
        let _ = write!(text, "\n/* {} */\n", section.about.replace('\n', "\n * "));
        for routine in &section.routines {
            for signature in routine.signatures() {
                let space = if signature.result.ends_with('*') {
                    ""
                } else {
                    " "
                };
                let attribute = if signature.name == "shmem_global_exit" {
                    "SHMEMI_NORETURN "
                } else {
                    ""
                };
                let _ = writeln!(
                    text,
                    "{attribute}{}{space}{prefix}{}({});",
                    signature.result, signature.name, signature.params
                );
            }
        }
    }
    text
}

/// How the parameter that a generic is chosen by is qualified.
fn qualifier(routine: &Routine) -> &'static str {
    let first = routine
        .params
        .split(", ")
        .find(|param| param.contains("TYPE"))
        .unwrap_or_default();
    if first.starts_with("const") {
        "const "
    } else if first.starts_with("volatile") {
        "volatile "
    } else {
        ""
    }
}

/// Name of the X-macro for a list.
fn list_name(types: Types) -> &'static str {
    match types {
        Types::Rma | Types::ReduceMinmax => "RMA",
        Types::AmoStd => "AMO",
        Types::AmoExt => "AMO_EXTENDED",
        Types::Bitwise => "AMO_BITWISE",
        Types::Wait => "WAIT",
        Types::OldAmo => "OLD_AMO",
        Types::OldAmoExt => "OLD_AMO_EXTENDED",
        Types::ReduceBitwise => "REDUCE_BITWISE",
        Types::ReduceArith => "REDUCE_ARITH",
        Types::One
        | Types::OldWait
        | Types::ToAllBitwise
        | Types::ToAllMinmax
        | Types::ToAllArith
        | Types::Sizes
        | Types::CollectiveSizes => "",
    }
}

const GENERIC_LISTS: [Types; 9] = [
    Types::Rma,
    Types::AmoStd,
    Types::AmoExt,
    Types::Bitwise,
    Types::Wait,
    Types::OldAmo,
    Types::OldAmoExt,
    Types::ReduceBitwise,
    Types::ReduceArith,
];

fn generic_routines() -> Vec<Routine> {
    sections()
        .into_iter()
        .flat_map(|section| section.routines)
        .filter(|routine| routine.generic.is_some())
        .collect()
}

/// What stands around NAME in a family's name.
fn affixes(routine: &Routine) -> (&'static str, &'static str) {
    routine
        .name
        .split_once("NAME")
        .unwrap_or((routine.name, ""))
}

/// generic.h: C11 type-generic names.
pub fn generic() -> String {
    let mut text = head(
        "generic.h",
        "type-generic names by C11 _Generic. The type of the first pointer to data decides; a context before it may be given.",
    );
    text.push_str("\n#define SHMEMI_FIRST(a, ...) a\n#define SHMEMI_SECOND(a, b, ...) b\nvoid shmemi_no_routine_for_this_type(void);\n\n");
    for types in GENERIC_LISTS {
        for qualifier in ["", "const ", "volatile "] {
            let used = generic_routines().iter().any(|routine| {
                list_name(routine.types) == list_name(types)
                    && self::qualifier(routine) == qualifier
            });
            if !used {
                continue;
            }
            let mut entries = Vec::new();
            for row in types.distinct_rows() {
                entries.push(format!("{} *: pre##{}##post", row.c, row.name));
                if !qualifier.is_empty() {
                    entries.push(format!("{qualifier}{} *: pre##{}##post", row.c, row.name));
                }
            }
            let _ = writeln!(
                text,
                "#define SHMEMI_{}(pre, post) \\\n  {}",
                x_name(types, qualifier),
                entries.join(", \\\n  ")
            );
        }
    }
    text.push('\n');
    for routine in generic_routines() {
        let generic = routine.generic.unwrap_or_default();
        let list = x_name(routine.types, qualifier(&routine));
        let post = affixes(&routine).1;
        let team = routine.params.starts_with("shmem_team_t");
        let plain = format!("SHMEMI_{list}(shmem_, {post})");
        let _ = if team {
            writeln!(text, "#define shmem_{generic}(...) \\\n  _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), {plain})(__VA_ARGS__)")
        } else if routine.ctx {
            writeln!(
                text,
                "#define shmem_{generic}(...) \\\n  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), \\\n    shmem_ctx_t: _Generic(SHMEMI_SECOND(__VA_ARGS__, 0, 0), SHMEMI_{list}(shmem_ctx_, {post}), default: shmemi_no_routine_for_this_type), \\\n    {plain})(__VA_ARGS__)"
            )
        } else {
            writeln!(text, "#define shmem_{generic}(...) \\\n  _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), {plain})(__VA_ARGS__)")
        };
    }
    text.push_str(
        "\n/* Names that are also functions. */\n\
         #define shmem_signal_set(...) _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), shmem_ctx_t: shmem_ctx_signal_set, default: shmem_signal_set)(__VA_ARGS__)\n\
         #define shmem_signal_add(...) _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), shmem_ctx_t: shmem_ctx_signal_add, default: shmem_signal_add)(__VA_ARGS__)\n\
         #define shmem_sync(...) _Generic(SHMEMI_FIRST(__VA_ARGS__, 0), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)\n",
    );
    text
}

fn x_name(types: Types, qualifier: &str) -> String {
    let suffix = match qualifier {
        "const " => "_CONST",
        "volatile " => "_VOLATILE",
        _ => "",
    };
    format!("GENERIC_{}{suffix}", list_name(types))
}

/// overloads.h: the same names in C++.
pub fn overloads() -> String {
    let mut text = head(
        "overloads.h",
        "type-generic names as C++ overloads, as generic.h has them for C11.",
    );
    text.push_str("\nextern \"C++\" {\n");
    for types in GENERIC_LISTS {
        let routines: Vec<Routine> = generic_routines()
            .into_iter()
            .filter(|routine| list_name(routine.types) == list_name(types) && !routine.deprecated)
            .collect();
        if routines.is_empty() {
            continue;
        }
        let macro_name = format!("SHMEMI_OVERLOAD_{}", list_name(types));
        let mut lines = Vec::new();
        let mut special = Vec::new();
        for routine in &routines {
            let forms: &[bool] = if routine.ctx {
                &[false, true]
            } else {
                &[false]
            };
            for &ctx in forms {
                let line = overload(routine, ctx);
                // shmem_wait_until for long is a C function (deprecated).
                if routine.generic == Some("wait_until") {
                    special.push((routine.clone(), line));
                } else {
                    lines.push(line);
                }
            }
        }
        let _ = writeln!(
            text,
            "#define {macro_name}(NAME, TYPE) \\\n  {}",
            lines.join(" \\\n  ")
        );
        for row in types.distinct_rows() {
            let _ = writeln!(text, "{macro_name}({}, {})", row.name, row.c);
        }
        let _ = writeln!(text, "#undef {macro_name}");
        for (routine, line) in special {
            let _ = writeln!(text, "#define {macro_name}(NAME, TYPE) \\\n  {line}");
            for row in routine
                .types
                .distinct_rows()
                .iter()
                .filter(|row| row.c != "long")
            {
                let _ = writeln!(text, "{macro_name}({}, {})", row.name, row.c);
            }
            let _ = writeln!(text, "#undef {macro_name}");
        }
        text.push('\n');
    }
    text.push_str(
        "static inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }\n\
         static inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_set(ctx, sig_addr, signal, pe); }\n\
         static inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_add(ctx, sig_addr, signal, pe); }\n\
         } /* extern \"C++\" */\n",
    );
    text
}

fn overload(routine: &Routine, ctx: bool) -> String {
    let row = Row {
        name: "##NAME##",
        c: "TYPE",
    };
    let signature = routine.signature(&row, ctx);
    let keep = if signature.result == "void" {
        ""
    } else {
        "return "
    };
    let name = signature.name.trim_end_matches("##");
    format!(
        "static inline {} shmem_{}({}) {{ {keep}{name}({}); }}",
        signature.result,
        routine.generic.unwrap_or_default(),
        signature.params,
        arguments(&signature.params).join(", ")
    )
}

/// inline.h: the inline path, family by family. The mechanics are in fast.h.
pub fn inline() -> String {
    let mut text = head("inline.h", "inline bodies of single-element, small and atomic routines, family by family; fast.h says how they work.");
    text.push('\n');
    for (types, name) in [
        (Types::Rma, "SHMEMI_INLINE_RMA"),
        (Types::AmoStd, "SHMEMI_INLINE_AMO"),
        (Types::Bitwise, "SHMEMI_INLINE_BITWISE"),
    ] {
        for row in types.rows() {
            let _ = writeln!(text, "{name}({}, {})", row.name, row.c);
        }
    }
    for row in Types::AmoExt.rows() {
        // Real numbers are exchanged as the integers of their size.
        let bits = match row.c {
            "float" => "uint32_t",
            "double" => "uint64_t",
            other => other,
        };
        let _ = writeln!(
            text,
            "SHMEMI_INLINE_EXTENDED({}, {}, {bits})",
            row.name, row.c
        );
    }
    for row in Types::Sizes.rows() {
        let _ = writeln!(text, "SHMEMI_INLINE_SIZED({}, {})", row.name, row.c);
    }
    text.push_str("SHMEMI_INLINE_SIZED(mem, 1)\n");
    text
}

/// extensions.h: names of strided blocks and scans before OpenSHMEM 1.6.
pub fn extensions() -> String {
    let mut text = head(
        "extensions.h",
        "names with shmemx_ of routines that were extensions before OpenSHMEM 1.6.",
    );
    text.push('\n');
    for routine in sections().into_iter().flat_map(|section| section.routines) {
        if ["_ibput", "_ibget", "_sum_inscan", "_sum_exscan"]
            .iter()
            .any(|end| routine.name.ends_with(end))
        {
            if let Some(generic) = routine.generic {
                let _ = writeln!(text, "#define shmemx_{generic} shmem_{generic}");
            }
            for name in routine.names() {
                let _ = writeln!(
                    text,
                    "#define {} {name}",
                    name.replacen("shmem_", "shmemx_", 1)
                );
            }
        }
    }
    text
}
