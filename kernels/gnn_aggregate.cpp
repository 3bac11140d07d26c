/* Fetch-once aggregation over the neighbours of a partitioned graph: each remote row that this PE needs is read from its owner once, by one of
 * the PE's cores, into the staging area of the table. Meanwhile the cores aggregate the nodes whose rows are already there.
 *
 * Each core reads its batches with shmem_getmem_nbi, several in flight, and publishes in a line of its own how many have arrived in order; a node
 * waits until every core has published what the plan says. The host has zeroed the progress lines and met the other PEs before the launch; with one
 * layer the kernel itself needs no other PE to run. With more, a layer fetches the same rows of the layer before, after all PEs have met. */
#include "kernel_operator.h"
#include "shmem.h"
#include "gnn_common.h"

namespace gnn {

constexpr uint64_t ALL_BATCHES = ~uint64_t(0) >> 1; /* published when no batch is missing, whatever their number */

/* Brings the remote rows; the source of the aggregation. */
class fetcher {
 public:
  __aicore__ inline explicit fetcher(const work& job)
      : w_(job), total_(job.batch_end - job.batch_begin), issued_(0), arrived_(0), known_(0), released_(false) {
    window_ = job.window < 1 ? 1 : (job.window > GNN_MAX_WINDOW ? GNN_MAX_WINDOW : job.window);
    issue();
    if (total_ == 0) publish();
  }

  /* Retires what has arrived and asks for more. Never blocks for an arrival. */
  __aicore__ inline void poll() {
    if (arrived_ == total_) return;
    uint32_t before = arrived_;
    while (arrived_ < issued_ && shmem_done(tickets_[arrived_ % GNN_MAX_WINDOW])) arrived_ += 1;
    if (arrived_ != before) {
      publish();
      issue();
    }
  }

  /* Whether every core has got `need` batches, or all that it has. */
  __aicore__ inline bool ready(uint32_t need) {
    if (need <= known_) return true;
    uint64_t least = ALL_BATCHES;
    for (uint32_t core = 0; core < w_.cores; ++core) {
      uint64_t arrived = load<uint64_t>(line(core));
      if (arrived < least) least = arrived;
    }
    if (least > known_) {
      known_ = least;
      /* Rows are read by MTE2 only after the progress that stands for them. */
      AscendC::SetFlag<AscendC::HardEvent::S_MTE2>(0);
      AscendC::WaitFlag<AscendC::HardEvent::S_MTE2>(0);
    }
    return need <= known_;
  }

  /* Blocks until ready. False after an error, which the library has recorded. Own batches come first: others may wait for them. */
  __aicore__ inline bool wait(uint32_t need) {
    while (!ready(need)) {
      if (arrived_ < total_) {
        advance();
      } else {
        for (uint32_t core = 0; core < w_.cores; ++core) {
          shmem_wait_until(reinterpret_cast<__gm__ uint64_t*>(line(core)), SHMEM_CMP_GE, uint64_t(need));
        }
      }
      if (shmem_error() != SHMEM_OK) {
        release();
        return false;
      }
    }
    return true;
  }

  /* Gets the rest of this core's batches, for the other cores. */
  __aicore__ inline void finish() {
    while (arrived_ < total_ && shmem_error() == SHMEM_OK) advance();
    if (shmem_error() != SHMEM_OK) release();
  }

 private:
  __aicore__ inline uint64_t line(uint32_t core) const { return w_.progress + uint64_t(core) * GNN_PROGRESS_STRIDE; }

  /* Waits for the oldest batch. */
  __aicore__ inline void advance() {
    shmem_wait(tickets_[arrived_ % GNN_MAX_WINDOW]);
    if (shmem_error() != SHMEM_OK) return;
    arrived_ += 1;
    publish();
    issue();
  }

  __aicore__ inline void issue() {
    while (issued_ < total_ && issued_ - arrived_ < window_) {
      uint64_t batch = w_.batches + (w_.batch_begin + issued_) * sizeof(struct gnn_batch);
      int pe = static_cast<int>(GNN_FIELD(gnn_batch, batch, pe));
      uint32_t count = GNN_FIELD(gnn_batch, batch, count);
      uint32_t slot = GNN_FIELD(gnn_batch, batch, first_slot);
      for (uint32_t i = 0; i < count; ++i, ++slot) {
        uint64_t row = load<uint32_t>(w_.fetch + slot * sizeof(uint32_t));
        shmem_getmem_nbi(reinterpret_cast<__gm__ void*>(w_.table + (uint64_t(w_.staging_row) + slot) * w_.row_bytes),
                         reinterpret_cast<const __gm__ void*>(w_.table + row * w_.row_bytes), w_.row_bytes, pe);
      }
      shmem_commit();
      tickets_[issued_ % GNN_MAX_WINDOW] = shmem_last(pe);
      issued_ += 1;
    }
  }

  __aicore__ inline void publish() {
    uint64_t value = arrived_ == total_ ? ALL_BATCHES : arrived_;
    AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(line(w_.core)), value);
  }

  /* After an error: nobody shall wait for batches that do not come. The host sees the error and discards the results. */
  __aicore__ inline void release() {
    if (released_) return;
    released_ = true;
    AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(line(w_.core)), ALL_BATCHES);
  }

  const work& w_;
  uint32_t total_, issued_, arrived_, window_;
  uint64_t known_; /* batches that every core was last seen to have */
  bool released_;
  shmem_ticket tickets_[GNN_MAX_WINDOW];
};

}  // namespace gnn

extern "C" __global__ __aicore__ void gnn_aggregate(GM_ADDR ctx, GM_ADDR job) {
  gnn::work work = gnn::read_job(job);
  shmem_options options;
  options.engine = work.engine;
  shmem_guard guard = shmem_attach(ctx, options);
  do {
    gnn::fetcher fetcher(work);
    gnn::aggregate(work, fetcher);
    fetcher.finish();
  } while (gnn::next_layer(work));
}
