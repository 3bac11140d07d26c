/* 04: two PEs send n bytes to and fro.
 *
 * put_signal is a put whose data is there before the signal word changes: the receiver waits for the signal and needs no fence. The odd PE
 * sends back what it received. A PE without a partner plays with itself.
 *
 * out[0]: ticks of the system counter for all rounds. */
#include "kernel_operator.h"
#include "shmem.h"

extern "C" __global__ __aicore__ void ping_pong(GM_ADDR ctx, GM_ADDR inbox, GM_ADDR data, GM_ADDR signal, GM_ADDR out, uint64_t bytes,
                                                uint64_t rounds) {
  shmem_guard shmem = shmem_attach(ctx);
  __gm__ uint64_t* arrived = reinterpret_cast<__gm__ uint64_t*>(signal);
  int me = shmem_my_pe();
  int partner = me ^ 1;
  if (partner >= shmem_n_pes()) partner = me;

  /* The signal counts up through launches: what the last one left is this one's zero. Nobody sends before all have looked. */
  uint64_t before = shmem_signal_fetch(arrived);
  shmem_sync_all();
  uint64_t start = uint64_t(AscendC::GetSystemCycle());
  for (uint64_t round = before + 1; round <= before + rounds && shmem_error() == SHMEM_OK; ++round) {
    if (me <= partner) {
      shmem_putmem_signal(inbox, data, bytes, arrived, round, SHMEM_SIGNAL_SET, partner);
      shmem_signal_wait_until(arrived, SHMEM_CMP_EQ, round);
    } else {
      shmem_signal_wait_until(arrived, SHMEM_CMP_EQ, round);
      shmem_putmem_signal(inbox, inbox, bytes, arrived, round, SHMEM_SIGNAL_SET, partner);
    }
  }
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(out), uint64_t(AscendC::GetSystemCycle()) - start);
}
