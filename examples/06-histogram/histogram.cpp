/* 06: a histogram whose bins are spread over the PEs: bin b is word b / n_pes on PE b % n_pes.
 *
 * Several cores of each PE take part; core c of a launch has its own queue pairs, and counts every n_cores-th value. The increments fetch
 * nothing, so no core waits for one: they are complete at the barrier. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void histogram(GM_ADDR ctx, GM_ADDR bins, GM_ADDR values, uint64_t n, uint32_t n_bins) {
  shmem_guard shmem = shmem_attach(ctx);
  __gm__ uint64_t* counts = reinterpret_cast<__gm__ uint64_t*>(bins);
  __gm__ uint32_t* value = reinterpret_cast<__gm__ uint32_t*>(values);
  uint32_t pes = uint32_t(shmem_n_pes());
  for (uint64_t i = uint64_t(shmem_my_core()); i < n; i += uint64_t(shmem_n_cores())) {
    uint32_t bin = AscendC::ReadGmByPassDCache<uint32_t>(value + i) % n_bins;
    shmem_atomic_inc(counts + bin / pes, int(bin % pes));
  }
  shmem_barrier_all();
}
