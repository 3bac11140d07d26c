//! How a command ends when it does not end well: one line on stderr and an exit code.
//!
//! Not an error type of the library: the library's errors become text here. Every command returns it; `main` prints it.

use std::fmt::Display;

/// Exit code of bad input: a file, an option or an environment variable that cannot be used as it is.
pub const BAD_INPUT: u8 = 2;
/// Exit code of everything else that went wrong.
pub const FAILED: u8 = 1;

/// A message for the user (or none, when the user has been told already) and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Printed in one line; `None` when the cause has been printed already.
    pub message: Option<String>,
    /// Exit code of the program.
    pub code: u8,
}

impl Failure {
    /// Input that the user can correct: exit code 2.
    pub fn input(message: impl Display) -> Self {
        Self { message: Some(message.to_string()), code: BAD_INPUT }
    }

    /// Anything else: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self { message: Some(message.to_string()), code: FAILED }
    }

    /// An exit code whose reason has been printed.
    pub fn silent(code: u8) -> Self {
        Self { message: None, code }
    }

    /// The message as one line, whatever the sources of its parts put into it.
    pub fn line(&self) -> Option<String> {
        let message = self.message.as_ref()?;
        let parts: Vec<&str> = message.lines().map(str::trim).filter(|part| !part.is_empty()).collect();
        Some(parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_is_printed_as_one() {
        assert_eq!(Failure::input("first\n\n  second \n").line().as_deref(), Some("first; second"));
        assert_eq!(Failure::silent(3).line(), None);
    }
}
