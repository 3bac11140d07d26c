/* The job description that `npushmem gnn` hands to the aggregation kernels, in plain C. cli/src/gnn/abi.rs declares the same layouts for the host;
 * both sides assert the offsets.
 *
 * A table is an array of rows without gaps, dim elements each. Columns are row numbers of a table:
 *   gnn_aggregate   own rows [0, staging_row), then a staging slot for each distinct remote row, which the kernel gets from its owner
 *   gnn_allgather   every row of the graph in order of owner
 *   gnn_scatter     own rows [0, staging_row), then a staging slot for each row that a peer sends: that peer's contributions to an own row
 * Layer 0 reads `table`; layer k > 0 reads outputs[(k - 1) % 2], a table of f32 like it, and every layer k writes its own rows to
 * outputs[k % 2]. All addresses are global-memory addresses of the PE that runs the kernel, those of tables and `sums` at the same offset in
 * every PE's heap. Everything but the tables' staging areas, the outputs, `sums` and the progress lines is constant while a kernel runs.
 */
#ifndef GNN_ABI_H
#define GNN_ABI_H

#include <stdint.h>

#define GNN_MAGIC 0x4a4e4e47u /* "GNNJ" in memory order */
#define GNN_VERSION 2u

#define GNN_F32 0u
#define GNN_F16 1u /* stored in 16 bits, reduced in 32 */

#define GNN_SUM 0u
#define GNN_MEAN 1u
#define GNN_MAX 2u

/* Line that a core publishes its progress in; one writer each. */
#define GNN_PROGRESS_STRIDE 64u /* bytes */

/* One node of a core, in the order in which the core finishes them. */
struct gnn_node {
  uint32_t row;    /* row of the result, and of the PE's own features */
  uint32_t degree; /* neighbours; 0: the result is zeros */
};

/* Edges of a core that wait for the same progress: those from the end of the previous phase to edge_end. */
struct gnn_phase {
  uint64_t edge_end; /* in columns */
  uint32_t need;     /* batches that every core must have received (or all it has) before these edges may be read */
  uint32_t reserved;
};

/* Rows that travel together. gnn_aggregate: slots [first_slot, first_slot + count) from one PE, a request each, rung together. gnn_scatter:
 * rows [first_slot, first_slot + count) of `sums` to staging slots of one PE, one transfer. */
struct gnn_batch {
  uint32_t pe;
  uint32_t count;
  uint32_t first_slot; /* gnn_aggregate: staging slot, and index into fetch; gnn_scatter: row of `sums` */
  uint32_t target;     /* gnn_scatter: first staging slot on pe */
};

/* The work of one core. One line. */
struct gnn_core {
  uint32_t node_begin, node_end;   /* in nodes */
  uint32_t phase_begin, phase_end; /* in phases */
  uint64_t edge_begin, edge_end;   /* in columns; edges of a node are consecutive, in the order of nodes */
  uint32_t batch_begin, batch_end; /* in batches; gnn_aggregate, and gnn_scatter's sending records */
  uint32_t send_begin, send_end;   /* table rows that the core computes and sends to every PE; gnn_allgather */
  uint8_t reserved[16];
};

/* Second argument of the kernels: the address of one of these. Three lines. */
struct gnn_job {
  uint32_t magic;
  uint16_t version;
  uint16_t size;
  uint32_t dim;         /* features a row, at least 1 */
  uint32_t dtype;       /* GNN_F32 or GNN_F16 */
  uint32_t reduce;      /* GNN_SUM, GNN_MEAN or GNN_MAX */
  uint32_t engine;      /* SHMEM_ENGINE_* for all transfers */
  uint32_t n_cores;     /* as many blocks must run */
  uint32_t staging_row; /* first staging slot, as a row of the table */
  uint64_t table;       /* what layer 0 reads; dtype */
  uint64_t outputs[2];  /* float tables that layers write in turn; the second only with more than one layer */
  uint64_t columns;     /* uint32_t[] */
  uint64_t weights;     /* float[], one a column; 0: every weight is 1 */
  uint64_t nodes;       /* struct gnn_node[] */
  uint64_t phases;      /* struct gnn_phase[] */
  uint64_t batches;     /* struct gnn_batch[] */
  uint64_t fetch;       /* uint32_t[]: row at its owner, for each staging slot */
  uint64_t cores;       /* struct gnn_core[n_cores]; for gnn_scatter n_cores more, for what it sends */
  uint64_t progress;    /* layers x n_cores lines; zeroed by the host before each launch of gnn_aggregate */
  uint64_t sums;        /* gnn_scatter: float[rows to send][dim] */
  uint32_t window;      /* batches that a core keeps in flight, 1 .. GNN_MAX_WINDOW */
  uint32_t layers;      /* 1 .. GNN_MAX_LAYERS */
  uint32_t output_row;  /* row of the outputs that row 0 of the PE's nodes is written to */
  uint8_t reserved[52];
};
#define GNN_MAX_WINDOW 16u
#define GNN_MAX_LAYERS 64u

#endif
