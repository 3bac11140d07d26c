/* 07: heat spreads over a plate; each PE has a band of rows, and needs one row of each neighbour's at every step.
 *
 * A band lies in the heap twice, as fields 0 and 1; a step reads one and writes the other. A field is (rows of the largest band + 2) x
 * (columns + 2) floats: the edge of the plate does not change, and where a neighbour follows, the outer row (halo) is the neighbour's first or
 * last row, put there by the neighbour. All steps run in one launch: a PE waits for its neighbours alone, by signals that count steps.
 *
 * Why two fields are enough: a neighbour puts row for step s + 2 into the halo that step s reads only after my signal of step s + 1, which
 * I send when step s is done.
 *
 * Vector operands start at multiples of 32 bytes in UB. So the values to the left and to the right of a row are rows of their own there, copied
 * from GM one element earlier and one later.
 *
 * UB, bytes from 0: four pieces of rows, 16 KiB each: 64 KiB (the library keeps its 40 KiB at the top of at least 192). Event id 0. */
#include "kernel_operator.h"
#include "shmem.h"

namespace {

constexpr uint32_t PIECE = 4096; /* columns computed at once */

__aicore__ inline AscendC::LocalTensor<float> piece(uint32_t number) {
  return AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, number * PIECE * uint32_t(sizeof(float)), PIECE);
}

__aicore__ inline AscendC::GlobalTensor<float> memory(__gm__ float* at, uint32_t n) {
  AscendC::GlobalTensor<float> tensor;
  tensor.SetGlobalBuffer(at, n);
  return tensor;
}

__aicore__ inline void load(uint32_t number, __gm__ float* from, uint32_t n) {
  AscendC::DataCopyExtParams block{1, uint32_t(n * sizeof(float)), 0, 0, 0};
  AscendC::DataCopyPadExtParams<float> pad{false, 0, 0, 0};
  AscendC::DataCopyPad(piece(number), memory(from, n), block, pad);
}

class band {
 public:
  /* width: floats from row to row. */
  __aicore__ inline band(GM_ADDR fields, uint64_t field_floats, uint32_t rows, uint32_t width)
      : fields_(reinterpret_cast<__gm__ float*>(fields)), field_floats_(field_floats), rows_(rows), width_(width) {}

  /* Row 0 and row rows + 1 are halo or edge. */
  __aicore__ inline __gm__ float* row(uint64_t field, uint32_t number) const {
    return fields_ + (field % 2) * field_floats_ + uint64_t(number) * width_;
  }

  /* Field to + 1 from field `from`: each value becomes the mean of its four neighbours. */
  __aicore__ inline void step(uint64_t from) const {
    for (uint32_t number = 1; number <= rows_; ++number) {
      for (uint32_t column = 1; column <= width_ - 2; column += PIECE) {
        uint32_t left = width_ - 1 - column;
        mean(from, number, column, left < PIECE ? left : PIECE);
      }
    }
  }

 private:
  __aicore__ inline void mean(uint64_t from, uint32_t number, uint32_t column, uint32_t n) const {
    load(0, row(from, number - 1) + column, n);
    load(1, row(from, number + 1) + column, n);
    load(2, row(from, number) + column - 1, n);
    load(3, row(from, number) + column + 1, n);
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
    AscendC::Add(piece(0), piece(0), piece(1), int32_t(n));
    AscendC::Add(piece(2), piece(2), piece(3), int32_t(n));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(piece(0), piece(0), piece(2), int32_t(n));
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(piece(0), piece(0), 0.25f, int32_t(n));
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);
    AscendC::DataCopyExtParams block{1, uint32_t(n * sizeof(float)), 0, 0, 0};
    AscendC::DataCopyPad(memory(row(from + 1, number) + column, n), piece(0), block);
    /* The pieces are used again, and the row may be sent: everything is done first. Two sets of pieces would overlap copies and sums. */
    AscendC::PipeBarrier<PIPE_ALL>();
  }

  __gm__ float* fields_;
  uint64_t field_floats_;
  uint32_t rows_, width_;
};

}  // namespace

/* signals: two words, a line each: steps that the PE above, and the PE below, have sent. */
extern "C" __global__ __aicore__ void halo(GM_ADDR ctx, GM_ADDR fields, GM_ADDR signals, uint64_t field_floats, uint32_t plate_rows,
                                           uint32_t columns, uint64_t steps) {
  shmem_guard shmem = shmem_attach(ctx);
  uint64_t me = uint64_t(shmem_my_pe()), pes = uint64_t(shmem_n_pes());
  uint32_t rows = uint32_t(plate_rows * (me + 1) / pes - plate_rows * me / pes);
  uint32_t rows_above = me == 0 ? 0 : uint32_t(plate_rows * me / pes - plate_rows * (me - 1) / pes);
  band mine(fields, field_floats, rows, columns + 2);
  __gm__ uint64_t* from_above = reinterpret_cast<__gm__ uint64_t*>(signals);
  __gm__ uint64_t* from_below = from_above + 8;

  for (uint64_t step = 0; step < steps && shmem_error() == SHMEM_OK; ++step) {
    /* A symmetric address may be any place of the heap: the row's place in the neighbour's field, as if it were mine. */
    if (me > 0) {
      shmem_put_signal_nbi(mine.row(step, rows_above + 1), mine.row(step, 1), columns + 2, from_below, step + 1, SHMEM_SIGNAL_SET,
                           int(me - 1));
    }
    if (me + 1 < pes) {
      shmem_put_signal_nbi(mine.row(step, 0), mine.row(step, rows), columns + 2, from_above, step + 1, SHMEM_SIGNAL_SET, int(me + 1));
    }
    if (me > 0) shmem_signal_wait_until(from_above, SHMEM_CMP_GE, step + 1);
    if (me + 1 < pes) shmem_signal_wait_until(from_below, SHMEM_CMP_GE, step + 1);
    /* The rows that were waited for are read by MTE2: not before the wait. */
    AscendC::SetFlag<AscendC::HardEvent::S_MTE2>(0);
    AscendC::WaitFlag<AscendC::HardEvent::S_MTE2>(0);
    mine.step(step);
    shmem_flush(); /* the next step writes the field that was sent from: its rows must have left */
  }
  shmem_barrier_all();
}
