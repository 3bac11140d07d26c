// A kernel for cube cores.
#include "kernel_operator.h"
extern "C" __global__ __cube__ __aicore__ void k(GM_ADDR) {}
