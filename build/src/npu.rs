//! Compiles kernels for real NPUs with the CANN toolkit's bisheng: a device-only object a source and architecture, as
//! `aclrtBinaryLoadFromData` takes it. Command lines: the vendor's CMake rule for such objects (compile with `--aicore-only`, link with
//! the toolkit's `ld.lld -m aicorelinux`). It has not run where this was written: no toolkit there.

use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installed CANN toolkit that can compile kernels.
#[derive(Clone, Debug)]
pub struct Toolkit {
    home: PathBuf,
    bisheng: PathBuf,
    linker: PathBuf,
    archs: Vec<u32>,
}

impl Toolkit {
    /// The toolkit that `ASCEND_HOME_PATH` or `ASCEND_TOOLKIT_HOME` names; None when neither has bisheng.
    ///
    /// # Errors
    /// bisheng without its linker, or an `NPUSHMEM_NPU_ARCHS` that is no list of numbers.
    pub fn find() -> Result<Option<Toolkit>> {
        let homes = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"]
            .iter()
            .filter_map(std::env::var_os)
            .map(PathBuf::from);
        for home in homes {
            if let Some(toolkit) = Self::at(&home)? {
                return Ok(Some(toolkit));
            }
        }
        Ok(None)
    }

    fn at(home: &Path) -> Result<Option<Toolkit>> {
        let arch_folder = format!("{}-linux", std::env::consts::ARCH);
        let folders = [
            home.join("bin"),
            home.join(arch_folder).join("ccec_compiler/bin"),
            home.join("compiler/ccec_compiler/bin"),
        ];
        let Some(bisheng) = folders
            .iter()
            .map(|f| f.join("bisheng"))
            .find(|p| p.is_file())
        else {
            return Ok(None);
        };
        let Some(linker) = folders
            .iter()
            .map(|f| f.join("ld.lld"))
            .find(|p| p.is_file())
        else {
            bail!(
                "{} has no ld.lld beside it; the toolkit under {} is incomplete",
                bisheng.display(),
                home.display()
            );
        };
        let archs = parse_archs(std::env::var("NPUSHMEM_NPU_ARCHS").ok().as_deref())?;
        Ok(Some(Toolkit {
            home: home.to_owned(),
            bisheng,
            linker,
            archs,
        }))
    }

    /// The architectures to build for.
    pub fn archs(&self) -> &[u32] {
        &self.archs
    }

    /// Compiles and links one source to `object`.
    ///
    /// # Errors
    /// What bisheng or the linker refuses, with their output.
    pub fn compile(
        &self,
        source: &Path,
        arch: u32,
        includes: &[PathBuf],
        object: &Path,
    ) -> Result<()> {
        let relocatable = object.with_extension("rel.o");
        run(Command::new(&self.bisheng).args(self.compile_arguments(
            source,
            arch,
            includes,
            &relocatable,
        )))?;
        run(Command::new(&self.linker).args(link_arguments(&relocatable, object)))
    }

    fn compile_arguments(
        &self,
        source: &Path,
        arch: u32,
        includes: &[PathBuf],
        object: &Path,
    ) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            ["-x", "asc", "-c", "-O2", "-std=c++17", "--aicore-only"]
                .iter()
                .map(Into::into)
                .collect();
        arguments.push(format!("--npu-arch=dav-{arch}").into());
        let linux = self.home.join(format!("{}-linux", std::env::consts::ARCH));
        let toolkit = [
            self.home.join("include"),
            linux.join("tikcpp"),
            linux.join("tikcpp/tikcfw"),
            linux.join("tikcpp/tikcfw/impl"),
            linux.join("tikcpp/tikcfw/interface"),
            self.home.join("compiler/tikcpp"),
            self.home.join("compiler/tikcpp/tikcfw"),
        ];
        for folder in includes.iter().chain(&toolkit) {
            arguments.push("-I".into());
            arguments.push(folder.into());
        }
        arguments.push(source.into());
        arguments.push("-o".into());
        arguments.push(object.into());
        arguments
    }
}

fn link_arguments(relocatable: &Path, object: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-m", "aicorelinux", "-Ttext=0"]
        .iter()
        .map(Into::into)
        .collect();
    arguments.push(relocatable.into());
    arguments.extend(["-static".into(), "-o".into(), object.into()]);
    arguments
}

fn parse_archs(text: Option<&str>) -> Result<Vec<u32>> {
    let Some(text) = text.filter(|t| !t.trim().is_empty()) else {
        return Ok(crate::SIM_ARCHS.to_vec());
    };
    text.split(',')
        .map(|part| {
            part.trim().parse().with_context(|| {
                format!(
                    "NPUSHMEM_NPU_ARCHS={text}: {part:?} is no architecture number such as 2201"
                )
            })
        })
        .collect()
}

/// Runs a compiler; its whole output becomes the error when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    for line in String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|l| l.contains("warning:"))
    {
        println!("cargo:warning={line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolkit() -> Toolkit {
        Toolkit {
            home: "/cann".into(),
            bisheng: "/cann/bin/bisheng".into(),
            linker: "/cann/bin/ld.lld".into(),
            archs: vec![2201],
        }
    }

    #[test]
    fn a_hardware_object_is_device_only_for_its_architecture() {
        let arguments = toolkit().compile_arguments(
            Path::new("k.cpp"),
            2201,
            &["/dev-headers".into()],
            Path::new("k.rel.o"),
        );
        for wanted in [
            "--aicore-only",
            "--npu-arch=dav-2201",
            "-std=c++17",
            "/dev-headers",
            "k.cpp",
        ] {
            assert!(
                arguments.iter().any(|a| a == wanted),
                "{wanted} is missing in {arguments:?}"
            );
        }
        assert!(link_arguments(Path::new("a"), Path::new("b"))
            .iter()
            .any(|a| a == "aicorelinux"));
    }

    #[test]
    fn a_list_of_architectures_that_are_no_numbers_is_refused() {
        assert_eq!(parse_archs(Some("2201, 3510")).unwrap(), [2201, 3510]);
        assert!(parse_archs(Some("dav-2201"))
            .unwrap_err()
            .to_string()
            .contains("NPUSHMEM_NPU_ARCHS"));
    }

    #[test]
    fn a_folder_without_bisheng_is_no_toolkit() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Toolkit::at(folder.path()).unwrap().is_none());
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/bisheng"), "").unwrap();
        assert!(Toolkit::at(folder.path())
            .unwrap_err()
            .to_string()
            .contains("ld.lld"));
    }
}
