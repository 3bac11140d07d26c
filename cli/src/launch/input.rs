//! The launcher's stdin for a PE. PEs are not in the terminal's foreground group and must not read it themselves.

use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::process::ChildStdin;
use std::thread;

/// Who gets the launcher's stdin; the others read an empty file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Nobody.
    Nobody,
    /// One PE.
    Pe(u32),
    /// Each PE gets a copy.
    All,
}

impl Input {
    /// Whether `pe` gets it.
    pub fn is_for(self, pe: u32) -> bool {
        match self {
            Self::Nobody => false,
            Self::Pe(one) => one == pe,
            Self::All => true,
        }
    }
}

impl std::str::FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Nobody),
            "all" => Ok(Self::All),
            number => number
                .parse()
                .map(Self::Pe)
                .map_err(|_| "expected a PE number, `all` or `none`".to_owned()),
        }
    }
}

/// Copies stdin to `sinks` from a thread that lives as long as the process. A PE that reads no more is left out.
pub fn forward(input: Input, mut sinks: Vec<ChildStdin>) {
    let stdin = std::io::stdin();
    if input == Input::Nobody
        || sinks.is_empty()
        || (stdin.is_terminal() && !in_foreground(stdin.as_raw_fd()))
    {
        return; // dropping the sinks closes them
    }
    let copy = move || {
        let mut buffer = vec![0u8; 64 << 10];
        let mut stdin = std::io::stdin().lock();
        while !sinks.is_empty() {
            match stdin.read(&mut buffer) {
                Ok(read) if read > 0 => sinks.retain_mut(|sink| {
                    sink.write_all(&buffer[..read])
                        .and_then(|()| sink.flush())
                        .is_ok()
                }),
                _ => return,
            }
        }
    };
    // Without the thread the PEs see an empty stdin, which is what they would see from a terminal in the background.
    let _ = thread::Builder::new()
        .name("npushmem-input".into())
        .spawn(copy);
}

/// Reading a terminal from the background would stop the launcher (SIGTTIN).
fn in_foreground(terminal: i32) -> bool {
    // SAFETY: both calls only ask the kernel; an invalid descriptor gives an error.
    unsafe { libc::tcgetpgrp(terminal) == libc::getpgrp() }
}
