/* Bounded waiting: every loop of the library that waits for somebody else asks `patience::more` between two looks. Used by queue.h
 * (completions, ring space), point.h (wait_until), collect.h (barriers), atomic.h (compare-and-swap loops).
 */
#ifndef SHMEM_IMPL_WAIT_H
#define SHMEM_IMPL_WAIT_H

#include "context.h"

namespace shmem_impl {

/* What is waited for, as errors tell it (abi.h). */
constexpr uint64_t WAIT_COMPLETION = SHMEM_WAIT_COMPLETION;
constexpr uint64_t WAIT_VALUE = SHMEM_WAIT_VALUE;
constexpr uint64_t WAIT_CORE = SHMEM_WAIT_CORE;
constexpr uint64_t WAIT_PE = SHMEM_WAIT_PE;
constexpr uint64_t WAIT_ATOMIC = SHMEM_WAIT_ATOMIC;

constexpr uint32_t LOOKS_PER_CHECK = 16; /* looks between two readings of the clock, the abort line and the own completions */

/* Consumes the completions of this core that are there. False when a request has failed; the error is recorded (queue.h). */
__aicore__ inline bool heed_completions(state& s);

/* One wait. The clock is first read after LOOKS_PER_CHECK looks, so a wait that ends at once costs no clock. */
struct patience {
  uint64_t begin = 0;
  uint32_t looks = 0;

  /* False when the wait must end: the time is over, the host wrote the abort line, or a request of this core has failed: what is waited for
   * may then never come, and the failure says why. The error is recorded. */
  __aicore__ inline bool more(state& s, int pe, uint64_t what, uint64_t which) {
    looks = looks + 1;
    if ((looks & (LOOKS_PER_CHECK - 1)) != 0) return true;
    if (!heed_abort(s, what, which) || !heed_completions(s)) return false;
    uint64_t tick = now();
    if (begin == 0) {
      begin = tick;
    } else if (tick - begin > s.timeout_ticks) {
      fail(s, SHMEM_E_TIMEOUT, pe, what, which);
      return false;
    }
    return true;
  }
};

/* For calls that look once and that a kernel calls in a loop: true when such a loop must end, with the error recorded. `bounded`: whether
 * saying no for longer than the time limit is an error. A yes resets it (looked). */
__aicore__ inline bool asked_enough(state& s, int pe, uint64_t what, uint64_t which, bool bounded) {
  patience wait;
  wait.begin = bounded ? s.asked_since : 0;
  wait.looks = s.asked;
  bool more = wait.more(s, pe, what, which);
  s.asked = wait.looks;
  if (bounded) s.asked_since = wait.begin;
  return !more;
}
__aicore__ inline void looked(state& s) {
  s.asked = 0;
  s.asked_since = 0;
}

}  // namespace shmem_impl

#endif
