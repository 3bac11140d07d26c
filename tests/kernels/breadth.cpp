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
 * br_atomics    1 core of one PE: n steps on a at pe, each three u64 words at b: operation, operand,  [i]: what step i fetched,
 *               comparand (see `operate`; 64 added: nbi). k: 0 u64, 1 u32, 2 u32 at a + 4, 3 i64,      [n]: error
 *               4 i32, 5 i32 at a + 4, 6 float, 7 float at a + 4
 * br_contend    every core n times on PE pe: float add 1 at a, int32 max at a + 4, xor of its own bit   [c]: error
 *               at a + 8 (u64, 2 n + 1 times), or and and of its bit at a + 16 (u32), min at a + 20
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

/* One step on any type. Returns the bits that it fetched. */
template <typename T>
__aicore__ inline uint64_t operate(__gm__ T* word, __gm__ T* fetch, uint64_t what, T value, T cond, int pe) {
  using bits = shmem_impl::bits_of<T>;
  T old = T(0);
  switch (what) {
    case 0: old = shmem_atomic_fetch(word, pe); break;
    case 1: shmem_atomic_set(word, value, pe); break;
    case 2: shmem_atomic_add(word, value, pe); break;
    case 3: shmem_atomic_inc(word, pe); break;
    case 4: old = shmem_atomic_fetch_add(word, value, pe); break;
    case 5: old = shmem_atomic_fetch_inc(word, pe); break;
    case 6: old = shmem_atomic_swap(word, value, pe); break;
    case 7: old = shmem_atomic_compare_swap(word, cond, value, pe); break;
    case 8: shmem_atomic_min(word, value, pe); break;
    case 9: shmem_atomic_max(word, value, pe); break;
    case 10: old = shmem_atomic_fetch_min(word, value, pe); break;
    case 11: old = shmem_atomic_fetch_max(word, value, pe); break;
    case 64: shmem_atomic_fetch_nbi(fetch, word, pe); break;
    case 68: shmem_atomic_fetch_add_nbi(fetch, word, value, pe); break;
    case 69: shmem_atomic_fetch_inc_nbi(fetch, word, pe); break;
    case 70: shmem_atomic_swap_nbi(fetch, word, value, pe); break;
    case 71: shmem_atomic_compare_swap_nbi(fetch, word, cond, value, pe); break;
    case 74: shmem_atomic_fetch_min_nbi(fetch, word, value, pe); break;
    case 75: shmem_atomic_fetch_max_nbi(fetch, word, value, pe); break;
    default: break;
  }
  if (what >= 64) {
    shmem_quiet();
    old = AscendC::ReadGmByPassDCache<T>(fetch);
  }
  return uint64_t(shmem_impl::bit_cast<bits>(old));
}

/* The operations on bits, for integers. */
template <typename T>
__aicore__ inline uint64_t operate_bits(__gm__ T* word, __gm__ T* fetch, uint64_t what, T value, int pe) {
  T old = T(0);
  switch (what) {
    case 16: shmem_atomic_and(word, value, pe); break;
    case 17: shmem_atomic_or(word, value, pe); break;
    case 18: shmem_atomic_xor(word, value, pe); break;
    case 19: old = shmem_atomic_fetch_and(word, value, pe); break;
    case 20: old = shmem_atomic_fetch_or(word, value, pe); break;
    case 21: old = shmem_atomic_fetch_xor(word, value, pe); break;
    case 83: shmem_atomic_fetch_and_nbi(fetch, word, value, pe); break;
    case 84: shmem_atomic_fetch_or_nbi(fetch, word, value, pe); break;
    case 85: shmem_atomic_fetch_xor_nbi(fetch, word, value, pe); break;
    default: break;
  }
  if (what >= 64) {
    shmem_quiet();
    old = AscendC::ReadGmByPassDCache<T>(fetch);
  }
  return uint64_t(shmem_impl::bits_of<T>(old));
}

template <typename T>
__aicore__ inline T from_bits(uint64_t word) {
  return shmem_impl::bit_cast<T>(shmem_impl::bits_of<T>(word));
}

/* n steps; `fetch` of nbi forms is the word after the steps. */
template <typename T, bool whole>
__aicore__ inline void steps(GM_ADDR a, GM_ADDR b, GM_ADDR out, int pe, uint64_t n) {
  __gm__ uint64_t* list = reinterpret_cast<__gm__ uint64_t*>(b);
  __gm__ T* word = reinterpret_cast<__gm__ T*>(a);
  __gm__ T* fetch = reinterpret_cast<__gm__ T*>(list + 3 * n);
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t what = AscendC::ReadGmByPassDCache<uint64_t>(list + 3 * i);
    T value = from_bits<T>(AscendC::ReadGmByPassDCache<uint64_t>(list + 3 * i + 1));
    T cond = from_bits<T>(AscendC::ReadGmByPassDCache<uint64_t>(list + 3 * i + 2));
    uint64_t old = 0;
    if ((what & 63) >= 16) {
      if constexpr (whole) old = operate_bits<T>(word, fetch, what, value, pe);
    } else {
      old = operate<T>(word, fetch, what, value, cond, pe);
    }
    out_word(out, i, old);
  }
}

}  // namespace breadth

extern "C" __global__ __aicore__ void br_atomics(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  (void)m;
  shmem_guard guard = shmem_attach(ctx, breadth::with_engine(engine));
  if (k == 0) breadth::steps<uint64_t, true>(a, b, out, int(pe), n);
  if (k == 1) breadth::steps<uint32_t, true>(a, b, out, int(pe), n);
  if (k == 2) breadth::steps<uint32_t, true>(a + 4, b, out, int(pe), n);
  if (k == 3) breadth::steps<int64_t, true>(a, b, out, int(pe), n);
  if (k == 4) breadth::steps<int32_t, true>(a, b, out, int(pe), n);
  if (k == 5) breadth::steps<int32_t, true>(a + 4, b, out, int(pe), n);
  if (k == 6) breadth::steps<float, false>(a, b, out, int(pe), n);
  if (k == 7) breadth::steps<float, false>(a + 4, b, out, int(pe), n);
  shmem_quiet();
  breadth::out_word(out, n, shmem_error());
}

extern "C" __global__ __aicore__ void br_contend(GM_ADDR ctx, GM_ADDR a, GM_ADDR b, GM_ADDR out, uint64_t engine, uint64_t pe, uint64_t n,
                                                 uint64_t m, uint64_t k) {
  (void)b, (void)m, (void)k;
  shmem_guard guard = shmem_attach(ctx, breadth::with_engine(engine));
  uint32_t me = uint32_t(shmem_my_pe() * shmem_n_cores() + shmem_my_core());
  int to = int(pe);
  for (uint64_t i = 0; i < n && shmem_error() == SHMEM_OK; ++i) {
    shmem_float_atomic_add(reinterpret_cast<__gm__ float*>(a), 1.0f, to);
    shmem_int32_atomic_max(reinterpret_cast<__gm__ int32_t*>(a + 4), int32_t(me * 1000 + i), to);
    shmem_uint64_atomic_xor(reinterpret_cast<__gm__ uint64_t*>(a + 8), 1ull << me, to);
    shmem_uint32_atomic_or(reinterpret_cast<__gm__ uint32_t*>(a + 16), 1u << me, to);
    if (i + 1 < n || (me & 1) != 0) shmem_uint32_atomic_and(reinterpret_cast<__gm__ uint32_t*>(a + 16), ~(1u << me), to);
    shmem_int_atomic_min(reinterpret_cast<__gm__ int*>(a + 20), -int(me * 1000 + i), to);
    shmem_uint64_atomic_fetch_xor(reinterpret_cast<__gm__ uint64_t*>(a + 8), 1ull << me, to);
  }
  shmem_uint64_atomic_xor(reinterpret_cast<__gm__ uint64_t*>(a + 8), 1ull << me, to);
  shmem_quiet();
  breadth::out_word(out, uint64_t(shmem_my_core()), shmem_error());
}

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
