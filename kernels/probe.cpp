/* Kernels of the host library itself. shmem_probe: whether the NIC executes atomics: one fetch-add on the own PE, launched with a context of
 * one PE (host/transport/probe.rs). shmem_complete: completes what earlier kernels left open, one block a comm core (World::quiet).
 */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void shmem_probe(GM_ADDR ctx, GM_ADDR word) {
  auto guard = shmem_attach(ctx);
  shmem_atomic_fetch_add(reinterpret_cast<__gm__ uint64_t*>(word), uint64_t(1), 0);
  shmem_quiet();
}

extern "C" __global__ __aicore__ void shmem_complete(GM_ADDR ctx) {
  auto guard = shmem_attach(ctx);
  shmem_quiet();
}
