//! Every rule of AscendC that the headers enforce: breaking it ends the block with the kernel's file and line and a sentence.

mod common;

use common::{line_of, pack, Gm, Launch, Module, Outcome, FAULT_RULE, FAULT_TRAP};
use std::sync::OnceLock;

fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| Module::compile("rules.cpp", npushmem_build::NPU_ARCH_A2))
}

/// Bytes that stand for doorbell pages; the headers must not touch them.
const DOORBELLS: (u64, u64) = (0x5000_0000_0000, 0x5000_0000_2000);

fn run(kernel: &str) -> Outcome {
    let gm = Gm::new(4096);
    module().run(kernel, &pack(&[gm.address()]), &Launch::default())
}

fn run_on_doorbell(kernel: &str) -> Outcome {
    module().run(
        kernel,
        &pack(&[DOORBELLS.0]),
        &Launch {
            doorbells: DOORBELLS,
            ..Launch::default()
        },
    )
}

fn check(outcome: &Outcome, kernel: &str, code: i32, words: &[&str]) {
    assert_eq!(outcome.code, code, "{kernel}: {outcome:?}");
    assert_eq!(
        (outcome.file.as_str(), outcome.line),
        ("tests/kernels/rules.cpp", line_of("rules.cpp", kernel)),
        "{outcome:?}"
    );
    for word in words {
        assert!(
            outcome.message.contains(word),
            "{kernel}: {word:?} is not in {:?}",
            outcome.message
        );
    }
}

macro_rules! rule {
    ($name:ident, $kernel:literal, $($word:literal),+) => {
        #[test]
        fn $name() {
            check(&run($kernel), $kernel, FAULT_RULE, &[$($word),+]);
        }
    };
}

rule!(
    a_copy_past_the_end_of_ub_is_refused,
    "ub_end",
    "[196576, 196640)",
    "196608",
    "smaller tiles"
);
rule!(
    a_misaligned_ub_address_is_refused,
    "ub_alignment",
    "UB address 8",
    "32 bytes"
);
rule!(
    a_copy_past_the_end_of_a_tensor_is_refused,
    "tensor_end",
    "288 bytes",
    "256 bytes left"
);
rule!(
    an_element_behind_the_tensor_is_refused,
    "element_behind",
    "element 64",
    "64 elements"
);
rule!(
    more_than_4095_blocks_are_refused,
    "block_count",
    "blockCount 4096",
    "4095"
);
rule!(
    a_block_of_2_mib_is_refused,
    "block_length",
    "blockLen 2097152",
    "2097151"
);
rule!(
    a_block_of_half_elements_is_refused,
    "element_length",
    "blockLen 6",
    "4 bytes"
);
rule!(
    more_than_32_bytes_of_padding_are_refused,
    "padding_length",
    "36 and 0 bytes",
    "at most 32"
);
rule!(
    the_count_form_takes_whole_blocks_only,
    "count_form",
    "28 bytes",
    "DataCopyPad"
);
rule!(a_null_address_is_refused, "null_address", "0x10", "null");
rule!(
    a_ub_address_is_no_global_memory,
    "ub_as_gm",
    "unified buffer"
);
rule!(
    a_copy_past_a_named_buffer_is_refused,
    "buffer_end",
    "SetGlobalBuffer named 4 elements"
);
rule!(
    an_index_that_went_below_zero_is_refused,
    "index_below_zero",
    "GlobalTensor::SetValue",
    "SetGlobalBuffer named 8 elements"
);
rule!(
    setting_a_flag_twice_is_refused,
    "double_set",
    "SetFlag<MTE2_V>(3)",
    "already set",
    "rules.cpp:"
);
rule!(
    waiting_for_a_flag_that_nobody_set_is_refused,
    "wait_without_set",
    "WaitFlag<MTE3_V>(1)",
    "for ever"
);
rule!(
    a_flag_left_set_at_the_end_is_found,
    "unpaired_flag",
    "SetFlag<V_MTE3>(2)",
    "never waited for"
);
rule!(
    an_event_id_above_7_is_refused,
    "event_id",
    "event id 8",
    "0..7"
);
rule!(
    a_barrier_of_the_scalar_pipe_is_illegal,
    "barrier_of_s",
    "PIPE_S",
    "illegal"
);
rule!(
    an_atomic_mode_left_on_is_found,
    "atomic_left_on",
    "SetAtomicNone"
);
rule!(
    an_atomic_copy_is_aligned_to_its_type,
    "atomic_alignment",
    "SetAtomicAdd",
    "4-byte"
);
rule!(
    an_uncached_store_beside_a_dirty_line_is_refused,
    "dirty_line",
    "dirty",
    "dcci"
);
rule!(
    a_misaligned_scalar_access_is_refused,
    "scalar_alignment",
    "not aligned",
    "8 bytes"
);
rule!(
    operands_that_overlap_in_part_are_refused,
    "partial_overlap",
    "overlap in part"
);
rule!(
    a_round_mode_that_rounds_nothing_is_refused,
    "lossless_round",
    "CAST_NONE"
);
rule!(
    a_reduction_needs_its_work_space,
    "reduce_space",
    "128 bytes",
    "32 bytes left"
);
rule!(
    a_queue_without_free_buffers_is_found,
    "queue_full",
    "all 1 buffers",
    "FreeTensor"
);
rule!(
    taking_from_an_empty_queue_is_found,
    "queue_empty",
    "empty",
    "EnQue"
);
rule!(
    more_buffers_than_ub_are_refused,
    "pipe_full",
    "[196608, 196640)",
    "InitBuffer"
);
rule!(
    a_library_s_ub_bytes_are_its_own,
    "claim_respected",
    "[1024, 2048)",
    "device/impl/port.h:9"
);
rule!(
    a_library_s_event_ids_are_its_own,
    "claim_event",
    "event id 6",
    "device/impl/port.h:9"
);

rule!(
    a_pipe_does_not_give_out_claimed_bytes,
    "pipe_meets_claim",
    "[1024, 2048)",
    "InitBuffer"
);
rule!(
    a_claim_of_bytes_in_use_is_refused,
    "claim_meets_pipe",
    "[0, 1056)",
    "TPipe"
);
rule!(
    event_ids_that_run_out_are_found,
    "event_ids_run_out",
    "AllocEventID<V_S>",
    "ReleaseEventID"
);
rule!(
    an_allocation_past_ub_is_refused,
    "allocator_end",
    "LocalMemAllocator",
    "196608"
);
rule!(
    the_soft_barrier_needs_its_workspace,
    "soft_sync_space",
    "workspace in global memory",
    "4 elements"
);
rule!(
    flags_between_core_groups_are_refused,
    "cross_core_mode",
    "CrossCoreSetFlag<2>(3)",
    "mode 0"
);
rule!(
    an_atomic_mode_needs_a_type,
    "atomic_without_type",
    "set_atomic_add",
    "set_atomic_s8"
);
rule!(
    a_raw_ub_pointer_past_the_end_is_refused,
    "raw_ub_end",
    "unified buffer"
);
rule!(
    a_mask_beyond_one_repeat_is_refused,
    "mask_of_nothing",
    "65 elements",
    "1 to 64"
);
rule!(
    a_buffer_without_memory_is_refused,
    "buffer_before_init",
    "TPipe::InitBuffer"
);
rule!(
    a_queue_takes_its_own_tensors_only,
    "foreign_tensor",
    "EnQue",
    "AllocTensor"
);

#[test]
fn a_line_that_was_cleaned_takes_an_uncached_store() {
    let mut gm = Gm::new(64);
    let outcome = module().run(
        "dirty_line_cleaned",
        &pack(&[gm.address()]),
        &Launch::default(),
    );
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(gm.u32s(0, 2), [5, 6]);
}

#[test]
fn a_failed_assertion_prints_and_names_its_text() {
    let outcome = run("assertion");
    check(&outcome, "assertion", FAULT_TRAP, &["gm == nullptr"]);
    assert_eq!(outcome.printed, "value 7\n");
}

#[test]
fn a_trap_names_its_line() {
    let outcome = run("trapped");
    check(&outcome, "trapped", FAULT_TRAP, &["trap()"]);
    assert_eq!(outcome.printed, "block 0\n");
}

#[test]
fn a_doorbell_takes_8_byte_device_stores_and_copies() {
    let outcome = run_on_doorbell("doorbell_rings");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        outcome.doorbells,
        [
            (DOORBELLS.0 + 8, 0x1122_3344_5566_7788),
            (DOORBELLS.0, 3),
            (DOORBELLS.0, 4)
        ]
    );
}

#[test]
fn other_accesses_to_a_doorbell_are_refused() {
    for (kernel, word) in [
        ("doorbell_short", "8-byte store"),
        ("doorbell_cached", "uncached"),
        ("doorbell_long", "8 aligned bytes"),
        ("doorbell_read", "cannot be read"),
    ] {
        let outcome = run_on_doorbell(kernel);
        check(&outcome, kernel, FAULT_RULE, &[word, "doorbell"]);
        assert!(outcome.doorbells.is_empty());
    }
}

#[test]
fn a_doorbell_that_the_nic_refuses_ends_the_block_with_its_words() {
    let launch = Launch {
        doorbells: DOORBELLS,
        refuse_doorbells: true,
        ..Launch::default()
    };
    let outcome = module().run("doorbell_rings", &pack(&[DOORBELLS.0]), &launch);
    assert_eq!(
        (outcome.code, outcome.message.as_str()),
        (FAULT_RULE, "the NIC refuses")
    );
}
