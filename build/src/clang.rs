//! Finds a clang that can compile kernels for the emulated NPU, and knows what its version lacks. Called by [`crate::sim`].

use anyhow::{bail, Result};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Oldest clang with the C++17 and address-space support that the AscendC headers need (Debian 12's).
const OLDEST: u32 = 14;
/// Newest `clang-NN` name that is tried.
const NEWEST: u32 = 30;

/// A clang that runs.
#[derive(Clone, Debug)]
pub struct Clang {
    /// What to execute.
    pub program: PathBuf,
    /// Major version.
    pub major: u32,
}

impl Clang {
    /// `NPUSHMEM_CLANG` if set (then nothing else is tried), else `clang`, else `clang-NN`, newest first.
    pub fn find() -> Result<Clang> {
        if let Some(program) = std::env::var_os("NPUSHMEM_CLANG").filter(|v| !v.is_empty()) {
            let program = PathBuf::from(program);
            return match version(&program) {
                Some(major) if major >= OLDEST => Ok(Clang { program, major }),
                Some(major) => bail!(
                    "NPUSHMEM_CLANG={} is clang {major}; kernels need clang {OLDEST} or newer",
                    program.display()
                ),
                None => bail!(
                    "NPUSHMEM_CLANG={} does not answer --version as clang does; unset it or name a clang",
                    program.display()
                ),
            };
        }
        let names = std::iter::once("clang".to_owned())
            .chain((OLDEST..=NEWEST).rev().map(|n| format!("clang-{n}")));
        let mut too_old = None;
        for program in names.map(PathBuf::from) {
            match version(&program) {
                Some(major) if major >= OLDEST => return Ok(Clang { program, major }),
                Some(major) => too_old = Some(major),
                None => {}
            }
        }
        let found = match too_old {
            Some(major) => format!("only clang {major} was found"),
            None => "none was found".to_owned(),
        };
        bail!(
            "kernels for the emulated NPU need clang {OLDEST} or newer; {found}. Install it (Debian, Ubuntu: apt install clang) \
             or name one in NPUSHMEM_CLANG"
        )
    }
}

/// Major version that `program --version` reports; None when it is no clang.
fn version(program: &std::path::Path) -> Option<u32> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

fn parse_version(text: &str) -> Option<u32> {
    let after = text.split("clang version ").nth(1)?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_line_gives_the_major_number() {
        assert_eq!(
            parse_version("Debian clang version 14.0.6\nTarget: x"),
            Some(14)
        );
        assert_eq!(
            parse_version("Apple clang version 17.0.0 (clang-1700)"),
            Some(17)
        );
        assert_eq!(parse_version("gcc (Debian 12.2.0) 12.2.0"), None);
    }
}
