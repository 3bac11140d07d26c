//! What the compiler of kernels accepts and refuses, and the whole of a build script's work.

mod common;

use npushmem_build::{Kernels, NPU_ARCH_950, NPU_ARCH_A2, SIM_ARCHS};
use std::path::Path;

fn refusal(source: &str) -> String {
    let out = tempfile::tempdir().unwrap();
    let error = common::compiler()
        .compile(
            &Path::new("tests/kernels").join(source),
            NPU_ARCH_A2,
            out.path(),
        )
        .unwrap_err();
    format!("{error:#}")
}

#[test]
fn a_global_variable_is_refused_by_name() {
    let text = refusal("globals.cpp");
    assert!(
        text.contains("globals.cpp")
            && text.contains("counter")
            && text.contains("cores would share"),
        "{text}"
    );
    assert!(!text.contains("NAMES") && !text.contains("TABLE"), "{text}");
}

#[test]
fn an_unknown_attribute_is_an_error() {
    let text = refusal("unknown_attribute.cpp");
    assert!(text.contains("block_local"), "{text}");
}

#[test]
fn a_tensor_of_doubles_is_refused() {
    let text = refusal("doubles.cpp");
    assert!(text.contains("AscendC has no double"), "{text}");
}

#[test]
fn a_kernel_for_cube_cores_is_refused() {
    let text = refusal("cube.cpp");
    assert!(
        text.contains("cube cores") && text.contains("cube.cpp:3"),
        "{text}"
    );
}

#[test]
fn a_missing_source_and_one_without_kernels_are_named() {
    assert!(refusal("absent.cpp").contains("tests/kernels/absent.cpp does not exist"));
    let out = tempfile::tempdir().unwrap();
    let plain = out.path().join("plain.cpp");
    std::fs::write(&plain, "int f() { return 1; }\n").unwrap();
    let error = common::compiler()
        .compile(&plain, NPU_ARCH_A2, out.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no __global__ kernel"), "{error}");
}

#[test]
fn a_syntax_error_shows_the_compiler_s_words() {
    let out = tempfile::tempdir().unwrap();
    let source = out.path().join("wrong.cpp");
    std::fs::write(
        &source,
        "#include \"kernel_operator.h\"\nextern \"C\" __global__ void k() { nonsense; }\n",
    )
    .unwrap();
    let text = format!(
        "{:#}",
        common::compiler()
            .compile(&source, NPU_ARCH_A2, out.path())
            .unwrap_err()
    );
    assert!(
        text.contains("wrong.cpp:2") && text.contains("nonsense"),
        "{text}"
    );
}

#[test]
fn kernels_of_a_macro_and_of_one_architecture_are_found() {
    let out = tempfile::tempdir().unwrap();
    let compile = |arch| {
        common::compiler()
            .compile(Path::new("tests/kernels/constants.cpp"), arch, out.path())
            .unwrap()
    };
    assert_eq!(compile(NPU_ARCH_A2).kernels, ["made"]);
    let object = compile(NPU_ARCH_950);
    assert_eq!(object.kernels, ["made", "made_for_950"]);
    let named = |name: &str| object.dependencies.iter().any(|p| p.ends_with(name));
    assert!(
        named("constants.cpp")
            && named("kernel_operator.h")
            && named("npusim/mte.h")
            && named("npusim/kernel.h"),
        "{:?}",
        object.dependencies
    );
}

/// One test for everything that reads the environment, since all tests of a program share it.
#[test]
fn a_build_script_gets_objects_for_each_target_and_a_file_that_embeds_them() {
    let out = tempfile::tempdir().unwrap();
    for name in [
        "ASCEND_HOME_PATH",
        "ASCEND_TOOLKIT_HOME",
        "DOCS_RS",
        "DEP_NPUSIM_ASCENDC",
        "DEP_NPUSHMEM_ASCENDC",
    ] {
        std::env::remove_var(name);
    }
    std::env::set_var("OUT_DIR", out.path());
    let kernels = || Kernels::new().source("tests/kernels/constants.cpp");
    let error = kernels().compile().unwrap_err().to_string();
    assert!(error.contains("Kernels::ascendc"), "{error}");

    std::env::set_var("DEP_NPUSHMEM_ASCENDC", common::ascendc());
    kernels().compile().unwrap();
    let text = std::fs::read_to_string(out.path().join("kernels.rs")).unwrap();
    assert!(
        text.contains("pub static CONSTANTS: ::npushmem::KernelObject"),
        "{text}"
    );
    for arch in SIM_ARCHS {
        let file = format!("constants.sim-{arch}.so");
        assert!(
            text.contains(&format!("sim: true, npu_arch: {arch}")) && text.contains(&file),
            "{text}"
        );
        assert_eq!(common::Module::load(&out.path().join(file)).arch(), arch);
    }

    std::env::set_var("DOCS_RS", "1");
    kernels().compile().unwrap();
    std::env::remove_var("DOCS_RS");
    let text = std::fs::read_to_string(out.path().join("kernels.rs")).unwrap();
    assert!(
        text.contains("pub static CONSTANTS") && !text.contains("include_bytes"),
        "{text}"
    );
}
