//! Kernels on the emulated NPU: loading, arguments, launches, and how they fail.

mod common;

use std::ffi::c_void;
use std::time::Instant;

use common::*;
use npushmem_ffi::acl;

fn attribute(
    id: acl::aclrtLaunchKernelAttrId,
    set: impl FnOnce(&mut acl::aclrtLaunchKernelAttrValue),
) -> acl::aclrtLaunchKernelAttr {
    let mut attribute = acl::aclrtLaunchKernelAttr {
        id,
        ..Default::default()
    };
    set(&mut attribute.value);
    attribute
}

fn pointer(at: u64) -> [u8; 8] {
    at.to_ne_bytes()
}

fn destroy(stream: acl::aclrtStream) {
    // SAFETY: a stream of this test.
    ok(unsafe { (runtime().aclrtDestroyStreamForce)(stream) });
}

#[test]
fn every_block_of_a_launch_gets_its_packed_arguments() {
    device(0);
    let (stream, out) = (stream(), malloc(64 * 8));
    let mut args = Vec::new();
    args.extend(pointer(out));
    args.extend(5u32.to_ne_bytes());
    args.extend([0; 4]);
    args.extend(1000u64.to_ne_bytes());
    // More blocks than cores: the rest start as cores become free.
    ok(launch("fill", 64, stream, &args));
    ok(synchronize(stream));
    assert_eq!(
        words(out, 64),
        (0..64).map(|i| 1005 + i).collect::<Vec<u64>>()
    );
    free(out);
    destroy(stream);
}

#[test]
fn arguments_appended_one_by_one_are_packed_with_natural_alignment() {
    let acl = device(0);
    let (stream, out) = (stream(), malloc(8));
    let function = function("fill");
    let (mut at, mut add, mut value) = (out, 7u32, 30u64);
    let mut args = std::ptr::null_mut();
    // SAFETY: the values live during the calls.
    unsafe {
        ok((acl.aclrtKernelArgsInit)(function, &mut args));
        ok((acl.aclrtKernelArgsAppend)(
            args,
            (&raw mut at).cast(),
            8,
            std::ptr::null_mut(),
        ));
        refused(
            (acl.aclrtKernelArgsAppend)(args, (&raw mut value).cast(), 8, std::ptr::null_mut()),
            acl::ACL_ERROR_RT_PARAM_INVALID,
            &["parameter 1 of kernel fill has 4 bytes", "8 are passed"],
        );
        ok((acl.aclrtKernelArgsAppend)(
            args,
            (&raw mut add).cast(),
            4,
            std::ptr::null_mut(),
        ));
        refused(
            (acl.aclrtKernelArgsFinalize)(args),
            acl::ACL_ERROR_RT_PARAM_INVALID,
            &["has 3 parameter(s), and 2 were appended"],
        );
        ok((acl.aclrtKernelArgsAppend)(
            args,
            (&raw mut value).cast(),
            8,
            std::ptr::null_mut(),
        ));
        refused(
            (acl.aclrtKernelArgsAppend)(args, (&raw mut value).cast(), 8, std::ptr::null_mut()),
            acl::ACL_ERROR_RT_PARAM_INVALID,
            &["one more"],
        );
        ok((acl.aclrtKernelArgsFinalize)(args));
        ok((acl.aclrtLaunchKernelWithConfig)(
            function,
            1,
            stream,
            std::ptr::null_mut(),
            args,
            std::ptr::null_mut(),
        ));
    }
    ok(synchronize(stream));
    assert_eq!(words(out, 1), [37]);
    free(out);
    destroy(stream);
}

#[test]
fn an_argument_block_of_the_wrong_size_is_refused() {
    device(0);
    let stream = stream();
    refused(
        launch("fill", 1, stream, &[0; 16]),
        acl::ACL_ERROR_RT_PARAM_INVALID,
        &["16 bytes", "kernel fill takes 24"],
    );
    refused(
        launch("empty", 0, stream, &[]),
        acl::ACL_ERROR_RT_PARAM_INVALID,
        &["numBlocks 0"],
    );
    destroy(stream);
}

#[test]
fn a_placeholder_becomes_the_address_of_the_data_behind_the_arguments() {
    let acl = device(0);
    let stream = stream();
    // touch(at): `at` is a placeholder for 8 bytes that follow it.
    let mut args = [0u64; 2];
    let mut place = acl::aclrtPlaceHolderInfo {
        addrOffset: 0,
        dataOffset: 8,
    };
    // SAFETY: everything lives during the call, which copies it.
    ok(unsafe {
        (acl.aclrtLaunchKernelWithHostArgs)(
            function("touch"),
            1,
            stream,
            std::ptr::null_mut(),
            args.as_mut_ptr().cast(),
            16,
            &mut place,
            1,
        )
    });
    ok(synchronize(stream));
    place.dataOffset = 16;
    // SAFETY: as above.
    let code = unsafe {
        (acl.aclrtLaunchKernelWithHostArgs)(
            function("touch"),
            1,
            stream,
            std::ptr::null_mut(),
            args.as_mut_ptr().cast(),
            16,
            &mut place,
            1,
        )
    };
    refused(
        code,
        acl::ACL_ERROR_RT_PARAM_INVALID,
        &["placeholder", "16"],
    );
    destroy(stream);
}

#[test]
fn an_unknown_kernel_is_refused_with_the_names_that_exist() {
    let acl = device(0);
    let mut function = std::ptr::null_mut();
    // SAFETY: a NUL-terminated name.
    let code =
        unsafe { (acl.aclrtBinaryGetFunction)(kernels().0, c"no_such".as_ptr(), &mut function) };
    refused(
        code,
        acl::ACL_ERROR_RT_KERNEL_LOOKUP,
        &["\"no_such\"", "empty", "fill", "trap"],
    );
}

#[test]
fn objects_that_are_not_for_this_npu_are_refused() {
    let acl = device(0);
    let load = |bytes: &[u8]| {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the bytes live during the call.
        unsafe {
            (acl.aclrtBinaryLoadFromData)(
                bytes.as_ptr().cast(),
                bytes.len(),
                std::ptr::null(),
                &mut handle,
            )
        }
    };
    refused(
        load(b"not an object, but long enough to be looked at"),
        acl::ACL_ERROR_INVALID_FILE,
        &["no ELF object"],
    );
    refused(
        load(&object(3510)),
        acl::ACL_ERROR_RT_SOC_VERSION,
        &["architecture 3510", "Ascend910B1 has 2201"],
    );
    let mut foreign = object(2201);
    foreign[18] = 0x7f;
    refused(
        load(&foreign),
        acl::ACL_ERROR_INVALID_FILE,
        &["machine", "target `sim`"],
    );
    let mut cut = object(2201);
    cut.truncate(1000);
    refused(
        load(&cut),
        acl::ACL_ERROR_INVALID_FILE,
        &["cut short", "1000 bytes"],
    );
    let mut handle = std::ptr::null_mut();
    // SAFETY: a NUL-terminated path.
    let code = unsafe {
        (acl.aclrtBinaryLoadFromFile)(
            c"/no/such/kernel.o".as_ptr(),
            std::ptr::null_mut(),
            &mut handle,
        )
    };
    refused(code, acl::ACL_ERROR_RT_FILE_OPEN, &["/no/such/kernel.o"]);
}

#[test]
fn a_second_object_never_brings_back_the_code_of_an_unloaded_one() {
    let acl = device(0);
    let bytes = object(2201);
    for _ in 0..20 {
        let mut handle = std::ptr::null_mut();
        let mut function = std::ptr::null_mut();
        // SAFETY: the bytes live during the call, the handles are this test's.
        unsafe {
            ok((acl.aclrtBinaryLoadFromData)(
                bytes.as_ptr().cast(),
                bytes.len(),
                std::ptr::null(),
                &mut handle,
            ));
            ok((acl.aclrtBinaryGetFunction)(
                handle,
                c"empty".as_ptr(),
                &mut function,
            ));
            ok((acl.aclrtBinaryUnLoad)(handle));
        }
        refused(
            launch_with(function, 1, std::ptr::null_mut(), None, &[]),
            acl::ACL_ERROR_RT_INVALID_HANDLE,
            &["no kernel function"],
        );
    }
}

#[test]
fn a_wild_address_ends_the_kernel_and_the_message_says_what_lies_there() {
    device(1);
    let stream = stream();
    let small = malloc(100);
    for (address, words) in [
        (8u64, vec!["null pointer"]),
        (0x1234_5678_9000, vec!["no memory of the emulated NPU"]),
        (
            small + 4096 + 8,
            vec!["past the end of an allocation of 100 bytes"],
        ),
    ] {
        ok(launch("touch", 3, stream, &pointer(address)));
        let mut expected = vec!["kernel touch", "of 3", "wild address"];
        expected.extend(words);
        refused(
            synchronize(stream),
            acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
            &expected,
        );
        // The stream works on.
        ok(launch("empty", 1, stream, &[]));
        ok(synchronize(stream));
    }
    free(small);
    ok(launch("touch", 1, stream, &pointer(small)));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["memory of device 1", "nothing is allocated"],
    );
    destroy(stream);
}

#[test]
fn a_trap_a_broken_rule_and_a_division_by_zero_are_told_apart() {
    device(1);
    let stream = stream();
    ok(launch("trap", 1, stream, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION,
        &["kernel trap, block 0 of 1", "trap()"],
    );
    ok(launch("broken_rule", 2, stream, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["kernel broken_rule", "kernels.c:", "aligned to 32 bytes"],
    );
    let out = malloc(8);
    let mut args = pointer(out).to_vec();
    args.extend(0u32.to_ne_bytes());
    ok(launch("divide", 1, stream, &args));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["division by zero"],
    );
    free(out);
    destroy(stream);
}

#[test]
fn a_stack_that_runs_over_is_reported_as_one() {
    device(1);
    let stream = stream();
    for blocks in [1, 4] {
        ok(launch("recursion", blocks, stream, &[]));
        refused(
            synchronize(stream),
            acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
            &["kernel recursion", "stack ran over", "32 KiB"],
        );
    }
    destroy(stream);
}

#[test]
fn the_unified_buffer_is_poisoned_between_launches_and_guarded_at_its_end() {
    device(1);
    let (stream, out) = (stream(), malloc(16));
    for _ in 0..3 {
        ok(launch("ub", 1, stream, &pointer(out)));
        ok(synchronize(stream));
        assert_eq!(
            words(out, 2),
            [196_608, 0],
            "size, and bytes that are not poison"
        );
    }
    ok(launch("ub_overrun", 1, stream, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["wild address"],
    );
    free(out);
    destroy(stream);
}

#[test]
fn sync_all_meets_all_blocks_of_a_launch() {
    device(2);
    let _alone = alone();
    let (stream, out) = (stream(), malloc(64));
    let mut args = pointer(out).to_vec();
    args.extend(200u32.to_ne_bytes());
    ok(launch("meet", CORES, stream, &args));
    ok(synchronize(stream));
    assert_eq!(words(out, 4), [200; 4]);
    ok(launch("meet", CORES + 1, stream, &args));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["SyncAll of 5 blocks on 4 cores can never end"],
    );
    ok(launch("some_meet", 3, stream, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["SyncAll can never end", "1 block(s) of 3 ended without it"],
    );
    free(out);
    destroy(stream);
}

#[test]
fn blocks_that_spin_on_one_another_need_as_many_cores_and_the_timeout_says_so() {
    let acl = device(3);
    let (stream, out) = (stream(), malloc(8));
    zero(out, 8);
    ok(launch("everybody", CORES, stream, &pointer(out)));
    ok(synchronize(stream));
    zero(out, 8);
    ok(launch("everybody", CORES + 3, stream, &pointer(out)));
    // SAFETY: a stream of this test.
    let code = unsafe { (acl.aclrtSynchronizeStreamWithTimeout)(stream, 300) };
    refused(
        code,
        acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        &[
            "kernel everybody with 7 block(s)",
            "4 polling",
            "3 never started, because each of the 4 cores is held",
        ],
    );
    destroy(stream);
    // The cores are free again.
    let stream = common::stream();
    zero(out, 8);
    ok(launch("everybody", CORES, stream, &pointer(out)));
    ok(synchronize(stream));
    free(out);
    destroy(stream);
}

#[test]
fn a_kernel_over_its_limit_is_stopped_even_if_it_never_looks() {
    device(4);
    let (stream, out) = (stream(), malloc(8));
    for (name, args) in [("forever", vec![]), ("deaf", pointer(out).to_vec())] {
        for blocks in [1, 3] {
            let mut attributes = [attribute(
                acl::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US,
                |value| {
                    value.timeoutUs = acl::aclrtTimeoutUs {
                        timeoutLow: 100_000,
                        timeoutHigh: 0,
                    }
                },
            )];
            ok(launch_with(
                function(name),
                blocks,
                stream,
                Some(&mut attributes),
                &args,
            ));
            refused(
                synchronize(stream),
                acl::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
                &[&format!("kernel {name}"), "limit of 100ms"],
            );
        }
    }
    // No core was lost.
    zero(out, 8);
    ok(launch("everybody", CORES, stream, &pointer(out)));
    ok(synchronize(stream));
    free(out);
    destroy(stream);
}

#[test]
fn destroying_a_stream_by_force_stops_its_kernel() {
    let acl = device(5);
    let (stream, out) = (stream(), malloc(8));
    ok(launch("deaf", 2, stream, &pointer(out)));
    // SAFETY: a stream of this test.
    let code = unsafe { (acl.aclrtSynchronizeStreamWithTimeout)(stream, 50) };
    refused(
        code,
        acl::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        &["kernel deaf with 2 block(s) (2 running)"],
    );
    destroy(stream);
    refused(
        launch("empty", 1, stream, &[]),
        acl::ACL_ERROR_RT_INVALID_HANDLE,
        &["no stream"],
    );
    let stream = common::stream();
    zero(out, 8);
    ok(launch("everybody", CORES, stream, &pointer(out)));
    ok(synchronize(stream));
    free(out);
    destroy(stream);
}

#[test]
fn a_batch_launch_takes_all_its_cores_at_once_or_is_refused() {
    device(6);
    let (stream, other, out) = (stream(), stream(), malloc(16));
    zero(out, 16);
    let mut batch = [attribute(
        acl::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE,
        |value| value.schemMode = 1,
    )];
    let code = launch_with(
        function("everybody"),
        CORES + 1,
        stream,
        Some(&mut batch),
        &pointer(out),
    );
    refused(
        code,
        acl::ACL_ERROR_RT_PARAM_INVALID,
        &["schemMode 1 (batch)", "4 cores"],
    );
    // Two launches that each need 3 of 4 cores at once: one waits for the other.
    for _ in 0..20 {
        zero(out, 16);
        ok(launch_with(
            function("everybody"),
            3,
            stream,
            Some(&mut batch),
            &pointer(out),
        ));
        ok(launch_with(
            function("everybody"),
            3,
            other,
            Some(&mut batch),
            &pointer(out + 8),
        ));
        ok(synchronize(stream));
        ok(synchronize(other));
        assert_eq!(words(out, 2), [3, 3]);
    }
    free(out);
    destroy(stream);
    destroy(other);
}

#[test]
fn doorbells_reach_the_nic_and_raw_stores_to_their_pages_are_explained() {
    device(7);
    let stream = stream();
    ok(launch("bell", 1, stream, &pointer(0)));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["kernel bell", "0x"],
    );
    ok(launch("raw_bell", 1, stream, &[]));
    refused(
        synchronize(stream),
        acl::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
        &["doorbell page", "st_dev"],
    );
    destroy(stream);
}

#[test]
fn counters_are_added_up_over_blocks_and_kept_by_kernel() {
    device(8);
    let _alone = alone();
    let (stream, out) = (stream(), malloc(64));
    let args = [pointer(out).to_vec(), vec![0; 16]].concat();
    let before = npusim::hooks::kernel_counters()
        .into_iter()
        .find(|c| c.kernel == "fill")
        .map_or((0, 0), |c| (c.blocks, c.device_stores));
    ok(launch("fill", 5, stream, &args));
    ok(synchronize(stream));
    let after = npusim::hooks::kernel_counters()
        .into_iter()
        .find(|c| c.kernel == "fill")
        .expect("it ran");
    assert!(after.blocks >= before.0 + 5 && after.device_stores >= before.1 + 5);
    assert!(npusim::hooks::total_counters().device_stores >= 5);
    free(out);
    destroy(stream);
}

#[test]
fn the_system_counter_ticks_at_fifty_megahertz() {
    device(8);
    let (stream, out) = (stream(), malloc(16));
    let mut ticks = [0; 2];
    let begin = Instant::now();
    for tick in &mut ticks {
        ok(launch("clock", 1, stream, &pointer(out)));
        ok(synchronize(stream));
        *tick = words(out, 1)[0];
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let most = begin.elapsed().as_nanos() as u64 / 20;
    let passed = ticks[1] - ticks[0];
    assert!(
        passed >= 20_000_000 / 20 && passed <= most,
        "{passed} ticks"
    );
    free(out);
    destroy(stream);
}

#[test]
fn many_streams_launch_at_the_same_time() {
    device(9);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(|| {
                device(9);
                let (stream, out) = (stream(), malloc(8 * 8));
                for round in 0..200u64 {
                    let mut args = pointer(out).to_vec();
                    args.extend([0; 8]);
                    args.extend(round.to_ne_bytes());
                    ok(launch("fill", 8, stream, &args));
                    ok(synchronize(stream));
                    assert_eq!(words(out, 8), (round..round + 8).collect::<Vec<u64>>());
                }
                free(out);
                destroy(stream);
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no failure in a thread");
    }
}

/// Prints how long an empty launch with its synchronisation takes. Run with `--ignored --nocapture` on a quiet machine.
#[test]
#[ignore = "a measurement, not a test"]
fn measure_an_empty_launch() {
    let acl = device(10);
    let stream = stream();
    let function = function("empty");
    for blocks in [1, 2, CORES] {
        let mut best = f64::MAX;
        let mut all = Vec::new();
        for _ in 0..20 {
            let begin = Instant::now();
            for _ in 0..500 {
                let launched = unsafe {
                    // SAFETY: no arguments.
                    (acl.aclrtLaunchKernelWithHostArgs)(
                        function,
                        blocks,
                        stream,
                        std::ptr::null_mut(),
                        std::ptr::null_mut::<c_void>(),
                        0,
                        std::ptr::null_mut(),
                        0,
                    )
                };
                ok(launched);
                // SAFETY: a stream of this test.
                ok(unsafe { (acl.aclrtSynchronizeStream)(stream) });
            }
            let each = begin.elapsed().as_secs_f64() / 500.0 * 1e6;
            best = best.min(each);
            all.push(each);
        }
        all.sort_by(f64::total_cmp);
        println!(
            "{blocks} block(s): best {best:.2} us, median {:.2} us",
            all[all.len() / 2]
        );
    }
    destroy(stream);
}
