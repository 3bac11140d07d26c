//! The library under the vendor's names: a C program uses it, our own loader fills its tables from it, and it exports nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;

use npushmem_ffi::{acl, hccp};
use tempfile::TempDir;

/// The vendor's names that the emulator stands in for.
const NAMES: [&str; 4] = [
    "libascendcl.so",
    "libacl_rt.so",
    "libra.so",
    "libtsdclient.so",
];

/// The library as cargo built it for this test, next to the test program.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let library = program.with_file_name("libnpusim_abi.so");
    assert!(
        library.exists(),
        "{} is missing: cargo builds it with this test",
        library.display()
    );
    library
}

/// A folder with symbolic links under the vendor's names.
fn installed() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in NAMES {
        std::os::unix::fs::symlink(library(), folder.path().join(name)).expect("a link");
    }
    folder
}

/// What a command printed; ends the test when it failed.
fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn a_c_program_that_opens_the_vendors_libraries_gets_the_emulator() {
    let folder = installed();
    let program = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vendor_names.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    output(
        Command::new(compiler)
            .args(["-Wall", "-Werror", "-o"])
            .args([&program, &source])
            .arg("-ldl"),
    );
    let text = output(Command::new(&program).env("LD_LIBRARY_PATH", folder.path()));
    assert_eq!(text, "good\n");
}

#[test]
fn our_own_loader_fills_its_tables_from_it() {
    let folder = installed();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let acl = acl::Acl::load(&[&path("libacl_rt.so"), &path("libascendcl.so")])
        .expect("every required function of ACL");
    let hccp = hccp::Hccp::load(&[&path("libra.so"), &path("libtsdclient.so")])
        .expect("every function of HCCP");
    let mut count = 0;
    // SAFETY: null is "no configuration"; the place for the number lives through the call.
    unsafe {
        assert_eq!((acl.aclInit)(std::ptr::null()), 0);
        assert_eq!((acl.aclrtGetDeviceCount)(&mut count), 0);
        assert!(count > 0);
        assert_eq!((hccp.TsdOpen)(0, 1), 0);
        assert_eq!((acl.aclFinalize)(), 0);
    }
}

#[test]
fn it_exports_the_vendors_names_and_nothing_else() {
    let text = output(
        Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(library()),
    );
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let foreign = |name: &&&str| {
        !["acl", "ra_", "Ra", "Tsd"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let foreign: Vec<_> = names.iter().filter(foreign).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    for symbol in acl::SYMBOLS
        .iter()
        .chain(hccp::SYMBOLS)
        .filter(|symbol| symbol.required)
    {
        assert!(names.contains(&symbol.name), "{} is missing", symbol.name);
        assert!(
            symbol
                .alternative
                .is_none_or(|other| names.contains(&other)),
            "{:?} is missing",
            symbol.alternative
        );
    }
}

#[test]
fn its_name_for_the_linker_is_libnpusim() {
    let text = output(Command::new("readelf").arg("-d").arg(library()));
    assert!(
        text.lines()
            .any(|line| line.contains("SONAME") && line.contains("[libnpusim.so]")),
        "{text}"
    );
}
