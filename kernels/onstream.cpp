/* Kernels of the host's calls on a stream (host/stream.rs): one call each, on the context of the stream, which the host passes. They leave
 * the data cache as barrier_all does: kernels before and after them on the stream see one another's stores and what arrived.
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace onstream {

__aicore__ inline __gm__ uint8_t* bytes_at(GM_ADDR address) { return reinterpret_cast<__gm__ uint8_t*>(address); }

}  // namespace onstream

extern "C" __global__ __aicore__ void shmem_stream_put(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t bytes, int32_t pe) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_putmem(onstream::bytes_at(dst), onstream::bytes_at(src), bytes, pe);
}

extern "C" __global__ __aicore__ void shmem_stream_get(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t bytes, int32_t pe) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_getmem(onstream::bytes_at(dst), onstream::bytes_at(src), bytes, pe);
}

extern "C" __global__ __aicore__ void shmem_stream_put_signal(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t bytes, GM_ADDR signal,
                                                              uint64_t value, int32_t pe) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_fence_pe(pe);
  shmem_putmem_signal(onstream::bytes_at(dst), onstream::bytes_at(src), bytes, reinterpret_cast<__gm__ uint64_t*>(signal), value,
                      SHMEM_SIGNAL_SET, pe);
}

extern "C" __global__ __aicore__ void shmem_stream_signal_wait(GM_ADDR ctx, GM_ADDR signal, uint64_t value) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_signal_wait_until(reinterpret_cast<__gm__ uint64_t*>(signal), SHMEM_CMP_GE, value);
}

/* One block a comm core: each completes its own requests. */
extern "C" __global__ __aicore__ void shmem_stream_barrier(GM_ADDR ctx) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_barrier_all();
}

extern "C" __global__ __aicore__ void shmem_stream_quiet(GM_ADDR ctx) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_quiet();
}

extern "C" __global__ __aicore__ void shmem_stream_broadcast(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t bytes, int32_t root) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_broadcastmem(SHMEM_TEAM_WORLD, onstream::bytes_at(dst), onstream::bytes_at(src), bytes, root);
}

extern "C" __global__ __aicore__ void shmem_stream_sum_float(GM_ADDR ctx, GM_ADDR dst, GM_ADDR src, uint64_t n) {
  shmem_guard guard = shmem_attach(ctx);
  shmem_float_sum_reduce(SHMEM_TEAM_WORLD, reinterpret_cast<__gm__ float*>(dst), reinterpret_cast<__gm__ float*>(src), n);
}
