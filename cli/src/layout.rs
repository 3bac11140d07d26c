//! Where an installation, or a build tree, has the C API's header and library.
//!
//! Used by the compiler wrappers, and by `npushmem info`.

use std::path::{Path, PathBuf};

/// Name of the library's file.
pub const LIBRARY: &str = "libnpushmem.so";

/// Where header and library are.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Folder of shmem.h.
    pub include: PathBuf,
    /// Folder of the library.
    pub lib: PathBuf,
}

impl Layout {
    /// Finds them for a program in folder `bin`: PREFIX/bin of an installation, or the build tree's target/PROFILE.
    pub fn find(bin: &Path) -> Result<Self, String> {
        if let Some(prefix) = bin.parent() {
            let include = prefix.join("include");
            for lib in ["lib", "lib64"] {
                let lib = prefix.join(lib);
                if include.join("shmem.h").exists() && lib.join(LIBRARY).exists() {
                    return Ok(Self { include, lib });
                }
            }
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let include = source.parent().unwrap_or(source).join("capi/include");
        // In deps is what was built last, also by `cargo test`.
        let Some(lib) = [bin.join("deps"), bin.to_owned()]
            .into_iter()
            .find(|folder| folder.join(LIBRARY).exists())
        else {
            return Err(format!(
                "{LIBRARY} is neither in {} nor in the lib folder beside it; install with `make install PREFIX=...`, or build it with `cargo build -p npushmem-capi`",
                bin.display()
            ));
        };
        if !include.join("shmem.h").exists() {
            return Err(format!(
                "shmem.h is not in {}, where this wrapper was built; install with `make install PREFIX=...`",
                include.display()
            ));
        }
        Ok(Self { include, lib })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_without_the_library_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = Layout::find(&folder.path().join("bin")).unwrap_err();
        assert!(
            message.contains("libnpushmem.so") && message.contains("make install"),
            "{message}"
        );
    }

    #[test]
    fn an_installation_is_found_by_its_prefix() {
        let folder = tempfile::tempdir().unwrap();
        for (dir, file) in [("include", "shmem.h"), ("lib64", LIBRARY)] {
            std::fs::create_dir(folder.path().join(dir)).unwrap();
            std::fs::write(folder.path().join(dir).join(file), "").unwrap();
        }
        let found = Layout::find(&folder.path().join("bin")).unwrap();
        assert_eq!(found.include, folder.path().join("include"));
        assert_eq!(found.lib, folder.path().join("lib64"));
    }
}
