// An attribute that clang does not know would be dropped silently, and with it what it promises.
#include "kernel_operator.h"
[[block_local]] static uint32_t mine;
extern "C" __global__ __aicore__ void k(GM_ADDR gm) { st_dev(++mine, (__gm__ uint32_t *)gm, 0); }
