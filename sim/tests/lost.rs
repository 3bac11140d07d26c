//! A kernel that cannot be stopped: its stream and its cores are lost, and everything else goes on. A program of its own, because the cores stay lost.

mod common;

use common::*;
use npushmem_ffi::acl;

#[test]
fn a_kernel_that_cannot_be_stopped_takes_its_stream_and_its_cores_only() {
    let acl = device(0);
    let (stream, other, out) = (stream(), stream(), malloc(8));
    let mut attributes = [acl::aclrtLaunchKernelAttr {
        id: acl::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US,
        ..Default::default()
    }];
    attributes[0].value.timeoutUs = acl::aclrtTimeoutUs {
        timeoutLow: 50_000,
        timeoutHigh: 0,
    };
    ok(launch_with(
        function("asleep"),
        2,
        stream,
        Some(&mut attributes),
        &[],
    ));
    let wanted = ["kernel asleep with 2 block(s)", "limit of 50ms"];
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
        &wanted,
    );
    refused(
        launch("empty", 1, stream, &[]),
        acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
        &["limit of 50ms"],
    );
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
        &["limit of 50ms"],
    );
    assert!(npusim::hooks::diagnostics()
        .iter()
        .any(|line| line.contains("kernel asleep: 2 block(s) did not leave")));

    // Two cores are left.
    zero(out, 8);
    ok(launch("everybody", 2, other, &out.to_ne_bytes()));
    ok(synchronize(other));
    let mut batch = [acl::aclrtLaunchKernelAttr {
        id: acl::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE,
        ..Default::default()
    }];
    batch[0].value.schemMode = 1;
    ok(launch_with(
        function("everybody"),
        CORES,
        other,
        Some(&mut batch),
        &out.to_ne_bytes(),
    ));
    refused(
        synchronize(other),
        acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
        &["held by kernels that never ended"],
    );

    // Destroying the lost stream does not hang, nor does the end of this process.
    // SAFETY: streams of this test.
    unsafe {
        ok((acl.aclrtDestroyStreamForce)(stream));
        ok((acl.aclrtDestroyStream)(other));
    }
}
