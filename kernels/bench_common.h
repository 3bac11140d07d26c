/* What the microbenchmarks of `npushmem bench` share: parameters, samples, the system counter. Included by kernels/bench_*.cpp.
 *
 * Every kernel takes the same arguments:
 *   ctx, a, b     the context; two symmetric buffers
 *   out           own memory: (samples + 1) words a core, each core's from a 64-byte line on: word 0 is the error, word 1 + s the ticks of
 *                 sample s
 *   engine        SHMEM_ENGINE_*
 *   kind          which call (each file says)
 *   peer          the PE that is talked to, or a team
 *   n             bytes of a call, or what the file says
 *   calls         calls of a sample
 *   samples       samples; one more is run first, and not counted
 *   extra         what the file says
 * Times are those of the system counter, taken by each core: its first reading comes after the cores of the launch have met.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include "kernel_operator.h"
#include "shmem.h"

namespace bench {

__aicore__ inline uint64_t now() { return static_cast<uint64_t>(AscendC::GetSystemCycle()); }

__aicore__ inline shmem_options with_engine(uint64_t engine) {
  shmem_options options;
  options.engine = static_cast<uint32_t>(engine);
  return options;
}

/* The cores of a launch meet, so that they measure the same stretch of time. */
__aicore__ inline void meet() {
  if (AscendC::GetBlockNum() > 1) AscendC::SyncAll();
}

/* This core's words of `out`. */
struct results {
  uint64_t line;
  __aicore__ inline results(GM_ADDR out, uint64_t samples) {
    uint64_t bytes = ((samples + 1) * 8 + SHMEM_LINE - 1) / SHMEM_LINE * SHMEM_LINE;
    line = reinterpret_cast<uint64_t>(out) + static_cast<uint64_t>(AscendC::GetBlockIdx()) * bytes;
  }
  __aicore__ inline void word(uint64_t index, uint64_t value) {
    AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(line + 8 * index), value);
  }
  /* Sample `turn` - 1; turn 0 warms up. */
  __aicore__ inline void sample(uint64_t turn, uint64_t ticks) {
    if (turn > 0) word(turn, ticks);
  }
  __aicore__ inline void end() { word(0, shmem_error()); }
};

__aicore__ inline __gm__ uint8_t* at(GM_ADDR base, uint64_t offset) { return base + offset; }
__aicore__ inline __gm__ uint64_t* word_at(GM_ADDR base, uint64_t offset) { return reinterpret_cast<__gm__ uint64_t*>(base + offset); }

}  // namespace bench

#endif
