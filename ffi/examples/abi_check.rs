//! Compares include/acl.h with a real set of ACL headers: every function's parameters and result, every struct's
//! size, alignment and fields, every constant's value. Run by abi-check.sh, which finds the headers.
//!
//! What the real headers lack is listed (they may be older); what differs fails. Then the check is checked: copies of
//! our header with one deliberate mistake each must be found out.
//!
//!     abi_check OUR_HEADER INCLUDE_FOLDER      the folder above acl/acl_rt.h

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use quote::ToTokens;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("abi-check: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ours, theirs] = arguments.as_slice() else {
        bail!("usage: abi_check OUR_HEADER INCLUDE_FOLDER");
    };
    let text = std::fs::read_to_string(ours).with_context(|| format!("reading {ours}"))?;
    let theirs = vendor(Path::new(theirs))?;
    let declared = Declarations::read(bindgen::Builder::default().header_contents("acl.h", &text))?;
    ensure!(
        !declared.functions.is_empty(),
        "no function is declared in {ours}"
    );

    let report = declared.compare(&theirs);
    println!(
        "abi-check: compared {} functions, {} structs and unions, {} other types, {} constants",
        declared.functions.len(),
        declared.structs.len(),
        declared.aliases.len(),
        declared.constants.len(),
    );
    for name in &report.absent {
        println!("  absent there: {name}");
    }
    for difference in &report.different {
        println!("  DIFFERENT: {difference}");
    }
    if !report.different.is_empty() {
        println!(
            "abi-check: FAILED, different in {} places",
            report.different.len()
        );
        return Ok(false);
    }
    prove(&text, &theirs)?;
    println!(
        "abi-check: the same, but for {} absent",
        report.absent.len()
    );
    Ok(true)
}

/// Deliberate mistakes: what to replace in our header, by what, and the name that the report must then mention.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "aclrtMemset(void *devPtr, size_t maxCount, int32_t value,",
        "aclrtMemset(void *devPtr, size_t maxCount, int64_t value,",
        "aclrtMemset",
    ),
    (
        "aclrtUnmapMem(void *virPtr)",
        "aclrtUnmapMem(void *virPtr, uint64_t flags)",
        "aclrtUnmapMem",
    ),
    (
        "aclError aclrtGetHardwareSyncAddr",
        "int64_t aclrtGetHardwareSyncAddr",
        "aclrtGetHardwareSyncAddr",
    ),
    (
        "const void *src, size_t count, aclrtMemcpyKind kind);",
        "void *src, size_t count, aclrtMemcpyKind kind);",
        "aclrtMemcpy",
    ),
    (
        "aclrtMemAttr attr, size_t *free,",
        "aclrtMemHandleType attr, size_t *free,",
        "aclrtGetMemInfo",
    ),
    ("uint8_t rsv[12];", "uint8_t rsv[16];", "aclrtMemAccessDesc"),
    (
        "    uint32_t addrOffset;",
        "    uint32_t other;\n    uint32_t addrOffset;",
        "aclrtPlaceHolderInfo",
    ),
    (
        "ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2,",
        "ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 3,",
        "ACL_MEM_SHARE_HANDLE_TYPE_FABRIC",
    ),
    (
        "ACL_ERROR_RT_NO_DEVICE 207004",
        "ACL_ERROR_RT_NO_DEVICE 207005",
        "ACL_ERROR_RT_NO_DEVICE",
    ),
    (
        "(*aclrtHostFunc)(void *args)",
        "(*aclrtHostFunc)(int args)",
        "aclrtHostFunc",
    ),
];

/// Each deliberate mistake in something that the real headers have must be found, else the check itself is broken.
fn prove(text: &str, theirs: &Declarations) -> Result<()> {
    let mut found = 0;
    for (from, to, name) in MISTAKES {
        ensure!(
            text.contains(from),
            "the mistake in {name} no longer fits the header; update MISTAKES"
        );
        if !theirs.knows(name) {
            continue;
        }
        let wrong = text.replacen(from, to, 1);
        let report =
            Declarations::read(bindgen::Builder::default().header_contents("acl.h", &wrong))?
                .compare(theirs);
        ensure!(
            report.different.iter().any(|line| line.starts_with(*name)),
            "a deliberate mistake in {name} was not found: the check is broken"
        );
        found += 1;
    }
    ensure!(
        found > 0,
        "the real headers have nothing that a deliberate mistake could be made in"
    );
    println!("abi-check: {found} of {found} deliberate mistakes were found");
    Ok(())
}

/// The real headers under `folder`.
fn vendor(folder: &Path) -> Result<Declarations> {
    ensure!(
        folder.join("acl/acl_rt.h").is_file(),
        "{} has no acl/acl_rt.h",
        folder.display()
    );
    // acl.h holds aclInit in older sets; the runtime's codes are included by nobody else.
    let includes: String = [
        "acl/acl.h",
        "acl/acl_rt.h",
        "acl/error_codes/rt_error_codes.h",
    ]
    .iter()
    .filter(|name| folder.join(name).is_file())
    .map(|name| format!("#include \"{name}\"\n"))
    .collect();
    let folder = folder
        .to_str()
        .context("the include folder's path is not UTF-8")?;
    Declarations::read(
        bindgen::Builder::default()
            .header_contents("vendor.h", &includes)
            .clang_arg(format!("-I{folder}")),
    )
    .with_context(|| format!("reading the headers in {folder}"))
}

/// A function: the types of its parameters and its result.
#[derive(PartialEq)]
struct Function {
    params: Vec<String>,
    result: String,
}

/// A struct or union.
#[derive(Default)]
struct Layout {
    union: bool,
    /// Offset and type of each field.
    fields: BTreeMap<String, (Option<u64>, String)>,
    size: Option<u64>,
    align: Option<u64>,
}

/// What a header declares, read from bindgen's output.
#[derive(Default)]
struct Declarations {
    functions: BTreeMap<String, Function>,
    structs: BTreeMap<String, Layout>,
    aliases: BTreeMap<String, String>,
    constants: BTreeMap<String, String>,
}

/// The outcome of a comparison.
struct Report {
    absent: Vec<String>,
    different: Vec<String>,
}

impl Declarations {
    fn read(builder: bindgen::Builder) -> Result<Self> {
        let code = builder
            .clang_args(["-std=c11", "-w"])
            .allowlist_item("_?acl.*|_?ACL.*")
            .prepend_enum_name(false)
            .rust_edition(bindgen::RustEdition::Edition2021)
            .layout_tests(true)
            .generate_comments(false)
            .formatter(bindgen::Formatter::None)
            .generate()
            .context("bindgen failed (it needs libclang: apt install libclang-dev on Debian and Ubuntu, else set LIBCLANG_PATH)")?
            .to_string();
        let mut declarations = Self::default();
        for item in syn::parse_file(&code)
            .context("parsing bindgen's output")?
            .items
        {
            declarations.add(item);
        }
        Ok(declarations)
    }

    fn add(&mut self, item: syn::Item) {
        match item {
            syn::Item::ForeignMod(block) => {
                for item in block.items {
                    if let syn::ForeignItem::Fn(function) = item {
                        let (name, function) = read_function(function.sig);
                        self.functions.insert(name, function);
                    }
                }
            }
            syn::Item::Struct(item) => self.layout(&item.ident, &item.fields, false),
            syn::Item::Union(item) => {
                self.layout(&item.ident, &syn::Fields::Named(item.fields), true)
            }
            syn::Item::Type(item) => {
                self.aliases.insert(item.ident.to_string(), spell(&item.ty));
            }
            syn::Item::Const(item) if item.ident == "_" => self.assertions(&item.expr),
            syn::Item::Const(item) => {
                let value = item.expr.to_token_stream().to_string().replace("- ", "-");
                self.constants.insert(item.ident.to_string(), value);
            }
            _ => {}
        }
    }

    fn layout(&mut self, name: &syn::Ident, fields: &syn::Fields, union: bool) {
        let layout = self.structs.entry(name.to_string()).or_default();
        layout.union = union;
        for field in fields {
            if let Some(ident) = &field.ident {
                layout
                    .fields
                    .insert(ident.to_string(), (None, spell(&field.ty)));
            }
        }
    }

    /// Reads bindgen's layout assertions, `["Size of X"][size_of::<X>() - 8usize];`.
    fn assertions(&mut self, expr: &syn::Expr) {
        let syn::Expr::Block(block) = expr else {
            return;
        };
        for statement in &block.block.stmts {
            let syn::Stmt::Expr(syn::Expr::Index(index), _) = statement else {
                continue;
            };
            let (syn::Expr::Array(array), syn::Expr::Binary(binary)) =
                (&*index.expr, &*index.index)
            else {
                continue;
            };
            let (
                Some(syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                })),
                syn::Expr::Lit(number),
            ) = (array.elems.first(), &*binary.right)
            else {
                continue;
            };
            let syn::Lit::Int(number) = &number.lit else {
                continue;
            };
            let Ok(number) = number.base10_parse::<u64>() else {
                continue;
            };
            let text = text.value();
            if let Some(name) = text.strip_prefix("Size of ") {
                self.structs.entry(name.to_owned()).or_default().size = Some(number);
            } else if let Some(name) = text.strip_prefix("Alignment of ") {
                self.structs.entry(name.to_owned()).or_default().align = Some(number);
            } else if let Some((name, field)) = text
                .strip_prefix("Offset of field: ")
                .and_then(|name| name.split_once("::"))
            {
                let layout = self.structs.entry(name.to_owned()).or_default();
                if let Some(field) = layout.fields.get_mut(field) {
                    field.0 = Some(number);
                }
            }
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.functions.contains_key(name)
            || self.structs.contains_key(name)
            || self.aliases.contains_key(name)
            || self.constants.contains_key(name)
    }

    /// What `self` declares against what the real headers declare.
    fn compare(&self, theirs: &Declarations) -> Report {
        let (mut absent, mut different) = (Vec::new(), Vec::new());
        for (name, ours) in &self.functions {
            match theirs.functions.get(name) {
                None => absent.push(format!("function {name}")),
                Some(function) if function == ours => {}
                Some(function) => different.push(format!("{name}: ours {ours}, theirs {function}")),
            }
        }
        for (name, ours) in &self.structs {
            match theirs.structs.get(name) {
                None => absent.push(format!("type {name}")),
                Some(layout) => ours.compare(name, layout, &mut absent, &mut different),
            }
        }
        for (kind, ours, theirs) in [
            ("type", &self.aliases, &theirs.aliases),
            ("constant", &self.constants, &theirs.constants),
        ] {
            for (name, value) in ours {
                match theirs.get(name) {
                    None => absent.push(format!("{kind} {name}")),
                    Some(other) if other == value => {}
                    Some(other) => different.push(format!("{name}: ours {value}, theirs {other}")),
                }
            }
        }
        Report { absent, different }
    }
}

impl Layout {
    fn compare(
        &self,
        name: &str,
        theirs: &Layout,
        absent: &mut Vec<String>,
        different: &mut Vec<String>,
    ) {
        if (self.union, self.size, self.align) != (theirs.union, theirs.size, theirs.align) {
            different.push(format!(
                "{name}: ours has {} bytes aligned to {}, theirs {} aligned to {}",
                show(self.size),
                show(self.align),
                show(theirs.size),
                show(theirs.align)
            ));
        }
        for (field, (offset, kind)) in &self.fields {
            match theirs.fields.get(field) {
                // A union gains members without changing; a struct does not.
                None if self.union => absent.push(format!("member {name}.{field}")),
                None => different.push(format!("{name}.{field}: theirs has no such field")),
                Some((other_offset, other_kind))
                    if (offset, kind) == (other_offset, other_kind) => {}
                Some((other_offset, other_kind)) => different.push(format!(
                    "{name}.{field}: ours {kind} at {}, theirs {other_kind} at {}",
                    show(*offset),
                    show(*other_offset)
                )),
            }
        }
        if !self.union {
            for field in theirs
                .fields
                .keys()
                .filter(|field| !self.fields.contains_key(*field))
            {
                different.push(format!("{name}.{field}: ours has no such field"));
            }
        }
    }
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}) -> {}", self.params.join(", "), self.result)
    }
}

fn show(number: Option<u64>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}

fn read_function(signature: syn::Signature) -> (String, Function) {
    let params = signature
        .inputs
        .iter()
        .map(|input| match input {
            syn::FnArg::Typed(param) => spell(&param.ty),
            syn::FnArg::Receiver(_) => "self".to_owned(),
        })
        .collect();
    let result = match &signature.output {
        syn::ReturnType::Default => "()".to_owned(),
        syn::ReturnType::Type(_, kind) => spell(kind),
    };
    (signature.ident.to_string(), Function { params, result })
}

/// A type's name in one spelling: C's own names for integers of fixed width become the width's, parameters of
/// function pointers lose their names.
fn spell(kind: &syn::Type) -> String {
    match kind {
        syn::Type::Ptr(pointer) => {
            let constness = if pointer.const_token.is_some() {
                "const"
            } else {
                "mut"
            };
            format!("*{constness} {}", spell(&pointer.elem))
        }
        syn::Type::Array(array) => {
            format!("[{}; {}]", spell(&array.elem), array.len.to_token_stream())
        }
        syn::Type::BareFn(function) => {
            let params: Vec<_> = function
                .inputs
                .iter()
                .map(|input| spell(&input.ty))
                .collect();
            let result = match &function.output {
                syn::ReturnType::Default => "()".to_owned(),
                syn::ReturnType::Type(_, kind) => spell(kind),
            };
            format!("fn({}) -> {result}", params.join(", "))
        }
        syn::Type::Path(path) => {
            let Some(last) = path.path.segments.last() else {
                return String::new();
            };
            if let syn::PathArguments::AngleBracketed(arguments) = &last.arguments {
                let inner: Vec<_> = arguments
                    .args
                    .iter()
                    .map(|argument| match argument {
                        syn::GenericArgument::Type(kind) => spell(kind),
                        other => other.to_token_stream().to_string(),
                    })
                    .collect();
                return format!("{}<{}>", last.ident, inner.join(", "));
            }
            match last.ident.to_string().as_str() {
                "c_int" => "i32".to_owned(),
                "c_uint" => "u32".to_owned(),
                "c_longlong" | "c_long" => "i64".to_owned(),
                "c_ulonglong" | "c_ulong" => "u64".to_owned(),
                "c_short" => "i16".to_owned(),
                "c_ushort" => "u16".to_owned(),
                "c_uchar" => "u8".to_owned(),
                name => name.to_owned(),
            }
        }
        other => other.to_token_stream().to_string(),
    }
}
