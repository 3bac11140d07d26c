/* The baseline that message passing forces: every PE sends every row to every other PE, all meet, and each aggregates from its full copy. The same
 * aggregation as gnn_aggregate.cpp; what differs is what is moved, and that nothing overlaps. */
#include "kernel_operator.h"
#include "shmem.h"
#include "gnn_common.h"

extern "C" __global__ __aicore__ void gnn_allgather(GM_ADDR ctx, GM_ADDR job) {
  gnn::work work = gnn::read_job(job);
  shmem_options options;
  options.engine = work.engine;
  shmem_guard guard = shmem_attach(ctx, options);
  uint64_t first = work.table + work.send_begin * work.row_bytes;
  uint64_t bytes = (work.send_end - work.send_begin) * work.row_bytes;
  int pes = shmem_n_pes();
  if (bytes != 0) {
    for (int step = 1; step < pes; ++step) {
      int pe = (shmem_my_pe() + step) % pes;
      shmem_putmem_nbi(reinterpret_cast<__gm__ void*>(first), reinterpret_cast<const __gm__ void*>(first), bytes, pe);
    }
  }
  shmem_barrier_all();
  if (shmem_error() != SHMEM_OK) return;
  gnn::everything everything;
  gnn::aggregate(work, everything);
}
