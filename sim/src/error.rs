//! Failures of ACL calls: a code, a sentence, and the recent error text of each thread. Called by everything behind the ABI.

use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::panic::AssertUnwindSafe;

use npushmem_ffi::acl::{self, aclError};

/// Why a call failed: the code it returns and the sentence that `aclGetRecentErrMsg` gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fail {
    pub(crate) code: aclError,
    pub(crate) text: String,
}

pub(crate) type Outcome<T = ()> = Result<T, Fail>;

/// A failure with a code and a sentence.
pub(crate) fn fail(code: aclError, text: impl Into<String>) -> Fail {
    Fail {
        code,
        text: text.into(),
    }
}

/// A parameter that the call does not accept (`ACL_ERROR_RT_PARAM_INVALID`).
pub(crate) fn invalid(text: impl Into<String>) -> Fail {
    fail(acl::ACL_ERROR_RT_PARAM_INVALID, text)
}

/// A handle that names nothing (`ACL_ERROR_RT_INVALID_HANDLE`).
pub(crate) fn bad_handle(text: impl Into<String>) -> Fail {
    fail(acl::ACL_ERROR_RT_INVALID_HANDLE, text)
}

/// The operating system refused something (`ACL_ERROR_RT_DRV_INTERNAL_ERROR`).
pub(crate) fn system(doing: &str, error: impl std::fmt::Display) -> Fail {
    fail(
        acl::ACL_ERROR_RT_DRV_INTERNAL_ERROR,
        format!("{doing}: {error}"),
    )
}

thread_local! {
    static RECENT: RefCell<Option<CString>> = const { RefCell::new(None) };
    /// What the last call of [`take_recent`] handed out: the caller's pointer stays good until the next one.
    static HANDED_OUT: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Sets the calling thread's recent error text.
pub(crate) fn set_recent(text: &str) {
    let clean: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    // Filtered above, so there is no NUL left.
    RECENT.set(CString::new(clean).ok());
}

/// The recent error text of the calling thread, which is forgotten; NULL when there is none. The pointer is good until the next call.
pub(crate) fn take_recent() -> *const c_char {
    let text = RECENT.take();
    HANDED_OUT.with_borrow_mut(|slot| {
        *slot = text;
        slot.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
    })
}

/// Runs the body of an entry: a failure sets the recent text and becomes its code, a panic becomes `ACL_ERROR_INTERNAL_ERROR`.
pub(crate) fn guard(name: &str, body: impl FnOnce() -> Outcome) -> aclError {
    match std::panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Fail { code, text })) => {
            set_recent(&format!("{name}: {text}"));
            code
        }
        Err(panic) => {
            let why = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            set_recent(&format!("{name}: the emulator failed inside ({why}); this is a fault of npusim, please report it"));
            acl::ACL_ERROR_INTERNAL_ERROR
        }
    }
}

/// Declares entries of the ABI that may be called at any time. Each body returns [`Outcome`] and runs under [`guard`].
macro_rules! open_entries {
    ($( fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block )*) => { $(
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> npushmem_ffi::acl::aclError {
            $crate::error::guard(stringify!($name), || -> $crate::error::Outcome { $body })
        }
    )* };
}
pub(crate) use open_entries;

/// Declares entries of the ABI that need aclInit first.
macro_rules! entries {
    ($( fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block )*) => {
        $crate::error::open_entries! { $(
            fn $name($($arg: $ty),*) {
                $crate::acl::ready()?;
                $body
            }
        )* }
    };
}
pub(crate) use entries;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_an_internal_error_with_text() {
        let code = guard("aclTest", || panic!("broken {}", 7));
        assert_eq!(code, acl::ACL_ERROR_INTERNAL_ERROR);
        let text = take_recent();
        assert!(!text.is_null());
        // SAFETY: take_recent returned a NUL-terminated string that lives until the next call.
        let text = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        assert!(
            text.starts_with("aclTest: ") && text.contains("broken 7"),
            "{text}"
        );
        assert!(take_recent().is_null(), "the text is handed out once");
    }
}
