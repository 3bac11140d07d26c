//! Device memory, copies, reservations and physical memory: what works, and each documented rule with its code and its message.

mod common;

use std::ffi::c_void;

use common::*;
use npushmem_ffi::acl;

const MIB: usize = 1 << 20;
const HUGE: usize = 2 * MIB;
const GIB: usize = 1 << 30;
const INVALID: i32 = acl::ACL_ERROR_RT_PARAM_INVALID;

fn device_prop(device: u32) -> acl::aclrtPhysicalMemProp {
    acl::aclrtPhysicalMemProp {
        memAttr: acl::ACL_HBM_MEM_HUGE,
        location: acl::aclrtMemLocation {
            id: device,
            type_: acl::ACL_MEM_LOCATION_TYPE_DEVICE,
        },
        ..Default::default()
    }
}

fn reserve(size: usize) -> *mut c_void {
    let mut at = std::ptr::null_mut();
    // SAFETY: an out-parameter.
    ok(unsafe { (runtime().aclrtReserveMemAddress)(&mut at, size, 0, std::ptr::null_mut(), 0) });
    at
}

fn physical(device: u32, size: usize) -> acl::aclrtDrvMemHandle {
    let mut handle = std::ptr::null_mut();
    // SAFETY: an out-parameter, and a structure that lives during the call.
    ok(unsafe { (runtime().aclrtMallocPhysical)(&mut handle, size, &device_prop(device), 0) });
    handle
}

fn at(base: *mut c_void, offset: usize) -> *mut c_void {
    base.wrapping_byte_add(offset)
}

#[test]
fn copies_go_both_ways_and_check_kinds_and_ranges() {
    let acl = device(0);
    let there = malloc(4096) as *mut c_void;
    let out = [0x5au8; 4096];
    let mut back = [0u8; 4096];
    let (src, dst) = (
        out.as_ptr().cast::<c_void>(),
        back.as_mut_ptr().cast::<c_void>(),
    );
    // SAFETY: every range given is a live buffer of this test, or is refused before it is touched.
    unsafe {
        ok((acl.aclrtMemcpy)(
            there,
            4096,
            src,
            4096,
            acl::ACL_MEMCPY_HOST_TO_DEVICE,
        ));
        ok((acl.aclrtMemcpy)(
            dst,
            4096,
            there,
            4096,
            acl::ACL_MEMCPY_DEFAULT,
        ));
        assert_eq!(out, back);
        ok((acl.aclrtMemset)(there, 4096, 0x177, 100));
        ok((acl.aclrtMemcpy)(
            dst,
            4096,
            there,
            101,
            acl::ACL_MEMCPY_DEVICE_TO_HOST,
        ));
        assert_eq!((back[99], back[100]), (0x77, 0x5a));

        refused(
            (acl.aclrtMemcpy)(there, 4096, src, 4096, acl::ACL_MEMCPY_DEVICE_TO_HOST),
            INVALID,
            &["DEVICE_TO_HOST", "src", "is host memory"],
        );
        refused(
            (acl.aclrtMemcpy)(dst, 4096, src, 4096, acl::ACL_MEMCPY_HOST_TO_DEVICE),
            INVALID,
            &["dst", "device memory is wanted"],
        );
        refused(
            (acl.aclrtMemcpy)(there, 100, src, 101, acl::ACL_MEMCPY_HOST_TO_DEVICE),
            INVALID,
            &["count 101 is above destMax 100"],
        );
        refused(
            (acl.aclrtMemcpy)(at(there, 4090), 7, src, 7, acl::ACL_MEMCPY_HOST_TO_DEVICE),
            INVALID,
            &["leaves its memory", "by 1 bytes"],
        );
        refused(
            (acl.aclrtMemcpy)(there, 4096, src, 4096, 99),
            INVALID,
            &["kind 99"],
        );
        refused(
            (acl.aclrtMemcpy)(std::ptr::null_mut(), 8, src, 8, acl::ACL_MEMCPY_DEFAULT),
            INVALID,
            &["dst is NULL"],
        );
        refused(
            (acl.aclrtMemset)(there, 4097, 0, 4097),
            INVALID,
            &["leaves its memory"],
        );
    }
    free(there as u64);
    // SAFETY: as above.
    let code = unsafe { (acl.aclrtMemcpy)(there, 8, src, 8, acl::ACL_MEMCPY_HOST_TO_DEVICE) };
    refused(code, INVALID, &["nothing is allocated"]);
}

#[test]
fn freeing_twice_in_the_middle_or_with_the_wrong_call_is_refused() {
    let acl = device(0);
    let there = malloc(100) as *mut c_void;
    let mut pinned = std::ptr::null_mut();
    // SAFETY: pointers of this test.
    unsafe {
        ok((acl.aclrtMallocHost)(&mut pinned, 100));
        refused(
            (acl.aclrtFree)(at(there, 64)),
            INVALID,
            &["64 bytes into an allocation"],
        );
        refused(
            (acl.aclrtFreeHost)(there),
            INVALID,
            &["not memory of aclrtMallocHost"],
        );
        refused(
            (acl.aclrtFree)(pinned),
            INVALID,
            &["not memory of aclrtMalloc"],
        );
        ok((acl.aclrtFree)(there));
        refused((acl.aclrtFree)(there), INVALID, &["freed already"]);
        ok((acl.aclrtFreeHost)(pinned));
        let mut none = std::ptr::null_mut();
        refused(
            (acl.aclrtMalloc)(&mut none, 0, acl::ACL_MEM_MALLOC_HUGE_FIRST),
            acl::ACL_ERROR_INVALID_PARAM,
            &["size 0"],
        );
        refused(
            (acl.aclrtMalloc)(&mut none, 8, 77),
            acl::ACL_ERROR_RT_INVALID_MALLOC_TYPE,
            &["policy 0x4d"],
        );
    }
}

#[test]
fn memory_is_counted_and_its_end_is_an_error() {
    let acl = device(11);
    let usage = || {
        let (mut free, mut total) = (0, 0);
        // SAFETY: out-parameters.
        ok(unsafe { (acl.aclrtGetMemInfo)(acl::ACL_HBM_MEM, &mut free, &mut total) });
        (free, total)
    };
    let (free_before, total) = usage();
    assert_eq!(total, 4 * GIB);
    let there = malloc(3 * GIB);
    assert_eq!(free_before - usage().0, 3 * GIB);
    let mut more = std::ptr::null_mut();
    // SAFETY: an out-parameter.
    let code = unsafe { (acl.aclrtMalloc)(&mut more, 2 * GIB, acl::ACL_MEM_MALLOC_HUGE_FIRST) };
    refused(
        code,
        acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
        &["device 11", "asked 2147483648", "NPUSIM_HBM"],
    );
    // SAFETY: an out-parameter, and a structure that lives during the call.
    let code = unsafe { (acl.aclrtMallocPhysical)(&mut more, 2 * GIB, &device_prop(11), 0) };
    refused(code, acl::ACL_ERROR_RT_MEMORY_ALLOCATION, &["device 11"]);
    free(there);
    assert_eq!(usage().0, free_before);
}

#[test]
fn attributes_tell_device_host_and_unknown_memory_apart() {
    let acl = device(2);
    let there = malloc(3 * MIB);
    let mut pinned = std::ptr::null_mut();
    let local = 0u64;
    let attributes = |at: *const c_void| {
        let mut out = acl::aclrtPtrAttributes::default();
        // SAFETY: an out-parameter; the address is only looked up.
        ok(unsafe { (acl.aclrtPointerGetAttributes)(at, &mut out) });
        (out.location.type_, out.location.id, out.pageSize as usize)
    };
    // SAFETY: an out-parameter.
    ok(unsafe { (acl.aclrtMallocHost)(&mut pinned, 10) });
    assert_eq!(
        attributes((there + 5) as *const _),
        (acl::ACL_MEM_LOCATION_TYPE_DEVICE, 2, HUGE)
    );
    assert_eq!(
        attributes(pinned),
        (acl::ACL_MEM_LOCATION_TYPE_HOST, 0, 4096)
    );
    assert_eq!(
        attributes((&raw const local).cast()).0,
        acl::ACL_MEM_LOCATION_TYPE_UNREGISTERED
    );
    // SAFETY: memory of this test.
    ok(unsafe { (acl.aclrtFreeHost)(pinned) });
    free(there);
}

#[test]
fn registered_host_memory_is_known_until_it_is_unregistered() {
    let acl = device(2);
    let mut buffer = vec![0u8; 8192];
    let (at, mut device_at) = (buffer.as_mut_ptr().cast::<c_void>(), std::ptr::null_mut());
    // SAFETY: the buffer outlives its registration.
    unsafe {
        ok((acl.aclrtHostRegister)(
            at,
            8192,
            acl::ACL_HOST_REGISTER_MAPPED,
            &mut device_at,
        ));
        assert_eq!(device_at, at);
        refused(
            (acl.aclrtHostRegister)(at, 8192, acl::ACL_HOST_REGISTER_MAPPED, &mut device_at),
            INVALID,
            &["overlaps"],
        );
        ok((acl.aclrtHostUnregister)(at));
        refused(
            (acl.aclrtHostUnregister)(at),
            INVALID,
            &["was not registered"],
        );
    }
}

#[test]
fn physical_memory_is_mapped_used_and_given_back() {
    let acl = device(3);
    let (base, handle) = (reserve(4 * HUGE), physical(3, HUGE));
    let place = at(base, HUGE);
    // SAFETY: ranges of this test.
    unsafe {
        ok((acl.aclrtMapMem)(place, HUGE, 0, handle, 0));
        ok((acl.aclrtMemset)(place, HUGE, 3, HUGE));
        assert_eq!(place.cast::<u8>().add(HUGE - 1).read(), 3);
        refused(
            (acl.aclrtFreePhysical)(handle),
            INVALID,
            &["still mapped", "aclrtUnmapMem"],
        );
        refused(
            (acl.aclrtReleaseMemAddress)(base),
            INVALID,
            &["1 mapping(s) are left"],
        );
        ok((acl.aclrtUnmapMem)(place));
        refused(
            (acl.aclrtUnmapMem)(place),
            INVALID,
            &["not the beginning of a mapping"],
        );
        // The memory keeps its bytes, wherever it is mapped.
        ok((acl.aclrtMapMem)(base, HUGE, 0, handle, 0));
        assert_eq!(base.cast::<u8>().read(), 3);
        let mut access = acl::aclrtMemAccessDesc {
            flags: acl::ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
            location: acl::aclrtMemLocation {
                id: 3,
                type_: acl::ACL_MEM_LOCATION_TYPE_DEVICE,
            },
            ..Default::default()
        };
        ok((acl.aclrtMemSetAccess)(base, HUGE, &mut access, 1));
        refused(
            (acl.aclrtMemSetAccess)(base, MIB, &mut access, 1),
            INVALID,
            &["not one whole mapping"],
        );
        ok((acl.aclrtUnmapMem)(base));
        ok((acl.aclrtFreePhysical)(handle));
        refused(
            (acl.aclrtFreePhysical)(handle),
            acl::ACL_ERROR_RT_INVALID_HANDLE,
            &["no handle to physical memory"],
        );
        ok((acl.aclrtReleaseMemAddress)(base));
        refused(
            (acl.aclrtReleaseMemAddress)(base),
            INVALID,
            &["not the beginning of a reservation"],
        );
    }
}

#[test]
fn fresh_physical_memory_is_poisoned_at_its_ends() {
    let acl = device(3);
    let (base, handle) = (reserve(2 * HUGE), physical(3, 2 * HUGE));
    // SAFETY: ranges of this test.
    unsafe {
        ok((acl.aclrtMapMem)(base, 2 * HUGE, 0, handle, 0));
        assert_eq!(
            (
                base.cast::<u8>().read(),
                base.cast::<u8>().add(2 * HUGE - 1).read()
            ),
            (0xcd, 0xcd)
        );
        ok((acl.aclrtUnmapMem)(base));
        ok((acl.aclrtFreePhysical)(handle));
        ok((acl.aclrtReleaseMemAddress)(base));
    }
}

#[test]
fn reservations_refuse_what_the_documentation_excludes() {
    let acl = device(0);
    let mut out = std::ptr::null_mut();
    let null = std::ptr::null_mut;
    let wish = |address: u64| address as *mut c_void;
    const TIB: u64 = 1 << 40;
    // SAFETY: out-parameters; wished-for addresses are only mapped where nothing is.
    unsafe {
        refused(
            (acl.aclrtReserveMemAddress)(&mut out, 0, 0, null(), 0),
            INVALID,
            &["size 0"],
        );
        refused(
            (acl.aclrtReserveMemAddress)(&mut out, HUGE, 4096, null(), 0),
            INVALID,
            &["alignment 4096"],
        );
        refused(
            (acl.aclrtReserveMemAddress)(&mut out, HUGE, 0, null(), 1),
            INVALID,
            &["flags 0x1", "reserved"],
        );
        refused(
            (acl.aclrtReserveMemAddress)(&mut out, HUGE, 0, wish(8 * TIB), 0),
            INVALID,
            &["between 16 T and 24 T"],
        );
        refused(
            (acl.aclrtReserveMemAddress)(&mut out, GIB, 0, wish(17 * TIB + HUGE as u64), 0),
            INVALID,
            &["not aligned to 0x40000000"],
        );
        ok((acl.aclrtReserveMemAddress)(
            &mut out,
            GIB,
            0,
            wish(17 * TIB),
            0,
        ));
        assert_eq!(out as u64, 17 * TIB);
        let mut second = null();
        let code = (acl.aclrtReserveMemAddress)(&mut second, GIB, 0, wish(17 * TIB), 0);
        refused(
            code,
            acl::ACL_ERROR_RT_MEMORY_ALLOCATION,
            &["not free there"],
        );
        ok((acl.aclrtReleaseMemAddress)(out));
    }
}

#[test]
fn physical_memory_refuses_what_the_documentation_excludes() {
    let acl = device(0);
    let mut out = std::ptr::null_mut();
    let mut allocate =
        |size: usize, flags: u64, change: &dyn Fn(&mut acl::aclrtPhysicalMemProp)| {
            let mut prop = device_prop(0);
            change(&mut prop);
            // SAFETY: an out-parameter, and a structure that lives during the call.
            unsafe { (acl.aclrtMallocPhysical)(&mut out, size, &prop, flags) }
        };
    refused(
        allocate(MIB, 0, &|_| {}),
        INVALID,
        &["size 1048576", "granularity 2097152"],
    );
    refused(allocate(0, 0, &|_| {}), INVALID, &["size 0"]);
    refused(allocate(HUGE, 1, &|_| {}), INVALID, &["flags 0x1"]);
    refused(
        allocate(HUGE, 0, &|p| p.memAttr = acl::ACL_HBM_MEM_HUGE1G),
        INVALID,
        &["granularity 1073741824"],
    );
    refused(
        allocate(HUGE, 0, &|p| p.memAttr = acl::ACL_HBM_MEM),
        INVALID,
        &["memAttr 1"],
    );
    refused(
        allocate(HUGE, 0, &|p| p.handleType = acl::ACL_MEM_HANDLE_TYPE_POSIX),
        INVALID,
        &["handleType 2"],
    );
    refused(allocate(HUGE, 0, &|p| p.reserve = 1), INVALID, &["reserve"]);
    refused(
        allocate(HUGE, 0, &|p| p.location.id = 99),
        acl::ACL_ERROR_RT_INVALID_DEVICEID,
        &["location.id 99", "0 to 15"],
    );
    refused(
        allocate(HUGE, 0, &|p| {
            p.location.type_ = acl::ACL_MEM_LOCATION_TYPE_HOST
        }),
        INVALID,
        &["do not fit"],
    );
    refused(
        allocate(HUGE, 0, &|p| p.memAttr = acl::ACL_DDR_MEM_P2P_HUGE),
        INVALID,
        &["do not fit"],
    );

    let mut granularity = 0;
    let mut prop = device_prop(0);
    // SAFETY: out-parameters and structures that live during the calls.
    unsafe {
        ok((acl.aclrtMemGetAllocationGranularity)(
            &mut prop,
            acl::ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
            &mut granularity,
        ));
        assert_eq!(granularity, HUGE);
        prop.memAttr = acl::ACL_MEM_HUGE1G;
        ok((acl.aclrtMemGetAllocationGranularity)(
            &mut prop,
            acl::ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
            &mut granularity,
        ));
        assert_eq!(granularity, GIB);
        let code = (acl.aclrtMemGetAllocationGranularity)(
            &mut prop,
            acl::ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF,
            &mut granularity,
        );
        refused(code, INVALID, &["option 65535"]);
    }
}

#[test]
fn mapping_refuses_what_the_documentation_excludes() {
    let acl = device(0);
    let (base, mine, other) = (reserve(4 * HUGE), physical(0, HUGE), physical(1, HUGE));
    // SAFETY: ranges of this test, or refused before they are touched.
    unsafe {
        refused(
            (acl.aclrtMapMem)(base, MIB, 0, mine, 0),
            INVALID,
            &["size 1048576", "2097152 bytes and is mapped whole"],
        );
        refused(
            (acl.aclrtMapMem)(base, HUGE, 4096, mine, 0),
            INVALID,
            &["offset 4096"],
        );
        refused(
            (acl.aclrtMapMem)(base, HUGE, 0, mine, 1),
            INVALID,
            &["flags 0x1"],
        );
        refused(
            (acl.aclrtMapMem)(at(base, 4 * HUGE), HUGE, 0, mine, 0),
            INVALID,
            &["in no reservation"],
        );
        refused(
            (acl.aclrtMapMem)(at(base, 3 * HUGE + MIB), HUGE, 0, mine, 0),
            INVALID,
            &["leaves the reservation"],
        );
        refused(
            (acl.aclrtMapMem)(at(base, 4096), HUGE, 0, mine, 0),
            acl::ACL_ERROR_RT_ADDR_UNALIGNED,
            &["not aligned to a page"],
        );
        ok((acl.aclrtMapMem)(base, HUGE, 0, mine, 0));
        refused(
            (acl.aclrtMapMem)(base, HUGE, 0, mine, 0),
            INVALID,
            &["overlaps the mapping"],
        );
        refused(
            (acl.aclrtMapMem)(at(base, HUGE), HUGE, 0, other, 0),
            INVALID,
            &["device 0", "device 1", "must not be bound to two"],
        );
        ok((acl.aclrtUnmapMem)(base));
        // Memory of another device of this process is fine in a reservation of its own.
        ok((acl.aclrtMapMem)(base, HUGE, 0, other, 0));
        ok((acl.aclrtUnmapMem)(base));
        ok((acl.aclrtFreePhysical)(mine));
        ok((acl.aclrtFreePhysical)(other));
        ok((acl.aclrtReleaseMemAddress)(base));
    }
}

#[test]
fn copies_between_devices_with_reserved_memory_are_asynchronous_only() {
    let acl = device(0);
    let stream = stream();
    let (base, handle, elsewhere) = (reserve(HUGE), physical(1, HUGE), malloc(HUGE));
    let kind = acl::ACL_MEMCPY_DEVICE_TO_DEVICE;
    // SAFETY: ranges of this test.
    unsafe {
        ok((acl.aclrtMapMem)(base, HUGE, 0, handle, 0));
        ok((acl.aclrtMemset)(base, HUGE, 9, HUGE));
        refused(
            (acl.aclrtMemcpy)(elsewhere as *mut c_void, HUGE, base, HUGE, kind),
            acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            &["device 1 and device 0", "aclrtMemcpyAsync"],
        );
        ok((acl.aclrtMemcpyAsync)(
            elsewhere as *mut c_void,
            HUGE,
            base,
            HUGE,
            kind,
            stream,
        ));
        ok(synchronize(stream));
        assert_eq!(words(elsewhere, 1), [0x0909_0909_0909_0909]);
        ok((acl.aclrtUnmapMem)(base));
        ok((acl.aclrtFreePhysical)(handle));
        ok((acl.aclrtReleaseMemAddress)(base));
        ok((acl.aclrtDestroyStream)(stream));
    }
    free(elsewhere);
}
