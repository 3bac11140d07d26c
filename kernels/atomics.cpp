/* The host's atomics once the device is enabled (host/openshmem/atomics.rs): one operation by one core, in the job's atomic domain, so that it is
 * atomic to those of kernels. `word`: the own instance of the element; `bytes`: 4 or 8; answer[0]: the old value (0 for set).
 */
#include "kernel_operator.h"
#include "shmem.h"

/* Numbered as in host/openshmem/atomics.rs. */
enum host_op { HOST_FETCH = 0, HOST_SET = 1, HOST_SWAP = 2, HOST_ADD = 3, HOST_COMPARE_SWAP = 4, HOST_AND = 5, HOST_OR = 6, HOST_XOR = 7 };

template <typename T>
__aicore__ inline uint64_t host_atomic(__gm__ T* word, int pe, uint64_t op, T cond, T value) {
  switch (op) {
    case HOST_FETCH: return shmem_atomic_fetch(word, pe);
    case HOST_SET: shmem_atomic_set(word, value, pe); return 0;
    case HOST_SWAP: return shmem_atomic_swap(word, value, pe);
    case HOST_ADD: return shmem_atomic_fetch_add(word, value, pe);
    case HOST_COMPARE_SWAP: return shmem_atomic_compare_swap(word, cond, value, pe);
    case HOST_AND: return shmem_atomic_fetch_and(word, value, pe);
    case HOST_OR: return shmem_atomic_fetch_or(word, value, pe);
    default: return shmem_atomic_fetch_xor(word, value, pe);
  }
}

extern "C" __global__ __aicore__ void shmem_host_atomic(GM_ADDR ctx, GM_ADDR word, int32_t pe, uint32_t bytes, uint64_t op, uint64_t cond,
                                                        uint64_t value, GM_ADDR answer) {
  auto guard = shmem_attach(ctx);
  uint64_t old;
  if (bytes == 4) {
    old = host_atomic<uint32_t>(reinterpret_cast<__gm__ uint32_t*>(word), pe, op, static_cast<uint32_t>(cond), static_cast<uint32_t>(value));
  } else {
    old = host_atomic<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(word), pe, op, cond, value);
  }
  shmem_quiet();
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(answer), old);
}
