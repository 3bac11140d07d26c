//! Kernels written in AscendC and compiled by npushmem-build, launched through ACL: the two sides of npusim.h together.

mod common;

use std::ffi::{c_void, CString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use common::*;
use npushmem_ffi::acl;

/// A kernel of ascendc/sum.cpp.
fn kernel(name: &str) -> acl::aclrtFuncHandle {
    static LOADED: OnceLock<Kernels> = OnceLock::new();
    let module = LOADED.get_or_init(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let out = tempfile::tempdir().expect("a scratch folder");
        let compiler = npushmem_build::sim::Compiler::find(root.join("ascendc")).expect("clang");
        let object = compiler
            .root(root)
            .compile(Path::new("tests/ascendc/sum.cpp"), 2201, out.path())
            .expect("compiles");
        let bytes = std::fs::read(object.path).expect("the object");
        let mut handle = std::ptr::null_mut();
        // SAFETY: the bytes live during the call.
        ok(unsafe {
            (runtime().aclrtBinaryLoadFromData)(
                bytes.as_ptr().cast(),
                bytes.len(),
                std::ptr::null(),
                &mut handle,
            )
        });
        Kernels(handle)
    });
    let (name, mut function) = (CString::new(name).expect("no NUL"), std::ptr::null_mut());
    // SAFETY: a good handle and name.
    ok(unsafe { (runtime().aclrtBinaryGetFunction)(module.0, name.as_ptr(), &mut function) });
    function
}

fn to_device(values: &[f32]) -> u64 {
    let bytes = size_of_val(values);
    let at = malloc(bytes);
    // SAFETY: `at` has so many bytes.
    ok(unsafe {
        (runtime().aclrtMemcpy)(
            at as *mut c_void,
            bytes,
            values.as_ptr().cast(),
            bytes,
            acl::ACL_MEMCPY_HOST_TO_DEVICE,
        )
    });
    at
}

#[test]
fn a_vector_kernel_adds_two_arrays_over_all_cores_and_its_work_is_counted() {
    device(0);
    let stream = stream();
    let n = 256u32;
    let a = to_device(&(0..n).map(|i| i as f32).collect::<Vec<_>>());
    let b = to_device(&vec![0.5; n as usize]);
    let out = to_device(&vec![0.0; n as usize]);
    let args = [a.to_ne_bytes(), b.to_ne_bytes(), out.to_ne_bytes()].concat();
    let args = [args, n.to_ne_bytes().to_vec()].concat();
    ok(launch_with(kernel("add"), CORES, stream, None, &args));
    ok(synchronize(stream));
    let sums: Vec<f32> = words(out, n as usize / 2)
        .iter()
        .flat_map(|word| [*word as u32, (*word >> 32) as u32])
        .map(f32::from_bits)
        .collect();
    assert_eq!(sums, (0..n).map(|i| i as f32 + 0.5).collect::<Vec<_>>());
    let counters = npusim::hooks::kernel_counters()
        .into_iter()
        .find(|c| c.kernel == "add")
        .expect("it ran");
    let cores = u64::from(CORES);
    assert_eq!((counters.launches, counters.blocks), (1, cores));
    assert_eq!(
        (counters.mte2_copies, counters.mte2_bytes),
        (2 * cores, 2 * 4 * u64::from(n))
    );
    assert_eq!(
        (counters.mte3_copies, counters.mte3_bytes),
        (cores, 4 * u64::from(n))
    );
    assert_eq!(
        (
            counters.vector_ops,
            counters.flags_set,
            counters.flags_waited
        ),
        (cores, 2 * cores, 2 * cores)
    );
}

#[test]
fn blocks_meet_in_sync_all() {
    device(0);
    let (stream, at) = (stream(), malloc(64));
    zero(at, 64);
    ok(launch_with(
        kernel("meeting"),
        CORES,
        stream,
        None,
        &at.to_ne_bytes(),
    ));
    ok(synchronize(stream));
    assert_eq!(
        words(at, CORES as usize),
        vec![u64::from(CORES); CORES as usize]
    );
}

#[test]
fn a_wild_store_a_trap_and_a_broken_rule_end_the_kernel_with_the_place() {
    device(1);
    let stream = stream();
    ok(launch_with(
        kernel("wild"),
        1,
        stream,
        None,
        &0x7000_0000_0000u64.to_ne_bytes(),
    ));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["kernel wild, block 0 of 1", "wild address 0x700000000000"],
    );
    ok(launch_with(kernel("trapped"), 1, stream, None, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION,
        &["kernel trapped"],
    );
    ok(launch_with(kernel("unpaired"), 2, stream, None, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["kernel unpaired", "tests/ascendc/sum.cpp:"],
    );
}

#[test]
fn a_kernel_that_never_ends_is_stopped_whether_it_polls_or_not() {
    let acl = device(2);
    let at = malloc(8);
    zero(at, 8);
    for (name, args) in [
        ("waits_for_ever", at.to_ne_bytes().to_vec()),
        ("polls_nothing", vec![]),
    ] {
        let stream = stream();
        ok(launch_with(kernel(name), 2, stream, None, &args));
        // SAFETY: a stream of this test.
        let code = unsafe { (acl.aclrtSynchronizeStreamWithTimeout)(stream, 100) };
        refused(
            code,
            acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
            &[&format!("kernel {name} with 2 block(s)")],
        );
        // SAFETY: as above.
        ok(unsafe { (acl.aclrtDestroyStreamForce)(stream) });
    }
    assert!(
        npusim::hooks::diagnostics()
            .iter()
            .all(|line| !line.contains("did not leave")),
        "both left"
    );
}
