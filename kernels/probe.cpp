/* Whether the NIC executes atomics: one fetch-add on the own PE. Launched by host/transport/probe.rs with a context of one PE. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void shmem_probe(GM_ADDR ctx, GM_ADDR word) {
  auto guard = shmem_attach(ctx);
  shmem_atomic_fetch_add(reinterpret_cast<__gm__ uint64_t*>(word), uint64_t(1), 0);
  shmem_quiet();
}
