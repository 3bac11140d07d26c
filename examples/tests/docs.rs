//! The code in the documentation compiles, because it is the text of files that are compiled: of the template, whose kernel build.rs compiles, whose
//! build script and program `make test-package` builds; and of this file.

use npushmem_examples as kernels;

/// The host program of README.md.
#[rustfmt::skip]
fn readme() -> Result<(), npushmem::Error> {
    let world = npushmem::World::init()?;                    // who am I: npushmem run, torchrun, Slurm, Open MPI, ...
    let dst = world.alloc::<f32>(1024)?;                     // symmetric: the same calls in the same order on every PE
    let src = world.alloc::<f32>(1024)?;
    world.enable_device(1)?;                                 // queue pairs and doorbells for one comm core
    let module = world.load(&kernels::SHIFT)?;               // compiled by npushmem-build in build.rs
    let shift = module.function("shift")?;
    let args = npushmem::Args::new().ctx().ptr(&dst).ptr(&src).u64(1024);
    world.launch(&shift, 1, &args)?;
    world.synchronize()?;                                    // bounded; says which PE, operation and cause failed
    Ok(())
}

const TEMPLATE: [&str; 4] = [
    include_str!("../template/Cargo.toml"),
    include_str!("../template/build.rs"),
    include_str!("../template/kernels/shift.cpp"),
    include_str!("../template/src/main.rs"),
];

/// The fenced blocks of a text: language and content.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_host_program_of_the_readme_is_compiled_and_runs_on_one_pe() {
    let blocks = blocks(include_str!("../../README.md"));
    let (_, program) = blocks
        .iter()
        .find(|(language, _)| language.starts_with("rust"))
        .expect("README.md has a host program");
    let indented = program
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect::<String>();
    assert!(
        include_str!("docs.rs").contains(&indented),
        "bring readme() in this file up to date with README.md:\n{program}"
    );
    readme().expect("the program of README.md runs");
}

#[test]
fn the_kernel_of_the_readme_and_of_the_device_header_is_the_templates() {
    let code = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = |text: &str| {
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        code(&lines.collect::<Vec<_>>().join("\n"))
    };
    let kernel = TEMPLATE[2];
    assert!(blocks(include_str!("../../README.md"))
        .iter()
        .any(|(language, block)| *language == "cpp" && code(block) == code(kernel)));
    let header = include_str!("../../device/shmem.h").replace("\n *", "\n");
    assert!(
        code(&header).contains(&bare(kernel)),
        "device/shmem.h shows another kernel than examples/template"
    );
}

#[test]
fn the_code_of_the_page_on_writing_kernels_is_the_templates() {
    let mut seen = 0;
    for (language, block) in blocks(include_str!("../../docs/writing-kernels.md")) {
        if language == "sh" {
            continue;
        }
        assert!(
            TEMPLATE.iter().any(|file| file.contains(block.trim_end())),
            "docs/writing-kernels.md has {language} that is not in examples/template:\n{block}"
        );
        seen += 1;
    }
    assert_eq!(seen, TEMPLATE.len());
}
