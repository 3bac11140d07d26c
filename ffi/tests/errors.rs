//! The texts of error codes.

use npushmem_ffi::errors;

#[test]
fn every_error_code_of_the_header_has_a_text_and_a_fix() {
    let header = include_str!("../include/acl.h");
    let mut seen = 0;
    for line in header.lines() {
        let Some(rest) = line.strip_prefix("#define ACL_ERROR_") else {
            continue;
        };
        let mut words = rest.split(' ');
        let (name, code) = (words.next().unwrap(), words.next().unwrap());
        let error = errors::find(code.parse().unwrap())
            .unwrap_or_else(|| panic!("ACL_ERROR_{name} has no text"));
        assert_eq!(error.name, format!("ACL_ERROR_{name}"));
        assert!(
            !error.text.is_empty() && !error.fix.is_empty(),
            "{} lacks a text or a fix",
            error.name
        );
        seen += 1;
    }
    assert_eq!(seen + 1, errors::ERRORS.len(), "one entry more: success");
}

#[test]
fn codes_are_listed_once() {
    let mut codes: Vec<_> = errors::ERRORS.iter().map(|error| error.code).collect();
    codes.sort_unstable();
    let count = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), count);
}

#[test]
fn an_error_is_explained_in_one_line_with_name_code_and_fix() {
    let line = errors::explain(507_014);
    assert!(
        line.starts_with(
            "ACL_ERROR_RT_AICORE_TIMEOUT (507014): a kernel on AI cores ran too long; "
        ),
        "{line}"
    );
    assert_eq!(errors::describe(0), Some(("ACL_SUCCESS", "no error")));
}

#[test]
fn an_unknown_code_is_told_by_its_range() {
    assert_eq!(errors::describe(107_999), None);
    assert!(errors::explain(107_999).starts_with("ACL error 107999: a mistake in the call"));
    assert!(errors::explain(-7).starts_with("ACL error -7: unknown"));
}
