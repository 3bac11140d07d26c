// Constants and block-local variables are no shared state. A macro makes one of the kernels.
#include "kernel_operator.h"
constexpr uint32_t TABLE[4] = {1, 2, 3, 4};
static const char *const NAMES[2] = {"zero", "one"};
static thread_local uint32_t mine;
#define MAKE(name)                                                                  \
  extern "C" __global__ __aicore__ void name(GM_ADDR gm, uint32_t i) {              \
    mine += TABLE[i % 4];                                                           \
    st_dev(mine, (__gm__ uint32_t *)gm, 0);                                         \
    using namespace AscendC;                                                        \
    printf("%s", NAMES[i % 2]);                                                     \
  }
MAKE(made)
#if __NPU_ARCH__ == 3510
MAKE(made_for_950)
#endif
