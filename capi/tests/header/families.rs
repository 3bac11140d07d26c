//! Every routine of the C API as data: its name, signature, types, and how it takes part in C11 generics.
//!
//! Not text: `text.rs` writes headers from it, `../programs` tests. Signatures are the standard's, with its placeholders: TYPE is the C type, NAME
//! its name in routines, SIZE the bits of an element. Two liberties, both wider than the standard: waits and tests take pointers to volatile
//! (as OpenSHMEM 1.4 had them), and locks too.

use npushmem::shm::table;

/// A row of the type table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// In names of routines.
    pub name: &'static str,
    /// In C; for sizes the bytes of an element.
    pub c: &'static str,
}

macro_rules! push {
    ($list:ident, $name:tt, $type:ty, $c:literal) => {
        $list.push(Row {
            name: stringify!($name),
            c: $c,
        });
    };
}
macro_rules! push_size {
    ($list:ident, $bits:tt, $bytes:tt) => {
        $list.push(Row {
            name: stringify!($bits),
            c: stringify!($bytes),
        });
    };
}

/// The lists of `table.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Types {
    /// Not typed.
    One,
    Rma,
    AmoStd,
    AmoExt,
    Bitwise,
    Wait,
    OldWait,
    OldAmo,
    OldAmoExt,
    ReduceBitwise,
    ReduceMinmax,
    ReduceArith,
    ToAllBitwise,
    ToAllMinmax,
    ToAllArith,
    Sizes,
    CollectiveSizes,
}

impl Types {
    /// The list's rows; none for [`Types::One`].
    pub fn rows(self) -> Vec<Row> {
        let mut rows = Vec::new();
        match self {
            Self::One => {}
            Self::Rma => {
                table::for_each_rma_type!(push, rows);
            }
            Self::AmoStd => {
                table::for_each_amo_std_type!(push, rows);
            }
            Self::AmoExt => {
                table::for_each_amo_ext_type!(push, rows);
            }
            Self::Bitwise => {
                table::for_each_bitwise_type!(push, rows);
            }
            Self::Wait => {
                table::for_each_wait_type!(push, rows);
            }
            Self::OldWait => {
                table::for_each_old_wait_type!(push, rows);
            }
            Self::OldAmo => {
                table::for_each_old_amo_type!(push, rows);
            }
            Self::OldAmoExt => {
                table::for_each_old_amo_ext_type!(push, rows);
            }
            Self::ReduceBitwise => {
                table::for_each_reduce_bitwise_type!(push, rows);
            }
            Self::ReduceMinmax => {
                table::for_each_reduce_minmax_type!(push, rows);
            }
            Self::ReduceArith => {
                table::for_each_reduce_arith_type!(push, rows);
            }
            Self::ToAllBitwise => {
                table::for_each_to_all_bitwise_type!(push, rows);
            }
            Self::ToAllMinmax => {
                table::for_each_to_all_minmax_type!(push, rows);
            }
            Self::ToAllArith => {
                table::for_each_to_all_arith_type!(push, rows);
            }
            Self::Sizes => {
                table::for_each_size!(push_size, rows);
            }
            Self::CollectiveSizes => {
                table::for_each_collective_size!(push_size, rows);
            }
        }
        rows
    }

    /// The rows whose C types differ from one another (LP64): what generics and overloads can tell apart.
    pub fn distinct_rows(self) -> Vec<Row> {
        let mut seen = Vec::new();
        let mut rows = self.rows();
        rows.retain(|row| {
            let basic = basic(row.c);
            !seen.contains(&basic) && {
                seen.push(basic);
                true
            }
        });
        rows
    }
}

/// The basic type behind a typedef where long and pointers have 64 bits.
pub fn basic(c: &'static str) -> &'static str {
    match c {
        "int8_t" => "signed char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" | "ptrdiff_t" => "long",
        "uint8_t" => "unsigned char",
        "uint16_t" => "unsigned short",
        "uint32_t" => "unsigned int",
        "uint64_t" | "size_t" => "unsigned long",
        other => other,
    }
}

/// A routine or a family of routines.
#[derive(Debug, Clone)]
pub struct Routine {
    /// Behind `shmem_`, with NAME or SIZE.
    pub name: &'static str,
    /// Type of the result.
    pub result: &'static str,
    /// Parameters as in C, with TYPE.
    pub params: &'static str,
    /// Which types.
    pub types: Types,
    /// There is a form `shmem_ctx_...` that takes a context first.
    pub ctx: bool,
    /// Behind `shmem_`: the type-generic name.
    pub generic: Option<&'static str>,
    /// The standard deprecates it.
    pub deprecated: bool,
}

impl Routine {
    /// Names with `shmem_` in front, in the order of the table; forms with a context after those without.
    pub fn names(&self) -> Vec<String> {
        self.signatures()
            .into_iter()
            .map(|signature| signature.name)
            .collect()
    }

    /// Every function that it stands for.
    pub fn signatures(&self) -> Vec<Signature> {
        let rows = match self.types {
            Types::One => vec![Row { name: "", c: "" }],
            other => other.rows(),
        };
        let forms: &[bool] = if self.ctx { &[false, true] } else { &[false] };
        forms
            .iter()
            .flat_map(|&ctx| rows.iter().map(move |row| (ctx, row)))
            .map(|(ctx, row)| self.signature(row, ctx))
            .collect()
    }

    /// The function for one type.
    pub fn signature(&self, row: &Row, ctx: bool) -> Signature {
        let name = self
            .name
            .replace("NAME", row.name)
            .replace("SIZE", row.name);
        let mut params = self.params.replace("TYPE", row.c);
        if ctx {
            params = match params.as_str() {
                "void" => "shmem_ctx_t ctx".into(),
                _ => format!("shmem_ctx_t ctx, {params}"),
            };
        }
        Signature {
            name: format!("shmem_{}{name}", if ctx { "ctx_" } else { "" }),
            result: self.result.replace("TYPE", row.c),
            params,
        }
    }
}

/// Names of the parameters in a list.
pub fn arguments(params: &str) -> Vec<&str> {
    if params == "void" {
        return Vec::new();
    }
    params
        .split(", ")
        .map(|param| {
            param
                .rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .next()
                .unwrap_or_default()
        })
        .collect()
}

/// One C function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Name.
    pub name: String,
    /// Type of the result.
    pub result: String,
    /// Parameters.
    pub params: String,
}

/// A group of routines under one comment.
pub struct Section {
    /// What they do, and the section of OpenSHMEM 1.6 by its title.
    pub about: &'static str,
    /// The routines.
    pub routines: Vec<Routine>,
}

fn routine(result: &'static str, name: &'static str, params: &'static str) -> Routine {
    Routine {
        name,
        result,
        params,
        types: Types::One,
        ctx: false,
        generic: None,
        deprecated: false,
    }
}

impl Routine {
    fn of(mut self, types: Types) -> Self {
        self.types = types;
        self
    }
    fn ctx(mut self) -> Self {
        self.ctx = true;
        self
    }
    fn generic(mut self, name: &'static str) -> Self {
        self.generic = Some(name);
        self
    }
    fn deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }
}

const PUT: &str = "TYPE *dest, const TYPE *source, size_t nelems, int pe";
const PUT_SIZED: &str = "void *dest, const void *source, size_t nelems, int pe";
const STRIDED: &str =
    "TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe";
const STRIDED_SIZED: &str =
    "void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe";
const BLOCKS: &str = "TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe";
const BLOCKS_SIZED: &str = "void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe";
const PUT_SIGNAL: &str =
    "TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";
const PUT_SIGNAL_SIZED: &str =
    "void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";
const TEAM_DATA: &str = "shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems";
const TEAM_BYTES: &str = "shmem_team_t team, void *dest, const void *source, size_t nelems";
const TEAM_REDUCE: &str = "shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce";
const TO_ALL: &str =
    "TYPE *dest, const TYPE *source, int nreduce, int PE_start, int logPE_stride, int PE_size, TYPE *pWrk, long *pSync";
const ACTIVE_SET: &str = "void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync";

/// All routines, in the order of the header.
pub fn sections() -> Vec<Section> {
    let mut all = vec![
        Section {
            about: "Start and end, who is there (Library Setup, Exit, and Query Routines; Thread Support).",
            routines: vec![
                routine("void", "init", "void"),
                routine("int", "init_thread", "int requested, int *provided"),
                routine("void", "query_thread", "int *provided"),
                routine("void", "query_initialized", "int *initialized"),
                routine("void", "finalize", "void"),
                routine("void", "global_exit", "int status"),
                routine("int", "my_pe", "void"),
                routine("int", "n_pes", "void"),
                routine("int", "pe_accessible", "int pe"),
                routine("int", "addr_accessible", "const void *addr, int pe"),
                routine("void *", "ptr", "const void *dest, int pe"),
                routine("void", "info_get_version", "int *major, int *minor"),
                routine("void", "info_get_name", "char *name"),
                routine("void", "pcontrol", "int level, ..."),
            ],
        },
        Section {
            about: "The symmetric heap (Memory Management Routines).",
            routines: vec![
                routine("void *", "malloc", "size_t size"),
                routine("void *", "calloc", "size_t count, size_t size"),
                routine("void *", "align", "size_t alignment, size_t size"),
                routine("void *", "realloc", "void *ptr, size_t size"),
                routine("void *", "malloc_with_hints", "size_t size, long hints"),
                routine("void", "free", "void *ptr"),
            ],
        },
        Section {
            about: "Teams (Team Management Routines).",
            routines: vec![
                routine("int", "team_my_pe", "shmem_team_t team"),
                routine("int", "team_n_pes", "shmem_team_t team"),
                routine("int", "team_get_config", "shmem_team_t team, long config_mask, shmem_team_config_t *config"),
                routine("int", "team_translate_pe", "shmem_team_t src_team, int src_pe, shmem_team_t dest_team"),
                routine(
                    "int",
                    "team_split_strided",
                    "shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team",
                ),
                routine(
                    "int",
                    "team_split_2d",
                    "shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team",
                ),
                routine("void", "team_destroy", "shmem_team_t team"),
                routine("void *", "team_ptr", "shmem_team_t team, const void *dest, int pe"),
            ],
        },
        Section {
            about: "Contexts and sessions (Communication Management Routines).",
            routines: vec![
                routine("int", "ctx_create", "long options, shmem_ctx_t *ctx"),
                routine("int", "team_create_ctx", "shmem_team_t team, long options, shmem_ctx_t *ctx"),
                routine("void", "ctx_destroy", "shmem_ctx_t ctx"),
                routine("int", "ctx_get_team", "shmem_ctx_t ctx, shmem_team_t *team"),
                routine(
                    "void",
                    "ctx_session_start",
                    "shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask",
                ),
                routine("void", "ctx_session_stop", "shmem_ctx_t ctx"),
            ],
        },
    ];
    all.extend(rma());
    all.extend(atomics());
    all.extend(synchronization());
    all.extend(collectives());
    all
}

fn rma() -> Vec<Section> {
    let mut put_get = Vec::new();
    for (typed, sized, mem, generic, params, params_sized) in [
        ("NAME_put", "putSIZE", "putmem", "put", PUT, PUT_SIZED),
        ("NAME_get", "getSIZE", "getmem", "get", PUT, PUT_SIZED),
        (
            "NAME_put_nbi",
            "putSIZE_nbi",
            "putmem_nbi",
            "put_nbi",
            PUT,
            PUT_SIZED,
        ),
        (
            "NAME_get_nbi",
            "getSIZE_nbi",
            "getmem_nbi",
            "get_nbi",
            PUT,
            PUT_SIZED,
        ),
        (
            "NAME_put_signal",
            "putSIZE_signal",
            "putmem_signal",
            "put_signal",
            PUT_SIGNAL,
            PUT_SIGNAL_SIZED,
        ),
        (
            "NAME_put_signal_nbi",
            "putSIZE_signal_nbi",
            "putmem_signal_nbi",
            "put_signal_nbi",
            PUT_SIGNAL,
            PUT_SIGNAL_SIZED,
        ),
    ] {
        put_get.push(
            routine("void", typed, params)
                .of(Types::Rma)
                .ctx()
                .generic(generic),
        );
        put_get.push(routine("void", sized, params_sized).of(Types::Sizes).ctx());
        put_get.push(routine("void", mem, params_sized).ctx());
    }
    let mut strided = Vec::new();
    for (typed, sized, generic, params, params_sized) in [
        ("NAME_iput", "iputSIZE", "iput", STRIDED, STRIDED_SIZED),
        ("NAME_iget", "igetSIZE", "iget", STRIDED, STRIDED_SIZED),
        ("NAME_ibput", "ibputSIZE", "ibput", BLOCKS, BLOCKS_SIZED),
        ("NAME_ibget", "ibgetSIZE", "ibget", BLOCKS, BLOCKS_SIZED),
    ] {
        strided.push(
            routine("void", typed, params)
                .of(Types::Rma)
                .ctx()
                .generic(generic),
        );
        strided.push(routine("void", sized, params_sized).of(Types::Sizes).ctx());
    }
    vec![
        Section {
            about: "Blocks of data to and from a PE; _nbi: complete after quiet only; _signal: the signal is updated after the data\n(Remote Memory Access Routines; Non-blocking Remote Memory Access Routines; Signaling Operations).",
            routines: put_get,
        },
        Section {
            about: "Single elements (Remote Memory Access Routines).",
            routines: vec![
                routine("void", "NAME_p", "TYPE *dest, TYPE value, int pe").of(Types::Rma).ctx().generic("p"),
                routine("TYPE", "NAME_g", "const TYPE *source, int pe").of(Types::Rma).ctx().generic("g"),
            ],
        },
        Section {
            about: "Elements and blocks at a stride (Remote Memory Access Routines).",
            routines: strided,
        },
    ]
}

fn atomics() -> Vec<Section> {
    const VALUE: &str = "TYPE *dest, TYPE value, int pe";
    const FETCH_VALUE: &str = "TYPE *fetch, TYPE *dest, TYPE value, int pe";
    let mut routines = vec![
        routine("TYPE", "NAME_atomic_fetch", "const TYPE *source, int pe")
            .of(Types::AmoExt)
            .ctx()
            .generic("atomic_fetch"),
        routine("void", "NAME_atomic_set", VALUE)
            .of(Types::AmoExt)
            .ctx()
            .generic("atomic_set"),
        routine("TYPE", "NAME_atomic_swap", VALUE)
            .of(Types::AmoExt)
            .ctx()
            .generic("atomic_swap"),
        routine(
            "TYPE",
            "NAME_atomic_compare_swap",
            "TYPE *dest, TYPE cond, TYPE value, int pe",
        )
        .of(Types::AmoStd)
        .ctx()
        .generic("atomic_compare_swap"),
        routine("TYPE", "NAME_atomic_fetch_inc", "TYPE *dest, int pe")
            .of(Types::AmoStd)
            .ctx()
            .generic("atomic_fetch_inc"),
        routine("void", "NAME_atomic_inc", "TYPE *dest, int pe")
            .of(Types::AmoStd)
            .ctx()
            .generic("atomic_inc"),
        routine("TYPE", "NAME_atomic_fetch_add", VALUE)
            .of(Types::AmoStd)
            .ctx()
            .generic("atomic_fetch_add"),
        routine("void", "NAME_atomic_add", VALUE)
            .of(Types::AmoStd)
            .ctx()
            .generic("atomic_add"),
    ];
    let mut nbi = vec![
        routine(
            "void",
            "NAME_atomic_fetch_nbi",
            "TYPE *fetch, const TYPE *source, int pe",
        )
        .of(Types::AmoExt)
        .ctx()
        .generic("atomic_fetch_nbi"),
        routine("void", "NAME_atomic_swap_nbi", FETCH_VALUE)
            .of(Types::AmoExt)
            .ctx()
            .generic("atomic_swap_nbi"),
        routine(
            "void",
            "NAME_atomic_compare_swap_nbi",
            "TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe",
        )
        .of(Types::AmoStd)
        .ctx()
        .generic("atomic_compare_swap_nbi"),
        routine(
            "void",
            "NAME_atomic_fetch_inc_nbi",
            "TYPE *fetch, TYPE *dest, int pe",
        )
        .of(Types::AmoStd)
        .ctx()
        .generic("atomic_fetch_inc_nbi"),
        routine("void", "NAME_atomic_fetch_add_nbi", FETCH_VALUE)
            .of(Types::AmoStd)
            .ctx()
            .generic("atomic_fetch_add_nbi"),
    ];
    for (fetching, plain, fetching_nbi, names) in [
        (
            "NAME_atomic_fetch_and",
            "NAME_atomic_and",
            "NAME_atomic_fetch_and_nbi",
            ["atomic_fetch_and", "atomic_and", "atomic_fetch_and_nbi"],
        ),
        (
            "NAME_atomic_fetch_or",
            "NAME_atomic_or",
            "NAME_atomic_fetch_or_nbi",
            ["atomic_fetch_or", "atomic_or", "atomic_fetch_or_nbi"],
        ),
        (
            "NAME_atomic_fetch_xor",
            "NAME_atomic_xor",
            "NAME_atomic_fetch_xor_nbi",
            ["atomic_fetch_xor", "atomic_xor", "atomic_fetch_xor_nbi"],
        ),
    ] {
        routines.push(
            routine("TYPE", fetching, VALUE)
                .of(Types::Bitwise)
                .ctx()
                .generic(names[0]),
        );
        routines.push(
            routine("void", plain, VALUE)
                .of(Types::Bitwise)
                .ctx()
                .generic(names[1]),
        );
        nbi.push(
            routine("void", fetching_nbi, FETCH_VALUE)
                .of(Types::Bitwise)
                .ctx()
                .generic(names[2]),
        );
    }
    let old = vec![
        routine("TYPE", "NAME_fetch", "const TYPE *source, int pe")
            .of(Types::OldAmoExt)
            .generic("fetch")
            .deprecated(),
        routine("void", "NAME_set", VALUE)
            .of(Types::OldAmoExt)
            .generic("set")
            .deprecated(),
        routine("TYPE", "NAME_swap", VALUE)
            .of(Types::OldAmoExt)
            .generic("swap")
            .deprecated(),
        routine(
            "TYPE",
            "NAME_cswap",
            "TYPE *dest, TYPE cond, TYPE value, int pe",
        )
        .of(Types::OldAmo)
        .generic("cswap")
        .deprecated(),
        routine("TYPE", "NAME_finc", "TYPE *dest, int pe")
            .of(Types::OldAmo)
            .generic("finc")
            .deprecated(),
        routine("void", "NAME_inc", "TYPE *dest, int pe")
            .of(Types::OldAmo)
            .generic("inc")
            .deprecated(),
        routine("TYPE", "NAME_fadd", VALUE)
            .of(Types::OldAmo)
            .generic("fadd")
            .deprecated(),
        routine("void", "NAME_add", VALUE)
            .of(Types::OldAmo)
            .generic("add")
            .deprecated(),
    ];
    vec![
        Section { about: "Atomics (Atomic Memory Operations).", routines },
        Section { about: "Atomics whose result is there after quiet only (Non-blocking Atomic Memory Operations).", routines: nbi },
        Section { about: "Names of atomics before OpenSHMEM 1.4 (deprecated).", routines: old },
    ]
}

fn synchronization() -> Vec<Section> {
    const ONE: &str = "volatile TYPE *ivar, int cmp, TYPE cmp_value";
    const MANY: &str =
        "volatile TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value";
    const SOME: &str = "volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, TYPE cmp_value";
    const MANY_VECTOR: &str =
        "volatile TYPE *ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values";
    const SOME_VECTOR: &str =
        "volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const TYPE *cmp_values";
    let wait = |result, name, params, generic| {
        routine(result, name, params)
            .of(Types::Wait)
            .generic(generic)
    };
    vec![
        Section {
            about: "Signals (Signaling Operations).",
            routines: vec![
                routine("uint64_t", "signal_fetch", "const uint64_t *sig_addr"),
                routine(
                    "void",
                    "signal_set",
                    "uint64_t *sig_addr, uint64_t signal, int pe",
                )
                .ctx(),
                routine(
                    "void",
                    "signal_add",
                    "uint64_t *sig_addr, uint64_t signal, int pe",
                )
                .ctx(),
                routine(
                    "uint64_t",
                    "signal_wait_until",
                    "uint64_t *sig_addr, int cmp, uint64_t cmp_value",
                ),
            ],
        },
        Section {
            about:
                "Waiting for values that others write (Point-To-Point Synchronization Routines).",
            routines: vec![
                wait("void", "NAME_wait_until", ONE, "wait_until"),
                wait("void", "NAME_wait_until_all", MANY, "wait_until_all"),
                wait("size_t", "NAME_wait_until_any", MANY, "wait_until_any"),
                wait("size_t", "NAME_wait_until_some", SOME, "wait_until_some"),
                wait(
                    "void",
                    "NAME_wait_until_all_vector",
                    MANY_VECTOR,
                    "wait_until_all_vector",
                ),
                wait(
                    "size_t",
                    "NAME_wait_until_any_vector",
                    MANY_VECTOR,
                    "wait_until_any_vector",
                ),
                wait(
                    "size_t",
                    "NAME_wait_until_some_vector",
                    SOME_VECTOR,
                    "wait_until_some_vector",
                ),
                wait("int", "NAME_test", ONE, "test"),
                wait("int", "NAME_test_all", MANY, "test_all"),
                wait("size_t", "NAME_test_any", MANY, "test_any"),
                wait("size_t", "NAME_test_some", SOME, "test_some"),
                wait(
                    "int",
                    "NAME_test_all_vector",
                    MANY_VECTOR,
                    "test_all_vector",
                ),
                wait(
                    "size_t",
                    "NAME_test_any_vector",
                    MANY_VECTOR,
                    "test_any_vector",
                ),
                wait(
                    "size_t",
                    "NAME_test_some_vector",
                    SOME_VECTOR,
                    "test_some_vector",
                ),
                routine("void", "NAME_wait", "volatile TYPE *ivar, TYPE cmp_value")
                    .of(Types::OldWait)
                    .deprecated(),
                routine(
                    "void",
                    "wait_until",
                    "volatile long *ivar, int cmp, long cmp_value",
                )
                .deprecated(),
                routine("void", "wait", "volatile long *ivar, long cmp_value").deprecated(),
            ],
        },
        Section {
            about: "Order and completion (Memory Ordering Routines).",
            routines: vec![
                routine("void", "fence", "void").ctx(),
                routine("void", "quiet", "void").ctx(),
                routine("void", "pe_quiet", "const int *target_pes, size_t npes").ctx(),
            ],
        },
        Section {
            about: "Locks (Distributed Locking Routines).",
            routines: vec![
                routine("void", "set_lock", "volatile long *lock"),
                routine("void", "clear_lock", "volatile long *lock"),
                routine("int", "test_lock", "volatile long *lock"),
            ],
        },
        Section {
            about:
                "Caches: they do nothing where memory is coherent (Cache Management, deprecated).",
            routines: vec![
                routine("void", "set_cache_inv", "void").deprecated(),
                routine("void", "set_cache_line_inv", "void *dest").deprecated(),
                routine("void", "clear_cache_inv", "void").deprecated(),
                routine("void", "clear_cache_line_inv", "void *dest").deprecated(),
                routine("void", "udcflush", "void").deprecated(),
                routine("void", "udcflush_line", "void *dest").deprecated(),
            ],
        },
    ]
}

fn collectives() -> Vec<Section> {
    let team = |name, params, generic| routine("int", name, params).of(Types::Rma).generic(generic);
    let reduce =
        |name, types, generic| routine("int", name, TEAM_REDUCE).of(types).generic(generic);
    let to_all = |name, types| routine("void", name, TO_ALL).of(types).deprecated();
    let set = |name, params| {
        routine("void", name, params)
            .of(Types::CollectiveSizes)
            .deprecated()
    };
    vec![
        Section {
            about: "Barriers (Collective Routines). shmem_sync_pe, an extension: two PEs meet, each naming the other.",
            routines: vec![
                routine("void", "barrier_all", "void"),
                routine("void", "sync_all", "void"),
                routine("int", "team_sync", "shmem_team_t team"),
                routine("void", "sync_pe", "int pe"),
                routine("void", "barrier", "int PE_start, int logPE_stride, int PE_size, long *pSync").deprecated(),
                routine("void", "sync", "int PE_start, int logPE_stride, int PE_size, long *pSync").deprecated(),
            ],
        },
        Section {
            about: "Data between all PEs of a team (Collective Routines).",
            routines: vec![
                team("NAME_broadcast", "shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, int PE_root", "broadcast"),
                routine("int", "broadcastmem", "shmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root"),
                team("NAME_collect", TEAM_DATA, "collect"),
                routine("int", "collectmem", TEAM_BYTES),
                team("NAME_fcollect", TEAM_DATA, "fcollect"),
                routine("int", "fcollectmem", TEAM_BYTES),
                team("NAME_alltoall", TEAM_DATA, "alltoall"),
                routine("int", "alltoallmem", TEAM_BYTES),
                team(
                    "NAME_alltoalls",
                    "shmem_team_t team, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems",
                    "alltoalls",
                ),
                routine(
                    "int",
                    "alltoallsmem",
                    "shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems",
                ),
            ],
        },
        Section {
            about: "Reductions and scans over a team (Collective Routines).",
            routines: vec![
                reduce("NAME_and_reduce", Types::ReduceBitwise, "and_reduce"),
                reduce("NAME_or_reduce", Types::ReduceBitwise, "or_reduce"),
                reduce("NAME_xor_reduce", Types::ReduceBitwise, "xor_reduce"),
                reduce("NAME_max_reduce", Types::ReduceMinmax, "max_reduce"),
                reduce("NAME_min_reduce", Types::ReduceMinmax, "min_reduce"),
                reduce("NAME_sum_reduce", Types::ReduceArith, "sum_reduce"),
                reduce("NAME_prod_reduce", Types::ReduceArith, "prod_reduce"),
                routine("int", "NAME_sum_inscan", TEAM_DATA).of(Types::ReduceArith).generic("sum_inscan"),
                routine("int", "NAME_sum_exscan", TEAM_DATA).of(Types::ReduceArith).generic("sum_exscan"),
            ],
        },
        Section {
            about: "Collectives over active sets (deprecated).",
            routines: vec![
                set(
                    "broadcastSIZE",
                    "void *dest, const void *source, size_t nelems, int PE_root, int PE_start, int logPE_stride, int PE_size, long *pSync",
                ),
                set("collectSIZE", ACTIVE_SET),
                set("fcollectSIZE", ACTIVE_SET),
                set("alltoallSIZE", ACTIVE_SET),
                set(
                    "alltoallsSIZE",
                    "void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync",
                ),
                to_all("NAME_and_to_all", Types::ToAllBitwise),
                to_all("NAME_or_to_all", Types::ToAllBitwise),
                to_all("NAME_xor_to_all", Types::ToAllBitwise),
                to_all("NAME_max_to_all", Types::ToAllMinmax),
                to_all("NAME_min_to_all", Types::ToAllMinmax),
                to_all("NAME_sum_to_all", Types::ToAllArith),
                to_all("NAME_prod_to_all", Types::ToAllArith),
            ],
        },
    ]
}
