// DataCopy and DataCopyPad as kernels call them.
#ifndef NPUSIM_COPY_H
#define NPUSIM_COPY_H

#include "mte.h"

namespace AscendC {

// --- Count form: whole 32-byte blocks --------------------------------------------------------------------------------------------------

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &target, const GlobalTensor<T> &source, const uint32_t count, NPUSIM_SITE) {
  const uint64_t bytes = npusim::whole_blocks(count, sizeof(T), "DataCopy (GM to UB)", site);
  if (bytes == 0) return;
  npusim::copy_in<T>(target, source, 1, bytes, 0, 0, nullptr, "DataCopy (GM to UB)", site);
}
template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &target, const LocalTensor<T> &source, const uint32_t count, NPUSIM_SITE) {
  const uint64_t bytes = npusim::whole_blocks(count, sizeof(T), "DataCopy (UB to GM)", site);
  if (bytes == 0) return;
  npusim::copy_out<T>(target, source, 1, bytes, 0, 0, "DataCopy (UB to GM)", site);
}
template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &target, const LocalTensor<T> &source, const uint32_t count, NPUSIM_SITE) {
  const uint64_t bytes = npusim::whole_blocks(count, sizeof(T), "DataCopy (UB to UB)", site);
  if (bytes == 0) return;
  npusim::copy_inside(target, source, 1, bytes, 0, 0, "DataCopy (UB to UB)", site);
}

// --- Block form: lengths and gaps in 32-byte units -------------------------------------------------------------------------------------

template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &target, const GlobalTensor<T> &source, const DataCopyParams &p, NPUSIM_SITE) {
  if (p.blockCount == 0 || p.blockLen == 0) return;
  npusim::check_blocks(p.blockCount, p.blockLen * 32ull, 0, 0, sizeof(T), "DataCopy (GM to UB)", site);
  npusim::copy_in<T>(target, source, p.blockCount, p.blockLen * 32ull, p.srcStride * 32ull, p.dstStride * 32ull, nullptr, "DataCopy (GM to UB)", site);
}
template <typename T>
__aicore__ inline void DataCopy(const GlobalTensor<T> &target, const LocalTensor<T> &source, const DataCopyParams &p, NPUSIM_SITE) {
  if (p.blockCount == 0 || p.blockLen == 0) return;
  npusim::check_blocks(p.blockCount, p.blockLen * 32ull, 0, 0, sizeof(T), "DataCopy (UB to GM)", site);
  npusim::copy_out<T>(target, source, p.blockCount, p.blockLen * 32ull, p.srcStride * 32ull, p.dstStride * 32ull, "DataCopy (UB to GM)", site);
}
template <typename T>
__aicore__ inline void DataCopy(const LocalTensor<T> &target, const LocalTensor<T> &source, const DataCopyParams &p, NPUSIM_SITE) {
  if (p.blockCount == 0 || p.blockLen == 0) return;
  npusim::check_blocks(p.blockCount, p.blockLen * 32ull, 0, 0, sizeof(T), "DataCopy (UB to UB)", site);
  npusim::copy_inside(target, source, p.blockCount, p.blockLen * 32ull, p.srcStride * 32ull, p.dstStride * 32ull, "DataCopy (UB to UB)", site);
}

// --- Any length ------------------------------------------------------------------------------------------------------------------------

template <typename T>
__aicore__ inline void DataCopyPad(const LocalTensor<T> &target, const GlobalTensor<T> &source, const DataCopyExtParams &p,
                                   const DataCopyPadExtParams<T> &padding, NPUSIM_SITE) {
  if (p.blockCount == 0 || p.blockLen == 0) return;
  npusim::check_blocks(p.blockCount, p.blockLen, static_cast<int64_t>(p.srcStride), static_cast<int64_t>(p.dstStride), sizeof(T),
                       "DataCopyPad (GM to UB)", site);
  npusim::copy_in<T>(target, source, p.blockCount, p.blockLen, static_cast<uint64_t>(p.srcStride), static_cast<uint64_t>(p.dstStride) * 32, &padding,
                     "DataCopyPad (GM to UB)", site);
}
template <typename T>
__aicore__ inline void DataCopyPad(const GlobalTensor<T> &target, const LocalTensor<T> &source, const DataCopyExtParams &p, NPUSIM_SITE) {
  if (p.blockCount == 0 || p.blockLen == 0) return;
  npusim::check_blocks(p.blockCount, p.blockLen, static_cast<int64_t>(p.srcStride), static_cast<int64_t>(p.dstStride), sizeof(T),
                       "DataCopyPad (UB to GM)", site);
  npusim::copy_out<T>(target, source, p.blockCount, p.blockLen, static_cast<uint64_t>(p.srcStride) * 32, static_cast<uint64_t>(p.dstStride),
                      "DataCopyPad (UB to GM)", site);
}

}  // namespace AscendC

#endif
