/* The gradient of the aggregation: each row of `table` is the gradient of a node's result, and what comes out is the gradient of each node's
 * features, the product with the transposed adjacency. Contributions are added where the edges are, and each sum travels once:
 *
 *   1  a core adds, for each remote node that the PE's edges name, the contributions of the PE's rows (weights times gradients), a batch of nodes
 *      at a time, and puts the batch into the staging slots that the owner keeps for this PE
 *   2  it adds up its own nodes that no other PE contributes to, while the puts travel
 *   3  all PEs meet, and it adds up the nodes that others contribute to: own rows by weight, staged rows as they are
 *
 * Every sum has one writer and a fixed order: no float atomics, and the same bits in every run. A node record of step 1 has its row of `sums`, one of
 * steps 2 and 3 its own row; staged rows carry weight 1. */
#include "kernel_operator.h"
#include "shmem.h"
#include "gnn_common.h"

namespace gnn {

/* The source of rows that are there before the meeting (need 0) or after it (need 1). Each core meets once a layer. */
class meeting {
 public:
  __aicore__ inline meeting() : met_(false) {}

  __aicore__ inline void poll() {}
  __aicore__ inline bool ready(uint32_t need) { return need == 0 || met_; }

  /* False after an error, which the library has recorded. */
  __aicore__ inline bool wait(uint32_t) {
    if (!met_) shmem_barrier_all();
    met_ = true;
    return shmem_error() == SHMEM_OK;
  }

 private:
  bool met_;
};

/* Step 1. Its phases are the batches: they say where a batch's edges end. */
__aicore__ inline void send_sums(const work& job) {
  work w = job;
  uint64_t row_bytes = uint64_t(w.dim) * sizeof(float);
  everything everything;
  read_core(w, w.cores + w.core);
  w.results = w.sums;
  uint32_t batch_end = w.batch_end, phase = w.phase_begin, node = w.node_begin;
  uint64_t edge = w.edge_begin;
  for (uint32_t index = w.batch_begin; index < batch_end; ++index, ++phase) {
    uint64_t batch = w.batches + index * sizeof(struct gnn_batch);
    uint32_t count = GNN_FIELD(gnn_batch, batch, count);
    w.node_begin = node;
    w.node_end = node + count;
    w.phase_begin = phase;
    w.phase_end = phase + 1;
    w.edge_begin = edge;
    w.edge_end = GNN_FIELD(gnn_phase, w.phases + phase * sizeof(struct gnn_phase), edge_end);
    aggregate(w, everything);
    AscendC::PipeBarrier<PIPE_ALL>(); /* the sums have left the core */
    uint64_t target = w.table + (uint64_t(w.staging_row) + GNN_FIELD(gnn_batch, batch, target)) * row_bytes;
    uint64_t source = w.sums + GNN_FIELD(gnn_batch, batch, first_slot) * row_bytes;
    shmem_putmem_nbi(reinterpret_cast<__gm__ void*>(target), reinterpret_cast<const __gm__ void*>(source), count * row_bytes,
                     static_cast<int>(GNN_FIELD(gnn_batch, batch, pe)));
    shmem_commit();
    node = w.node_end;
    edge = w.edge_end;
  }
}

}  // namespace gnn

extern "C" __global__ __aicore__ void gnn_scatter(GM_ADDR ctx, GM_ADDR job) {
  gnn::work work = gnn::read_job(job);
  shmem_options options;
  options.engine = work.engine;
  shmem_guard guard = shmem_attach(ctx, options);
  do {
    gnn::send_sums(work);
    gnn::meeting meeting;
    gnn::aggregate(work, meeting);
    if (!meeting.wait(1)) return;
  } while (gnn::next_layer(work));
}
