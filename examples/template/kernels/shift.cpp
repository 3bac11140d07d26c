#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void shift(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t n) {
  shmem_guard shmem = shmem_attach(ctx);                 // this core takes the context
  int next = (shmem_my_pe() + 1) % shmem_n_pes();
  shmem_put((__gm__ float*)dst, (__gm__ float*)src, n, next);
  shmem_barrier_all();                                   // all PEs, all cores: everything is there
}
