//! The compiler wrappers `oshcc` and `oshcxx`: the system's compiler with what a program over libnpushmem needs.
//!
//! Not a compiler, and no part of the `npushmem` program. A wrapper adds the header's folder, the macro that turns the header's inline path on, and
//! at link time the library with an rpath. Everything else passes through; nothing is printed but what was asked for (`--showme`).

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

#[path = "layout.rs"]
mod layout;

use layout::Layout;

/// Options after which a compiler does not link.
const NO_LINK: [&str; 7] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-"];

/// One of the wrappers.
pub struct Wrapper {
    /// Its name.
    pub name: &'static str,
    /// Environment variable that names the compiler.
    pub variable: &'static str,
    /// Compiler without it.
    pub default: &'static str,
}

impl Layout {
    /// Arguments for compiling.
    fn compile(&self) -> Vec<OsString> {
        vec![
            joined("-I", &self.include),
            OsString::from("-DNPUSHMEM_OSHCC"),
        ]
    }

    /// Arguments for linking.
    fn link(&self) -> Vec<OsString> {
        vec![
            joined("-L", &self.lib),
            joined("-Wl,-rpath,", &self.lib),
            OsString::from("-lnpushmem"),
            OsString::from("-lm"),
        ]
    }
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// Run the compiler with these arguments.
    Run(Vec<OsString>),
    /// Print these.
    Show(Vec<OsString>),
}

fn request(compiler: &OsStr, args: &[OsString], layout: &Layout) -> Request {
    let show = args.iter().position(|arg| {
        arg.to_str().is_some_and(|arg| {
            let arg = arg.trim_start_matches('-');
            ["show", "showme"].contains(&arg) || arg.starts_with("showme:")
        }) && arg.as_encoded_bytes().starts_with(b"-")
    });
    if let Some(index) = show {
        let what = args[index].to_string_lossy();
        let rest: Vec<OsString> = args
            .iter()
            .enumerate()
            .filter(|&(at, _)| at != index)
            .map(|(_, arg)| arg.clone())
            .collect();
        return Request::Show(match what.trim_start_matches('-') {
            "showme:compile" => layout.compile(),
            "showme:link" => layout.link(),
            "showme:incdirs" => vec![layout.include.clone().into()],
            "showme:libdirs" => vec![layout.lib.clone().into()],
            "showme:libs" => vec!["npushmem".into(), "m".into()],
            "showme:command" => vec![compiler.to_owned()],
            _ => [vec![compiler.to_owned()], full(&rest, layout)].concat(),
        });
    }
    Request::Run(full(args, layout))
}

/// The compiler's arguments for the user's.
fn full(args: &[OsString], layout: &Layout) -> Vec<OsString> {
    let mut all = layout.compile();
    all.extend_from_slice(args);
    let links = has_input(args)
        && !args
            .iter()
            .any(|arg| arg.to_str().is_some_and(|arg| NO_LINK.contains(&arg)));
    if links {
        all.extend(layout.link());
    }
    all
}

/// Whether a file is named: without one (`-v`, `--version`, `-print-...`) there is nothing to link.
fn has_input(args: &[OsString]) -> bool {
    let mut value = false;
    args.iter().any(|arg| {
        if std::mem::take(&mut value) {
            return false;
        }
        let bytes = arg.as_encoded_bytes();
        value = [
            "-o", "-I", "-L", "-D", "-U", "-x", "-include", "-isystem", "-MF", "-MT", "-MQ",
            "-Xlinker", "-T", "-u",
        ]
        .contains(&arg.to_str().unwrap_or_default());
        !bytes.starts_with(b"-") || bytes.starts_with(b"-l")
    })
}

/// Text that a shell reads as the same words.
fn quoted(words: &[OsString]) -> String {
    let quote = |word: &OsString| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Runs a wrapper: becomes the compiler, and returns only when it cannot.
pub fn main(wrapper: &Wrapper) -> ExitCode {
    let fail = |message: String| {
        eprintln!("{}: {message}", wrapper.name);
        ExitCode::FAILURE
    };
    let own = match std::env::current_exe().and_then(std::fs::canonicalize) {
        Ok(own) => own,
        Err(error) => return fail(format!("cannot find itself: {error}")),
    };
    let layout = match Layout::find(own.parent().unwrap_or(Path::new("/"))) {
        Ok(layout) => layout,
        Err(message) => return fail(message),
    };
    let chosen = std::env::var_os(wrapper.variable).filter(|value| !value.is_empty());
    let chosen = chosen.unwrap_or_else(|| wrapper.default.into());
    // "ccache gcc" is a program and its first argument.
    let text = chosen.to_string_lossy();
    let words: Vec<&str> = text.split_whitespace().collect();
    let (program, first): (OsString, &[&str]) = match words.as_slice() {
        [program, first @ ..] => ((*program).into(), first),
        [] => (wrapper.default.into(), &[]),
    };
    let args: Vec<OsString> = first
        .iter()
        .map(OsString::from)
        .chain(std::env::args_os().skip(1))
        .collect();
    match request(&program, &args, &layout) {
        Request::Show(words) => {
            println!("{}", quoted(&words));
            ExitCode::SUCCESS
        }
        Request::Run(args) => {
            let error = Command::new(&program).args(args).exec();
            fail(format!(
                "cannot start the compiler {program:?}: {error}; {} names another one",
                wrapper.variable
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout {
            include: "/p/include".into(),
            lib: "/p/lib".into(),
        }
    }

    fn run(args: &[&str]) -> String {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        match request(OsStr::new("cc"), &args, &layout()) {
            Request::Run(args) => quoted(&args),
            Request::Show(args) => format!("show {}", quoted(&args)),
        }
    }

    const COMPILE: &str = "-I/p/include -DNPUSHMEM_OSHCC";
    const LINK: &str = "-L/p/lib -Wl,-rpath,/p/lib -lnpushmem -lm";

    #[test]
    fn compiling_adds_the_header_and_linking_the_library() {
        assert_eq!(
            run(&["-c", "a.c", "-o", "a.o"]),
            format!("{COMPILE} -c a.c -o a.o")
        );
        assert_eq!(
            run(&["a.o", "-o", "a"]),
            format!("{COMPILE} a.o -o a {LINK}")
        );
        assert_eq!(
            run(&["-shared", "-fPIC", "a.o"]),
            format!("{COMPILE} -shared -fPIC a.o {LINK}")
        );
    }

    #[test]
    fn asking_for_the_version_links_nothing() {
        assert_eq!(run(&["--version"]), format!("{COMPILE} --version"));
        assert_eq!(run(&["-v", "-o", "x"]), format!("{COMPILE} -v -o x"));
    }

    #[test]
    fn the_command_is_shown_when_asked_for() {
        assert_eq!(
            run(&["--showme", "a b.c"]),
            format!("show cc {COMPILE} 'a b.c' {LINK}")
        );
        assert_eq!(run(&["-showme:link"]), format!("show {LINK}"));
        assert_eq!(run(&["--showme:compile"]), format!("show {COMPILE}"));
    }
}
