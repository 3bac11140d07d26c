/* 03: a token goes round the ring; each PE adds its number + 1 and passes it on.
 *
 * The token is two words of the receiver's heap: the sum so far, and the number of hops, which the receiver waits for. Without the fence the
 * hop might arrive before the sum. The words lie in one line (64 bytes) each, so that each has one writer: the PE before. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void ring(GM_ADDR ctx, GM_ADDR token, uint64_t laps) {
  shmem_guard shmem = shmem_attach(ctx);
  __gm__ uint64_t* sum = reinterpret_cast<__gm__ uint64_t*>(token);
  __gm__ uint64_t* hops = sum + 8;
  uint64_t me = uint64_t(shmem_my_pe()), pes = uint64_t(shmem_n_pes());
  int next = int((me + 1) % pes);

  /* PE 0 starts with nothing, and takes the token once more at the end. */
  uint64_t visits = me == 0 ? laps + 1 : laps;
  for (uint64_t lap = 0; lap < visits; ++lap) {
    uint64_t value = 0;
    if (me != 0 || lap != 0) {
      shmem_wait_until(hops, SHMEM_CMP_EQ, lap * pes + me);
      value = AscendC::ReadGmByPassDCache<uint64_t>(sum); /* a cached load might see an old line */
    }
    if (lap == laps) break;
    shmem_p(sum, value + me + 1, next);
    shmem_fence();
    shmem_p(hops, lap * pes + me + 1, next);
  }
}
