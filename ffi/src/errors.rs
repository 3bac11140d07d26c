//! Stub.
/// What a code means: name, text.
pub fn describe(_code: i32) -> Option<(&'static str, &'static str)> {
    None
}
/// Text.
pub fn explain(code: i32) -> String {
    code.to_string()
}
