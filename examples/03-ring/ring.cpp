/* 03: messages of PE 0 go round the ring, one after the other; each PE passes on what it received.
 *
 * A message is n words, and a count of hops, which the receiver waits for. put_nbi may still be under way when it returns, and nothing is
 * ordered by itself: without the fence the count could arrive before the words. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void ring(GM_ADDR ctx, GM_ADDR inbox, GM_ADDR messages, GM_ADDR hops, uint64_t n, uint64_t laps) {
  shmem_guard shmem = shmem_attach(ctx);
  __gm__ uint64_t* count = reinterpret_cast<__gm__ uint64_t*>(hops);
  uint64_t me = uint64_t(shmem_my_pe()), pes = uint64_t(shmem_n_pes());
  int next = int((me + 1) % pes);

  /* PE 0 starts each lap when the message of the one before has come back. */
  for (uint64_t lap = 0; lap < laps; ++lap) {
    if (me != 0 || lap != 0) shmem_wait_until(count, SHMEM_CMP_EQ, lap * pes + me);
    __gm__ uint64_t* received = reinterpret_cast<__gm__ uint64_t*>(inbox) + lap * n;
    __gm__ uint64_t* message = me == 0 ? reinterpret_cast<__gm__ uint64_t*>(messages) + lap * n : received;
    shmem_put_nbi(received, message, n, next);
    shmem_fence();
    shmem_p(count, lap * pes + me + 1, next);
  }
  if (me == 0) shmem_wait_until(count, SHMEM_CMP_EQ, laps * pes);
}
