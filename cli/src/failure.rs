//! How a command ends when it does not end well: one line on stderr and an exit code.
//!
//! Not an error type of the library: the library's errors become text here. Every command returns it; `main` prints it.

use std::fmt::Display;
use std::path::Path;

/// Exit code of bad input: a file, an option or an environment variable that cannot be used as it is.
pub const BAD_INPUT: u8 = 2;
/// Exit code of everything else that went wrong.
pub const FAILED: u8 = 1;

/// A message for the user and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Printed in one line.
    pub message: String,
    /// Exit code of the program.
    pub code: u8,
}

impl Failure {
    /// Input that the user can correct: exit code 2.
    pub fn input(message: impl Display) -> Self {
        Self {
            message: message.to_string(),
            code: BAD_INPUT,
        }
    }

    /// Anything else: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self {
            message: message.to_string(),
            code: FAILED,
        }
    }

    /// The message as one line, whatever the sources of its parts put into it.
    pub fn line(&self) -> String {
        let lines: Vec<&str> = self
            .message
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        lines.join("; ")
    }
}

/// An error and its causes in one text. The library's errors say their causes themselves; those are not said twice.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// A result file must be writable before hours of work, not after.
pub fn check_target(option: &str, path: &Path) -> Result<(), Failure> {
    let refuse = |reason: &str| {
        Err(Failure::input(format!(
            "{option} {}: {reason}",
            path.display()
        )))
    };
    if path.is_dir() {
        return refuse("is a folder; name a file");
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            refuse(&format!("there is no folder {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_is_printed_as_one() {
        assert_eq!(
            Failure::input("first\n\n  second \n").line(),
            "first; second"
        );
        assert_eq!(Failure::failed("as it is").line(), "as it is");
    }
}
