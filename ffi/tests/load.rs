//! Filling tables from shared libraries. The libraries are made on the spot by the C compiler that kernels need
//! anyway (clang, or cc); without one these tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use npushmem_ffi::acl::{self, Acl};
use npushmem_ffi::hccp::{self, Hccp};
use npushmem_ffi::{LoadError, Symbol};

/// A shared library that has `symbols` as functions returning their index; `None` without a C compiler.
fn library(
    folder: &Path,
    name: &str,
    symbols: impl Iterator<Item = &'static str>,
) -> Option<PathBuf> {
    let source = folder.join("library.c");
    let text: String = symbols
        .enumerate()
        .map(|(index, symbol)| format!("int {symbol}(void) {{ return {index}; }}\n"))
        .collect();
    std::fs::write(&source, text).unwrap();
    let target = folder.join(name);
    for compiler in ["clang", "cc"] {
        let status = Command::new(compiler)
            .args(["-shared", "-fPIC", "-o"])
            .arg(&target)
            .arg(&source)
            .status();
        match status {
            Ok(status) => {
                assert!(
                    status.success(),
                    "{compiler} does not compile the test's library"
                );
                return Some(target);
            }
            Err(_) => continue,
        }
    }
    eprintln!("skipped: neither clang nor cc is installed");
    None
}

fn required(symbols: &'static [Symbol]) -> impl Iterator<Item = &'static str> {
    symbols
        .iter()
        .filter(|symbol| symbol.required)
        .map(|symbol| symbol.name)
}

#[test]
fn a_library_that_does_not_exist_is_an_error_that_says_what_to_install() {
    let error = Acl::load(&["libnpushmem-no-such-thing.so", "/nowhere/libascendcl.so"])
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(
        matches!(&error, LoadError::NoLibrary { causes } if causes.len() == 2),
        "{error:?}"
    );
    assert!(
        text.contains("libnpushmem-no-such-thing.so") && text.contains("set_env.sh"),
        "{text}"
    );
    assert!(Acl::load(&[]).is_err());
}

#[test]
fn a_library_with_the_required_symbols_loads_and_optional_ones_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = library(folder.path(), "full.so", required(acl::SYMBOLS)) else {
        return;
    };
    let path = path.to_str().unwrap();
    let table = Acl::load(&[path]).unwrap();
    assert_eq!(table.libraries(), [path]);
    assert!(table.optional.aclrtCreateNotify.is_none());
    // SAFETY: the test's function takes nothing and returns its index.
    assert_eq!(unsafe { (table.aclFinalize)() }, 1);
}

#[test]
fn a_missing_symbol_is_an_error_that_names_symbol_library_and_cann_version() {
    let folder = tempfile::tempdir().unwrap();
    let symbols = required(acl::SYMBOLS).filter(|name| *name != "aclrtIpcMemClose");
    let Some(path) = library(folder.path(), "old.so", symbols) else {
        return;
    };
    let path = path.to_str().unwrap();
    let error = Acl::load(&[path]).err().unwrap().to_string();
    for part in ["aclrtIpcMemClose", path, "libascendcl.so", "CANN 8.5.0"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn symbols_are_found_in_the_second_library_and_under_the_camel_case_name() {
    let folder = tempfile::tempdir().unwrap();
    let camel = hccp::SYMBOLS
        .iter()
        .filter(|symbol| symbol.required)
        .filter_map(|symbol| symbol.alternative);
    let Some(ra) = library(folder.path(), "ra.so", camel) else {
        return;
    };
    let Some(tsd) = library(folder.path(), "tsd.so", ["TsdOpen"].into_iter()) else {
        return;
    };
    let (ra, tsd) = (ra.to_str().unwrap(), tsd.to_str().unwrap());
    let table = Hccp::load(&[ra, tsd]).unwrap();
    assert_eq!(table.libraries(), [ra, tsd]);
    // SAFETY: the test's functions ignore their arguments and return their index.
    unsafe {
        assert_eq!((table.ra_init)(std::ptr::null()), 1);
        assert_eq!((table.TsdOpen)(0, 1), 0);
    }

    let error = Hccp::load(&[ra, "libnpushmem-no-tsd.so"])
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("TsdOpen") && error.contains("libtsdclient.so"),
        "{error}"
    );
    assert!(error.contains("libnpushmem-no-tsd.so"), "{error}");
}
