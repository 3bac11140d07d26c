//! What differs when the emulated SoC is a 950. A program of its own, because a process has one SoC.

mod common;

use std::ffi::{c_void, CStr};

use common::*;
use npushmem_ffi::acl;

#[test]
fn a_950_has_its_own_sizes_counter_and_rules() {
    std::env::set_var("NPUSIM_SOC", "Ascend950PR_9599");
    std::env::set_var("NPUSIM_CHAOS", "12345");
    let acl = device(0);
    let (stream, out) = (stream(), malloc(64));
    let bytes = object(3510);
    let (mut module, mut older, mut ub, mut clock) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    let a2 = object(2201);
    // SAFETY: buffers and handles of this test.
    unsafe {
        assert_eq!(
            CStr::from_ptr((acl.aclrtGetSocName)()).to_str(),
            Ok("Ascend950PR_9599")
        );
        let code = (acl.aclrtBinaryLoadFromData)(
            a2.as_ptr().cast(),
            a2.len(),
            std::ptr::null(),
            &mut older,
        );
        refused(
            code,
            acl::ACL_ERROR_RT_SOC_VERSION,
            &["architecture 2201", "Ascend950PR_9599 has 3510"],
        );
        ok((acl.aclrtBinaryLoadFromData)(
            bytes.as_ptr().cast(),
            bytes.len(),
            std::ptr::null(),
            &mut module,
        ));
        ok((acl.aclrtBinaryGetFunction)(
            module,
            c"ub".as_ptr(),
            &mut ub,
        ));
        ok((acl.aclrtBinaryGetFunction)(
            module,
            c"clock".as_ptr(),
            &mut clock,
        ));
    }
    ok(launch_with(ub, 1, stream, None, &out.to_ne_bytes()));
    ok(synchronize(stream));
    assert_eq!(words(out, 2), [253_952, 0]);

    // A tick is a nanosecond, and every block of every launch has a seed of its own.
    let mut seen = Vec::new();
    for _ in 0..2 {
        ok(launch_with(clock, 1, stream, None, &out.to_ne_bytes()));
        ok(synchronize(stream));
        seen.push(words(out, 2));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(seen[1][0] - seen[0][0] >= 5_000_000);
    assert!(seen[0][1] != 0 && seen[0][1] != seen[1][1]);

    let prop = acl::aclrtPhysicalMemProp {
        memAttr: acl::ACL_HBM_MEM_HUGE1G,
        location: acl::aclrtMemLocation {
            id: 0,
            type_: acl::ACL_MEM_LOCATION_TYPE_DEVICE,
        },
        ..Default::default()
    };
    let mut place = std::ptr::null_mut::<c_void>();
    // SAFETY: out-parameters; refused before anything is mapped.
    unsafe {
        refused(
            (acl.aclrtMallocPhysical)(&mut place, 1 << 30, &prop, 0),
            acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            &["A2 and A3 only"],
        );
        let wish = (17u64 << 40) as *mut c_void;
        let code = (acl.aclrtReserveMemAddress)(&mut place, 1 << 21, 0, wish, 0);
        refused(
            code,
            acl::ACL_ERROR_RT_PARAM_INVALID,
            &["only NULL is accepted"],
        );
        refused(
            (acl.aclrtGetHardwareSyncAddr)(&mut place),
            acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            &["A2 and A3 only"],
        );
        ok((acl.aclrtDestroyStream)(stream));
        // The end of the runtime, and what comes after it.
        ok((acl.aclrtBinaryUnLoad)(module));
        ok((acl.aclFinalize)());
        refused(
            (acl.aclFinalize)(),
            acl::ACL_ERROR_REPEAT_FINALIZE,
            &["not initialised"],
        );
        refused(
            (acl.aclrtSetDevice)(0),
            acl::ACL_ERROR_UNINITIALIZE,
            &["aclInit"],
        );
        ok((acl.aclInit)(std::ptr::null()));
        ok((acl.aclrtSetDevice)(0));
        ok((acl.aclrtResetDevice)(0));
        refused(
            (acl.aclrtResetDevice)(0),
            acl::ACL_ERROR_RT_INVALID_DEVICEID,
            &["was not set"],
        );
    }
}
