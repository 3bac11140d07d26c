//! Finds the `__global__` kernels of a preprocessed AscendC source.
//!
//! Preprocessed, so that kernels that a macro makes, that an included file defines or that exist for one architecture only are seen as
//! the compiler sees them. The AscendC headers of the emulated NPU turn `__global__` into an attribute with the text [`MARK`]; this scanner
//! looks for it. It is no C++ parser: it knows comments, literals, braces, namespaces and attributes.

use anyhow::{bail, Result};

/// The annotation that `__global__` becomes (sim/ascendc/npusim/types.h).
pub const MARK: &str = "npusim.global";
/// What `__vector__`, `__cube__` and `__mix__(cube, vector)` become, before the numbers of cores.
const CORES: &str = "npusim.core(";

/// A kernel that the source defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name with the namespaces around it.
    pub path: String,
    /// Where it is defined, as the preprocessor names the file.
    pub file: String,
    /// Line in that file.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Name(String),
    Text(String),
    Mark(char),
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    line: u32,
    file: usize,
}

impl Token {
    fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
    fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// The kernels that preprocessed text defines, in order. Prototypes do not count.
///
/// # Errors
/// A kernel template (a launch needs one name), a kernel inside a class, an anonymous namespace or a function, two kernels of one name.
pub fn kernels(preprocessed: &str) -> Result<Vec<Kernel>> {
    let (tokens, files) = tokens(preprocessed);
    let mut found: Vec<Kernel> = Vec::new();
    // What each open brace belongs to: Some(namespace name) or None.
    let mut scopes: Vec<Scope> = Vec::new();
    let mut statement = 0; // first token of the declaration that is being read
    let mut i = 0;
    while i < tokens.len() {
        let token = &tokens[i];
        if token.is('{') {
            scopes.push(scope(&tokens[statement..i]));
            statement = i + 1;
        } else if token.is('}') {
            scopes.pop();
            statement = i + 1;
        } else if token.is(';') {
            statement = i + 1;
        } else if token.kind == Kind::Text(MARK.to_owned()) {
            let place = || format!("{}:{}", files[token.file], token.line);
            let Some((name, open)) = declared_name(&tokens, i + 1) else {
                bail!("{}: __global__ is not followed by a function", place());
            };
            let Some(end) = closing(&tokens, open) else {
                bail!("{}: the parameters of kernel {name} have no end", place());
            };
            let defines = tokens[end + 1..]
                .iter()
                .find(|t| t.is('{') || t.is(';'))
                .is_some_and(|t| t.is('{'));
            if defines {
                if asks_for_cubes(&tokens[statement..open]) {
                    bail!(
                        "{}: kernel {name} asks for cube cores; the emulated NPU has vector cores only: __vector__ or __mix__(0, 1)",
                        place()
                    );
                }
                if tokens[statement..i]
                    .iter()
                    .any(|t| t.name() == Some("template"))
                {
                    bail!("{}: kernel {name} is a template; a launch needs one function, so call the template from a plain kernel", place());
                }
                let mut path = String::new();
                for scope in &scopes {
                    match scope {
                        Scope::Namespace(name) => path.push_str(&format!("{name}::")),
                        Scope::Linkage => {}
                        Scope::Other => bail!(
                            "{}: kernel {name} must be a function at namespace scope",
                            place()
                        ),
                    }
                }
                path.push_str(&name);
                if let Some(first) = found.iter().find(|k| k.path == path) {
                    bail!("{}: kernel {path} is already defined at {}:{}; kernels cannot be overloaded", place(), first.file, first.line);
                }
                found.push(Kernel {
                    path,
                    file: files[token.file].clone(),
                    line: token.line,
                });
            }
            i = end;
        }
        i += 1;
    }
    Ok(found)
}

/// Whether a declaration carries the annotation of `__cube__` or `__mix__` with a number of cube cores that is not 0.
fn asks_for_cubes(declaration: &[Token]) -> bool {
    let zero = Kind::Text("0".to_owned());
    declaration
        .windows(2)
        .any(|pair| pair[0].kind == Kind::Text(CORES.to_owned()) && pair[1].kind != zero)
}

enum Scope {
    Namespace(String),
    Linkage,
    Other,
}

/// What a brace opens, from the tokens of its declaration.
fn scope(declaration: &[Token]) -> Scope {
    let start = declaration
        .iter()
        .position(|t| t.name() != Some("inline"))
        .unwrap_or(0);
    let declaration = &declaration[start..];
    match declaration.first().and_then(Token::name) {
        Some("namespace") => {
            let names: Vec<&str> = declaration[1..].iter().filter_map(Token::name).collect();
            if names.is_empty() {
                Scope::Other
            } else {
                Scope::Namespace(names.join("::"))
            }
        }
        Some("extern")
            if matches!(declaration.get(1).map(|t| &t.kind), Some(Kind::Text(_)))
                && declaration.len() == 2 =>
        {
            Scope::Linkage
        }
        _ => Scope::Other,
    }
}

/// From inside the attribute: the function's name and the index of its parameter list's opening parenthesis.
fn declared_name(tokens: &[Token], from: usize) -> Option<(String, usize)> {
    // Leave the attribute that holds the mark: close every parenthesis that is still open.
    let mut depth = 0i32;
    let mut i = from;
    let mut last: Option<&str> = None;
    while i < tokens.len() {
        let token = &tokens[i];
        if token.is('{') || token.is(';') {
            return None;
        }
        if token.name() == Some("__attribute__") {
            i = closing(tokens, i + 1)?;
        } else if token.is('(') {
            if let (true, Some(name)) = (depth <= 0, last) {
                return Some((name.to_owned(), i));
            }
            depth += 1;
        } else if token.is(')') {
            depth -= 1;
            last = None;
        } else if token.is(',') {
            // further attributes in the same list: skip to its end
            let mut inner = 0;
            while i + 1 < tokens.len() && !(inner == 0 && tokens[i + 1].is(')')) {
                inner += i32::from(tokens[i + 1].is('(')) - i32::from(tokens[i + 1].is(')'));
                i += 1;
            }
        } else {
            last = token.name();
        }
        i += 1;
    }
    None
}

/// Index of the parenthesis that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        depth += i32::from(token.is('(')) - i32::from(token.is(')'));
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

/// Splits text into tokens; `# line "file"` markers set where the following ones are from.
fn tokens(text: &str) -> (Vec<Token>, Vec<String>) {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut files = vec![String::from("source")];
    let (mut file, mut line, mut i) = (0usize, 1u32, 0usize);
    let mut line_start = true;
    while i < bytes.len() {
        let c = bytes[i];
        match c {
            b'\n' => {
                line += 1;
                line_start = true;
                i += 1;
                continue;
            }
            b'#' if line_start => {
                let end = bytes[i..]
                    .iter()
                    .position(|b| *b == b'\n')
                    .map_or(bytes.len(), |n| i + n);
                if let Some((number, name)) = marker(&text[i..end]) {
                    line = number.wrapping_sub(1); // the newline adds one
                    file = files.iter().position(|f| *f == name).unwrap_or_else(|| {
                        files.push(name);
                        files.len() - 1
                    });
                }
                i = end;
                continue;
            }
            b'"' => {
                let raw = matches!(tokens.last(), Some(Token { kind: Kind::Name(n), .. }) if n.ends_with('R') && n.len() <= 3);
                let end = if raw {
                    raw_end(text, i)
                } else {
                    quoted_end(bytes, i, b'"')
                };
                let inside = text.get(i + 1..end.saturating_sub(1)).unwrap_or_default();
                tokens.push(Token {
                    kind: Kind::Text(inside.to_owned()),
                    line,
                    file,
                });
                line += inside.bytes().filter(|b| *b == b'\n').count() as u32;
                i = end;
            }
            b'\'' => i = quoted_end(bytes, i, b'\''),
            _ if c == b'_' || c.is_ascii_alphabetic() || c >= 0x80 => {
                let end = bytes[i..]
                    .iter()
                    .position(|b| !(*b == b'_' || b.is_ascii_alphanumeric() || *b >= 0x80))
                    .map_or(bytes.len(), |n| i + n);
                tokens.push(Token {
                    kind: Kind::Name(text[i..end].to_owned()),
                    line,
                    file,
                });
                i = end;
            }
            _ if c.is_ascii_digit() => {
                // A number; digit separators must not look like character literals.
                i = bytes[i..]
                    .iter()
                    .position(|b| !(b.is_ascii_alphanumeric() || *b == b'\'' || *b == b'.'))
                    .map_or(bytes.len(), |n| i + n);
            }
            _ if c.is_ascii_whitespace() => {
                i += 1;
                continue;
            }
            _ => {
                tokens.push(Token {
                    kind: Kind::Mark(char::from(c)),
                    line,
                    file,
                });
                i += 1;
            }
        }
        line_start = false;
    }
    (tokens, files)
}

/// `# 12 "file.cpp" 1` gives (12, file.cpp).
fn marker(text: &str) -> Option<(u32, String)> {
    let rest = text.strip_prefix("# ")?;
    let (number, rest) = rest.split_once(' ')?;
    let name = rest.strip_prefix('"')?.split('"').next()?;
    Some((number.parse().ok()?, name.to_owned()))
}

/// One past the closing quote of a literal without line breaks.
fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut i = start + 1;
    while i < bytes.len() && bytes[i] != quote && bytes[i] != b'\n' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(bytes.len())
}

/// One past the end of R"delimiter( ... )delimiter", from its quote.
fn raw_end(text: &str, start: usize) -> usize {
    let rest = &text[start + 1..];
    let Some(open) = rest.find('(') else {
        return text.len();
    };
    let close = format!("){}\"", &rest[..open]);
    rest.find(&close)
        .map_or(text.len(), |n| start + 1 + n + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: &str = "__attribute__((annotate(\"npusim.global\"), used, visibility(\"default\")))";

    fn paths(source: &str) -> Vec<String> {
        kernels(&source.replace("__global__", G))
            .unwrap()
            .into_iter()
            .map(|k| k.path)
            .collect()
    }

    #[test]
    fn plain_kernels_are_found_in_order() {
        assert_eq!(
            paths("extern \"C\" __global__ void first(int a, void (*f)(int)) { if (a) { } }\nextern \"C\" { __global__ void second() {} }"),
            ["first", "second"]
        );
    }

    #[test]
    fn attributes_before_and_after_do_not_hide_the_name() {
        assert_eq!(
            paths("[[x::ratio(0,1)]] extern \"C\" __global__ __attribute__((noinline)) [[maybe_unused]] void k(int) {}"),
            ["k"]
        );
    }

    #[test]
    fn a_kernel_in_namespaces_gets_its_path() {
        assert_eq!(
            paths("namespace a::b { inline namespace c { __global__ void k() {} } }"),
            ["a::b::c::k"]
        );
    }

    #[test]
    fn prototypes_comments_and_texts_are_no_kernels() {
        assert_eq!(
            paths("__global__ void k(int);\nconst char* s = \"__global__x void n() {}\"; int d = 1'000; char q = '{';\n__global__ void k(int) {}"),
            ["k"]
        );
        assert!(paths("const char* r = R\"x(\" { )x\"; void f() {}").is_empty());
    }

    #[test]
    fn the_place_of_a_kernel_follows_line_markers() {
        let text = format!("# 1 \"w.cpp\"\n# 40 \"kernels/k.cpp\" 1\n\n{G} void k() {{}}\n");
        let found = kernels(&text).unwrap();
        assert_eq!(
            (found[0].file.as_str(), found[0].line),
            ("kernels/k.cpp", 41)
        );
    }

    #[test]
    fn templates_overloads_and_members_are_refused_with_their_place() {
        for (source, word) in [
            ("template <class T> __global__ void k(T) {}", "template"),
            (
                "__global__ void k(int) {}\n__global__ void k(long) {}",
                "overloaded",
            ),
            (
                "struct S { __global__ static void k() {} };",
                "namespace scope",
            ),
            ("namespace { __global__ void k() {} }", "namespace scope"),
            ("__global__ __attribute__((annotate(\"npusim.core(\" \"1\" \",\" \"2\" \")\"))) void k() {}", "cube"),
        ] {
            let error = kernels(&source.replace("__global__", G))
                .unwrap_err()
                .to_string();
            assert!(error.contains(word) && error.contains("source:"), "{error}");
        }
    }
}
