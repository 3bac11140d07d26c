/* What the aggregation kernels share: reading the job, and the aggregation of one core's nodes from a table of feature rows.
 *
 * A node's result is the sum, mean or maximum of its neighbours' rows, each times its weight where there are weights. Rows stream from GM into two buffers in UB in the order of the job's
 * columns; while MTE2 fills one, the vector unit reduces the other. The rows of a node lie side by side in the buffer, so they are reduced in
 * halves: ten rows take four vector instructions, and the error grows with the logarithm of the degree. Neighbours whose rows are adjacent in the
 * table come in one copy. A row longer than a tile is taken in several passes over the columns. A buffer never crosses the end of a phase, so the
 * order of additions depends on the plan alone, not on what arrived when: results are the same bits in every run. Legal AscendC; nothing here
 * knows who brought the rows: a source (gnn_aggregate.cpp has one) says how far reading may go.
 *
 * UB, bytes from 0 (the communication library keeps the top 40 KiB of at least 192):
 *   f32:  rows 2 x 48 KiB                        f16: rows 2 x 24 KiB, the same rows in f32 48 KiB
 *   both: results 2 x 16 KiB, columns 8 KiB, nodes 4 KiB, weights 8 KiB: 148 KiB in all
 * Event ids 0 and 1 of MTE2_V, V_MTE2, V_MTE3 and MTE3_V, and 0 of S_MTE2 and MTE2_S. The library has its own.
 */
#ifndef GNN_COMMON_H
#define GNN_COMMON_H

#include "gnn_abi.h"

static_assert(sizeof(struct gnn_node) == 8 && __builtin_offsetof(struct gnn_node, degree) == 4, "gnn_node is part of the contract");
static_assert(sizeof(struct gnn_phase) == 16 && __builtin_offsetof(struct gnn_phase, need) == 8, "gnn_phase is part of the contract");
static_assert(sizeof(struct gnn_batch) == 16 && __builtin_offsetof(struct gnn_batch, count) == 4 &&
                  __builtin_offsetof(struct gnn_batch, first_slot) == 8,
              "gnn_batch is part of the contract");
static_assert(__builtin_offsetof(struct gnn_batch, target) == 12, "gnn_batch is part of the contract");
static_assert(sizeof(struct gnn_core) == 64 && __builtin_offsetof(struct gnn_core, phase_begin) == 8 &&
                  __builtin_offsetof(struct gnn_core, edge_begin) == 16 && __builtin_offsetof(struct gnn_core, batch_begin) == 32 &&
                  __builtin_offsetof(struct gnn_core, send_begin) == 40 && __builtin_offsetof(struct gnn_core, reserved) == 48,
              "gnn_core is part of the contract");
static_assert(sizeof(struct gnn_job) == 192 && __builtin_offsetof(struct gnn_job, dim) == 8 &&
                  __builtin_offsetof(struct gnn_job, staging_row) == 28 && __builtin_offsetof(struct gnn_job, table) == 32 &&
                  __builtin_offsetof(struct gnn_job, outputs) == 40 && __builtin_offsetof(struct gnn_job, weights) == 64 &&
                  __builtin_offsetof(struct gnn_job, cores) == 104 && __builtin_offsetof(struct gnn_job, progress) == 112 &&
                  __builtin_offsetof(struct gnn_job, sums) == 120 && __builtin_offsetof(struct gnn_job, window) == 128 &&
                  __builtin_offsetof(struct gnn_job, layers) == 132 && __builtin_offsetof(struct gnn_job, output_row) == 136,
              "gnn_job is part of the contract");

namespace gnn {

constexpr uint32_t KIB = 1024;
constexpr uint32_t UB_ROWS = 0;
constexpr uint32_t ROWS_ELEMENTS = 48 * KIB / sizeof(float); /* in each buffer of rows */
constexpr uint32_t UB_WIDE = 48 * KIB;                       /* f16 only: a buffer of rows, in f32 */
constexpr uint32_t UB_RESULTS = 96 * KIB;
constexpr uint32_t RESULTS_BYTES = 16 * KIB; /* each of two buffers */
constexpr uint32_t UB_COLUMNS = 128 * KIB;
constexpr uint32_t COLUMNS = 8 * KIB / sizeof(uint32_t); /* columns held at once */
constexpr uint32_t UB_NODES = 136 * KIB;
constexpr uint32_t NODES = 4 * KIB / sizeof(struct gnn_node); /* nodes held at once */
constexpr uint32_t UB_WEIGHTS = 140 * KIB;
constexpr uint32_t WEIGHTS = 8 * KIB / sizeof(float); /* weights held at once */
constexpr uint32_t UB_END = 148 * KIB;
static_assert(UB_END <= (192 - 40) * KIB, "the library's part of UB begins there");

constexpr uint32_t MAX_TILE = 1536;  /* features of a pass: 8 rows fit a buffer, 2 results theirs */
constexpr uint32_t MAX_ROWS = 256;   /* rows of a buffer, where they are short */
constexpr uint32_t MAX_RESULTS = 64; /* results of a buffer, where they are short */
constexpr uint32_t UB_BLOCK = 32;    /* bytes; what MTE and vector operands are aligned to */

/* Uncached scalar loads: the job is read once, and the host may have rewritten it since the last kernel. */
template <typename T>
__aicore__ inline T load(uint64_t address) {
  return AscendC::ReadGmByPassDCache<T>(reinterpret_cast<__gm__ T*>(address));
}
#define GNN_FIELD(structure, address, field) \
  gnn::load<decltype(structure::field)>((address) + __builtin_offsetof(struct structure, field))

/* The job and this core's part of it, in registers. */
struct work {
  uint32_t dim, dtype, reduce, engine, cores, staging_row, window, layers;
  uint64_t table, outputs[2], results, columns, weights, nodes, phases, batches, fetch, core_records, progress, sums;
  uint32_t core, layer;
  uint32_t node_begin, node_end, phase_begin, phase_end, batch_begin, batch_end, send_begin, send_end;
  uint64_t edge_begin, edge_end;
  uint64_t row_bytes;
};

/* The part of a core's record: `index` is the core, or n_cores + the core for the second set that gnn_scatter has. */
__aicore__ inline void read_core(work& w, uint32_t index) {
  uint64_t core = w.core_records + uint64_t(index) * sizeof(struct gnn_core);
  w.node_begin = GNN_FIELD(gnn_core, core, node_begin);
  w.node_end = GNN_FIELD(gnn_core, core, node_end);
  w.phase_begin = GNN_FIELD(gnn_core, core, phase_begin);
  w.phase_end = GNN_FIELD(gnn_core, core, phase_end);
  w.edge_begin = GNN_FIELD(gnn_core, core, edge_begin);
  w.edge_end = GNN_FIELD(gnn_core, core, edge_end);
  w.batch_begin = GNN_FIELD(gnn_core, core, batch_begin);
  w.batch_end = GNN_FIELD(gnn_core, core, batch_end);
  w.send_begin = GNN_FIELD(gnn_core, core, send_begin);
  w.send_end = GNN_FIELD(gnn_core, core, send_end);
}

/* Reads the job, ready for layer 0. A description of another layout, or fewer blocks than it was made for, stops the kernel: nobody could use
 * the results. */
__aicore__ inline work read_job(GM_ADDR job_address) {
  uint64_t job = reinterpret_cast<uint64_t>(job_address);
  work w;
  w.core = static_cast<uint32_t>(AscendC::GetBlockIdx());
  w.cores = GNN_FIELD(gnn_job, job, n_cores);
  if (GNN_FIELD(gnn_job, job, magic) != GNN_MAGIC || GNN_FIELD(gnn_job, job, version) != GNN_VERSION ||
      GNN_FIELD(gnn_job, job, size) != sizeof(struct gnn_job) || w.cores != static_cast<uint32_t>(AscendC::GetBlockNum())) {
    AscendC::Trap();
  }
  w.dim = GNN_FIELD(gnn_job, job, dim);
  w.dtype = GNN_FIELD(gnn_job, job, dtype);
  w.reduce = GNN_FIELD(gnn_job, job, reduce);
  w.engine = GNN_FIELD(gnn_job, job, engine);
  w.staging_row = GNN_FIELD(gnn_job, job, staging_row);
  w.table = GNN_FIELD(gnn_job, job, table);
  uint64_t outputs = job + __builtin_offsetof(struct gnn_job, outputs);
  uint64_t first = uint64_t(GNN_FIELD(gnn_job, job, output_row)) * w.dim * sizeof(float);
  w.outputs[0] = load<uint64_t>(outputs);
  w.outputs[1] = load<uint64_t>(outputs + sizeof(uint64_t));
  w.results = w.outputs[0] + first;
  w.columns = GNN_FIELD(gnn_job, job, columns);
  w.weights = GNN_FIELD(gnn_job, job, weights);
  w.nodes = GNN_FIELD(gnn_job, job, nodes);
  w.phases = GNN_FIELD(gnn_job, job, phases);
  w.batches = GNN_FIELD(gnn_job, job, batches);
  w.fetch = GNN_FIELD(gnn_job, job, fetch);
  w.core_records = GNN_FIELD(gnn_job, job, cores);
  w.progress = GNN_FIELD(gnn_job, job, progress);
  w.sums = GNN_FIELD(gnn_job, job, sums);
  w.window = GNN_FIELD(gnn_job, job, window);
  w.layers = GNN_FIELD(gnn_job, job, layers);
  w.layer = 0;
  w.row_bytes = uint64_t(w.dim) * (w.dtype == GNN_F16 ? 2 : 4);
  read_core(w, w.core);
  return w;
}

/* The work of the next layer: it reads what this one has written. */
__aicore__ inline void enter_layer(work& w) {
  uint64_t first = w.results - w.outputs[w.layer & 1];
  w.table = w.outputs[w.layer & 1];
  w.layer += 1;
  w.results = w.outputs[w.layer & 1] + first;
  w.progress += uint64_t(w.cores) * GNN_PROGRESS_STRIDE;
  w.dtype = GNN_F32;
  w.row_bytes = uint64_t(w.dim) * sizeof(float);
}

/* Goes to the next layer when all cores of all PEs have written this one. False after the last layer, or after an error, which the library has
 * recorded. Two outputs are enough: who writes one anew has met all that read it. */
__aicore__ inline bool next_layer(work& w) {
  if (w.layer + 1 == w.layers) return false;
  AscendC::PipeBarrier<PIPE_ALL>(); /* the results have left the core */
  shmem_barrier_all();
  if (shmem_error() != SHMEM_OK) return false;
  enter_layer(w);
  return true;
}

/* The source of a table whose rows are all there. */
struct everything {
  __aicore__ inline void poll() {}
  __aicore__ inline bool ready(uint32_t) { return true; }
  __aicore__ inline bool wait(uint32_t) { return true; }
};

template <typename T>
__aicore__ inline AscendC::GlobalTensor<T> global(uint64_t address) {
  AscendC::GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address));
  return tensor;
}

template <typename T>
__aicore__ inline AscendC::LocalTensor<T> local(uint32_t offset, uint32_t elements) {
  return AscendC::LocalTensor<T>(AscendC::TPosition::VECCALC, offset, elements);
}

/* Records that the scalar unit reads one after another, from a piece of a GM array in UB. */
template <typename T, uint32_t offset, uint32_t capacity>
class record_stream {
 public:
  __aicore__ inline void init(uint64_t address, uint64_t end) {
    address_ = address;
    limit_ = end;
    begin_ = 0;
    end_ = 0;
  }

  /* Makes record `index` (below the end) and those up to held_to() readable. */
  __aicore__ inline void hold(uint64_t index) {
    if (index >= begin_ && index < end_) return;
    uint64_t left = limit_ - index;
    uint32_t count = left < capacity ? static_cast<uint32_t>(left) : capacity;
    AscendC::SetFlag<AscendC::HardEvent::S_MTE2>(0); /* the old records have been read */
    AscendC::WaitFlag<AscendC::HardEvent::S_MTE2>(0);
    AscendC::DataCopyExtParams block{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
    AscendC::DataCopyPadExtParams<uint32_t> pad{false, 0, 0, 0};
    AscendC::LocalTensor<uint32_t> held = local<uint32_t>(offset, capacity * sizeof(T) / sizeof(uint32_t));
    AscendC::DataCopyPad(held, global<uint32_t>(address_ + index * sizeof(T)), block, pad);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(0);
    records_ = reinterpret_cast<__ubuf__ T*>(held.GetPhyAddr());
    begin_ = index;
    end_ = index + count;
  }

  __aicore__ inline uint64_t held_to() const { return end_; }
  __aicore__ inline const __ubuf__ T* at(uint64_t index) const { return records_ + (index - begin_); }

 private:
  uint64_t address_, limit_, begin_, end_;
  __ubuf__ T* records_;
};

/* Reduces the rows of one core's nodes. T: how features are stored. */
template <typename T, typename Source>
class aggregator {
 public:
  __aicore__ inline aggregator(const work& job, Source& source) : w_(job), source_(source) {}

  __aicore__ inline void run() {
    uint32_t tiles = (w_.dim + MAX_TILE - 1) / MAX_TILE;
    uint32_t width = round_up((w_.dim + tiles - 1) / tiles, SLOT_UNIT);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(0);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(1);
    AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(0);
    AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(1);
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(0);
    result_buffer_ = 0;
    for (uint32_t first = 0; first < w_.dim; first += width) {
      begin_tile(first, w_.dim - first < width ? w_.dim - first : width);
      run_tile();
    }
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(1);
    if (result_buffer_ == 0) {
      AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(1);
    } else {
      AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(0);
    }
  }

 private:
  static constexpr uint32_t SLOT_UNIT = UB_BLOCK / sizeof(T);
  static constexpr bool WIDEN = sizeof(T) != sizeof(float);

  static __aicore__ inline uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

  __aicore__ inline void begin_tile(uint32_t first, uint32_t width) {
    first_feature_ = first;
    width_ = width;
    slot_ = round_up(width, SLOT_UNIT);
    uint32_t fit = ROWS_ELEMENTS / slot_;
    capacity_ = fit < MAX_ROWS ? fit : MAX_ROWS;
    fit = RESULTS_BYTES / (slot_ * uint32_t(sizeof(float)));
    result_capacity_ = fit < MAX_RESULTS ? fit : MAX_RESULTS;
    whole_rows_ = width == w_.dim && slot_ == w_.dim;
    edge_ = w_.edge_begin;
    phase_ = w_.phase_begin;
    phase_end_ = w_.edge_begin;
    node_ = w_.node_begin;
    left_ = 0;
    n_results_ = 0;
    weighted_ = w_.edge_begin;
    columns_.init(w_.columns, w_.edge_end);
    nodes_.init(w_.nodes, w_.node_end);
    weights_.init(w_.weights, w_.edge_end);
  }

  __aicore__ inline void run_tile() {
    uint32_t buffer = 0;
    uint32_t pending = 0; /* rows in the other buffer */
    for (;;) {
      source_.poll();
      uint32_t rows = may_load() ? load_rows(buffer) : 0;
      if (pending != 0) {
        reduce_rows(buffer ^ 1, pending);
      } else if (rows == 0) {
        if (phase_ == w_.phase_end) break;
        if (!source_.wait(next_need())) break; /* recorded by the library; the host discards the results */
      }
      pending = rows;
      buffer ^= 1;
    }
    if (left_ == 0) skip_isolated();
    if (n_results_ != 0) store_results();
  }

  /* --- loading ---------------------------------------------------------------------------------------------------------------- */

  __aicore__ inline uint32_t next_need() { return GNN_FIELD(gnn_phase, w_.phases + phase_ * sizeof(struct gnn_phase), need); }

  /* Whether the next edge's row is there. phase_ is the phase that begins at phase_end_. */
  __aicore__ inline bool may_load() {
    while (edge_ == phase_end_) {
      if (phase_ == w_.phase_end || !source_.ready(next_need())) return false;
      phase_end_ = GNN_FIELD(gnn_phase, w_.phases + phase_ * sizeof(struct gnn_phase), edge_end);
      phase_ += 1;
    }
    return true;
  }

  __aicore__ inline uint32_t load_rows(uint32_t buffer) {
    wait_rows_free(buffer);
    AscendC::LocalTensor<T> target = local<T>(UB_ROWS + buffer * ROWS_ELEMENTS * uint32_t(sizeof(T)), ROWS_ELEMENTS);
    uint32_t rows = 0;
    do {
      columns_.hold(edge_);
      uint64_t end = phase_end_ < columns_.held_to() ? phase_end_ : columns_.held_to();
      if (end - edge_ > capacity_ - rows) end = edge_ + (capacity_ - rows);
      const __ubuf__ uint32_t* column = columns_.at(edge_);
      uint32_t count = static_cast<uint32_t>(end - edge_);
      for (uint32_t i = 0; i < count;) {
        uint32_t first = column[i];
        uint32_t run = 1;
        while (i + run < count && column[i + run] == first + run) run += 1;
        copy_rows(target[(rows + i) * slot_], first, run);
        i += run;
      }
      rows += count;
      edge_ = end;
    } while (rows < capacity_ && edge_ != phase_end_);
    if (buffer == 0) {
      AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
    } else {
      AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(1);
    }
    return rows;
  }

  __aicore__ inline void copy_rows(const AscendC::LocalTensor<T>& target, uint32_t first, uint32_t count) {
    uint64_t source = w_.table + first * w_.row_bytes;
    if (whole_rows_) {
      AscendC::DataCopy(target, global<T>(source), count * width_);
      return;
    }
    uint32_t bytes = width_ * uint32_t(sizeof(T));
    AscendC::DataCopyExtParams blocks{static_cast<uint16_t>(count), bytes, static_cast<uint32_t>(w_.row_bytes - bytes), 0, 0};
    AscendC::DataCopyPadExtParams<T> pad{true, 0, static_cast<uint8_t>(slot_ - width_), T(0)};
    AscendC::DataCopyPad(target, global<T>(source + first_feature_ * sizeof(T)), blocks, pad);
  }

  __aicore__ inline void wait_rows_free(uint32_t buffer) {
    if (buffer == 0) {
      AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(0);
    } else {
      AscendC::WaitFlag<AscendC::HardEvent::V_MTE2>(1);
    }
  }

  __aicore__ inline void rows_free(uint32_t buffer) {
    if (buffer == 0) {
      AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(0);
    } else {
      AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(1);
    }
  }

  /* --- reducing --------------------------------------------------------------------------------------------------------------- */

  __aicore__ inline AscendC::LocalTensor<float> result() const {
    uint32_t buffer = UB_RESULTS + result_buffer_ * RESULTS_BYTES;
    return local<float>(buffer + n_results_ * slot_ * uint32_t(sizeof(float)), slot_);
  }

  __aicore__ inline void reduce_rows(uint32_t buffer, uint32_t rows) {
    if (buffer == 0) {
      AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
    } else {
      AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(1);
    }
    AscendC::LocalTensor<float> values;
    if constexpr (WIDEN) {
      values = local<float>(UB_WIDE, ROWS_ELEMENTS);
      AscendC::LocalTensor<T> stored = local<T>(UB_ROWS + buffer * ROWS_ELEMENTS * uint32_t(sizeof(T)), ROWS_ELEMENTS);
      AscendC::Cast(values, stored, AscendC::RoundMode::CAST_NONE, rows * slot_);
      AscendC::PipeBarrier<PIPE_V>();
      rows_free(buffer);
    } else {
      values = local<float>(UB_ROWS + buffer * ROWS_ELEMENTS * uint32_t(sizeof(float)), ROWS_ELEMENTS);
    }
    if (w_.weights != 0) weigh(values, rows);
    uint32_t at = 0;
    while (at < rows) {
      if (left_ == 0) {
        skip_isolated();
        left_ = degree_;
      }
      uint32_t take = left_ < rows - at ? left_ : rows - at;
      reduce_part(values[at * slot_], take, left_ == degree_);
      at += take;
      left_ -= take;
      if (left_ == 0) finish_node();
    }
    if constexpr (!WIDEN) rows_free(buffer);
  }

  /* Multiplies each row with its edge's weight. Rows are reduced in the order of columns, which is the order of weights. */
  __aicore__ inline void weigh(const AscendC::LocalTensor<float>& values, uint32_t rows) {
    for (uint32_t at = 0; at < rows;) {
      weights_.hold(weighted_);
      uint64_t held = weights_.held_to() - weighted_;
      uint32_t count = held < rows - at ? static_cast<uint32_t>(held) : rows - at;
      const __ubuf__ float* weight = weights_.at(weighted_);
      for (uint32_t i = 0; i < count; ++i) {
        AscendC::LocalTensor<float> row = values[(at + i) * slot_];
        AscendC::Muls(row, row, static_cast<float>(weight[i]), static_cast<int32_t>(slot_));
      }
      at += count;
      weighted_ += count;
    }
    AscendC::PipeBarrier<PIPE_V>();
  }

  /* Reduces `rows` rows (destroying them) into the node's result, which is empty when `fresh`. */
  __aicore__ inline void reduce_part(const AscendC::LocalTensor<float>& rows, uint32_t count, bool fresh) {
    while (count > (fresh ? 2u : 1u)) {
      uint32_t kept = (count + 1) / 2;
      combine(rows, rows, rows[kept * slot_], (count - kept) * slot_);
      count = kept;
    }
    if (!fresh) {
      combine(result(), result(), rows, slot_);
    } else if (count == 2) {
      combine(result(), rows, rows[slot_], slot_);
    } else {
      AscendC::DataCopy(result(), rows, slot_);
      AscendC::PipeBarrier<PIPE_V>();
    }
  }

  __aicore__ inline void combine(const AscendC::LocalTensor<float>& target, const AscendC::LocalTensor<float>& left,
                                 const AscendC::LocalTensor<float>& right, uint32_t count) {
    if (w_.reduce == GNN_MAX) {
      AscendC::Max(target, left, right, static_cast<int32_t>(count));
    } else {
      AscendC::Add(target, left, right, static_cast<int32_t>(count));
    }
    AscendC::PipeBarrier<PIPE_V>();
  }

  /* --- nodes and results ------------------------------------------------------------------------------------------------------ */

  /* Goes to the next node with neighbours; those before it get zeros. */
  __aicore__ inline void skip_isolated() {
    while (node_ < w_.node_end) {
      nodes_.hold(node_);
      const __ubuf__ struct gnn_node* node = nodes_.at(node_);
      row_ = node->row;
      degree_ = node->degree;
      node_ += 1;
      if (degree_ != 0) return;
      AscendC::Duplicate(result(), 0.0f, static_cast<int32_t>(slot_));
      AscendC::PipeBarrier<PIPE_V>();
      add_result();
    }
  }

  __aicore__ inline void finish_node() {
    if (w_.reduce == GNN_MEAN) {
      AscendC::Muls(result(), result(), 1.0f / static_cast<float>(degree_), static_cast<int32_t>(slot_));
      AscendC::PipeBarrier<PIPE_V>();
    }
    add_result();
  }

  __aicore__ inline void add_result() {
    result_row_[n_results_] = row_;
    n_results_ += 1;
    if (n_results_ == result_capacity_) store_results();
  }

  /* Sends the buffer of results to GM, adjacent rows in one copy, and takes the other. */
  __aicore__ inline void store_results() {
    AscendC::LocalTensor<float> source = local<float>(UB_RESULTS + result_buffer_ * RESULTS_BYTES, RESULTS_BYTES / sizeof(float));
    if (result_buffer_ == 0) {
      AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(0);
      AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);
    } else {
      AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(1);
      AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(1);
    }
    for (uint32_t i = 0; i < n_results_;) {
      uint32_t run = 1;
      while (i + run < n_results_ && result_row_[i + run] == result_row_[i] + run) run += 1;
      store_rows(source[i * slot_], result_row_[i], run);
      i += run;
    }
    if (result_buffer_ == 0) {
      AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(0);
      AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(1);
    } else {
      AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(1);
      AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(0);
    }
    result_buffer_ ^= 1;
    n_results_ = 0;
  }

  __aicore__ inline void store_rows(const AscendC::LocalTensor<float>& source, uint32_t first, uint32_t count) {
    uint64_t target = w_.results + (uint64_t(first) * w_.dim + first_feature_) * sizeof(float);
    uint32_t bytes = width_ * uint32_t(sizeof(float));
    uint32_t gap = (slot_ * uint32_t(sizeof(float)) - round_up(bytes, UB_BLOCK)) / UB_BLOCK;
    AscendC::DataCopyExtParams blocks{static_cast<uint16_t>(count), bytes, gap, static_cast<uint32_t>((w_.dim - width_) * sizeof(float)), 0};
    AscendC::DataCopyPad(global<float>(target), source, blocks);
  }

  const work& w_;
  Source& source_;
  record_stream<uint32_t, UB_COLUMNS, COLUMNS> columns_;
  record_stream<struct gnn_node, UB_NODES, NODES> nodes_;
  record_stream<float, UB_WEIGHTS, WEIGHTS> weights_;
  uint32_t first_feature_, width_, slot_, capacity_, result_capacity_; /* slot: features from row to row in UB */
  bool whole_rows_;
  uint64_t edge_, phase_end_, weighted_; /* weighted: rows up to here have been multiplied */
  uint32_t phase_;
  uint32_t node_, row_, degree_, left_; /* left: rows of the current node still to come */
  uint32_t result_buffer_, n_results_;
  uint32_t result_row_[MAX_RESULTS];
};

template <typename Source>
__aicore__ inline void aggregate(const work& job, Source& source) {
  if (job.dtype == GNN_F16) {
    aggregator<half, Source>(job, source).run();
  } else {
    aggregator<float, Source>(job, source).run();
  }
}

}  // namespace gnn

#endif
