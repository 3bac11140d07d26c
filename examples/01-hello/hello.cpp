/* 01: every PE's kernel says who it is, in its own memory.
 *
 * A kernel that communicates takes the context first. The guard holds it to the kernel's end. GM_ADDR is the address of a byte in global
 * memory (GM), the NPU's main memory. The store goes round the core's data cache, which nobody else sees into. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void hello(GM_ADDR ctx, GM_ADDR out) {
  shmem_guard shmem = shmem_attach(ctx);
  __gm__ int32_t* words = reinterpret_cast<__gm__ int32_t*>(out);
  AscendC::WriteGmByPassDCache<int32_t>(words, shmem_my_pe());
  AscendC::WriteGmByPassDCache<int32_t>(words + 1, shmem_n_pes());
}
