/* The baseline that message passing forces: every PE sends every row to every other PE, all meet, and each aggregates from its full copy. The same
 * aggregation as gnn_aggregate.cpp; what differs is what is moved, and that nothing overlaps. A core sends the rows that it computes, so a further
 * layer can begin to send without a meeting. */
#include "kernel_operator.h"
#include "shmem.h"
#include "gnn_common.h"

namespace gnn {

__aicore__ inline void send_rows(const work& w) {
  uint64_t first = w.table + w.send_begin * w.row_bytes;
  uint64_t bytes = (w.send_end - w.send_begin) * w.row_bytes;
  int pes = shmem_n_pes();
  if (bytes == 0) return;
  for (int step = 1; step < pes; ++step) {
    int pe = (shmem_my_pe() + step) % pes;
    shmem_putmem_nbi(reinterpret_cast<__gm__ void*>(first), reinterpret_cast<const __gm__ void*>(first), bytes, pe);
  }
}

/* Goes to the next layer without a meeting: its rows are sent to tables that nobody has read since the meeting of this layer. */
__aicore__ inline bool next_gathered(work& w) {
  if (w.layer + 1 == w.layers) return false;
  AscendC::PipeBarrier<PIPE_ALL>(); /* the results have left the core */
  enter_layer(w);
  return true;
}

}  // namespace gnn

extern "C" __global__ __aicore__ void gnn_allgather(GM_ADDR ctx, GM_ADDR job) {
  gnn::work work = gnn::read_job(job);
  shmem_options options;
  options.engine = work.engine;
  shmem_guard guard = shmem_attach(ctx, options);
  do {
    gnn::send_rows(work);
    shmem_barrier_all();
    if (shmem_error() != SHMEM_OK) return;
    gnn::everything everything;
    gnn::aggregate(work, everything);
  } while (gnn::next_gathered(work));
}
