//! Compiles kernels for the emulated NPU: one shared object a source and architecture, with no undefined symbols but libc's and libm's,
//! that exports `npusim_bind` (sim/ascendc/npusim.h).
//!
//! The object is made for the processor of the machine that builds it (`-march=native`), because it runs on that machine: the vector
//! operations are loops that the compiler turns into the widest vectors it may use. `NPUSHMEM_SIM_MARCH` names another processor, for
//! example `x86-64-v2` when a container image is built on one machine and runs on others. A cross build takes the target's default.

use crate::clang::Clang;
use crate::{elf, generate, npu, scan};
use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// clang, the AscendC headers and the folders to search.
#[derive(Clone, Debug)]
pub struct Compiler {
    clang: Clang,
    ascendc: PathBuf,
    root: PathBuf,
    includes: Vec<PathBuf>,
    extra: Vec<OsString>,
}

/// One compiled kernel object.
#[derive(Clone, Debug)]
pub struct Object {
    /// The shared object: `<stem>.sim-<arch>.so` in the output folder.
    pub path: PathBuf,
    /// Kernels in it, with their namespaces.
    pub kernels: Vec<String>,
    /// Every file that took part, for cargo's `rerun-if-changed`.
    pub dependencies: Vec<PathBuf>,
}

impl Compiler {
    /// Finds clang. `ascendc` is the folder of the emulated NPU's AscendC headers (kernel_operator.h, npusim.h).
    ///
    /// # Errors
    /// No usable clang, or no headers in that folder.
    pub fn find(ascendc: impl Into<PathBuf>) -> Result<Compiler> {
        let ascendc = ascendc.into();
        if !ascendc.join("kernel_operator.h").is_file() {
            bail!(
                "{} has no kernel_operator.h: it is not the emulated NPU's AscendC folder",
                ascendc.display()
            );
        }
        let root = std::env::current_dir().context("the current folder is gone")?;
        Ok(Compiler {
            clang: Clang::find()?,
            ascendc,
            root,
            includes: Vec::new(),
            extra: Vec::new(),
        })
    }

    /// The folder that relative sources start at; messages of kernels name sources relative to it. Default: the current folder.
    #[must_use]
    pub fn root(mut self, folder: impl Into<PathBuf>) -> Self {
        self.root = folder.into();
        self
    }

    /// Adds folders to search for headers.
    #[must_use]
    pub fn includes(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.includes.extend(folders);
        self
    }

    /// Adds arguments for clang, such as `-DNAME=1`.
    #[must_use]
    pub fn arguments<S: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.extra.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Compiles `source` for `__NPU_ARCH__` `arch` into the folder `out`.
    ///
    /// # Errors
    /// A source that cannot be read, has no kernel, or that clang refuses (its output is in the error).
    pub fn compile(&self, source: &Path, arch: u32, out: &Path) -> Result<Object> {
        if !self.root.join(source).is_file() {
            bail!(
                "kernel source {} does not exist (looked in {})",
                source.display(),
                self.root.display()
            );
        }
        let stem = source
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or("kernel");
        let base = out.join(format!("{stem}.sim-{arch}"));
        let file = |suffix: &str| PathBuf::from(format!("{}{suffix}", base.display()));
        let (preprocessed, depends, wrapper, object) =
            (file(".i"), file(".d"), file(".cpp"), file(".so"));

        npu::run(
            self.clang(arch)
                .arg("-E")
                .arg(source)
                .arg("-o")
                .arg(&preprocessed),
        )
        .with_context(|| format!("cannot preprocess {}", source.display()))?;
        let kernels = scan::kernels(&String::from_utf8_lossy(&read(&preprocessed)?))?;
        if kernels.is_empty() {
            bail!("{} defines no __global__ kernel", source.display());
        }
        std::fs::write(
            &wrapper,
            generate::wrapper(&source.display().to_string(), &kernels),
        )
        .with_context(|| format!("cannot write {}", wrapper.display()))?;
        npu::run(
            self.clang(arch)
                .args(self.code_arguments())
                .args(["-MD", "-MF"])
                .arg(&depends)
                .args(["-include", "npusim/kernel.h", "-include"])
                .arg(source)
                .arg(&wrapper)
                .arg("-o")
                .arg(&object)
                .arg("-lm"),
        )
        .with_context(|| {
            format!(
                "cannot compile {} for the emulated NPU ({arch})",
                source.display()
            )
        })?;
        match elf::shared_variables(&read(&object)?) {
            Some(names) if !names.is_empty() => bail!(
                "{} has global variables that all cores would share ({}); a core has none: use locals, the unified buffer, global memory, \
                 or constexpr for constants",
                source.display(),
                names.join(", ")
            ),
            _ => {}
        }
        let dependencies: Vec<PathBuf> = parse_depends(&String::from_utf8_lossy(&read(&depends)?))
            .into_iter()
            .map(|p| self.root.join(p))
            .filter(|p| *p != wrapper) // written by every run: cargo would never be content
            .collect();
        // The preprocessed text has done its work and is megabytes.
        let _ = std::fs::remove_file(&preprocessed);
        Ok(Object {
            path: object,
            kernels: kernels.into_iter().map(|k| k.path).collect(),
            dependencies,
        })
    }

    /// clang with what decides how the source is read: language, macros, folders.
    fn clang(&self, arch: u32) -> Command {
        let mut command = Command::new(&self.clang.program);
        command.current_dir(&self.root);
        command.args(["-x", "c++", "-std=c++17", "-D__NPUSIM__=1"]);
        command.arg(format!("-D__NPU_ARCH__={arch}"));
        command.args(self.processor());
        for folder in std::iter::once(&self.ascendc).chain(&self.includes) {
            command.arg("-I").arg(folder);
        }
        command.args(&self.extra);
        command
    }

    /// How code is made. Floating-point operations are not fused, so that Mul then Add rounds twice as the vector unit does.
    fn code_arguments(&self) -> Vec<&'static str> {
        vec![
            "-O2",
            "-g",
            "-fPIC",
            "-shared",
            "-Wl,-z,defs",
            "-fvisibility=hidden",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-threadsafe-statics",
            "-fno-strict-aliasing",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-U_FORTIFY_SOURCE",
            "-Wall",
            "-Wno-unused-function",
            "-Werror=unknown-attributes",
            "-Werror=ignored-attributes",
            "-Werror=return-type",
            "-Wno-pass-failed",
        ]
    }

    /// clang before 15 has no _Float16 on x86.
    fn half_is_fp16(&self) -> bool {
        self.clang.major < 15 && self.target_arch() == "x86_64"
    }

    fn target_arch(&self) -> String {
        std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_else(|_| std::env::consts::ARCH.to_owned())
    }

    /// The processor that code is made for.
    fn processor(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let cross = match (std::env::var("TARGET"), std::env::var("HOST")) {
            (Ok(target), Ok(host)) if target != host => {
                arguments.push(format!("--target={target}"));
                true
            }
            _ => false,
        };
        let arch = self.target_arch();
        let option = if arch == "x86_64" { "-march" } else { "-mcpu" };
        match std::env::var("NPUSHMEM_SIM_MARCH")
            .ok()
            .filter(|v| !v.trim().is_empty())
        {
            Some(processor) => arguments.push(format!("{option}={}", processor.trim())),
            None if !cross && matches!(arch.as_str(), "x86_64" | "aarch64") => {
                arguments.push(format!("{option}=native"))
            }
            None => {}
        }
        if self.half_is_fp16() {
            // __fp16 is a storage type to clang 14 unless it is told that functions may take it.
            arguments.push("-Xclang".into());
            arguments.push("-fallow-half-arguments-and-returns".into());
        }
        arguments
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The prerequisites of a make rule: `target: a b\ c \` with escaped blanks.
fn parse_depends(text: &str) -> Vec<PathBuf> {
    let joined = text.replace("\\\n", " ");
    let Some((_, list)) = joined.split_once(": ") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut current = String::new();
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if matches!(characters.peek(), Some(' ' | '#' | '\\')) => {
                current.extend(characters.next())
            }
            '$' if characters.peek() == Some(&'$') => current.extend(characters.next()),
            c if c.is_whitespace() => {
                if !current.is_empty() {
                    all.push(PathBuf::from(std::mem::take(&mut current)));
                }
            }
            c => current.push(c),
        }
    }
    if !current.is_empty() {
        all.push(PathBuf::from(current));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prerequisites_with_blanks_and_line_breaks_are_read() {
        assert_eq!(
            parse_depends("k.o: kernels/k.cpp \\\n  a\\ b.h c$$.h\n"),
            [
                PathBuf::from("kernels/k.cpp"),
                "a b.h".into(),
                "c$.h".into()
            ]
        );
    }
}
