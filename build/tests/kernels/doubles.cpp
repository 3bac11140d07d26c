// double is no type of a tensor.
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR gm) {
  AscendC::GlobalTensor<double> numbers;
  numbers.SetGlobalBuffer((__gm__ double *)gm);
}
