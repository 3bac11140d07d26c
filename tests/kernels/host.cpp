/* Kernels for the tests of the host library (host_several_pes.rs). */
#include "kernel_operator.h"
#include "shmem.h"

/* Every core puts n bytes at core * n to the next PE, by the NIC, and ends without a quiet. */
extern "C" __global__ __aicore__ void ht_leave_open(GM_ADDR ctx, GM_ADDR to, GM_ADDR from, uint64_t n) {
  shmem_options options;
  options.engine = SHMEM_ENGINE_ROCE;
  auto guard = shmem_attach(ctx, options);
  uint64_t at = uint64_t(AscendC::GetBlockIdx()) * n;
  shmem_putmem_nbi(to + at, from + at, n, (shmem_my_pe() + 1) % shmem_n_pes());
}
