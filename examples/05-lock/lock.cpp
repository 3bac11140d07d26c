/* 05: a lock over all PEs, in which nobody polls another PE's memory: the queue lock of Mellor-Crummey and Scott.
 *
 * Three words, a line each, so that atomics and plain puts never share one:
 *   tail  on PE 0   who came last, as PE + 1; 0: nobody has the lock. Touched by atomics only
 *   next  own       who comes after this PE, as PE + 1; put by that PE
 *   turn  own       set by the PE before when it hands the lock over; this PE waits here, in its own memory
 *
 * What is protected: the word `counter` on PE 0, read, incremented and written back `rounds` times by every PE, by plain g and p. */
#include "kernel_operator.h"
#include "shmem.h"

namespace {

constexpr uint64_t LINE = 8; /* words of 64 bits in a line */

class queue_lock {
 public:
  __aicore__ inline explicit queue_lock(__gm__ uint64_t* words) : tail_(words), next_(words + LINE), turn_(words + 2 * LINE) {}

  __aicore__ inline void acquire() {
    int me = shmem_my_pe();
    shmem_p(next_, uint64_t(0), me);
    shmem_p(turn_, uint64_t(0), me);
    shmem_quiet(); /* before anybody learns of this PE */
    uint64_t before = shmem_atomic_swap(tail_, uint64_t(me) + 1, 0);
    if (before == 0) return;
    shmem_p(next_, uint64_t(me) + 1, int(before) - 1);
    shmem_wait_until(turn_, SHMEM_CMP_EQ, 1);
  }

  __aicore__ inline void release() {
    uint64_t me = uint64_t(shmem_my_pe());
    shmem_quiet(); /* what was done under the lock comes before the next owner */
    if (shmem_atomic_compare_swap(tail_, me + 1, 0, 0) == me + 1) return;
    shmem_wait_until(next_, SHMEM_CMP_NE, 0); /* somebody came, and is about to say who */
    uint64_t after = AscendC::ReadGmByPassDCache<uint64_t>(next_);
    shmem_p(turn_, uint64_t(1), int(after) - 1);
  }

 private:
  __gm__ uint64_t* tail_;
  __gm__ uint64_t* next_;
  __gm__ uint64_t* turn_;
};

}  // namespace

extern "C" __global__ __aicore__ void count_under_lock(GM_ADDR ctx, GM_ADDR words, GM_ADDR counter, uint64_t rounds) {
  shmem_guard shmem = shmem_attach(ctx);
  queue_lock lock(reinterpret_cast<__gm__ uint64_t*>(words));
  __gm__ uint64_t* count = reinterpret_cast<__gm__ uint64_t*>(counter);
  for (uint64_t i = 0; i < rounds && shmem_error() == SHMEM_OK; ++i) {
    lock.acquire();
    shmem_p(count, shmem_g(count, 0) + 1, 0);
    lock.release();
  }
  shmem_barrier_all();
}
