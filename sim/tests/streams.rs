//! Devices, contexts, streams and events.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::*;
use npushmem_ffi::acl;

const INVALID: i32 = acl::ACL_ERROR_RT_PARAM_INVALID;

unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the tests pass a counter that lives until they have synchronised.
    unsafe { &*counter.cast::<AtomicU64>() }.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn slow(counter: *mut c_void) {
    std::thread::sleep(Duration::from_millis(50));
    // SAFETY: as for `count`.
    unsafe { count(counter) };
}

/// Counts, and returns when the test has raised the counter by [`RELEASE`].
unsafe extern "C" fn held(counter: *mut c_void) {
    // SAFETY: as for `count`.
    unsafe { count(counter) };
    // SAFETY: as for `count`.
    let counter = unsafe { &*counter.cast::<AtomicU64>() };
    while counter.load(Ordering::SeqCst) < RELEASE {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// More than any test counts.
const RELEASE: u64 = 1 << 32;

fn destroy(stream: acl::aclrtStream) {
    // SAFETY: a stream of this test.
    ok(unsafe { (runtime().aclrtDestroyStream)(stream) });
}

#[test]
fn a_thread_without_a_device_is_told_to_set_one() {
    let acl = runtime();
    std::thread::spawn(move || {
        let (mut stream, mut id) = (std::ptr::null_mut(), 0);
        // SAFETY: out-parameters.
        unsafe {
            refused(
                (acl.aclrtCreateStream)(&mut stream),
                acl::ACL_ERROR_RT_CONTEXT_NULL,
                &["aclrtSetDevice"],
            );
            refused(
                (acl.aclrtGetDevice)(&mut id),
                acl::ACL_ERROR_RT_CONTEXT_NULL,
                &["this thread"],
            );
            refused(
                (acl.aclrtSetDevice)(16),
                acl::ACL_ERROR_RT_INVALID_DEVICEID,
                &["device 16", "0 to 15"],
            );
            refused(
                (acl.aclrtSetDevice)(-1),
                acl::ACL_ERROR_RT_INVALID_DEVICEID,
                &["device -1"],
            );
            ok((acl.aclrtSetDevice)(3));
            ok((acl.aclrtGetDevice)(&mut id));
            assert_eq!(id, 3);
            // Each thread has its own device, and its own text.
            assert!(std::thread::spawn(|| recent().is_empty())
                .join()
                .expect("no panic"));
        }
    })
    .join()
    .expect("no failure");
}

#[test]
fn a_device_tells_what_it_is() {
    let acl = device(0);
    let info = |attribute| {
        let mut value = 0;
        // SAFETY: an out-parameter.
        ok(unsafe { (acl.aclrtGetDeviceInfo)(5, attribute, &mut value) });
        value
    };
    assert_eq!(info(acl::ACL_DEV_ATTR_VECTOR_CORE_NUM), i64::from(CORES));
    assert_eq!(info(acl::ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE), 196_608);
    assert_eq!(info(acl::ACL_DEV_ATTR_NPU_ARCH), 2201);
    assert_eq!(info(acl::ACL_DEV_ATTR_PHY_CHIP_ID), 5);
    let (mut count, mut mode, mut can, mut topology) = (0, acl::ACL_DEVICE, 0, 0);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: out-parameters.
    unsafe {
        ok((acl.aclrtGetDeviceCount)(&mut count));
        ok((acl.aclrtGetRunMode)(&mut mode));
        ok((acl.aclrtDeviceCanAccessPeer)(&mut can, 0, 1));
        ok((acl.aclrtGetDevicesTopo)(0, 1, &mut topology));
        ok((acl.aclrtGetVersion)(&mut major, &mut minor, &mut patch));
        assert_eq!(
            std::ffi::CStr::from_ptr((acl.aclrtGetSocName)()).to_str(),
            Ok("Ascend910B1")
        );
        refused(
            (acl.aclInit)(std::ptr::null()),
            acl::ACL_ERROR_REPEAT_INITIALIZE,
            &["already"],
        );
    }
    assert_eq!(
        (count, mode, can, topology, (major, minor)),
        (
            16,
            acl::ACL_HOST,
            1,
            acl::ACL_RT_DEVS_TOPOLOGY_HCCS,
            (1, 17)
        )
    );
}

#[test]
fn contexts_are_switched_and_end_with_their_streams() {
    let acl = device(4);
    let (mut primary, mut context, mut stream, mut status) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        0,
    );
    let mut id = 0;
    // SAFETY: out-parameters and handles of this test.
    unsafe {
        ok((acl.aclrtGetCurrentContext)(&mut primary));
        ok((acl.aclrtCreateContext)(&mut context, 5));
        ok((acl.aclrtGetDevice)(&mut id));
        assert_eq!(id, 5);
        ok((acl.aclrtCreateStream)(&mut stream));
        ok((acl.aclrtSetCurrentContext)(primary));
        ok((acl.aclrtGetDevice)(&mut id));
        assert_eq!(id, 4);
        refused(
            (acl.aclrtDestroyContext)(primary),
            INVALID,
            &["aclrtResetDevice"],
        );
        ok((acl.aclrtDestroyContext)(context));
        refused(
            (acl.aclrtStreamQuery)(stream, &mut status),
            acl::ACL_ERROR_RT_INVALID_HANDLE,
            &["no stream"],
        );
        refused(
            (acl.aclrtSetCurrentContext)(context),
            acl::ACL_ERROR_RT_INVALID_HANDLE,
            &["no context"],
        );
    }
}

#[test]
fn tasks_of_a_stream_run_in_order_and_the_default_stream_is_null() {
    // A device of its own: aclrtSynchronizeDevice returns errors of every stream there.
    let acl = device(14);
    let counter = AtomicU64::new(0);
    let argument = (&raw const counter).cast_mut().cast::<c_void>();
    let null = std::ptr::null_mut();
    // SAFETY: the counter outlives the synchronisations.
    unsafe {
        for _ in 0..100 {
            ok((acl.aclrtLaunchHostFunc)(null, Some(count), argument));
        }
        ok((acl.aclrtSynchronizeStream)(null));
        assert_eq!(counter.load(Ordering::SeqCst), 100);
        let stream = stream();
        ok((acl.aclrtLaunchHostFunc)(stream, Some(held), argument));
        while counter.load(Ordering::SeqCst) < 101 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut status = 0;
        ok((acl.aclrtStreamQuery)(stream, &mut status));
        assert_eq!(status, acl::ACL_STREAM_STATUS_NOT_READY);
        refused(
            (acl.aclrtSynchronizeStreamWithTimeout)(stream, 1),
            acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
            &["1 task(s) left", "a call of a host function"],
        );
        refused(
            (acl.aclrtSynchronizeStreamWithTimeout)(stream, -2),
            INVALID,
            &["timeout -2"],
        );
        counter.fetch_add(RELEASE, Ordering::SeqCst);
        ok((acl.aclrtSynchronizeDevice)());
        assert_eq!(counter.load(Ordering::SeqCst), RELEASE + 101);
        ok((acl.aclrtStreamQuery)(stream, &mut status));
        assert_eq!(status, acl::ACL_STREAM_STATUS_COMPLETE);
        destroy(stream);
        refused(
            (acl.aclrtDestroyStream)(stream),
            acl::ACL_ERROR_RT_INVALID_HANDLE,
            &["no stream"],
        );
        refused(
            (acl.aclrtLaunchHostFunc)(null, None, argument),
            INVALID,
            &["fn is NULL"],
        );
    }
}

#[test]
fn an_event_orders_two_streams_and_takes_the_time() {
    let acl = device(0);
    let (first, second) = (stream(), stream());
    let counter = AtomicU64::new(0);
    let argument = (&raw const counter).cast_mut().cast::<c_void>();
    let (mut begin, mut end, mut untimed) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    let (mut ms, mut status) = (0f32, 0);
    // SAFETY: out-parameters and handles of this test; the counter outlives the synchronisations.
    unsafe {
        ok((acl.aclrtCreateEvent)(&mut begin));
        ok((acl.aclrtCreateEventExWithFlag)(
            &mut end,
            acl::ACL_EVENT_SYNC | acl::ACL_EVENT_TIME_LINE,
        ));
        ok((acl.aclrtCreateEventExWithFlag)(
            &mut untimed,
            acl::ACL_EVENT_SYNC,
        ));
        refused(
            (acl.aclrtCreateEventExWithFlag)(&mut untimed, acl::ACL_EVENT_IPC),
            acl::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            &["0x40"],
        );
        refused(
            (acl.aclrtStreamWaitEvent)(second, end),
            INVALID,
            &["never recorded"],
        );
        ok((acl.aclrtQueryEventStatus)(end, &mut status));
        assert_eq!(status, acl::ACL_EVENT_RECORDED_STATUS_NOT_READY);
        refused(
            (acl.aclrtEventElapsedTime)(&mut ms, begin, end),
            INVALID,
            &["was not recorded"],
        );

        ok((acl.aclrtRecordEvent)(begin, first));
        ok((acl.aclrtLaunchHostFunc)(first, Some(slow), argument));
        ok((acl.aclrtRecordEvent)(end, first));
        ok((acl.aclrtStreamWaitEvent)(second, end));
        ok((acl.aclrtLaunchHostFunc)(second, Some(count), argument));
        ok((acl.aclrtRecordEvent)(untimed, second));
        ok((acl.aclrtSynchronizeEvent)(untimed));
        assert_eq!(counter.load(Ordering::SeqCst), 2);
        ok((acl.aclrtQueryEventStatus)(end, &mut status));
        assert_eq!(status, acl::ACL_EVENT_RECORDED_STATUS_COMPLETE);
        ok((acl.aclrtEventElapsedTime)(&mut ms, begin, end));
        assert!(ms >= 50.0, "{ms} ms");
        refused(
            (acl.aclrtEventElapsedTime)(&mut ms, begin, untimed),
            INVALID,
            &["ACL_EVENT_TIME_LINE"],
        );
        for event in [begin, end, untimed] {
            ok((acl.aclrtDestroyEvent)(event));
        }
        refused(
            (acl.aclrtDestroyEvent)(end),
            acl::ACL_ERROR_RT_INVALID_HANDLE,
            &["no event"],
        );
    }
    destroy(first);
    destroy(second);
}

#[test]
fn a_stream_waits_for_a_word_that_another_one_writes() {
    let acl = device(0);
    let (first, second, word) = (stream(), stream(), malloc(16));
    let at = |offset: u64| (word + offset) as *mut c_void;
    zero(word, 16);
    // SAFETY: device memory of this test.
    unsafe {
        ok((acl.aclrtValueWait)(
            at(0),
            5,
            acl::ACL_STREAM_WAIT_VALUE_GEQ,
            second,
        ));
        ok((acl.aclrtValueWait)(
            at(0),
            2,
            acl::ACL_STREAM_WAIT_VALUE_AND,
            second,
        ));
        ok((acl.aclrtValueWrite)(at(8), 1, 0, second));
        let code = (acl.aclrtSynchronizeStreamWithTimeout)(second, 20);
        refused(
            code,
            acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
            &["3 task(s) left", "a wait for the word at"],
        );
        ok((acl.aclrtValueWrite)(at(0), 6, 0, first));
        ok((acl.aclrtSynchronizeStream)(first));
        ok(synchronize(second));
        assert_eq!(words(word, 2), [6, 1]);

        refused(
            (acl.aclrtValueWrite)(at(4), 1, 0, first),
            acl::ACL_ERROR_RT_ADDR_UNALIGNED,
            &["not aligned to 8"],
        );
        refused(
            (acl.aclrtValueWrite)(at(0), 1, 1, first),
            INVALID,
            &["flag 0x1"],
        );
        refused(
            (acl.aclrtValueWait)(at(0), 1, 4, first),
            INVALID,
            &["flag 4"],
        );
        let mut local = 0u64;
        refused(
            (acl.aclrtValueWait)((&raw mut local).cast(), 1, 0, first),
            INVALID,
            &["no device memory"],
        );

        // A wait that never ends does not keep its stream from being destroyed.
        ok((acl.aclrtValueWait)(
            at(0),
            99,
            acl::ACL_STREAM_WAIT_VALUE_EQ,
            second,
        ));
        ok((acl.aclrtDestroyStreamForce)(second));
    }
    destroy(first);
    free(word);
}

#[test]
fn a_failed_task_is_reported_once_and_a_stream_set_to_stop_drops_the_rest() {
    let acl = device(0);
    let (stream, gone) = (stream(), malloc(64));
    let counter = AtomicU64::new(0);
    let argument = (&raw const counter).cast_mut().cast::<c_void>();
    let mut hold = AtomicU64::new(0);
    let set = acl
        .optional
        .aclrtSetStreamAttribute
        .expect("the emulator has it");
    // SAFETY: out-parameters and handles of this test; the counters outlive the synchronisations.
    unsafe {
        // The memory goes while the copy waits behind a slow task.
        ok((acl.aclrtLaunchHostFunc)(
            stream,
            Some(slow),
            (&raw mut hold).cast(),
        ));
        ok((acl.aclrtMemsetAsync)(
            gone as *mut c_void,
            64,
            0,
            64,
            stream,
        ));
        ok((acl.aclrtLaunchHostFunc)(stream, Some(count), argument));
        free(gone);
        refused(
            synchronize(stream),
            acl::ACL_ERROR_RT_SYS_DMA,
            &["when the memset ran", "nothing is allocated"],
        );
        ok(synchronize(stream));
        assert_eq!(counter.load(Ordering::SeqCst), 1, "later tasks go on");

        let mut value = acl::aclrtStreamAttrValue {
            failureMode: u64::from(acl::ACL_STOP_ON_FAILURE),
        };
        ok(set(stream, acl::ACL_STREAM_ATTR_FAILURE_MODE, &mut value));
        let gone = malloc(64);
        ok((acl.aclrtLaunchHostFunc)(
            stream,
            Some(slow),
            (&raw mut hold).cast(),
        ));
        ok((acl.aclrtMemsetAsync)(
            gone as *mut c_void,
            64,
            0,
            64,
            stream,
        ));
        ok((acl.aclrtLaunchHostFunc)(stream, Some(count), argument));
        free(gone);
        for _ in 0..2 {
            refused(
                synchronize(stream),
                acl::ACL_ERROR_RT_SYS_DMA,
                &["when the memset ran"],
            );
        }
        refused(
            (acl.aclrtLaunchHostFunc)(stream, Some(count), argument),
            acl::ACL_ERROR_RT_SYS_DMA,
            &["memset"],
        );
        assert_eq!(counter.load(Ordering::SeqCst), 1, "later tasks are dropped");
    }
    destroy(stream);
}

#[test]
fn peers_are_enabled_and_disabled_as_documented() {
    let acl = device(12);
    // SAFETY: no pointers.
    unsafe {
        refused(
            (acl.aclrtDeviceEnablePeerAccess)(12, 0),
            INVALID,
            &["current device"],
        );
        refused(
            (acl.aclrtDeviceEnablePeerAccess)(13, 1),
            INVALID,
            &["flags 0x1"],
        );
        refused(
            (acl.aclrtDeviceDisablePeerAccess)(13),
            INVALID,
            &["not enabled"],
        );
        ok((acl.aclrtDeviceEnablePeerAccess)(13, 0));
        ok((acl.aclrtDeviceDisablePeerAccess)(13));
    }
}
