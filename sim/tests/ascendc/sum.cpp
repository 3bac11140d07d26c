// AscendC kernels as a user writes them, launched through ACL by tests/ascendc.rs.
#include "kernel_operator.h"
using namespace AscendC;

#define KERNEL extern "C" __global__ __aicore__ void

template <typename T> __aicore__ inline GlobalTensor<T> global(GM_ADDR gm) {
  GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer((__gm__ T *)gm);
  return tensor;
}

// out = a + b; each block takes its share of n floats, which is a multiple of 8 a block.
KERNEL add(GM_ADDR a, GM_ADDR b, GM_ADDR out, uint32_t n) {
  const uint32_t mine = n / (uint32_t)GetBlockNum();
  const uint64_t from = (uint64_t)GetBlockIdx() * mine;
  LocalTensor<float> x(TPosition::VECIN, 0, mine), y(TPosition::VECIN, 4096, mine);
  DataCopy(x, global<float>(a)[from], mine);
  DataCopy(y, global<float>(b)[from], mine);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Add(x, x, y, (int32_t)mine);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(global<float>(out)[from], x, mine);
  PipeBarrier<PIPE_ALL>();
}

KERNEL wild(GM_ADDR gm) { WriteGmByPassDCache((__gm__ uint64_t *)gm, (uint64_t)1); }

KERNEL meeting(GM_ADDR gm) {
  WriteGmByPassDCache((__gm__ uint64_t *)(gm + 8 * GetBlockIdx()), (uint64_t)1);
  SyncAll();
  uint64_t sum = 0;
  for (int64_t i = 0; i < GetBlockNum(); i++) sum += ReadGmByPassDCache((__gm__ uint64_t *)(gm + 8 * i));
  SyncAll();
  WriteGmByPassDCache((__gm__ uint64_t *)(gm + 8 * GetBlockIdx()), sum);
}

KERNEL waits_for_ever(GM_ADDR gm) {
  while (ReadGmByPassDCache((__gm__ uint64_t *)gm) == 0) {
  }
}

KERNEL polls_nothing() {
  for (volatile uint32_t i = 0;; i++) {
  }
}

KERNEL trapped() { trap(); }

KERNEL unpaired() { SetFlag<HardEvent::MTE2_V>(EVENT_ID0); }
