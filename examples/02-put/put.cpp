/* 02: every PE writes into the memory of the next one.
 *
 * dst and src are symmetric: the same place of every PE's heap. The kernel passes its own dst, and the library finds the other PE's.
 * put returns when src may be changed; that the data has arrived says the barrier, on all PEs. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void put_next(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t n) {
  shmem_guard shmem = shmem_attach(ctx);
  int next = (shmem_my_pe() + 1) % shmem_n_pes();
  shmem_put(reinterpret_cast<__gm__ float*>(dst), reinterpret_cast<__gm__ float*>(src), n, next);
  shmem_barrier_all();
}
