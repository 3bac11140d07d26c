//! `npushmem doctor`: tries what jobs need on this machine and says what is missing and how to get it.
//!
//! Each check tries the thing itself (makes an anonymous file, opens it through /proc, loads a library) instead of guessing from versions.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use rustix::fs::{memfd_create, MemfdFlags};

use crate::failure::Failure;
use crate::info;

/// Check what jobs need on this machine, and say what is missing and the fix. Exit code 1 when something needed is missing.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

/// What a check found.
enum Found {
    /// There.
    Good(String),
    /// Missing, but only some uses need it: what is lost, and the fix.
    Optional(String),
    /// Missing and needed: the fix.
    Missing(String),
}

/// Runs the command.
pub fn run(_args: DoctorArgs) -> Result<(), Failure> {
    type Check = fn() -> Found;
    let checks: [(&str, Check); 8] = [
        ("anonymous memory (memfd)", memfd),
        ("memory between processes", between_processes),
        ("process watching (pidfd)", pidfd),
        ("loopback network", loopback),
        ("kernel compiler (clang)", clang),
        ("CANN toolkit (bisheng)", toolkit),
        ("ACL runtime library", acl),
        ("configuration", configuration),
    ];
    let mut report = String::new();
    let mut missing = 0;
    for (name, check) in checks {
        let (mark, text) = match check() {
            Found::Good(text) => ("ok", text),
            Found::Optional(text) => ("without", text),
            Found::Missing(text) => {
                missing += 1;
                ("missing", text)
            }
        };
        report += &format!("{mark:<8} {name}: {text}\n");
    }
    if missing == 0 {
        report += "Jobs can run here.\n";
    }
    crate::print(&report)?;
    match missing {
        0 => Ok(()),
        1 => Err(Failure::failed("1 thing that jobs need is missing")),
        more => Err(Failure::failed(format!(
            "{more} things that jobs need are missing"
        ))),
    }
}

fn memfd() -> Found {
    match memfd_create(
        "npushmem-doctor",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    ) {
        Ok(_) => Found::Good("can be made".into()),
        Err(error) => Found::Missing(format!(
            "memfd_create: {error}; needs Linux 3.17 or newer and a sandbox that allows it"
        )),
    }
}

/// PEs map each other's memory through the owner's /proc/PID/fd. A child process asks for ours.
fn between_processes() -> Found {
    let Ok(memory) = memfd_create("npushmem-doctor", MemfdFlags::CLOEXEC) else {
        return Found::Missing("needs memfd, see above".into());
    };
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    if let Err(error) = File::options().read(true).write(true).open(&path) {
        return Found::Missing(format!("{path}: {error}; mount /proc, without hidepid"));
    }
    match Command::new("/bin/sh").args(["-c", &format!(": <> {path}")]).output() {
        Ok(output) if output.status.success() => Found::Good("another process of this user can map it through /proc/PID/fd".into()),
        Ok(_) => Found::Missing(
            "a child process may not open /proc/PID/fd of its parent; allow ptrace between processes of one user (a container: --cap-add SYS_PTRACE or a less strict seccomp profile)"
                .into(),
        ),
        Err(error) => Found::Optional(format!("not tried: /bin/sh: {error}")),
    }
}

fn pidfd() -> Found {
    match rustix::process::pidfd_open(
        rustix::process::getpid(),
        rustix::process::PidfdFlags::empty(),
    ) {
        Ok(_) => Found::Good("can be opened".into()),
        Err(error) => Found::Missing(format!(
            "pidfd_open: {error}; needs Linux 5.3 or newer and a sandbox that allows it"
        )),
    }
}

fn loopback() -> Found {
    match TcpListener::bind("127.0.0.1:0") {
        Ok(_) => Found::Good("127.0.0.1 can be listened at".into()),
        Err(error) => Found::Missing(format!(
            "127.0.0.1: {error}; bring the loopback interface up (ip link set lo up)"
        )),
    }
}

fn clang() -> Found {
    let program = std::env::var_os("NPUSHMEM_CLANG").unwrap_or_else(|| "clang++".into());
    match Command::new(&program).arg("--version").output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            Found::Good(text.lines().next().unwrap_or("answers").to_owned())
        }
        _ => Found::Optional(format!(
            "{} does not answer: kernels of your own cannot be compiled (those of npushmem are in this program); apt install clang, or set NPUSHMEM_CLANG",
            program.to_string_lossy()
        )),
    }
}

fn toolkit() -> Found {
    for name in ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"] {
        let Some(home) = std::env::var_os(name)
            .filter(|home| !home.is_empty())
            .map(PathBuf::from)
        else {
            continue;
        };
        let places = [
            "compiler/ccec_compiler/bin/bisheng",
            "bin/bisheng",
            "tools/bisheng_compiler/bin/bisheng",
        ];
        return match places
            .iter()
            .map(|place| home.join(place))
            .find(|path| path.is_file())
        {
            Some(path) => Found::Good(format!("{} (by {name})", path.display())),
            None => Found::Optional(format!(
                "{name}={} has no bisheng: kernels for real NPUs cannot be compiled with it",
                home.display()
            )),
        };
    }
    Found::Optional("ASCEND_HOME_PATH is not set: kernels are compiled for the emulated NPU only; on a machine with NPUs source CANN's set_env.sh".into())
}

fn acl() -> Found {
    match info::acl_library() {
        Ok(text) => Found::Good(text),
        Err(text) => Found::Optional(format!(
            "{text}: jobs run on the emulated NPU; on a machine with NPUs source CANN's set_env.sh"
        )),
    }
}

fn configuration() -> Found {
    match npushmem::config::Config::from_env() {
        Ok(_) => {
            Found::Good("every variable that is set is accepted; `npushmem info` lists them".into())
        }
        Err(error) => Found::Missing(error.to_string()),
    }
}
