//! What a build script calls: collects sources, compiles each for every target and writes `kernels.rs`.

use crate::{generate, npu, sim, SIM_ARCHS};
use anyhow::{anyhow, bail, Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The kernels of one crate. See the crate's page for an example.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    sources: Vec<PathBuf>,
    includes: Vec<PathBuf>,
    ascendc: Option<PathBuf>,
    crate_path: Option<String>,
}

/// One source compiled for one target.
pub(crate) struct Built {
    pub(crate) sim: bool,
    pub(crate) npu_arch: u32,
    /// File in OUT_DIR.
    pub(crate) file: String,
}

impl Kernels {
    /// No kernels yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source: one kernel object, named as the file's stem. Relative paths start at the crate's folder.
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(path.into());
        self
    }

    /// Adds a folder to search for headers. The device headers of `npushmem` and, for the emulated NPU, its AscendC headers are
    /// searched without being named when `npushmem` is a dependency of the crate.
    pub fn include(mut self, path: impl Into<PathBuf>) -> Self {
        self.includes.push(path.into());
        self
    }

    /// Where the emulated NPU's AscendC headers are, instead of where cargo says that `npushmem` or `npusim` has them.
    pub fn ascendc(mut self, path: impl Into<PathBuf>) -> Self {
        self.ascendc = Some(path.into());
        self
    }

    /// How generated code names the `npushmem` crate; default `::npushmem`. The crate itself says `crate`.
    pub fn crate_path(mut self, path: impl Into<String>) -> Self {
        self.crate_path = Some(path.into());
        self
    }

    /// Compiles everything and writes `$OUT_DIR/kernels.rs`, which holds one public static of type `KernelObject` a source, named as
    /// the file's stem in capitals. Prints cargo's `rerun-if` lines.
    ///
    /// # Errors
    /// Outside a build script, without a usable clang, without the AscendC headers, and for what the compilers refuse.
    pub fn compile(self) -> Result<()> {
        let out = PathBuf::from(variable("OUT_DIR")?);
        let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
        for name in [
            "NPUSHMEM_CLANG",
            "NPUSHMEM_SIM_MARCH",
            "NPUSHMEM_NPU_ARCHS",
            "ASCEND_HOME_PATH",
            "ASCEND_TOOLKIT_HOME",
            "DOCS_RS",
        ] {
            println!("cargo:rerun-if-env-changed={name}");
        }
        let crate_path = self.crate_path.as_deref().unwrap_or("::npushmem");
        let names = names(&self.sources)?;
        let mut objects: Vec<(String, Vec<Built>)> =
            names.into_iter().map(|n| (n, Vec::new())).collect();
        if std::env::var_os("DOCS_RS").is_none() {
            let dependencies = self.build_all(&root, &out, &mut objects)?;
            for path in dependencies {
                println!("cargo:rerun-if-changed={}", path.display());
            }
        }
        let text = generate::kernels_rs(crate_path, &objects);
        let file = out.join("kernels.rs");
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    fn build_all(
        &self,
        root: &Path,
        out: &Path,
        objects: &mut [(String, Vec<Built>)],
    ) -> Result<BTreeSet<PathBuf>> {
        let mut includes: Vec<PathBuf> = self.includes.iter().map(|p| root.join(p)).collect();
        includes.extend(metadata("DEVICE", &["NPUSHMEM"]));
        let ascendc = self
            .ascendc
            .as_ref()
            .map(|p| root.join(p))
            .or_else(|| metadata("ASCENDC", &["NPUSIM", "NPUSHMEM"]));
        let ascendc = ascendc.ok_or_else(|| {
            anyhow!("no AscendC headers for the emulated NPU: make npushmem (or npusim) a dependency of this crate, or name the folder with Kernels::ascendc")
        })?;
        let compiler = sim::Compiler::find(ascendc)?
            .root(root)
            .includes(includes.iter().cloned());
        let mut dependencies = BTreeSet::new();
        let jobs: Vec<(usize, u32)> = (0..objects.len())
            .flat_map(|i| SIM_ARCHS.map(|arch| (i, arch)))
            .collect();
        let built = in_parallel(&jobs, |&(i, arch)| {
            compiler.compile(&self.sources[i], arch, out)
        });
        for (&(i, arch), object) in jobs.iter().zip(built) {
            let object = object?;
            dependencies.extend(object.dependencies);
            let file = object
                .path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            objects[i].1.push(Built {
                sim: true,
                npu_arch: arch,
                file,
            });
        }
        match npu::Toolkit::find()? {
            Some(toolkit) => {
                for (i, (name, targets)) in objects.iter_mut().enumerate() {
                    for &arch in toolkit.archs() {
                        let file = format!("{name}.npu-{arch}.o");
                        toolkit.compile(&root.join(&self.sources[i]), arch, &includes, &out.join(&file))?;
                        targets.push(Built { sim: false, npu_arch: arch, file });
                    }
                }
            }
            None => println!("npushmem-build: no bisheng under ASCEND_HOME_PATH or ASCEND_TOOLKIT_HOME: made sim only"),
        }
        Ok(dependencies)
    }
}

/// File stems, each once and each usable as a Rust name.
fn names(sources: &[PathBuf]) -> Result<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for path in sources {
        let name = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default()
            .to_owned();
        let mut letters = name.chars();
        let usable = letters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !usable {
            bail!("kernel source {}: the file's name becomes a Rust static, so it may have letters, digits and _ only", path.display());
        }
        if !seen.insert(name.to_ascii_uppercase()) {
            bail!("kernel source {}: another source has the same name; objects are named by file stem", path.display());
        }
        all.push(name);
    }
    Ok(all)
}

fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set: Kernels::compile is for build scripts run by cargo")
    })
}

/// What a dependency's build script published: DEP_<LINKS>_<KEY>.
fn metadata(key: &str, links: &[&str]) -> Option<PathBuf> {
    links
        .iter()
        .find_map(|l| std::env::var_os(format!("DEP_{l}_{key}")))
        .map(PathBuf::from)
}

/// Runs the jobs on as many threads as cargo allows; results in the jobs' order.
fn in_parallel<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let allowed = std::env::var("NUM_JOBS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1usize);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..allowed.clamp(1, jobs.len().max(1)))
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        match jobs.get(i) {
                            Some(job) => mine.push((i, work(job))),
                            None => return mine,
                        }
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
            .collect()
    });
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, r)| r).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sources_with_one_stem_are_refused() {
        let error = names(&["a/k.cpp".into(), "b/K.cpp".into()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("b/K.cpp") && error.contains("same name"),
            "{error}"
        );
    }

    #[test]
    fn a_stem_that_is_no_rust_name_is_refused() {
        assert!(names(&["halo-2d.cpp".into()]).is_err());
        assert_eq!(names(&["halo_2d.cpp".into()]).unwrap(), ["halo_2d"]);
    }

    #[test]
    fn parallel_results_come_in_the_jobs_order() {
        assert_eq!(in_parallel(&[3, 1, 2], |j| j * 10), [30, 10, 20]);
    }
}
