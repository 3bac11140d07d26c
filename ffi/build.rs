//! Makes the Rust side of include/acl.h and include/hccp.h: bindgen's types and constants, and from its extern
//! declarations a table of function pointers a library. The extern declarations themselves are dropped, so that
//! nothing is left that a linker would look for. Called by cargo; its output is included by src/acl.rs and src/hccp.rs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use bindgen::callbacks::{IntKind, ParseCallbacks};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

fn main() -> Result<()> {
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").context("OUT_DIR: build.rs is run by cargo")?);
    println!("cargo:rerun-if-changed=build.rs");
    for library in [
        Library {
            header: "include/acl.h",
            out: "acl.rs",
            table: "Acl",
            vendor: "the ACL runtime",
            default: "libascendcl.so",
            camel_case: false,
        },
        Library {
            header: "include/hccp.h",
            out: "hccp.rs",
            table: "Hccp",
            vendor: "HCCP",
            default: "libra.so",
            camel_case: true,
        },
    ] {
        let code = library
            .generate()
            .with_context(|| format!("making Rust from ffi/{}", library.header))?;
        std::fs::write(out.join(library.out), code)
            .with_context(|| format!("writing {}", library.out))?;
    }
    Ok(())
}

/// One header and what is made of it.
struct Library {
    header: &'static str,
    out: &'static str,
    table: &'static str,
    vendor: &'static str,
    /// The library that a function is in, where its comment has no `@library`.
    default: &'static str,
    /// Symbols are also looked up in CamelCase.
    camel_case: bool,
}

/// Macros get the type of the parameter they are for: codes are `aclError`, flags of 64-bit parameters are `u64`.
#[derive(Debug)]
struct MacroTypes;

impl ParseCallbacks for MacroTypes {
    fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
        let is = |prefix: &str| name.starts_with(prefix);
        Some(
            if is("ACL_ERROR_")
                || is("ACL_SUCCESS")
                || is("HCCP_HDC_")
                || is("HCCP_QP_EXT_")
                || is("HCCP_MEM_ALIGN_")
            {
                IntKind::I32
            } else if name.ends_with("_SIZE") {
                IntKind::Custom {
                    name: "usize",
                    is_signed: false,
                }
            } else if name.contains("PORT_FLAG_")
                || is("ACL_RT_DEVS_TOPOLOGY_")
                || is("ACL_RT_IPC_MEM_ATTR_")
            {
                IntKind::U64
            } else {
                IntKind::U32
            },
        )
    }
}

/// A function of a header.
struct Function {
    name: Ident,
    docs: Vec<String>,
    optional: bool,
    since: Option<String>,
    library: String,
    params: Vec<(Ident, syn::Type)>,
    result: syn::ReturnType,
}

impl Library {
    fn generate(&self) -> Result<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.header);
        println!("cargo:rerun-if-changed={}", path.display());
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let bindings = bindgen::Builder::default()
            .header(path.to_str().context("the path of the source tree is not UTF-8")?)
            .clang_args(["-std=c11", "-fparse-all-comments"])
            .allowlist_file(regex_escape(path.to_str().unwrap_or_default()))
            .prepend_enum_name(false)
            .rust_edition(bindgen::RustEdition::Edition2021)
            .derive_default(true)
            .derive_debug(true)
            .parse_callbacks(Box::new(MacroTypes))
            .formatter(bindgen::Formatter::None)
            .generate()
            .context("bindgen failed (it needs libclang: apt install libclang-dev on Debian and Ubuntu, else set LIBCLANG_PATH)")?
            .to_string();
        let mut file = syn::parse_file(&bindings).context("parsing bindgen's output")?;
        file.attrs.clear();
        let macros = macro_docs(&text);
        let mut functions = Vec::new();
        let mut items = Vec::new();
        for mut item in file.items {
            match item {
                syn::Item::ForeignMod(block) => {
                    for foreign in block.items {
                        let syn::ForeignItem::Fn(function) = foreign else {
                            bail!(
                                "a declaration that is no function: the table holds functions only"
                            );
                        };
                        functions.push(self.function(function)?);
                    }
                }
                _ => {
                    tidy(&mut item, &macros)?;
                    items.push(item);
                }
            }
        }
        let tables = self.tables(&functions);
        let code = syn::parse2(quote! { #(#items)* #tables })
            .context("the generated code does not parse")?;
        Ok(format!(
            "// Generated by ffi/build.rs from ffi/{}.\n\n{}",
            self.header,
            prettyplease::unparse(&code)
        ))
    }

    fn function(&self, item: syn::ForeignItemFn) -> Result<Function> {
        let name = item.sig.ident;
        let mut function = Function {
            docs: Vec::new(),
            optional: false,
            since: None,
            library: self.default.to_owned(),
            params: Vec::new(),
            result: item.sig.output,
            name,
        };
        for line in docs_of(&item.attrs) {
            let mut text = Vec::new();
            let mut words = line.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    "@optional" => function.optional = true,
                    "@since" => function.since = words.next().map(str::to_owned),
                    "@library" => {
                        function.library =
                            words.next().context("@library without a name")?.to_owned();
                    }
                    _ => text.push(word),
                }
            }
            function.docs.push(format!(" {}", text.join(" ")));
        }
        if function.docs.iter().all(|line| line.trim().is_empty()) {
            bail!("{} has no comment in {}", function.name, self.header);
        }
        for input in item.sig.inputs {
            let syn::FnArg::Typed(param) = input else {
                bail!("{}: a receiver", function.name)
            };
            let syn::Pat::Ident(pattern) = *param.pat else {
                bail!("{}: an unnamed parameter", function.name)
            };
            function.params.push((pattern.ident, *param.ty));
        }
        Ok(function)
    }

    fn tables(&self, functions: &[Function]) -> TokenStream {
        let table = format_ident!("{}", self.table);
        let fns = format_ident!("{}Fns", self.table);
        let optional = format_ident!("{}Optional", self.table);
        let each = format_ident!("for_each_{}_function", self.table.to_lowercase());
        let vendor = self.vendor;

        let (opt, req): (Vec<&Function>, Vec<&Function>) =
            functions.iter().partition(|f| f.optional);
        let field = |f: &Function| {
            let (name, docs) = (&f.name, &f.docs);
            let signature = signature(f);
            if f.optional {
                quote! { #(#[doc = #docs])* pub #name: Option<#signature> }
            } else {
                quote! { #(#[doc = #docs])* pub #name: #signature }
            }
        };
        let load = |f: &Function| {
            let name = &f.name;
            let symbol = self.symbol(f);
            if f.optional {
                quote! { #name: loader.optional(&#symbol) }
            } else {
                quote! { #name: loader.required(&#symbol)? }
            }
        };
        let (req_fields, opt_fields): (Vec<_>, Vec<_>) = (
            req.iter().map(|f| field(f)).collect(),
            opt.iter().map(|f| field(f)).collect(),
        );
        let (req_loads, opt_loads): (Vec<_>, Vec<_>) = (
            req.iter().map(|f| load(f)).collect(),
            opt.iter().map(|f| load(f)).collect(),
        );
        let symbols: Vec<_> = functions.iter().map(|f| self.symbol(f)).collect();
        let declarations: Vec<_> = req
            .iter()
            .map(|f| {
                let (name, result) = (&f.name, &f.result);
                let params = f.params.iter().map(|(name, ty)| quote! { #name: #ty });
                quote! { fn #name(#(#params),*) #result; }
            })
            .collect();

        let fns_doc = format!(
            " The functions of {vendor}, under their own names. See [`{}`].",
            self.table
        );
        let optional_doc = format!(" Functions of {vendor} that a library may lack: `None` there.");
        let table_doc = format!(
            " The functions of {vendor}, from the vendor's library ([`{0}::load`]) or from Rust ([`{0}::from_fns`]). \
             Fields are reached through `Deref`: `(table.name)(...)`.",
            self.table
        );
        let each_doc = format!(
            " Calls the macro `$callback` with the declarations of all required functions of {vendor}, \
             `fn name(parameter: type, ...) -> type;` each. Their types are those of this module."
        );
        quote! {
            #[doc = #fns_doc]
            #[derive(Clone, Copy)]
            pub struct #fns {
                #(#req_fields,)*
                #[doc = "What a library may lack."]
                pub optional: #optional,
            }

            #[doc = #optional_doc]
            #[derive(Clone, Copy, Default)]
            pub struct #optional {
                #(#opt_fields,)*
            }

            #[doc = #table_doc]
            #[derive(Clone)]
            pub struct #table {
                fns: #fns,
                libraries: ::std::sync::Arc<[String]>,
            }

            impl #table {
                /// Opens the libraries named in `paths` as far as they are needed, in this order, and fills the table.
                /// A path without a slash is looked up by the dynamic linker. The libraries stay open until the process
                /// ends: they run threads of their own.
                ///
                /// # Errors
                ///
                /// No library opens, or a required symbol is in none of them.
                pub fn load(paths: &[&str]) -> Result<Self, crate::LoadError> {
                    let mut loader = crate::load::Loader::open(paths)?;
                    // SAFETY: the types are those of the header that declares the symbols for these libraries; that a
                    // library of this name keeps to them is what `make abi-check` and the vendor's ABI promise.
                    let fns = unsafe {
                        #fns {
                            #(#req_loads,)*
                            optional: #optional { #(#opt_loads,)* },
                        }
                    };
                    Ok(Self { fns, libraries: loader.opened().into() })
                }

                /// A table of functions that are already here, for instance the emulator's.
                pub fn from_fns(fns: #fns) -> Self {
                    Self { fns, libraries: ::std::sync::Arc::from([]) }
                }

                /// The libraries that the functions come from; empty for [`Self::from_fns`].
                pub fn libraries(&self) -> &[String] {
                    &self.libraries
                }
            }

            impl ::std::fmt::Debug for #table {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.debug_struct(stringify!(#table)).field("libraries", &self.libraries).finish_non_exhaustive()
                }
            }

            impl ::std::ops::Deref for #table {
                type Target = #fns;

                fn deref(&self) -> &#fns {
                    &self.fns
                }
            }

            /// Every symbol of the table, in the header's order.
            pub const SYMBOLS: &[crate::Symbol] = &[#(#symbols,)*];

            #[doc = #each_doc]
            #[macro_export]
            macro_rules! #each {
                ($callback:ident) => {
                    $callback! { #(#declarations)* }
                };
            }
        }
    }

    /// The `crate::Symbol` of a function.
    fn symbol(&self, function: &Function) -> TokenStream {
        let name = function.name.to_string();
        let alternative = match camel_case(&name) {
            Some(other) if self.camel_case => quote! { Some(#other) },
            _ => quote! { None },
        };
        let since = match &function.since {
            Some(version) => quote! { Some(#version) },
            None => quote! { None },
        };
        let (library, required) = (&function.library, !function.optional);
        quote! {
            crate::Symbol {
                name: #name, alternative: #alternative, library: #library, since: #since, required: #required,
            }
        }
    }
}

fn signature(function: &Function) -> TokenStream {
    let params = function
        .params
        .iter()
        .map(|(name, ty)| quote! { #name: #ty });
    let result = &function.result;
    quote! { unsafe extern "C" fn(#(#params),*) #result }
}

/// `ra_qp_create` -> `RaQpCreate`; `None` for names without an underscore.
fn camel_case(name: &str) -> Option<String> {
    name.contains('_').then(|| {
        name.split('_')
            .map(|part| {
                let mut chars = part.chars();
                chars
                    .next()
                    .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
                    .unwrap_or_default()
            })
            .collect()
    })
}

/// The comment after each `#define NAME value`, which libclang does not hand out.
fn macro_docs(header: &str) -> HashMap<String, String> {
    header
        .lines()
        .filter_map(|line| {
            let rest = line.strip_prefix("#define ")?;
            let (name, rest) = rest.split_once(' ')?;
            let (_, doc) = rest.split_once("/**<")?;
            Some((
                name.to_owned(),
                doc.trim_end().trim_end_matches("*/").trim().to_owned(),
            ))
        })
        .collect()
}

/// The lines of an item's comment, without the `<` of trailing comments.
fn docs_of(attrs: &[syn::Attribute]) -> Vec<String> {
    attrs
        .iter()
        .filter_map(|attr| match &attr.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        .map(|text| text.trim().trim_start_matches('<').trim().to_owned())
        .collect()
}

/// Cleans the comments of an item and its fields, and gives macros theirs.
fn tidy(item: &mut syn::Item, macros: &HashMap<String, String>) -> Result<()> {
    match item {
        syn::Item::Const(constant) => {
            clean(&mut constant.attrs);
            if let Some(doc) = macros.get(&constant.ident.to_string()) {
                let doc = format!(" {doc}");
                constant.attrs.push(syn::parse_quote! { #[doc = #doc] });
            } else if docs_of(&constant.attrs).is_empty() && constant.ident != "_" {
                bail!("{} has no comment", constant.ident);
            }
        }
        syn::Item::Struct(item) => {
            clean(&mut item.attrs);
            item.fields
                .iter_mut()
                .for_each(|field| clean(&mut field.attrs));
        }
        syn::Item::Union(item) => {
            clean(&mut item.attrs);
            item.fields
                .named
                .iter_mut()
                .for_each(|field| clean(&mut field.attrs));
        }
        syn::Item::Type(item) => clean(&mut item.attrs),
        _ => {}
    }
    Ok(())
}

fn clean(attrs: &mut Vec<syn::Attribute>) {
    let docs = docs_of(attrs);
    attrs.retain(|attr| !attr.path().is_ident("doc"));
    attrs.extend(docs.iter().map(|doc| -> syn::Attribute {
        let doc = format!(" {doc}");
        syn::parse_quote! { #[doc = #doc] }
    }));
}

/// bindgen takes a regular expression where we have a path.
fn regex_escape(path: &str) -> String {
    path.chars()
        .flat_map(|c| {
            (!c.is_ascii_alphanumeric() && c != '/' && c.is_ascii())
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect()
}
