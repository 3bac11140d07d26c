//! Identity of a process (number and start time), and files of other processes of the same user.
//!
//! A process number alone is no identity: it is reused. Used by the port's import and by the watcher.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use super::error::NicError;

/// Index, after the command name in parentheses, of "starttime" (field 22 of `/proc/PID/stat`; proc(5)).
const START_TIME_INDEX: usize = 22 - 3;

/// When a process started, clock ticks since boot.
pub(super) fn start_time(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_start_time(&stat).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/{pid}/stat has no start time"),
        )
    })
}

fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name
        .split_ascii_whitespace()
        .nth(START_TIME_INDEX)?
        .parse()
        .ok()
}

/// A file that another process has open: who, which descriptor, and what it must turn out to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForeignFile {
    pub pid: u32,
    pub start_time: u64,
    pub fd: i32,
    pub inode: u64,
    /// What it is, for messages.
    pub what: &'static str,
}

impl ForeignFile {
    /// Opens it through `/proc`, and checks that the process and the file are the ones meant.
    pub(super) fn open(&self) -> Result<OwnedFd, NicError> {
        let path = format!("/proc/{}/fd/{}", self.pid, self.fd);
        let opened = rustix::fs::open(path.as_str(), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        // The start time is read after the file was opened: if it still fits, the descriptor belonged to that process.
        match start_time(self.pid) {
            Ok(now) if now == self.start_time => (),
            Ok(_) => return Err(self.refused("the process has ended and its number was reused")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.refused("there is no such process here: it has ended, or it runs in another PID namespace (share one between the processes of a job)"));
            }
            Err(error) => return Err(self.refused(&error.to_string())),
        }
        let file = opened.map_err(|errno| match errno {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => self.refused(
                "permission denied: the process belongs to another user, or is not dumpable (set-user-ID program, prctl PR_SET_DUMPABLE)",
            ),
            rustix::io::Errno::NOENT => self.refused("the descriptor was closed, or the process runs in another PID namespace"),
            other => self.refused(&io::Error::from(other).to_string()),
        })?;
        let stat = rustix::fs::fstat(&file).map_err(NicError::system("fstat"))?;
        if stat.st_ino != self.inode {
            return Err(self.refused(&format!(
                "it is another file now (inode {}, expected {})",
                stat.st_ino, self.inode
            )));
        }
        Ok(file)
    }

    /// The error that this file is not fit.
    pub(super) fn refused(&self, why: &str) -> NicError {
        NicError::Peer {
            pid: self.pid,
            what: self.what,
            fd: self.fd,
            why: why.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_command_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let fields: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) b (c)) {}", fields.join(" "));
        assert_eq!(parse_start_time(&stat), Some(22));
    }

    fn own_file(fd: i32, inode: u64, start_time: u64) -> ForeignFile {
        ForeignFile {
            pid: std::process::id(),
            start_time,
            fd,
            inode,
            what: "test file",
        }
    }

    #[test]
    fn a_foreign_file_is_refused_when_process_descriptor_or_inode_do_not_fit() {
        let file =
            rustix::fs::memfd_create("npushmem-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let inode = rustix::fs::fstat(&file).unwrap().st_ino;
        let start = start_time(std::process::id()).unwrap();
        assert!(own_file(file.as_raw_fd(), inode, start).open().is_ok());
        let why = |foreign: ForeignFile| foreign.open().unwrap_err().to_string();
        assert!(why(own_file(file.as_raw_fd(), inode + 1, start)).contains("another file now"));
        assert!(why(own_file(file.as_raw_fd(), inode, start + 1)).contains("number was reused"));
        assert!(why(own_file(1_000_000, inode, start)).contains("descriptor was closed"));
        let gone = ForeignFile {
            pid: 0x3fff_fff0,
            ..own_file(3, inode, start)
        };
        assert!(why(gone).contains("PID namespace"));
    }
}
