//! Where unit tests find the public graphs that are too large for the repository.

use std::path::PathBuf;

/// The folder with facebook_combined.txt and cora.cites: `NPUSHMEM_DATA`, else `shared/data` beside the workspace. Without it the test says so and
/// passes.
pub fn shared() -> Option<PathBuf> {
    let folder = match std::env::var_os("NPUSHMEM_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
    };
    if folder.join("cora.cites").is_file() {
        return Some(folder);
    }
    eprintln!(
        "skipped: no cora.cites in {}; set NPUSHMEM_DATA to a folder with the public graphs",
        folder.display()
    );
    None
}
