/* Kernels that test the breadth of the device API: strided transfers, waiting on many variables, atomics of every operation. Launched by
 * the `api` program of this package; parameters as in selftest.cpp unless said otherwise: (ctx, a, b, out, u64 engine, u64 pe, u64 n, m, k).
 *
 * kernel        what it does                                                                        out
 * br_strided    n blocks of m elements between b here and a on pe. k: kind | size << 8 |             [0]: error
 *               dst_stride << 16 | src_stride << 32. kind: 0 iput, 1 iget, 2 ibput, 3 ibget (gets
 *               go from a on pe to b). size: 1, 2, 4, 8, 16 bytes an element, through typed or
 *               sized names
 * br_waits      PE pe sets n (at most 64) variables of PE 0 at a to i + 1, in an order that m gives;  on PE 0 [0]: seen, [1]: wrong,
 *               PE 0 waits in the form k, see `form`                                                 [2]: error
 */
#include "kernel_operator.h"
#include "shmem.h"

namespace breadth {

constexpr uint64_t MOST = 64; /* variables of br_waits */

enum form : uint64_t {
  ALL = 0, ANY = 1, SOME = 2, ALL_VECTOR = 3, ANY_VECTOR = 4, SOME_VECTOR = 5,
  TEST = 6,        /* added to one of the six */
  NOBODY = 12,     /* every status set: nothing to wait for */
  NEVER = 13,      /* wait_until_any that nobody fulfils */
  UB_LISTS = 14    /* some, with status and indices in UB */
};

__aicore__ inline void out_word(GM_ADDR out, uint64_t index, uint64_t value) {
  AscendC::WriteGmByPassDCache<uint64_t>(reinterpret_cast<__gm__ uint64_t*>(out) + index, value);
}

__aicore__ inline shmem_options with_engine(uint64_t engine) {
  shmem_options options;
  options.engine = static_cast<uint32_t>(engine);
  return options;
}

/* Calls the four strided forms by names made of BEFORE and AFTER. */
#define STRIDED_CALLS(BEFORE, AFTER, TYPE)                                                                            \
  __aicore__ inline void strided_##BEFORE##AFTER(GM_ADDR a, GM_ADDR b, uint64_t kind, int64_t ds, int64_t ss, uint64_t n, uint64_t m, int pe) { \
    __gm__ TYPE* far = reinterpret_cast<__gm__ TYPE*>(a);                                                             \
    __gm__ TYPE* near = reinterpret_cast<__gm__ TYPE*>(b);                                                            \
    if (kind == 0) shmem_##BEFORE##iput##AFTER(far, near, ds, ss, n, pe);                                             \
    if (kind == 1) shmem_##BEFORE##iget##AFTER(near, far, ds, ss, n, pe);                                             \
    if (kind == 2) shmem_##BEFORE##ibput##AFTER(far, near, ds, ss, m, n, pe);                                         \
    if (kind == 3) shmem_##BEFORE##ibget##AFTER(near, far, ds, ss, m, n, pe);                                         \
  }
STRIDED_CALLS(, 8, void)
STRIDED_CALLS(int16_, , int16_t)
STRIDED_CALLS(float_, , float)
STRIDED_CALLS(double_, , double)
STRIDED_CALLS(, 128, void)

/* One wait or test in the form k, on the variables whose status is 0. Gives the indices that it reports. */
__aicore__ inline uint64_t once(__gm__ int64_t* ivars, __gm__ int64_t* values, uint64_t n, int32_t* status, uint64_t* indices, uint64_t k) {
  uint64_t one = SHMEM_NONE;
  switch (k) {
    case ALL: shmem_wait_until_all(ivars, n, status, SHMEM_CMP_GE, 1); return n;
    case ANY: one = shmem_wait_until_any(ivars, n, status, SHMEM_CMP_GE, 1); break;
    case SOME: return shmem_int64_wait_until_some(ivars, n, indices, status, SHMEM_CMP_GE, 1);
    case ALL_VECTOR: shmem_int64_wait_until_all_vector(ivars, n, status, SHMEM_CMP_EQ, values); return n;
    case ANY_VECTOR: one = shmem_wait_until_any_vector(ivars, n, status, SHMEM_CMP_EQ, values); break;
    case SOME_VECTOR: return shmem_wait_until_some_vector(ivars, n, indices, status, SHMEM_CMP_EQ, values);
    case TEST + ALL: return shmem_int64_test_all(ivars, n, status, SHMEM_CMP_GE, 1) != 0 ? n : 0;
    case TEST + ANY: one = shmem_test_any(ivars, n, status, SHMEM_CMP_GE, 1); break;
    case TEST + SOME: return shmem_test_some(ivars, n, indices, status, SHMEM_CMP_GE, 1);
    case TEST + ALL_VECTOR: return shmem_test_all_vector(ivars, n, status, SHMEM_CMP_EQ, values) != 0 ? n : 0;
    case TEST + ANY_VECTOR: one = shmem_long_test_any_vector(reinterpret_cast<__gm__ long*>(ivars), n, status, SHMEM_CMP_EQ,
                                                             reinterpret_cast<__gm__ long*>(values)); break;
    case TEST + SOME_VECTOR: return shmem_test_some_vector(ivars, n, indices, status, SHMEM_CMP_EQ, values);
    default: return 0;
  }
  if (one == SHMEM_NONE) return 0;
  indices[0] = one;
  return 1;
}

__aicore__ inline void receive(__gm__ int64_t* ivars, __gm__ int64_t* values, GM_ADDR out, uint64_t n, uint64_t k) {
  int32_t status[MOST];
  uint64_t indices[MOST];
  for (uint64_t i = 0; i < MOST; ++i) status[i] = 0;
  uint64_t seen = 0, wrong = 0;
  bool all = k == ALL || k == ALL_VECTOR || k == TEST + ALL || k == TEST + ALL_VECTOR;
  while (seen < n && shmem_error() == SHMEM_OK) {
    uint64_t found = once(ivars, values, n, status, indices, k);
    for (uint64_t i = 0; i < found; ++i) {
      uint64_t index = all ? i : indices[i];
      if (index >= n || status[index] != 0 ||
          AscendC::ReadGmByPassDCache<int64_t>(ivars + index) != int64_t(index + 1)) {
        wrong += 1;
      } else {
        status[index] = 1;
      }
    }
    seen += found;
  }
  /* Nobody is left: any says so, all and some return at once. */
  if (shmem_wait_until_any(ivars, n, status, SHMEM_CMP_GE, 1) != SHMEM_NONE) wrong += 1;
  shmem_wait_until_all(ivars, n, status, SHMEM_CMP_LT, 0);
  if (shmem_wait_until_some(ivars, n, indices, status, SHMEM_CMP_GE, 1) != 0) wrong += 1;
  if (shmem_test_any(ivars, n, status, SHMEM_CMP_GE, 1) != SHMEM_NONE) wrong += 1;
  if (shmem_wait_until_any(ivars, n, nullptr, SHMEM_CMP_GE, 1) != 0) wrong += 1;
  out_word(out, 0, seen);
  out_word(out, 1, wrong);
}

__aicore__ inline void receive_by_ub(__gm__ int64_t* ivars, GM_ADDR out, uint64_t n) {
  AscendC::LocalTensor<int32_t> status(AscendC::TPosition::VECCALC, 0, MOST);
  AscendC::LocalTensor<uint64_t> indices(AscendC::TPosition::VECCALC, MOST * 4, MOST);
  for (uint64_t i = 0; i < n; ++i) status.SetValue(uint32_t(i), 0);
  uint64_t seen = 0;
  while (seen < n && shmem_error() == SHMEM_OK) {
    uint64_t found = shmem_wait_until_some(ivars, n, indices, status, SHMEM_CMP_GE, 1);
    for (uint64_t i = 0; i < found; ++i) status.SetValue(uint32_t(indices.GetValue(uint32_t(i))), 1);
    seen += found;
  }
  out_word(out, 0, seen);
}

}  // namespace breadth

extern "C" __global__ __aicore__ void br_strided(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, breadth::with_engine(engine));
  uint64_t kind = k & 0xff, size = (k >> 8) & 0xff;
  int64_t ds = int16_t((k >> 16) & 0xffff), ss = int16_t((k >> 32) & 0xffff);
  if (size == 1) breadth::strided_8(a, b, kind, ds, ss, n, m, int(pe));
  if (size == 2) breadth::strided_int16_(a, b, kind, ds, ss, n, m, int(pe));
  if (size == 4) breadth::strided_float_(a, b, kind, ds, ss, n, m, int(pe));
  if (size == 8) breadth::strided_double_(a, b, kind, ds, ss, n, m, int(pe));
  if (size == 16) breadth::strided_128(a, b, kind, ds, ss, n, m, int(pe));
  shmem_quiet();
  breadth::out_word(out, 0, shmem_error());
}

extern "C" __global__ __aicore__ void br_waits(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                               uint64_t m, uint64_t k) {
  shmem_guard guard = shmem_attach(ctx, breadth::with_engine(engine));
  __gm__ int64_t* ivars = reinterpret_cast<__gm__ int64_t*>(a);
  __gm__ int64_t* values = reinterpret_cast<__gm__ int64_t*>(b);
  if (shmem_my_pe() == 0) {
    if (k == breadth::NEVER) {
      shmem_wait_until_any(ivars, n, nullptr, SHMEM_CMP_LT, 0);
    } else if (k == breadth::UB_LISTS) {
      breadth::receive_by_ub(ivars, out, n);
    } else {
      breadth::receive(ivars, values, out, n, k);
    }
    breadth::out_word(out, 2, shmem_error());
  } else if (shmem_my_pe() == int(pe)) {
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t index = (i * m + m) % n;
      shmem_p(ivars + index, int64_t(index + 1), 0);
    }
  }
}
