// Buffers of the unified buffer that a kernel has managed for it: TPipe hands them out, TBuf keeps one, TQue passes several between pipes.
//
// The device's queues set and wait for a flag at each hand-over; here pipes run in program order, so a hand-over checks the state of the
// buffer, counts the flag, and completes late MTE3 copies of a buffer before it is given out again.
#ifndef NPUSIM_QUEUE_H
#define NPUSIM_QUEUE_H

#include "sync.h"

namespace npusim {

constexpr uint32_t MAX_BUFFERS = 16; // of one queue

// Gives out the next bytes of UB, whole 32-byte blocks.
inline uint32_t allocate_ub(uint64_t bytes, const char *operation, Site site) {
  State &s = state();
  const uint64_t at = s.pipe_end, size = round_up_32(bytes);
  if (bytes == 0) broken(site, "%s: a buffer of 0 bytes", operation);
  check_ub(at, size, AscendC::ONE_BLK_SIZE, operation, site);
  s.pipe_end = at + size;
  return static_cast<uint32_t>(at);
}

template <typename T> inline AscendC::LocalTensor<T> buffer_view(AscendC::TPosition position, uint32_t offset, uint32_t bytes, uint64_t handle) {
  AscendC::LocalTensor<T> tensor;
  tensor.address_.logicPos = static_cast<uint8_t>(position);
  tensor.address_.bufferAddr = offset;
  tensor.address_.dataLen = bytes;
  tensor.address_.bufferHandle = reinterpret_cast<AscendC::TBufHandle>(handle);
  return tensor;
}

inline int8_t take_event(AscendC::HardEvent event, bool keep, Site site) {
  State &s = state();
  const PipePair pair = EVENT_PIPES[static_cast<uint8_t>(event)];
  uint8_t &taken = s.event_taken[pair.from][pair.to];
  for (uint32_t id = 0; id < N_EVENTS; ++id)
    if (((taken | s.claimed_events) >> id & 1) == 0) {
      if (keep) taken = static_cast<uint8_t>(taken | 1u << id);
      return static_cast<int8_t>(id);
    }
  broken(site, "AllocEventID<%s_%s>: all event ids are taken; release those that are done (ReleaseEventID)", pipe_name(pair.from), pipe_name(pair.to));
}

}  // namespace npusim

namespace AscendC {

template <TPosition pos = TPosition::LCM> class TBuf {
 public:
  template <typename T> __aicore__ inline LocalTensor<T> Get(NPUSIM_SITE) {
    ready(site);
    return npusim::buffer_view<T>(pos, offset_, bytes_, 0);
  }
  template <typename T> __aicore__ inline LocalTensor<T> Get(uint32_t len, NPUSIM_SITE) { return GetWithOffset<T>(len, 0, site); }
  // `size` elements from byte `bufOffset` on.
  template <typename T> __aicore__ inline LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset, NPUSIM_SITE) {
    ready(site);
    const uint64_t end = bufOffset + static_cast<uint64_t>(size) * sizeof(T);
    if (end > bytes_) npusim::broken(site, "TBuf: bytes [%u, %llu) are behind the end of the buffer (%u bytes)", bufOffset, (unsigned long long)end, bytes_);
    return npusim::buffer_view<T>(pos, offset_ + bufOffset, size * static_cast<uint32_t>(sizeof(T)), 0);
  }

 private:
  friend class TPipe;
  uint32_t offset_ = 0, bytes_ = 0;
  inline void ready(npusim::Site site) const {
    if (bytes_ == 0) npusim::broken(site, "TBuf: used before TPipe::InitBuffer");
  }
};

template <TPosition pos, int32_t depth, auto mask = 0> class TQue {
 public:
  template <typename T> __aicore__ inline LocalTensor<T> AllocTensor(NPUSIM_SITE) {
    ready(site);
    for (uint32_t i = 0; i < count_; ++i) {
      if (used_[i]) continue;
      used_[i] = true;
      npusim::State &s = npusim::state();
      // The device waits here for MTE3 to have left the buffer (an output queue) before the vector unit may write it.
      if (pos == TPosition::VECOUT) npusim::drain_mte3(s, freed_[i]);
      npusim::counters().flags_waited++;
      npusim::step(site);
      return npusim::buffer_view<T>(pos, offset_ + i * bytes_, bytes_, i + 1);
    }
    npusim::broken(site, "TQue::AllocTensor: all %u buffers are in use, so the core would wait for ever; FreeTensor one first", count_);
  }
  template <typename T> __aicore__ inline void FreeTensor(LocalTensor<T> &tensor, NPUSIM_SITE) {
    const uint32_t i = index(tensor.address_, "TQue::FreeTensor", site);
    used_[i] = false;
    freed_[i] = npusim::state().queued;
    npusim::counters().flags_set++;
    npusim::step(site);
  }
  template <typename T> __aicore__ inline bool EnQue(const LocalTensor<T> &tensor, NPUSIM_SITE) {
    const uint32_t i = index(tensor.address_, "TQue::EnQue", site);
    if (queued_ >= count_ || queued_ >= static_cast<uint32_t>(depth < 1 ? 1 : depth))
      npusim::broken(site, "TQue::EnQue: %u tensors wait already, the queue's depth is %d; DeQue one first", queued_, depth);
    fifo_[(first_ + queued_) % npusim::MAX_BUFFERS] = static_cast<uint8_t>(i);
    queued_++;
    npusim::counters().flags_set++;
    npusim::step(site);
    return true;
  }
  template <typename T> __aicore__ inline LocalTensor<T> DeQue(NPUSIM_SITE) {
    if (queued_ == 0) npusim::broken(site, "TQue::DeQue: the queue is empty, so the core would wait for ever; EnQue a tensor first");
    const uint32_t i = fifo_[first_];
    first_ = (first_ + 1) % npusim::MAX_BUFFERS;
    queued_--;
    npusim::counters().flags_waited++;
    npusim::step(site);
    return npusim::buffer_view<T>(pos, offset_ + i * bytes_, bytes_, i + 1);
  }
  __aicore__ inline bool VacantInQue() const { return queued_ < static_cast<uint32_t>(depth < 1 ? 1 : depth); }
  __aicore__ inline bool HasTensorInQue() const { return queued_ != 0; }
  __aicore__ inline int32_t GetTensorCountInQue() const { return static_cast<int32_t>(queued_); }
  __aicore__ inline bool HasIdleBuffer() const {
    for (uint32_t i = 0; i < count_; ++i)
      if (!used_[i]) return true;
    return false;
  }
  __aicore__ inline void FreeAllEvent() {}

 private:
  friend class TPipe;
  uint32_t offset_ = 0, bytes_ = 0, count_ = 0, first_ = 0, queued_ = 0;
  bool used_[npusim::MAX_BUFFERS] = {};
  uint8_t fifo_[npusim::MAX_BUFFERS] = {};
  uint64_t freed_[npusim::MAX_BUFFERS] = {}; // MTE3 copies queued when the buffer was freed

  inline void ready(npusim::Site site) const {
    if (count_ == 0) npusim::broken(site, "TQue: used before TPipe::InitBuffer");
  }
  inline uint32_t index(const TBuffAddr &address, const char *operation, npusim::Site site) const {
    ready(site);
    const uint64_t i = reinterpret_cast<uint64_t>(address.bufferHandle) - 1;
    if (i >= count_ || address.bufferAddr < offset_ + i * bytes_ || address.bufferAddr >= offset_ + (i + 1) * bytes_ || !used_[i])
      npusim::broken(site, "%s: the tensor is not one that AllocTensor of this queue gave out and that is still in use", operation);
    return static_cast<uint32_t>(i);
  }
};

class TPipe {
 public:
  __aicore__ inline TPipe() { Init(); }
  __aicore__ inline ~TPipe() { Destroy(); }
  TPipe(const TPipe &) = delete;
  TPipe &operator=(const TPipe &) = delete;
  __aicore__ inline void Init() { npusim::state().pipe_end = 0; }
  __aicore__ inline void Destroy() {
    npusim::drain_mte3(npusim::state());
    npusim::state().pipe_end = 0;
  }
  __aicore__ inline void Reset() { Init(); }

  template <TPosition pos, int32_t depth, auto mask>
  __aicore__ inline bool InitBuffer(TQue<pos, depth, mask> &que, uint8_t num, uint32_t len, NPUSIM_SITE) {
    if (num == 0 || num > npusim::MAX_BUFFERS) npusim::broken(site, "TPipe::InitBuffer: %u buffers; a queue takes 1 to %u", num, npusim::MAX_BUFFERS);
    que.bytes_ = static_cast<uint32_t>(npusim::round_up_32(len));
    que.offset_ = npusim::allocate_ub(static_cast<uint64_t>(que.bytes_) * num, "TPipe::InitBuffer", site);
    que.count_ = num;
    return true;
  }
  template <TPosition pos> __aicore__ inline bool InitBuffer(TBuf<pos> &buf, uint32_t len, NPUSIM_SITE) {
    buf.offset_ = npusim::allocate_ub(len, "TPipe::InitBuffer", site);
    buf.bytes_ = static_cast<uint32_t>(npusim::round_up_32(len));
    return true;
  }

  template <HardEvent event> __aicore__ inline TEventID AllocEventID(NPUSIM_SITE) { return npusim::take_event(event, true, site); }
  template <HardEvent event> __aicore__ inline void ReleaseEventID(TEventID id, NPUSIM_SITE) {
    const npusim::PipePair pair = npusim::EVENT_PIPES[static_cast<uint8_t>(event)];
    npusim::check_event(pair, id, "ReleaseEventID", site);
    uint8_t &taken = npusim::state().event_taken[pair.from][pair.to];
    taken = static_cast<uint8_t>(taken & ~(1u << id));
  }
  template <HardEvent event> __aicore__ inline TEventID FetchEventID(NPUSIM_SITE) { return npusim::take_event(event, false, site); }
  __aicore__ inline TEventID FetchEventID(HardEvent event, NPUSIM_SITE) { return npusim::take_event(event, false, site); }
};

// Gives out UB from the start on, without a TPipe.
template <Hardware hard = Hardware::UB> class LocalMemAllocator {
  static_assert(hard == Hardware::UB, "vector cores have the unified buffer only");

 public:
  __aicore__ inline uint32_t GetCurAddr() const { return next_; }
  template <typename T> __aicore__ inline LocalTensor<T> Alloc(uint32_t tileSize, NPUSIM_SITE) {
    const uint64_t bytes = static_cast<uint64_t>(tileSize) * sizeof(T);
    npusim::check_ub(next_, npusim::round_up_32(bytes), ONE_BLK_SIZE, "LocalMemAllocator::Alloc", site);
    LocalTensor<T> tensor(TPosition::VECCALC, next_, tileSize);
    next_ += static_cast<uint32_t>(npusim::round_up_32(bytes));
    return tensor;
  }
  template <typename T, uint32_t tileSize> __aicore__ inline LocalTensor<T> Alloc(NPUSIM_SITE) { return Alloc<T>(tileSize, site); }

 private:
  uint32_t next_ = 0;
};

}  // namespace AscendC

#endif
