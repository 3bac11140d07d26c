// One kernel for each rule of AscendC, which breaks it in the line that the comment names. Global memory comes as the first argument.
#include "kernel_operator.h"
using namespace AscendC;

#define KERNEL(name) extern "C" __global__ __aicore__ void name(GM_ADDR gm)

__aicore__ inline LocalTensor<uint32_t> words(uint32_t offset) { return LocalTensor<uint32_t>(TPosition::VECCALC, offset, 64); }
__aicore__ inline GlobalTensor<uint32_t> global(GM_ADDR gm) {
  GlobalTensor<uint32_t> tensor;
  tensor.SetGlobalBuffer((__gm__ uint32_t *)gm);
  return tensor;
}
static constexpr uint32_t UB_END = 196608;

KERNEL(ub_end) {
  DataCopy(LocalTensor<uint32_t>(UB_END - 32), global(gm), 16);  // here: ub_end
}
KERNEL(ub_alignment) {
  DataCopy(words(8), global(gm), 16);  // here: ub_alignment
}
KERNEL(tensor_end) {
  DataCopy(words(0), global(gm), 72);  // here: tensor_end
}
KERNEL(element_behind) {
  words(0).SetValue(64, 1);  // here: element_behind
}
KERNEL(block_count) {
  DataCopyPad(LocalTensor<uint32_t>(0u), global(gm), DataCopyExtParams(4096, 4, 0, 0, 0), DataCopyPadExtParams<uint32_t>());  // here: block_count
}
KERNEL(block_length) {
  DataCopyPad(global(gm), LocalTensor<uint32_t>(0u), DataCopyExtParams(1, 2097152, 0, 0, 0));  // here: block_length
}
KERNEL(element_length) {
  DataCopyPad(global(gm), words(0), DataCopyExtParams(1, 6, 0, 0, 0));  // here: element_length
}
KERNEL(padding_length) {
  DataCopyPad(words(0), global(gm), DataCopyExtParams(1, 4, 0, 0, 0), DataCopyPadExtParams<uint32_t>(true, 9, 0, 0));  // here: padding_length
}
KERNEL(count_form) {
  DataCopy(global(gm), words(0), 7);  // here: count_form
}
KERNEL(null_address) {
  DataCopy(global((GM_ADDR)16), words(0), 8);  // here: null_address
}
KERNEL(ub_as_gm) {
  GlobalTensor<uint32_t> wrong;
  wrong.SetGlobalBuffer((__gm__ uint32_t *)(__gm__ void *)words(0).GetPhyAddr());
  DataCopy(wrong, words(64), 8);  // here: ub_as_gm
  (void)gm;
}
KERNEL(buffer_end) {
  GlobalTensor<uint32_t> small;
  small.SetGlobalBuffer((__gm__ uint32_t *)gm, 8);
  DataCopy(words(0), small[4], 8);  // here: buffer_end
}
KERNEL(index_below_zero) {
  GlobalTensor<uint32_t> small;
  small.SetGlobalBuffer((__gm__ uint32_t *)gm, 8);
  uint64_t index = 0;
  small.SetValue(index - 1, 7);  // here: index_below_zero
}
KERNEL(double_set) {
  SetFlag<HardEvent::MTE2_V>(EVENT_ID3);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID3);  // here: double_set
  (void)gm;
}
KERNEL(wait_without_set) {
  SetFlag<HardEvent::MTE2_V>(EVENT_ID1);
  WaitFlag<HardEvent::MTE3_V>(EVENT_ID1);  // here: wait_without_set
  (void)gm;
}
KERNEL(unpaired_flag) {
  SetFlag<HardEvent::V_MTE3>(EVENT_ID2);  // here: unpaired_flag
  (void)gm;
}
KERNEL(event_id) {
  set_flag(PIPE_V, PIPE_MTE3, 8);  // here: event_id
  (void)gm;
}
KERNEL(barrier_of_s) {
  PipeBarrier<PIPE_S>();  // here: barrier_of_s
  (void)gm;
}
KERNEL(atomic_left_on) {
  SetAtomicAdd<float>();  // here: atomic_left_on
  (void)gm;
}
KERNEL(atomic_alignment) {
  SetAtomicAdd<int32_t>();
  DataCopyPad(global(gm + 2), words(0), DataCopyExtParams(1, 4, 0, 0, 0));  // here: atomic_alignment
}
KERNEL(dirty_line) {
  global(gm).SetValue(0, 5);
  st_dev(6u, (__gm__ uint32_t *)gm + 1, 0);  // here: dirty_line
}
KERNEL(dirty_line_cleaned) {
  GlobalTensor<uint32_t> tensor = global(gm);
  tensor.SetValue(0, 5);
  DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(tensor);
  DataSyncBarrier<MemDsbT::DDR>();
  WriteGmByPassDCache((__gm__ uint32_t *)gm + 1, 6u);
}
KERNEL(scalar_alignment) {
  (void)ld_dev((__gm__ uint64_t *)(gm + 4), 0);  // here: scalar_alignment
}
KERNEL(partial_overlap) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), b(TPosition::VECCALC, 32, 64);
  Add(b, a, a, 64);  // here: partial_overlap
  (void)gm;
}
KERNEL(lossless_round) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  LocalTensor<half> b(TPosition::VECCALC, 512, 64);
  Cast(a, b, RoundMode::CAST_FLOOR, 64);  // here: lossless_round
  (void)gm;
}
KERNEL(reduce_space) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 2048), space(TPosition::VECCALC, 8192, 8);
  ReduceSum(a, a, space, 2048);  // here: reduce_space
  (void)gm;
}
KERNEL(queue_full) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  LocalTensor<float> first = queue.AllocTensor<float>();
  queue.AllocTensor<float>();  // here: queue_full
  queue.FreeTensor(first);
  (void)gm;
}
KERNEL(queue_empty) {
  TPipe pipe;
  TQue<TPosition::VECIN, 1> queue;
  pipe.InitBuffer(queue, 1, 256);
  queue.DeQue<float>();  // here: queue_empty
  (void)gm;
}
KERNEL(pipe_full) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, UB_END);
  pipe.InitBuffer(buffer, 32);  // here: pipe_full
  (void)gm;
}
KERNEL(assertion) {
  ASCENDC_ASSERT(gm == nullptr, "value %d\n", 7);  // here: assertion
}
KERNEL(trapped) {
  AscendC::printf("block %lld\n", (long long)GetBlockIdx());
  trap();  // here: trapped
  (void)gm;
}

KERNEL(pipe_meets_claim) {
  TPipe pipe;
  TBuf<> buffer;
  npusim::reserve(1024, 1024, 0, npusim::Site{"device/impl/port.h", 9});
  pipe.InitBuffer(buffer, 1056);  // here: pipe_meets_claim
  (void)gm;
}
KERNEL(claim_meets_pipe) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, 1056);
  npusim::reserve(1024, 1024, 0);  // here: claim_meets_pipe
  (void)gm;
}
KERNEL(event_ids_run_out) {
  TPipe pipe;
  for (int i = 0; i < 8; ++i) pipe.AllocEventID<HardEvent::V_S>();
  pipe.ReleaseEventID<HardEvent::V_S>(3);
  ASCENDC_ASSERT(pipe.FetchEventID(HardEvent::V_S) == 3);
  ASCENDC_ASSERT(pipe.AllocEventID<HardEvent::V_S>() == 3);
  pipe.AllocEventID<HardEvent::V_S>();  // here: event_ids_run_out
  (void)gm;
}
KERNEL(allocator_end) {
  LocalMemAllocator<> memory;
  ASCENDC_ASSERT(memory.Alloc<half>(5).address_.bufferAddr == 0);
  LocalTensor<float> second = memory.Alloc<float, 8>();
  ASCENDC_ASSERT(second.address_.bufferAddr == 32 && second.GetSize() == 8 && memory.GetCurAddr() == 64);
  memory.Alloc<uint8_t>(UB_END);  // here: allocator_end
  (void)gm;
}
KERNEL(soft_sync_space) {
  GlobalTensor<int32_t> workspace;
  workspace.SetGlobalBuffer((__gm__ int32_t *)gm, 8);
  SyncAll(workspace, LocalTensor<int32_t>(TPosition::VECCALC, 0, 8));
  workspace.SetGlobalBuffer((__gm__ int32_t *)gm, 4);
  SyncAll(workspace, LocalTensor<int32_t>(TPosition::VECCALC, 0, 8));  // here: soft_sync_space
}
KERNEL(cross_core_mode) {
  CrossCoreSetFlag<0, PIPE_MTE3>(3);
  CrossCoreWaitFlag(3);
  ffts_cross_core_sync(PIPE_MTE3, 1 + (0 << 4) + (11 << 8));
  wait_flag_dev(11);
  CrossCoreSetFlag<2, PIPE_MTE3>(3);  // here: cross_core_mode
  (void)gm;
}
KERNEL(atomic_without_type) {
  set_atomic_add();
  copy_ubuf_to_gm_align_b32(gm, (__ubuf__ void *)0, 0, 1, 4, 0, 0, 0, 0);  // here: atomic_without_type
}
KERNEL(raw_ub_end) {
  copy_gm_to_ubuf((__ubuf__ void *)(UB_END + 64ull), gm, 0, 1, 1, 0, 0);  // here: raw_ub_end
}
KERNEL(mask_of_nothing) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Add(a, a, a, (uint64_t)65, 1, BinaryRepeatParams());  // here: mask_of_nothing
  (void)gm;
}
KERNEL(buffer_before_init) {
  TBuf<> buffer;
  buffer.Get<float>();  // here: buffer_before_init
  (void)gm;
}
KERNEL(foreign_tensor) {
  TPipe pipe;
  TQue<TPosition::VECOUT, 2> queue;
  pipe.InitBuffer(queue, 2, 64);
  LocalTensor<float> foreign(TPosition::VECOUT, 0, 16);
  queue.EnQue(foreign);  // here: foreign_tensor
  (void)gm;
}

// Doorbells: gm is a doorbell page here.
KERNEL(doorbell_short) {
  st_dev(1u, (__gm__ uint32_t *)gm, 0);  // here: doorbell_short
}
KERNEL(doorbell_cached) {
  GlobalTensor<uint64_t> page;
  page.SetGlobalBuffer((__gm__ uint64_t *)gm);
  page.SetValue(0, 1);  // here: doorbell_cached
}
KERNEL(doorbell_long) {
  DataCopyPad(global(gm), words(0), DataCopyExtParams(1, 16, 0, 0, 0));  // here: doorbell_long
}
KERNEL(doorbell_read) {
  DataCopyPad(words(0), global(gm), DataCopyExtParams(1, 8, 0, 0, 0), DataCopyPadExtParams<uint32_t>());  // here: doorbell_read
}
KERNEL(doorbell_rings) {
  st_dev(0x1122334455667788ull, (__gm__ uint64_t *)gm, 8);
  WriteGmByPassDCache((__gm__ uint64_t *)gm, (uint64_t)3);
  LocalTensor<uint32_t> value = words(0);
  value.SetValue(0, 4);
  value.SetValue(1, 0);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
  DataCopyPad(global(gm), value, DataCopyExtParams(1, 8, 0, 0, 0));
}

// A library's claim; its code is whatever lies in another folder than this file.
KERNEL(claim_respected) {
  npusim::reserve(1024, 1024, 1u << 6, npusim::Site{"device/impl/port.h", 9});
  words(768).SetValue(0, 1);
  words(0).SetValue(0, 1);
  words(1024 - 256).SetValue(63, 1);
  words(1024).SetValue(0, 1, npusim::Site{"device/impl/core.h", 1});
  words(1024).SetValue(0, 1);  // here: claim_respected
  (void)gm;
}
KERNEL(claim_event) {
  npusim::reserve(1024, 1024, 1u << 6, npusim::Site{"device/impl/port.h", 9});
  SetFlag<HardEvent::V_S>(EVENT_ID6);  // here: claim_event
  (void)gm;
}
