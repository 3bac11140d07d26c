//! Opens vendor libraries and finds symbols in them, for the generated tables. It knows no function by name.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A symbol of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: &'static str,
    /// Another name that libraries use for it.
    pub alternative: Option<&'static str>,
    /// The library that the vendor has it in.
    pub library: &'static str,
    /// The first CANN version that has it, where known.
    pub since: Option<&'static str>,
    /// Whether a table needs it.
    pub required: bool,
}

/// Why a table could not be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// None of the libraries opens.
    #[error(
        "no vendor library opens ({}): install the CANN toolkit and driver, source their set_env.sh so that \
         LD_LIBRARY_PATH has them, or use the emulated NPU",
        causes.join("; ")
    )]
    NoLibrary {
        /// The dynamic linker's message for each library tried.
        causes: Vec<String>,
    },
    /// A library lacks a symbol that is needed.
    #[error(
        "symbol {symbol}{} is missing in {}: {library} has it {}{}",
        alternative.map(|name| format!(" (or {name})")).unwrap_or_default(),
        searched.join(", "),
        since.map_or_else(|| "in every CANN version that npushmem supports; is this the real library?".to_owned(),
            |version| format!("from CANN {version} on; install that version or a later one")),
        unopened.iter().map(|cause| format!("; not searched: {cause}")).collect::<String>()
    )]
    MissingSymbol {
        /// The symbol.
        symbol: &'static str,
        /// Its other name.
        alternative: Option<&'static str>,
        /// The library that should have it.
        library: &'static str,
        /// The first CANN version that has it, where known.
        since: Option<&'static str>,
        /// The libraries looked into.
        searched: Vec<String>,
        /// The dynamic linker's message for each library that did not open.
        unopened: Vec<String>,
    },
}

/// Libraries opened one after the other as symbols need them.
pub(crate) struct Loader<'a> {
    waiting: std::slice::Iter<'a, &'a str>,
    opened: Vec<(String, &'static Library)>,
    failed: Vec<String>,
}

impl<'a> Loader<'a> {
    /// Opens the first library of `paths` that opens.
    pub(crate) fn open(paths: &'a [&'a str]) -> Result<Self, LoadError> {
        let mut loader = Loader {
            waiting: paths.iter(),
            opened: Vec::new(),
            failed: Vec::new(),
        };
        if loader.open_next() {
            return Ok(loader);
        }
        if loader.failed.is_empty() {
            loader.failed.push("no library was named".to_owned());
        }
        Err(LoadError::NoLibrary {
            causes: loader.failed,
        })
    }

    /// Opens the next library that opens; false when there is none.
    fn open_next(&mut self) -> bool {
        for path in self.waiting.by_ref() {
            // SAFETY: running a library's constructors is what loading it means; the caller named a vendor library.
            match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => {
                    // Never closed: vendor libraries run threads and exit handlers, and tables are copied freely.
                    self.opened
                        .push(((*path).to_owned(), Box::leak(Box::new(library))));
                    return true;
                }
                Err(error) => self.failed.push(describe(path, &error)),
            }
        }
        false
    }

    /// The names of the libraries opened.
    pub(crate) fn opened(&self) -> Vec<String> {
        self.opened.iter().map(|(path, _)| path.clone()).collect()
    }

    /// A symbol that must be there.
    ///
    /// # Safety
    ///
    /// `F` is a function pointer type with the symbol's signature.
    pub(crate) unsafe fn required<F: Copy>(&mut self, symbol: &Symbol) -> Result<F, LoadError> {
        // SAFETY: passed on.
        unsafe { self.find(symbol) }.ok_or_else(|| LoadError::MissingSymbol {
            symbol: symbol.name,
            alternative: symbol.alternative,
            library: symbol.library,
            since: symbol.since,
            searched: self.opened(),
            unopened: self.failed.clone(),
        })
    }

    /// A symbol that may be missing.
    ///
    /// # Safety
    ///
    /// As for [`Self::required`].
    pub(crate) unsafe fn optional<F: Copy>(&mut self, symbol: &Symbol) -> Option<F> {
        // SAFETY: passed on.
        unsafe { self.find(symbol) }
    }

    /// # Safety
    ///
    /// As for [`Self::required`].
    unsafe fn find<F: Copy>(&mut self, symbol: &Symbol) -> Option<F> {
        let mut next = 0;
        loop {
            for (_, library) in &self.opened[next..] {
                for name in [Some(symbol.name), symbol.alternative]
                    .into_iter()
                    .flatten()
                {
                    // SAFETY: F has the symbol's signature, says the caller. A null address is refused below.
                    if let Ok(found) = unsafe { library.get::<Option<F>>(name.as_bytes()) } {
                        if let Some(function) = *found {
                            return Some(function);
                        }
                    }
                }
            }
            next = self.opened.len();
            if !self.open_next() {
                return None;
            }
        }
    }
}

/// `path` and the dynamic linker's reason, which usually names the path itself.
fn describe(path: &str, error: &libloading::Error) -> String {
    let reason = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    if reason.contains(path) {
        reason
    } else {
        format!("{path}: {reason}")
    }
}
