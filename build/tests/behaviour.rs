//! What kernels see and leave: arguments, copies, the scalar cache, late copies, polling, leaving.

mod common;

use common::{pack, Gm, Launch, Module, FAULT_RULE, FAULT_STOPPED};
use std::sync::OnceLock;

fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| Module::compile("behaviour.cpp", npushmem_build::NPU_ARCH_A2))
}

fn module_950() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| Module::compile("behaviour.cpp", npushmem_build::NPU_ARCH_950))
}

fn run_ok(kernel: &str, arguments: &[u8], launch: &Launch) -> common::Outcome {
    let outcome = module().run(kernel, arguments, launch);
    assert_eq!(outcome.code, 0, "{kernel}: {outcome:?}");
    outcome
}

#[test]
fn arguments_are_unpacked_with_natural_alignment() {
    let mut out = Gm::new(64);
    let mut packed = vec![200u8, 0, 0, 0, 0, 0, 0, 0];
    packed.extend(out.address().to_ne_bytes());
    packed.extend(70_000u32.to_ne_bytes());
    packed.extend(1.5f32.to_ne_bytes());
    packed.extend([7, 0, 0, 0]); // u8, then Pair at a multiple of 4
    packed.extend(0x0102_0304u32.to_ne_bytes());
    packed.extend([0x34, 0x12, 0, 0]);
    packed.extend([0; 4]); // u64 at a multiple of 8
    packed.extend(0xF000_0000_0000_0001u64.to_ne_bytes());
    assert_eq!(
        module().layout("arguments"),
        (48, vec![1, 8, 4, 4, 1, 8, 8])
    );
    run_ok(
        "arguments",
        &packed,
        &Launch {
            block_idx: 3,
            block_num: 8,
            ..Launch::default()
        },
    );
    assert_eq!(
        out.words()[..8],
        [
            200,
            70_000,
            3,
            7,
            0x0102_0304,
            0x1234,
            0xF000_0000_0000_0001,
            308
        ]
    );
}

#[test]
fn kernels_go_by_the_linker_s_names() {
    let names = module().names();
    assert!(names.contains(&"nothing"), "{names:?}");
    assert!(names.contains(&"_ZN5inner5namedEPU3AS1h"), "{names:?}");
    assert_eq!(module().arch(), 2201);
    assert_eq!(module().layout("nothing"), (0, vec![]));
}

#[test]
fn a_copy_of_blocks_keeps_gaps_and_padding() {
    let mut input = Gm::new(256);
    let mut out = Gm::new(512);
    for i in 0..32u32 {
        input.put(i as usize * 4, &[(i + 1).to_ne_bytes()]);
    }
    let outcome = run_ok(
        "strided",
        &pack(&[input.address(), out.address()]),
        &Launch::default(),
    );
    let row = |first: u32| [9, first, first + 1, first + 2, 9, 9, 9, 9];
    assert_eq!(out.u32s(0, 24), [row(1), row(6), row(11)].concat());
    // 12 bytes a block, 4 bytes apart.
    assert_eq!(out.u32s(128, 12), [9, 1, 2, 0, 9, 6, 7, 0, 9, 11, 12, 0]);
    let c = outcome.counters;
    assert_eq!(
        (c.mte2_copies, c.mte2_bytes, c.mte3_copies, c.mte3_bytes),
        (1, 36, 2, 132)
    );
    assert_eq!((c.flags_set, c.flags_waited), (1, 1));
}

#[test]
fn a_copy_of_nothing_does_nothing() {
    let mut gm = Gm::new(64);
    let outcome = run_ok("nothing_copied", &pack(&[gm.address()]), &Launch::default());
    assert_eq!(
        (outcome.counters.mte2_copies, outcome.counters.mte3_copies),
        (0, 0)
    );
    assert!(gm.bytes().iter().all(|b| *b == 0));
}

#[test]
fn raw_copies_take_ub_offsets_and_addresses() {
    let mut input = Gm::new(64);
    let mut out = Gm::new(128);
    input.put(0, &[1u32, 2, 3, 4].map(u32::to_ne_bytes));
    run_ok(
        "raw_copies",
        &pack(&[input.address(), out.address()]),
        &Launch::default(),
    );
    assert_eq!(out.u32s(0, 4), [1, 102, 203, 4]);
    assert_eq!(out.u32s(64, 4), [1, 102, 203, 4]);
}

#[test]
fn a_large_copy_arrives_whole() {
    let bytes = 131_072;
    let mut input = Gm::new(bytes);
    let mut out = Gm::new(bytes);
    for (i, word) in input.words().iter_mut().enumerate() {
        *word = i as u64 * 0x9E37_79B9;
    }
    let mut packed = pack(&[input.address(), out.address()]);
    packed.extend((bytes as u32).to_ne_bytes());
    packed.extend(2u32.to_ne_bytes());
    run_ok("bulk", &packed, &Launch::default());
    assert_eq!(out.bytes()[..bytes], input.bytes()[..bytes]);
}

#[test]
fn short_copies_arrive_whole_at_every_alignment() {
    let mut input = Gm::new(128);
    for (i, byte) in input.bytes()[..128].iter_mut().enumerate() {
        *byte = i as u8 + 1;
    }
    for shift in 0..64u32 {
        let (from, to) = (shift % 8, shift / 8);
        for bytes in 1..=72u32 {
            let mut out = Gm::new(128);
            let mut packed = pack(&[input.address(), out.address()]);
            packed.extend([from, to, bytes].into_iter().flat_map(u32::to_ne_bytes));
            assert_eq!(
                module()
                    .run_here("misaligned", &packed, &Launch::default())
                    .code,
                0
            );
            let (from, to, bytes) = (from as usize, to as usize, bytes as usize);
            let mut expected = [0u8; 128];
            expected[to..to + bytes].copy_from_slice(&input.bytes()[from..from + bytes]);
            assert_eq!(
                out.bytes()[..128],
                expected,
                "from {from} to {to}, {bytes} bytes"
            );
        }
    }
}

#[test]
fn aligned_words_of_short_copies_are_never_torn() {
    let gm = Gm::new(128);
    let run = |writer: u32| {
        let mut packed = pack(&[gm.address()]);
        packed.extend([writer, 200_000].into_iter().flat_map(u32::to_ne_bytes));
        run_ok("torn", &packed, &Launch::default());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(1));
        scope.spawn(|| run(0));
    });
}

#[test]
fn whoever_sees_the_first_word_of_a_copied_line_finds_the_rest_there() {
    let gm = Gm::new(64);
    let run = |writer: u32| {
        let mut packed = pack(&[gm.address()]);
        packed.extend([writer, 200_000].into_iter().flat_map(u32::to_ne_bytes));
        run_ok("whole_lines", &packed, &Launch::default());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(1));
        scope.spawn(|| run(0));
    });
}

#[test]
fn long_late_copies_land_whole_in_every_order() {
    let mut input = Gm::new(1024);
    for (i, byte) in input.bytes()[..1024].iter_mut().enumerate() {
        *byte = (i % 251) as u8 + 1;
    }
    for chaos_seed in 1..=64u64 {
        let launch = Launch {
            chaos_seed,
            ..Launch::default()
        };
        let (to, bytes) = (
            (chaos_seed * 7 % 64) as u32,
            65 + (chaos_seed * 13 % 900) as u32,
        );
        let mut out = Gm::new(1024);
        let mut packed = pack(&[input.address(), out.address()]);
        packed.extend([0, to, bytes].into_iter().flat_map(u32::to_ne_bytes));
        run_ok("misaligned", &packed, &launch);
        let mut expected = [0u8; 1024];
        expected[to as usize..(to + bytes) as usize]
            .copy_from_slice(&input.bytes()[..bytes as usize]);
        assert_eq!(out.bytes()[..1024], expected, "to {to}, {bytes} bytes");
    }
}

#[test]
fn blocks_that_add_to_one_place_lose_nothing() {
    let mut out = Gm::new(256);
    let rounds = 1000u32;
    let mut packed = pack(&[out.address()]);
    packed.extend(rounds.to_ne_bytes());
    packed.extend([0; 4][..module().layout("add_to_memory").0 as usize - 12].iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| run_ok("add_to_memory", &packed, &Launch::default()));
        }
    });
    assert_eq!(out.u32s(0, 6), [6000, 6000, 6000, 6000, 6000, 0]);
    assert_eq!(out.f32s(64, 3), [1000.0, 1000.0, 0.0]);
    assert_eq!(out.bytes()[128..134], [0xD0, 0x5F, 0xD0, 0x5F, 0, 0]); // half 500
    assert_eq!(out.f32s(192, 1), [0.5]);
}

fn slot(kernel: &str, slot: u32) -> Vec<u32> {
    let mut line = Gm::new(64);
    let mut packed = pack(&[line.address()]);
    packed.extend(slot.to_ne_bytes());
    run_ok(kernel, &packed, &Launch::default());
    line.u32s(0, 16)
}

#[test]
fn a_cached_store_overwrites_its_neighbour_when_the_line_is_written_back() {
    let line = slot("cached_slot", 3);
    assert_eq!((line[3], line[4]), (1003, 0));
}

#[test]
fn an_uncached_store_leaves_its_neighbour_alone() {
    let line = slot("uncached_slot", 3);
    assert_eq!((line[3], line[4]), (1003, 77));
}

#[test]
fn a_cached_load_stays_stale_until_the_line_is_invalidated() {
    let line = Gm::new(64);
    let mut out = Gm::new(64);
    let outcome = run_ok(
        "stale_load",
        &pack(&[line.address(), out.address()]),
        &Launch::default(),
    );
    assert_eq!(out.u32s(0, 3), [0, 1, 1]);
    let c = outcome.counters;
    assert_eq!(
        (
            c.cached_loads,
            c.device_loads,
            c.device_stores,
            c.dcci_lines
        ),
        (3, 1, 4, 1)
    );
}

#[test]
fn cached_stores_reach_memory_by_replacement_and_at_the_end() {
    let lines = 2000u32; // four times the cache
    let mut gm = Gm::new(lines as usize * 64);
    let mut packed = pack(&[gm.address()]);
    packed.extend(lines.to_ne_bytes());
    run_ok("many_lines", &packed, &Launch::default());
    for i in 0..lines as usize {
        assert_eq!(gm.words()[i * 8], i as u64 + 1);
    }
}

fn first_words(kernel: &str, extra: &[u8], seed: u64) -> Vec<u32> {
    let mut out = Gm::new(64);
    let mut packed = pack(&[out.address()]);
    packed.extend(extra);
    run_ok(
        kernel,
        &packed,
        &Launch {
            chaos_seed: seed,
            ..Launch::default()
        },
    );
    out.u32s(0, 3)
}

#[test]
fn without_chaos_copies_complete_at_once() {
    assert_eq!(first_words("late_source", &[], 0)[0], 1);
    assert_eq!(first_words("late_order", &0u32.to_ne_bytes(), 0)[2], 1);
}

#[test]
fn under_chaos_a_source_that_is_reused_too_early_is_seen() {
    let results: Vec<u32> = (1..=100)
        .map(|seed| first_words("late_source", &[], seed)[0])
        .collect();
    assert!(results.contains(&1) && results.contains(&2), "{results:?}");
    assert!((1..=100).all(|seed| first_words("late_flagged", &[], seed)[0] == 1));
}

#[test]
fn under_chaos_a_device_store_may_pass_a_copy_until_something_waits() {
    let flags = |wait: u32| -> Vec<u32> {
        (1..=100)
            .map(|seed| first_words("late_order", &wait.to_ne_bytes(), seed)[2])
            .collect()
    };
    let unordered = flags(0);
    assert!(
        unordered.contains(&0) && unordered.contains(&1),
        "{unordered:?}"
    );
    assert!(
        flags(1).iter().all(|f| *f == 1),
        "PipeBarrier<PIPE_ALL> waits for MTE3"
    );
    assert!(flags(2).iter().all(|f| *f == 1), "SyncAll waits for MTE3");
}

#[test]
fn under_chaos_copies_of_one_queue_stay_in_order_and_none_is_lost() {
    assert!((1..=50).all(|seed| first_words("late_in_order", &[], seed)[0] == 100));
}

#[test]
fn under_chaos_a_queue_gives_a_buffer_out_only_when_its_copy_has_left() {
    for seed in 1..=50 {
        let mut out = Gm::new(1024);
        run_ok(
            "late_queue",
            &pack(&[0, out.address()]),
            &Launch {
                chaos_seed: seed,
                ..Launch::default()
            },
        );
        let expected: Vec<u32> = (0..160).map(|i| i / 8).collect();
        assert_eq!(out.u32s(0, 160), expected, "seed {seed}");
    }
}

#[test]
fn one_seed_always_gives_one_result() {
    for seed in 1..20 {
        let a = first_words("late_order", &0u32.to_ne_bytes(), seed);
        assert_eq!(a, first_words("late_order", &0u32.to_ne_bytes(), seed));
    }
}

#[test]
fn a_block_that_polls_gives_the_processor_away_and_can_be_stopped() {
    let gm = Gm::new(64);
    for kernel in ["poll_uncached", "poll_several", "poll_cached", "poll_copy"] {
        let outcome = module().run(
            kernel,
            &pack(&[gm.address()]),
            &Launch {
                stop_at_yield: 10,
                ..Launch::default()
            },
        );
        assert_eq!(
            (outcome.code, outcome.yields),
            (FAULT_STOPPED, 10),
            "{kernel}: {outcome:?}"
        );
        assert!(outcome.file.ends_with("behaviour.cpp"), "{outcome:?}");
    }
    let outcome = module().run(
        "poll_clock",
        &[],
        &Launch {
            stop_at_yield: 10,
            ..Launch::default()
        },
    );
    assert_eq!(outcome.code, FAULT_STOPPED);
}

#[test]
fn a_block_that_works_between_its_looks_keeps_the_processor() {
    let gm = Gm::new(64);
    assert_eq!(
        run_ok("work_on", &pack(&[gm.address()]), &Launch::default()).yields,
        0
    );
}

#[test]
fn a_block_that_reads_through_memory_keeps_the_processor() {
    const WORDS: u32 = 4096;
    let gm = Gm::new(8 * WORDS as usize);
    let args = pack(&[gm.address(), WORDS.into()]);
    // A look at the stop word every thousand loads, not every few.
    assert!(run_ok("read_through", &args[..12], &Launch::default()).yields <= 4);
}

#[test]
fn leaving_from_deep_calls_keeps_the_thread_usable() {
    let gm = Gm::new(64);
    struct Alive<'a>(&'a std::cell::Cell<u32>);
    impl Drop for Alive<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = std::cell::Cell::new(0);
    for _ in 0..2000 {
        let _alive = Alive(&dropped);
        let outcome = module().run_here("leave_deep", &pack(&[gm.address()]), &Launch::default());
        assert_eq!(outcome.code, FAULT_RULE);
    }
    assert_eq!(dropped.get(), 2000, "frames of the caller are intact");
    assert_eq!(
        module().run_here("nothing", &[], &Launch::default()).code,
        0
    );
}

#[test]
fn printf_formats_and_reaches_the_emulator() {
    assert_eq!(
        run_ok("print_all", &[], &Launch::default()).printed,
        "text 42 1.50\nend"
    );
}

#[test]
fn scalar_atomics_exist_on_950_only_and_lose_nothing() {
    assert!(!module().names().contains(&"scalar_atomics"));
    let mut gm = Gm::new(64);
    gm.put(8, &[(-9i32).to_ne_bytes()]);
    let mut packed = pack(&[gm.address()]);
    packed.extend(5000u32.to_ne_bytes());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                assert_eq!(
                    module_950()
                        .run("scalar_atomics", &packed, &Launch::default())
                        .code,
                    0
                )
            });
        }
    });
    assert_eq!(gm.words()[0], 10_000);
    assert_eq!(gm.u32s(8, 1), [(-5i32) as u32]);
    assert_eq!(gm.u32s(16, 1), [8]);
    assert_eq!(module_950().arch(), 3510);
}
