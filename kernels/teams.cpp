/* Kernels of the host library itself, for teams (host/teams.rs). */
#include "kernel_operator.h"
#include "shmem.h"

/* The members of a team meet, on one core each. answer[0]: the bits that all have in `bits`; answer[1]: members with another `digest`. */
extern "C" __global__ __aicore__ void shmem_agree(GM_ADDR ctx, int32_t team, uint64_t bits, uint64_t digest, GM_ADDR answer) {
  auto guard = shmem_attach(ctx);
  uint64_t all = bits, differ = 0;
  shmem_impl::agree(team, bits, digest, all, differ);
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(answer), all);
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(answer) + 1, differ);
}
