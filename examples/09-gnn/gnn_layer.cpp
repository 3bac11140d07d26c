/* 09: layers of a graph network: a node's new features are the mean of its own and its neighbours', where below zero zero.
 *
 * A PE has a block of nodes. Its table of rows has its own nodes first, then a staging area: one row for each remote node that a neighbour
 * of it is. The kernel fetches each of those once, from its owner's table, and adds up rows that are all in its own memory. Two tables: a layer
 * reads one and writes its own rows of the other. Between layers stands a barrier: then every PE has fetched, and every row is written.
 *
 * UB, bytes from 0: the sum and a row, 16 KiB each: 32 KiB (the library keeps its 40 KiB at the top of at least 192). Event id 0. */
#include "kernel_operator.h"
#include "shmem.h"

namespace {

constexpr uint32_t PIECE = 4096; /* features added at once */

struct graph {
  __gm__ float* tables;     /* [2][rows][dim] */
  __gm__ uint32_t* fetch;   /* [n_fetch][2]: PE, row there */
  __gm__ uint32_t* begin;   /* [n_own + 1]: first entry of each node in columns */
  __gm__ uint32_t* columns; /* rows of the table: a node's own, and its neighbours' */
  uint32_t n_own, n_fetch, staging, rows, dim;
};

__aicore__ inline uint32_t read(__gm__ uint32_t* at) { return AscendC::ReadGmByPassDCache<uint32_t>(at); }

__aicore__ inline AscendC::LocalTensor<float> piece(uint32_t number) {
  return AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, number * PIECE * uint32_t(sizeof(float)), PIECE);
}

__aicore__ inline AscendC::GlobalTensor<float> memory(__gm__ float* at, uint32_t n) {
  AscendC::GlobalTensor<float> tensor;
  tensor.SetGlobalBuffer(at, n);
  return tensor;
}

template <AscendC::HardEvent event>
__aicore__ inline void order() {
  AscendC::SetFlag<event>(0);
  AscendC::WaitFlag<event>(0);
}

/* The staging rows of a table, all asked for at once. */
__aicore__ inline void fetch_rows(const graph& g, __gm__ float* table) {
  for (uint32_t i = 0; i < g.n_fetch; ++i) {
    int pe = int(read(g.fetch + 2 * i));
    uint64_t row = read(g.fetch + 2 * i + 1);
    shmem_get_nbi(table + uint64_t(g.staging + i) * g.dim, table + row * g.dim, g.dim, pe);
  }
  shmem_quiet();
  order<AscendC::HardEvent::S_MTE2>(); /* MTE2 reads the rows: not before the quiet */
}

__aicore__ inline void aggregate(const graph& g, __gm__ float* table, __gm__ float* next, uint32_t node) {
  uint32_t begin = read(g.begin + node), end = read(g.begin + node + 1);
  AscendC::DataCopyPadExtParams<float> pad{false, 0, 0, 0};
  for (uint32_t first = 0; first < g.dim; first += PIECE) {
    uint32_t n = g.dim - first < PIECE ? g.dim - first : PIECE;
    AscendC::DataCopyExtParams block{1, uint32_t(n * sizeof(float)), 0, 0, 0};
    for (uint32_t i = begin; i < end; ++i) {
      uint64_t row = read(g.columns + i);
      AscendC::DataCopyPad(piece(i == begin ? 0 : 1), memory(table + row * g.dim + first, n), block, pad);
      order<AscendC::HardEvent::MTE2_V>();
      AscendC::PipeBarrier<PIPE_V>();
      if (i != begin) AscendC::Add(piece(0), piece(0), piece(1), int32_t(n));
      order<AscendC::HardEvent::V_MTE2>();
    }
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(piece(0), piece(0), 1.0f / float(end - begin), int32_t(n));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Relu(piece(0), piece(0), int32_t(n));
    order<AscendC::HardEvent::V_MTE3>();
    AscendC::DataCopyPad(memory(next + uint64_t(node) * g.dim + first, n), piece(0), block);
    order<AscendC::HardEvent::MTE3_MTE2>();
  }
}

}  // namespace

extern "C" __global__ __aicore__ void gnn_layers(GM_ADDR ctx, GM_ADDR tables, GM_ADDR fetch, GM_ADDR begin, GM_ADDR columns, uint32_t n_own,
                                                 uint32_t n_fetch, uint32_t staging, uint32_t rows, uint32_t dim, uint32_t layers) {
  shmem_guard shmem = shmem_attach(ctx);
  graph g = {reinterpret_cast<__gm__ float*>(tables), reinterpret_cast<__gm__ uint32_t*>(fetch), reinterpret_cast<__gm__ uint32_t*>(begin),
             reinterpret_cast<__gm__ uint32_t*>(columns), n_own, n_fetch, staging, rows, dim};
  uint64_t table_floats = uint64_t(rows) * dim;
  for (uint32_t layer = 0; layer < layers && shmem_error() == SHMEM_OK; ++layer) {
    __gm__ float* table = g.tables + (layer % 2) * table_floats;
    __gm__ float* next = g.tables + ((layer + 1) % 2) * table_floats;
    fetch_rows(g, table);
    for (uint32_t node = 0; node < n_own; ++node) aggregate(g, table, next, node);
    shmem_barrier_all();
  }
}
