//! The generated headers are what the type table says: compared on every run, written anew with `NPUSHMEM_WRITE_HEADERS=1` (`make header`).
//!
//! Not a test of the library: nothing is linked or run.

#[path = "../../src/constants.rs"]
mod constants;
mod families;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

fn include() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("include/npushmem")
}

#[test]
fn the_committed_headers_are_the_generated_ones() {
    let write = std::env::var_os("NPUSHMEM_WRITE_HEADERS").is_some();
    for (file, text) in [
        ("constants.h", text::constants()),
        ("declarations.h", text::declarations(false)),
        ("profiling.h", text::declarations(true)),
        ("generic.h", text::generic()),
        ("overloads.h", text::overloads()),
        ("inline.h", text::inline()),
        ("extensions.h", text::extensions()),
    ] {
        let path = include().join(file);
        if write {
            std::fs::write(&path, text).unwrap();
        } else {
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                committed == text,
                "{} differs from the type table: run `make header`",
                path.display()
            );
        }
    }
}

#[test]
fn no_routine_is_declared_twice() {
    let mut seen = BTreeSet::new();
    for section in families::sections() {
        for routine in section.routines {
            for name in routine.names() {
                assert!(seen.insert(name.clone()), "{name} is declared twice");
            }
        }
    }
    assert!(seen.len() > 1800, "{} routines", seen.len());
}

#[test]
fn what_shmem4py_calls_is_declared() {
    let declared: BTreeSet<String> = families::sections()
        .into_iter()
        .flat_map(|section| section.routines)
        .flat_map(|routine| routine.names())
        .collect();
    let missing: Vec<&str> = include_str!("shmem4py-symbols.txt")
        .lines()
        .filter(|name| !declared.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_placeholder_is_replaced_everywhere() {
    let text = text::declarations(false);
    for placeholder in ["NAME", "TYPE", "SIZE"] {
        assert!(!text.contains(placeholder), "{placeholder} is left");
    }
    assert!(text.contains("\nvoid shmem_ctx_longdouble_put(shmem_ctx_t ctx, long double *dest, const long double *source, size_t nelems, int pe);\n"));
    assert!(text.contains("\nSHMEMI_NORETURN void shmem_global_exit(int status);\n"));
}
