/* 08: the tokens of a mixture of experts. Three kernels on the same parameters, one after the other:
 *   moe_dispatch   sends each token's row to the PEs that have its experts
 *   moe_experts    computes (no communication; in a model, the experts' matrix products)
 *   moe_combine    brings the experts' rows back and adds them up, weighted
 *
 * Who gets how many rows is known only when every PE has counted. So the counts go first, one row of numbers for each core of each PE: from them
 * every core knows where each of its rows goes, the receivers' memory has no gaps, and no request carries padding.
 *
 * Expert e belongs to PE e / per_pe. A PE's received rows are in order of expert, then of sender (PE, core), then of token. A core has the tokens
 * [tokens * core / cores, tokens * (core + 1) / cores).
 *
 * UB, bytes from 0 (the library keeps its 40 KiB at the top of at least 192), event id 0:
 *   moe_dispatch   four arrays of MAX_EXPERTS int32: 16 KiB
 *   others         a piece of a row as half 8 KiB, as float 16 KiB, the sum 16 KiB: 40 KiB */
#include "kernel_operator.h"
#include "shmem.h"

namespace {

constexpr uint32_t MAX_EXPERTS = 1024;
constexpr uint32_t MAX_TOP_K = 16;
constexpr uint32_t GROUP = 8;        /* tokens whose rows are fetched together; main.rs takes memory for two groups a core */
constexpr uint32_t PIECE = 4096;     /* features computed at once */
constexpr uint32_t COUNTS_UNIT = 16; /* int32 in a line of 64 bytes: each core writes lines of its own */

/* What all three kernels are told. Addresses are symmetric. */
struct job {
  __gm__ half* tokens;       /* [n_tokens][hidden] */
  __gm__ int32_t* routes;    /* [n_tokens][top_k]: experts */
  __gm__ float* weights;     /* [n_tokens][top_k] */
  __gm__ int32_t* slots;     /* [n_tokens][top_k]: row at the expert's PE; moe_dispatch tells moe_combine */
  __gm__ int32_t* counts;    /* [cores][width], then [pes][cores][width]: this PE's, and everybody's */
  __gm__ int32_t* starts;    /* [per_pe + 1]: first received row of each own expert, and the end */
  __gm__ half* received;     /* [rows][hidden] */
  __gm__ half* staging;      /* [cores][2][GROUP][top_k][hidden] */
  __gm__ half* results;      /* [n_tokens][hidden] */
  uint32_t n_tokens, hidden, top_k, experts;
  /* What follows from them. */
  uint32_t me, pes, core, cores;
  uint32_t per_pe; /* experts of a PE; the last ones may have fewer */
  uint32_t width;  /* int32 in a row of counts */
  uint32_t token_begin, token_end;
};

#define MOE_PARAMETERS                                                                                                                  \
  GM_ADDR ctx, GM_ADDR tokens, GM_ADDR routes, GM_ADDR weights, GM_ADDR slots, GM_ADDR counts, GM_ADDR starts, GM_ADDR received,        \
      GM_ADDR staging, GM_ADDR results, uint32_t n_tokens, uint32_t hidden, uint32_t top_k, uint32_t experts
#define MOE_JOB \
  make_job(tokens, routes, weights, slots, counts, starts, received, staging, results, n_tokens, hidden, top_k, experts)

__aicore__ inline job make_job(GM_ADDR tokens, GM_ADDR routes, GM_ADDR weights, GM_ADDR slots, GM_ADDR counts, GM_ADDR starts,
                               GM_ADDR received, GM_ADDR staging, GM_ADDR results, uint32_t n_tokens, uint32_t hidden, uint32_t top_k,
                               uint32_t experts) {
  job j;
  j.tokens = reinterpret_cast<__gm__ half*>(tokens);
  j.routes = reinterpret_cast<__gm__ int32_t*>(routes);
  j.weights = reinterpret_cast<__gm__ float*>(weights);
  j.slots = reinterpret_cast<__gm__ int32_t*>(slots);
  j.counts = reinterpret_cast<__gm__ int32_t*>(counts);
  j.starts = reinterpret_cast<__gm__ int32_t*>(starts);
  j.received = reinterpret_cast<__gm__ half*>(received);
  j.staging = reinterpret_cast<__gm__ half*>(staging);
  j.results = reinterpret_cast<__gm__ half*>(results);
  j.n_tokens = n_tokens;
  j.hidden = hidden;
  j.top_k = top_k;
  j.experts = experts;
  j.me = uint32_t(shmem_my_pe());
  j.pes = uint32_t(shmem_n_pes());
  j.core = uint32_t(shmem_my_core());
  j.cores = uint32_t(shmem_n_cores());
  j.per_pe = (experts + j.pes - 1) / j.pes;
  j.width = (experts + COUNTS_UNIT - 1) / COUNTS_UNIT * COUNTS_UNIT;
  j.token_begin = uint32_t(uint64_t(n_tokens) * j.core / j.cores);
  j.token_end = uint32_t(uint64_t(n_tokens) * (j.core + 1) / j.cores);
  return j;
}

/* One value of own memory, not through the data cache: the host or another PE wrote it. */
template <typename T>
__aicore__ inline T read(__gm__ T* at) {
  return AscendC::ReadGmByPassDCache<T>(at);
}

template <typename T>
__aicore__ inline AscendC::GlobalTensor<T> memory(__gm__ T* at, uint64_t n) {
  AscendC::GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(at, n);
  return tensor;
}

template <typename T>
__aicore__ inline void copy_in(const AscendC::LocalTensor<T>& to, __gm__ T* from, uint32_t n) {
  AscendC::DataCopyExtParams block{1, uint32_t(n * sizeof(T)), 0, 0, 0};
  AscendC::DataCopyPadExtParams<T> pad{false, 0, 0, 0};
  AscendC::DataCopyPad(to, memory(from, n), block, pad);
}

template <typename T>
__aicore__ inline void copy_out(__gm__ T* to, const AscendC::LocalTensor<T>& from, uint32_t n) {
  AscendC::DataCopyExtParams block{1, uint32_t(n * sizeof(T)), 0, 0, 0};
  AscendC::DataCopyPad(memory(to, n), from, block);
}

template <AscendC::HardEvent event>
__aicore__ inline void order() {
  AscendC::SetFlag<event>(0);
  AscendC::WaitFlag<event>(0);
}

/* --- dispatch ------------------------------------------------------------------------------------------------------------------- */

class dispatcher {
 public:
  __aicore__ inline explicit dispatcher(const job& j)
      : j_(j), mine_(array(0)), row_(array(1)), total_(array(2)), next_(array(3)) {}

  /* How many rows this core has for each expert, to this PE's counts. */
  __aicore__ inline void count() {
    zero(mine_);
    order<AscendC::HardEvent::V_S>();
    for (uint32_t i = j_.token_begin * j_.top_k; i < j_.token_end * j_.top_k; ++i) {
      uint32_t expert = uint32_t(read(j_.routes + i));
      mine_.SetValue(expert, mine_.GetValue(expert) + 1);
    }
    order<AscendC::HardEvent::S_MTE3>();
    copy_out(j_.counts + j_.core * j_.width, mine_, j_.width);
    order<AscendC::HardEvent::MTE3_S>();
  }

  /* From everybody's counts: where this core's next row for each expert goes, and where this PE's experts' rows start. */
  __aicore__ inline void place() {
    __gm__ int32_t* all = j_.counts + j_.cores * j_.width;
    uint32_t senders = j_.pes * j_.cores, self = j_.me * j_.cores + j_.core;
    zero(total_);
    zero(next_);
    for (uint32_t sender = 0; sender < senders; ++sender) {
      if (sender == self) {
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Adds(next_, total_, 0, int32_t(j_.width)); /* those before this core */
      }
      order<AscendC::HardEvent::V_MTE2>();
      copy_in(row_, all + uint64_t(sender) * j_.width, j_.width);
      order<AscendC::HardEvent::MTE2_V>();
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Add(total_, total_, row_, int32_t(j_.width));
    }
    order<AscendC::HardEvent::V_S>();
    int32_t start = 0;
    for (uint32_t expert = 0; expert < j_.experts; ++expert) {
      if (expert % j_.per_pe == 0) start = 0; /* another PE's memory */
      bool own = expert / j_.per_pe == j_.me && j_.core == 0;
      if (own) AscendC::WriteGmByPassDCache<int32_t>(j_.starts + expert % j_.per_pe, start);
      next_.SetValue(expert, next_.GetValue(expert) + start);
      start += total_.GetValue(expert);
      if (own) AscendC::WriteGmByPassDCache<int32_t>(j_.starts + expert % j_.per_pe + 1, start);
    }
  }

  __aicore__ inline void send() {
    for (uint32_t token = j_.token_begin; token < j_.token_end; ++token) {
      for (uint32_t k = 0; k < j_.top_k; ++k) {
        uint32_t at = token * j_.top_k + k;
        uint32_t expert = uint32_t(read(j_.routes + at));
        int32_t slot = next_.GetValue(expert);
        next_.SetValue(expert, slot + 1);
        AscendC::WriteGmByPassDCache<int32_t>(j_.slots + at, slot);
        shmem_put_nbi(j_.received + uint64_t(slot) * j_.hidden, j_.tokens + uint64_t(token) * j_.hidden, j_.hidden,
                      int(expert / j_.per_pe));
      }
    }
  }

 private:
  __aicore__ static inline AscendC::LocalTensor<int32_t> array(uint32_t number) {
    return AscendC::LocalTensor<int32_t>(AscendC::TPosition::VECCALC, number * MAX_EXPERTS * uint32_t(sizeof(int32_t)), MAX_EXPERTS);
  }
  __aicore__ inline void zero(const AscendC::LocalTensor<int32_t>& what) {
    AscendC::Duplicate(what, 0, int32_t(j_.width));
    AscendC::PipeBarrier<PIPE_V>();
  }

  const job& j_;
  AscendC::LocalTensor<int32_t> mine_, row_, total_, next_;
};

/* --- experts and combine --------------------------------------------------------------------------------------------------------- */

__aicore__ inline AscendC::LocalTensor<half> narrow() { return AscendC::LocalTensor<half>(AscendC::TPosition::VECCALC, 0, PIECE); }
__aicore__ inline AscendC::LocalTensor<float> wide() {
  return AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, PIECE * uint32_t(sizeof(half)), PIECE);
}
__aicore__ inline AscendC::LocalTensor<float> sum() {
  return AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, PIECE * uint32_t(sizeof(half) + sizeof(float)), PIECE);
}

/* A stand-in for an expert: every feature times 1 + expert / experts. */
__aicore__ inline void compute(const job& j, __gm__ half* row, uint32_t expert) {
  half factor = half(1.0f + float(expert) / float(j.experts));
  for (uint32_t first = 0; first < j.hidden; first += PIECE) {
    uint32_t n = j.hidden - first < PIECE ? j.hidden - first : PIECE;
    copy_in(narrow(), row + first, n);
    order<AscendC::HardEvent::MTE2_V>();
    AscendC::Muls(narrow(), narrow(), factor, int32_t(n));
    order<AscendC::HardEvent::V_MTE3>();
    copy_out(row + first, narrow(), n);
    order<AscendC::HardEvent::MTE3_MTE2>(); /* the piece is used again */
  }
}

/* Gets the rows of a group of tokens back, while those of the group before are added up. A group's requests to a PE share a doorbell. */
class combiner {
 public:
  __aicore__ inline explicit combiner(const job& j) : j_(j) {}

  __aicore__ inline void run() {
    fetch(j_.token_begin);
    for (uint32_t first = j_.token_begin; first < j_.token_end && shmem_error() == SHMEM_OK; first += GROUP) {
      fetch(first + GROUP);
      for (uint32_t token = first; token < end_of(first); ++token) {
        for (uint32_t k = 0; k < j_.top_k; ++k) shmem_wait(tickets_[place(token)][k]);
        order<AscendC::HardEvent::S_MTE2>(); /* MTE2 reads the rows: not before the wait */
        for (uint32_t column = 0; column < j_.hidden; column += PIECE) {
          add_up(token, column, j_.hidden - column < PIECE ? j_.hidden - column : PIECE);
        }
      }
    }
  }

 private:
  /* End of the group that starts at token `first`, which may be behind the last. */
  __aicore__ inline uint32_t end_of(uint32_t first) const { return first + GROUP < j_.token_end ? first + GROUP : j_.token_end; }
  /* Where a token is staged: two groups in turn. */
  __aicore__ inline uint32_t place(uint32_t token) const { return (token - j_.token_begin) % (2 * GROUP); }
  __aicore__ inline __gm__ half* staged(uint32_t token, uint32_t k) const {
    return j_.staging + (uint64_t(j_.core * 2 * GROUP + place(token)) * j_.top_k + k) * j_.hidden;
  }

  __aicore__ inline void fetch(uint32_t first) {
    for (uint32_t token = first; token < end_of(first); ++token) {
      for (uint32_t k = 0; k < j_.top_k; ++k) {
        uint32_t at = token * j_.top_k + k;
        int pe = read(j_.routes + at) / int32_t(j_.per_pe);
        shmem_get_nbi(staged(token, k), j_.received + uint64_t(read(j_.slots + at)) * j_.hidden, j_.hidden, pe);
        tickets_[place(token)][k] = shmem_last(pe);
      }
    }
  }

  __aicore__ inline void add_up(uint32_t token, uint32_t first, uint32_t n) {
    for (uint32_t k = 0; k < j_.top_k; ++k) {
      float weight = read(j_.weights + token * j_.top_k + k);
      copy_in(narrow(), staged(token, k) + first, n);
      order<AscendC::HardEvent::MTE2_V>();
      AscendC::Cast(wide(), narrow(), AscendC::RoundMode::CAST_NONE, n);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Muls(k == 0 ? sum() : wide(), wide(), weight, int32_t(n));
      AscendC::PipeBarrier<PIPE_V>();
      if (k != 0) AscendC::Add(sum(), sum(), wide(), int32_t(n));
      order<AscendC::HardEvent::V_MTE2>(); /* the piece is used again */
    }
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Cast(narrow(), sum(), AscendC::RoundMode::CAST_RINT, n);
    order<AscendC::HardEvent::V_MTE3>();
    copy_out(j_.results + uint64_t(token) * j_.hidden + first, narrow(), n);
    AscendC::PipeBarrier<PIPE_ALL>(); /* the pieces, and the staged rows, are used again */
  }

  const job& j_;
  shmem_ticket tickets_[2 * GROUP][MAX_TOP_K]; /* 4 KiB of the core's stack */
};

}  // namespace

extern "C" __global__ __aicore__ void moe_dispatch(MOE_PARAMETERS) {
  shmem_guard shmem = shmem_attach(ctx);
  job j = MOE_JOB;
  dispatcher dispatcher(j);
  dispatcher.count();
  shmem_fcollect(SHMEM_TEAM_WORLD, j.counts + j.cores * j.width, j.counts, uint64_t(j.cores) * j.width);
  if (shmem_error() != SHMEM_OK) return; /* counts that never came lead nowhere */
  dispatcher.place();
  dispatcher.send();
  shmem_barrier_all();
}

extern "C" __global__ __aicore__ void moe_experts(MOE_PARAMETERS) {
  shmem_guard shmem = shmem_attach(ctx); /* only for the numbers of PE and core */
  job j = MOE_JOB;
  for (uint32_t own = 0; own < j.per_pe && j.me * j.per_pe + own < j.experts; ++own) {
    uint32_t end = uint32_t(read(j.starts + own + 1));
    for (uint32_t row = uint32_t(read(j.starts + own)) + j.core; row < end; row += j.cores) {
      compute(j, j.received + uint64_t(row) * j.hidden, j.me * j.per_pe + own);
    }
  }
}

extern "C" __global__ __aicore__ void moe_combine(MOE_PARAMETERS) {
  shmem_guard shmem = shmem_attach(ctx);
  job j = MOE_JOB;
  shmem_barrier_all(); /* every PE's experts are done */
  combiner(j).run();
}
