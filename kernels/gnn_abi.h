/* The job description that `npushmem gnn` hands to the aggregation kernels, in plain C. cli/src/gnn/abi.rs declares the same layouts for the host;
 * both sides assert the offsets.
 *
 * A table is an array of feature rows without gaps, dim elements each. Columns are row numbers of the table: for gnn_aggregate own rows
 * [0, staging_row) and one staging slot for each distinct remote row from staging_row on; for gnn_allgather every row of the graph in order of
 * owner. All addresses are global-memory addresses of the PE that runs the kernel. Everything but the table's staging area, the results and the
 * progress lines is constant while a kernel runs.
 */
#ifndef GNN_ABI_H
#define GNN_ABI_H

#include <stdint.h>

#define GNN_MAGIC 0x4a4e4e47u /* "GNNJ" in memory order */
#define GNN_VERSION 1u

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

/* Requests that are rung together: slots [first_slot, first_slot + count) from one PE. */
struct gnn_batch {
  uint32_t pe;
  uint32_t count;
  uint32_t first_slot; /* staging slot, and index into fetch */
  uint32_t reserved;
};

/* The work of one core. One line. */
struct gnn_core {
  uint32_t node_begin, node_end;   /* in nodes */
  uint32_t phase_begin, phase_end; /* in phases */
  uint64_t edge_begin, edge_end;   /* in columns; edges of a node are consecutive, in the order of nodes */
  uint32_t batch_begin, batch_end; /* in batches; gnn_aggregate */
  uint32_t send_begin, send_end;   /* table rows that the core sends to every PE; gnn_allgather */
  uint8_t reserved[16];
};

/* Second argument of both kernels: the address of one of these. Two lines. */
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
  uint64_t table;       /* symmetric: the same offset in every PE's heap */
  uint64_t results;     /* float[own rows][dim] */
  uint64_t columns;     /* uint32_t[] */
  uint64_t nodes;       /* struct gnn_node[] */
  uint64_t phases;      /* struct gnn_phase[] */
  uint64_t batches;     /* struct gnn_batch[] */
  uint64_t fetch;       /* uint32_t[]: row at its owner, for each staging slot */
  uint64_t cores;       /* struct gnn_core[n_cores] */
  uint64_t progress;    /* n_cores lines; zeroed by the host before each launch of gnn_aggregate */
  uint32_t window;      /* batches that a core keeps in flight, 1 .. GNN_MAX_WINDOW */
  uint32_t reserved0;
  uint8_t reserved[16];
};
#define GNN_MAX_WINDOW 16u

#endif
