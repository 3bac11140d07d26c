// LocalTensor and GlobalTensor: views of the unified buffer and of global memory.
//
// A LocalTensor holds the UB offset, as on the device; GetPhyAddr gives an address that a cast to `__ubuf__ T *` can use. Scalar access to
// a GlobalTensor goes through the core's data cache (cache.h); copies go round it (copy.h).
#ifndef NPUSIM_TENSOR_H
#define NPUSIM_TENSOR_H

#include "cache.h"

namespace AscendC {

struct TBuffAddr {
  uint32_t dataLen = 0;    // bytes; 0: unknown
  uint32_t bufferAddr = 0; // UB offset in bytes
  TBufHandle bufferHandle = nullptr;
  uint8_t logicPos = 0;
};

template <typename T> class LocalTensor {
  static_assert(!IsSameType<T, double>::value, "AscendC has no double: use float, or integers for 8-byte words");

 public:
  using PrimType = T;
  TBuffAddr address_;

  __aicore__ inline LocalTensor() {}
  __aicore__ inline LocalTensor(TPosition position, uint32_t address, uint32_t elements) {
    address_.logicPos = static_cast<uint8_t>(position);
    address_.bufferAddr = address;
    address_.dataLen = elements * static_cast<uint32_t>(sizeof(T));
  }
  __aicore__ inline explicit LocalTensor(uint32_t address) { address_.bufferAddr = address; }

  __aicore__ inline uint64_t GetPhyAddr() const { return GetPhyAddr(0); }
  __aicore__ inline uint64_t GetPhyAddr(const uint32_t offset) const {
    return reinterpret_cast<uint64_t>(npusim::state().ub) + address_.bufferAddr + static_cast<uint64_t>(offset) * sizeof(T);
  }
  __aicore__ inline T GetValue(const uint32_t index, NPUSIM_SITE) const { return *element(index, "LocalTensor::GetValue", site); }
  template <typename S> __aicore__ inline void SetValue(const uint32_t index, const S value, NPUSIM_SITE) const {
    *element(index, "LocalTensor::SetValue", site) = static_cast<T>(value);
  }
  __aicore__ inline __ubuf__ T &operator()(const uint32_t index, NPUSIM_SITE) const {
    return *(__ubuf__ T *)element(index, "LocalTensor::operator()", site);
  }
  __aicore__ inline LocalTensor operator[](const uint32_t offset) const {
    LocalTensor part = *this;
    const uint32_t bytes = offset * static_cast<uint32_t>(sizeof(T));
    part.address_.bufferAddr += bytes;
    // Behind the end nothing is left; 1 byte keeps "unknown" (0) and "empty" apart.
    if (part.address_.dataLen != 0) part.address_.dataLen = part.address_.dataLen > bytes ? part.address_.dataLen - bytes : 1;
    return part;
  }
  template <typename U> __aicore__ inline LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> same;
    same.address_ = address_;
    return same;
  }
  __aicore__ inline int32_t GetPosition() const { return address_.logicPos; }
  __aicore__ inline void SetSize(const uint32_t elements) { address_.dataLen = elements * static_cast<uint32_t>(sizeof(T)); }
  __aicore__ inline uint32_t GetSize() const { return address_.dataLen / static_cast<uint32_t>(sizeof(T)); }
  __aicore__ inline void SetBufferLen(uint32_t bytes) { address_.dataLen = bytes; }
  __aicore__ inline uint32_t GetLength() const { return address_.dataLen; }
  __aicore__ inline void SetUserTag(const TTagType tag) { tag_ = tag; }
  __aicore__ inline TTagType GetUserTag() const { return tag_; }

 private:
  TTagType tag_ = 0;
  // One element, for the scalar unit: aligned to itself, inside the tensor and the buffer.
  NPUSIM_HOT T *element(uint32_t index, const char *operation, npusim::Site site) const {
    const uint64_t begin = static_cast<uint64_t>(index) * sizeof(T);
    if (__builtin_expect(address_.dataLen != 0 && begin + sizeof(T) > address_.dataLen, 0))
      npusim::broken(site, "%s: element %u is behind the end of the tensor (%u elements)", operation, index, GetSize());
    npusim::step(site);
    return reinterpret_cast<T *>(npusim::check_ub(address_.bufferAddr + begin, sizeof(T), sizeof(T), operation, site));
  }
};

template <typename T> class GlobalTensor {
  static_assert(!IsSameType<T, double>::value, "AscendC has no double: use float, or integers for 8-byte words");

 public:
  using PrimType = T;

  __aicore__ inline GlobalTensor() {}
  __aicore__ inline void SetGlobalBuffer(__gm__ T *buffer, uint64_t elements) {
    buffer_ = buffer;
    size_ = elements;
  }
  __aicore__ inline void SetGlobalBuffer(__gm__ T *buffer) { SetGlobalBuffer(buffer, 0); }
  __aicore__ inline const __gm__ T *GetPhyAddr() const { return buffer_; }
  __aicore__ inline __gm__ T *GetPhyAddr(const uint64_t offset) const { return buffer_ + offset; }
  __aicore__ inline T GetValue(const uint64_t index, NPUSIM_SITE) const {
    check(index, 1, "GlobalTensor::GetValue", site);
    return npusim::cached_load<T>(reinterpret_cast<uint64_t>(buffer_) + index * sizeof(T), "GlobalTensor::GetValue", site);
  }
  __aicore__ inline T operator()(const uint64_t index, NPUSIM_SITE) const { return GetValue(index, site); }
  __aicore__ inline void SetValue(const uint64_t index, T value, NPUSIM_SITE) {
    check(index, 1, "GlobalTensor::SetValue", site);
    npusim::cached_store<T>(reinterpret_cast<uint64_t>(buffer_) + index * sizeof(T), value, "GlobalTensor::SetValue", site);
  }
  __aicore__ inline GlobalTensor operator[](const uint64_t offset) const {
    GlobalTensor part = *this;
    part.buffer_ = buffer_ + offset;
    part.size_ = size_ > offset ? size_ - offset : (size_ != 0 ? EMPTY : 0);
    return part;
  }
  __aicore__ inline uint64_t GetSize() const { return size_ == EMPTY ? 0 : size_; }
  template <CacheRwMode rw = CacheRwMode::RW> __aicore__ inline void SetL2CacheHint(CacheMode) {}

  // Not AscendC: elements [first, first + count) must lie in the buffer that SetGlobalBuffer named (where it named a size).
  NPUSIM_HOT void check(uint64_t first, uint64_t count, const char *operation, npusim::Site site) const {
    // Without an addition that could wrap: an index that went below zero is a very large one.
    if (__builtin_expect(size_ != 0 && (first > GetSize() || count > GetSize() - first), 0))
      npusim::broken(site, "%s: elements [%llu, %llu) are behind the end of the buffer (SetGlobalBuffer named %llu elements)", operation,
                     (unsigned long long)first, (unsigned long long)(first + count), (unsigned long long)GetSize());
  }

 private:
  static constexpr uint64_t EMPTY = ~0ull; // a part that starts at or behind the end
  __gm__ T *buffer_ = nullptr;
  uint64_t size_ = 0; // elements; 0: unknown
};

}  // namespace AscendC

namespace npusim {

// The operand of an MTE or vector operation: 32-byte aligned UB bytes of a tensor.
template <typename T> NPUSIM_HOT T *operand(const AscendC::LocalTensor<T> &tensor, uint64_t bytes, const char *operation, Site site) {
  const AscendC::TBuffAddr &a = tensor.address_;
  if (__builtin_expect(a.dataLen != 0 && bytes > a.dataLen, 0))
    broken(site, "%s: %llu bytes do not fit the tensor at UB offset %u (%u bytes left)", operation, (unsigned long long)bytes, a.bufferAddr,
           a.dataLen);
  return reinterpret_cast<T *>(check_ub(a.bufferAddr, bytes, AscendC::ONE_BLK_SIZE, operation, site));
}

}  // namespace npusim

#endif
